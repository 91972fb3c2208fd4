import { InputError } from "./errors.js";

export type Bytes = Uint8Array<ArrayBuffer>;

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

export function fromUtf8(bytes: Uint8Array, label: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new InputError(`${label} is not UTF-8 text.`);
  }
}

export function joined(parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export function fromHex(text: string): Bytes {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new InputError("bytes in hexadecimals are pairs of digits 0 to f.");
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const [a, b, c] = [bytes[i] ?? 0, bytes[i + 1] ?? 0, bytes[i + 2] ?? 0];
    const known = bytes.length - i;
    text += DIGITS.charAt(a >> 2) + DIGITS.charAt(((a & 3) << 4) | (b >> 4));
    text += known > 1 ? DIGITS.charAt(((b & 15) << 2) | (c >> 6)) : "=";
    text += known > 2 ? DIGITS.charAt(c & 63) : "=";
  }
  return text;
}

/** Read base 64 that is written with all its padding, and in no other way. */
export function fromBase64(text: string, label: string): Bytes {
  const plain = text.replace(/={1,2}$/, "");
  const bytes: number[] = [];
  let [held, bits] = [0, 0];
  for (const letter of plain) {
    const digit = DIGITS.indexOf(letter);
    if (digit < 0) throw new InputError(`${label} has bytes that are not base 64.`);
    held = ((held << 6) | digit) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((held >> bits) & 255);
    }
  }
  const made = Uint8Array.from(bytes);
  if (toBase64(made) !== text) throw new InputError(`${label} has bytes that are not base 64.`);
  return made;
}

/** Write a whole number below 2^32 in four bytes, the highest first. */
export const be32 = (number: number): Bytes => Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);

/** Texts as bytes that no others have: each as its length in four bytes, and its UTF-8 bytes. */
export const prefixed = (texts: readonly string[]): Bytes =>
  joined(texts.map(utf8).flatMap((part) => [be32(part.length), part]));

export const equal = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, i) => byte === other[i]);
