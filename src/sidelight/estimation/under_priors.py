"""Attributes under every prior of `priors`: posterior means, variances and evidence, many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.estimation.bayes import (
    Noisy,
    Posterior,
    dirichlet_posteriors,
    each_posterior,
    one_prior_each,
    tables,
)
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
    possible,
    under_mixture,
)
from sidelight.foundation.arrays import Array, Mask

_FEW = (10**-0.5, 10.0)
Fit = tuple[float, Array, Array, float]
"""Shape, rates and log-weights of a fitted mixture, and what its evidence is less."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """One attribute under every prior: means and variances, (priors, values), and log-evidence, (priors,).

    `fit` is the mixture that was fitted to it, if any.
    """

    means: Array
    spreads: Array
    evidence: Array
    fit: Fit | None = None

    def posterior(self, prior: Array, alike: Array | float = 0.0) -> Posterior:
        """Return the average over the priors, weighted by how likely evidence makes them.

        Args:
            prior: how likely each was before.
            alike: the probability of each that others decide on as well.
        """
        logs = np.log(np.maximum(prior, 1e-300)) + self.evidence
        most = float(logs.max())
        weights = np.exp(logs - most)
        total = float(weights.sum())
        chances = (1 - np.sum(alike)) / total * weights + alike
        mean = chances @ self.means
        square = chances @ (self.spreads + self.means**2)
        return Posterior(mean, np.maximum(square - mean**2, 0.0), most + math.log(total))


def under_all(attributes: Sequence[Noisy], given: Sequence[Array | None]) -> list[Averaged]:
    """Return every attribute under all priors, also around the frequencies that are given for it."""
    found: dict[int, Averaged] = {}
    for alike in by_size(attributes):
        found |= zip(alike, _of_one_size([attributes[place] for place in alike]), strict=True)
    for place, share in enumerate(given):
        if share is not None:
            own, rest = found[place], slice(GIVEN, None)
            own.means[rest], own.spreads[rest], own.evidence[rest] = dirichlet_posteriors(
                attributes[place], share, CONCENTRATIONS
            )
    return [found[place] for place in range(len(attributes))]


def roughly(attributes: Sequence[Noisy]) -> list[Array]:
    """Return the mean of every attribute under a few priors, near what all of them make of it."""
    found: dict[int, Array] = {}
    for alike in by_size(attributes):
        centres, deviations = stacked([attributes[place] for place in alike])
        size = centres.shape[1]
        shares = np.full((1, len(_FEW), size), 1 / size)
        means, _, evidence = each_posterior(centres, deviations, shares, [size * shape for shape in _FEW])
        chances = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        found |= zip(alike, (chances[:, :, None] * means).sum(axis=1), strict=True)
    return [found[place] for place in range(len(attributes))]


def by_size(attributes: Sequence[Noisy]) -> list[list[int]]:
    """Return the places of attributes that have as many values."""
    places: dict[int, list[int]] = {}
    for place, item in enumerate(attributes):
        places.setdefault(len(item.centre), []).append(place)
    return list(places.values())


def stacked(items: Sequence[Noisy]) -> tuple[Array, Array]:
    """Return centres and deviations, (attributes, values)."""
    variances = np.array([item.variances for item in items])
    return np.array([item.centre for item in items]), np.sqrt(variances)


def _of_one_size(items: Sequence[Noisy]) -> list[Averaged]:
    from sidelight.estimation.bayes_kernels import each_mixture

    centres, deviations = stacked(items)
    size = centres.shape[1]
    means, spreads, evidence = under_shapes(centres, deviations)
    for place, rates, weights, norm in mixtures(size):
        each_mixture(centres, deviations, rates, weights, tables(), place, means, spreads, evidence)
        evidence[:, place] -= norm
    results = [Averaged(*rows) for rows in zip(means, spreads, evidence, strict=True)]
    if possible(size)[FITTED]:
        return [_fitted(item, found) for item, found in zip(items, results, strict=True)]
    return results


def _fitted(item: Noisy, found: Averaged) -> Averaged:
    """Return what is found, under the mixture that is fitted too."""
    shape, rates, weights = fitted(item)
    fit = shape, rates, weights, log_density_of_one(len(item.centre), rates, weights, shape) + CHARGE
    found.evidence[FITTED] = _under_fit(item, fit, found.means[FITTED], found.spreads[FITTED])
    return replace(found, fit=fit)


def _under_fit(item: Noisy, fit: Fit, mean: Array, spread: Array) -> float:
    """Write means and variances under a mixture that was fitted; return its evidence."""
    shape, rates, weights, norm = fit
    return under_mixture(item, rates, weights, mean, spread, shape) - norm


def write_some(
    some: Mask, centres: Array, deviations: Array, fits: Sequence[Fit | None], given: Sequence[Array | None],
    found: tuple[Array, Array, Array],
) -> None:  # fmt: skip
    """Write what some priors make of attributes of one size, each prior seeing centres and noise of its own.

    Args:
        some: for which priors, (attributes, priors); none whose means are known beforehand.
        centres: (attributes, priors, values).
        deviations: of the noise around them.
        fits: the mixture that was fitted to each attribute.
        given: the frequencies that are known of each from elsewhere.
        found: means, variances and evidence of all.
    """
    from sidelight.estimation.bayes_kernels import each_mixture

    means, spreads, evidence = found
    size = centres.shape[2]
    shaped = some.copy()
    shaped[:, POWER:GIVEN] = False
    if shaped.any():
        at = np.nonzero(shaped)
        shapes = np.array([_shapes(place, size, given[row]) for row, place in zip(*at, strict=True)])
        means[at], spreads[at], evidence[at] = one_prior_each(centres[at], deviations[at], shapes)
    for place, rates, weights, norm in mixtures(size):
        at = np.flatnonzero(some[:, place]), np.array(place)
        rows = np.empty((len(at[0]), 1, size)), np.empty((len(at[0]), 1, size)), np.empty((len(at[0]), 1))
        each_mixture(centres[at], deviations[at], rates, weights, tables(), 0, *rows)
        means[at], spreads[at], evidence[at] = rows[0][:, 0], rows[1][:, 0], rows[2][:, 0] - norm
    for row, fit in enumerate(fits):
        if some[row, FITTED] and fit is not None:
            item = Noisy(centres[row, FITTED], deviations[row, FITTED] ** 2)
            evidence[row, FITTED] = _under_fit(item, fit, means[row, FITTED], spreads[row, FITTED])


def _shapes(place: int, size: int, given: Array | None) -> Array:
    """Return those of the Dirichlet prior at this place."""
    if place < POWER or given is None:
        return np.full(size, SHAPES[place])
    return np.asarray(CONCENTRATIONS[place - GIVEN] * given)


def under_shapes(centres: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """Return what the symmetric Dirichlet priors make of attributes; the others have no evidence yet.

    Means and variances are (attributes, priors, values), evidence (attributes, priors).
    """
    count, size = centres.shape
    means, spreads = np.full((count, COUNT, size), 1 / size), np.zeros((count, COUNT, size))
    evidence = np.full((count, COUNT), -np.inf)
    likely = possible(size)
    if likely[0]:
        means[:, 0], evidence[:, 0] = under_one(
            (centres / deviations) ** 2, ((centres - 1) / deviations) ** 2
        )
        spreads[:, 0] = means[:, 0] * (1 - means[:, 0])
    places = 1 + np.flatnonzero(likely[1:POWER])
    shares = np.full((1, len(places), size), 1 / size)
    means[:, places], spreads[:, places], evidence[:, places] = each_posterior(
        centres, deviations, shares, [size * SHAPES[place] for place in places]
    )
    return means, spreads, evidence


def under_one(none: Array, everything: Array) -> tuple[Array, Array]:
    """Return means and evidence if one value has everything, and each is as likely to be it.

    Given are the deviances of values, (attributes, values), if they have nothing and if they have everything.
    """
    logs = -0.5 * (none.sum(axis=1, keepdims=True) - none + everything)
    top = logs.max(axis=1, keepdims=True)
    share = np.exp(logs - top)
    return share / share.sum(axis=1, keepdims=True), top[:, 0] + np.log(share.mean(axis=1))
