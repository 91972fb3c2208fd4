"""Histogram encoding: one number for each value, the true one 1 and the others 0, all with Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Whole, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import check_number, check_whole, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms import noise
from sidelight.mechanisms.arrays import steps
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.checks import check_codes, check_offset, check_shares
from sidelight.mechanisms.exact import WORDS, check_budget, check_size, store
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.reports import Grid, ReportForm, Reports, check_reports
from sidelight.mechanisms.unary import Unary

_ONE = 1 << 20
"""How many steps of the grid make a whole 1."""
_LINE = 64


@dataclass(frozen=True)
class SummedHistogram(Mechanism):
    """SHE: Laplace noise of scale 2/eps on every number of the histogram, added up by the server.

    Numbers are multiples of 2^-20 and the noise is discrete Laplace on that grid, so that the law of a
    report is exact and sums do not round. The scale is rounded to keep `nominal_budget`.
    """

    name: ClassVar[str] = "she"
    counted: ClassVar[slice] = slice(0)
    degrades: ClassVar[bool] = True  # as for Laplace noise on one number
    nominal_budget: float

    def __post_init__(self) -> None:
        budget = check_budget(self.nominal_budget)
        store(self, size=check_size(self.size), nominal_budget=budget)
        noise.check_scale(self.scale, budget)

    @cached_property
    def scale(self) -> float:
        """The scale of the noise in steps of the grid; two numbers differ by a whole 1 between two values."""
        return noise.safe_scale(2 * _ONE, self.nominal_budget)

    @property
    def epsilon(self) -> float:
        """The realised budget of one report."""
        return float(Fraction(2 * _ONE) / Fraction(self.scale))

    @property
    def channel(self) -> FavouringChannel:
        """Each value's likelihood moves freely within a range of e^eps, so every set can be favoured."""
        return FavouringChannel(self.size, "all", math.exp(-self.epsilon), budget=self.epsilon)

    @property
    def form(self) -> ReportForm:
        """A number on the grid for each value."""
        grid = Grid(0.0, 1 / _ONE, _ONE, noise.LAPLACE_REACH * self.scale, is_exact=True)
        return ReportForm.numbers(grid, self.size)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a noisy histogram for each code, shape (n, size), see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        out = np.empty((len(codes), self.size))
        compiled = use_loop("foundation.fill_words", len(codes), self.size)
        source = randomness(seed, self.name, compiled=compiled)
        for span in spans(len(codes), self.size):
            part = out[span]
            at = (first + span.start) * self.size
            noise.draw("wide laplace", source, at, self.scale, part.reshape(-1))
            part *= 1 / _ONE
            part[np.arange(len(part)), codes[span]] += 1.0
        return Reports(out, is_simulation=not source.is_secure)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add the histograms up, in whole steps of the grid."""
        values = check_reports(reports, "f", self.size)
        most = noise.LAPLACE_REACH * self.scale + _ONE + 1
        if values.dtype == np.float64 and most < 2.0**50 and len(values) * most < 2.0**62:
            sums = _added(np.ascontiguousarray(values), most)
            if sums is not None:
                return Aggregate(len(values), sums, self.name)
        values = self.check(reports)  # says which report is off the grid, if one is
        chunks = (values[span] * _ONE for span in spans(len(values), self.size))
        return Aggregate(len(values), noise.exact_sums(chunks, self.size), self.name)

    @property
    def adds_up(self) -> bool:
        """No: every value has noise of its own."""
        return False

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the mean of the histograms, unbiased for the values' frequencies."""
        check_estimable(aggregate, self.size, self.name)
        return np.asarray(aggregate.sums / (aggregate.reports * float(_ONE)))

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        share = check_shares(frequencies, self.size, single=True)
        added = noise.laplace_variance(self.scale) / _ONE**2
        return np.asarray((share * (1 - share) + added) / check_whole("reports", reports, at_least=1))

    def likelihoods(self, reports: Reports) -> Array:
        """Return the density of each histogram under each value, over the largest, see `Mechanism`.

        A value's number is 1 + noise and any other's is noise, so only that number's two densities differ.
        """
        numbers = self.check(reports).T
        logs = self.epsilon / 2 * (np.abs(numbers) - np.abs(numbers - 1))
        return np.asarray(np.exp(logs - logs.max(axis=0))).T

    @property
    def guess_rate(self) -> float:
        """How often the largest number is the true value's.

        It is the integral of f(x - 1) F(x)^(size - 1), with f and F of Laplace noise.
        """
        from scipy.integrate import quad

        scale = 2 / self.epsilon

        def below(x: float) -> float:
            return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

        def density(x: float) -> float:
            return math.exp(-abs(x - 1) / scale) / (2 * scale) * below(x) ** (self.size - 1)

        reach = scale * (40 + math.log(self.size))
        return float(quad(density, -reach, 1 + reach, points=[0.0, 1.0], limit=400, epsabs=1e-12)[0])


def _added(values: Array, most: float) -> Whole | None:
    """Return the sums of columns in steps of the grid, none beyond `most`; None if a number is off it."""
    rows, size = values.shape
    add_steps = steps(compiled=use_loop("mechanisms.add_steps", rows, size)).add_steps
    together = max(1, _LINE // size)  # short rows are laid side by side, so that the loop has long ones
    whole = rows // together * together
    limit, at_once = most / _ONE, max(1, int(2.0**52 / most))
    sums = np.zeros(together * size, dtype=np.int64)
    long_rows = values[:whole].reshape(-1, len(sums))
    is_fine = add_steps(long_rows, float(_ONE), 1 - limit, limit, at_once, sums)
    if whole < rows:
        is_fine &= add_steps(values[whole:], float(_ONE), 1 - limit, limit, at_once, sums[:size])
    if not is_fine:
        return None
    return sums if together == 1 else np.asarray(sums.reshape(together, size).sum(axis=0))


@dataclass(frozen=True)
class ThresholdedHistogram(Unary):
    """THE: the histogram of SHE, of which the client reports only which numbers exceed theta.

    p = 1 - e^(eps (theta - 1) / 2) / 2 and q = e^(-eps theta / 2) / 2 (Wang et al. 2017, section 4.2); the
    bits are drawn with these probabilities directly. Each report spends less than the nominal budget.

    Attributes:
        theta: the threshold, above 1/2 and at most 1; by default the one of least variance.
    """

    name: ClassVar[str] = "the"
    parameters: ClassVar[tuple[str, ...]] = ("theta",)
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"theta": 0.8})
    theta: float = 0.0

    def settle(self) -> None:
        """Take the best threshold where none is given."""
        theta = check_number("theta", self.theta) or _best_theta(self.nominal_budget)
        if not 0.5 < theta <= 1:
            raise invalid("theta", "above 0.5 and at most 1", self.theta)
        store(self, theta=theta)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        if "theta" in parameters:
            check_number("theta", parameters["theta"], above=0.5)
        return super().from_plan(size, epsilon, parameters)

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """For the true value's bit rounded down, for another's rounded up, so epsilon rounds down."""
        keep = floor(WORDS * (1 - self._half_exponential(Fraction(self.theta) - 1)))
        return keep, ceil(WORDS * self._half_exponential(-Fraction(self.theta)))

    def _half_exponential(self, position: Fraction) -> Fraction:
        """Return e^(eps position / 2) / 2 to 60 digits."""
        exponent = position * Fraction(min(self.nominal_budget, 80.0)) / 2
        with localcontext() as context:
            context.prec = 60
            return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()) / 2


def _best_theta(budget: float) -> float:
    """Return the threshold of least variance of a rare value, q(1-q)/(p-q)^2."""
    from scipy.optimize import minimize_scalar

    half = min(budget, 80.0) / 2

    def cost(theta: float) -> float:
        q = math.exp(-half * theta) / 2
        gap = -(math.expm1(half * (theta - 1)) + math.expm1(-half * theta)) / 2
        return math.log(q * (1 - q)) - 2 * math.log(gap)

    return float(round(minimize_scalar(cost, bounds=(0.5 + 1e-9, 1.0), method="bounded").x, 6))
