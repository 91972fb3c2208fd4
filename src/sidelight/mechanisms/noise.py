"""Noise on whole numbers of steps: exact samplers for real releases, doubles for simulation only.

Additive noise on doubles leaks through the gaps between doubles, so real noise is drawn on a grid of whole
steps by OpenDP's exact discrete samplers (Canonne, Kamath, Steinke 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.modules import require
from sidelight.foundation.randomness import Randomness

Kind = Literal["laplace", "wide laplace", "gaussian"]
"""Which noise: "wide" is for scales of many steps, where a simulation may round to them."""
_LARGEST_SCALE = 2.0**46
"""So that a value with its noise is a whole number that a double holds exactly."""
_LARGEST_STEPS = 2.0**53  # beyond it doubles skip whole numbers
LAPLACE_REACH = 65 * math.log(2)
"""Laplace noise exceeds so many scales with a probability below 2^-64, so a number beyond them is refused.

A billion reports of a thousand numbers each are refused by mistake with a probability below one in ten
million. Simulated noise, from 53 random bits, ends at 37 scales.
"""
GAUSSIAN_REACH = 9.25
"""Gaussian noise exceeds so many deviations with a probability below 2^-64; simulated noise ends at 8.3."""
_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1


def safe_scale(steps: int, budget: float) -> float:
    """Return the least double s with steps / s <= budget, in exact arithmetic."""
    scale = steps / budget
    if not math.isfinite(scale):
        return math.inf
    while Fraction(steps) > Fraction(scale) * Fraction(budget):
        scale = math.nextafter(scale, math.inf)  # the division may round down, and a smaller scale overspends
    return scale


def check_scale(scale: float, budget: float) -> None:
    """Raise if noise of this scale would not fit whole numbers that doubles hold exactly."""
    if not scale <= _LARGEST_SCALE:
        wanted = f"large enough for noise that doubles hold exactly, of at most 2^46 steps (here {scale:.3g})"
        raise invalid("epsilon", wanted, budget)


def exact_sums(chunks: Iterable[Array], columns: int) -> Whole:
    """Return the sum of each column of whole numbers, shape (rows, columns) each chunk, without rounding.

    Numbers are added in two halves of 32 bits, so that no sum of fewer than 2^31 rows overflows on the way.
    """
    high, low = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    for steps in chunks:
        if not (np.abs(steps) <= _LARGEST_STEPS).all():
            raise InputError("`reports` must be finite and within 2^53 steps of the grid; some are not.")
        whole = steps.astype(np.int64)
        high += (whole >> _HALF_BITS).sum(axis=0)
        low += (whole & _HALF_MASK).sum(axis=0)
    total = high.astype(object) * (1 << _HALF_BITS) + low.astype(object)
    if any(not -(1 << 63) <= sum_ < 1 << 63 for sum_ in total):
        raise InputError("`reports` add up to more than 64 bits hold; aggregate fewer at a time.")
    return np.asarray(total, dtype=np.int64)


def laplace_variance(scale: float) -> float:
    """Return the variance of discrete Laplace noise, 2r / (1-r)^2 with r = e^(-1/scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def draw(kind: Kind, source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write noise: exact if the source is secure, else a simulation from the words number `start` on."""
    if source.is_secure:
        out[:] = _secure_noise(kind, len(out), scale)
    else:
        _SIMULATED[kind](source, start, scale, out)


def _secure_noise(kind: Kind, count: int, scale: float) -> Whole:
    """Return discrete noise that may protect a real person's value."""
    opendp: Any = require("opendp.prelude", "numeric", "secure noise on numbers")
    opendp.enable_features("contrib")
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    make, distance = opendp.m.make_laplace, opendp.l1_distance
    if kind == "gaussian":
        make, distance = opendp.m.make_gaussian, opendp.l2_distance
    measurement = make(domain, distance(T="i64"), scale=scale)
    return np.asarray(measurement([0] * count), dtype=np.int64)


def _wide_laplace(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write Laplace noise rounded to steps, for scales of many steps: a word gives -ln(u) and a sign."""
    words = source.words(start, len(out))
    # One more keeps it above 0, whose logarithm is infinite.
    np.multiply((words >> np.uint64(11)) + np.uint64(1), 2.0**-53, out=out)
    np.log(out, out=out)
    np.copysign(out, (words << np.uint64(63)).view(np.float64), out=out)
    out *= scale
    np.rint(out, out=out)
    out += 0.0  # a zero has no sign, as in whole numbers


def _discrete_laplace(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write discrete Laplace noise: the difference of two geometric numbers, rounded-down exponentials."""
    words = source.words(2 * start, 2 * len(out)).reshape(-1, 2)
    exponential = -np.log(((words >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)
    geometric = np.floor(exponential * scale)
    np.subtract(geometric[:, 0], geometric[:, 1], out=out)


def _gaussian(source: Randomness, start: int, scale: float, out: Array) -> None:
    """Write rounded Gaussian noise by the inverse of the distribution function."""
    from scipy.special import ndtri

    words = source.words(start, len(out))
    # Half a step off keeps it strictly between 0 and 1, where the inverse is finite.
    out[:] = np.rint(ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-52) * scale)


_SIMULATED = {"laplace": _discrete_laplace, "wide laplace": _wide_laplace, "gaussian": _gaussian}
