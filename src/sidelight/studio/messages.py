"""What the studio's page and its server say to each other.

The models are closed and strict: they are the one schema of which `studio/src/messages.ts` is made
(`sidelight.studio.typescript`). An infinite figure is the string "infinity", since JSON has no number for it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sidelight.auditing.verdict import Outcome
from sidelight.leakage.bounds import Claim
from sidelight.plan import AdversaryName, View
from sidelight.schema import Kind, Missing
from sidelight.sources.dictionary import Unused

Real = float | Literal["infinity"]
"""A figure; "infinity" where it is infinite."""
ColumnKind = Kind | Unused
WorkKind = Literal["calibrate", "remedies", "collect", "attack"]
Status = Literal["waiting", "running", "done", "cancelled", "failed"]
PlanId = Annotated[str, Field(min_length=1, max_length=40)]
Name = Annotated[str, Field(min_length=1, max_length=10_000)]
Budget = Annotated[float, Field(gt=0, lt=700, allow_inf_nan=False)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Message(BaseModel):
    """A part of what is said; nothing is guessed and nothing unknown is allowed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


# The state


class ValueCount(Message):
    """One value of a column, and how many rows have it."""

    label: str
    count: int
    share: float


class Column(Message):
    """A column as it is read: an attribute, or set aside."""

    name: str
    kind: ColumnKind
    size: int
    """How many values it has; 0 where it is set aside."""
    values: list[ValueCount]
    """In the order of codes; the first 200 at most."""
    unlisted: int
    """How many values are not in the list."""
    missing: Missing
    missing_share: float
    bins: int | None
    """How many bins numbers, dates or times have; None for others."""
    kinds: list[ColumnKind]
    """What it could be instead."""
    notes: list[str]
    """What was guessed or why it is set aside, in words."""
    is_stated: bool
    """Whether somebody has corrected it."""
    coarser: list[int]
    """To how many values it may be coarsened; empty where it cannot be."""


class Secret(Message):
    """What must not be learnt, how much of it may leak in nats, and why."""

    name: Name
    limit: Limit | None = None
    """None takes the limit for all."""
    reason: str = ""


class Adversary(Message):
    """Who tries to learn the secrets."""

    view: View = "report"
    """Keeps whole reports, or one guessed value of each."""
    decide_by: AdversaryName | None = None
    """For whom limits must be kept; None takes the usual one."""


class Release(Message):
    """How one attribute is released in a plan."""

    attribute: str
    mechanism: str
    epsilon: float | None
    """The budget; None where the mechanism has none, such as identity."""
    withheld: bool
    values: int
    """How many values are told apart in this plan."""
    coarsened: int | None
    """To how many values it was coarsened; None where it was not."""
    realised: Real
    """What the report really spends."""


class Group(Message):
    """Attributes whose sliders move together."""

    name: Name
    attributes: list[Name]


class Plan(Message):
    """One of up to four plans side by side."""

    id: str
    name: str
    releases: list[Release]
    groups: list[Group]


class Mechanism(Message):
    """A mechanism that may be chosen."""

    name: str
    title: str
    has_budget: bool
    words: str
    """When to choose it."""


class TableInfo(Message):
    """What was opened."""

    name: str
    rows: int
    columns: int
    set_aside: int
    notes: list[str]


class Banner(Message):
    """What must be said wherever a figure is shown: it comes from raw data."""

    text: str
    is_raw: bool


# Figures


class Figure(Message):
    """One figure with everything that is a hover away."""

    value: Real
    kind: Claim
    method: str
    witness: str = ""
    """What reaches it, in words; empty where nothing is known."""
    support: int | None = None
    """The fewest records behind the witness."""
    adversary: AdversaryName
    delta: float | None = None
    stale: bool = False
    """Whether it belongs to an earlier revision and is being computed anew."""
    low: Real | None = None
    high: Real | None = None
    """Where it is sampled: the estimate is `low`; the truth is not above `high` but for a stated chance."""


class Odds(Message):
    """What a guesser could gain: how surely the best guess of a secret is right."""

    value: str
    """The commonest value, which is guessed without any report."""
    before: float
    after: float
    """At most so surely, whatever is reported."""
    factor: Real
    """By how many times at most reports move the odds of one value against another."""
    words: str


class SecretFigures(Message):
    """What a plan reveals about one secret."""

    secret: str
    limit: Real | None
    outcome: Outcome
    statement: str
    own: Figure
    """Through its own report."""
    through: str | None
    """The neighbour that says most; None without any."""
    neighbour: Figure | None
    """What this neighbour's report alone says."""
    lower: Figure
    """What all reports together surely reach."""
    total: Figure
    """What all reports together do not exceed."""
    at_delta: list[Figure]
    """At delta, to who knows the population and to who knows the table, where a delta is set."""
    decisive: Figure
    """The figure that the outcome rests on."""
    odds: Odds


class Pairs(Message):
    """Who leaks about whom: a row for each release, a column for each secret; None for its own report."""

    releases: list[str]
    secrets: list[str]
    values: list[list[Real | None]]
    kind: Claim
    stale: bool = False


class ErrorFigure(Message):
    """What the estimates of one attribute would be worth."""

    attribute: str
    error: Figure
    """The root-mean-square error over its values, as a share: 0.01 is a percentage point."""
    guess_error: Real
    """That of calling all values equally common."""
    verdict: str
    people_needed: int | None
    """For the precision that is wanted; None where no number is enough."""
    words: str


class PlanFigures(Message):
    """All figures of one plan."""

    plan: str
    revision: int
    """The revision that the figures belong to."""
    outcome: Outcome
    """Whether every limit is kept, for the adversary who decides."""
    secrets: list[SecretFigures]
    pairs: Pairs
    errors: list[ErrorFigure]
    people: int
    pending: list[str]
    """What is still being computed, in words; empty where everything is final."""
    problem: str = ""
    """Why there are no figures, where the plan cannot be audited."""


class Settings(Message):
    """What holds for all plans."""

    secrets: list[Secret]
    """Every attribute is one where nobody has named any."""
    limit: Limit | None
    adversary: Adversary
    delta: Share | None
    people: int
    """How many people are expected to report."""
    precision: Share
    """How precise frequencies should be."""
    purpose: str


class History(Message):
    """What undo and redo would do, in words; None where there is nothing."""

    undo: str | None
    redo: str | None


class WorkState(Message):
    """Long work, on the way or done."""

    id: str
    kind: WorkKind
    plan: str
    status: Status
    text: str
    done: int
    of: int | None
    left: float | None = None
    """Seconds that it will take, about; None where nobody knows."""
    revision: int


class State(Message):
    """Everything that the page shows."""

    version: Literal[1] = 1
    revision: int
    table: TableInfo
    banner: Banner
    columns: list[Column]
    settings: Settings
    plans: list[Plan]
    active: str
    mechanisms: list[Mechanism]
    figures: list[PlanFigures]
    history: History
    work: list[WorkState]
    results: list[WorkResult]
    saved: int
    """The last revision that opening the same files again would bring back."""


class Update(Message):
    """What a change changed; None where a part is as it was. Figures of plans that are not listed stay."""

    revision: int
    columns: list[Column] | None = None
    settings: Settings | None = None
    plans: list[Plan] | None = None
    active: str
    figures: list[PlanFigures]
    history: History
    milliseconds: float
    """How long the server worked on it."""


# Changes


class SetBudget(Message):
    """Set the budget of attributes in a plan."""

    change: Literal["budget"] = "budget"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    epsilon: Budget


class SetMechanism(Message):
    """Set the mechanism of attributes in a plan."""

    change: Literal["mechanism"] = "mechanism"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    mechanism: str


class Withhold(Message):
    """Withhold attributes, or release them again."""

    change: Literal["withhold"] = "withhold"
    plan: PlanId
    attributes: Annotated[list[Name], Field(min_length=1)]
    withheld: bool


class Coarsen(Message):
    """Tell fewer values of an attribute apart in a plan; None undoes it."""

    change: Literal["coarsen"] = "coarsen"
    plan: PlanId
    attribute: Name
    values: Annotated[int, Field(ge=2, le=65_536)] | None


class SetSecrets(Message):
    """Say what is secret, with limits and reasons, and the limit for all."""

    change: Literal["secrets"] = "secrets"
    secrets: list[Secret]
    limit: Limit | None


class SetAdversary(Message):
    """Say who tries to learn, and the delta."""

    change: Literal["adversary"] = "adversary"
    adversary: Adversary
    delta: Share | None


class SetColumn(Message):
    """Correct what a column is; None leaves a part to be inferred."""

    change: Literal["column"] = "column"
    name: Name
    kind: ColumnKind | None = None
    bins: Annotated[int, Field(ge=2, le=1_000)] | None = None
    missing: Missing | None = None


class SetGroups(Message):
    """Say which attributes' sliders move together."""

    change: Literal["groups"] = "groups"
    plan: PlanId
    groups: list[Group]


class SetExpectations(Message):
    """Say how many people will report, how precise frequencies should be, and what for."""

    change: Literal["expectations"] = "expectations"
    people: Annotated[int, Field(ge=1, le=10**12)]
    precision: Share
    purpose: Annotated[str, Field(max_length=10_000)] = ""


class AddPlan(Message):
    """Add a plan: a copy of another one, or one as at the start."""

    change: Literal["add plan"] = "add plan"
    copy_of: PlanId | None = None
    name: Annotated[str, Field(min_length=1, max_length=100)]


class RemovePlan(Message):
    """Remove a plan; one stays."""

    change: Literal["remove plan"] = "remove plan"
    plan: PlanId


class RenamePlan(Message):
    """Give a plan another name."""

    change: Literal["rename plan"] = "rename plan"
    plan: PlanId
    name: Annotated[str, Field(min_length=1, max_length=100)]


class SelectPlan(Message):
    """Work on another plan; no step of the history."""

    change: Literal["select plan"] = "select plan"
    plan: PlanId


class Adopt(Message):
    """Put what work has found in the place of a plan: a calibration, or one of several remedies."""

    change: Literal["adopt"] = "adopt"
    plan: PlanId
    work: str
    choice: Annotated[int, Field(ge=0)] = 0


class Undo(Message):
    """Take the last change back."""

    change: Literal["undo"] = "undo"


class Redo(Message):
    """Make the change again that was taken back last."""

    change: Literal["redo"] = "redo"


Change = Annotated[
    SetBudget | SetMechanism | Withhold | Coarsen | SetSecrets | SetAdversary | SetColumn | SetGroups
    | SetExpectations | AddPlan | RemovePlan | RenamePlan | SelectPlan | Adopt | Undo | Redo,
    Field(discriminator="change"),
]  # fmt: skip


class Changes(Message):
    """Changes that are made together, as one step of the history; the body of `POST /api/changes`."""

    changes: Annotated[list[Change], Field(min_length=1, max_length=1_000)]
    window: Annotated[str, Field(max_length=100)] = ""
    """Who asks, so that other windows are told and this one is not."""
    gesture: Annotated[str, Field(max_length=100)] = ""
    """Changes that follow each other with the same one, as of one drag, are one step of the history."""


# Work


class Calibrate(Message):
    """Find the largest budgets that keep every limit."""

    work: Literal["calibrate"] = "calibrate"
    plan: PlanId


class FindRemedies(Message):
    """Find the ways back under the limits, each with its price."""

    work: Literal["remedies"] = "remedies"
    plan: PlanId


class SimulateCollection(Message):
    """Collect from the table as the plan says, and estimate."""

    work: Literal["collect"] = "collect"
    plan: PlanId
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class SimulateAttack(Message):
    """Collect from the table, and let the best guesser guess a secret."""

    work: Literal["attack"] = "attack"
    plan: PlanId
    secret: Name
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


WorkOrder = Annotated[
    Calibrate | FindRemedies | SimulateCollection | SimulateAttack, Field(discriminator="work")
]


class NewBudget(Message):
    """What one attribute gets: a budget, or nothing where it is withheld."""

    attribute: str
    mechanism: str
    epsilon: float | None
    withheld: bool
    values: int


class Calibrated(Message):
    """The budgets that keep every limit; adopt choice 0."""

    result: Literal["calibrated"] = "calibrated"
    work: str
    plan: str
    revision: int
    budgets: list[NewBudget]
    words: list[str]


class RemedyOffer(Message):
    """One way back under the limits."""

    title: str
    words: list[str]
    outcome: Outcome
    error: Real
    """The error of the estimates over all attributes after it."""
    changed: list[NewBudget]
    is_adoptable: bool
    """Whether it is a plan; asking each person for one attribute is a protocol, which no plan can say."""


class Remedied(Message):
    """Ways back under the limits; adopt the choice by its place."""

    result: Literal["remedied"] = "remedied"
    work: str
    plan: str
    revision: int
    offers: list[RemedyOffer]
    words: list[str]


class EstimateRow(Message):
    """One value's estimate beside the truth."""

    attribute: str
    value: str
    truth: float
    estimate: float
    lower: float
    upper: float


class Collected(Message):
    """What a simulated collection estimates."""

    result: Literal["collected"] = "collected"
    work: str
    plan: str
    revision: int
    people: int
    rows: list[EstimateRow]
    """The first 2,000 at most."""
    unlisted: int
    error: Real
    words: list[str]


class Attacked(Message):
    """How well the best guesser guesses, beside who sees no reports and beside the limit."""

    result: Literal["attacked"] = "attacked"
    work: str
    plan: str
    revision: int
    secret: str
    success: float
    lower: float
    upper: float
    baseline: float
    """Who guesses without reports."""
    bound: float | None
    """What is possible at most; None where it is not known."""
    words: list[str]


WorkResult = Annotated[Calibrated | Remedied | Collected | Attacked, Field(discriminator="result")]


class PairDetail(Message):
    """One cell of the heat map in full; the answer of `GET /api/pair?plan=&secret=&through=`."""

    secret: str
    through: str
    figure: Figure
    saturation: Real
    """What the true value would say: the figure as the budget grows."""
    curve: list[tuple[float, Real]]
    """Budgets, and the figure at each."""


class Problem(Message):
    """Why something was refused (application/problem+json)."""

    title: str
    status: int
    detail: str


# Events, as JSON in the data of server-sent events whose name is their `event`


class FiguresEvent(Message):
    """Figures of a plan were refined."""

    event: Literal["figures"] = "figures"
    figures: PlanFigures


class WorkEvent(Message):
    """Work goes on, or ended."""

    event: Literal["work"] = "work"
    work: WorkState


class ResultEvent(Message):
    """Work has found something."""

    event: Literal["result"] = "result"
    result: WorkResult


class SavedEvent(Message):
    """The state was written to its file."""

    event: Literal["saved"] = "saved"
    revision: int
    problem: str = ""
    """Why it could not be, where it could not."""


class HelloEvent(Message):
    """The stream begins: who has another revision fetches the state."""

    event: Literal["hello"] = "hello"
    revision: int


class ChangedEvent(Message):
    """Another window changed the state: fetch it again."""

    event: Literal["changed"] = "changed"
    revision: int
    window: str


StudioEvent = Annotated[
    HelloEvent | FiguresEvent | WorkEvent | ResultEvent | SavedEvent | ChangedEvent,
    Field(discriminator="event"),
]


class Everything(Message):
    """All that is said, in one schema; nothing is sent as such."""

    state: State
    update: Update
    changes: Changes
    order: WorkOrder
    detail: PairDetail
    problem: Problem
    event: StudioEvent


State.model_rebuild()
