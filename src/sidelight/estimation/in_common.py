"""Attributes over the same values, which may have frequencies in common: x_j ~ Dirichlet(alpha pi).

All of them may, or all but those that the others do not foretell: a few that stand apart would keep the rest
from helping each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior, each_posterior, log_constants
from sidelight.estimation.priors import prior_weights
from sidelight.estimation.under_priors import Averaged, under_shapes
from sidelight.foundation.arrays import Array, Mask

_SHARED, _SOME = 0.4, 0.2  # how likely it is that all have frequencies in common, or some of them
_COMMON = np.array([3.0, 20.0, 150.0, 1500.0, math.inf])  # alpha
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True, eq=False)
class _Ways:
    """Who has frequencies in common, how closely, (ways, attributes) and (ways,); what their pools say.

    Weights are logarithms and lack the evidence of what they have in common.
    """

    alphas: Array
    members: Mask
    centres: Array
    variances: Array
    weights: Array


def shared(items: Sequence[Noisy], apart: Sequence[Posterior]) -> list[Posterior]:
    """Return posteriors of attributes over the same values, from what each is by itself.

    That may have been judged with skewed noise; what they have in common is judged with normal noise.
    """
    means = np.array([own.mean for own in apart])
    near = np.maximum(means.mean(axis=0), 1e-3 / means.shape[1])
    centres, noise = np.array([item.centre for item in items]), np.array([item.variances for item in items])
    alone = np.array([own.evidence for own in apart]) + log_constants(noise)
    ways = _ways(centres, noise, near, alone)
    weights = [prior_weights(variances) for variances in ways.variances]
    under = under_shapes(ways.centres, np.sqrt(ways.variances))
    found = [Averaged(*rows).posterior(prior) for *rows, prior in zip(*under, weights, strict=True)]
    sums = ways.weights + [result.evidence for result in found]
    logs = np.array([math.log(1 - _SHARED - _SOME) + alone.sum(), *sums])
    chances = np.exp(logs - logs.max())
    chances = chances[1:] / chances.sum()
    kept = np.flatnonzero(chances > _NEGLIGIBLE)
    if not len(kept):
        return list(apart)
    return _leaning(
        (centres, noise), apart, ways.alphas[kept], [found[place] for place in kept],
        ways.members[kept].T * chances[kept],
    )  # fmt: skip


def _ways(centres: Array, noise: Array, near: Array, alone: Array) -> _Ways:
    """Return the ways in which attributes may have frequencies in common, the closest last."""
    count = len(alone)
    spreads = noise + near / (_COMMON[:, None, None] + 1)
    fits = _foretold(centres, spreads, np.ones((1, count))) - alone
    alphas, members, chosen = [], [], []
    for alpha, wide, gains in zip(_COMMON, spreads, fits, strict=True):
        alphas.append(alpha)
        members.append(np.ones(count, dtype=bool))
        chosen.append(math.log(_SHARED / len(_COMMON)))
        if gains.min() < 0 and count > 2:
            # Without the one that fits worst, who fits the rest?
            others = np.arange(count) != gains.argmin()
            others &= _foretold(centres, wide, others) >= alone
            some = int(others.sum())
            if some > 1:
                alphas.append(alpha)
                members.append(others)
                # A logarithm takes whole numbers that no double holds.
                chosen.append(math.log(_SOME / len(_COMMON) / count) - math.log(math.comb(count, some)))
    who = np.array(members)
    wide = noise + near / (np.array(alphas)[:, None, None] + 1)
    return _pooled(np.array(alphas), who, (centres, wide), np.array(chosen) + (~who * alone).sum(axis=1))


def _foretold(centres: Array, spreads: Array, members: Array) -> Array:
    """Return the log-density of each attribute's estimate, foretold from the pool of all other members."""
    precise = members[..., None] / spreads
    weighed = centres * precise
    rest = precise.sum(axis=-2, keepdims=True) - precise
    wide = spreads + 1 / rest
    off = centres - (weighed.sum(axis=-2, keepdims=True) - weighed) / rest
    return np.asarray(log_constants(wide) - 0.5 * (off**2 / wide).sum(axis=-1))


def _pooled(alphas: Array, members: Mask, noisy: tuple[Array, Array], chosen: Array) -> _Ways:
    """Return what members have in common in every way, of their estimates and (ways, ...) variances."""
    centres, spreads = noisy
    precise = members[:, :, None] / spreads
    variances = 1 / precise.sum(axis=1)
    middles = (centres * precise).sum(axis=1) * variances
    off, whole = 1 - middles.sum(axis=1), variances.sum(axis=1)
    away = ((centres - middles[:, None]) ** 2 * precise).sum(axis=(1, 2)) + off**2 / whole
    constants = (members * log_constants(spreads)).sum(axis=1)
    moved = middles + (off / whole)[:, None] * variances
    return _Ways(alphas, members, moved, variances, chosen + constants - 0.5 * away)


def _leaning(
    noisy: tuple[Array, Array], apart: Sequence[Posterior], alphas: Array,
    found: Sequence[Posterior], chances: Array,
) -> list[Posterior]:  # fmt: skip
    """Return posteriors of attributes that lean on others in some ways, (attributes, ways), or on none."""
    centres, noise = noisy
    middle, unsure = np.array([one.mean for one in found]), np.array([one.variance for one in found])
    means, spreads, _ = each_posterior(centres, np.sqrt(noise), middle[None], alphas.tolist())
    # What they lean on is itself not known for sure.
    around = middle / (alphas[:, None] + 1)
    spreads += (noise[:, None] / (noise[:, None] + around)) ** 2 * unsure
    left = np.maximum(1 - chances.sum(axis=1, keepdims=True), 0.0)
    own, wide = np.array([one.mean for one in apart]), np.array([one.variance for one in apart])
    mean = left * own + (chances[:, :, None] * means).sum(axis=1)
    square = left * (wide + own**2) + (chances[:, :, None] * (spreads + means**2)).sum(axis=1)
    rows = zip(mean, np.maximum(square - mean**2, 0.0), apart, strict=True)
    return [Posterior(one, spread, before.evidence) for one, spread, before in rows]
