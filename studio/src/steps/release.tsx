// One attribute of a plan: its slider, its mechanism, how finely it is told apart, and what that gives.
import { useComputed } from "@preact/signals";
import type { ErrorFigure, Release } from "../messages.ts";
import { Choice, NumberBox, Slider } from "../parts/fields.tsx";
import { Hint } from "../parts/tip.tsx";
import { brief, count, KINDS, nats, points } from "../state/format.ts";
import { BUDGETS } from "../state/scale.ts";
import { change, move, moved, state, together } from "../state/store.ts";
import { select, selected } from "./selection.ts";

/** Parts that keep their identity while nothing about the attribute changes, so that only rows that changed are drawn. */
interface Props {
  release: Release;
  plan: string;
  group: string;
  size: number;
  coarser: number[];
  error: ErrorFigure | null;
  about: string;
  says: number;
  isSecret: boolean;
}

/** A row of the list of budgets. */
export function ReleaseRow(props: Props) {
  const { release } = props;
  const { attribute: name, withheld } = release;
  const isSelected = useComputed(() => selected.value.has(name)).value;
  const epsilon = useComputed(() => moved.value.get(name) ?? null).value ?? release.epsilon;
  const set = (value: number, gesture = ""): void => move(together(name), value, gesture);
  return (
    <li class={withheld ? "row release withheld" : "row release"}>
      <div class="head">
        <label class="check">
          <input type="checkbox" aria-label={`Select ${name}`} checked={isSelected} onChange={(event) => select(name, event.currentTarget.checked)} />
          <b>{name}</b>
        </label>
        {props.isSecret && <span class="badge secret">secret</span>}
        {props.group && <span class="badge group">{props.group}</span>}
      </div>
      {withheld || release.epsilon === null ? (
        <span class="muted budget">{withheld ? "not collected" : "reported without noise"}</span>
      ) : (
        <span class="pair budget">
          <Slider label={`Budget of ${name}`} value={epsilon} scale={BUDGETS} onValue={set} />
          <NumberBox label={`Budget of ${name} as a number`} value={epsilon} min={1e-6} max={699} onValue={(value) => value !== null && set(value)} />
        </span>
      )}
      <Details {...props} />
      {!withheld && <Worth {...props} />}
    </li>
  );
}

function Details({ release, plan, size, coarser }: Props) {
  const { attribute: name, mechanism, withheld } = release;
  const mechanisms = (state.value?.mechanisms ?? []).map(({ name: id, title }): [string, string] => [id, title]);
  return (
    <span class="details">
      {!withheld && (
        <>
          <Choice
            label={`Mechanism of ${name}`}
            value={mechanism}
            options={mechanisms}
            title={state.value?.mechanisms.find((item) => item.name === mechanism)?.words}
            onValue={(value) => change([{ change: "mechanism", plan, attributes: [name], mechanism: value }])}
          />
          {(coarser.length > 0 || release.coarsened !== null) && <Coarsening release={release} plan={plan} size={size} coarser={coarser} />}
        </>
      )}
      <button
        type="button"
        class="plain small"
        aria-label={withheld ? `Collect again: ${name}` : `Withhold ${name}`}
        onClick={() => change([{ change: "withhold", plan, attributes: [name], withheld: !withheld }])}
      >
        {withheld ? "Collect again" : "Withhold"}
      </button>
    </span>
  );
}

function Coarsening({ release, plan, size, coarser }: Pick<Props, "release" | "plan" | "size" | "coarser">) {
  const { attribute: name, coarsened } = release;
  const numbers = [...new Set([...(coarsened === null ? [] : [coarsened]), ...coarser])].sort((one, other) => other - one);
  const options: [string, string][] = [["", `${count(size)} values`], ...numbers.map((number): [string, string] => [String(number), `${count(number)} of ${count(size)}`])];
  return (
    <Choice
      label={`Values of ${name} told apart`}
      value={coarsened === null ? "" : String(coarsened)}
      options={options}
      onValue={(value) => change([{ change: "coarsen", plan, attribute: name, values: value === "" ? null : Number(value) }])}
    />
  );
}

/** What the attribute's estimate is worth, and what its report says about others. */
function Worth({ release, error, about, says }: Props) {
  const { attribute: name } = release;
  const heard = says >= 0 ? `${nats(says === Infinity ? "infinity" : says)} nats about ${about}` : "";
  return (
    <span class="worth small muted">
      {error && (
        <span>
          <Hint
            label={`Expected error of ${name}: ${points(error.error.value)}, ${error.error.kind}`}
            class={error.error.stale ? "number stale" : "number"}
            tip={<ErrorWords item={error} />}
          >
            ± {points(error.error.value)}
          </Hint>
          {error.people_needed === null ? ", no crowd is enough" : `, ${count(error.people_needed)} people`}
        </span>
      )}
      {heard && (
        <span class="heard" title={`The report of ${name} says at most ${heard}`}>
          {heard}
        </span>
      )}
    </span>
  );
}

function ErrorWords({ item }: { item: ErrorFigure }) {
  const { error } = item;
  return (
    <>
      <p>
        <b>{error.kind}</b>: {KINDS[error.kind]}
      </p>
      <p>{item.words}</p>
      <dl>
        <dt>Method</dt>
        <dd>{error.method}</dd>
        <dt>Calling all values equally common</dt>
        <dd>off by {points(item.guess_error)}</dd>
        <dt>People needed</dt>
        <dd>{item.people_needed === null ? "no crowd is enough" : count(item.people_needed)}</dd>
        <dt>Verdict</dt>
        <dd>{item.verdict}</dd>
        {error.value !== "infinity" && (
          <>
            <dt>In full</dt>
            <dd>{brief(100 * error.value, 4)} points</dd>
          </>
        )}
      </dl>
    </>
  );
}
