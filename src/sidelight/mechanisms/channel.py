"""Channel: what a release does to a value, stated exactly.

What a report says about a correlated secret depends on the *sets of values one report can favour*. Most
mechanisms have two likelihoods only: one for the values a report favours, one for the others. Then the
family of favoured sets and the ratio of the two likelihoods are all that leakage needs, and no report has
to be enumerated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError, TooLargeError, check_number, check_whole, invalid

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
    """

    size: int
    family: Family
    baseline: float
    width: int = 1

    def __post_init__(self) -> None:
        check_whole("size", self.size, at_least=1)
        check_number("baseline", self.baseline, at_least=0)
        if self.baseline > 1:
            raise invalid("baseline", "at most 1", self.baseline)

    @property
    def epsilon(self) -> float:
        """The budget this channel really spends on the value itself."""
        return math.inf if self.baseline == 0 else -math.log(self.baseline)

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, up to a common factor, shape (size,)."""
        if self.family != "singletons":
            raise InputError("the reports of this channel are sets of values, not single values.")
        favoured = np.full(self.size, self.baseline)
        favoured[check_whole("report", report, at_least=0, at_most=self.size - 1)] = 1.0
        return favoured

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
        within: the channel of a part of the release, where that is known: what it reaches is reached.
    """

    size: int
    epsilon: float
    within: Channel | None = None

    def __post_init__(self) -> None:
        check_whole("size", self.size, at_least=1)
        check_number("epsilon", self.epsilon, at_least=0, infinite=True)

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
    """A channel given by its matrix Pr(report | value), shape (values, reports)."""

    cells: Array

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells, dtype=np.float64)
        if cells.ndim != 2 or not np.all(np.isfinite(cells)) or cells.min(initial=0) < 0:
            raise InputError("a channel is a matrix of probabilities, one row for each value.")
        _check_matrix_size(*cells.shape)
        if np.abs(cells.sum(axis=1) - 1).max(initial=0) > 1e-9:
            raise InputError("every row of a channel must sum to 1.")
        object.__setattr__(self, "cells", cells)

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
        used = self.cells[:, self.cells.max(axis=0) > 0]
        low, high = used.min(axis=0), used.max(axis=0)
        return math.inf if (low == 0).any() else float(np.log(high / low).max(initial=0.0))

    def likelihood(self, report: int) -> Array:
        """Return Pr(report | value) for every value, shape (size,)."""
        return np.asarray(self.cells[:, report])

    def matrix(self) -> Array:
        """Return Pr(report | value), shape (size, reports)."""
        return self.cells


def _check_matrix_size(rows: int, columns: int) -> None:
    if rows * columns > LARGEST_MATRIX:
        raise TooLargeError(
            f"the channel matrix would have {rows} x {columns} cells, more than {LARGEST_MATRIX}; "
            "use its favoured sets or `likelihood(report)`."
        )
