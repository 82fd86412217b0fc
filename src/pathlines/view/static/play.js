// @ts-check
/** Play: the player, fed with the newest answer; the address follows what is shown. */
import { ask, copy, say, show, there } from './pages.js';
import { mountPlayer } from './player.js';

/** @type {import('./player.js').Player|undefined} */
let player;
let query = '';
/** @type {any} */
let again;

/**
 * @param {{query: string, restart?: boolean, t?: number|null, colour?: 'initial'|'cluster', first?: boolean}} wanted at
 *   first the page itself may have said what is wrong
 */
async function showRun({ query: wanted, restart = false, t = null, colour = 'initial', first = false }) {
  const element = await there('#player');
  query = wanted;
  address();
  element.setAttribute('aria-busy', 'true');
  const data = await ask(`/data/play?${wanted}`);
  if (!data || query !== wanted) return;
  element.removeAttribute('aria-busy');
  if (data.message) {
    say(data.message);
    if (data.away) again = setTimeout(() => showRun({ query: wanted, restart, t, colour }), 2000);
    return;
  }
  clearTimeout(again);
  if (!first) say('');
  document.querySelector('.waiting')?.setAttribute('hidden', '');
  if (player) player.setData(data);
  else {
    player = mountPlayer(element, data, { header: false, foot: false, autoplay: t === null, colour });
    element.addEventListener('timechange', later);
  }
  if (t !== null) player.setTime(t);
  else if (restart) {
    player.setTime(0);
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) player.play();
  }
  for (const name of ['command', 'python']) (await there(`#${name}`)).textContent = data[name];
  element.dataset.query = wanted;
}

let waiting = 0;
/** The time belongs to the address, but not sixty times a second. */
function later() {
  clearTimeout(waiting);
  waiting = window.setTimeout(address, 400);
}

function address() {
  const said = new URLSearchParams(query);
  if (player && player.time > 0 && !player.playing) said.set('t', String(Number(player.time.toPrecision(6))));
  if (player?.colour === 'cluster') said.set('colour', 'cluster');
  show(said.toString());
  document.getElementById('export')?.setAttribute('href', `/export/play?${query}`);
}

/** @type {any} */ (window).pathlines = { show: showRun, copy, player: () => player };
there('#player').then((element) => showRun({ ...JSON.parse(element.dataset.start ?? '{}'), first: true }));
