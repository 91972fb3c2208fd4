"""Witnesses, and how many records stand behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.leakage.bounds import Bound, Witness
from sidelight.mechanisms import Channel

TIE = 1e-12
"""Log-ratios this close are taken as equal: they differ by rounding."""


def best_pair(values: Array, weights: Array) -> tuple[int, int]:
    """Return the two different rows with the largest value; of several, those whose rarer one weighs most.

    `values` (m, m) has a log-ratio for each ordered pair, `weights` (m,) how common each row's value is.
    """
    different = ~np.eye(len(values), dtype=np.bool_)
    tied = different & (values >= values[different].max() - TIE)
    rarer = np.where(tied, np.minimum.outer(weights, weights), -1.0)
    return divmod(int(rarer.argmax()), len(values))


def commonest_pair(weights: Array) -> tuple[int, int]:
    """Return the two rows that weigh most, for a figure that every pair reaches."""
    first, second = np.argsort(-weights, kind="stable")[:2]
    return int(first), int(second)


def witnessed(
    bound: Bound,
    belief: Belief,
    channels: Mapping[str, Channel],
    secret: str,
    pair: tuple[int, int],
    reports: Mapping[str, Positions],
) -> Bound:
    """Add to a bound what reaches it, and the records behind that.

    `pair` holds the codes of the likelier and the unlikelier secret value; `reports` what names the report of
    each other attribute that matters (see `Witness`). The secret's own report is found here.
    """
    if bound.value <= 0:
        return bound
    seen = {name: codes for name, codes in reports.items() if channels[name].epsilon > 0}
    if secret in channels and channels[secret].epsilon > 0:
        seen = {secret: own_report(channels[secret], pair), **seen}
    words = [channels[name].describe(belief.schema[name], codes) for name, codes in seen.items()]
    favoured = {name: channels[name].likeliest(codes) for name, codes in seen.items() if name != secret}
    labels = belief.schema[secret].values
    named = {name: tuple(codes.tolist()) for name, codes in seen.items()}
    witness = Witness(", ".join(words), labels[pair[0]], labels[pair[1]], named)
    return replace(bound, witness=witness, support=records_behind(belief, secret, pair, favoured))


def own_report(channel: Channel, pair: tuple[int, int]) -> Positions:
    """Return what names the report that best tells two values of its own attribute apart."""
    rows = np.zeros((2, channel.size))
    rows[[0, 1], list(pair)] = 1.0
    return channel.worst_of_pair(rows, (0, 1)).report


def records_behind(
    belief: Belief, secret: str, pair: tuple[int, int], favoured: Mapping[str, Positions]
) -> int | None:
    """Return the fewest records behind a witness; None for a belief given by hand.

    A witness compares two secret values, the likelier first, by a report that favours some values of other
    attributes. It rests on the records of either secret value, on those of the likelier one that have the
    favoured values, and on those of the unlikelier one that do, if there are any.
    """
    counts = belief.support(secret)
    if counts is None:
        return None
    other = _matching(belief, secret, pair[1], favoured)
    fewest = min(int(counts[list(pair)].min()), _matching(belief, secret, pair[0], favoured))
    return min(fewest, other) if other else fewest


def records_along(belief: Belief, secret: str, edges: Iterable[tuple[str, str]]) -> int | None:
    """Return the fewest records behind a figure of a tree whose witness is not known.

    Any cell of any edge may decide it, so it rests on the rarest pair of values that occurs along one.
    """
    counts = belief.support(secret)
    if counts is None:
        return None
    tables = [counts]
    for edge in edges:
        cells = belief.pair_weights(*edge)
        tables.append(np.rint(cells - belief.mixed / cells.size).astype(np.int64))
    return min(int(table[table > 0].min()) for table in tables)


def _matching(belief: Belief, secret: str, value: int, favoured: Mapping[str, Positions]) -> int:
    """Return how many records of a secret value have the favoured values of every attribute."""
    if len(favoured) <= 1:
        for name, codes in favoured.items():
            cells = belief.pair_weights(secret, name)
            return round(float(cells[value, codes].sum() - belief.mixed / cells.size * len(codes)))
        return int(belief.weight)
    if belief.records is None:
        return min(_matching(belief, secret, value, {name: codes}) for name, codes in favoured.items())
    records = belief.records
    rows = np.flatnonzero(records.codes[:, records.schema.index(secret)] == value)
    for name, codes in favoured.items():
        chosen = np.zeros(records.schema[name].size, dtype=np.bool_)
        chosen[codes] = True
        rows = rows[chosen[records.codes[rows, records.schema.index(name)]]]
    return round(float(records.weights[rows].sum()))
