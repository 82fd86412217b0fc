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
 * @property {'globe'|'tokens'} [part] of the scene that is drawn; all of it by default
 */

/** Up to so many tokens trails are smooth strips, beyond they are lines of one pixel, a third of the work. */
export const FINE_TRAILS = 1000;
/** Up to so many tokens they glow on dark pages. */
export const GLOWING = 1200;
/** Points in a row of a texture. */
const ROW = 4096;

const SHARED = `#version 300 es
precision highp float;
uniform mat3 turn; uniform vec2 viewport; uniform vec2 shift; uniform float focal; uniform float deep;
uniform float unit; uniform float horizon; uniform float veiled;
vec3 placed(vec3 a, vec3 b, float s) {
  vec3 p = mix(a, b, s);
  return unit > 0.5 ? p / max(length(p), 1e-6) : p;
}
vec3 turned(vec3 p) { return p * turn; }
float clearness(vec3 q) { return mix(veiled, 1.0, smoothstep(horizon - 0.06, horizon + 0.02, q.z)); }
vec4 seen(vec3 q) {
  float w = deep > 0.5 ? ${DISTANCE.toFixed(3)} - q.z : 1.0;
  return vec4((q.xy + (deep > 0.5 ? vec2(0.0) : shift)) * focal * 2.0 / viewport, -q.z * 0.4 * w, w);
}
float near(vec3 q) { return deep > 0.5 ? clamp(0.5 + 0.5 * q.z, 0.0, 1.0) : 1.0; }
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

const POINTS = [
  `${SHARED}
in vec4 here; in vec4 next; in vec3 colour; in float weight;
uniform float mixing; uniform float base; uniform float largest; uniform float byCluster; uniform float spread;
uniform vec3 clusters[8];
out vec3 tint; out float depth; out float radius; out float clear;
void main() {
  vec3 q = turned(placed(here.xyz, next.xyz, mixing));
  vec4 at = seen(q);
  float size = fract(mixing < 0.5 ? here.w : next.w) * 1.004;
  tint = byCluster > 0.5 ? clusters[int(mixing < 0.5 ? here.w : next.w)] : colour;
  depth = near(q);
  clear = clearness(q);
  float grown = max(base * weight, largest * size);
  radius = spread * grown * (deep > 0.5 ? ${(DISTANCE - 0.3).toFixed(3)} / at.w : 1.0);
  gl_PointSize = 2.0 * radius + 2.0;
  at.z -= 0.06 * size * at.w;
  gl_Position = at;
}`,
  `#version 300 es
precision highp float;
in vec3 tint; in float depth; in float radius; in float clear;
uniform vec3 paper; uniform float fade; uniform float glow; uniform float dark;
out vec4 result;
void main() {
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * (radius + 1.0) / radius;
  float r = length(p);
  if (glow > 0.5) {
    float shine = exp(-3.5 * r * r) * smoothstep(1.0, 0.6, r) * (0.25 + 0.5 * depth);
    result = vec4(tint * shine * fade * clear * clear, 0.0);
    return;
  }
  float cover = clamp((1.0 - r) * radius + 0.5, 0.0, 1.0);
  if (cover <= 0.02) discard;
  vec3 normal = vec3(p.x, -p.y, sqrt(max(0.0, 1.0 - r * r)));
  float light = dot(normal, normalize(vec3(-0.45, 0.6, 0.75)));
  float shine = max(light, 0.0) * max(light, 0.0) * max(light, 0.0);
  vec3 shaded = tint * (0.72 + 0.34 * max(light, 0.0)) + 0.32 * shine * shine * shine;
  shaded = mix(shaded, shaded * (dark > 0.5 ? 0.72 : 0.84), smoothstep(0.78, 1.0, r));
  result = vec4(mix(paper, shaded, mix(0.5, 1.0, depth)), 1.0) * cover * clear;
}`,
];

/** A thin line from a to b as two triangles, smooth at its sides. */
const STRAND = `
uniform float width;
out vec4 tint; out float across; out float halfWidth;
void strand(vec3 a, vec3 b, vec2 corner, vec4 colour) {
  vec3 q = corner.x < 0.5 ? a : b;
  vec4 pa = seen(a); vec4 pb = seen(b);
  vec2 along = (pb.xy / pb.w - pa.xy / pa.w) * viewport;
  float span = length(along);
  vec2 aside = span > 1e-4 ? vec2(-along.y, along.x) / span : vec2(0.0);
  vec4 at = corner.x < 0.5 ? pa : pb;
  halfWidth = 0.5 * width;
  across = corner.y * (halfWidth + 0.7);
  at.xy += aside * across * 2.0 / viewport * at.w;
  tint = colour * mix(0.35, 1.0, near(q)) * clearness(q);
  gl_Position = span < 1e-4 ? NOWHERE : at;
}
vec2 cornerOf(int k) { return vec2(k == 1 || k == 4 || k == 5 ? 1.0 : 0.0, k == 0 || k == 1 || k == 4 ? -1.0 : 1.0); }
`;
const STRAND_INK = `#version 300 es
precision highp float;
in vec4 tint; in float across; in float halfWidth; out vec4 result;
void main() { result = tint * clamp(halfWidth - abs(across) + 0.5, 0.0, 1.0); }`;

/** Trails read the frames from a texture: one call draws all (instances, one by one in software, took forty times as long). */
const TRAILS = [
  `${SHARED}${STRAND}
uniform highp sampler2D places; uniform highp sampler2D colours; uniform vec3 clusters[8];
uniform float byCluster; uniform float place; uniform float trail; uniform float strength; uniform int tokens;
uniform int corners;
vec4 stored(sampler2D from, int k) { return texelFetch(from, ivec2(k % ${ROW}, k / ${ROW}), 0); }
float age(float at) { return strength * pow(max(0.0, 1.0 - (place - at) / trail), 1.4); }
void main() {
  int id = gl_VertexID / corners;
  int token = id % tokens;
  float start = max(0.0, place - trail);
  int k = int(start) + id / tokens;
  vec4 here = stored(places, k * tokens + token);
  vec3 next = stored(places, (k + 1) * tokens + token).xyz;
  float from = max(0.0, start - float(k));
  float to = min(1.0, place - float(k));
  vec2 corner = corners == 2 ? vec2(gl_VertexID % 2, 0.0) : cornerOf(gl_VertexID % 6);
  vec3 colour = byCluster > 0.5 ? clusters[int(here.w)] : stored(colours, token).rgb;
  float alpha = mix(age(float(k) + from), age(float(k) + to), corner.x);
  if (corners == 2) {  // a line of one pixel: each of its ends knows of itself alone
    vec3 q = turned(placed(here.xyz, next, corner.x < 0.5 ? from : to));
    across = 0.0;
    halfWidth = 1.0;
    tint = vec4(colour, 1.0) * alpha * mix(0.35, 1.0, near(q)) * clearness(q);
    gl_Position = seen(q);
    return;
  }
  vec3 a = turned(placed(here.xyz, next, from));
  strand(a, turned(placed(here.xyz, next, to)), corner, vec4(colour, 1.0) * alpha);
}`,
  STRAND_INK,
];

const NET = [
  `${SHARED}${STRAND}
in vec3 here; in vec3 next; in float number; uniform vec3 plain; uniform float alpha;
void main() { strand(turned(here), turned(next), cornerOf(int(number + 0.5)), vec4(plain, 1.0) * alpha); }`,
  STRAND_INK,
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
in vec2 p; uniform vec3 globe; uniform vec3 limb; uniform vec3 air; uniform float dark;
uniform float limbRadius;
out vec4 result;
void main() {
  float r = length(p);
  float inside = clamp((1.0 - r) * limbRadius + 0.5, 0.0, 1.0);
  float height = sqrt(max(0.0, 1.0 - r * r));
  float light = clamp(dot(vec3(p, height), normalize(vec3(-0.45, 0.6, 0.75))), 0.0, 1.0);
  vec3 body = mix(limb, globe, smoothstep(0.0, 0.95, 0.35 * height + 0.75 * light));
  float rim = (1.0 - height) * (1.0 - height);
  rim *= rim;
  body += air * rim * (dark > 0.5 ? 0.42 : -0.10);
  float alpha = inside * mix(0.9, 0.97, rim);
  float fall = clamp(1.0 - (r - 1.0) / 0.21, 0.0, 1.0);
  float halo = r > 1.0 ? fall * fall * fall * (dark > 0.5 ? 0.4 : 0.16) : 0.0;
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

/** Meridians and parallels: both ends of each segment and the number of its corner, six times. */
function graticule() {
  /** @type {number[]} */
  const lines = [];
  const point = (/** @type {number} */ lat, /** @type {number} */ lon) => [
    Math.cos(lat) * Math.cos(lon), Math.cos(lat) * Math.sin(lon), Math.sin(lat),
  ];
  const steps = 60;
  const add = (/** @type {number[]} */ a, /** @type {number[]} */ b) => {
    for (let corner = 0; corner < 6; corner += 1) lines.push(...a, ...b, corner);
  };
  for (let k = 0; k < 12; k += 1) {
    for (let j = 2; j < steps - 2; j += 1) {
      const [from, to] = [j, j + 1].map((v) => -Math.PI / 2 + (Math.PI * v) / steps);
      add(point(from, (k * Math.PI) / 6), point(to, (k * Math.PI) / 6));
    }
  }
  for (let k = -2; k <= 2; k += 1) {
    for (let j = 0; j < 2 * steps; j += 1) {
      const [from, to] = [j, j + 1].map((v) => (Math.PI * v) / steps);
      add(point((k * Math.PI) / 6, from), point((k * Math.PI) / 6, to));
    }
  }
  return new Float32Array(lines);
}

/**
 * Four numbers a token and frame: where it is, and its category with the size of its cluster behind the point.
 * @param {Frames} frames
 */
function told({ world, category, size }) {
  const values = new Float32Array((world.length / 3) * 4);
  for (let i = 0; i < world.length / 3; i += 1) {
    for (let c = 0; c < 3; c += 1) values[4 * i + c] = world[3 * i + c];
    values[4 * i + 3] = (category?.[i] ?? 0) + (size?.[i] ?? 0) / 256;
  }
  return values;
}

/** Paints frames on a canvas; the constructor throws where there is no WebGL 2. */
export class GlPainter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const gl = canvas.getContext('webgl2', { antialias: false, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error('no WebGL 2');
    this.gl = gl;
    this.points = programOf(gl, POINTS);
    this.trails = programOf(gl, TRAILS);
    this.lines = programOf(gl, NET);
    this.globe = programOf(gl, GLOBE);
    this.buffers = /** @type {Record<string, WebGLBuffer>} */ ({});
    this.#fill('corner', new Float32Array([0, -1, 1, -1, 0, 1, 1, 1]));
    /** @type {Float32Array|null} */
    this.colours = null;
    this.net = graticule();
    this.#fill('net', this.net);
    /** @type {WebGLTexture[]} */
    this.textures = [0, 1].map(() => /** @type {WebGLTexture} */ (gl.createTexture()));
  }

  /**
   * @param {number} unit
   * @param {Float32Array} values
   * @param {number} each numbers a point: 3 or 4
   */
  #keep(unit, values, each) {
    const { gl } = this;
    const rows = Math.ceil(values.length / each / ROW);
    const filled = new Float32Array(rows * ROW * each);
    filled.set(values);
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, this.textures[unit]);
    const [inside, kind] = each === 4 ? [gl.RGBA32F, gl.RGBA] : [gl.RGB32F, gl.RGB];
    gl.texImage2D(gl.TEXTURE_2D, 0, inside, ROW, rows, 0, kind, gl.FLOAT, filled);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
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
    const all = told(frames);
    this.#fill('world', all);
    this.#keep(0, all, 4);
    this.#fill('weight', Float32Array.from(frames.share, (share) => Math.sqrt(Math.min(30, share * n))));
    this.colours = null;
  }

  /**
   * @param {{at: (name: string) => number}} program
   * @param {string} name
   * @param {string} buffer
   * @param {number} length
   * @param {number} offset bytes
   * @param {number} [stride] bytes
   */
  #attribute(program, name, buffer, length, offset, stride = 0) {
    const { gl } = this;
    const place = program.at(name);
    if (place < 0) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, length, gl.FLOAT, false, stride, offset);
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
    const horizon = frames.space === 'sphere' ? 1 / DISTANCE : -2;
    const common = {
      turn: turnOf(camera), viewport: [width, height], shift: camera.shift, focal: focalOf(camera, width, height),
      deep: camera.deep ? 1 : 0, unit: frames.unit ? 1 : 0, horizon, veiled: frames.space === 'sphere' ? 1 - theme.veil : 1,
      byCluster: look.byCluster && frames.category ? 1 : 0, clusters: theme.clusters.flat(),
    };
    if (this.colours !== look.colours) {
      this.#fill('colour', look.colours);
      this.#keep(1, look.colours, 3);
      this.colours = look.colours;
    }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.disable(gl.DEPTH_TEST);
    if (frames.space === 'sphere' && look.part !== 'tokens') {
      this.#ball(look, common);
      this.#net(look, common);
    }
    if (look.part === 'globe') return;
    if (look.trail > 0 && frames.count > 1) this.#trails(look, common);
    this.#tokens(look, common);
  }

  /**
   * @param {Look} look
   * @param {Record<string, number|number[]>} common
   */
  #tokens(look, common) {
    const { gl, frames } = this;
    if (!frames) return;
    const { theme, ratio } = look;
    const radius = ratio * tokenRadius(frames.n, Math.min(look.width, look.height));
    const values = {
      ...common, base: radius, largest: ratio * 0.052 * Math.min(look.width, look.height), spread: 1, glow: 0,
      paper: theme.paperRgb, fade: 1, dark: theme.dark ? 1 : 0,
      mixing: look.place - Math.floor(look.place),
    };
    const k = Math.min(Math.floor(look.place), frames.count - 1);
    const next = Math.min(k + 1, frames.count - 1);
    const bytes = 16 * frames.n;
    const program = this.points;
    this.#attribute(program, 'here', 'world', 4, k * bytes);
    this.#attribute(program, 'next', 'world', 4, next * bytes);
    this.#attribute(program, 'colour', 'colour', 3, 0);
    this.#attribute(program, 'weight', 'weight', 1, 0);
    if (theme.dark && frames.n <= GLOWING) {
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
    const strength = (look.theme.dark ? 0.62 : 0.5) * Math.min(1, 22 / Math.sqrt(frames.n) + 0.2);
    const segments = Math.ceil(look.place) - Math.floor(Math.max(0, look.place - look.trail));
    this.#use(this.trails, { ...values, width: 1.5 * look.ratio, place: look.place, trail: look.trail, strength });
    gl.uniform1i(this.trails.uniforms.tokens, frames.n);
    gl.uniform1i(this.trails.uniforms.places, 0);
    gl.uniform1i(this.trails.uniforms.colours, 1);
    const corners = frames.n > FINE_TRAILS ? 2 : 6;
    gl.uniform1i(this.trails.uniforms.corners, corners);
    gl.drawArrays(corners === 2 ? gl.LINES : gl.TRIANGLES, 0, corners * segments * frames.n);
  }

  /**
   * @param {Look} look
   * @param {Record<string, number|number[]>} values
   */
  #net(look, values) {
    const { gl } = this;
    const alpha = look.theme.dark ? 0.2 : 0.32;
    this.#attribute(this.lines, 'here', 'net', 3, 0, 28);
    this.#attribute(this.lines, 'next', 'net', 3, 12, 28);
    this.#attribute(this.lines, 'number', 'net', 1, 24, 28);
    this.#use(this.lines, { ...values, width: look.ratio, plain: look.theme.air, alpha });
    gl.drawArrays(gl.TRIANGLES, 0, this.net.length / 7);
  }

  /**
   * @param {Look} look
   * @param {Record<string, any>} common
   */
  #ball(look, common) {
    const { gl } = this;
    const { theme } = look;
    this.#attribute(this.globe, 'corner', 'corner', 2, 0);
    this.#use(this.globe, {
      viewport: common.viewport, limbRadius: common.focal / Math.sqrt(DISTANCE * DISTANCE - 1), reach: 1.22,
      globe: theme.globe, limb: theme.limb, air: theme.air, dark: theme.dark ? 1 : 0,
    });
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  destroy() {
    for (const buffer of Object.values(this.buffers)) this.gl.deleteBuffer(buffer);
    for (const texture of this.textures) this.gl.deleteTexture(texture);
    for (const { program } of [this.points, this.trails, this.lines, this.globe]) this.gl.deleteProgram(program);
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
