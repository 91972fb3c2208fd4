import type { Bytes } from "./bytes.js";
import { OutOfBytesError } from "./errors.js";

const CHUNK = 1024; // getRandomValues gives up to 65,536 bytes at once

/** One device's random bytes, read in order as words of eight bytes, the lowest first; see docs/wire.md. */
export class Draws {
  /** How many bytes were read. */
  used = 0;
  private view: DataView;
  private at = 0;
  private readonly isSecure: boolean;

  /** Read the given bytes, then no more; without them, those of `getRandomValues`, without end. */
  constructor(given?: Uint8Array) {
    this.isSecure = given === undefined;
    const bytes = given ?? new Uint8Array(0);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** The next word, a whole number below 2^64. */
  word(): bigint {
    if (this.at + 8 > this.view.byteLength) this.fill();
    const word = this.view.getBigUint64(this.at, true);
    this.at += 8;
    this.used += 8;
    return word;
  }

  /** An exactly uniform whole number below a bound of at most 2^63 (Lemire 2019). */
  below(bound: bigint): bigint {
    const least = (1n << 64n) % bound;
    for (;;) {
      const product = this.word() * bound;
      if ((product & 0xffffffffffffffffn) >= least) return product >> 64n;
    }
  }

  private fill(): void {
    if (!this.isSecure) {
      const given = this.view.byteLength;
      throw new OutOfBytesError(`the report needs more than the ${given} random bytes that were given; give more.`);
    }
    this.view = new DataView(randomBytes(CHUNK).buffer);
    this.at = 0;
  }
}

/** Bytes of the operating system's generator. */
export function randomBytes(count: number): Bytes {
  return globalThis.crypto.getRandomValues(new Uint8Array(count));
}
