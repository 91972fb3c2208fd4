"""Weighted sums of a release's likelihoods over the records of a table, for each value of one attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.belief.likelihoods import DOUBLE_REACH, HALF_UNIT, Centred
from sidelight.foundation.arrays import Array, Codes, Positions, Whole, offsets
from sidelight.foundation.threads import in_ranges

CHUNK = 64
"""So many products are added up before their sum is kept in double precision."""
_MOST_COMBINATIONS = 1024
"""Tables of products of so many combinations stay in the cache of a core."""
_MOST_TRIED = 64
"""So many attributes are tried for a group, so that thousands do not take millions of tries."""
_SINGLE_REACH = 80.0
"""Products within e^80 of 1, and sums of 64 of them, keep all digits of single precision (to e^87)."""


@dataclass(frozen=True, eq=False)
class RecordSums:
    """The records of a table, sorted by the value of one attribute.

    Attributes:
        sizes: of each attribute.
        codes: (records, attributes).
        weights: (records,), positive.
        by: the position of the attribute whose values are told apart.
    """

    sizes: tuple[int, ...]
    codes: Codes
    weights: Array
    by: int

    def logs(self, likelihoods: Centred) -> Array:
        """Return ln of the sum of weight times likelihoods over the records of each value, shape (n, m).

        The attribute itself is not among the likelihoods.
        """
        from sidelight.belief.kernels import LANES, mix_logarithms, mix_records

        laid = self._laid_out(tuple(likelihoods.tables))
        out = np.empty((len(likelihoods.shift), self.sizes[self.by]))
        digits = self._digits(likelihoods.reach)
        lined = likelihoods.singles if digits is np.float32 else likelihoods.lined
        with np.errstate(divide="ignore"):
            if digits is None:
                given = np.log(lined), laid.steps, laid.codes, np.log(laid.weights), laid.starts, out
                in_ranges(partial(mix_logarithms, *given), len(out), LANES)
                return np.asarray(out + likelihoods.shift)
            weights = (laid.weights / self._least).astype(digits)
            given = lined, laid.steps, laid.codes, weights, laid.starts, out
            in_ranges(partial(mix_records, *given), len(out), LANES)
            return np.asarray(np.log(out) + (likelihoods.shift + math.log(self._least)))

    def rounding(self, likelihoods: Centred) -> float:
        """Return a bound of the error of each logarithm.

        Of a product of d likelihoods and a weight, each factor is rounded once and multiplied once, and it
        is added up with at most 63 others. All terms are positive, so their sum has the relative error of
        its terms, at most k u / (1 - k u) for k roundings of u (Higham 2002, lemma 3.1). The sums of chunks
        and of weights are made in doubles; logarithms and shifts round by u times their own size.
        """
        steps = 2 * len(likelihoods.tables) + 2 + CHUNK
        digits = self._digits(likelihoods.reach)
        unit = HALF_UNIT if digits is None else float(np.finfo(digits).eps) / 2
        magnitude = likelihoods.magnitude + abs(math.log(self._least)) + self._weight_reach
        doubles = 2 * HALF_UNIT * (len(self.weights) + steps * (1 + magnitude))
        return steps * unit / (1 - steps * unit) + doubles

    @cached_property
    def _least(self) -> float:
        """The least weight, of which the others are taken as multiples."""
        return float(self.weights.min())

    @cached_property
    def _weight_reach(self) -> float:
        """How far the logarithm of a weight, or of a sum of them, can be above that of the least."""
        return math.log(self.weights.sum()) - math.log(self._least)

    def _digits(self, reach: float) -> type[np.floating[Any]] | None:
        """Return the precision in which no product of likelihoods and weights loses digits, if any."""
        total = reach + self._weight_reach
        return np.float32 if total <= _SINGLE_REACH else np.float64 if total <= DOUBLE_REACH else None

    def _laid_out(self, places: tuple[int, ...]) -> _Layout:
        """Return the records laid out for the kernel; kept, since every batch of releases asks again."""
        known = self._layouts
        if places not in known:
            known[places] = _lay_out(self, places)
        return known[places]

    @cached_property
    def _layouts(self) -> dict[tuple[int, ...], _Layout]:
        return {}


@dataclass(frozen=True, eq=False)
class _Layout:
    """Records of some attributes as `kernels` take them.

    Attributes:
        steps: (rows, 2), how the table of products is made: each row is an earlier row times the
            likelihoods of one value. Row 0 is 1.
        codes: (records, groups), the row of the record's product in each group; there are 3, 4, 6 or a
            multiple of 4 groups.
        weights: (records,).
        starts: (runs + 1,), where the records of each value start.
    """

    steps: NDArray[np.uint32]
    codes: NDArray[np.uint32]
    weights: Array
    starts: Whole


def _lay_out(sums: RecordSums, places: tuple[int, ...]) -> _Layout:
    """Number the combinations that each group of attributes has, and merge records that agree in all."""
    products, columns = grouped(sums.sizes, sums.codes, places)
    # as many as the kernel has loops for
    while len(columns) < 3 or (len(columns) % 4 and len(columns) not in (3, 6)):
        columns.append(np.zeros(len(sums.weights), dtype=np.intp))
    own = sums.codes[:, sums.by].astype(np.intp)
    order = np.lexsort((*columns, own))
    ordered = np.stack([column[order].astype(np.uint32) for column in (*columns, own)], axis=1)
    firsts = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
    weights = np.add.reduceat(sums.weights[order], firsts)
    starts = np.searchsorted(ordered[firsts, -1], np.arange(sums.sizes[sums.by] + 1)).astype(np.int64)
    return _Layout(products, np.ascontiguousarray(ordered[firsts, :-1]), weights, starts)


def grouped(
    sizes: Sequence[int], codes: Codes, places: Sequence[int]
) -> tuple[NDArray[np.uint32], list[Positions]]:
    """Divide the attributes at some places greedily into groups with few combinations of values.

    Returns how to make the table of their products, and for each group the row of each record's product.
    """
    first_values = dict(zip(places, offsets([sizes[place] for place in places]), strict=False))
    left = sorted(places, key=lambda place: -sizes[place])
    # a table of products is made for every 64 releases, so it must stay small beside the records
    most = min(_MOST_COMBINATIONS, max(64, len(codes) // 16))
    rows, products, columns = 1, [np.zeros((1, 2), dtype=np.intp)], list[Positions]()
    while left:
        base, numbers = 0, np.zeros(len(codes), dtype=np.intp)
        for place in left[:_MOST_TRIED]:
            size = sizes[place]
            keys, both = _numbered(numbers * size + codes[:, place])
            if len(keys) <= most or base == 0:
                products.append(np.stack([keys // size + base, keys % size + first_values[place]], axis=1))
                base, numbers, rows = rows, both, rows + len(keys)
                left.remove(place)
                if len(keys) > most:
                    break  # a further attribute would not make them fewer
        columns.append(numbers + base)
    return np.concatenate(products).astype(np.uint32), columns


def _numbered(keys: NDArray[Any]) -> tuple[Positions, Positions]:
    """Return the distinct keys, and each record's place among them; for keys that are not large."""
    present = np.zeros(int(keys.max()) + 1, dtype=np.intp)
    present[keys] = 1
    return np.flatnonzero(present), np.asarray((np.cumsum(present) - 1)[keys])
