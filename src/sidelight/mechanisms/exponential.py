"""The exponential mechanism: a report is likelier the more useful it is for the true value.

The interval mechanism cuts numbers into intervals and reports one that is likelier the nearer it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Whole
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.randomness import Randomness
from sidelight.mechanisms.channel import LARGEST_MATRIX, Channel
from sidelight.mechanisms.checks import check_array, check_list, check_numbers
from sidelight.mechanisms.exact import store
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.oracle import CodedMechanism, SampledCode
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.weights import DistanceLaw, Law, TableLaw

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
