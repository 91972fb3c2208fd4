// The leakage of every secret against its limit.
import { useState } from "preact/hooks";
import type { PlanFigures, SecretFigures } from "../messages.ts";
import { factor, nats, percent, real, type Real } from "../state/format.ts";
import { chosen } from "../state/store.ts";
import { FigureWords, Nats } from "./figure.tsx";
import { Hint } from "./tip.tsx";

/** How an outcome is called and coloured. */
export const OUTCOMES = {
  exceeded: { title: "above its limit", class: "exceeded" },
  "not certified": { title: "not certified", class: "uncertified" },
  described: { title: "no limit", class: "described" },
  within: { title: "within its limit", class: "within" },
} as const;

const RANK = { exceeded: 0, "not certified": 1, described: 2, within: 3 } as const;
const FIRST = 6;

/** Return the secrets, those first that need a person's eye. */
export function worstFirst(secrets: SecretFigures[]): SecretFigures[] {
  return [...secrets].sort(
    (one, other) =>
      RANK[one.outcome] - RANK[other.outcome] || excess(other) - excess(one) || one.secret.localeCompare(other.secret),
  );
}

/** By how much a secret is over its limit; without a limit, how much it leaks. Two infinite ones are alike. */
function excess({ decisive, limit }: SecretFigures): number {
  const over = Math.min(real(decisive.value), 1e9) - (limit === null ? 0 : Math.min(real(limit), 1e9));
  return Number.isFinite(over) ? over : 0;
}

/** The secret that is looked at closely. */
export function watched(figures: PlanFigures): SecretFigures | null {
  return figures.secrets.find(({ secret }) => secret === chosen.value) ?? worstFirst(figures.secrets)[0] ?? null;
}

/** Say in one sentence how the plan stands. */
export function verdict(figures: PlanFigures): string {
  const { secrets, outcome } = figures;
  if (figures.problem) return figures.problem;
  if (secrets.length === 0) return "Nothing is released.";
  const broken = secrets.filter((item) => item.outcome === "exceeded").length;
  const open = secrets.filter((item) => item.outcome === "not certified").length;
  const isFinal = open === 0 || figures.pending.every((part) => part === "people needed");
  const number = `${broken && !isFinal ? "At least " : ""}${broken || open}`; // what is not certified yet may be above too
  const among = secrets.length === 1 ? "The secret" : `${number} of ${secrets.length} secrets`;
  const be = (number: number): string => (secrets.length === 1 || number === 1 ? "is" : "are");
  if (broken) return `${among} ${be(broken)} above the limit.`;
  if (open) return `${among} ${be(open)} not certified to be within the limit.`;
  if (outcome === "described") return "No limit is set, so nothing is judged.";
  return secrets.length === 1 ? "The secret is within its limit." : `All ${secrets.length} secrets are within their limits.`;
}

/** A bar for each secret: its own report, the rest, and where the limit is. */
export function SecretBars({ figures }: { figures: PlanFigures }) {
  const [isAll, setAll] = useState(false);
  const sorted = worstFirst(figures.secrets);
  const shown = isAll ? sorted : sorted.slice(0, FIRST);
  const top = Math.max(...shown.flatMap((item) => [cap(item.total.value), cap(item.limit ?? 0)]), 0.1) * 1.05;
  const active = watched(figures)?.secret;
  return (
    <>
      <ul class="bars">
        {shown.map((item) => (
          <SecretBar key={item.secret} item={item} top={top} isActive={item.secret === active} />
        ))}
      </ul>
      {sorted.length > FIRST && (
        <button type="button" class="plain small" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? `Show the ${FIRST} worst` : `Show all ${sorted.length} secrets`}
        </button>
      )}
    </>
  );
}

/** What is infinite has a full bar; its number says the rest. */
const cap = (value: Real): number => (value === "infinity" ? 0 : value);

function SecretBar({ item, top, isActive }: { item: SecretFigures; top: number; isActive: boolean }) {
  const { decisive, own, total, limit } = item;
  const width = (value: Real): number => (value === "infinity" ? 100 : Math.min(100, (100 * value) / top));
  const look = OUTCOMES[item.outcome];
  return (
    <li class={isActive ? "active" : ""}>
      <button type="button" class="plain name" aria-pressed={isActive} onClick={() => (chosen.value = item.secret)}>
        {item.secret}
      </button>
      <span class={`badge ${look.class}`}>{look.title}</span>
      <Nats figure={decisive} name={`All reports about ${item.secret}`} />
      <svg class={`bar ${look.class}${decisive.stale ? " stale" : ""}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect class="track" width="100" height="10" />
        {decisive !== total && real(total.value) > real(decisive.value) && <rect class="worst" width={width(total.value)} height="10" />}
        <rect class="whole" width={width(decisive.value)} height="10" />
        <rect class="own" width={Math.min(width(own.value), width(decisive.value))} height="10" />
        {limit !== null && <rect class="limit" x={Math.max(0, width(limit) - 0.5)} width="1" height="10" />}
      </svg>
      <small class="muted">
        own report <Nats figure={own} name={`Own report of ${item.secret}`} />
        {item.neighbour && item.through && (
          <>
            ; through <b>{item.through}</b> <Nats figure={item.neighbour} name={`${item.through} about ${item.secret}`} />
          </>
        )}
        {limit !== null && <>; limit {nats(limit)}</>}
      </small>
    </li>
  );
}

/** What it means for people: how much surer a guesser could become. */
export function OddsCard({ item }: { item: SecretFigures }) {
  const { odds } = item;
  return (
    <section class="card odds" aria-labelledby="odds">
      <h2 id="odds">What people risk about {item.secret}</h2>
      <p class={item.decisive.stale ? "stale" : ""}>{odds.words}</p>
      <div class="gauge" role="img" aria-label={`A guess of ${percent(odds.before)} becomes at most ${percent(odds.after)}`}>
        <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect class="track" width="100" height="6" />
          <rect class="after" width={100 * odds.after} height="6" />
          <rect class="before" width={100 * odds.before} height="6" />
        </svg>
      </div>
      <p class="muted small">
        Best guess <b>{odds.value}</b>: {percent(odds.before)} right without reports, at most {percent(odds.after)} with them. Odds move by
        at most {odds.factor === "infinity" ? "any factor" : factor(Math.log(odds.factor))}.
      </p>
      <Sides item={item} />
    </section>
  );
}

/** All bounds on the secret: what is surely reached, what is not exceeded, what holds at delta. */
function Sides({ item }: { item: SecretFigures }) {
  const rows = [
    ["Surely reached", item.lower],
    ["Not exceeded", item.total],
    ...item.at_delta.map((figure) => [`At delta, to ${figure.adversary === "population" ? "who knows the population" : "who knows the table"}`, figure] as const),
  ] as const;
  return (
    <dl class="facts small">
      {rows.map(([name, figure]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Nats figure={figure} name={name} /> <Hint class="kind" tip={<FigureWords figure={figure} />}>{figure.kind}</Hint>
          </dd>
        </div>
      ))}
    </dl>
  );
}
