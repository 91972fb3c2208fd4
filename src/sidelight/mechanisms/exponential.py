"""The exponential mechanism: a report is likelier the more useful it is for the true value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import is_large, spans
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.channel import LARGEST_MATRIX, Channel
from sidelight.mechanisms.counting import Coded
from sidelight.mechanisms.exact import check_size, check_word_budget, store
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.mechanism import (
    Aggregate,
    check_codes,
    check_offset,
    check_reports,
    code_type,
    need_budget,
    refuse_parameters,
)
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.weights import DistanceLaw, Law, TableLaw, estimate_law, law_variance

Utility = str | tuple[tuple[float, ...], ...]


class ByLaw(Coded):
    """A mechanism that reports a code by a law with whole-number weights."""

    @property
    @abstractmethod
    def law(self) -> Law:
        """The law of a report."""

    @property
    def factor(self) -> Fraction:
        """The ratio of the law's probabilities."""
        return self.law.factor

    @property
    def channel(self) -> Channel:
        """The law's matrix where it is small enough."""
        return self.law.channel

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one reported code for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        source = randomness(seed, self.name, compiled=is_large(len(codes)))
        out = np.empty(len(codes), dtype=code_type(self.law.outputs))
        for span in spans(len(codes)):
            out[span] = self.law.sample(source, first + span.start, codes[span])
        return Reports(out, is_simulation=not source.is_secure)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each code was reported."""
        codes = check_codes(check_reports(reports, "ui"), self.law.outputs, "reports")
        counts = np.bincount(codes, minlength=self.law.outputs).astype(np.int64)
        return Aggregate(len(codes), counts, self.name)

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate of the values' frequencies: the channel inverted."""
        return estimate_law(self.law, aggregate, self.name)

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        return law_variance(self.law, reports, frequencies)


class Matching(RandomisedResponse):
    """The randomised response that the 0/1 utility comes down to, with random words of its own."""

    name: ClassVar[str] = "exp"


@dataclass(frozen=True)
class Exponential(ByLaw):
    """EXP: Pr(y | x) ~ e^(eps u(x, y) / (2 s)), s the utility's sensitivity (McSherry, Talwar 2007).

    Attributes:
        size: the number of values.
        budget: the nominal budget; the two ready utilities spend half of it, as the textbook's factor 2 is
            only needed where totals differ the most.
        utility: "match" (1 for the true value, else 0), "distance" (minus the distance of ordered values),
            or a matrix with a row for each value and a column for each report.
    """

    name: ClassVar[str] = "exp"
    utility: Utility = "match"

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), budget=check_word_budget(self.budget))
        if isinstance(self.utility, str) and self.utility not in ("match", "distance"):
            raise invalid("utility", "'match', 'distance' or a matrix", self.utility)
        if not isinstance(self.utility, str):
            store(self, utility=_frozen(self.utility, self.size))
        super().__post_init__()

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters, ("utility",))
        return cls(size, need_budget(cls.name, epsilon), **parameters)

    @cached_property
    def response(self) -> Matching | None:
        """The randomised response that the 0/1 utility comes down to: half of the budget."""
        return Matching(self.size, self.budget / 2) if self.utility == "match" else None

    @cached_property
    def law(self) -> Law:
        """The law of a report for a utility other than 0/1."""
        if isinstance(self.utility, str):
            return DistanceLaw.within(self.size, self.budget / 2)
        return TableLaw.within(_scaled(np.asarray(self.utility)) * (self.budget / 2), self.budget)

    @property
    def factor(self) -> Fraction:
        """The ratio of the law's probabilities."""
        return self.response.factor if self.response else self.law.factor

    @property
    def channel(self) -> Channel:
        """Single values for the 0/1 utility, else the law's matrix where it is small enough."""
        return self.response.channel if self.response else self.law.channel

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one reported code for each code, see `Mechanism.randomise`."""
        maker = self.response.randomise if self.response else super().randomise
        return maker(values, seed=seed, offset=offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each code was reported."""
        return self.response.aggregate(reports) if self.response else super().aggregate(reports)

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate of the values' frequencies."""
        return self.response.estimate(aggregate) if self.response else super().estimate(aggregate)

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        stated = self.response.variance if self.response else super().variance
        return stated(reports, frequencies)


def _frozen(rows: Any, size: int) -> tuple[tuple[float, ...], ...]:
    """Return a checked matrix of utilities as tuples, so that mechanisms can be compared."""
    wanted = "'match', 'distance' or a matrix of numbers"
    try:
        utility = np.asarray(rows)
    except (TypeError, ValueError):
        raise invalid("utility", wanted, rows, "Its rows differ in length.") from None
    if utility.dtype.kind not in "uif" or isinstance(rows, np.ma.MaskedArray):
        raise invalid("utility", wanted, rows)
    _check_utility(utility.astype(np.float64), size)
    return tuple(tuple(row) for row in utility.astype(np.float64).tolist())


def _check_utility(utility: NDArray[np.float64], size: int) -> None:
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


def _scaled(utility: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the utilities in units of their sensitivity, the most that a column differs between values."""
    with np.errstate(over="ignore"):
        return np.asarray(utility / np.ptp(utility, axis=0).max())
