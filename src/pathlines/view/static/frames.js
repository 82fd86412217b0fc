// @ts-check
/**
 * A run as frames: decoded once, then read at any time. No dynamics here: between two frames tokens are interpolated,
 * on the sphere and the circle along the chord and back onto it.
 */

/**
 * @typedef {object} Theory
 * @property {number[]} times
 * @property {(number|null)[]} values
 * @property {string} label
 */
/**
 * @typedef {object} Curve an observable over the clock of the run
 * @property {string} name
 * @property {string} symbol
 * @property {string} label
 * @property {number[]} times
 * @property {(number|null)[]} values
 * @property {(number|null)[]} [lower]
 * @property {(number|null)[]} [upper]
 * @property {Theory} [theory]
 * @property {'linear'|'log'} [scale]
 */
/**
 * @typedef {object} Overlay what the papers draw over the tokens
 * @property {'polytope'|'hyperplane'|'centre'|'points'} kind
 * @property {number[][]} [points]
 * @property {number[][]} [edges] pairs of indices into `points`
 * @property {number[]} [normal]
 * @property {number} [offset]
 * @property {string} [label]
 */
/**
 * @typedef {object} FramesData
 * @property {'pathlines-frames/1'} format
 * @property {'sphere'|'circle'|'plane'|'space'|'ellipses'} space
 * @property {number} n
 * @property {number} components
 * @property {number[]} times
 * @property {{name: string, label: string, scale: 'linear'|'log'}} [clock]
 * @property {string} positions base64, little-endian, (frame, token, component)
 * @property {'int16'|'float32'} dtype
 * @property {number[]} [scale] value = offset + scale * stored, for each component
 * @property {number[]} [offset]
 * @property {number[]} [masses]
 * @property {string} [clusters] base64 of Uint16, (frame, token): the smallest token of its cluster
 * @property {string} [groups] what the clusters are instead, such as prompts: they have colours and no numbers
 * @property {Curve[]} curves
 * @property {string} [theory] what no theory is known for, in words
 * @property {Overlay[]} overlays
 * @property {string} title
 * @property {string} subtitle
 * @property {string} outcome
 * @property {string} command
 * @property {string} python
 * @property {string} alt
 */

export const FORMAT = 'pathlines-frames/1';
/** Okabe and Ito's categories; the last place is for all other clusters. */
export const CATEGORIES = 7;
/** How many times as long as another an axis is drawn at most; beyond, the short one is stretched. */
const LONGEST = 3;

/**
 * The bytes of a base64 text.
 * @param {string} text
 * @returns {ArrayBuffer}
 */
export function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes.buffer;
}

/**
 * The stored numbers, (frame, token, component).
 * @param {FramesData} data
 * @returns {Float32Array}
 */
export function decodePositions(data) {
  const bytes = bytesOf(data.positions);
  if (data.dtype === 'float32') return new Float32Array(bytes);
  const stored = new Int16Array(bytes);
  const { components } = data;
  const scale = data.scale ?? Array(components).fill(1);
  const offset = data.offset ?? Array(components).fill(0);
  const values = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i += 1) {
    const c = i % components;
    values[i] = offset[c] + scale[c] * stored[i];
  }
  return values;
}

/**
 * Where a time lies among ascending times: between place k and k + 1, at the fraction s.
 * @param {ArrayLike<number>} times
 * @param {number} time
 * @returns {number} k + s
 */
export function placeOf(times, time) {
  const last = times.length - 1;
  if (last < 1 || time <= times[0]) return 0;
  if (time >= times[last]) return last;
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle;
  }
  const width = times[high] - times[low];
  return low + (width > 0 ? (time - times[low]) / width : 0);
}

/**
 * A value between places of a list; null where one of its neighbours is missing.
 * @param {ArrayLike<number|null>} values
 * @param {number} place
 * @returns {number|null}
 */
export function valueAt(values, place) {
  const k = Math.min(Math.floor(place), values.length - 1);
  const s = place - k;
  const a = values[k];
  if (s <= 0 || k + 1 >= values.length) return a ?? null;
  const b = values[k + 1];
  return a === null || b === null ? null : a + s * (b - a);
}

/** The decoded frames, scaled so that everything that ever happens fits a ball of radius one. */
export class Frames {
  /** @param {FramesData} data */
  constructor(data) {
    if (data.format !== FORMAT) throw new Error(`These are no frames of Pathlines: ${String(data.format)}`);
    this.data = data;
    this.n = data.n;
    this.times = data.times;
    this.count = data.times.length;
    this.components = data.components;
    this.space = data.space;
    /** Whether tokens have length one, so that what lies between two frames has too. */
    this.unit = data.space === 'sphere' || data.space === 'circle';
    /** Whether there is a third dimension to turn. */
    this.deep = data.space === 'sphere' || data.space === 'space';
    this.raw = decodePositions(data);
    if (this.raw.length !== this.count * this.n * this.components) throw new Error('The frames are not complete.');
    /** @type {[number, number, number]} */
    this.centre = [0, 0, 0];
    /** What is one in the ball, for each axis: the same, unless one is much longer than another. */
    this.radii = [1, 1, 1];
    /** @type {[number, number, number]} */
    this.low = [-1, -1, -1];
    /** @type {[number, number, number]} */
    this.high = [1, 1, 1];
    if (!this.unit) this.#fit();
    this.world = this.#world();
    this.share = massShares(data.masses, this.n);
    this.labels = data.clusters ? new Uint16Array(bytesOf(data.clusters)) : null;
    const told = this.labels ? tellClusters(this.labels, this.n, this.share) : null;
    if (data.groups) told?.size.fill(0);
    this.category = told?.category ?? null;
    this.size = told?.size ?? null;
  }

  /** The box of all frames; an ellipse reaches two standard deviations from its mean. */
  #fit() {
    const { components, raw } = this;
    const axes = this.space === 'ellipses' ? 2 : components;
    const low = [Infinity, Infinity, Infinity];
    const high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < raw.length; i += components) {
      for (let c = 0; c < axes; c += 1) {
        const reach = this.space === 'ellipses' ? 2 * Math.sqrt(Math.max(0, raw[i + (c === 0 ? 2 : 4)])) : 0;
        low[c] = Math.min(low[c], raw[i + c] - reach);
        high[c] = Math.max(high[c], raw[i + c] + reach);
      }
    }
    let reach = 0;
    for (let c = 0; c < 3; c += 1) {
      if (c >= axes) [low[c], high[c]] = [0, 0];
      this.centre[c] = (low[c] + high[c]) / 2;
      reach = Math.max(reach, (high[c] - low[c]) / 2);
    }
    this.low = /** @type {[number, number, number]} */ (low);
    this.high = /** @type {[number, number, number]} */ (high);
    const air = this.deep ? 1.5 : 1.04;
    this.radii = [0, 1, 2].map((c) => {
      const half = (high[c] - low[c]) / 2;
      return air * (half > 0 && half * LONGEST < reach ? half * LONGEST : reach > 0 ? reach : 1);
    });
  }

  /** Three coordinates a token, in the ball of radius one. */
  #world() {
    const world = new Float32Array(this.count * this.n * 3);
    const axes = this.space === 'ellipses' ? 2 : Math.min(3, this.components);
    for (let i = 0; i < this.count * this.n; i += 1) {
      for (let c = 0; c < axes; c += 1) {
        world[3 * i + c] = (this.raw[i * this.components + c] - this.centre[c]) / this.radii[c];
      }
    }
    return world;
  }

  /**
   * A point of the run's own coordinates in the ball of radius one.
   * @param {ArrayLike<number>} point
   * @returns {[number, number, number]}
   */
  toWorld(point) {
    const at = (/** @type {number} */ c) => ((point[c] ?? this.centre[c]) - this.centre[c]) / this.radii[c];
    return [at(0), at(1), at(2)];
  }

  /**
   * Where token i is at the place k + s of the frames.
   * @param {number} i
   * @param {number} place
   * @param {Float32Array|number[]} out
   */
  pointAt(i, place, out) {
    const k = Math.min(Math.floor(place), this.count - 1);
    const s = place - k;
    const a = 3 * (k * this.n + i);
    const b = k + 1 < this.count ? a + 3 * this.n : a;
    const { world } = this;
    for (let c = 0; c < 3; c += 1) out[c] = world[a + c] + s * (world[b + c] - world[a + c]);
    if (this.unit) {
      const length = Math.hypot(out[0], out[1], out[2]) || 1;
      for (let c = 0; c < 3; c += 1) out[c] /= length;
    }
  }

  /**
   * The clusters at a place, the heaviest first; none where there are no labels.
   * @param {number} place
   * @returns {{token: number, share: number, count: number}[]}
   */
  clustersAt(place) {
    if (!this.labels) return [];
    const start = Math.round(Math.min(Math.max(place, 0), this.count - 1)) * this.n;
    const count = new Map();
    for (let i = 0; i < this.n; i += 1) {
      const label = this.labels[start + i];
      const found = count.get(label) ?? { token: label, share: 0, count: 0 };
      found.share += this.share[i];
      found.count += 1;
      count.set(label, found);
    }
    return [...count.values()].sort((a, b) => b.share - a.share || a.token - b.token);
  }
}

/**
 * The share of each token in the mass.
 * @param {number[]|undefined} masses
 * @param {number} n
 * @returns {Float64Array}
 */
export function massShares(masses, n) {
  const share = new Float64Array(n).fill(1 / n);
  if (!masses) return share;
  const total = masses.reduce((sum, m) => sum + m, 0);
  return total > 0 ? share.map((_, i) => masses[i] / total) : share;
}

/**
 * The colour and the size of every token in every frame. A cluster is drawn by its smallest token, as large as its
 * mass; the clusters that hold most mass for longest have colours of their own, so that a colour never changes hands.
 * @param {Uint16Array} labels
 * @param {number} n
 * @param {Float64Array} share
 * @returns {{category: Uint8Array, size: Uint8Array}}
 */
export function tellClusters(labels, n, share) {
  const count = labels.length / n;
  const mass = new Float64Array(n);
  const importance = new Float64Array(n);
  const size = new Uint8Array(labels.length);
  const alone = new Uint8Array(labels.length);
  const members = new Uint32Array(n);
  for (let f = 0; f < count; f += 1) {
    mass.fill(0);
    members.fill(0);
    for (let i = 0; i < n; i += 1) {
      mass[labels[f * n + i]] += share[i];
      members[labels[f * n + i]] += 1;
    }
    for (let i = 0; i < n; i += 1) {
      if (members[i] > 1) {
        importance[i] += mass[i];
        size[f * n + i] = Math.round(255 * Math.sqrt(Math.min(1, mass[i])));
      }
      alone[f * n + i] = members[labels[f * n + i]] > 1 ? 0 : 1;
    }
  }
  const first = [...importance.keys()].filter((i) => importance[i] > 0);
  first.sort((a, b) => importance[b] - importance[a] || a - b);
  const colour = new Uint8Array(n).fill(CATEGORIES);
  first.slice(0, CATEGORIES).forEach((label, place) => {
    colour[label] = place;
  });
  const category = labels.map((label, at) => (alone[at] ? CATEGORIES : colour[label]));
  return { category: Uint8Array.from(category), size };
}
