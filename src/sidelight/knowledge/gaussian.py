"""Leakage of a weighted sum of Gaussian attributes, in closed form: one adversary's, and everyone's.

Group privacy gives no figure here: an unknown attribute may have any value, so it can move the answer by any
amount.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.belief import Gaussian
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, TooLargeError, check_number
from sidelight.knowledge.adversary import Adversary, Values, check_targets
from sidelight.knowledge.audit import AdversaryAudit, KnowledgeAudit
from sidelight.knowledge.cells import claim_of
from sidelight.knowledge.noise import NoiseChoice
from sidelight.knowledge.query import NumberSum, checked_weights
from sidelight.leakage.bounds import Bound

Weights = Mapping[str, float] | None
"""Of the attributes in the sum; 1 by default."""
MOST_ATTRIBUTES = 16
METHOD = "Gaussian closed form (PDP, Theorem 6)"
UNLIMITED = "the values of a Gaussian have no limits"
_UPWARDS = 1 + 2.0**-48
"""The scale is rounded up by this factor, so that the leakage at it is not above the limit."""


def gaussian_leakage(
    belief: Gaussian, adversary: Adversary, *, scale: float = 1.0, reach: float = 1.0, weights: Weights = None
) -> Bound:
    """Return M/lambda * |a_i + sum over unknown j of a_j beta_ji| (PDP, Theorem 6, with any weights).

    beta_ji is the regression coefficient of x_j on the target x_i with the known attributes fixed, M the
    `reach`: how far apart two values of the target may be, lambda the noise's `scale`.
    """
    given = checked_weights(belief.names, weights)
    adversary.check(belief.names)
    slope, rest = given[adversary.target], adversary.unknown(belief.names)
    if rest:
        beta = belief.regression(rest, [adversary.target, *adversary.known])[:, 0]
        slope += float(np.array([given[name] for name in rest]) @ beta)
    value = check_number("reach", reach, at_least=0) * abs(slope) / check_number("scale", scale, above=0)
    return Bound(value, claim_of(belief), METHOD)


def gaussian_weakest(
    belief: Gaussian, target: str, *, scale: float = 1.0, reach: float = 1.0, weights: Weights = None
) -> Bound:
    """Return |a_i + sum over j of a_j cov_ij / var_i| M/lambda: the weakest adversary (PDP, Corollary 2).

    The corollary has all weights 1.
    """
    i = belief.index(target)
    row = belief.covariance[i]
    given = np.array(list(checked_weights(belief.names, weights).values()))
    value = abs(float(given @ row / row[i])) * check_number("reach", reach, at_least=0)
    value /= check_number("scale", scale, above=0)
    return Bound(value, claim_of(belief), "Gaussian closed form (PDP, Corollary 2)")


def gaussian_audit(
    belief: Gaussian,
    targets: Sequence[str] | None = None,
    *,
    scale: float = 1.0,
    reach: float | None = None,
    weights: Weights = None,
    named: Sequence[Adversary] = (),
    limit: float | None = None,
) -> KnowledgeAudit:
    """Compute the leakage of a weighted sum of Gaussian attributes to every adversary (PDP, Theorem 6).

    `reach` says how far apart two values of an attribute may be: by default as far as in the table, or 1 for
    a belief given by hand. The `named` adversaries are shown in full; with a `limit` also find the least
    noise that keeps everyone under it.
    """
    chosen = check_targets(belief.names, targets, named)
    query = _query(belief, scale, reach, weights)
    exact = Values(belief.names, _all_values(belief, query)).of_targets(chosen)
    group = Values(belief.names, np.where(np.isnan(exact.table), np.nan, np.inf))
    worst, *others = (_figures(belief, query, each) for each in (exact.worst()[0], *named))
    noise = None if limit is None else _noise(belief, query, exact, limit)
    gap = max(_corollary_gap(belief, query, exact, name) for name in chosen)
    figures = (exact, group, None, None, worst, tuple(others), noise)
    return KnowledgeAudit(belief, query, chosen, *figures, corollary_gap=gap)


def gaussian_figures(
    belief: Gaussian,
    adversary: Adversary,
    *,
    scale: float = 1.0,
    reach: float | None = None,
    weights: Weights = None,
) -> tuple[NumberSum, AdversaryAudit]:
    """Return the query and all figures of one adversary, however many attributes there are."""
    query = _query(belief, scale, reach, weights)
    return query, _figures(belief, query, adversary)


def _query(belief: Gaussian, scale: float, reach: float | None, weights: Weights) -> NumberSum:
    if reach is not None:
        reaches = dict.fromkeys(belief.names, check_number("reach", reach, above=0))
    else:
        reaches = dict(zip(belief.names, belief.ranges or [1.0] * len(belief.names), strict=True))
    return NumberSum(check_number("scale", scale, above=0), checked_weights(belief.names, weights), reaches)


def _all_values(belief: Gaussian, query: NumberSum) -> Array:
    """Return the closed form for every adversary, (n, 2^n), NaN where there is none.

    Everyone who attacks one of a set and knows the rest of it regresses the same unknown sum on the same
    set: one system of equations gives all their slopes.
    """
    count = len(belief.names)
    if count > MOST_ATTRIBUTES:
        raise TooLargeError(
            f"{count} attributes have too many adversaries to try; take at most {MOST_ATTRIBUTES}, or one "
            "adversary at a time with gaussian_leakage."
        )
    covariance = belief.covariance
    weights = np.array([query.weights[name] for name in belief.names])
    moves = np.array([query.reaches[name] / query.scale for name in belief.names])
    values = np.full((count, 1 << count), np.nan)
    for mask in range(1, 1 << count):
        inside = (mask >> np.arange(count) & 1) == 1
        known = np.flatnonzero(inside)
        shared = covariance[np.ix_(inside, ~inside)] @ weights[~inside]
        slopes = weights[inside] + np.linalg.solve(covariance[np.ix_(inside, inside)], shared)
        values[known, mask & ~(1 << known)] = np.abs(slopes) * moves[inside]
    return values


def _figures(belief: Gaussian, query: NumberSum, adversary: Adversary) -> AdversaryAudit:
    belief.index(adversary.target)
    reach = query.reaches[adversary.target]
    exact = gaussian_leakage(belief, adversary, scale=query.scale, reach=reach, weights=query.weights)
    return AdversaryAudit(adversary, exact, Bound(math.inf, "certified", UNLIMITED))


def _corollary_gap(belief: Gaussian, query: NumberSum, exact: Values, target: str) -> float:
    """Return how far Corollary 2 is from the closed form of the weakest adversary, relative to the larger."""
    reach = query.reaches[target]
    corollary = gaussian_weakest(belief, target, scale=query.scale, reach=reach, weights=query.weights).value
    theorem = exact.of(Adversary(target))
    return abs(corollary - theorem) / max(corollary, theorem, reach / query.scale)


def _noise(belief: Gaussian, query: NumberSum, exact: Values, limit: float) -> NoiseChoice:
    """Return the least scale: leakage is a constant over the scale, so it follows from any other."""
    most = check_number("limit", limit, above=0)
    adversary, value = exact.worst()
    if value == 0:
        raise InputError("no attribute moves the answer, so no noise is needed; check the weights.")
    scale = value * query.scale / most * _UPWARDS
    bound = Bound(value * query.scale / scale, claim_of(belief), METHOD)
    return NoiseChoice(most, scale, adversary, bound, math.inf)
