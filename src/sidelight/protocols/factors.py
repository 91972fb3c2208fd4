"""Factors: what a part of a report says about the record it was made from.

A report is a few independent parts. What a part says is a function of the record: of one attribute, of a
group of attributes that was reported as one value, or, where a protocol hides which attribute it reported, a
sum over those it may have been. Each such function is a factor: it can be read off at given records, and it
is a sum of products of functions of single attributes, which is what message passing in a tree wants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.mechanisms.exact import store

Columns = Mapping[str, Positions]
"""The codes of some records, by attribute."""
Spoken = Mapping[str, Array]
"""What is said about single attributes: up to a factor for each row, shape (values, rows)."""
Term = tuple[float, Spoken]
"""A weight and a product over attributes."""


class Factor(ABC):
    """What one part of a report says about some attributes, by `names`, for several people at once (rows)."""

    names: tuple[str, ...]

    @abstractmethod
    def likely(self, columns: Columns) -> Array:
        """Return the likelihood of each row's report under each record, shape (records, rows)."""

    @abstractmethod
    def terms(self) -> list[Term]:
        """Return the same as a sum of products."""

    def choices(self) -> Spoken:
        """Return what is said about single attributes, if their sum is the factor; empty where it is not."""
        return {}


@dataclass(frozen=True, eq=False)
class Choice(Factor):
    """A report of one attribute; of several where it is hidden which one it is, then their sum."""

    parts: Spoken
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        store(self, names=tuple(self.parts))

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        return np.asarray(sum(part[columns[name]] for name, part in self.parts.items()))

    def terms(self) -> list[Term]:
        """Return one term for each attribute that it may be."""
        return [(1.0, {name: part}) for name, part in self.parts.items()]

    def choices(self) -> Spoken:
        """Return the parts themselves."""
        return self.parts


@dataclass(frozen=True, eq=False)
class Cells(Factor):
    """A report of a group as one value: it favours some cells of the product domain, shape (width, rows).

    `baseline` is the likelihood of any other cell over that of a favoured one.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    favoured: Positions
    baseline: float

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        table = np.full((int(np.prod(self.sizes)), self.favoured.shape[1]), self.baseline)
        np.put_along_axis(table, self.favoured, 1.0, axis=0)
        return Whole(self.names, self.sizes, table).likely(columns)

    def terms(self) -> list[Term]:
        """Return the baseline, and what each favoured cell has above it: one value of every attribute."""
        terms: list[Term] = [(self.baseline, {})]
        for cells in self.favoured:
            codes = np.unravel_index(cells, self.sizes)
            each = zip(self.names, self.sizes, codes, strict=True)
            said = {name: (np.arange(size)[:, None] == code).astype(float) for name, size, code in each}
            terms.append((1 - self.baseline, said))
        return terms


@dataclass(frozen=True, eq=False)
class Whole(Factor):
    """A report of the whole record; the table holds its likelihoods, shape (records in C order, rows)."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    table: Array

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        return self.table[np.ravel_multi_index(tuple(columns[name] for name in self.names), self.sizes)]

    def terms(self) -> list[Term]:
        """Return one term for each record: its likelihood where every attribute has its value."""
        first, terms = self.names[0], list[Term]()
        for codes, likely in zip(np.ndindex(*self.sizes), self.table, strict=True):
            each = zip(self.names, self.sizes, codes, strict=True)
            said = {name: np.eye(size)[:, [code]] for name, size, code in each}
            terms.append((1.0, said | {first: said[first] * likely}))
        return terms
