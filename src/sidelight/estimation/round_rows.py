"""Rows of estimates over time: the level of a round, a change, the mean over rounds, who reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.schema import Attribute

Row = TypeVar("Row", "Level", "Change", "OverRounds")


@dataclass(frozen=True)
class Level:
    """The frequency of a value in a round, unbiased, with its standard error and interval.

    `truth` is what it was, None where that is not known.
    """

    attribute: str
    value: str
    round: int
    frequency: float
    standard_error: float
    lower: float
    upper: float
    truth: float | None = None


@dataclass(frozen=True)
class Change:
    """How much more frequent a value is in a later round than in an earlier one, with its interval.

    `truth` is how much it really is, None where that is not known.
    """

    attribute: str
    value: str
    first: int
    last: int
    change: float
    standard_error: float
    lower: float
    upper: float
    truth: float | None = None

    @property
    def is_seen(self) -> bool:
        """Whether the interval excludes that nothing changed."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True)
class OverRounds:
    """The frequency of a value in the mean over all reports.

    `floor` is the part of its standard error that more reports of the same people in the same epochs would
    not remove: the noise of the responses that they keep.
    """

    attribute: str
    value: str
    frequency: float
    standard_error: float
    floor: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Turnout:
    """Who reported in a round.

    `stayed` are those who had reported in the round before, None where that is not known.
    """

    round: int
    people: int
    stayed: int | None


def rows_of(
    made: type[Row], attribute: Attribute, given: tuple[int, ...], columns: Iterable[Array]
) -> Iterator[Row]:
    """Return one row for each value of an attribute, from columns of figures."""
    figures = np.array(list(columns)).T.tolist()
    for value, row in zip(attribute.values, figures, strict=True):
        yield made(attribute.name, value, *given, *row)


def plain(row: Level | Change) -> dict[str, Any]:
    """Return a row as plain data, without a truth that is not known."""
    return {name: value for name, value in vars(row).items() if (name, value) != ("truth", None)}


def are_covered(rows: Iterable[Level | Change]) -> float:
    """Return how many of the intervals hold the truth, as a share of those whose truth is known."""
    return float(np.mean([r.lower <= r.truth <= r.upper for r in rows if r.truth is not None]))
