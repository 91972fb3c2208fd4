/* How the parts of one report lie in bytes; see docs/wire.md. */
import type { Bytes } from "./bytes.js";

export const WIRE_VERSION = 1;

/** Why bytes are no report of a protocol; the first of these reasons that holds. */
export type Refusal = "length" | "version" | "part" | "range" | "set" | "padding" | "impossible";

/** What every report of a mechanism looks like: a code below `count`, bits of so many values, or sets of them. */
export interface Form {
  readonly kind: "code" | "bits" | "set";
  readonly count: number;
  readonly width: number;
  readonly seeded: boolean;
}

/** One report of a mechanism: a code, or the values that are marked in rising order; a public seed or none. */
export interface Part {
  readonly values: readonly number[];
  readonly seed?: bigint;
}

const SEED_BITS = 64;

export const bitsFor = (choices: number): number => (choices <= 1 ? 0 : 32 - Math.clz32(choices - 1));

const isFlags = ({ kind, count, width }: Form): boolean =>
  kind === "bits" || (kind === "set" && count <= width * bitsFor(count));

export function partLength(form: Form): number {
  const fields = isFlags(form) ? form.count : (form.kind === "set" ? form.width : 1) * bitsFor(form.count);
  return (form.seeded ? SEED_BITS : 0) + fields;
}

class Bits {
  constructor(readonly bytes: Uint8Array, public at: number) {}

  put(number: number, count: number): void {
    for (let i = 0; i < count; i++, this.at++) {
      if (Math.floor(number / 2 ** i) % 2) this.bytes[this.at >> 3]! |= 1 << (this.at & 7);
    }
  }

  take(count: number): number {
    let number = 0;
    for (let i = 0; i < count; i++, this.at++) if (this.bytes[this.at >> 3]! & (1 << (this.at & 7))) number += 2 ** i;
    return number;
  }
}

function putPart(form: Form, part: Part, bits: Bits): void {
  if (part.seed !== undefined) {
    bits.put(Number(part.seed & 0xffffffffn), 32);
    bits.put(Number(part.seed >> 32n), 32);
  }
  if (isFlags(form)) {
    for (const value of part.values) bits.bytes[(bits.at + value) >> 3]! |= 1 << ((bits.at + value) & 7);
    bits.at += form.count;
    return;
  }
  for (const value of part.values) bits.put(value, bitsFor(form.count));
}

function takePart(form: Form, bits: Bits): Part | Refusal {
  const seed = form.seeded ? BigInt(bits.take(32)) | (BigInt(bits.take(32)) << 32n) : undefined;
  const values: number[] = [];
  if (isFlags(form)) {
    for (let value = 0; value < form.count; value++) if (bits.take(1)) values.push(value);
    if (form.kind === "set" && values.length !== form.width) return "set";
  } else {
    const numbers = form.kind === "set" ? form.width : 1;
    for (let i = 0; i < numbers; i++) values.push(bits.take(bitsFor(form.count)));
    if (values.some((value) => value >= form.count)) return "range";
    if (values.some((value, i) => i > 0 && values[i - 1]! >= value)) return "set";
  }
  return seed === undefined ? { values } : { values, seed };
}

/** Where the parts of a report lie: all of them, or, after its number, the one that is sent. */
export class Layout {
  private readonly partBits: number;
  /** How many bytes every report has. */
  readonly length: number;

  constructor(private readonly forms: readonly Form[], private readonly sendsOne: boolean) {
    const lengths = forms.map(partLength);
    this.partBits = sendsOne ? bitsFor(forms.length) : 0;
    const bits = sendsOne ? Math.max(...lengths) : lengths.reduce((sum, one) => sum + one, 0);
    this.length = 1 + Math.ceil((this.partBits + bits) / 8);
  }

  /** The bytes of a report, by the numbers of its parts. */
  pack(parts: ReadonlyMap<number, Part>): Bytes {
    const bytes = new Uint8Array(this.length);
    bytes[0] = WIRE_VERSION;
    const bits = new Bits(bytes, 8);
    for (const [number, part] of parts) {
      bits.put(number, this.partBits);
      putPart(this.forms[number]!, part, bits);
    }
    return bytes;
  }

  /** The parts of a report by their numbers, or why the bytes are none. */
  unpack(bytes: Uint8Array): Map<number, Part> | Refusal {
    if (bytes.length !== this.length) return "length";
    if (bytes[0] !== WIRE_VERSION) return "version";
    const bits = new Bits(bytes, 8);
    const chosen = bits.take(this.partBits);
    if (this.sendsOne && chosen >= this.forms.length) return "part";
    const parts = new Map<number, Part>();
    const faults = new Set<Refusal>();
    for (const [number, form] of this.forms.entries()) {
      if (this.sendsOne && number !== chosen) continue;
      const start = bits.at;
      const part = takePart(form, bits);
      if (typeof part === "string") faults.add(part);
      else parts.set(number, part);
      bits.at = start + partLength(form);
    }
    const order: Refusal[] = ["range", "set"];
    const fault = order.find((reason) => faults.has(reason));
    if (fault !== undefined) return fault;
    for (; bits.at < 8 * bytes.length; ) if (bits.take(1)) return "padding";
    return parts;
  }
}
