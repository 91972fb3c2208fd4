// Long work: a button that starts it, its progress, and how to stop it.
import type { ComponentChildren } from "preact";
import type { WorkOrder, WorkResult, WorkState } from "../messages.ts";
import { duration } from "../state/format.ts";
import { cancel, order, state } from "../state/store.ts";

const isOn = ({ status }: WorkState): boolean => status === "waiting" || status === "running";

/** Return the work of a kind for a plan that is on its way. */
export const running = (kind: WorkState["kind"], plan: string): WorkState | undefined =>
  state.value?.work.find((work) => work.kind === kind && work.plan === plan && isOn(work));

/** Return the last result of a kind for a plan. */
export function resultOf<K extends WorkResult["result"]>(kind: K, plan: string): Extract<WorkResult, { result: K }> | undefined {
  const fits = (item: WorkResult): item is Extract<WorkResult, { result: K }> => item.result === kind && item.plan === plan;
  return state.value?.results.findLast(fits);
}

/** A button that orders work; while it runs, its progress and a button to stop it. */
export function WorkButton(props: { work: WorkOrder; children: ComponentChildren; class?: string; disabled?: boolean }) {
  const work = running(props.work.work, props.work.plan);
  if (work !== undefined) return <Progress work={work} />;
  return (
    <button type="button" class={props.class} disabled={props.disabled} onClick={() => void order(props.work)}>
      {props.children}
    </button>
  );
}

function Progress({ work }: { work: WorkState }) {
  const share = work.of ? { value: work.done, max: work.of } : {};
  return (
    <span class="progress" role="status">
      <progress aria-label={work.text || work.kind} {...share} />
      <span>
        {work.text || "Working"}
        {work.left != null && <small class="muted"> {duration(work.left)} left</small>}
      </span>
      <button type="button" class="plain small" onClick={() => void cancel(work.id)}>
        Stop
      </button>
    </span>
  );
}
