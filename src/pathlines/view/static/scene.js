// @ts-check
/**
 * Tokens where they live: three canvases on top of each other (axes, tokens, marks), a camera that the reader turns by
 * mouse, touch or keyboard, and nothing that knows of time beyond the place among the frames.
 */
import { dragged, newCamera, zoomed } from './camera.js';
import { FlatPainter } from './flat.js';
import { Frames, placeOf } from './frames.js';
import { FINE_TRAILS, GLOWING, GlPainter } from './gl.js';
import { drawOver, drawUnder } from './overlay.js';
import { initialColours, themeOf } from './palette.js';
import { dress } from './dress.js';

/** @typedef {import('./frames.js').FramesData} FramesData */
/**
 * @typedef {object} SceneOptions
 * @property {'auto'|'light'|'dark'} [theme]
 * @property {'initial'|'cluster'} [colour]
 * @property {number} [trail] length of the trails in frames, 0 for none
 * @property {'auto'|'canvas'} [painter] 'canvas' leaves WebGL out
 */

/** So many segments of trails are drawn at most: more make a machine without a graphics card stutter. */
const MOST_SEGMENTS = 24000;
/** The same of lines of one pixel, which many tokens have: they are most of a picture's time in software. */
const MOST_LINES = 12000;
/** Trails shorter than this many frames are left out. */
const SHORTEST = 0.6;
/** Milliseconds between two pictures above which the scene draws less. */
const TOO_SLOW = 36;

/**
 * Show the tokens of a run in an element.
 * @param {HTMLElement} element
 * @param {FramesData} data
 * @param {SceneOptions} [options]
 */
export function mountScene(element, data, options = {}) {
  return new Scene(element, data, options);
}

export class Scene {
  /**
   * @param {HTMLElement} element
   * @param {FramesData} data
   * @param {SceneOptions} options
   */
  constructor(element, data, options) {
    this.element = element;
    this.options = options;
    this.root = dress(element);
    this.box = document.createElement('div');
    this.box.className = 'scene';
    this.box.tabIndex = 0;
    this.root.append(this.box);
    this.under = this.#canvas();
    this.over = document.createElement('canvas');
    const { painter, canvas, kind } = this.#paint();
    this.painter = painter;
    this.canvas = canvas;
    this.kind = kind;
    this.box.append(this.over);
    this.note = document.createElement('p');
    this.note.className = 'note';
    this.note.hidden = this.kind === 'webgl';
    this.note.textContent = 'No WebGL here: drawn on a 2-D canvas.';
    this.box.append(this.note);
    this.colour = /** @type {'initial'|'cluster'} */ (options.colour ?? 'initial');
    this.slow = 0;
    this.thrift = 0;
    this.place = 0;
    this.wish = /** @type {string} */ (options.theme ?? 'auto');
    this.theme = themeOf(this.wish);
    this.frames = new Frames(data);
    this.camera = newCamera(this.frames.deep);
    this.tints = initialColours(this.frames, this.theme.dark);
    /** @type {unknown[]} */
    this.seen = [];
    this.#tell();
    this.ends = new AbortController();
    this.#listen();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.box);
  }

  /** @returns {HTMLCanvasElement} */
  #canvas() {
    const canvas = document.createElement('canvas');
    this.box.append(canvas);
    return canvas;
  }

  /**
   * WebGL where there is some, else a 2-D canvas.
   * @returns {{painter: GlPainter|FlatPainter, canvas: HTMLCanvasElement, kind: 'webgl'|'canvas'}}
   */
  #paint() {
    const canvas = this.#canvas();
    try {
      if (this.options.painter === 'canvas') throw new Error('no WebGL wanted');
      const painter = new GlPainter(canvas);
      canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
      canvas.addEventListener('webglcontextrestored', () => this.#restore());
      return { painter, canvas, kind: 'webgl' };
    } catch {
      canvas.remove();
      const flat = this.#canvas();
      return { painter: new FlatPainter(flat), canvas: flat, kind: 'canvas' };
    }
  }

  /** A card that was lost comes back empty. */
  #restore() {
    this.painter = new GlPainter(this.canvas);
    this.painter.setFrames(this.frames);
    this.draw();
  }

  /** Painter and page learn of new frames. */
  #tell() {
    const { data } = this.frames;
    this.painter.setFrames(this.frames);
    this.box.setAttribute('role', 'img');
    const turn = this.frames.deep ? 'Arrow keys turn it, plus and minus zoom.' : 'Arrow keys move it, plus and minus zoom.';
    this.box.setAttribute('aria-label', `${data.alt} ${turn}`);
    this.place = Math.min(this.place, this.frames.count - 1);
  }

  /** @param {FramesData} data */
  setData(data) {
    const before = this.frames.deep;
    this.frames = new Frames(data);
    if (before !== this.frames.deep) this.camera = newCamera(this.frames.deep);
    this.tints = initialColours(this.frames, this.theme.dark);
    this.#tell();
    this.draw();
  }

  /** @param {number} place frame k at k, between frames in between */
  show(place) {
    this.place = Math.min(Math.max(place, 0), this.frames.count - 1);
    this.draw();
  }

  /** @param {number} time */
  setTime(time) {
    this.show(placeOf(this.frames.times, time));
  }

  /** @param {'initial'|'cluster'} colour */
  setColour(colour) {
    this.colour = colour;
    this.draw();
  }

  /** @param {'auto'|'light'|'dark'} wish */
  setTheme(wish) {
    this.wish = wish;
    this.theme = themeOf(wish);
    this.tints = initialColours(this.frames, this.theme.dark);
    this.draw();
  }

  /** @returns {import('./gl.js').Look} */
  get look() {
    const { clientWidth: width, clientHeight: height } = this.box;
    const wanted = this.options.trail ?? 0.1 * this.frames.count;
    const most = this.frames.n > FINE_TRAILS ? MOST_LINES : MOST_SEGMENTS;
    const length = Math.min(wanted, most / this.frames.n, 32) * 0.5 ** this.thrift;
    const trail = length < SHORTEST ? 0 : length;
    const ratio = this.thrift > 1 ? 1 : Math.min(window.devicePixelRatio || 1, 2);
    const kept = this.frames.space === 'ellipses' ? 0 : trail;
    return {
      width, height, ratio, place: this.place, camera: this.camera, theme: this.theme,
      byCluster: this.colour === 'cluster', trail: kept, colours: this.tints,
    };
  }

  draw() {
    const { look } = this;
    if (!look.width || !look.height) return;
    for (const canvas of [this.under, this.canvas, this.over]) {
      const [w, h] = [Math.round(look.width * look.ratio), Math.round(look.height * look.ratio)];
      if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    }
    const context = (/** @type {HTMLCanvasElement} */ c) => /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
    const { frames } = this;
    const still = [look.camera, look.theme, look.width, look.height, look.ratio, frames].every((v, k) => v === this.seen[k]);
    if (!still || frames.space === 'ellipses') drawUnder(context(this.under), frames, look);
    this.seen = [look.camera, look.theme, look.width, look.height, look.ratio, frames];
    // The globe of many tokens is a picture of its own, which only another camera changes: half of the work in software.
    const apart = frames.space === 'sphere' && this.kind === 'webgl' && frames.n > GLOWING;
    if (apart && !still) {
      this.painter.draw({ ...look, part: 'globe' });
      const under = context(this.under);
      under.setTransform(1, 0, 0, 1, 0, 0);
      under.clearRect(0, 0, this.under.width, this.under.height);
      under.drawImage(this.canvas, 0, 0);
    }
    if (frames.space !== 'ellipses') this.painter.draw(apart ? { ...look, part: 'tokens' } : look);
    drawOver(context(this.over), frames, look);
    this.under.hidden = frames.space === 'sphere' && !apart;
    this.over.hidden = !frames.labels && !frames.data.overlays.length;
  }

  /**
   * Draw less where pictures come too slowly: shorter trails first, then fewer pixels.
   * @param {number} milliseconds since the picture before
   */
  feel(milliseconds) {
    this.slow = milliseconds > TOO_SLOW ? this.slow + 1 : Math.max(0, this.slow - 2);
    if (this.slow > 12 && this.thrift < 4) {
      this.thrift += 1;
      this.slow = 0;
    }
  }

  /**
   * All canvases on the page's colour.
   * @param {HTMLCanvasElement} [onto]
   * @returns {HTMLCanvasElement}
   */
  compose(onto = document.createElement('canvas')) {
    this.draw();
    if (onto.width !== this.over.width) onto.width = this.over.width;
    if (onto.height !== this.over.height) onto.height = this.over.height;
    const context = /** @type {CanvasRenderingContext2D} */ (onto.getContext('2d'));
    context.fillStyle = this.theme.paper;
    context.fillRect(0, 0, onto.width, onto.height);
    for (const canvas of [this.under, this.canvas, this.over]) context.drawImage(canvas, 0, 0);
    return onto;
  }

  /** @returns {Promise<Blob>} a PNG */
  screenshot() {
    const picture = this.compose();
    return new Promise((done, failed) => {
      picture.toBlob((blob) => (blob ? done(blob) : failed(new Error('The picture was not made.'))), 'image/png');
    });
  }

  #listen() {
    const { signal } = this.ends;
    const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ act, passive = true) =>
      this.box.addEventListener(name, act, { signal, passive });
    /** @type {Map<number, [number, number]>} */
    const fingers = new Map();
    const spread = () => {
      const [a, b] = [...fingers.values()];
      return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
    };
    on('pointerdown', (event) => {
      this.box.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    on('pointermove', (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const wide = spread();
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (fingers.size === 2 && wide > 0) this.#look(zoomed(this.camera, spread() / wide));
      else this.turn(event.clientX - last[0], event.clientY - last[1]);
    });
    for (const name of ['pointerup', 'pointercancel']) on(name, (event) => fingers.delete(event.pointerId));
    on('dblclick', () => this.#look(newCamera(this.frames.deep)));
    on('wheel', (event) => {
      if (!event.ctrlKey && !this.box.matches(':focus')) return;
      event.preventDefault();
      this.#look(zoomed(this.camera, Math.exp(-0.0016 * event.deltaY)));
    }, false);
    on('keydown', (event) => this.#press(event), false);
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', () => this.wish === 'auto' && this.setTheme('auto'), { signal });
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const step = 24;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.turn(-step, 0), ArrowRight: () => this.turn(step, 0),
      ArrowUp: () => this.turn(0, -step), ArrowDown: () => this.turn(0, step),
      '+': () => this.#look(zoomed(this.camera, 1.15)), '=': () => this.#look(zoomed(this.camera, 1.15)),
      '-': () => this.#look(zoomed(this.camera, 1 / 1.15)), 0: () => this.#look(newCamera(this.frames.deep)),
    };
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {import('./camera.js').Camera} camera */
  #look(camera) {
    this.camera = camera;
    this.draw();
  }

  /**
   * As a drag of so many pixels does.
   * @param {number} dx
   * @param {number} dy
   */
  turn(dx, dy) {
    this.#look(dragged(this.camera, dx, dy, Math.min(this.box.clientWidth, this.box.clientHeight)));
  }

  destroy() {
    this.ends.abort();
    this.watch.disconnect();
    this.painter.destroy();
    this.box.remove();
  }
}
