// Built from clients/typescript by `make client`; do not edit.

// src/errors.ts
var InputError = class extends Error {
  name = "InputError";
};
var OutOfBytesError = class extends InputError {
  name = "OutOfBytesError";
};
var quoted = (text) => text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`;

// src/bytes.ts
var utf8 = (text) => new TextEncoder().encode(text);
function fromUtf8(bytes, label) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new InputError(`${label} is not UTF-8 text.`);
  }
}
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
var toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
function fromHex(text) {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new InputError("bytes in hexadecimals are pairs of digits 0 to f.");
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}
var DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const [a, b, c] = [bytes[i] ?? 0, bytes[i + 1] ?? 0, bytes[i + 2] ?? 0];
    const known = bytes.length - i;
    text += DIGITS.charAt(a >> 2) + DIGITS.charAt((a & 3) << 4 | b >> 4);
    text += known > 1 ? DIGITS.charAt((b & 15) << 2 | c >> 6) : "=";
    text += known > 2 ? DIGITS.charAt(c & 63) : "=";
  }
  return text;
}
function fromBase64(text, label) {
  const plain = text.replace(/={1,2}$/, "");
  const bytes = [];
  let [held, bits] = [0, 0];
  for (const letter of plain) {
    const digit = DIGITS.indexOf(letter);
    if (digit < 0) throw new InputError(`${label} has bytes that are not base 64.`);
    held = (held << 6 | digit) & 65535;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push(held >> bits & 255);
    }
  }
  const made = Uint8Array.from(bytes);
  if (toBase64(made) !== text) throw new InputError(`${label} has bytes that are not base 64.`);
  return made;
}
var be32 = (number) => Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);
var prefixed = (texts) => joined(texts.map(utf8).flatMap((part) => [be32(part.length), part]));

// src/exact.ts
var WORDS = 1n << 64n;
var LARGEST_SIZE = 65536;
var BITS = 400n;
var ONE = 1n << BITS;
var DIGITS2 = 60;
var LARGEST_EXPONENT = 100;
function exactly(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const exponent = Number(bits >> 52n & 0x7ffn);
  const mantissa = bits & 0xfffffffffffffn | (exponent === 0 ? 0n : 1n << 52n);
  const shift = (exponent === 0 ? 1 : exponent) - 1075;
  return shift >= 0 ? { over: mantissa << BigInt(shift), under: 1n } : { over: mantissa, under: 1n << BigInt(-shift) };
}
function nearest({ over, under }) {
  if (over === 0n) return 0;
  let shift = bitLength(under) - bitLength(over) + 54;
  shift = Math.min(shift, 1074);
  const [up, down] = shift >= 0 ? [over << BigInt(shift), under] : [over, under << BigInt(-shift)];
  let [whole, rest, scale] = [up / down, up % down, -shift];
  const extra = BigInt(Math.max(bitLength(whole) - 53, 0));
  const dropped = whole & (1n << extra) - 1n;
  whole >>= extra;
  scale += Number(extra);
  const twice = extra === 0n ? 2n * rest : 2n * (dropped * down + rest);
  const half = extra === 0n ? down : down << extra;
  if (twice > half || twice === half && (whole & 1n) === 1n) whole += 1n;
  return scale < -1e3 ? Number(whole) * 2 ** (scale + 200) * 2 ** -200 : Number(whole) * 2 ** scale;
}
var bitLength = (number) => number === 0n ? 0 : number.toString(2).length;
var times = (one, other) => one * other >> BITS;
function artanhs(over, under) {
  const square = over * over * ONE / (under * under);
  let [term, sum2] = [over * ONE / under, 0n];
  for (let odd = 1n; term !== 0n; odd += 2n) {
    sum2 += term / odd;
    term = times(term, square);
  }
  return 2n * sum2;
}
var LN2 = artanhs(1n, 3n);
function logarithm({ over, under }) {
  let halvings = BigInt(bitLength(over) - bitLength(under));
  if (halvings > 0n && over < under << halvings) halvings -= 1n;
  const scaled = under << halvings;
  return halvings * LN2 + artanhs(over - scaled, over + scaled);
}
function exponential({ over, under }) {
  const fixed = (over << BITS) / under;
  const doublings = fixed / LN2;
  let [term, sum2] = [ONE, ONE];
  const rest = fixed - doublings * LN2;
  for (let i = 1n; term !== 0n; i++) {
    term = times(term, rest) / i;
    sum2 += term;
  }
  return { over: sum2 << doublings, under: ONE };
}
var below = /* @__PURE__ */ new Map();
function expBelow(exponent) {
  const known = below.get(exponent);
  if (known !== void 0) return known;
  const { over, under } = exponential(exactly(Math.min(exponent, LARGEST_EXPONENT)));
  const most = 10n ** BigInt(DIGITS2);
  let scale = BigInt(DIGITS2 - (over / under).toString().length);
  const rounded = () => (2n * over * 10n ** scale + under) / (2n * under);
  let digits = rounded();
  if (digits >= most) {
    scale -= 1n;
    digits = rounded();
  }
  if (digits === most / 10n) [digits, scale] = [most, scale + 1n];
  const made = { over: digits - 1n, under: 10n ** scale };
  below.set(exponent, made);
  return made;
}
var expNearest = (exponent) => nearest(exponential(exactly(exponent)));
var lnNearest = (factor) => nearest({ over: logarithm(factor), under: ONE });
function leastShare(size, budget) {
  const { over, under } = expBelow(budget);
  return WORDS * under / (BigInt(size - 1) * under + over) + 1n;
}
var isAbove = (one, other) => one.over * other.under > other.over * one.under;
function checkFactor(factor, budget) {
  if (factor.over <= factor.under) throw tooSmall(budget);
  if (isAbove(factor, expBelow(budget))) {
    throw new Error(`the thresholds spend more than the epsilon of ${budget}; this client is at fault, do not use it.`);
  }
}
var tooSmall = (budget) => new InputError(`\`epsilon\` must be large enough to be realised with 64 random bits, got ${budget}.`);
function evenPart(budget, parts) {
  const part = budget / parts;
  const [one, all] = [exactly(part), exactly(budget)];
  return isAbove({ over: one.over * BigInt(parts), under: one.under }, all) ? justBelow(part) : part;
}
function justBelow(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  view.setBigUint64(0, view.getBigUint64(0) - 1n);
  return view.getFloat64(0);
}
function exactSum(numbers) {
  const sum2 = numbers.map(exactly).reduce(
    (one, other) => ({ over: one.over * other.under + other.over * one.under, under: one.under * other.under }),
    { over: 0n, under: 1n }
  );
  return nearest(sum2);
}
function filterSquares(units, unitsOfOne, delta) {
  const twice = 2n * logarithm({ over: delta.under, under: delta.over });
  const root = squareRoot((2n * units << BITS) / unitsOfOne + twice) - squareRoot(twice);
  const squares2 = times(root, root) * unitsOfOne * unitsOfOne >> BITS;
  return squares2 > 0n ? squares2 - 1n : 0n;
}
var squareRoot = (fixed) => wholeRoot(fixed << BITS);
function wholeRoot(number) {
  if (number < 2n) return number;
  let root = 1n << BigInt(bitLength(number) + 1 >> 1);
  for (; ; ) {
    const next = root + number / root >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

// src/blake2b.ts
var WORD = (1n << 64n) - 1n;
var BLOCK = 128;
var START = [
  0x6a09e667f3bcc908n,
  0xbb67ae8584caa73bn,
  0x3c6ef372fe94f82bn,
  0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn,
  0x1f83d9abfb41bd6bn,
  0x5be0cd19137e2179n
];
var ORDERS = [
  "0123456789abcdef",
  "ea489fd61c02b753",
  "b8c052fdae367194",
  "7931dcbe265a40f8",
  "905724afe1bc683d",
  "2c6a0b834d75fe19",
  "c51fed4a0763928b",
  "db7ec13950f4862a",
  "6fe9b308c2d714a5",
  "a2847615fb9e3cd0"
].map((row) => Array.from(row, (digit) => parseInt(digit, 16)));
var ROUNDS = 12;
var QUADS = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
var turned = (word, by) => word >> by | word << 64n - by & WORD;
function compress(state, block, read, isLast) {
  const view = new DataView(block.buffer, block.byteOffset, BLOCK);
  const words2 = Array.from({ length: 16 }, (_, i) => view.getBigUint64(8 * i, true));
  const v = [...state, ...START];
  v[12] ^= BigInt(read);
  if (isLast) v[14] ^= WORD;
  for (let round = 0; round < ROUNDS; round++) {
    const order = ORDERS[round % ORDERS.length];
    QUADS.forEach(([a, b, c, d], i) => {
      v[a] = v[a] + v[b] + words2[order[2 * i]] & WORD;
      v[d] = turned(v[d] ^ v[a], 32n);
      v[c] = v[c] + v[d] & WORD;
      v[b] = turned(v[b] ^ v[c], 24n);
      v[a] = v[a] + v[b] + words2[order[2 * i + 1]] & WORD;
      v[d] = turned(v[d] ^ v[a], 16n);
      v[c] = v[c] + v[d] & WORD;
      v[b] = turned(v[b] ^ v[c], 63n);
    });
  }
  state.forEach((word, i) => state[i] = word ^ v[i] ^ v[i + 8]);
}
function blake2b(bytes, size) {
  const state = [...START];
  state[0] ^= BigInt(16842752 | size);
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK));
  for (let i = 0; i < blocks; i++) {
    const block = new Uint8Array(BLOCK);
    block.set(bytes.subarray(BLOCK * i, BLOCK * (i + 1)));
    compress(state, block, Math.min(BLOCK * (i + 1), bytes.length), i + 1 === blocks);
  }
  const whole = new Uint8Array(64);
  const view = new DataView(whole.buffer);
  state.forEach((word, i) => view.setBigUint64(8 * i, word, true));
  return whole.slice(0, size);
}

// src/fingerprint.ts
var BYTES = 12;
var LEAST_PLAIN = 1e-4;
var LARGEST_PLAIN = 1e16;
function written(number) {
  if (number !== 0 && (Math.abs(number) < LEAST_PLAIN || Math.abs(number) >= LARGEST_PLAIN)) {
    const [digits, power] = number.toExponential().split("e");
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(number) ? `${Object.is(number, -0) ? "-0" : number}.0` : String(number);
}
var quotedText = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
function json(value) {
  if (typeof value === "string") return quotedText(value);
  if (typeof value === "number") return written(value);
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  const table = value;
  return `{${Object.keys(table).sort().map((key2) => `${quotedText(key2)}: ${json(table[key2])}`).join(", ")}}`;
}
var isTelling = (schema) => schema.every(({ edges }) => edges.every((edge) => typeof edge === "number"));
function fingerprintOfResponses(schema, budget) {
  const unit = schema.map(({ name }) => ({ attributes: [name], epsilon: budget, mechanism: "grr" }));
  const attributes = schema.map(({ name, kind, values, edges, missing, merged }) => {
    const together = merged.size > 0 ? [[...merged].map(([label, parts]) => [label, parts])] : [];
    return [name, kind, values, edges, missing, ...together];
  });
  return toHex(blake2b(utf8(json([{ protocol: "split", unit }, attributes])), BYTES));
}

// src/json.ts
var Numeral = class {
  constructor(text) {
    this.text = text;
  }
  text;
  get value() {
    return Number(this.text);
  }
  get isWhole() {
    return /^-?[0-9]+$/.test(this.text);
  }
};
var MOST_DEPTH = 60;
var NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
var STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
var SPACE = /[ \t\n\r]*/y;
var WORDS2 = /* @__PURE__ */ new Map([["null", null], ["true", true], ["false", false]]);
var Parser = class {
  constructor(text, label) {
    this.text = text;
    this.label = label;
  }
  text;
  label;
  at = 0;
  whole() {
    const value = this.value(0);
    this.match(SPACE);
    if (this.at < this.text.length) throw this.fault("more follows");
    return value;
  }
  value(depth) {
    if (depth > MOST_DEPTH) throw this.fault("it is nested too deeply");
    this.match(SPACE);
    const letter = this.text[this.at];
    if (letter === "{") return this.table(depth);
    if (letter === "[") return this.items("]", () => this.value(depth + 1));
    if (letter === '"') return this.string();
    for (const [word, value] of WORDS2) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const number = this.match(NUMBER);
    if (!number) throw this.fault("no value");
    if (!Number.isFinite(Number(number))) throw this.fault("a number is too large");
    return new Numeral(number);
  }
  table(depth) {
    const table = /* @__PURE__ */ new Map();
    this.items("}", () => {
      this.match(SPACE);
      const key2 = this.string();
      this.match(SPACE);
      this.expect(":");
      if (table.has(key2)) throw this.fault("a key is given twice");
      table.set(key2, this.value(depth + 1));
    });
    return table;
  }
  items(end, read) {
    this.at += 1;
    const found = [];
    this.match(SPACE);
    if (this.text[this.at] === end) this.at += 1;
    else {
      for (; ; ) {
        found.push(read());
        this.match(SPACE);
        if (this.text[this.at] === end) break;
        this.expect(",");
      }
      this.at += 1;
    }
    return found;
  }
  string() {
    const written3 = this.match(STRING);
    if (!written3) throw this.fault("no text");
    const text = JSON.parse(written3);
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) {
      throw this.fault("a text holds half a character (a lone surrogate)");
    }
    return text;
  }
  expect(letter) {
    if (this.text[this.at] !== letter) throw this.fault(`${letter} is missing`);
    this.at += 1;
  }
  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }
  fault(reason) {
    return new InputError(`${this.label} cannot be parsed: ${reason}, at character ${this.at}.`);
  }
};
var parse = (text, label) => new Parser(text, label).whole();
var Table = class _Table {
  constructor(map, label) {
    this.map = map;
    this.label = label;
  }
  map;
  label;
  seen = /* @__PURE__ */ new Set();
  static of(value, label) {
    if (!(value instanceof Map)) throw new InputError(`${label} must hold a table of named values.`);
    return new _Table(value, label);
  }
  has(key2) {
    return this.map.has(key2) && this.map.get(key2) !== null;
  }
  get keys() {
    return [...this.map.keys()];
  }
  /** Raise if the table has a key that nobody has read. */
  done() {
    const [left] = this.keys.filter((key2) => !this.seen.has(key2));
    if (left !== void 0) throw new InputError(`${this.label}: there is no key ${quoted(left)}; it has ${[...this.seen].join(", ")}.`);
  }
  raw(key2) {
    this.seen.add(key2);
    const value = this.map.get(key2);
    if (value === void 0) throw this.fault(key2, "it is missing");
    return value;
  }
  text(key2) {
    const value = this.raw(key2);
    if (typeof value !== "string") throw this.fault(key2, "it must be a text");
    return value;
  }
  choice(key2, known) {
    const text = this.text(key2);
    const found = known.find((item) => item === text);
    if (found === void 0) throw this.fault(key2, `it must be one of ${known.join(", ")}, got ${quoted(text)}`);
    return found;
  }
  whole(key2, least, most) {
    const value = this.raw(key2);
    if (!(value instanceof Numeral) || !value.isWhole) throw this.fault(key2, "it must be a whole number");
    const isHeld = Number.isSafeInteger(value.value) || most === Infinity;
    if (!isHeld || value.value < least || value.value > most) {
      throw this.fault(key2, `it must be from ${least} to ${most}, got ${value.text}`);
    }
    return value.value;
  }
  number(key2) {
    const value = this.raw(key2);
    if (!(value instanceof Numeral)) throw this.fault(key2, "it must be a number");
    return value.value;
  }
  flag(key2) {
    const value = this.raw(key2);
    if (typeof value !== "boolean") throw this.fault(key2, "it must be true or false");
    return value;
  }
  list(key2) {
    const value = this.raw(key2);
    if (!Array.isArray(value)) throw this.fault(key2, "it must be a list");
    return value;
  }
  texts(key2) {
    return this.list(key2).map((item) => {
      if (typeof item !== "string") throw this.fault(key2, "it must be a list of texts");
      return item;
    });
  }
  wholes(key2, least, most) {
    return this.list(key2).map((item, i) => new _Table(/* @__PURE__ */ new Map([[`${key2}.${i}`, item]]), this.label).whole(`${key2}.${i}`, least, most));
  }
  table(key2) {
    return _Table.of(this.raw(key2), `${this.label}: ${key2}`);
  }
  tables(key2) {
    return this.list(key2).map((item, i) => _Table.of(item, `${this.label}: ${key2}.${i}`));
  }
  /** Read a key that may be left out. */
  optional(key2, read, otherwise) {
    this.seen.add(key2);
    return this.map.has(key2) ? read(key2) : otherwise;
  }
  /** Read a key that must be there, and may be null. */
  nullable(key2, read) {
    return this.raw(key2) === null ? null : read(key2);
  }
  /** Read a key that may be left out, or be null. */
  maybe(key2, read, otherwise) {
    this.seen.add(key2);
    return this.has(key2) ? read(key2) : otherwise;
  }
  /** Check the version of a document: from 1 to the newest that is known. */
  version(newest, noun) {
    this.seen.add("version");
    const stated = this.map.get("version");
    if (!(stated instanceof Numeral) || !stated.isWhole || stated.value < 1) {
      throw new InputError(`${this.label} is no ${noun}: it must have a version of ${newest} or less.`);
    }
    if (stated.value > newest) {
      throw new InputError(`${this.label} is a ${noun} of version ${stated.text}; this client reads up to version ${newest}.`);
    }
    return stated.value;
  }
  fault(key2, what) {
    return new InputError(`${this.label}: ${key2}: ${what}.`);
  }
};

// src/draws.ts
var CHUNK = 1024;
var Draws = class {
  /** How many bytes were read. */
  used = 0;
  view;
  at = 0;
  isSecure;
  /** Read the given bytes, then no more; without them, those of `getRandomValues`, without end. */
  constructor(given) {
    this.isSecure = given === void 0;
    const bytes = given ?? new Uint8Array(0);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
  /** The next word, a whole number below 2^64. */
  word() {
    if (this.at + 8 > this.view.byteLength) this.fill();
    const word = this.view.getBigUint64(this.at, true);
    this.at += 8;
    this.used += 8;
    return word;
  }
  /** An exactly uniform whole number below a bound of at most 2^63 (Lemire 2019). */
  below(bound) {
    const least = (1n << 64n) % bound;
    for (; ; ) {
      const product = this.word() * bound;
      if ((product & 0xffffffffffffffffn) >= least) return product >> 64n;
    }
  }
  fill() {
    if (!this.isSecure) {
      const given = this.view.byteLength;
      throw new OutOfBytesError(`the report needs more than the ${given} random bytes that were given; give more.`);
    }
    this.view = new DataView(randomBytes(CHUNK).buffer);
    this.at = 0;
  }
};
function randomBytes(count) {
  return globalThis.crypto.getRandomValues(new Uint8Array(count));
}

// src/layout.ts
var WIRE_VERSION = 1;
var SEED_BITS = 64;
var bitsFor = (choices) => choices <= 1 ? 0 : 32 - Math.clz32(choices - 1);
var isFlags = ({ kind, count, width }) => kind === "bits" || kind === "set" && count <= width * bitsFor(count);
function partLength(form) {
  const fields = isFlags(form) ? form.count : (form.kind === "set" ? form.width : 1) * bitsFor(form.count);
  return (form.seeded ? SEED_BITS : 0) + fields;
}
var Bits = class {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }
  bytes;
  at;
  put(number, count) {
    for (let i = 0; i < count; i++, this.at++) {
      if (Math.floor(number / 2 ** i) % 2) this.bytes[this.at >> 3] |= 1 << (this.at & 7);
    }
  }
  take(count) {
    let number = 0;
    for (let i = 0; i < count; i++, this.at++) if (this.bytes[this.at >> 3] & 1 << (this.at & 7)) number += 2 ** i;
    return number;
  }
};
function putPart(form, part, bits) {
  if (part.seed !== void 0) {
    bits.put(Number(part.seed & 0xffffffffn), 32);
    bits.put(Number(part.seed >> 32n), 32);
  }
  if (isFlags(form)) {
    for (const value of part.values) bits.bytes[bits.at + value >> 3] |= 1 << (bits.at + value & 7);
    bits.at += form.count;
    return;
  }
  for (const value of part.values) bits.put(value, bitsFor(form.count));
}
function takePart(form, bits) {
  const seed = form.seeded ? BigInt(bits.take(32)) | BigInt(bits.take(32)) << 32n : void 0;
  const values = [];
  if (isFlags(form)) {
    for (let value = 0; value < form.count; value++) if (bits.take(1)) values.push(value);
    if (form.kind === "set" && values.length !== form.width) return "set";
  } else {
    const numbers = form.kind === "set" ? form.width : 1;
    for (let i = 0; i < numbers; i++) values.push(bits.take(bitsFor(form.count)));
    if (values.some((value) => value >= form.count)) return "range";
    if (values.some((value, i) => i > 0 && values[i - 1] >= value)) return "set";
  }
  return seed === void 0 ? { values } : { values, seed };
}
var Layout = class {
  constructor(forms, sendsOne) {
    this.forms = forms;
    this.sendsOne = sendsOne;
    const lengths = forms.map(partLength);
    this.partBits = sendsOne ? bitsFor(forms.length) : 0;
    const bits = sendsOne ? Math.max(...lengths) : lengths.reduce((sum2, one) => sum2 + one, 0);
    this.length = 1 + Math.ceil((this.partBits + bits) / 8);
  }
  forms;
  sendsOne;
  partBits;
  /** How many bytes every report has. */
  length;
  /** The bytes of a report, by the numbers of its parts. */
  pack(parts) {
    const bytes = new Uint8Array(this.length);
    bytes[0] = WIRE_VERSION;
    const bits = new Bits(bytes, 8);
    for (const [number, part] of parts) {
      bits.put(number, this.partBits);
      putPart(this.forms[number], part, bits);
    }
    return bytes;
  }
  /** The parts of a report by their numbers, or why the bytes are none. */
  unpack(bytes) {
    if (bytes.length !== this.length) return "length";
    if (bytes[0] !== WIRE_VERSION) return "version";
    const bits = new Bits(bytes, 8);
    const chosen = bits.take(this.partBits);
    if (this.sendsOne && chosen >= this.forms.length) return "part";
    const parts = /* @__PURE__ */ new Map();
    const faults = /* @__PURE__ */ new Set();
    for (const [number, form] of this.forms.entries()) {
      if (this.sendsOne && number !== chosen) continue;
      const start = bits.at;
      const part = takePart(form, bits);
      if (typeof part === "string") faults.add(part);
      else parts.set(number, part);
      bits.at = start + partLength(form);
    }
    const order = ["range", "set"];
    const fault = order.find((reason) => faults.has(reason));
    if (fault !== void 0) return fault;
    for (; bits.at < 8 * bytes.length; ) if (bits.take(1)) return "padding";
    return parts;
  }
};

// src/mechanisms.ts
var LOG_LARGEST_BUCKETS = 11.090354888959125;
var LARGEST_BUCKETS = 65536;
var MECHANISMS = ["grr", "sue", "oue", "blh", "olh", "ss", "hadamard", "identity"];
var words = (draws, count) => Array.from({ length: count }, () => draws.word());
var Response = class {
  constructor(size, budget) {
    this.size = size;
    this.budget = budget;
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
  }
  size;
  budget;
  sharedWords = 0;
  get epsilon() {
    return lnNearest(this.factor);
  }
  draw(code, draws) {
    const shared = words(draws, this.sharedWords);
    return this.made(code, words(draws, this.memoWords), shared);
  }
  subject(_code, _shared) {
    return "";
  }
};
var RandomisedResponse = class extends Response {
  name = "grr";
  memoWords = 1;
  other;
  truth;
  form;
  constructor(size, budget) {
    super(size, budget);
    this.other = leastShare(size, budget);
    this.truth = WORDS - BigInt(size - 1) * this.other;
    this.form = { kind: "code", count: size, width: 1, seeded: false };
    checkFactor(this.factor, budget);
  }
  get factor() {
    return { over: this.truth, under: this.other };
  }
  get identity() {
    return `grr ${this.size} ${this.other}`;
  }
  made(code, [word]) {
    return { values: [this.respond(code, word)] };
  }
  respond(code, word) {
    if (word < this.truth) return code;
    const lie = Number((word - this.truth) / this.other);
    return lie >= code ? lie + 1 : lie;
  }
};
var Unary = class extends Response {
  constructor(name, size, budget) {
    super(size, budget);
    this.name = name;
    this.flip = name === "sue" ? leastShare(2, budget / 2) : leastShare(2, budget);
    this.keep = name === "sue" ? WORDS - this.flip : WORDS / 2n;
    this.memoWords = size;
    this.form = { kind: "bits", count: size, width: size, seeded: false };
    checkFactor(this.factor, budget);
  }
  name;
  memoWords;
  keep;
  flip;
  form;
  get factor() {
    return { over: this.keep * (WORDS - this.flip), under: (WORDS - this.keep) * this.flip };
  }
  get identity() {
    return `bits ${this.size} ${this.keep} ${this.flip}`;
  }
  made(code, words2) {
    const values = [];
    words2.forEach((word, value) => {
      if (word < (value === code ? this.keep : this.flip)) values.push(value);
    });
    return { values };
  }
};
var Hashing = class extends Response {
  constructor(name, size, budget, buckets) {
    super(size, budget);
    this.name = name;
    this.buckets = buckets;
    this.response = new RandomisedResponse(buckets, budget);
    this.form = { kind: "code", count: buckets, width: 1, seeded: true };
  }
  name;
  buckets;
  memoWords = 1;
  sharedWords = 1;
  response;
  form;
  get factor() {
    return this.response.factor;
  }
  get identity() {
    return `hash ${this.size} ${this.buckets} ${this.response.other}`;
  }
  bucket(code, seed) {
    const [high, low] = [Number(seed >> 32n), Number(seed & 0xffffffffn)];
    const hash = Math.imul(high, code) + low >>> 0 >>> 15;
    return Math.floor(hash * this.buckets / 2 ** 17);
  }
  subject(code, [seed]) {
    return String(this.bucket(code, seed));
  }
  made(code, [word], [seed]) {
    return { values: [this.response.respond(this.bucket(code, seed), word)], seed };
  }
};
var SubsetSelection = class {
  constructor(size, budget, width) {
    this.size = size;
    this.width = width;
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
    const { over, under } = expBelow(budget);
    const [weight, outside] = [over * BigInt(width), BigInt(size - width) * under];
    const most = WORDS * weight / (weight + outside);
    this.include = most < WORDS ? most : WORDS - 1n;
    this.form = { kind: "set", count: size, width, seeded: false };
    checkFactor(this.factor, budget);
  }
  size;
  width;
  name = "ss";
  include;
  form;
  get factor() {
    return { over: this.include * BigInt(this.size - this.width), under: (WORDS - this.include) * BigInt(this.width) };
  }
  get epsilon() {
    return lnNearest(this.factor);
  }
  /** Floyd's algorithm over the other values; a set that includes the truth skips the first draw. */
  draw(code, draws) {
    const includes = draws.word() < this.include;
    const taken = /* @__PURE__ */ new Set();
    for (let j = 0; j < this.width; j++) {
      const last = this.size - 1 - this.width + j;
      const drawn = Number(draws.below(BigInt(last + 1)));
      if (j > 0 || !includes) taken.add(taken.has(drawn) ? last : drawn);
    }
    const values = [...taken].map((other) => other >= code ? other + 1 : other);
    if (includes) values.push(code);
    return { values: values.sort((one, other) => one - other) };
  }
};
var Hadamard = class {
  constructor(size, budget) {
    this.size = size;
    checkSize(size);
    if (!(budget >= 2 ** -64)) throw tooSmall(budget);
    this.other = leastShare(2, budget);
    this.bits = 32 - Math.clz32(size);
    this.form = { kind: "code", count: 2 ** this.bits, width: 1, seeded: false };
    checkFactor(this.factor, budget);
  }
  size;
  name = "hadamard";
  other;
  form;
  bits;
  get factor() {
    return { over: WORDS - this.other, under: this.other };
  }
  get epsilon() {
    return lnNearest(this.factor);
  }
  /** A uniform column; where its parity is not the one that is drawn, the row's lowest bit is flipped in it. */
  draw(code, draws) {
    const row = code + 1;
    const column = Number(draws.word() >> BigInt(64 - this.bits));
    const wanted = draws.word() < this.other ? 1 : 0;
    return { values: [parity(row & column) === wanted ? column : column ^ row & -row] };
  }
};
function parity(number) {
  let folded = number;
  for (let by = 16; by > 0; by >>= 1) folded ^= folded >>> by;
  return folded & 1;
}
var Identity = class {
  constructor(size) {
    this.size = size;
    this.form = { kind: "code", count: size, width: 1, seeded: false };
  }
  size;
  name = "identity";
  epsilon = Infinity;
  form;
  draw(code) {
    return { values: [code] };
  }
};
var BitFlips = class extends Response {
  constructor(size, budget, asked = Math.min(4, size)) {
    super(size, budget);
    this.asked = asked;
    this.flip = leastShare(2, budget / 2);
    this.memoWords = this.sharedWords = asked;
    this.form = { kind: "set", count: 2 * size, width: asked, seeded: false };
    checkFactor(this.factor, budget);
  }
  asked;
  name = "dbitflip";
  memoWords;
  sharedWords;
  flip;
  form;
  get factor() {
    const power = this.asked === 1 ? 1n : 2n;
    return { over: (WORDS - this.flip) ** power, under: this.flip ** power };
  }
  get identity() {
    return `flips ${this.size} ${this.asked} ${this.flip}`;
  }
  made(code, words2, shared) {
    const asked = /* @__PURE__ */ new Set();
    shared.forEach((word, j) => {
      const last = this.size - this.asked + j;
      const drawn = Number(word * BigInt(last + 1) >> 64n);
      asked.add(asked.has(drawn) ? last : drawn);
    });
    const values = [...asked].sort((one, other) => one - other);
    return { values: values.map((value, j) => 2 * value + (Number(value === code) ^ Number(words2[j] < this.flip))) };
  }
};
function checkSize(size) {
  if (!Number.isInteger(size) || size < 2 || size > LARGEST_SIZE) {
    throw new InputError(`\`size\` must be from 2 to ${LARGEST_SIZE}, got ${size}.`);
  }
}
function usualBuckets(budget) {
  const best = expNearest(Math.min(budget, LOG_LARGEST_BUCKETS)) + 1;
  const [low, rest] = [Math.floor(best), best - Math.floor(best)];
  const rounded = rest > 0.5 || rest === 0.5 && low % 2 === 1 ? low + 1 : low;
  return Math.min(rounded, LARGEST_BUCKETS);
}
var usualWidth = (size, budget) => Math.max(1, Math.floor(size / (expNearest(Math.min(budget, 100)) + 1)));
var TAKES = { olh: "g", ss: "width" };
function createMechanism(name, size, budget, parameters = /* @__PURE__ */ new Map()) {
  if (!MECHANISMS.includes(name)) {
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
function checked(name, value, least, most) {
  if (value !== void 0 && (!Number.isInteger(value) || value < least || value > most)) {
    throw new InputError(`\`${name}\` must be from ${least} to ${most}, got ${value}.`);
  }
  return value;
}

// src/schema.ts
var OTHER = "(other)";
var MISSING = "(missing)";
var KINDS = ["categorical", "ordinal", "numeric", "date", "time"];
var LARGEST_ALPHABET = 65536;
function readAttribute(table, named2) {
  const attribute = {
    name: table.text(named2),
    kind: table.choice("kind", KINDS),
    values: table.texts("values"),
    edges: table.optional("edges", (key2) => table.list(key2).map((edge) => readEdge(table, edge)), []),
    missing: table.optional("missing", (key2) => table.choice(key2, ["absent", "value", "drop"]), "absent"),
    merged: table.optional("merged", (key2) => readMerged(table.table(key2)), /* @__PURE__ */ new Map())
  };
  checkAttribute(attribute);
  return attribute;
}
function readEdge(table, edge) {
  if (edge instanceof Numeral) return edge.value;
  if (typeof edge === "string") return edge;
  throw table.fault("edges", "they must be numbers, dates or times");
}
function readMerged(table) {
  return new Map(table.keys.map((label) => [label, table.texts(label)]));
}
var isBinned = (attribute) => !["categorical", "ordinal"].includes(attribute.kind);
function checkAttribute(attribute) {
  const { name, values, edges, missing, merged, kind } = attribute;
  const subject = `attribute ${quoted(name)}`;
  if (!name) throw new InputError("an attribute needs a name, got an empty one.");
  if (values.length < 1 || values.length > LARGEST_ALPHABET) {
    throw new InputError(`${subject} must have 1 to ${LARGEST_ALPHABET} values, got ${values.length}.`);
  }
  const twice = firstTwin(values);
  if (twice !== void 0) throw new InputError(`${subject} lists the value ${quoted(twice)} twice.`);
  if (missing === "value" !== values.includes(MISSING)) {
    throw new InputError(`${subject}: ${quoted(MISSING)} is listed exactly when missing is 'value', got missing = ${quoted(missing)}.`);
  }
  if (isBinned(attribute)) checkEdges(attribute);
  else if (edges.length > 0) throw new InputError(`${subject} is ${kind}; only numbers, dates and times have edges.`);
  for (const label of merged.keys()) {
    if (isBinned(attribute) || label === OTHER || label === MISSING || !values.includes(label)) {
      throw new InputError(`${subject} merges values into ${quoted(label)}, which is none of its values.`);
    }
  }
  const raws = [...merged.values()].flat();
  const stray = firstTwin(raws) ?? raws.find((raw) => values.includes(raw) && !merged.has(raw));
  if (stray !== void 0) throw new InputError(`${subject} merges ${quoted(stray)} twice, or lists it too; leave one out.`);
}
function checkEdges({ name, kind, values, edges, missing }) {
  const rising = edges.every((edge, i) => i === 0 || edges[i - 1] < edge);
  if (kind === "numeric" && (!edges.every((edge) => typeof edge === "number" && Number.isFinite(edge)) || !rising)) {
    throw new InputError(`\`edges of ${name}\` must be finite and strictly increasing.`);
  }
  const bins = values.length - (missing === "value" ? 1 : 0);
  if (bins !== edges.length + 1) {
    throw new InputError(`attribute ${quoted(name)} has ${edges.length} edges, so it needs ${edges.length + 1} bin labels, got ${bins}.`);
  }
}
var firstTwin = (items) => new Set(items).size === items.length ? void 0 : items.find((item, i) => items.indexOf(item) !== i);
function codeOf(attribute, answer) {
  const { values, edges, kind, name } = attribute;
  if (answer === null) answer = MISSING;
  if (typeof answer === "number") {
    if (kind !== "numeric" || Number.isNaN(answer)) throw new InputError(`${quoted(name)} takes one of its labels, got a number.`);
    return edges.filter((edge) => edge <= answer).length;
  }
  const raw = answer;
  let code = values.indexOf(raw);
  if (code < 0) code = values.findIndex((label) => attribute.merged.get(label)?.includes(raw));
  if (code < 0 && raw !== MISSING) code = values.indexOf(OTHER);
  if (code < 0) throw new InputError(`there is no value of ${name} called ${quoted(raw)}; it has ${values.slice(0, 5).join(", ")}${values.length > 5 ? ", .." : ""}.`);
  return code;
}
function checkNames(attributes) {
  const twice = firstTwin(attributes.map((attribute) => attribute.name));
  if (twice !== void 0) throw new InputError(`the attribute ${quoted(twice)} is listed twice.`);
}

// src/protocols.ts
var PROTOCOL_VERSION = 3;
var LARGEST_EPSILON = 700;
var MOST_SHARE = 2 ** 40;
var WHOLE = 2 ** 32;
var Protocol = class {
  constructor(schema) {
    this.schema = schema;
    checkNames(schema);
  }
  schema;
  /** How many bytes every report has. */
  get length() {
    return this.layout.length;
  }
  /** Whether another protocol asks the same of people, in the same way. */
  isSame(other) {
    const plain = (protocol) => JSON.stringify([protocol.kind, protocol.schema.map((item) => ({ ...item, merged: [...item.merged] })), protocol.stated()]);
    return plain(this) === plain(other);
  }
  /** The codes of a person's answers, one for each attribute. */
  encode(answers) {
    const unknown = Object.keys(answers).find((name) => !this.schema.some((attribute) => attribute.name === name));
    if (unknown !== void 0) throw new InputError(`there is no attribute ${quoted(unknown)} in the protocol.`);
    return this.schema.map((attribute) => codeOf(attribute, answers[attribute.name] ?? null));
  }
  /** Make the report of a record of codes; without given bytes its noise is secure. */
  report(record, draws = new Draws()) {
    if (record.length !== this.schema.length) throw new InputError(`a record has ${this.schema.length} codes, got ${record.length}.`);
    this.schema.forEach(({ name, values }, i) => {
      const code = record[i];
      if (!Number.isInteger(code) || code < 0 || code >= values.length) {
        throw new InputError(`the record's code of ${quoted(name)} must be from 0 to ${values.length - 1}.`);
      }
    });
    return this.layout.pack(this.randomise(record, draws));
  }
  /** Why bytes are no report of this protocol; null where they are one. */
  refusal(report) {
    const parts = this.layout.unpack(report);
    if (typeof parts === "string") return parts;
    return this.isPossible(parts) ? null : "impossible";
  }
  isPossible(_parts) {
    return true;
  }
};
var Unit = class {
  constructor(names, schema, mechanism, budget, parameters) {
    this.names = names;
    if (names.length === 0) throw new InputError("a group needs at least one attribute, got none.");
    if (new Set(names).size < names.length) throw new InputError(`the group ${quoted(this.label)} names an attribute twice; name each once.`);
    this.places = names.map((name) => placeOf(schema, name));
    this.size = this.places.reduce((size, place) => size * schema[place].values.length, 1);
    if (this.places.some((place) => schema[place].values.length < 2)) {
      throw new InputError(`the group ${quoted(this.label)} has an attribute of one value, which says nothing; leave it out.`);
    }
    if (names.length > 1 && !["grr", "ss"].includes(mechanism)) {
      throw new InputError(`the group ${quoted(this.label)} must be reported through one of grr, ss, got ${quoted(mechanism)}.`);
    }
    if (this.size > LARGEST_SIZE) {
      throw new InputError(`the group ${quoted(this.label)} has ${this.size} combinations of values, more than ${LARGEST_SIZE}; make it smaller.`);
    }
    if (budget !== null) checkBudget(budget);
    this.sizes = this.places.map((place) => schema[place].values.length);
    this.mechanism = createMechanism(mechanism, this.size, mechanism === "identity" ? null : budget, parameters);
  }
  names;
  size;
  mechanism;
  places;
  sizes;
  get label() {
    return this.names.join(" x ");
  }
  draw(record, draws) {
    const code = this.places.reduce((cell, place, i) => cell * this.sizes[i] + record[place], 0);
    return this.mechanism.draw(code, draws);
  }
};
function placeOf(schema, name) {
  const place = schema.findIndex((attribute) => attribute.name === name);
  if (place < 0) throw new InputError(`there is no attribute ${quoted(name)}.`);
  return place;
}
function checkBudget(budget) {
  if (!(budget > 0 && budget < LARGEST_EPSILON)) throw new InputError(`\`epsilon\` must be above 0 and below ${LARGEST_EPSILON}, got ${budget}.`);
}
var UnitProtocol = class extends Protocol {
  constructor(schema, units, sendsOne) {
    super(schema);
    this.units = units;
    if (units.length === 0) throw new InputError("a protocol needs at least one `unit`.");
    const labels = units.map((unit) => unit.label);
    if (new Set(labels).size < labels.length) throw new InputError(`two groups have one label: ${labels.join(", ")}.`);
    const named2 = units.flatMap((unit) => unit.names);
    const [absent] = schema.filter((attribute) => !named2.includes(attribute.name));
    if (absent !== void 0) throw new InputError(`no group reports the attribute ${quoted(absent.name)}; add it or leave it out of the schema.`);
    const twice = named2.find((name, i) => named2.indexOf(name) !== i);
    if (!sendsOne && twice !== void 0) throw new InputError(`the attribute ${quoted(twice)} is in two groups.`);
    this.layout = new Layout(units.map((unit) => unit.mechanism.form), sendsOne);
  }
  units;
  layout;
  stated() {
    return this.units.map(({ names, mechanism }) => [names, mechanism.name, mechanism.form, String(mechanism.epsilon)]);
  }
};
var Split = class extends UnitProtocol {
  kind = "split";
  constructor(schema, units) {
    super(schema, units, false);
  }
  get name() {
    return this.units.some((unit) => unit.names.length > 1) ? "product" : "spl";
  }
  get epsilon() {
    const budgets = this.units.map((unit) => unit.mechanism.epsilon);
    return budgets.includes(Infinity) ? Infinity : exactSum(budgets);
  }
  randomise(record, draws) {
    return new Map(this.units.map((unit, number) => [number, unit.draw(record, draws)]));
  }
};
var Sample = class extends UnitProtocol {
  kind = "sample";
  shares;
  constructor(schema, units, shares = []) {
    super(schema, units, true);
    this.shares = shares.length > 0 ? shares : units.map(() => 1);
    if (this.shares.length !== units.length) {
      throw new InputError(`\`shares\` must have one number for each of ${units.length} groups, got ${shares.length}.`);
    }
  }
  get name() {
    return this.units.some((unit) => unit.names.length > 1) ? "smp on groups" : "smp";
  }
  get epsilon() {
    return Math.max(...this.units.map((unit) => unit.mechanism.epsilon));
  }
  stated() {
    return [super.stated(), this.shares];
  }
  randomise(record, draws) {
    const shares = this.shares.map(BigInt);
    let drawn = draws.below(shares.reduce((sum2, share) => sum2 + share, 0n));
    const chosen = shares.findIndex((share) => {
      if (drawn < share) return true;
      drawn -= share;
      return false;
    });
    return /* @__PURE__ */ new Map([[chosen, this.units[chosen].draw(record, draws)]]);
  }
};
var Hidden = class extends Protocol {
  constructor(schema, partition, budget, fakes, name, origin) {
    super(schema);
    this.partition = partition;
    this.budget = budget;
    this.fakes = fakes;
    this.name = name;
    this.origin = origin;
    checkBudget(budget);
    const members = partition.flat();
    if (members.length !== schema.length || !schema.every((attribute) => members.includes(attribute.name)) || partition.some((group) => group.length === 0)) {
      throw new InputError("`groups` must be a partition of the attributes.");
    }
    this.groups = partition.map((group) => group.map((name2) => placeOf(schema, name2)));
    this.checkLaws();
    const part = evenPart(budget, partition.length);
    this.responses = schema.map(({ values }) => new RandomisedResponse(values.length, part));
    const form = (count) => ({ kind: "code", count, width: 1, seeded: false });
    this.layout = new Layout(schema.map(({ values }) => form(values.length)), false);
  }
  partition;
  budget;
  fakes;
  name;
  origin;
  kind = "hidden";
  layout;
  responses;
  groups;
  get epsilon() {
    return exactSum(this.groups.map((group) => Math.max(...group.map((place) => this.responses[place].epsilon))));
  }
  stated() {
    return [this.partition, this.budget, [...this.fakes].sort(([one], [other]) => one < other ? -1 : 1), this.name, this.origin];
  }
  law(chosen, other) {
    const law = this.fakes.get(pairKey(chosen, other)) ?? this.fakes.get(pairKey("", other));
    if (law === void 0) throw new InputError(`there is no law for the fakes of ${quoted(other)} given ${quoted(chosen)}.`);
    return law;
  }
  checkLaws() {
    const size = (name) => this.schema[placeOf(this.schema, name)].values.length;
    for (const group of this.partition) {
      for (const [chosen, other] of group.flatMap((one) => group.filter((two) => two !== one).map((two) => [one, two]))) {
        const law = this.law(chosen, other);
        if (law.length !== 1 && law.length !== size(chosen) || law[0].length !== size(other)) {
          throw new InputError(`the fakes of ${quoted(other)} given ${quoted(chosen)} have the wrong shape.`);
        }
      }
    }
    for (const law of this.fakes.values()) {
      for (const row of law) {
        if (row.some((weight) => weight < 0) || row.reduce((sum2, weight) => sum2 + weight, 0) !== WHOLE) {
          throw new InputError(`the fakes must add up to ${WHOLE} in each row.`);
        }
      }
    }
  }
  row(chosen, said, other) {
    const law = this.law(this.schema[chosen].name, this.schema[other].name);
    return law[law.length === 1 ? 0 : said];
  }
  randomise(record, draws) {
    const codes = /* @__PURE__ */ new Map();
    for (const group of this.groups) {
      const chosen = group[Number(draws.below(BigInt(group.length)))];
      const said = this.responses[chosen].respond(record[chosen], draws.word());
      for (const place of group) {
        const drawn = Number(draws.word() >> 32n);
        codes.set(place, place === chosen ? said : drawnFrom(this.row(chosen, said, place), drawn));
      }
    }
    return new Map(this.schema.map((_, place) => [place, { values: [codes.get(place)] }]));
  }
  isPossible(parts) {
    const code = (place) => parts.get(place).values[0];
    return this.groups.every(
      (group) => group.some(
        (chosen) => group.every((other) => other === chosen || this.row(chosen, code(chosen), other)[code(other)] > 0)
      )
    );
  }
};
var pairKey = (chosen, other) => JSON.stringify([chosen, other]);
function drawnFrom(weights, drawn) {
  let end = 0;
  return weights.findIndex((weight) => drawn < (end += weight));
}
function readProtocol(data, label = "the protocol") {
  const table = Table.of(data, label);
  if (table.keys.includes("release") && !table.keys.includes("protocol")) throw new InputError(`${label} is a plan, no protocol file.`);
  table.version(PROTOCOL_VERSION, "protocol");
  const schema = table.tables("attribute").map((item) => {
    const attribute = readAttribute(item, "name");
    item.done();
    return attribute;
  });
  const kind = table.choice("protocol", ["split", "sample", "hidden"]);
  try {
    checkNames(schema);
    const made = kind === "hidden" ? readHidden(table, schema) : readUnits(table, schema, kind);
    table.done();
    return made;
  } catch (error) {
    throw error instanceof InputError && !error.message.startsWith(label) ? new InputError(`${label}: ${error.message}`) : error;
  }
}
function readUnits(table, schema, kind) {
  const units = table.tables("unit").map((item) => {
    const unit = new Unit(
      item.texts("attributes"),
      schema,
      item.text("mechanism"),
      item.maybe("epsilon", (key2) => item.number(key2), null),
      item.optional("parameters", (key2) => readParameters(item.table(key2)), /* @__PURE__ */ new Map())
    );
    item.done();
    return unit;
  });
  const shares = table.optional("shares", (key2) => table.wholes(key2, 1, MOST_SHARE), []);
  return kind === "split" ? new Split(schema, units) : new Sample(schema, units, shares);
}
var readParameters = (table) => new Map(table.keys.map((key2) => [key2, table.whole(key2, 0, LARGEST_SIZE)]));
function readHidden(table, schema) {
  const fakes = /* @__PURE__ */ new Map();
  for (const item of table.tables("fake")) {
    const key2 = pairKey(item.text("given"), item.text("of"));
    if (fakes.has(key2)) throw new InputError(`the fakes of ${quoted(item.text("of"))} are listed twice.`);
    const rows = item.list("weights").map((row) => readWeights(item, row));
    if (new Set(rows.map((row) => row.length)).size !== 1) throw item.fault("weights", "they must be rows of one length");
    fakes.set(key2, rows);
    item.done();
  }
  const partition = table.list("groups").map((group) => {
    if (!Array.isArray(group) || !group.every((name) => typeof name === "string")) throw table.fault("groups", "they must be lists of names");
    return group;
  });
  return new Hidden(schema, partition, table.number("epsilon"), fakes, table.text("name"), table.text("origin"));
}
function readWeights(item, row) {
  if (!Array.isArray(row)) throw item.fault("weights", "they must be rows of whole numbers");
  return row.map((weight) => {
    if (!(weight instanceof Numeral) || !weight.isWhole || Math.abs(weight.value) > WHOLE) {
      throw item.fault("weights", `they must be whole numbers up to ${WHOLE}`);
    }
    return weight.value;
  });
}

// src/sha256.ts
var K = roundConstants();
var START2 = firstPrimes(8).map((prime) => fraction(Math.sqrt(prime)));
function firstPrimes(count) {
  const primes = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}
function fraction(number) {
  return (number - Math.floor(number)) * 2 ** 32 >>> 0;
}
function roundConstants() {
  return Uint32Array.from(firstPrimes(64), (prime) => {
    const cube = BigInt(prime) << 96n;
    let low = 0n;
    for (let bit = 1n << 40n; bit > 0n; bit >>= 1n) if ((low + bit) ** 3n <= cube) low += bit;
    return Number(low & 0xffffffffn);
  });
}
var turned2 = (word, by) => word >>> by | word << 32 - by;
function compress2(state, w) {
  for (let i = 16; i < 64; i++) {
    const [early, late] = [w[i - 15], w[i - 2]];
    const s0 = turned2(early, 7) ^ turned2(early, 18) ^ early >>> 3;
    const s1 = turned2(late, 17) ^ turned2(late, 19) ^ late >>> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = turned2(e, 6) ^ turned2(e, 11) ^ turned2(e, 25);
    const one = h + s1 + (e & f ^ ~e & g) + K[i] + w[i] | 0;
    const s0 = turned2(a, 2) ^ turned2(a, 13) ^ turned2(a, 22);
    const two = s0 + (a & b ^ a & c ^ b & c) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, d + one | 0, c, b, a, one + two | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => state[i] = state[i] + word);
}
function sha256(message) {
  const padded = new Uint8Array((Math.floor((message.length + 8) / 64) + 1) * 64);
  padded.set(message);
  padded[message.length] = 128;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  const [state, w] = [Uint32Array.from(START2), new Uint32Array(64)];
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
    compress2(state, w);
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => out.setUint32(4 * i, word));
  return new Uint8Array(out.buffer);
}
function hmac(key2, message) {
  const block = new Uint8Array(64);
  block.set(key2);
  const inner = sha256(joined([block.map((byte) => byte ^ 54), message]));
  return sha256(joined([block.map((byte) => byte ^ 92), inner]));
}

// src/documents.ts
var PLAN_VERSION = 3;
var PARAMETERS_VERSION = 1;
var TASK_VERSION = 1;
var ROUND_VERSION = 1;
var METHODS = ["corr-rr", "cond-rr"];
var COPYING = ["published", "corrected"];
var protocolFrom = (text, label = "the protocol") => readProtocol(parse(text, label), label);
function planFrom(text, label = "the plan") {
  const table = Table.of(parse(text, label), label);
  if (table.keys.includes("protocol") && !table.keys.includes("release")) throw new InputError(`${label} is a protocol, no plan.`);
  const version = table.version(PLAN_VERSION, "plan");
  const releases = table.tables("release").map((item) => readRelease(item, version));
  readLimits(table, version);
  table.done();
  checkNames(releases.map((release) => release.attribute));
  const kept = releases.filter((release) => release.mechanism !== "withheld");
  if (releases.length === 0) throw new InputError(`${label}: a plan must release at least one attribute.`);
  if (kept.length === 0) throw new InputError(`${label}: the plan withholds every attribute; there is nothing to collect.`);
  const schema = kept.map((release) => release.attribute);
  const units = kept.map(({ attribute, mechanism, epsilon, parameters }) => new Unit([attribute.name], schema, mechanism, epsilon, parameters));
  return new Split(schema, units);
}
function readRelease(item, version) {
  const attribute = readAttribute(item, "attribute");
  const mechanism = item.text("mechanism");
  const epsilon = item.maybe("epsilon", (key2) => item.number(key2), null);
  const times2 = item.optional("times", (key2) => item.whole(key2, 1, 1e6), 1);
  const parameters = item.optional("parameters", (key2) => readParameters(item.table(key2)), /* @__PURE__ */ new Map());
  const reason = item.optional("reason", (key2) => item.text(key2), "");
  const memory = item.maybe("memory", (key2) => item.choice(key2, ["fresh", "kept"]), null);
  item.done();
  if (version < PLAN_VERSION && (reason || memory || attribute.merged.size > 0)) {
    throw item.fault(attribute.name, `a reason, a memory or merged values need version ${PLAN_VERSION}`);
  }
  if (epsilon !== null) checkBudget(epsilon);
  if (["identity", "withheld"].includes(mechanism) && epsilon !== null) {
    throw item.fault("epsilon", `the mechanism ${quoted(mechanism)} has no budget; leave it out`);
  }
  if (times2 !== 1) throw item.fault("times", `the plan asks for ${times2} reports of ${quoted(attribute.name)}, and a collection takes one`);
  return { attribute, mechanism, epsilon, parameters };
}
function readLimits(table, version) {
  const isLimit = (value) => value === "infinity" || value instanceof Numeral && value.value >= 0;
  const limit = table.maybe("limit", (key2) => table.raw(key2), null);
  const limits = table.optional("limits", (key2) => table.table(key2), null);
  const each = limits?.keys.map((key2) => limits.raw(key2)) ?? [];
  if (![...each, ...limit === null ? [] : [limit]].every(isLimit)) throw table.fault("limit", "it must be a number of at least 0, or infinity");
  table.optional("origin", (key2) => table.text(key2), "");
  const newer = ["delta", "decide_by", "reasons", "purpose"].filter((key2) => table.has(key2));
  if (version < PLAN_VERSION && newer.length > 0) throw table.fault(newer[0], `it needs version ${PLAN_VERSION}`);
  const delta = table.maybe("delta", (key2) => table.number(key2), null);
  if (delta !== null && !(delta > 0 && delta < 1)) throw table.fault("delta", "it must be between 0 and 1");
  table.maybe("decide_by", (key2) => table.text(key2), "");
  table.optional("purpose", (key2) => table.text(key2), "");
  const reasons = table.optional("reasons", (key2) => table.table(key2), null);
  reasons?.keys.forEach((key2) => reasons.text(key2));
}
function readPhases(table, schema) {
  const phases = {
    schema,
    epsilon: table.number("epsilon"),
    method: table.choice("method", METHODS),
    copying: table.choice("copying", COPYING),
    share: table.number("share"),
    groups: table.whole("groups", 1, schema.length)
  };
  checkBudget(phases.epsilon);
  if (!(phases.share > 0 && phases.share < 1)) throw table.fault("share", "it must be between 0 and 1");
  return phases;
}
function firstPhase({ schema, epsilon }) {
  const part = evenPart(epsilon, schema.length);
  return new Split(schema, schema.map(({ name }) => new Unit([name], schema, "grr", part, /* @__PURE__ */ new Map())));
}
function checkSecond(phases, second) {
  if (!(second instanceof Hidden)) throw new InputError(`the second phase must hide its choice, got ${quoted(second.name)}.`);
  const pairs = [
    ["epsilon", second.budget, phases.epsilon],
    ["name", second.name, phases.method],
    ["number of groups", second.partition.length, phases.groups]
  ];
  for (const [what, stated, wanted] of pairs) {
    if (stated !== wanted) throw new InputError(`the ${what} of the second phase must be the design's, ${wanted}, got ${stated}; learn again.`);
  }
  const [, learnt] = /^first phase ([0-9a-f]{24}),/.exec(second.origin) ?? [];
  if (learnt === void 0) throw new InputError("the second phase does not say which first phase it was learnt from; learn again.");
  const { schema, epsilon } = phases;
  if (isTelling(schema) && learnt !== fingerprintOfResponses(schema, evenPart(epsilon, schema.length))) {
    throw new InputError("the second phase was not learnt from this design's first phase; learn again.");
  }
}
function parametersFrom(text, label = "the parameters") {
  const table = Table.of(parse(text, label), label);
  table.version(PARAMETERS_VERSION, "parameter file");
  table.whole("round", 1, Infinity);
  table.whole("reports", 1, Infinity);
  const second = readProtocol(table.raw("second"), `${label}: second`);
  const design = table.table("design");
  const phases = readPhases(design, second.schema);
  design.done();
  table.done();
  checkSecond(phases, second);
  return second;
}
function documentOf(bytes, label, digest) {
  if (toHex(sha256(bytes)) !== digest) throw new InputError(`${label} is not the document that its digest ${digest} names; fetch it again.`);
  return Table.of(parse(fromUtf8(bytes, label), label), label);
}
function taskFrom(bytes, id) {
  const table = documentOf(bytes, "the task", id);
  table.version(TASK_VERSION, "task");
  const rounds = table.whole("rounds", 1, 1e4);
  const [purpose, contact] = [table.text("purpose"), table.text("contact")];
  const terms2 = readTerms(table.table("terms"));
  table.maybe("pace", (key2) => readPace(table.table(key2)), null);
  const phases = table.maybe("phases", (key2) => readPhasesTable(table.table(key2)), null);
  const protocol = table.maybe("protocol", (key2) => readProtocol(table.raw(key2), "the task: protocol"), null);
  table.done();
  if (phases === null === (protocol === null)) throw new InputError("the task must have either `protocol` or `phases`; give one of them.");
  if (phases !== null && rounds !== 2) throw new InputError(`\`rounds\` must be 2, the phases of a two-phase design, got ${rounds}.`);
  return { id, purpose, contact, rounds, terms: terms2, protocol: protocol ?? firstPhase(phases), phases };
}
function readPace(table) {
  table.nullable("reports", (key2) => table.whole(key2, 1, 2 ** 40));
  table.nullable("seconds", (key2) => table.whole(key2, 1, 2 ** 40));
  table.done();
  return null;
}
function readPhasesTable(table) {
  const schema = table.tables("attribute").map((item) => {
    const attribute = readAttribute(item, "name");
    item.done();
    return attribute;
  });
  const phases = readPhases(table, schema);
  table.done();
  return phases;
}
function readTerms(table) {
  const terms2 = {
    smallestCrowd: table.whole("smallest_crowd", 1, 2 ** 40),
    retentionDays: table.nullable("retention_days", (key2) => table.whole(key2, 0, 1e5)),
    mostReports: table.nullable("most_reports", (key2) => table.whole(key2, 1, 2 ** 40)),
    needsToken: table.flag("needs_token"),
    keepsReports: table.flag("keeps_reports")
  };
  table.done();
  return terms2;
}
function roundFrom(task, number, bytes, digest = toHex(sha256(bytes))) {
  const label = `round ${number} of the task`;
  const table = documentOf(bytes, label, digest);
  table.version(ROUND_VERSION, "round");
  if (table.text("task") !== task.id || table.whole("round", 1, task.rounds) !== number) throw new InputError(`${label} is of another task or round.`);
  const protocol = readProtocol(table.raw("protocol"), label);
  const learnt = table.nullable("learnt", (key2) => table.table(key2));
  learnt?.whole("reports", 1, Infinity);
  learnt?.text("sums");
  learnt?.done();
  table.done();
  if (task.phases !== null && number === 2) checkSecond(task.phases, protocol);
  else if (!protocol.isSame(task.protocol)) {
    const spends = (one) => `${one.epsilon} through ${quoted(one.name)}`;
    throw new InputError(`${label} asks otherwise than the task says: it spends ${spends(protocol)}, and the task says ${spends(task.protocol)}.`);
  }
  return { task: task.id, number, digest, protocol };
}

// src/limits.ts
var UNITS = 1e9;
var MOST_UNITS = Number.MAX_SAFE_INTEGER;
var LATEST = 2 ** 37;
var DAY = 86400;
var WINDOWS = ["ever", "sliding", "year", "epoch"];
var OverspentError = class extends InputError {
  constructor(message, remaining) {
    super(message);
    this.remaining = remaining;
  }
  remaining;
  name = "OverspentError";
};
function charged(epsilon) {
  if (!(epsilon >= 0 && epsilon < MOST_UNITS / UNITS)) throw new InputError(`\`epsilon\` must be a number of at least 0, got ${epsilon}.`);
  return Number(inUnits(epsilon, true));
}
function inUnits(number, up) {
  const { over, under } = decimal(String(number));
  const units = over * BigInt(UNITS);
  return units / under + (up && units % under !== 0n ? 1n : 0n);
}
function decimal(text) {
  const [, whole, part = "", power = "0"] = /^([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?$/.exec(text) ?? [];
  if (whole === void 0) throw new InputError(`a number cannot be read, got ${text}.`);
  const shift = Number(power) - part.length;
  const digits = BigInt(whole + part);
  return shift >= 0 ? { over: digits * 10n ** BigInt(shift), under: 1n } : { over: digits, under: 10n ** BigInt(-shift) };
}
function limitOf(epsilon, window = {}, delta = 0) {
  const kind = window.kind ?? (window.days === void 0 ? "ever" : "sliding");
  if ((kind === "sliding" || kind === "epoch") !== (window.days !== void 0)) throw new InputError("a sliding window and an epoch have `days`, no other window has.");
  const units = Number(inUnits(epsilon, false));
  const limit = {
    units,
    window: kind,
    unit: kind === "epoch" ? window.days * DAY : kind === "sliding" ? DAY : 0,
    window_units: kind === "sliding" ? window.days : 0,
    delta: asPython(delta),
    most_squares: delta > 0 ? String(squaresOf(units, delta)) : null,
    budgets: []
  };
  checkLimit(limit);
  return limit;
}
var squaresOf = (units, delta) => filterSquares(BigInt(units), BigInt(UNITS), decimal(String(delta)));
function asPython(number) {
  if (Number.isInteger(number) && Math.abs(number) < 1e16) return `${number}.0`;
  if (Math.abs(number) >= 1e-4 && Math.abs(number) < 1e16) return String(number);
  const [digits, power] = number.toExponential().split("e");
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}
function checkLimit(limit) {
  const delta = Number(limit.delta);
  if (!(delta >= 0 && delta < 1) || limit.delta.trim() === "") throw new InputError(`\`delta\` must be from 0 to below 1, got ${quoted(limit.delta)}.`);
  if (!Number.isInteger(limit.units) || limit.units < 1) throw new InputError(`\`units\` must be at least 1, got ${limit.units}.`);
  const hasUnit = limit.window === "sliding" || limit.window === "epoch";
  if (hasUnit !== limit.unit >= 1 || limit.window === "sliding" !== limit.window_units >= 1) {
    throw new InputError(`the window ${quoted(limit.window)} has the wrong length.`);
  }
  if (limit.budgets.length > 0 && (delta === 0 || limit.window === "sliding")) {
    throw new InputError("budgets are fixed beforehand for a limit at delta, and have an order, which a sliding window has not.");
  }
  const isFilter = delta > 0 && limit.budgets.length === 0;
  const wanted = isFilter ? String(squaresOf(limit.units, delta)) : null;
  if (limit.most_squares !== null && limit.most_squares !== wanted) throw new InputError(`the filter of the limit ${shownLimit(limit)} is not the one that its delta gives.`);
}
function shown(units) {
  const [whole, rest] = [Math.floor(units / UNITS), String(units % UNITS).padStart(9, "0")];
  return `${whole}.${rest}`.replace(/\.?0+$/, "");
}
var written2 = (time) => `${new Date(time * 1e3).toISOString().slice(0, 19).replace("T", " ")} UTC`;
function shownLimit(limit) {
  const span = (seconds) => {
    const [count, noun] = seconds % DAY === 0 ? [seconds / DAY, "day"] : [seconds, "second"];
    return `${count} ${noun}${count === 1 ? "" : "s"}`;
  };
  const windows = {
    ever: "all time",
    sliding: `any ${span(limit.unit * limit.window_units)}`,
    year: "a year",
    epoch: `an epoch of ${span(limit.unit)}`
  };
  const at = Number(limit.delta) > 0 ? ` at delta = ${Number(limit.delta)}` : "";
  return `${shown(limit.units)}${at} in ${windows[limit.window]}`;
}
function leaves(limit, then, opened) {
  switch (limit.window) {
    case "ever":
      return Infinity;
    case "sliding":
      return (Math.floor(then / limit.unit) + limit.window_units) * limit.unit;
    case "year":
      return Date.UTC(new Date(then * 1e3).getUTCFullYear() + 1, 0, 1) / 1e3;
    case "epoch":
      return opened + (Math.floor((then - opened) / limit.unit) + 1) * limit.unit;
  }
}
var memoOf = ({ channel, attribute, epoch }) => epoch === null ? null : JSON.stringify([channel, attribute, epoch]);
function spentIn(uses, limit, opened, now) {
  const memos = /* @__PURE__ */ new Set();
  const spent = [];
  for (const { time, charge } of uses) {
    if (leaves(limit, time, opened) <= now) continue;
    const memo = memoOf(charge);
    if (memo === null || !memos.has(memo)) spent.push(BigInt(charge.units));
    if (memo !== null) memos.add(memo);
  }
  return spent;
}
var sum = (numbers) => numbers.reduce((total, one) => total + one, 0n);
var squares = (numbers) => sum(numbers.map((one) => one * one));
function admits(limit, spent) {
  if (limit.budgets.length > 0) {
    return spent.length <= limit.budgets.length && spent.every((one, i) => one <= BigInt(limit.budgets[i]));
  }
  const filtered = limit.most_squares !== null && squares(spent) <= BigInt(limit.most_squares);
  return filtered || sum(spent) <= BigInt(limit.units);
}
function leftOf(limit, uses, opened, now) {
  const spent = spentIn(uses, limit, opened, now);
  if (limit.budgets.length > 0) return limit.budgets[spent.length] ?? 0;
  const rest = limit.most_squares === null ? 0n : BigInt(limit.most_squares) - squares(spent);
  const [filtered, pure] = [rest > 0n ? wholeRoot(rest) : 0n, BigInt(limit.units) - sum(spent)];
  return Number([filtered, pure, 0n].reduce((most, one) => one > most ? one : most));
}
function checkFits(question, limits, uses, opened, now) {
  const spentWith = (limit, time) => spentIn([...uses, ...question.charges.map((charge) => ({ time, charge }))], limit, opened, time);
  for (const limit of limits) {
    if (admits(limit, spentWith(limit, now))) continue;
    const left = leftOf(limit, uses, opened, now);
    const more = Number(sum(spentWith(limit, now)) - sum(spentIn(uses, limit, opened, now)));
    const times2 = [...new Set(uses.map((use) => leaves(limit, use.time, opened)))].filter((time) => time > now && time < Infinity);
    const returns = times2.sort((one, other) => one - other).find((time) => admits(limit, spentWith(limit, time))) ?? null;
    const when = returns === null ? "it will never fit" : `it fits from ${written2(returns)} on`;
    throw new OverspentError(
      `${named(question)} spends ${shown(more)}, and ${shown(left)} is left of ${shownLimit(limit)}; ${when}.`,
      { limit, left, returns }
    );
  }
}
var named = ({ task, round }) => `round ${round} of the task ${quoted(task)}`;

// src/client.ts
var ID_BYTES = 16;
var MOST_REPORTS = 1e3;
var FINAL = ["accepted", "repeated", "malformed", "closed", "over quota", "bad token"];
var AGAIN = [408, 425, 429];
var REFUSED = [400, 404, 409, 413, 415];
var AwayError = class extends Error {
  name = "AwayError";
};
var Client = class {
  constructor(server, ledger, options = {}) {
    this.server = server;
    this.ledger = ledger;
    this.fetch = options.fetch ?? ((address, given) => globalThis.fetch(address, { ...given, credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" }));
    this.most = options.most ?? MOST_REPORTS;
  }
  server;
  ledger;
  fetch;
  most;
  /** Fetch a task; its document must be the one that its id names. */
  async task(id) {
    if (!/^[0-9a-f]{64}$/.test(id)) throw new InputError(`a task's id has 64 hexadecimal digits, got ${quoted(id)}.`);
    return taskFrom(await this.get(`/v1/tasks/${id}`), id);
  }
  /** Fetch a round of a task, and check that it keeps to the task's budgets. */
  async round(task, number) {
    return roundFrom(task, number, await this.get(`/v1/tasks/${task.id}/rounds/${number}`));
  }
  /** Fetch the open round that this device takes part in, the lowest one; null where there is none. */
  async openRound(task) {
    const label = "the state of the task";
    const state = Table.of(parse(fromUtf8(await this.get(`/v1/tasks/${task.id}/state`), label), label), label);
    const open = state.tables("rounds").filter((item) => item.text("state") === "open").map((item) => item.whole("round", 1, task.rounds));
    const own = task.phases === null ? null : takesFirst(this.ledger.person, task.id, task.phases.share) ? 1 : 2;
    const number = open.find((one) => own === null || one === own);
    return number === void 0 ? null : this.round(task, number);
  }
  /** What answering a round spends: the budget of a whole record. */
  question(round) {
    const { protocol } = round;
    const attribute = protocol.schema.map(({ name }) => name).join(", ");
    return { task: round.task, round: round.number, charges: [{ attribute, channel: protocol.name, units: charged(protocol.epsilon), epoch: null }] };
  }
  /** Spend, randomise and keep what is to be sent: nothing leaves yet, and asking again gives the same bytes. */
  async reserve(round, answers, token, draws = new Draws()) {
    const record = round.protocol.encode(answers);
    return this.ledger.reserve(this.question(round), () => uploadOf(round.digest, round.protocol.report(record, draws), randomBytes(ID_BYTES), token));
  }
  /** Answer a round: reserve, send, acknowledge; null where it was answered before. */
  async answer(round, answers, token) {
    const question = this.question(round);
    const outcomes = [];
    await this.ledger.answer(
      question,
      () => uploadOf(round.digest, round.protocol.report(round.protocol.encode(answers)), randomBytes(ID_BYTES), token),
      async (sent) => void outcomes.push(...await this.upload(sent))
    );
    return outcomes[0] ?? null;
  }
  /** Send whatever may not have arrived, round by round, in batches: the same bytes again. */
  async resume() {
    const outcomes = [];
    const waiting = this.ledger.pending.map(({ question }) => question);
    for (const place of new Set(waiting.map(placeOf2))) {
      const asked = waiting.filter((question) => placeOf2(question) === place);
      for (let at = 0; at < asked.length; at += this.most) {
        await this.ledger.send(asked.slice(at, at + this.most), async (sent) => void outcomes.push(...await this.upload(sent)));
      }
    }
    return outcomes;
  }
  upload(sent) {
    const { task, round } = sent[0].question;
    return upload(this.fetch, `${this.server}/v1/tasks/${task}/rounds/${round}/reports`, sent.map(({ report }) => report));
  }
  async get(path) {
    const { status, body } = await reached(this.fetch, this.server + path);
    if (status !== 200) throw new InputError(`${this.server}${path} answered ${status}.`);
    return body;
  }
};
var placeOf2 = ({ task, round }) => `${task} ${round}`;
function takesFirst(person, task, share) {
  const digest = sha256(utf8(`${[...person].length}:${person}${task}`));
  return new DataView(digest.buffer).getBigUint64(0, true) < share * 2 ** 64;
}
function uploadOf(round, report, id, token) {
  const item = { id: toBase64(id), report: toBase64(report), ...token === void 0 ? {} : { token } };
  return utf8(JSON.stringify({ reports: [item], round }));
}
async function reached(fetch, address, options) {
  try {
    const response = await fetch(address, options);
    const body = new Uint8Array(await response.arrayBuffer());
    if (response.status < 500 && !AGAIN.includes(response.status)) return { status: response.status, body };
    throw new Error(`it answered ${response.status}`);
  } catch (error) {
    throw new AwayError(`${address} cannot be reached: ${error instanceof Error ? error.message : String(error)}; what is kept is sent again later.`);
  }
}
async function upload(fetch, address, kept) {
  const single = kept.map((one) => JSON.parse(fromUtf8(one, "a kept upload")));
  const rounds = new Set(single.map(({ round: round2 }) => round2));
  if (rounds.size !== 1) throw new InputError("an upload has reports of one round.");
  const reports = single.flatMap((one) => one.reports);
  const [round] = rounds;
  const { status, body } = await reached(fetch, address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ reports, round })
  });
  if (status === 413 && kept.length > 1) {
    const half = kept.length >> 1;
    return [...await upload(fetch, address, kept.slice(0, half)), ...await upload(fetch, address, kept.slice(half))];
  }
  const outcomes = decided(status, body);
  if (outcomes === null) return reports.map(() => ({ status: status === 409 ? "closed" : "refused", reason: `the server answered ${status}` }));
  return reports.map(({ id }) => {
    const outcome = outcomes.get(id);
    if (outcome === void 0 || !FINAL.includes(outcome.status)) {
      throw new AwayError(`the server has not decided on every report${outcome ? `, it says ${quoted(outcome.status)}` : ""}; what is kept is sent again later.`);
    }
    return outcome;
  });
}
function decided(status, body) {
  try {
    const table = Table.of(parse(fromUtf8(body, "the answer"), "the answer"), "the answer");
    if (status === 200) {
      return new Map(table.tables("answers").map((item) => [
        item.text("id"),
        { status: item.text("status"), reason: item.maybe("reason", (key2) => item.text(key2), "") }
      ]));
    }
    if (REFUSED.includes(status)) {
      table.whole("status", status, status);
      return null;
    }
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw new AwayError(`the service answered ${status} without a decision; what is kept is sent again later.`);
}

// src/indexed.ts
var LINES = "lines";
var finished = (transaction) => new Promise((resolve, reject) => {
  transaction.oncomplete = () => resolve();
  transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the database gave up"));
});
var result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error ?? new Error("the database gave up"));
});
var IndexedStore = class _IndexedStore {
  constructor(label, database, free) {
    this.label = label;
    this.database = database;
    this.free = free;
  }
  label;
  database;
  free;
  count = 0;
  static async open(name = "sidelight-ledger") {
    const label = `the ledger ${name}`;
    const free = await lock(name, label);
    try {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(LINES);
      return new _IndexedStore(label, await result(request), free);
    } catch (error) {
      free();
      throw new InputError(`${label} cannot be opened: ${error instanceof Error ? error.message : String(error)}.`);
    }
  }
  async read() {
    const lines = await result(this.database.transaction(LINES).objectStore(LINES).getAll());
    this.count = lines.length;
    return joined(lines);
  }
  /** Add a line under the next number; strict durability waits until it is on the disk. */
  async append(line) {
    const transaction = this.database.transaction(LINES, "readwrite", { durability: "strict" });
    transaction.objectStore(LINES).add(line, this.count);
    await finished(transaction);
    this.count += 1;
  }
  /** Nothing is ever left unfinished here: a transaction is there, or it is not. */
  async cut() {
    throw new InputError(`${this.label} is damaged: its last line is not whole.`);
  }
  async close() {
    this.database.close();
    this.free();
  }
};
async function lock(name, label) {
  const locks = globalThis.navigator?.locks;
  if (locks === void 0) return () => void 0;
  return new Promise((resolve, reject) => {
    void locks.request(name, { ifAvailable: true }, (held) => {
      if (held === null) return reject(new InputError(`${label} is in use by another page; wait for it.`));
      return new Promise((free) => resolve(free));
    });
  });
}

// src/memory.ts
var SECRET_BYTES = 32;
var DOMAIN = "sidelight memory 1";
var BLOCK_WORDS = 4;
var encoded = ({ purpose, channel, attribute, epoch, subject }) => prefixed([DOMAIN, purpose, channel, attribute, epoch, subject]);
var KeyedMemory = class _KeyedMemory {
  constructor(secret, frozen = /* @__PURE__ */ new Map()) {
    this.secret = secret;
    if (secret.length !== SECRET_BYTES) throw new InputError(`\`secret\` must be ${SECRET_BYTES} bytes, got ${secret.length}.`);
    this.held = new Map(frozen);
  }
  secret;
  held;
  static fresh() {
    return new _KeyedMemory(randomBytes(SECRET_BYTES));
  }
  /** The words of a topic: the same whenever they are asked for. */
  words(topic, count) {
    const about = encoded(topic);
    const blocks = Array.from({ length: Math.ceil(count / BLOCK_WORDS) }, (_, i) => hmac(this.secret, joined([be32(i + 1), about])));
    const view = new DataView(joined(blocks).buffer);
    return Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true));
  }
  /** The value that holds in an epoch: the first that was given for it. */
  valueHeld(attribute, epoch, label) {
    const key2 = frozenKey(attribute, epoch);
    const before = this.held.get(key2);
    if (before === void 0) this.held.set(key2, label);
    return before ?? label;
  }
  /** The values that hold, by `frozenKey`. */
  get frozen() {
    return this.held;
  }
};
var frozenKey = (attribute, epoch) => JSON.stringify([attribute, epoch]);
function meaning({ name, values, edges, merged }) {
  const written3 = edges.map((edge) => {
    if (typeof edge !== "number") throw new InputError(`this client keeps no responses of ${name}, whose edges are dates or times.`);
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, edge + 0);
    return toHex(new Uint8Array(view.buffer));
  });
  const groups = [values, written3, ...[...merged].map(([label, raws]) => [label, ...raws])];
  return toHex(sha256(prefixed(groups.flatMap((group) => [String(group.length), ...group]))));
}
var memoChannel = (stored, attribute) => `${stored.identity} ${meaning(attribute)}`;
function recalled(stored, attribute, memory, epoch, code) {
  const about = { channel: memoChannel(stored, attribute), attribute: attribute.name, epoch };
  const shared = memory.words({ ...about, purpose: "shared", subject: "" }, stored.sharedWords);
  const subject = stored.subject(code, shared) || attribute.values[code];
  return stored.made(code, memory.words({ ...about, purpose: "response", subject }, stored.memoWords), shared);
}

// src/entries.ts
var LEDGER_VERSION = 1;
var CLOCK_SLACK = 300;
function openingData({ person, opened, secret, limits, level }) {
  return { kind: "open", version: LEDGER_VERSION, person, opened, secret: toBase64(secret), level, limits: limits.map((limit) => ({ ...limit })) };
}
function entryData(entry) {
  if (entry.kind !== "reserve") return { kind: entry.kind, task: entry.task, round: entry.round };
  const frozen = [...entry.frozen].map(([key2, value]) => {
    const [attribute, epoch] = JSON.parse(key2);
    return { attribute, epoch, value };
  });
  const charges = entry.question.charges.map(({ attribute, channel, units, epoch }) => ({ attribute, channel, units, epoch }));
  return { kind: "reserve", time: entry.time, task: entry.question.task, round: entry.question.round, charges, frozen, report: toBase64(entry.report) };
}
function readOpening(body, label) {
  const table = Table.of(parse(fromUtf8(body, label), label), label);
  table.choice("kind", ["open"]);
  table.version(LEDGER_VERSION, "ledger");
  const opening = {
    person: table.text("person"),
    opened: table.whole("opened", 0, LATEST),
    secret: fromBase64(table.text("secret"), label),
    level: table.nullable("level", (key2) => table.text(key2)),
    limits: table.tables("limits").map(readLimit)
  };
  table.done();
  if (opening.secret.length !== SECRET_BYTES) throw new InputError(`${label} has a secret of ${opening.secret.length} bytes.`);
  if (opening.limits.length === 0) throw new InputError(`${label} has no limits.`);
  return opening;
}
function readLimit(table) {
  const limit = {
    units: table.whole("units", 1, MOST_UNITS),
    window: table.choice("window", WINDOWS),
    unit: table.whole("unit", 0, LATEST),
    window_units: table.whole("window_units", 0, LATEST),
    delta: table.text("delta"),
    most_squares: table.nullable("most_squares", (key2) => table.text(key2)),
    budgets: table.wholes("budgets", 0, MOST_UNITS)
  };
  table.done();
  checkLimit(limit);
  return limit;
}
function readEntry(body, label) {
  const table = Table.of(parse(fromUtf8(body, label), label), label);
  const kind = table.choice("kind", ["reserve", "send", "acknowledge", "withdraw"]);
  const about = { task: table.text("task"), round: table.whole("round", 0, MOST_UNITS) };
  if (kind !== "reserve") {
    table.done();
    return { kind, ...about };
  }
  const entry = {
    kind,
    question: { ...about, charges: table.tables("charges").map(readCharge) },
    time: table.whole("time", 0, LATEST),
    report: fromBase64(table.text("report"), label),
    frozen: new Map(table.tables("frozen").map(readFrozen))
  };
  table.done();
  return entry;
}
function readCharge(table) {
  const charge = {
    attribute: table.text("attribute"),
    channel: table.text("channel"),
    units: table.whole("units", 0, MOST_UNITS),
    epoch: table.nullable("epoch", (key2) => table.text(key2))
  };
  table.done();
  return charge;
}
function readFrozen(table) {
  const pair = [frozenKey(table.text("attribute"), table.text("epoch")), table.text("value")];
  table.done();
  return pair;
}
var key = ({ task, round }) => JSON.stringify([task, round]);
var terms = ({ charges }) => JSON.stringify(charges.map(({ attribute, channel, units, epoch }) => JSON.stringify([attribute, channel, units, epoch !== null])).sort());
var listed = ({ charges }) => charges.map(({ units, attribute, channel }) => `${shown(units)} for '${attribute}' through '${channel}'`).join(", ");
var NEXT = { "reserved send": "sent", "reserved withdraw": "withdrawn", "sent acknowledge": "acknowledged" };
var Book = class {
  constructor(opening) {
    this.opening = opening;
    this.last = opening.opened;
  }
  opening;
  answers = /* @__PURE__ */ new Map();
  frozen = /* @__PURE__ */ new Map();
  last;
  latest = /* @__PURE__ */ new Map();
  memos = /* @__PURE__ */ new Map();
  /** All charges that count, in their order. */
  get uses() {
    return [...this.answers.values()].filter(({ state }) => state !== "withdrawn").flatMap(({ time, question }) => question.charges.map((charge) => ({ time, charge })));
  }
  /** The time to write down: never before the last one. */
  timeOf(now) {
    if (now < this.last - CLOCK_SLACK) {
      throw new InputError(`the clock was set back: it says ${written2(now)}, and the ledger's last entry is of ${written2(this.last)}; set it right, or wait until then.`);
    }
    return Math.max(now, this.last);
  }
  /** Raise unless every limit allows a question that was not asked before. */
  checkFits(question, now) {
    this.checkNew(question);
    checkFits(question, this.opening.limits, this.uses, this.opening.opened, now);
  }
  checkNew(question) {
    checkQuestion(question);
    const latest = this.latest.get(question.task);
    if (latest !== void 0) {
      if (question.round < latest.round) throw new InputError(`${named(question)} comes after round ${latest.round} was answered; rounds go forward.`);
      checkTerms(question, latest);
    }
    for (const charge of question.charges) {
      const before = this.memos.get(memoOf(charge) ?? "");
      if (before !== void 0 && before.units !== charge.units) {
        throw new InputError(`${named(question)} charges ${shown(charge.units)}, and the same memo was charged ${shown(before.units)} before; a channel has one budget.`);
      }
    }
  }
  /** The answer to a question that was asked before, on the same terms. */
  asked(question) {
    const answer = this.answers.get(key(question));
    if (answer === void 0) return void 0;
    checkTerms(question, answer.question);
    const charges = (one) => JSON.stringify(one.charges.map((charge) => JSON.stringify([terms({ ...one, charges: [charge] }), charge.epoch])).sort());
    if (charges(question) !== charges(answer.question)) throw new InputError(`${named(question)} was answered in another epoch; a question has one answer.`);
    return answer;
  }
  answerTo(question) {
    return this.answers.get(key(question));
  }
  /** Take an entry over, or raise if it cannot follow. */
  apply(entry) {
    if (entry.kind !== "reserve") return this.step(entry);
    const { question, time, report, frozen } = entry;
    if (this.answers.has(key(question))) throw new InputError(`${named(question)} is reserved twice.`);
    if (time < this.last) throw new InputError(`${named(question)} is reserved before what stands above it.`);
    if ([...frozen.keys()].some((held) => this.frozen.has(held))) throw new InputError(`${named(question)} freezes a value that was frozen before.`);
    this.checkNew(question);
    this.answers.set(key(question), { question, time, report, state: "reserved" });
    for (const [held, value] of frozen) this.frozen.set(held, value);
    this.last = time;
    this.latest.set(question.task, question);
    for (const charge of question.charges) if (charge.epoch !== null) this.memos.set(memoOf(charge), charge);
  }
  /** The state that a step leads to, or raise if there is none. */
  checkStep(step2) {
    const answer = this.answers.get(key(step2));
    if (answer === void 0) throw new InputError(`${named(step2)} was never reserved.`);
    const state = NEXT[`${answer.state} ${step2.kind}`];
    if (state === void 0) throw new InputError(`${named(step2)} is ${answer.state}; there is nothing to ${step2.kind}.`);
    return state;
  }
  step(step2) {
    const [state, answer] = [this.checkStep(step2), this.answers.get(key(step2))];
    const isOver = state === "acknowledged" || state === "withdrawn";
    this.answers.set(key(step2), { ...answer, state, report: isOver ? null : answer.report });
  }
};
function checkTerms(question, before) {
  if (terms(question) !== terms(before)) {
    throw new InputError(`${named(question)} charges ${listed(question)}, but round ${before.round} charged ${listed(before)}; a task keeps its budgets: ask it as another task.`);
  }
}
function checkQuestion(question) {
  if (!question.task) throw new InputError("`task` must be the name of a task.");
  if (question.charges.length === 0) throw new InputError(`${named(question)} charges nothing; say what each of its reports spends.`);
  const memos = question.charges.map(memoOf).filter((memo) => memo !== null);
  if (new Set(memos).size < memos.length) throw new InputError(`${named(question)} charges one memo twice; its reports are the same.`);
}

// src/lines.ts
var HEAD_BYTES = 74;
var LF = 10;
function lineOf(before, content) {
  const body = utf8(JSON.stringify(content));
  if (body.length > 99999999) throw new InputError(`an entry of ${body.length} bytes is too long for a ledger; send less in a report.`);
  const digest = sha256(joined([before ?? new Uint8Array(32), body]));
  const head = utf8(`${toHex(digest)} ${String(body.length).padStart(8, "0")} `);
  return { line: joined([head, body, Uint8Array.of(LF)]), digest };
}
function readLines(content, label) {
  const [bodies, digests] = [[], []];
  let [place, before] = [0, new Uint8Array(32)];
  while (place < content.length) {
    const head = /^([0-9a-f]{64}) ([0-9]{8}) $/.exec(ascii(content.subarray(place, place + HEAD_BYTES)));
    const end = head === null ? Infinity : place + HEAD_BYTES + Number(head[2]);
    if (end >= content.length) {
      if (isUnfinished(content.subarray(place))) break;
      throw damaged(label, bodies.length + 1, "is no line of a ledger");
    }
    const body = content.slice(place + HEAD_BYTES, end);
    before = sha256(joined([before, body]));
    if (content[end] !== LF || body.includes(LF) || head[1] !== toHex(before)) {
      throw damaged(label, bodies.length + 1, "does not have the digest that it must have");
    }
    bodies.push(body);
    digests.push(before);
    place = end + 1;
  }
  return { bodies, digests, size: place };
}
var ascii = (bytes) => String.fromCharCode(...bytes);
function isUnfinished(rest) {
  const begins = /^(?:[0-9a-f]{0,64}|[0-9a-f]{64} [0-9]{0,8}|[0-9a-f]{64} [0-9]{8} )$/;
  return !rest.includes(LF) && begins.test(ascii(rest.subarray(0, HEAD_BYTES)));
}
var damaged = (label, number, what) => new InputError(`${label} is damaged: line ${number} ${what}; take the latest whole copy, or open a new ledger once everything that was spent counts no more.`);

// src/ledger.ts
var MemoryStore = class {
  constructor(content = new Uint8Array(0)) {
    this.content = content;
  }
  content;
  label = "the ledger";
  async read() {
    return this.content;
  }
  async append(line) {
    this.content = joined([this.content, line]);
  }
  async cut(size) {
    this.content = this.content.slice(0, size);
  }
  async close() {
  }
};
var Ledger = class _Ledger {
  constructor(store, book, digests) {
    this.store = store;
    this.book = book;
    this.digests = digests;
  }
  store;
  book;
  digests;
  turn = Promise.resolve();
  isOpen = true;
  /** Open the ledger of a person; a store without a line gets a new one if there are limits for it. */
  static async open(store, person, limits, now = clock()) {
    let content = await store.read();
    if (content.length === 0 && limits !== void 0) {
      await store.append(firstLine(person, limits, now));
      content = await store.read();
    }
    const chain = readLines(content, store.label);
    if (chain.bodies.length === 0) throw new InputError(`${store.label} is no ledger: it has no whole line; open it with limits to make one.`);
    const opening = readOpening(chain.bodies[0], store.label);
    if (opening.person !== person) {
      throw new InputError(`${store.label} is the ledger of another person, ${quoted(opening.person)}, not of ${quoted(person)}; each has one.`);
    }
    const book = new Book(opening);
    chain.bodies.slice(1).forEach((body, i) => {
      try {
        book.apply(readEntry(body, store.label));
      } catch (error) {
        throw error instanceof InputError ? damaged(store.label, i + 2, `cannot follow: ${error.message.replace(/\.$/, "")}`) : error;
      }
    });
    if (chain.size < content.length) await store.cut(chain.size);
    return new _Ledger(store, book, [...chain.digests]);
  }
  /** Whose it is, or which device's. */
  get person() {
    return this.book.opening.person;
  }
  /** How far the ledger has come, to be kept elsewhere: an older copy shows. */
  get head() {
    return { lines: this.digests.length, digest: toHex(this.digests.at(-1)) };
  }
  /** All questions that were paid for. */
  get answers() {
    return [...this.book.answers.values()];
  }
  /** Those whose reports may not have arrived. */
  get pending() {
    return this.answers.filter(({ state }) => state === "reserved" || state === "sent");
  }
  /** The largest charge that each limit leaves, in billionths of a nat. */
  remaining(now = clock()) {
    const { opening, uses } = this.book;
    const moment = this.book.timeOf(now);
    return opening.limits.map((limit) => ({ limit, left: leftOf(limit, uses, opening.opened, moment), returns: null }));
  }
  /** Raise if a question would be refused; nothing is spent. */
  check(question, now = clock()) {
    if (this.book.asked(question) === void 0) this.book.checkFits(question, this.book.timeOf(now));
  }
  /** Spend what a question costs, and return the bytes of its report: the same ones for ever. */
  reserve(question, make, now = clock()) {
    return this.inTurn(async () => {
      const answer = this.book.asked(question);
      if (answer !== void 0) {
        if (answer.report === null) throw new InputError(`${named(question)} is ${answer.state}; it has no report any more.`);
        return answer.report;
      }
      const moment = this.book.timeOf(checkTime(now));
      this.book.checkFits(question, moment);
      const memory = new KeyedMemory(this.book.opening.secret, this.book.frozen);
      const report = make(memory).slice();
      const frozen = new Map([...memory.frozen].filter(([held]) => !this.book.frozen.has(held)));
      await this.write({ kind: "reserve", question, time: moment, report, frozen });
      return report;
    });
  }
  /** Send the reports of reserved questions, the same bytes each time, and acknowledge them. */
  send(questions, send) {
    return this.inTurn(async () => {
      const sent = questions.map((question) => {
        const answer = this.book.answerTo(question);
        if (!answer?.report) throw new InputError(`${named(question)} is ${answer?.state ?? "not reserved"}; there is nothing to send.`);
        return { question, report: answer.report, state: answer.state };
      });
      for (const { question, state } of sent) if (state === "reserved") await this.write(step("send", question));
      await send(sent.map(({ question, report }) => ({ question, report })));
      for (const { question } of sent) await this.write(step("acknowledge", question));
    });
  }
  /** Reserve a question, send its report and acknowledge it; one that has been answered stays so. */
  async answer(question, make, send, now = clock()) {
    if (this.book.asked(question)?.state === "acknowledged") return;
    await this.reserve(question, make, now);
    await this.send([question], send);
  }
  /** Take back a report that was never sent, with its charge; the question gets no other answer. */
  withdraw(question) {
    return this.inTurn(() => this.write(step("withdraw", question)));
  }
  /** Let another page or process open the ledger. */
  async close() {
    this.isOpen = false;
    await this.store.close();
  }
  inTurn(work) {
    const done = this.turn.then(work);
    this.turn = done.catch(() => void 0);
    return done;
  }
  /** Make an entry durable, then take it over; where that fails, only the store knows what holds. */
  async write(entry) {
    if (!this.isOpen) throw new InputError("the ledger is closed; open it again.");
    if (entry.kind !== "reserve") this.book.checkStep(entry);
    const { line, digest } = lineOf(this.digests.at(-1), entryData(entry));
    try {
      await this.store.append(line);
    } catch (error) {
      await this.close();
      const reason = error instanceof Error ? error.message : String(error);
      throw new InputError(`${this.store.label} cannot be written: ${reason}; nothing was sent. Mend that, and open it again.`);
    }
    this.book.apply(entry);
    this.digests.push(digest);
  }
};
var step = (kind, { task, round }) => ({ kind, task, round });
var clock = () => Math.floor(Date.now() / 1e3);
function checkTime(now) {
  if (!Number.isInteger(now) || now < 0 || now > LATEST) throw new InputError(`\`now\` must be whole seconds since 1970, got ${now}.`);
  return now;
}
function firstLine(person, limits, now, secret = randomBytes(SECRET_BYTES), level = null) {
  if (!person) throw new InputError("`person` must be the name of a person or device.");
  if (limits.length === 0) throw new InputError("`limits` must be at least one limit; limitOf(1) allows 1 for all time.");
  const opening = { person, opened: checkTime(now), secret, limits, level };
  return lineOf(null, openingData(opening)).line;
}
export {
  AwayError,
  BitFlips,
  Client,
  Draws,
  Hidden,
  IndexedStore,
  InputError,
  KeyedMemory,
  Ledger,
  MECHANISMS,
  MemoryStore,
  OutOfBytesError,
  OverspentError,
  Protocol,
  Sample,
  Split,
  Unit,
  WIRE_VERSION,
  charged,
  codeOf,
  createMechanism,
  encoded,
  expNearest,
  filterSquares,
  firstLine,
  firstPhase,
  fromBase64,
  fromHex,
  hmac,
  leastShare,
  limitOf,
  lnNearest,
  meaning,
  memoChannel,
  parametersFrom,
  parse,
  planFrom,
  protocolFrom,
  randomBytes,
  readProtocol,
  recalled,
  roundFrom,
  sha256,
  takesFirst,
  taskFrom,
  toBase64,
  toHex,
  upload,
  uploadOf
};
