"""The hockey-stick divergence between the rows of a likelihood matrix or of losses, and its inverse."""

from __future__ import annotations

import math

import numpy as np

from sidelight.foundation.arrays import Array

_LARGEST_EXPONENT = 700.0
_ROUNDING = 1e-12


def delta_at(rows: Array, epsilon: float) -> tuple[float, int, int]:
    """Return delta(epsilon) of the rows Pr(report | secret value), and the two rows that reach it."""
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))  # e^709 is the last that doubles hold
    best, likelier, unlikelier = 0.0, 0, 0
    for i, row in enumerate(rows):
        excess = np.maximum(row - factor * rows, 0.0).sum(axis=1)
        j = int(excess.argmax())
        if excess[j] > best:
            best, likelier, unlikelier = float(excess[j]), i, j
    return min(best, 1.0), likelier, unlikelier


def epsilon_at(rows: Array, delta: float) -> tuple[float, int, int]:
    """Return the smallest epsilon with delta(epsilon) <= delta, and the two rows that need it.

    Of a pair g, h the sum is the largest g(S) - t h(S) over sets S, t = e^epsilon, and the sets that matter
    are the prefixes of the reports in descending order of g/h. So t must be (g(S) - delta) / h(S) for the
    worst prefix: no search. What rounding leaves is added on the safe side.
    """
    # Where delta is just the probability of a certain event, rounding would decide if a finite one will do.
    is_short = delta_at(rows, math.inf)[0] > delta
    allowed = delta * (1 + _ROUNDING) if is_short else delta
    best, likelier, unlikelier = 1.0, 0, 0
    for i, row in enumerate(rows):
        needed = _prefix_ratios(row, rows, allowed)
        j = int(needed.argmax())
        if needed[j] > best:
            best, likelier, unlikelier = float(needed[j]), i, j
    epsilon = math.log(best) if best < math.inf else math.inf
    # The root is exact but for rounding, which may leave delta a hair too large: step up, ever faster.
    step = math.ulp(1.0)
    while epsilon < math.inf and delta_at(rows, epsilon)[0] > allowed:
        epsilon += step
        step *= 2
    return epsilon, likelier, unlikelier


def _prefix_ratios(g: Array, rows: Array, delta: float) -> Array:
    """Return the largest (g(S) - delta) / h(S) for every row h, shape (m,); infinite where h(S) is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(g > 0, g / rows, -1.0), axis=1)
    top = np.cumsum(g[order], axis=1) - delta
    bottom = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
    needed = np.where(top > 0, np.inf, 0.0)
    np.divide(top, bottom, out=needed, where=bottom > 0)
    return np.asarray(needed.max(axis=1))


def hockey_stick(losses: Array, limit: float) -> Array:
    """Return max(0, 1 - e^(limit - loss)) of each loss, or log-ratio; 1 where it is infinite."""
    return np.asarray(-np.expm1(np.minimum(limit - losses, 0.0)))


def loss_epsilon(losses: Array, weights: Array, delta: float) -> float:
    """Return the smallest epsilon at which losses of these probabilities have at most this divergence.

    Between two neighbouring losses the divergence is A - e^epsilon B with fixed sums A and B, so the
    crossing is found exactly.
    """
    over = np.flatnonzero(losses > 0)
    order = over[np.argsort(-losses[over])]
    ratios, mass = losses[order], weights[order]
    # The mass of the likelier value, and the logarithm of the other one's, in the reports that move the odds
    # most. As logarithms they hold losses beyond 709 nats too, where e^loss leaves the range of doubles.
    above = np.cumsum(mass)
    with np.errstate(divide="ignore", invalid="ignore"):  # between two infinite losses there is no step
        below = np.logaddexp.accumulate(np.log(mass) - ratios)
        # At an epsilon equal to the next smaller loss the divergence is largest within each step.
        steps = above - np.exp(np.append(ratios[1:], 0.0) + below)
    reached = np.flatnonzero(steps > delta)
    if not len(reached):
        return 0.0
    place = int(reached[0])
    return max(0.0, math.log(above[place] - delta) - float(below[place]))
