"""The posterior under a joint belief: every distinct record is weighed by the likelihood of the reports.

The likelihood of a record is a product over what the reports are about, and records share most of it. So it
is computed for the distinct values of each factor's attributes, then for the distinct values of two of those
together, and so on until two halves of a record are left. The weights of the records that join the halves
are a sparse matrix; one product with it sums over all records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.protocols.factors import Choice, Columns, Factor, Spoken
from sidelight.sources import Records

_FAINT = 1e-200
"""A product below this is so near to the least double that parts of a sum may be lost."""


@dataclass(frozen=True, eq=False)
class _Part:
    """The distinct values of some attributes.

    Attributes:
        position: (records,) which of them each record has.
        example: (values,) a record that has each of them.
        table: from factors and the number of rows to the likelihood of each, shape (values, rows).
    """

    position: Positions
    example: Positions
    table: Callable[[Sequence[Factor], int], Array]

    @property
    def size(self) -> int:
        """How many distinct values there are."""
        return len(self.example)


@dataclass(frozen=True, eq=False)
class _Halves:
    """Two halves of every record, and how much the records weigh that join them.

    Attributes:
        leaves: the parts of single factors, in their order.
        pairs: (pairs,) the left half's value in each pair of a secret and a left half; `spans` are those of
            each value of the secret.
        matrix: (pairs, right values) sparse: the weight of the records that have both.
    """

    leaves: tuple[_Part, ...]
    left: _Part
    right: _Part
    pairs: Positions
    matrix: Any
    spans: tuple[slice, ...]

    def weigh(self, factors: Sequence[Factor], rows: int) -> Array:
        """Return the weight of all records with each value of the secret, shape (values, rows)."""
        seen = np.take(self.left.table(factors, rows), self.pairs, axis=0)
        summed = self.matrix @ self.right.table(factors, rows)
        return np.stack([np.einsum("pr,pr->r", seen[span], summed[span]) for span in self.spans])


@dataclass(frozen=True, eq=False)
class JointRule:
    """Weighs every distinct record of a belief by the likelihood of the reports.

    `spread` is the weight of records that are spread evenly over all values; `halves` remembers how records
    are taken apart, by the attributes of each factor.
    """

    records: Records
    secret: str
    spread: float
    halves: dict[tuple[tuple[str, ...], ...], _Halves] = field(default_factory=dict)

    def __call__(self, factors: Sequence[Factor], rows: int) -> Array:
        """Return the unnormalised posterior of the secret, shape (values, rows)."""
        parts = [self._halves(each).weigh(each, rows) for each in _summands(factors)]
        weights: Array = np.sum(parts, axis=0)
        evenly = self._evenly(factors, rows) if self.spread else np.full((1, rows), -np.inf)
        weights += np.exp(evenly)
        faint = weights.sum(axis=0) < _FAINT
        if faint.any():
            leaves = self._halves(factors).leaves
            tables = [leaf.table(factors, rows) for leaf in leaves]
            lost = np.flatnonzero(faint & (_least(tables) < _FAINT))
            if len(lost):
                few = [table[:, lost] for table in tables]
                weights[:, lost] = self._by_logarithms(leaves, few, evenly[:, lost])
        return weights

    def _halves(self, factors: Sequence[Factor]) -> _Halves:
        """Return how records are taken apart for these factors, worked out once."""
        attributes = tuple(factor.names for factor in factors)
        if attributes not in self.halves:
            self.halves[attributes] = self._take_apart(attributes)
        return self.halves[attributes]

    @property
    def _columns(self) -> Columns:
        names = self.records.schema.names
        return {name: self.records.codes[:, i].astype(np.intp) for i, name in enumerate(names)}

    def _take_apart(self, attributes: tuple[tuple[str, ...], ...]) -> _Halves:
        """Merge the parts of the factors until two are left, of the three smallest the best pair."""
        columns = self._columns
        leaves = tuple(_leaf(columns, names, place) for place, names in enumerate(attributes))
        parts = [*leaves, *[_nothing(len(self.records.weights))] * (2 - len(leaves))]
        while len(parts) > 2:
            parts.sort(key=lambda part: part.size)
            pairs = list(combinations(range(3), 2))
            merged = [_merge(parts[first], parts[second]) for first, second in pairs]
            best = min(range(3), key=lambda place: merged[place].size)
            parts = [part for place, part in enumerate(parts) if place not in pairs[best]] + [merged[best]]
        # Pairs with the secret multiply the left half: it should be small.
        left, right = sorted(parts, key=lambda part: part.size)
        return self._join(leaves, left, right)

    def _join(self, leaves: tuple[_Part, ...], left: _Part, right: _Part) -> _Halves:
        from scipy.sparse import csr_array

        codes = self._columns[self.secret]
        pairs, position = np.unique(codes * left.size + left.position, return_inverse=True)
        shape = (len(pairs), right.size)
        matrix = csr_array((self.records.weights, (position.reshape(-1), right.position)), shape=shape)
        secrets, values = np.divmod(pairs, left.size)
        ends = np.searchsorted(secrets, np.arange(self.records.schema[self.secret].size + 1)).tolist()
        spans = tuple(slice(start, stop) for start, stop in pairwise(ends))
        return _Halves(leaves, left, right, values, matrix, spans)

    def _by_logarithms(self, leaves: Sequence[_Part], tables: Sequence[Array], evenly: Array) -> Array:
        """Return the same, each row up to a factor, where products are below the least double."""
        owner = np.eye(self.records.schema[self.secret].size)[:, self._columns[self.secret]]
        logs = np.zeros((len(self.records.codes), evenly.shape[1]))
        with np.errstate(divide="ignore"):
            for leaf, table in zip(leaves, tables, strict=True):
                logs += np.take(np.log(table), leaf.position, axis=0)
        most = np.maximum(logs.max(axis=0), evenly.max(axis=0))
        # A record that nothing explains stays at 0, without inf - inf.
        shift = np.where(np.isfinite(most), most, 0.0)
        return np.asarray((owner * self.records.weights) @ np.exp(logs - shift) + np.exp(evenly - shift))

    def _evenly(self, factors: Sequence[Factor], rows: int) -> Array:
        """Return the logarithm of the evenly spread records' part; in them all attributes are independent.

        No attribute is in two factors, so that each factor is averaged on its own.
        """
        size = self.records.schema[self.secret].size
        logs = np.full((size, rows), np.log(self.spread / size))
        with np.errstate(divide="ignore"):
            for factor in factors:
                logs += np.log(sum(weight * self._average(said) for weight, said in factor.terms()))
        return logs

    def _average(self, said: Spoken) -> Array:
        """Return the mean of a product over all values but the secret's, shape (values or 1, rows or 1)."""
        average = np.ones((1, 1))
        for name, likely in said.items():
            average = average * (likely if name == self.secret else likely.mean(axis=0, keepdims=True))
        return average


def _summands(factors: Sequence[Factor]) -> list[Sequence[Factor]]:
    """Return what is summed over: a single report that hides its attribute is one of each that it may be."""
    if len(factors) == 1 and (parts := factors[0].choices()):
        return [[Choice({name: part})] for name, part in parts.items()]
    return [factors]


def _least(tables: Sequence[Array]) -> Array:
    """Return the least product above 0 that each row can have; where it is large, nothing can be lost."""
    least = [np.min(table, axis=0, where=table > 0, initial=1.0) for table in tables]
    return np.asarray(np.prod(least, axis=0))


def _nothing(records: int) -> _Part:
    """Return the part of no attribute: all records have the same."""
    same = np.zeros(records, dtype=np.intp)
    return _Part(same, same[:1], lambda _, rows: np.ones((1, rows)))


def _leaf(columns: Columns, names: Sequence[str], place: int) -> _Part:
    """Return the distinct values of a factor's attributes."""
    example, position = _distinct(columns[names[0]])
    for name in names[1:]:
        example, position = _distinct(position * (int(columns[name].max()) + 1) + columns[name])
    chosen = {name: columns[name][example] for name in names}
    return _Part(position, example, lambda factors, _: factors[place].likely(chosen))


def _merge(first: _Part, second: _Part) -> _Part:
    """Return the distinct values of two parts together."""
    example, position = _distinct(first.position * second.size + second.position)
    here, there = first.position[example], second.position[example]

    def table(factors: Sequence[Factor], rows: int) -> Array:
        likely = np.take(first.table(factors, rows), here, axis=0)
        likely *= np.take(second.table(factors, rows), there, axis=0)
        return likely

    return _Part(position, example, table)


def _distinct(values: Positions) -> tuple[Positions, Positions]:
    """Return a place of each distinct value, and which one each place has."""
    _, example, position = np.unique(values, return_index=True, return_inverse=True)
    return example, position.reshape(-1)
