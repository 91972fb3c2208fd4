"""Attributes over the same values, which may have frequencies in common: x_j ~ Dirichlet(alpha pi).

All of them may, equally closely, or all but those that the others do not foretell so well: a few that are
further away would keep the rest from helping each other. They lean on the rest less closely, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.bayes import Noisy, Posterior, log_constants, one_prior_each
from sidelight.estimation.priors import prior_weights
from sidelight.estimation.under_priors import Averaged, under_shapes
from sidelight.foundation.arrays import Array, Mask

_SHARED, _SOME = 0.4, 0.2  # how likely it is that all have frequencies in common, or some of them
_COMMON = np.array([3.0, 20.0, 150.0, 1500.0, math.inf])  # alpha
_APART = 0.5  # that one who is not as close as the others does not lean on them at all
_PART = 10
"""Of those who are too far from the rest, one in so many leaves at a time, at least one."""
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True, eq=False)
class _Ways:
    """How closely attributes lean on what some have in common, (ways, attributes); what their pools say.

    An alpha of 0 is for one that does not lean on it. Weights are logarithms and lack the evidence of what is
    in common.
    """

    alphas: Array
    centres: Array
    variances: Array
    weights: Array


def shared(items: Sequence[Noisy], apart: Sequence[Posterior]) -> list[Posterior]:
    """Return posteriors of attributes over the same values, from what each is by itself.

    That may have been judged with skewed noise; what they have in common is judged with normal noise.
    """
    centres, noise = np.array([item.centre for item in items]), np.array([item.variances for item in items])
    # In an order of their own: of two that are as far from the rest one leaves it first.
    order = np.lexsort(np.hstack([noise, centres]).T)
    moved = _shared(centres[order], noise[order], [apart[place] for place in order])
    return [moved[place] for place in np.argsort(order)]


def _shared(centres: Array, noise: Array, apart: Sequence[Posterior]) -> list[Posterior]:
    means = np.array([own.mean for own in apart])
    near = np.maximum(means.mean(axis=0), 1e-3 / means.shape[1])
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
        centres, noise, apart, ways.alphas[kept].T, [found[place] for place in kept], chances[kept]
    )


def _ways(centres: Array, noise: Array, near: Array, alone: Array) -> _Ways:
    """Return the ways in which attributes may have frequencies in common, the closest last."""
    count, levels = len(alone), len(_COMMON)
    spreads = noise + near / (_COMMON[:, None, None] + 1)
    alphas, who = [*np.tile(_COMMON[:, None], count)], [np.ones(count, dtype=bool)] * levels
    weights = [math.log(_SHARED / levels)] * levels
    for level, members in enumerate(_closest(centres, spreads, alone)):
        some = int(members.sum())
        if some < count:
            closeness, known = _further(centres, spreads[: level + 1], members, alone)
            alphas.append(np.where(members, _COMMON[level], closeness))
            who.append(members)
            # A logarithm takes whole numbers that no double holds.
            weights.append(math.log(_SOME / levels / count) - math.log(math.comb(count, some)) + known)
    each = np.array(alphas)
    wide = noise + near / (each[:, :, None] + 1)
    return _pooled(each, np.array(who), centres, wide, np.array(weights))


def _closest(centres: Array, spreads: Array, alone: Array) -> Mask:
    """Return whom the others foretell well enough, two at least, (levels, attributes).

    Those leave who are foretold worst, and worse than nothing (where a lower level would do: half as well as
    that), and the rest are looked at anew. They go one by one, or a tenth of many at a time.
    """
    least = np.tile(alone, (len(spreads), 1))
    least[1:] += math.log(_APART)
    members, moving = np.ones(least.shape, dtype=bool), np.arange(len(spreads))
    while len(moving):
        inside = members[moving]
        gains = np.where(inside, _foretold(centres, spreads[moving], inside) - least[moving], math.inf)
        worst_first = gains.argsort(axis=1, kind="stable")
        far = (gains < 0).sum(axis=1)
        leave = np.minimum(np.maximum(far // _PART, np.minimum(far, 1)), inside.sum(axis=1) - 2)
        members[moving[:, None], worst_first] &= np.arange(len(alone)) >= leave[:, None]
        moving = moving[leave > 0]
    return members


def _further(centres: Array, spreads: Array, members: Mask, alone: Array) -> tuple[Array, float]:
    """Return how closely each of those who are no members leans on these, 0 for not at all, and its evidence.

    Members are as close as the last of the spreads says, others less so or not at all.
    """
    wide = np.where(members[:, None], spreads[-1], spreads[:-1])
    less = _foretold(centres, wide, members) + math.log((1 - _APART) / max(len(wide), 1))
    others = np.stack([alone + (math.log(_APART) if len(wide) else 0.0), *less])
    alphas = np.array([0.0, *_COMMON[: len(wide)]])[others.argmax(axis=0)]
    return alphas, float(others.max(axis=0)[~members].sum())


def _foretold(centres: Array, spreads: Array, members: Mask) -> Array:
    """Return the log-density of each attribute's estimate, foretold from the pool of all other members."""
    precise = members[..., None] / spreads
    weighed = centres * precise
    rest = precise.sum(axis=-2, keepdims=True) - precise
    wide = spreads + 1 / rest
    off = centres - (weighed.sum(axis=-2, keepdims=True) - weighed) / rest
    return np.asarray(log_constants(wide) - 0.5 * (off**2 / wide).sum(axis=-1))


def _pooled(alphas: Array, members: Mask, centres: Array, spreads: Array, chosen: Array) -> _Ways:
    """Return what members have in common in every way, of their estimates and (ways, ...) variances."""
    precise = members[:, :, None] / spreads
    variances = 1 / precise.sum(axis=1)
    middles = (centres * precise).sum(axis=1) * variances
    off, whole = 1 - middles.sum(axis=1), variances.sum(axis=1)
    away = ((centres - middles[:, None]) ** 2 * precise).sum(axis=(1, 2)) + off**2 / whole
    constants = (members * log_constants(spreads)).sum(axis=1)
    moved = middles + (off / whole)[:, None] * variances
    return _Ways(alphas, moved, variances, chosen + constants - 0.5 * away)


def _leaning(
    centres: Array, noise: Array, apart: Sequence[Posterior], alphas: Array,
    found: Sequence[Posterior], chances: Array,
) -> list[Posterior]:  # fmt: skip
    """Return posteriors of attributes that lean on what some have in common, each so closely in each way."""
    middle, unsure = np.array([one.mean for one in found]), np.array([one.variance for one in found])
    means, spreads = _around(centres, noise, middle, alphas)
    # What they lean on is itself not known for sure.
    around = middle / (alphas[:, :, None] + 1)
    spreads += (noise[:, None] / (noise[:, None] + around)) ** 2 * unsure
    own, wide = np.array([one.mean for one in apart]), np.array([one.variance for one in apart])
    leaning = np.where(alphas > 0, chances, 0.0)
    left = np.maximum(1 - leaning.sum(axis=1, keepdims=True), 0.0)
    mean = left * own + (leaning[:, :, None] * means).sum(axis=1)
    square = left * (wide + own**2) + (leaning[:, :, None] * (spreads + means**2)).sum(axis=1)
    rows = zip(mean, np.maximum(square - mean**2, 0.0), apart, strict=True)
    return [Posterior(one, spread, before.evidence) for one, spread, before in rows]


def _around(centres: Array, noise: Array, middle: Array, alphas: Array) -> tuple[Array, Array]:
    """Return means and variances under Dirichlet(alpha middle), (attributes, ways, values)."""
    means = np.broadcast_to(middle, (*alphas.shape, middle.shape[1])).copy()
    spreads = np.zeros(means.shape)
    one, way = np.nonzero((alphas > 0) & np.isfinite(alphas))
    shapes = alphas[one, way, None] * middle[way]
    means[one, way], spreads[one, way], _ = one_prior_each(centres[one], np.sqrt(noise[one]), shapes)
    return means, spreads
