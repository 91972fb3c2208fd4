"""How the second phase of Corr-RR and Cond-RR makes up values: copies, or draws from conditionals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_choice, check_whole

Copying = Literal["published", "corrected"]
COPYING = ("published", "corrected")


def copy_probabilities(
    frequencies: Sequence[Array],
    epsilon: float,
    people: int,
    copying: Copying = "published",
    further: int = 0,
) -> Array:
    """Return p[j, l], the probability that attribute l copies what attribute j reported.

    Args:
        frequencies: the first phase's estimate of each attribute, all over the same values.
        epsilon: the budget of the second phase.
        people: how many people will report in it.
        copying: as published (each pair by itself, eq. (4)) or corrected (all that flows into an attribute
            together, with the expectation that is right for any number of values and attributes).
        further: how many attributes over other values are in the group; their conditionals are taken as
            right, so that what flows from them has an attribute's own frequencies.
    """
    check_choice("copying", copying, COPYING)
    check_whole("people", people, at_least=1)
    given = np.asarray(frequencies, dtype=np.float64)
    if copying == "corrected":
        return _corrected(given, epsilon, people, further)
    count = len(given)
    first, second = np.triu_indices(count, 1)
    copies = np.ones((count, count))
    copies[first, second] = published_copies(given[first], given[second], epsilon, people)
    copies[second, first] = copies[first, second]
    return copies


def published_copy(first: ArrayLike, second: ArrayLike, epsilon: float, people: int) -> float:
    """Return p_y for one pair, see `published_copies`.

    >>> round(published_copy([0.9, 0.1], [0.9, 0.1], 1.0, 9000), 3)
    1.0
    >>> published_copy([0.5, 0.5], [0.5, 0.5], 1.0, 9000)
    0.5
    """
    one, other = (np.asarray(item, dtype=np.float64)[None, :] for item in (first, second))
    return float(published_copies(one, other, epsilon, people)[0])


def published_copies(a: Array, b: Array, epsilon: float, people: int) -> Array:
    """Return the p_y in [0, 1] that minimise the average error as published (Corr-RR, Theorem 4, eq. (4)).

    The critical point is that of eq. (4); the one printed in Proposition 1 contradicts its own proof. Where
    the error does not depend on p_y (both marginals even), it is one half, as in Fig. 2. The frequencies of
    the pairs' first attributes, a, and second ones, b, have shape (pairs, values).
    """
    gap = _gap(epsilon, a.shape[1])
    lead, slope = 1 - a - b, 2 * b - 1
    square = (slope**2).sum(axis=1) / 4 * (1 - 1 / people)
    linear = (lead * slope).sum(axis=1) / 2 - ((a - b) * slope).sum(axis=1) / (2 * people)
    flat = square <= 1e-12
    root = np.clip(-linear / (2 * np.where(flat, 1.0, square)), 0.0, 1.0)
    options = np.stack([root, np.zeros_like(root), np.ones_like(root)], axis=1)
    copy = options[:, :, None]
    bias = (lead[:, None] + copy * slope[:, None]) / 2
    spread = gap / 2 * ((a - b)[:, None] + copy * slope[:, None])
    error = np.mean(bias**2 + (0.25 - spread**2) / (people * gap**2), axis=2)
    best = options[np.arange(len(options)), error.argmin(axis=1)]
    return np.asarray(np.where(flat, 0.5, best))


def _corrected(given: Array, epsilon: float, people: int, further: int) -> Array:
    """Minimise the summed mean squared error of the published estimator under its true expectation.

    What attribute l's column says with probability q + gap m_v has m = (f_l + sum_j [p_j f_j + (1 - p_j)
    (1 - f_j)/(k-1)]) / d, linear in the p_j; its error (m - f_l)^2 + variance is one convex quadratic.
    """
    from scipy.optimize import lsq_linear

    count, size = given.shape
    whole = count + further
    gap = _gap(epsilon, size)
    low = (1 - gap) / size
    copies = np.ones((count, count))
    for target in range(count):
        others = [j for j in range(count) if j != target]
        spread = (1 - given[others]) / (size - 1)
        slopes = ((given[others] - spread) / whole).T
        bias = ((1 + further) * given[target] + spread.sum(axis=0)) / whole - given[target]
        shift = low + gap * (given[target] + bias)
        scale = 1 - 1 / people
        linear = 2 * bias + (1 - 2 * shift) / (people * gap)
        if people > 1 and np.abs(slopes).max() > 1e-12:
            copies[others, target] = lsq_linear(slopes, -linear / (2 * scale), bounds=(0, 1), method="bvls").x
        else:
            copies[others, target] = 0.5
    return np.clip(copies, 0.0, 1.0)


def copy_laws(copies: ArrayLike, size: int) -> Array:
    """Return the laws of copies, shape (pairs, values, values), given each pair's p_y.

    The copy is the reported value with probability p_y, else another one uniformly.
    """
    share = np.asarray(copies, dtype=np.float64)[:, None, None]
    return np.asarray(np.where(np.eye(size, dtype=bool), share, (1 - share) / (size - 1)))


def conditional_law(joint: Array) -> Array:
    """Return Pr(second | first) of a joint with no negative cells; uniform given a value that nobody has."""
    mass = joint.sum(axis=1, keepdims=True)
    even = np.full(joint.shape, 1 / joint.shape[1])
    return np.where(mass > 0, joint / np.where(mass > 0, mass, 1), even)


def _gap(epsilon: float, size: int) -> float:
    return math.expm1(epsilon) / (math.expm1(epsilon) + size)
