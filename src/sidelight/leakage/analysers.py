"""Analysers: published ways to estimate every pair's leakage, and how far each is from a reference.

An analyser takes a belief and the budget of every attribute and returns a matrix: row i, column j is what
the report of attribute i is estimated to say about attribute j; the diagonal is 0 and is never read. CPL,
section V-A, places an analyser by how much it undershoots and overshoots a reference matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import permutations
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.leakage.average import correlation_matrix
from sidelight.leakage.pair import conditional_rows
from sidelight.leakage.published import check_threshold
from sidelight.mechanisms.channel.generic import generic_worst
from sidelight.mechanisms.channel.logs import log_ratios

Region = Literal["P1", "R1", "R2", "R3"]
TOLERANCE = 1e-9


class Analyser(Protocol):
    """Anything that estimates the leakage of every ordered pair at one budget."""

    def __call__(self, belief: Belief, epsilon: float, /) -> Array:
        """Return the estimates, shape (n, n): what the row's report says about the column."""


def budget_analysis(belief: Belief, epsilon: float) -> Array:
    """SPL-ANL: every attribute tells all about every other, so a pair leaks epsilon.

    Fails by overshooting: the truth between independent attributes is 0.
    """
    budget = check_number("epsilon", epsilon, at_least=0)
    return _without_diagonal(np.full((len(belief.schema), len(belief.schema)), budget))


def graph_analysis(belief: Belief, epsilon: float, threshold: float = 0.2) -> Array:
    """GRF: epsilon where the absolute Pearson correlation of the codes reaches the threshold, else 0.

    A pair is read as the graph of its two attributes; the total over a connected set is
    `published.graph_budget_sum`. Fails both ways: at 0.4 it takes the two attributes of CPL, eq. (28), whose
    correlation is 0.357, to be unrelated; at epsilon = 1 one leaks 1, all it can, about the other.
    """
    budget = check_number("epsilon", epsilon, at_least=0)
    joined = np.abs(correlation_matrix(belief)) >= check_threshold(threshold)
    return _without_diagonal(np.where(joined, budget, 0.0))


def randomised_response_analysis(belief: Belief, epsilon: float) -> Array:
    """GRR-ANL: the exact leakage through randomised response of this budget (CPL, Algorithm 1)."""
    return _singleton_leakage(belief, math.exp(-check_number("epsilon", epsilon, at_least=0)))


def exponential_analysis(belief: Belief, epsilon: float) -> Array:
    """EXP-ANL: the exact leakage through the exponential mechanism with 0/1 utility.

    Its weights are e^(epsilon/2) and 1: randomised response of half the budget.
    """
    return _singleton_leakage(belief, math.exp(-check_number("epsilon", epsilon, at_least=0) / 2))


def two_level_analysis(belief: Belief, epsilon: float) -> Array:
    """ITS: the leakage of a mechanism with two likelihoods, one for the reported value, one for the rest.

    It equals the exact figure of randomised response (CPL, section V-A). Fails where a report may favour
    several values: rows (.4, .4, .1, .1) and (.1, .1, .4, .4) at epsilon = 1 give 0.36457, while a release
    that reports a pair of values leaks 0.56945.
    """
    return randomised_response_analysis(belief, epsilon)


def symmetric_analysis(belief: Belief, epsilon: float) -> Array:
    """CBP: randomised response on binary attributes, with one figure for both directions of a pair.

    The original paper is not among our sources. CPL says that it is for binary attributes, that it takes
    leakage to be symmetric, and that it undershoots the exact figure of randomised response without ever
    overshooting it. The largest symmetric figure that never overshoots is the smaller of the two
    directions, so that is the reading here.

    Fails by its symmetry: the joint ((.5, 0), (.25, .25)) at epsilon = 1 leaks 0.62011 one way and 0.76338
    the other; it gives 0.62011 for both.
    """
    for attribute in belief.schema:
        if attribute.size != 2:
            raise InputError(
                f"CBP is for binary attributes; {attribute.name!r} has {attribute.size} values. "
                "Leave it out, or use 'ITS'."
            )
    exact = randomised_response_analysis(belief, epsilon)
    return np.minimum(exact, exact.T)


def generic_analysis(belief: Belief, epsilon: float) -> Array:
    """The worst release of this budget (CPL, Algorithm 2): certified, the reference for any mechanism."""
    baseline = math.exp(-check_number("epsilon", epsilon, at_least=0))
    names = belief.schema.names
    matrix = np.zeros((len(names), len(names)))
    for i, j in permutations(range(len(names)), 2):
        matrix[i, j] = generic_worst(conditional_rows(belief, names[j], names[i])[0], baseline).value
    return matrix


ANALYSERS: Mapping[str, Analyser] = MappingProxyType(
    {
        "SPL-ANL": budget_analysis,
        "GRF 0.2": partial(graph_analysis, threshold=0.2),
        "GRF 0.4": partial(graph_analysis, threshold=0.4),
        "ITS": two_level_analysis,
        "CBP": symmetric_analysis,
        "GRR-ANL": randomised_response_analysis,
        "EXP-ANL": exponential_analysis,
    }
)
"""The analysers of the CPL paper's first benchmark, by the names it gives them."""


def normalised_undershoot(reference: Array, estimate: Array, epsilon: float) -> float:
    """Return the estimate's mean shortfall over all ordered pairs, in units of epsilon (CPL, eq. (21))."""
    return _mean_excess(reference, estimate, epsilon)


def normalised_overshoot(reference: Array, estimate: Array, epsilon: float) -> float:
    """Return the estimate's mean surplus over all ordered pairs, in units of epsilon (CPL, eq. (21))."""
    return _mean_excess(estimate, reference, epsilon)


def region(undershoot: float, overshoot: float, tolerance: float = TOLERANCE) -> Region:
    """Return where an analyser lies: P1 exact, R1 only below, R2 only above, R3 both (CPL, section V-A).

    What is at most `tolerance` counts as 0; the default is far above rounding and below any real shortfall.
    """
    low = check_number("undershoot", undershoot, at_least=0, infinite=True) > tolerance
    high = check_number("overshoot", overshoot, at_least=0, infinite=True) > tolerance
    regions: dict[tuple[bool, bool], Region] = {(True, True): "R3", (True, False): "R1", (False, True): "R2"}
    return regions.get((low, high), "P1")


def leakage_error(reference: Array, estimate: Array) -> float:
    """Return NMSE-CPL: squared differences over squares of the reference, off the diagonal (CPL, eq. (29)).

    Infinite if the reference is all 0 and the estimate is not.
    """
    truth, guess = _off_diagonal(reference, estimate)
    error, size = float(((guess - truth) ** 2).sum()), float((truth**2).sum())
    if size > 0:
        return error / size
    return 0.0 if error == 0 else math.inf


def _singleton_leakage(belief: Belief, baseline: float) -> Array:
    """Return the exact leakage of all ordered pairs through reports that favour one value each.

    Rows of one block matrix are the secret values, columns the reports: the greatest and the least of each
    block's rows give all pairs at once.
    """
    joint = belief.pair_probabilities()
    prior = np.diagonal(joint)[:, None]
    possible = prior > 0
    rows = np.divide(joint, prior, out=np.zeros_like(joint), where=possible)
    likelihood = baseline + (1 - baseline) * rows
    starts = belief.offsets[:-1]
    high = np.maximum.reduceat(np.where(possible, likelihood, 0.0), starts, axis=0)
    low = np.minimum.reduceat(np.where(possible, likelihood, np.inf), starts, axis=0)
    about_row = np.maximum.reduceat(log_ratios(high, low), starts, axis=1)
    return _without_diagonal(np.ascontiguousarray(about_row.T))


def _without_diagonal(matrix: Array) -> Array:
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _mean_excess(larger: Array, smaller: Array, epsilon: float) -> float:
    budget = check_number("epsilon", epsilon, above=0)
    high, low = _off_diagonal(larger, smaller)
    excess = np.zeros_like(high)
    np.subtract(high, low, out=excess, where=high > low)
    return float(excess.sum() / (budget * excess.size))


def _off_diagonal(reference: Array, estimate: Array) -> tuple[Array, Array]:
    """Return both matrices' entries for ordered pairs of different attributes."""
    shape = reference.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise invalid("reference", "a square matrix of at least two attributes", shape)
    if estimate.shape != shape:
        raise invalid("estimate", f"a matrix of the reference's shape {shape}", estimate.shape)
    others = ~np.eye(shape[0], dtype=np.bool_)
    return reference[others], estimate[others]
