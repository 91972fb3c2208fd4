/* Sidelight on a device: the same reports, byte for byte, as the Python package makes from the same random bytes. */
export { fromBase64, fromHex, toBase64, toHex } from "./bytes.js";
export { AwayError, Client, type Fetch, type Options, type Outcome, takesFirst, upload, uploadOf } from "./client.js";
export {
  firstPhase, parametersFrom, type Phases, planFrom, protocolFrom, type Round, roundFrom, type Task, taskFrom, type Terms,
} from "./documents.js";
export { Draws, randomBytes } from "./draws.js";
export type { Answer, State } from "./entries.js";
export { InputError, OutOfBytesError } from "./errors.js";
export { expNearest, filterSquares, leastShare, lnNearest } from "./exact.js";
export { IndexedStore } from "./indexed.js";
export { parse } from "./json.js";
export { type Form, type Part, type Refusal, WIRE_VERSION } from "./layout.js";
export { firstLine, Ledger, type Make, MemoryStore, type Send, type Store } from "./ledger.js";
export { charged, type Charge, type Limit, limitOf, OverspentError, type Question, type Remaining } from "./limits.js";
export { BitFlips, createMechanism, type Kept, type Mechanism, MECHANISMS } from "./mechanisms.js";
export { encoded, KeyedMemory, meaning, memoChannel, recalled, type Topic } from "./memory.js";
export { type Answers, Hidden, Protocol, readProtocol, Sample, Split, Unit } from "./protocols.js";
export { type Attribute, codeOf } from "./schema.js";
export { hmac, sha256 } from "./sha256.js";
