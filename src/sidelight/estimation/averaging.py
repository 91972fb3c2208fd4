"""Priors averaged by their evidence (Hoeting et al. 1999), since no one suits all frequencies.

* Dirichlet(a, ..., a), from one value that has everything (a = 0) to even frequencies;
* from 8 values on, power laws: mixtures of exponentials, their means spread as theta^(1-s);
* one value in k with a share of its own, the others with a small rest in common;
* from 30 values on, a mixture whose weights are fitted to the estimates (Kiefer, Wolfowitz 1956);
* around frequencies that are given (public data, a first phase): Dirichlet(alpha pi).

Attributes tell each other how uneven frequencies are, each being told by the others only. Attributes that
share their values may also share their frequencies: x_j ~ Dirichlet(alpha pi), with pi found from all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior, dirichlet_posteriors, log_constants, tables
from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array, to_simplex

SHAPES = (0.0, 0.01, 0.1, 10**-0.5, 1.0, 10**0.5, 10.0, 10**1.5, 100.0, 1000.0, math.inf)
"""Of the symmetric Dirichlet priors: 0 if one value has everything, infinity if all are equally common."""
POWERS = (1.3, 1.6, 2.0, 2.6)
CONCENTRATIONS = (2.0, 5.0, 15.0, 50.0, 150.0, 500.0, 2000.0, 1e4, 1e5, math.inf)
"""How far frequencies lean on others: Dirichlet(alpha pi) varies by pi(1 - pi) / (alpha + 1)."""
RESTS = (0.01, 0.03, 0.1, 0.3)
"""The share of all values but one."""
_POWER = len(SHAPES)
_REST = _POWER + len(POWERS)
_FITTED = _REST + len(RESTS)
_GIVEN = _FITTED + 1
_COUNT = _GIVEN + len(CONCENTRATIONS)
_MANY, _VERY_MANY, _EXPANDED = 8, 30, 100
_PER_DECADE = 3
_FITTED_STEPS, _FITTED_SCALES = 60, 18
_CHARGE = 6.0
_TOLD, _TELLING_ROUNDS = 4.0, 5
_SHARED = 0.4
_COMMON = (2.0, 10.0, 50.0, 300.0, 3000.0, math.inf)  # alpha of frequencies in common
_TRUST = 0.5
_NEGLIGIBLE = 1e-5
_ROUNDS = 2
_MOVED = 0.05


_WEIGHTS: tuple[tuple[float, tuple[int, ...], tuple[int, ...], tuple[int, ...], int], ...] = (
    (3, (25, 24, 150, 131, 27, 408, 39, 32, 21, 68, 75),
     (0, 0, 0, 0), (0, 0, 0, 0), 0),
    (8, (67, 27, 23, 132, 334, 74, 64, 25, 20, 55, 7),
     (0, 0, 0, 0), (63, 7, 13, 90), 0),
    (30, (30, 16, 26, 117, 111, 51, 54, 40, 83, 132, 60),
     (51, 40, 32, 45), (21, 6, 17, 69), 0),
    (300, (48, 5, 11, 14, 90, 75, 18, 18, 594, 17, 17),
     (6, 11, 11, 24), (4, 1, 4, 13), 19),
    (math.inf, (33, 9, 15, 25, 459, 29, 31, 30, 30, 30, 30),
     (3, 4, 13, 15), (196, 7, 11, 18), 12),
)  # fmt: skip
"""For fewer values than the first number, parts in 1,000 of shapes, power laws, rests, the fitted mixture.

They make the mean error on the development half of `bench.estimates` (and on more of its kind) as small as
they can beside each of the estimators there; priors that were not tried have 0.
"""


@dataclass(frozen=True, eq=False)
class _Averaged:
    """One attribute under every prior: means and variances, (priors, values), and log-evidence, (priors,)."""

    means: Array
    spreads: Array
    evidence: Array

    def weights(self, prior: Array) -> Array:
        logs = np.log(np.maximum(prior, 1e-300)) + self.evidence
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def total(self, prior: Array) -> float:
        logs = np.log(np.maximum(prior, 1e-300)) + self.evidence
        return float(np.logaddexp.reduce(logs))

    def posterior(self, prior: Array) -> Posterior:
        return _mixed(self.weights(prior), self.means, self.spreads, self.total(prior))


def _mixed(weights: Array, means: Array, spreads: Array, evidence: float) -> Posterior:
    """Return the posterior that is one of several, with these probabilities."""
    mean = weights @ means
    return Posterior(mean, np.maximum(weights @ (spreads + means**2) - mean**2, 0.0), evidence)


def average(estimate: Array, variances: Array, prior: Array | None = None, *, adds_up: bool = True) -> Array:
    """Return the posterior mean of one attribute or one table; see `averaged`, and `bayes.posterior`."""
    return averaged([Noisy.of(estimate, variances, adds_up)], [[0]], [prior])[0]


def improved(
    estimates: Sequence[Unbiased], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Posterior]:
    """Return posteriors of attributes from unbiased estimates; the rest is as in `posteriors`.

    Variances depend on the frequencies: they are taken at the projected estimates and, where that changes
    them much, once more at what was found.
    """
    near = [to_simplex(item.estimate) for item in estimates]
    spreads = [item.variance(mean) for item, mean in zip(estimates, near, strict=True)]
    for _ in range(_ROUNDS):
        noisy = [
            Noisy.of(item.estimate, spread, item.adds_up)
            for item, spread in zip(estimates, spreads, strict=True)
        ]
        found, before = posteriors(noisy, domains, given), spreads
        spreads = [item.variance(near.mean) for item, near in zip(estimates, found, strict=True)]
        if all(_is_near(old, new) for old, new in zip(before, spreads, strict=True)):
            break
    return found


def _is_near(before: Array, after: Array) -> bool:
    return bool(np.all(np.abs(after - before) <= _MOVED * before.mean()))


def averaged(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Array]:
    """Return the posterior means of attributes, see `posteriors`."""
    return [item.mean for item in posteriors(attributes, domains, given)]


def posteriors(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Posterior]:
    """Return the posteriors of attributes.

    Args:
        attributes: their estimates and noise.
        domains: the places of attributes that share their values, for all of them.
        given: frequencies that are known from elsewhere, None where none are.
    """
    priors = list(given) or [None] * len(attributes)
    found = [_under_all(item, prior) for item, prior in zip(attributes, priors, strict=True)]
    sizes = [len(item.centre) for item in attributes]
    base = [prior_weights(size, prior is not None) for size, prior in zip(sizes, priors, strict=True)]
    told = _told(found, base)
    results = [item.posterior(weights) for item, weights in zip(found, told, strict=True)]
    for places in domains:
        if len(places) > 1:
            moved = _shared([attributes[place] for place in places], [results[place] for place in places])
            for place, result in zip(places, moved, strict=True):
                results[place] = result
    return results


@cache
def prior_weights(size: int, is_given: bool = False) -> Array:
    """Return the weight of every prior before any report is seen, (priors,)."""
    _, shapes, powers, rests, fitted = next(row for row in _WEIGHTS if size < row[0])
    weights = np.zeros(_COUNT)
    weights[:_GIVEN] = [*shapes, *powers, *rests, fitted]
    weights /= weights.sum()
    if is_given:
        weights *= 1 - _TRUST
        weights[_GIVEN:] = _TRUST / len(CONCENTRATIONS)
    return weights


def _under_all(item: Noisy, given: Array | None) -> _Averaged:
    size = len(item.centre)
    means, spreads = np.full((_COUNT, size), 1 / size), np.zeros((_COUNT, size))
    evidence = np.full(_COUNT, -np.inf)
    even = np.full(size, 1 / size)
    alphas = [size * shape for shape in SHAPES[1:]]
    means[0], evidence[0] = _under_one(item)
    spreads[0] = means[0] * (1 - means[0])
    means[1:_POWER], spreads[1:_POWER], evidence[1:_POWER] = dirichlet_posteriors(item, even, alphas)
    if size >= _MANY:
        for place, (rates, weights, norm) in enumerate(_power_laws(size), _POWER):
            evidence[place] = _under_mixture(item, rates, weights, means[place], spreads[place]) - norm
    if size > 2:
        for place, (rates, weights, norm) in enumerate(_heavy_ones(size), _REST):
            evidence[place] = _under_mixture(item, rates, weights, means[place], spreads[place]) - norm
    if size >= _VERY_MANY:
        rates, weights = _fitted(item)
        norm = _log_density_of_one(size, rates, weights) + _CHARGE
        evidence[_FITTED] = _under_mixture(item, rates, weights, means[_FITTED], spreads[_FITTED]) - norm
    if given is not None:
        means[_GIVEN:], spreads[_GIVEN:], evidence[_GIVEN:] = dirichlet_posteriors(
            item, given, CONCENTRATIONS
        )
    return _Averaged(means, spreads, evidence)


def _under_one(item: Noisy) -> tuple[Array, float]:
    """Return mean and evidence if one value has everything, and each is as likely to be it."""
    off = (item.centre / item.deviations) ** 2
    logs = -0.5 * (off.sum() - off + ((item.centre - 1) / item.deviations) ** 2)
    top = logs.max()
    share = np.exp(logs - top)
    return share / share.sum(), float(top + math.log(share.mean()))


def _under_mixture(item: Noisy, rates: Array, weights: Array, mean: Array, spread: Array) -> float:
    """Write means and variances under a mixture of exponentials, and return its evidence, not normalised."""
    from sidelight.estimation.bayes_kernels import mixture

    return float(mixture(item.centre, item.deviations, rates, weights, tables(), mean, spread))


@cache
def _power_laws(size: int) -> tuple[tuple[Array, Array, float], ...]:
    """Return rates, log-weights and normalisers of mixtures ~ x^-s from some least mean to 1, k E x = 1."""
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
        rates, weights = 1 / scales, logs - np.log(scales)
        laws.append((rates, weights, _unseen(size, rates, weights)))
    return tuple(laws)


@cache
def _heavy_ones(size: int) -> tuple[tuple[Array, Array, float], ...]:
    """Return rates, log-weights and normalisers of mixtures of one scale of 1 and many of a small rest."""
    laws = []
    for rest in RESTS:
        rates = np.array([1.0, (size - 1) / rest])
        weights = np.log([1 / size, 1 - 1 / size]) + np.log(rates)
        laws.append((rates, weights, _unseen(size, rates, weights)))
    return tuple(laws)


def _unseen(size: int, rates: Array, weights: Array) -> float:
    """Return the log-density of 1 as the sum of draws from a mixture: the evidence of endless noise."""
    if size > _EXPANDED:
        return _log_density_of_one(size, rates, weights)
    endless = Noisy(np.full(size, 1 / size), np.full(size, 1e12))
    return _under_mixture(endless, rates, weights, *np.empty((2, size)))


def _log_density_of_one(size: int, rates: Array, weights: Array) -> float:
    """Return the log-density of 1 as the sum of so many draws from a mixture of exponentials."""
    from scipy.optimize import brentq

    def moments(tilt: float) -> tuple[float, Array]:
        left = rates - tilt
        logs = weights - np.log(left)
        top = logs.max()
        share = np.exp(logs - top)
        powers = np.array([math.factorial(n) * float((share / left**n).sum()) for n in range(1, 5)])
        return float(top + math.log(share.sum())), powers / share.sum()

    tilt = brentq(lambda at: size * moments(at)[1][0] - 1, -1e6 * size, rates.min() * (1 - 1e-9), rtol=1e-12)
    logs, (m1, m2, m3, m4) = moments(tilt)
    spread, third = size * (m2 - m1**2), size * (m3 - 3 * m1 * m2 + 2 * m1**3)
    fourth = size * (m4 - 4 * m1 * m3 - 3 * m2**2 + 12 * m1**2 * m2 - 6 * m1**4)
    correction = float(np.clip(fourth / (8 * spread**2) - 5 * third**2 / (24 * spread**3), -0.7, 0.7))
    return size * logs - float(tilt) - 0.5 * math.log(2 * math.pi * spread) + correction


def _fitted(item: Noisy) -> tuple[Array, Array]:
    """Return rates and log-weights of the mixture of exponentials that makes the estimates likeliest (EM)."""
    from sidelight.estimation.bayes_kernels import parts

    scales = np.geomspace(1e-3 / len(item.centre), 1.0, _FITTED_SCALES)
    logs = parts(item.centre, item.deviations, 1 / scales, tables()) - np.log(scales)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(_FITTED_SCALES, 1 / _FITTED_SCALES)
    for _ in range(_FITTED_STEPS):
        weights = weights * (likelihood / (likelihood @ weights)[:, None]).mean(axis=0)
    kept = np.maximum(weights, 1e-12)
    return 1 / scales, np.log(kept / kept.sum()) - np.log(scales)


def _told(found: Sequence[_Averaged], base: Sequence[Array]) -> list[Array]:
    """Return each attribute's weights of priors, as its own and the others' evidence make them."""
    told = list(base)
    if len(found) == 1:
        return told
    for _ in range(_TELLING_ROUNDS):
        chosen = np.array([item.weights(weights) for item, weights in zip(found, told, strict=True)])
        others = chosen.sum(axis=0) - chosen
        told = [
            np.where(own > 0, (_TOLD * own + other) / (_TOLD + len(found) - 1), 0.0)
            for own, other in zip(base, others, strict=True)
        ]
    return told


def _shared(items: Sequence[Noisy], apart: Sequence[Posterior]) -> list[Posterior]:
    """Return posteriors of attributes over the same values, where these may have frequencies in common."""
    means = np.stack([item.mean for item in apart])
    weights = prior_weights(means.shape[1])
    near = np.maximum(means.mean(axis=0), 1e-3 / means.shape[1])
    centres = np.stack([item.centre for item in items])
    noise = np.stack([item.variances for item in items])
    alone = sum(own.evidence + item.constant for own, item in zip(apart, items, strict=True))
    logs, middles = [math.log(1 - _SHARED) + alone], []
    for alpha in _COMMON:
        spread = noise + near / (alpha + 1)
        pooled = 1 / (1 / spread).sum(axis=0)
        middle = (centres / spread).sum(axis=0) * pooled
        off = 1 - middle.sum()
        common = Noisy(middle + off * pooled / pooled.sum(), pooled)
        away = float(((centres - middle) ** 2 / spread).sum()) + off**2 / float(pooled.sum())
        found = _under_all(common, None).posterior(weights)
        evidence = float(log_constants(spread).sum()) - 0.5 * away + found.evidence
        logs.append(math.log(_SHARED / len(_COMMON)) + evidence)
        middles.append(found)
    chances = np.exp(np.array(logs) - max(logs))
    chances /= chances.sum()
    results = []
    for item, own in zip(items, apart, strict=True):
        each = [(own.mean, own.variance)]
        for alpha, middle, chance in zip(_COMMON, middles, chances[1:], strict=True):
            each.append(_leaning(item, middle, alpha) if chance > _NEGLIGIBLE else each[0])
        shifted, spreads = np.stack(each, axis=1)
        results.append(_mixed(chances, shifted, spreads, own.evidence))
    return results


def _leaning(item: Noisy, middle: Posterior, alpha: float) -> tuple[Array, Array]:
    """Return mean and variance of frequencies around others, which are themselves not known for sure."""
    means, spreads, _ = dirichlet_posteriors(item, middle.mean, [alpha])
    pull = item.variances / (item.variances + middle.mean / (alpha + 1))
    return means[0], spreads[0] + pull**2 * middle.variance
