const KINDS = ['data', 'retransmission', 'copy'];
const ARRIVED = 4, LOST = 8, SPURIOUS = 16;
const STATES = ['Open', 'Disorder', 'CWR', 'Recovery', 'Loss'];
const CAUSES = ['dropped by the queue of', 'lost on', 'discarded by the receiver: wrong checksum'];
const CHOICE = 'choice of the scheduler', WAIT = 'scheduler waits';
/** The kinds of marks with their signs. Those of the scheduler are shown when they are chosen. */
const MARKS = { 'lost in the network': '×', retransmission: '▲', 'spurious retransmission': '△', copy: '□', 'state change': '◆', timeout: '●', [CHOICE]: '◇', [WAIT]: '◌' };
const FADED = 0.5, DOTS = [1, 3];

const trace = JSON.parse(document.getElementById('data').textContent), LIMITS = trace.limits;
const find = id => document.getElementById(id);
const canvas = document.querySelector('#view canvas'), pen = canvas.getContext('2d');
const dark = matchMedia('(prefers-color-scheme: dark)');
const view = { from: 0, to: trace.end };
let flow, queues, panels = [], drawn = [], marks = [], chosen = null, hovered = null, range = null, isPrinted = false, pending = 0;

const theme = () => (dark.matches && !isPrinted ? 1 : 0);
const property = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seconds = time => `${(time / 1e6).toFixed(6)} s`;
const linkName = code => (code < 0 ? '' : trace.links[code >> 1] + (code & 1 ? ' reverse' : ''));
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

async function loadStrand(packed, hasDataAcks) {
  const [packets, losses, acks, sacks, rtts, views, states, limits] = await Promise.all(
    [packed.packets, packed.losses, packed.acks, packed.sacks, packed.rtts, packed.views, packed.states, packed.limits].map(table));
  const isNew = (_, at) => (packets.flags[at] & 3) === 0, t = packets.t.filter(isNew);
  const strand = {
    ...packed, packets, losses, acks, sacks, views, states,
    sent: { number: new Series(t, packets.number.filter(isNew)), data: new Series(t, packets.data.filter(isNew)) },
    acked: { number: new Series(acks.t, acks.number), data: hasDataAcks ? new Series(acks.t, acks.data) : null },
    window: new Series(acks.t, acks.window),
    lines: { rtt: new Series(rtts.t, rtts.rtt), ...Object.fromEntries(['cwnd', 'ssthresh', 'flight', 'pacing', 'srtt'].map(key => [key, new Series(states.t, states[key])])) },
    state: new Band(states.t, states.state, trace.end, STATES.length),
    limit: limits.length ? new Band(limits.t, limits.limit, trace.end, LIMITS.length) : null,
    lossOf: new Map(),
  };
  strand.marks = marksOf(strand);
  return strand;
}

function marksOf(strand) {
  const { packets, states } = strand, found = [];
  for (let at = 0, loss = 0; at < packets.length; at++) {
    const flags = packets.flags[at], kind = KINDS[flags & 3];
    const mark = kind => found.push({ t: packets.t[at], kind, strand, packet: at });
    if (kind !== 'data') mark(kind === 'copy' ? kind : flags & SPURIOUS ? 'spurious retransmission' : kind);
    if (flags & LOST) {
      strand.lossOf.set(at, loss++);
      mark('lost in the network');
    }
  }
  for (let at = 1; at < states.length; at++) {
    const mark = kind => found.push({ t: states.t[at], kind, strand, state: at });
    if (states.timeouts[at] > states.timeouts[at - 1]) mark('timeout');
    if (states.state[at] !== states.state[at - 1]) mark('state change');
  }
  return found.sort((a, b) => a.t - b.t);
}

/** The choices of the scheduler, or its waits, as marks; these at the first strand. */
function choicesOf(wanted) {
  const { choices, strands } = flow, found = [];
  for (let at = 0; at < choices.length; at++) {
    const strand = strands[choices.strand[at]], kind = strand ? CHOICE : WAIT;
    if (kind === wanted) found.push({ t: choices.t[at], kind, strand: strand || shown()[0], choice: at });
  }
  return found;
}

async function choose(index) {
  const packed = trace.flows[index];
  const [limits, choices] = await Promise.all([packed.limits, packed.choices].map(table));
  flow = {
    ...packed, choices, strands: await Promise.all(packed.strands.map(strand => loadStrand(strand, packed.hasDataAcks))),
    limit: limits.length ? new Band(limits.t, limits.limit, trace.end, LIMITS.length) : null,
  };
  queues ??= await Promise.all(trace.queues.map(async queue => {
    const columns = await table(queue.table);
    return { ...queue, name: linkName(2 * queue.link + queue.isReverse), series: new Series(columns.t, columns.packets) };
  }));
  options(find('path'), ['all', ...flow.strands.map(strand => strand.name)], flow.strands.length > 1);
  options(find('numbers'), null, flow.hasDataNumbers);
  for (const option of find('kind').options) option.hidden = (option.value === CHOICE || option.value === WAIT) && !choices.length;
  find('said').textContent = `${flow.strands.reduce((sum, strand) => sum + strand.packets.length, 0)} packets with data.`;
  layOut();
}

function options(select, names, isShown) {
  if (names) select.replaceChildren(...names.map((name, index) => new Option(name, index - 1)));
  select.closest('label').hidden = !isShown;
}

const shown = () => flow.strands.filter((_, index) => find('path').value < 0 || index === +find('path').value);

/** The panels from top to bottom, for what is chosen. */
function layOut() {
  const strands = shown(), key = flow.hasDataNumbers ? find('numbers').value : 'number', dash = [3, 3];
  const lines = (names, unit, label, height) => {
    const all = strands.flatMap(strand => names.map(([name, look]) => ({ series: strand.lines[name], colour: strand.colour, ...look })));
    return { label, unit, height, base: 0, lines: all.filter(({ series }) => series.high.some(high => high >= 0)) };
  };
  const sequence = (strands, height) => ({
    label: `${strands.length === 1 ? `${strands[0].name}, ` : ''}${key === 'data' ? 'number of data' : 'packet number'}`, unit: 1, height, key, strands,
    lines: strands.flatMap(strand => [
      ...(strand.acked[key] ? [{ series: strand.acked[key], colour: strand.colour, alpha: FADED }] : []),
      ...(flow.hasDataNumbers === (key === 'data') ? [{ series: strand.window, colour: strand.colour, dash: DOTS, isBound: true }] : []),
    ]),
  });
  const lanes = key === 'data' ? [sequence(strands, 330)] : strands.map(strand => sequence([strand], Math.max(330 / strands.length, 170)));
  const ofLinks = queues.filter(({ link }) => strands.some(({ links }) => links.includes(link)));
  const bands = [
    ...(flow.limit ? [{ name: flow.strands.length > 1 ? 'all' : flow.strands[0].name, band: flow.limit, names: LIMITS }] : []),
    ...strands.filter(strand => strand.limit).map(strand => ({ name: strand.name, band: strand.limit, names: LIMITS })),
  ];
  const states = strands.filter(strand => strand.state.values.some(state => state >= 0));
  panels = [
    ...lanes,
    { ...lines([['flight', { alpha: FADED }], ['ssthresh', { dash }], ['cwnd', { width: 1.6 }]], 1, 'packets: window, in flight', 150), strands, isWindow: true },
    lines([['pacing', {}]], 1e3, 'pacing, Mbit/s', 80),
    lines([['rtt', { alpha: FADED, width: 0.8 }], ['srtt', {}]], 1e3, 'RTT, ms: smoothed, samples', 90),
    { label: 'queue, packets', unit: 1, height: 90, base: 0, lines: ofLinks.map(({ series, colour, isReverse }) => ({ series, colour, dash: isReverse ? dash : null })) },
  ].filter(panel => panel.key || panel.lines.length);
  if (states.length) panels.push({ label: 'state', height: 17 * states.length, rows: states.map(strand => ({ name: strand.name, band: strand.state, names: STATES })) });
  if (bands.length) panels.push({ label: 'limited by', height: 17 * bands.length, rows: bands });
  if (isPrinted) panels.forEach(panel => { panel.height *= panel.rows ? 1 : 0.72; }); // a page of paper
  const wanted = find('kind').value;
  const all = wanted === CHOICE || wanted === WAIT ? choicesOf(wanted).filter(mark => strands.includes(mark.strand)) : strands.flatMap(strand => strand.marks);
  marks = all.filter(mark => !wanted || mark.kind === wanted).sort((a, b) => a.t - b.t);
  legend(strands, ofLinks, [states.length && ['State', STATES], bands.length && ['Limited by', LIMITS]].filter(Boolean));
  draw();
}

function legend(strands, ofLinks, categories) {
  const entry = ({ className = '', colour = '' }, name, sign = '') => {
    const span = document.createElement('span'), mark = document.createElement(sign ? 'b' : 'i');
    Object.assign(mark, { textContent: sign, className });
    mark.style.color = colour;
    mark.ariaHidden = 'true'; // the name follows
    span.append(mark, name);
    return span;
  };
  const looks = [['window; sent packets; smoothed', ''], ['in flight; acknowledged; samples', 'light'], ['threshold', 'dashed'], ['receive window', 'dotted']];
  const isDrawn = kind => kind === find('kind').value || strands.some(strand => strand.marks.some(mark => mark.kind === kind));
  const kinds = Object.keys(MARKS).filter(isDrawn);
  const others = ofLinks.filter(({ name }) => !strands.some(strand => strand.name === name));
  const boxes = (title, names) => [title, ...names].map((name, index) => (index ? entry({ className: 'box', colour: categoryColour(names, index - 1) || property('--line') }, name) : `${name}:`));
  find('key').replaceChildren(
    ...strands.map(strand => entry({ colour: strand.colour[theme()] }, strand.name)),
    ...others.map(queue => entry({ colour: queue.colour[theme()] }, `queue of ${queue.name}`)),
    ...looks.map(([name, className]) => entry({ className }, name)),
    ...kinds.map(kind => entry({ colour: markColour({ kind }) }, kind, MARKS[kind])), ...categories.flatMap(([title, names]) => boxes(title, names)));
}

const markColour = ({ kind }) => (kind === 'lost in the network' || kind === 'timeout' ? `rgb(${property('--less')})` : property('--ink'));

function categoryColour(names, index) {
  if (names === STATES) return ['', property('--c5'), property('--c6'), `rgb(${property('--less')} / .75)`, `rgb(${property('--less')})`][index];
  return index < 7 ? property(`--c${index}`) : property('--soft');
}

// Drawing.

function draw() {
  if (!pending) pending = requestAnimationFrame(() => { pending = 0; paint(); });
}

let left = 56, width = 0;
const scaleX = time => left + (time - view.from) / (view.to - view.from) * width;
const timeAt = x => view.from + (x - left) / width * (view.to - view.from);

function paint() {
  const ratio = isPrinted ? 3 : devicePixelRatio || 1, outer = canvas.parentElement.clientWidth;
  const height = panels.reduce((sum, panel) => sum + panel.height + 22, 26);
  left = outer < 500 ? 46 : 58;
  width = outer - left - 10;
  if (canvas.width !== Math.round(outer * ratio) || canvas.height !== Math.round(height * ratio)) {
    Object.assign(canvas, { width: Math.round(outer * ratio), height: Math.round(height * ratio) });
    canvas.style.height = `${height}px`;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, outer, height);
  pen.font = '11px system-ui, sans-serif';
  drawn = [];
  const times = ticks(view.from / 1e6, view.to / 1e6, Math.max(width / 110, 2));
  let top = 18;
  for (const panel of panels) {
    panel.top = top;
    for (const time of times.values) segment(scaleX(time * 1e6), top, scaleX(time * 1e6), top + panel.height, property('--line'));
    if (panel.rows) paintBands(panel); else paintPanel(panel);
    text(panel.label, left, top - 5, property('--ink'), 'left');
    top += panel.height + 22;
  }
  for (const time of times.values) {
    text(`${time.toFixed(times.digits)} s`, clamp(scaleX(time * 1e6), left, outer - 20), top - 6, property('--soft'), 'center');
  }
  paintPointers(top - 22);
}

function segment(x0, y0, x1, y1, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function text(words, x, y, colour, align) {
  Object.assign(pen, { fillStyle: colour, textAlign: align });
  pen.fillText(words, x, y);
}

function ticks(low, high, count, least = 0) {
  const rough = Math.max((high - low) / count, least) || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough * 0.999);
  const values = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick++) values.push(tick * step);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** The index in force at the beginning of the view, and the one after the last in the view. */
const span = t => { const from = upTo(t, view.from); return [Math.max(from - 1, 0), upTo(t, view.to, from)]; };

function paintPanel(panel) {
  const { top, height, unit, key } = panel;
  const series = [...panel.lines.map(line => line.series), ...(key ? panel.strands.map(strand => strand.sent[key]) : [])];
  const found = series.filter((_, at) => !panel.lines[at]?.isBound).map(one => one.extremes(...(key && !panel.lines.some(line => line.series === one) ? inside(one.t) : span(one.t))));
  let low = panel.base ?? Math.min(...found.map(pair => pair[0])), high = Math.max(...found.map(pair => pair[1]), low);
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  const room = Math.max((high - low) * 0.06, key ? 1 : 0.06 * unit);
  high += room;
  if (panel.base === undefined) low = Math.max(low - room, 0);
  const y = value => top + height - (value - low) / (high - low) * height;
  panel.y = y;
  const marksY = ticks(low / unit, high / unit, Math.max(height / 42, 2), unit === 1 ? 1 : 0);
  for (const tick of marksY.values) {
    segment(left, y(tick * unit), left + width, y(tick * unit), property('--line'));
    text(tick.toFixed(marksY.digits), left - 6, y(tick * unit) + 4, property('--soft'), 'right');
  }
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  for (const line of panel.lines) paintLine(line, y);
  if (key) panel.strands.forEach(strand => paintPackets(strand, key, y));
  if (key === 'number') panel.strands.forEach(strand => paintSacks(strand, y));
  if (key || panel.isWindow) paintMarks(panel, y);
  pen.restore();
}

const inside = t => [upTo(t, view.from), upTo(t, view.to)];

/** A line of steps; where a pixel has several values, from the least to the greatest. */
function paintLine({ series: { t, values }, series, colour, alpha = 1, width: lineWidth = 1.2, dash }, y) {
  const [first, last] = span(t), perPixel = (view.to - view.from) / width;
  Object.assign(pen, { strokeStyle: colour[theme()], globalAlpha: alpha, lineWidth });
  pen.setLineDash(dash || []);
  pen.beginPath();
  let isOpen = false;
  const point = (x, value) => {
    if (value < 0 || !Number.isFinite(value)) isOpen = false;
    else if (isOpen) pen.lineTo(x, y(value));
    else { pen.moveTo(x, y(value)); isOpen = true; }
  };
  if (last - first > 3 * width) {
    for (let column = 0, at = first; column < width; column++) {
      const next = upTo(t, view.from + (column + 1) * perPixel, at), [low, high] = series.extremes(at, Math.max(next, at + 1));
      point(left + column, high);
      if (high > low) point(left + column, low);
      at = Math.max(next - 1, at);
    }
  } else {
    for (let at = first, before = -1; at < last; at++) {
      const x = Math.max(scaleX(t[at]), left);
      if (before >= 0 && values[at] >= 0) point(x, before);
      point(x, before = values[at]);
      if (at === last - 1) point(left + width, before);
    }
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/** New data: a bar from the least to the greatest number of each pixel, or each packet as tcptrace's arrow. */
function paintPackets(strand, key, y) {
  const { t, values } = strand.sent[key], [first, last] = inside(t), perPixel = (view.to - view.from) / width;
  pen.fillStyle = strand.colour[theme()];
  const tall = y(0) - y(1);
  if (last - first > width / 2) {
    for (let column = 0, at = first; column < width && at < last; column++) {
      const next = upTo(t, view.from + (column + 1) * perPixel, at);
      if (next > at) {
        const [low, high] = strand.sent[key].extremes(at, next);
        pen.fillRect(left + column, y(high + 1), 1.2, Math.max(y(low) - y(high + 1), 1.5));
      }
      at = next;
    }
    return;
  }
  for (let at = first; at < last; at++) {
    const x = scaleX(t[at]), high = y(values[at] + 1);
    pen.fillRect(x - 0.75, high, 1.5, Math.max(tall, 2));
    if (tall > 5) for (const end of [high, high + tall]) pen.fillRect(x - 3, end - 0.5, 6, 1);
  }
}

/** SACK blocks: a bar at the acknowledgement that has each, once they are apart. */
function paintSacks({ sacks, colour }, y) {
  const [first, last] = inside(sacks.t);
  if (last - first > width / 2) return;
  pen.fillStyle = colour[theme()];
  pen.globalAlpha = FADED;
  for (let at = first; at < last; at++) pen.fillRect(scaleX(sacks.t[at]) - 1.5, y(sacks.to[at]), 3, Math.max(y(sacks.from[at]) - y(sacks.to[at]), 1));
  pen.globalAlpha = 1;
}

/** Where a choice has its mark: at its data; a wait, and data whose packet is not sent yet, at the latest packet. */
function choiceY({ strand, choice, t }, key) {
  const { packets } = strand, data = flow.choices.data[choice];
  if (flow.choices.strand[choice] >= 0 && key === 'data') return data + 0.5;
  const next = upTo(packets.t, t - 0.5);
  for (let at = next; at < Math.min(next + 500, packets.length); at++) if (key === 'number' && packets.data[at] === data) return packets.number[at] + 0.5;
  return next ? packets[key][next - 1] + 0.5 : null;
}

function markY(mark, panel) {
  if (mark.choice !== undefined) return panel.isWindow ? null : choiceY(mark, panel.key);
  if (panel.isWindow) return mark.state === undefined ? null : mark.strand.states.cwnd[mark.state];
  return mark.packet === undefined ? null : mark.strand.packets[panel.key][mark.packet] + 0.5;
}

/** Marks, one at most for each few pixels. */
function paintMarks(panel, y) {
  const taken = new Set(), strands = new Set(panel.strands);
  const first = lowerMark(view.from), size = 13;
  pen.font = `${size}px system-ui, sans-serif`;
  for (let at = first; at < marks.length && marks[at].t <= view.to; at++) {
    const mark = marks[at], value = strands.has(mark.strand) ? markY(mark, panel) : null;
    if (value === null) continue;
    const x = scaleX(mark.t), place = y(value), cell = `${mark.kind} ${x >> 2} ${place >> 2}`;
    if (taken.has(cell) && mark !== chosen) continue;
    taken.add(cell);
    drawn.push({ x, y: place, mark });
    text(MARKS[mark.kind], x, place + 4.5, markColour(mark), 'center');
  }
  pen.font = '11px system-ui, sans-serif';
}

const lowerMark = time => { let low = 0, high = marks.length; while (low < high) { const middle = (low + high) >> 1; if (marks[middle].t < time) low = middle + 1; else high = middle; } return low; };

/** Rows of categories: each pixel is divided by the time in each. */
function paintBands({ top, height, rows }) {
  const tall = height / rows.length - 3, perPixel = (view.to - view.from) / width;
  rows.forEach(({ name, band, names }, row) => {
    const y = top + row * (tall + 3) + 3;
    text(name.length > 8 ? `${name.slice(0, 7)}…` : name, left - 6, y + tall - 3, property('--soft'), 'right');
    const colours = names.map((_, index) => categoryColour(names, index));
    pen.fillStyle = property('--panel');
    pen.fillRect(left, y, width, tall);
    let before = band.until(view.from), start = -1, current = -2;
    const label = (to, value) => {
      if (value < 0 || (names === STATES && value === 0) || pen.measureText(names[value]).width + 8 > to - start) return;
      text(names[value], (start + to) / 2, y + tall - 3, names === STATES ? property('--ink') : property('--page'), 'center');
    };
    for (let column = 0; column < width; column++) {
      const times = band.until(view.from + (column + 1) * perPixel), spent = times.map((time, index) => time - before[index]);
      const whole = spent.reduce((sum, time) => sum + time, 0);
      let at = y;
      spent.forEach((time, index) => {
        if (time <= 0 || !colours[index]) return;
        pen.fillStyle = colours[index];
        pen.fillRect(left + column, at, 1.1, time / whole * tall);
        at += time / whole * tall;
      });
      before = times;
    }
    for (let column = 0; column <= width; column++) {
      const value = column < width ? band.at(view.from + column * perPixel) : -2;
      if (value === current) continue;
      if (current >= 0) label(left + column, current);
      [start, current] = [left + column, value];
    }
  });
}

function paintPointers(bottom) {
  if (range) {
    pen.fillStyle = `rgb(${property('--heat')} / .2)`;
    pen.fillRect(range[0], 18, range[1] - range[0], bottom - 18);
  }
  const ring = drawn.find(one => one.mark === (hovered?.mark || chosen));
  if (!ring) return;
  pen.strokeStyle = property('--link');
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(ring.x, ring.y, 9, 0, 7);
  pen.stroke();
}
