// Links at each figure that save it: as SVG, made of the charts that are drawn for paper, and as CSV.
for (const figure of document.querySelectorAll('[data-file]')) {
  const file = data.files[figure.dataset.file];
  const place = figure.querySelector('h3').appendChild(document.createElement('span'));
  place.className = 'save';
  const link = (type, mime, text) => {
    const anchor = make('a', place, type);
    anchor.download = `${file.name}.${type.toLowerCase()}`;
    anchor.href = '#';
    anchor.setAttribute('aria-label', `save ${file.title} as ${type}`);
    anchor.addEventListener('click', () => { anchor.href = URL.createObjectURL(new Blob([text()], { type: mime })); });
  };
  link('SVG', 'image/svg+xml', () => svgOf(figure, file));
  link('CSV', 'text/csv', () => file.csv ?? csvOf(data.figures[figure.id.slice('figure-'.length)], file));
}

function svgOf(figure, { title, note, width, height, legend, places }) {
  const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  const panels = [...figure.querySelectorAll('.panels svg.p')].map((panel, at) => {
    const { width: w, height: h } = panel.viewBox.baseVal;
    return `<svg x="${places[at][0]}" y="${places[at][1]}" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">${panel.innerHTML}</svg>`;
  });
  const body = (legend + panels.join('')).replace(/var\(--c(\d+)\)/g, (_, slot) => data.light[slot]);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}pt" height="${height}pt" viewBox="0 0 ${width} ${height}" role="img">`
    + `<title>${escape(title)}</title><desc>${escape(note)}</desc><style>${data.style}</style>`
    + `<rect width="100%" height="100%" fill="#fff"/>${body}</svg>\n`;
}

// The samples that the page carries; `ropewalk report DIR --figures OUT` writes every one.
function csvOf({ legend, panels, axis }) {
  const field = text => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  const rows = [['panel', 'line', 'time_s', axis].map(field).join(',')];
  for (const { name, times, lines } of panels) {
    for (const { of, baseline, values } of lines) {
      const line = field(legend[of].name + (baseline ? ', baseline' : ''));
      values.forEach((value, at) => { if (value != null) rows.push([field(name), line, times[at], value].join(',')); });
    }
  }
  return rows.join('\n') + '\n';
}
