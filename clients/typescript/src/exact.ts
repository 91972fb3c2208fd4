/* Exact arithmetic on thresholds: a probability is a whole number of the 2^64 values of a random word.
 *
 * Thresholds must be the same whole numbers as in Python, whose exponentials have 60 decimal digits. Here they
 * are computed with 400 binary digits and rounded to those 60.
 */
import { InputError } from "./errors.js";

export const WORDS = 1n << 64n;
export const LARGEST_SIZE = 65_536;
const BITS = 400n;
const ONE = 1n << BITS;
const DIGITS = 60;
const LARGEST_EXPONENT = 100;

/** A positive fraction. */
export interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

/** The exact value of a double that is not negative. */
export function exactly(number: number): Fraction {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const mantissa = (bits & 0xfffffffffffffn) | (exponent === 0 ? 0n : 1n << 52n);
  const shift = (exponent === 0 ? 1 : exponent) - 1075;
  return shift >= 0 ? { over: mantissa << BigInt(shift), under: 1n } : { over: mantissa, under: 1n << BigInt(-shift) };
}

/** The double nearest to a positive fraction, ties to even. */
export function nearest({ over, under }: Fraction): number {
  if (over === 0n) return 0;
  let shift = bitLength(under) - bitLength(over) + 54;
  shift = Math.min(shift, 1074); // a double has no bit below 2^-1074
  const [up, down] = shift >= 0 ? [over << BigInt(shift), under] : [over, under << BigInt(-shift)];
  let [whole, rest, scale] = [up / down, up % down, -shift];
  const extra = BigInt(Math.max(bitLength(whole) - 53, 0));
  const dropped = whole & ((1n << extra) - 1n);
  whole >>= extra;
  scale += Number(extra);
  const twice = extra === 0n ? 2n * rest : 2n * (dropped * down + rest);
  const half = extra === 0n ? down : down << extra;
  if (twice > half || (twice === half && (whole & 1n) === 1n)) whole += 1n;
  return scale < -1000 ? Number(whole) * 2 ** (scale + 200) * 2 ** -200 : Number(whole) * 2 ** scale;
}

export const bitLength = (number: bigint): number => (number === 0n ? 0 : number.toString(2).length);

const times = (one: bigint, other: bigint): bigint => (one * other) >> BITS;

/** 2 artanh(1/n) with 400 binary digits, for logarithms. */
function artanhs(over: bigint, under: bigint): bigint {
  const square = (over * over * ONE) / (under * under);
  let [term, sum] = [(over * ONE) / under, 0n];
  for (let odd = 1n; term !== 0n; odd += 2n) {
    sum += term / odd;
    term = times(term, square);
  }
  return 2n * sum;
}

const LN2 = artanhs(1n, 3n);

/** ln of a fraction of at least 1, with 400 binary digits. */
function logarithm({ over, under }: Fraction): bigint {
  let halvings = BigInt(bitLength(over) - bitLength(under));
  if (halvings > 0n && over < under << halvings) halvings -= 1n;
  const scaled = under << halvings; // over / scaled is from 1 to 2
  return halvings * LN2 + artanhs(over - scaled, over + scaled);
}

/** e^exponent as a fraction, with 400 binary digits. */
function exponential({ over, under }: Fraction): Fraction {
  const fixed = (over << BITS) / under;
  const doublings = fixed / LN2;
  let [term, sum] = [ONE, ONE];
  const rest = fixed - doublings * LN2;
  for (let i = 1n; term !== 0n; i++) {
    term = times(term, rest) / i;
    sum += term;
  }
  return { over: sum << doublings, under: ONE };
}

const below = new Map<number, Fraction>();

/** A number just below e^exponent: the 60 digits nearest to it, less one in the last place. */
export function expBelow(exponent: number): Fraction {
  const known = below.get(exponent);
  if (known !== undefined) return known;
  const { over, under } = exponential(exactly(Math.min(exponent, LARGEST_EXPONENT)));
  const most = 10n ** BigInt(DIGITS);
  let scale = BigInt(DIGITS - (over / under).toString().length);
  const rounded = (): bigint => (2n * over * 10n ** scale + under) / (2n * under);
  let digits = rounded();
  if (digits >= most) {
    scale -= 1n;
    digits = rounded();
  }
  if (digits === most / 10n) [digits, scale] = [most, scale + 1n]; // below 10^n the last place is finer
  const made = { over: digits - 1n, under: 10n ** scale };
  below.set(exponent, made);
  return made;
}

/** The double nearest to e^exponent. */
export const expNearest = (exponent: number): number => nearest(exponential(exactly(exponent)));

/** The double nearest to ln of a fraction above 1. */
export const lnNearest = (factor: Fraction): number => nearest({ over: logarithm(factor), under: ONE });

/** The least w with (2^64 - (size-1) w) / w <= e^budget. */
export function leastShare(size: number, budget: number): bigint {
  const { over, under } = expBelow(budget);
  return (WORDS * under) / (BigInt(size - 1) * under + over) + 1n;
}

export const isAbove = (one: Fraction, other: Fraction): boolean => one.over * other.under > other.over * one.under;

/** Raise if a budget is too small to tell any value from another, or if the thresholds overspend it. */
export function checkFactor(factor: Fraction, budget: number): void {
  if (factor.over <= factor.under) throw tooSmall(budget);
  if (isAbove(factor, expBelow(budget))) {
    throw new Error(`the thresholds spend more than the epsilon of ${budget}; this client is at fault, do not use it.`);
  }
}

/** The error for a budget that 64 random bits cannot tell from 0. */
export const tooSmall = (budget: number): InputError =>
  new InputError(`\`epsilon\` must be large enough to be realised with 64 random bits, got ${budget}.`);

/** The largest double that, added up `parts` times, does not exceed the budget, exactly. */
export function evenPart(budget: number, parts: number): number {
  const part = budget / parts;
  const [one, all] = [exactly(part), exactly(budget)];
  return isAbove({ over: one.over * BigInt(parts), under: one.under }, all) ? justBelow(part) : part;
}

function justBelow(number: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  view.setBigUint64(0, view.getBigUint64(0) - 1n);
  return view.getFloat64(0);
}

/** The double nearest to the sum of doubles that are not negative. */
export function exactSum(numbers: readonly number[]): number {
  const sum = numbers.map(exactly).reduce(
    (one, other) => ({ over: one.over * other.under + other.over * one.under, under: one.under * other.under }),
    { over: 0n, under: 1n },
  );
  return nearest(sum);
}

/** ln(1/delta) and square roots for the filter of a ledger, as fixed-point numbers. */
export function filterSquares(units: bigint, unitsOfOne: bigint, delta: Fraction): bigint {
  const twice = 2n * logarithm({ over: delta.under, under: delta.over });
  const root = squareRoot(((2n * units) << BITS) / unitsOfOne + twice) - squareRoot(twice);
  const squares = (times(root, root) * unitsOfOne * unitsOfOne) >> BITS;
  return squares > 0n ? squares - 1n : 0n;
}

const squareRoot = (fixed: bigint): bigint => wholeRoot(fixed << BITS);

/** The square root of a whole number, rounded down. */
export function wholeRoot(number: bigint): bigint {
  if (number < 2n) return number;
  let root = 1n << BigInt((bitLength(number) + 1) >> 1);
  for (;;) {
    const next = (root + number / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
