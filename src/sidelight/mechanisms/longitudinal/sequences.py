"""Values that change: the exact law of the reports of a given sequence, and what changes can cost.

Every distinct value has a memo of its own, drawn independently of the others and of the data. So the reports
of a sequence x_1..x_T are independent between distinct values, and those of one value share its memo:

    Pr(y_1..y_T | x_1..x_T) = prod over v of sum over z of P[v, z] prod over t with x_t = v of I[z, y_t].

Two bounds are sound, as the memos do not depend on the data. Two sequences that differ at c times are told
apart by at most c eps_I, eps_I being what one report says about a memo; two that change at the same times
(one is the other with its values renamed) by the sum of eps_n over the values, n being how often each occurs.
*Not* sound are T or c times eps_1, and eps_inf times the number of values: memos in their order say which
rounds had equal values. Only epochs, in which the value is frozen, cost eps_inf each, whatever changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Words
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.mechanisms.channel import LARGEST_MATRIX, DenseChannel
from sidelight.mechanisms.channel.generic import all_sets
from sidelight.mechanisms.longitudinal.oracle import Longitudinal, Remembers
from sidelight.mechanisms.longitudinal.response import LongitudinalHashing, LongitudinalResponse
from sidelight.mechanisms.reports import Reports

_MOST_MEMOS = 1 << 10


def change_budget(oracle: Remembers, differ: int) -> float:
    """Return what can be told between two sequences that differ at so many times: at most eps_I each.

    A report that differs can cost eps_I, more than the budget of the first report.
    """
    return check_whole("differ", differ, at_least=0) * oracle.epsilon_instant if differ else 0.0


def pattern_budget(oracle: Remembers, counts: Sequence[int]) -> float:
    """Return what can be told between two sequences with the same times of change.

    Args:
        oracle: how values are reported.
        counts: how often each distinct value occurs.
    """
    return math.fsum(oracle.budget_of(count) for count in counts)


def epochs_budget(oracle: Remembers, counts: Sequence[int]) -> float:
    """Return what can be told between any two sequences whose value is frozen in every epoch.

    Args:
        oracle: how values are reported.
        counts: how many reports each epoch has.
    """
    return math.fsum(oracle.budget_of(count) for count in counts)


def listed_steps(oracle: Longitudinal, seed: int | None = None) -> tuple[Array, Array]:
    """Return the permanent channel, (size, memos), and the instantaneous one, (memos, reports), as matrices.

    A report of bits is numbered by its bits, that of the first value lowest; a code by itself. Hashed reports
    have a public seed, which must be given.
    """
    if isinstance(oracle, LongitudinalResponse):
        return _response_steps(oracle, seed)
    if 1 << oracle.size > _MOST_MEMOS:
        raise TooLargeError(f"the memos of {oracle.size} bits are too many to list; take fewer values.")
    sets = all_sets(oracle.size).T > 0
    p, q = map(float, oracle.permanent_rates)
    kept, made = map(float, oracle.instant_rates)
    rates = np.where(np.eye(oracle.size, dtype=np.bool_), p, q)[:, None, :]
    permanent = np.where(sets, rates, 1 - rates).prod(axis=2)
    fresh = np.where(sets, kept, made)[:, None, :]
    return permanent, np.where(sets, fresh, 1 - fresh).prod(axis=2)


def _response_steps(oracle: LongitudinalResponse, seed: int | None) -> tuple[Array, Array]:
    if oracle.cells > _MOST_MEMOS:
        raise TooLargeError(f"{oracle.cells} memos are too many to list; take fewer values or buckets.")
    same = np.eye(oracle.cells, dtype=np.bool_)
    (p, q), (kept, made) = oracle.cell_response.mark_rates, oracle.instant_rates
    permanent = np.where(same, float(p), float(q))
    if isinstance(oracle, LongitudinalHashing):
        if seed is None:
            raise InputError("hashed reports have a public seed; give it as `seed`.")
        permanent = permanent[oracle.buckets_of_all(np.array([seed], dtype=np.uint64))[0]]
    return permanent, np.where(same, float(kept), float(made))


def sequence_law(oracle: Longitudinal, sequence: Sequence[int], seed: int | None = None) -> Array:
    """Return Pr(reports | sequence) of all sequences of reports, one axis for each time.

    See `listed_steps` for how reports are numbered, and for the seed of hashed ones.
    """
    codes = _check_sequences(oracle, [sequence])[0]
    permanent, fresh = listed_steps(oracle, seed)
    if float(fresh.shape[1]) ** len(codes) > LARGEST_MATRIX:
        raise TooLargeError(f"the reports of {len(codes)} times are too many to list; take fewer times.")
    seeds = None if seed is None else np.array([seed], dtype=np.uint64)
    return steps_law(permanent, fresh, codes, _subjects(oracle, codes, seeds)[0])


def steps_law(permanent: Array, fresh: Array, codes: NDArray[Any], subjects: NDArray[Any]) -> Array:
    """Return Pr(reports | codes), one axis for each time, where equal subjects share a memo.

    Args:
        permanent: Pr(memo | code), (codes, memos).
        fresh: Pr(report | memo), (memos, reports).
        codes: the value of each time.
        subjects: what the memo of each time is of.
    """
    of_all = subjects.tolist()
    law, order = np.ones(()), []
    for subject in dict.fromkeys(of_all):
        places = [place for place, other in enumerate(of_all) if other == subject]
        part = permanent[codes[places[0]]]
        for _ in places:
            part = part[..., None] * fresh.reshape(len(fresh), *[1] * (part.ndim - 1), -1)
        law = np.multiply.outer(law, part.sum(axis=0))
        order += places
    return np.asarray(np.moveaxis(law, range(len(order)), order))


def sequence_channel(
    oracle: Longitudinal, sequences: Sequence[Sequence[int]], seed: int | None = None
) -> DenseChannel:
    """Return the exact channel whose values are whole sequences: what their reports tell between them."""
    _check_sequences(oracle, sequences)
    laws = np.array([sequence_law(oracle, sequence, seed).reshape(-1) for sequence in sequences])
    return DenseChannel(laws / laws.sum(axis=1, keepdims=True))


def sequence_logs(
    oracle: Longitudinal, sequences: Sequence[Sequence[int]], reports: Sequence[Reports]
) -> Array:
    """Return ln Pr(reports | sequence), up to a number for each device, for any number of rounds.

    Args:
        oracle: how values are reported.
        sequences: the sequences that are compared.
        reports: of each round, everybody's; hashed ones carry their seeds.

    Returns:
        Shape (devices, sequences).
    """
    table = _check_sequences(oracle, sequences)
    if len(reports) != table.shape[1]:
        raise invalid("reports", f"those of {table.shape[1]} rounds", f"{len(reports)} rounds")
    tallies = [oracle.tallied(part) for part in reports]
    return np.stack([_one_sequence(oracle, row, tallies, reports[0].seeds) for row in table], axis=1)


def _one_sequence(
    oracle: Longitudinal, codes: NDArray[Any], tallies: Sequence[NDArray[Any]], seeds: Words | None
) -> Array:
    """Return the sum over distinct subjects of ln Pr(their reports | subject), shape (devices,)."""
    subjects = _subjects(oracle, codes, seeds)
    total = np.zeros(len(tallies[0]))
    for subject in np.unique(subjects):
        mine = subjects == subject  # the rounds of this memo, which may differ between seeds
        counts = sum(mine[:, t, None] * tally.astype(np.int64) for t, tally in enumerate(tallies))
        total += oracle.order_logs(np.asarray(counts), int(mine[0].sum()))[:, subject]
    return total


def _subjects(oracle: Longitudinal, codes: NDArray[Any], seeds: Words | None) -> NDArray[Any]:
    """Return what each round's memo is of: its value, or the value's bucket under each seed, (seeds, T)."""
    if isinstance(oracle, LongitudinalHashing):
        return oracle.buckets_of_all(seeds)[:, codes]
    return np.asarray(codes)[None]


def _check_sequences(oracle: Longitudinal, sequences: Sequence[Sequence[int]]) -> NDArray[Any]:
    table = np.asarray(sequences)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "ui":
        raise invalid("sequences", "sequences of codes, all of one length", table.shape)
    if table.min() < 0 or table.max() >= oracle.size:
        raise invalid("sequences", f"codes from 0 to {oracle.size - 1}", int(table.max()))
    return table
