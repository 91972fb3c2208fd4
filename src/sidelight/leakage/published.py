"""Formulas as papers print them. They are neither upper nor lower bounds; each says where it fails.

Estimates of single pairs, and the benchmark that places them against a reference, are in `analysers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError, check_number, check_whole, invalid
from sidelight.leakage.average import correlation_matrix
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import checked_channels, direct_leakage, pair_leakage
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel import as_channels


def pairwise_sum(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the direct leakage plus every pair's leakage (CPL, eq. (6)).

    Not a bound: two reports that each say nothing can tell the secret together. For X = A xor B with fair
    coins A, B and randomised response of budget 1 on all three it gives 1; the truth is 1.43378.
    """
    check_belief("belief", belief)
    channels = checked_channels(belief, channels)
    others = [(name, channel) for name, channel in channels.items() if name != secret]
    pairs = [pair_leakage(belief, channel, secret, name).value for name, channel in others]
    own = direct_leakage(belief, channels.get(secret), secret).value
    return Bound(math.fsum([own, *pairs]), "published", "pairwise sum (CPL, eq. (6))")


def budget_sum(channels: Mapping[str, Channel]) -> Bound:
    """Return the sum of all budgets (SPL-ANL; CPL, section V-A).

    Never below the truth, since it is composition; it fails the other way: of independent attributes no
    report says anything about another, and it still adds all of them up.
    """
    value = math.fsum(channel.epsilon for channel in as_channels(channels).values())
    return Bound(value, "published", "SPL-ANL (sum of budgets)")


def graph_budget_sum(belief: Belief, channels: Mapping[str, Channel], threshold: float = 0.2) -> Bound:
    """Return the largest sum of budgets over a connected set of attributes (GRF; CPL, section V-A).

    Two attributes are joined where the absolute Pearson correlation of their codes reaches `threshold`; the
    paper takes 0.2 and 0.4. Only released attributes are in the graph.

    Not a bound: dependence is more than correlation. For X = A xor B with fair coins A, B nothing is joined,
    and with randomised response of budget 1 on all three it gives 1; the truth is 1.43378.
    """
    from scipy.sparse.csgraph import connected_components

    limit = check_threshold(threshold)
    channels = checked_channels(belief, channels)
    columns = [belief.schema.index(name) for name in channels]
    joined = np.abs(correlation_matrix(belief))[np.ix_(columns, columns)] >= limit
    budgets = np.array([channel.epsilon for channel in channels.values()])
    count, label = connected_components(joined, directed=False)
    sums = [math.fsum(budgets[label == part]) for part in range(count)]
    return Bound(max(sums, default=0.0), "published", f"GRF (threshold {limit:g})")


def reconstruction_sum(own: float, parts: Sequence[float]) -> Bound:
    """Return max(own, sum of parts): Theorem 1 of the reconstruction paper, for epsilons or for deltas.

    The theorem is about an attribute that is a function of others, all of them released: `own` is its own
    budget, `parts` are those of the others.

    Not a bound: its own report and the others' are seen together. For C = A + B with bits A, B and
    randomised response of budget 1 on all three it gives 2; the truth is 3, and 2 only without C's report.
    """
    base = check_number("own", own, at_least=0)
    if not parts:
        raise InputError("`parts` must hold the budget of at least one other attribute, got none.")
    total = math.fsum(check_number("parts", part, at_least=0) for part in parts)
    return Bound(max(base, total), "published", "reconstruction paper, Theorem 1 (maximum)")


def reconstruction_advanced(own: float, epsilon: float, parts: int, slack: float) -> Bound:
    """Return max(own, sqrt(2 x ln(1/d)) epsilon + x epsilon (e^epsilon - 1)): Theorem 2 of the same paper.

    `own` is the budget of the attribute's own report, `epsilon` that of each of the x = `parts` others, and
    d = `slack` the probability with which the figure may fail.

    Not a bound, for the reason of Theorem 1: for C = A + B with bits A, B, budget 1 on C, 0.1 on A and B,
    and slack 1e-6 it gives 1; the failure at 1 has probability 0.0288.
    """
    base = check_number("own", own, at_least=0)
    budget = check_number("epsilon", epsilon, at_least=0)
    count = check_whole("parts", parts, at_least=1)
    chance = check_number("slack", slack, above=0, below=1)
    advanced = math.sqrt(2 * count * math.log(1 / chance)) * budget + count * budget * math.expm1(budget)
    method = f"reconstruction paper, Theorem 2 (advanced, slack {chance:g})"
    return Bound(max(base, advanced), "published", method)


def sampling_amplification(epsilon: float, attributes: int) -> Bound:
    """Return ln(d (e^epsilon - 1) + 1): the budget that RS+FD and its kin spend on the sampled attribute.

    The claim is that a record reported so, one of d attributes at this budget and hidden among fakes, costs
    no more than `epsilon`.

    Not true of records: those that differ in every attribute are told apart by the whole figure. For d = 2
    and epsilon = 1 a record leaks 1.4899. Between records that differ in one attribute it holds for
    uniform fakes and equal alphabets only.
    """
    budget = check_number("epsilon", epsilon, at_least=0)
    count = check_whole("attributes", attributes, at_least=1)
    value = budget + math.log(count - (count - 1) * math.exp(-budget))
    return Bound(value, "published", f"sampling one of {count} attributes (amplified budget)")


def check_threshold(threshold: float) -> float:
    """Return the threshold of an absolute correlation after checking that it lies above 0, up to 1."""
    limit = check_number("threshold", threshold, above=0)
    if limit > 1:
        raise invalid("threshold", "a correlation, at most 1", threshold)
    return limit
