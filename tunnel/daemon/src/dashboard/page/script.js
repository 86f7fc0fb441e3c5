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
// Differences of clocks, seconds, that are told.
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

/* Tables */

/** Fills a table: columns are [heading, class], rows lists of nodes or texts, the first of which names the row. */
function table(id, columns, rows) {
  const head = make("tr", {}, ...columns.map(([heading, kind]) => make("th", { scope: "col", class: kind ?? "" }, heading)));
  const cell = (value, index) => (index === 0 ? make("th", { scope: "row" }, value)
    : make("td", { class: columns[index][1] ?? "", "data-label": columns[index][0] }, ...(value === "" ? [] : [value])));
  element(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))));
}

/** How much of its quota a path has used: "41 GB of 50 GB until 2026-12-01". */
function quota(status) {
  if (!status) return "";
  const until = new Date(status.resets_unix_ms).toISOString().slice(0, 10);
  return `${status.exceeded ? "over quota: " : ""}${bytes(status.used_bytes)} of ${bytes(status.limit_bytes)} until ${until}`;
}

function pathTable() {
  const index = cursorIndex();
  const isNow = page.cursor == null;
  element("at").textContent = isNow ? "" : `at ${when(page.from + index * page.step)}`;
  const present = subjects().flatMap((peer) => peer.paths.map((path) => ({ peer: peerName(peer), path: path.name })));
  const gone = paths().filter((series) => series.path != null && !present.some((it) => keyOf(it) === keyOf(series)));
  const rows = isOfOne() ? [...present, ...gone].map((key) => pathRow(key, index, isNow)) : [];
  table("paths", [["Path"], ["State"], ["Sent", "number"], ["Received", "number"], ["Can carry", "number"], ["RTT", "number"], ["Queue", "number"], ["Loss", "number"], ["By way of", "wide"]], rows);
  const unrecorded = present.filter((key) => !page.series.has(keyOf(key))).length;
  element("unrecorded").textContent = isOfOne() && page.steps && unrecorded ? `The history keeps 32 series, and ${unrecorded} of these paths are not among them: their numbers are those of now.` : "";
}

function pathRow(key, index, isNow) {
  const [series, path] = [page.series.get(keyOf(key)), pathOf(key)];
  const at = (field) => series?.[field][index];
  const value = (field, present) => (isSilent() && isNow ? null : series ? at(field) : isNow ? present : null);
  const state = isSilent() && isNow ? "no data" : (isNow ? path?.condition : at("state")) ?? "absent";
  const uses = [path?.metered && "metered", path?.secondary && "secondary", quota(path?.quota), path?.interface, path?.remote].filter(Boolean).join(", ");
  const loss = value("loss_ratio", path?.loss_ratio);
  // Nothing goes by a path that is down.
  const flow = (field) => rate(value(field, path?.[field]) || (state === "down" ? null : value(field, path?.[field])));
  return [key.path, stateWord(state, isNow && path?.since_unix_ms), flow("send_rate_bps"), flow("receive_rate_bps"),
    rate(isNow && !isSilent() ? path?.capacity_bps : null), number(value("rtt_ms", path?.srtt_ms), "ms"), number(value("queue_ms", null), "ms"),
    number(loss == null ? null : loss * 100, "%"), uses];
}

/** A state with its shape, and the time since when it holds. */
const stateWord = (state, since) => make("span", { class: `state ${state.replace(" ", "-")}`, ...(since ? { title: `since ${moment(since)}` } : {}) }, state.replace("-", " "));
/** A time, with the day if it is not today. */
const moment = (unixMs) => {
  const time = unixMs / 1000;
  return day(time) === day(now()) ? clock(time, true) : `${day(time)} ${clock(time)}`;
};

function totals() {
  const sum = sumSeries();
  const index = cursorIndex();
  const all = subjects().flatMap((peer) => peer.paths);
  const up = all.filter((path) => path.state === "up").length;
  const value = (text) => (page.cursor == null && isSilent() ? "–" : text);
  const [sent, received] = ["send_rate_bps", "receive_rate_bps"].map((field) => (sum ? sum[field][index] : all.reduce((sum, path) => sum + path[field], 0)));
  const items = [["Sent", value(rate(sent))], ["Received", value(rate(received))],
    ["Round trip of the fastest path", value(number(sum ? sum.rtt_ms[index] : subjects()[0] && fastest(subjects()[0]), "ms"))], ["Paths up", isSilent() ? "–" : `${up} of ${all.length}`]];
  if (!isOfOne()) items.push(["Peers reached", isSilent() ? "–" : `${page.status.peers.filter((peer) => peer.condition === "up" || peer.condition === "degraded").length} of ${page.status.peers.length}`]);
  element("totals").replaceChildren(...items.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

const least = (values) => (values.length ? Math.min(...values) : null);
const fastest = (peer) => least(peer.paths.map((path) => path.srtt_ms).filter((srtt) => srtt != null));
const worstLoss = (peer) => { const losses = peer.paths.map((path) => path.loss_ratio).filter((loss) => loss != null); return losses.length ? Math.max(...losses) * 100 : null; };

/* Alerts */

/** "site-1, site-2, site-3 and 17 more". */
function listed(names) {
  const shown = names.slice(0, NAMES).join(", ");
  return names.length > NAMES ? `${shown} and ${names.length - NAMES} more` : shown;
}
const nameOf = (peer) => shortened(peer.name ?? peerName(peer).slice(0, 8), 40);

/** What is wrong, worst first: { level, title, text, remedy }. What several peers show together is one. */
function troubles() {
  const found = [];
  const several = page.status.peers.length > 1;
  const lost = page.status.peers.filter((peer) => peer.condition === "lost" && subjects().includes(peer));
  for (const group of together(lost, (peer) => causeKey(peer.paths[0]), (peer) => peer.since_unix_ms)) {
    const [peer] = group;
    const cause = peer.paths.map((path) => path.cause).find(Boolean);
    const since = peer.since_unix_ms ? ` since ${moment(peer.since_unix_ms)}` : "";
    const title = group.length > 1 ? `${group.length} peers are lost${since}: ${listed(group.map(nameOf))}` : several ? `${nameOf(peer)} is lost${since} (${counted(peer.paths.length, "path")})` : null;
    if (title) found.push({ level: "down", title, text: cause?.text, remedy: cause?.remedy });
  }
  const isTold = (peer) => several && peer.condition === "lost";
  const ailing = subjects().filter((peer) => !isTold(peer)).flatMap((peer) => peer.paths.filter((path) => ["down", "degraded", "flapping", "validating"].includes(path.condition)).map((path) => ({ peer, path })));
  for (const group of together(ailing, ({ path }) => [path.name, path.condition, causeKey(path)].join(), ({ path }) => path.since_unix_ms)) {
    const [{ peer, path }] = group;
    const where = !several || page.peer != null ? "" : group.length > 1 ? ` at ${group.length} peers: ${listed(group.map((it) => nameOf(it.peer)))}` : ` at ${nameOf(peer)}`;
    const since = path.since_unix_ms && where ? `, since ${moment(path.since_unix_ms)}` : "";
    found.push({ level: path.condition, title: `${path.name} is ${path.condition}${where}${since}`, text: path.cause?.text, remedy: path.cause?.remedy });
  }
  for (const peer of subjects().filter((peer) => peer.controller_failure)) {
    found.push({ level: "degraded", title: `CUBIC controls the paths${several ? ` of ${nameOf(peer)}` : ""}`, text: `the policy failed: ${peer.controller_failure}` });
  }
  for (const notice of page.peer == null ? page.status.notices.filter((notice) => notice.level !== "info") : []) {
    found.push({ level: "degraded", title: "On this host", text: notice.text, remedy: notice.remedy });
  }
  return found.sort((a, b) => severity(a.level) - severity(b.level));
}
const severity = (level) => ["no-data", "down", "flapping", "degraded", "validating"].indexOf(level);
const causeKey = (path) => path?.cause?.kind ?? "";
const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** Groups of what has the same key, and began at about the same time. */
function together(items, key, since) {
  const groups = [];
  for (const item of items) {
    const near = (group) => key(group[0]) === key(item) && Math.abs((since(group[0]) ?? 0) - (since(item) ?? 0)) <= TOGETHER;
    const group = groups.find(near);
    if (group) group.push(item); else groups.push([item]);
  }
  return groups;
}

function alertItem({ level, title, text, remedy }) {
  const item = make("li", { class: level }, make("b", {}, title));
  if (text) item.append(`: ${text}`);
  if (remedy) item.append(make("div", { class: "remedy" }, "To fix it: ", ...prose(remedy)));
  return item;
}

/** Shows what is wrong, says it to screen readers when it changes, and puts it into the title. */
function alerts() {
  const found = troubles();
  if (isSilent()) {
    const since = clock(now() - (performance.now() - page.heard) / 1000, true);
    found.unshift({ level: "no-data", title: `No data since ${since}`, text: "the daemon has ended, or this computer cannot reach it. What follows is older" });
  }
  const [shown, more] = [found.slice(0, ALERTS), found.slice(ALERTS)];
  const rest = more.length ? [make("li", { class: "more" }, make("details", {}, make("summary", {}, `and ${more.length} more`), make("ul", {}, ...more.map(alertItem))))] : [];
  const text = JSON.stringify(found);
  if (text === alerts.shown) return;
  alerts.shown = text;
  element("alerts").replaceChildren(...shown.map(alertItem), ...rest);
  element("announcement").textContent = found.length ? `${counted(found.length, "alert")}: ${found[0].title}` : "No alerts";
  const serious = found.filter((it) => it.level !== "validating");
  const { name } = page.status.interface;
  document.title = `${serious.length ? `(${isSilent() ? "no data" : serious.length}) ` : ""}${page.peer == null ? "" : `${shortName(page.peer)} – `}${name} – Ropewalk`;
  element("icon").href = element("icon").href.replace(/fill='[^']*'/, `fill='${serious.length ? "%23d55e00" : "%23009e73"}'`);
  document.body.classList.toggle("silent", isSilent());
}

const subject = (event) => [event.peer_name, event.path].filter(Boolean).join(" · ") || (event.peer ? `peer ${event.peer.slice(0, 8)}` : "");

function events() {
  const own = page.events.filter((event) => page.peer == null || event.peer == null || event.peer === page.peer);
  const items = [...own].reverse().slice(0, 200).map((event) => {
    const time = event.unix_ms / 1000;
    const text = make("span", {}, make("b", {}, subject(event) || event.kind), ` ${event.message}`);
    if (event.remedy) text.append(make("div", { class: "remedy" }, "To fix it: ", ...prose(event.remedy)));
    return make("li", { class: event.level }, make("time", { datetime: new Date(event.unix_ms).toISOString() }, `${day(time)} ${clock(time, true)}`), text);
  });
  element("events").replaceChildren(...(items.length ? items : [make("li", {}, "none yet")]));
}

/** One row for each peer that the search finds, the worst first. */
function peers() {
  const all = page.status?.peers ?? [];
  element("overview").hidden = isOfOne();
  element("back").hidden = page.peer == null;
  element("h-paths").parentElement.hidden = !isOfOne();
  if (isOfOne()) return;
  const words = page.search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (peer) => [peer.name, peerName(peer), peer.condition, ...peer.allowed_ips, ...peer.paths.flatMap((path) => [path.name, path.remote])].join(" ").toLowerCase();
  const found = all.filter((peer) => words.every((word) => text(peer).includes(word)));
  const rank = (peer) => ["lost", "degraded", "connecting", "up"].indexOf(peer.condition);
  found.sort((a, b) => rank(a) - rank(b));
  element("found").textContent = words.length ? `${found.length} of ${all.length} peers` : counted(all.length, "peer");
  table("peers", [["Peer", "wide"], ["State"], ["Paths up", "number"], ["Sent", "number"], ["Received", "number"], ["RTT", "number"], ["Loss", "number"], ["Since"]], found.slice(0, 1000).map(peerRow));
}

function peerRow(peer) {
  const silent = isSilent();
  const works = peer.paths.some((path) => path.state === "up");
  const sum = (field) => rate(works && !silent ? peer.paths.reduce((sum, path) => sum + path[field], 0) : null);
  const link = make("a", { href: `#${page.range.seconds}&peer=${encodeURIComponent(peerName(peer))}`, title: peerName(peer) }, nameOf(peer));
  return [link, stateWord(silent ? "no data" : peer.condition), silent ? "–" : `${peer.paths.filter((path) => path.state === "up").length} of ${peer.paths.length}`,
    sum("send_rate_bps"), sum("receive_rate_bps"), number(silent ? null : fastest(peer), "ms"), number(silent ? null : worstLoss(peer), "%"), peer.since_unix_ms ? moment(peer.since_unix_ms) : "–"];
}

function status() {
  const { interface: device, mode, uptime_s: uptime } = page.status;
  const [peer] = subjects();
  const names = page.peer == null || !peer ? device.name : `${nameOf(peer)} – ${device.name}`;
  element("name").textContent = names;
  const session = isOfOne() && peer ? [peer.handshake_age_ms == null ? "no handshake yet" : `handshake ${span(peer.handshake_age_ms / 1000)} ago`, peer.cipher, peer.allowed_ips.join(", ")] : [];
  const parts = [device.addresses.join(", "), mode === "mpt" ? "MPT, not encrypted" : "encrypted", `up for ${span(uptime)}`, ...session];
  element("summary").textContent = parts.filter(Boolean).join(" · ");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const difference = Math.abs(page.ahead) < 60 ? Math.abs(page.ahead) : 60 * Math.round(Math.abs(page.ahead) / 60);
  const off = difference > CLOCK_DIFFERENCE ? ` This computer's clock is ${span(difference)} ${page.ahead < 0 ? "ahead" : "behind"}.` : "";
  element("zone").textContent = `Times are by the clock of the tunnel's host, in the zone of this browser (${zone}).${off}`;
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
