"""Laws with whole-number weights: x is reported as y with probability weight(x, y) / total(x), exactly."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Whole, Words
from sidelight.foundation.errors import InputError, TooLargeError, check_whole
from sidelight.foundation.randomness import Randomness, below_each
from sidelight.mechanisms.channel import LARGEST_MATRIX, Channel, DenseChannel, ImplicitChannel
from sidelight.mechanisms.checks import check_shares
from sidelight.mechanisms.exact import exp_below, log_factor, store, too_small
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.mechanism import Aggregate

_LARGEST_TOTAL = 1 << 62
_LARGEST_ROW_TOTAL = 1 << 47
_LEAST_WEIGHT = 1 << 20
_DOUBLE_ERROR = 2.0**-40
_LARGEST_RESIDUE = 1e-6


class Law(ABC):
    """A conditional law of a reported code.

    Attributes:
        size: the number of values.
        outputs: the number of different reports.
    """

    size: int
    outputs: int

    @property
    def form(self) -> ReportForm:
        """A code."""
        return ReportForm.codes(self.outputs)

    @property
    @abstractmethod
    def factor(self) -> Fraction:
        """An upper end, tight to rounding, of the ratio between the probabilities of a report."""

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact law."""

    @abstractmethod
    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> NDArray[np.integer]:
        """Return one report for each code, from the words number `start` on."""

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the values' frequencies: the channel inverted."""
        return np.asarray(self.inverse @ (aggregate.sums / aggregate.reports))

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        share = check_shares(frequencies, self.size)
        return inversion_variance(self.inverse, self.channel.matrix(), reports, share)

    @cached_property
    def inverse(self) -> Array:
        """B, (size, outputs), with B @ channel.T = 1; refused where doubles cannot hold it."""
        if self.size * self.outputs > LARGEST_MATRIX:
            raise TooLargeError(
                f"the estimate inverts a channel of {self.size} x {self.outputs} cells, more than "
                f"{LARGEST_MATRIX}; use 'grr', 'oue' or 'olh' for so many values."
            )
        cells, found = self.channel.matrix(), None
        with suppress(np.linalg.LinAlgError):
            found = np.linalg.inv(cells.T) if self.size == self.outputs else np.linalg.pinv(cells.T)
        if found is None or self.size > self.outputs or not is_inverse(np.asarray(found, np.float64), cells):
            raise InputError(
                f"the channel of {self.size} values and {self.outputs} reports cannot be inverted in "
                "doubles, so no frequencies are estimated; give a larger `epsilon`, fewer values, or reports "
                "that tell values apart."
            )
        return np.asarray(found)


@dataclass(frozen=True)
class DistanceLaw(Law):
    """Values in order: a report is less likely the further it is from the truth, e^(-rate x distance).

    Weights depend on the distance alone. With exact weights the largest ratio is that of the two ends, as
    moving the truth by one step changes every total by a factor of at most e^rate; rounding the weights to
    whole numbers changes a ratio of two weights over two totals by less than (1 + 1/least weight)^4.

    Attributes:
        size: the number of values.
        spread: ln of the ratio between the two ends, rate x (size - 1), before rounding.
    """

    size: int
    spread: float

    def __post_init__(self) -> None:
        store(self, outputs=self.size)

    @classmethod
    def within(cls, size: int, budget: float) -> DistanceLaw:
        """Return the steepest such law whose ratio is at most e^budget once its weights are rounded.

        The least weight stays above 2^20, so no spread beyond that is used.
        """
        largest = _LARGEST_TOTAL // size
        usable = min(budget, math.log(largest / _LEAST_WEIGHT))
        spread = usable - 8 * math.exp(usable) / largest - _DOUBLE_ERROR
        if spread <= 0:
            raise too_small(budget)
        return cls(size, spread)

    @cached_property
    def weights(self) -> Words:
        """The weight of a report at each distance, shape (size,)."""
        distances = np.arange(self.size) / (self.size - 1)
        wanted = np.exp(-self.spread * distances) * (_LARGEST_TOTAL // self.size)
        return np.asarray(np.rint(wanted), dtype=np.uint64)

    @cached_property
    def prefix(self) -> Words:
        """The summed weights of the distances up to each, shape (size,)."""
        return np.asarray(np.cumsum(self.weights))

    @cached_property
    def totals(self) -> Words:
        """The total weight of each value's reports, shape (size,)."""
        return np.asarray(self.prefix[::-1] + self.prefix - self.weights[0])

    @cached_property
    def factor(self) -> Fraction:
        """The ratio at the two ends, with the most that rounding of doubles and weights can add."""
        first, last = int(self.weights[0]), int(self.weights[-1])
        return Fraction(first, last) * (1 + Fraction(1, last) + Fraction(1, 1 << 48)) ** 4

    @cached_property
    def channel(self) -> Channel:
        """The matrix where it is small enough, else each report's likelihoods."""
        if self.size**2 > LARGEST_MATRIX:
            return ImplicitChannel(self.size, log_factor(self.factor), self.likelihood)
        place = np.arange(self.size)
        cells = self.weights[np.abs(place[:, None] - place)] / self.totals[:, None]
        return DenseChannel(cells, log_factor(self.factor))

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value."""
        check_whole("report", report, at_least=0, at_most=self.size - 1)
        distances = np.abs(np.arange(self.size) - report)
        return np.asarray(self.weights[distances] / self.totals)

    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> Whole:
        """Return one report for each code: first the reports from the code up, then those below it."""
        at = codes.astype(np.int64)
        drawn = below_each(source, start, self.totals[at])
        above = self.prefix[self.size - 1 - at]
        is_above = drawn < above
        rest = np.where(is_above, drawn, drawn - above + self.weights[0])
        distance = np.searchsorted(self.prefix, rest, side="right")
        return np.asarray(np.where(is_above, at + distance, at - distance))


@dataclass(frozen=True, eq=False)
class TableLaw(Law):
    """Any law with weights in a table, shape (size, outputs)."""

    weights: Words

    def __post_init__(self) -> None:
        store(self, size=len(self.weights), outputs=self.weights.shape[1])

    @classmethod
    def within(cls, scores: Array, budget: float) -> TableLaw:
        """Return the law with probabilities proportional to e^score, flattened until it keeps the budget."""
        limit = exp_below(budget)
        flat = 1.0
        while (law := cls._from_scores(scores * flat)).factor > limit:
            flat -= _DOUBLE_ERROR * 2 if flat == 1.0 else (1 - flat)
            if flat <= 0:
                raise too_small(budget)
        return law

    @classmethod
    def _from_scores(cls, scores: Array) -> TableLaw:
        with np.errstate(over="ignore"):
            shifted = scores - scores.max(axis=1, keepdims=True)
        wanted = np.exp(shifted) * (_LARGEST_ROW_TOTAL // scores.shape[1])
        return cls(np.maximum(np.rint(wanted), 1).astype(np.uint64))

    @cached_property
    def totals(self) -> Words:
        """The total weight of each value's reports, shape (size,)."""
        return np.asarray(self.weights.sum(axis=1))

    @cached_property
    def cells(self) -> Array:
        """Pr(report | value), shape (size, outputs)."""
        return np.asarray(self.weights / self.totals[:, None])

    @cached_property
    def factor(self) -> Fraction:
        """The largest ratio within a column in whole numbers, with what choosing it in doubles can cost."""
        likelier, unlikelier = self.cells.argmax(axis=0), self.cells.argmin(axis=0)
        columns = np.arange(self.outputs)
        worst = int((self.cells[likelier, columns] / self.cells[unlikelier, columns]).argmax())
        high, low = int(likelier[worst]), int(unlikelier[worst])
        ratio = Fraction(int(self.weights[high, worst]), int(self.weights[low, worst]))
        return ratio * Fraction(int(self.totals[low]), int(self.totals[high])) * (1 + Fraction(_DOUBLE_ERROR))

    @cached_property
    def channel(self) -> DenseChannel:
        """The exact law."""
        return DenseChannel(self.cells, log_factor(self.factor))

    @cached_property
    def _ends(self) -> Words:
        """The running weights of all rows as one rising line: row x starts at x * 2^47."""
        starts = np.arange(len(self.weights), dtype=np.uint64) * np.uint64(_LARGEST_ROW_TOTAL)
        return (np.cumsum(self.weights, axis=1) + starts[:, None]).reshape(-1)

    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> Whole:
        """Return one report for each code."""
        at = codes.astype(np.int64)
        drawn = below_each(source, start, self.totals[at])
        place = drawn + codes.astype(np.uint64) * np.uint64(_LARGEST_ROW_TOTAL)
        return np.asarray(np.searchsorted(self._ends, place, side="right") - at * self.outputs)


def inversion_variance(inverse: Array, cells: Array, reports: int, frequencies: Array) -> Array:
    """Return the variance of the estimates by an inverse of a channel's cells: that of multinomial counts."""
    count = check_whole("reports", reports, at_least=1)
    seen = frequencies @ cells
    return np.asarray((inverse**2 @ seen - (inverse @ seen) ** 2) / count)


def is_inverse(inverse: Array, cells: Array) -> bool:
    """Whether B @ cells.T = 1 holds in doubles."""
    return bool(np.abs(inverse @ cells.T - np.eye(len(cells))).max() < _LARGEST_RESIDUE)
