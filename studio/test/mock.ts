// A state with as many attributes as a test wants, and a server that answers from it.
import type { Change, Changes, Column, Figure, Plan, PlanFigures, State, StudioEvent, Update } from "../src/messages.ts";
import type { Server } from "../src/state/server.ts";

/** A figure; parts of it may be given. */
export function figure(value: number | "infinity", part: Partial<Figure> = {}): Figure {
  return { value, kind: "exact", method: "exact joint", witness: "class=1st, age=adult", support: 3, adversary: "report", delta: null, ...part };
}

function column(name: string, place: number): Column {
  const size = 2 + (place % 5);
  const values = Array.from({ length: size }, (_, code) => ({ label: `value ${code}`, count: 100 * (code + 1), share: (2 * (code + 1)) / (size * (size + 1)) }));
  return {
    name, kind: place % 5 === 3 ? "numeric" : "categorical", size, values, unlisted: 0, missing: "absent", missing_share: place % 7 === 2 ? 0.04 : 0,
    bins: place % 5 === 3 ? size : null, kinds: ["categorical", "ordinal", "ignored"], notes: place % 9 === 4 ? ["Guessed from 1,000 rows."] : [], is_stated: false, coarser: size > 3 ? [2, 3] : [],
  };
}

function figuresOf(plan: Plan, secrets: string[], revision: number): PlanFigures {
  const released = plan.releases.filter(({ withheld }) => !withheld);
  const weight = (name: string, about: string): number => (((name.length * 7 + about.length * 13 + name.charCodeAt(name.length - 1) * about.charCodeAt(about.length - 1)) % 17) + 1) / 20;
  const says = (name: string, about: string): number => Math.min(1, weight(name, about)) * (plan.releases.find(({ attribute }) => attribute === name)?.epsilon ?? 1);
  const leaks = secrets.map((secret): PlanFigures["secrets"][number] => {
    const own = plan.releases.find(({ attribute }) => attribute === secret)?.epsilon ?? 0;
    const others = released.filter(({ attribute }) => attribute !== secret).map(({ attribute }) => [attribute, says(attribute, secret)] as const);
    const [through, most] = others.reduce((best, item) => (item[1] > best[1] ? item : best), ["", 0] as readonly [string, number]);
    const total = own + 0.3 * others.reduce((sum, [, value]) => sum + value, 0);
    return {
      secret, limit: 2, outcome: total <= 2 ? "within" : "exceeded", statement: "", own: figure(own), through: through || null,
      neighbour: through ? figure(most) : null, lower: figure(total * 0.9, { kind: "lower", stale: true }), total: figure(total, { kind: "certified" }),
      at_delta: [], decisive: figure(total, { kind: "certified" }),
      odds: { value: "male", before: 0.6, after: Math.min(0.99, 0.6 + total / 20), factor: Math.exp(total), words: `A guess about ${secret} that is right in 60.0 % of cases becomes right in at most ${(60 + 5 * total).toFixed(1)} %.` },
    };
  });
  return {
    plan: plan.id, revision, outcome: leaks.some(({ outcome }) => outcome === "exceeded") ? "exceeded" : "within", secrets: leaks,
    pairs: { releases: released.map(({ attribute }) => attribute), secrets, kind: "exact", values: released.map(({ attribute }) => secrets.map((secret) => (secret === attribute ? null : says(attribute, secret)))) },
    errors: released.map(({ attribute, epsilon }) => ({ attribute, error: figure(0.01 / (epsilon ?? 1), { kind: "estimate", method: "closed form" }), guess_error: 0.2, verdict: "useful", people_needed: Math.round(5000 / (epsilon ?? 1) ** 2), words: "Off by about a point." })),
    people: 48842, pending: [], problem: "",
  };
}

/** A state of so many attributes. */
export function mockState(many = 6, named = 2): State {
  const names = ["sex", "age", "class", "income", "education", "marital status"];
  const columns = Array.from({ length: many }, (_, place) => column(names[place] ?? `attribute ${place + 1}`, place));
  const secrets = columns.slice(0, named).map(({ name }) => name);
  const plan: Plan = { id: "a", name: "Plan 1", groups: [], releases: columns.map(({ name, size }) => ({ attribute: name, mechanism: "grr", epsilon: 1, withheld: false, values: size, coarsened: null, realised: 1 })) };
  return {
    version: 1, revision: 1, table: { name: "people.parquet", rows: 48842, columns: many, set_aside: 0, notes: [] },
    banner: { text: "These figures are computed from raw data and are themselves an unprotected statement about them. Do not publish them.", is_raw: true },
    columns, settings: { secrets: secrets.map((name) => ({ name })), limit: 2, adversary: { view: "report", decide_by: null }, delta: null, people: 48842, precision: 0.01, purpose: "" },
    plans: [plan], active: "a",
    mechanisms: [{ name: "grr", title: "randomised response", has_budget: true, words: "" }, { name: "oue", title: "unary encoding", has_budget: true, words: "" }, { name: "laplace", title: "Laplace noise", has_budget: true, words: "" }, { name: "identity", title: "as it is", has_budget: false, words: "" }],
    figures: [figuresOf(plan, secrets, 1)], history: { undo: null, redo: null }, work: [], results: [], saved: 1,
  };
}

function applied(state: State, change: Change): State {
  const onPlan = (id: string, edit: (plan: Plan) => Plan): State => ({ ...state, plans: state.plans.map((plan) => (plan.id === id ? edit(plan) : plan)) });
  switch (change.change) {
    case "budget":
      return onPlan(change.plan, (plan) => ({ ...plan, releases: plan.releases.map((release) => (change.attributes.includes(release.attribute) ? { ...release, epsilon: change.epsilon } : release)) }));
    case "withhold":
      return onPlan(change.plan, (plan) => ({ ...plan, releases: plan.releases.map((release) => (change.attributes.includes(release.attribute) ? { ...release, withheld: change.withheld } : release)) }));
    case "mechanism":
      return onPlan(change.plan, (plan) => ({ ...plan, releases: plan.releases.map((release) => (change.attributes.includes(release.attribute) ? { ...release, mechanism: change.mechanism } : release)) }));
    case "groups":
      return onPlan(change.plan, (plan) => ({ ...plan, groups: change.groups }));
    case "secrets":
      return { ...state, settings: { ...state.settings, secrets: change.secrets, limit: change.limit } };
    case "adversary":
      return { ...state, settings: { ...state.settings, adversary: change.adversary, delta: change.delta } };
    case "select plan":
      return { ...state, active: change.plan };
    case "rename plan":
      return onPlan(change.plan, (plan) => ({ ...plan, name: change.name }));
    case "add plan": {
      const source = state.plans.find(({ id }) => id === (change.copy_of ?? "a"));
      return source ? { ...state, plans: [...state.plans, { ...source, id: `p${state.plans.length}`, name: change.name }] } : state;
    }
    default:
      return state;
  }
}

/** A server in memory; `asked` keeps what it was sent, and `tell` speaks over its stream. */
export function mockServer(first: State = mockState()) {
  let state = first;
  const asked: Changes[] = [];
  let hear: (event: StudioEvent) => void = () => undefined;
  let link: (isOpen: boolean) => void = () => undefined;
  const server: Server = {
    state: async () => structuredClone(state),
    change: async (changes): Promise<Update> => {
      asked.push(changes);
      state = changes.changes.reduce(applied, state);
      const revision = state.revision + 1;
      const secrets = state.settings.secrets.map(({ name }) => name);
      const figures = state.plans.map((plan) => figuresOf(plan, secrets, revision));
      state = { ...state, revision, figures, history: { undo: "budget", redo: null } };
      return structuredClone({ revision, columns: null, settings: state.settings, plans: state.plans, active: state.active, figures, history: state.history, milliseconds: 1 });
    },
    pair: async (_plan, secret, through) => ({ secret, through, figure: figure(0.5), saturation: 1.2, curve: [[0.1, 0.05], [1, 0.5], [10, 1.1]] }),
    order: async (work) => ({ id: "w1", kind: work.work, plan: work.plan, status: "running", text: "Searching", done: 1, of: 4, revision: state.revision }),
    cancel: async () => undefined,
    commands: async () => "sidelight audit people.parquet --plan plan.toml\n",
    restore: async () => server.change({ changes: [] as unknown as Change[], window: "" }),
    listen: (onEvent, onLink) => {
      hear = onEvent;
      link = onLink;
      onLink(true);
      return () => undefined;
    },
  };
  return { server, asked, tell: (event: StudioEvent) => hear(event), cut: (isOpen: boolean) => link(isOpen), now: () => state };
}
