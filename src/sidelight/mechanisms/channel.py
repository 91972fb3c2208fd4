"""Channel: what a release does to a value, stated exactly.

What a report says about a correlated secret depends on the *sets of values one report can favour*. Most
mechanisms have two likelihoods only: one for the values a report favours, one for the others. Then the
family of favoured sets and the ratio of the two likelihoods are all that leakage needs, and no report has
to be enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import (
    InputError,
    TooLargeError,
    check_choice,
    check_number,
    check_whole,
    invalid,
)
from sidelight.mechanisms.exact import store

Array = NDArray[np.float64]
Family = Literal["singletons", "subsets", "all", "dense", "any", "continuous"]
LARGEST_MATRIX = 1 << 22


class Channel(Protocol):
    """The law of a report given the value.

    Families of favoured sets: "singletons", "subsets" (all sets of one size), "all" (every set), "dense"
    (given by its matrix), "any" (only the budget is known: the worst of all such channels), "continuous".
    """

    @property
    def size(self) -> int:
        """The number of values."""

    @property
    def family(self) -> Family:
        """Which sets of values a report can favour."""

    @property
    def epsilon(self) -> float:
        """The budget this channel really spends on the value itself."""

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, up to a common factor, shape (size,)."""

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, reports); refused above 2^22 cells."""


@dataclass(frozen=True)
class FavouringChannel:
    """A report favours a set of values: each of them is likelier by the same factor.

    Attributes:
        size: the number of values.
        family: "singletons", "subsets" or "all".
        baseline: the likelihood of a value that is not favoured over that of a favoured one, e^-epsilon.
        width: how many values a report favours, for "singletons" and "subsets".
        realises_all: whether some report favours each set of the family; if not, figures are certified
            upper ends instead of exact ones.
        is_model: whether this is the law of an idealised mechanism that stands for the one in use, as in
            published comparisons; then figures are neither exact nor certified.
        budget: the budget really spent, where it is known better than from the rounded baseline.
    """

    size: int
    family: Family
    baseline: float
    width: int = 1
    realises_all: bool = True
    is_model: bool = False
    budget: float | None = None

    def __post_init__(self) -> None:
        check_choice("family", self.family, ("singletons", "subsets", "all"))
        size = check_whole("size", self.size, at_least=1)
        widest = 1 if self.family == "singletons" else size
        width = check_whole("width", self.width, at_least=1, at_most=widest)
        baseline = check_number("baseline", self.baseline, at_least=0)
        if baseline > 1:
            raise invalid("baseline", "at most 1", self.baseline)
        store(self, size=size, width=width, baseline=baseline)
        if self.budget is not None:
            store(self, budget=check_number("budget", self.budget, at_least=0, infinite=True))

    @property
    def epsilon(self) -> float:
        """The budget this channel really spends on the value itself."""
        if self.budget is not None:
            return self.budget
        return math.inf if self.baseline == 0 else -math.log(self.baseline)

    def likelihood(self, report: int | Sequence[int]) -> Array:
        """Return Pr(report | value) for every value, up to a common factor, shape (size,).

        Args:
            report: the value it favours, or the values.
        """
        codes = [report] if isinstance(report, (int, np.integer)) else list(report)
        if self.family != "all" and len(set(codes)) != self.width:
            raise invalid("report", f"{self.width} different values", report)
        likely = np.full(self.size, self.baseline)
        for code in codes:
            likely[check_whole("report", code, at_least=0, at_most=self.size - 1)] = 1.0
        return likely

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, size), of a channel that reports single values."""
        if self.family != "singletons":
            raise TooLargeError(
                f"a channel over {self.size} values whose reports are sets has too many of them for a "
                "matrix; leakage uses its favoured sets instead."
            )
        _check_matrix_size(self.size, self.size)
        cells = np.full((self.size, self.size), self.baseline)
        np.fill_diagonal(cells, 1.0)
        return cells / (1 + (self.size - 1) * self.baseline)


@dataclass(frozen=True)
class AnyChannel:
    """Some channel with at most this budget, nothing else known: figures are for the worst of them.

    Attributes:
        size: the number of values.
        epsilon: the budget.
        delta: the probability that it does not hold.
        within: the channel of a part of the release, where that is known: what it reaches is reached.
    """

    size: int
    epsilon: float
    delta: float = 0.0
    within: Channel | None = None

    def __post_init__(self) -> None:
        store(
            self,
            size=check_whole("size", self.size, at_least=1),
            epsilon=check_number("epsilon", self.epsilon, at_least=0, infinite=True),
            delta=_check_delta(self.delta),
        )

    @property
    def family(self) -> Family:
        """Which sets of values a report can favour: whichever leak most."""
        return "any"

    @property
    def baseline(self) -> float:
        """The least likelihood over the greatest that the budget allows."""
        return math.exp(-self.epsilon)

    def likelihood(self, report: int) -> Array:
        """Refuse: the channel is not known."""
        raise InputError(f"the channel is not known, only its budget; it has no report {report!r}.")

    def matrix(self) -> Array:
        """Refuse: the channel is not known."""
        raise InputError("the channel is not known, only its budget; it has no matrix.")


@dataclass(frozen=True, eq=False)
class DenseChannel:
    """A channel given by its matrix Pr(report | value), shape (values, reports).

    Attributes:
        cells: the matrix.
        budget: the budget really spent, where it is known better than from the rounded matrix.
    """

    cells: Array
    budget: float | None = None

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells, dtype=np.float64)
        if cells.ndim != 2 or not cells.size or not np.all(np.isfinite(cells)) or cells.min(initial=0) < 0:
            raise InputError("a channel is a matrix of probabilities, one row for each value.")
        _check_matrix_size(*cells.shape)
        if np.abs(cells.sum(axis=1) - 1).max(initial=0) > 1e-9:
            raise InputError("every row of a channel must sum to 1.")
        store(self, cells=cells)
        if self.budget is not None:
            store(self, budget=check_number("budget", self.budget, at_least=0, infinite=True))

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.cells.shape[0])

    @property
    def family(self) -> Family:
        """Given by the matrix."""
        return "dense"

    @property
    def epsilon(self) -> float:
        """The budget this channel really spends on the value itself."""
        if self.budget is not None:
            return self.budget
        used = self.cells[:, self.cells.max(axis=0) > 0]
        low, high = used.min(axis=0), used.max(axis=0)
        return math.inf if (low == 0).any() else float(np.log(high / low).max(initial=0.0))

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, shape (size,)."""
        code = check_whole("report", report, at_least=0, at_most=self.cells.shape[1] - 1)
        return np.asarray(self.cells[:, code])

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, reports)."""
        return self.cells


@dataclass(frozen=True, eq=False)
class ImplicitChannel:
    """A channel that states the likelihoods of a report but has too many of them for a matrix.

    Leakage treats it as "any" channel of its budget, so figures are certified; attacks use `likelihood`.
    """

    size: int
    epsilon: float
    law: Callable[[int], Array]

    @property
    def family(self) -> Family:
        """Not enumerated: whichever leak most."""
        return "any"

    @property
    def baseline(self) -> float:
        """The least likelihood over the greatest."""
        return math.exp(-self.epsilon)

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, shape (size,)."""
        return self.law(report)

    def matrix(self) -> Array:
        """Refuse: it would be too large."""
        raise TooLargeError(
            f"the matrix of this channel over {self.size} values is not built; use `likelihood`."
        )


@dataclass(frozen=True, eq=False)
class ContinuousChannel:
    """Noise added to a number.

    Attributes:
        points: (size,) the number that stands for each value.
        scale: of the noise: the Laplace scale, or the Gaussian standard deviation.
        noise: "laplace" or "gaussian".
        epsilon: the budget spent on any two numbers within the bounds.
        delta: the probability that it does not hold.
    """

    points: Array
    scale: float
    noise: Literal["laplace", "gaussian"]
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 1 or not points.size or not np.isfinite(points).all():
            raise InputError("`points` must be finite numbers, one for each value; some are not.")
        check_choice("noise", self.noise, ("laplace", "gaussian"))
        store(
            self,
            points=points,
            scale=check_number("scale", self.scale, above=0),
            epsilon=check_number("epsilon", self.epsilon, at_least=0, infinite=True),
            delta=_check_delta(self.delta),
        )

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.points)

    @property
    def family(self) -> Family:
        """A report is a number."""
        return "continuous"

    def log_density(self, reports: ArrayLike) -> Array:
        """Return ln of the density of each report given each value, shape (reports, size)."""
        distance = np.abs(np.asarray(reports, dtype=np.float64)[:, None] - self.points) / self.scale
        if self.noise == "laplace":
            return np.asarray(-distance - math.log(2 * self.scale))
        return np.asarray(-(distance**2) / 2 - math.log(self.scale * math.sqrt(2 * math.pi)))

    def likelihood(self, report: float) -> Array:
        """Return the density of a report for every value, up to a common factor, shape (size,)."""
        logs = self.log_density([report])[0]
        return np.asarray(np.exp(logs - logs.max()))

    def matrix(self) -> Array:
        """Refuse: there are infinitely many reports."""
        raise InputError("the reports of this channel are numbers; it has a density, not a matrix.")


def _check_delta(delta: object) -> float:
    number = check_number("delta", delta, at_least=0)
    if number > 1:
        raise invalid("delta", "a probability, at most 1", delta)
    return number


def _check_matrix_size(rows: int, columns: int) -> None:
    if rows * columns > LARGEST_MATRIX:
        raise TooLargeError(
            f"the channel matrix would have {rows} x {columns} cells, more than {LARGEST_MATRIX}; "
            "use its favoured sets or `likelihood(report)`."
        )
