"""How the second phase of Corr-RR and Cond-RR makes up values: copies, or draws from conditionals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import check_choice, check_number, check_whole

Array = NDArray[np.float64]
Copying = Literal["published", "corrected"]
COPYING = ("published", "corrected")


def copy_probabilities(
    frequencies: Sequence[Array], epsilon: float, people: int, copying: Copying = "published"
) -> Array:
    """Return p[j, l], the probability that attribute l copies what attribute j reported.

    Args:
        frequencies: the first phase's estimate of each attribute, all over the same values.
        epsilon: the budget of the second phase.
        people: how many people will report in it.
        copying: as published (each pair by itself, eq. (4)) or corrected (all that flows into an attribute
            together, with the expectation that is right for any number of values and attributes).
    """
    check_choice("copying", copying, COPYING)
    check_whole("people", people, at_least=1)
    given = np.asarray(frequencies, dtype=np.float64)
    if copying == "corrected":
        return _corrected(given, epsilon, people)
    count = len(given)
    copies = np.ones((count, count))
    for a in range(count):
        for b in range(a + 1, count):
            copies[a, b] = copies[b, a] = published_copy(given[a], given[b], epsilon, people)
    return copies


def published_copy(first: ArrayLike, second: ArrayLike, epsilon: float, people: int) -> float:
    """Return the p_y in [0, 1] that minimises the average error as published (Corr-RR, Theorem 4, eq. (4)).

    The critical point is that of eq. (4); the one printed in Proposition 1 contradicts its own proof. Where
    the error does not depend on p_y (both marginals even), it is one half, as in Fig. 2.

    >>> round(published_copy([0.9, 0.1], [0.9, 0.1], 1.0, 9000), 3)
    1.0
    >>> published_copy([0.5, 0.5], [0.5, 0.5], 1.0, 9000)
    0.5
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    gap = _gap(epsilon, len(a))
    lead, slope = 1 - a - b, 2 * b - 1
    error = _published_error(lead, a - b, slope, gap, people)
    square = float((slope**2).sum()) / 4 * (1 - 1 / people)
    linear = float((lead * slope).sum()) / 2 - float(((a - b) * slope).sum()) / (2 * people)
    if square <= 1e-12:
        return 0.5
    options = [min(max(-linear / (2 * square), 0.0), 1.0), 0.0, 1.0]
    return min(options, key=error)


def _published_error(
    lead: Array, difference: Array, slope: Array, gap: float, people: int
) -> Callable[[float], float]:
    """Return Theorem 4's error, averaged over the values, as a function of p_y."""

    def error(copy: float) -> float:
        bias = (lead + copy * slope) / 2
        spread = gap / 2 * (difference + copy * slope)
        return float(np.mean(bias**2 + (0.25 - spread**2) / (people * gap**2)))

    return error


def _corrected(given: Array, epsilon: float, people: int) -> Array:
    """Minimise the summed mean squared error of the published estimator under its true expectation.

    What attribute l's column says with probability q + gap m_v has m = (f_l + sum_j [p_j f_j + (1 - p_j)
    (1 - f_j)/(k-1)]) / d, linear in the p_j; its error (m - f_l)^2 + variance is one convex quadratic.
    """
    from scipy.optimize import lsq_linear

    count, size = given.shape
    gap = _gap(epsilon, size)
    low = (1 - gap) / size
    copies = np.ones((count, count))
    for target in range(count):
        others = [j for j in range(count) if j != target]
        spread = (1 - given[others]) / (size - 1)
        slopes = ((given[others] - spread) / count).T
        bias = (given[target] + spread.sum(axis=0)) / count - given[target]
        shift = low + gap * (given[target] + bias)
        scale = 1 - 1 / people
        linear = 2 * bias + (1 - 2 * shift) / (people * gap)
        if people > 1 and np.abs(slopes).max() > 1e-12:
            copies[others, target] = lsq_linear(slopes, -linear / (2 * scale), bounds=(0, 1), method="bvls").x
        else:
            copies[others, target] = 0.5
    return np.clip(copies, 0.0, 1.0)


def copy_law(copy: float, size: int) -> Array:
    """Return the law of a copy: the reported value with probability `copy`, else another one uniformly."""
    share = check_number("copy", copy, at_least=0)
    law = np.full((size, size), (1 - share) / (size - 1))
    np.fill_diagonal(law, share)
    return law


def conditional_law(joint: Array) -> Array:
    """Return Pr(second | first) of a joint with no negative cells; uniform given a value that nobody has."""
    mass = joint.sum(axis=1, keepdims=True)
    even = np.full(joint.shape, 1 / joint.shape[1])
    return np.where(mass > 0, joint / np.where(mass > 0, mass, 1), even)


def _gap(epsilon: float, size: int) -> float:
    return math.expm1(epsilon) / (math.expm1(epsilon) + size)
