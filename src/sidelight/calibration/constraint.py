"""Constraints: which figure must stay under the limits, and for which adversary that is a promise.

A search asks for the same figures again and again, so each constraint prepares what does not depend on the
budgets and then answers quickly. What is returned in the end is checked by an audit, which takes its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sidelight.belief import Belief, Credal
from sidelight.belief.credal import Region
from sidelight.calibration.problem import Problem, leakage_alone
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.leakage.bounds import Bound
from sidelight.leakage.credal import joint_region, robust_upper
from sidelight.leakage.published import pairwise_sum
from sidelight.leakage.totals import LARGEST_FIGURE, Channels, TotalMethod, Totals, prepare_totals
from sidelight.mechanisms import Channel

ConstraintName = Literal["table", "tree", "published", "robust", "population", "composition"]
"""What stays under the limits: "table" is certified for the belief, "tree" for an adversary who models the
population as a tree learnt from it, "robust" for every distribution the sample leaves open; "published" is
the sum of pairwise figures, which is not a bound. At delta there are "table", "tree", "population", for
someone who knows the population as well as the sample allows, and "composition", for every belief."""
WORST_CASES = ("table", "tree", "published", "robust")
"""Those that can be asked for without a delta."""
USUAL_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Constraint(ABC):
    """A figure for every secret of a problem, and what keeping it under the limits promises."""

    name: ConstraintName
    problem: Problem  # whose budgets it is asked about
    belief: Belief  # under which the figures hold
    promise: str  # for whom keeping it is a promise, in words
    is_sound: bool  # whether that keeps the limits for whole reports and the table, not for a model

    @property
    def delta(self) -> float | None:
        """At which the figures are; None in the worst case."""
        return None

    @abstractmethod
    def figures(self, budgets: Array, bare: Collection[str] = ()) -> Array:
        """Return the figure of every secret, shape (secrets,); `bare` attributes are released as they are."""

    def figures_of(self, budgets: Array, secrets: Positions) -> Array:
        """Return the figures of the secrets with these numbers."""
        return self.figures(budgets)[secrets]

    @abstractmethod
    def growth(self, budgets: Array, raised: Array) -> Array:
        """Return how much each figure grows if one budget alone is raised, shape (secrets, budgets).

        To first order, and never more than it does where figures are exact.
        """

    @abstractmethod
    def bounds(self, budgets: Array) -> dict[str, Bound]:
        """Return the figures with what they claim."""


@dataclass(frozen=True, eq=False)
class WorstCase(Constraint):
    """Figures of the worst of all reports, however unlikely: they follow from the channels alone."""

    totals: tuple[Totals, ...]  # the secrets' figures, some of them together

    def figures(self, budgets: Array, bare: Collection[str] = ()) -> Array:
        """Return the figure of every secret."""
        channels = self.problem.channels(budgets) | {name: self.problem.truth(name) for name in bare}
        values = {name: value for part in self.totals for name, value in part.values(channels).items()}
        return np.array([values[name] for name in self.problem.secrets])

    def figures_of(self, budgets: Array, secrets: Positions) -> Array:
        """Return the figures of the secrets with these numbers; others are left out where that saves work."""
        names = [self.problem.secrets[number] for number in secrets]
        channels = self.problem.channels(budgets)
        parts = [part for each in self.totals if (part := each.among(names)) is not None]
        values = {name: value for part in parts for name, value in part.values(channels).items()}
        return np.array([values[name] for name in names])

    def growth(self, budgets: Array, raised: Array) -> Array:
        """Return how much each figure grows at least with each budget."""
        channels, larger = self.problem.channels(budgets), self.problem.channels(raised)
        moved = {name: larger[name] for name in self.problem.free}
        changes = {name: row for part in self.totals for name, row in part.changes(channels, moved).items()}
        return np.array([
            np.nan_to_num(changes[name], posinf=LARGEST_FIGURE) for name in self.problem.secrets
        ])  # fmt: skip

    def bounds(self, budgets: Array) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        channels = self.problem.channels(budgets)
        bounds = {name: bound for part in self.totals for name, bound in part.bounds(channels).items()}
        return {name: bounds[name] for name in self.problem.secrets}


def constraint_of(
    problem: Problem, name: ConstraintName, method: TotalMethod = "auto", confidence: float | None = None
) -> Constraint:
    """Return the constraint called `name`, prepared for a problem."""
    check_constraint(name, method, confidence)
    belief, secrets = problem.belief, problem.secrets
    if name == "published":  # CPL, eq. (6) and (30): not a bound
        promise = (
            f"no promise: the published sum of pairwise figures of {origin_of(belief)} keeps the "
            "limits, the true leakage may not"
        )
        return WorstCase(name, problem, belief, promise, False, (PublishedTotals(belief, secrets),))
    if name == "robust":
        credal = belief.credal(USUAL_CONFIDENCE if confidence is None else confidence)
        promise = (
            f"safe against an adversary who knows the population that {origin_of(credal.belief)} was drawn "
            f"from, with confidence {credal.confidence:g}"
        )
        return WorstCase(name, problem, credal.belief, promise, True, (RobustTotals(credal, secrets),))
    if name == "tree" or (belief.tree is not None and method == "auto"):
        name, belief, method = "tree", Belief.tree_of(belief), "tree"
    channels = problem.channels(problem.alike(problem.least))  # what is prepared holds at every budget
    totals = prepare_totals(belief, channels, secrets, method)
    return WorstCase(name, problem, belief, _promise(belief), not belief.is_model, totals)


def check_constraint(name: str, method: str, confidence: float | None) -> None:
    """Raise if there is no such constraint, or if it does not go with the method or the confidence."""
    check_choice("constraint", name, WORST_CASES)
    check_choice("method", method, ("auto", "exact", "joint generic", "composition"))
    if name != "table" and method != "auto":
        raise InputError(f"`method` is for the constraint 'table'; leave it out for {name!r}.")
    if confidence is None:
        return
    if name != "robust":
        raise InputError(
            f"`confidence` is for the constraint 'robust', got {confidence!r} for {name!r}; leave it out, or "
            "use 'robust'."
        )
    check_number("confidence", confidence, above=0, below=1)


def origin_of(belief: Belief) -> str:
    """Say where a belief came from, as part of a sentence."""
    return "a belief given by hand" if belief.source == "by hand" else belief.source


def _promise(belief: Belief) -> str:
    """Say for whom limits are kept under a belief: for a model where it is one."""
    if belief.tree is not None:
        known = f"{'models the population as' if belief.is_model else 'knows the population is'} this tree:"
    else:
        what = "every pair of attributes" if belief.kind == "pairwise" else "the joint distribution"
        known = f"knows {what} of"
    return f"safe against an adversary who {known} {origin_of(belief)}"


@dataclass(frozen=True, eq=False)
class PublishedTotals(Totals):
    """The published sum of pairwise figures; what one release says at one budget is kept."""

    belief: Belief
    secrets: tuple[str, ...]
    _parts: dict[tuple[str, float], Array] = field(default_factory=dict, repr=False)

    def values(self, channels: Channels) -> dict[str, float]:
        """Return the sum for each secret."""
        sums = np.sum([self._part(name, channel) for name, channel in channels.items()], axis=0)
        return dict(zip(self.secrets, sums.tolist(), strict=True))

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the sum for each secret with what it claims."""
        return {name: pairwise_sum(self.belief, channels, name) for name in self.secrets}

    def _part(self, name: str, channel: Channel) -> Array:
        """Return what one release says about every secret; searches move one budget at a time."""
        if (key := (name, channel.epsilon)) not in self._parts:
            leaks = [leakage_alone(self.belief, channel, name, secret) for secret in self.secrets]
            self._parts[key] = np.array(leaks)
        return self._parts[key]


@dataclass(frozen=True, eq=False)
class RobustTotals(Totals):
    """The certified totals over a credal set; what the sample says does not depend on the budgets."""

    credal: Credal
    secrets: tuple[str, ...]
    _regions: dict[str, Region | None] = field(default_factory=dict, repr=False)

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total of each secret with what it claims."""
        for secret in self.secrets:
            if secret not in self._regions:
                others = [name for name in channels if name != secret]
                self._regions[secret] = joint_region(self.credal, secret, others)
        return {name: robust_upper(self.credal, channels, name, self._regions[name]) for name in self.secrets}
