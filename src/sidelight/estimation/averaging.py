"""Priors averaged by their evidence (Hoeting et al. 1999), since no one suits all frequencies.

What is averaged is in `priors`. Attributes tell each other how uneven frequencies are: each is told by the
others, or all are alike. Attributes that share their values may also share their frequencies:
x_j ~ Dirichlet(alpha pi), with pi found from all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior, dirichlet_posteriors, log_constants
from sidelight.estimation.priors import (
    CHARGE,
    CONCENTRATIONS,
    COUNT,
    FITTED,
    GIVEN,
    POWER,
    SHAPES,
    fitted,
    log_density_of_one,
    mixtures,
    prior_weights,
    under_mixture,
)
from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array, to_simplex

_TOLD, _TELLING_ROUNDS = 2.0, 10
_ALIKE = 0.5
_SHARED = 0.4
_COMMON = (3.0, 20.0, 150.0, 1500.0, math.inf)  # alpha of frequencies in common
_NEGLIGIBLE = 1e-5
_ROUNDS = 2
_MOVED = 0.05


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

    def posterior(self, prior: Array, weights: Array | None = None) -> Posterior:
        chances = self.weights(prior) if weights is None else weights
        return _mixed(chances, self.means, self.spreads, self.total(prior))


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
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = (),
    times: Sequence[float] = (),
) -> list[Array]:  # fmt: skip
    """Return the posterior means of attributes, see `posteriors`."""
    return [item.mean for item in posteriors(attributes, domains, given, times)]


def posteriors(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = (),
    times: Sequence[float] = (),
) -> list[Posterior]:  # fmt: skip
    """Return the posteriors of attributes.

    Args:
        attributes: their estimates and noise.
        domains: the places of attributes that share their values, for all of them.
        given: frequencies that are known from elsewhere, None where none are.
        times: how many attributes each one of a domain stands for, itself where none are given.
    """
    priors = list(given) or [None] * len(attributes)
    found = [_under_all(item, prior) for item, prior in zip(attributes, priors, strict=True)]
    sizes = [len(item.centre) for item in attributes]
    base = [prior_weights(size, prior is not None) for size, prior in zip(sizes, priors, strict=True)]
    told = _told(found, base)
    alike = _alike(found, base)
    apart = 1 - alike.sum()
    results = [
        item.posterior(prior, apart * item.weights(prior) + alike)
        for item, prior in zip(found, told, strict=True)
    ]
    for places, many in zip(domains, times or [1.0] * len(domains), strict=True):
        if len(places) > 1:
            items, alone = [attributes[place] for place in places], [results[place] for place in places]
            moved = _shared(items, alone, many)
            for place, result in zip(places, moved, strict=True):
                results[place] = result
    return results


def _under_all(item: Noisy, given: Array | None) -> _Averaged:
    size = len(item.centre)
    likely = prior_weights(size)
    found = _under_shapes(item)
    means, spreads, evidence = found.means, found.spreads, found.evidence
    for place, rates, weights, norm in mixtures(size):
        evidence[place] = under_mixture(item, rates, weights, means[place], spreads[place]) - norm
    if likely[FITTED] > 0:
        rates, weights = fitted(item)
        norm = log_density_of_one(size, rates, weights) + CHARGE
        evidence[FITTED] = under_mixture(item, rates, weights, means[FITTED], spreads[FITTED]) - norm
    if given is not None:
        rest = slice(GIVEN, None)
        means[rest], spreads[rest], evidence[rest] = dirichlet_posteriors(item, given, CONCENTRATIONS)
    return found


def _under_shapes(item: Noisy) -> _Averaged:
    """Return what the symmetric Dirichlet priors make of an attribute; the others have no evidence yet."""
    size = len(item.centre)
    means, spreads = np.full((COUNT, size), 1 / size), np.zeros((COUNT, size))
    evidence = np.full(COUNT, -np.inf)
    likely = prior_weights(size)
    if likely[0] > 0:
        means[0], evidence[0] = _under_one(item)
        spreads[0] = means[0] * (1 - means[0])
    places = 1 + np.flatnonzero(likely[1:POWER])
    means[places], spreads[places], evidence[places] = dirichlet_posteriors(
        item, np.full(size, 1 / size), [size * SHAPES[place] for place in places]
    )
    return _Averaged(means, spreads, evidence)


def _under_one(item: Noisy) -> tuple[Array, float]:
    """Return mean and evidence if one value has everything, and each is as likely to be it."""
    off = (item.centre / item.deviations) ** 2
    logs = -0.5 * (off.sum() - off + ((item.centre - 1) / item.deviations) ** 2)
    top = logs.max()
    share = np.exp(logs - top)
    return share / share.sum(), float(top + math.log(share.mean()))


def _told(found: Sequence[_Averaged], base: Sequence[Array]) -> list[Array]:
    """Return each attribute's weights of priors, as its own and the others' evidence make them."""
    own, count = np.array(base), len(found)
    if count == 1:
        return list(own)
    evidence = np.array([item.evidence for item in found])
    seen = np.where(own > 0, np.exp(evidence - evidence.max(axis=1, keepdims=True)), 0.0)
    told = own
    for _ in range(_TELLING_ROUNDS):
        chosen = told * seen
        chosen /= chosen.sum(axis=1, keepdims=True)
        told = np.where(own > 0, (_TOLD * own + chosen.sum(axis=0) - chosen) / (_TOLD + count - 1), 0.0)
    return list(told)


def _alike(found: Sequence[_Averaged], base: Sequence[Array]) -> Array:
    """Return the probability that all attributes have the same prior, for each that it could be."""
    if len(found) == 1:
        return np.zeros(COUNT)
    with np.errstate(divide="ignore"):
        likely = np.log(np.prod(np.array(base) ** (1 / len(base)), axis=0))
    logs = math.log(_ALIKE) + likely + sum(item.evidence for item in found)
    own = math.log(1 - _ALIKE) + sum(item.total(prior) for item, prior in zip(found, base, strict=True))
    return np.asarray(np.exp(logs - np.logaddexp(np.logaddexp.reduce(logs), own)))


def _shared(items: Sequence[Noisy], apart: Sequence[Posterior], times: float) -> list[Posterior]:
    """Return posteriors of attributes over the same values, where these may have frequencies in common.

    Each counts so many times.
    """
    means = np.stack([item.mean for item in apart])
    weights = prior_weights(means.shape[1])
    near = np.maximum(means.mean(axis=0), 1e-3 / means.shape[1])
    centres = np.stack([item.centre for item in items])
    noise = np.stack([item.variances for item in items])
    alone = sum(own.evidence + item.constant for own, item in zip(apart, items, strict=True))
    logs, middles = [math.log(1 - _SHARED) + times * alone], []
    for alpha in _COMMON:
        spread = noise + near / (alpha + 1)
        pooled = 1 / (times / spread).sum(axis=0)
        middle = (times * centres / spread).sum(axis=0) * pooled
        off = 1 - middle.sum()
        common = Noisy(middle + off * pooled / pooled.sum(), pooled)
        away = times * float(((centres - middle) ** 2 / spread).sum()) + off**2 / float(pooled.sum())
        found = _under_shapes(common).posterior(weights)
        evidence = times * float(log_constants(spread).sum()) - 0.5 * away + found.evidence
        logs.append(math.log(_SHARED / len(_COMMON)) + evidence)
        middles.append(found)
    chances = np.exp(np.array(logs) - max(logs))
    chances /= chances.sum()
    kept = [place for place, chance in enumerate(chances[1:]) if chance > _NEGLIGIBLE]
    if not kept:
        return list(apart)
    alphas, centre = [_COMMON[place] for place in kept], np.stack([middles[place].mean for place in kept])
    around = centre / (np.array(alphas)[:, None] + 1), np.stack([middles[place].variance for place in kept])
    shares = chances[[0, *(place + 1 for place in kept)]]
    results = []
    for item, own in zip(items, apart, strict=True):
        each, spreads, _ = dirichlet_posteriors(item, centre, alphas)
        # What they lean on is itself not known for sure.
        spreads += (item.variances / (item.variances + around[0])) ** 2 * around[1]
        rows = np.vstack([own.mean, each]), np.vstack([own.variance, spreads])
        results.append(_mixed(shares / shares.sum(), *rows, evidence=own.evidence))
    return results
