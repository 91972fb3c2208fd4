// Sixth step: collect from the table as the plan says, and attack what was collected.
import { useState } from "preact/hooks";
import type { Attacked, Collected, EstimateRow } from "../messages.ts";
import { Choice, Field } from "../parts/fields.tsx";
import { resultOf, WorkButton } from "../parts/work.tsx";
import { count, many, percent, points } from "../state/format.ts";
import { attributes, plan, state } from "../state/store.ts";
import { PlanTabs } from "./plans.tsx";

/** The step "Try". */
export function Try() {
  const [now, active] = [state.value, plan.value];
  if (now === null || active === null) return null;
  return (
    <>
      <header>
        <p class="eyebrow">Step 6</p>
        <h1>Try it before anyone is asked</h1>
        <p class="lead">Every row of the table plays a person who reports as {active.name} says. Nothing leaves this machine.</p>
        <PlanTabs />
      </header>
      <Collection id={active.id} revision={now.revision} />
      <Attack id={active.id} />
    </>
  );
}

/** Say that a result is about a plan as it was. */
function Age({ revision, now }: { revision: number; now: number }) {
  return revision < now ? <p class="note small">The plan may have changed since. Run it again to be sure.</p> : null;
}

function Collection({ id, revision }: { id: string; revision: number }) {
  const result = resultOf("collected", id);
  return (
    <section class="card" aria-labelledby="collection">
      <h2 id="collection">Simulate a collection</h2>
      <p class="muted">The estimates beside the truth, with 95 % intervals.</p>
      <WorkButton work={{ work: "collect", plan: id }} class="primary">
        {result ? "Collect again" : "Collect"}
      </WorkButton>
      {result && <Estimates result={result} revision={revision} />}
    </section>
  );
}

function Estimates({ result, revision }: { result: Collected; revision: number }) {
  const names = [...new Set(result.rows.map(({ attribute }) => attribute))];
  const [wanted, setWanted] = useState("");
  const name = names.includes(wanted) ? wanted : (names[0] ?? "");
  const rows = result.rows.filter(({ attribute }) => attribute === name);
  return (
    <>
      <Age revision={result.revision} now={revision} />
      <p>
        {many(result.people, "person").replace("persons", "people")} reported; shares are off by <b>{points(result.error)}</b> on average.
      </p>
      {result.words.map((line) => (
        <p key={line} class="small">
          {line}
        </p>
      ))}
      {names.length > 0 && (
        <>
          <Field label="Attribute">
            <Choice label="Estimates of" value={name} options={names.map((item) => [item, item] as const)} onValue={setWanted} />
          </Field>
          <EstimateTable name={name} rows={rows} />
        </>
      )}
      {result.unlisted > 0 && <p class="muted small">{count(result.unlisted)} further values are not listed.</p>}
    </>
  );
}

/** Each value: the interval as a line, the estimate as a dot, the truth as a tick. */
function EstimateTable({ name, rows }: { name: string; rows: EstimateRow[] }) {
  const low = Math.min(0, ...rows.map(({ lower }) => lower));
  const high = Math.max(0.01, ...rows.map(({ upper, truth }) => Math.max(upper, truth)));
  const x = (value: number): number => 2 + (96 * (value - low)) / (high - low);
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={`Estimates of ${name} beside the truth`}>
      <table class="estimates">
        <thead>
          <tr>
            <th scope="col">{name}</th>
            <th scope="col" class="right">Truth</th>
            <th scope="col" class="right">Estimate</th>
            <th scope="col" class="right">Interval</th>
            <th scope="col" class="drawn">
              <span class="hidden">Drawn</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ value, truth, estimate, lower, upper }) => (
            <tr key={value}>
              <th scope="row">{value}</th>
              <td class="right">{percent(truth)}</td>
              <td class="right">{percent(estimate)}</td>
              <td class="right">
                {percent(lower)} to {percent(upper)}
              </td>
              <td class="drawn">
                <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="interval" x={x(lower)} width={Math.max(0.4, x(upper) - x(lower))} y="5" height="2" />
                  <rect class="estimate" x={x(estimate) - 0.6} width="1.2" y="2" height="8" />
                  <rect class="truth" x={x(truth) - 0.3} width="0.6" y="0" height="12" />
                </svg>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="legend small muted" aria-hidden="true">
        <i class="patch estimate" /> estimate <i class="patch interval" /> interval <i class="patch truth" /> truth
      </p>
    </div>
  );
}

function Attack({ id }: { id: string }) {
  const now = state.value;
  const secrets = now?.settings.secrets.map(({ name }) => name) ?? [];
  const names = secrets.length > 0 ? secrets : attributes.value.map(({ name }) => name);
  const [wanted, setWanted] = useState("");
  const secret = names.includes(wanted) ? wanted : (names[0] ?? "");
  const found = now?.results.findLast((item): item is Attacked => item.result === "attacked" && item.plan === id && item.secret === secret);
  return (
    <section class="card" aria-labelledby="attack">
      <h2 id="attack">Simulate an attack</h2>
      <p class="muted">The best guesser who knows the table and sees a person’s reports guesses one secret of everybody.</p>
      <div class="controls">
        <Field label="Secret">
          <Choice label="Secret to guess" value={secret} options={names.map((item) => [item, item] as const)} onValue={setWanted} />
        </Field>
        <WorkButton work={{ work: "attack", plan: id, secret }} class="primary" disabled={secret === ""}>
          Attack
        </WorkButton>
      </div>
      {found && <Outcome result={found} revision={now?.revision ?? 0} />}
    </section>
  );
}

function Outcome({ result, revision }: { result: Attacked; revision: number }) {
  const { success, lower, upper, baseline, bound } = result;
  const rows = [
    ["Guessing without reports", baseline, "before"],
    ["Guessing with the reports", success, "after"],
    ...(bound === null ? [] : [["Possible at most", bound, "bound"] as const]),
  ] as const;
  return (
    <>
      <Age revision={result.revision} now={revision} />
      <dl class="guesses">
        {rows.map(([name, value, look]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <b>{percent(value)}</b> right
              {look === "after" && (
                <small class="muted">
                  {" "}
                  ({percent(lower)} to {percent(upper)})
                </small>
              )}
            </dd>
            <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
              <rect class="track" width="100" height="6" />
              <rect class={look} width={100 * value} height="6" />
            </svg>
          </div>
        ))}
      </dl>
      {result.words.map((line) => (
        <p key={line} class="small">
          {line}
        </p>
      ))}
    </>
  );
}
