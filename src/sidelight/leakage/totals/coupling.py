"""Leakage at delta without draws, to someone who knows the table: by coupling its records.

The hockey-stick divergence is jointly convex. So records given s may be matched with records given s' in any
way: the divergence is at most the average over matched records of that of the attributes in which these
differ. Matching records that agree in much makes the average small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from sidelight.foundation.arrays import Array, Codes, Mask, Positions, Whole
from sidelight.leakage.totals.composition import Losses, LossLaw, Mixture, Releases, grid_step, law_counts
from sidelight.sources import Records

_CELLS = 1 << 10
_MOST_WORK = 1 << 28
"""Cells of all sets of attributes together times reports: about a second."""
_LEVELS, _FEWEST_LEVELS = 2048, 4
"""So many for all pairs of values together: attributes are let go one by one, or several at once."""
_MOST_LEVELS = 64
_LEAST = 1e-15
"""Shares of people below it are left to the end, where they may differ in everything."""


def coupled_losses(records: Records, spread: float, releases: Releases, secret: str) -> Losses:
    """Return the losses of matched records, one mixture for each pair of values of the secret.

    Records that agree in every released attribute are matched first. Then the attribute of the highest
    entropy is let go, those that agree in the rest are matched, and so on: any matching is sound, and this
    one leaves few differences.

    Args:
        records: the table.
        spread: the weight of further records, spread evenly over all combinations of values.
        releases: what is seen.
        secret: the attribute that is secret.
    """
    names = sorted((name for name in releases if name != secret), key=lambda name: -_entropy(records, name))
    own = [secret] if secret in releases else []
    laws, counts = law_counts(releases[name] for name in (*names, *own))
    others = counts[: len(names)]
    matches = []
    pairs = math.comb(records.schema[secret].size, 2)
    levels = _levels(len(names), max(_FEWEST_LEVELS, min(_MOST_LEVELS, _LEVELS // max(pairs, 1))))
    for codes, masses, even in _pairs(records, spread, secret, names):
        rows, shares = _matched(codes, masses, others, levels)
        # Evenly spread people agree in everything; those of the likelier value who are left, in nothing.
        ends = np.array([[0] * (len(laws) + 1), [*others.sum(axis=0), len(names)]])
        rest = [even, max(0.0, 1 - even - shares.sum())]
        matches.append((np.concatenate([rows, ends]), np.append(shares, rest)))
    sets, mixtures = _mixtures(matches, laws, others)
    return Losses.of(laws, sets + counts[len(names) :].sum(axis=0), mixtures, _CELLS)


def _pairs(
    records: Records, spread: float, secret: str, names: Sequence[str]
) -> Iterator[tuple[Codes, Array, float]]:
    """Yield, for each two values of the secret, the records, their shares and that of evenly spread ones."""
    codes = records.codes[:, [records.schema.index(name) for name in names]]
    values = records.codes[:, records.schema.index(secret)]
    # In this order records that agree in what is left stand side by side at every level.
    order = np.lexsort(codes.T) if names else np.arange(len(codes))
    codes, values, weights = codes[order], values[order], records.weights[order]
    size = records.schema[secret].size
    totals = np.bincount(values, weights, minlength=size) + spread / size
    for pair in combinations(np.flatnonzero(totals > 0), 2):
        rows = np.flatnonzero(np.isin(values, pair))
        shares = np.stack([(values[rows] == value) * weights[rows] / totals[value] for value in pair])
        yield codes[rows], shares, spread / size / totals[list(pair)].max()


def _matched(codes: Codes, masses: Array, counts: Whole, levels: Sequence[int]) -> tuple[Whole, Array]:
    """Match records given one value with records given another.

    Args:
        codes: (records, attributes) in the order in which attributes are let go.
        masses: (2, records) the share of people with each value who have the record.
        counts: (attributes, laws) how many reports of each law an attribute has.
        levels: how many attributes have been let go at each level, from none to all.

    Returns:
        The distinct differences, shape (n, laws + 1): how many reports of each law differ, and how many
        attributes had been let go; and the share of people matched with each, shape (n,).
    """
    sets, shares = [np.zeros((0, counts.shape[1] + 1), dtype=np.int64)], [np.zeros(0)]
    changes = _changes(codes)
    for level in levels:
        left = np.flatnonzero(masses.max(axis=0) > _LEAST)
        codes, masses = codes[left], masses[:, left]
        if not masses.any(axis=1).all():
            break
        # Between two records that are left, the largest of all changes is what they differ in.
        changes = np.maximum.reduceat(changes[: left[-1] + 1], np.append(0, left[:-1] + 1))
        one, other, share = _side_by_side(changes > level, masses)
        differ = codes[one, :level] != codes[other, :level]
        sets.append(np.column_stack([differ @ counts[:level], np.full(len(share), level)]))
        shares.append(share)
        gone = [np.bincount(which, share, len(left)) for which in (one, other)]
        masses = np.maximum(masses - np.stack(gone), 0.0)
    every, weights = np.concatenate(sets), np.concatenate(shares)
    first, which = _distinct(every)
    return every[first], np.asarray(np.bincount(which, weights, len(first)), dtype=np.float64)


def _changes(codes: Codes) -> Positions:
    """Return, for each record, 1 more than the last attribute in which it differs from the one before."""
    changes = np.zeros(len(codes), dtype=np.intp)
    for place, column in enumerate(codes.T):
        changes[1:][column[1:] != column[:-1]] = place + 1
    changes[:1] = codes.shape[1] + 1
    return changes


def _levels(attributes: int, most: int) -> list[int]:
    """Return how many attributes have been let go at each level, from none to all.

    >>> _levels(5, 3)
    [0, 2, 4, 5]
    """
    steps = min(attributes, most)
    return [-(-attributes * step // max(steps, 1)) for step in range(steps + 1)]


def _side_by_side(begins: Mask, masses: Array) -> tuple[Positions, Positions, Array]:
    """Match people within each group of records, in order, as far as the rarer value of the group goes.

    Returns:
        The record of the one value, that of the other, and the share of people, for each match.
    """
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    both = np.add.reduceat(masses, starts, axis=1).min(axis=0)
    reach = np.cumsum(masses, axis=1)
    within = reach - (reach - masses)[:, starts[group]]
    # Groups are laid end to end on a line, each as long as what it matches, for each of the two values.
    ends = (np.cumsum(both) - both)[group] + np.minimum(within, both[group])
    ends = np.maximum.accumulate(ends, axis=1)
    marks = np.sort(ends.ravel(), kind="stable")  # which merges two sorted runs
    lengths = np.diff(marks, prepend=0.0)
    kept = lengths > _LEAST
    middles = (marks - lengths / 2)[kept]
    one, other = (np.minimum(np.searchsorted(column, middles), len(column) - 1) for column in ends)
    agree = group[one] == group[other]  # but for rounding where two groups meet
    return one[agree], other[agree], lengths[kept][agree]


def _mixtures(
    matches: Sequence[tuple[Whole, Array]], laws: Sequence[LossLaw], counts: Whole
) -> tuple[Whole, list[Mixture]]:
    """Return the sets of reports that differ, and how they are mixed for each pair of values.

    Where there are too many, the rarest are replaced by all the attributes that had been let go.
    """
    rows = np.concatenate([rows for rows, _ in matches]) if matches else np.zeros((0, len(laws) + 1), int)
    first, which = _distinct(rows)
    sets, levels = rows[first, :-1], rows[first, -1]
    most = _most_sets(laws, counts)
    if len(sets) > most:
        weights = np.bincount(which, np.concatenate([shares for _, shares in matches]))
        rare = np.argsort(-weights)[most:]
        nested = np.vstack([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
        sets[rare] = nested[levels[rare]]
    first, again = _distinct(sets)
    cuts = np.cumsum([len(shares) for _, shares in matches])[:-1]
    parts = np.split(again[which], cuts)
    return sets[first], [(part, shares) for part, (_, shares) in zip(parts, matches, strict=False)]


def _most_sets(laws: Sequence[LossLaw], counts: Whole) -> int:
    """Return how many sets of reports the work limit allows."""
    budget = float(sum(law.epsilon * count for law, count in zip(laws, counts.sum(axis=0), strict=True)))
    cells = 2 * budget / grid_step(laws, budget, _CELLS) + 1
    return max(1, int(_MOST_WORK / (cells * max(1, counts.sum()))))


def _distinct(rows: Whole) -> tuple[Positions, Positions]:
    """Return where each distinct row first stands, and which of these each row equals."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return first, which


def _entropy(records: Records, name: str) -> float:
    counts = np.bincount(records.codes[:, records.schema.index(name)], records.weights)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
