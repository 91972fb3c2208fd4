// The only file that talks to the server: it makes every request, and none leaves this machine.
import type { Changes, PairDetail, Problem, State, StudioEvent, Update, WorkOrder, WorkState } from "../messages.ts";

/** Why the server refused, or that it cannot be reached (status 0). */
export class Refusal extends Error {
  /** Make one from the status and the words of the server. */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refusal(0, "The studio's server does not answer. Is the command still running?");
  }
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => null)) as Problem | null;
  throw new Refusal(answer.status, problem?.detail || problem?.title || `The server answered ${answer.status}.`);
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  return (await (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json()) as T;
}

/** What the page may ask; tests put another one in its place. */
export interface Server {
  state(): Promise<State>;
  change(changes: Changes): Promise<Update>;
  pair(plan: string, secret: string, through: string): Promise<PairDetail>;
  order(work: WorkOrder): Promise<WorkState>;
  cancel(id: string): Promise<void>;
  commands(plan: string): Promise<string>;
  restore(file: Blob): Promise<Update>;
  listen(onEvent: (event: StudioEvent) => void, onLink: (isOpen: boolean) => void): () => void;
}

const EVENTS = ["hello", "figures", "work", "result", "saved", "changed"];
const RETRY = 1000;

/** Listen to the stream; it is opened again after it broke, whatever the reason. */
function listen(onEvent: (event: StudioEvent) => void, onLink: (isOpen: boolean) => void): () => void {
  let source: EventSource | undefined;
  let timer = 0;
  const open = (): void => {
    source = new EventSource("/api/events");
    source.onopen = () => onLink(true);
    source.onerror = () => {
      source?.close();
      onLink(false);
      timer = window.setTimeout(open, RETRY);
    };
    for (const name of EVENTS) {
      source.addEventListener(name, (event) => onEvent(JSON.parse((event as MessageEvent<string>).data) as StudioEvent));
    }
  };
  open();
  return () => {
    window.clearTimeout(timer);
    source?.close();
  };
}

/** Return where a plan can be fetched in one of its forms. */
export const exported = (form: string, plan: string): string => `/api/export/${form}?${new URLSearchParams({ plan })}`;

/** The server that the page came from. */
export const here: Server = {
  state: async () => (await (await ask("/api/state")).json()) as State,
  change: (changes) => post("/api/changes", changes),
  pair: async (plan, secret, through) => {
    const query = new URLSearchParams({ plan, secret, through });
    return (await (await ask(`/api/pair?${query}`)).json()) as PairDetail;
  },
  order: (work) => post("/api/work", work),
  cancel: async (id) => void (await ask(`/api/work/${encodeURIComponent(id)}`, { method: "DELETE" })),
  commands: async (plan) => (await ask(exported("commands", plan))).text(),
  restore: async (file) => {
    const headers = { "content-type": "application/json" };
    return (await (await ask("/api/import", { method: "POST", headers, body: file })).json()) as Update;
  },
  listen,
};
