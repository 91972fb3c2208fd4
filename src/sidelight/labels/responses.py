"""Protocols for one labelled value: what a person sends about (value, label), and the joint from all of it.

The pair (value, label) has the number value * labels + label. A value may stand for a whole combination of
attributes. Every protocol samples reports, adds them up, inverts them to the joint of value and label, and
states what a report says about the label: as a promise (`label_epsilon`) and exactly for a given belief.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.bits import code_counts
from sidelight.foundation.errors import InputError, TooLargeError, check_whole
from sidelight.labels.leakage import check_label_budget, check_omega, label_leakage, labeldp_leakage
from sidelight.leakage.bounds import Bound
from sidelight.mechanisms.channel import Channel
from sidelight.mechanisms.exact import LARGEST_SIZE, exp_below, log_factor, too_small
from sidelight.mechanisms.mechanism import Aggregate, check_codes, check_estimable, check_reports, code_type
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.mechanisms.unary import SymmetricUnary

Array = NDArray[np.float64]


class LabelResponse(Protocol):
    """One person's report about a value and a label."""

    name: ClassVar[str]

    @property
    def values(self) -> int:
        """The number of values, or of combinations of values."""

    @property
    def labels(self) -> int:
        """The number of labels."""

    @property
    def label_epsilon(self) -> float:
        """What a report says about the label at most, whatever the belief allows; may be infinite."""

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return one report for each person; secure without a seed, a simulation with one."""

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up."""

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the joint, shape (values, labels); cells may be negative."""

    def total_variance(self, reports: int) -> float:
        """Return the expected squared distance of the estimate from the joint, sampling of people apart."""

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what a report says about the label, exactly, given Pr(value | label), (labels, values)."""


def check_pairs(values: int, labels: int) -> int:
    """Return the number of pairs after checking that there are two labels and not too many pairs."""
    check_whole("values", values, at_least=1)
    check_whole("labels", labels, at_least=2)
    if values * labels > LARGEST_SIZE:
        raise TooLargeError(
            f"{values} values with {labels} labels make {values * labels} pairs, more than {LARGEST_SIZE}; "
            "use a hashed domain (HashedHeads) or coarser bins."
        )
    return values * labels


def pair_codes(values: ArrayLike, labels: ArrayLike, sizes: tuple[int, int]) -> NDArray[np.unsignedinteger]:
    """Return value * labels + label for each person."""
    first, second = check_codes(values, sizes[0]), check_codes(labels, sizes[1], "labels")
    if len(first) != len(second):
        raise InputError(f"there must be one label for each value, got {len(first)} and {len(second)}.")
    pairs = first.astype(np.int64) * sizes[1] + second
    return pairs.astype(code_type(sizes[0] * sizes[1]))


class PairResponse(ABC):
    """What the protocols for pairs share: a mechanism over pairs makes, adds up and inverts the reports."""

    values: int
    labels: int

    @property
    @abstractmethod
    def mechanism(self) -> SubsetSelection | SymmetricUnary:
        """The mechanism over pairs."""

    @property
    def factor(self) -> Fraction:
        """Theta: how much likelier a report is under each of its pairs than under another."""
        return self.mechanism.factor

    @property
    def channel(self) -> Channel:
        """The exact law of a report about pairs."""
        return self.mechanism.channel

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return one report for each person: a sorted set of pairs (kHR), or packed bits (basic)."""
        pairs = pair_codes(values, labels, (self.values, self.labels))
        return self.mechanism.randomise(pairs, seed=seed, offset=offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each pair is reported."""
        return self.mechanism.aggregate(reports)

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate (c/n - q)/(p - q), shape (values, labels)."""
        return self.mechanism.estimate(aggregate).reshape(self.values, self.labels)

    def total_variance(self, reports: int) -> float:
        """Return the expected squared distance of the estimate from the joint, sampling of people apart."""
        return _counting_variance(self.mechanism, reports)

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what a report says about the label, exactly."""
        return label_leakage(conditionals, self.channel)


@dataclass(frozen=True)
class HeadsResponse(PairResponse):
    """kHR: a set of exactly k pairs, likelier to hold the true one (CLLDP, Algorithms 1 and 2, Theorem 2).

    The set is that of subset selection with the factor theta = (e^eps + omega - 1) / omega instead of e^eps:
    exact thresholds, rounded so that the promise about the label never exceeds the budget. The pair itself is
    protected by ln(theta), which is more than the budget where omega is below 1.

    Attributes:
        values: the number of values.
        labels: the number of labels.
        budget: the nominal budget of the label.
        width: k, the number of pairs in a report.
        omega: the most that k values weigh under one label.
    """

    name: ClassVar[str] = "khr"
    values: int
    labels: int
    budget: float
    width: int = 1
    omega: float = 1.0

    def __post_init__(self) -> None:
        pairs = check_pairs(self.values, self.labels)
        check_label_budget(self.budget)
        check_whole("width", self.width, at_least=1, at_most=pairs - 1)
        check_omega(self.omega)
        if self.omega < min(self.width / self.values, 1.0) * (1 - 1e-9):
            raise InputError(
                f"`omega` must be at least {min(self.width / self.values, 1.0):.4g}, since the likeliest "
                f"{self.width} of {self.values} values weigh that much, got {self.omega!r}."
            )
        if self.factor <= 1:
            raise too_small(self.budget)

    @cached_property
    def mechanism(self) -> SubsetSelection:
        """The subset selection over pairs that makes the reports."""
        limit = (exp_below(self.budget) - 1) / Fraction(self.omega) + 1
        budget = log_factor(limit)
        while exp_below(budget) > limit:
            budget = math.nextafter(budget, 0.0)
        return SubsetSelection(self.values * self.labels, budget, self.width)

    @property
    def label_epsilon(self) -> float:
        """The realised promise about the label, ln(omega theta + 1 - omega)."""
        return min(log_factor(Fraction(self.omega) * (self.factor - 1) + 1), self.budget)


@dataclass(frozen=True)
class BasicResponse(PairResponse):
    """The basic solution: a bit for each pair, each kept with the same probability (CLLDP, Theorem 1).

    Any set of bits can be reported, so omega is always 1 and the protocol is symmetric unary encoding of the
    pair at the budget.

    Attributes:
        values: the number of values.
        labels: the number of labels.
        budget: the nominal budget.
    """

    name: ClassVar[str] = "basic"
    values: int
    labels: int
    budget: float

    def __post_init__(self) -> None:
        check_pairs(self.values, self.labels)
        check_label_budget(self.budget)
        if self.factor <= 1:
            raise too_small(self.budget)

    @cached_property
    def mechanism(self) -> SymmetricUnary:
        """The unary encoding of pairs that makes the reports."""
        return SymmetricUnary(self.values * self.labels, self.budget)

    @property
    def label_epsilon(self) -> float:
        """The realised budget of the pair, hence of the label."""
        return self.mechanism.epsilon


@dataclass(frozen=True)
class LabelOnlyResponse:
    """LabelDP: the value as it is, the label through subset selection (CLLDP, section 2.2).

    A report is the value's code followed by a set of labels.

    Attributes:
        values: the number of values.
        labels: the number of labels.
        budget: the nominal budget of the label, which the value's own correlation with it is not part of.
    """

    name: ClassVar[str] = "labeldp"
    values: int
    labels: int
    budget: float

    def __post_init__(self) -> None:
        check_pairs(self.values, self.labels)
        check_label_budget(self.budget)

    @cached_property
    def selection(self) -> SubsetSelection:
        """The subset selection over labels."""
        return SubsetSelection(self.labels, self.budget)

    @property
    def label_epsilon(self) -> float:
        """Infinite: without a belief nothing bounds what true attributes say about the label."""
        return math.inf

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return the value and a sorted set of labels for each person."""
        codes = check_codes(values, self.values)
        sets = self.selection.randomise(labels, seed=seed, offset=offset)
        if len(sets) != len(codes):
            raise InputError(f"there must be one label for each value, got {len(codes)} and {len(sets)}.")
        rows = np.concatenate([codes[:, None].astype(np.uint16), sets.values], axis=1)
        return Reports(rows, is_simulation=sets.is_simulation)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each label is in a set together with each value."""
        width = self.selection.width
        rows = check_reports(reports, "ui", width + 1)
        values = check_codes(np.ascontiguousarray(rows[:, 0]), self.values, "reports")
        sets = self.selection.check(Reports(rows[:, 1:]))
        pairs = (values.astype(np.int64)[:, None] * self.labels + sets).reshape(-1)
        counts = code_counts(pairs.astype(np.uint16), self.values * self.labels)
        return Aggregate(len(rows), counts)

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate, shape (values, labels): the label inverted within each value."""
        check_estimable(aggregate, self.values * self.labels, self.name)
        counts = aggregate.sums.reshape(self.values, self.labels) / aggregate.reports
        share = counts.sum(axis=1, keepdims=True) / self.selection.width
        q, gap = self._support
        return np.asarray((counts - q * share) / gap)

    @property
    def _support(self) -> tuple[float, float]:
        q = self.selection.mark_if_other
        return float(q), float(self.selection.mark_if_true - q)

    def total_variance(self, reports: int) -> float:
        """Return the expected squared distance of the estimate from the joint, sampling of people apart."""
        return _counting_variance(self.selection, reports)

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what the true value and the label's report together say about the label, exactly."""
        return labeldp_leakage(conditionals, self.selection.channel)


def _counting_variance(mechanism: SubsetSelection | SymmetricUnary, reports: int) -> float:
    """Return the sum over cells of eq. (7): [m q(1-q)/(p-q)^2 + (1-p-q)/(p-q)] / n."""
    count = check_whole("reports", reports, at_least=1)
    p, q = float(mechanism.mark_if_true), float(mechanism.mark_if_other)
    gap = float(mechanism.mark_if_true - mechanism.mark_if_other)
    return (mechanism.size * q * (1 - q) / gap**2 + (1 - p - q) / gap) / count
