// @ts-check
/**
 * Observables over the clock of the run: one panel each, theory dashed, labels at the lines and not in a legend, values
 * where the pointer is. Panels are texts of SVG made by pure functions, so that what is saved is what is seen.
 */
import { dress } from './dress.js';
import { placeOf, valueAt } from './frames.js';
import { decadesOf, formatNumber, ticksOf } from './numbers.js';
import { themeOf } from './palette.js';

/** @typedef {import('./frames.js').FramesData} FramesData */
/** @typedef {import('./frames.js').Curve} Curve */
/** @typedef {import('./palette.js').Theme} Theme */
/** @typedef {{low: number, high: number, log: boolean, from: number, to: number}} Scale */

const LEFT = 54;
const RIGHT = 14;
const TOP = 34;
const BOTTOM = 30;
const SANS = 'system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif';

/** @param {string} text */
export function escapeXml(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/**
 * A symbol with its indices lowered: E_β, E_max. An index is one letter, or a word of Latin letters and digits.
 * @param {string} symbol
 * @returns {string} SVG
 */
export function lowered(symbol) {
  return escapeXml(symbol).replace(/_([A-Za-z0-9]+|\S)(\S?)/g, '<tspan dy="3" font-size="9">$1</tspan><tspan dy="-3">\u200b$2</tspan>');
}

/**
 * @param {Scale} scale
 * @param {number} value
 */
export function toPixel({ low, high, log, from, to }, value) {
  const [a, b, v] = log ? [Math.log(low), Math.log(high), Math.log(value)] : [low, high, value];
  return from + ((v - a) / (b - a || 1)) * (to - from);
}

/**
 * @param {Scale} scale
 * @param {number} pixel
 */
export function fromPixel({ low, high, log, from, to }, pixel) {
  const s = (pixel - from) / (to - from);
  return log ? low * (high / low) ** s : low + s * (high - low);
}

/**
 * The scale of the values of a curve, with air above and below.
 * @param {Curve} curve
 * @param {number} height
 * @returns {Scale}
 */
export function valueScale(curve, height) {
  const all = [curve.values, curve.lower ?? [], curve.upper ?? [], curve.theory?.values ?? []].flat();
  const log = curve.scale === 'log';
  const known = /** @type {number[]} */ (all.filter((v) => v !== null && Number.isFinite(v) && (!log || v > 0)));
  let low = known.reduce((a, b) => Math.min(a, b), Infinity);
  let high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!known.length) [low, high] = log ? [0.1, 1] : [0, 1];
  const least = 1e-9 * Math.max(Math.abs(low), Math.abs(high), 1e-300);
  if (log) [low, high] = high > low * 1.001 ? [low, high] : [low / 2, high * 2];
  else if (high - low <= least) [low, high] = [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  else [low, high] = [low - 0.06 * (high - low), high + 0.06 * (high - low)];
  return { low, high, log, from: height - BOTTOM, to: TOP };
}

/**
 * The scale of the clock.
 * @param {FramesData} data
 * @param {number} width
 * @returns {Scale}
 */
export function clockScale(data, width) {
  const last = data.times[data.times.length - 1];
  const log = data.clock?.scale === 'log';
  const first = log ? data.times.find((t) => t > 0) ?? 1e-3 : data.times[0];
  return { low: first, high: last > first ? last : first + 1, log, from: LEFT, to: width - RIGHT };
}

/**
 * @param {ArrayLike<number>} times
 * @param {ArrayLike<number|null>} values
 * @param {Scale} x
 * @param {Scale} y
 * @param {boolean} [steps] whether values last until the next one
 * @returns {string} the path of a line, broken where values are missing
 */
export function linePath(times, values, x, y, steps = false) {
  let pen = 'M';
  let path = '';
  for (let k = 0; k < times.length; k += 1) {
    const v = values[k];
    if (v === null || !Number.isFinite(v) || (y.log && v <= 0) || (x.log && times[k] <= 0)) {
      pen = 'M';
      continue;
    }
    if (steps && pen === 'L') path += `H${toPixel(x, times[k]).toFixed(2)}`;
    path += `${pen}${toPixel(x, times[k]).toFixed(2)} ${toPixel(y, v).toFixed(2)}`;
    pen = 'L';
  }
  return path;
}

/**
 * Whether a curve counts something: it then jumps, and has no values in between.
 * @param {Curve} curve
 */
export function counts(curve) {
  return curve.values.every((v) => v === null || Number.isInteger(v));
}

/**
 * @param {Curve} curve
 * @param {Scale} x
 * @param {Scale} y
 */
function bandPath(curve, x, y) {
  const upper = linePath(curve.times, curve.upper ?? [], x, y);
  const lower = linePath([...curve.times].reverse(), [...(curve.lower ?? [])].reverse(), x, y);
  return upper && lower ? `${upper}${lower.replace('M', 'L')}Z` : '';
}

/**
 * @param {Scale} scale
 * @param {number} about
 */
export function marks(scale, about) {
  const decades = scale.log ? decadesOf(scale.low, scale.high, about) : [];
  if (scale.log && scale.high < 30 * scale.low) return ticksOf(scale.low, scale.high, about).filter((v) => v > 0);
  return decades.length > 1 ? decades : ticksOf(scale.low, scale.high, about).filter((v) => !scale.log || v > 0);
}

/**
 * One panel as SVG elements.
 * @param {FramesData} data
 * @param {Curve} curve
 * @param {number} width
 * @param {number} height
 * @param {Theme} theme
 * @param {boolean} last whether the clock is written under it
 */
export function panelOf(data, curve, width, height, theme, last) {
  const x = clockScale(data, width);
  const y = valueScale(curve, height);
  const line = (/** @type {number[]} */ [a, b, c, d], /** @type {string} */ more) =>
    `<line x1="${a.toFixed(1)}" y1="${b.toFixed(1)}" x2="${c.toFixed(1)}" y2="${d.toFixed(1)}" ${more}/>`;
  const text = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ words, /** @type {string} */ more) =>
    `<text x="${a.toFixed(1)}" y="${b.toFixed(1)}" ${more}>${escapeXml(words)}</text>`;
  const parts = [];
  for (const v of marks(y, Math.max(2, (height - TOP - BOTTOM) / 34))) {
    if (counts(curve) && !Number.isInteger(v)) continue;
    const at = toPixel(y, v);
    parts.push(line([LEFT, at, width - RIGHT, at], `stroke="${theme.grid}"`));
    parts.push(text(LEFT - 7, at + 3.8, formatNumber(v), `fill="${theme.muted}" font-size="11" text-anchor="end"`));
  }
  for (const v of marks(x, Math.max(2, width / 90))) {
    const at = toPixel(x, v);
    parts.push(line([at, height - BOTTOM, at, height - BOTTOM + 4], `stroke="${theme.muted}"`));
    parts.push(text(at, height - BOTTOM + 16, formatNumber(v), `fill="${theme.muted}" font-size="11" text-anchor="middle"`));
  }
  parts.push(line([LEFT, height - BOTTOM, width - RIGHT, height - BOTTOM], `stroke="${theme.muted}"`));
  if (curve.lower && curve.upper) {
    parts.push(`<path d="${bandPath(curve, x, y)}" fill="${theme.line}" fill-opacity="0.2"/>`);
  }
  parts.push(`<path d="${linePath(curve.times, curve.values, x, y, counts(curve))}" fill="none" stroke="${theme.line}" stroke-width="2" stroke-linejoin="round"/>`);
  if (curve.theory) parts.push(theoryOf(curve.theory, x, y, theme, text));
  const symbol = curve.symbol ? `<tspan dx="7" fill="${theme.muted}" font-weight="400">${lowered(curve.symbol)}</tspan>` : '';
  parts.push(`<text x="0" y="15" fill="${theme.ink}" font-size="13" font-weight="600">${escapeXml(curve.label)}${symbol}</text>`);
  if (last) parts.push(text(width - RIGHT, height - 2, data.clock?.label ?? 'depth-time t', `fill="${theme.muted}" font-size="11" text-anchor="end"`));
  return { svg: parts.join(''), x, y };
}

/**
 * The dashed line of theory with its name beside it.
 * @param {import('./frames.js').Theory} theory
 * @param {Scale} x
 * @param {Scale} y
 * @param {Theme} theme
 * @param {(a: number, b: number, words: string, more: string) => string} text
 */
function theoryOf(theory, x, y, theme, text) {
  const path = linePath(theory.times, theory.values, x, y);
  const wanted = Math.round(placeOf(theory.times, fromPixel(x, 0.62 * x.to + 0.38 * x.from)));
  const known = [...theory.values.keys()].filter((k) => {
    const v = theory.values[k];
    return v !== null && Number.isFinite(v) && (!y.log || v > 0) && (!x.log || theory.times[k] > 0);
  });
  const middle = known.reduce((best, k) => (Math.abs(k - wanted) < Math.abs(best - wanted) ? k : best), known[0] ?? 0);
  const height = (/** @type {number} */ k) => (known.includes(k) ? toPixel(y, /** @type {number} */ (theory.values[k])) : NaN);
  const at = known.length ? height(middle) : y.to;
  const short = middle < wanted; // the name of a theory that ends early stands where it ends
  const slope = (height(middle + 4) || height(middle)) - (height(middle - 4) || height(middle)); // pixels, downwards
  const anchor = short || slope > 2 ? 'start' : slope < -2 ? 'end' : 'middle';
  const below = at < y.to + 26;
  const [aside, level] = short && slope < -2 ? [16, height(known[0]) - 2] : [short ? 5 : 0, at + (below ? 17 : -9)];
  const label = text(toPixel(x, theory.times[middle]) + aside, level, theory.label,
    `fill="${theme.ink}" font-size="11" font-style="italic" text-anchor="${anchor}" paint-order="stroke" stroke="${theme.paper}" stroke-width="3"`);
  return `<path d="${path}" fill="none" stroke="${theme.ink}" stroke-width="1.5" stroke-dasharray="6 3.5"/>${label}`;
}

/**
 * All panels under each other as one picture.
 * @param {FramesData} data
 * @param {number} width
 * @param {number} height of one panel
 * @param {Theme} theme
 * @returns {string}
 */
export function curvesPicture(data, width, height, theme) {
  const { curves } = data;
  const panels = curves.map((curve, k) => {
    const inside = panelOf(data, curve, width, height, theme, k === curves.length - 1).svg;
    return `<g transform="translate(16 ${16 + k * (height + 10)})">${inside}</g>`;
  });
  const [w, h] = [width + 32, curves.length * (height + 10) + 32];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="${SANS}">`
    + `<title>${escapeXml(data.title)}</title><rect width="100%" height="100%" fill="${theme.paper}"/>${panels.join('')}</svg>`;
}

/**
 * Show the observables of a run in an element.
 * @param {HTMLElement} element
 * @param {FramesData} data
 * @param {{theme?: 'auto'|'light'|'dark', onPick?: (time: number) => void}} [options] `onPick` is told the time that
 *   the reader points at and presses
 */
export function mountCurves(element, data, options = {}) {
  return new Curves(element, data, options);
}

export class Curves {
  /**
   * @param {HTMLElement} element
   * @param {FramesData} data
   * @param {{theme?: 'auto'|'light'|'dark', onPick?: (time: number) => void}} options
   */
  constructor(element, data, options) {
    this.data = data;
    this.options = options;
    this.theme = themeOf(options.theme);
    this.time = data.times[0];
    this.box = document.createElement('div');
    this.box.className = 'curves';
    dress(element).append(this.box);
    /** @type {{curve: Curve, x: Scale, y: Scale, rule: HTMLElement, dot: HTMLElement, value: HTMLElement}[]} */
    this.panels = [];
    this.width = 0;
    this.height = 0;
    this.watch = new ResizeObserver(() => this.#fit());
    this.watch.observe(this.box);
    this.#fit();
    this.box.addEventListener('pointermove', (event) => this.#hover(event));
    this.box.addEventListener('pointerleave', () => this.#mark(this.time));
    this.box.addEventListener('pointerdown', (event) => this.#pick(event));
  }

  /** Panels share the height of the box, neither squeezed nor stretched. */
  #fit() {
    const width = Math.max(240, this.box.clientWidth || 420);
    const count = this.data.curves.length;
    const free = (this.box.parentElement?.clientHeight || 0) / Math.max(1, count) - 10;
    const height = Math.round(Math.min(280, Math.max(132, free)));
    if (width === this.width && height === this.height && this.panels.length) return;
    [this.width, this.height] = [width, height];
    this.#render();
  }

  #render() {
    this.panels = [];
    this.box.replaceChildren(...this.data.curves.map((curve, k) => this.#panel(curve, k === this.data.curves.length - 1)));
    this.#mark(this.time);
  }

  /**
   * @param {Curve} curve
   * @param {boolean} last
   */
  #panel(curve, last) {
    const { width, height, theme } = this;
    const { svg, x, y } = panelOf(this.data, curve, width, height, theme, last);
    const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(`${curve.label} over time`)}">${svg}</svg>`;
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
    const element = document.createElement('div');
    element.className = 'panel';
    element.append(document.importNode(parsed, true));
    // What moves lies over the drawing, which then need not be painted again.
    const [rule, dot, value] = ['rule', 'dot', 'value'].map((name) => {
      const part = document.createElement(name === 'value' ? 'output' : 'i');
      part.className = name;
      element.append(part);
      return part;
    });
    rule.style.height = `${height - BOTTOM - TOP + 6}px`;
    rule.style.top = `${TOP - 6}px`;
    this.panels.push({ curve, x, y, rule, dot, value });
    return element;
  }

  /** @param {FramesData} data */
  setData(data) {
    this.data = data;
    this.width = 0;
    this.#fit();
  }

  /** @param {'auto'|'light'|'dark'} wish */
  setTheme(wish) {
    this.theme = themeOf(wish);
    this.#render();
  }

  /** @param {number} time */
  setTime(time) {
    this.time = time;
    this.#mark(time);
  }

  /** @param {number} time */
  #mark(time) {
    for (const { curve, x, y, rule, dot, value } of this.panels) {
      const place = placeOf(curve.times, time);
      const v = valueAt(curve.values, counts(curve) ? Math.floor(place) : place);
      const at = Math.min(x.to, Math.max(x.from, toPixel(x, Math.max(time, x.log ? x.low : time))));
      rule.style.transform = `translateX(${at.toFixed(2)}px)`;
      const shown = v !== null && Number.isFinite(v) && (!y.log || v > 0);
      const height = shown ? toPixel(y, /** @type {number} */ (v)) : -20;
      dot.style.transform = `translate(${at.toFixed(2)}px, ${height.toFixed(2)}px)`;
      const words = v === null ? '–' : formatNumber(v);
      if (value.textContent !== words) value.textContent = words;
    }
  }

  /**
   * @param {PointerEvent} event
   * @returns {number|null}
   */
  #timeAt(event) {
    const svg = /** @type {Element} */ (event.target).closest('.panel');
    if (!svg || !this.panels.length) return null;
    const box = svg.getBoundingClientRect();
    const { x } = this.panels[0];
    const pixel = ((event.clientX - box.left) / box.width) * this.width;
    return fromPixel(x, Math.min(x.to, Math.max(x.from, pixel)));
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const time = this.#timeAt(event);
    if (time === null) return;
    if (event.buttons && this.options.onPick) this.options.onPick(time);
    else this.#mark(time);
  }

  /** @param {PointerEvent} event */
  #pick(event) {
    const time = this.#timeAt(event);
    if (time !== null) this.options.onPick?.(time);
  }

  /** @returns {string} */
  curvesSvg() {
    return curvesPicture(this.data, this.width, this.height, this.theme);
  }

  destroy() {
    this.watch.disconnect();
    this.box.remove();
  }
}
