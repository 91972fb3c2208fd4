/* Protocols: how a whole record becomes one report, and what a protocol's document says. */
import type { Bytes } from "./bytes.js";
import { Draws } from "./draws.js";
import { InputError, quoted } from "./errors.js";
import { evenPart, exactSum, LARGEST_SIZE } from "./exact.js";
import { type Json, Numeral, Table } from "./json.js";
import { type Form, Layout, type Part, type Refusal } from "./layout.js";
import { createMechanism, type Mechanism, RandomisedResponse } from "./mechanisms.js";
import { type Attribute, checkNames, codeOf, readAttribute } from "./schema.js";

const PROTOCOL_VERSION = 3;
const LARGEST_EPSILON = 700;
const MOST_SHARE = 2 ** 40;
export const WHOLE = 2 ** 32;

/** The answers of one person: labels, numbers of numeric attributes, or null where one is missing. */
export type Answers = Readonly<Record<string, string | number | null>>;

/** A randomiser of whole records. */
export abstract class Protocol {
  abstract readonly kind: "split" | "sample" | "hidden";
  abstract readonly name: string;
  /** The realised budget of a whole record: no two records are told apart by more. */
  abstract readonly epsilon: number;
  protected abstract readonly layout: Layout;

  constructor(readonly schema: readonly Attribute[]) {
    checkNames(schema);
  }

  /** How many bytes every report has. */
  get length(): number {
    return this.layout.length;
  }

  /** The codes of a person's answers, one for each attribute. */
  encode(answers: Answers): number[] {
    const unknown = Object.keys(answers).find((name) => !this.schema.some((attribute) => attribute.name === name));
    if (unknown !== undefined) throw new InputError(`there is no attribute ${quoted(unknown)} in the protocol.`);
    return this.schema.map((attribute) => codeOf(attribute, answers[attribute.name] ?? null));
  }

  /** Make the report of a record of codes; without given bytes its noise is secure. */
  report(record: readonly number[], draws: Draws = new Draws()): Bytes {
    if (record.length !== this.schema.length) throw new InputError(`a record has ${this.schema.length} codes, got ${record.length}.`);
    this.schema.forEach(({ name, values }, i) => {
      const code = record[i]!;
      if (!Number.isInteger(code) || code < 0 || code >= values.length) {
        throw new InputError(`the record's code of ${quoted(name)} must be from 0 to ${values.length - 1}.`);
      }
    });
    return this.layout.pack(this.randomise(record, draws));
  }

  /** Why bytes are no report of this protocol; null where they are one. */
  refusal(report: Uint8Array): Refusal | null {
    const parts = this.layout.unpack(report);
    if (typeof parts === "string") return parts;
    return this.isPossible(parts) ? null : "impossible";
  }

  protected abstract randomise(record: readonly number[], draws: Draws): Map<number, Part>;

  protected isPossible(_parts: ReadonlyMap<number, Part>): boolean {
    return true;
  }
}

/** Attributes that are reported as one value, the last varying fastest, through a mechanism. */
export class Unit {
  readonly size: number;
  readonly mechanism: Mechanism;
  private readonly places: readonly number[];

  constructor(
    readonly names: readonly string[], schema: readonly Attribute[], mechanism: string, budget: number | null,
    parameters: ReadonlyMap<string, number>,
  ) {
    if (names.length === 0) throw new InputError("a group needs at least one attribute, got none.");
    if (new Set(names).size < names.length) throw new InputError(`the group ${quoted(this.label)} names an attribute twice; name each once.`);
    this.places = names.map((name) => placeOf(schema, name));
    this.size = this.places.reduce((size, place) => size * schema[place]!.values.length, 1);
    if (this.places.some((place) => schema[place]!.values.length < 2)) {
      throw new InputError(`the group ${quoted(this.label)} has an attribute of one value, which says nothing; leave it out.`);
    }
    if (names.length > 1 && !["grr", "ss"].includes(mechanism)) {
      throw new InputError(`the group ${quoted(this.label)} must be reported through one of grr, ss, got ${quoted(mechanism)}.`);
    }
    if (this.size > LARGEST_SIZE) {
      throw new InputError(`the group ${quoted(this.label)} has ${this.size} combinations of values, more than ${LARGEST_SIZE}; make it smaller.`);
    }
    if (budget !== null) checkBudget(budget);
    this.sizes = this.places.map((place) => schema[place]!.values.length);
    this.mechanism = createMechanism(mechanism, this.size, mechanism === "identity" ? null : budget, parameters);
  }

  private readonly sizes: readonly number[];

  get label(): string {
    return this.names.join(" x ");
  }

  draw(record: readonly number[], draws: Draws): Part {
    const code = this.places.reduce((cell, place, i) => cell * this.sizes[i]! + record[place]!, 0);
    return this.mechanism.draw(code, draws);
  }
}

function placeOf(schema: readonly Attribute[], name: string): number {
  const place = schema.findIndex((attribute) => attribute.name === name);
  if (place < 0) throw new InputError(`there is no attribute ${quoted(name)}.`);
  return place;
}

export function checkBudget(budget: number): void {
  if (!(budget > 0 && budget < LARGEST_EPSILON)) throw new InputError(`\`epsilon\` must be above 0 and below ${LARGEST_EPSILON}, got ${budget}.`);
}

abstract class UnitProtocol extends Protocol {
  protected readonly layout: Layout;

  constructor(schema: readonly Attribute[], readonly units: readonly Unit[], sendsOne: boolean) {
    super(schema);
    if (units.length === 0) throw new InputError("a protocol needs at least one `unit`.");
    const labels = units.map((unit) => unit.label);
    if (new Set(labels).size < labels.length) throw new InputError(`two groups have one label: ${labels.join(", ")}.`);
    const named = units.flatMap((unit) => unit.names);
    const [absent] = schema.filter((attribute) => !named.includes(attribute.name));
    if (absent !== undefined) throw new InputError(`no group reports the attribute ${quoted(absent.name)}; add it or leave it out of the schema.`);
    const twice = named.find((name, i) => named.indexOf(name) !== i);
    if (!sendsOne && twice !== undefined) throw new InputError(`the attribute ${quoted(twice)} is in two groups.`);
    this.layout = new Layout(units.map((unit) => unit.mechanism.form), sendsOne);
  }
}

/** Every unit is reported; the budgets add up. */
export class Split extends UnitProtocol {
  readonly kind = "split";

  constructor(schema: readonly Attribute[], units: readonly Unit[]) {
    super(schema, units, false);
  }

  get name(): string {
    return this.units.some((unit) => unit.names.length > 1) ? "product" : "spl";
  }

  get epsilon(): number {
    const budgets = this.units.map((unit) => unit.mechanism.epsilon);
    return budgets.includes(Infinity) ? Infinity : exactSum(budgets);
  }

  protected randomise(record: readonly number[], draws: Draws): Map<number, Part> {
    return new Map(this.units.map((unit, number) => [number, unit.draw(record, draws)]));
  }
}

/** One unit is reported, drawn at random and disclosed, with the whole budget. */
export class Sample extends UnitProtocol {
  readonly kind = "sample";
  readonly shares: readonly number[];

  constructor(schema: readonly Attribute[], units: readonly Unit[], shares: readonly number[] = []) {
    super(schema, units, true);
    this.shares = shares.length > 0 ? shares : units.map(() => 1);
    if (this.shares.length !== units.length) {
      throw new InputError(`\`shares\` must have one number for each of ${units.length} groups, got ${shares.length}.`);
    }
  }

  get name(): string {
    return this.units.some((unit) => unit.names.length > 1) ? "smp on groups" : "smp";
  }

  get epsilon(): number {
    return Math.max(...this.units.map((unit) => unit.mechanism.epsilon));
  }

  protected randomise(record: readonly number[], draws: Draws): Map<number, Part> {
    const shares = this.shares.map(BigInt);
    let drawn = draws.below(shares.reduce((sum, share) => sum + share, 0n));
    const chosen = shares.findIndex((share) => {
      if (drawn < share) return true;
      drawn -= share;
      return false;
    });
    return new Map([[chosen, this.units[chosen]!.draw(record, draws)]]);
  }
}

type Law = readonly (readonly number[])[];

/** In every group one attribute, drawn uniformly, is reported; the others are fakes that follow from the report. */
export class Hidden extends Protocol {
  readonly kind = "hidden";
  protected readonly layout: Layout;
  private readonly responses: readonly RandomisedResponse[];
  private readonly groups: readonly (readonly number[])[];

  constructor(
    schema: readonly Attribute[], readonly partition: readonly (readonly string[])[], readonly budget: number,
    private readonly fakes: ReadonlyMap<string, Law>, readonly name: string, readonly origin: string,
  ) {
    super(schema);
    checkBudget(budget);
    const members = partition.flat();
    if (members.length !== schema.length || !schema.every((attribute) => members.includes(attribute.name)) || partition.some((group) => group.length === 0)) {
      throw new InputError("`groups` must be a partition of the attributes.");
    }
    this.groups = partition.map((group) => group.map((name) => placeOf(schema, name)));
    this.checkLaws();
    const part = evenPart(budget, partition.length);
    this.responses = schema.map(({ values }) => new RandomisedResponse(values.length, part));
    const form = (count: number): Form => ({ kind: "code", count, width: 1, seeded: false });
    this.layout = new Layout(schema.map(({ values }) => form(values.length)), false);
  }

  get epsilon(): number {
    return exactSum(this.groups.map((group) => Math.max(...group.map((place) => this.responses[place]!.epsilon))));
  }

  private law(chosen: string, other: string): Law {
    const law = this.fakes.get(pairKey(chosen, other)) ?? this.fakes.get(pairKey("", other));
    if (law === undefined) throw new InputError(`there is no law for the fakes of ${quoted(other)} given ${quoted(chosen)}.`);
    return law;
  }

  private checkLaws(): void {
    const size = (name: string): number => this.schema[placeOf(this.schema, name)]!.values.length;
    for (const group of this.partition) {
      for (const [chosen, other] of group.flatMap((one) => group.filter((two) => two !== one).map((two) => [one, two] as const))) {
        const law = this.law(chosen, other);
        if ((law.length !== 1 && law.length !== size(chosen)) || law[0]!.length !== size(other)) {
          throw new InputError(`the fakes of ${quoted(other)} given ${quoted(chosen)} have the wrong shape.`);
        }
      }
    }
    for (const law of this.fakes.values()) {
      for (const row of law) {
        if (row.some((weight) => weight < 0) || row.reduce((sum, weight) => sum + weight, 0) !== WHOLE) {
          throw new InputError(`the fakes must add up to ${WHOLE} in each row.`);
        }
      }
    }
  }

  private row(chosen: number, said: number, other: number): readonly number[] {
    const law = this.law(this.schema[chosen]!.name, this.schema[other]!.name);
    return law[law.length === 1 ? 0 : said]!;
  }

  protected randomise(record: readonly number[], draws: Draws): Map<number, Part> {
    const codes = new Map<number, number>();
    for (const group of this.groups) {
      const chosen = group[Number(draws.below(BigInt(group.length)))]!;
      const said = this.responses[chosen]!.respond(record[chosen]!, draws.word());
      for (const place of group) {
        const drawn = Number(draws.word() >> 32n); // every member has a word, whether it is needed or not
        codes.set(place, place === chosen ? said : drawnFrom(this.row(chosen, said, place), drawn));
      }
    }
    return new Map(this.schema.map((_, place) => [place, { values: [codes.get(place)!] }]));
  }

  protected override isPossible(parts: ReadonlyMap<number, Part>): boolean {
    const code = (place: number): number => parts.get(place)!.values[0]!;
    return this.groups.every((group) =>
      group.some((chosen) =>
        group.every((other) => other === chosen || this.row(chosen, code(chosen), other)[code(other)]! > 0),
      ),
    );
  }
}

const pairKey = (chosen: string, other: string): string => JSON.stringify([chosen, other]);

/** The first value whose running weight exceeds what was drawn. */
function drawnFrom(weights: readonly number[], drawn: number): number {
  let end = 0;
  return weights.findIndex((weight) => drawn < (end += weight));
}

/** Read a protocol's document. */
export function readProtocol(data: Json, label = "the protocol"): Protocol {
  const table = Table.of(data, label);
  if (table.keys.includes("release") && !table.keys.includes("protocol")) throw new InputError(`${label} is a plan, no protocol file.`);
  table.version(PROTOCOL_VERSION, "protocol");
  const schema = table.tables("attribute").map((item) => {
    const attribute = readAttribute(item, "name");
    item.done();
    return attribute;
  });
  const kind = table.choice("protocol", ["split", "sample", "hidden"]);
  try {
    checkNames(schema);
    const made = kind === "hidden" ? readHidden(table, schema) : readUnits(table, schema, kind);
    table.done();
    return made;
  } catch (error) {
    throw error instanceof InputError && !error.message.startsWith(label) ? new InputError(`${label}: ${error.message}`) : error;
  }
}

function readUnits(table: Table, schema: readonly Attribute[], kind: "split" | "sample"): Protocol {
  const units = table.tables("unit").map((item) => {
    const unit = new Unit(
      item.texts("attributes"), schema, item.text("mechanism"), item.maybe("epsilon", (key) => item.number(key), null),
      item.maybe("parameters", (key) => readParameters(item.table(key)), new Map<string, number>()),
    );
    item.done();
    return unit;
  });
  const shares = table.maybe("shares", (key) => table.wholes(key, 1, MOST_SHARE), []);
  return kind === "split" ? new Split(schema, units) : new Sample(schema, units, shares);
}

export const readParameters = (table: Table): Map<string, number> => 
  new Map(table.keys.map((key) => [key, table.whole(key, 0, LARGEST_SIZE)]));

function readHidden(table: Table, schema: readonly Attribute[]): Protocol {
  const fakes = new Map<string, Law>();
  for (const item of table.tables("fake")) {
    const key = pairKey(item.text("given"), item.text("of"));
    if (fakes.has(key)) throw new InputError(`the fakes of ${quoted(item.text("of"))} are listed twice.`);
    const rows = item.list("weights").map((row) => readWeights(item, row));
    if (new Set(rows.map((row) => row.length)).size !== 1) throw item.fault("weights", "they must be rows of one length");
    fakes.set(key, rows);
    item.done();
  }
  const partition = table.list("groups").map((group) => {
    if (!Array.isArray(group) || !group.every((name) => typeof name === "string")) throw table.fault("groups", "they must be lists of names");
    return group;
  });
  return new Hidden(schema, partition, table.number("epsilon"), fakes, table.text("name"), table.text("origin"));
}

function readWeights(item: Table, row: Json): number[] {
  if (!Array.isArray(row)) throw item.fault("weights", "they must be rows of whole numbers");
  return row.map((weight) => {
    if (!(weight instanceof Numeral) || !weight.isWhole || Math.abs(weight.value) > WHOLE) {
      throw item.fault("weights", `they must be whole numbers up to ${WHOLE}`);
    }
    return weight.value;
  });
}
