'use strict';
// The columns of the trace: unpacking, and what a drawing asks of them in a time that does not grow with their length.

const BLOCK = 64;

/** A column: differences as variable-length integers, DEFLATE, base64. */
async function unpack(text, length, Values) {
  const raw = atob(text), packed = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) packed[at] = raw.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const values = new Values(length);
  for (let at = 0, index = 0, value = 0; index < length; index++) {
    let zigzag = 0, scale = 1;
    do {
      zigzag += (bytes[at] & 127) * scale;
      scale *= 128;
    } while (bytes[at++] & 128);
    value += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    values[index] = value;
  }
  return values;
}

/** Columns of one length by their names; `t` is the time in microseconds. */
async function table({ length, ...columns }) {
  const names = Object.keys(columns);
  const values = await Promise.all(names.map(name => unpack(columns[name], length, name === 't' ? Float64Array : Int32Array)));
  return { length, ...Object.fromEntries(names.map((name, index) => [name, values[index]])) };
}

/** The number of sorted values up to `limit`, of which there are `from` at least. */
function upTo(values, limit, from = 0) {
  let low = from, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1; else high = middle;
  }
  return low;
}

/** A quantity over time. Negative values are missing ones. */
class Series {
  constructor(t, values) {
    Object.assign(this, { t, values });
    const blocks = Math.ceil(t.length / BLOCK);
    this.low = new Float64Array(blocks).fill(Infinity);
    this.high = new Float64Array(blocks).fill(-Infinity);
    for (let index = 0; index < t.length; index++) {
      const value = values[index], block = index / BLOCK | 0;
      if (value < 0) continue;
      if (value < this.low[block]) this.low[block] = value;
      if (value > this.high[block]) this.high[block] = value;
    }
  }

  /** The least and the greatest value with an index in `[from, to)`. */
  extremes(from, to) {
    let low = Infinity, high = -Infinity;
    for (let index = Math.max(from, 0); index < to;) {
      const block = index / BLOCK | 0, isWhole = index % BLOCK === 0 && index + BLOCK <= to;
      const value = this.values[index];
      if (isWhole || value >= 0) {
        low = Math.min(low, isWhole ? this.low[block] : value);
        high = Math.max(high, isWhole ? this.high[block] : value);
      }
      index += isWhole ? BLOCK : 1;
    }
    return [low, high];
  }
}

/** Which of some categories holds over time. Negative values are none. */
class Band {
  constructor(t, values, end, count) {
    const changes = [];
    for (let index = 0; index < t.length; index++) if (index === 0 || values[index] !== values[index - 1]) changes.push(index);
    Object.assign(this, { t: Float64Array.from(changes, index => t[index]), values: Int32Array.from(changes, index => values[index]), end, count });
    // The time in each category before each block.
    this.before = [new Float64Array(count)];
    for (let from = 0; from < changes.length; from += BLOCK) {
      this.before.push(this.add(Float64Array.from(this.before.at(-1)), from, Math.min(from + BLOCK, changes.length), Infinity));
    }
  }

  add(times, from, to, until) {
    for (let index = from; index < to; index++) {
      const next = Math.min(this.t[index + 1] ?? this.end, until);
      if (this.values[index] >= 0) times[this.values[index]] += Math.max(next - this.t[index], 0);
    }
    return times;
  }

  /** The time in each category until `at`. */
  until(at) {
    const index = upTo(this.t, at), block = Math.max(index - 1, 0) / BLOCK | 0;
    return this.add(Float64Array.from(this.before[block]), block * BLOCK, index, at);
  }

  at(time) {
    const index = upTo(this.t, time) - 1;
    return index < 0 ? -1 : this.values[index];
  }
}
