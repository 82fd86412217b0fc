// @ts-check
/** The scene on a 2-D canvas, where there is no WebGL: the same tokens, trails and globe, with simpler shading. */
import { DISTANCE, focalOf, project } from './camera.js';
import { tokenRadius } from './gl.js';
import { cssOf } from './palette.js';

/** @typedef {import('./frames.js').Frames} Frames */
/** @typedef {import('./gl.js').Look} Look */

/** Beyond so many tokens trails would make playing stutter. */
const MOST_TRAILS = 400;

/** Paints frames on a 2-D canvas. */
export class FlatPainter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  }

  /** @param {Frames} frames */
  setFrames(frames) {
    this.frames = frames;
  }

  /** @param {Look} look */
  draw(look) {
    const { context, frames } = this;
    if (!frames) return;
    const { width, height, ratio, camera } = look;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const round = frames.space === 'sphere';
    const tokens = this.#projected(look).sort((a, b) => a.z - b.z);
    const horizon = round ? 1 / DISTANCE : -Infinity;
    for (const token of tokens) if (token.z < horizon) this.#token(look, token, 0.45);
    if (round) this.#ball(look, focalOf(camera, width, height) / Math.sqrt(DISTANCE * DISTANCE - 1));
    if (frames.n <= MOST_TRAILS) this.#trails(look, horizon);
    for (const token of tokens) if (token.z >= horizon) this.#token(look, token, camera.deep ? 0.75 + token.z / 4 : 1);
  }

  /**
   * @param {Look} look
   * @returns {{i: number, x: number, y: number, z: number}[]}
   */
  #projected({ place, camera, width, height }) {
    const { frames } = this;
    const point = [0, 0, 0];
    return Array.from({ length: frames?.n ?? 0 }, (_, i) => {
      frames?.pointAt(i, place, point);
      const [x, y, z] = project(camera, point, width, height);
      return { i, x, y, z };
    });
  }

  /**
   * @param {Look} look
   * @param {number} i
   * @returns {ArrayLike<number>}
   */
  #colour(look, i) {
    const { frames } = this;
    const at = Math.min(Math.round(look.place), (frames?.count ?? 1) - 1) * (frames?.n ?? 0) + i;
    if (look.byCluster && frames?.category) return look.theme.clusters[frames.category[at]];
    return look.colours.subarray(3 * i, 3 * i + 3);
  }

  /**
   * @param {Look} look
   * @param {{i: number, x: number, y: number}} token
   * @param {number} alpha
   */
  #token(look, { i, x, y }, alpha) {
    const { context, frames } = this;
    if (!frames) return;
    const side = Math.min(look.width, look.height);
    const at = Math.min(Math.round(look.place), frames.count - 1) * frames.n + i;
    const own = tokenRadius(frames.n, side) * Math.sqrt(Math.min(30, frames.share[i] * frames.n));
    const radius = Math.max(own, ((frames.size?.[at] ?? 0) / 255) * 0.052 * side);
    context.globalAlpha = Math.min(1, alpha);
    context.fillStyle = cssOf(this.#colour(look, i));
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
    if (radius > 2.5) {
      context.fillStyle = 'rgba(255,255,255,.32)';
      context.beginPath();
      context.arc(x - 0.3 * radius, y - 0.34 * radius, 0.34 * radius, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {Look} look
   * @param {number} radius
   */
  #ball({ width, height, theme }, radius) {
    const { context } = this;
    const [x, y] = [width / 2, height / 2];
    const shade = context.createRadialGradient(x - 0.35 * radius, y - 0.45 * radius, 0, x, y, radius);
    shade.addColorStop(0, cssOf(theme.globe, theme.veil));
    shade.addColorStop(1, cssOf(theme.limb, 0.85));
    context.fillStyle = shade;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }

  /**
   * @param {Look} look
   * @param {number} horizon
   */
  #trails(look, horizon) {
    const { context, frames } = this;
    if (!frames || look.trail <= 0) return;
    const steps = 10;
    const point = [0, 0, 0];
    context.lineWidth = 1.3;
    for (let i = 0; i < frames.n; i += 1) {
      context.strokeStyle = cssOf(this.#colour(look, i));
      let before = null;
      for (let k = 0; k <= steps; k += 1) {
        frames.pointAt(i, Math.max(0, look.place - look.trail * (1 - k / steps)), point);
        const now = project(look.camera, point, look.width, look.height);
        if (before && now[2] >= horizon) {
          context.globalAlpha = 0.5 * (k / steps) ** 1.4;
          context.beginPath();
          context.moveTo(before[0], before[1]);
          context.lineTo(now[0], now[1]);
          context.stroke();
        }
        before = now;
      }
    }
    context.globalAlpha = 1;
  }

  destroy() {}
}
