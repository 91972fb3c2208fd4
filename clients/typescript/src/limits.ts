/* Limits, and whether a charge still fits: decided before anything is sent, and never from a value; see docs/ledger.md. */
import { InputError, quoted } from "./errors.js";
import { filterSquares, wholeRoot } from "./exact.js";

export const UNITS = 1_000_000_000;
export const MOST_UNITS = Number.MAX_SAFE_INTEGER;
export const LATEST = 2 ** 37;
const DAY = 86_400;

/** What the report of one attribute spends, in billionths of a nat; an epoch names the memo that it goes through. */
export interface Charge {
  readonly attribute: string;
  readonly channel: string;
  readonly units: number;
  readonly epoch: string | null;
}

/** One round of one task, and what its answer spends. */
export interface Question {
  readonly task: string;
  readonly round: number;
  readonly charges: readonly Charge[];
}

export type WindowKind = "ever" | "sliding" | "year" | "epoch";
export const WINDOWS: readonly WindowKind[] = ["ever", "sliding", "year", "epoch"];

/** What may be spent in every window of time; as a ledger's first line has it. */
export interface Limit {
  readonly units: number;
  readonly window: WindowKind;
  readonly unit: number;
  readonly window_units: number;
  readonly delta: string;
  readonly most_squares: string | null;
  readonly budgets: readonly number[];
}

/** What a limit leaves: the largest charge that still fits, and from which second on one fits that does not. */
export interface Remaining {
  readonly limit: Limit;
  readonly left: number;
  readonly returns: number | null;
}

/** A question would spend more than is left. */
export class OverspentError extends InputError {
  override name = "OverspentError";
  constructor(message: string, readonly remaining: Remaining) {
    super(message);
  }
}

export interface Use {
  readonly time: number;
  readonly charge: Charge;
}

/** A budget in units, rounded up from the decimal number that it is written as. */
export function charged(epsilon: number): number {
  if (!(epsilon >= 0 && epsilon < MOST_UNITS / UNITS)) throw new InputError(`\`epsilon\` must be a number of at least 0, got ${epsilon}.`);
  return Number(inUnits(epsilon, true));
}

function inUnits(number: number, up: boolean): bigint {
  const { over, under } = decimal(String(number));
  const units = over * BigInt(UNITS);
  return units / under + (up && units % under !== 0n ? 1n : 0n);
}

function decimal(text: string): { over: bigint; under: bigint } {
  const [, whole, part = "", power = "0"] = /^([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?$/.exec(text) ?? [];
  if (whole === undefined) throw new InputError(`a number cannot be read, got ${text}.`);
  const shift = Number(power) - part.length;
  const digits = BigInt(whole + part);
  return shift >= 0 ? { over: digits * 10n ** BigInt(shift), under: 1n } : { over: digits, under: 10n ** BigInt(-shift) };
}

/** A limit in nats: a pure one, or the filter at delta, in a window of time; by default for ever. */
export function limitOf(epsilon: number, window: { kind?: WindowKind; days?: number } = {}, delta = 0): Limit {
  const kind = window.kind ?? (window.days === undefined ? "ever" : "sliding");
  if ((kind === "sliding" || kind === "epoch") !== (window.days !== undefined)) throw new InputError("a sliding window and an epoch have `days`, no other window has.");
  const units = Number(inUnits(epsilon, false));
  const limit: Limit = {
    units, window: kind, unit: kind === "epoch" ? window.days! * DAY : kind === "sliding" ? DAY : 0,
    window_units: kind === "sliding" ? window.days! : 0, delta: asPython(delta),
    most_squares: delta > 0 ? String(squaresOf(units, delta)) : null, budgets: [],
  };
  checkLimit(limit);
  return limit;
}

const squaresOf = (units: number, delta: number): bigint => filterSquares(BigInt(units), BigInt(UNITS), decimal(String(delta)));

/** Write a double as Python does. */
function asPython(number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < 1e16) return `${number}.0`;
  if (Math.abs(number) >= 1e-4 && Math.abs(number) < 1e16) return String(number);
  const [digits, power] = number.toExponential().split("e") as [string, string];
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/** Raise unless a limit is one that a ledger may have. */
export function checkLimit(limit: Limit): void {
  const delta = Number(limit.delta);
  if (!(delta >= 0 && delta < 1) || limit.delta.trim() === "") throw new InputError(`\`delta\` must be from 0 to below 1, got ${quoted(limit.delta)}.`);
  if (!Number.isInteger(limit.units) || limit.units < 1) throw new InputError(`\`units\` must be at least 1, got ${limit.units}.`);
  const hasUnit = limit.window === "sliding" || limit.window === "epoch";
  if (hasUnit !== limit.unit >= 1 || (limit.window === "sliding") !== limit.window_units >= 1) {
    throw new InputError(`the window ${quoted(limit.window)} has the wrong length.`);
  }
  if (limit.budgets.length > 0 && (delta === 0 || limit.window === "sliding")) {
    throw new InputError("budgets are fixed beforehand for a limit at delta, and have an order, which a sliding window has not.");
  }
  const isFilter = delta > 0 && limit.budgets.length === 0;
  const wanted = isFilter ? String(squaresOf(limit.units, delta)) : null;
  if (limit.most_squares !== null && limit.most_squares !== wanted) throw new InputError(`the filter of the limit ${shownLimit(limit)} is not the one that its delta gives.`);
}

/** Units as a number of nats, exactly. */
export function shown(units: number): string {
  const [whole, rest] = [Math.floor(units / UNITS), String(units % UNITS).padStart(9, "0")];
  return `${whole}.${rest}`.replace(/\.?0+$/, "");
}

/** A time for people. */
export const written = (time: number): string => `${new Date(time * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

function shownLimit(limit: Limit): string {
  const span = (seconds: number): string => {
    const [count, noun] = seconds % DAY === 0 ? [seconds / DAY, "day"] : [seconds, "second"];
    return `${count} ${noun}${count === 1 ? "" : "s"}`;
  };
  const windows: Record<WindowKind, string> = {
    ever: "all time", sliding: `any ${span(limit.unit * limit.window_units)}`, year: "a year", epoch: `an epoch of ${span(limit.unit)}`,
  };
  const at = Number(limit.delta) > 0 ? ` at delta = ${Number(limit.delta)}` : "";
  return `${shown(limit.units)}${at} in ${windows[limit.window]}`;
}

/** From which second on what was spent counts no more; infinity where it always does. */
function leaves(limit: Limit, then: number, opened: number): number {
  switch (limit.window) {
    case "ever":
      return Infinity;
    case "sliding":
      return (Math.floor(then / limit.unit) + limit.window_units) * limit.unit;
    case "year":
      return Date.UTC(new Date(then * 1000).getUTCFullYear() + 1, 0, 1) / 1000;
    case "epoch":
      return opened + (Math.floor((then - opened) / limit.unit) + 1) * limit.unit;
  }
}

export const memoOf = ({ channel, attribute, epoch }: Charge): string | null => (epoch === null ? null : JSON.stringify([channel, attribute, epoch]));

/** What counts in a window at a time, in its order: a memo once, if it was used in it at all. */
function spentIn(uses: readonly Use[], limit: Limit, opened: number, now: number): bigint[] {
  const memos = new Set<string>();
  const spent: bigint[] = [];
  for (const { time, charge } of uses) {
    if (leaves(limit, time, opened) <= now) continue;
    const memo = memoOf(charge);
    if (memo === null || !memos.has(memo)) spent.push(BigInt(charge.units));
    if (memo !== null) memos.add(memo);
  }
  return spent;
}

const sum = (numbers: readonly bigint[]): bigint => numbers.reduce((total, one) => total + one, 0n);
const squares = (numbers: readonly bigint[]): bigint => sum(numbers.map((one) => one * one));

function admits(limit: Limit, spent: readonly bigint[]): boolean {
  if (limit.budgets.length > 0) {
    return spent.length <= limit.budgets.length && spent.every((one, i) => one <= BigInt(limit.budgets[i]!));
  }
  const filtered = limit.most_squares !== null && squares(spent) <= BigInt(limit.most_squares);
  return filtered || sum(spent) <= BigInt(limit.units);
}

/** The largest charge that a limit still admits. */
export function leftOf(limit: Limit, uses: readonly Use[], opened: number, now: number): number {
  const spent = spentIn(uses, limit, opened, now);
  if (limit.budgets.length > 0) return limit.budgets[spent.length] ?? 0;
  const rest = limit.most_squares === null ? 0n : BigInt(limit.most_squares) - squares(spent);
  const [filtered, pure] = [rest > 0n ? wholeRoot(rest) : 0n, BigInt(limit.units) - sum(spent)];
  return Number([filtered, pure, 0n].reduce((most, one) => (one > most ? one : most)));
}

/** Raise unless a question keeps every limit: with what is left, and when it fits again. */
export function checkFits(question: Question, limits: readonly Limit[], uses: readonly Use[], opened: number, now: number): void {
  const spentWith = (limit: Limit, time: number): bigint[] =>
    spentIn([...uses, ...question.charges.map((charge) => ({ time, charge }))], limit, opened, time);
  for (const limit of limits) {
    if (admits(limit, spentWith(limit, now))) continue;
    const left = leftOf(limit, uses, opened, now);
    const more = Number(sum(spentWith(limit, now)) - sum(spentIn(uses, limit, opened, now)));
    const times = [...new Set(uses.map((use) => leaves(limit, use.time, opened)))].filter((time) => time > now && time < Infinity);
    const returns = times.sort((one, other) => one - other).find((time) => admits(limit, spentWith(limit, time))) ?? null;
    const when = returns === null ? "it will never fit" : `it fits from ${written(returns)} on`;
    throw new OverspentError(
      `${named(question)} spends ${shown(more)}, and ${shown(left)} is left of ${shownLimit(limit)}; ${when}.`, { limit, left, returns },
    );
  }
}

export const named = ({ task, round }: Pick<Question, "task" | "round">): string => `round ${round} of the task ${quoted(task)}`;
