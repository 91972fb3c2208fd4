"""Estimators of frequencies that `best` is judged against, each written as well as we could.

All take the unbiased estimate and its variances at the projected estimate; the likeliest frequencies take
the counts that the estimate was made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq

from sidelight.estimation.bayes import posterior
from sidelight.foundation.arrays import Array, Whole, to_simplex


@dataclass(frozen=True, eq=False)
class Given:
    """What every estimator of one attribute is given: by GRR the counts add up, by OUE they do not."""

    estimate: Array
    variances: Array
    counts: Whole
    reports: int
    keep: float
    lie: float
    adds_up: bool


def norm_cut(given: Given) -> Array:
    """Drop negative estimates, and then the smallest ones until the rest adds up to 1 at most."""
    kept = np.maximum(given.estimate, 0.0)
    if kept.sum() <= 1:
        return kept / kept.sum() if kept.sum() > 0 else np.full_like(kept, 1 / len(kept))
    order = np.argsort(kept)
    falls = np.cumsum(kept[order])
    kept[order[falls <= kept.sum() - 1]] = 0.0
    return np.asarray(kept / kept.sum())


def james_stein(given: Given) -> Array:
    """Shrink towards even frequencies by the positive-part factor, and project."""
    size = len(given.estimate)
    if size < 4:
        return to_simplex(given.estimate)
    off = given.estimate - 1 / size
    lost = (size - 3) / (size - 1) * given.variances.sum() / max(float((off**2).sum()), 1e-300)
    return to_simplex(1 / size + max(1 - lost, 0.0) * off)


def flat_dirichlet(given: Given) -> Array:
    """The posterior mean under Dirichlet(1, ..., 1)."""
    return posterior(given.estimate, given.variances, adds_up=given.adds_up).mean


def likeliest(given: Given) -> Array:
    """What iterative Bayesian update converges to: the likeliest frequencies, by their conditions.

    The counts of GRR are multinomial. Those of OUE are taken for independent binomials, as reports of whole
    bit vectors are not kept.
    """
    gap, counts, reports = given.keep - given.lie, given.counts.astype(np.float64), given.reports

    def at(level: float) -> Array:
        # The slope of the log-likelihood in x is the same for every value that is not 0.
        if given.adds_up:
            seen = counts * gap / max(level, 1e-300)
        else:  # c/r - (n-c)/(1-r) = level/gap, a quadratic in r
            b = level / gap
            root = np.sqrt((reports + b) ** 2 - 4 * b * counts)
            whole = reports + b + root  # 0 at the lowest level for what nobody reported
            seen = np.divide(2 * counts, whole, out=np.zeros_like(counts), where=counts > 0)
        return np.clip((seen - given.lie) / gap, 0.0, 1.0)

    if given.adds_up:
        low, high = 1e-9 * reports, 10 * reports / min(given.lie, 1.0)
    else:
        low, high = -1e3 * reports, 1e3 * reports
    if at(low).sum() <= 1:
        return at(low) / max(float(at(low).sum()), 1e-300)
    found = at(brentq(lambda level: float(at(level).sum()) - 1, low, high, xtol=1e-9 * reports, rtol=1e-13))
    return np.asarray(found / found.sum())


def power_ns(given: Given) -> Array:
    """Posterior means under a power law fitted to what stands out, projected (Wang et al. 2020)."""
    size, sd = len(given.estimate), math.sqrt(float(given.variances.mean()))
    threshold = NormalDist().inv_cdf(1 - 1 / max(size, 50)) * sd
    large = given.estimate[given.estimate > threshold]
    if not len(large):
        return to_simplex(given.estimate)
    power = min(1 + len(large) / max(float(np.log(large / threshold).sum()), 1e-9), 5.0)
    grid = np.geomspace(1e-6, 1.0, 400)
    logs = (1 - power) * np.log(grid) - (given.estimate[:, None] - grid) ** 2 / (2 * sd * sd)
    share = np.exp(logs - logs.max(axis=1, keepdims=True))
    return to_simplex(share @ grid / share.sum(axis=1))


def fitted_prior(given: Given) -> Array:
    """Posterior means under the likeliest prior (nonparametric empirical Bayes), projected."""
    grid = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 120)])
    logs = -((given.estimate[:, None] - grid) ** 2) / (2 * given.variances[:, None])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(200):
        weights = weights * ((1 / (likelihood @ weights)) @ likelihood) / len(likelihood)
    share = likelihood * weights
    return to_simplex(share @ grid / share.sum(axis=1))


PEERS: dict[str, Callable[[Given], Array]] = {
    "Norm-Sub": lambda given: to_simplex(given.estimate),
    "Norm-Cut": norm_cut,
    "James-Stein": james_stein,
    "flat Dirichlet": flat_dirichlet,
    "IBU": likeliest,
    "PowerNS": power_ns,
    "NPEB": fitted_prior,
}
