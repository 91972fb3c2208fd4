"""The joint generic bound: all other reports as one release of the sum of their budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import direct_leakage
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.generic import baseline_at, generic_worst

Array = NDArray[np.float64]
LARGEST_ROWS = 1 << 24
LARGEST_SEARCH = 1 << 31


def joint_generic(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the direct leakage plus the generic bound on all other released attributes as one variable."""
    others = [name for name in channels if name != secret]
    own = direct_leakage(belief, channels.get(secret), secret).value
    if not others:
        return Bound(own, "certified", "own report alone")
    rows = record_rows(belief, secret, others)
    budget = math.fsum(channels[name].epsilon for name in others)
    worst = generic_worst(rows, baseline_at(budget))
    return Bound(own + min(worst.value, budget), "certified", "joint generic")


def record_rows(belief: Belief, secret: str, others: Sequence[str]) -> Array:
    """Return Pr(all others | secret), one column for each distinct record of the others.

    Columns with the same ratios leak as much as their sum, so they are merged: those of combinations that
    only one secret value has (per value and weight), and those that were never seen.
    """
    group, code, weight = _distinct_cells(belief, secret, others)
    size = belief.schema[secret].size
    combinations = math.prod(float(belief.schema[name].size) for name in others)
    spread = belief.smoothing / (size * combinations)
    sharing = np.bincount(group) > 1
    is_shared = sharing[group]
    shared = int(sharing.sum())
    column = (np.cumsum(sharing) - 1)[group]
    alone = code[~is_shared]
    if spread:
        weights, position = np.unique(weight[~is_shared], return_inverse=True)
        alone = alone * len(weights) + position
    column[~is_shared] = shared + alone
    width = shared + int(alone.max(initial=-1)) + 2
    if size * width > LARGEST_ROWS or size * size * width > LARGEST_SEARCH:
        raise TooLargeError(
            f"the joint generic bound of {secret!r} would compare {size} rows of {width} cells; "
            "use method='composition'."
        )
    merged = np.ones(width)
    merged[shared:] = np.bincount(column[~is_shared], minlength=width)[shared:]
    merged[-1] = combinations - len(sharing)
    rows = np.tile(spread * merged, (size, 1))
    np.add.at(rows, (code, column), weight)
    possible = rows.sum(axis=1) > 0
    return np.asarray(rows[possible] / rows[possible].sum(axis=1, keepdims=True))


def _distinct_cells(
    belief: Belief, secret: str, others: Sequence[str]
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return the seen cells of (others, secret): the others' group, the secret's code and the weight."""
    records = belief.records
    if records is None:
        raise InputError(
            f"the joint generic bound needs a joint belief, got a {belief.kind} one; use kind='joint', or "
            "method='composition'."
        )
    group, _ = records.groups(others)
    code = records.codes[:, belief.schema.index(secret)].astype(np.intp)
    if len(others) + 1 == len(belief.schema):
        return group, code, records.weights  # the records are the cells
    flat = group * belief.schema[secret].size + code
    cell, position = np.unique(flat, return_inverse=True)
    weight = np.bincount(position, weights=records.weights).astype(np.float64, copy=False)
    group, code = np.divmod(cell, belief.schema[secret].size)
    return group, code, weight
