// Changes go to the server one after the other. Those of one gesture, such as the drag of a slider, replace each
// other while they wait: the newest wins, and at most thirty of them are sent in a second.
import type { Change } from "../messages.ts";

/** Changes that are made together; `gesture` is empty where they are no part of one. */
export interface Step {
  changes: Change[];
  gesture: string;
}

/** The least time between two steps of a gesture, in milliseconds. */
export const PACE = 1000 / 30;

/** Return a function that takes steps and hands them to `send`, in order, one at a time. */
export function queue(send: (step: Step) => Promise<void>, onIdle: () => void = () => undefined): (step: Step) => void {
  const waiting: Step[] = [];
  let isSending = false;
  let paced = -Infinity;
  const drain = async (): Promise<void> => {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const pause = next.gesture === "" ? 0 : paced + PACE - performance.now();
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      const step = waiting.shift() ?? next; // the newest may have taken the place of the one that was first
      if (step.gesture !== "") paced = performance.now();
      await send(step);
    }
    isSending = false;
    onIdle();
  };
  return (step) => {
    const last = waiting.at(-1);
    if (last !== undefined && step.gesture !== "" && last.gesture === step.gesture) waiting.pop();
    waiting.push(step);
    if (isSending) return;
    isSending = true;
    void drain();
  };
}
