// Third step: who tries to learn, how surely a limit must hold, and how many people will answer.
import type { Adversary as Who, Settings } from "../messages.ts";
import { Choice, Field, NumberBox, Slider } from "../parts/fields.tsx";
import { ADVERSARIES, brief, count, many } from "../state/format.ts";
import { DELTAS } from "../state/scale.ts";
import { change, state } from "../state/store.ts";

const VIEWS = [
  ["report", "Keeps whole reports", "Sees every report as it was sent and uses all it says. Promise for this one unless you know better."],
  ["guess", "Keeps one guess of each", "Reads each report as one value, its best guess, and forgets the rest. A weaker adversary: figures are lower."],
] as const;

type Decider = NonNullable<Who["decide_by"]>;

/** Return who can decide: figures at delta are there only where a delta is. */
export function deciders(settings: Settings): [Decider | "", string][] {
  const { view } = settings.adversary;
  const usual: [Decider | "", string] = ["", settings.delta === null ? "the usual one: the worst case" : "the usual one at this delta"];
  const worst: [Decider, string] = [view, ADVERSARIES[view]];
  const softer: Decider[] = settings.delta === null ? [] : ["population", "table"];
  return [usual, worst, ...softer.map((name): [Decider, string] => [name, `${ADVERSARIES[name]}, at delta`])];
}

/** The step "Adversary". */
export function Adversary() {
  const now = state.value;
  if (now === null) return null;
  const { settings } = now;
  const { adversary, delta } = settings;
  const set = (part: Partial<Who>, next = delta, gesture = ""): void =>
    change([{ change: "adversary", adversary: { ...adversary, ...part }, delta: next }], gesture);
  return (
    <>
      <header>
        <p class="eyebrow">Step 3</p>
        <h1>Who tries to learn, and how surely must it hold?</h1>
        <p class="lead">A figure is only as good as the adversary it is for. Every figure of the studio names its own.</p>
      </header>
      <fieldset class="card">
        <legend>What the adversary keeps of a report</legend>
        {VIEWS.map(([view, title, words]) => (
          <label key={view} class="option">
            <input type="radio" name="view" checked={adversary.view === view} onChange={() => set({ view, decide_by: null })} />
            <span>
              <b>{title}</b>
              <small class="muted">{words}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset class="card">
        <legend>How surely it must hold</legend>
        <label class="option">
          <input type="radio" name="delta" checked={delta === null} onChange={() => set({ decide_by: null }, null)} />
          <span>
            <b>Always</b>
            <small class="muted">The worst case over everything that could be reported. Rests on the rarest person of the table.</small>
          </span>
        </label>
        <label class="option">
          <input type="radio" name="delta" checked={delta !== null} onChange={() => set({}, 1e-3)} />
          <span>
            <b>But for a small probability, delta</b>
            <small class="muted">A release may say more than the figure with this probability. Adds figures for who knows the population, and for who knows the table.</small>
          </span>
        </label>
        {delta !== null && (
          <Field label="Delta" note={`One release in ${count(Math.round(1 / delta))} may say more.`}>
            <span class="pair">
              <Slider label="Delta" value={delta} scale={DELTAS} onValue={(value, gesture) => set({}, value, gesture)} />
              <NumberBox label="Delta as a number" value={delta} min={1e-12} max={0.5} onValue={(value) => set({}, value)} />
            </span>
          </Field>
        )}
        <Field label="Limits must be kept for">
          <Choice
            label="Who decides"
            value={adversary.decide_by ?? ""}
            options={deciders(settings)}
            onValue={(name) => set({ decide_by: name || null })}
          />
        </Field>
      </fieldset>
      <Expectations settings={settings} />
    </>
  );
}

/** How many people will report, how precise frequencies should be, and what for. */
function Expectations({ settings }: { settings: Settings }) {
  const { people, precision, purpose } = settings;
  const set = (part: Partial<Pick<Settings, "people" | "precision" | "purpose">>): void =>
    change([{ change: "expectations", people, precision, purpose, ...part }]);
  return (
    <section class="card" aria-labelledby="expectations">
      <h2 id="expectations">What the collection is for</h2>
      <div class="controls">
        <Field label="People who will report" note={`now ${many(people, "person").replace("persons", "people")}`}>
          <NumberBox label="People who will report" value={people} min={1} max={1e12} whole onValue={(value) => value !== null && set({ people: value })} />
        </Field>
        <Field label="Wanted precision, in percentage points" note={`Shares should be off by about ${brief(100 * precision, 2)} points.`}>
          <NumberBox
            label="Wanted precision in percentage points"
            value={Number((100 * precision).toPrecision(6))}
            min={0.0001}
            max={99}
            onValue={(value) => value !== null && set({ precision: value / 100 })}
          />
        </Field>
      </div>
      <Field label="Purpose, in words" note="It goes into the project file and the report.">
        <textarea
          rows={2}
          aria-label="Purpose of the collection"
          maxLength={10000}
          value={purpose}
          onChange={(event) => set({ purpose: event.currentTarget.value })}
        />
      </Field>
    </section>
  );
}
