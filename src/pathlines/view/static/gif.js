// @ts-check
/**
 * Films as GIF, which every slide and every chat shows: one palette for all pictures by median cut, what does not change
 * left transparent, LZW as the format has it (GIF89a). No thread and no library: some ten pictures of 640 × 400 a second.
 */

/** Colours of five bits a channel. */
const CELLS = 32768;
/** The palette's last place stands for "as before". */
const SAME = 255;
/** Codes of the format have at most twelve bits. */
const MOST_CODES = 4096;

/**
 * @param {ArrayLike<number>} pixels red, green, blue, alpha
 * @param {number} at
 */
function cellOf(pixels, at) {
  return ((pixels[at] >> 3) << 10) | ((pixels[at + 1] >> 3) << 5) | (pixels[at + 2] >> 3);
}

/**
 * At most 255 colours for these pictures, by median cut of the colours that occur, weighed by the root of how often:
 * a small token keeps its colour beside a large background.
 * @param {ArrayLike<number>[]} pictures
 * @returns {Uint8Array} three bytes a colour, 256 of them
 */
export function paletteOf(pictures) {
  const count = new Float64Array(CELLS);
  for (const pixels of pictures) for (let at = 0; at < pixels.length; at += 4) count[cellOf(pixels, at)] += 1;
  const channel = (/** @type {number} */ cell, /** @type {number} */ c) => (cell >> (5 * (2 - c))) & 31;
  /** @type {number[][]} */
  let boxes = [[...count.keys()].filter((cell) => count[cell] > 0)];
  const spread = (/** @type {number[]} */ box) => {
    const wide = [0, 1, 2].map((c) => {
      let [low, high] = [31, 0];
      for (const cell of box) [low, high] = [Math.min(low, channel(cell, c)), Math.max(high, channel(cell, c))];
      return high - low;
    });
    const most = Math.max(...wide);
    const weight = box.reduce((sum, cell) => sum + Math.sqrt(count[cell]), 0);
    return { most, along: wide.indexOf(most), worth: most * Math.sqrt(weight) };
  };
  let known = boxes.map(spread);
  while (boxes.length < SAME) {
    const next = known.reduce((best, s, k) => (s.most > 0 && (best < 0 || s.worth > known[best].worth) ? k : best), -1);
    if (next < 0) break;
    const { along } = known[next];
    const box = boxes[next].sort((a, b) => channel(a, along) - channel(b, along));
    const half = box.reduce((sum, cell) => sum + Math.sqrt(count[cell]), 0) / 2;
    let [sum, cut] = [0, 0];
    while (cut < box.length - 1 && (sum < half || cut === 0)) sum += Math.sqrt(count[box[cut++]]);
    const parts = [box.slice(0, cut), box.slice(cut)];
    boxes = [...boxes.slice(0, next), ...parts, ...boxes.slice(next + 1)];
    known = [...known.slice(0, next), ...parts.map(spread), ...known.slice(next + 1)];
  }
  const palette = new Uint8Array(3 * 256);
  boxes.forEach((box, k) => {
    const total = box.reduce((sum, cell) => sum + count[cell], 0);
    for (let c = 0; c < 3; c += 1) {
      const mean = box.reduce((sum, cell) => sum + count[cell] * channel(cell, c), 0) / total;
      palette[3 * k + c] = Math.round((mean * 255) / 31);
    }
  });
  return palette;
}

/**
 * The bytes of LZW codes of at first eight bits, in blocks of at most 255 bytes.
 * @param {Uint8Array} indices
 * @returns {number[]}
 */
export function lzw(indices) {
  /** @type {number[]} */
  const bytes = [];
  let [held, bits] = [0, 0];
  const put = (/** @type {number} */ code, /** @type {number} */ wide) => {
    held |= code << bits;
    bits += wide;
    while (bits >= 8) {
      bytes.push(held & 255);
      held >>>= 8;
      bits -= 8;
    }
  };
  const [clear, end] = [256, 257];
  let [next, wide] = [258, 9];
  /** The code of a string and one more letter, at 256 · code + letter. */
  let codes = new Uint16Array(MOST_CODES * 256);
  put(clear, wide);
  let code = indices[0];
  for (let k = 1; k < indices.length; k += 1) {
    const at = 256 * code + indices[k];
    if (codes[at]) {
      code = codes[at];
      continue;
    }
    put(code, wide);
    if (next < MOST_CODES) {
      codes[at] = next;
      if (next === 1 << wide) wide += 1;
      next += 1;
    } else {
      put(clear, wide);
      codes = codes.fill(0);
      [next, wide] = [258, 9];
    }
    code = indices[k];
  }
  put(code, wide);
  put(end, wide);
  if (bits > 0) bytes.push(held & 255);
  const blocks = [];
  for (let k = 0; k < bytes.length; k += 255) {
    const part = bytes.slice(k, k + 255);
    blocks.push(part.length, ...part);
  }
  return [...blocks, 0];
}

/** Puts a film together, picture by picture. */
export class GifFilm {
  /**
   * @param {number} width
   * @param {number} height
   * @param {Uint8Array} palette
   * @param {number} hundredths of a second that a picture stays
   */
  constructor(width, height, palette, hundredths) {
    [this.width, this.height, this.palette, this.hundredths] = [width, height, palette, hundredths];
    /** @type {Int16Array} the palette's place of a colour, once it was asked for */
    this.places = new Int16Array(CELLS).fill(-1);
    /** @type {Uint8Array|null} */
    this.before = null;
    const two = (/** @type {number} */ n) => [n & 255, n >> 8];
    /** @type {Uint8Array[]} */
    this.parts = [Uint8Array.from([
      ...[...'GIF89a'].map((c) => c.charCodeAt(0)), ...two(width), ...two(height), 0xf7, 0, 0, ...palette,
      0x21, 0xff, 11, ...[...'NETSCAPE2.0'].map((c) => c.charCodeAt(0)), 3, 1, 0, 0, 0,
    ])];
  }

  /** @param {number} cell */
  #place(cell) {
    if (this.places[cell] >= 0) return this.places[cell];
    const [r, g, b] = [cell >> 10, (cell >> 5) & 31, cell & 31].map((v) => (v * 255) / 31);
    let [best, least] = [0, Infinity];
    for (let k = 0; k < SAME; k += 1) {
      const { palette } = this;
      const far = (palette[3 * k] - r) ** 2 + (palette[3 * k + 1] - g) ** 2 + (palette[3 * k + 2] - b) ** 2;
      if (far < least) [best, least] = [k, far];
    }
    this.places[cell] = best;
    return best;
  }

  /** @param {ArrayLike<number>} pixels red, green, blue, alpha */
  add(pixels) {
    const count = this.width * this.height;
    const now = new Uint8Array(count);
    const told = new Uint8Array(count);
    for (let k = 0; k < count; k += 1) {
      now[k] = this.#place(cellOf(pixels, 4 * k));
      told[k] = this.before && this.before[k] === now[k] ? SAME : now[k];
    }
    this.before = now;
    const two = (/** @type {number} */ n) => [n & 255, n >> 8];
    this.parts.push(Uint8Array.from([
      0x21, 0xf9, 4, 0x05, ...two(this.hundredths), SAME, 0, 0x2c, 0, 0, 0, 0, ...two(this.width), ...two(this.height), 0, 8,
    ]), Uint8Array.from(lzw(told)));
  }

  /** @returns {Uint8Array[]} the film */
  finished() {
    return [...this.parts, Uint8Array.from([0x3b])];
  }
}
