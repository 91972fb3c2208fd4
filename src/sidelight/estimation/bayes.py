"""Posterior means on the simplex, from any unbiased estimate whose variances are known.

Noise that adds up to 0 is independent noise given its sum: diag(v) - vv'/sum(v). So the posterior is a
product of factors prior(x_i) N(f_i; x_i, v_i), given that the x_i add up to 1; `bayes_kernels` integrates it.
What priors are averaged, and how attributes help each other, is in `averaging`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sidelight.foundation.arrays import Array

Tables = tuple[Array, Array]
_LEAST_VARIANCE = 1e-12  # below it, logarithms of the factors lose their digits
_FARTHEST = 1000.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known about the frequencies of one attribute or one table.

    Attributes:
        mean: (values,) adds up to 1.
        variance: (values,) of each frequency by itself.
        evidence: the log-density of the estimate under the prior, up to what the prior does not change.
    """

    mean: Array
    variance: Array
    evidence: float


def posterior(
    estimate: Array, variances: Array, prior: Array | None = None, concentration: float | None = None, *,
    adds_up: bool = True,
) -> Posterior:  # fmt: skip
    """Return the posterior of frequencies under the prior Dirichlet(concentration x prior).

    Args:
        estimate: unbiased, (values,).
        variances: of its values.
        prior: the mean of the prior, even by default.
        concentration: how far to trust it, infinity for wholly; by default one for each value (flat).
        adds_up: whether the estimate adds up to 1 by itself, as randomised response's does and unary
            encoding's does not.
    """
    noisy = Noisy.of(estimate, variances, adds_up)
    size = len(noisy.centre)
    alpha = float(size if concentration is None else concentration)
    share = np.full(size, 1 / size) if prior is None else np.asarray(prior, dtype=np.float64)
    means, spreads, evidence = dirichlet_posteriors(noisy, share, [alpha])
    return Posterior(means[0], spreads[0], float(evidence[0]))


@dataclass(frozen=True, eq=False)
class Noisy:
    """Estimates that add up to 1, and the variances of independent noise that would make them so.

    No variance is taken to be below `least`.
    """

    centre: Array
    variances: Array
    least: float = _LEAST_VARIANCE

    @classmethod
    def of(cls, estimate: Array, variances: Array, adds_up: bool = True) -> Noisy:
        """Return an estimate moved to where it adds up to 1, with its noise taken apart."""
        from sidelight.estimation.bayes_kernels import (  # loading the compiler takes a while
            projected,
            spread_apart,
        )

        centre = np.asarray(estimate, dtype=np.float64)
        # What is a thousand deviations away from all frequencies has more noise than stated.
        off = float(np.abs(centre - projected(centre)).max()) / _FARTHEST
        least = max(off**2, _LEAST_VARIANCE)
        given = np.maximum(np.asarray(variances, dtype=np.float64), least)
        apart = spread_apart(given) if adds_up else given
        # On the simplex the likelihood changes by a constant only if the estimate is moved along v.
        return cls(centre + (1 - centre.sum()) * apart / apart.sum(), apart, least)

    @property
    def deviations(self) -> Array:
        """The roots of the variances."""
        return np.sqrt(self.variances)

    @property
    def constant(self) -> float:
        """What makes evidence a density given that the estimate adds up to 1."""
        return float(log_constants(self.variances))


def log_constants(variances: Array) -> Array:
    """Return `Noisy.constant` of each row of variances."""
    scaled = 2 * math.pi * variances
    return np.asarray(-0.5 * np.log(scaled).sum(axis=-1) + 0.5 * np.log(scaled.sum(axis=-1)))


@cache
def tables() -> Tables:
    """Return what `bayes_cumulants` looks up, made once."""
    from sidelight.estimation.bayes_cumulants import make_tables

    return make_tables()


def dirichlet_posteriors(noisy: Noisy, share: Array, alphas: Sequence[float]) -> tuple[Array, Array, Array]:
    """Return means and variances, (priors, values), and evidence under Dirichlet(alpha share).

    The share is one for all alphas, or has a row for each; infinite alphas come last.
    """
    rows = np.broadcast_to(share, (1, len(alphas), share.shape[-1]))
    means, spreads, evidence = each_posterior(noisy.centre[None], noisy.deviations[None], rows, alphas)
    return means[0], spreads[0], evidence[0]


def each_posterior(
    centres: Array, deviations: Array, shares: Array, alphas: Sequence[float]
) -> tuple[Array, Array, Array]:
    """Do as `dirichlet_posteriors` for many attributes of one size, (attributes, values), in one call.

    Shares are (attributes, priors, values), or (1, priors, values) for all of them.
    """
    count = sum(map(math.isfinite, alphas))
    means = np.empty((len(centres), len(alphas), centres.shape[1]))
    spreads, evidence = np.zeros(means.shape), np.empty(means.shape[:2])
    shapes = np.array(alphas[:count])[:, None] * shares[:, :count]
    write_posteriors(centres, deviations, shapes, means, spreads, evidence)
    means[:, count:] = shares[:, count:]
    off = (shares[:, count:] - centres[:, None]) / deviations[:, None]
    evidence[:, count:] = -0.5 * (off**2).sum(axis=2)
    evidence[np.isnan(evidence)] = -np.inf
    return means, spreads, evidence


def one_prior_each(centres: Array, deviations: Array, shapes: Array) -> tuple[Array, Array, Array]:
    """Return means and variances, (attributes, values), and evidence of attributes under Dirichlet(shapes).

    All arguments are (attributes, values).
    """
    means, spreads, evidence = np.empty(shapes.shape), np.empty(shapes.shape), np.empty(len(shapes))
    write_posteriors(
        centres, deviations, shapes[:, None], means[:, None], spreads[:, None], evidence[:, None]
    )
    return means, spreads, evidence


def write_posteriors(
    centres: Array, deviations: Array, shapes: Array, means: Array, spreads: Array, evidence: Array
) -> None:
    """Write what Dirichlet(shapes) makes of attributes, (attributes, priors, values); one part is for all."""
    from sidelight.estimation.bayes_cumulants import LEAST
    from sidelight.estimation.bayes_kernels import each_dirichlets

    used = np.maximum(shapes, LEAST)
    # Where shapes are large, the tilt is near that which makes the prior's own means add up to 1.
    tilts = np.minimum(centres.shape[1] - used.sum(axis=2), 0.0)
    each_dirichlets(centres, deviations, used, tables(), tilts, means, spreads, evidence)
    # Noise so large that its sums lose every digit: the prior stays as it is, and has no evidence.
    lost = np.nonzero(np.isnan(evidence[:, : used.shape[1]]))
    if len(lost[0]):
        own = used / used.sum(axis=2, keepdims=True)
        means[lost] = np.broadcast_to(own, (len(centres), *own.shape[1:]))[lost]
        spreads[lost], evidence[lost] = 0.0, -np.inf
