/* The random words of a device's kept responses, made again from a secret; see docs/repeated.md. */
import { type Bytes, be32, joined, prefixed, toHex } from "./bytes.js";
import { randomBytes } from "./draws.js";
import { InputError } from "./errors.js";
import type { Part } from "./layout.js";
import type { Kept } from "./mechanisms.js";
import type { Attribute } from "./schema.js";
import { hmac, sha256 } from "./sha256.js";

export const SECRET_BYTES = 32;
const DOMAIN = "sidelight memory 1";
const BLOCK_WORDS = 4;

/** What a memo is of: nothing else may decide on it, and none of these may be left out. */
export interface Topic {
  readonly purpose: "response" | "shared";
  readonly channel: string;
  readonly attribute: string;
  readonly epoch: string;
  readonly subject: string;
}

/** A topic as bytes that no other topic has. */
export const encoded = ({ purpose, channel, attribute, epoch, subject }: Topic): Bytes =>
  prefixed([DOMAIN, purpose, channel, attribute, epoch, subject]);

/** The memos of one device, made from its secret, and the value that holds in each epoch. */
export class KeyedMemory {
  private readonly held: Map<string, string>;

  constructor(private readonly secret: Uint8Array, frozen: ReadonlyMap<string, string> = new Map()) {
    if (secret.length !== SECRET_BYTES) throw new InputError(`\`secret\` must be ${SECRET_BYTES} bytes, got ${secret.length}.`);
    this.held = new Map(frozen);
  }

  static fresh(): KeyedMemory {
    return new KeyedMemory(randomBytes(SECRET_BYTES));
  }

  /** The words of a topic: the same whenever they are asked for. */
  words(topic: Topic, count: number): bigint[] {
    const about = encoded(topic);
    const blocks = Array.from({ length: Math.ceil(count / BLOCK_WORDS) }, (_, i) => hmac(this.secret, joined([be32(i + 1), about])));
    const view = new DataView(joined(blocks).buffer);
    return Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true));
  }

  /** The value that holds in an epoch: the first that was given for it. */
  valueHeld(attribute: string, epoch: string, label: string): string {
    const key = frozenKey(attribute, epoch);
    const before = this.held.get(key);
    if (before === undefined) this.held.set(key, label);
    return before ?? label;
  }

  /** The values that hold, by `frozenKey`. */
  get frozen(): ReadonlyMap<string, string> {
    return this.held;
  }
}

export const frozenKey = (attribute: string, epoch: string): string => JSON.stringify([attribute, epoch]);

/** What the codes of an attribute mean, as a digest: labels in order, edges, and merged values. */
export function meaning({ name, values, edges, merged }: Attribute): string {
  const written = edges.map((edge) => {
    if (typeof edge !== "number") throw new InputError(`this client keeps no responses of ${name}, whose edges are dates or times.`);
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, edge + 0); // -0 is the edge 0
    return toHex(new Uint8Array(view.buffer));
  });
  const groups = [values, written, ...[...merged].map(([label, raws]) => [label, ...raws])];
  return toHex(sha256(prefixed(groups.flatMap((group) => [String(group.length), ...group]))));
}

/** What names the channel of memos: that of the responses, and what its codes mean. */
export const memoChannel = (stored: Kept, attribute: Attribute): string => `${stored.identity} ${meaning(attribute)}`;

/** The memo of a code: for one memory, channel, attribute, epoch and value the same for ever. */
export function recalled(stored: Kept, attribute: Attribute, memory: KeyedMemory, epoch: string, code: number): Part {
  const about = { channel: memoChannel(stored, attribute), attribute: attribute.name, epoch };
  const shared = memory.words({ ...about, purpose: "shared", subject: "" }, stored.sharedWords);
  const subject = stored.subject(code, shared) || attribute.values[code]!;
  return stored.made(code, memory.words({ ...about, purpose: "response", subject }, stored.memoWords), shared);
}
