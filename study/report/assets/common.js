// Functions for both kinds of interactive charts.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const make = (tag, parent, text) => {
  const element = parent.appendChild(document.createElement(tag));
  if (text !== undefined) element.textContent = text;
  return element;
};
const digits = value => value == null ? '–' : String(Number(value.toPrecision(4)));
const dashes = index => data.dashes[index].split(' ').filter(Boolean).map(Number);
// A baseline's line is broad and pale.
const looks = line => ({
  stroke: css(`--c${line.colour}`) + (line.baseline ? '59' : ''),
  width: line.baseline ? 5 : line.auxiliary ? 1 : 2,
  dash: dashes(line.dash),
  points: { show: false },
});
const axis = () => ({
  stroke: css('--soft'), grid: { stroke: css('--line'), width: 1 }, ticks: { stroke: css('--line'), width: 1 },
});
// A canvas says what it shows; its values are in the legend and in the table of the CSV.
const describe = (plot, label) => {
  plot.ctx.canvas.setAttribute('role', 'img');
  plot.ctx.canvas.setAttribute('aria-label', label);
};
// Calls `resize` when the width of an element changes.
const onWidth = (element, resize) => {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    resize();
  }).observe(element);
};
