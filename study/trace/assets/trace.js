// What marks and places mean, and pointer and keyboard.

const ms = micros => `${(micros / 1000).toFixed(1)} ms`;

function fate(strand, at) {
  const { packets, losses } = strand, flags = packets.flags[at], delay = packets.delay[at] ? ` after ${ms(packets.delay[at])}` : '';
  if (flags & ARRIVED) return `arrived${delay}`;
  if (!(flags & LOST)) return trace.isCapture ? 'its fate is not in the capture' : 'was on its way at the end';
  const loss = strand.lossOf.get(at);
  return `${CAUSES[losses.cause[loss]]} ${linkName(losses.link[loss])}`.trim() + delay;
}

/** The latest transmission of the same data before a packet, on any path. */
function earlier(strand, at) {
  const data = strand.packets.data[at], time = strand.packets.t[at];
  let latest = null;
  for (const other of flow.strands) {
    let place = other === strand ? at - 1 : upTo(other.packets.t, time) - 1;
    while (place >= 0 && other.packets.data[place] !== data) place--;
    if (place >= 0 && (!latest || other.packets.t[place] > latest.strand.packets.t[latest.at])) latest = { strand: other, at: place };
  }
  return latest;
}

const numbers = (strand, at) =>
  `${strand.packets.number[at]}${flow.hasDataNumbers ? ` (data ${strand.packets.data[at]})` : ''}`;

function sender(strand, time) {
  const at = upTo(strand.states.t, time) - 1, { states } = strand;
  if (at < 0) return '';
  const threshold = states.ssthresh[at] < 0 ? '' : `, threshold ${states.ssthresh[at]}`;
  const pacing = states.pacing[at] < 0 ? '' : `, pacing ${(states.pacing[at] / 1000).toPrecision(3)} Mbit/s`;
  const state = states.state[at] < 0 ? '' : `${STATES[states.state[at]]}, `;
  const rtt = states.srtt[at] < 0 ? '' : `, RTT ${ms(states.srtt[at])}`;
  const window = states.cwnd[at] < 0 ? '' : `window ${states.cwnd[at]}, `;
  return `${state}${window}in flight ${states.flight[at]}${threshold}${rtt}${pacing}`;
}

/** What the scheduler saw of each path at a choice. */
function seen(choice) {
  const time = flow.choices.t[choice];
  const view = ({ name, states, views }) => {
    const at = upTo(states.t, time) - 1, rtt = at < 0 || states.srtt[at] < 0 ? '' : `RTT ${ms(states.srtt[at])}, `;
    const window = at < 0 ? '' : `window ${states.cwnd[at]}, `;
    return `${name}: ${['inactive', 'no room', 'room'][views.availability[choice]]}, ${rtt}${window}${views.buffered[choice]} buffered`;
  };
  return `It saw ${flow.strands.map(view).join('; ')}.`;
}

function describeChoice(choice) {
  const { choices } = flow, strand = flow.strands[choices.strand[choice]], first = choices.data[choice], count = choices.count[choice];
  const data = count > 1 ? `data ${first} to ${first + count - 1}` : count ? `data ${first}` : 'no data that it may carry';
  return `Scheduler at ${seconds(choices.t[choice])}: ${strand ? `${strand.name} gets ${data}` : 'waits'}. ${seen(choice)}`;
}

/** The choice that gave a packet its data to a path; none if it is not among the latest ones. */
function choiceFor(strand, at) {
  const { choices } = flow, data = strand.packets.data[at], last = upTo(choices.t, strand.packets.t[at]) - 1;
  for (let choice = last; choice >= Math.max(last - 2000, 0); choice--) {
    const first = choices.data[choice];
    if (flow.strands[choices.strand[choice]] === strand && data >= first && data < first + choices.count[choice]) return choice;
  }
  return null;
}

function describePacket(strand, at) {
  const { packets } = strand, kind = ['Packet', 'Retransmission: packet', 'Copy: packet'][packets.flags[at] & 3];
  const first = `${strand.name}: ${kind} ${numbers(strand, at)}, ${trace.isCapture ? 'captured' : 'sent'} at ${seconds(packets.t[at])}, ${fate(strand, at)}.`;
  const before = packets.flags[at] & 3 ? earlier(strand, at) : null;
  const why = before && ` Its data was sent before at ${seconds(before.strand.packets.t[before.at])} on ${before.strand.name}, and ${fate(before.strand, before.at)}.`;
  const spurious = packets.flags[at] & SPURIOUS ? ' Spurious: an earlier transmission has arrived.' : '';
  const choice = choiceFor(strand, at), chosen = choice === null ? '' : ` Chosen at ${seconds(flow.choices.t[choice])}. ${seen(choice)}`;
  return `${first}${why || ''}${spurious} Sender: ${sender(strand, packets.t[at])}.${chosen}`;
}

function describe({ kind, strand, packet, state, choice, t }) {
  if (choice !== undefined) return describeChoice(choice);
  if (packet !== undefined) return describePacket(strand, packet);
  const { states } = strand, name = index => STATES[states.state[index]];
  const lost = states.lost[state] - states.lost[state - 1];
  const what = kind === 'timeout' ? `retransmission timeout ${states.timeouts[state]}` : `${name(state - 1)} → ${name(state)}`;
  const because = lost > 0 ? ` ${lost} ${lost === 1 ? 'packet' : 'packets'} marked lost.` : '';
  return `${strand.name}: ${what} at ${seconds(t)}.${because} Window ${states.cwnd[state - 1]} → ${states.cwnd[state]}. Sender: ${sender(strand, t)}.`;
}

const say = words => { find('said').textContent = words; };

function select(mark) {
  if (!mark) return;
  chosen = mark;
  hovered = null;
  if (mark.t < view.from || mark.t > view.to) show(mark.t - (view.to - view.from) / 2, mark.t + (view.to - view.from) / 2);
  say(describe(mark));
  draw();
}

/** Shows a range of time, within the run and not below 20 microseconds. */
function show(from, to) {
  const length = clamp(to - from, 20, trace.end);
  view.from = clamp(from + (to - from - length) / 2, 0, trace.end - length);
  view.to = view.from + length;
  draw();
}

function zoom(factor, centre) {
  show(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
}

const isInView = mark => mark && mark.t >= view.from && mark.t <= view.to;
const move = share => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

function step(forward) {
  const at = isInView(chosen) ? marks.indexOf(chosen) : -1;
  if (at >= 0) return select(marks[clamp(at + (forward ? 1 : -1), 0, marks.length - 1)]);
  const next = lowerMark(forward ? view.from : view.to);
  select(marks[clamp(forward ? next : next - 1, 0, marks.length - 1)]);
}

function press(key, shift) {
  const centre = isInView(chosen) ? chosen.t : (view.from + view.to) / 2;
  const actions = {
    '+': () => zoom(0.5, centre), '=': () => zoom(0.5, centre), '-': () => zoom(2, centre),
    0: () => show(0, trace.end), Escape: () => show(0, trace.end),
    Home: () => select(marks[0]), End: () => select(marks.at(-1)),
    ArrowLeft: () => (shift ? move(-0.2) : step(false)), ArrowRight: () => (shift ? move(0.2) : step(true)),
    Enter: () => chosen && show(chosen.t - 2000, chosen.t + 2000),
  };
  actions[key]?.();
  return key in actions;
}

/** What is at a place of the drawing: a mark, a packet, or the state of the senders. */
function point(x, y) {
  const distance = one => Math.hypot(one.x - x, one.y - y);
  const nearest = (list, reach) => list.filter(one => distance(one) < reach).sort((a, b) => distance(a) - distance(b))[0] || null;
  hovered = nearest(drawn, 14);
  const panel = panels.find(one => y >= one.top && y < one.top + one.height), time = timeAt(x);
  if (hovered) say(describe(hovered.mark));
  else if (panel && time >= view.from && time <= view.to) {
    const packet = panel.key ? nearest(panel.strands.flatMap(strand => near(strand, panel, x)), 8) : null;
    say(packet ? describePacket(packet.strand, packet.at) : `${seconds(time)}. ${shown().map(strand => `${strand.name}: ${sender(strand, time)}`).join('. ')}.${limitAt(time)}`);
  }
  draw();
}

const limitAt = time => { const at = flow.limit ? flow.limit.at(time) : -1; return at < 0 ? '' : ` Limited by: ${LIMITS[at]}.`; };

/** The packets of a strand near a place, if each has a place of its own. */
function near(strand, panel, x) {
  const { t } = strand.packets, from = upTo(t, timeAt(x - 8)), to = upTo(t, timeAt(x + 8));
  if (to - from > 200) return [];
  return Array.from({ length: to - from }, (_, index) =>
    ({ strand, at: from + index, x: scaleX(t[from + index]), y: panel.y(strand.packets[panel.key][from + index] + 0.5) }));
}

const pointers = new Map();
let began = null;

canvas.addEventListener('pointerdown', event => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
  began = { x: event.offsetX, moves: event.shiftKey || event.pointerType === 'touch', from: view.from, to: view.to, spread: spread() };
});
canvas.addEventListener('pointermove', event => {
  if (!pointers.has(event.pointerId) || !began) return point(event.offsetX, event.offsetY);
  pointers.set(event.pointerId, event.offsetX);
  const perPixel = (began.to - began.from) / width;
  if (pointers.size === 2 && began.spread) {
    const factor = began.spread / Math.max(spread(), 1), centre = (began.from + began.to) / 2, half = (began.to - began.from) / 2 * factor;
    show(centre - half, centre + half);
  } else if (began.moves) show(began.from - (event.offsetX - began.x) * perPixel, began.to - (event.offsetX - began.x) * perPixel);
  else range = [began.x, event.offsetX].map(x => clamp(x, left, left + width)).sort((a, b) => a - b);
  draw();
});
const spread = () => { const [a, b] = [...pointers.values()]; return b === undefined ? 0 : Math.abs(a - b); };
for (const name of ['pointerup', 'pointercancel']) {
  canvas.addEventListener(name, event => {
    pointers.delete(event.pointerId);
    if (range && range[1] - range[0] > 4 && name === 'pointerup') show(timeAt(range[0]), timeAt(range[1]));
    else if (began && !began.moves && name === 'pointerup') {
      point(event.offsetX, event.offsetY);
      if (hovered) chosen = hovered.mark;
    }
    [range, began] = [null, null];
    draw();
  });
}
canvas.addEventListener('pointerleave', () => { hovered = null; draw(); });
canvas.addEventListener('dblclick', () => show(0, trace.end));
canvas.addEventListener('wheel', event => {
  const isAll = view.to - view.from >= trace.end;
  if (event.deltaX && !event.deltaY || event.shiftKey) move((event.deltaX || event.deltaY) / 1000);
  else if (isAll && event.deltaY > 0) return;
  else zoom(Math.exp(clamp(event.deltaY, -200, 200) / 400), timeAt(clamp(event.offsetX, left, left + width)));
  event.preventDefault();
}, { passive: false });
canvas.addEventListener('keydown', event => {
  if (!event.ctrlKey && !event.altKey && !event.metaKey && press(event.key, event.shiftKey)) event.preventDefault();
});
document.querySelectorAll('.controls button').forEach(button => button.addEventListener('click', () => press(button.dataset.key, false)));
for (const id of ['path', 'numbers', 'kind']) find(id).addEventListener('change', layOut);
find('flow').addEventListener('change', () => choose(+find('flow').value));
dark.addEventListener('change', () => layOut());
matchMedia('print').addEventListener('change', ({ matches }) => { isPrinted = matches; layOut(); paint(); });
new ResizeObserver(draw).observe(canvas.parentElement);
find('flow').append(...trace.flows.map((flow, index) => new Option(flow.name, index)));
find('flow').closest('label').hidden = trace.flows.length < 2;
find('kind').append(...Object.keys(MARKS).map(kind => new Option(kind)));
choose(0);
