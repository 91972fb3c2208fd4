"""Limits at delta: figures that a release exceeds with a small probability only, averaged over people.

The figures of a search are exact where all releases can be listed, and estimates from common draws elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from sidelight.auditing import AdversaryName, told_adversaries
from sidelight.belief import Belief
from sidelight.calibration.common_draws import CommonDraws, Look
from sidelight.calibration.constraint import Constraint, origin_of
from sidelight.calibration.problem import Problem
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.progress import steps
from sidelight.leakage.bounds import Bound, Claim
from sidelight.leakage.divergence import epsilon_at
from sidelight.leakage.totals import LARGEST_FIGURE, usual_draws
from sidelight.leakage.totals.at_delta import Question
from sidelight.leakage.totals.composition import composed_losses
from sidelight.plan import Release

Knower = Literal["population", "table", "tree"]
"""Who the limits are kept for at delta: someone who knows the population, or this very table, or who takes a
tree for the population."""
_SEARCH_SHARE = 5
"""A search takes this part of the draws of a certificate: it compares budgets with the same draws."""
_SEED = 0
"""Fixed: what a search finds is certified by draws of their own, so the same table has the same budgets."""


def knower_of(belief: Belief, decide_by: AdversaryName | None) -> Knower:
    """Return for whom limits are to be kept at delta; by default for whoever knows most."""
    told = told_adversaries(belief)
    options = told if belief.is_model else (*told, "tree")
    decider = told[-1] if decide_by is None else decide_by
    name: Knower
    for name in get_args(Knower):
        if decider == name and name in options:
            return name
    known = ", ".join(repr(name) for name in options)
    fix = "Without a delta the worst case decides: leave it out for 'report' or 'model'."
    raise invalid("decide_by", f"an adversary at delta ({known})", decide_by, fix)


def known_belief(belief: Belief, knower: Knower) -> Belief:
    """Return what this adversary knows, given the table."""
    if not belief.knows_joints:
        raise InputError(
            f"limits at delta need whole records, and a {belief.kind} belief knows pairs of attributes only; "
            "use kind='joint', 'tree' or 'population'."
        )
    if knower == "population":
        with steps("fitting the population") as step:
            step()
            return Belief.population_of(belief)
    return Belief.tree_of(belief) if knower == "tree" else belief


@dataclass(frozen=True, eq=False)
class AtDelta(Constraint):
    """The leakage at delta of every secret, to someone with a belief."""

    knower: Knower
    at: float
    _draws: dict[str, CommonDraws] = field(default_factory=dict, repr=False)
    _looks: dict[str, tuple[bytes, Look]] = field(default_factory=dict, repr=False)

    @property
    def delta(self) -> float:
        """At which the figures are."""
        return self.at

    @cached_property
    def is_listed(self) -> bool:
        """Whether figures are exact; else they are estimates."""
        least = self.problem.alike(self.problem.least)
        return all(self._question(name, least).exact_rows() is not None for name in self.problem.secrets)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether no figure falls when a budget is raised."""
        free = (self.problem.release(name) for name in self.problem.free)
        return all(release.sent()[0].degrades for release in free)

    def figure(self, secret: str, budgets: Array, bare: Collection[str] = ()) -> float:
        """Return the figure of one secret."""
        question = self._question(secret, budgets, bare)
        rows = question.exact_rows()
        if rows is not None:
            return min(epsilon_at(rows, self.delta)[0], LARGEST_FIGURE)
        if not question.runnable:
            return min(composed_losses(question.releases).leakage(self.delta), LARGEST_FIGURE)
        look = self._look(question) if bare else self._kept_look(question, budgets)
        return min(look.figure + question.beyond, LARGEST_FIGURE)

    def figures(self, budgets: Array, bare: Collection[str] = ()) -> Array:
        """Return the figure of every secret; 0 for those without a limit, which are not looked at."""
        limits = self.problem.limits
        return np.array([
            self.figure(name, budgets, bare) if math.isfinite(limit) else 0.0
            for name, limit in limits.items()
        ])  # fmt: skip

    def growth(self, budgets: Array, raised: Array) -> Array:
        """Return how much each figure grows, to first order, if one budget alone is raised."""
        limits = self.problem.limits
        return np.array([
            self.growth_of(name, budgets, raised) if math.isfinite(limit) else np.zeros(len(budgets))
            for name, limit in limits.items()
        ])  # fmt: skip

    def growth_of(self, secret: str, budgets: Array, raised: Array) -> Array:
        """Return how much the figure of one secret grows with each budget."""
        question, larger = self._question(secret, budgets), self._question(secret, raised)
        free = self.problem.free
        if question.exact_rows() is not None or not question.runnable:
            base = self.figure(secret, budgets)
            moved = np.where(np.eye(len(budgets), dtype=np.bool_), raised, budgets)
            return np.array([self.figure(secret, each) - base for each in moved])
        look = self._kept_look(question, budgets)
        drawn = {name: larger.releases[name] for name in free if name in question.runnable}
        grown = dict(zip(drawn, self._common(secret).growth(look, question.runnable, drawn), strict=True))
        rest = larger.beyond - question.beyond  # of mechanisms that cannot be run, each its own part
        spent = {name: _spent(larger.releases[name]) - _spent(question.releases[name]) for name in free}
        return np.array([grown[name] if name in grown else min(spent[name], rest) for name in free])

    def bounds(self, budgets: Array) -> dict[str, Bound]:
        """Return the figures with what they claim: estimates, unless everything is listed."""
        composed = composed_losses(self._releases(budgets)).leakage(self.delta)
        bounds = {}
        for name, figure in zip(self.problem.secrets, self.figures(budgets), strict=True):
            if math.isinf(self.problem.limits[name]):
                bounds[name] = Bound(composed, "certified", "composition at delta")
            elif self.is_listed:
                claim: Claim = "model" if self.belief.is_model else "exact"
                bounds[name] = Bound(float(figure), claim, "every release listed")
            else:
                method = f"{self._common(name).count} releases drawn for each value"
                bounds[name] = Bound(float(figure), "estimate", method)
        return bounds

    def _releases(self, budgets: Array, bare: Collection[str] = ()) -> dict[str, Release]:
        releases = {item.name: item for item in self.problem.releases_at(budgets)}
        return releases | {name: Release(releases[name].attribute, "identity") for name in bare}

    def _question(self, secret: str, budgets: Array, bare: Collection[str] = ()) -> Question:
        return Question(self.belief, self._releases(budgets, bare), secret)

    def _common(self, secret: str) -> CommonDraws:
        if secret not in self._draws:
            count = usual_draws(self.delta) // _SEARCH_SHARE
            self._draws[secret] = CommonDraws(self.belief.view(secret), self.delta, count, _SEED)
        return self._draws[secret]

    def _look(self, question: Question) -> Look:
        return self._common(question.secret).look(question.runnable)

    def _kept_look(self, question: Question, budgets: Array) -> Look:
        """Return a look at these budgets; the last one is kept, since its slopes are asked for next."""
        key = budgets.tobytes()
        if question.secret not in self._looks or self._looks[question.secret][0] != key:
            self._looks[question.secret] = key, self._look(question)
        return self._looks[question.secret][1]


@dataclass(frozen=True, eq=False)
class ComposedAtDelta(Constraint):
    """What composition alone says at delta, which holds for every belief and needs no draws."""

    at: float

    @property
    def delta(self) -> float:
        """At which the figure is."""
        return self.at

    def figures(self, budgets: Array, bare: Collection[str] = ()) -> Array:
        """Return the same figure for every secret."""
        if bare:
            return np.full(len(self.problem.limits), LARGEST_FIGURE)
        figure = composed_losses({item.name: item for item in self.problem.releases_at(budgets)})
        return np.full(len(self.problem.limits), min(figure.leakage(self.delta), LARGEST_FIGURE))

    def growth(self, budgets: Array, raised: Array) -> Array:
        """Return how much the figure grows with each budget."""
        base = self.figures(budgets)[0]
        moved = np.where(np.eye(len(budgets), dtype=np.bool_), raised, budgets)
        grown = np.array([self.figures(each)[0] - base for each in moved])
        return np.tile(grown, (len(self.problem.limits), 1))

    def bounds(self, budgets: Array) -> dict[str, Bound]:
        """Return the figure with what it claims."""
        bound = Bound(float(self.figures(budgets)[0]), "certified", "composition at delta")
        return dict.fromkeys(self.problem.secrets, bound)


def at_delta(problem: Problem, belief: Belief, knower: Knower, delta: float) -> AtDelta:
    """Return the constraint at delta for an adversary with a belief, see `known_belief`."""
    promise = f"safe at delta {delta:g} against {_KNOWERS[knower]}: {origin_of(belief)}"
    return AtDelta(knower, problem, belief, promise, knower == "table", knower, delta)


def composed_at_delta(problem: Problem, delta: float) -> ComposedAtDelta:
    """Return the constraint at delta that holds for every belief."""
    promise = f"safe at delta {delta:g} whatever an adversary knows about the population"
    return ComposedAtDelta("composition", problem, problem.belief, promise, True, delta)


_KNOWERS: dict[Knower, str] = {
    "population": "an adversary who knows the population as well as a sample lets one know it",
    "table": "an adversary who knows the joint distribution",
    "tree": "an adversary who models the population as a tree",
}


def _spent(release: Release) -> float:
    mechanism, times = release.sent()
    return times * mechanism.epsilon
