"""What a release says at delta, told for each adversary, beside what it says of a table without connections.

Three stories stand side by side: of someone who knows the population, of someone who knows this very table,
and the worst case. The first two are figures at delta and are made here; the worst case is an audit's total.

A null stands beside every figure: what the same audit says once the secret's values are dealt out anew among
the people. Whatever it shows is chance and the secret's own report, so a figure that does not rise above it
tells nothing about how attributes go together. Among few people chance varies: they are dealt to several
times, and the largest figure counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from sidelight.auditing.verdict import AdversaryName, Outcome, keeps
from sidelight.belief import Belief
from sidelight.belief.shuffled import all_shuffled, counts_people, shuffled
from sidelight.foundation.errors import check_is, check_number, check_whole
from sidelight.foundation.progress import track
from sidelight.leakage import DeltaLeakage, DeltaPoint, leakage_at
from sidelight.leakage.totals import estimates_at, usual_draws
from sidelight.leakage.totals.at_delta import Question
from sidelight.plan import Plan

_NULL_DRAWS = 10
"""A null takes this share of the draws: it is an estimate, and must not cost as much as the figure."""
_NULL_SEED = 0
"""Fixed, so that the same table has the same null."""
_MOST_DEALS, _DEALT_PEOPLE = 3, 20_000
"""A table is dealt anew so often at most, to so many people in all: each time costs a model."""
_SCATTER = 1.05
"""Estimates from so few draws scatter by a few hundredths; what rises less is not told from the null."""


@dataclass(frozen=True)
class Sampling:
    """How releases are drawn for figures at delta.

    Attributes:
        draws: how many for each value of a secret; by default so many that the figure is usually within a
            few hundredths of the truth.
        precision: draw on until the figure is within this share of its estimate.
        seed: for figures that can be repeated; else the operating system's coins.
        device: where releases of the table are drawn: "cpu", or "cuda" where all reports can be listed.
    """

    draws: int | None = None
    precision: float | None = None
    seed: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse before long work what could not be drawn."""
        if self.draws is not None:
            check_whole("draws", self.draws, at_least=16)
        if self.precision is not None:
            check_number("precision", self.precision, above=0)
        if self.seed is not None:
            check_whole("seed", self.seed, at_least=0)


@dataclass(frozen=True, eq=False)
class Story:
    """What a release says about a secret, at several deltas, to one adversary.

    Attributes:
        adversary: who: "population", "table" or, for a belief that is a tree, "tree".
        leakage: the figures.
        nulls: by delta, what the same audit says of a table whose secret was shuffled, where that is known.
        beyond: what releases that cannot be drawn add to drawn figures and estimates: their whole budgets.
    """

    adversary: AdversaryName
    leakage: DeltaLeakage
    nulls: Mapping[float, float]
    beyond: float = 0.0

    def is_noise(self, point: DeltaPoint) -> bool:
        """Whether a figure does not rise above what a table without any connection shows."""
        null = self.nulls.get(point.delta)
        return null is not None and not rises(shown_figure(point), null)

    def outcome(self, limit: float | None) -> Outcome:
        """Return whether the figure at the delta that was asked for keeps the limit, where there is one.

        The upper figure shows that it is kept. That it is broken is shown by an exact figure, or by an
        estimate further above the limit than the certificate of the same draws lies above the estimate: a
        figure errs less towards small values than towards large ones, so this is about as sure as the
        certificate. Fewer reports never reveal more, so what cannot be drawn may be left out.
        """
        if limit is None:
            return "described"
        point = self.leakage.at(self.leakage.delta)
        if keeps(point.upper.value, limit):
            return "within"
        if point.upper.kind not in ("exact", "model", "sampled"):  # a bound says nothing about its distance
            return "not certified"
        least = point.upper.value
        if point.estimate is not None:
            gap = least - point.estimate if least < math.inf else math.inf
            least = point.estimate - self.beyond - gap
        return "exceeded" if least > limit and not keeps(least, limit) else "not certified"

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        plain = self.leakage.to_dict()
        for point, shown in zip(self.leakage.points, plain["points"], strict=True):
            shown |= {"null": self.nulls.get(point.delta), "is_noise": self.is_noise(point)}
        return {"adversary": self.adversary, **plain}


def shown_figure(point: DeltaPoint) -> float:
    """Return what the draws show; without draws the upper figure itself."""
    return point.upper.value if point.estimate is None else point.estimate


def rises(figure: float, null: float) -> bool:
    """Whether a figure rises above its null by more than estimates scatter."""
    return figure > _SCATTER * null


@dataclass(frozen=True, eq=False)
class Stories:
    """Tells the stories of one secret after the other.

    Attributes:
        belief: what the audit's adversary knows: a table, or a model of it.
        plan: what is released.
        delta: the probability, averaged over people, with which a release may say more.
        sampling: how releases are drawn.
        decider: who decides, where that is known: of a table "tree" is told too where it does.
    """

    belief: Belief
    plan: Plan
    delta: float
    sampling: Sampling
    decider: AdversaryName | None = None

    @classmethod
    def of(
        cls, belief: Belief, plan: Plan, delta: float, sampling: Sampling, decider: AdversaryName | None
    ) -> Stories:
        """Check what is asked for."""
        check_is("sampling", sampling, Sampling, "Sampling(draws=..., precision=..., seed=...) makes one.")
        return cls(belief, plan, check_number("delta", delta, above=0, below=1), sampling, decider)

    @property
    def adversaries(self) -> tuple[AdversaryName, ...]:
        """Whose stories are told."""
        told = told_adversaries(self.belief)
        return ("tree", *told) if self.decider == "tree" and not self.belief.is_model else told

    @cached_property
    def _tree(self) -> Belief:
        return Belief.tree_of(self.belief)

    @cached_property
    def population(self) -> Belief | None:
        """The population, as well as this table lets someone know it."""
        if self.belief.is_model or "population" not in self.adversaries:
            return None
        return _remembered(self.belief, "itself", lambda: [_population(self.belief, "the population")])[0]

    @cached_property
    def _null_populations(self) -> list[Belief]:
        """The populations of tables in which every column was shuffled by itself.

        They serve all secrets: models for each secret, with its column alone shuffled, would cost minutes.
        """
        if self.population is None:
            return []

        def fitted() -> list[Belief]:
            deals = [all_shuffled(self.belief, seed) for seed in self._deals]
            return [_population(table, "its null") for table in deals if table is not None]

        return _remembered(self.belief, "shuffled", fitted)

    @property
    def _deals(self) -> range:
        return range(max(1, min(_MOST_DEALS, _DEALT_PEOPLE // max(1, self.belief.sample_size or 1))))

    def null_tables(self, secret: str) -> list[Belief]:
        """Return the table with the secret dealt out anew, more than once to few people, never to none."""
        deals = [shuffled(self.belief, secret, seed) for seed in self._deals]
        return [table for table in deals if table is not None]

    def of_secret(self, secret: str, null_tables: Sequence[Belief]) -> tuple[Story, ...]:
        """Tell what the release says about a secret."""
        told: list[Story] = []
        for adversary in self.adversaries:
            if adversary == "population" and self.population is not None:
                told.append(self._story(adversary, self.population, secret, self._null_populations))
            elif adversary == "tree" and not self.belief.is_model:
                told.append(self._story(adversary, self._tree, secret, ()))
            else:
                told.append(self._story(adversary, self.belief, secret, null_tables))
        return tuple(told)

    def _story(
        self, adversary: AdversaryName, belief: Belief, secret: str, null_beliefs: Sequence[Belief]
    ) -> Story:
        options = self.sampling
        leakage = leakage_at(
            belief, self.plan, secret, self.delta,
            draws=options.draws, precision=options.precision, seed=options.seed,
            device=options.device if adversary == "table" else "cpu",
        )  # fmt: skip
        beyond = Question.of(belief, self.plan, secret, None).beyond if leakage.draws else 0.0
        return Story(adversary, leakage, self._nulls(leakage, null_beliefs), beyond)

    def _nulls(self, leakage: DeltaLeakage, null_beliefs: Sequence[Belief]) -> dict[float, float]:
        """Return the null at every delta for which its few draws are enough."""
        through = None
        if not null_beliefs:  # without connections the secret's own report is all there is
            null_beliefs = [self.belief]
            through = [name for name in self.plan.names if name == leakage.secret]
        wanted = leakage.draws or self.sampling.draws or usual_draws(self.delta)
        draws = max(16, wanted // _NULL_DRAWS)
        deltas = [point.delta for point in leakage.points]
        nulls = [
            estimates_at(
                belief, self.plan, leakage.secret, deltas, through=through, draws=draws, seed=_NULL_SEED
            )
            for belief in null_beliefs
        ]
        # What holds for every table holds for a shuffled one: the bound itself is its null.
        bounds = [
            point for point in leakage.points if point.estimate is None and point.upper is point.composed
        ]
        largest = {delta: max(null[delta] for null in nulls) for delta in nulls[0]}
        return largest | {point.delta: point.upper.value for point in bounds}


def told_adversaries(belief: Belief) -> tuple[AdversaryName, ...]:
    """Return whose stories at delta a belief has.

    A model has only its own, and a population can be learnt only from people who were counted.
    """
    if belief.is_model:
        return ("population" if belief.kind == "population" else "tree",)
    return ("population", "table") if counts_people(belief) else ("table",)


_FITTED: WeakKeyDictionary[Belief, dict[str, list[Belief]]] = WeakKeyDictionary()
"""The models that were fitted to beliefs, for as long as somebody has these."""


def _remembered(belief: Belief, name: str, fit: Callable[[], list[Belief]]) -> list[Belief]:
    """Return models of a belief; one that is audited again, under another plan, has them already."""
    known = _FITTED.setdefault(belief, {})
    if name not in known:
        known[name] = fit()
    return known[name]


def _population(belief: Belief, said: str) -> Belief:
    (population,) = [Belief.population_of(source) for source in track([belief], f"fitting {said}")]
    return population
