// @ts-check
/** Numbers for readers: few digits, a true minus, powers of ten as powers; round ticks. */

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/**
 * @param {number} value
 * @param {number} [digits]
 * @returns {string}
 */
export function formatNumber(value, digits = 4) {
  if (value === Infinity) return '∞';
  if (value === -Infinity) return '−∞';
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 10 ** Math.max(5, digits) || size < 1e-3)) {
    const [mantissa, power] = value.toExponential(Math.max(0, digits - 2)).split('e');
    const short = String(Number(mantissa)).replace('-', '−');
    const raised = power.replace(/[+-]/, '').replace(/\d/g, (d) => RAISED[Number(d)]);
    const front = short === '1' ? '' : `${short}·`;
    return `${front}10${power.startsWith('-') ? '⁻' : ''}${raised}`;
  }
  return String(Number(value.toPrecision(digits))).replace('-', '−');
}

/**
 * Round values between two bounds, about so many.
 * @param {number} low
 * @param {number} high
 * @param {number} about
 * @returns {number[]}
 */
export function ticksOf(low, high, about) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const rough = span / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.75) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.min(count, 1000) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/**
 * Powers of ten between two positive bounds, about so many.
 * @param {number} low
 * @param {number} high
 * @param {number} about
 * @returns {number[]}
 */
export function decadesOf(low, high, about) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = Math.max(1, Math.ceil((last - first + 1) / about));
  const powers = Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => first + k);
  return powers.filter((p) => (p - first) % every === 0).map((p) => 10 ** p);
}
