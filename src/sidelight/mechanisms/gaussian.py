"""Gaussian noise on numbers between two bounds, and the delta that it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_choice, check_number, invalid
from sidelight.mechanisms import noise
from sidelight.mechanisms.channel import GaussianChannel
from sidelight.mechanisms.exact import check_budget, store
from sidelight.mechanisms.numeric import FINE_STEPS, Additive

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

    Attributes:
        nominal_budget: the budget at which the deviation is set to keep delta.
        failure: the wanted delta.
        calibration: "analytic" or "classic".
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
    elif high < 0 or half <= _CLOSE:
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
    return high
