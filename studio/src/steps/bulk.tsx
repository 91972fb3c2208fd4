// What is done to many attributes at once, and groups whose sliders move together.
import { useState } from "preact/hooks";
import type { Plan } from "../messages.ts";
import { Choice, NumberBox, Slider } from "../parts/fields.tsx";
import { many } from "../state/format.ts";
import { BUDGETS } from "../state/scale.ts";
import { change, moved, move, state } from "../state/store.ts";
import { selected, selectOnly } from "./selection.ts";

/** Return the budget that all of these attributes have, or null where they differ. */
export function commonBudget(active: Plan, names: string[], over: ReadonlyMap<string, number>): number | null {
  const wanted = new Set(names);
  const budgets = new Set(
    active.releases
      .filter(({ attribute, epsilon }) => wanted.has(attribute) && epsilon !== null)
      .map(({ attribute, epsilon }) => over.get(attribute) ?? epsilon),
  );
  return budgets.size === 1 ? ([...budgets][0] ?? null) : null;
}

/** One slider for those that are selected, or for all that are shown. */
export function Bulk({ active, shown }: { active: Plan; shown: string[] }) {
  const chosen = [...selected.value];
  const [isOpen, setOpen] = useState(false);
  const names = chosen.length > 0 ? chosen : shown;
  const whom = chosen.length > 0 ? `${chosen.length} selected` : `all ${shown.length} shown`;
  const taken = active.releases.filter(({ attribute, epsilon }) => epsilon !== null && names.includes(attribute)).map(({ attribute }) => attribute);
  const budget = commonBudget(active, taken, moved.value);
  const isAll = shown.length > 0 && shown.every((name) => selected.value.has(name));
  const each = (withheld: boolean): void => change([{ change: "withhold", plan: active.id, attributes: names, withheld }]);
  return (
    <div class="card bulk" role="group" aria-label={`Set ${whom} at once`}>
      <label class="check">
        <input
          type="checkbox"
          aria-label="Select all shown"
          checked={isAll}
          onChange={(event) => selectOnly(event.currentTarget.checked ? shown : [])}
        />
        <b>Set {whom}</b>
      </label>
      <span class="pair budget">
        <Slider label={`Budget of ${whom}`} value={budget ?? 1} scale={BUDGETS} disabled={taken.length === 0} onValue={(value, gesture) => move(taken, value, gesture)} />
        <NumberBox
          label={`Budget of ${whom} as a number`}
          value={budget}
          empty="differ"
          min={1e-6}
          max={699}
          disabled={taken.length === 0}
          onValue={(value) => value !== null && move(taken, value)}
        />
      </span>
      <button type="button" class="plain small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Less" : "More"}
      </button>
      {isOpen && <More active={active} names={names} onEach={each} />}
    </div>
  );
}

function More({ active, names, onEach }: { active: Plan; names: string[]; onEach: (withheld: boolean) => void }) {
  const [name, setName] = useState("");
  const general = (state.value?.mechanisms ?? []).map(({ name: id, title }): [string, string] => [id, title]);
  const group = (): void => {
    const rest = active.groups
      .map((item) => ({ ...item, attributes: item.attributes.filter((member) => !names.includes(member)) }))
      .filter(({ attributes, name: old }) => attributes.length > 0 && old !== name.trim());
    change([{ change: "groups", plan: active.id, groups: [...rest, { name: name.trim(), attributes: names }] }]);
    setName("");
    selectOnly([]);
  };
  return (
    <div class="controls more">
      <Choice
        label="Mechanism of all of these"
        value=""
        options={[["", "mechanism of all of these…"], ...general]}
        onValue={(value) => value && change([{ change: "mechanism", plan: active.id, attributes: names, mechanism: value }])}
      />
      <button type="button" class="small" disabled={names.length === 0} onClick={() => onEach(true)}>
        Withhold all
      </button>
      <button type="button" class="small" disabled={names.length === 0} onClick={() => onEach(false)}>
        Collect all
      </button>
      <span class="pair">
        <input type="text" aria-label="Name of the new group" placeholder="name of a group" value={name} maxLength={100} onInput={(event) => setName(event.currentTarget.value)} />
        <button type="button" class="small" disabled={name.trim() === "" || names.length < 2} onClick={group}>
          Move together
        </button>
      </span>
    </div>
  );
}

/** The groups of a plan: select one's attributes, or let them go their own ways again. */
export function Groups({ active }: { active: Plan }) {
  if (active.groups.length === 0) return null;
  return (
    <ul class="chips" aria-label="Groups whose sliders move together">
      {active.groups.map(({ name, attributes }) => (
        <li key={name} class="badge group">
          <button type="button" class="plain" aria-label={`Select the group ${name}`} onClick={() => selectOnly(attributes)}>
            {name}, {many(attributes.length, "attribute")}
          </button>
          <button
            type="button"
            class="plain"
            aria-label={`Dissolve the group ${name}`}
            onClick={() => change([{ change: "groups", plan: active.id, groups: active.groups.filter((item) => item.name !== name) }])}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}
