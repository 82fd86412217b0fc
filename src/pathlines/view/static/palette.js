// @ts-check
/** Colours of light and dark pages, of tokens by where they start, and of clusters (Okabe and Ito). */

/** @typedef {import('./frames.js').Frames} Frames */
/** @typedef {[number, number, number]} Rgb from 0 to 1 */
/**
 * @typedef {object} Theme
 * @property {boolean} dark
 * @property {string} paper
 * @property {string} ink
 * @property {string} muted
 * @property {string} grid
 * @property {string} line the simulated curve
 * @property {string} mark overlays
 * @property {Rgb} globe
 * @property {Rgb} limb
 * @property {Rgb} air
 * @property {number} veil how much the globe hides
 * @property {Rgb} paperRgb
 * @property {Rgb[]} clusters the last one is for all others
 */

/**
 * @param {string} hex
 * @returns {Rgb}
 */
export function rgbOf(hex) {
  const number = parseInt(hex.slice(1), 16);
  return [(number >> 16) / 255, ((number >> 8) & 255) / 255, (number & 255) / 255];
}

/**
 * @param {ArrayLike<number>} rgb
 * @param {number} [alpha]
 */
export function cssOf(rgb, alpha = 1) {
  const [r, g, b] = [rgb[0], rgb[1], rgb[2]].map((v) => Math.round(255 * Math.min(1, Math.max(0, v))));
  return alpha < 1 ? `rgba(${r},${g},${b},${alpha})` : `rgb(${r},${g},${b})`;
}

const ON_LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#b8ab12', '#8b95a1'];
const ON_DARK = ['#56b4e9', '#f0813a', '#1fc498', '#e09ac2', '#f2b035', '#4a90e2', '#f0e442', '#75808f'];

/** @type {Theme} */
export const LIGHT = {
  dark: false, paper: '#ffffff', ink: '#1f2328', muted: '#5b6570', grid: '#e3e8ed', line: '#0b62a8', mark: '#3d4650',
  globe: rgbOf('#f3f7fc'), limb: rgbOf('#b9cbe0'), air: rgbOf('#8fb4dc'), veil: 0.66, paperRgb: rgbOf('#ffffff'),
  clusters: ON_LIGHT.map(rgbOf),
};
/** @type {Theme} */
export const DARK = {
  dark: true, paper: '#0c1018', ink: '#e8edf4', muted: '#97a3b4', grid: '#212a38', line: '#6cb8f5', mark: '#c2ccd9',
  globe: rgbOf('#1d2b45'), limb: rgbOf('#0d1526'), air: rgbOf('#4d8fe0'), veil: 0.7, paperRgb: rgbOf('#0c1018'),
  clusters: ON_DARK.map(rgbOf),
};

/**
 * A colour of even lightness (OKLCH, Björn Ottosson).
 * @param {number} lightness
 * @param {number} chroma
 * @param {number} hue radians
 * @returns {Rgb}
 */
export function oklch(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const seen = linear.map((v) => Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
  return /** @type {Rgb} */ (seen);
}

/** The hue that looks muddy unless it is light. */
const YELLOW = 1.8;

/**
 * Hue by direction and lightness by height above the middle of the start, so that neighbours have like colours.
 * @param {Frames} frames
 * @param {boolean} dark
 * @returns {Float32Array} three numbers a token
 */
export function initialColours(frames, dark) {
  const { n, world } = frames;
  const middle = [0, 0, 0];
  for (let i = 0; i < 3 * n; i += 1) middle[i % 3] += world[i] / n;
  let reach = 1e-12;
  for (let i = 0; i < n; i += 1) {
    reach = Math.max(reach, Math.hypot(...[0, 1, 2].map((c) => world[3 * i + c] - middle[c])));
  }
  const colours = new Float32Array(3 * n);
  for (let i = 0; i < n; i += 1) {
    const [x, y, z] = [0, 1, 2].map((c) => (world[3 * i + c] - middle[c]) / reach);
    const height = frames.deep ? z : 0;
    const chroma = 0.06 + 0.095 * Math.min(1, Math.hypot(x, y));
    const hue = Math.atan2(y, x) + 0.6;
    const lightness = (dark ? 0.74 : 0.61) + 0.12 * height + 0.08 * Math.cos(hue - YELLOW);
    colours.set(oklch(lightness, chroma, hue), 3 * i);
  }
  return colours;
}

/**
 * The theme of a wish: 'light', 'dark', or what the reader's system says.
 * @param {string|undefined} wish
 * @returns {Theme}
 */
export function themeOf(wish) {
  if (wish === 'light') return LIGHT;
  if (wish === 'dark') return DARK;
  return globalThis.matchMedia?.('(prefers-color-scheme: dark)').matches ? DARK : LIGHT;
}
