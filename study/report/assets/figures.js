// Interactive figures in the place of the drawn ones: point at a name or a line to find it in all charts of the figure,
// click a name to hide its line, drag to zoom.
data.figures.forEach((figure, index) => {
  const place = document.getElementById(`figure-${index}`);
  const sync = uPlot.sync(`figure-${index}`);
  const shown = figure.legend.map(() => true);
  const pictures = [...place.querySelectorAll('.panels > figure')];
  const alone = pictures.length === 1;
  let lit = null;
  let plots = [];

  if (index === 0) {
    const hint = 'Point at a chart to read its values beside the names, at a name to find its line; click a name to hide its line; drag to zoom, double-click to see all.';
    place.before(Object.assign(document.createElement('p'), { className: 'hint', textContent: hint }));
  }

  const key = place.querySelector('.key');
  const names = [...key.children].map((span, at) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...span.childNodes);
    make('b', button).className = 'at';
    button.addEventListener('click', () => { shown[at] = !shown[at]; apply(); });
    for (const on of ['pointerenter', 'focus']) button.addEventListener(on, () => light(at));
    for (const off of ['pointerleave', 'blur']) button.addEventListener(off, () => light(null));
    span.replaceWith(button);
    return button;
  });
  if (names.length > 2) {
    for (const [word, on] of [['all', true], ['none', false]]) {
      const button = make('button', key, word);
      button.type = 'button';
      button.className = 'every';
      button.addEventListener('click', () => { shown.fill(on); apply(); });
    }
  }

  function apply() {
    names.forEach((button, at) => button.setAttribute('aria-pressed', shown[at]));
    plots.forEach((plot, at) => figure.panels[at].lines.forEach((line, series) => {
      if (plot.series[series + 1].show !== shown[line.of]) plot.setSeries(series + 1, { show: shown[line.of] });
    }));
  }

  function light(which) {
    if (which === lit) return;
    lit = which;
    names.forEach((button, at) => button.classList.toggle('lit', at === lit));
    plots.forEach((plot, at) => {
      figure.panels[at].lines.forEach((line, series) => {
        plot.series[series + 1].alpha = lit === null || line.of === lit ? 1 : 0.15;
      });
      plot.redraw(false);
    });
  }

  function options(panel, box) {
    const line = ({ of, baseline }) => ({ label: figure.legend[of].name, show: shown[of], ...looks({ ...figure.legend[of], baseline }) });
    return {
      width: box.clientWidth,
      height: alone ? 340 : 230,
      legend: { show: false },
      cursor: { sync: { key: sync.key }, focus: { prox: 24 }, drag: { x: true, y: false }, points: { show: false } },
      focus: { alpha: 1 },
      // All charts of a figure have one scale.
      scales: { x: { time: false }, y: { range: [0, figure.top] } },
      axes: [
        { ...axis(), size: 44, label: 'time, s', labelSize: 16, labelGap: 0 },
        { ...axis(), size: 52, label: figure.axis, labelSize: 16, labelGap: 0 },
      ],
      series: [{ label: 'time' }, ...panel.lines.map(line)],
      hooks: {
        setSeries: [(plot, series, change) => {
          if (change.focus !== undefined && plot.cursor.event) light(series == null ? null : panel.lines[series - 1].of);
        }],
        setCursor: [plot => {
          // A chart that only follows the pointer's time writes nothing.
          if (!plot.over.matches(':hover')) return void (box.dataset.at = '');
          const { idx } = plot.cursor;
          box.dataset.at = idx == null ? '' : `${digits(panel.times[idx])} s`;
          names.forEach((button, at) => {
            const line = panel.lines.find(line => line.of === at && !line.baseline);
            button.querySelector('.at').textContent = idx == null || !line ? '' : digits(line.values[idx]);
          });
        }],
      },
    };
  }

  function draw() {
    plots.forEach(plot => { sync.unsub(plot); plot.destroy(); });
    plots = figure.panels.map((panel, at) => {
      const values = panel.lines.map(line => line.values);
      return new uPlot(options(panel, boxes[at]), [panel.times, ...values], boxes[at]);
    });
    plots.forEach((plot, at) => describe(plot, `${figure.title}, ${figure.panels[at].name} over time`));
    plots.forEach(plot => sync.sub(plot));
    apply();
  }

  const boxes = pictures.map((picture, at) => {
    if (figure.panels[at].name) make('figcaption', picture, figure.panels[at].name);
    const box = make('div', picture);
    box.className = 'live';
    return box;
  });
  place.classList.add('on');
  draw();
  dark.addEventListener('change', draw);
  onWidth(place, () => plots.forEach((plot, at) => plot.setSize({ width: boxes[at].clientWidth, height: plot.height })));
});
