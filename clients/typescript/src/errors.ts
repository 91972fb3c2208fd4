/** What was handed in cannot be used as it is; the message says why, in one sentence. */
export class InputError extends Error {
  override name = "InputError";
}

/** The random bytes that were given do not suffice; only a test gives any. */
export class OutOfBytesError extends InputError {
  override name = "OutOfBytesError";
}

/** Write a text as Python shows it, for messages that both languages have. */
export const quoted = (text: string): string => (text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`);
