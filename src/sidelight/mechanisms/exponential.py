"""The exponential mechanism: a report is likelier the more useful it is for the true value.

The interval mechanism cuts numbers into intervals and reports one that is likelier the nearer it is. Laws
have whole-number weights: x is reported as y with probability weight(x, y) / total(x), exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Whole, Words
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.foundation.randomness import Randomness, below_each
from sidelight.mechanisms.channel import LARGEST_MATRIX, Channel, DenseChannel, channel_of_columns
from sidelight.mechanisms.checks import check_array, check_list, check_numbers, check_shares
from sidelight.mechanisms.exact import exp_below, log_factor, store, too_small
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.oracle import CodedMechanism, SampledCode
from sidelight.mechanisms.reports import ReportForm, Reports

_LARGEST_TOTAL = 1 << 62  # a total counts reports on both sides of a value and must fit 64 bits
_LARGEST_ROW_TOTAL = 1 << 47  # 65,536 rows one after another fit 64 bits
_LEAST_WEIGHT = 1 << 20  # rounding changes a weight by less than a millionth
_DOUBLE_ERROR = 2.0**-40  # far above what the doubles behind the weights lose
_LARGEST_RESIDUE = 1e-6  # a larger bias would show among a million million reports


class Law(ABC):
    """A conditional law of a reported code: of `size` values, one of `outputs` different reports."""

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

    `spread` is ln of the ratio between the two ends, rate x (size - 1), before rounding.
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
        place = np.arange(self.size)
        law = lambda reports: self.weights[np.abs(reports[:, None] - place)] / self.totals  # noqa: E731
        return channel_of_columns(self.size, self.size, log_factor(self.factor), law)

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
            # First by what doubles may lose, then by twice as much each time.
            flat -= _DOUBLE_ERROR * 2 if flat == 1.0 else (1 - flat)
            if flat <= 0:
                raise too_small(budget)
        return law

    @classmethod
    def _from_scores(cls, scores: Array) -> TableLaw:
        with np.errstate(over="ignore"):
            shifted = scores - scores.max(axis=1, keepdims=True)
        wanted = np.exp(shifted) * (_LARGEST_ROW_TOTAL // scores.shape[1])
        return cls(np.maximum(np.rint(wanted), 1).astype(np.uint64))  # 0 would rule values out

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


Utility = str | tuple[tuple[float, ...], ...]


class LawMechanism(SampledCode, CodedMechanism):
    """A mechanism that reports a code by a law with whole-number weights."""

    @property
    @abstractmethod
    def law(self) -> Law | RandomisedResponse:
        """The law of a report."""

    @property
    def factor(self) -> Fraction:
        """The ratio of the law's probabilities."""
        return self.law.factor

    @property
    def channel(self) -> Channel:
        """The law's matrix where it is small enough."""
        return self.law.channel

    @property
    def form(self) -> ReportForm:
        """A code."""
        return self.law.form

    def sample(self, source: Randomness, start: int, codes: AnyCodes) -> NDArray[np.integer]:
        """Return one report for each code, from the words number `start` on."""
        return self.law.sample(source, start, codes)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the values' frequencies: the channel inverted."""
        check_estimable(aggregate, self.form.count, self.name)
        return self.law.estimate(Aggregate(aggregate.reports, aggregate.sums))

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        return self.law.variance(reports, frequencies)


@dataclass(frozen=True)
class Exponential(LawMechanism):
    """EXP: Pr(y | x) ~ e^(eps u(x, y) / (2 s)), s the utility's sensitivity (McSherry, Talwar 2007).

    Attributes:
        nominal_budget: the budget that the weights are rounded to keep; the two ready utilities spend half
            of it, as the textbook's factor 2 is only needed where totals differ the most.
        utility: "match" (1 for the true value, else 0), "distance" (minus the distance of ordered values),
            or a matrix with a row for each value and a column for each report.
    """

    name: ClassVar[str] = "exp"
    parameters: ClassVar[tuple[str, ...]] = ("utility",)
    utility: Utility = "match"

    def settle(self) -> None:
        """Check the utility."""
        if isinstance(self.utility, str) and self.utility not in ("match", "distance"):
            raise invalid("utility", "'match', 'distance' or a matrix", self.utility)
        if not isinstance(self.utility, str):
            store(self, utility=_frozen(self.utility, self.size))

    @classmethod
    def examples(cls, size: int) -> Iterable[Mapping[str, Any]]:
        """Return the two ready utilities and, for few values, a matrix with one report more than values."""
        yield {}
        yield {"utility": "distance"}
        if size <= 16:
            rows = np.pad(3 * np.eye(size), ((0, 0), (0, 1)), constant_values=0.5)
            yield {"utility": rows.tolist()}

    @cached_property
    def law(self) -> Law | RandomisedResponse:
        """Randomised response for the 0/1 utility, else weights by distance or from the matrix."""
        if self.utility == "match":
            return RandomisedResponse(self.size, self.nominal_budget / 2)
        if self.utility == "distance":
            return DistanceLaw.within(self.size, self.nominal_budget / 2)
        scores = _scaled(np.asarray(self.utility)) * (self.nominal_budget / 2)
        return TableLaw.within(scores, self.nominal_budget)

    @property
    def degrades(self) -> bool:
        """For the 0/1 utility, as two randomised responses in a row are one; not known for others."""
        return self.utility == "match"


@dataclass(frozen=True)
class Interval(LawMechanism):
    """Intervals in order; each step away from the true one is e^(eps / (size - 1)) times less likely.

    The first and the last interval are `size - 1` steps apart, so that the whole budget is spent.

    Attributes:
        size: the number of intervals.
        edges: the inner edges, size - 1 of them, if numbers are to be cut here; a number gets the count of
            edges at or below it, as in a schema. With them the values are always numbers, without them codes.
    """

    name: ClassVar[str] = "interval"
    parameters: ClassVar[tuple[str, ...]] = ("edges",)
    edges: tuple[float, ...] = ()

    def settle(self) -> None:
        """Check the edges."""
        store(self, edges=check_list("edges", self.edges))
        if self.edges and len(self.edges) != self.size - 1:
            raise invalid("edges", f"{self.size - 1} inner edges for {self.size} intervals", len(self.edges))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise invalid("edges", "strictly increasing", self.edges)

    @classmethod
    def examples(cls, size: int) -> Iterable[Mapping[str, Any]]:
        """Return the mechanism over codes and, for few intervals, over numbers."""
        return ({}, {"edges": list(range(1, size))}) if size <= 16 else ({},)

    @cached_property
    def law(self) -> DistanceLaw:
        """The law of a report."""
        return DistanceLaw.within(self.size, self.nominal_budget)

    @property
    def takes(self) -> Literal["codes", "numbers"]:
        """Numbers where there are edges to cut them at, else codes."""
        return "numbers" if self.edges else "codes"

    def inputs(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes or, with edges, a number within each interval: its lower edge."""
        if not self.edges:
            return codes
        return np.asarray(np.array([np.nextafter(self.edges[0], -np.inf), *self.edges])[codes])

    def over_codes(self) -> Mechanism:
        """Return the same mechanism without edges."""
        return replace(self, edges=())

    def cut(self, numbers: ArrayLike) -> Whole:
        """Return the interval of each number."""
        if not self.edges:
            raise InputError("this interval mechanism has no `edges` to cut numbers at; give codes or edges.")
        return np.asarray(np.searchsorted(self.edges, check_numbers(numbers), side="right"))

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one interval for each number, or for each code without edges; see `Mechanism.randomise`."""
        array = check_array("values", values)
        are_numbers = self.edges or (array.dtype.kind == "f" and array.size)
        codes = self.cut(array) if are_numbers else array
        return super().randomise(codes, seed=seed, offset=offset)


def _frozen(rows: Any, size: int) -> tuple[tuple[float, ...], ...]:
    """Return a checked matrix of utilities as tuples, so that mechanisms can be compared."""
    wanted = "'match', 'distance' or a matrix of numbers"
    try:
        utility = np.asarray(rows)
    except (TypeError, ValueError):
        raise invalid("utility", wanted, rows, "Its rows differ in length.") from None
    if utility.dtype.kind not in "uif" or isinstance(rows, np.ma.MaskedArray):
        raise invalid("utility", wanted, rows)
    utility = utility.astype(np.float64)
    if utility.ndim != 2 or len(utility) != size or utility.shape[1] < 2:
        raise invalid("utility", f"a matrix of {size} rows and at least 2 columns", f"shape {utility.shape}")
    if utility.size > LARGEST_MATRIX:
        raise invalid("utility", f"a matrix of at most {LARGEST_MATRIX} cells", f"shape {utility.shape}")
    if not np.isfinite(utility).all():
        raise InputError("`utility` must be finite; some cells are not.")
    if (utility == utility[0]).all():
        raise InputError("`utility` must differ between values in some column; all rows are the same.")
    with np.errstate(over="ignore"):
        sensitivity = np.ptp(utility, axis=0).max()
    if not (np.isfinite(sensitivity) and np.isfinite(_scaled(utility)).all()):
        raise InputError(
            "`utility` must be numbers whose ratio to the sensitivity a double holds; some are too large. "
            "Scale the matrix."
        )
    return tuple(tuple(row) for row in utility.tolist())


def _scaled(utility: Array) -> Array:
    """Return the utilities in units of their sensitivity, the most that a column differs between values."""
    with np.errstate(over="ignore"):
        return np.asarray(utility / np.ptp(utility, axis=0).max())
