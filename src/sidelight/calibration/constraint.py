"""Constraints: which figure must stay under the limits, and for which adversary that is a promise.

A search asks for the same figures again and again, so each constraint prepares what does not depend on the
budgets and then answers quickly. What is returned in the end is checked by an audit, which takes its own way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sidelight.belief import Belief, Credal
from sidelight.belief.credal import Region
from sidelight.calibration.problem import Problem
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.leakage.bounds import Bound
from sidelight.leakage.credal import joint_region, robust_upper
from sidelight.leakage.pair import conditional_rows
from sidelight.leakage.published import pairwise_sum
from sidelight.leakage.totals import (
    LARGEST_FIGURE,
    Channels,
    TotalMethod,
    Totals,
    own_leakage,
    prepare_totals,
)
from sidelight.mechanisms import Channel

ConstraintName = Literal["table", "tree", "published", "robust"]
NAMES: tuple[ConstraintName, ...] = ("table", "tree", "published", "robust")
USUAL_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Constraint:
    """A figure for every secret, and what keeping it under the limits promises.

    Attributes:
        name: which constraint it is.
        belief: under which the figures hold.
        secrets: in their order.
        totals: the secrets' figures, some of them together.
        promise: for whom keeping it is a promise, in words.
        is_sound: whether keeping it keeps the limits for whole reports and the table, not for a model of it.
    """

    name: ConstraintName
    belief: Belief
    secrets: tuple[str, ...]
    totals: tuple[Totals, ...]
    promise: str
    is_sound: bool

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""
        values: dict[str, float] = {}
        for part in self.totals:
            values |= part.values(channels)
        return np.array([values[name] for name in self.secrets])

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return by how much each figure grows at least with each moved channel alone.

        For small moves that is how much it grows, to first order.

        Returns:
            Shape (secrets, moved).
        """
        changes: dict[str, Array] = {}
        for part in self.totals:
            changes |= part.changes(channels, moved)
        return np.array([np.nan_to_num(changes[name], posinf=LARGEST_FIGURE) for name in self.secrets])

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        bounds: dict[str, Bound] = {}
        for part in self.totals:
            bounds |= part.bounds(channels)
        return {name: bounds[name] for name in self.secrets}


def constraint_of(
    problem: Problem, name: ConstraintName, method: TotalMethod = "auto", confidence: float | None = None
) -> Constraint:
    """Return the constraint called `name`, prepared for a problem."""
    check_constraint(name, method, confidence)
    belief = problem.belief
    if name == "tree" or (name == "table" and belief.tree is not None and method == "auto"):
        return _tree_constraint(problem)
    if name == "published":
        return _published_constraint(problem)
    if name == "robust":
        return _robust_constraint(problem, USUAL_CONFIDENCE if confidence is None else confidence)
    channels = problem.channels(problem.alike(problem.least))
    totals = prepare_totals(belief, channels, problem.secrets, method)
    return Constraint("table", belief, problem.secrets, totals, _table_promise(belief), not belief.is_model)


def check_constraint(name: str, method: str, confidence: float | None) -> None:
    """Raise if there is no such constraint, or if it does not go with the method or the confidence."""
    check_choice("constraint", name, NAMES)
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


def _table_promise(belief: Belief) -> str:
    if belief.tree is not None:
        return _tree_promise(belief)
    known = "every pair of attributes" if belief.kind == "pairwise" else "the joint distribution"
    return f"safe against an adversary who knows {known} of {origin_of(belief)}"


def _tree_promise(belief: Belief) -> str:
    """Say for whom limits are kept under a tree: for a model, unless the tree was given by hand."""
    known = "models the population as" if belief.is_model else "knows the population is"
    return f"safe against an adversary who {known} this tree: {origin_of(belief)}"


def _tree_constraint(problem: Problem) -> Constraint:
    """Return the total for an adversary who believes in a tree; a model, unless it was given by hand."""
    tree = Belief.tree_of(problem.belief)
    channels = problem.channels(problem.alike(problem.least))
    totals = prepare_totals(tree, channels, problem.secrets, "tree")
    return Constraint("tree", tree, problem.secrets, totals, _tree_promise(tree), not tree.is_model)


def _published_constraint(problem: Problem) -> Constraint:
    """Return the published sum of pairwise figures (CPL, eq. (6) and (30)): not a bound, and no promise."""
    promise = (
        f"no promise: the published sum of pairwise figures of {origin_of(problem.belief)} keeps the "
        "limits, the true leakage may not"
    )
    totals = PublishedTotals(problem.belief, problem.secrets)
    return Constraint("published", problem.belief, problem.secrets, (totals,), promise, is_sound=False)


def _robust_constraint(problem: Problem, confidence: float) -> Constraint:
    """Return the certified total over every distribution that the sample leaves open."""
    credal = problem.belief.credal(confidence)
    promise = (
        f"safe against an adversary who knows the population that {origin_of(credal.belief)} was drawn "
        f"from, with confidence {credal.confidence:g}"
    )
    totals = RobustTotals(credal, problem.secrets)
    return Constraint("robust", credal.belief, problem.secrets, (totals,), promise, is_sound=True)


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
        key = (name, channel.epsilon)
        if key not in self._parts:
            leaks = [leakage_alone(self.belief, channel, name, secret) for secret in self.secrets]
            self._parts[key] = np.array(leaks)
        return self._parts[key]


def leakage_alone(belief: Belief, channel: Channel, name: str, secret: str) -> float:
    """Return what the report of one attribute alone says about the secret, which may be itself."""
    if name == secret:
        return own_leakage(belief.prior(secret), channel)
    return channel.worst_ratio(conditional_rows(belief, secret, name)[0]).value


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
