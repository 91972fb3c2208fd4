// Figures in words and digits, the same way on every step.
import type { Figure } from "../messages.ts";

/** A figure as JSON holds it: a number, or the word for what JSON has no number for. */
export type Real = number | "infinity";

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Return a figure as a number. */
export const real = (value: Real): number => (value === "infinity" ? Infinity : value);

/** Return a number with about `digits` significant digits, without an exponent where people can read it. */
export function brief(value: number, digits = 3): string {
  if (value === Infinity) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace("e+", "e");
  if (size >= 1000) return grouped.format(value);
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(places, 5));
}

/** Return a leakage in nats, with two decimals; never rounded to nothing. */
export function nats(value: Real): string {
  const number = real(value);
  if (number === Infinity) return "∞";
  return number > 0 && number < 0.005 ? "< 0.01" : number.toFixed(2);
}

/** Return by how many times odds move, given the leakage in nats. */
export function factor(leakage: Real): string {
  const number = Math.exp(real(leakage));
  return number === Infinity ? "× ∞" : `× ${number >= 1000 ? brief(number, 2) : number.toFixed(2)}`;
}

/** Return a share as a percentage. */
export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  return value < 100 && value >= 99.95 ? "> 99.9 %" : `${value.toFixed(1)} %`;
}

/** Return an error, a share, in percentage points. */
export function points(error: Real): string {
  const value = 100 * real(error);
  if (value === Infinity) return "no estimate";
  return `${value >= 0.095 ? value.toFixed(1) : brief(value, 1)} points`;
}

/** Return how many there are. */
export const count = (number: number): string => (number >= 1e9 ? brief(number, 2) : grouped.format(number));

/** Return how many there are of a thing that is named in the singular. */
export const many = (number: number, noun: string): string => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Return about how long something takes, given its seconds. */
export function duration(seconds: number): string {
  if (seconds < 5) return "a few seconds";
  return seconds < 90 ? `about ${5 * Math.round(seconds / 5)} seconds` : `about ${Math.round(seconds / 60)} minutes`;
}

/** What each kind of figure means. */
export const KINDS: Record<Figure["kind"], string> = {
  exact: "the true figure",
  certified: "proven not to be exceeded",
  sampled: "from random draws, with its uncertainty",
  lower: "surely reached; the truth may be above",
  model: "true if the model is",
  published: "a published formula; not a bound",
  estimate: "an estimate",
};

/** Who the adversary of a figure is. */
export const ADVERSARIES: Record<Figure["adversary"], string> = {
  report: "who keeps whole reports and knows the table",
  guess: "who keeps one guessed value of each report",
  model: "who models the population",
  "model guess": "who models the population and keeps guesses",
  population: "who knows the population",
  table: "who knows the table",
  tree: "who models the population as a tree",
};
