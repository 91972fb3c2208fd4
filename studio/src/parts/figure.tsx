// A figure on screen: its digits, and one hover away its kind, its witness and whose figure it is.
import type { Figure } from "../messages.ts";
import { ADVERSARIES, brief, count, factor, KINDS, nats, real } from "../state/format.ts";
import { Hint } from "./tip.tsx";

/** Everything that is known about a leakage figure. */
export function FigureWords({ figure }: { figure: Figure }) {
  return (
    <>
      <p>
        <b>{figure.kind}</b>: {KINDS[figure.kind]}
      </p>
      <dl>
        <dt>Figure</dt>
        <dd>
          {brief(real(figure.value), 4)} nats; odds move by at most {factor(figure.value)}
        </dd>
        {figure.low != null && figure.high != null && (
          <>
            <dt>Uncertainty</dt>
            <dd>
              {nats(figure.low)} to {nats(figure.high)}
            </dd>
          </>
        )}
        <dt>Method</dt>
        <dd>{figure.method}</dd>
        {figure.witness && (
          <>
            <dt>Witness</dt>
            <dd>{figure.witness}</dd>
          </>
        )}
        {figure.support != null && (
          <>
            <dt>Records behind it</dt>
            <dd>{count(figure.support)}</dd>
          </>
        )}
        <dt>Adversary</dt>
        <dd>
          {ADVERSARIES[figure.adversary]}
          {figure.delta != null && `, at delta ${brief(figure.delta, 2)}`}
        </dd>
      </dl>
      {figure.stale && <p class="muted">Being computed anew.</p>}
    </>
  );
}

/** A leakage in nats; greyed while it is being computed anew, with its uncertainty where it is sampled. */
export function Nats({ figure, name }: { figure: Figure; name: string }) {
  const isSpread = figure.low != null && figure.high != null && real(figure.high) - real(figure.low) >= 0.005;
  const label = `${name}: ${nats(figure.value)} nats, ${figure.kind}${figure.stale ? ", being computed anew" : ""}`;
  return (
    <Hint label={label} tip={<FigureWords figure={figure} />} class={figure.stale ? "number stale" : "number"}>
      {nats(figure.value)}
      {isSpread && (
        <small class="spread">
          {nats(figure.low ?? 0)} to {nats(figure.high ?? 0)}
        </small>
      )}
      {figure.stale && <small aria-hidden="true"> …</small>}
    </Hint>
  );
}
