/* BLAKE2b without a key (RFC 7693), for the fingerprints that Python gives protocols. Texts here are short. */
import type { Bytes } from "./bytes.js";

const WORD = (1n << 64n) - 1n;
const BLOCK = 128;
const START = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
/** The order in which the words of a block are mixed in, round by round, in hexadecimals (section 2.7). */
const ORDERS = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => Array.from(row, (digit) => parseInt(digit, 16)));
const ROUNDS = 12;
/** Which four words are mixed: the columns, then the diagonals. */
const QUADS = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] as const;

const turned = (word: bigint, by: bigint): bigint => (word >> by) | ((word << (64n - by)) & WORD);

function compress(state: bigint[], block: Uint8Array, read: number, isLast: boolean): void {
  const view = new DataView(block.buffer, block.byteOffset, BLOCK);
  const words = Array.from({ length: 16 }, (_, i) => view.getBigUint64(8 * i, true));
  const v = [...state, ...START];
  v[12]! ^= BigInt(read);
  if (isLast) v[14]! ^= WORD;
  for (let round = 0; round < ROUNDS; round++) {
    const order = ORDERS[round % ORDERS.length]!;
    QUADS.forEach(([a, b, c, d], i) => {
      v[a] = (v[a]! + v[b]! + words[order[2 * i]!]!) & WORD;
      v[d] = turned(v[d]! ^ v[a]!, 32n);
      v[c] = (v[c]! + v[d]!) & WORD;
      v[b] = turned(v[b]! ^ v[c]!, 24n);
      v[a] = (v[a]! + v[b]! + words[order[2 * i + 1]!]!) & WORD;
      v[d] = turned(v[d]! ^ v[a]!, 16n);
      v[c] = (v[c]! + v[d]!) & WORD;
      v[b] = turned(v[b]! ^ v[c]!, 63n);
    });
  }
  state.forEach((word, i) => (state[i] = word ^ v[i]! ^ v[i + 8]!));
}

/** The digest of so many bytes, at most 64. */
export function blake2b(bytes: Uint8Array, size: number): Bytes {
  const state = [...START];
  state[0]! ^= BigInt(0x01010000 | size);
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
