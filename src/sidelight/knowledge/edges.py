"""The weights of the hierarchical graph: what removing one attribute from the known ones changes.

An edge leads from the adversary (i, K' + j) to (i, K'). Its published weight IC is a log-ratio of
sum over x_j of Pr(x_j | x_i, x_K') e^(-x_j / lambda) between two values of x_i (PDP, eq. (9)): what an answer
far below all sums shows. Its sound weight is the generic bound on what x_j tells about x_i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError, invalid
from sidelight.knowledge.cells import cells_of
from sidelight.knowledge.group import group_values, reaches
from sidelight.knowledge.query import Query
from sidelight.mechanisms.channel.generic import climb

Array = NDArray[np.float64]
MOST_FROM_JOINT = 12
MOST_GIVEN = 18
LARGEST_WORK = float(1 << 33)
_UPWARDS = 2.0**-43


@dataclass(frozen=True, eq=False)
class Edges:
    """The published weight of every edge.

    Attributes:
        names: the attributes.
        sensitivities: (n,) how far each attribute moves the answer, in units of the noise's scale: LS/lambda.
        low: (n, n, 2^n) the least log-ratio for target i, removed attribute j and the set K' that stays
            known, over all pairs of target values and known values; 0 where there is no such edge.
        high: the greatest one; for given edges the same array.
    """

    names: tuple[str, ...]
    sensitivities: Array
    low: Array
    high: Array

    @classmethod
    def given(cls, weights: ArrayLike, sensitivities: ArrayLike, names: tuple[str, ...] = ()) -> Edges:
        """Take the weights as they are, with no joint distribution behind them (PDP, section VII).

        Args:
            weights: (n, n, 2^n), see `low`.
            sensitivities: (n,) each attribute's, in units of the noise's scale.
            names: of the attributes; x1, x2 and so on by default.
        """
        reach = np.asarray(sensitivities, dtype=np.float64)
        if reach.ndim != 1 or not len(reach):
            raise invalid("sensitivities", "a list of numbers, one for each attribute", reach.shape)
        count = len(reach)
        if names and (len(names) != count or len(set(names)) != count):
            raise invalid("names", f"{count} different attributes", list(names))
        if count > MOST_GIVEN:
            raise TooLargeError(f"a graph of {count} attributes is too large; take at most {MOST_GIVEN}.")
        table = np.asarray(weights, dtype=np.float64)
        if table.shape != (count, count, 1 << count):
            raise invalid("weights", f"of the shape {(count, count, 1 << count)}", table.shape)
        if not np.all(np.isfinite(table)) or not np.all(np.isfinite(reach)) or (reach < 0).any():
            raise InputError("`weights` must be finite, and `sensitivities` finite and at least 0.")
        return cls(names or tuple(f"x{j + 1}" for j in range(count)), reach, table, table)

    @property
    def existing(self) -> NDArray[np.bool_]:
        """Which entries are edges: target, removed attribute and known set are apart."""
        count = len(self.names)
        masks = np.arange(1 << count)
        free = (masks[None, :] >> np.arange(count)[:, None] & 1) == 0
        apart = ~np.eye(count, dtype=np.bool_)
        return np.asarray(free[:, None, :] & free[None, :, :] & apart[:, :, None])


def published_edges(belief: Belief, query: Query) -> Edges:
    """Return every edge's weight from the belief (PDP, eqs. (9) and (10))."""
    joint, reach, possible = _joint(belief, query)
    count = joint.ndim
    low, high = np.zeros((2, count, count, 1 << count))
    parts = [part[mask, 0] / query.scale for part, mask in zip(query.additive_parts(), possible, strict=True)]
    for mask, cells in marginals(joint):
        for i, j, table in _ordered_pairs(cells, mask):
            known = mask & ~(1 << i) & ~(1 << j)
            low[i, j, known], high[i, j, known] = _log_ratios(table, parts[i], parts[j])
    return Edges(query.schema.names, reach, low, high)


def certified_values(belief: Belief, query: Query) -> Array:
    """Return a sound bound for every adversary, shape (n, 2^n), NaN where there is none.

    l(i, K) <= l(i, K + j) + max over x_K of generic(P(x_j | x_i, x_K), l(j, K + i)): given x_i and x_K the
    answer is an l(j, K + i)-private report of x_j. The smallest over all orders of removal is kept, or the
    group bound where that is smaller; all is rounded up. Given what cannot occur all values of x_j count as
    equally likely, so that every conditional is defined and one belief is behind all steps.
    """
    joint, reach, _ = _joint(belief, query, any_width=True)
    count = joint.ndim
    everything = (1 << count) - 1
    values = np.full((count, 1 << count), np.nan)
    group = group_values(reach)
    for i in range(count):
        values[i, everything & ~(1 << i)] = group[everything & ~(1 << i)]
    for mask, cells in sorted(marginals(joint), key=lambda item: -item[0].bit_count()):
        for i, j, table in _ordered_pairs(cells, mask):
            bit_i, bit_j = 1 << i, 1 << j
            added = _generic(table, float(values[j, mask & ~bit_j]))
            node = mask & ~bit_i & ~bit_j
            found = min((values[i, mask & ~bit_i] + added) * (1 + _UPWARDS), group[node])
            values[i, node] = np.fmin(values[i, node], found)
    return values


def _joint(
    belief: Belief, query: Query, *, any_width: bool = False
) -> tuple[Array, Array, Sequence[NDArray[np.bool_]]]:
    """Return the dense joint without impossible values, the sensitivities, and which values are possible."""
    if query.width != 1 and not any_width:
        raise InputError(
            f"the published graph needs one number as an answer, got {query.width}; use the exact figure."
        )
    cells = cells_of(belief, query)
    count = len(cells.schema)
    reach = reaches(query, cells.possible)
    joint = cells.dense()[np.ix_(*cells.possible)]
    work = float(joint.size) * max(joint.shape) * count**2 * 2.0**count
    if count > MOST_FROM_JOINT or work > LARGEST_WORK:
        raise TooLargeError(
            f"the graph of {count} attributes with a joint table of {joint.size} cells is too large; take at "
            f"most {MOST_FROM_JOINT} attributes and coarser bins, or the exact figure of single adversaries."
        )
    return joint, reach, cells.possible


def marginals(joint: Array) -> Iterator[tuple[int, Array]]:
    """Yield the joint of every set of at least two attributes, with the set as bits."""
    waiting = [((1 << joint.ndim) - 1, joint, joint.ndim)]
    while waiting:
        mask, cells, below = waiting.pop()
        yield mask, cells
        for j in range(below):
            if cells.ndim > 2 and mask >> j & 1:
                axis = (mask & ((1 << j) - 1)).bit_count()
                waiting.append((mask & ~(1 << j), cells.sum(axis=axis), j))


def _ordered_pairs(cells: Array, mask: int) -> Iterator[tuple[int, int, Array]]:
    """Yield each ordered pair (i, j) of a set with its cells as (known values, values of i, values of j)."""
    members = [j for j in range(mask.bit_length()) if mask >> j & 1]
    for a, i in enumerate(members):
        for b, j in enumerate(members):
            if i != j:
                moved = np.moveaxis(cells, (a, b), (-2, -1))
                yield i, j, moved.reshape(-1, *moved.shape[-2:])


def _log_ratios(table: Array, own: Array, other: Array) -> tuple[float, float]:
    """Return the least and greatest IC over pairs of target values (in increasing order) and known values."""
    ordered = table[:, np.argsort(own, kind="stable")]
    with np.errstate(divide="ignore", invalid="ignore"):
        masses = np.log(ordered)
        seen = np.logaddexp.reduce(masses - (other - other.min()), axis=2) - np.logaddexp.reduce(
            masses, axis=2
        )
        ratios = seen[:, :, None] - seen[:, None, :]
    first, second = np.triu_indices(len(own), 1)
    found = ratios[:, first, second]
    found = found[np.isfinite(found)]
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 0.0)


def _generic(table: Array, budget: float) -> float:
    """Return the generic bound over all known values: how much a private report of x_j says about x_i.

    It is never above the report's own budget, whose e^-budget may be 0 in a double; what adding doubles can
    cost is put on top.
    """
    mass = table.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore"):
        rows = np.where(mass > 0, table / mass, 1 / table.shape[2])
    found = float(climb(rows[:, :, None], rows[:, None, :], np.exp(-budget)).max())
    return min(budget, found + _UPWARDS)
