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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes, Array, Whole
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


class LabelResponse(ABC):
    """The contract: one person's report about a value and a label.

    Attributes:
        name: of the protocol.
        values: the number of values, or of combinations of values.
        labels: the number of labels.
        budget: the nominal budget of the label.
        width: k, the number of pairs in a report; 0 where it may be any.
        omega: the largest weight of k values under one label.
        word: the type of the numbers that a report is made of.
    """

    name: ClassVar[str]
    word: ClassVar[type[np.unsignedinteger[Any]]] = np.uint16
    values: int
    labels: int
    budget: float
    width: int = 0
    omega: float = 1.0

    @property
    @abstractmethod
    def label_epsilon(self) -> float:
        """What a report says about the label at most, whatever the belief allows; may be infinite."""

    @abstractmethod
    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return one report for each person; secure without a seed, a simulation with one."""

    @abstractmethod
    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up: how often each pair of value and label is reported."""

    @abstractmethod
    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the joint, shape (values, labels); cells may be negative."""

    @abstractmethod
    def total_variance(self, reports: int) -> float:
        """Return the expected squared distance of the estimate from the joint, sampling of people apart."""

    @abstractmethod
    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what a report says about the label, exactly, given Pr(value | label), (labels, values)."""

    @abstractmethod
    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """Return Pr(report | label) up to a factor a report, (people, labels), given Pr(value | label)."""

    def shown_labels(self, reports: Reports) -> Whole | None:  # noqa: ARG002
        """Return the one label that each report shows; None where it may show any number."""
        return None

    def shown_values(self, reports: Reports) -> Whole | None:  # noqa: ARG002
        """Return the values that each report shows, shape (people, width); None for any number."""
        return None


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


def check_labelled(values: ArrayLike, labels: ArrayLike, sizes: tuple[int, int]) -> tuple[AnyCodes, AnyCodes]:
    """Return the codes of values and labels after checking them: one label for each value."""
    codes, marks = check_codes(values, sizes[0]), check_codes(labels, sizes[1], "labels")
    if len(codes) != len(marks):
        raise InputError(f"there must be one label for each value, got {len(codes)} and {len(marks)}.")
    return codes, marks


class PairResponse(LabelResponse):
    """What the protocols for pairs share: a mechanism over pairs makes, adds up and inverts the reports.

    Given a label only the favoured pairs with that label count. So a report that favours the set S has the
    likelihood 1 + (theta - 1) sum of Pr(value | label) over the pairs of S with this label, up to a factor.
    """

    @property
    @abstractmethod
    def mechanism(self) -> SubsetSelection | SymmetricUnary:
        """The mechanism over pairs."""

    @abstractmethod
    def favoured(self, reports: Reports, conditionals: Array) -> Array:
        """Return Pr(value | label) summed over the favoured pairs of each label, shape (people, labels)."""

    @property
    def factor(self) -> Fraction:
        """Theta: how much likelier a report is under each of its pairs than under another."""
        return self.mechanism.factor

    @property
    def channel(self) -> Channel:
        """The exact law of a report about pairs."""
        return self.mechanism.channel

    @property
    def most_values(self) -> int:
        """How many values a report may favour under one label: k, or all of them."""
        return self.width or self.values

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return one report for each person: a sorted set of pairs (kHR), or packed bits (basic)."""
        first, second = check_labelled(values, labels, (self.values, self.labels))
        pairs = (first.astype(np.int64) * self.labels + second).astype(code_type(self.values * self.labels))
        return self.mechanism.randomise(pairs, seed=seed, offset=offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each pair is reported."""
        return self.mechanism.aggregate(reports)

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate (c/n - q)/(p - q), shape (values, labels)."""
        return self.mechanism.estimate(aggregate).reshape(self.values, self.labels)

    def total_variance(self, reports: int) -> float:
        """See `LabelResponse`."""
        return _counting_variance(self.mechanism, reports)

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """See `LabelResponse`."""
        return label_leakage(conditionals, self.channel)

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """See `LabelResponse`."""
        return np.asarray(1 + (float(self.factor) - 1) * self.favoured(reports, conditionals))


@dataclass(frozen=True)
class HeadsResponse(PairResponse):
    """kHR: a set of exactly k pairs, likelier to hold the true one (CLLDP, Algorithms 1 and 2, Theorem 2).

    The set is that of subset selection with the factor theta = (e^eps + omega - 1) / omega instead of e^eps:
    exact thresholds, rounded so that the promise about the label never exceeds the budget. The pair itself is
    protected by ln(theta), which is more than the budget where omega is below 1.
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
        least = min(self.width / self.values, 1.0)
        if self.omega < least * (1 - 1e-9):
            raise InputError(
                f"`omega` must be at least {least:.4g}, since the likeliest {self.width} of {self.values} "
                f"values weigh that much, got {self.omega!r}."
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

    def favoured(self, reports: Reports, conditionals: Array) -> Array:
        """See `PairResponse`."""
        pairs = reports.values.astype(np.int64)
        weights = conditionals.T.reshape(-1)[pairs]
        named = [np.where(pairs % self.labels == label, weights, 0.0) for label in range(self.labels)]
        return np.stack([part.sum(axis=1) for part in named], axis=1)

    def shown_labels(self, reports: Reports) -> Whole | None:
        """Return the label of the pair, where a report is one pair."""
        return reports.values[:, 0].astype(np.int64) % self.labels if self.width == 1 else None

    def shown_values(self, reports: Reports) -> Whole:
        """Return the values of the k pairs of each report."""
        return reports.values.astype(np.int64) // self.labels


@dataclass(frozen=True)
class BasicResponse(PairResponse):
    """The basic solution: a bit for each pair, each kept with the same probability (CLLDP, Theorem 1).

    Any set of bits can be reported, so omega is always 1 and the protocol is symmetric unary encoding of the
    pair at the budget.
    """

    name: ClassVar[str] = "basic"
    word: ClassVar[type[np.unsignedinteger[Any]]] = np.uint8
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

    def favoured(self, reports: Reports, conditionals: Array) -> Array:
        """See `PairResponse`."""
        bits = np.unpackbits(reports.values, axis=1, bitorder="little")[:, : self.values * self.labels]
        held = bits.reshape(-1, self.values, self.labels).astype(np.float64)
        return np.asarray(np.einsum("nvl,lv->nl", held, conditionals))


@dataclass(frozen=True)
class LabelOnlyResponse(LabelResponse):
    """LabelDP: the value as it is, the label through subset selection (CLLDP, section 2.2).

    A report is the value's code followed by a set of labels. The budget is the label's alone: the value's own
    correlation with it is no part of it.
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
        codes, marks = check_labelled(values, labels, (self.values, self.labels))
        sets = self.selection.randomise(marks, seed=seed, offset=offset)
        rows = np.concatenate([codes[:, None].astype(np.uint16), sets.values], axis=1)
        return Reports(rows, is_simulation=sets.is_simulation)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each label is in a set together with each value."""
        rows = check_reports(reports, "ui", self.selection.width + 1)
        values = check_codes(np.ascontiguousarray(rows[:, 0]), self.values, "reports")
        sets = self.selection.check(Reports(rows[:, 1:]))
        pairs = (values.astype(np.int64)[:, None] * self.labels + sets).reshape(-1)
        return Aggregate(len(rows), code_counts(pairs.astype(np.uint16), self.values * self.labels))

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate, shape (values, labels): the label inverted within each value."""
        check_estimable(aggregate, self.values * self.labels, self.name)
        counts = aggregate.sums.reshape(self.values, self.labels) / aggregate.reports
        share = counts.sum(axis=1, keepdims=True) / self.selection.width
        p, q = self.selection.mark_rates
        return np.asarray((counts - float(q) * share) / float(p - q))

    def total_variance(self, reports: int) -> float:
        """See `LabelResponse`."""
        return _counting_variance(self.selection, reports)

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what the true value and the label's report together say about the label, exactly."""
        return labeldp_leakage(conditionals, self.selection.channel)

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """See `LabelResponse`."""
        held = self.selection.marked(Reports(reports.values[:, 1:]))
        given = conditionals.T[reports.values[:, 0].astype(np.int64)]
        return np.asarray(given * np.where(held, float(self.selection.factor), 1.0))

    def shown_labels(self, reports: Reports) -> Whole | None:
        """Return the reported label, where a report names just one."""
        return reports.values[:, 1].astype(np.int64) if self.selection.width == 1 else None

    def shown_values(self, reports: Reports) -> Whole:
        """Return the value itself."""
        return reports.values[:, :1].astype(np.int64)


def _counting_variance(mechanism: SubsetSelection | SymmetricUnary, reports: int) -> float:
    """Return the sum over cells of eq. (7): [m q(1-q)/(p-q)^2 + (1-p-q)/(p-q)] / n."""
    count = check_whole("reports", reports, at_least=1)
    p, q = float(mechanism.mark_if_true), float(mechanism.mark_if_other)
    gap = float(mechanism.mark_if_true - mechanism.mark_if_other)
    return (mechanism.size * q * (1 - q) / gap**2 + (1 - p - q) / gap) / count
