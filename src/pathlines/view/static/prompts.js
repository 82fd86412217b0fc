// @ts-check
/** Prompts: the player, with the tokens of each prompt in its colour. */
import { there } from './pages.js';
import { mountPlayer } from './player.js';
import { sheet } from './sheet.js';

/** @type {import('./player.js').Player|undefined} */
let player;

sheet('prompts', async (data) => {
  (await there('#finding')).textContent = data.finding;
  const element = await there('#player');
  if (player) {
    player.setData(data.frames);
    player.setTime(0);
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) player.play();
  } else player = mountPlayer(element, data.frames, { header: false, foot: false, autoplay: true, colour: 'cluster' });
});
