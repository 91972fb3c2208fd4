// What the page shows. The server's state is the truth; the page adds what only this window knows.
import { batch, computed, signal } from "@preact/signals";
import type {
  Change, Column, Plan, PlanFigures, State, StudioEvent, Update, WorkOrder, WorkResult,
} from "../messages.ts";
import { queue, type Step } from "./queue.ts";
import { here, Refusal, type Server } from "./server.ts";
import { share } from "./sharing.ts";

/** Whether the server can be heard. "closed" means that it does not know this window any more. */
export type Link = "connecting" | "open" | "lost" | "closed";

/** The steps of the flow, in order. */
export const STEPS = ["columns", "secrets", "adversary", "budgets", "compare", "try", "export"] as const;
export type StepName = (typeof STEPS)[number];

export const state = signal<State | null>(null);
export const link = signal<Link>("connecting");
export const saved = signal<{ revision: number; problem: string }>({ revision: -1, problem: "" });
/** Whether changes are on their way: figures on screen are those of before. */
export const isBusy = signal(false);
/** Whether that takes so long that the figures should be greyed. */
export const isLate = signal(false);
const LATE = 250;
let late = 0;
/** What went wrong last, in words; empty once it was read. */
export const problem = signal("");
/** What a screen reader should say. */
export const said = signal("");
export const step = signal<StepName>("columns");
/** Budgets that were moved here and are not yet in the server's answer, by attribute of the active plan. */
export const moved = signal<ReadonlyMap<string, number>>(new Map());
/** The secret that is looked at closely; the worst one where nobody chose. */
export const chosen = signal<string | null>(null);

let server: Server = here;
const own = crypto.randomUUID();

/** The plan that is worked on. */
export const plan = computed<Plan | null>(() => {
  const now = state.value;
  return now?.plans.find(({ id }) => id === now.active) ?? now?.plans[0] ?? null;
});

/** The figures of a plan; null until there are some. */
export const figuresOf = (now: State, id: string): PlanFigures | null =>
  now.figures.find((figures) => figures.plan === id) ?? null;

/** The figures of the plan that is worked on. */
export const figures = computed(() => {
  const now = state.value;
  return now && plan.value ? figuresOf(now, plan.value.id) : null;
});

/** The columns that are attributes, not set aside. */
export const attributes = computed<Column[]>(() => (state.value?.columns ?? []).filter(isAttribute));

/** Whether a column is an attribute and not set aside. */
export const isAttribute = ({ kind }: Column): boolean => kind !== "identifier" && kind !== "ignored";

async function send(item: Step): Promise<void> {
  try {
    take(await server.change({ changes: item.changes, window: own, gesture: item.gesture }));
    problem.value = "";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refuse(error);
    if (error.status !== 0) await refetch();
  }
}

function refuse(error: Refusal): void {
  if (error.status === 401 || error.status === 403) link.value = "closed";
  problem.value = error.message;
}

const enqueue = queue(send, () => {
  clearTimeout(late);
  batch(() => {
    isBusy.value = isLate.value = false;
    moved.value = new Map();
  });
});

/** Make changes, as one step of the history; those of one gesture count as one. */
export function change(changes: Change[], gesture = ""): void {
  if (!isBusy.value) {
    isBusy.value = true;
    late = window.setTimeout(() => (isLate.value = true), LATE);
  }
  enqueue({ changes, gesture });
}

/** Move the budgets of attributes; the slider follows at once. */
export function move(names: string[], epsilon: number, gesture = ""): void {
  const now = plan.value;
  if (now === null || names.length === 0) return;
  moved.value = new Map([...moved.value, ...names.map((name) => [name, epsilon] as const)]);
  change([{ change: "budget", plan: now.id, attributes: names, epsilon }], gesture);
}

/** Return the attributes whose sliders move with this one's in the plan that is worked on. */
export function together(attribute: string): string[] {
  return plan.value?.groups.find((group) => group.attributes.includes(attribute))?.attributes ?? [attribute];
}

/** Take what an answer says; parts that it leaves out stay. */
export function take(update: Update): void {
  const now = state.value;
  if (now === null || update.revision < now.revision) return;
  const fresh = new Map(update.figures.map((item) => [item.plan, item]));
  const plans = update.plans ?? now.plans;
  const kept = plans.flatMap(({ id }) => fresh.get(id) ?? figuresOf(now, id) ?? []);
  state.value = share(now, {
    ...now,
    revision: update.revision,
    active: update.active,
    columns: update.columns ?? now.columns,
    settings: update.settings ?? now.settings,
    plans,
    figures: kept,
    history: update.history,
  });
}

/** Take what the stream says. */
export function hear(event: StudioEvent): void {
  const now = state.value;
  if (now === null) return;
  switch (event.event) {
    case "hello":
      if (event.revision !== now.revision) void refetch();
      return;
    case "figures":
      return refine(now, event.figures);
    case "work": {
      const work = [...now.work.filter(({ id }) => id !== event.work.id), event.work];
      state.value = { ...now, work };
      if (event.work.status === "failed") problem.value = event.work.text;
      return;
    }
    case "result":
      state.value = { ...now, results: [...now.results.filter((item) => !replaces(event.result, item)), event.result] };
      return;
    case "saved":
      saved.value = { revision: event.revision, problem: event.problem ?? "" };
      return;
    case "changed":
      if (event.window !== own) void refetch();
  }
}

/** Figures of an earlier revision than those on screen come too late. */
function refine(now: State, fresh: PlanFigures): void {
  const last = figuresOf(now, fresh.plan);
  if (!now.plans.some(({ id }) => id === fresh.plan) || (last !== null && fresh.revision < last.revision)) return;
  const rest = now.figures.filter((item) => item.plan !== fresh.plan);
  state.value = share(now, { ...now, figures: [...rest, fresh] });
}

const aim = (result: WorkResult): string => (result.result === "attacked" ? result.secret : "");

const replaces = (fresh: WorkResult, old: WorkResult): boolean =>
  fresh.result === old.result && fresh.plan === old.plan && aim(fresh) === aim(old);

/** Fetch everything anew. */
export async function refetch(): Promise<void> {
  try {
    const fresh = await server.state();
    batch(() => {
      state.value = share(state.value, fresh);
      saved.value = { revision: fresh.saved, problem: "" };
      link.value = "open";
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refuse(error);
  }
}

/** Start work; what it finds comes over the stream. */
export async function order(work: WorkOrder): Promise<void> {
  await asked(async () => hear({ event: "work", work: await server.order(work) }));
}

/** Stop work that is on its way. */
export const cancel = (id: string): Promise<void> => asked(() => server.cancel(id));

/** Put the state of a file in the place of this one; it can be undone. */
export const restore = (file: Blob): Promise<void> =>
  asked(async () => {
    await server.restore(file);
    await refetch();
  });

/** The command lines that do what the plan says. */
export const commands = (id: string): Promise<string> => server.commands(id);

/** One cell of the heat map in full. */
export const pair = (id: string, secret: string, through: string): ReturnType<Server["pair"]> =>
  server.pair(id, secret, through);

async function asked(action: () => Promise<void>): Promise<void> {
  try {
    await action();
    problem.value = "";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refuse(error);
  }
}

/** Connect to a server: fetch the state, then listen. Return how to stop. */
export function connect(to: Server = here): () => void {
  server = to;
  void refetch();
  return server.listen(hear, (isOpen) => {
    const wasLost = link.value === "lost" || link.value === "closed";
    if (isOpen && wasLost) void refetch();
    if (!isOpen && link.value !== "closed") link.value = "lost";
    if (isOpen && !wasLost) link.value = "open";
  });
}
