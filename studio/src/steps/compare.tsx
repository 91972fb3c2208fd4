// Fifth step: up to four plans side by side.
import { useState } from "preact/hooks";
import type { Plan, PlanFigures, SecretFigures, State } from "../messages.ts";
import { Nats } from "../parts/figure.tsx";
import { OUTCOMES, verdict, worstFirst } from "../parts/secrets.tsx";
import { brief, count, points } from "../state/format.ts";
import { change, figuresOf, plan as activePlan, state, step } from "../state/store.ts";
import { worth } from "./live.tsx";
import { addCopy, freshName, MOST } from "./plans.tsx";

const FIRST = 20;

/** Return the attributes that not all plans release in the same way. */
export function differing(plans: Plan[]): string[] {
  const [first, ...others] = plans;
  if (first === undefined) return [];
  const ways = (plan: Plan): Map<string, string> => new Map(plan.releases.map((release) => [release.attribute, way(plan, release.attribute)]));
  const rest = others.map(ways);
  return [...ways(first)].filter(([name, own]) => rest.some((map) => map.get(name) !== own)).map(([name]) => name);
}

/** Say in a few words how a plan releases an attribute. */
export function way(plan: Plan, attribute: string): string {
  const release = plan.releases.find((item) => item.attribute === attribute);
  if (release === undefined || release.withheld) return "withheld";
  const title = state.value?.mechanisms.find(({ name }) => name === release.mechanism)?.title ?? release.mechanism;
  const budget = release.epsilon === null ? title : `${brief(release.epsilon)}, ${title}`;
  return release.coarsened === null ? budget : `${budget}, ${release.coarsened} values`;
}

/** The step "Compare". */
export function Compare() {
  const now = state.value;
  if (now === null) return null;
  const isRoom = now.plans.length < MOST;
  return (
    <>
      <header>
        <p class="eyebrow">Step 5</p>
        <h1>Which plan is the better bargain?</h1>
        <p class="lead">Up to four plans side by side: what each gives away about every secret, and what its estimates would be worth.</p>
        <div class="buttons">
          <button type="button" class="primary" disabled={!isRoom} onClick={addCopy}>
            Copy {activePlan.value?.name}
          </button>
          <button type="button" disabled={!isRoom} onClick={() => change([{ change: "add plan", copy_of: null, name: freshName(now.plans.map(({ name }) => name)) }])}>
            Add a plan as at the start
          </button>
          {!isRoom && <small class="muted">Four plans are the most.</small>}
        </div>
      </header>
      <Heads now={now} />
      <Leakages now={now} />
      <Differences plans={now.plans} />
    </>
  );
}

function Heads({ now }: { now: State }) {
  return (
    <ul class="plans">
      {now.plans.map((item) => (
        <PlanCard key={item.id} item={item} shown={figuresOf(now, item.id)} isActive={item.id === now.active} isLast={now.plans.length === 1} />
      ))}
    </ul>
  );
}

function PlanCard({ item, shown, isActive, isLast }: { item: Plan; shown: PlanFigures | null; isActive: boolean; isLast: boolean }) {
  const found = shown && worth(shown);
  const collected = item.releases.filter(({ withheld }) => !withheld).length;
  const open = (): void => {
    if (!isActive) change([{ change: "select plan", plan: item.id }]);
    step.value = "budgets";
  };
  return (
    <li class={isActive ? "card plan active" : "card plan"}>
      <input
        type="text"
        class="title"
        aria-label={`Name of ${item.name}`}
        value={item.name}
        maxLength={100}
        onChange={(event) => {
          const name = event.currentTarget.value.trim();
          if (name) change([{ change: "rename plan", plan: item.id, name }]);
          else event.currentTarget.value = item.name;
        }}
      />
      {shown && <p class={`verdict ${OUTCOMES[shown.outcome].class}`}>{verdict(shown)}</p>}
      <dl class="facts">
        <div>
          <dt>Attributes collected</dt>
          <dd>
            {collected} of {item.releases.length}
          </dd>
        </div>
        <div>
          <dt>Error on average</dt>
          <dd class={found?.stale}>{found ? points(found.mean) : "not known"}</dd>
        </div>
        <div>
          <dt>People needed</dt>
          <dd class={found?.stale}>{found ? (found.people === null ? "no crowd is enough" : count(found.people)) : "not known"}</dd>
        </div>
      </dl>
      <div class="buttons">
        <button type="button" class="small" aria-label={`Work on it: ${item.name}`} onClick={open}>
          Work on it
        </button>
        <button type="button" class="plain small" disabled={isLast} aria-label={`Remove ${item.name}`} onClick={() => change([{ change: "remove plan", plan: item.id }])}>
          Remove
        </button>
      </div>
    </li>
  );
}

function Leakages({ now }: { now: State }) {
  const [isAll, setAll] = useState(false);
  const byPlan = now.plans.map(({ id }) => new Map(figuresOf(now, id)?.secrets.map((item): [string, SecretFigures] => [item.secret, item])));
  const names = worstFirst(figuresOf(now, now.active)?.secrets ?? []).map(({ secret }) => secret);
  const shown = isAll ? names : names.slice(0, FIRST);
  if (names.length === 0) return null;
  return (
    <section class="card" aria-labelledby="compare-leaks">
      <h2 id="compare-leaks">
        What leaks about each secret <small class="muted">nats, at most</small>
      </h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Leakage of every secret in every plan">
        <table>
          <Head first="Secret" plans={now.plans} isNumber />
          <tbody>
            {shown.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {byPlan.map((secrets, place) => {
                  const item = secrets.get(name);
                  return (
                    <td key={place} class="right">
                      {item ? (
                        <>
                          <i class={`dot ${OUTCOMES[item.outcome].class}`} aria-hidden="true" />
                          <span class="hidden">{item.outcome}: </span>
                          <Nats figure={item.decisive} name={`${name} in ${now.plans[place]?.name}`} />
                        </>
                      ) : (
                        "–"
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {names.length > FIRST && (
        <button type="button" class="plain small" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? `Show the ${FIRST} worst` : `Show all ${names.length}`}
        </button>
      )}
    </section>
  );
}

function Head({ first, plans, isNumber = false }: { first: string; plans: Plan[]; isNumber?: boolean }) {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {plans.map(({ id, name }) => (
          <th key={id} scope="col" class={isNumber ? "right" : ""}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Differences({ plans }: { plans: Plan[] }) {
  const names = differing(plans);
  if (plans.length < 2) return null;
  return (
    <section class="card" aria-labelledby="differences">
      <h2 id="differences">Where they differ</h2>
      {names.length === 0 ? (
        <p class="muted">All plans release every attribute in the same way.</p>
      ) : (
        <div class="wide" tabIndex={0} role="group" aria-label="Attributes that plans release differently">
          <table>
            <Head first="Attribute" plans={plans} />
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {plans.map((item) => (
                    <td key={item.id}>{way(item, name)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
