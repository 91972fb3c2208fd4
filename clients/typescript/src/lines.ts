/* The lines of a ledger: each carries its length, and a digest that chains it to the line before; see docs/ledger.md. */
import { type Bytes, joined, toHex, utf8 } from "./bytes.js";
import { InputError } from "./errors.js";
import { sha256 } from "./sha256.js";

const HEAD_BYTES = 74; // 64 digits, a blank, 8 digits, a blank
const LF = 10;

/** The lines that were read: their JSON texts, the last digest, and how many bytes they are. */
export interface Chain {
  readonly bodies: readonly Uint8Array[];
  readonly digests: readonly Uint8Array[];
  readonly size: number;
}

/** The line of some content after a digest, and its own digest. */
export function lineOf(before: Uint8Array | null, content: object): { line: Bytes; digest: Bytes } {
  const body = utf8(JSON.stringify(content));
  if (body.length > 99_999_999) throw new InputError(`an entry of ${body.length} bytes is too long for a ledger; send less in a report.`);
  const digest = sha256(joined([before ?? new Uint8Array(32), body]));
  const head = utf8(`${toHex(digest)} ${String(body.length).padStart(8, "0")} `);
  return { line: joined([head, body, Uint8Array.of(LF)]), digest };
}

/** The whole lines of a ledger, or one sentence on where it is damaged. */
export function readLines(content: Uint8Array, label: string): Chain {
  const [bodies, digests]: [Uint8Array[], Uint8Array[]] = [[], []];
  let [place, before]: [number, Uint8Array] = [0, new Uint8Array(32)];
  while (place < content.length) {
    const head = /^([0-9a-f]{64}) ([0-9]{8}) $/.exec(ascii(content.subarray(place, place + HEAD_BYTES)));
    const end = head === null ? Infinity : place + HEAD_BYTES + Number(head[2]);
    if (end >= content.length) {
      if (isUnfinished(content.subarray(place))) break;
      throw damaged(label, bodies.length + 1, "is no line of a ledger");
    }
    const body = content.slice(place + HEAD_BYTES, end);
    before = sha256(joined([before, body]));
    if (content[end] !== LF || body.includes(LF) || head![1] !== toHex(before)) {
      throw damaged(label, bodies.length + 1, "does not have the digest that it must have");
    }
    bodies.push(body);
    digests.push(before);
    place = end + 1;
  }
  return { bodies, digests, size: place };
}

const ascii = (bytes: Uint8Array): string => String.fromCharCode(...bytes);

/** Whether the end of a file is a proper beginning of a line: what a crash leaves. */
function isUnfinished(rest: Uint8Array): boolean {
  const begins = /^(?:[0-9a-f]{0,64}|[0-9a-f]{64} [0-9]{0,8}|[0-9a-f]{64} [0-9]{8} )$/;
  return !rest.includes(LF) && begins.test(ascii(rest.subarray(0, HEAD_BYTES)));
}

/** The one refusal of a damaged ledger. */
export const damaged = (label: string, number: number, what: string): InputError =>
  new InputError(`${label} is damaged: line ${number} ${what}; take the latest whole copy, or open a new ledger once everything that was spent counts no more.`);
