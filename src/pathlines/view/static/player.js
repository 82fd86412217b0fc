// @ts-check
/**
 * A run to play with: the scene, the curves on the same clock, a slider of time. It plays from what it has and talks to
 * nobody.
 */
import { mountCurves } from './curves.js';
import { dress } from './dress.js';
import { placeOf } from './frames.js';
import { GifFilm, paletteOf } from './gif.js';
import { formatNumber } from './numbers.js';
import { themeOf } from './palette.js';
import { mountScene } from './scene.js';

/** @typedef {import('./frames.js').FramesData} FramesData */
/**
 * @typedef {object} PlayerOptions
 * @property {'auto'|'light'|'dark'} [theme]
 * @property {boolean} [autoplay] not where the reader asked for less motion
 * @property {number} [seconds] that the whole run takes at speed one, 12 by default
 * @property {'initial'|'cluster'} [colour]
 * @property {boolean} [header] title and subtitle; true by default
 * @property {boolean} [foot] how to compute it again; true by default
 * @property {boolean} [save] buttons that save pictures; true by default
 * @property {number} [trail]
 * @property {'auto'|'canvas'} [painter]
 */

const PLAY = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M5 2.5v15l12.5-7.5z"/></svg>';
const PAUSE = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 2.5h4.2v15H4zM11.8 2.5H16v15h-4.2z"/></svg>';
const SPEEDS = [0.25, 0.5, 1, 2, 4];
/** Steps of the slider between two frames. */
const FINE = 20;
/** Pictures a second of a GIF, and its greatest width: slides and chats take no more. */
const GIF_RATE = 12.5;
const GIF_WIDTH = 640;

/**
 * Show a run in an element.
 * @param {HTMLElement} element
 * @param {FramesData} data
 * @param {PlayerOptions} [options]
 */
export function mountPlayer(element, data, options = {}) {
  return new Player(element, data, options);
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {(Node|string)[]} children
 * @returns {any}
 */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export class Player {
  /**
   * @param {HTMLElement} element
   * @param {FramesData} data
   * @param {PlayerOptions} options
   */
  constructor(element, data, options) {
    this.element = element;
    this.options = options;
    this.data = data;
    this.wish = /** @type {'auto'|'light'|'dark'} */ (options.theme ?? 'auto');
    this.colour = /** @type {'initial'|'cluster'} */ ('initial');
    this.place = 0;
    this.speed = 1;
    this.playing = false;
    this.frame = 0;
    this.ends = new AbortController();
    this.#build(dress(element));
    this.scene = mountScene(this.stage, data, { ...options, theme: this.wish });
    this.side.append(make('div', { className: 'lines' }), this.known);
    this.curves = mountCurves(this.side.firstChild, data, { theme: this.wish, onPick: (time) => this.#seek(placeOf(this.data.times, time)) });
    this.#write();
    this.#face();
    this.setColour(options.colour ?? 'initial');
    this.#seek(0);
    this.#listen();
    this.setTheme(this.wish);
    if (options.autoplay && !this.#calm()) this.play();
  }

  #calm() {
    return window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  }

  /** @param {any} root */
  #build(root) {
    this.title = make('h1');
    this.subtitle = make('p', { className: 'subtitle' });
    this.outcome = make('p', { className: 'outcome', role: 'status' });
    this.header = make('header', { hidden: this.options.header === false }, this.title, this.subtitle);
    this.stage = make('div');
    this.side = make('div', { className: 'side' });
    this.known = make('p', { className: 'known' });
    this.button = make('button', { className: 'play', type: 'button', onclick: () => this.#toggle() });
    this.slider = make('input', { type: 'range', min: '0', step: '1', 'aria-label': 'time', oninput: () => this.#slid() });
    this.clock = make('b');
    this.readout = make('span', { className: 'time' }, this.clock);
    this.live = make('span', { className: 'unseen', 'aria-live': 'polite' });
    this.foot = make('details', { className: 'foot', hidden: this.options.foot === false });
    this.more = make('div', { className: 'more' });
    this.#buttons();
    const controls = make('div', { className: 'controls', role: 'group', 'aria-label': 'player' }, this.button, this.slider, this.readout, this.more);
    const bare = this.options.header === false ? ' bare' : '';
    this.box = make('section', { className: `player${bare}`, tabIndex: -1 }, this.header, this.outcome, make('div', { className: 'stage' }, this.stage), this.side, controls, this.foot, this.live);
    root.append(this.box);
  }

  #buttons() {
    const speeds = SPEEDS.map((s) => make('option', { value: String(s), selected: s === 1 }, `${s}×`));
    this.pace = make('select', { 'aria-label': 'speed', onchange: () => { this.speed = Number(this.pace.value); } }, ...speeds);
    this.byStart = make('button', { type: 'button', onclick: () => this.setColour('initial') }, 'by start');
    this.byCluster = make('button', { type: 'button', onclick: () => this.setColour('cluster') }, 'by cluster');
    this.colours = make('span', { className: 'group', role: 'group', 'aria-label': 'colour of the tokens' }, this.byStart, this.byCluster);
    this.more.append(this.pace, this.colours, make('span', { className: 'push' }));
    if (this.options.save === false) return;
    const save = (/** @type {string} */ name, /** @type {string} */ hint, /** @type {() => Promise<void>} */ act) => {
      const button = make('button', { type: 'button', title: hint }, name);
      button.onclick = async () => {
        button.disabled = true;
        await act().catch((error) => { this.live.textContent = String(error.message ?? error); });
        button.disabled = false;
      };
      return button;
    };
    this.more.append(
      save('PNG', 'Save the scene as a picture', async () => this.#download(await this.screenshot(), 'png')),
      save('SVG', 'Save the curves as a drawing', async () => this.#download(new Blob([this.curvesSvg()], { type: 'image/svg+xml' }), 'svg')),
    );
    this.more.append(save('GIF', 'Save the whole run as a film that plays anywhere', async () => this.#download(await this.gif(), 'gif')));
    if (typeof MediaRecorder === 'undefined') return;
    this.more.append(save('WebM', 'Save the whole run as a film', async () => this.#download(await this.record(), 'webm')));
  }

  /** What the data say in words. */
  #write() {
    const { data } = this;
    this.title.textContent = data.title;
    this.subtitle.textContent = data.subtitle;
    this.outcome.textContent = data.outcome;
    this.outcome.hidden = !data.outcome || data.outcome === 'completed';
    this.slider.max = String(FINE * (data.times.length - 1));
    this.colours.hidden = !data.clusters;
    this.byCluster.textContent = `by ${data.groups ?? 'cluster'}`;
    this.side.hidden = !data.curves.length;
    this.known.textContent = data.theory ?? '';
    this.box.classList.toggle('alone', !data.curves.length);
    this.box.setAttribute('aria-label', data.title);
    const code = (/** @type {string} */ text) => (text ? [make('code', {}, text)] : []);
    const keys = make('p', {}, 'Keys: ', ...[['space', ' play, '], [', .', ' a frame back and on, '], ['c', ' colour, '], ['arrows', ' turn the scene, '], ['+ −', ' zoom']].flatMap(([key, does]) => [make('kbd', {}, key), does]));
    this.foot.replaceChildren(make('summary', {}, 'Compute it again'), ...code(data.command), ...code(data.python), keys);
  }

  #listen() {
    const { signal } = this.ends;
    this.box.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => this.#press(event), { signal });
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', () => this.wish === 'auto' && this.setTheme('auto'), { signal });
    this.box.addEventListener('pointerdown', (/** @type {any} */ event) => {
      if (event.target.closest('button, input, select, summary, .scene') === null) this.box.focus({ preventScroll: true });
    }, { signal });
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = /** @type {HTMLElement} */ (event.target);
    const own = ['BUTTON', 'SELECT', 'SUMMARY'].includes(on.tagName);
    const last = this.data.times.length - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      ' ': () => this.#toggle(), k: () => this.#toggle(),
      ',': () => this.#step(Math.ceil(this.place) - 1), '.': () => this.#step(Math.floor(this.place) + 1),
      Home: () => this.#step(0), End: () => this.#step(last),
      c: () => this.setColour(this.colour === 'cluster' ? 'initial' : 'cluster'),
    };
    const act = keys[event.key];
    if (!act || (event.key === ' ' && own)) return;
    act();
    event.preventDefault();
  }

  #toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  #slid() {
    this.pause();
    this.#seek(Number(this.slider.value) / FINE);
  }

  /** @param {number} place */
  #step(place) {
    this.pause();
    this.#seek(place);
    this.#announce();
  }

  /** @param {number} place */
  #seek(place) {
    this.place = Math.min(Math.max(place, 0), this.data.times.length - 1);
    const time = this.time;
    this.scene.show(this.place);
    this.curves.setTime(time);
    this.slider.value = String(Math.round(FINE * this.place));
    const symbol = this.data.clock?.name ?? 't';
    this.clock.textContent = `${symbol} = ${formatNumber(time)}`;
    this.slider.setAttribute('aria-valuetext', this.clock.textContent);
    this.element.dispatchEvent(new CustomEvent('timechange', { detail: time }));
  }

  /** To those who hear the page: where we are, when we stop. */
  #announce() {
    const { scene } = this;
    const clusters = scene.frames.labels && !this.data.groups ? `, ${scene.frames.clustersAt(this.place).length} clusters` : '';
    this.live.textContent = `${this.clock.textContent}${clusters}`;
  }

  /** The time shown. */
  get time() {
    const { times } = this.data;
    const k = Math.min(Math.floor(this.place), times.length - 1);
    const next = times[Math.min(k + 1, times.length - 1)];
    return times[k] + (this.place - k) * (next - times[k]);
  }

  /** @param {number} time */
  setTime(time) {
    this.#seek(placeOf(this.data.times, time));
  }

  /** @param {FramesData} data the camera, the time and whether it plays stay */
  setData(data) {
    const { time } = this;
    this.data = data;
    this.scene.setData(data);
    this.curves.setData(data);
    this.#write();
    this.setColour(this.colour);
    this.#seek(placeOf(data.times, time));
  }

  /** @param {'initial'|'cluster'} colour */
  setColour(colour) {
    this.colour = colour === 'cluster' && this.data.clusters ? 'cluster' : 'initial';
    this.byStart.setAttribute('aria-pressed', String(this.colour === 'initial'));
    this.byCluster.setAttribute('aria-pressed', String(this.colour === 'cluster'));
    this.scene.setColour(this.colour);
  }

  /** @param {'auto'|'light'|'dark'} wish */
  setTheme(wish) {
    this.wish = wish;
    this.box.classList.toggle('dark', themeOf(wish).dark);
    this.scene.setTheme(wish);
    this.curves.setTheme(wish);
  }

  play() {
    if (this.playing) return;
    if (this.place >= this.data.times.length - 1) this.place = 0;
    this.playing = true;
    this.#face();
    let before = performance.now();
    const turn = (/** @type {number} */ now) => {
      if (!this.playing) return;
      const elapsed = Math.min(now - before, 250);
      this.scene.feel(now - before);
      before = now;
      this.#seek(this.place + this.#rate() * Math.max(0, elapsed));
      if (this.place >= this.data.times.length - 1) this.pause();
      else this.frame = requestAnimationFrame(turn);
    };
    this.frame = requestAnimationFrame(turn);
  }

  /** Frames a millisecond. */
  #rate() {
    return (this.speed * (this.data.times.length - 1)) / (1000 * (this.options.seconds ?? 12));
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.#face();
    this.#announce();
  }

  #face() {
    this.button.innerHTML = this.playing ? PAUSE : PLAY;
    this.button.setAttribute('aria-label', this.playing ? 'pause' : 'play');
  }

  /** @returns {Promise<Blob>} a PNG of the scene */
  screenshot() {
    return this.scene.screenshot();
  }

  /** @returns {string} */
  curvesSvg() {
    return this.curves.curvesSvg();
  }

  /** @returns {Promise<Blob>} the whole run as a WebM film of the scene */
  record() {
    const picture = this.scene.compose();
    const film = new MediaRecorder(picture.captureStream(30), { mimeType: 'video/webm', videoBitsPerSecond: 6e6 });
    /** @type {Blob[]} */
    const parts = [];
    film.ondataavailable = (event) => parts.push(event.data);
    const done = new Promise((ready, failed) => {
      film.onstop = () => ready(new Blob(parts, { type: 'video/webm' }));
      film.onerror = () => failed(new Error('The film was not made.'));
    });
    const paint = () => {
      if (film.state === 'inactive') return;
      this.scene.compose(picture);
      if (this.playing) requestAnimationFrame(paint);
      else setTimeout(() => film.stop(), 200);
    };
    this.pause();
    this.place = 0;
    film.start();
    this.play();
    requestAnimationFrame(paint);
    return /** @type {Promise<Blob>} */ (done);
  }

  /** @returns {Promise<Blob>} the whole run as a GIF of the scene, at speed one whatever the speed of this machine */
  async gif() {
    this.pause();
    const { place } = this;
    const first = this.scene.compose();
    const shrink = Math.min(1, GIF_WIDTH / first.width);
    const canvas = make('canvas', { width: Math.round(shrink * first.width), height: Math.round(shrink * first.height) });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { willReadFrequently: true }));
    const last = this.data.times.length - 1;
    const count = Math.max(2, Math.round((this.options.seconds ?? 12) * GIF_RATE));
    const picture = (/** @type {number} */ share) => {
      this.#seek(share * last);
      pen.drawImage(this.scene.compose(first), 0, 0, canvas.width, canvas.height);
      return pen.getImageData(0, 0, canvas.width, canvas.height).data;
    };
    const film = new GifFilm(canvas.width, canvas.height, paletteOf([0, 0.25, 0.5, 1].map(picture)), Math.round(100 / GIF_RATE));
    for (let k = 0; k < count; k += 1) {
      film.add(picture(k / (count - 1)));
      this.live.textContent = k % 25 ? this.live.textContent : `${Math.round((100 * k) / count)} %`;
      // eslint-disable-next-line no-await-in-loop -- the page stays alive between pictures
      await new Promise((ready) => { setTimeout(ready); });
    }
    this.#seek(place);
    return new Blob(/** @type {BlobPart[]} */ (film.finished()), { type: 'image/gif' });
  }

  /**
   * @param {Blob} blob
   * @param {string} ending
   */
  #download(blob, ending) {
    const name = this.data.title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
    const link = make('a', { href: URL.createObjectURL(blob), download: `${name || 'pathlines'}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  destroy() {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.ends.abort();
    this.scene.destroy();
    this.curves.destroy();
    this.box.remove();
  }
}
