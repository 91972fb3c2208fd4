// Answers of the server replace what is shown; what did not change keeps its identity, so that it is not drawn again.

/** Return `next`, with every part that equals its counterpart in `last` replaced by it. */
export function share<T>(last: unknown, next: T): T {
  if (Object.is(last, next)) return next;
  if (Array.isArray(next)) {
    if (!Array.isArray(last)) return next;
    const parts = next.map((part, place) => share(last[place], part));
    const isSame = last.length === parts.length && parts.every((part, place) => Object.is(part, last[place]));
    return (isSame ? last : parts) as T;
  }
  if (!isRecord(next) || !isRecord(last)) return next;
  const parts = Object.fromEntries(Object.entries(next).map(([key, part]) => [key, share(last[key], part)]));
  const keys = Object.keys(parts);
  const isSame = keys.length === Object.keys(last).length && keys.every((key) => Object.is(parts[key], last[key]));
  return (isSame ? last : parts) as T;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
