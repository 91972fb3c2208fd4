"""Attributes under every prior of `priors`: posterior means, variances and evidence, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior, dirichlet_posteriors, each_posterior, tables
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
from sidelight.foundation.arrays import Array

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

    def weights(self, prior: Array) -> Array:
        """Return how likely every prior is, from how likely it was before."""
        logs = np.log(np.maximum(prior, 1e-300)) + self.evidence
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def total(self, prior: Array) -> float:
        """Return the log-evidence of all priors together."""
        logs = np.log(np.maximum(prior, 1e-300)) + self.evidence
        return float(np.logaddexp.reduce(logs))

    def posterior(self, prior: Array, weights: Array | None = None) -> Posterior:
        """Return the average over the priors, by these weights or by what evidence makes of the prior's."""
        chances = self.weights(prior) if weights is None else weights
        mean = chances @ self.means
        square = chances @ (self.spreads + self.means**2)
        return Posterior(mean, np.maximum(square - mean**2, 0.0), self.total(prior))


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
    if prior_weights(size)[FITTED] > 0:
        return [_fitted(item, found) for item, found in zip(items, results, strict=True)]
    return results


def _fitted(item: Noisy, found: Averaged) -> Averaged:
    """Return what is found, under the mixture that is fitted too."""
    shape, rates, weights = fitted(item)
    norm = log_density_of_one(len(item.centre), rates, weights, shape) + CHARGE
    likely = under_mixture(item, rates, weights, found.means[FITTED], found.spreads[FITTED], shape)
    found.evidence[FITTED] = likely - norm
    return replace(found, fit=(shape, rates, weights, norm))


def under_prior(
    place: int, items: Sequence[Noisy], shares: Array, fits: Sequence[Fit | None]
) -> tuple[Array, Array, Array]:
    """Return what one prior makes of attributes of one size: means, variances, evidence; a row for each.

    Shares are what Dirichlet priors lie around, (attributes, values); fits are those of the attributes.
    """
    centres, deviations = stacked(items)
    if place < POWER or place >= GIVEN:
        alpha = shares.shape[1] * SHAPES[place] if place < POWER else CONCENTRATIONS[place - GIVEN]
        means, spreads, evidence = each_posterior(centres, deviations, shares[:, None], [alpha])
        return means[:, 0], spreads[:, 0], evidence[:, 0]
    means, spreads, evidence = np.empty_like(centres), np.empty_like(centres), np.empty(len(items))
    known = {at: (1.0, rates, weights, norm) for at, rates, weights, norm in mixtures(shares.shape[1])}
    for row, (item, fit) in enumerate(zip(items, fits, strict=True)):
        shape, rates, weights, norm = fit if fit is not None and place == FITTED else known[place]
        evidence[row] = under_mixture(item, rates, weights, means[row], spreads[row], shape) - norm
    return means, spreads, evidence


def under_shapes(centres: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """Return what the symmetric Dirichlet priors make of attributes; the others have no evidence yet.

    Means and variances are (attributes, priors, values), evidence (attributes, priors).
    """
    count, size = centres.shape
    means, spreads = np.full((count, COUNT, size), 1 / size), np.zeros((count, COUNT, size))
    evidence = np.full((count, COUNT), -np.inf)
    likely = prior_weights(size)
    if likely[0] > 0:
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
