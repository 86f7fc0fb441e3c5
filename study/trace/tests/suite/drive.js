// Uses the page of a trace as a reader does, in a frame as wide as a phone, and reports what it shows.
addEventListener('load', async () => {
  const say = (name, value) => parent.postMessage(`${name}: ${value}`, '*');
  const wait = () => new Promise(done => setTimeout(done, 20));
  for (let tries = 0; tries < 500 && !panels.length; tries++) await wait();
  const said = () => find('said').textContent, length = () => view.to - view.from;
  const press = async (key, shiftKey = false) => {
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, bubbles: true, cancelable: true }));
    await wait();
  };
  const choose = async (id, value) => {
    find(id).value = value;
    find(id).dispatchEvent(new Event('change'));
    await wait();
  };
  const count = is => flow.strands.reduce((sum, { packets }) => sum + packets.flags.filter(is).length, 0);
  say('packets', [count(() => true), count(flags => (flags & 3) === 1), count(flags => flags & 8)]);
  say('too wide', document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const colours = new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
  say('colours', colours.size);
  // Sums over time and extremes of ranges, against their closed forms.
  const times = Float64Array.from({ length: 1000 }, (_, at) => at), values = Int32Array.from(times, at => at * 7919 % 1000);
  const band = new Band(times, values.map(value => value % 3), 1000, 3), series = new Series(times, values);
  const sum = at => band.until(at).reduce((all, time) => all + time, 0);
  const range = (from, to) => [Math.min(...values.slice(from, to)), Math.max(...values.slice(from, to))];
  const wrong = Array.from({ length: 999 }, (_, at) => at).filter(at =>
    sum(at + 0.5) !== at + 0.5 || `${series.extremes(at / 3 | 0, at + 1)}` !== `${range(at / 3 | 0, at + 1)}`);
  say('wrong', wrong.length);
  // Every loss is reached by the keyboard.
  await choose('kind', 'lost in the network');
  const losses = [];
  for (await press('Home'); losses.at(-1) !== said(); await press('ArrowRight')) losses.push(said());
  say('losses', [losses.length, losses.filter(text => /(dropped by the queue of|lost on) (wifi|lte)/.test(text)).length]);
  await press('Enter');
  say('zoomed', `${length()} ${drawn.filter(({ mark }) => mark === chosen).length}`);
  await press('-');
  say('zoomed out', length());
  await press('0');
  say('all', `${view.from} ${view.to}`);
  const pointer = (type, offset) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, bubbles: true, clientX: canvas.getBoundingClientRect().x + offset, clientY: 0 }));
  canvas.setPointerCapture = () => {};
  pointer('pointerdown', left + width / 4);
  pointer('pointermove', left + width / 2);
  pointer('pointerup', left + width / 2);
  say('dragged', [view.from, view.to].map(time => Math.round(time / 1e4)));
  canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -200, clientX: 200, cancelable: true }));
  say('wheel', (length() / trace.end).toFixed(3));
  await choose('numbers', 'data');
  await choose('kind', CHOICE);
  await press('Home');
  await press('ArrowRight');
  say('choice', said());
  const sums = flow.choices.count.reduce((sum, count) => sum + count, 0);
  say('chosen', [sums, new Set(marks.map(({ choice }) => choice)).size === flow.choices.strand.filter(strand => strand >= 0).length]);
  say('packet', describePacket(flow.strands[0], 20));
  say('samples', flow.strands.reduce((sum, strand) => sum + strand.lines.rtt.t.length, 0));
  say('panels', panels.filter(panel => panel.key).map(panel => panel.label));
  say('done', '');
});
