/* Plans, published parameters, tasks and rounds: what a server or a person hands to a device. */
import { fromUtf8, toHex } from "./bytes.js";
import { InputError, quoted } from "./errors.js";
import { evenPart } from "./exact.js";
import { fingerprintOfResponses, isTelling } from "./fingerprint.js";
import { type Json, Numeral, parse, Table } from "./json.js";
import { checkBudget, Hidden, type Protocol, readParameters, readProtocol, Split, Unit } from "./protocols.js";
import { type Attribute, checkNames, readAttribute } from "./schema.js";
import { sha256 } from "./sha256.js";

const PLAN_VERSION = 3;
const PARAMETERS_VERSION = 1;
const TASK_VERSION = 1;
const ROUND_VERSION = 1;
const METHODS = ["corr-rr", "cond-rr"] as const;
const COPYING = ["published", "corrected"] as const;

/** How a collection in two phases is run. */
export interface Phases {
  readonly schema: readonly Attribute[];
  readonly epsilon: number;
  readonly method: (typeof METHODS)[number];
  readonly copying: (typeof COPYING)[number];
  /** Which share of all people takes part in the first phase. */
  readonly share: number;
  readonly groups: number;
}

/** A task: what is collected, for what purpose, under which terms. Its id is the SHA-256 of its document. */
export interface Task {
  readonly id: string;
  readonly purpose: string;
  readonly contact: string;
  readonly rounds: number;
  readonly terms: Terms;
  readonly protocol: Protocol;
  readonly phases: Phases | null;
}

export interface Terms {
  readonly smallestCrowd: number;
  readonly retentionDays: number | null;
  readonly mostReports: number | null;
  readonly needsToken: boolean;
  readonly keepsReports: boolean;
}

/** A round of a task: which protocol is answered with. */
export interface Round {
  readonly task: string;
  readonly number: number;
  readonly digest: string;
  readonly protocol: Protocol;
}

/** Parse a protocol's document in JSON. */
export const protocolFrom = (text: string, label = "the protocol"): Protocol => readProtocol(parse(text, label), label);

/** Parse a plan in JSON, and return the collection that it describes: every released attribute, as it says. */
export function planFrom(text: string, label = "the plan"): Protocol {
  const table = Table.of(parse(text, label), label);
  if (table.keys.includes("protocol") && !table.keys.includes("release")) throw new InputError(`${label} is a protocol, no plan.`);
  const version = table.version(PLAN_VERSION, "plan");
  const releases = table.tables("release").map((item) => readRelease(item, version));
  readLimits(table, version);
  table.done();
  checkNames(releases.map((release) => release.attribute));
  const kept = releases.filter((release) => release.mechanism !== "withheld");
  if (releases.length === 0) throw new InputError(`${label}: a plan must release at least one attribute.`);
  if (kept.length === 0) throw new InputError(`${label}: the plan withholds every attribute; there is nothing to collect.`);
  const schema = kept.map((release) => release.attribute);
  const units = kept.map(({ attribute, mechanism, epsilon, parameters }) => new Unit([attribute.name], schema, mechanism, epsilon, parameters));
  return new Split(schema, units);
}

function readRelease(item: Table, version: number) {
  const attribute = readAttribute(item, "attribute");
  const mechanism = item.text("mechanism");
  const epsilon = item.maybe("epsilon", (key) => item.number(key), null);
  const times = item.optional("times", (key) => item.whole(key, 1, 1_000_000), 1);
  const parameters = item.optional("parameters", (key) => readParameters(item.table(key)), new Map<string, number>());
  const reason = item.optional("reason", (key) => item.text(key), "");
  const memory = item.maybe("memory", (key) => item.choice(key, ["fresh", "kept"] as const), null);
  item.done();
  if (version < PLAN_VERSION && (reason || memory || attribute.merged.size > 0)) {
    throw item.fault(attribute.name, `a reason, a memory or merged values need version ${PLAN_VERSION}`);
  }
  if (epsilon !== null) checkBudget(epsilon);
  if (["identity", "withheld"].includes(mechanism) && epsilon !== null) {
    throw item.fault("epsilon", `the mechanism ${quoted(mechanism)} has no budget; leave it out`);
  }
  if (times !== 1) throw item.fault("times", `the plan asks for ${times} reports of ${quoted(attribute.name)}, and a collection takes one`);
  return { attribute, mechanism, epsilon, parameters };
}

function readLimits(table: Table, version: number): void {
  const isLimit = (value: Json): boolean => value === "infinity" || (value instanceof Numeral && value.value >= 0);
  const limit = table.maybe("limit", (key) => table.raw(key), null);
  const limits = table.optional("limits", (key) => table.table(key), null);
  const each = limits?.keys.map((key) => limits.raw(key)) ?? [];
  if (![...each, ...(limit === null ? [] : [limit])].every(isLimit)) throw table.fault("limit", "it must be a number of at least 0, or infinity");
  table.optional("origin", (key) => table.text(key), "");
  const newer = ["delta", "decide_by", "reasons", "purpose"].filter((key) => table.has(key));
  if (version < PLAN_VERSION && newer.length > 0) throw table.fault(newer[0]!, `it needs version ${PLAN_VERSION}`);
  const delta = table.maybe("delta", (key) => table.number(key), null);
  if (delta !== null && !(delta > 0 && delta < 1)) throw table.fault("delta", "it must be between 0 and 1");
  table.maybe("decide_by", (key) => table.text(key), "");
  table.optional("purpose", (key) => table.text(key), "");
  const reasons = table.optional("reasons", (key) => table.table(key), null);
  reasons?.keys.forEach((key) => reasons.text(key));
}

function readPhases(table: Table, schema: readonly Attribute[]): Phases {
  const phases = {
    schema,
    epsilon: table.number("epsilon"),
    method: table.choice("method", METHODS),
    copying: table.choice("copying", COPYING),
    share: table.number("share"),
    groups: table.whole("groups", 1, schema.length),
  };
  checkBudget(phases.epsilon);
  if (!(phases.share > 0 && phases.share < 1)) throw table.fault("share", "it must be between 0 and 1");
  return phases;
}

/** The first of two phases: every attribute through randomised response with an even share of the budget. */
export function firstPhase({ schema, epsilon }: Phases): Protocol {
  const part = evenPart(epsilon, schema.length);
  return new Split(schema, schema.map(({ name }) => new Unit([name], schema, "grr", part, new Map())));
}

/** Raise unless a second phase keeps to its design, so that a changed document spends no other budget. */
function checkSecond(phases: Phases, second: Protocol): void {
  if (!(second instanceof Hidden)) throw new InputError(`the second phase must hide its choice, got ${quoted(second.name)}.`);
  const pairs: [string, number | string, number | string][] = [
    ["epsilon", second.budget, phases.epsilon],
    ["name", second.name, phases.method],
    ["number of groups", second.partition.length, phases.groups],
  ];
  for (const [what, stated, wanted] of pairs) {
    if (stated !== wanted) throw new InputError(`the ${what} of the second phase must be the design's, ${wanted}, got ${stated}; learn again.`);
  }
  const [, learnt] = /^first phase ([0-9a-f]{24}),/.exec(second.origin) ?? [];
  if (learnt === undefined) throw new InputError("the second phase does not say which first phase it was learnt from; learn again.");
  const { schema, epsilon } = phases;
  if (isTelling(schema) && learnt !== fingerprintOfResponses(schema, evenPart(epsilon, schema.length))) {
    throw new InputError("the second phase was not learnt from this design's first phase; learn again.");
  }
}

/** Parse the parameters that are published between two phases, and return the second phase's protocol. */
export function parametersFrom(text: string, label = "the parameters"): Protocol {
  const table = Table.of(parse(text, label), label);
  table.version(PARAMETERS_VERSION, "parameter file");
  table.whole("round", 1, Infinity);
  table.whole("reports", 1, Infinity);
  const second = readProtocol(table.raw("second"), `${label}: second`);
  const design = table.table("design");
  const phases = readPhases(design, second.schema);
  design.done();
  table.done();
  checkSecond(phases, second);
  return second;
}

function documentOf(bytes: Uint8Array, label: string, digest: string): Table {
  if (toHex(sha256(bytes)) !== digest) throw new InputError(`${label} is not the document that its digest ${digest} names; fetch it again.`);
  return Table.of(parse(fromUtf8(bytes, label), label), label);
}

/** Read a task's document, which must be the one that its id names. */
export function taskFrom(bytes: Uint8Array, id: string): Task {
  const table = documentOf(bytes, "the task", id);
  table.version(TASK_VERSION, "task");
  const rounds = table.whole("rounds", 1, 10_000);
  const [purpose, contact] = [table.text("purpose"), table.text("contact")];
  const terms = readTerms(table.table("terms"));
  table.maybe("pace", (key) => readPace(table.table(key)), null);
  const phases = table.maybe("phases", (key) => readPhasesTable(table.table(key)), null);
  const protocol = table.maybe("protocol", (key) => readProtocol(table.raw(key), "the task: protocol"), null);
  table.done();
  if ((phases === null) === (protocol === null)) throw new InputError("the task must have either `protocol` or `phases`; give one of them.");
  if (phases !== null && rounds !== 2) throw new InputError(`\`rounds\` must be 2, the phases of a two-phase design, got ${rounds}.`);
  return { id, purpose, contact, rounds, terms, protocol: protocol ?? firstPhase(phases!), phases };
}

/** When a service closes rounds by itself, which a device need not know. */
function readPace(table: Table): null {
  table.nullable("reports", (key) => table.whole(key, 1, 2 ** 40));
  table.nullable("seconds", (key) => table.whole(key, 1, 2 ** 40));
  table.done();
  return null;
}

function readPhasesTable(table: Table): Phases {
  const schema = table.tables("attribute").map((item) => {
    const attribute = readAttribute(item, "name");
    item.done();
    return attribute;
  });
  const phases = readPhases(table, schema);
  table.done();
  return phases;
}

function readTerms(table: Table): Terms {
  const terms = {
    smallestCrowd: table.whole("smallest_crowd", 1, 2 ** 40),
    retentionDays: table.nullable("retention_days", (key) => table.whole(key, 0, 100_000)),
    mostReports: table.nullable("most_reports", (key) => table.whole(key, 1, 2 ** 40)),
    needsToken: table.flag("needs_token"),
    keepsReports: table.flag("keeps_reports"),
  };
  table.done();
  return terms;
}

/** Read the document of a round, and raise unless it is of this task and keeps to its budgets. */
export function roundFrom(task: Task, number: number, bytes: Uint8Array, digest = toHex(sha256(bytes))): Round {
  const label = `round ${number} of the task`;
  const table = documentOf(bytes, label, digest);
  table.version(ROUND_VERSION, "round");
  if (table.text("task") !== task.id || table.whole("round", 1, task.rounds) !== number) throw new InputError(`${label} is of another task or round.`);
  const protocol = readProtocol(table.raw("protocol"), label);
  const learnt = table.nullable("learnt", (key) => table.table(key));
  learnt?.whole("reports", 1, Infinity);
  learnt?.text("sums");
  learnt?.done();
  table.done();
  if (task.phases !== null && number === 2) checkSecond(task.phases, protocol);
  else if (!protocol.isSame(task.protocol)) {
    const spends = (one: Protocol): string => `${one.epsilon} through ${quoted(one.name)}`;
    throw new InputError(`${label} asks otherwise than the task says: it spends ${spends(protocol)}, and the task says ${spends(task.protocol)}.`);
  }
  return { task: task.id, number, digest, protocol };
}
