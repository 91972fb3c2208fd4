"""What a labelled collection says about the label (paper CLLDP, sections 3, 4 and 6).

A record is a combination s of attribute values and a label l; F[l, s] = Pr(s | l) is what the adversary
knows. NaN rows of F stand for labels that never occur and are skipped. The pair (s, l) has the number
s * labels + l. A report about pairs favours some of them; given the label only those of that label count, so
the leakage of a labelled protocol is that of a channel over pairs seen through the rows of `pair_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, TooLargeError, check_number, check_whole, invalid
from sidelight.leakage.bounds import Bound, Claim, Witness
from sidelight.mechanisms import Channel, FavouringChannel, as_channel
from sidelight.mechanisms.channel.logs import log_spans, logs_of

LARGEST_LISTING = 1 << 24
_MOST_REPORTS = 1 << 16  # all of them are listed, for every round
_MOST_BUDGET = 100.0
_SUM_TOLERANCE = 1e-9  # rows come from divisions


@dataclass(frozen=True, eq=False)
class LabelRound:
    """One report of several about the same record, through a channel of the pairs (cell, label).

    `cells` says which cell of this round's question each combination of attribute values is in.
    """

    cells: Positions
    channel: Channel


def label_conditionals(belief: Belief, label: str, attributes: Sequence[str]) -> Array:
    """Return F[l, s] = Pr(s | l), one column for each combination of the attributes, the last one fastest.

    Rows of labels that never occur are NaN.
    """
    if label in attributes:
        raise InputError(f"the label {label!r} is listed among the attributes; leave it out there.")
    cells = belief.joint([label, *attributes])
    return row_shares(cells.reshape(len(cells), -1))


def row_shares(weights: Array) -> Array:
    """Return each row as shares of its sum; NaN where it has none."""
    mass = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, mass, out=np.full(weights.shape, np.nan), where=mass > 0))


def heaviest_sums(weights: Array) -> Array:
    """Return for each row what its k heaviest entries weigh together, for k = 1, 2, ..."""
    return np.asarray(np.cumsum(-np.sort(-weights, axis=1), axis=1))


def check_conditionals(conditionals: ArrayLike) -> Array:
    """Return F after checking that every row of a label that occurs is a distribution."""
    rows = np.asarray(conditionals, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise invalid("conditionals", "a matrix, one row for each label", f"an array of shape {rows.shape}")
    occurring = rows[_occurring(rows)]
    if len(occurring) < 2:
        raise InputError(f"at least two labels must occur, got {len(occurring)}; check the label.")
    if not np.all(occurring >= 0) or np.abs(occurring.sum(axis=1) - 1).max() > _SUM_TOLERANCE:
        raise InputError("every row of `conditionals` must be probabilities that sum to 1.")
    return rows


def _occurring(rows: Array) -> Positions:
    """Return the labels that occur: the others' rows are NaN."""
    return np.flatnonzero(~np.isnan(rows).all(axis=1))


def check_omega(omega: object, name: str = "omega") -> float:
    """Return an adversarial belief after checking that it is above 0 and at most 1."""
    number = check_number(name, omega, above=0)
    if number > 1:
        raise invalid(name, "above 0 and at most 1", omega)
    return number


def check_label_budget(epsilon: object) -> float:
    """Return a budget of the label after checking that it is above 0 and at most 100.

    No report of 64-bit words reaches a ratio of e^100, and powers of e beyond it overflow.
    """
    number = check_number("epsilon", epsilon, above=0)
    if number > _MOST_BUDGET:
        raise invalid("epsilon", f"above 0 and at most {_MOST_BUDGET:g}", epsilon)
    return number


def adversarial_belief(conditionals: ArrayLike, width: int) -> float:
    """Return omega(k): the most that k combinations weigh under one label (CLLDP, Def. 5, eq. (2)).

    >>> flu = [[0.01, 0.22, 0.77], [0.68, 0.16, 0.16]]
    >>> adversarial_belief(flu, 1), adversarial_belief(flu, 2)
    (0.77, 0.99)
    """
    count = check_whole("width", width, at_least=1)
    return float(belief_curve(conditionals)[min(count, np.shape(conditionals)[1]) - 1])


def belief_curve(conditionals: ArrayLike) -> Array:
    """Return omega(k) for k = 1 to the number of combinations, shape (combinations,)."""
    rows = check_conditionals(conditionals)
    return np.asarray(np.minimum(heaviest_sums(rows[_occurring(rows)]).max(axis=0), 1.0))


def pair_rows(conditionals: ArrayLike) -> tuple[Array, Positions]:
    """Return Pr(pair | label), shape (labels that occur, combinations * labels), and which labels occur."""
    rows = check_conditionals(conditionals)
    labels, combinations = rows.shape
    possible = _occurring(rows)
    pairs = np.zeros((len(possible), combinations, labels))
    pairs[np.arange(len(possible)), :, possible] = rows[possible]
    return pairs.reshape(len(possible), -1), possible


def label_leakage(conditionals: ArrayLike, channel: Channel) -> Bound:
    """Return what one report through a channel of pairs (combination, label) says of the label, exactly."""
    channel = as_channel(channel)
    rows, possible = pair_rows(conditionals)
    if channel.size != rows.shape[1]:
        raise InputError(f"the channel is for {channel.size} pairs, the belief has {rows.shape[1]}.")
    worst = channel.worst_ratio(rows)
    names = str(possible[worst.likelier]), str(possible[worst.unlikelier])
    report = f"a report that favours {len(worst.report)} pairs"
    witness = Witness(report, *names) if worst.value > 0 else None
    return Bound(worst.value, channel.claim, "pairs of combination and label", witness)


def labeldp_leakage(conditionals: ArrayLike, channel: Channel) -> Bound:
    """Return what true attributes and a randomised label together say about the label (CLLDP, Def. 4).

    For two labels it is the channel's ratio plus the attributes' own, ln F[l, s] / F[l', s]: infinite where a
    combination occurs with one label and never with another.

    >>> from sidelight.mechanisms import create
    >>> flu = [[0.01, 0.22, 0.77], [0.68, 0.16, 0.16]]
    >>> excess = labeldp_leakage(flu, create("ss", 2, 1.0).channel).value - 1
    >>> round(float(np.exp(excess)), 6)
    68.0
    """
    channel = as_channel(channel)
    rows = check_conditionals(conditionals)
    if channel.size != len(rows):
        raise InputError(f"the channel is for {channel.size} labels, the belief has {len(rows)}.")
    possible = _occurring(rows)
    # The identity: attributes are sent as they are.
    attributes = FavouringChannel(rows.shape[1], "singletons", 0.0).ratio_pairs(rows[possible])
    total = attributes + channel.ratio_pairs(np.eye(len(rows))[possible])
    np.fill_diagonal(total, 0.0)  # no label is told apart from itself
    i, j = np.unravel_index(int(total.argmax()), total.shape)
    names = str(possible[i]), str(possible[j])
    witness = Witness("the attributes and the label's report", *names) if total[i, j] > 0 else None
    return Bound(float(total[i, j]), channel.claim, "attributes as they are", witness)


def correlation_excess(conditionals: ArrayLike) -> float:
    """Return what the attributes alone say about the label: ln sup F[l, s] / F[l', s]."""
    silent = FavouringChannel(len(np.asarray(conditionals)), "singletons", 1.0)
    return labeldp_leakage(conditionals, silent).value


def naive_label_budget(conditionals: ArrayLike, epsilon: float) -> float:
    """Return what is left for the label once the attributes' own leakage is paid for (CLLDP, section 3.2).

    Raises where nothing is left: the baseline then does not exist.
    """
    spent = correlation_excess(conditionals)
    if spent >= check_number("epsilon", epsilon, above=0):
        raise InputError(
            f"the attributes alone leak {spent:.4g} about the label, the budget is {epsilon:g}; nothing is "
            "left for the label, so use kHR instead."
        )
    return epsilon - spent


def rounds_leakage(conditionals: ArrayLike, rounds: Sequence[LabelRound]) -> Bound:
    """Return what several reports about the same record say together, by listing all of them.

    Each round's reports are independent given the record. Refused above 2^24 cells; `rounds_bound` is then an
    upper figure.
    """
    rows = check_conditionals(conditionals)
    labels, combinations = rows.shape
    if not rounds:
        raise InputError("there must be at least one round, got none.")
    columns = [_reports(part, labels, combinations) for part in rounds]
    size = labels * combinations * math.prod(part.shape[2] for part in columns)
    if size > LARGEST_LISTING:
        raise TooLargeError(f"the rounds have {float(size):.3g} cells to list; use `rounds_bound`.")
    weights = np.nan_to_num(rows)[:, :, None]
    for part in columns:
        weights = (weights[:, :, :, None] * part[:, :, None, :]).reshape(labels, combinations, -1)
    likelihood = weights.sum(axis=1)[_occurring(rows)]
    known = all(as_channel(part.channel).claim == "exact" for part in rounds)
    kind: Claim = "exact" if known else "certified"
    return Bound(float(log_spans(logs_of(likelihood)).max()), kind, "all reports of all rounds")


def _reports(part: LabelRound, labels: int, combinations: int) -> Array:
    """Return Pr(report | combination, label) up to a factor, shape (labels, combinations, reports)."""
    if part.cells.shape != (combinations,):
        raise invalid("cells", f"one cell for each of {combinations} combinations", part.cells.shape)
    columns = as_channel(part.channel).columns(_MOST_REPORTS)
    if columns is None:
        raise TooLargeError("a round has too many reports to list; use `rounds_bound`.")
    pairs = part.cells[None, :] * labels + np.arange(labels)[:, None]
    return np.asarray(columns[pairs])


def heads_factor(epsilon: float, omega: float) -> float:
    """Return theta = (e^eps + omega - 1) / omega: how much likelier a report may make its pairs.

    CLLDP, Theorem 2: with at most `omega` of any label's weight among the favoured pairs, the label leaks at
    most ln(omega theta + 1 - omega).

    >>> theta = heads_factor(1.0, 0.2)
    >>> round(math.log(0.2 * theta + 1 - 0.2), 12)
    1.0
    """
    return 1 + _growth(epsilon) / check_omega(omega)


def degraded_guarantee(epsilon: float, omega: float, truth: float) -> float:
    """Return what is left of the guarantee when omega was set to `omega` and `truth` is right.

    CLLDP, section 4.3: e^eps grows by (truth / omega - 1)(e^eps - 1); too high an omega loses nothing.

    >>> round(degraded_guarantee(1.0, 0.5, 1.0), 4)
    1.4899
    """
    wrong = max(check_omega(truth, "truth") / check_omega(omega), 1.0)  # too high an omega only adds noise
    return math.log1p(wrong * _growth(epsilon))


def _growth(epsilon: float) -> float:
    """Return e^eps - 1; a budget of 0 is that of a round in which nothing is left to spend."""
    return 0.0 if epsilon == 0 else math.expm1(check_label_budget(epsilon))


def published_rounds_bound(factors: Sequence[float], omegas: Sequence[float]) -> float:
    """Return ln of CLLDP, eq. (13): the leakage of several rounds with these factors and beliefs."""
    leakage, product = 1.0, 1.0
    for factor, omega in _check_rounds(factors, omegas):
        leakage += omega * (factor - 1) * product
        product *= factor
    return math.log(leakage)


def rounds_bound(factors: Sequence[float], omegas: Sequence[float]) -> float:
    """Return the smaller of eq. (13) and PL_r <= PL_{r-1} theta_r, taken round by round.

    With N and D the likelihoods of all reports so far under two labels, round r adds at most
    (theta_r - 1) omega_r theta_1 ... theta_{r-1} to N / D, and multiplies it by theta_r at most. Neither
    needs the rounds' questions to be nested, nor k = 1.
    """
    leakage, product = 1.0, 1.0
    for factor, omega in _check_rounds(factors, omegas):
        leakage = next_leakage(leakage, product, factor, omega)
        product *= factor
    return math.log(leakage)


def next_leakage(leakage: float, product: float, factor: float, omega: float) -> float:
    """Return PL_r from PL_{r-1}, the product of the factors before round r, and the round's own figures."""
    return min(leakage + omega * (factor - 1) * product, leakage * factor)


def _check_rounds(factors: Sequence[float], omegas: Sequence[float]) -> list[tuple[float, float]]:
    if len(factors) != len(omegas) or not factors:
        raise InputError(
            f"there must be one omega for each factor, got {len(factors)} factors and {len(omegas)} omegas."
        )
    checked = [check_number("factor", factor, at_least=1) for factor in factors]
    return list(zip(checked, [check_omega(omega) for omega in omegas], strict=True))
