/* The randomisers of one value. Thresholds and what is made of the random words are those of the Python package. */
import type { Draws } from "./draws.js";
import { InputError, quoted } from "./errors.js";
import {
  checkFactor, expBelow, expNearest, type Fraction, LARGEST_SIZE, leastShare, lnNearest, tooSmall, WORDS,
} from "./exact.js";
import type { Form, Part } from "./layout.js";

const LOG_LARGEST_BUCKETS = 11.090354888959125;
const LARGEST_BUCKETS = 65_536;
export const MECHANISMS = ["grr", "sue", "oue", "blh", "olh", "ss", "hadamard", "identity"] as const;
export type Parameters = ReadonlyMap<string, number>;

/** One attribute's randomiser. */
export interface Mechanism {
  readonly name: string;
  readonly size: number;
  /** The realised budget of one report, from the thresholds in use. */
  readonly epsilon: number;
  readonly form: Form;
  /** Make a report of a code from random bytes. */
  draw(code: number, draws: Draws): Part;
}

/** A mechanism whose response can be made again from given words, so that a device can keep it. */
export interface Kept extends Mechanism {
  /** What names the channel: its kind, the number of values and its thresholds. */
  readonly identity: string;
  readonly sharedWords: number;
  readonly memoWords: number;
  /** What the response is of, besides the attribute: empty for the value itself. */
  subject(code: number, shared: readonly bigint[]): string;
  made(code: number, words: readonly bigint[], shared: readonly bigint[]): Part;
}

const words = (draws: Draws, count: number): bigint[] => Array.from({ length: count }, () => draws.word());

abstract class Response implements Kept {
  abstract readonly name: string;
  abstract readonly form: Form;
  abstract readonly identity: string;
  abstract readonly memoWords: number;
  abstract readonly factor: Fraction;
  readonly sharedWords: number = 0;

  constructor(readonly size: number, readonly budget: number) {
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
  }

  get epsilon(): number {
    return lnNearest(this.factor);
  }

  draw(code: number, draws: Draws): Part {
    const shared = words(draws, this.sharedWords);
    return this.made(code, words(draws, this.memoWords), shared);
  }

  subject(_code: number, _shared: readonly bigint[]): string {
    return "";
  }

  abstract made(code: number, words: readonly bigint[], shared: readonly bigint[]): Part;
}

/** Generalised randomised response: the true value, or one of the others, all equally likely. */
export class RandomisedResponse extends Response {
  readonly name = "grr";
  readonly memoWords = 1;
  readonly other: bigint;
  readonly truth: bigint;
  readonly form: Form;

  constructor(size: number, budget: number) {
    super(size, budget);
    this.other = leastShare(size, budget);
    this.truth = WORDS - BigInt(size - 1) * this.other;
    this.form = { kind: "code", count: size, width: 1, seeded: false };
    checkFactor(this.factor, budget);
  }

  get factor(): Fraction {
    return { over: this.truth, under: this.other };
  }

  get identity(): string {
    return `grr ${this.size} ${this.other}`;
  }

  made(code: number, [word]: readonly bigint[]): Part {
    return { values: [this.respond(code, word!)] };
  }

  respond(code: number, word: bigint): number {
    if (word < this.truth) return code;
    const lie = Number((word - this.truth) / this.other);
    return lie >= code ? lie + 1 : lie;
  }
}

/** A bit for each value, each set on its own: below `keep` for the true one, below `flip` for the others. */
class Unary extends Response {
  readonly memoWords: number;
  readonly keep: bigint;
  readonly flip: bigint;
  readonly form: Form;

  constructor(readonly name: "sue" | "oue", size: number, budget: number) {
    super(size, budget);
    this.flip = name === "sue" ? leastShare(2, budget / 2) : leastShare(2, budget);
    this.keep = name === "sue" ? WORDS - this.flip : WORDS / 2n;
    this.memoWords = size;
    this.form = { kind: "bits", count: size, width: size, seeded: false };
    checkFactor(this.factor, budget);
  }

  get factor(): Fraction {
    return { over: this.keep * (WORDS - this.flip), under: (WORDS - this.keep) * this.flip };
  }

  get identity(): string {
    return `bits ${this.size} ${this.keep} ${this.flip}`;
  }

  made(code: number, words: readonly bigint[]): Part {
    const values: number[] = [];
    words.forEach((word, value) => {
      if (word < (value === code ? this.keep : this.flip)) values.push(value);
    });
    return { values };
  }
}

/** The value hashed with a public seed to a few buckets, and the bucket randomised. */
class Hashing extends Response {
  readonly memoWords = 1;
  override readonly sharedWords = 1;
  readonly response: RandomisedResponse;
  readonly form: Form;

  constructor(readonly name: "blh" | "olh", size: number, budget: number, readonly buckets: number) {
    super(size, budget);
    this.response = new RandomisedResponse(buckets, budget);
    this.form = { kind: "code", count: buckets, width: 1, seeded: true };
  }

  get factor(): Fraction {
    return this.response.factor;
  }

  get identity(): string {
    return `hash ${this.size} ${this.buckets} ${this.response.other}`;
  }

  bucket(code: number, seed: bigint): number {
    const [high, low] = [Number(seed >> 32n), Number(seed & 0xffffffffn)];
    const hash = ((Math.imul(high, code) + low) >>> 0) >>> 15;
    return Math.floor((hash * this.buckets) / 2 ** 17);
  }

  override subject(code: number, [seed]: readonly bigint[]): string {
    return String(this.bucket(code, seed!));
  }

  made(code: number, [word]: readonly bigint[], [seed]: readonly bigint[]): Part {
    return { values: [this.response.respond(this.bucket(code, seed!), word!)], seed: seed! };
  }
}

/** A set of `width` values that is likelier to hold the true one. */
class SubsetSelection implements Mechanism {
  readonly name = "ss";
  readonly include: bigint;
  readonly form: Form;

  constructor(readonly size: number, budget: number, readonly width: number) {
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
    const { over, under } = expBelow(budget);
    const [weight, outside] = [over * BigInt(width), BigInt(size - width) * under];
    const most = (WORDS * weight) / (weight + outside);
    this.include = most < WORDS ? most : WORDS - 1n;
    this.form = { kind: "set", count: size, width, seeded: false };
    checkFactor(this.factor, budget);
  }

  get factor(): Fraction {
    return { over: this.include * BigInt(this.size - this.width), under: (WORDS - this.include) * BigInt(this.width) };
  }

  get epsilon(): number {
    return lnNearest(this.factor);
  }

  /** Floyd's algorithm over the other values; a set that includes the truth skips the first draw. */
  draw(code: number, draws: Draws): Part {
    const includes = draws.word() < this.include;
    const taken = new Set<number>();
    for (let j = 0; j < this.width; j++) {
      const last = this.size - 1 - this.width + j;
      const drawn = Number(draws.below(BigInt(last + 1)));
      if (j > 0 || !includes) taken.add(taken.has(drawn) ? last : drawn);
    }
    const values = [...taken].map((other) => (other >= code ? other + 1 : other));
    if (includes) values.push(code);
    return { values: values.sort((one, other) => one - other) };
  }
}

/** A column of a Hadamard matrix, likelier where the parity of the bits that it shares with the value's row is 0. */
class Hadamard implements Mechanism {
  readonly name = "hadamard";
  readonly other: bigint;
  readonly form: Form;
  private readonly bits: number;

  constructor(readonly size: number, budget: number) {
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
    this.other = leastShare(2, budget);
    this.bits = 32 - Math.clz32(size); // the least power of two above the size is 2^bits
    this.form = { kind: "code", count: 2 ** this.bits, width: 1, seeded: false };
    checkFactor(this.factor, budget);
  }

  get factor(): Fraction {
    return { over: WORDS - this.other, under: this.other };
  }

  get epsilon(): number {
    return lnNearest(this.factor);
  }

  /** A uniform column; where its parity is not the one that is drawn, the row's lowest bit is flipped in it. */
  draw(code: number, draws: Draws): Part {
    const row = code + 1;
    const column = Number(draws.word() >> BigInt(64 - this.bits));
    const wanted = draws.word() < this.other ? 1 : 0;
    return { values: [parity(row & column) === wanted ? column : column ^ (row & -row)] };
  }
}

function parity(number: number): number {
  let folded = number;
  for (let by = 16; by > 0; by >>= 1) folded ^= folded >>> by;
  return folded & 1;
}

/** The true value, without noise. */
class Identity implements Mechanism {
  readonly name = "identity";
  readonly epsilon = Infinity;
  readonly form: Form;

  constructor(readonly size: number) {
    this.form = { kind: "code", count: size, width: 1, seeded: false };
  }

  draw(code: number): Part {
    return { values: [code] };
  }
}

/** Bits of d random values, each flipped alike; what a device keeps, as in dBitFlipPM. */
export class BitFlips extends Response {
  readonly name = "dbitflip";
  readonly memoWords: number;
  override readonly sharedWords: number;
  readonly flip: bigint;
  readonly form: Form;

  constructor(size: number, budget: number, readonly asked = Math.min(4, size)) {
    super(size, budget);
    this.flip = leastShare(2, budget / 2);
    this.memoWords = this.sharedWords = asked;
    this.form = { kind: "set", count: 2 * size, width: asked, seeded: false };
    checkFactor(this.factor, budget);
  }

  get factor(): Fraction {
    const power = this.asked === 1 ? 1n : 2n;
    return { over: (WORDS - this.flip) ** power, under: this.flip ** power };
  }

  get identity(): string {
    return `flips ${this.size} ${this.asked} ${this.flip}`;
  }

  made(code: number, words: readonly bigint[], shared: readonly bigint[]): Part {
    const asked = new Set<number>();
    shared.forEach((word, j) => {
      const last = this.size - this.asked + j;
      const drawn = Number((word * BigInt(last + 1)) >> 64n);
      asked.add(asked.has(drawn) ? last : drawn);
    });
    const values = [...asked].sort((one, other) => one - other);
    return { values: values.map((value, j) => 2 * value + (Number(value === code) ^ Number(words[j]! < this.flip))) };
  }
}

function checkSize(size: number): void {
  if (!Number.isInteger(size) || size < 2 || size > LARGEST_SIZE) {
    throw new InputError(`\`size\` must be from 2 to ${LARGEST_SIZE}, got ${size}.`);
  }
}

function usualBuckets(budget: number): number {
  const best = expNearest(Math.min(budget, LOG_LARGEST_BUCKETS)) + 1;
  const [low, rest] = [Math.floor(best), best - Math.floor(best)];
  const rounded = rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low; // as Python rounds
  return Math.min(rounded, LARGEST_BUCKETS);
}

const usualWidth = (size: number, budget: number): number =>
  Math.max(1, Math.floor(size / (expNearest(Math.min(budget, 100)) + 1)));

const TAKES: Record<string, string | undefined> = { olh: "g", ss: "width" };

/** Make a mechanism by its name, for so many values at a budget; the parameters are those of a plan. */
export function createMechanism(name: string, size: number, budget: number | null, parameters: Parameters = new Map()): Mechanism {
  if (!(MECHANISMS as readonly string[]).includes(name)) {
    throw new InputError(`this client has no mechanism ${quoted(name)}; it has ${MECHANISMS.join(", ")}.`);
  }
  for (const parameter of parameters.keys()) {
    if (parameter !== TAKES[name]) throw new InputError(`the mechanism ${quoted(name)} has no parameter ${quoted(parameter)}; it takes ${TAKES[name] ?? "none"}.`);
  }
  if (name === "identity") {
    if (budget !== null) throw new InputError(`the mechanism 'identity' has no budget; leave \`epsilon\` out, got ${budget}.`);
    return new Identity(size);
  }
  if (budget === null) throw new InputError(`the mechanism ${quoted(name)} needs an \`epsilon\`, got none.`);
  switch (name) {
    case "grr":
      return new RandomisedResponse(size, budget);
    case "sue":
    case "oue":
      return new Unary(name, size, budget);
    case "blh":
      return new Hashing(name, size, budget, 2);
    case "hadamard":
      return new Hadamard(size, budget);
    case "olh":
      return new Hashing(name, size, budget, checked("g", parameters.get("g"), 2, LARGEST_BUCKETS) ?? usualBuckets(budget));
    default:
      return new SubsetSelection(size, budget, checked("width", parameters.get("width"), 1, size - 1) ?? usualWidth(size, budget));
  }
}

function checked(name: string, value: number | undefined, least: number, most: number): number | undefined {
  if (value !== undefined && (!Number.isInteger(value) || value < least || value > most)) {
    throw new InputError(`\`${name}\` must be from ${least} to ${most}, got ${value}.`);
  }
  return value;
}
