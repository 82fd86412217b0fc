// @ts-check
/** Studies: a map or curves; a point opens its run. */
import { formatNumber } from './numbers.js';
import { say, tell, there } from './pages.js';
import { draw, sheet } from './sheet.js';

const MOST_BYTES = 64_000_000;
/** @type {any} */
let shown;

/**
 * The address of the run at a point, where the file says which model was run.
 * @param {any} data
 * @param {number} column
 * @param {number} row
 * @returns {string}
 */
export function runAt(data, column, row) {
  if (!data.play) return '';
  const words = new URLSearchParams(data.play.base);
  for (const [dim, place] of [[data.x, column], [data.y, row]]) {
    for (const [name, values] of Object.entries(data.play.axes[dim] ?? {})) words.set(name, values[place]);
  }
  return `/play?${words}`;
}

/** @param {File|undefined} file whose name is used for nothing */
async function open(file) {
  if (!file) return;
  if (file.size > MOST_BYTES) {
    say(`A study file may have ${MOST_BYTES / 1e6} MB, but this one has ${formatNumber(file.size / 1e6, 3)} MB.`);
    return;
  }
  say('');
  const answer = await fetch('/data/study-file', { method: 'POST', body: file });
  const data = await answer.json().catch(() => ({ message: 'This file could not be read.' }));
  if (data.message) say(data.message);
  else tell('study', data.study);
}

document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) => {
  event.preventDefault();
  open(event.dataTransfer?.files[0]);
});

sheet('studies', async (data) => {
  shown = data;
  const onPick = (/** @type {number} */ column, /** @type {number} */ row) => {
    const address = runAt(shown, column, row);
    if (address) window.open(address, '_blank', 'noopener');
  };
  await draw({ figure: data.figure }, { onPick });
  (await there('#hint')).textContent = data.play ? 'Press a point to open its run in Play.' : '';
}, { open, runAt: (/** @type {number} */ column, /** @type {number} */ row) => runAt(shown, column, row) });
