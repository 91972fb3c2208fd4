// What the sliders give away, live: secrets against limits, who leaks about whom, odds, and the ways back.
import { signal } from "@preact/signals";
import type { Calibrated, NewBudget, PlanFigures, Remedied } from "../messages.ts";
import { HeatMap } from "../parts/heatmap.tsx";
import { OddsCard, SecretBars, verdict, watched } from "../parts/secrets.tsx";
import { resultOf, WorkButton } from "../parts/work.tsx";
import { Hint } from "../parts/tip.tsx";
import { brief, count, nats, points, real } from "../state/format.ts";
import { change, figures, isLate, plan, state } from "../state/store.ts";
import { OUTCOMES } from "../parts/secrets.tsx";

/** The column of figures beside the sliders. */
export function LiveFigures() {
  const [now, shown, active] = [state.value, figures.value, plan.value];
  if (now === null || active === null) return null;
  return (
    <section id="figures" data-revision={shown?.revision} class={isLate.value ? "figures busy" : "figures"} tabIndex={-1} aria-label="Figures of the plan">
      {shown === null ? <p class="muted">The first figures are being computed.</p> : <Shown shown={shown} id={active.id} />}
    </section>
  );
}

/** On narrow screens the figures are below the sliders; the verdict and the worst secret stay in view. */
export function Glance() {
  const shown = figures.value;
  const item = shown && watched(shown);
  if (!shown || !item) return null;
  return (
    <a class={`glance ${OUTCOMES[shown.outcome].class}`} href="#figures" onClick={toFigures}>
      <strong>{verdict(shown)}</strong>
      <span>
        {item.secret}: {nats(item.decisive.value)}
        {item.limit !== null && ` of ${nats(item.limit)}`}
      </span>
    </a>
  );
}

/** The address names the step, so a jump inside it moves the focus instead. */
export function toFigures(event: Event): void {
  event.preventDefault();
  const figures = document.getElementById("figures");
  figures?.focus({ preventScroll: true });
  figures?.scrollIntoView();
}

function Shown({ shown, id }: { shown: PlanFigures; id: string }) {
  const item = watched(shown);
  const limit = shown.secrets.reduce((most, secret) => Math.max(most, secret.limit === null ? 0 : Math.min(real(secret.limit), 20)), 0);
  return (
    <>
      <div class={`verdict ${OUTCOMES[shown.outcome].class}`}>
        <strong>{verdict(shown)}</strong>
        <Worth shown={shown} />
      </div>
      {shown.pending.length > 0 && (
        <p class="pending small muted" role="status">
          <i class="spinner" aria-hidden="true" /> Still being computed: {shown.pending.join(", ")}
        </p>
      )}
      <Ways shown={shown} id={id} />
      {shown.secrets.length > 0 && (
        <section class="card" aria-labelledby="leaks">
          <h2 id="leaks">
            Every secret against its limit <small class="muted">nats</small>
          </h2>
          <SecretBars figures={shown} />
        </section>
      )}
      {item && <OddsCard item={item} />}
      {shown.pairs.releases.length > 0 && shown.pairs.secrets.length > 0 && (
        <section class="card" aria-labelledby="whom">
          <h2 id="whom">
            Who leaks about whom{" "}
            <Hint class="kind" tip={<p>What each report alone says about each secret. All reports together say more: that is in the bars above.</p>}>
              {shown.pairs.kind}
            </Hint>
          </h2>
          <HeatMap pairs={shown.pairs} plan={id} revision={shown.revision} limit={limit || null} />
        </section>
      )}
    </>
  );
}

/** What estimates are worth: the mean expected error over attributes with one, the largest, the people that all need. */
interface WorthOfAll {
  mean: number;
  worst: string;
  largest: number;
  people: number | null;
  stale: "stale" | "";
}

/** Return what estimates are worth; greyed until the errors of all attributes, and the people, are final. */
export function worth(shown: PlanFigures): WorthOfAll | null {
  const items = shown.errors.filter(({ error }) => error.value !== "infinity");
  if (items.length === 0) return null;
  const values = items.map(({ error }) => real(error.value));
  const place = values.indexOf(Math.max(...values));
  const isOpen = shown.errors.some(({ people_needed }) => people_needed === null);
  return {
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    worst: items[place]?.attribute ?? "",
    largest: values[place] ?? 0,
    people: isOpen ? null : Math.max(...shown.errors.map(({ people_needed }) => people_needed ?? 0)),
    stale: shown.pending.includes("people needed") ? "stale" : "",
  };
}

function Worth({ shown }: { shown: PlanFigures }) {
  const found = worth(shown);
  if (found === null) return null;
  return (
    <span class={found.stale}>
      With {count(shown.people)} people, shares are off by {points(found.mean)} on average; <b>{found.worst}</b> by {points(found.largest)}.{" "}
      {found.people === null ? "For some no crowd is enough." : `For the wanted precision, ${count(found.people)} people.`}
    </span>
  );
}

/** Offers that were taken or put aside, by the work that made them. */
const gone = signal<ReadonlySet<string>>(new Set());

function putAside(work: string): void {
  gone.value = new Set([...gone.value, work]);
}

function adopt(plan: string, work: string, choice: number): void {
  change([{ change: "adopt", plan, work, choice }]);
  putAside(work);
}

/** The ways back under the limits, as buttons. */
function Ways({ shown, id }: { shown: PlanFigures; id: string }) {
  const isJudged = shown.secrets.some(({ limit }) => limit !== null);
  const [calibrated, remedied] = [resultOf("calibrated", id), resultOf("remedied", id)];
  return (
    <section class="ways" aria-label="Ways back under the limits">
      <div class="buttons">
        <WorkButton work={{ work: "calibrate", plan: id }} class="primary" disabled={!isJudged}>
          Calibrate for me
        </WorkButton>
        <WorkButton work={{ work: "remedies", plan: id }} disabled={!isJudged}>
          Find remedies
        </WorkButton>
        {!isJudged && <small class="muted">Both need a limit, from step 2.</small>}
      </div>
      {calibrated && !gone.value.has(calibrated.work) && <Offer result={calibrated} />}
      {remedied && !gone.value.has(remedied.work) && <Offers result={remedied} />}
    </section>
  );
}

/** Lines of which the first say what matters. */
function Lines({ lines }: { lines: string[] }) {
  const [first, ...rest] = lines;
  return (
    <>
      {first && <p class="small">{first}</p>}
      {rest.length > 0 && (
        <details class="small">
          <summary>More about it</summary>
          {rest.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </details>
      )}
    </>
  );
}

function Offer({ result }: { result: Calibrated }) {
  return (
    <section class="card offer" aria-label="Calibrated budgets">
      <h2>The largest budgets that keep every limit</h2>
      <Lines lines={result.words} />
      <Budgets items={result.budgets} />
      <div class="buttons">
        <button type="button" class="primary" onClick={() => adopt(result.plan, result.work, 0)}>
          Use these budgets
        </button>
        <button type="button" class="plain" onClick={() => putAside(result.work)}>
          Not now
        </button>
      </div>
    </section>
  );
}

function Offers({ result }: { result: Remedied }) {
  return (
    <section class="card offer" aria-label="Remedies">
      <h2>{result.offers.length === 0 ? "No remedy was found" : "Ways back under the limits"}</h2>
      <Lines lines={result.words} />
      <ol class="offers">
        {result.offers.map((offer, place) => (
          <li key={place}>
            <h3>
              {offer.title} <span class={`badge ${OUTCOMES[offer.outcome].class}`}>{offer.outcome}</span>
            </h3>
            <p class="small">Shares would be off by {points(offer.error)} on average.</p>
            <Lines lines={offer.words} />
            <Budgets items={offer.changed} />
            {offer.is_adoptable && (
              <button type="button" onClick={() => adopt(result.plan, result.work, place)}>
                Use: {offer.title}
              </button>
            )}
          </li>
        ))}
      </ol>
      <button type="button" class="plain" onClick={() => putAside(result.work)}>
        Not now
      </button>
    </section>
  );
}

const FEW = 8;

function Budgets({ items }: { items: NewBudget[] }) {
  if (items.length === 0) return null;
  const words = items.slice(0, FEW).map(({ attribute, epsilon, withheld }) => `${attribute} ${withheld ? "withheld" : epsilon === null ? "as it is" : brief(epsilon)}`);
  const rest = items.length - words.length;
  return (
    <p class="small muted">
      {words.join(", ")}
      {rest > 0 && ` and ${rest} more`}
    </p>
  );
}
