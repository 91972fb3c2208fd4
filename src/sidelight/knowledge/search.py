"""Every adversary at once: which attributes are known is decided one attribute after another.

An attribute that is unknown is summed out of the joint table, which then holds, for every combination of the
others, the law of the unknown sum. What two sets of known attributes share is computed once. A branch is cut
where even the group bound (PDP, eq. (16)) of all its adversaries is below what was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.errors import TooLargeError
from sidelight.knowledge.adversary import Adversary, Values, adversary_of, check_targets
from sidelight.knowledge.cells import LARGEST_LISTED, Cells, cells_of
from sidelight.knowledge.exact import answers_in_steps, exact_leakage, normalised, smooth, widest
from sidelight.knowledge.query import Query
from sidelight.leakage.bounds import Bound

MOST_ATTRIBUTES = 20
LARGEST_WORK = float(1 << 33)
LARGEST_LOOP = float(1 << 31)
_SMALL = float(1 << 20)
"""Up to this much work numpy is faster than loading the compiler."""
_DEEPEST = 600.0
"""Densities go down to e^-600 at most: well above the least double, e^-745."""


def all_adversaries(belief: Belief, query: Query, targets: Sequence[str] | None = None) -> Values:
    """Return the exact leakage to every adversary, of a joint or of a tree small enough to be listed."""
    cells = cells_of(belief, query)
    return _explore(cells, query, _positions(cells, targets), prune=False)[0]


def supported_adversaries(
    belief: Belief, query: Query, targets: Sequence[str] | None = None
) -> tuple[Values, Values]:
    """Return the exact leakage to every adversary, and how many records are behind each figure.

    The count is that of the rarer side of what reaches the figure; NaN where none is known. Each adversary
    is evaluated separately, which is slower than `all_adversaries`.
    """
    cells = cells_of(belief, query)
    values = _empty(cells)
    return values, _one_by_one(cells, query, _positions(cells, targets), values, prune=False)[1]


def worst_adversary(
    belief: Belief, query: Query, targets: Sequence[str] | None = None
) -> tuple[Adversary, Bound, float]:
    """Return the worst adversary, the leakage to it, and the share of adversaries that had to be evaluated.

    Those with most unknown attributes come first; a branch is cut where the group bound of everyone in it
    is not above the worst so far.
    """
    cells = cells_of(belief, query)
    chosen = _positions(cells, targets)
    values, looked = _explore(cells, query, chosen, prune=True)
    worst, _ = values.worst()
    total = len(chosen) * 2 ** (len(cells.schema) - 1)
    return worst, exact_leakage(cells, query, worst), looked / total


def _positions(cells: Cells, targets: Sequence[str] | None) -> list[int]:
    names = cells.schema.names
    return [names.index(name) for name in check_targets(names, targets)]


def _explore(cells: Cells, query: Query, targets: list[int], *, prune: bool) -> tuple[Values, int]:
    """Evaluate all adversaries, or with pruning all that could be the worst; return how many were."""
    values = _empty(cells)
    if not _is_dense(cells, query):
        return values, _one_by_one(cells, query, targets, values, prune=prune)[0]
    walk = _Walk(cells, query, targets, values.table, prune=prune)
    walk.visit(cells.dense()[..., None], np.zeros(1, dtype=np.int64), 0, 0)
    return values, walk.looked


def _empty(cells: Cells) -> Values:
    """Return a table without figures, or raise where it would be too large."""
    names = cells.schema.names
    if len(names) > MOST_ATTRIBUTES:
        raise TooLargeError(
            f"{len(names)} attributes have {len(names)} x 2^{len(names) - 1} adversaries, too many to try; "
            f"take at most {MOST_ATTRIBUTES}, or one adversary at a time."
        )
    return Values(names, np.full((len(names), 1 << len(names)), np.nan))


def _is_dense(cells: Cells, query: Query) -> bool:
    """Whether the joint table can be walked: additive, one number, few enough cells, no loss of tails."""
    if not query.is_additive or query.width != 1:
        return False
    if math.prod(float(size) for size in cells.schema.sizes) > LARGEST_LISTED:
        return False
    # The walk works with densities, not their logarithms: the least must stay well above the least double.
    deepest = _span(query) * query.lattice.step / query.scale - math.log(float(cells.weights.min()))
    return _work(cells, query) <= LARGEST_WORK and deepest <= _DEEPEST


def _span(query: Query) -> int:
    return sum(int(part.max()) for part in query.lattice.ticks)


def _work(cells: Cells, query: Query) -> float:
    """Return about how many laws of the sum all adversaries have, times their length."""
    sizes = [float(size) for size in cells.schema.sizes]
    longest = min(1.0 + _span(query), math.prod(sizes))  # no more sums than steps, nor than combinations
    return math.prod(1 + size for size in sizes) * len(sizes) * (1 + longest / 2)


def _one_by_one(
    cells: Cells, query: Query, targets: list[int], values: Values, *, prune: bool
) -> tuple[int, Values]:
    """Evaluate adversaries one at a time, those with most unknown attributes first.

    Return how many were, and how many records are behind each figure.
    """
    count = len(values.names)
    each = max(8.0 * len(cells.weights), _grid(cells, query))
    work = float(len(targets)) * 2.0 ** (count - 1) * each
    if work > LARGEST_LOOP:
        raise TooLargeError(
            f"trying every adversary of {count} attributes on {len(cells.weights)} distinct records is too "
            "much; take fewer attributes or coarser bins, a query with fewer cells, or name one adversary."
        )
    reach, supports = _reach(cells, query), _empty(cells)
    best, looked = -1.0, 0
    for mask in sorted(range(1 << count), key=int.bit_count):
        for target in targets:
            unknown = sum(reach[j] for j in range(count) if not mask >> j & 1)
            if mask >> target & 1 or (prune and unknown <= best):
                continue
            bound = exact_leakage(cells, query, adversary_of(values.names, target, mask))
            values.table[target, mask] = bound.value
            if bound.support is not None:
                supports.table[target, mask] = bound.support
            best, looked = max(best, bound.value), looked + 1
    return looked, supports


def _grid(cells: Cells, query: Query) -> float:
    """Return about how much work the laws of a vector are for an adversary who knows half the attributes.

    Half the answers of each coordinate are left then, for about the root of all records.
    """
    if query.width == 1:
        return 0.0
    answers, _ = answers_in_steps(cells, query, [])
    lengths = [(1.0 + len(np.unique(column))) / 2 for column in answers.T]
    return 8.0 * query.width * math.sqrt(len(cells.weights)) * math.prod(lengths)


def _reach(cells: Cells, query: Query) -> list[float]:
    """Return how much each attribute can add to the leakage: its sensitivity over the scale."""
    if not query.is_additive:
        return [math.inf] * len(cells.schema)
    return [float(value) for value in query.reaches(cells.possible)]


class _Walk:
    """The walk through all sets of known attributes, with what it has found."""

    def __init__(self, cells: Cells, query: Query, targets: list[int], table: Array, *, prune: bool) -> None:
        self.sizes = cells.schema.sizes
        self.ticks = [part[:, 0] for part in query.lattice.ticks]
        self.rate = query.lattice.step / query.scale
        self.targets = targets
        self.table = table
        self.prune = prune
        self.reach = _reach(cells, query)
        self.is_small = _work(cells, query) <= _SMALL
        self.best = -1.0
        self.looked = 0

    def visit(self, laws: Array, sums: Whole, place: int, mask: int) -> None:
        """Decide about attribute `place`; `laws` has an axis for each kept or open attribute and the sums."""
        if self.prune and self._ceiling(place, mask) <= self.best:
            return
        if place == len(self.sizes):
            self._evaluate(laws, sums, mask)
            return
        self.visit(*self._summed_out(laws, sums, mask.bit_count(), place), place + 1, mask)
        self.visit(laws, sums, place + 1, mask | 1 << place)

    def _ceiling(self, place: int, mask: int) -> float:
        """Return the largest group bound of any adversary below: all open attributes unknown."""
        free = sum(reach for j, reach in enumerate(self.reach) if j >= place or not mask >> j & 1)
        kept = [self.reach[i] for i in self.targets if i < place and mask >> i & 1]
        is_open = any(i >= place for i in self.targets)
        return free + max(kept, default=0.0) if kept or is_open else -math.inf

    def _summed_out(self, laws: Array, sums: Whole, axis: int, place: int) -> tuple[Array, Whole]:
        """Return the laws with an attribute's values added to the sum instead of told apart."""
        moved = [sums + by for by in self.ticks[place]]
        wider = np.unique(np.concatenate(moved))
        result = np.zeros([*laws.shape[:axis], *laws.shape[axis + 1 : -1], len(wider)])
        for value, places in enumerate(moved):
            result[..., np.searchsorted(wider, places)] += laws.take(value, axis=axis)
        return result, wider

    def _evaluate(self, laws: Array, sums: Whole, mask: int) -> None:
        """Fill in every adversary who attacks one of the kept attributes and knows the others."""
        kept = [j for j in range(len(self.sizes)) if mask >> j & 1]
        unknown = sum(reach for j, reach in enumerate(self.reach) if not mask >> j & 1)
        for axis, target in enumerate(kept):
            if target not in self.targets or (self.prune and unknown + self.reach[target] <= self.best):
                continue
            before, behind = math.prod(laws.shape[:axis]), math.prod(laws.shape[axis + 1 : -1])
            shaped = laws.reshape(before, self.sizes[target], behind, len(sums))
            value = self._largest(shaped, sums, self.ticks[target])
            self.table[target, mask & ~(1 << target)] = value
            self.best = max(self.best, value)
            self.looked += 1

    def _largest(self, laws: Array, sums: Whole, ticks: Whole) -> float:
        """Return the leakage of one target, from its laws for all known values."""
        moved = sums + ticks[:, None]
        points = np.unique(moved)
        places = np.searchsorted(points, moved)
        if not self.is_small:
            decays = np.exp(-self.rate * np.diff(points))
            from sidelight.knowledge.kernels import largest_ratio  # loading the compiler takes a while

            return math.log(largest_ratio(np.ascontiguousarray(laws), places, decays))
        return _plain(laws, places, points * self.rate)


def _plain(laws: Array, places: Positions, points: Array) -> float:
    """Return what the compiled loop returns, as a logarithm, with numpy."""
    rows = np.moveaxis(laws, 1, 2).reshape(-1, laws.shape[1], laws.shape[3])
    placed = np.zeros((*rows.shape[:2], len(points)))
    for value, at in enumerate(places):
        placed[:, value, at] = rows[:, value]
    possible = placed.sum(axis=2) > 0
    groups = np.flatnonzero(possible.sum(axis=1) > 1)
    if not len(groups):
        return 0.0
    inside = possible[groups]
    with np.errstate(divide="ignore"):
        densities = smooth(normalised(np.log(placed[groups][inside])), points)
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))[:-1]]).astype(np.intp)
    return widest(densities, starts).value
