// Made from src/sidelight/studio/messages by `python -m sidelight.studio.typescript`; do not edit.
// An infinite figure is the string "infinity".

/** Add a plan: a copy of another one, or one as at the start. */
export interface AddPlan {
  change: "add plan";
  copy_of?: string | null;
  name: string;
}

/** Put what work has found in the place of a plan: a calibration, or one of several remedies. */
export interface Adopt {
  change: "adopt";
  plan: string;
  work: string;
  choice?: number;
}

/** Who tries to learn the secrets. */
export interface Adversary {
  /** Keeps whole reports, or one guessed value of each. */
  view: "report" | "guess";
  /** For whom limits must be kept; None takes the usual one. */
  decide_by: "report" | "guess" | "model" | "model guess" | "population" | "table" | "tree" | null;
}

/** How well the best guesser guesses, beside who sees no reports and beside the limit. */
export interface Attacked {
  result: "attacked";
  work: string;
  plan: string;
  revision: number;
  secret: string;
  success: number;
  lower: number;
  upper: number;
  /** Who guesses without reports. */
  baseline: number;
  /** What is possible at most; None where it is not known. */
  bound: number | null;
  words: string[];
}

/** What must be said wherever a figure is shown: it comes from raw data. */
export interface Banner {
  text: string;
  is_raw: boolean;
}

/** Find the largest budgets that keep every limit. */
export interface Calibrate {
  work: "calibrate";
  plan: string;
}

/** The budgets that keep every limit; adopt choice 0. */
export interface Calibrated {
  result: "calibrated";
  work: string;
  plan: string;
  revision: number;
  budgets: NewBudget[];
  words: string[];
}

/** Another window changed the state: fetch it again. */
export interface ChangedEvent {
  event: "changed";
  revision: number;
  window: string;
}

/** Changes that are made together, as one step of the history; the body of `POST /api/changes`. */
export interface Changes {
  changes: (SetBudget | SetMechanism | Withhold | Coarsen | SetSecrets | SetAdversary | SetColumn | SetGroups | SetExpectations | AddPlan | RemovePlan | RenamePlan | SelectPlan | Adopt | Undo | Redo)[];
  /** Who asks, so that other windows are told and this one is not. */
  window?: string;
  /** Changes that follow each other with the same one, as of one drag, are one step of the history. */
  gesture?: string;
}

/** Tell fewer values of an attribute apart in a plan; None undoes it. */
export interface Coarsen {
  change: "coarsen";
  plan: string;
  attribute: string;
  values: number | null;
}

/** What a simulated collection estimates. */
export interface Collected {
  result: "collected";
  work: string;
  plan: string;
  revision: number;
  people: number;
  /** The first 2,000 at most. */
  rows: EstimateRow[];
  unlisted: number;
  error: number | "infinity";
  words: string[];
}

/** A column as it is read: an attribute, or set aside. */
export interface Column {
  name: string;
  kind: "categorical" | "ordinal" | "numeric" | "date" | "time" | "identifier" | "ignored";
  /** How many values it has; 0 where it is set aside. */
  size: number;
  /** In the order of codes; the first 200 at most. */
  values: ValueCount[];
  /** How many values are not in the list. */
  unlisted: number;
  missing: "absent" | "value" | "drop";
  missing_share: number;
  /** How many bins numbers, dates or times have; None for others. */
  bins: number | null;
  /** What it could be instead. */
  kinds: ("categorical" | "ordinal" | "numeric" | "date" | "time" | "identifier" | "ignored")[];
  /** What was guessed or why it is set aside, in words. */
  notes: string[];
  /** Whether somebody has corrected it. */
  is_stated: boolean;
  /** To how many values it may be coarsened; empty where it cannot be. */
  coarser: number[];
}

/** What the estimates of one attribute would be worth. */
export interface ErrorFigure {
  attribute: string;
  /** The root-mean-square error over its values, as a share: 0.01 is a percentage point. */
  error: Figure;
  /** That of calling all values equally common. */
  guess_error: number | "infinity";
  verdict: string;
  /** For the precision that is wanted; None where no number is enough. */
  people_needed: number | null;
  words: string;
}

/** One value's estimate beside the truth. */
export interface EstimateRow {
  attribute: string;
  value: string;
  truth: number;
  estimate: number;
  lower: number;
  upper: number;
}

/** All that is said, in one schema; nothing is sent as such. */
export interface Everything {
  state: State;
  update: Update;
  changes: Changes;
  order: Calibrate | FindRemedies | SimulateCollection | SimulateAttack;
  detail: PairDetail;
  problem: Problem;
  event: HelloEvent | FiguresEvent | WorkEvent | ResultEvent | SavedEvent | ChangedEvent;
}

/** One figure with everything that is a hover away. */
export interface Figure {
  value: number | "infinity";
  kind: "exact" | "certified" | "sampled" | "lower" | "model" | "published" | "estimate";
  method: string;
  /** What reaches it, in words; empty where nothing is known. */
  witness?: string;
  /** The fewest records behind the witness. */
  support?: number | null;
  adversary: "report" | "guess" | "model" | "model guess" | "population" | "table" | "tree";
  delta?: number | null;
  /** Whether it belongs to an earlier revision and is being computed anew. */
  stale?: boolean;
  low?: number | "infinity" | null;
  /** Where it is sampled: the estimate is `low`; the truth is not above `high` but for a stated chance. */
  high?: number | "infinity" | null;
}

/** Figures of a plan were refined. */
export interface FiguresEvent {
  event: "figures";
  figures: PlanFigures;
}

/** Find the ways back under the limits, each with its price. */
export interface FindRemedies {
  work: "remedies";
  plan: string;
}

/** Attributes whose sliders move together. */
export interface Group {
  name: string;
  attributes: string[];
}

/** The stream begins: who has another revision fetches the state. */
export interface HelloEvent {
  event: "hello";
  revision: number;
}

/** What undo and redo would do, in words; None where there is nothing. */
export interface History {
  undo: string | null;
  redo: string | null;
}

/** A mechanism that may be chosen. */
export interface Mechanism {
  name: string;
  title: string;
  has_budget: boolean;
  /** When to choose it. */
  words: string;
}

/** What one attribute gets: a budget, or nothing where it is withheld. */
export interface NewBudget {
  attribute: string;
  mechanism: string;
  epsilon: number | null;
  withheld: boolean;
  values: number;
}

/** What a guesser could gain: how surely the best guess of a secret is right. */
export interface Odds {
  /** The commonest value, which is guessed without any report. */
  value: string;
  before: number;
  /** At most so surely, whatever is reported. */
  after: number;
  /** By how many times at most reports move the odds of one value against another. */
  factor: number | "infinity";
  words: string;
}

/** One cell of the heat map in full; the answer of `GET /api/pair?plan=&secret=&through=`. */
export interface PairDetail {
  secret: string;
  through: string;
  figure: Figure;
  /** What the true value would say: the figure as the budget grows. */
  saturation: number | "infinity";
  /** Budgets, and the figure at each. */
  curve: ([number, number | "infinity"])[];
}

/** Who leaks about whom: a row for each release, a column for each secret; None for its own report. */
export interface Pairs {
  releases: string[];
  secrets: string[];
  values: ((number | "infinity" | null)[])[];
  kind: "exact" | "certified" | "sampled" | "lower" | "model" | "published" | "estimate";
  stale?: boolean;
}

/** One of up to four plans side by side. */
export interface Plan {
  id: string;
  name: string;
  releases: Release[];
  groups: Group[];
}

/** All figures of one plan. */
export interface PlanFigures {
  plan: string;
  /** The revision that the figures belong to. */
  revision: number;
  /** Whether every limit is kept, for the adversary who decides. */
  outcome: "exceeded" | "not certified" | "described" | "within";
  secrets: SecretFigures[];
  pairs: Pairs;
  errors: ErrorFigure[];
  people: number;
  /** What is still being computed, in words; empty where everything is final. */
  pending: string[];
  /** Why there are no figures, where the plan cannot be audited. */
  problem?: string;
}

/** Why something was refused (application/problem+json). */
export interface Problem {
  title: string;
  status: number;
  detail: string;
}

/** Make the change again that was taken back last. */
export interface Redo {
  change: "redo";
}

/** How one attribute is released in a plan. */
export interface Release {
  attribute: string;
  mechanism: string;
  /** The budget; None where the mechanism has none, such as identity. */
  epsilon: number | null;
  withheld: boolean;
  /** How many values are told apart in this plan. */
  values: number;
  /** To how many values it was coarsened; None where it was not. */
  coarsened: number | null;
  /** What the report really spends. */
  realised: number | "infinity";
}

/** Ways back under the limits; adopt the choice by its place. */
export interface Remedied {
  result: "remedied";
  work: string;
  plan: string;
  revision: number;
  offers: RemedyOffer[];
  words: string[];
}

/** One way back under the limits. */
export interface RemedyOffer {
  title: string;
  words: string[];
  outcome: "exceeded" | "not certified" | "described" | "within";
  /** The error of the estimates over all attributes after it. */
  error: number | "infinity";
  changed: NewBudget[];
  /** Whether it is a plan; asking each person for one attribute is a protocol, which no plan can say. */
  is_adoptable: boolean;
}

/** Remove a plan; one stays. */
export interface RemovePlan {
  change: "remove plan";
  plan: string;
}

/** Give a plan another name. */
export interface RenamePlan {
  change: "rename plan";
  plan: string;
  name: string;
}

/** Work has found something. */
export interface ResultEvent {
  event: "result";
  result: Calibrated | Remedied | Collected | Attacked;
}

/** The state was written to its file. */
export interface SavedEvent {
  event: "saved";
  revision: number;
  /** Why it could not be, where it could not. */
  problem?: string;
}

/** What must not be learnt, how much of it may leak in nats, and why. */
export interface Secret {
  name: string;
  /** None takes the limit for all. */
  limit?: number | null;
  reason?: string;
}

/** What a plan reveals about one secret. */
export interface SecretFigures {
  secret: string;
  limit: number | "infinity" | null;
  outcome: "exceeded" | "not certified" | "described" | "within";
  statement: string;
  /** Through its own report. */
  own: Figure;
  /** The neighbour that says most; None without any. */
  through: string | null;
  /** What this neighbour's report alone says. */
  neighbour: Figure | null;
  /** What all reports together surely reach. */
  lower: Figure;
  /** What all reports together do not exceed. */
  total: Figure;
  /** At delta, to who knows the population and to who knows the table, where a delta is set. */
  at_delta: Figure[];
  /** The figure that the outcome rests on. */
  decisive: Figure;
  odds: Odds;
}

/** Work on another plan; no step of the history. */
export interface SelectPlan {
  change: "select plan";
  plan: string;
}

/** Say who tries to learn, and the delta. */
export interface SetAdversary {
  change: "adversary";
  adversary: Adversary;
  delta: number | null;
}

/** Set the budget of attributes in a plan. */
export interface SetBudget {
  change: "budget";
  plan: string;
  attributes: string[];
  epsilon: number;
}

/** Correct what a column is; None leaves a part to be inferred. */
export interface SetColumn {
  change: "column";
  name: string;
  kind?: "categorical" | "ordinal" | "numeric" | "date" | "time" | "identifier" | "ignored" | null;
  bins?: number | null;
  missing?: "absent" | "value" | "drop" | null;
}

/** Say how many people will report, how precise frequencies should be, and what for. */
export interface SetExpectations {
  change: "expectations";
  people: number;
  precision: number;
  purpose?: string;
}

/** Say which attributes' sliders move together. */
export interface SetGroups {
  change: "groups";
  plan: string;
  groups: Group[];
}

/** Set the mechanism of attributes in a plan. */
export interface SetMechanism {
  change: "mechanism";
  plan: string;
  attributes: string[];
  mechanism: string;
}

/** Say what is secret, with limits and reasons, and the limit for all. */
export interface SetSecrets {
  change: "secrets";
  secrets: Secret[];
  limit: number | null;
}

/** What holds for all plans. */
export interface Settings {
  /** Every attribute is one where nobody has named any. */
  secrets: Secret[];
  limit: number | null;
  adversary: Adversary;
  delta: number | null;
  /** How many people are expected to report. */
  people: number;
  /** How precise frequencies should be. */
  precision: number;
  purpose: string;
}

/** Collect from the table, and let the best guesser guess a secret. */
export interface SimulateAttack {
  work: "attack";
  plan: string;
  secret: string;
  seed?: number | null;
}

/** Collect from the table as the plan says, and estimate. */
export interface SimulateCollection {
  work: "collect";
  plan: string;
  seed?: number | null;
}

/** Everything that the page shows. */
export interface State {
  version: 1;
  revision: number;
  table: TableInfo;
  banner: Banner;
  columns: Column[];
  settings: Settings;
  plans: Plan[];
  active: string;
  mechanisms: Mechanism[];
  figures: PlanFigures[];
  history: History;
  work: WorkState[];
  results: (Calibrated | Remedied | Collected | Attacked)[];
  /** The last revision that opening the same files again would bring back. */
  saved: number;
}

/** What was opened. */
export interface TableInfo {
  name: string;
  rows: number;
  columns: number;
  set_aside: number;
  notes: string[];
}

/** Take the last change back. */
export interface Undo {
  change: "undo";
}

/** What a change changed; None where a part is as it was. Figures of plans that are not listed stay. */
export interface Update {
  revision: number;
  columns?: Column[] | null;
  settings?: Settings | null;
  plans?: Plan[] | null;
  active: string;
  figures: PlanFigures[];
  history: History;
  /** How long the server worked on it. */
  milliseconds: number;
}

/** One value of a column, and how many rows have it. */
export interface ValueCount {
  label: string;
  count: number;
  share: number;
}

/** Withhold attributes, or release them again. */
export interface Withhold {
  change: "withhold";
  plan: string;
  attributes: string[];
  withheld: boolean;
}

/** Work goes on, or ended. */
export interface WorkEvent {
  event: "work";
  work: WorkState;
}

/** Long work, on the way or done. */
export interface WorkState {
  id: string;
  kind: "calibrate" | "remedies" | "collect" | "attack";
  plan: string;
  status: "waiting" | "running" | "done" | "cancelled" | "failed";
  text: string;
  done: number;
  of: number | null;
  /** Seconds that it will take, about; None where nobody knows. */
  left?: number | null;
  revision: number;
}

export type Change =
  | SetBudget
  | SetMechanism
  | Withhold
  | Coarsen
  | SetSecrets
  | SetAdversary
  | SetColumn
  | SetGroups
  | SetExpectations
  | AddPlan
  | RemovePlan
  | RenamePlan
  | SelectPlan
  | Adopt
  | Undo
  | Redo;

export type StudioEvent =
  | HelloEvent
  | FiguresEvent
  | WorkEvent
  | ResultEvent
  | SavedEvent
  | ChangedEvent;

export type WorkOrder =
  | Calibrate
  | FindRemedies
  | SimulateCollection
  | SimulateAttack;

export type WorkResult =
  | Calibrated
  | Remedied
  | Collected
  | Attacked;
