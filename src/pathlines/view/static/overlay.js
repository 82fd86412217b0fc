// @ts-check
/** What is written and drawn over the tokens: axes, the circle, ellipses, polytopes, hyperplanes, masses of clusters. */
import { DISTANCE, project } from './camera.js';
import { formatNumber, ticksOf } from './numbers.js';
import { cssOf } from './palette.js';

/** @typedef {import('./frames.js').Frames} Frames */
/** @typedef {import('./gl.js').Look} Look */
/** @typedef {CanvasRenderingContext2D} Context */

/** Masses of so many clusters are written. */
const MOST_NUMBERS = 12;
/** Clusters lighter than this have no number. */
const LIGHTEST = 0.015;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/**
 * What lies under the tokens.
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
export function drawUnder(context, frames, look) {
  clear(context, look);
  if (frames.space === 'circle') drawCircle(context, look);
  if (frames.space === 'plane' || frames.space === 'ellipses') drawAxes(context, frames, look);
  if (frames.space === 'space') drawBox(context, frames, look);
  if (frames.space === 'ellipses') drawEllipses(context, frames, look);
}

/**
 * What lies over them.
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
export function drawOver(context, frames, look) {
  clear(context, look);
  for (const overlay of frames.data.overlays ?? []) drawMark(context, frames, look, overlay);
  drawMasses(context, frames, look);
}

/**
 * @param {Context} context
 * @param {Look} look
 */
function clear(context, look) {
  context.setTransform(look.ratio, 0, 0, look.ratio, 0, 0);
  context.clearRect(0, 0, look.width, look.height);
  context.lineJoin = 'round';
}

/**
 * @param {Context} context
 * @param {Look} look
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} [colour]
 * @param {CanvasTextAlign} [align]
 */
function write(context, look, text, x, y, colour = look.theme.muted, align = 'center') {
  context.textAlign = align;
  context.textBaseline = 'middle';
  context.lineWidth = 3;
  context.strokeStyle = cssOf(look.theme.paperRgb, 0.8);
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/**
 * @param {Context} context
 * @param {number[][]} points
 */
function path(context, points) {
  context.beginPath();
  points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
}

/**
 * @param {Context} context
 * @param {Look} look
 */
function drawCircle(context, look) {
  const turn = Array.from({ length: 181 }, (_, k) => (2 * Math.PI * k) / 180);
  const at = (/** @type {number} */ r) =>
    turn.map((a) => project(look.camera, [r * Math.cos(a), r * Math.sin(a), 0], look.width, look.height));
  context.strokeStyle = look.theme.dark ? '#33415a' : '#c4d0de';
  context.lineWidth = 1.4;
  path(context, at(1));
  context.stroke();
}

/**
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
function drawAxes(context, frames, look) {
  const { width, height, camera } = look;
  const [x0, y0] = project(camera, [0, 0, 0], width, height);
  const unit = project(camera, [1, 0, 0], width, height)[0] - x0;
  const toX = (/** @type {number} */ v) => x0 + ((v - frames.centre[0]) / frames.radii[0]) * unit;
  const toY = (/** @type {number} */ v) => y0 - ((v - frames.centre[1]) / frames.radii[1]) * unit;
  const fromX = (/** @type {number} */ p) => frames.centre[0] + ((p - x0) / unit) * frames.radii[0];
  const fromY = (/** @type {number} */ p) => frames.centre[1] - ((p - y0) / unit) * frames.radii[1];
  context.font = `11px ${FONT}`;
  context.lineWidth = 1;
  const xs = ticksOf(fromX(0), fromX(width), Math.max(3, width / 110));
  const ys = ticksOf(fromY(height), fromY(0), Math.max(3, height / 90));
  context.strokeStyle = look.theme.grid;
  for (const v of xs) path(context, [[toX(v), 0], [toX(v), height]]), context.stroke();
  for (const v of ys) path(context, [[0, toY(v)], [width, toY(v)]]), context.stroke();
  for (const v of xs) if (toX(v) > 44 && toX(v) < width - 30) write(context, look, formatNumber(v), toX(v), height - 10);
  for (const v of ys) if (toY(v) > 14 && toY(v) < height - 26) write(context, look, formatNumber(v), 6, toY(v), undefined, 'left');
  write(context, look, 'x₁', width - 12, height - 10);
  write(context, look, 'x₂', 12, 10);
}

/**
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
function drawBox(context, frames, look) {
  const corner = (/** @type {number} */ k) =>
    frames.toWorld([0, 1, 2].map((c) => ((k >> c) & 1 ? frames.high[c] : frames.low[c])));
  const seen = Array.from({ length: 8 }, (_, k) => project(look.camera, corner(k), look.width, look.height));
  const nearest = seen.reduce((best, p, k) => (p[2] > seen[best][2] ? k : best), 0);
  context.lineWidth = 1;
  context.strokeStyle = look.theme.dark ? '#2a3648' : '#d3dbe4';
  for (let a = 0; a < 8; a += 1) {
    for (const c of [0, 1, 2]) {
      const b = a | (1 << c);
      if (b === a || a === nearest || b === nearest) continue;
      path(context, [seen[a], seen[b]]);
      context.stroke();
    }
  }
  context.font = `11px ${FONT}`;
  ['x₁', 'x₂', 'x₃'].forEach((name, c) => {
    const edges = [0, 1, 2, 3, 4, 5, 6, 7].filter((k) => !((k >> c) & 1)).map((k) => [k, k | (1 << c)]);
    const low = (/** @type {number[]} */ e) => seen[e[0]][1] + seen[e[1]][1];
    const edge = edges.filter((e) => !e.includes(nearest)).sort((p, q) => low(q) - low(p))[0];
    const [p, q] = [seen[edge[0]], seen[edge[1]]];
    write(context, look, name, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2 + 12);
    write(context, look, formatNumber(frames.low[c], 3), p[0], p[1] + 10);
    write(context, look, formatNumber(frames.high[c], 3), q[0], q[1] + 10);
  });
}

/**
 * Two standard deviations of each Gaussian, with its mean.
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
function drawEllipses(context, frames, look) {
  const { raw, n, components, count } = frames;
  const k = Math.min(Math.floor(look.place), count - 1);
  const s = look.place - k;
  const next = Math.min(k + 1, count - 1);
  for (let i = 0; i < n; i += 1) {
    const at = (/** @type {number} */ c) => {
      const a = raw[(k * n + i) * components + c];
      return a + s * (raw[(next * n + i) * components + c] - a);
    };
    const [mx, my, xx, xy, yy] = [0, 1, 2, 3, 4].map(at);
    const a = Math.sqrt(Math.max(xx, 0));
    const b = a > 0 ? xy / a : 0;
    const c = Math.sqrt(Math.max(yy - b * b, 0));
    const outline = Array.from({ length: 65 }, (_, j) => {
      const [u, v] = [2 * Math.cos((j * Math.PI) / 32), 2 * Math.sin((j * Math.PI) / 32)];
      return project(look.camera, frames.toWorld([mx + a * u, my + b * u + c * v]), look.width, look.height);
    });
    const colour = look.colours.subarray(3 * i, 3 * i + 3);
    path(context, outline);
    context.fillStyle = cssOf(colour, 0.16);
    context.fill();
    context.strokeStyle = cssOf(colour);
    context.lineWidth = 1.6;
    context.stroke();
  }
}

/**
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 * @param {import('./frames.js').Overlay} overlay
 */
function drawMark(context, frames, look, overlay) {
  const seen = (overlay.points ?? []).map((p) => project(look.camera, frames.toWorld(p), look.width, look.height));
  context.font = `12px ${FONT}`;
  context.strokeStyle = look.theme.mark;
  context.lineWidth = 1.3;
  if (overlay.kind === 'polytope') {
    for (const [a, b] of overlay.edges ?? []) {
      path(context, [seen[a], seen[b]]);
      context.stroke();
    }
  }
  if (overlay.kind === 'hyperplane') {
    context.setLineDash([5, 4]);
    for (const line of cuts(frames, overlay)) {
      path(context, line.map((p) => project(look.camera, p, look.width, look.height)));
      context.stroke();
    }
    context.setLineDash([]);
    seen.push(project(look.camera, cuts(frames, overlay)[0][0], look.width, look.height));
  }
  if (overlay.kind !== 'hyperplane') {
    for (const [x, y, z] of seen) drawCross(context, look, x, y, frames.space === 'sphere' && z < 1 / DISTANCE);
  }
  if (!overlay.label || !seen.length) return;
  const [xs, ys] = [seen.map((p) => p[0]), seen.map((p) => p[1])];
  const under = Math.min(look.height - 6, Math.max(...ys) + 22); // numbers of clusters stand above their tokens
  if (overlay.kind === 'polytope') write(context, look, overlay.label, (Math.min(...xs) + Math.max(...xs)) / 2, under, look.theme.ink);
  else write(context, look, overlay.label, seen[0][0], seen[0][1] - 14, look.theme.ink);
}

/**
 * @param {Context} context
 * @param {Look} look
 * @param {number} x
 * @param {number} y
 * @param {boolean} behind
 */
function drawCross(context, look, x, y, behind) {
  context.globalAlpha = behind ? 0.3 : 1;
  for (const [colour, width] of /** @type {[string, number][]} */ ([[look.theme.paper, 4.5], [look.theme.mark, 2]])) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    path(context, [[x - 5, y - 5], [x + 5, y + 5]]);
    context.stroke();
    path(context, [[x - 5, y + 5], [x + 5, y - 5]]);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/**
 * Where the hyperplane ⟨normal, x⟩ = offset cuts what is shown, as lines in the ball of radius one.
 * @param {Frames} frames
 * @param {import('./frames.js').Overlay} overlay
 * @returns {number[][][]}
 */
export function cuts(frames, overlay) {
  const given = overlay.normal ?? [1, 0, 0];
  const normal = [0, 1, 2].map((c) => (given[c] ?? 0) * frames.radii[c]);
  const length = Math.hypot(...normal) || 1;
  const w = normal.map((v) => v / length);
  const middle = [0, 1, 2].reduce((sum, c) => sum + (given[c] ?? 0) * frames.centre[c], 0);
  const h = ((overlay.offset ?? 0) - middle) / length;
  const away = Math.abs(w[2]) < 0.9 && frames.deep ? [0, 0, 1] : [-w[1], w[0], 0];
  const dot = away.reduce((sum, v, c) => sum + v * w[c], 0);
  let u = away.map((v, c) => v - dot * w[c]);
  if (Math.hypot(...u) < 1e-9) u = [1, 0, 0];
  u = u.map((v) => v / Math.hypot(...u));
  const v = [w[1] * u[2] - w[2] * u[1], w[2] * u[0] - w[0] * u[2], w[0] * u[1] - w[1] * u[0]];
  const at = (/** @type {number} */ a, /** @type {number} */ b) => w.map((x, c) => h * x + a * u[c] + b * v[c]);
  if (!frames.deep) return [[at(-1.5, 0), at(1.5, 0)]];
  if (frames.space === 'sphere') {
    const r = Math.sqrt(Math.max(0, 1 - h * h));
    return [Array.from({ length: 121 }, (_, k) => at(r * Math.cos((k * Math.PI) / 60), r * Math.sin((k * Math.PI) / 60)))];
  }
  return [[at(-0.7, -0.7), at(0.7, -0.7), at(0.7, 0.7), at(-0.7, 0.7), at(-0.7, -0.7)]];
}

/**
 * The number of tokens of each heavy cluster, or its share of the mass.
 * @param {Context} context
 * @param {Frames} frames
 * @param {Look} look
 */
function drawMasses(context, frames, look) {
  if (frames.data.groups) return;
  const heavy = frames.clustersAt(look.place).filter((c) => c.count > 1 && c.share >= LIGHTEST).slice(0, MOST_NUMBERS);
  const side = Math.min(look.width, look.height);
  const point = [0, 0, 0];
  context.font = `600 12px ${FONT}`;
  /** @type {number[][]} */
  const taken = [];
  for (const cluster of heavy) {
    frames.pointAt(cluster.token, look.place, point);
    const [x, y, z] = project(look.camera, point, look.width, look.height);
    if (frames.space === 'sphere' && z < 1 / DISTANCE) continue;
    const up = y - 9 - 0.052 * side * Math.sqrt(cluster.share);
    if (taken.some(([a, b]) => Math.abs(a - x) < 26 && Math.abs(b - up) < 15)) continue;
    taken.push([x, up]);
    write(context, look, frames.data.masses ? formatNumber(cluster.share, 2) : String(cluster.count), x, up, look.theme.ink);
  }
}
