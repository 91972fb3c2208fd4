"""How much each of several models counts, learnt from private labels.

The squared distance of probabilities from the true label's indicator is |P|^2 - 2 <y, P> + 1. The first part
needs no labels and the second is linear in them, so unbiased targets give an unbiased score (Brier 1950) of
every mixture of models, with a noise that is known: that of the mean of <w, P_m> over people. The weights are
the best mixture's, averaged over what this noise leaves possible: a clearly better model gets nearly all,
models that the noise does not tell apart share.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from sidelight.foundation.arrays import Array

_GRID = 20  # weights in steps of a twentieth
_DRAWS = 400
_MOST = 4  # models; the grid grows with them


def mixture_scores(outside: Array, targets: Array) -> tuple[Array, Array, Array]:
    """Return G, c and the covariance of c: the score of weights a is a'Ga - 2 a'c, up to a constant.

    `outside` are the probabilities of models that did not learn from these people, (models, people, labels);
    the targets are unbiased, (people, labels). Only c knows them.
    """
    people = outside.shape[1]
    inner = np.einsum("anl,bnl->ab", outside, outside) / people
    hits = np.einsum("anl,nl->an", outside, targets)
    noise = np.atleast_2d(np.cov(hits)) / people
    return inner, hits.mean(axis=1), noise


def stacking_weights(outside: Array, targets: Array) -> Array:
    """Return the weight of each model, none negative, 1 together."""
    models = len(outside)
    if models == 1:
        return np.ones(1)
    inner, hits, noise = mixture_scores(outside, targets)
    grid = _simplex_grid(models)
    # Fixed draws: the same reports give the same model.
    drawn = np.random.default_rng(0).multivariate_normal(hits, noise, _DRAWS, method="eigh")
    scores = np.einsum("ga,ab,gb->g", grid, inner, grid) - 2 * drawn @ grid.T
    return np.asarray(grid[scores.argmin(axis=1)].mean(axis=0))


def _simplex_grid(models: int) -> Array:
    """Return mixtures of so many models: in steps of a twentieth, coarser where there are many."""
    steps = _GRID if models <= _MOST else max(2, _GRID // models)
    places = product(range(steps + 1), repeat=models - 1)
    inside = np.array([place for place in places if sum(place) <= steps], dtype=np.float64)
    return np.column_stack([inside, steps - inside.sum(axis=1)]) / steps
