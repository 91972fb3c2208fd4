"""Frequencies from noisy numbers: a report is put into one of finitely many cells of the number line.

A code stands for a point, and its report is a noisy number. Where the line is cut depends on the mechanism
alone, so counts of cells merge like any others, and the law from code to cell is a finite matrix. Between two
points the likelihoods bend, so each gap is cut into a few cells; beyond the outermost points those of Laplace
noise are all alike, those of Gaussian noise are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Positions, Whole, spans
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.mechanisms.channel import Channel
from sidelight.mechanisms.checks import check_codes, check_shares
from sidelight.mechanisms.exact import store
from sidelight.mechanisms.exponential import inversion_variance, is_inverse
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.numeric import Additive
from sidelight.mechanisms.reports import ReportForm, Reports

MOST_CELLS = 1024
_PIECES = (4, 2)
"""How many cells a gap between two points is cut into.

4 have less than 5 % more variance than ever finer cells and 2 less than 25 %, Gaussian noise unless it is so
wide that a million reports say nothing.
"""
_TAIL_PIECES = 16
"""How many cells the line beyond the outermost points is cut into, where reports there still differ."""


@dataclass(frozen=True)
class BinnedNumbers(Mechanism):
    """A numeric mechanism over codes: estimates frequencies and, from the sum of the reports, the mean.

    Attributes:
        noise: the mechanism that makes a number noisy.
        cuts: where the line is cut, in steps from the lower bound: a cell holds its lower cut, not its upper.
        law: Pr(cell | value), shape (size, cells).
        inverse: B, (size, cells), with B @ law.T = 1: least squares, weighted for equally common values.
    """

    name: ClassVar[str] = "numbers"
    counted: ClassVar[slice] = slice(-1)
    size: int = field(init=False)
    noise: Additive
    cuts: Whole = field(init=False, repr=False, compare=False)
    law: Array = field(init=False, repr=False, compare=False)
    inverse: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cuts, law, inverse = cell_view(self.noise)
        store(self, size=self.noise.size, cuts=cuts, law=law, inverse=inverse)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> NoReturn:  # noqa: ARG003
        """Refuse: a plan names the noise."""
        raise InputError("a plan names the noise on a number: 'laplace', 'gaussian' or 'discrete-laplace'.")

    @property
    def epsilon(self) -> float:
        """The realised budget of one report, for numbers at the two bounds."""
        return self.noise.epsilon

    @property
    def delta(self) -> float:
        """The probability that the budget does not hold: the wanted one, as the realised may round down."""
        return self.noise.nominal_delta

    @property
    def channel(self) -> Channel:
        """The density of a report: an adversary sees the number, not its cell."""
        return self.noise.channel

    @property
    def degrades(self) -> bool:
        """As for the number itself."""
        return self.noise.degrades

    def at(self, nominal_budget: float) -> Self:
        """Return the mechanism with the noise of another nominal budget."""
        return type(self)(self.noise.at(nominal_budget))

    @property
    def form(self) -> ReportForm:
        """A number on the grid."""
        return self.noise.form

    @property
    def numbers(self) -> BinnedNumbers:
        """Itself."""
        return self

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a noisy number for each code, see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        return self.noise.randomise(self.noise.grid_points[codes], seed=seed, offset=offset)

    def _cells(self, values: Array) -> Positions:
        return np.searchsorted(self.cuts, self.noise.reported_steps(values), side="right")

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count the reports in each cell; the last sum is that of the numbers, in whole steps."""
        total = self.noise.aggregate(reports).sums
        counts = np.zeros(len(self.cuts) + 1, dtype=np.int64)
        for span in spans(len(reports)):
            counts += np.bincount(self._cells(reports.values[span]), minlength=len(counts))
        return Aggregate(len(reports), np.concatenate([counts, total]), self.name)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the values' frequencies."""
        check_estimable(aggregate, len(self.cuts) + 2, self.name)
        return np.asarray(self.inverse @ (aggregate.sums[:-1] / aggregate.reports))

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        share = check_shares(frequencies, self.size)
        return inversion_variance(self.inverse, self.law, reports, share)

    def spread(self, aggregate: Aggregate) -> Array:
        """Return the variance of each estimate, sampling of people included, at the estimates themselves.

        It is linear in the frequencies but for the square of the mean, so raw estimates give it without bias,
        where frequencies forced onto the simplex would be far off once noise is wide; the counts of cells
        would as well, but are further off where reports are few.
        """
        shares = self.estimate(aggregate)
        seen = np.maximum(shares @ self.law, 0.0)
        return np.asarray((self.inverse**2 @ seen - np.clip(shares, 0, 1) ** 2) / aggregate.reports)

    def mean(self, aggregate: Aggregate) -> float:
        """Return the mean of the reports, unbiased for the mean of the values' points."""
        check_estimable(aggregate, len(self.cuts) + 2, self.name)
        total = Aggregate(aggregate.reports, aggregate.sums[-1:])
        return float(self.noise.estimate(total)[0])

    def likelihoods(self, reports: Reports) -> Array:
        """Return the density of each reported number, see `Mechanism`."""
        return self.noise.likelihoods(reports)

    def tabulated(self, reports: Reports) -> tuple[Array, Positions]:
        """Return the law of each cell instead of each number's density, and the cell of each report."""
        return self.law.T, self._cells(self.check(reports))


@lru_cache(maxsize=16)
def cell_view(noise: Additive) -> tuple[Whole, Array, Array]:
    """Return the cuts, the law of a cell and its inverse; kept, as every file of reports makes it again."""
    cuts = _cuts(noise)
    law = cell_law(noise, cuts)
    view = cuts, law, cell_inverse(noise, law)
    for array in view:
        array.flags.writeable = False
    return view


def _cuts(noise: Additive) -> Whole:
    """Return where the line is cut, in whole steps."""
    points = np.unique(noise.point_steps)
    if len(points) < noise.size:
        raise InputError(
            f"two of the {noise.size} `points` of {noise.name!r} are one number on its grid, so that their "
            "values cannot be told apart; merge the values, or move the points apart."
        )
    tail = np.linspace(0, noise.tail * noise.scale, _TAIL_PIECES + 1)
    for pieces in _PIECES:
        inner = np.interp(np.arange(pieces * (len(points) - 1) + 1) / pieces, np.arange(len(points)), points)
        cuts = np.unique(np.rint(np.concatenate([points[0] - tail, inner, points[-1] + tail])))
        if len(cuts) < MOST_CELLS:
            return cuts.astype(np.int64)
    raise TooLargeError(
        f"{noise.size} values through {noise.name!r} would need more than {MOST_CELLS} cells; merge values, "
        "or take 'grr', 'oue' or 'olh' for so many."
    )


def cell_law(noise: Additive, cuts: Whole) -> Array:
    """Return Pr(cell | value): how likely the noise moves a value's point into each cell."""
    below = noise.noise_below(cuts - noise.point_steps[:, None])
    # Far out, differences may round below 0.
    return np.maximum(np.diff(below, axis=1, prepend=0.0, append=1.0), 0.0)


def cell_inverse(noise: Additive, law: Array) -> Array:
    """Return the estimate as weights of cells, by weighted least squares at equal frequencies.

    A QR decomposition of the weighted law, as normal equations would square its condition number.
    """
    root = np.sqrt(law.mean(axis=0))
    root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    orthogonal, triangle = np.linalg.qr((law * root).T)
    try:
        inverse = np.linalg.solve(triangle, orthogonal.T) * root
    except np.linalg.LinAlgError:
        inverse = np.full_like(law, np.nan)
    if not is_inverse(inverse, law):
        raise InputError(
            f"the noise of {noise.name!r} at the `epsilon` of {noise.nominal_budget!r} is so wide that "
            f"{noise.size} values cannot be told apart in doubles; give a larger `epsilon`, or merge values."
        )
    return np.asarray(inverse)
