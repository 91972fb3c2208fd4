"""Work that takes longer: what is ordered, and what comes of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sidelight.auditing.verdict import Outcome
from sidelight.studio.messages.base import Message, Name, PlanId, Real


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
