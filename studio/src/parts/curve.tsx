// A figure against the budget, small enough for a tip.
import { brief, real, type Real } from "../state/format.ts";

const [WIDTH, HEIGHT, EDGE] = [220, 64, 4];

/** A line of leakage against budget, with what it cannot exceed. */
export function Curve({ points, ceiling }: { points: [number, Real][]; ceiling: Real }) {
  const finite = points.filter(([, value]) => value !== "infinity") as [number, number][];
  const first = finite[0];
  const last = finite.at(-1);
  if (first === undefined || last === undefined || finite.length < 2) return null;
  const top = Math.max(...finite.map(([, value]) => value), ceiling === "infinity" ? 0 : real(ceiling)) || 1;
  const x = (budget: number): number =>
    EDGE + ((WIDTH - 2 * EDGE) * Math.log(budget / first[0])) / Math.log(last[0] / first[0]);
  const y = (value: number): number => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * value) / top;
  const line = finite.map(([budget, value]) => `${x(budget).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return (
    <svg
      class="curve"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`Leakage against budget, from ${brief(first[0])} to ${brief(last[0])}`}
    >
      {ceiling !== "infinity" && <line class="ceiling" x1={EDGE} x2={WIDTH - EDGE} y1={y(ceiling)} y2={y(ceiling)} />}
      <polyline points={line} />
    </svg>
  );
}
