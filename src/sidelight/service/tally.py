"""What a store keeps of a round: one row of whole numbers, to which those of new reports are added.

    row = people, reports of each part, sums of each part, counts of pairs

Counts of pairs are there where something is learnt from them: a second phase from the first, a model from
true values with randomised labels. Rows add up in any order, without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sidelight.estimation.second_phase import FirstSums
from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Aggregate
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports, RecordSums
from sidelight.service.canonical import digest_of
from sidelight.service.course import Pair, PairCounts
from sidelight.service.rounds import Round
from sidelight.service.task import Task

_CELL = np.dtype("<i8")


@dataclass(frozen=True, eq=False)
class Tally:
    """How the reports of a round are added up: by its protocol, with counts of pairs or without."""

    protocol: Protocol
    pairs: PairCounts | None = None

    @classmethod
    def of(cls, task: Task, round_: Round) -> Tally:
        """Return how a round of a task is added up."""
        return cls(round_.protocol, task.course.pairs(round_.number))

    @cached_property
    def _shapes(self) -> tuple[Aggregate, ...]:
        return self.protocol.nobody().aggregate().parts

    @cached_property
    def _pairs(self) -> Mapping[Pair, tuple[int, int]]:
        return {} if self.pairs is None else self.pairs.shapes

    @cached_property
    def size(self) -> int:
        """How many numbers the row has."""
        sums = sum(part.sums.size for part in self._shapes)
        return 1 + len(self._shapes) + sums + sum(math.prod(shape) for shape in self._pairs.values())

    def row(self, reports: RecordReports) -> Whole:
        """Return the row of some reports."""
        sums = reports.aggregate()
        heads = [sums.people, *(part.reports for part in sums.parts)]
        pairs = () if self.pairs is None else self.pairs.count(reports).values()
        cells = [*(part.sums for part in sums.parts), *pairs]
        return np.concatenate([np.array(heads, dtype=np.int64), *(cell.reshape(-1) for cell in cells)])

    def nothing(self) -> Whole:
        """Return the row of nobody."""
        return np.zeros(self.size, dtype=np.int64)

    def sums(self, row: Whole) -> RecordSums:
        """Return the sums that a row holds."""
        if row.shape != (self.size,):
            raise InputError(f"the sums of {self.protocol.name!r} have {row.size} cells, not {self.size}.")
        count, place, parts = len(self._shapes), 1 + len(self._shapes), []
        for reports, shape in zip(row[1 : 1 + count].tolist(), self._shapes, strict=True):
            cells = row[place : place + shape.sums.size].reshape(shape.sums.shape)
            parts.append(Aggregate(reports, cells.copy(), shape.mechanism))
            place += shape.sums.size
        return RecordSums(self.protocol, int(row[0]), tuple(parts))

    def first(self, row: Whole) -> FirstSums:
        """Return what the second phase is learnt from."""
        pairs, place = {}, self.size
        for key, shape in reversed(list(self._pairs.items())):
            place -= math.prod(shape)
            pairs[key] = row[place : place + math.prod(shape)].reshape(shape).copy()
        return FirstSums(self.sums(row), dict(reversed(pairs.items())))


def row_bytes(row: Whole) -> bytes:
    """Return a row as a store keeps it: little-endian, 8 bytes a number."""
    return row.astype(_CELL, copy=False).tobytes()


def row_from(content: bytes) -> Whole:
    """Return the row that `row_bytes` wrote."""
    return np.frombuffer(content, dtype=_CELL).astype(np.int64)


def add_rows(first: Whole, second: Whole) -> Whole:
    """Return the sum of two rows, or raise if 64 bits do not hold it."""
    total: Whole = first + second
    if np.any(((first ^ total) & (second ^ total)) < 0):
        raise InputError("the sums are more than 64 bits hold; close the round.")
    return total


def row_digest(row: Whole) -> str:
    """Return the digest of a round's sums, as the trail and later rounds state it."""
    return digest_of(row_bytes(row))
