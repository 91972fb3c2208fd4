import { InputError, quoted } from "./errors.js";
import { Numeral, type Table } from "./json.js";

export const OTHER = "(other)";
export const MISSING = "(missing)";
const KINDS = ["categorical", "ordinal", "numeric", "date", "time"] as const;
const LARGEST_ALPHABET = 65_536;

/** One attribute of a record: its values have codes from 0 on, in this order. */
export interface Attribute {
  readonly name: string;
  readonly kind: (typeof KINDS)[number];
  readonly values: readonly string[];
  /** Inner edges of bins: numbers, or dates and times as they are written. */
  readonly edges: readonly (number | string)[];
  readonly missing: "absent" | "value" | "drop";
  readonly merged: ReadonlyMap<string, readonly string[]>;
}

/** Read an attribute; its name is under the key `named`. */
export function readAttribute(table: Table, named: string): Attribute {
  const attribute: Attribute = {
    name: table.text(named),
    kind: table.choice("kind", KINDS),
    values: table.texts("values"),
    edges: table.maybe("edges", (key) => table.list(key).map((edge) => readEdge(table, edge)), []),
    missing: table.maybe("missing", (key) => table.choice(key, ["absent", "value", "drop"] as const), "absent"),
    merged: table.maybe("merged", (key) => readMerged(table.table(key)), new Map<string, string[]>()),
  };
  checkAttribute(attribute);
  return attribute;
}

function readEdge(table: Table, edge: unknown): number | string {
  if (edge instanceof Numeral) return edge.value;
  if (typeof edge === "string") return edge;
  throw table.fault("edges", "they must be numbers, dates or times");
}

function readMerged(table: Table): Map<string, string[]> {
  return new Map(table.keys.map((label) => [label, table.texts(label)]));
}

const isBinned = (attribute: Attribute): boolean => !["categorical", "ordinal"].includes(attribute.kind);

function checkAttribute(attribute: Attribute): void {
  const { name, values, edges, missing, merged, kind } = attribute;
  const subject = `attribute ${quoted(name)}`;
  if (!name) throw new InputError("an attribute needs a name, got an empty one.");
  if (values.length < 1 || values.length > LARGEST_ALPHABET) {
    throw new InputError(`${subject} must have 1 to ${LARGEST_ALPHABET} values, got ${values.length}.`);
  }
  const twice = firstTwin(values);
  if (twice !== undefined) throw new InputError(`${subject} lists the value ${quoted(twice)} twice.`);
  if ((missing === "value") !== values.includes(MISSING)) {
    throw new InputError(`${subject}: ${quoted(MISSING)} is listed exactly when missing is 'value', got missing = ${quoted(missing)}.`);
  }
  if (isBinned(attribute)) checkEdges(attribute);
  else if (edges.length > 0) throw new InputError(`${subject} is ${kind}; only numbers, dates and times have edges.`);
  for (const label of merged.keys()) {
    if (isBinned(attribute) || label === OTHER || label === MISSING || !values.includes(label)) {
      throw new InputError(`${subject} merges values into ${quoted(label)}, which is none of its values.`);
    }
  }
  const raws = [...merged.values()].flat();
  const stray = firstTwin(raws) ?? raws.find((raw) => values.includes(raw) && !merged.has(raw));
  if (stray !== undefined) throw new InputError(`${subject} merges ${quoted(stray)} twice, or lists it too; leave one out.`);
}

function checkEdges({ name, kind, values, edges, missing }: Attribute): void {
  const rising = edges.every((edge, i) => i === 0 || edges[i - 1]! < edge);
  if (kind === "numeric" && (!edges.every((edge) => typeof edge === "number" && Number.isFinite(edge)) || !rising)) {
    throw new InputError(`\`edges of ${name}\` must be finite and strictly increasing.`);
  }
  const bins = values.length - (missing === "value" ? 1 : 0);
  if (bins !== edges.length + 1) {
    throw new InputError(`attribute ${quoted(name)} has ${edges.length} edges, so it needs ${edges.length + 1} bin labels, got ${bins}.`);
  }
}

export const firstTwin = (items: readonly string[]): string | undefined =>
  new Set(items).size === items.length ? undefined : items.find((item, i) => items.indexOf(item) !== i);

/** The code of an answer: a label, a raw value that is merged or folded, a number of a numeric attribute, or null. */
export function codeOf(attribute: Attribute, answer: string | number | null): number {
  const { values, edges, kind, name } = attribute;
  if (answer === null) answer = MISSING;
  if (typeof answer === "number") {
    if (kind !== "numeric" || Number.isNaN(answer)) throw new InputError(`${quoted(name)} takes one of its labels, got a number.`);
    return edges.filter((edge) => (edge as number) <= answer).length;
  }
  const raw = answer;
  let code = values.indexOf(raw);
  if (code < 0) code = values.findIndex((label) => attribute.merged.get(label)?.includes(raw));
  if (code < 0 && raw !== MISSING) code = values.indexOf(OTHER);
  if (code < 0) throw new InputError(`there is no value of ${name} called ${quoted(raw)}; it has ${values.slice(0, 5).join(", ")}${values.length > 5 ? ", .." : ""}.`);
  return code;
}

export function checkNames(attributes: readonly Attribute[]): void {
  const twice = firstTwin(attributes.map((attribute) => attribute.name));
  if (twice !== undefined) throw new InputError(`the attribute ${quoted(twice)} is listed twice.`);
}
