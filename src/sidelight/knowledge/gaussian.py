"""Leakage of a weighted sum of Gaussian attributes, in closed form and checked by integration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.belief import Gaussian
from sidelight.foundation.errors import check_number
from sidelight.knowledge.adversary import Adversary
from sidelight.leakage.bounds import Bound, Claim

_FAR = 40.0


@dataclass(frozen=True)
class NumberSum:
    """A weighted sum of numbers that are not binned, and the scale of its Laplace noise.

    Attributes:
        scale: of the noise, lambda.
        weights: of every attribute in the sum.
        reaches: how far apart two values of each attribute may be, M.
        name: of the query, in words.
    """

    scale: float
    weights: Mapping[str, float]
    reaches: Mapping[str, float]
    name: str = "sum"

    @property
    def width(self) -> int:
        """How many numbers an answer has."""
        return 1


def gaussian_leakage(
    belief: Gaussian,
    adversary: Adversary,
    *,
    scale: float = 1.0,
    reach: float = 1.0,
    weights: Mapping[str, float] | None = None,
) -> Bound:
    """Return M/lambda * |a_i + sum over unknown j of a_j beta_ji| (PDP, Theorem 6, with any weights).

    beta_ji is the regression coefficient of x_j on the target x_i with the known attributes fixed.

    Args:
        belief: the Gaussian.
        adversary: who attacks what.
        scale: of the Laplace noise, lambda.
        reach: M: how far apart two values of the target may be.
        weights: of the attributes in the sum; 1 by default.
    """
    slope = _slope(belief, adversary, checked_weights(belief, weights))
    value = check_number("reach", reach, at_least=0) * abs(slope) / check_number("scale", scale, above=0)
    return Bound(value, claim_of(belief), "Gaussian closed form (PDP, Theorem 6)")


def gaussian_weakest(
    belief: Gaussian,
    target: str,
    *,
    scale: float = 1.0,
    reach: float = 1.0,
    weights: Mapping[str, float] | None = None,
) -> Bound:
    """Return |a_i + sum over j of a_j cov_ij / var_i| M/lambda: the weakest adversary (PDP, Corollary 2).

    The corollary has all weights 1.
    """
    i = belief.index(target)
    row = belief.covariance[i]
    given = np.array(list(checked_weights(belief, weights).values()))
    value = abs(float(given @ row / row[i])) * check_number("reach", reach, at_least=0)
    return Bound(
        value / check_number("scale", scale, above=0),
        claim_of(belief),
        "Gaussian closed form (PDP, Corollary 2)",
    )


def gaussian_by_integration(
    belief: Gaussian,
    adversary: Adversary,
    *,
    scale: float = 1.0,
    reach: float = 1.0,
    weights: Mapping[str, float] | None = None,
) -> float:
    """Return the log-ratio of the answer's density at an answer far out, by numerical integration.

    It approaches the closed form from below as the answer moves away; at this distance it is within 1e-6.
    """
    given = checked_weights(belief, weights)
    shift = reach * _slope(belief, adversary, given)
    rest = adversary.unknown(belief.names)
    spread = 0.0
    if rest:
        a = np.array([given[name] for name in rest])
        spread = math.sqrt(
            max(0.0, float(a @ belief.residual(rest, [adversary.target, *adversary.known]) @ a))
        )
    far = abs(shift) + scale * _FAR + spread * (_FAR + spread / scale)
    return abs(_log_density(far - shift, spread, scale) - _log_density(far, spread, scale))


def _log_density(distance: float, spread: float, scale: float) -> float:
    """Return the log-density of Laplace noise plus a centred Gaussian at a distance, by integration."""
    if spread == 0:
        return -abs(distance) / scale
    from scipy.integrate import quad

    peak = min(spread * spread / scale, distance)

    def part(s: float) -> float:
        exponent = -0.5 * (s / spread) ** 2 - abs(distance - s) / scale
        return math.exp(exponent - top)

    top = -0.5 * (peak / spread) ** 2 - abs(distance - peak) / scale
    value, _ = quad(part, peak - 12 * spread, peak + 12 * spread, points=[peak], epsabs=0, epsrel=1e-11)
    return top + math.log(value)


def _slope(belief: Gaussian, adversary: Adversary, weights: Mapping[str, float]) -> float:
    """Return by how much the expected answer moves with the target: a_i + sum over unknown a_j beta_ji."""
    adversary.check(belief.names)
    rest = adversary.unknown(belief.names)
    own = weights[adversary.target]
    if not rest:
        return own
    beta = belief.regression(rest, [adversary.target, *adversary.known])[:, 0]
    return own + float(np.array([weights[name] for name in rest]) @ beta)


def checked_weights(belief: Gaussian, weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weight of every attribute in the sum, in order; 1 where none is given."""
    for name in weights or {}:
        belief.index(name)
    return {name: check_number(f"weight of {name}", (weights or {}).get(name, 1.0)) for name in belief.names}


def claim_of(belief: Gaussian) -> Claim:
    """Return what a figure for this belief claims."""
    return "model" if belief.is_model else "exact"
