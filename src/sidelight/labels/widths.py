"""Which k a kHR report should have: the published rule, and a search over every k.

The paper compares k = 1 and k = ceil(m / (e^eps + 1)) (CLLDP, Theorem 3, eq. (8)). Between them omega(k) may
be flat, so neither need be best; the search looks at every k with the exact total variance.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.errors import InputError, check_choice, check_whole
from sidelight.labels.leakage import check_label_budget, check_omega

WidthRule = Literal["search", "published"]


def heads_variance(pairs: int, widths: ArrayLike, factors: ArrayLike, *, frequencies: float = 1.0) -> Array:
    """Return n times the total variance of kHR for each k and its factor theta.

    The sum of CLLDP, eq. (7), over all m pairs: m q(1-q)/(p-q)^2 + (1-p-q)/(p-q), with
    p = k theta / (k theta + m - k) and q = (k - p)/(m - 1); infinite where theta is 1. `frequencies` = 0
    leaves the second part out, as the paper does.
    """
    k, theta = np.asarray(widths, dtype=np.float64), np.asarray(factors, dtype=np.float64)
    p = k * theta / (k * theta + pairs - k)
    q = (k - p) / (pairs - 1)
    gap = k * (pairs - k) * (theta - 1) / ((pairs - 1) * (k * theta + pairs - k))
    safe = np.where(gap > 0, gap, 1.0)
    variance = pairs * q * (1 - q) / safe**2 + frequencies * (1 - p - q) / safe
    return np.asarray(np.where(gap > 0, variance, np.inf))


def published_width(pairs: int, epsilon: float, omegas: ArrayLike) -> int:
    """Return 1 or ceil(m / (e^eps + 1)), whichever has the smaller variance (CLLDP, eq. (8)).

    There are m pairs of value and label; the omegas are omega(k) for k = 1, 2, ..., and 1 beyond.
    """
    large = min(math.ceil(pairs / (math.exp(check_label_budget(epsilon)) + 1)), pairs - 1)
    widths = np.array([1, max(large, 1)])
    scores = heads_variance(pairs, widths, _factors(epsilon, widths, omegas), frequencies=0.0)
    return int(widths[0] if scores[0] < scores[1] else widths[1])


def best_width(pairs: int, epsilon: float, omegas: ArrayLike, *, most: int | None = None) -> int:
    """Return the k of 1 to m - 1 with the least total variance; never worse than `published_width`.

    `most` is the largest k to consider, where reports must stay small.
    """
    largest = pairs - 1 if most is None else min(check_whole("most", most, at_least=1), pairs - 1)
    widths = np.arange(1, largest + 1)
    return int(widths[heads_variance(pairs, widths, _factors(epsilon, widths, omegas)).argmin()])


def chosen_width(rule: WidthRule | int, pairs: int, epsilon: float, omegas: ArrayLike) -> int:
    """Return k by rule, or the given one after checking it."""
    if isinstance(rule, str):
        check_choice("k", rule, ("search", "published"))
        return (best_width if rule == "search" else published_width)(pairs, epsilon, omegas)
    return check_whole("k", rule, at_least=1, at_most=pairs - 1)


def check_curve(name: str, omegas: ArrayLike) -> Array:
    """Return omega(k) for k = 1, 2, ... after checking that each is above 0 and at most 1."""
    curve = np.asarray(omegas, dtype=np.float64)
    if curve.ndim != 1 or not len(curve):
        raise InputError(f"`{name}` must list omega(k) for k = 1, 2, ...; it is empty.")
    for end in (curve.min(), curve.max()):
        check_omega(float(end))
    return curve


def omega_at(omegas: ArrayLike, width: int) -> float:
    """Return omega(k) from the curve; 1 beyond its end."""
    curve = np.asarray(omegas, dtype=np.float64)
    return float(curve[width - 1]) if width <= len(curve) else 1.0


def _factors(epsilon: float, widths: Whole, omegas: ArrayLike) -> Array:
    """Return theta = 1 + (e^eps - 1) / omega(k) for each k."""
    curve = check_curve("omegas", omegas)
    whole = np.ones(max(int(widths.max()), len(curve)))
    whole[: len(curve)] = curve
    return np.asarray(1 + math.expm1(check_label_budget(epsilon)) / whole[widths - 1])
