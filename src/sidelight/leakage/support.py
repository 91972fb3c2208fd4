"""How many records stand behind a witness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.leakage.families import favours_sets, report_values
from sidelight.mechanisms import Channel


def support_of(
    belief: Belief, secret: str, pair: tuple[int, int], favoured: Mapping[str, NDArray[np.intp]]
) -> int | None:
    """Return the fewest records behind a witness; None for a belief given by hand.

    A witness compares two secret values by a report that favours some values of other attributes. It rests on
    the records of either secret value, on those of the likelier one that have the favoured values, and on
    those of the unlikelier one that do, if there are any.

    Args:
        belief: what the adversary knows.
        secret: the attribute in question.
        pair: the codes of the likelier and the unlikelier secret value.
        favoured: for each reported attribute the codes that its report favours.
    """
    counts = belief.support(secret)
    if counts is None:
        return None
    other = _matching(belief, secret, pair[1], favoured)
    found = [int(counts[list(pair)].min()), _matching(belief, secret, pair[0], favoured)]
    return min([*found, other] if other else found)


def edge_support(belief: Belief, secret: str, edges: Iterable[tuple[str, str]]) -> int | None:
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


def favoured_values(channel: Channel, favoured: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the values that a report makes likeliest.

    `favoured` are those values already, or the report's number where the channel is given by its reports.
    """
    if channel.family == "singletons" or favours_sets(channel):
        return favoured
    return report_values(channel, int(favoured[0]))


def _matching(belief: Belief, secret: str, value: int, favoured: Mapping[str, NDArray[np.intp]]) -> int:
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
