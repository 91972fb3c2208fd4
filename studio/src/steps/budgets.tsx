// Fourth step: budgets by sliders, and beside them what they give away and what they are worth.
import { useMemo, useState } from "preact/hooks";
import type { ErrorFigure, Plan, PlanFigures, Release, State } from "../messages.ts";
import { Choice, Long, Search } from "../parts/fields.tsx";
import { real } from "../state/format.ts";
import { attributes, figures, plan, state } from "../state/store.ts";
import { Bulk, Groups } from "./bulk.tsx";
import { Glance, LiveFigures, toFigures } from "./live.tsx";
import { PlanTabs } from "./plans.tsx";
import { ReleaseRow } from "./release.tsx";
import { selected } from "./selection.ts";

const ORDERS = {
  table: "as in the table",
  name: "by name",
  budget: "largest budget first",
  leak: "says most about others first",
  error: "largest error first",
} as const;
type Order = keyof typeof ORDERS;
const FILTERS = { all: "all attributes", released: "released", withheld: "withheld", secret: "secrets", selected: "selected" } as const;
type Filter = keyof typeof FILTERS;

const NONE: number[] = [];

/** Return for each released attribute what its report says most about another. */
export function loudest(now: PlanFigures | null): Map<string, { about: string; value: number }> {
  const found = new Map<string, { about: string; value: number }>();
  now?.pairs.releases.forEach((name, row) => {
    now.pairs.values[row]?.forEach((value, column) => {
      const best = found.get(name);
      if (value !== null && real(value) > (best?.value ?? -1)) found.set(name, { about: now.pairs.secrets[column] ?? "", value: real(value) });
    });
  });
  return found;
}

const finite = (value: number): number => Math.min(value, 1e12);

/** Return the releases in an order. */
export function ordered(releases: Release[], order: Order, now: PlanFigures | null): Release[] {
  if (order === "table") return releases;
  const errors = new Map(now?.errors.map((item) => [item.attribute, finite(real(item.error.value))]));
  const loud = loudest(now);
  const keys: Record<Exclude<Order, "table" | "name">, (release: Release) => number> = {
    budget: ({ epsilon, withheld }) => (withheld ? -1 : (epsilon ?? 1e12)),
    leak: ({ attribute }) => finite(loud.get(attribute)?.value ?? -1),
    error: ({ attribute }) => errors.get(attribute) ?? -1,
  };
  const byName = (one: Release, other: Release): number => one.attribute.localeCompare(other.attribute);
  if (order === "name") return [...releases].sort(byName);
  const key = keys[order];
  return [...releases].sort((one, other) => key(other) - key(one) || byName(one, other));
}

/** The step "Budgets". */
export function Budgets() {
  const [now, active] = [state.value, plan.value];
  if (now === null || active === null) return null;
  return (
    <>
      <header>
        <p class="eyebrow">Step 4</p>
        <h1>How much may each answer say?</h1>
        <PlanTabs />
      </header>
      <div class="split">
        <Releases now={now} active={active} shown={figures.value} />
        <LiveFigures />
      </div>
      <Glance />
    </>
  );
}

function Releases({ now, active, shown }: { now: State; active: Plan; shown: PlanFigures | null }) {
  const [wanted, setWanted] = useState("");
  const [order, setOrder] = useState<Order>("table");
  const [filter, setFilter] = useState<Filter>("all");
  const secrets = useMemo(() => new Set(now.settings.secrets.map(({ name }) => name)), [now.settings.secrets]);
  const errors = useMemo(() => new Map(shown?.errors.map((item): [string, ErrorFigure] => [item.attribute, item])), [shown?.errors]);
  const loud = useMemo(() => loudest(shown), [shown?.pairs]);
  const columns = useMemo(() => new Map(attributes.value.map((column) => [column.name, column])), [now.columns]);
  const fits: Record<Filter, (release: Release) => boolean> = {
    all: () => true,
    released: ({ withheld }) => !withheld,
    withheld: ({ withheld }) => withheld,
    secret: ({ attribute }) => secrets.has(attribute),
    selected: ({ attribute }) => selected.value.has(attribute),
  };
  const items = ordered(active.releases, order, shown).filter(
    (release) => fits[filter](release) && release.attribute.toLowerCase().includes(wanted.toLowerCase()),
  );
  const names = items.map(({ attribute }) => attribute);
  const groups = useMemo(() => new Map(active.groups.flatMap(({ name, attributes: members }) => members.map((member) => [member, name]))), [active.groups]);
  return (
    <section class="releases" aria-label="Budgets of the attributes">
      <a class="skip" href="#figures" onClick={toFigures}>
        Skip to the figures
      </a>
      <div class="toolbar">
        <Search label="Search attributes" value={wanted} onValue={setWanted} />
        <Choice label="Order" value={order} options={Object.entries(ORDERS) as [Order, string][]} onValue={setOrder} />
        <Choice label="Which attributes" value={filter} options={Object.entries(FILTERS) as [Filter, string][]} onValue={setFilter} />
        <span class="muted small" role="status">
          {items.length} of {active.releases.length}
        </span>
      </div>
      <Bulk active={active} shown={names} />
      <Groups active={active} />
      <Long
        items={items}
        noun="attribute"
        row={(release) => (
          <ReleaseRow
            key={release.attribute}
            release={release}
            plan={active.id}
            group={groups.get(release.attribute) ?? ""}
            size={columns.get(release.attribute)?.size ?? release.values}
            coarser={columns.get(release.attribute)?.coarser ?? NONE}
            error={errors.get(release.attribute) ?? null}
            about={loud.get(release.attribute)?.about ?? ""}
            says={loud.get(release.attribute)?.value ?? -1}
            isSecret={secrets.has(release.attribute)}
          />
        )}
      />
    </section>
  );
}
