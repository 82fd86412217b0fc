// @ts-check
/** Retrieval: the profile over the positions of a prompt. */
import { there } from './pages.js';
import { draw, sheet } from './sheet.js';

sheet('retrieval', async (data) => {
  await draw({ profile: data.figure });
  (await there('#said')).replaceChildren(...data.sentences.map((/** @type {string} */ words) => {
    const line = document.createElement('p');
    line.textContent = words;
    return line;
  }));
  (await there('#regime')).textContent = data.regime;
});
