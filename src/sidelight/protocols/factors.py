"""Factors: what a part of a report says about the record it was made from.

A report is a few independent parts. What a part says is a function of the record: of one attribute, of a
group of attributes that was reported as one value, or, where a protocol hides which attribute it reported, a
sum over those it may have been. Each such function is a factor: it can be read off at given records, and it
is a sum of products of functions of single attributes, which is what message passing in a tree wants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array, Positions
from sidelight.schema import Schema

Columns = Mapping[str, Positions]
"""The codes of some records, by attribute."""
Spoken = Mapping[str, Array]
"""What is said about single attributes: up to a factor for each row, shape (values, rows)."""
Term = tuple[float, Spoken]
"""A weight and a product over attributes."""


class Factor(ABC):
    """What one part of a report says, for several people at once (rows)."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The attributes that it is about."""

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

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it may be about."""
        return tuple(self.parts)

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
    """A report of a group as one value: it favours some cells of the product domain.

    Attributes:
        group: the attributes.
        sizes: their numbers of values.
        favoured: (width, rows) the cells that each report favours.
        baseline: the likelihood of any other cell over that of a favoured one.
    """

    group: tuple[str, ...]
    sizes: tuple[int, ...]
    favoured: Positions
    baseline: float

    @property
    def names(self) -> tuple[str, ...]:
        """The group."""
        return self.group

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        table = np.full((int(np.prod(self.sizes)), self.favoured.shape[1]), self.baseline)
        np.put_along_axis(table, self.favoured, 1.0, axis=0)
        return table[np.ravel_multi_index(tuple(columns[name] for name in self.names), self.sizes)]

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

    schema: Schema
    table: Array

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes."""
        return self.schema.names

    def likely(self, columns: Columns) -> Array:
        """Return the likelihoods at records, see `Factor`."""
        return self.table[
            np.ravel_multi_index(tuple(columns[name] for name in self.names), self.schema.sizes)
        ]

    def terms(self) -> list[Term]:
        """Return one term for each record: its likelihood where every attribute has its value."""
        names, sizes = self.schema.names, self.schema.sizes
        terms: list[Term] = []
        for codes, likely in zip(np.ndindex(*sizes), self.table, strict=True):
            each = zip(names, sizes, codes, strict=True)
            said = {name: np.eye(size)[:, [code]] for name, size, code in each}
            terms.append((1.0, said | {names[0]: said[names[0]] * likely}))
        return terms
