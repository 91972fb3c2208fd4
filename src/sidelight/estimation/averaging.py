"""Priors averaged by their evidence (Hoeting et al. 1999), since no one suits all frequencies.

What is averaged is in `priors`. Attributes tell each other how uneven frequencies are: each is told by the
others, or all are alike. Attributes that share their values may also share their frequencies: see
`in_common`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior
from sidelight.estimation.in_common import shared
from sidelight.estimation.priors import COUNT, prior_weights
from sidelight.estimation.skewed_noise import judged_again
from sidelight.estimation.unbiased import Unbiased
from sidelight.estimation.under_priors import Averaged, roughly, under_all
from sidelight.foundation.arrays import Array

_TOLD, _TELLING_ROUNDS = 0.8, 10
_ALIKE = 0.72  # that all attributes are alike, by telling each other or not


def average(estimate: Array, variances: Array, prior: Array | None = None, *, adds_up: bool = True) -> Array:
    """Return the posterior mean of one attribute or one table; see `averaged`, and `bayes.posterior`."""
    return averaged([Noisy.of(estimate, variances, adds_up)], [[0]], [prior])[0]


def improved(
    estimates: Sequence[Unbiased], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Posterior]:
    """Return posteriors of attributes from unbiased estimates; the rest is as in `posteriors`.

    Variances depend on the frequencies: priors are judged with those near what a few of them make of the
    estimates, see `_noisy`, and then each with those near its own means, see `skewed_noise`.
    """
    from sidelight.estimation.bayes_kernels import projected

    first = _noisy(estimates, [projected(item.estimate) for item in estimates])
    attributes = _noisy(estimates, roughly(first))
    known = list(given) or [None] * len(attributes)
    found = judged_again(estimates, attributes, under_all(attributes, known), known)
    return _helping(attributes, domains, _apart(attributes, found, known))


def _noisy(estimates: Sequence[Unbiased], near: Sequence[Array]) -> list[Noisy]:
    """Return estimates with variances that weigh them against frequencies near these, as skewed laws do.

    Counts vary more where they are larger, so many at once look uneven though all are alike. Their deviance,
    twice the integral of (f - t) / V(t) from x to f (McCullagh, Nelder 1989, 9.2), is (f - x)^2 / V at a
    third of the way, but for terms of higher order. That is its height, which evidence compares; its slope
    is (f - x) / V(x), so that means are pulled down a little where the variance rises with the estimate.
    """
    return [
        Noisy.of(item.estimate, item.variance((2 * mean + item.estimate) / 3), item.adds_up)
        for item, mean in zip(estimates, near, strict=True)
    ]


def averaged(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Array]:
    """Return the posterior means of attributes, see `posteriors`."""
    return [item.mean for item in posteriors(attributes, domains, given)]


def averaged_each(
    collections: Sequence[Sequence[Noisy]], domains: Sequence[Sequence[int]]
) -> list[list[Array]]:
    """Do as `averaged` for many collections of the same attributes, in fewer and larger steps."""
    items = [item for attributes in collections for item in attributes]
    found = under_all(items, [None] * len(items))
    results, start = [], 0
    for attributes in collections:
        own, start = found[start : start + len(attributes)], start + len(attributes)
        helped = _helping(attributes, domains, _apart(attributes, own, [None] * len(own)))
        results.append([item.mean for item in helped])
    return results


def posteriors(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], given: Sequence[Array | None] = ()
) -> list[Posterior]:
    """Return the posteriors of attributes.

    Args:
        attributes: their estimates and noise.
        domains: the places of attributes that share their values, for all of them.
        given: frequencies that are known from elsewhere, None where none are.
    """
    known = list(given) or [None] * len(attributes)
    return _helping(attributes, domains, _apart(attributes, under_all(attributes, known), known))


def _helping(
    attributes: Sequence[Noisy], domains: Sequence[Sequence[int]], results: list[Posterior]
) -> list[Posterior]:
    """Return the posteriors of attributes that may have frequencies in common, of what each is by itself."""
    for places in domains:
        if len(places) > 1:
            moved = shared([attributes[place] for place in places], [results[place] for place in places])
            for place, result in zip(places, moved, strict=True):
                results[place] = result
    return results


def _apart(
    attributes: Sequence[Noisy], found: Sequence[Averaged], given: Sequence[Array | None]
) -> list[Posterior]:
    """Return posteriors of attributes that tell each other how uneven they are, and nothing else."""
    base = np.array([
        prior_weights(item.variances, prior is not None)
        for item, prior in zip(attributes, given, strict=True)
    ])  # fmt: skip
    if len(found) == 1:
        return [found[0].posterior(base[0])]
    evidence = np.where(base > 0, [item.evidence for item in found], -np.inf)
    told = _told(evidence, base)
    alike = _alike(evidence, base)
    return [item.posterior(prior, alike) for item, prior in zip(found, told, strict=True)]


def _told(evidence: Array, base: Array) -> Array:
    """Return each attribute's weights of priors, as its own and the others' evidence make them."""
    seen, silent = _likelihoods(evidence), (base == 0).sum(axis=0)
    told = base
    for _ in range(_TELLING_ROUNDS):
        chosen = _shares(told * seen)
        told = _expected(base, chosen.sum(axis=0) - chosen, silent)
    return told


def _expected(base: Array, heard: Array, silent: Array) -> Array:
    """Return the weights of priors for attributes that have heard what others probably have.

    Each that was heard counts as a draw, beside the `_TOLD` draws that the base weights are (Blackwell,
    MacQueen 1973). Those that are `silent` about a prior, which is not for their number of values, change
    nothing about it.
    """
    return _shares(base * (_TOLD + silent) + np.where(base > 0, heard, 0.0))


def _alike(evidence: Array, base: Array) -> Array:
    """Return the probability that all attributes have the same prior, for each that it could be.

    Otherwise they tell each other, which may make them alike, too: two more often than not, many hardly ever.
    """
    count = len(base)
    with np.errstate(divide="ignore"):
        likely = np.log(np.prod(base ** (1 / count), axis=0))
    by_telling = math.exp(math.lgamma(count) + math.lgamma(1 + _TOLD) - math.lgamma(count + _TOLD))
    logs = math.log(_ALIKE - by_telling) + likely + evidence.sum(axis=0)
    other = math.log(1 - _ALIKE) + _telling(evidence, base)
    return np.asarray(np.exp(logs - np.logaddexp(np.logaddexp.reduce(logs), other)))


def _telling(evidence: Array, base: Array) -> float:
    """Return the log-evidence of attributes of which each has been told by those before it.

    The average over an order and its reverse, of which neither depends on how the attributes are given.
    """
    order = np.argsort(evidence.max(axis=1), kind="stable")
    seen, logs = _likelihoods(evidence), np.zeros(2)
    heard, silent = np.zeros((2, 2, COUNT))
    for pair in zip(order.tolist(), order[::-1].tolist(), strict=True):
        own = base[list(pair)]
        likely = _expected(own, heard, silent) * seen[list(pair)]
        logs += np.log(likely.sum(axis=1))
        heard += _shares(likely)
        silent += own == 0
    return float(np.logaddexp(*logs)) - math.log(2) + float(evidence.max(axis=1).sum())


def _likelihoods(evidence: Array) -> Array:
    """Return how likely priors make each attribute beside the one that makes it likeliest."""
    return np.asarray(np.exp(evidence - evidence.max(axis=1, keepdims=True)))


def _shares(weights: Array) -> Array:
    """Return weights that add up to 1 for each attribute."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
