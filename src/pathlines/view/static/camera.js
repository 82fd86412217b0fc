// @ts-check
/** Where we look from, as for a globe: azimuth and elevation. Rows of the turn are right, up and towards the eye. */

/**
 * @typedef {object} Camera
 * @property {number} azimuth radians
 * @property {number} elevation radians
 * @property {number} zoom
 * @property {[number, number]} shift in parts of the radius; flat scenes only
 * @property {boolean} deep whether there is a third dimension
 */

/** How far the eye is from the centre of a ball of radius one. */
export const DISTANCE = 4.6;
/** How much of the shorter side the ball takes. */
const FILLS = 0.84;
const STEEPEST = 1.5;

/**
 * @param {boolean} deep
 * @returns {Camera}
 */
export function newCamera(deep) {
  return deep
    ? { azimuth: -Math.PI / 3, elevation: 0.38, zoom: 1, shift: [0, 0], deep }
    : { azimuth: -Math.PI / 2, elevation: Math.PI / 2, zoom: 1, shift: [0, 0], deep };
}

/**
 * Rows right, up, towards the eye, as nine numbers.
 * @param {Camera} camera
 * @returns {number[]}
 */
export function turnOf({ azimuth: a, elevation: e, deep }) {
  if (!deep) return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const [ca, sa, ce, se] = [Math.cos(a), Math.sin(a), Math.cos(e), Math.sin(e)];
  return [-sa, ca, 0, -se * ca, -se * sa, ce, ce * ca, ce * sa, se];
}

/**
 * Pixels that one unit at the centre's depth takes, times the distance of the eye for deep scenes.
 * @param {Camera} camera
 * @param {number} width
 * @param {number} height
 */
export function focalOf(camera, width, height) {
  const half = (FILLS * Math.min(width, height) * camera.zoom) / 2;
  return camera.deep ? half * Math.sqrt(DISTANCE * DISTANCE - 1) : half;
}

/**
 * From the ball of radius one to pixels; the third number is the height towards the eye.
 * @param {Camera} camera
 * @param {ArrayLike<number>} p
 * @param {number} width
 * @param {number} height
 * @returns {[number, number, number]}
 */
export function project(camera, p, width, height) {
  const m = turnOf(camera);
  const x = m[0] * p[0] + m[1] * p[1] + m[2] * p[2];
  const y = m[3] * p[0] + m[4] * p[1] + m[5] * p[2];
  const z = m[6] * p[0] + m[7] * p[1] + m[8] * p[2];
  const scale = focalOf(camera, width, height) / (camera.deep ? DISTANCE - z : 1);
  return [width / 2 + scale * (x + camera.shift[0]), height / 2 - scale * (y + camera.shift[1]), z];
}

/**
 * The camera after a drag of so many pixels: deep scenes turn, flat ones move.
 * @param {Camera} camera
 * @param {number} dx
 * @param {number} dy
 * @param {number} side the shorter side of the picture
 * @returns {Camera}
 */
export function dragged(camera, dx, dy, side) {
  if (!camera.deep) {
    const unit = focalOf(camera, side, side);
    return { ...camera, shift: [camera.shift[0] + dx / unit, camera.shift[1] - dy / unit] };
  }
  const angle = Math.PI / side / Math.sqrt(camera.zoom);
  const elevation = Math.min(STEEPEST, Math.max(-STEEPEST, camera.elevation + dy * angle));
  return { ...camera, azimuth: camera.azimuth - dx * angle, elevation };
}

/**
 * @param {Camera} camera
 * @param {number} factor
 * @returns {Camera}
 */
export function zoomed(camera, factor) {
  return { ...camera, zoom: Math.min(40, Math.max(0.4, camera.zoom * factor)) };
}
