"""The priors that `averaging` averages, and how likely each is before any report is seen.

* Dirichlet(a, ..., a), from one value that has everything (a = 0) to even frequencies;
* from 8 values on, power laws: mixtures of exponentials, their means spread as theta^(1-s);
* one value in k with a share of its own, the others with a small rest in common;
* some of the values with everything, the others with nothing;
* from 30 values on, a mixture of gamma laws, its weights fitted to the estimates (Kiefer, Wolfowitz 1956);
* around frequencies that are given (public data, a first phase): Dirichlet(alpha pi).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from sidelight.estimation.bayes import Noisy, tables
from sidelight.foundation.arrays import Array, Mask

SHAPES = (0.0, 0.01, 0.1, 10**-0.5, 1.0, 10**0.5, 10.0, 50.0, 500.0, math.inf)
"""Of the symmetric Dirichlet priors: 0 if one value has everything, infinity if all are equally common."""
POWERS = (1.5, 1.8, 2.2)
RESTS = (0.02, 0.1, 0.3)
"""The share of all values but one."""
PARTS = (0.4,)
"""How many of the values have everything."""
CONCENTRATIONS = (2.0, 5.0, 15.0, 50.0, 150.0, 500.0, 2000.0, 1e4, 1e5, math.inf)
"""How far frequencies lean on others: Dirichlet(alpha pi) varies by pi(1 - pi) / (alpha + 1)."""
POWER = len(SHAPES)
_REST = POWER + len(POWERS)
_PART = _REST + len(RESTS)
FITTED = _PART + len(PARTS)
GIVEN = FITTED + 1
COUNT = GIVEN + len(CONCENTRATIONS)
CHARGE = 6.0
"""What the fitted mixture's evidence is less for having been fitted."""
_EXPANDED = 100
_PER_DECADE = 3
_FITTED_STEPS, _FITTED_SCALES, _FITTED_SHAPE = 60, 18, 4.0
_NOTHING = 1e-4
_TRUST = 0.5

Mixture = tuple[int, Array, Array, float]
"""The place of a prior, its rates, log-weights and the log-density of 1 as the sum of its draws."""


_LITTLE, _MUCH = 0.04, 0.4  # variances of a value's noise; 1,000 people at eps = 0.1 have 0.2 to 0.4
_Parts = tuple[int, ...]
_Level = tuple[_Parts, _Parts, _Parts, _Parts, int]
_WEIGHTS: tuple[tuple[float, _Level, _Level], ...] = (
    (3, ((52, 51, 59, 66, 100, 50, 22, 0, 17, 0), (0, 0, 0), (123, 100, 360), (0,), 0),
        ((53, 52, 46, 36, 49, 51, 44, 0, 352, 0), (0, 0, 0), (76, 48, 192), (0,), 0)),
    (8, ((59, 25, 0, 0, 169, 90, 103, 40, 71, 11), (0, 0, 0), (56, 111, 150), (73,), 0),
        ((40, 27, 0, 0, 99, 97, 191, 108, 216, 37), (0, 0, 0), (31, 43, 57), (34,), 0)),
    (30, ((33, 17, 0, 0, 165, 67, 53, 113, 198, 54), (25, 0, 44), (16, 60, 81), (64,), 0),
         ((45, 9, 0, 0, 100, 71, 75, 185, 337, 92), (5, 0, 15), (5, 13, 15), (17,), 0)),
    (300, ((20, 0, 30, 44, 189, 124, 88, 89, 88, 87), (39, 0, 31), (3, 0, 31), (42,), 103),
          ((2, 0, 11, 35, 189, 155, 115, 119, 118, 116), (10, 0, 18), (1, 0, 7), (29,), 74)),
    (math.inf, ((60, 30, 52, 77, 97, 91, 93, 92, 92, 92), (15, 15, 37), (5, 0, 24), (73,), 47),
               ((16, 27, 57, 85, 108, 102, 104, 103, 103, 103), (6, 11, 40), (1, 0, 8), (81,), 46)),
)  # fmt: skip
"""For fewer values than the first number, the parts of shapes, powers, rests, parts, the fitted mixture.

First where there is little noise, then where there is much. Where noise hides the frequencies, no estimator
is near the best of all others whatever is true. How near one can be depends on the noise, and so do the
priors that get there, the least favourable ones (Wald 1950). These make errors on the development cells of
`bench.estimates`, and on others of their kind, as small as they can be beside each of the estimators there;
priors that hardly matter have 0.
"""


def prior_weights(noise: Array, is_given: bool = False) -> Array:
    """Return the weight of every prior before any report is seen, (priors,).

    Args:
        noise: the variances of the values' independent noise; how much it is, their geometric mean says.
        is_given: whether frequencies are given to lean on.
    """
    little, much = _levels(len(noise), is_given)
    part = (float(np.log(noise).mean()) - math.log(_LITTLE)) / math.log(_MUCH / _LITTLE)
    return np.asarray(little + min(max(part, 0.0), 1.0) * (much - little))


@cache
def possible(size: int, is_given: bool = False) -> Mask:
    """Return which priors have any weight for so many values, (priors,)."""
    return np.asarray(_levels(size, is_given).any(axis=0))


@cache
def _levels(size: int, is_given: bool) -> Array:
    """Return the weights of every prior where there is little noise, and much, (2, priors)."""
    levels = next(levels for most, *levels in _WEIGHTS if size < most)
    weights = np.zeros((2, COUNT))
    weights[:, :GIVEN] = [
        [*shapes, *powers, *rests, *some, fit] for shapes, powers, rests, some, fit in levels
    ]
    weights /= weights.sum(axis=1, keepdims=True)
    if is_given:
        weights *= 1 - _TRUST
        weights[:, GIVEN:] = _TRUST / len(CONCENTRATIONS)
    return weights


def under_mixture(
    item: Noisy, rates: Array, weights: Array, mean: Array, spread: Array, shape: float = 1.0
) -> float:
    """Write means and variances under a mixture of gamma laws of this shape; return its evidence.

    The evidence is not normalised.
    """
    from sidelight.estimation.bayes_kernels import mixture

    return float(mixture(item.centre, item.deviations, rates, weights, tables(), mean, spread, shape))


@cache
def mixtures(size: int) -> tuple[Mixture, ...]:
    """Return the mixtures of exponentials that are likely at all for so many values; none is fitted."""
    if size < 2:
        return ()
    known = possible(size)
    laws = [*_power_laws(size), *_uneven(size)]
    return tuple(
        (place, rates, weights, _unseen(size, rates, weights))
        for place, (rates, weights) in enumerate(laws, POWER)
        if known[place]
    )


def _power_laws(size: int) -> list[tuple[Array, Array]]:
    """Return rates and log-weights of mixtures ~ x^-s from some least mean to 1, k E x = 1."""
    from scipy.optimize import brentq

    def spread(power: float, least: float) -> tuple[Array, Array]:
        scales = np.exp(np.linspace(least, 0.0, max(int(-least / math.log(10) * _PER_DECADE) + 2, 3)))
        logs = (1 - power) * np.log(scales)
        return scales, logs - np.logaddexp.reduce(logs)

    laws = []
    for power in POWERS:

        def excess(least: float, power: float = power) -> float:
            scales, logs = spread(power, least)
            return float(np.exp(logs) @ scales) - 1 / size

        least = brentq(excess, -30.0, -0.01) if excess(-30.0) < 0 else -30.0
        scales, logs = spread(power, least)
        laws.append((1 / scales, logs - np.log(scales)))
    return laws


def _uneven(size: int) -> list[tuple[Array, Array]]:
    """Return rates and log-weights of mixtures of few large scales and many small ones."""
    laws = []
    for count, rest in [*((1.0, rest) for rest in RESTS), *((part * size, _NOTHING) for part in PARTS)]:
        rates = np.array([count / (1 - rest), (size - count) / rest])
        share = count / size
        laws.append((rates, np.log([share, 1 - share]) + np.log(rates)))
    return laws


def _unseen(size: int, rates: Array, weights: Array) -> float:
    """Return the log-density of 1 as the sum of draws from a mixture: the evidence of endless noise."""
    if size > _EXPANDED:
        return log_density_of_one(size, rates, weights)
    endless = Noisy(np.full(size, 1 / size), np.full(size, 1e12))
    return under_mixture(endless, rates, weights, *np.empty((2, size)))


def log_density_of_one(size: int, rates: Array, weights: Array, shape: float = 1.0) -> float:
    """Return the log-density of 1 as the sum of so many draws from a mixture of gamma laws of one shape."""
    from scipy.optimize import brentq

    def moments(tilt: float) -> tuple[float, Array]:
        left = rates - tilt
        logs = weights - shape * np.log(left)
        top = logs.max()
        share = np.exp(logs - top)
        rising = np.cumprod(shape + np.arange(4.0))
        powers = rising * [float((share / left**n).sum()) for n in range(1, 5)]
        return float(top + math.log(share.sum())), powers / share.sum()

    tilt = brentq(lambda at: size * moments(at)[1][0] - 1, -1e6 * size, rates.min() * (1 - 1e-9), rtol=1e-12)
    logs, (m1, m2, m3, m4) = moments(tilt)
    spread, third = size * (m2 - m1**2), size * (m3 - 3 * m1 * m2 + 2 * m1**3)
    fourth = size * (m4 - 4 * m1 * m3 - 3 * m2**2 + 12 * m1**2 * m2 - 6 * m1**4)
    correction = float(np.clip(fourth / (8 * spread**2) - 5 * third**2 / (24 * spread**3), -0.7, 0.7))
    return size * logs - float(tilt) - 0.5 * math.log(2 * math.pi * spread) + correction


def fitted(item: Noisy) -> tuple[float, Array, Array]:
    """Return the shape, rates and log-weights of the mixture that makes the estimates likeliest (EM).

    Gamma laws of a larger shape than 1 follow frequencies of which none is small. Beside noise so wide that
    factors are added up on a lattice nothing of the kind is seen, and exponentials will do.
    """
    from sidelight.estimation.bayes_kernels import cells_for, parts

    shape = 1.0 if cells_for(item.deviations) else _FITTED_SHAPE
    scales = np.geomspace(1e-3 / len(item.centre), 1.0, _FITTED_SCALES) / shape
    logs = parts(item.centre, item.deviations, 1 / scales, shape, tables()) - shape * np.log(scales)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(_FITTED_SCALES, 1 / _FITTED_SCALES)
    for _ in range(_FITTED_STEPS):
        weights = weights * ((1 / (likelihood @ weights)) @ likelihood) / len(likelihood)
    kept = np.maximum(weights, 1e-12)
    return shape, 1 / scales, np.log(kept / kept.sum()) - shape * np.log(scales)
