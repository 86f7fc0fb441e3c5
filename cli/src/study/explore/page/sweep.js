// A sweep: all seeds at each of some values of one key, the rest of the scenario as it is. A change of a key cancels it.
let swept = null; // { key, abort, answer, base }: the latest sweep, with its answer once that is there

const values = () => element('swept-values').value.split(',').map(value => value.trim()).filter(value => value !== '');
// What a sweep of `key` depends on.
const base = key => list(sets).filter(set => !set.startsWith(`${key}=`)).join('\n');

function openSweep(key, texts) {
  element('swept').hidden = false;
  element('swept-key').textContent = key;
  element('swept-values').value = texts.join(', ');
  for (const id of ['swept-figure', 'swept-numbers']) element(id).replaceChildren();
  runSweep(key);
  element('swept').scrollIntoView({ block: 'start' });
}

async function runSweep(key) {
  swept?.abort.abort();
  const mine = swept = { key, abort: new AbortController(), answer: null, base: base(key) };
  element('swept-error').textContent = '';
  ageSweep();
  sweepState('running', `running ${values().length} values …`);
  try {
    const body = { ...question(true), pinned: [], sweep: { key, values: values() } };
    mine.answer = await ask('/v1/sweep', body, mine.abort.signal);
    if (swept === mine) drawSweep();
  } catch (error) {
    if (swept !== mine || error.name === 'AbortError') return;
    element('swept-error').textContent = error.refusal?.help ? `${error.message}: ${error.refusal.help}` : error.message;
    sweepState('refused', '');
  }
}

function sweepState(name, text) {
  element('swept').dataset.state = name;
  element('swept-state').textContent = text;
}

function drawSweep() {
  const { figure, key, rows, values, seeds } = swept.answer;
  element('swept-figure').innerHTML = figure;
  const table = element('swept-numbers');
  table.replaceChildren();
  const head = make('tr', make('thead', table));
  for (const name of [key, 'flow', ...values]) make('th', head, name);
  const body = make('tbody', table);
  for (const { value, flow, cells } of rows) {
    const row = make('tr', body);
    make('th', row, value).scope = 'row';
    make('td', row, flow);
    for (const cell of cells) make('td', row, shown(cell));
  }
  sweepState('done', seeds > 1 ? `Means of ${seeds} seeds with 95 % confidence intervals.` : 'One seed.');
  ageSweep();
}

// A change of another key ends a sweep that runs, and makes one that is drawn pale.
function ageSweep() {
  if (!swept) return;
  const isOld = base(swept.key) !== swept.base;
  if (isOld && !swept.answer && !swept.abort.signal.aborted) {
    swept.abort.abort();
    sweepState('cancelled', 'The sweep was cancelled by a change.');
  }
  for (const id of ['swept-figure', 'swept-numbers']) element(id).classList.toggle('old', isOld || !swept.answer);
}

function closeSweep() {
  swept?.abort.abort();
  swept = null;
  element('swept').hidden = true;
}

element('swept').onsubmit = event => {
  event.preventDefault();
  runSweep(swept.key);
};
element('swept-copy').onclick = () => swept?.answer && copy(swept.answer.command, 'Command');
element('swept-close').onclick = closeSweep;
