"""Frequency oracles: mechanisms whose reports mark values, and whose estimate counts the marks.

A report marks value v with probability p if v is the truth and q if another value is, the same for all values
("pure protocols": Wang, Blocki, Li, Jha 2017, where a report *supports* a value). Then (c/n - q)/(p - q), of
c marks in n reports, is unbiased. A report is also likelier by one and the same factor under each value that
it marks than under each that it does not, so the marks are all that it says.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Positions, Whole, spans
from sidelight.foundation.bits import code_counts
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import Randomness, randomness
from sidelight.mechanisms.channel import Channel, FavouringChannel
from sidelight.mechanisms.channel.sets import Family
from sidelight.mechanisms.checks import check_codes, check_offset, check_shares
from sidelight.mechanisms.exact import check_factor, check_size, check_word_budget, log_factor, store
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.reports import ReportForm, Reports

LARGEST_TABLE = 1 << 26
"""Tables of reports by values are kept below so many cells."""


@dataclass(frozen=True)
class CodedMechanism(Mechanism):
    """A mechanism over `size` codes, with delta 0; its thresholds are rounded to keep `nominal_budget`."""

    nominal_budget: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), nominal_budget=check_word_budget(self.nominal_budget))
        self.settle()
        check_factor(self.factor, self.nominal_budget)

    def settle(self) -> None:
        """Check and complete the parameters, once the size and the budget are known to be right."""

    @property
    @abstractmethod
    def factor(self) -> Fraction:
        """The largest ratio between the probabilities of one report under two values, e^epsilon."""

    @property
    def epsilon(self) -> float:
        """The realised budget of one report, ln(factor)."""
        return log_factor(self.factor)


class OneCode(Mechanism):
    """A mechanism whose report is a single code."""

    @property
    def form(self) -> ReportForm:
        """A code."""
        return ReportForm.codes(self.size)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each code was reported."""
        codes = self.check(reports)
        return Aggregate(len(codes), code_counts(codes, self.form.count), self.name)

    def face_value(self, reports: Reports) -> Positions | None:
        """Return the reported codes, where there are as many as values."""
        return self.check(reports).astype(np.intp) if self.form.count == self.size else None


class SampledCode(OneCode):
    """A mechanism that draws its code from one stream of random words."""

    @abstractmethod
    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> NDArray[np.integer]:
        """Return one report for each code, from the words number `start` on."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one reported code for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        source = randomness(seed, self.name, compiled=use_loop("mechanisms.respond", len(codes)))
        out = np.empty(len(codes), dtype=self.form.dtype)
        for span in spans(len(codes)):
            out[span] = self.sample(source, first + span.start, codes[span])
        return Reports(out, is_simulation=not source.is_secure)


class FrequencyOracle(CodedMechanism):
    """A mechanism whose reports mark values.

    Abstract: `name`, `form`, `factor`, `mark_rates`, `marked` and `randomise`.
    """

    favours: ClassVar[Family | None] = None
    """Which sets reports mark, all of them, see `FavouringChannel`; None where that is not stated."""

    @property
    @abstractmethod
    def mark_rates(self) -> tuple[Fraction, Fraction]:
        """The probabilities p and q that a report marks the true value, and a particular other value."""

    @property
    def mark_if_true(self) -> Fraction:
        """The probability that a report marks the true value, p."""
        return self.mark_rates[0]

    @property
    def mark_if_other(self) -> Fraction:
        """The probability that a report marks a particular other value, q."""
        return self.mark_rates[1]

    @abstractmethod
    def marked(self, reports: Reports) -> Mask:
        """Return which values each report marks, shape (reports, size), after `check`."""

    @property
    def channel(self) -> Channel:
        """A report favours the values that it marks."""
        family, is_stated, width = self.favours or "all", self.favours is not None, self.set_size or 1
        baseline = float(1 / self.factor)
        return FavouringChannel(self.size, family, baseline, width, is_stated, budget=self.epsilon)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value is marked."""
        self.check(reports)
        counts = np.zeros(self.size, dtype=np.int64)
        for span in spans(len(reports), self.size):
            counts += np.count_nonzero(self.marked(reports[span]), axis=0)
        return Aggregate(len(reports), counts, self.name)

    def mark_counts(self, aggregate: Aggregate) -> Whole:
        """Return how many reports mark each value."""
        check_estimable(aggregate, self.size, self.name)
        return aggregate.sums

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate (c/n - q)/(p - q) of the values' frequencies."""
        q, gap = self._inversion
        return np.asarray((self.mark_counts(aggregate) / aggregate.reports - q) / gap)

    @cached_property
    def _inversion(self) -> tuple[float, float]:
        """The numbers q and p - q, from fractions: at small budgets doubles would lose the gap."""
        p, q = self.mark_rates
        return float(q), float(p - q)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        count = check_whole("reports", reports, at_least=1)
        q, gap = self._inversion
        seen = q + gap * check_shares(frequencies, self.size, single=True)
        return np.asarray(seen * (1 - seen) / (count * gap**2))

    def likelihoods(self, reports: Reports) -> Array:
        """Return 1 for the values that a report marks and 1 / factor for the others, see `Mechanism`."""
        return np.where(self.marked(reports).T, 1.0, float(1 / self.factor)).T

    def log_scales(self, reports: Reports) -> Array:
        """Return ln p: given a value, all reports that mark it are equally likely, see `Mechanism`."""
        return np.full(len(reports), math.log(self.mark_if_true))

    def tabulated(self, reports: Reports) -> tuple[Array, Positions]:
        """Return the likelihoods of the distinct sets of marked values, see `Mechanism`."""
        if self.form.is_listed and self.channel.is_listable:
            return super().tabulated(reports)
        if len(reports) * self.size > LARGEST_TABLE:
            raise InputError(
                f"{len(reports)} reports over {self.size} values are more than {LARGEST_TABLE} cells; "
                "estimate by inversion."
            )
        distinct, rows = np.unique(self.marked(reports), axis=0, return_inverse=True)
        return np.where(distinct, 1.0, float(1 / self.factor)), rows.reshape(-1)


def marked_accuracy(size: int, if_true: float, if_other: float) -> float:
    """Return how often a guess among independently marked values is right, or among all where none is.

    With B other values marked, B binomial, E[1 / (1 + B)] = (1 - (1-q)^k) / (k q).
    """
    share = -math.expm1(size * math.log1p(-if_other)) / (size * if_other)
    return if_true * share + (1 - if_true) * (1 - if_other) ** (size - 1) / size
