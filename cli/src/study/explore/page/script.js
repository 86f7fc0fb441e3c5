// The page: a change of a key is a question to the server, whose answer is drawn. While an answer is under way, only the newest
// change waits. One that takes long is cancelled, but not while a slider is dragged: its curve is better than none.
const token = new URLSearchParams(location.search).get('token');
const PATIENCE_MS = 250;

async function ask(path, body, signal) {
  const response = await fetch(path, {
    method: body ? 'POST' : 'GET',
    headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
    signal,
  });
  if (response.ok) return response.json();
  const refusal = await response.json().catch(() => ({ key: '', message: `the server answered ${response.status}`, help: '' }));
  throw Object.assign(new Error(refusal.message), { refusal });
}

let scenario = null; // what the server says of it
let controls = [];
let sets = new Map(); // key to value, in the order of the first change
let pins = []; // the pinned runs, each with its letter and its sets
let past = []; // earlier sets
let answer = null;
let running = null; // the question under way: { abort, since, wanted }
let waiting = false;
let dragFrom = null;

const list = sets => [...sets].map(([key, value]) => `${key}=${value}`);
// The sets that choose a cell of the sweep, but for those that a change replaces, and the changes.
const complete = sets => [...scenario.sets.filter(set => !sets.has(set.slice(0, set.indexOf('=')))), ...list(sets)];
const question = all => ({
  scenario: scenario.id, sets: complete(sets), all_seeds: all, pinned: pins.map(pin => complete(pin.sets)),
});
const state = (text, name) => {
  element('state').textContent = text;
  document.documentElement.dataset.state = name;
};

// Asks for the first seed, and then for all of them.
async function update(dragging = false) {
  ageSweep();
  if (running && !running.all && (dragging || performance.now() - running.since < PATIENCE_MS)) {
    waiting = true;
    return;
  }
  running?.abort.abort();
  waiting = false;
  if (await one(false) && !waiting && scenario.seeds > 1) await one(true);
  if (waiting) update();
}

// Whether the answer came and was drawn.
async function one(all) {
  const mine = { abort: new AbortController(), since: performance.now(), all, pins: [...pins], sets: list(sets) };
  running = mine;
  const slow = setTimeout(() => state(all ? `running all ${scenario.seeds} seeds …` : 'running …', 'running'), PATIENCE_MS);
  if (!all) document.documentElement.dataset.state = 'running';
  try {
    const now = await ask('/v1/run', question(all), mine.abort.signal);
    if (running !== mine) return false;
    answer = { ...now, pins: mine.pins, sets: mine.sets };
    draw(all);
    return true;
  } catch (error) {
    if (running === mine && error.name !== 'AbortError') refuse(error);
    return false;
  } finally {
    clearTimeout(slow);
    if (running === mine) running = null;
  }
}

function draw(all) {
  controls.forEach(control => control.refuse(''));
  element('figures').innerHTML = answer.figures;
  numbers();
  for (const id of ['figures', 'numbers']) element(id).classList.remove('old');
  const seeds = all || scenario.seeds === 1;
  element('seeds').textContent = [
    answer.runs > 1 ? `Lines: seed ${answer.seed}. Pale areas: from the lowest to the highest of ${answer.runs} seeds at each instant. Numbers: means with 95 % confidence intervals.` : `Seed ${answer.seed}.`,
    answer.pins.length ? `Broad and pale lines: ${answer.pins.at(-1).name}, the run pinned last.` : '',
  ].join(' ');
  element('answer').dataset.digest = answer.digest;
  state('', seeds ? 'done' : 'first');
}

const shown = value => value?.text ?? '–';
const difference = (value, first) => {
  const percent = value && first?.mean ? 100 * (value.mean / first.mean - 1) : null;
  return percent === null ? '–' : `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
};

// The present run, and below it each pinned one with what it changes. Differences are to the run pinned first.
function numbers() {
  const table = element('numbers');
  table.replaceChildren();
  const { pins } = answer;
  const head = make('tr', make('thead', table));
  const names = answer.values.flatMap(name => pins.length ? [name, `to ${pins[0].name}`] : [name]);
  for (const name of [...(pins.length ? ['run'] : []), 'flow', ...names, ...(pins.length ? ['changed keys'] : [])]) make('th', head, name);
  const body = make('tbody', table);
  [{ name: 'now', sets: answer.sets }, ...pins].forEach((run, place) => answer.rows.forEach(({ flow, cells }, index) => {
    const row = make('tr', body);
    if (pins.length) runCell(row, run, place, index);
    make(pins.length ? 'td' : 'th', row, flow);
    for (const cell of cells) {
      make('td', row, shown(cell[place]));
      if (pins.length) make('td', row, place === 1 ? '–' : difference(cell[place], cell[1]));
    }
    if (pins.length) make('td', row, index === 0 ? changes(run.sets) : '').className = 'keys';
  }));
}

const changes = sets => (Array.isArray(sets) ? sets : list(sets)).join(', ') || 'none';
function runCell(row, { name }, place, index) {
  const cell = make('th', row, index === 0 ? name : '');
  cell.scope = 'row';
  if (place === 0 || index > 0) return;
  const button = make('button', cell, '×');
  button.type = 'button';
  button.setAttribute('aria-label', `Remove ${name}`);
  button.onclick = () => pin(pins.filter(pin => pin.name !== name));
}

const PINS = [...'ABCDEFGH'];
function pin(next) {
  pins = next;
  show();
  element('pin').disabled = pins.length === PINS.length;
  update();
}

// Shows the reader's message at its key, or below the buttons.
function refuse({ refusal, message }) {
  for (const id of ['figures', 'numbers']) element(id).classList.add('old');
  const { key, help } = refusal ?? { key: '', help: '' };
  const text = help ? `${message}: ${help}` : message;
  controls.forEach(control => control.refuse(''));
  const at = controls.filter(control => key === control.key || key.startsWith(`${control.key}.`)).pop();
  at?.refuse(text);
  state(at ? '' : `${key ? `${key}: ` : ''}${text}`, 'refused');
}

function changed(key, value, dragging) {
  dragFrom ??= new Map(sets);
  if (value === '') sets.delete(key);
  else sets.set(key, value);
  if (!dragging) remember();
  show();
  update(dragging);
}

// A drag of a slider is one step of undo.
function remember() {
  if (dragFrom && list(dragFrom).join('\n') !== list(sets).join('\n')) past.push(dragFrom);
  dragFrom = null;
}

// The address follows each step of undo.
function show() {
  if (!dragFrom) history.replaceState(null, '', link());
  element('undo').disabled = past.length === 0;
  controls.forEach(control => control.set(sets.get(control.key)));
}

const link = () => {
  const ofPins = pins.flatMap(pin => [['pin', pin.name], ...list(pin.sets).map(set => ['set', set])]);
  return `#${new URLSearchParams([['s', scenario.id], ...list(sets).map(set => ['set', set]), ...ofPins])}`;
};

const groups = key => key.split('.').slice(0, key.startsWith('host.') || key.startsWith('tunnel.') ? 1 : 2).join(' ');
function lay(parent, list) {
  let group = null;
  for (const item of list) {
    const key = item.key;
    const own = key.includes('.') ? groups(key) : 'run';
    if (own !== group) make('h2', parent, own);
    group = own;
    const name = key.includes('.') ? key.split('.').slice(own.split(' ').length).join('.') : key;
    controls.push(control(parent, item, name, changed, openSweep));
  }
}

// The keys that matter, and those that a sweep varies, whose values become a select unless they are numbers.
function arrange() {
  controls = [];
  element('main').replaceChildren();
  const swept = scenario.swept.filter(({ key }) => !scenario.controls.some(item => item.key === key && item.choices.length === 0));
  const all = scenario.controls.map(item => {
    const of = swept.find(({ key }) => key === item.key);
    return of ? { ...item, choices: [...new Set([...of.values, ...item.choices])], is_main: true } : item;
  });
  const others = swept.filter(({ key }) => !all.some(item => item.key === key));
  const main = all.filter(item => item.is_main || scenario.swept.some(({ key }) => key === item.key));
  lay(element('main'), [
    ...others.map(({ key, values }) => ({ key, about: 'swept by the scenario', value: values[0], default: '', choices: values })), ...main,
  ]);
  const rest = all.filter(item => !main.includes(item));
  element('search').oninput = () => {
    controls = controls.filter(({ box }) => element('main').contains(box));
    element('found').replaceChildren();
    const word = element('search').value.trim().toLowerCase();
    const found = word.length < 2 ? [] : rest.filter(({ key, about }) => `${key} ${about}`.toLowerCase().includes(word));
    found.sort((a, b) => b.key.toLowerCase().includes(word) - a.key.toLowerCase().includes(word));
    lay(element('found'), found.slice(0, 12));
    controls.filter(({ box }) => element('found').contains(box)).forEach(({ key, box }) => {
      make('p', box, found.find(item => item.key === key).about).className = 'about';
    });
    if (found.length > 12) make('p', element('found'), `and ${found.length - 12} more`).className = 'about';
    show();
  };
}

async function open(id, changes, pinned) {
  running?.abort.abort();
  try {
    scenario = { id, ...await ask('/v1/describe', { scenario: id, sets: [] }) };
  } catch (error) {
    element('work').hidden = false;
    return refuse(error);
  }
  [sets, pins, past, dragFrom] = [new Map(changes), pinned, [], null];
  closeSweep();
  element('title').textContent = scenario.title;
  element('about').textContent = scenario.about.trim();
  document.title = `${scenario.name} – Ropewalk`;
  element('pin').disabled = pins.length === PINS.length;
  element('search').value = '';
  element('found').replaceChildren();
  arrange();
  show();
  [element('start').hidden, element('work').hidden] = [true, false];
  update();
}

function startPage(scenarios) {
  running?.abort.abort();
  closeSweep();
  [element('start').hidden, element('work').hidden] = [false, true];
  const fill = () => {
    element('list').replaceChildren();
    const word = element('filter').value.trim().toLowerCase();
    let folder = null;
    for (const item of scenarios) {
      if (!`${item.name} ${item.sentence}`.toLowerCase().includes(word)) continue;
      if (item.folder !== folder) make('h2', element('list'), item.folder || 'scenarios');
      folder = item.folder;
      const row = make('a', element('list'));
      row.href = `#${new URLSearchParams({ s: item.name })}`;
      make('b', row, item.name);
      row.append(` ${item.sentence}`);
    }
  };
  element('filter').oninput = fill;
  fill();
  document.documentElement.dataset.state = 'start';
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    state(`${what} copied`, document.documentElement.dataset.state);
  } catch {
    prompt(what, text);
  }
}

element('pin').onclick = () => {
  const name = PINS.find(letter => pins.every(pin => pin.name !== letter));
  pin([...pins, { name, sets: new Map(sets) }]);
};
element('undo').onclick = () => {
  if (past.length === 0) return;
  sets = past.pop();
  show();
  update();
};
element('copy-command').onclick = () => answer && copy(answer.command, 'Command');
element('copy-trace').onclick = () => answer && copy(answer.trace, 'Command');
element('copy-scenario').onclick = () => answer && copy(answer.text, 'Scenario');
element('copy-link').onclick = () => copy(new URL(link(), location.href).href, 'Link');
element('controls').onsubmit = event => event.preventDefault();

(async () => {
  const { first, scenarios } = await ask('/v1/scenarios');
  element('others').onclick = event => {
    event.preventDefault();
    history.pushState(null, '', '#start');
    follow();
  };
  function follow() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const id = parameters.get('s') ?? (location.hash === '' ? first : null);
    // Sets belong to the pin before them, the first ones to the present run.
    const runs = [{ name: 'now', sets: new Map() }];
    for (const [name, value] of parameters) {
      if (name === 'pin' && PINS.includes(value)) runs.push({ name: value, sets: new Map() });
      if (name === 'set') runs.at(-1).sets.set(value.slice(0, value.indexOf('=')), value.slice(value.indexOf('=') + 1));
    }
    if (id) open(id, runs[0].sets, runs.slice(1, PINS.length + 1));
    else startPage(scenarios);
  }
  addEventListener('hashchange', follow);
  follow();
})();
