/* What the lines of a ledger say, and which may follow; see docs/ledger.md. */
import { type Bytes, fromBase64, fromUtf8, toBase64 } from "./bytes.js";
import { InputError } from "./errors.js";
import { parse, Table } from "./json.js";
import {
  type Charge, checkFits, checkLimit, LATEST, type Limit, memoOf, MOST_UNITS, named, type Question, shown, type Use, WINDOWS, written,
} from "./limits.js";
import { frozenKey, SECRET_BYTES } from "./memory.js";

export const LEDGER_VERSION = 1;
const CLOCK_SLACK = 300;

/** The first line: whose ledger it is, and what it allows; fixed for ever. */
export interface Opening {
  readonly person: string;
  readonly opened: number;
  readonly secret: Bytes;
  readonly limits: readonly Limit[];
  readonly level: string | null;
}

/** A question that is paid for, with the bytes of its one report and the values that hold from now on. */
export interface Reservation {
  readonly kind: "reserve";
  readonly question: Question;
  readonly time: number;
  readonly report: Bytes;
  readonly frozen: ReadonlyMap<string, string>;
}

/** What became of a reserved report. */
export interface Step {
  readonly kind: "send" | "acknowledge" | "withdraw";
  readonly task: string;
  readonly round: number;
}

export type Entry = Reservation | Step;
export type State = "reserved" | "sent" | "acknowledged" | "withdrawn";

/** A question that was paid for; its bytes are there until they are acknowledged. */
export interface Answer {
  readonly question: Question;
  readonly time: number;
  readonly report: Bytes | null;
  readonly state: State;
}

export function openingData({ person, opened, secret, limits, level }: Opening): object {
  return { kind: "open", version: LEDGER_VERSION, person, opened, secret: toBase64(secret), level, limits: limits.map((limit) => ({ ...limit })) };
}

export function entryData(entry: Entry): object {
  if (entry.kind !== "reserve") return { kind: entry.kind, task: entry.task, round: entry.round };
  const frozen = [...entry.frozen].map(([key, value]) => {
    const [attribute, epoch] = JSON.parse(key) as [string, string];
    return { attribute, epoch, value };
  });
  const charges = entry.question.charges.map(({ attribute, channel, units, epoch }) => ({ attribute, channel, units, epoch }));
  return { kind: "reserve", time: entry.time, task: entry.question.task, round: entry.question.round, charges, frozen, report: toBase64(entry.report) };
}

export function readOpening(body: Uint8Array, label: string): Opening {
  const table = Table.of(parse(fromUtf8(body, label), label), label);
  table.choice("kind", ["open"]);
  table.version(LEDGER_VERSION, "ledger");
  const opening = {
    person: table.text("person"),
    opened: table.whole("opened", 0, LATEST),
    secret: fromBase64(table.text("secret"), label),
    level: table.maybe("level", (key) => table.text(key), null),
    limits: table.tables("limits").map(readLimit),
  };
  table.done();
  if (opening.secret.length !== SECRET_BYTES) throw new InputError(`${label} has a secret of ${opening.secret.length} bytes.`);
  if (opening.limits.length === 0) throw new InputError(`${label} has no limits.`);
  return opening;
}

function readLimit(table: Table): Limit {
  const limit: Limit = {
    units: table.whole("units", 1, MOST_UNITS),
    window: table.choice("window", WINDOWS),
    unit: table.whole("unit", 0, LATEST),
    window_units: table.whole("window_units", 0, LATEST),
    delta: table.text("delta"),
    most_squares: table.maybe("most_squares", (key) => table.text(key), null),
    budgets: table.wholes("budgets", 0, MOST_UNITS),
  };
  table.done();
  checkLimit(limit);
  return limit;
}

export function readEntry(body: Uint8Array, label: string): Entry {
  const table = Table.of(parse(fromUtf8(body, label), label), label);
  const kind = table.choice("kind", ["reserve", "send", "acknowledge", "withdraw"]);
  const about = { task: table.text("task"), round: table.whole("round", 0, MOST_UNITS) };
  if (kind !== "reserve") {
    table.done();
    return { kind, ...about };
  }
  const entry: Reservation = {
    kind,
    question: { ...about, charges: table.tables("charges").map(readCharge) },
    time: table.whole("time", 0, LATEST),
    report: fromBase64(table.text("report"), label),
    frozen: new Map(table.tables("frozen").map(readFrozen)),
  };
  table.done();
  return entry;
}

function readCharge(table: Table): Charge {
  const charge = {
    attribute: table.text("attribute"), channel: table.text("channel"), units: table.whole("units", 0, MOST_UNITS),
    epoch: table.maybe("epoch", (key) => table.text(key), null),
  };
  table.done();
  return charge;
}

function readFrozen(table: Table): [string, string] {
  const pair: [string, string] = [frozenKey(table.text("attribute"), table.text("epoch")), table.text("value")];
  table.done();
  return pair;
}

const key = ({ task, round }: Pick<Question, "task" | "round">): string => JSON.stringify([task, round]);

const terms = ({ charges }: Question): string =>
  JSON.stringify(charges.map(({ attribute, channel, units, epoch }) => JSON.stringify([attribute, channel, units, epoch !== null])).sort());

const listed = ({ charges }: Question): string =>
  charges.map(({ units, attribute, channel }) => `${shown(units)} for '${attribute}' through '${channel}'`).join(", ");

const NEXT: Record<string, State | undefined> = { "reserved send": "sent", "reserved withdraw": "withdrawn", "sent acknowledge": "acknowledged" };

/** Everything that holds after the entries so far, and which entry may follow. */
export class Book {
  readonly answers = new Map<string, Answer>();
  readonly frozen = new Map<string, string>();
  private last: number;
  private readonly latest = new Map<string, Question>();
  private readonly memos = new Map<string, Charge>();

  constructor(readonly opening: Opening) {
    this.last = opening.opened;
  }

  /** All charges that count, in their order. */
  get uses(): Use[] {
    return [...this.answers.values()].filter(({ state }) => state !== "withdrawn")
      .flatMap(({ time, question }) => question.charges.map((charge) => ({ time, charge })));
  }

  /** The time to write down: never before the last one. */
  timeOf(now: number): number {
    if (now < this.last - CLOCK_SLACK) {
      throw new InputError(`the clock was set back: it says ${written(now)}, and the ledger's last entry is of ${written(this.last)}; set it right, or wait until then.`);
    }
    return Math.max(now, this.last);
  }

  /** Raise unless every limit allows a question that was not asked before. */
  checkFits(question: Question, now: number): void {
    this.checkNew(question);
    checkFits(question, this.opening.limits, this.uses, this.opening.opened, now);
  }

  private checkNew(question: Question): void {
    checkQuestion(question);
    const latest = this.latest.get(question.task);
    if (latest !== undefined) {
      if (question.round < latest.round) throw new InputError(`${named(question)} comes after round ${latest.round} was answered; rounds go forward.`);
      checkTerms(question, latest);
    }
    for (const charge of question.charges) {
      const before = this.memos.get(memoOf(charge) ?? "");
      if (before !== undefined && before.units !== charge.units) {
        throw new InputError(`${named(question)} charges ${shown(charge.units)}, and the same memo was charged ${shown(before.units)} before; a channel has one budget.`);
      }
    }
  }

  /** The answer to a question that was asked before, on the same terms. */
  asked(question: Question): Answer | undefined {
    const answer = this.answers.get(key(question));
    if (answer === undefined) return undefined;
    checkTerms(question, answer.question);
    const charges = (one: Question): string => JSON.stringify(one.charges.map((charge) => JSON.stringify([terms({ ...one, charges: [charge] }), charge.epoch])).sort());
    if (charges(question) !== charges(answer.question)) throw new InputError(`${named(question)} was answered in another epoch; a question has one answer.`);
    return answer;
  }

  answerTo(question: Pick<Question, "task" | "round">): Answer | undefined {
    return this.answers.get(key(question));
  }

  /** Take an entry over, or raise if it cannot follow. */
  apply(entry: Entry): void {
    if (entry.kind !== "reserve") return this.step(entry);
    const { question, time, report, frozen } = entry;
    if (this.answers.has(key(question))) throw new InputError(`${named(question)} is reserved twice.`);
    if (time < this.last) throw new InputError(`${named(question)} is reserved before what stands above it.`);
    if ([...frozen.keys()].some((held) => this.frozen.has(held))) throw new InputError(`${named(question)} freezes a value that was frozen before.`);
    this.checkNew(question);
    this.answers.set(key(question), { question, time, report, state: "reserved" });
    for (const [held, value] of frozen) this.frozen.set(held, value);
    this.last = time;
    this.latest.set(question.task, question);
    for (const charge of question.charges) if (charge.epoch !== null) this.memos.set(memoOf(charge)!, charge);
  }

  /** The state that a step leads to, or raise if there is none. */
  checkStep(step: Step): State {
    const answer = this.answers.get(key(step));
    if (answer === undefined) throw new InputError(`${named(step)} was never reserved.`);
    const state = NEXT[`${answer.state} ${step.kind}`];
    if (state === undefined) throw new InputError(`${named(step)} is ${answer.state}; there is nothing to ${step.kind}.`);
    return state;
  }

  private step(step: Step): void {
    const [state, answer] = [this.checkStep(step), this.answers.get(key(step))!];
    const isOver = state === "acknowledged" || state === "withdrawn";
    this.answers.set(key(step), { ...answer, state, report: isOver ? null : answer.report });
  }
}

function checkTerms(question: Question, before: Question): void {
  if (terms(question) !== terms(before)) {
    throw new InputError(`${named(question)} charges ${listed(question)}, but round ${before.round} charged ${listed(before)}; a task keeps its budgets: ask it as another task.`);
  }
}

function checkQuestion(question: Question): void {
  if (!question.task) throw new InputError("`task` must be the name of a task.");
  if (question.charges.length === 0) throw new InputError(`${named(question)} charges nothing; say what each of its reports spends.`);
  const memos = question.charges.map(memoOf).filter((memo) => memo !== null);
  if (new Set(memos).size < memos.length) throw new InputError(`${named(question)} charges one memo twice; its reports are the same.`);
}
