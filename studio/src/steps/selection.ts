// The attributes that are selected on the step "Budgets", to be set at once.
import { computed, signal } from "@preact/signals";
import { plan } from "../state/store.ts";

const ticked = signal<ReadonlySet<string>>(new Set());

/** Those that are selected and still in the plan. */
export const selected = computed<ReadonlySet<string>>(() => {
  const names = new Set(plan.value?.releases.map(({ attribute }) => attribute));
  return new Set([...ticked.value].filter((name) => names.has(name)));
});

/** Select an attribute, or leave it out. */
export function select(name: string, isOn: boolean): void {
  const next = new Set(ticked.value);
  if (isOn) next.add(name);
  else next.delete(name);
  ticked.value = next;
}

/** Select these and no others. */
export function selectOnly(names: Iterable<string>): void {
  ticked.value = new Set(names);
}
