// @ts-check
/**
 * Figures of a page from numbers: lines, bands, stacked areas, labels with the value where the pointer is. The drawing is
 * a text of SVG made by a pure function, so that what is saved is what is seen.
 */
import { escapeXml, fromPixel, linePath, lowered, marks, toPixel } from './curves.js';
import { formatNumber } from './numbers.js';
import { cssOf, themeOf } from './palette.js';

/** @typedef {import('./palette.js').Theme} Theme */
/** @typedef {import('./curves.js').Scale} Scale */
/**
 * @typedef {object} Line
 * @property {string} label
 * @property {number[]} x
 * @property {(number|null)[]} y
 * @property {'solid'|'dashed'|'dotted'|'points'} [kind] theory is dashed
 * @property {number} [colour] of the palette; without one, ink
 * @property {(number|null)[]} [lower]
 * @property {(number|null)[]} [upper]
 */
/** @typedef {{label: string, values: number[], colour: number}} Area part of a stack: those above zero go up, others down */
/** @typedef {{x: number, y: number, label: string}} Mark */
/**
 * @typedef {object} Figure
 * @property {string} title
 * @property {string} [symbol]
 * @property {string} alt what it shows, in words
 * @property {{label: string, scale?: 'linear'|'log', symbol?: string}} x
 * @property {{scale?: 'linear'|'log', low?: number, high?: number}} [y]
 * @property {Line[]} lines
 * @property {{x: number[], areas: Area[]}} [stack]
 * @property {Mark[]} [points]
 * @property {{at: number, label: string}} [level] a horizontal line
 * @property {number} [height]
 */

const LEFT = 58;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 44;
const SANS = 'system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif';
const DASHES = { solid: '', points: '', dashed: ' stroke-dasharray="6 3.5"', dotted: ' stroke-dasharray="1.5 3.5"' };

/**
 * The stack as lower and upper edges of each part.
 * @param {NonNullable<Figure['stack']>} stack
 */
export function stacked(stack) {
  const [up, down] = [stack.x.map(() => 0), stack.x.map(() => 0)];
  return stack.areas.map((area) => {
    const lower = [];
    const upper = [];
    for (const [k, v] of area.values.entries()) {
      const base = v >= 0 ? up : down;
      lower.push(base[k]);
      base[k] += v;
      upper.push(base[k]);
    }
    return { ...area, lower, upper };
  });
}

/**
 * @param {number[]} values
 * @param {boolean} log
 * @param {number} air a share of the range
 * @returns {[number, number]}
 */
function range(values, log, air) {
  const known = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  if (!known.length) return log ? [0.1, 1] : [0, 1];
  const low = known.reduce((a, b) => Math.min(a, b));
  const high = known.reduce((a, b) => Math.max(a, b));
  if (log) return high > low ? [low, high] : [low / 2, high * 2];
  if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high))) return [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  return [low - air * (high - low), high + air * (high - low)];
}

/**
 * @param {Figure} figure
 * @param {number} width
 * @param {number} height
 * @returns {{x: Scale, y: Scale}}
 */
export function scalesOf(figure, width, height) {
  const { stack } = figure;
  const xs = [...figure.lines.flatMap((l) => l.x), ...(stack?.x ?? [])];
  const parts = stack ? stacked(stack).flatMap((a) => [...a.lower, ...a.upper]) : [];
  const ys = [...figure.lines.flatMap((l) => [...l.y, ...(l.lower ?? []), ...(l.upper ?? [])]), ...parts, ...(figure.level ? [figure.level.at] : [])];
  const logs = { x: figure.x.scale === 'log', y: figure.y?.scale === 'log' };
  const [x0, x1] = range(xs, logs.x, 0);
  const [y0, y1] = range(/** @type {number[]} */ (ys.filter((v) => v !== null)), logs.y, 0.06);
  return {
    x: { low: x0, high: x1, log: logs.x, from: LEFT, to: width - RIGHT },
    y: { low: figure.y?.low ?? y0, high: figure.y?.high ?? y1, log: logs.y, from: height - BOTTOM, to: TOP },
  };
}

/**
 * @param {Theme} theme
 * @param {number|undefined} colour
 */
export function inkOf(theme, colour) {
  return colour === undefined ? theme.ink : cssOf(theme.clusters[colour % theme.clusters.length]);
}

/**
 * @param {ArrayLike<number>} x
 * @param {(number|null)[]} lower
 * @param {(number|null)[]} upper
 * @param {{x: Scale, y: Scale}} scales
 */
function between(x, lower, upper, scales) {
  const back = (/** @type {any} */ v) => [...v].reverse();
  const [over, under] = [linePath(x, upper, scales.x, scales.y), linePath(back(x), back(lower), scales.x, scales.y)];
  return over && under ? `${over}${under.replace('M', 'L')}Z` : '';
}

/**
 * The drawing without its labels.
 * @param {Figure} figure
 * @param {number} width
 * @param {number} height
 * @param {Theme} theme
 * @returns {string} SVG elements
 */
export function drawn(figure, width, height, theme) {
  const scales = scalesOf(figure, width, height);
  const { x, y } = scales;
  const text = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ words, /** @type {string} */ more) =>
    `<text x="${a.toFixed(1)}" y="${b.toFixed(1)}" font-size="11.5" ${more}>${words}</text>`;
  const line = (/** @type {number[]} */ [a, b, c, d], /** @type {string} */ more) =>
    `<line x1="${a.toFixed(1)}" y1="${b.toFixed(1)}" x2="${c.toFixed(1)}" y2="${d.toFixed(1)}" ${more}/>`;
  const parts = [];
  for (const v of marks(y, Math.max(2, (height - TOP - BOTTOM) / 42))) {
    const at = toPixel(y, v);
    if (at < y.to - 0.5 || at > y.from + 0.5) continue;
    parts.push(line([LEFT, at, width - RIGHT, at], `stroke="${theme.grid}"`));
    parts.push(text(LEFT - 8, at + 4, formatNumber(v), `fill="${theme.muted}" text-anchor="end"`));
  }
  for (const v of marks(x, Math.max(2, width / 100))) {
    const at = toPixel(x, v);
    parts.push(line([at, y.from, at, y.from + 4], `stroke="${theme.muted}"`));
    parts.push(text(at, y.from + 17, formatNumber(v), `fill="${theme.muted}" text-anchor="middle"`));
  }
  parts.push(line([LEFT, y.from, width - RIGHT, y.from], `stroke="${theme.muted}"`));
  parts.push(text((LEFT + width - RIGHT) / 2, height - 6, lowered(figure.x.label), `fill="${theme.muted}" text-anchor="middle"`));
  for (const area of figure.stack ? stacked(figure.stack) : []) {
    const path = between(figure.stack?.x ?? [], area.lower, area.upper, scales);
    parts.push(`<path d="${path}" fill="${inkOf(theme, area.colour)}" fill-opacity="0.75"/>`);
  }
  for (const one of figure.lines) parts.push(lineOf(one, scales, theme));
  if (figure.level) {
    const at = toPixel(y, figure.level.at);
    parts.push(line([LEFT, at, width - RIGHT, at], `stroke="${theme.muted}" stroke-dasharray="2 3"`));
    parts.push(text(width - RIGHT - 2, at - 5, escapeXml(figure.level.label), `fill="${theme.muted}" text-anchor="end"`));
  }
  for (const point of figure.points ?? []) {
    const [a, b] = [toPixel(x, point.x), toPixel(y, point.y)];
    const low = b > height - BOTTOM - 26;
    parts.push(`<circle cx="${a.toFixed(1)}" cy="${b.toFixed(1)}" r="4.5" fill="${theme.ink}" stroke="${theme.paper}" stroke-width="1.5"/>`);
    parts.push(text(a, b + (low ? -11 : 20), escapeXml(point.label), `fill="${theme.ink}" text-anchor="middle" paint-order="stroke" stroke="${theme.paper}" stroke-width="3"`));
  }
  return parts.join('');
}

/**
 * @param {Line} one
 * @param {{x: Scale, y: Scale}} scales
 * @param {Theme} theme
 */
function lineOf(one, scales, theme) {
  const ink = inkOf(theme, one.colour);
  const band = one.lower && one.upper ? `<path d="${between(one.x, one.lower, one.upper, scales)}" fill="${ink}" fill-opacity="0.2"/>` : '';
  if (one.kind === 'points') {
    const dots = one.x.map((v, k) => {
      const w = one.y[k];
      return w === null || !Number.isFinite(w) ? '' : `<circle cx="${toPixel(scales.x, v).toFixed(1)}" cy="${toPixel(scales.y, w).toFixed(1)}" r="3" fill="${ink}"/>`;
    });
    return band + dots.join('');
  }
  const dash = DASHES[one.kind ?? 'solid'];
  const thin = one.kind === 'dashed' || one.kind === 'dotted' ? 1.6 : 2;
  return `${band}<path d="${linePath(one.x, one.y, scales.x, scales.y)}" fill="none" stroke="${ink}" stroke-width="${thin}" stroke-linejoin="round"${dash}/>`;
}

/**
 * A whole drawing, with its labels, as a file.
 * @param {Figure} figure
 * @param {number} width
 * @param {number} height
 * @param {Theme} theme
 */
export function chartPicture(figure, width, height, theme) {
  let across = 0;
  const labels = labelsOf(figure).map(({ label, colour, kind }) => {
    const at = across;
    across += 40 + 6.6 * label.length;
    const ink = inkOf(theme, colour);
    const key = kind === 'points' ? `<circle cx="${at + 10}" cy="40" r="3.5" fill="${ink}"/>` : `<line x1="${at}" x2="${at + 20}" y1="40" y2="40" stroke="${ink}" stroke-width="2.5"${DASHES[kind]}/>`;
    return `${key}<text x="${at + 26}" y="44" font-size="12" fill="${theme.ink}">${escapeXml(label)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + 60}" viewBox="-12 0 ${width + 12} ${height + 60}" font-family="${SANS}">`
    + `<title>${escapeXml(figure.title)}</title><rect x="-12" width="100%" height="100%" fill="${theme.paper}"/>`
    + `<text y="20" font-size="14" font-weight="600" fill="${theme.ink}">${escapeXml(figure.title)}</text>${labels.join('')}`
    + `<g transform="translate(0 56)">${drawn(figure, width, height, theme)}</g></svg>`;
}

/** @param {Figure} figure */
function labelsOf(figure) {
  const areas = (figure.stack?.areas ?? []).map((a) => ({ label: a.label, colour: a.colour, kind: /** @type {const} */ ('solid') }));
  return [...figure.lines.map((l) => ({ label: l.label, colour: l.colour, kind: l.kind ?? 'solid' })), ...areas];
}

/**
 * @param {ArrayLike<number>} x
 * @param {number} at
 * @returns {number} the place of the nearest value
 */
export function nearest(x, at) {
  let best = 0;
  for (let k = 1; k < x.length; k += 1) if (Math.abs(x[k] - at) < Math.abs(x[best] - at)) best = k;
  return best;
}

/**
 * @param {HTMLElement} element
 * @param {Figure} figure
 * @param {{onPick?: (column: number, row: number) => void}} [options] told the nearest point of the nearest line
 */
export function mountChart(element, figure, options = {}) {
  return new Chart(element, figure, options);
}

export class Chart {
  /**
   * @param {HTMLElement} element
   * @param {Figure} figure
   * @param {{onPick?: (column: number, row: number) => void}} [options]
   */
  constructor(element, figure, options = {}) {
    this.figure = figure;
    this.options = options;
    this.box = document.createElement('figure');
    this.box.className = 'chart';
    this.head = document.createElement('figcaption');
    this.picture = document.createElement('div');
    this.picture.className = 'drawing';
    this.rule = document.createElement('i');
    this.box.append(this.head, this.picture);
    element.append(this.box);
    this.width = 0;
    this.watch = new ResizeObserver(() => this.#fit());
    this.watch.observe(this.box);
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setFigure(this.figure));
    this.picture.addEventListener('pointermove', (event) => this.#hover(event));
    this.picture.addEventListener('pointerleave', () => this.#read(null));
    this.picture.tabIndex = 0;
    this.picture.setAttribute('role', 'application');
    this.place = -1;
    this.row = 0;
    this.picture.addEventListener('keydown', (event) => this.#press(event));
    this.picture.addEventListener('blur', () => this.#read(null));
    this.picture.addEventListener('click', (event) => this.#pick(event));
    this.setFigure(figure);
  }

  /** @param {MouseEvent} event */
  #pick(event) {
    const box = this.picture.getBoundingClientRect();
    const { x, y } = scalesOf(this.figure, this.width, this.height ?? 300);
    const [at, level] = [fromPixel(x, event.clientX - box.left), fromPixel(y, event.clientY - box.top)];
    const heights = this.figure.lines.map((l) => l.y[nearest(l.x, at)] ?? Infinity);
    const row = nearest(heights.map((v) => Math.abs(v - level)), 0);
    if (this.figure.lines.length) this.options.onPick?.(nearest(this.figure.lines[row].x, at), row);
  }

  /** The places along the first line, or of the stack. */
  get #along() {
    return this.figure.lines[0]?.x ?? this.figure.stack?.x ?? [];
  }

  /**
   * Arrows go along the figure and from line to line, Home and End to its ends, Enter picks.
   * @param {KeyboardEvent} event
   */
  #press(event) {
    const { lines } = this.figure;
    const [at, last] = [Math.max(0, this.place), this.#along.length - 1];
    const far = Math.max(1, Math.round(last / 10));
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at + far, PageDown: at - far, Home: 0, End: last };
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    if (event.key === 'Enter' && lines.length) {
      this.options.onPick?.(nearest(lines[this.row].x, this.#along[at]), this.row);
      return;
    }
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step && lines.length > 1) this.row = (this.row + step + lines.length) % lines.length;
    else if (event.key in steps) this.place = this.place < 0 && event.key !== 'End' ? 0 : Math.min(last, Math.max(0, steps[event.key]));
    else return;
    event.preventDefault();
    const { x } = scalesOf(this.figure, this.width, this.height ?? 300);
    const value = this.#along[Math.max(0, this.place)];
    this.#read(value, toPixel(x, value), this.row);
  }

  /** @param {Figure} figure */
  setFigure(figure) {
    this.figure = figure;
    [this.place, this.row] = [-1, 0];
    this.picture.setAttribute('aria-label', `${figure.alt} Arrow keys read values.`);
    this.width = 0;
    this.#fit();
  }

  #fit() {
    const width = Math.max(260, this.box.clientWidth || 600);
    if (width === this.width) return;
    this.width = width;
    this.height = Math.min(this.figure.height ?? 360, Math.max(220, 0.8 * width));
    const theme = themeOf('auto');
    const name = escapeXml(this.figure.alt);
    this.picture.innerHTML = `<svg viewBox="0 0 ${width} ${this.height}" role="img" aria-label="${name}" font-family="inherit">${drawn(this.figure, width, this.height, theme)}</svg>`;
    this.picture.append(this.rule);
    this.rule.hidden = true;
    this.#legend(theme);
  }

  /** @param {Theme} theme */
  #legend(theme) {
    const title = document.createElement('h2');
    title.innerHTML = `${escapeXml(this.figure.title)}${this.figure.symbol ? ` <i>${escapeXml(this.figure.symbol).replace(/_(\S+)/, '<sub>$1</sub>')}</i>` : ''}`;
    const keys = document.createElement('ul');
    /** @type {HTMLOutputElement[]} */
    this.values = labelsOf(this.figure).map(({ label, colour, kind }) => {
      const item = document.createElement('li');
      const ink = inkOf(theme, colour);
      const drawing = kind === 'points' ? `<circle cx="12" cy="5" r="3.5" fill="${ink}"/>` : `<line x1="1" x2="23" y1="5" y2="5" stroke="${ink}" stroke-width="2.5"${DASHES[kind]}/>`;
      const key = `<svg width="24" height="10" aria-hidden="true">${drawing}</svg>`;
      item.innerHTML = `${key}<span></span><output></output>`;
      /** @type {HTMLElement} */ (item.querySelector('span')).textContent = label;
      keys.append(item);
      return /** @type {HTMLOutputElement} */ (item.querySelector('output'));
    });
    this.where = document.createElement('output');
    this.where.className = 'where';
    this.head.replaceChildren(title, keys, this.where);
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const { x } = scalesOf(this.figure, this.width, this.height ?? 300);
    const pixel = event.clientX - this.picture.getBoundingClientRect().left;
    this.#read(fromPixel(x, Math.min(x.to, Math.max(x.from, pixel))), Math.min(x.to, Math.max(x.from, pixel)));
  }

  /**
   * @param {number|null} at
   * @param {number} [pixel]
   * @param {number} [row] the line whose value is told to those who hear the page; all are written
   */
  #read(at, pixel = 0, row = 0) {
    this.rule.hidden = at === null;
    this.rule.style.transform = `translateX(${pixel}px)`;
    const { lines, stack } = this.figure;
    const said = [...lines.map((l) => (at === null || !l.x.length ? null : l.y[nearest(l.x, at)])),
      ...(stack?.areas ?? []).map((a) => (at === null ? null : a.values[nearest(stack?.x ?? [], at)]))];
    for (const [k, v] of said.entries()) if (this.values) this.values[k].textContent = v === null || v === undefined ? '' : formatNumber(v);
    const first = lines[0]?.x ?? stack?.x ?? [];
    const told = labelsOf(this.figure)[row];
    this.values?.forEach((value, k) => value.setAttribute('aria-live', k === row ? 'polite' : 'off'));
    this.rule.title = told?.label ?? '';
    if (this.where) this.where.textContent = at === null || !first.length ? '' : `${this.figure.x.symbol ?? 'at'} = ${formatNumber(first[nearest(first, at)])}${lines.length > 1 && this.place >= 0 ? `, ${told?.label}` : ''}`;
  }

  /** @returns {string} the whole drawing as a file */
  svg() {
    return chartPicture(this.figure, Math.max(640, this.width), 380, themeOf('auto'));
  }

  destroy() {
    this.watch.disconnect();
    this.box.remove();
  }
}
