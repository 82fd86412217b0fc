// @ts-check
/**
 * The scene in WebGL 2. All frames are on the card from the start: between frames the card interpolates, and playing
 * sends it a handful of numbers a picture.
 */
import { DISTANCE, focalOf, turnOf } from './camera.js';

/** @typedef {import('./frames.js').Frames} Frames */
/** @typedef {import('./camera.js').Camera} Camera */
/** @typedef {import('./palette.js').Theme} Theme */
/**
 * @typedef {object} Look what a painter is told
 * @property {number} place
 * @property {Camera} camera
 * @property {Theme} theme
 * @property {boolean} byCluster
 * @property {number} trail frames
 * @property {number} ratio device pixels a pixel
 * @property {number} width
 * @property {number} height
 * @property {Float32Array} colours three a token
 */

const SHARED = `#version 300 es
precision highp float;
uniform mat3 turn; uniform vec2 viewport; uniform vec2 shift; uniform float focal; uniform float deep;
uniform float side; uniform float unit; uniform float horizon;
vec3 placed(vec3 a, vec3 b, float s) {
  vec3 p = mix(a, b, s);
  return unit > 0.5 ? p / max(length(p), 1e-6) : p;
}
vec3 turned(vec3 p) { return p * turn; }
bool hidden(float height) { return side * (height - horizon) < 0.0; }
vec4 seen(vec3 q) {
  float w = deep > 0.5 ? ${DISTANCE.toFixed(3)} - q.z : 1.0;
  return vec4((q.xy + (deep > 0.5 ? vec2(0.0) : shift)) * focal * 2.0 / viewport, -q.z * 0.4 * w, w);
}
float near(vec3 q) { return deep > 0.5 ? clamp(0.5 + 0.5 * q.z, 0.0, 1.0) : 1.0; }
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

const POINTS = [
  `${SHARED}
in vec3 here; in vec3 next; in vec3 colour; in float category; in float size; in float weight;
uniform float mixing; uniform float base; uniform float largest; uniform float byCluster; uniform float spread;
uniform vec3 clusters[8];
out vec3 tint; out float depth; out float radius;
void main() {
  vec3 q = turned(placed(here, next, mixing));
  vec4 at = seen(q);
  tint = byCluster > 0.5 ? clusters[int(category + 0.5)] : colour;
  depth = near(q);
  float grown = max(base * weight, largest * size);
  radius = spread * grown * (deep > 0.5 ? ${(DISTANCE - 0.3).toFixed(3)} / at.w : 1.0);
  gl_PointSize = 2.0 * radius + 2.0;
  at.z -= 0.06 * size * at.w;
  gl_Position = hidden(q.z) ? NOWHERE : at;
}`,
  `#version 300 es
precision highp float;
in vec3 tint; in float depth; in float radius;
uniform vec3 paper; uniform float fade; uniform float glow; uniform float dark;
out vec4 result;
void main() {
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * (radius + 1.0) / radius;
  float r = length(p);
  if (glow > 0.5) {
    float shine = exp(-3.5 * r * r) * smoothstep(1.0, 0.6, r) * (0.25 + 0.5 * depth);
    result = vec4(tint * shine * fade, 0.0);
    return;
  }
  float cover = clamp((1.0 - r) * radius + 0.5, 0.0, 1.0);
  if (cover <= 0.02) discard;
  vec3 normal = vec3(p.x, -p.y, sqrt(max(0.0, 1.0 - r * r)));
  float light = dot(normal, normalize(vec3(-0.45, 0.6, 0.75)));
  vec3 shaded = tint * (0.72 + 0.34 * max(light, 0.0)) + 0.32 * pow(max(light, 0.0), 9.0);
  shaded = mix(shaded, shaded * (dark > 0.5 ? 0.72 : 0.84), smoothstep(0.78, 1.0, r));
  result = vec4(mix(paper, shaded, mix(0.5, 1.0, depth) * fade), 1.0) * cover;
}`,
];

const STRANDS = [
  `${SHARED}
in vec2 corner; in vec3 here; in vec3 next; in vec3 colour; in float category;
uniform float from; uniform float to; uniform float width; uniform float byCluster; uniform float flatTint;
uniform vec3 clusters[8]; uniform vec3 plain; uniform float alphaFrom; uniform float alphaTo;
out vec4 tint;
void main() {
  vec3 a = turned(placed(here, next, from));
  vec3 b = turned(placed(here, next, to));
  vec3 q = corner.x < 0.5 ? a : b;
  vec4 pa = seen(a); vec4 pb = seen(b);
  vec2 along = (pb.xy / pb.w - pa.xy / pa.w) * viewport;
  float span = length(along);
  vec2 across = span > 1e-4 ? vec2(-along.y, along.x) / span : vec2(0.0);
  vec4 at = corner.x < 0.5 ? pa : pb;
  at.xy += across * corner.y * width / viewport * at.w;
  vec3 chosen = byCluster > 0.5 ? clusters[int(category + 0.5)] : colour;
  float alpha = mix(alphaFrom, alphaTo, corner.x) * mix(0.35, 1.0, near(q));
  tint = vec4(mix(chosen, plain, flatTint), 1.0) * alpha;
  gl_Position = hidden(0.5 * (a.z + b.z)) || span < 1e-4 ? NOWHERE : at;
}`,
  `#version 300 es
precision highp float;
in vec4 tint; out vec4 result;
void main() { result = tint; }`,
];

const GLOBE = [
  `#version 300 es
precision highp float;
in vec2 corner; uniform vec2 viewport; uniform float limbRadius; uniform float reach;
out vec2 p;
void main() {
  p = vec2(corner.x * 2.0 - 1.0, corner.y) * reach;
  gl_Position = vec4(p * limbRadius * 2.0 / viewport, 0.99, 1.0);
}`,
  `#version 300 es
precision highp float;
in vec2 p; uniform vec3 globe; uniform vec3 limb; uniform vec3 air; uniform float veil; uniform float dark;
uniform float limbRadius;
out vec4 result;
void main() {
  float r = length(p);
  float inside = clamp((1.0 - r) * limbRadius + 0.5, 0.0, 1.0);
  float height = sqrt(max(0.0, 1.0 - r * r));
  float light = clamp(dot(vec3(p, height), normalize(vec3(-0.45, 0.6, 0.75))), 0.0, 1.0);
  vec3 body = mix(limb, globe, smoothstep(0.0, 0.95, 0.35 * height + 0.75 * light));
  float rim = pow(1.0 - height, 4.0);
  body += air * rim * (dark > 0.5 ? 0.42 : -0.10);
  float alpha = inside * mix(veil, 0.93, rim);
  float halo = r > 1.0 ? exp(-13.0 * (r - 1.0)) * (dark > 0.5 ? 0.4 : 0.16) * smoothstep(1.2, 1.04, r) : 0.0;
  result = vec4(body, 1.0) * alpha + vec4(air, dark > 0.5 ? 0.35 : 1.0) * halo * (1.0 - inside);
}`,
];

/**
 * @param {WebGL2RenderingContext} gl
 * @param {string[]} sources
 */
function programOf(gl, sources) {
  const program = /** @type {WebGLProgram} */ (gl.createProgram());
  [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].forEach((kind, k) => {
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    gl.shaderSource(shader, sources[k]);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  });
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
    const logs = (gl.getAttachedShaders(program) ?? []).map((s) => gl.getShaderInfoLog(s)).join(' ');
    throw new Error(`The scene's shader was refused: ${gl.getProgramInfoLog(program)} ${logs}`);
  }
  /** @type {Record<string, WebGLUniformLocation>} */
  const uniforms = {};
  for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i += 1) {
    const { name } = /** @type {WebGLActiveInfo} */ (gl.getActiveUniform(program, i));
    uniforms[name.replace('[0]', '')] = /** @type {WebGLUniformLocation} */ (gl.getUniformLocation(program, name));
  }
  const at = (/** @type {string} */ name) => gl.getAttribLocation(program, name);
  return { program, uniforms, at };
}

/** Meridians and parallels as segments of three numbers each end. */
function graticule() {
  const lines = [];
  const point = (/** @type {number} */ lat, /** @type {number} */ lon) => [
    Math.cos(lat) * Math.cos(lon), Math.cos(lat) * Math.sin(lon), Math.sin(lat),
  ];
  const steps = 72;
  for (let k = 0; k < 12; k += 1) {
    for (let j = 2; j < steps - 2; j += 1) {
      const lats = [j, j + 1].map((v) => -Math.PI / 2 + (Math.PI * v) / steps);
      lines.push(...point(lats[0], (k * Math.PI) / 6), ...point(lats[1], (k * Math.PI) / 6));
    }
  }
  for (let k = -2; k <= 2; k += 1) {
    for (let j = 0; j < 2 * steps; j += 1) {
      const lons = [j, j + 1].map((v) => (Math.PI * v) / steps);
      lines.push(...point((k * Math.PI) / 6, lons[0]), ...point((k * Math.PI) / 6, lons[1]));
    }
  }
  return new Float32Array(lines);
}

/** Paints frames on a canvas; the constructor throws where there is no WebGL 2. */
export class GlPainter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const gl = canvas.getContext('webgl2', { antialias: true, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error('no WebGL 2');
    this.gl = gl;
    this.points = programOf(gl, POINTS);
    this.strands = programOf(gl, STRANDS);
    this.globe = programOf(gl, GLOBE);
    this.buffers = /** @type {Record<string, WebGLBuffer>} */ ({});
    this.#fill('corner', new Float32Array([0, -1, 1, -1, 0, 1, 1, 1]));
    this.net = graticule();
    this.#fill('net', this.net);
  }

  /**
   * @param {string} name
   * @param {ArrayBufferView} values
   */
  #fill(name, values) {
    const { gl } = this;
    this.buffers[name] ??= /** @type {WebGLBuffer} */ (gl.createBuffer());
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
  }

  /** @param {Frames} frames */
  setFrames(frames) {
    const { n } = frames;
    this.frames = frames;
    this.#fill('world', frames.world);
    this.#fill('category', frames.category ?? new Uint8Array(frames.count * n));
    this.#fill('size', frames.size ?? new Uint8Array(frames.count * n));
    this.#fill('weight', Float32Array.from(frames.share, (share) => Math.sqrt(Math.min(30, share * n))));
    this.colours = null;
  }

  /**
   * @param {{at: (name: string) => number}} program
   * @param {string} name
   * @param {string} buffer
   * @param {number} length
   * @param {number} offset bytes
   * @param {{kind?: number, normal?: boolean, every?: number, stride?: number}} [how]
   */
  #attribute(program, name, buffer, length, offset, how = {}) {
    const { gl } = this;
    const place = program.at(name);
    if (place < 0) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, length, how.kind ?? gl.FLOAT, how.normal ?? false, how.stride ?? 0, offset);
    gl.vertexAttribDivisor(place, how.every ?? 0);
  }

  /**
   * @param {{program: WebGLProgram, uniforms: Record<string, WebGLUniformLocation>}} program
   * @param {Record<string, number|number[]>} values
   */
  #use(program, values) {
    const { gl } = this;
    gl.useProgram(program.program);
    for (const [name, value] of Object.entries(values)) {
      const place = program.uniforms[name];
      if (place === undefined) continue;
      if (typeof value === 'number') gl.uniform1f(place, value);
      else if (value.length === 2) gl.uniform2fv(place, value);
      else if (value.length === 3) gl.uniform3fv(place, value);
      else if (value.length === 9) gl.uniformMatrix3fv(place, false, value);
      else gl.uniform3fv(place, value);
    }
  }

  /** @param {Look} look */
  draw(look) {
    const { gl, frames } = this;
    if (!frames || gl.isContextLost()) return;
    const { camera, ratio, theme } = look;
    const [width, height] = [look.width * ratio, look.height * ratio];
    const horizon = frames.space === 'sphere' ? 1 / DISTANCE : 0;
    const common = {
      turn: turnOf(camera), viewport: [width, height], shift: camera.shift, focal: focalOf(camera, width, height),
      deep: camera.deep ? 1 : 0, unit: frames.unit ? 1 : 0, horizon,
      byCluster: look.byCluster && frames.category ? 1 : 0, clusters: theme.clusters.flat(),
    };
    if (this.colours !== look.colours) this.#fill('colour', (this.colours = look.colours));
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.BLEND);
    if (frames.space !== 'sphere') return this.#half(look, common, 0);
    this.#half(look, common, -1);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    this.#ball(look, common);
    return this.#half(look, common, 1);
  }

  /**
   * What is on one side of the horizon, or everything.
   * @param {Look} look
   * @param {Record<string, number|number[]>} common
   * @param {number} side
   */
  #half(look, common, side) {
    const { gl, frames } = this;
    if (!frames) return;
    const { theme, ratio } = look;
    gl.disable(gl.DEPTH_TEST);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    if (frames.space === 'sphere') this.#net(look, { ...common, side });
    if (look.trail > 0 && frames.count > 1) this.#trails(look, { ...common, side });
    const radius = ratio * tokenRadius(frames.n, Math.min(look.width, look.height));
    const values = {
      ...common, side, base: radius, largest: ratio * 0.052 * Math.min(look.width, look.height), spread: 1, glow: 0,
      paper: theme.paperRgb, fade: side < 0 ? 0.8 : 1, dark: theme.dark ? 1 : 0,
      mixing: look.place - Math.floor(look.place),
    };
    const k = Math.min(Math.floor(look.place), frames.count - 1);
    const next = Math.min(k + 1, frames.count - 1);
    const nearest = Math.min(Math.round(look.place), frames.count - 1);
    const bytes = 12 * frames.n;
    const program = this.points;
    this.#attribute(program, 'here', 'world', 3, k * bytes);
    this.#attribute(program, 'next', 'world', 3, next * bytes);
    this.#attribute(program, 'colour', 'colour', 3, 0);
    this.#attribute(program, 'category', 'category', 1, nearest * frames.n, { kind: gl.UNSIGNED_BYTE });
    this.#attribute(program, 'size', 'size', 1, nearest * frames.n, { kind: gl.UNSIGNED_BYTE, normal: true });
    this.#attribute(program, 'weight', 'weight', 1, 0);
    if (theme.dark && side >= 0 && frames.n <= 1200) {
      gl.blendEquation(gl.MAX);
      this.#use(program, { ...values, spread: 2.8, glow: 1, fade: 0.75 });
      gl.drawArrays(gl.POINTS, 0, frames.n);
      gl.blendEquation(gl.FUNC_ADD);
    }
    gl.enable(gl.DEPTH_TEST);
    this.#use(program, values);
    gl.drawArrays(gl.POINTS, 0, frames.n);
  }

  /**
   * @param {Look} look
   * @param {Record<string, number|number[]>} values
   */
  #trails(look, values) {
    const { gl, frames } = this;
    if (!frames) return;
    const program = this.strands;
    this.#attribute(program, 'corner', 'corner', 2, 0);
    this.#attribute(program, 'colour', 'colour', 3, 0, { every: 1 });
    const strength = (look.theme.dark ? 0.62 : 0.5) * Math.min(1, 22 / Math.sqrt(frames.n) + 0.2);
    const start = Math.max(0, look.place - look.trail);
    const common = { ...values, width: 1.5 * look.ratio, flatTint: 0, plain: [0, 0, 0] };
    const age = (/** @type {number} */ at) => strength * Math.max(0, 1 - (look.place - at) / look.trail) ** 1.4;
    for (let k = Math.floor(start); k < look.place; k += 1) {
      const next = Math.min(k + 1, frames.count - 1);
      const [from, to] = [Math.max(0, start - k), Math.min(1, look.place - k)];
      this.#attribute(program, 'here', 'world', 3, k * 12 * frames.n, { every: 1 });
      this.#attribute(program, 'next', 'world', 3, next * 12 * frames.n, { every: 1 });
      this.#attribute(program, 'category', 'category', 1, k * frames.n, { kind: gl.UNSIGNED_BYTE, every: 1 });
      this.#use(program, { ...common, from, to, alphaFrom: age(k + from), alphaTo: age(k + to) });
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, frames.n);
    }
  }

  /**
   * @param {Look} look
   * @param {Record<string, number|number[]>} values
   */
  #net(look, values) {
    const { gl } = this;
    const program = this.strands;
    const alpha = (look.theme.dark ? 0.2 : 0.32) * (values.side === -1 ? 0.4 : 1);
    this.#attribute(program, 'corner', 'corner', 2, 0);
    this.#attribute(program, 'here', 'net', 3, 0, { every: 1, stride: 24 });
    this.#attribute(program, 'next', 'net', 3, 12, { every: 1, stride: 24 });
    for (const name of ['colour', 'category']) {
      const place = program.at(name);
      if (place >= 0) gl.disableVertexAttribArray(place);
    }
    this.#use(program, {
      ...values, byCluster: 0, width: look.ratio, flatTint: 1, plain: look.theme.air, from: 0, to: 1,
      alphaFrom: alpha, alphaTo: alpha,
    });
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.net.length / 6);
  }

  /**
   * @param {Look} look
   * @param {Record<string, any>} common
   */
  #ball(look, common) {
    const { gl } = this;
    const { theme } = look;
    this.#attribute(this.globe, 'corner', 'corner', 2, 0);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.disable(gl.DEPTH_TEST);
    this.#use(this.globe, {
      viewport: common.viewport, limbRadius: common.focal / Math.sqrt(DISTANCE * DISTANCE - 1), reach: 1.22,
      globe: theme.globe, limb: theme.limb, air: theme.air, veil: theme.veil, dark: theme.dark ? 1 : 0,
    });
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  destroy() {
    for (const buffer of Object.values(this.buffers)) this.gl.deleteBuffer(buffer);
    for (const { program } of [this.points, this.strands, this.globe]) this.gl.deleteProgram(program);
    this.gl.getExtension('WEBGL_lose_context')?.loseContext();
  }
}

/**
 * How large a token of average mass is drawn: the more there are, the smaller.
 * @param {number} n
 * @param {number} side pixels
 */
export function tokenRadius(n, side) {
  return Math.max(1.4, Math.min(0.016 * side, (0.19 * side) / Math.sqrt(n + 60)));
}
