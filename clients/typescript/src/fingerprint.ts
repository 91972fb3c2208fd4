/* The fingerprint that Python gives a protocol: BLAKE2b of its document as Python writes JSON, byte by byte. */
import { blake2b } from "./blake2b.js";
import { toHex, utf8 } from "./bytes.js";
import type { Attribute } from "./schema.js";

const BYTES = 12;
const LEAST_PLAIN = 1e-4;
const LARGEST_PLAIN = 1e16;

/** What is written: texts, doubles, lists, and tables whose keys are in order. */
export type Plain = string | number | readonly Plain[] | { readonly [key: string]: Plain };

/** A double as Python writes it: the same digits as here, but "6.0", "1e-05" and "1e+16". */
export function written(number: number): string {
  if (number !== 0 && (Math.abs(number) < LEAST_PLAIN || Math.abs(number) >= LARGEST_PLAIN)) {
    const [digits, power] = number.toExponential().split("e") as [string, string];
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(number) ? `${Object.is(number, -0) ? "-0" : number}.0` : String(number);
}

/** A text as Python writes it: plain ASCII. */
const quotedText = (text: string): string =>
  JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

function json(value: Plain): string {
  if (typeof value === "string") return quotedText(value);
  if (typeof value === "number") return written(value);
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  const table = value as { readonly [key: string]: Plain };
  return `{${Object.keys(table).sort().map((key) => `${quotedText(key)}: ${json(table[key]!)}`).join(", ")}}`;
}

/** Whether all of a schema can be written as Python has it: it keeps the edges of dates and times as numbers. */
export const isTelling = (schema: readonly Attribute[]): boolean =>
  schema.every(({ edges }) => edges.every((edge) => typeof edge === "number"));

/** The fingerprint of a protocol that asks every attribute by itself through randomised response. */
export function fingerprintOfResponses(schema: readonly Attribute[], budget: number): string {
  const unit = schema.map(({ name }) => ({ attributes: [name], epsilon: budget, mechanism: "grr" }));
  const attributes = schema.map(({ name, kind, values, edges, missing, merged }) => {
    const together: Plain[] = merged.size > 0 ? [[...merged].map(([label, parts]) => [label, parts])] : [];
    return [name, kind, values, edges, missing, ...together];
  });
  return toHex(blake2b(utf8(json([{ protocol: "split", unit }, attributes])), BYTES));
}
