"use strict";
// The history of /v1/history, kept up to date by the samples of /v1/stream, drawn as one SVG with a shared time axis.

const RANGES = [
  { name: "5 min", seconds: 300, step: 1 },
  { name: "1 hour", seconds: 3600, step: 5 },
  { name: "1 day", seconds: 86400, step: 120 },
  { name: "1 week", seconds: 604800, step: 900 },
];
const COLOURS = 6;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"];
const FIELDS = ["state", "worked_ratio", "send_rate_bps", "receive_rate_bps", "rtt_ms", "queue_ms", "loss_ratio"];
const LINES = [
  { field: "rtt_ms", title: "Round-trip time", unit: "ms", scale: 1, least: 10 },
  { field: "queue_ms", title: "Queueing delay", unit: "ms", scale: 1, least: 5 },
  { field: "loss_ratio", title: "Loss", unit: "%", scale: 100, least: 1 },
];
const WAIT = { field: "queue_ms", title: "Wait of each flow class for a path", unit: "ms", scale: 1, least: 1 };
// The shortest time axis, seconds: while less than the range was recorded, the axis begins with the recording.
const LEAST_SPAN = 60;
const MARGIN = { left: 46, right: 8 };
// Without a sample for so long, milliseconds, the numbers are no longer those of now.
const SILENCE = 5000;
// Differences of clocks, seconds, that are shown.
const CLOCK_DIFFERENCE = 30;
// Alerts shown at once, and names in one alert.
const ALERTS = 8;
const NAMES = 3;
// The ages of changes, milliseconds, that are one when several peers show them.
const TOGETHER = 3000;

const page = {
  range: RANGES[0],
  from: 0, // the start of the first step, seconds since 1970
  step: 1,
  steps: 0,
  series: new Map(), // by key: { peer, path, class, and a list for each field }
  status: null,
  events: [],
  cursor: null, // a time, or null for now
  peer: null, // the key of the peer that the page is about, or null for all
  search: "",
  ahead: 0, // the server's clock less the browser's, seconds
  heard: performance.now(), // when the latest sample or status came, by the browser's steady clock
  source: null, // the stream
};

/** Now, by the server's clock, seconds since 1970. */
const now = () => Date.now() / 1000 + page.ahead;
const isSilent = () => performance.now() - page.heard > SILENCE;

const element = (id) => document.getElementById(id);
const keyOf = (series) => JSON.stringify([series.peer, series.path, series.class ?? null]);

/** Makes an element with attributes and children; text is never read as markup. */
function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** As `make`, of SVG. */
function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** A text in which commands stand between backquotes. */
const prose = (text) => text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));

/* Numbers and times */

const UNITS = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const digits = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });

function rate(bps) {
  if (bps == null) return "–";
  if (bps < 0.5) return "0 bit/s";
  const [size, unit] = UNITS.find(([size]) => bps >= size) ?? UNITS[3];
  return `${digits(bps / size)} ${unit}`;
}
const number = (value, unit) => (value == null ? "–" : `${digits(value)} ${unit}`);
const bytes = (count) => {
  const [size, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]].find(([size]) => count >= size) ?? [1, "B"];
  return `${digits(count / size)} ${unit}`;
};
const clock = (time, withSeconds) => new Date(time * 1000).toLocaleTimeString([], {
  hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined, hour12: false,
});
const day = (time) => new Date(time * 1000).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" });
const when = (time) => (page.range.seconds > 3600 ? `${day(time)} ${clock(time)}` : clock(time, true));
function span(seconds) {
  const [d, h, m] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min` : `${Math.floor(seconds)} s`;
}

/** The least of 1, 2, 5 times a power of ten that is at least `value`. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((limit) => limit >= value * 0.999);
}

/* Data */

/** An answer's JSON. The message of an error is one line of plain text; proxies answer with pages. */
async function get(path) {
  const response = await fetch(path, { credentials: "same-origin" });
  if (response.ok) return response.json();
  const isText = response.headers.get("content-type")?.startsWith("text/plain");
  const text = isText ? (await response.text()).trim().split("\n")[0] : "";
  throw new Error((text || `HTTP ${response.status} ${response.statusText}`).slice(0, 80));
}

async function load() {
  const { seconds, step } = page.range;
  const to = Math.floor(now()) + 1;
  const history = await get(`v1/history?from=${to - seconds}&to=${to}&step=${step}`);
  page.series = new Map(history.series.map((series) => [keyOf(series), series]));
  [page.from, page.step, page.steps] = [history.from_s, history.step_s, history.steps];
  render();
}

/** Adds the samples of a second. A step of several seconds gets the latest of them until it is loaded again. */
function add(tick) {
  const index = Math.floor((tick.time_s - page.from) / page.step);
  if (index < 0) return;
  const shift = Math.max(0, index - Math.ceil(page.range.seconds / page.step));
  page.from += shift * page.step;
  page.steps = Math.max(page.steps - shift, index - shift + 1);
  for (const sample of tick.series) {
    const key = keyOf(sample);
    if (!page.series.has(key)) {
      const { peer, path } = sample;
      page.series.set(key, { peer, path, class: sample.class ?? null, ...Object.fromEntries(FIELDS.map((field) => [field, []])) });
    }
  }
  const samples = new Map(tick.series.map((sample) => [keyOf(sample), sample]));
  for (const [key, series] of page.series) {
    for (const field of FIELDS) {
      const list = series[field];
      if (shift) list.splice(0, shift);
      while (list.length < page.steps) list.push(null);
      const value = samples.get(key)?.[field];
      if (value != null) list[index - shift] = value;
    }
  }
}

/** The peers that the page is about. */
const subjects = () => (page.status?.peers ?? []).filter((peer) => page.peer == null || peerName(peer) === page.peer);
/** Whether the page is about one peer, whose paths it shows. */
const isOfOne = () => page.peer != null || (page.status?.peers.length ?? 0) <= 1;

/** What the chart shows: the recorded paths of a peer in the order of the status, or the sum of all. */
function paths() {
  if (!isOfOne()) return [sumSeries()].filter(Boolean);
  const known = subjects().flatMap((peer) => peer.paths.map((path) => page.series.get(keyOf({ peer: peerName(peer), path: path.name }))));
  const own = [...page.series.values()].filter((series) => series.path != null && (page.peer == null || series.peer === page.peer));
  const gone = own.filter((series) => !known.includes(series)).sort((a, b) => a.path.localeCompare(b.path));
  const shown = [...known.filter(Boolean), ...gone].slice(0, 16);
  return shown.length ? shown : [sumSeries()].filter(Boolean);
}
/** The series of the peer that the page is about, or of the whole tunnel. */
function sumSeries() {
  const ofPeer = page.peer != null && page.series.get(keyOf({ peer: page.peer, path: null }));
  return ofPeer || (page.peer == null || page.status?.peers.length === 1 ? page.series.get(keyOf({ peer: null, path: null })) : undefined);
}
/** The flow classes, if there are any. */
const classes = () => page.peer != null && (page.status?.peers.length ?? 0) > 1 ? [] : [...page.series.values()].filter((series) => series.class != null).sort((a, b) => b.class.localeCompare(a.class));
const peerName = (peer) => peer.public_key ?? peer.allowed_ips[0] ?? "";
const shortName = (key) => page.status?.peers.find((peer) => peerName(peer) === key)?.name ?? key.slice(0, 6);
const label = (series) => series.class ?? series.path ?? (isOfOne() ? "all paths" : "all peers");
const indexAt = (time) => Math.min(page.steps - 1, Math.max(0, Math.floor((time - page.from) / page.step)));
const cursorIndex = () => (page.cursor == null ? latestIndex() : indexAt(page.cursor));

/** The latest step that was recorded: the present one may not be yet. */
function latestIndex() {
  const all = [...page.series.values()];
  for (let index = page.steps - 1; index > page.steps - 4 && index >= 0; index -= 1) {
    if (all.some((series) => series.state[index] != null)) return index;
  }
  return page.steps - 1;
}

/* The chart */

function chart() {
  const figure = element("figure");
  const width = Math.max(280, figure.clientWidth);
  const shown = paths();
  const lane = width < 560 ? 70 : 84;
  const inner = width - MARGIN.left - MARGIN.right;
  const end = page.from + page.steps * page.step;
  const span = shownSpan(end);
  const start = end - span;
  const x = (time) => MARGIN.left + inner * (time - start) / span;
  const svg = draw("svg", { width, role: "img", "aria-label": describe(shown) });
  svg.append(patterns());
  let top = 22;
  svg.append(draw("text", { x: 0, y: 12, class: "title" }, isOfOne() ? "Rate of each path (Mbit/s)" : "Rate of all peers (Mbit/s)"));
  if (!page.steps || !shown.length) {
    element("figure").replaceChildren(make("p", { class: "note" }, page.steps ? "Nothing of this was recorded in this time." : "Loading the history."));
    return;
  }
  const greatest = Math.max(1e5, ...shown.flatMap((series) => [...series.send_rate_bps, ...series.receive_rate_bps].map((value) => value ?? 0)));
  const limit = ceiling(greatest);
  shown.forEach((series, index) => { ribbon(svg, series, index, { top, lane, limit, x, width }); top += lane; });
  const plotTop = 18;
  top += 10;
  for (const line of LINES) {
    lines(svg, shown, line, { top: top + 24, height: width < 560 ? 64 : 78, x, width, start });
    top += (width < 560 ? 64 : 78) + 42;
  }
  const sent = classes();
  if (sent.length) {
    svg.append(draw("text", { x: 0, y: top + 13, class: "title" }, "Rate sent of each flow class"));
    top += 24;
    sent.forEach((series, index) => { area(svg, series, index, { top, x, width }); top += 74; });
    lines(svg, sent, WAIT, { top: top + 34, height: 64, x, width, colour: classColour });
    top += 64 + 52;
  }
  axis(svg, { x, bottom: top - 18, start, end, span, inner });
  marks(svg, { x, top: plotTop, bottom: top - 18, start, end });
  const cursor = page.cursor == null ? null : page.from + (cursorIndex() + 0.5) * page.step;
  if (cursor != null) {
    svg.append(draw("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: plotTop, y2: top - 18 }));
    const anchor = x(cursor) > width - 90 ? "end" : "start";
    svg.append(draw("text", { class: "name halo", x: x(cursor) + (anchor === "end" ? -5 : 5), y: 12, "text-anchor": anchor }, when(cursor)));
  }
  svg.setAttribute("height", top + 4);
  figure.replaceChildren(svg);
  figure.setAttribute("aria-valuemin", start);
  figure.setAttribute("aria-valuemax", end);
  figure.setAttribute("aria-valuenow", Math.round(cursor ?? end));
  figure.setAttribute("aria-valuetext", spoken(shown));
  figure.scale = { left: MARGIN.left, inner, end, span };
}

/** The length of the time axis, seconds. */
function shownSpan(end) {
  const recorded = [...page.series.values()].map((series) => series.state.findIndex((state) => state != null)).filter((index) => index >= 0);
  const since = recorded.length ? end - page.from - Math.min(...recorded) * page.step : 0;
  return Math.min(page.range.seconds, Math.max(LEAST_SPAN, since));
}

const pathColour = (index) => `var(--p${index % COLOURS})`;
const classColour = (index) => `var(--c${index})`;

/** A flow class's lane: the rate sent as an area, in a scale of its own, because a call is small beside bulk. */
function area(svg, series, index, { top, x, width }) {
  const [height, bottom] = [46, top + 66];
  const limit = ceiling(Math.max(1e4, ...series.send_rate_bps.map((value) => value ?? 0)));
  let points = "";
  for (const run of runs(series.state)) {
    const edge = (step) => Math.max(MARGIN.left, x(page.from + step * page.step)).toFixed(1);
    points += `M${edge(run.from)},${bottom}`;
    for (let step = run.from; step < run.to; step += 1) {
      const y = (bottom - height * (series.send_rate_bps[step] ?? 0) / limit).toFixed(1);
      points += `L${edge(step)},${y}H${edge(step + 1)}`;
    }
    points += `V${bottom}Z`;
  }
  const at = cursorIndex();
  svg.append(draw("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
    draw("path", { d: points, fill: classColour(index), "fill-opacity": 0.75 }),
    draw("line", { x1: MARGIN.left, x2: MARGIN.left + 22, y1: top + 8, y2: top + 8, stroke: classColour(index), "stroke-width": 2.5, "stroke-dasharray": DASHES[index] }),
    draw("text", { class: "name halo", x: MARGIN.left + 28, y: top + 12 }, series.class,
      draw("tspan", { "font-weight": "normal", dx: 8 }, page.cursor == null && isSilent() ? "no data" : `${rate(series.send_rate_bps[at])}, waits ${number(series.queue_ms[at], "ms")}`)),
    draw("text", { x: MARGIN.left - 5, y: bottom - height + 4, "text-anchor": "end" }, rate(limit).split(" ")[0]),
    draw("text", { x: MARGIN.left - 5, y: bottom - height + 18, "text-anchor": "end", class: "unit" }, rate(limit).split(" ")[1]),
    draw("text", { x: MARGIN.left - 5, y: bottom + 4, "text-anchor": "end" }, "0"));
}

function patterns() {
  const hatch = (id, colour, path) => draw("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    draw("path", { d: path, stroke: `var(--${colour})`, "stroke-width": 1.6, fill: "none" }));
  return draw("defs", {}, hatch("hatch-down", "down", "M-2,2l4,-4M0,8l8,-8M6,10l4,-4"), hatch("hatch-degraded", "degraded", "M0,4h8"),
    hatch("hatch-validating", "validating", "M-2,6l4,4M0,0l8,8M6,-2l4,4"));
}

/** Runs of steps of one state. */
function runs(states) {
  const found = [];
  states.forEach((state, index) => {
    const last = found.at(-1);
    if (last && last.state === state) last.to = index + 1; else found.push({ state, from: index, to: index + 1 });
  });
  return found.filter((run) => run.state != null);
}

/** A path's lane: a ribbon as wide as its rates, in the colour of its state. */
function ribbon(svg, series, index, { top, lane, limit, x, width }) {
  const half = (lane - 26) / 2;
  const middle = top + 18 + half;
  const at = (step) => x(page.from + step * page.step);
  const height = (bps) => half * Math.min(1, (bps ?? 0) / limit);
  svg.append(draw("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: middle, y2: middle }));
  const left = (step) => Math.max(MARGIN.left, at(step));
  // The part of a step in which the path did not work is hatched from below.
  const broken = series.worked_ratio.map((worked, step) => (worked == null ? null : [worked, series.state[step] === "validating" ? "validating" : "down"].join(" ")));
  for (const run of runs(broken)) {
    const [worked, kind] = run.state.split(" ");
    const part = 1 - Number(worked);
    if (part <= 0 || at(run.to) <= MARGIN.left) continue;
    const high = Math.max(3, 2 * half * part);
    svg.append(draw("rect", { class: `broken ${kind}`, x: left(run.from), y: middle + half - high, width: Math.max(1, left(run.to) - left(run.from)), height: high, fill: `url(#hatch-${kind})`, opacity: 0.6 }));
  }
  for (const run of runs(series.state)) {
    if (at(run.to) <= MARGIN.left) continue;
    const [upper, lower] = [[], []];
    for (let step = run.from; step < run.to; step += 1) {
      const [up, down] = [middle - Math.max(0.8, height(series.send_rate_bps[step])), middle + Math.max(0.8, height(series.receive_rate_bps[step]))];
      upper.push(`${left(step).toFixed(1)},${up.toFixed(1)} ${left(step + 1).toFixed(1)},${up.toFixed(1)}`);
      lower.unshift(`${left(step + 1).toFixed(1)},${down.toFixed(1)} ${left(step).toFixed(1)},${down.toFixed(1)}`);
    }
    svg.append(draw("polygon", { class: `ribbon ${run.state}`, points: `${upper.join(" ")} ${lower.join(" ")}`, fill: `var(--${run.state})` }));
    if (run.state === "degraded") {
      svg.append(draw("rect", { x: left(run.from), y: middle - half, width: left(run.to) - left(run.from), height: 2 * half, fill: "url(#hatch-degraded)", opacity: 0.45 }));
    }
    if (["down", "validating", "degraded"].includes(run.state) && left(run.to) - left(run.from) > 76) {
      svg.append(draw("text", { class: "name halo", x: (left(run.from) + left(run.to)) / 2, y: middle + 4, "text-anchor": "middle" }, run.state));
    }
  }
  // What the path can carry, as an outline of the ribbon.
  const capacity = pathOf(series)?.capacity_bps;
  if (capacity != null && page.cursor == null && !isSilent()) {
    const y = middle - height(capacity);
    svg.append(draw("line", { class: "capacity", x1: Math.max(MARGIN.left, width - 60), x2: width - MARGIN.right, y1: y, y2: y }, draw("title", {}, `can carry ${rate(capacity)}`)));
  }
  const sign = { x1: MARGIN.left, x2: MARGIN.left + 22, y1: top + 8, y2: top + 8, stroke: pathColour(index), "stroke-width": 2.5, "stroke-dasharray": DASHES[index % DASHES.length] };
  svg.append(draw("line", sign), draw("text", { class: "name halo", x: MARGIN.left + 28, y: top + 12 }, shortened(label(series), width < 560 ? 14 : 32),
    draw("tspan", { "font-weight": "normal", dx: 8 }, laneText(series, width))));
  const mbit = digits(limit / 1e6);
  for (const [y, text] of [[middle - half + 4, mbit], [middle, "0"]]) {
    svg.append(draw("text", { x: MARGIN.left - 5, y: y + 4, "text-anchor": "end" }, text));
  }
}

/** The words of a lane: the values at the cursor, and how much of the range the path worked. */
function laneText(series, width) {
  const index = cursorIndex();
  if (page.cursor == null && isSilent()) return "no data";
  const state = series.state[index] ?? "absent";
  if (state === "down" || state === "absent") return [state, worked(series)].filter(Boolean).join(", ");
  const rates = `${rate(series.send_rate_bps[index])} sent, ${rate(series.receive_rate_bps[index])} received`;
  return width < 560 ? `${state}, ↑ ${rate(series.send_rate_bps[index])}` : [state, rates, worked(series)].filter(Boolean).join(", ");
}

/** How much of the shown time a path worked: "worked 99.4 %, 668 steps with an interruption". */
function worked(series) {
  const known = series.worked_ratio.filter((value) => value != null);
  if (!known.length || page.range.seconds < 3600) return "";
  const share = known.reduce((sum, value) => sum + value, 0) / known.length;
  const broken = known.filter((value) => value < 1).length;
  // Not better than it was.
  const percent = share < 1 ? (Math.floor(share * 1000) / 10).toFixed(1) : "100";
  return `worked ${percent} %${broken ? ` (interrupted in ${broken} of ${known.length} steps)` : ""}`;
}

const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
const pathOf = (series) => page.status?.peers.find((peer) => peerName(peer) === series.peer)?.paths.find((path) => path.name === series.path);

/** A value that only the highest hundredth exceeds; the others are clipped, so that one spike does not hide all else. */
function most(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const usual = sorted[Math.floor((sorted.length - 1) * 0.99)] ?? 0;
  return (sorted.at(-1) ?? 0) > 3 * usual ? usual : sorted.at(-1) ?? 0;
}

/** A chart with a line for each path. */
function lines(svg, shown, { field, title, unit, scale, least }, { top, height, x, width, colour = pathColour }) {
  const values = shown.flatMap((series) => series[field].filter((value) => value != null)).map((value) => value * scale);
  const limit = ceiling(Math.max(least, most(values)));
  const isClipped = values.some((value) => value > limit);
  const y = (value) => top + height - height * Math.min(1, value / limit);
  svg.append(draw("text", { x: 0, y: top - 11, class: "title" }, `${title} (${unit})${isClipped ? ", cut at the top" : ""}`));
  for (const value of [0, limit / 2, limit]) {
    svg.append(draw("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      draw("text", { x: MARGIN.left - 5, y: y(value) + 4, "text-anchor": "end" }, digits(value)));
  }
  shown.forEach((series, index) => {
    let [d, drawing] = ["", false];
    series[field].forEach((value, step) => {
      const left = x(page.from + (step + 0.5) * page.step);
      if (value == null || left < MARGIN.left) { drawing = false; return; }
      d += `${drawing ? "L" : "M"}${left.toFixed(1)},${y(value * scale).toFixed(1)}`;
      drawing = true;
    });
    svg.append(draw("path", { d, fill: "none", stroke: colour(index), "stroke-width": 1.7, "stroke-linejoin": "round", "stroke-linecap": "round", "stroke-dasharray": DASHES[index % DASHES.length] }));
  });
}

/** The shared time axis. */
function axis(svg, { x, bottom, start, end, span, inner }) {
  const spacings = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800];
  const room = span > 86400 ? 96 : 64;
  const spacing = spacings.find((seconds) => inner * seconds / span >= room) ?? 172800;
  const offset = new Date(end * 1000).getTimezoneOffset() * 60;
  for (let time = Math.ceil((start - offset) / spacing) * spacing + offset; time <= end; time += spacing) {
    svg.append(draw("line", { class: "grid", x1: x(time), x2: x(time), y1: bottom, y2: bottom + 5 }));
    const text = span > 86400 ? day(time) : clock(time, spacing < 60);
    svg.append(draw("text", { x: Math.min(x(time), x(end) - 16), y: bottom + 18, "text-anchor": "middle" }, text));
  }
}

/** A line for each event that is more than information. */
function marks(svg, { x, top, bottom, start, end }) {
  for (const event of page.events) {
    const time = event.unix_ms / 1000;
    if (event.level === "info" || time < start || time > end) continue;
    const line = draw("line", { class: "event", x1: x(time), x2: x(time), y1: top, y2: bottom });
    line.append(draw("title", {}, `${when(time)} ${subject(event)} ${event.message}`));
    svg.append(line);
  }
}

/** What each class got of this end's sending since the start. */
function classTable() {
  const peers = subjects();
  const sum = (field, counter) => peers.reduce((sum, peer) => sum + (peer[field]?.[counter] ?? 0), 0);
  const rates = new Map(classes().map((series) => [series.class, page.cursor == null && isSilent() ? null : series.send_rate_bps[cursorIndex()]]));
  const row = (name, field) => {
    const packets = sum(field, "packets");
    const copied = sum(field, "copied_packets");
    const copies = field === "realtime" ? `${digits(copied)} (${bytes(sum(field, "copied_bytes"))}): ${digits(sum(field, "first_copies"))} came first, ${digits(sum(field, "wasted_copies"))} not needed` : "–";
    return [name, rate(rates.get(name)), digits(packets), bytes(sum(field, "bytes")), packets ? number(sum(field, "total_wait_ms") / packets, "ms") : "–", copies];
  };
  const some = sum("realtime", "packets") > 0;
  element("classes").hidden = !some;
  element("classes-note").replaceChildren(...prose(some
    ? `What this end sends, since its start. The wait is for a path, in the ingress queue. Moves of the real-time class to another path: ${digits(sum("realtime", "moves"))}.`
    : "Everything that this end has sent is one class, bulk. `[class.realtime]` in the configuration lets calls go ahead of it."));
  if (some) table("classes", [["Class"], ["Rate", "number"], ["Packets", "number"], ["Bytes", "number"], ["Mean wait", "number"], ["Copies over a second path", "wide"]], [row("real-time", "realtime"), row("bulk", "bulk")]);
}

const describe = (shown) => `Rate, round-trip time, queueing delay and loss of ${shown.length} paths, and rate and wait of the flow classes, over ${page.range.name}`;

function spoken(shown) {
  const index = cursorIndex();
  const sent = classes().map((series) => `${series.class} ${rate(series.send_rate_bps[index])}, waits ${number(series.queue_ms[index], "milliseconds")}`);
  const values = shown.map((series) => `${label(series)} ${series.state[index] ?? "not recorded"}, ${rate(series.send_rate_bps[index])} sent, ` +
    `${rate(series.receive_rate_bps[index])} received, round trip ${number(series.rtt_ms[index], "milliseconds")}`);
  return `${page.cursor == null ? "now" : when(page.from + index * page.step)}: ${[...values, ...sent].join("; ")}`;
}

function render() {
  if (!page.status) return;
  if (document.body.classList.contains("silent") !== isSilent()) peers();
  status();
  totals();
  alerts();
  chart();
  pathTable();
  classTable();
}

function renderAll() {
  if (page.status) document.querySelector("main").classList.remove("waiting");
  peers();
  render();
  events();
}

/* The cursor */

function move(steps) {
  const index = page.cursor == null ? page.steps - 1 : cursorIndex();
  const end = page.from + page.steps * page.step;
  const first = Math.max(0, Math.ceil((end - shownSpan(end) - page.from) / page.step));
  const next = Math.min(page.steps - 1, Math.max(first, index + steps));
  page.cursor = page.from + (next + 0.5) * page.step;
}

element("figure").addEventListener("keydown", (event) => {
  const tenth = Math.max(1, Math.round(page.range.seconds / page.step / 10));
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageUp: -tenth, PageDown: tenth, Home: -1e9, End: 1e9 }[event.key];
  if (event.key === "Escape") page.cursor = null;
  else if (steps) move(event.shiftKey ? steps * 10 : steps);
  else return;
  event.preventDefault();
  render();
});

function point(event) {
  const { left, inner, end, span } = element("figure").scale;
  const part = (event.clientX - element("figure").getBoundingClientRect().left - left) / inner;
  page.cursor = part > 1 ? null : end - span * (1 - Math.max(0, part));
  render();
}
element("figure").addEventListener("pointerdown", point);
element("figure").addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") point(event); });
element("figure").addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { page.cursor = null; render(); } });

/* Live */

function choose(range) {
  page.range = range;
  page.cursor = null;
  peers();
  load().catch(lost);
}

function lost(error) {
  const node = element("connection");
  node.className = "lost";
  element("waiting").replaceChildren(...prose("The daemon does not answer; this page asks again every 5 s. `ropewalk show` in a terminal tells whether it runs."));
  node.textContent = `not connected, trying again${error?.message ? `: ${error.message}` : ""}`;
}

async function refresh() {
  try {
    page.status = await get("v1/status");
    page.ahead = page.status.unix_ms / 1000 - Date.now() / 1000;
    page.heard = performance.now();
    const latest = page.events.at(-1)?.sequence ?? 0;
    // A daemon that was started again counts from 1.
    const isNew = (page.status.events.at(-1)?.sequence ?? 0) < latest;
    const more = await get(`v1/events?since=${isNew ? 0 : latest}`);
    // Two answers may overlap.
    const known = isNew ? [] : page.events;
    const last = known.at(-1)?.sequence ?? 0;
    page.events = [...known, ...more.filter((event) => event.sequence > last)].slice(-512);
    renderAll();
  } catch (error) {
    lost(error);
  }
}

/** Follows the stream while the tab is seen: a browser has six connections to a host, for all tabs. */
function connect() {
  page.source?.close();
  page.source = null;
  if (document.hidden) return;
  const source = new EventSource("v1/stream");
  page.source = source;
  const late = setTimeout(() => lost(new Error("no stream for 10 s. Are there more than five windows of this page?")), 10000);
  source.addEventListener("open", () => {
    clearTimeout(late);
    element("connection").className = "live";
    element("connection").textContent = "live";
    // The stream began before the history was asked for, so that no second is between them.
    refresh().then(load).catch(lost);
  });
  source.addEventListener("sample", (event) => {
    page.heard = performance.now();
    add(JSON.parse(event.data));
    render();
  });
  source.addEventListener("event", refresh);
  source.addEventListener("error", () => {
    clearTimeout(late);
    lost();
    // The browser connects again by itself, unless the server has refused.
    if (source.readyState === EventSource.CLOSED && page.source === source) setTimeout(connect, 5000);
  });
}

/** Marks what is old, once when it becomes so. */
function watch() {
  if (!document.hidden && page.status && isSilent() !== document.body.classList.contains("silent")) renderAll();
}

RANGES.forEach((range, index) => {
  const input = make("input", { type: "radio", name: "range", value: range.seconds });
  input.checked = index === 0;
  input.addEventListener("change", () => choose(range));
  element("ranges").append(make("label", {}, input, range.name));
});
// #3600 begins with that range, #3600&peer=KEY with the page of a peer, #3600&at=TIME with the cursor there; &still makes a
// picture that does not go on.
const option = (name) => location.hash.slice(1).split("&").find((part) => part.split("=")[0] === name)?.slice(name.length + 1);
const isStill = option("still") != null;
function readHash() {
  const asked = RANGES.find((range) => String(range.seconds) === location.hash.slice(1).split("&")[0]);
  if (asked) { page.range = asked; document.querySelector(`#ranges input[value="${asked.seconds}"]`).checked = true; }
  const key = option("peer");
  page.peer = key ? decodeURIComponent(key) : null;
  page.cursor = Number(option("at")) || null;
  alerts.shown = null;
}
readHash();
addEventListener("hashchange", () => {
  readHash();
  renderAll();
  load().catch(lost);
  scrollTo(0, 0);
});
element("search").addEventListener("input", (event) => { page.search = event.target.value; peers(); });
let drawnWidth = 0;
new ResizeObserver(([entry]) => {
  if (page.status && entry.contentRect.width !== drawnWidth) chart();
  drawnWidth = entry.contentRect.width;
}).observe(element("figure"));
function start() {
  refresh().then(() => page.status && load()).then(renderAll).then(follow).catch((error) => { lost(error); setTimeout(start, 5000); });
}
function follow() {
  if (isStill) { element("connection").textContent = page.status ? `as of ${clock(now(), true)}` : "no data"; return; }
  connect();
  document.addEventListener("visibilitychange", () => {
    connect();
    if (!document.hidden) refresh();
  });
  setInterval(() => { if (!document.hidden) refresh(); }, 5000);
  setInterval(() => { if (page.step > 1 && !document.hidden) load().catch(lost); }, 60000);
  setInterval(watch, 500);
}
start();
