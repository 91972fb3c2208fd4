"""Constraints: which figure must stay under the limits, and for which adversary that is a promise.

A search asks for the same figures again and again, so each constraint prepares what does not depend on the
budgets and then answers quickly. What is returned in the end is checked by an audit, which takes its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, Credal
from sidelight.belief.credal import Region
from sidelight.calibration.problem import Problem
from sidelight.calibration.totals import (
    Channels,
    ExactTotal,
    ExactTotals,
    JointTotal,
    exact_totals,
    own_report,
)
from sidelight.foundation.errors import InputError, check_choice, check_number
from sidelight.leakage.bounds import Bound
from sidelight.leakage.credal import joint_region, robust_upper
from sidelight.leakage.pair import conditional_rows
from sidelight.leakage.published import pairwise_sum
from sidelight.leakage.totals.total import TotalMethod, is_exact_cheap
from sidelight.leakage.totals.tree import TreeTotals
from sidelight.mechanisms import Channel

Array = NDArray[np.float64]
ConstraintName = Literal["table", "tree", "published", "robust"]
USUAL_CONFIDENCE = 0.95
LARGEST_FIGURE = 1e6
"""What stands for infinity where figures are subtracted."""
NAMES: tuple[ConstraintName, ...] = ("table", "tree", "published", "robust")


def origin_of(belief: Belief) -> str:
    """Say where a belief came from, as part of a sentence."""
    return "a belief given by hand" if belief.source == "by hand" else belief.source


def tree_promise(belief: Belief) -> str:
    """Say for whom limits are kept under a tree: for a model, unless the tree was given by hand."""
    known = "models the population as" if belief.is_model else "knows the population is"
    return f"safe against an adversary who {known} this tree: {origin_of(belief)}"


class Constraint(Protocol):
    """A figure for every secret."""

    @property
    def name(self) -> ConstraintName:
        """Which constraint it is."""

    @property
    def promise(self) -> str:
        """For whom keeping it is a promise, in words."""

    @property
    def is_sound(self) -> bool:
        """Whether keeping it keeps the limits for whole reports and the table, not for a model of it."""

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return how much each figure grows at least with each moved channel alone, shape (secrets, moved).

        For small moves it is how much they grow, to first order.
        """

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""


def changes_by(figures: Callable[[Channels], Array], channels: Channels, moved: Channels) -> Array:
    """Return how much each figure grows with each moved channel alone, by asking for all of them again."""
    base = np.minimum(figures(channels), LARGEST_FIGURE)
    found = [figures({**channels, name: channel}) for name, channel in moved.items()]
    return np.asarray((np.minimum(found, LARGEST_FIGURE) - base).T)


def constraint_of(
    problem: Problem, name: ConstraintName, method: TotalMethod = "auto", confidence: float | None = None
) -> Constraint:
    """Return the constraint called `name`, prepared for a problem."""
    check_constraint(name, method, confidence)
    belief = problem.belief
    if name == "tree" or (name == "table" and belief.tree is not None and method == "auto"):
        return TreeConstraint(Belief.tree_of(belief), problem.secrets)
    if name == "published":
        return PublishedConstraint(belief, problem.secrets)
    if name == "robust":
        return RobustConstraint(
            belief.credal(USUAL_CONFIDENCE if confidence is None else confidence), problem.secrets
        )
    return TableConstraint.of(problem, method)


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


@dataclass(frozen=True, eq=False)
class TableConstraint:
    """The certified total for an adversary who holds the belief: exact, joint generic or composition.

    Attributes:
        belief: what the adversary knows.
        secrets: in their order.
        method: of `total_leakage`.
        totals: the secrets' figures; those of small tables come together, see `ExactTotals`.
    """

    belief: Belief
    secrets: tuple[str, ...]
    method: TotalMethod
    totals: tuple[ExactTotals | ExactTotal | JointTotal, ...]
    name: ConstraintName = "table"

    @classmethod
    def of(cls, problem: Problem, method: TotalMethod) -> TableConstraint:
        """Choose each secret's method once: it depends on the channels' families, not on their budgets."""
        belief = problem.belief
        channels = problem.channels(np.full(len(problem.free), problem.least))
        released = list(channels)
        exact = [
            name
            for name in problem.secrets
            if method == "exact" or (method == "auto" and is_exact_cheap(belief, channels, name))
        ]
        found: list[ExactTotals | ExactTotal | JointTotal] = [*exact_totals(belief, channels, exact)]
        for name in problem.secrets:
            if name not in exact:
                found.append(JointTotal.of(belief, released, name, method))
        return cls(belief, problem.secrets, method, tuple(found))

    @property
    def is_sound(self) -> bool:
        """Whether the belief is the table's own, and no model of it."""
        return not self.belief.is_model

    @property
    def promise(self) -> str:
        """For whom keeping it is a promise, in words."""
        if self.belief.tree is not None:
            return tree_promise(self.belief)
        known = "every pair of attributes" if self.belief.kind == "pairwise" else "the joint distribution"
        return f"safe against an adversary who knows {known} of {origin_of(self.belief)}"

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""
        found: dict[str, float] = {}
        for part in self.totals:
            found.update(part(channels))
        return np.array([found[name] for name in self.secrets])

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return how much each figure grows at least with each moved channel, shape (secrets, moved)."""
        found: dict[str, Array] = {}
        for part in self.totals:
            found.update(part.changes(channels, moved))
        return np.array([np.nan_to_num(found[name], posinf=LARGEST_FIGURE) for name in self.secrets])

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        found: dict[str, Bound] = {}
        for part in self.totals:
            found.update(part.bounds(channels))
        return {name: found[name] for name in self.secrets}


@dataclass(frozen=True, eq=False)
class TreeConstraint:
    """The total for an adversary who believes in a tree; a model, unless the tree was given by hand."""

    belief: Belief
    secrets: tuple[str, ...]
    name: ConstraintName = "tree"

    @property
    def is_sound(self) -> bool:
        """Whether the tree is the joint itself, and no model of a table."""
        return not self.belief.is_model

    @property
    def promise(self) -> str:
        """For whom keeping it is a promise, in words."""
        return tree_promise(self.belief)

    @cached_property
    def totals(self) -> TreeTotals:
        """The secrets' figures, which keep what a search does not change."""
        return TreeTotals(self.belief, self.secrets)

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""
        totals = self.totals(channels, witnesses=False)
        return np.array([totals[name].value for name in self.secrets])

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return how much each figure grows with each moved channel alone, shape (secrets, moved)."""
        return changes_by(self.figures, channels, moved)

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        return self.totals(channels)


@dataclass(frozen=True, eq=False)
class PublishedConstraint:
    """The published sum of pairwise figures (CPL, eq. (6) and (30)): not a bound, and no promise."""

    belief: Belief
    secrets: tuple[str, ...]
    name: ConstraintName = "published"
    is_sound: bool = False
    _parts: dict[tuple[str, float], Array] = field(default_factory=dict, repr=False)

    @property
    def promise(self) -> str:
        """For whom keeping it is a promise, in words."""
        return (
            f"no promise: the published sum of pairwise figures of {origin_of(self.belief)} keeps the "
            "limits, the true leakage may not"
        )

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""
        return np.asarray(np.sum([self._part(name, channel) for name, channel in channels.items()], axis=0))

    def _part(self, name: str, channel: Channel) -> Array:
        """Return what one release says about every secret; searches move one budget at a time."""
        key = (name, channel.epsilon)
        if key not in self._parts:
            self._parts[key] = np.array([self._pair(name, channel, secret) for secret in self.secrets])
        return self._parts[key]

    def _pair(self, name: str, channel: Channel, secret: str) -> float:
        if name == secret:
            return own_report(self.belief.prior(secret), channel)
        return channel.worst_ratio(conditional_rows(self.belief, secret, name)[0]).value

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return how much each figure grows with each moved channel alone, shape (secrets, moved)."""
        return changes_by(self.figures, channels, moved)

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        return {name: pairwise_sum(self.belief, channels, name) for name in self.secrets}


@dataclass(frozen=True, eq=False)
class RobustConstraint:
    """The certified total over every distribution that the sample leaves open."""

    credal: Credal
    secrets: tuple[str, ...]
    name: ConstraintName = "robust"
    is_sound: bool = True
    _regions: dict[str, Region | None] = field(default_factory=dict, repr=False)

    @property
    def belief(self) -> Belief:
        """The point estimate in the middle of them."""
        return self.credal.belief

    @property
    def promise(self) -> str:
        """For whom keeping it is a promise, in words."""
        return (
            f"safe against an adversary who knows the population that {origin_of(self.belief)} was drawn "
            f"from, with confidence {self.credal.confidence:g}"
        )

    def figures(self, channels: Channels) -> Array:
        """Return the figure of every secret, shape (secrets,)."""
        return np.array([bound.value for bound in self.bounds(channels).values()])

    def changes(self, channels: Channels, moved: Channels) -> Array:
        """Return how much each figure grows with each moved channel alone, shape (secrets, moved)."""
        return changes_by(self.figures, channels, moved)

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the figures with what they claim."""
        return {name: self._bound(channels, name) for name in self.secrets}

    def _bound(self, channels: Channels, secret: str) -> Bound:
        """Return one secret's figure; what the sample says does not depend on the budgets."""
        others = [name for name in channels if name != secret]
        if secret not in self._regions:
            self._regions[secret] = joint_region(self.credal, secret, others)
        return robust_upper(self.credal, channels, secret, self._regions[secret])
