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
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes, Array, Positions, Whole
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

Shown = Literal["nothing", "value", "label"]


@dataclass(frozen=True)
class LabelResponse(ABC):
    """The contract: one person's report about a value and a label, here by a mechanism over pairs of them.

    Attributes:
        values: the number of values, or of combinations of values.
        budget: the nominal budget of the label.
        width: k, the number of pairs in a report; 0 where it may be any.
        omega: the largest weight of k values under one label.
        word: the type of the numbers that a report is made of.
        shows: what a report holds as it is.
    """

    name: ClassVar[str]
    shows: ClassVar[Shown] = "nothing"
    word: ClassVar[type[np.unsignedinteger[Any]]] = np.uint16
    width = 0
    omega = 1.0
    values: int
    labels: int
    budget: float

    def __post_init__(self) -> None:
        check_pairs(self.values, self.labels)
        check_label_budget(self.budget)

    @property
    @abstractmethod
    def mechanism(self) -> SubsetSelection | SymmetricUnary:
        """The mechanism over pairs; for LabelDP that over labels."""

    @property
    @abstractmethod
    def label_epsilon(self) -> float:
        """What a report says about the label at most, whatever the belief allows; may be infinite."""

    @property
    def value_epsilon(self) -> float:
        """What a report says about the attribute's value at most, whatever is believed; may be infinite."""
        return self.mechanism.epsilon

    @abstractmethod
    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """Return Pr(report | label) up to a factor a report, (people, labels), given Pr(value | label)."""

    @property
    def factor(self) -> Fraction:
        """Theta: how much likelier a report is under what it names than under anything else."""
        return self.mechanism.factor

    @property
    def channel(self) -> Channel:
        """The exact law of what the mechanism reports."""
        return self.mechanism.channel

    @property
    def most_values(self) -> int:
        """How many values a report may favour under one label: k, or all of them."""
        return self.width or self.values

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return one report for each person: a sorted set of pairs (kHR), or packed bits (basic).

        The noise is secure without a seed, a simulation with one.
        """
        first, second = check_labelled(values, labels, (self.values, self.labels))
        pairs = (first.astype(np.int64) * self.labels + second).astype(code_type(self.values * self.labels))
        return self.mechanism.randomise(pairs, seed=seed, offset=offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up: how often each pair of value and label is reported."""
        return self.mechanism.aggregate(reports)

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate (c/n - q)/(p - q), shape (values, labels); cells may be negative."""
        return self.mechanism.estimate(aggregate).reshape(self.values, self.labels)

    def total_variance(self, reports: int) -> float:
        """Return the expected squared distance of the estimate from the joint, sampling of people apart.

        The sum over cells of CLLDP, eq. (7): [m q(1-q)/(p-q)^2 + (1-p-q)/(p-q)] / n.
        """
        count, rates = check_whole("reports", reports, at_least=1), self.mechanism.mark_rates
        p, q = map(float, rates)
        gap = float(rates[0] - rates[1])  # of the exact rates: p and q may round to the same double
        return (self.mechanism.size * q * (1 - q) / gap**2 + (1 - p - q) / gap) / count

    def cell_variance(self, marginal: Array, prior: Array) -> Array:
        """Return the variance of each cell of the joint from one report, were value and label independent.

        CLLDP, eq. (7), for the shares of the values and of the labels, shape (values, labels).
        """
        return self._mark_variance(np.outer(marginal, prior))

    def _mark_variance(self, shares: Array) -> Array:
        """Return b (1 - b) / (p - q)^2 with b = q + (p - q) f, for what is reported with the share f."""
        rates = self.mechanism.mark_rates
        q, gap = float(rates[1]), float(rates[0] - rates[1])
        chance = q + gap * shares
        return np.asarray(chance * (1 - chance) / gap**2)

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what a report says about the label, exactly, given Pr(value | label), (labels, values)."""
        return label_leakage(conditionals, self.channel)

    def _likely(self, favoured: Array) -> Array:
        """Return the likelihood 1 + (theta - 1) of what the favoured pairs weigh, (people, labels).

        Given a label only the favoured pairs with that label count.
        """
        return np.asarray(1 + (float(self.factor) - 1) * favoured)

    def shown_labels(self, reports: Reports) -> Whole | None:  # noqa: ARG002
        """Return the one label that each report shows; None where it may show any number."""
        return None

    def shown_values(self, reports: Reports) -> Whole | None:  # noqa: ARG002
        """Return the values that each report shows, shape (people, width); None for any number."""
        return None


def check_pairs(values: int, labels: int) -> None:
    """Raise unless there are at least two labels and not too many pairs."""
    check_whole("values", values, at_least=1)
    check_whole("labels", labels, at_least=2)
    if values * labels > LARGEST_SIZE:
        raise TooLargeError(
            f"{values} values with {labels} labels make {values * labels} pairs, more than {LARGEST_SIZE}; "
            "use a hashed domain (HashedHeads) or coarser bins."
        )


def check_labelled(values: ArrayLike, labels: ArrayLike, sizes: tuple[int, int]) -> tuple[AnyCodes, AnyCodes]:
    """Return the codes of values and labels after checking them: one label for each value."""
    codes, marks = check_codes(values, sizes[0]), check_codes(labels, sizes[1], "labels")
    if len(codes) != len(marks):
        raise InputError(f"there must be one label for each value, got {len(codes)} and {len(marks)}.")
    return codes, marks


@dataclass(frozen=True)
class HeadsResponse(LabelResponse):
    """kHR: a set of exactly k pairs, likelier to hold the true one (CLLDP, Algorithms 1 and 2, Theorem 2).

    The set is that of subset selection with the factor theta = (e^eps + omega - 1) / omega instead of e^eps:
    exact thresholds, rounded so that the promise about the label never exceeds the budget. The pair itself is
    protected by ln(theta), which is more than the budget where omega is below 1.
    """

    name: ClassVar[str] = "khr"
    width: int = 1
    omega: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("width", self.width, at_least=1, at_most=self.values * self.labels - 1)
        check_omega(self.omega)
        least = min(self.width / self.values, 1.0)
        if self.omega < least * (1 - 1e-9):  # a share of n values may be a rounding error below k/n
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
            budget = math.nextafter(budget, 0.0)  # rounding the logarithm up would break the promise
        return SubsetSelection(self.values * self.labels, budget, self.width)

    @property
    def label_epsilon(self) -> float:
        """The realised promise about the label, ln(omega theta + 1 - omega)."""
        return min(log_factor(Fraction(self.omega) * (self.factor - 1) + 1), self.budget)

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """See `LabelResponse`; the weight of a report's own pairs, label by label."""
        pairs = reports.values.astype(np.int64)
        weights = conditionals.T.reshape(-1)[pairs]
        named = [np.where(pairs % self.labels == label, weights, 0.0) for label in range(self.labels)]
        return self._likely(np.stack([part.sum(axis=1) for part in named], axis=1))

    def shown_labels(self, reports: Reports) -> Whole | None:
        """Return the label of the pair, where a report is one pair."""
        return reports.values[:, 0].astype(np.int64) % self.labels if self.width == 1 else None

    def shown_values(self, reports: Reports) -> Whole:
        """Return the values of the k pairs of each report."""
        return reports.values.astype(np.int64) // self.labels


@dataclass(frozen=True)
class BasicResponse(LabelResponse):
    """The basic solution: a bit for each pair, each kept with the same probability (CLLDP, Theorem 1).

    Any set of bits can be reported, so omega is always 1 and the protocol is symmetric unary encoding of the
    pair at the budget.
    """

    name: ClassVar[str] = "basic"
    word: ClassVar[type[np.unsignedinteger[Any]]] = np.uint8

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """See `LabelResponse`; the weight of the pairs whose bits are set, label by label."""
        bits = np.unpackbits(reports.values, axis=1, bitorder="little")[:, : self.values * self.labels]
        held = bits.reshape(-1, self.values, self.labels).astype(np.float64)
        return self._likely(np.einsum("nvl,lv->nl", held, conditionals))


@dataclass(frozen=True)
class LabelOnlyResponse(LabelResponse):
    """LabelDP: the value as it is, the label through subset selection (CLLDP, section 2.2).

    A report is the value's code followed by a set of labels. The budget is the label's alone: the value's own
    correlation with it is no part of it.
    """

    name: ClassVar[str] = "labeldp"
    shows: ClassVar[Shown] = "value"

    @cached_property
    def mechanism(self) -> SubsetSelection:
        """The subset selection over labels."""
        return SubsetSelection(self.labels, self.budget)

    @property
    def label_epsilon(self) -> float:
        """Infinite: without a belief nothing bounds what true attributes say about the label."""
        return math.inf

    @property
    def value_epsilon(self) -> float:
        """Infinite: the value is sent as it is."""
        return math.inf

    def randomise(
        self, values: ArrayLike, labels: ArrayLike, *, seed: int | None = None, offset: int = 0
    ) -> Reports:
        """Return the value and a sorted set of labels for each person."""
        codes, marks = check_labelled(values, labels, (self.values, self.labels))
        sets = self.mechanism.randomise(marks, seed=seed, offset=offset)
        rows = np.concatenate([codes[:, None].astype(np.uint16), sets.values], axis=1)
        return Reports(rows, is_simulation=sets.is_simulation)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each label is in a set together with each value."""
        rows = check_reports(reports, "ui", self.mechanism.width + 1)
        values = check_codes(np.ascontiguousarray(rows[:, 0]), self.values, "reports")
        sets = self.mechanism.check(Reports(rows[:, 1:]))
        pairs = (values.astype(np.int64)[:, None] * self.labels + sets).reshape(-1)
        return Aggregate(len(rows), code_counts(pairs.astype(np.uint16), self.values * self.labels))

    def joint(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate, shape (values, labels): the label inverted within each value."""
        check_estimable(aggregate, self.values * self.labels, self.name)
        counts = aggregate.sums.reshape(self.values, self.labels) / aggregate.reports
        share = counts.sum(axis=1, keepdims=True) / self.mechanism.width  # every report names so many labels
        p, q = self.mechanism.mark_rates
        return np.asarray((counts - float(q) * share) / float(p - q))

    def cell_variance(self, marginal: Array, prior: Array) -> Array:
        """See `LabelResponse`; the label is noisy among those who have a value."""
        return np.asarray(marginal[:, None] * self._mark_variance(prior))

    def leakage(self, conditionals: ArrayLike) -> Bound:
        """Return what the true value and the label's report together say about the label, exactly."""
        return labeldp_leakage(conditionals, self.mechanism.channel)

    def likelihood(self, reports: Reports, conditionals: Array) -> Array:
        """See `LabelResponse`."""
        held = self.mechanism.marked(Reports(reports.values[:, 1:]))
        given = conditionals.T[reports.values[:, 0].astype(np.int64)]
        return np.asarray(given * np.where(held, float(self.mechanism.factor), 1.0))

    def shown_labels(self, reports: Reports) -> Whole | None:
        """Return the reported label, where a report names just one."""
        return reports.values[:, 1].astype(np.int64) if self.mechanism.width == 1 else None

    def shown_values(self, reports: Reports) -> Whole:
        """Return the value itself."""
        return reports.values[:, :1].astype(np.int64)


class AttributeTold(ABC):
    """What people told about one attribute and the label: all that a model is learnt from."""

    attribute: int
    response: LabelResponse

    @property
    @abstractmethod
    def count(self) -> int:
        """How many people told it."""

    @property
    @abstractmethod
    def added(self) -> Aggregate:
        """Their reports, added up."""

    def joint(self) -> Array:
        """Return the unbiased estimate of the joint of the attribute and the label, (values, labels)."""
        return self.response.joint(self.added)


@dataclass(frozen=True, eq=False)
class AttributeReports(AttributeTold):
    """The reports about one attribute and the label, by everyone who was dealt to it.

    In a simulation `people` says which row each report came from; None for a real collection.
    """

    attribute: int
    response: LabelResponse
    reports: Reports
    people: Positions | None = None

    @property
    def count(self) -> int:
        """How many reports there are."""
        return len(self.reports)

    @property
    def added(self) -> Aggregate:
        """The reports, added up."""
        return self.response.aggregate(self.reports)


@dataclass(frozen=True, eq=False)
class AttributeSums(AttributeTold):
    """The sums of such reports: what a server keeps that does not keep reports."""

    attribute: int
    response: LabelResponse
    sums: Aggregate

    @property
    def count(self) -> int:
        """How many reports were added up."""
        return self.sums.reports

    @property
    def added(self) -> Aggregate:
        """The sums themselves."""
        return self.sums
