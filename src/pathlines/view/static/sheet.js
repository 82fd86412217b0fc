// @ts-check
/** Pages of one record: the newest answer is drawn, the address follows, and what is shown can be saved. */
import { mountChart } from './chart.js';
import { HeatMap } from './heat.js';
import { ask, copy, say, show, there } from './pages.js';

/** @typedef {import('./chart.js').Figure | import('./heat.js').Heat} Figure a map of colours has values over two axes */
/** @type {Map<string, import('./chart.js').Chart | HeatMap>} */
const charts = new Map();
let query = '';

/**
 * Draw each figure of an answer in the element of its name; what is there already takes the new numbers.
 * @param {Record<string, Figure|null|undefined>} figures by the id of their element
 * @param {{onPick?: (column: number, row: number) => void}} [options] of maps
 */
export async function draw(figures, options = {}) {
  for (const [name, figure] of Object.entries(figures)) {
    const element = await there(`#${name}`);
    element.hidden = !figure;
    if (!figure) continue;
    const before = charts.get(name);
    const flat = !('values' in figure);
    if (before && before instanceof HeatMap !== flat) before.setFigure(/** @type {any} */ (figure));
    else {
      before?.destroy();
      charts.set(name, flat ? mountChart(element, /** @type {any} */ (figure), options) : new HeatMap(element, /** @type {any} */ (figure), options));
    }
  }
}

/**
 * The page of a name: what its server says is fetched from `/data/NAME` and given to `paint`.
 * @param {string} name
 * @param {(data: any) => void|Promise<void>} paint
 * @param {Record<string, any>} [more] what else the page's own script offers
 */
export async function sheet(name, paint, more = {}) {
  /** @param {{query: string, first?: boolean}} wanted at first the page itself may have said what is wrong */
  const shown = async (wanted) => {
    query = wanted.query;
    show(query);
    const place = await there('#sheet');
    place.setAttribute('aria-busy', 'true');
    const data = await ask(`/data/${name}?${wanted.query}`);
    if (!data || query !== wanted.query) return;
    place.removeAttribute('aria-busy');
    if (data.message || !wanted.first) say(data.message ?? '');
    if (data.away) setTimeout(() => query === wanted.query && shown(wanted), 2000);
    if (data.message) return;
    document.querySelector('.early')?.setAttribute('hidden', '');
    await paint(data);
    for (const part of ['command', 'python']) {
      const line = document.getElementById(part);
      if (line && data[part] !== undefined) line.textContent = data[part];
    }
    place.dataset.query = wanted.query;
  };
  /** @type {any} */ (window).pathlines = { show: shown, copy, save, query: () => query, ...more };
  const place = await there('#sheet');
  await shown({ query: place.dataset.start ?? '', first: true });
}

/**
 * Save the figures as drawings or as pictures.
 * @param {'svg'|'png'} kind
 */
export async function save(kind) {
  for (const [name, chart] of charts) {
    if (chart.box.closest('[hidden]')) continue;
    const text = chart.svg();
    const blob = kind === 'svg' ? new Blob([text], { type: 'image/svg+xml' }) : await rastered(text);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = `pathlines-${name}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

/**
 * @param {string} text of a drawing
 * @param {number} [sharp] pixels a unit
 * @returns {Promise<Blob>} a PNG
 */
export async function rastered(text, sharp = 2) {
  const picture = new Image();
  picture.src = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  await picture.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [sharp * picture.width, sharp * picture.height];
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  return new Promise((done) => { canvas.toBlob((blob) => done(/** @type {Blob} */ (blob))); });
}
