// The controls of a scenario's keys: a field, with a slider for what is a number with a unit, or a select for names.
'use strict';
const element = id => document.getElementById(id);
const make = (tag, parent, text) => {
  const made = parent.appendChild(document.createElement(tag));
  if (text !== undefined) made.textContent = text;
  return made;
};

const STEPS = 1000;
const quantity = text => {
  const found = /^(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Z%\/]*)$/.exec(text.trim());
  return found && { number: Number(found[1]), unit: found[2] };
};
const rounded = number => Number(number.toPrecision(3));

// The scale of a slider about the value that a scenario begins with: counts and shares are linear, all else is logarithmic.
function scale({ number, unit }) {
  if (unit === '') return linear(1, Math.max(10, number * 4), Math.round);
  if (unit === '%') return linear(0, Math.min(100, Math.max(5, number * 4)), rounded);
  if (number === 0) return linear(0, unit === 'ms' ? 200 : 10, rounded);
  const least = number / 20;
  return {
    at: number => STEPS * Math.log(Math.max(number, least) / least) / Math.log(400),
    number: place => rounded(least * 400 ** (place / STEPS)),
  };
}
const linear = (least, greatest, round) => ({
  at: number => STEPS * (number - least) / (greatest - least),
  number: place => round(least + (greatest - least) * place / STEPS),
});

// Seven values of a slider about its place, the present one among them.
const SWEPT = 7;
function around({ at, number }, present) {
  const step = STEPS / (SWEPT + 1);
  const least = Math.min(Math.max(at(present.number) - step * (SWEPT - 1) / 2, 0), STEPS - step * (SWEPT - 1));
  const numbers = Array.from({ length: SWEPT }, (_, place) => number(least + step * place));
  const distance = number => Math.abs(at(number) - at(present.number));
  const nearest = numbers.reduce((one, other) => distance(other) < distance(one) ? other : one);
  numbers[numbers.indexOf(nearest)] = present.number;
  return [...new Set(numbers)].map(number => `${number}${present.unit}`);
}

// A control; `changed` gets its key and its new value, and whether the pointer is still dragging, `sweep` a key and values.
function control(parent, { key, about, value, default: fallback, choices }, name, changed, sweep) {
  const box = make('div', parent);
  box.className = 'control';
  box.dataset.key = key;
  const label = make('label', box, name);
  label.title = `${key}: ${about}`;
  const begin = value ?? fallback;
  const field = make(choices.length ? 'select' : 'input', label);
  if (choices.length) {
    for (const choice of choices.includes(begin) || begin === '' ? choices : [begin, ...choices]) make('option', field, choice).value = choice;
    if (begin === '') make('option', field, 'default').value = '';
  } else {
    field.type = 'text';
    field.placeholder = 'default';
  }
  field.value = begin;
  // What is typed counts once the typing pauses.
  let pause = 0;
  field.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(() => tell(field.value, false), choices.length ? 0 : 300);
  });
  const of = choices.length ? null : quantity(begin);
  const slider = of && make('input', box);
  const places = of && scale(of);
  if (slider) {
    Object.assign(slider, { type: 'range', min: 0, max: STEPS, step: 1 });
    slider.setAttribute('aria-label', `${name}, slider`);
    slider.addEventListener('input', () => {
      const unit = (quantity(field.value) ?? of).unit;
      field.value = `${places.number(Number(slider.value))}${unit}`;
      tell(field.value, true);
    });
    slider.addEventListener('change', () => tell(field.value, false));
    const button = make('button', box, 'Sweep');
    button.type = 'button';
    button.className = 'sweep';
    button.title = 'Sweep this key';
    button.setAttribute('aria-label', `Sweep ${key}`);
    button.onclick = () => sweep(key, around(places, quantity(field.value) ?? of));
  }
  const error = make('p', box);
  error.className = 'error';
  error.hidden = true;

  function tell(value, dragging) {
    place();
    if (value.trim() !== '' || choices.length) changed(key, value.trim(), dragging);
  }
  function place() {
    const now = slider && quantity(field.value);
    if (now) {
      slider.value = places.at(now.number);
      slider.setAttribute('aria-valuetext', field.value);
    }
  }
  place();
  return {
    key,
    box,
    set(value) {
      field.value = value ?? begin;
      box.classList.toggle('changed', value !== undefined && value !== begin);
      place();
    },
    refuse(text) {
      error.textContent = text;
      error.hidden = text === '';
      box.classList.toggle('wrong', text !== '');
    },
  };
}
