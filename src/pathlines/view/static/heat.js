// @ts-check
/** A number over two axes as a map of colours, with values where the pointer is and lines or points over it. */
import { escapeXml, fromPixel, lowered, marks, toPixel } from './curves.js';
import { formatNumber } from './numbers.js';
import { oklch, themeOf } from './palette.js';

/** @typedef {import('./curves.js').Scale} Scale */
/** @typedef {{label: string, symbol?: string, values: number[], scale?: 'linear'|'log'}} Axis */
/**
 * @typedef {object} Heat
 * @property {string} title
 * @property {string} alt
 * @property {string} label of the values
 * @property {Axis} x
 * @property {Axis} y
 * @property {(number|null)[][]} values rows over y
 * @property {boolean} [square] whether a step in x is as long as one in y
 * @property {number[][]} [dots]
 * @property {{points: number[][], label: string}[]} [lines]
 */

const LEFT = 58;
const RIGHT = 96;
const TOP = 12;
const BOTTOM = 46;
const SANS = 'system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif';

/**
 * A colour from the paper's own to a strong one: lightness runs one way, so that it survives any printer and eye.
 * @param {number} share from 0 to 1
 * @param {boolean} dark
 */
export function shadeOf(share, dark) {
  const t = Math.min(1, Math.max(0, share));
  const hue = dark ? 4.5 - 2.6 * t : 1.95 + 2.6 * t;
  return oklch(dark ? 0.16 + 0.76 * t : 0.985 - 0.63 * t, 0.015 + 0.12 * Math.sin(Math.PI * Math.min(0.88, t)), hue);
}

/**
 * Halfway between neighbours, and as far beyond the ends.
 * @param {number[]} values
 * @param {boolean} log
 * @returns {[number, number]} the first edge and the last
 */
export function edgesOf(values, log) {
  const v = log ? values.map(Math.log) : values;
  const n = v.length;
  if (n < 2) return log ? [values[0] / 2, values[0] * 2] : [values[0] - 0.5, values[0] + 0.5];
  const ends = [v[0] - (v[1] - v[0]) / 2, v[n - 1] + (v[n - 1] - v[n - 2]) / 2];
  return /** @type {[number, number]} */ (log ? ends.map(Math.exp) : ends);
}

/**
 * The place of the value nearest to another, on its own scale.
 * @param {number[]} values
 * @param {number} at
 * @param {boolean} log
 */
export function cellOf(values, at, log) {
  const u = log ? Math.log(at) : at;
  let best = 0;
  for (let k = 1; k < values.length; k += 1) {
    const [a, b] = log ? [Math.log(values[k]), Math.log(values[best])] : [values[k], values[best]];
    if (Math.abs(a - u) < Math.abs(b - u)) best = k;
  }
  return best;
}

/**
 * @param {Heat} heat
 * @returns {[number, number]}
 */
export function extentOf(heat) {
  let [low, high] = [Infinity, -Infinity];
  for (const row of heat.values) {
    for (const v of row) {
      if (v === null || !Number.isFinite(v)) continue;
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  }
  return Number.isFinite(low) ? [low, high] : [0, 1];
}

export class HeatMap {
  /**
   * @param {HTMLElement} element
   * @param {Heat} heat
   * @param {{onPick?: (column: number, row: number) => void}} [options]
   */
  constructor(element, heat, options = {}) {
    this.heat = heat;
    this.options = options;
    this.box = document.createElement('figure');
    this.box.className = 'chart heat';
    this.head = document.createElement('figcaption');
    this.picture = document.createElement('div');
    this.picture.className = 'drawing';
    this.box.append(this.head, this.picture);
    element.append(this.box);
    this.width = 0;
    this.watch = new ResizeObserver(() => this.#fit());
    this.watch.observe(this.box);
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setFigure(this.heat));
    this.picture.addEventListener('pointermove', (event) => this.#hover(event));
    this.picture.addEventListener('pointerleave', () => { this.where.textContent = ''; });
    this.picture.addEventListener('click', (event) => {
      const found = this.#at(event);
      if (found) this.options.onPick?.(found[0], found[1]);
    });
    this.where = document.createElement('output');
    this.where.setAttribute('aria-live', 'polite');
    /** @type {[number, number]} the cell that arrow keys have reached */
    this.cell = [0, 0];
    this.picture.tabIndex = 0;
    this.picture.addEventListener('keydown', (event) => this.#press(event));
    this.setFigure(heat);
  }

  /** @param {Heat} heat */
  setFigure(heat) {
    this.heat = heat;
    this.width = 0;
    this.cell = [0, 0];
    this.picture.setAttribute('aria-label', `${heat.alt} Arrow keys read values.`);
    this.picture.setAttribute('role', 'application');
    this.#fit();
  }

  #fit() {
    const width = Math.max(280, this.box.clientWidth || 600);
    if (width === this.width) return;
    this.width = width;
    const { heat } = this;
    const title = document.createElement('h2');
    title.textContent = heat.title;
    this.head.replaceChildren(title, this.where);
    this.picture.innerHTML = this.#drawing(width, themeOf('auto').dark);
    this.picture.style.cursor = this.options.onPick ? 'pointer' : 'crosshair';
  }

  /** @param {number} width */
  #scales(width) {
    const { heat } = this;
    const [xlog, ylog] = [heat.x.scale === 'log', heat.y.scale === 'log'];
    const [x0, x1] = edgesOf(heat.x.values, xlog);
    const [y0, y1] = edgesOf(heat.y.values, ylog);
    const across = width - LEFT - RIGHT;
    const down = heat.square ? Math.min(560, (across * (y1 - y0)) / (x1 - x0)) : Math.min(430, Math.max(200, 0.62 * across));
    const used = heat.square ? (down * (x1 - x0)) / (y1 - y0) : across;
    const height = TOP + down + BOTTOM;
    /** @type {{x: Scale, y: Scale, height: number}} */
    const found = {
      x: { low: x0, high: x1, log: xlog, from: LEFT, to: LEFT + used },
      y: { low: y0, high: y1, log: ylog, from: TOP + down, to: TOP },
      height,
    };
    return found;
  }

  /**
   * The map as the address of a picture.
   * @param {Scale} x
   * @param {Scale} y
   * @param {boolean} dark
   */
  #cells(x, y, dark) {
    const { heat } = this;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [Math.round(x.to - x.from), Math.round(y.from - y.to)];
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    const image = pen.createImageData(canvas.width, canvas.height);
    const [low, high] = extentOf(heat);
    const columns = Array.from({ length: canvas.width }, (_, i) => cellOf(heat.x.values, fromPixel(x, x.from + i + 0.5), x.log));
    const rows = Array.from({ length: canvas.height }, (_, j) => cellOf(heat.y.values, fromPixel(y, y.to + j + 0.5), y.log));
    const shades = Array.from({ length: 256 }, (_, k) => shadeOf(k / 255, dark).map((v) => Math.round(255 * v)));
    for (let j = 0; j < canvas.height; j += 1) {
      const row = heat.values[rows[j]];
      for (let i = 0; i < canvas.width; i += 1) {
        const v = row[columns[i]];
        if (v === null || !Number.isFinite(v)) continue;
        const shade = shades[Math.round((255 * (v - low)) / (high - low || 1))];
        image.data.set([shade[0], shade[1], shade[2], 255], 4 * (j * canvas.width + i));
      }
    }
    pen.putImageData(image, 0, 0);
    return canvas.toDataURL();
  }

  /**
   * @param {number} width
   * @param {boolean} dark
   */
  #drawing(width, dark) {
    const { heat } = this;
    const theme = themeOf(dark ? 'dark' : 'light');
    const { x, y, height } = this.#scales(width);
    const [low, high] = extentOf(heat);
    const text = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ words, /** @type {string} */ more) => `<text x="${a.toFixed(1)}" y="${b.toFixed(1)}" font-size="11.5" ${more}>${words}</text>`;
    const parts = [`<image href="${this.#cells(x, y, dark)}" x="${x.from}" y="${y.to}" width="${x.to - x.from}" height="${y.from - y.to}" preserveAspectRatio="none"/>`];
    for (const v of marks(x, Math.max(2, (x.to - x.from) / 70))) parts.push(text(toPixel(x, v), y.from + 17, formatNumber(v), `fill="${theme.muted}" text-anchor="middle"`));
    for (const v of marks(y, Math.max(2, (y.from - y.to) / 50))) parts.push(text(x.from - 7, toPixel(y, v) + 4, formatNumber(v), `fill="${theme.muted}" text-anchor="end"`));
    parts.push(text((x.from + x.to) / 2, height - 8, lowered(heat.x.label), `fill="${theme.muted}" text-anchor="middle"`));
    parts.push(`<text transform="translate(13 ${((y.from + y.to) / 2).toFixed(1)}) rotate(-90)" font-size="11.5" fill="${theme.muted}" text-anchor="middle">${lowered(heat.y.label)}</text>`);
    parts.push(`<rect x="${x.from}" y="${y.to}" width="${x.to - x.from}" height="${y.from - y.to}" fill="none" stroke="${theme.grid}"/>`);
    const clip = `<clipPath id="inside"><rect x="${x.from}" y="${y.to}" width="${x.to - x.from}" height="${y.from - y.to}"/></clipPath>`;
    const over = (heat.lines ?? []).map((l) => `<polyline points="${l.points.map(([a, b]) => `${toPixel(x, a).toFixed(1)},${toPixel(y, b).toFixed(1)}`).join(' ')}" fill="none" stroke="${theme.mark}" stroke-width="1.3" stroke-dasharray="6 4"><title>${escapeXml(l.label)}</title></polyline>`);
    over.push(...(heat.dots ?? []).map(([a, b]) => `<circle cx="${toPixel(x, a).toFixed(1)}" cy="${toPixel(y, b).toFixed(1)}" r="1.7" fill="${theme.ink}" fill-opacity="0.55"/>`));
    parts.push(`${clip}<g clip-path="url(#inside)">${over.join('')}</g>`);
    const bar = x.to + 18;
    const steps = Array.from({ length: 64 }, (_, k) => `<rect x="${bar}" y="${(y.from - ((k + 1) / 64) * (y.from - y.to)).toFixed(2)}" width="12" height="${((y.from - y.to) / 64 + 0.6).toFixed(2)}" fill="rgb(${shadeOf(k / 63, dark).map((v) => Math.round(255 * v)).join(',')})"/>`);
    parts.push(...steps, text(bar + 17, y.from, formatNumber(low > 0 && low < 1e-6 * high ? 0 : low, 3), `fill="${theme.muted}"`), text(bar + 17, y.to + 9, formatNumber(high, 3), `fill="${theme.muted}"`));
    parts.push(text(bar + 17, (y.from + y.to) / 2 + 4, lowered(heat.label), `fill="${theme.muted}"`));
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height.toFixed(0)}" width="${width}" height="${height.toFixed(0)}" role="img" aria-label="${escapeXml(heat.alt)}" font-family="${SANS}">${parts.join('')}</svg>`;
  }

  /**
   * @param {MouseEvent} event
   * @returns {[number, number]|null} column and row
   */
  #at(event) {
    const { heat } = this;
    const { x, y } = this.#scales(this.width);
    const box = this.picture.getBoundingClientRect();
    const [a, b] = [event.clientX - box.left, event.clientY - box.top];
    if (a < x.from || a > x.to || b < y.to || b > y.from) return null;
    return [cellOf(heat.x.values, fromPixel(x, a), x.log), cellOf(heat.y.values, fromPixel(y, b), y.log)];
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const { values } = this.heat;
    const [column, row] = this.cell;
    if (event.key === 'Enter') this.options.onPick?.(column, row);
    const steps = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] });
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    this.cell = [Math.min(values[0].length - 1, Math.max(0, column + step[0])), Math.min(values.length - 1, Math.max(0, row + step[1]))];
    this.#read(this.cell);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const found = this.#at(event);
    if (found) this.cell = found;
    this.#read(found);
  }

  /** @param {[number, number]|null} found */
  #read(found) {
    const { heat } = this;
    if (!found) {
      this.where.textContent = '';
      return;
    }
    const [column, row] = found;
    const value = heat.values[row][column];
    const said = (/** @type {Axis} */ axis, /** @type {number} */ k) => `${axis.symbol ?? axis.label} = ${formatNumber(axis.values[k])}`;
    this.where.textContent = `${said(heat.x, column)}, ${said(heat.y, row)}: ${value === null ? '–' : formatNumber(value)}`;
  }

  /** @returns {string} the drawing as a file */
  svg() {
    const { dark, paper } = themeOf('auto');
    return this.#drawing(Math.max(640, this.width), dark).replace('>', `><rect width="100%" height="100%" fill="${paper}"/>`);
  }

  destroy() {
    this.watch.disconnect();
    this.box.remove();
  }
}
