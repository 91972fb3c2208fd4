"""Noise on numbers between two bounds: what such mechanisms share, Laplace and Gaussian noise.

The range between the bounds is a whole number of steps. A number is moved to the nearest step within the
bounds, noise is a whole number of steps, and a report is the number that they make. What is stated (channel,
estimate, variance) is of the numbers so moved.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Positions, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.foundation.randomness import randomness
from sidelight.mechanisms import checks, noise
from sidelight.mechanisms.channel import ContinuousChannel, GaussianChannel, LaplaceChannel
from sidelight.mechanisms.exact import LARGEST_SIZE, check_budget, store
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.reports import Grid, ReportForm, Reports

FINE_STEPS = 1 << 24
"""Steps between the bounds so fine that a grid of them is taken for the real line."""
_MOST_STEPS = 1 << 46  # with noise they stay below 2^53, where doubles hold whole numbers


@dataclass(frozen=True)
class Additive(Mechanism):
    """Noise added to a number, of a scale that is rounded to keep the nominal budget.

    Numbers below the lower bound are raised to it, those above the upper one lowered. The channel states the
    likelihoods of `size` values; a point stands for each, by default evenly spaced from bound to bound.
    """

    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper", "points")
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper")
    """The parameters that a plan must give."""
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({"lower": -1.0, "upper": 4.0},)
    kind: ClassVar[noise.Kind]
    """Which noise is added."""
    takes: ClassVar[Literal["numbers"]] = "numbers"
    estimates: ClassVar[Literal["mean"]] = "mean"
    counted: ClassVar[slice] = slice(0)
    degrades: ClassVar[bool] = True
    """Wider noise is narrower noise with more added. For Laplace noise, discrete or not, what is added is
    nothing or Laplace noise of the wider scale; for Gaussian noise it is Gaussian."""
    reach: ClassVar[float]
    """Noise exceeds so many scales with a probability below 2^-64."""
    tail: ClassVar[float] = 0.0
    """For how many scales beyond the outermost points reports still differ in what they say."""
    nominal_budget: float
    lower: float
    upper: float
    points: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        size = check_whole("size", self.size, at_least=1, at_most=LARGEST_SIZE)
        store(self, size=size, nominal_budget=check_budget(self.nominal_budget))
        lower = check_number("lower", self.lower)
        upper = check_number("upper", self.upper, above=lower)
        store(self, lower=lower, upper=upper, points=checks.check_list("points", self.points))
        if not math.isfinite(self.upper - self.lower):
            raise invalid("upper", "within a finite range of `lower`", self.upper)
        if self.points and len(self.points) != self.size:
            raise invalid("points", f"{self.size} numbers, one for each value", len(self.points))
        if any(not self.lower <= point <= self.upper for point in self.points):
            raise invalid("points", f"between {self.lower} and {self.upper}", self.points)
        if math.ulp(max(abs(self.lower), abs(self.upper))) > self.step:
            fix = "Subtract an offset from the bounds and the numbers."
            raise invalid("lower", f"so near to 0 that doubles hold steps of {self.step:g}", self.lower, fix)
        noise.check_scale(self.scale, self.nominal_budget)
        if not math.isfinite(self.upper - self.lower + self.reach * self.scale * self.step):
            raise invalid("upper", "so near to `lower` that doubles hold a number with its noise", self.upper)

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for; it must name the bounds."""
        checks.refuse_parameters(cls.name, parameters, cls.parameters)
        for name in cls.needed:
            if name not in parameters:
                raise InputError(
                    f"the mechanism {cls.name!r} needs the parameter {name!r}, got none; "
                    "a plan or a protocol file can give it."
                )
        given = {("failure" if name == "delta" else name): value for name, value in parameters.items()}
        return cls(size, checks.need_budget(cls.name, epsilon), **given)

    @property
    @abstractmethod
    def range_steps(self) -> int:
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

    @property
    def step(self) -> float:
        """The length of a step."""
        return (self.upper - self.lower) / self.range_steps

    @property
    def epsilon(self) -> float:
        """The realised budget of one report."""
        return self.nominal_budget

    @property
    def nominal_delta(self) -> float:
        """The delta that the scale is set to keep; the realised one may round to less."""
        return 0.0

    @cached_property
    def point_steps(self) -> Array:
        """The step that each value's point is moved to, counted from the lower bound, shape (size,)."""
        return self._nearest_steps(self.points or np.linspace(self.lower, self.upper, self.size))

    @cached_property
    def grid_points(self) -> Array:
        """The number reported for each value before noise: its point moved to a step, shape (size,)."""
        return np.asarray(self.lower + self.point_steps * self.step)

    def inputs(self, codes: NDArray[Any]) -> Array:
        """Return the number that stands for each code."""
        return np.asarray(self.grid_points[codes])

    def over_codes(self) -> Mechanism:
        """Return the mechanism that also estimates how frequent each value's number is."""
        from sidelight.mechanisms.binned_numbers import BinnedNumbers

        return BinnedNumbers(self)

    @property
    def form(self) -> ReportForm:
        """A number on the grid."""
        reach = self.reach * self.scale
        return ReportForm.numbers(Grid(self.lower, self.step, self.range_steps, reach))

    @property
    @abstractmethod
    def channel(self) -> ContinuousChannel:
        """The density of a report."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one noisy number for each number, see `Mechanism.randomise`."""
        at = self._nearest_steps(values)
        first = checks.check_offset(offset)
        source = randomness(seed, self.name, compiled=use_loop("foundation.fill_words", len(at)))
        for span in spans(len(at)):
            drawn = np.empty(span.stop - span.start)
            noise.draw(self.kind, source, first + span.start, self.scale, drawn)
            at[span] += drawn
        return Reports(self.lower + at * self.step, is_simulation=not source.is_secure)

    def _nearest_steps(self, values: ArrayLike) -> Array:
        """Return the step nearest to each number, counted from the lower bound."""
        within = np.clip(checks.check_numbers(values), self.lower, self.upper) - self.lower
        # A product first could overflow.
        return np.asarray(np.rint(within / (self.upper - self.lower) * self.range_steps))

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add the reports up, in whole steps."""
        values = self.check(reports)
        chunks = (self.reported_steps(values[span]) for span in spans(len(values)))
        sums = noise.exact_sums((chunk.reshape(-1, 1) for chunk in chunks), 1)
        return Aggregate(len(values), sums, self.name)

    def reported_steps(self, values: Array) -> Array:
        """Return how many whole steps each reported number is from the lower bound."""
        return np.asarray(np.rint((values - self.lower) / self.step))

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the reports' mean, shape (1,), unbiased for that of the numbers moved to steps in bounds."""
        check_estimable(aggregate, 1, self.name)
        return np.asarray(self.lower + self.step * aggregate.sums / aggregate.reports)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of the mean, people included, were these the frequencies of the points."""
        count = check_whole("reports", reports, at_least=1)
        share = checks.check_shares(frequencies, self.size)
        spread = float(share @ (self.point_steps - share @ self.point_steps) ** 2)
        return np.array([(spread + self.noise_variance) / count * self.step * self.step])

    def likelihoods(self, reports: Reports) -> Array:
        """Return the density of each report around each point, over the largest, see `Mechanism`."""
        logs = self.channel.log_density(self.check(reports)).T
        return np.asarray(np.exp(logs - logs.max(axis=0))).T

    def face_value(self, reports: Reports) -> Positions:
        """Return the code of the point nearest to each reported number."""
        return np.asarray(np.abs(self.check(reports)[:, None] - self.grid_points).argmin(axis=1))


@dataclass(frozen=True)
class _LaplaceNoise(Additive):
    kind: ClassVar[noise.Kind] = "laplace"
    reach: ClassVar[float] = noise.LAPLACE_REACH

    @cached_property
    def scale(self) -> float:
        """The scale of the noise, in steps: the range over the budget, rounded up."""
        return noise.safe_scale(self.range_steps, self.nominal_budget)

    @property
    def epsilon(self) -> float:
        """The realised budget of one report, for numbers at the two bounds."""
        return float(Fraction(self.range_steps) / Fraction(self.scale))

    @property
    def noise_variance(self) -> float:
        """The variance of the noise, in squared steps."""
        return noise.laplace_variance(self.scale)

    def noise_below(self, steps: Array) -> Array:
        """Return the probability that the noise is less than each whole number of steps, m.

        With r = e^(-1/scale): r^(1-m) / (1+r) up to 0, else 1 - r^m / (1+r).
        """
        whole = 1 + math.exp(-1 / self.scale)
        low = np.exp((np.minimum(steps, 0) - 1) / self.scale) / whole
        return np.where(steps <= 0, low, 1 - np.exp(-np.maximum(steps, 0) / self.scale) / whole)

    @property
    def channel(self) -> LaplaceChannel:
        """The density of a report around each point; on the grid the same ratios hold."""
        return LaplaceChannel(self.grid_points, self.scale * self.step, self.epsilon)


@dataclass(frozen=True)
class Laplace(_LaplaceNoise):
    """Laplace noise of scale (upper - lower) / eps (Dwork, McSherry, Nissim, Smith 2006), on 2^24 steps."""

    name: ClassVar[str] = "laplace"
    range_steps: ClassVar[int] = FINE_STEPS


@dataclass(frozen=True)
class DiscreteLaplace(_LaplaceNoise):
    """Laplace noise in whole steps of a given length, for counts and other whole numbers (Ghosh et al. 2012).

    Attributes:
        grid: the length of a step; the range must be a whole number of them.
    """

    name: ClassVar[str] = "discrete-laplace"
    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper", "points", "grid")
    grid: float = 1.0

    def __post_init__(self) -> None:
        store(self, grid=check_number("grid", self.grid, above=0))
        super().__post_init__()

    @property
    def range_steps(self) -> int:
        """How many steps lie between the bounds."""
        steps = (self.upper - self.lower) / self.grid
        if steps > _MOST_STEPS:
            raise invalid("grid", f"at least 2^-46 of the range {self.upper - self.lower:g}", self.grid)
        if abs(steps - round(steps)) > 1e-9 * steps or round(steps) < 1:
            raise invalid("grid", f"a whole part of the range {self.upper - self.lower:g}", self.grid)
        return round(steps)


_GRID_MARGIN = 1e-9
_DELTA_ERROR = 1e-11
"""More than rounding can cost a delta, as a share of it."""
_UNSEEN = -39.0
"""Below so many deviations a delta is less than the least double."""
_CLOSE = 1.0
_LEGENDRE = np.polynomial.legendre.leggauss(24)
"""The nodes and weights that integrate a smooth function from -1 to 1 to the last digits."""


@dataclass(frozen=True)
class Gaussian(Additive):
    """Gaussian noise with (epsilon, delta), on 2^24 steps.

    "analytic" finds the least deviation that keeps delta (Balle, Wang 2018, Theorem 8); "classic" is
    sqrt(2 ln(1.25/delta)) (upper - lower) / eps, proven below eps = 1 only (Dwork, Roth 2014, Theorem A.1).

    The deviation is set to keep the wanted delta, `failure`, at the nominal budget.
    """

    name: ClassVar[str] = "gaussian"
    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper", "points", "delta", "calibration")
    needed: ClassVar[tuple[str, ...]] = ("lower", "upper", "delta")
    tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({"lower": -1.0, "upper": 4.0, "delta": 1e-4},)
    kind: ClassVar[noise.Kind] = "gaussian"
    range_steps: ClassVar[int] = FINE_STEPS
    reach: ClassVar[float] = noise.GAUSSIAN_REACH
    tail: ClassVar[float] = 4.0
    failure: float = 1e-6
    calibration: Literal["analytic", "classic"] = "analytic"

    def __post_init__(self) -> None:
        store(self, failure=check_number("delta", self.failure, above=0, below=1))
        check_choice("calibration", self.calibration, ("analytic", "classic"))
        if self.calibration == "classic" and check_budget(self.nominal_budget) >= 1:
            raise invalid(
                "epsilon", "below 1 for the classic calibration", self.nominal_budget, "Use 'analytic'."
            )
        super().__post_init__()

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the noise in steps, with a margin for the grid."""
        if self.calibration == "classic":
            multiple = math.sqrt(2 * math.log(1.25 / self.failure)) / self.nominal_budget
        else:
            multiple = least_multiple(self.nominal_budget, self.failure)
        margin = _GRID_MARGIN
        # A tiny delta may still round to more than the wanted one; then the margin grows until it does not.
        while gaussian_delta(self.nominal_budget, multiple * (1 + margin)) > self.failure:
            margin *= 2
        return multiple * (1 + margin) * FINE_STEPS

    @property
    def nominal_delta(self) -> float:
        """The wanted delta."""
        return self.failure

    @property
    def delta(self) -> float:
        """The realised delta at the budget."""
        return gaussian_delta(self.nominal_budget, self.scale / FINE_STEPS)

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
    def channel(self) -> GaussianChannel:
        """The density of a report around each point."""
        return GaussianChannel(self.grid_points, self.scale * self.step, self.epsilon, self.delta)


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
    elif high < 0 or half <= _CLOSE:  # elsewhere the two terms differ enough to be subtracted
        delta = math.exp(math.log(_rise(middle, half)) - high * high / 2) / math.sqrt(2 * math.pi)
    else:
        delta = float(ndtr(high)) - math.exp(epsilon + float(log_ndtr(middle - half)))
    return min(math.nextafter(delta * (1 + _DELTA_ERROR), math.inf), 1.0)


def _rise(middle: float, half: float) -> float:
    """Return R(middle + half) - R(middle - half)."""
    if half > _CLOSE:
        return float(_mills(middle + half) - _mills(middle - half))
    nodes, weights = _LEGENDRE
    at = middle + half * nodes
    return half * float(weights @ (1 + at * _mills(at)))


def _mills(x: Array | float) -> Array:
    """Return Phi(x) / phi(x)."""
    from scipy.special import erfcx

    return np.asarray(math.sqrt(math.pi / 2) * erfcx(-x / math.sqrt(2)))


def least_multiple(epsilon: float, delta: float) -> float:
    """Return the least deviation over sensitivity that keeps delta, from the safe side."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(epsilon, middle) <= delta else (middle, high)
    return high  # the end that keeps delta in every step
