// Sliders move over orders of magnitude: equal steps multiply.
/** How many positions a slider has. */
export const STEPS = 1000;

/** A logarithmic scale from `least` to `most`. */
export interface LogScale {
  least: number;
  most: number;
}

/** Budgets: from hardly anything to hardly any noise. Number boxes take others too. */
export const BUDGETS: LogScale = { least: 0.01, most: 20 };
/** Deltas: from one in a thousand million to one in ten. */
export const DELTAS: LogScale = { least: 1e-9, most: 0.1 };

/** Return where a value stands on the slider; what is beyond its ends stands at the end. */
export function toPosition(value: number, { least, most }: LogScale): number {
  const share = Math.log(value / least) / Math.log(most / least);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

/** Return the value at a position, rounded to three significant digits so that it can be said. */
export function toValue(position: number, { least, most }: LogScale): number {
  const exact = least * (most / least) ** (position / STEPS);
  return Math.min(most, Math.max(least, Number(exact.toPrecision(3))));
}
