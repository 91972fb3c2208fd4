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
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import is_large, spans
from sidelight.foundation.errors import check_number, check_whole, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms.channel import AnyChannel, Channel, FavouringChannel
from sidelight.mechanisms.exact import WORDS, check_budget, check_size, check_word_budget, store
from sidelight.mechanisms.mechanism import (
    Aggregate,
    check_codes,
    check_estimable,
    check_offset,
    check_reports,
    check_shares,
    check_times,
    impossible,
    need_budget,
    refuse_parameters,
)
from sidelight.mechanisms.noise import (
    LAPLACE_REACH,
    check_scale,
    exact_sums,
    laplace_variance,
    safe_scale,
    secure_laplace,
    simulated_laplace,
)
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.unary import Unary

_UNITS = 1 << 20


@dataclass(frozen=True)
class SummedHistogram:
    """SHE: Laplace noise of scale 2/eps on every number of the histogram, added up by the server.

    Numbers are multiples of 2^-20 and the noise is discrete Laplace on that grid, so that the law of a
    report is exact and sums do not round.
    """

    name: ClassVar[str] = "she"
    size: int
    budget: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), budget=check_budget(self.budget))
        check_scale(self.scale, self.budget)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters)
        return cls(size, need_budget(cls.name, epsilon))

    @cached_property
    def scale(self) -> float:
        """The scale of the noise in steps of the grid; two numbers differ by a whole 1 between two values."""
        return safe_scale(2 * _UNITS, self.budget)

    @property
    def exact_epsilon(self) -> Fraction:
        """The realised budget as a fraction."""
        return Fraction(2 * _UNITS) / Fraction(self.scale)

    @property
    def epsilon(self) -> float:
        """The realised budget of one report."""
        return float(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0

    @property
    def channel(self) -> FavouringChannel:
        """Each value's likelihood moves freely within a range of e^eps, so every set can be favoured."""
        return FavouringChannel(self.size, "all", math.exp(-self.epsilon), budget=self.epsilon)

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` reports of the same value: their budgets add up."""
        if check_times(times) == 1:
            return self.channel
        return AnyChannel(self.size, times * self.epsilon, within=self.channel)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a noisy histogram for each code, shape (n, size), see `Mechanism.randomise`."""
        codes = check_codes(values, self.size)
        first = check_offset(offset)
        out = np.empty((len(codes), self.size))
        source = randomness(seed, self.name, compiled=is_large(len(codes) * self.size))
        for span in spans(len(codes), self.size):
            part = out[span]
            if seed is None:
                part[:] = secure_laplace(part.size, self.scale).reshape(part.shape)
            else:
                simulated_laplace(source, (first + span.start) * self.size, self.scale, part.reshape(-1))
            part *= 1 / _UNITS
            part[np.arange(len(part)), codes[span]] += 1.0
        return Reports(out, is_simulation=seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add the histograms up, in whole steps of the grid."""
        values = check_reports(reports, "f", self.size)
        found = [self._are_impossible(values[span]) for span in spans(len(values), self.size)]
        strange = np.concatenate(found) if found else np.zeros(0, dtype=np.bool_)
        if strange.any():
            most = LAPLACE_REACH * self.scale / _UNITS
            wanted = f"multiples of 2^-20 from {-most:g} to {1 + most:g}, where noise can lead"
            raise impossible(wanted, strange)
        chunks = (values[span] * _UNITS for span in spans(len(values), self.size))
        return Aggregate(len(values), exact_sums(chunks, self.size), self.name)

    def _are_impossible(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether some number of each histogram is none, off the grid, or further out than noise goes."""
        most = LAPLACE_REACH * self.scale + 1
        with np.errstate(over="ignore", invalid="ignore"):
            steps = values * float(_UNITS)
            possible = (steps == np.rint(steps)) & (steps >= -most) & (steps <= _UNITS + most)
        return np.asarray(~possible.all(axis=1))

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the mean of the histograms, unbiased for the values' frequencies."""
        check_estimable(aggregate, self.size, self.name)
        return np.asarray(aggregate.sums / (aggregate.reports * float(_UNITS)))

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""
        share = check_shares(frequencies, self.size, single=True)
        noise = laplace_variance(self.scale) / _UNITS**2
        return np.asarray((share * (1 - share) + noise) / check_whole("reports", reports, at_least=1))


@dataclass(frozen=True)
class ThresholdedHistogram(Unary):
    """THE: the histogram of SHE, of which the client reports only which numbers exceed theta.

    p = 1 - e^(eps (theta - 1) / 2) / 2 and q = e^(-eps theta / 2) / 2 (Wang et al. 2017, section 4.2); the
    bits are drawn with these probabilities directly. Each report spends less than the nominal budget.

    Attributes:
        size: the number of values.
        budget: the nominal budget.
        theta: the threshold, above 1/2 and at most 1; by default the one of least variance.
    """

    name: ClassVar[str] = "the"
    theta: float = 0.0

    def __post_init__(self) -> None:
        budget = check_word_budget(self.budget)
        theta = check_number("theta", self.theta) or _best_theta(budget)
        if not 0.5 < theta <= 1:
            raise invalid("theta", "above 0.5 and at most 1", self.theta)
        store(self, theta=theta, budget=budget)
        super().__post_init__()

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters, ("theta",))
        if "theta" in parameters:
            check_number("theta", parameters["theta"], above=0.5)
        return cls(size, need_budget(cls.name, epsilon), **parameters)

    @cached_property
    def keep(self) -> int:
        """How many of the 2^64 words set the true value's bit: rounded down."""
        return floor(WORDS * (1 - self._half_exponential(Fraction(self.theta) - 1)))

    @cached_property
    def flip(self) -> int:
        """How many of the 2^64 words set another value's bit: rounded up."""
        return ceil(WORDS * self._half_exponential(-Fraction(self.theta)))

    def _half_exponential(self, position: Fraction) -> Fraction:
        """Return e^(eps position / 2) / 2 to 60 digits."""
        exponent = position * Fraction(min(self.budget, 80.0)) / 2
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

    found = minimize_scalar(cost, bounds=(0.5 + 1e-9, 1.0), method="bounded")
    return float(round(found.x, 6))
