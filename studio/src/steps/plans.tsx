// The plans side by side: choose the one to work on, add another.
import { OUTCOMES } from "../parts/secrets.tsx";
import { change, figuresOf, plan, state } from "../state/store.ts";

/** At most so many plans are compared. */
export const MOST = 4;

/** Return a name that no plan has yet. */
export function freshName(taken: string[], stem = "Plan"): string {
  let number = taken.length + 1;
  while (taken.includes(`${stem} ${number}`)) number += 1;
  return `${stem} ${number}`;
}

/** Add a copy of the plan that is worked on. */
export function addCopy(): void {
  const [now, active] = [state.value, plan.value];
  if (now === null || active === null) return;
  change([{ change: "add plan", copy_of: active.id, name: freshName(now.plans.map(({ name }) => name)) }]);
}

/** The plans, as buttons of which one is pressed. */
export function PlanTabs() {
  const [now, active] = [state.value, plan.value];
  if (now === null || active === null) return null;
  return (
    <div class="tabs" role="group" aria-label="Plans">
      {now.plans.map(({ id, name }) => {
        const outcome = figuresOf(now, id)?.outcome;
        return (
          <button key={id} type="button" class="tab" aria-pressed={id === active.id} onClick={() => id !== active.id && change([{ change: "select plan", plan: id }])}>
            {outcome && <i class={`dot ${OUTCOMES[outcome].class}`} aria-hidden="true" />}
            {name}
            {outcome && <span class="hidden">, {outcome}</span>}
          </button>
        );
      })}
      <button type="button" class="plain small" disabled={now.plans.length >= MOST} onClick={addCopy}>
        Copy as a new plan
      </button>
    </div>
  );
}
