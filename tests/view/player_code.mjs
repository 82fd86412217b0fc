// Pure functions of the player, run by node: `node tests/view/player_code.mjs src/pathlines/view/static`.
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const folder = pathToFileURL(`${resolve(process.argv[2])}/`);
const load = (name) => import(new URL(name, folder));
const { Frames, decodePositions, placeOf, valueAt, massShares, tellClusters } = await load('frames.js');
const { newCamera, turnOf, project, dragged, zoomed, focalOf, DISTANCE } = await load('camera.js');
const { formatNumber, ticksOf, decadesOf } = await load('numbers.js');
const { escapeXml, linePath, toPixel, fromPixel, curvesPicture, valueScale, counts, lowered } = await load('curves.js');
const { oklch, initialColours, LIGHT, DARK } = await load('palette.js');
const { cuts } = await load('overlay.js');

const near = (a, b, by = 1e-9) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);
const base64 = (array) => Buffer.from(array.buffer).toString('base64');
const words = { title: '', subtitle: '', outcome: 'completed', command: '', python: '', alt: '', overlays: [], curves: [] };
const given = (places, more = {}) => ({
  format: 'pathlines-frames/1', space: 'space', n: 2, components: 3, times: [0, 1, 3], dtype: 'float32',
  positions: base64(Float32Array.from(places)), ...words, ...more,
});

// Decoding: value = offset + scale * stored, for each component.
const stored = Int16Array.from([0, 32767, -32767, 100, 0, 1]);
const decoded = decodePositions({ components: 2, dtype: 'int16', positions: base64(stored), scale: [0.5, 2], offset: [1, -1] });
assert.deepEqual([...decoded], [1, 65533, -16382.5, 199, 1, 1]);
assert.throws(() => new Frames({ ...given([]), format: 'other' }), /no frames/);
assert.throws(() => new Frames(given([1, 2, 3])), /not complete/);

// Time among frames.
near(placeOf([0, 1, 3], 2), 1.5);
near(placeOf([0, 1, 3], -1), 0);
near(placeOf([0, 1, 3], 9), 2);
near(placeOf([0], 5), 0);
near(valueAt([0, 10, null], 0.25), 2.5);
assert.equal(valueAt([0, 10, null], 1.5), null);

// Between frames tokens go straight in space, and along the sphere on it.
const cube = new Frames(given([0, 0, 0, 3, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0, 0]));
const at = [0, 0, 0];
cube.pointAt(0, 0.5, at);
const expected = cube.toWorld([0.5, 0.5, 0.5]);
at.forEach((v, c) => near(v, expected[c], 1e-6));
for (let i = 0; i < cube.world.length; i += 3) assert.ok(Math.hypot(...cube.world.subarray(i, i + 3)) <= 1.16);
const ball = new Frames(given([1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0], { space: 'sphere' }));
ball.pointAt(0, 0.5, at);
near(Math.hypot(...at), 1, 1e-6);
near(at[0], Math.SQRT1_2, 1e-6);

// Masses and colours of clusters: two of four tokens meet, then a third joins.
assert.deepEqual([...massShares([1, 3], 2)], [0.25, 0.75]);
const labels = Uint16Array.from([0, 1, 2, 3, 0, 1, 1, 3, 0, 1, 1, 1]);
const { category, size } = tellClusters(labels, 4, massShares(undefined, 4));
assert.deepEqual([...category], [7, 7, 7, 7, 7, 0, 0, 7, 7, 0, 0, 0]);
assert.deepEqual([...size], [0, 0, 0, 0, 0, Math.round(255 * Math.SQRT1_2), 0, 0, 0, Math.round(255 * Math.sqrt(0.75)), 0, 0]);

// The camera: a rotation; the nearest and the farthest point on the axis of sight; a drag turns by half a turn a side.
const camera = newCamera(true);
const m = turnOf(camera);
for (const [a, b, dot] of [[0, 0, 1], [3, 3, 1], [6, 6, 1], [0, 3, 0], [0, 6, 0], [3, 6, 0]]) {
  near(m[a] * m[b] + m[a + 1] * m[b + 1] + m[a + 2] * m[b + 2], dot);
}
const [x, y, z] = project(camera, m.slice(6, 9), 400, 300);
[[x, 200], [y, 150], [z, 1]].forEach(([a, b]) => near(a, b));
const limb = project(camera, [0, 1, 2].map((c) => m[c] * Math.sqrt(1 - 1 / DISTANCE ** 2) + m[6 + c] / DISTANCE), 400, 300);
near(limb[0] - 200, 0.84 * 150, 1e-9); // the edge of the ball fills 84 % of the shorter side
near(dragged(camera, 300, 0, 300).azimuth, camera.azimuth - Math.PI);
assert.ok(dragged(camera, 0, 1e5, 300).elevation <= 1.5);
near(focalOf(zoomed(camera, 2), 400, 300), 2 * focalOf(camera, 400, 300));
const flat = dragged(newCamera(false), 63, 0, 300);
near(project(flat, [0, 0, 0], 300, 300)[0], 150 + 63);

// Hyperplanes cut what is shown where ⟨w, x⟩ = offset.
const [w, b] = [[1, 2, -1], 0.7];
for (const line of cuts(cube, { kind: 'hyperplane', normal: w, offset: b })) {
  for (const p of line) {
    const back = p.map((v, c) => v * cube.radii[c] + cube.centre[c]);
    near(back[0] * w[0] + back[1] * w[1] + back[2] * w[2], b, 1e-9);
  }
}

// Numbers.
const said = [[0, '0'], [12.3456, '12.35'], [-2, '−2'], [1e-5, '10⁻⁵'], [-3.2e8, '−3.2·10⁸'], [99999, '100000'], [NaN, '–'], [Infinity, '∞'], [0.001, '0.001']];
for (const [value, text] of said) assert.equal(formatNumber(value), text);
assert.deepEqual(ticksOf(0, 10, 5), [0, 2, 4, 6, 8, 10]);
assert.deepEqual(ticksOf(0.12, 0.34, 4).map((v) => Number(v.toFixed(6))), [0.15, 0.2, 0.25, 0.3]);
assert.deepEqual(ticksOf(1, 1, 4), []);
assert.deepEqual(decadesOf(0.01, 1000, 3), [0.01, 1, 100]);

// Curves: pixels and back, gaps, escaping, bounds.
for (const log of [false, true]) {
  const scale = { low: 1, high: 100, log, from: 20, to: 220 };
  near(fromPixel(scale, toPixel(scale, 37)), 37, 1e-9);
  near(toPixel(scale, 100), 220);
}
const unit = { low: 0, high: 1, log: false, from: 0, to: 1 };
assert.equal(linePath([0, 0.5, 1], [0, null, 1], unit, unit), 'M0.00 0.00M1.00 1.00');
assert.equal(escapeXml(`<a b="c">&'`), '&#60;a b=&#34;c&#34;&#62;&#38;&#39;');
assert.ok(!lowered('<E>_x').includes('<E'));
assert.equal(linePath([0, 0.5, 1], [0, 1, 0], unit, unit, true), 'M0.00 0.00H0.50L0.50 1.00H1.00L1.00 0.00');
assert.equal((lowered('E_β/E_max').match(/<tspan dy="3"/g) ?? []).length, 2);
assert.ok(lowered('E_max').includes('>max<'));
const curve = { name: 'a', symbol: '<b>', label: '<i>', times: [0, 1, 3], values: [1, 2, 4], theory: { times: [0, 3], values: [1, 5], label: '<u>' } };
const drawn = curvesPicture(given([], { curves: [curve], title: '</svg><script>' }), 300, 150, LIGHT);
assert.ok(!/<script|<i>|<b>|<u>/.test(drawn));
assert.equal((drawn.match(/stroke-dasharray/g) ?? []).length, 1);
const bounds = valueScale(curve, 150);
assert.ok(bounds.low < 1 && bounds.high > 5);
assert.ok(counts(curve) && !counts({ ...curve, values: [1.5] }));

// Colours: in range, of even lightness, neighbours alike.
for (let h = 0; h < 6.3; h += 0.3) assert.ok(oklch(0.65, 0.12, h).every((v) => v >= 0 && v <= 1));
assert.equal(LIGHT.clusters.length, 8);
assert.equal(DARK.clusters.length, 8);
assert.ok([...initialColours(ball, false)].every((v) => v >= 0 && v <= 1));
console.log('all hold');
