"""Noise on numbers between two bounds: Laplace, Gaussian, discrete Laplace.

The range between the bounds is a whole number of steps. A number is moved to the nearest step within the
bounds, noise is a whole number of steps, and a report is the number that they make. What is stated (channel,
estimate, variance) is of the numbers so moved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import is_large, spans
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.foundation.randomness import Randomness, randomness
from sidelight.mechanisms.channel import AnyChannel, Channel, ContinuousChannel
from sidelight.mechanisms.exact import LARGEST_SIZE, check_budget, store
from sidelight.mechanisms.mechanism import (
    Aggregate,
    check_estimable,
    check_list,
    check_numbers,
    check_offset,
    check_reports,
    check_shares,
    check_times,
    impossible,
    need_budget,
    refuse_parameters,
)
from sidelight.mechanisms.noise import (
    GAUSSIAN_REACH,
    LAPLACE_REACH,
    check_scale,
    exact_sums,
    laplace_variance,
    safe_scale,
    secure_gaussian,
    secure_laplace,
    simulated_discrete_laplace,
    simulated_gaussian,
)
from sidelight.mechanisms.reports import Reports

Array = NDArray[np.float64]

_FINE = 1 << 24
_GRID_MARGIN = 1e-9
_DELTA_ERROR = 1e-11
"""More than rounding can cost a delta, as a share of it."""
_UNSEEN = -39.0
"""Below so many deviations a delta is less than the least double."""
_CLOSE = 1.0
_NODES = 24
_MOST_UNITS = 1 << 46
_OFF_GRID = 1e-3
"""A report may be off the grid by such a part of a step, and by what doubles round."""


@dataclass(frozen=True)
class Additive(ABC):
    """Noise added to a number.

    Attributes:
        size: the number of values whose likelihoods the channel states.
        budget: the nominal budget.
        lower: the lower bound; smaller numbers are raised to it.
        upper: the upper bound; larger numbers are lowered to it.
        points: the number that stands for each value; by default evenly spaced from bound to bound.
    """

    name: ClassVar[str]
    known: ClassVar[tuple[str, ...]] = ("lower", "upper", "points")
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper")
    reach: ClassVar[float]
    """Noise exceeds so many scales with a probability below 2^-64."""
    size: int
    budget: float
    lower: float
    upper: float
    points: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lower = check_number("lower", self.lower)
        store(
            self,
            size=check_whole("size", self.size, at_least=1, at_most=LARGEST_SIZE),
            budget=check_budget(self.budget),
            lower=lower,
            upper=check_number("upper", self.upper, above=lower),
            points=check_list("points", self.points),
        )
        if not math.isfinite(self.upper - self.lower):
            raise invalid("upper", "within a finite range of `lower`", self.upper)
        if self.points and len(self.points) != self.size:
            raise invalid("points", f"{self.size} numbers, one for each value", len(self.points))
        if any(not self.lower <= point <= self.upper for point in self.points):
            raise invalid("points", f"between {self.lower} and {self.upper}", self.points)
        if math.ulp(max(abs(self.lower), abs(self.upper))) > self.step:
            fix = "Subtract an offset from the bounds and the numbers."
            raise invalid("lower", f"so near to 0 that doubles hold steps of {self.step:g}", self.lower, fix)
        check_scale(self.scale, self.budget)
        if not math.isfinite(self.upper - self.lower + self.reach * self.scale * self.step):
            raise invalid("upper", "so near to `lower` that doubles hold a number with its noise", self.upper)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for; it must name the bounds."""
        refuse_parameters(cls.name, parameters, cls.known)
        for name in cls.needed:
            if name not in parameters:
                raise InputError(
                    f"the mechanism {cls.name!r} needs the parameter {name!r}, got none; "
                    "a plan or a protocol file can give it."
                )
        given = {("failure" if name == "delta" else name): value for name, value in parameters.items()}
        return cls(size, need_budget(cls.name, epsilon), **given)

    @property
    @abstractmethod
    def units(self) -> int:
        """How many steps lie between the bounds."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale of the noise, in steps."""

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """The variance of the noise, in squared steps."""

    @abstractmethod
    def noise_below(self, steps: Array) -> Array:
        """Return the probability that the noise is less than each whole number of steps."""

    @abstractmethod
    def _secure(self, count: int) -> NDArray[np.int64]:
        """Return noise for a real release."""

    @abstractmethod
    def _simulated(self, source: Randomness, start: int, out: Array) -> None:
        """Write noise for a simulation."""

    @property
    def step(self) -> float:
        """The length of a step."""
        return (self.upper - self.lower) / self.units

    @property
    def epsilon(self) -> float:
        """The realised budget of one report."""
        return self.budget

    @property
    def delta(self) -> float:
        """The realised probability that the budget does not hold."""
        return 0.0

    @cached_property
    def places(self) -> Array:
        """The step that each value's point is moved to, counted from the lower bound, shape (size,)."""
        return self._steps(self.points or np.linspace(self.lower, self.upper, self.size))

    @cached_property
    def support(self) -> Array:
        """The number reported for each value before noise: its point moved to a step, shape (size,)."""
        return np.asarray(self.lower + self.places * self.step)

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` reports of the same number: their budgets add up."""
        if check_times(times) == 1:
            return self.channel
        delta = min(times * self.delta, 1.0)
        return AnyChannel(self.size, times * self.epsilon, delta, within=self.channel)

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The density of a report."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one noisy number for each number, see `Mechanism.randomise`."""
        at = self._steps(values)
        first = check_offset(offset)
        source = randomness(seed, self.name, compiled=is_large(len(at)))
        for span in spans(len(at)):
            noise = np.empty(span.stop - span.start)
            if seed is None:
                noise[:] = self._secure(len(noise))
            else:
                self._simulated(source, first + span.start, noise)
            at[span] += noise
        return Reports(self.lower + at * self.step, is_simulation=seed is not None)

    def _steps(self, values: ArrayLike) -> Array:
        """Return the step nearest to each number, counted from the lower bound."""
        share = (np.clip(check_numbers(values), self.lower, self.upper) - self.lower) / (
            self.upper - self.lower
        )
        return np.asarray(np.rint(share * self.units))

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add the reports up, in whole steps."""
        values = self.check_reported(reports)
        chunks = (self.steps_of(values[span]) for span in spans(len(values)))
        sums = exact_sums((chunk.reshape(-1, 1) for chunk in chunks), 1)
        return Aggregate(len(values), sums, self.name)

    def check_reported(self, reports: Reports) -> Array:
        """Return the reported numbers, or raise if the mechanism cannot have made some of them.

        One such number would move a mean as far as it likes, and enough of them stop a sum.
        """
        values = check_reports(reports, "f")
        found = [self._is_impossible(values[span]) for span in spans(len(values))]
        strange = np.concatenate(found) if found else np.zeros(0, dtype=np.bool_)
        if strange.any():
            most = self.reach * self.scale * self.step
            raise impossible(
                f"numbers on the grid, {self.lower:g} and whole steps of {self.step:g}, from "
                f"{self.lower - most:g} to {self.upper + most:g}, where noise can lead",
                strange,
            )
        return values

    def _is_impossible(self, values: Array) -> NDArray[np.bool_]:
        """Whether each number is none, off the grid, or further outside the bounds than noise goes.

        One step more than `reach`, for rounding. A report was rounded three times on its way here and back,
        so that a grid near the last digit of a double is not looked at.
        """
        most = self.reach * self.scale + 1
        with np.errstate(over="ignore", invalid="ignore"):
            away = values - self.lower
            steps = away / self.step
            rounding = (np.spacing(np.abs(values)) + 3 * np.spacing(np.abs(away))) / (2 * self.step)
            is_on_grid = np.abs(steps - np.rint(steps)) <= _OFF_GRID + rounding
            return np.asarray(~(is_on_grid & (steps >= -most) & (steps <= self.units + most)))

    def steps_of(self, values: Array) -> Array:
        """Return how many whole steps each reported number is from the lower bound."""
        return np.asarray(np.rint((values - self.lower) / self.step))

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the mean of the reports, shape (1,).

        It is unbiased for the mean of the numbers moved to the grid and within the bounds.
        """
        check_estimable(aggregate, 1, self.name)
        return np.asarray(self.lower + self.step * aggregate.sums / aggregate.reports)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of the mean, people included, were these the frequencies of the points."""
        count = check_whole("reports", reports, at_least=1)
        share = check_shares(frequencies, self.size)
        spread = float(share @ (self.places - share @ self.places) ** 2)
        return np.array([(spread + self.noise_variance) / count * self.step * self.step])


@dataclass(frozen=True)
class _LaplaceNoise(Additive):
    reach: ClassVar[float] = LAPLACE_REACH

    @cached_property
    def scale(self) -> float:
        """The scale of the noise, in steps: the range over the budget, rounded up."""
        return safe_scale(self.units, self.budget)

    @property
    def exact_epsilon(self) -> Fraction:
        """The realised budget as a fraction, for numbers at the two bounds."""
        return Fraction(self.units) / Fraction(self.scale)

    @property
    def epsilon(self) -> float:
        """The realised budget of one report."""
        return float(self.exact_epsilon)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise, in squared steps."""
        return laplace_variance(self.scale)

    def noise_below(self, steps: Array) -> Array:
        """Return the probability that the noise is less than each whole number of steps, m.

        With r = e^(-1/scale): r^(1-m) / (1+r) up to 0, else 1 - r^m / (1+r).
        """
        whole = 1 + math.exp(-1 / self.scale)
        low = np.exp((np.minimum(steps, 0) - 1) / self.scale) / whole
        return np.where(steps <= 0, low, 1 - np.exp(-np.maximum(steps, 0) / self.scale) / whole)

    @property
    def channel(self) -> ContinuousChannel:
        """The density of a report around each point; on the grid the same ratios hold."""
        return ContinuousChannel(self.support, self.scale * self.step, "laplace", self.epsilon)

    def _secure(self, count: int) -> NDArray[np.int64]:
        return secure_laplace(count, self.scale)

    def _simulated(self, source: Randomness, start: int, out: Array) -> None:
        simulated_discrete_laplace(source, start, self.scale, out)


@dataclass(frozen=True)
class Laplace(_LaplaceNoise):
    """Laplace noise of scale (upper - lower) / eps (Dwork, McSherry, Nissim, Smith 2006), on 2^24 steps."""

    name: ClassVar[str] = "laplace"

    @property
    def units(self) -> int:
        """How many steps lie between the bounds: fine enough to be taken for a real number."""
        return _FINE


@dataclass(frozen=True)
class DiscreteLaplace(_LaplaceNoise):
    """Laplace noise in whole steps of a given length, for counts and other whole numbers (Ghosh et al. 2012).

    Attributes:
        size: the number of values whose likelihoods the channel states.
        budget: the nominal budget.
        lower: the lower bound.
        upper: the upper bound.
        points: the number that stands for each value.
        grid: the length of a step; the range must be a whole number of them.
    """

    name: ClassVar[str] = "discrete-laplace"
    known: ClassVar[tuple[str, ...]] = ("lower", "upper", "points", "grid")
    grid: float = 1.0

    def __post_init__(self) -> None:
        store(self, grid=check_number("grid", self.grid, above=0))
        super().__post_init__()

    @property
    def units(self) -> int:
        """How many steps lie between the bounds."""
        steps = (self.upper - self.lower) / self.grid
        if steps > _MOST_UNITS:
            raise invalid("grid", f"at least 2^-46 of the range {self.upper - self.lower:g}", self.grid)
        if abs(steps - round(steps)) > 1e-9 * steps or round(steps) < 1:
            raise invalid("grid", f"a whole part of the range {self.upper - self.lower:g}", self.grid)
        return round(steps)


@dataclass(frozen=True)
class Gaussian(Additive):
    """Gaussian noise with (epsilon, delta), on 2^24 steps.

    "analytic" finds the least deviation that keeps delta (Balle, Wang 2018, Theorem 8); "classic" is
    sqrt(2 ln(1.25/delta)) (upper - lower) / eps, proven below eps = 1 only (Dwork, Roth 2014, Theorem A.1).

    Attributes:
        size: the number of values whose likelihoods the channel states.
        budget: the nominal budget.
        lower: the lower bound.
        upper: the upper bound.
        points: the number that stands for each value.
        failure: the wanted delta.
        calibration: "analytic" or "classic".
    """

    name: ClassVar[str] = "gaussian"
    known: ClassVar[tuple[str, ...]] = ("lower", "upper", "points", "delta", "calibration")
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper", "delta")
    reach: ClassVar[float] = GAUSSIAN_REACH
    failure: float = 1e-6
    calibration: Literal["analytic", "classic"] = "analytic"

    def __post_init__(self) -> None:
        store(self, failure=check_number("delta", self.failure, above=0, below=1))
        check_choice("calibration", self.calibration, ("analytic", "classic"))
        if self.calibration == "classic" and check_budget(self.budget) >= 1:
            raise invalid("epsilon", "below 1 for the classic calibration", self.budget, "Use 'analytic'.")
        super().__post_init__()

    @property
    def units(self) -> int:
        """How many steps lie between the bounds: fine enough to be taken for a real number."""
        return _FINE

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the noise in steps, with a margin for the grid."""
        if self.calibration == "classic":
            multiple = math.sqrt(2 * math.log(1.25 / self.failure)) / self.budget
        else:
            multiple = _least_multiple(self.budget, self.failure)
        margin = _GRID_MARGIN
        while gaussian_delta(self.budget, multiple * (1 + margin)) > self.failure:  # rounding of a tiny delta
            margin *= 2
        return multiple * (1 + margin) * _FINE

    @property
    def delta(self) -> float:
        """The realised delta at the budget."""
        return gaussian_delta(self.budget, self.scale / _FINE)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise, in squared steps."""
        return self.scale**2

    def noise_below(self, steps: Array) -> Array:
        """Return the probability that the noise is less than each whole number of steps.

        Noise is on so fine a grid that it is rounded as good as exactly: off by less than 1/scale^2.
        """
        from scipy.special import ndtr

        return np.asarray(ndtr((steps - 0.5) / self.scale))

    @property
    def channel(self) -> ContinuousChannel:
        """The density of a report around each point."""
        return ContinuousChannel(self.support, self.scale * self.step, "gaussian", self.epsilon, self.delta)

    def _secure(self, count: int) -> NDArray[np.int64]:
        return secure_gaussian(count, self.scale)

    def _simulated(self, source: Randomness, start: int, out: Array) -> None:
        simulated_gaussian(source, start, self.scale, out)


def gaussian_delta(epsilon: float, multiple: float) -> float:
    """Return the delta of Gaussian noise whose deviation is `multiple` times the sensitivity, rounded up.

    Balle, Wang 2018, Theorem 8: Phi(a) - e^eps Phi(b) with a, b = +-1/(2m) - eps m. Since e^eps phi(b) is
    phi(a), this is phi(a) (R(a) - R(b)), R = Phi / phi. Where a and b are close, the difference of the two
    would lose its digits; it is the integral of R'(x) = 1 + x R(x), which is positive.
    """
    from scipy.special import log_ndtr, ndtr

    half, middle = 1 / (2 * multiple), -epsilon * multiple
    high = middle + half
    if high < _UNSEEN:
        delta = 0.0
    elif high < 0 or half <= _CLOSE:
        delta = math.exp(math.log(_rise(middle, half)) - high * high / 2) / math.sqrt(2 * math.pi)
    else:
        delta = float(ndtr(high)) - math.exp(epsilon + float(log_ndtr(middle - half)))
    return min(math.nextafter(delta * (1 + _DELTA_ERROR), math.inf), 1.0)


def _rise(middle: float, half: float) -> float:
    """Return R(middle + half) - R(middle - half)."""
    if half > _CLOSE:
        return float(_mills(middle + half) - _mills(middle - half))
    nodes, weights = _legendre()
    at = middle + half * nodes
    return half * float(weights @ (1 + at * _mills(at)))


def _mills(x: Array | float) -> Array:
    """Return Phi(x) / phi(x)."""
    from scipy.special import erfcx

    return np.asarray(math.sqrt(math.pi / 2) * erfcx(-x / math.sqrt(2)))


@cache
def _legendre() -> tuple[Array, Array]:
    """Return the nodes and weights that integrate a smooth function from -1 to 1 to the last digits."""
    return np.polynomial.legendre.leggauss(_NODES)


def _least_multiple(epsilon: float, delta: float) -> float:
    """Return the least deviation over sensitivity that keeps delta, from the safe side."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(epsilon, middle) <= delta else (middle, high)
    return high
