// Interactive charts in the place of the drawn ones: pick a cell, move the pointer over all charts at once, drag to zoom.
// A page of several comparisons has such charts for each; `first_cell` is the number of its first cell on the page.
data.time.forEach(({ part, first_cell: firstCell, keys, axes, cells }) => {
  const live = document.getElementById(`live-${part}`);
  const drawn = document.getElementById(`drawn-${part}`);
  const sync = uPlot.sync(`time-${part}`);
  let shown = 0;
  let plots = [];

  // One selection for each swept parameter; a choice that no cell has falls back to the nearest that there is.
  const pick = make('div', live);
  pick.className = 'pick';
  const selects = keys.map((key, index) => {
    const label = make('label', pick, key);
    const select = make('select', label);
    for (const value of new Set(cells.map(cell => cell.values[index]))) make('option', select, value).value = value;
    select.addEventListener('change', () => choose(index));
    return select;
  });
  make('p', pick, 'Drag to zoom, double-click to see all, click a name to hide its line.');
  const charts = make('div', live);
  const trace = make('p', live), commands = drawn.querySelectorAll('details > .note');
  trace.className = 'note';

  function choose(changed) {
    const wanted = selects.map(select => select.value);
    const score = cell => cell.values.reduce((sum, value, index) =>
      sum + (value === wanted[index]) * (index === changed ? selects.length + 1 : 1), 0);
    show(cells.reduce((best, cell, index) => score(cell) > score(cells[best]) ? index : best, 0));
  }

  function show(index) {
    shown = index;
    cells[index].values.forEach((value, key) => { selects[key].value = value; });
    // Paper gets the drawn charts of the cell that is on the screen.
    drawn.querySelectorAll('details').forEach((details, at) => { details.open = at === index; });
    draw();
  }

  function draw() {
    plots.forEach(plot => { sync.unsub(plot); plot.destroy(); });
    charts.replaceChildren();
    const cell = cells[shown];
    const times = axes[cell.axis];
    trace.replaceChildren(...(commands[shown]?.cloneNode(true).childNodes ?? []));
    plots = cell.charts.map(chart => {
      make('h3', charts, `${chart.title}, ${chart.unit}`);
      return new uPlot(options(chart), [times, ...chart.lines.map(line => line.values)], make('div', charts));
    });
    plots.forEach((plot, index) => {
      sync.sub(plot);
      describe(plot, `${cell.charts[index].title}, ${cell.charts[index].unit}, over time`);
      operable(plot);
    });
  }

  // The names in a legend by the keyboard: focus finds a line, Enter or Space hides it.
  function operable(plot) {
    plot.root.querySelectorAll('.u-legend .u-series').forEach((row, series) => {
      const name = row.querySelector('th');
      if (series === 0) return;
      name.tabIndex = 0;
      name.setAttribute('role', 'button');
      name.setAttribute('aria-pressed', 'true');
      const find = focus => plot.setSeries(focus ? series : null, { focus: true });
      for (const on of ['focus', 'pointerenter']) name.addEventListener(on, () => find(true));
      for (const off of ['blur', 'pointerleave']) name.addEventListener(off, () => find(false));
      name.addEventListener('click', () => setTimeout(() => name.setAttribute('aria-pressed', plot.series[series].show)));
      name.addEventListener('keydown', event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        name.click();
      });
    });
  }

  function options(chart) {
    return {
      width: charts.clientWidth,
      height: 190,
      cursor: { sync: { key: sync.key }, focus: { prox: 24 }, drag: { x: true, y: false } },
      focus: { alpha: 0.35 },
      legend: { markers: { dash: (_, index) => index > 0 ? ['solid', 'dashed', 'dotted', 'dashed', 'dashed', 'dashed', 'dotted'][chart.lines[index - 1].dash] : 'solid' } },
      scales: { x: { time: false }, y: { range: [0, chart.top] } },
      axes: [
        { ...axis(), size: 46, label: 'time, s', labelSize: 18, labelGap: 0 },
        { ...axis(), size: 52, label: chart.unit, labelSize: 16, labelGap: 0 },
      ],
      series: [
        { label: 'time', value: (_, time) => time == null ? '–' : `${digits(time)} s` },
        ...chart.lines.map(line => ({
          label: line.name,
          ...looks(line),
          value: (_, value) => digits(value),
        })),
      ],
    };
  }

  function follow() {
    const found = /^#cell-(\d+)$/.exec(location.hash);
    if (!found || !cells[found[1] - firstCell]) return;
    show(found[1] - firstCell);
    live.scrollIntoView();
  }

  live.hidden = false;
  drawn.style.display = 'none';
  show(0);
  follow();
  addEventListener('hashchange', follow);
  // The same link twice does not change the hash.
  document.addEventListener('click', event => {
    if (event.target.closest && event.target.closest('a[href^="#cell-"]')) setTimeout(follow);
  });
  dark.addEventListener('change', draw);
  onWidth(charts, () => plots.forEach(plot => plot.setSize({ width: charts.clientWidth, height: plot.height })));
});
