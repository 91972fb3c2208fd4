"""Noise on whole numbers of steps: exact samplers for real releases, doubles for simulation only.

Additive noise on doubles leaks through the gaps between doubles, so real noise is drawn on a grid of whole
steps by OpenDP's exact discrete samplers (Canonne, Kamath, Steinke 2020).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import invalid
from sidelight.foundation.extras import require
from sidelight.foundation.randomness import Randomness

Array = NDArray[np.float64]

_LARGEST_SCALE = 2.0**46
"""So that a value with its noise is a whole number that a double holds exactly."""


def safe_scale(steps: int, budget: float) -> float:
    """Return the least double s with steps / s <= budget, in exact arithmetic."""
    scale = steps / budget
    while Fraction(steps) > Fraction(scale) * Fraction(budget):
        scale = math.nextafter(scale, math.inf)
    return scale


def check_scale(scale: float) -> None:
    """Raise if noise of this scale would not fit whole numbers that doubles hold exactly."""
    if not scale <= _LARGEST_SCALE:
        raise invalid(
            "epsilon", "large enough for noise that doubles hold exactly", f"a scale of {scale:g} steps"
        )


def laplace_variance(scale: float) -> float:
    """Return the variance of discrete Laplace noise, 2r / (1-r)^2 with r = e^(-1/scale)."""
    ratio = math.exp(-1 / scale)
    return 2 * ratio / math.expm1(-1 / scale) ** 2


def secure_laplace(count: int, scale: float) -> NDArray[np.int64]:
    """Return discrete Laplace noise that may protect a real person's value."""
    return _draw("make_laplace", "l1_distance", count, scale)


def secure_gaussian(count: int, scale: float) -> NDArray[np.int64]:
    """Return discrete Gaussian noise that may protect a real person's value."""
    return _draw("make_gaussian", "l2_distance", count, scale)


def _draw(maker: str, distance: str, count: int, scale: float) -> NDArray[np.int64]:
    opendp: Any = require("opendp.prelude", "numeric", "secure noise on numbers")
    opendp.enable_features("contrib")
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    measurement = getattr(opendp.m, maker)(domain, getattr(opendp, distance)(T="i64"), scale=scale)
    return np.asarray(measurement([0] * count), dtype=np.int64)


def simulated_laplace(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write Laplace noise rounded to steps, for scales of many steps: a word gives -ln(u) and a sign."""
    words = source.words(start, len(out))
    np.multiply((words >> np.uint64(11)) + np.uint64(1), 2.0**-53, out=out)
    np.log(out, out=out)
    np.copysign(out, (words << np.uint64(63)).view(np.float64), out=out)
    out *= scale
    np.rint(out, out=out)


def simulated_discrete_laplace(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write discrete Laplace noise: the difference of two geometric numbers, rounded-down exponentials."""
    words = source.words(2 * start, 2 * len(out)).reshape(-1, 2)
    exponential = -np.log(((words >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)
    geometric = np.floor(exponential * scale)
    np.subtract(geometric[:, 0], geometric[:, 1], out=out)


def simulated_gaussian(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write rounded Gaussian noise by the inverse of the distribution function."""
    from scipy.special import ndtri

    words = source.words(start, len(out))
    out[:] = np.rint(ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-52) * scale)
