// @ts-check
/** Advise: the curves follow the knobs; words, what-ifs and the smallest change come after them. */
import { ask, tell, there } from './pages.js';
import { draw, sheet } from './sheet.js';
import { formatNumber } from './numbers.js';

const MOST_BYTES = 1_000_000;

/**
 * @param {string} caption
 * @param {string[]} head
 * @param {(string|number|null)[][]} rows
 */
function table(caption, head, rows) {
  const made = document.createElement('table');
  made.createCaption().textContent = caption;
  const top = made.createTHead().insertRow();
  for (const name of head) {
    const cell = document.createElement('th');
    cell.textContent = name;
    top.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value === null ? '–' : typeof value === 'number' ? formatNumber(value, 3) : value;
  }
  const box = document.createElement('div');
  box.className = 'scroll';
  box.append(made);
  return box;
}

let waiting = 0;

/** What takes a second is asked for when the reader has stopped turning. */
function later() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    const asked = /** @type {any} */ (window).pathlines.query();
    const data = await ask(`/data/advise-more?${asked}`);
    if (!data || data.message || asked !== /** @type {any} */ (window).pathlines.query()) return;
    (await there('#finding')).textContent = data.finding;
    (await there('#remedy')).textContent = data.remedy;
    const parts = [];
    if (data.changes.length) parts.push(table('Smallest single change that meets the target', ['knob', 'multiply by', 'cosine then', '∂cosine/∂log x'], data.changes));
    if (data.outcomes.length) parts.push(table(`What if: mean cosine after layer ${data.layer}`, ['change', 'cosine', 'difference'], data.outcomes));
    const words = document.createElement('p');
    words.className = 'small';
    words.textContent = `${data.collapse} Theory: ${data.regime.join('; ')}. Assumes: ${data.assumptions.join('; ')}.`;
    (await there('#more')).replaceChildren(...parts, words);
  }, 350);
}

/** @param {string} text a configuration that was pasted or dropped */
async function read(text) {
  const place = await there('#config-error');
  place.textContent = '';
  if (!text.trim()) return;
  const size = new Blob([text]).size;
  if (size > MOST_BYTES) {
    place.textContent = `A configuration may have 1 MB, but this one has ${formatNumber(size / 1e6, 3)} MB.`;
    return;
  }
  const answer = await fetch('/data/config', { method: 'POST', body: text });
  const data = await answer.json().catch(() => ({ message: 'This could not be read.' }));
  place.textContent = data.message ?? data.unknown;
  if (!data.record) return;
  tell('record', data.record);
  setTimeout(async () => { (await there('#config-read')).textContent = data.read; }, 600);
}

/** @param {File|undefined} file whose name is used for nothing */
async function readFile(file) {
  if (!file) return;
  if (file.size > MOST_BYTES) {
    (await there('#config-error')).textContent = `A configuration may have 1 MB, but this file has ${formatNumber(file.size / 1e6, 3)} MB.`;
    return;
  }
  await read(await file.text());
}

document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) => {
  event.preventDefault();
  readFile(event.dataTransfer?.files[0]);
});

sheet('advise', async (data) => {
  await draw({ cosine: data.cosine, causes: data.causes, stream: data.stream });
  later();
}, { read, readFile });
