"""Figures, each with everything that is a hover away."""

from __future__ import annotations

from sidelight.auditing.verdict import Outcome
from sidelight.leakage.bounds import Claim
from sidelight.plan import AdversaryName
from sidelight.studio.messages.base import Message, Real


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


class PairDetail(Message):
    """One cell of the heat map in full; the answer of `GET /api/pair?plan=&secret=&through=`."""

    secret: str
    through: str
    figure: Figure
    saturation: Real
    """What the true value would say: the figure as the budget grows."""
    curve: list[tuple[float, Real]]
    """Budgets, and the figure at each."""
