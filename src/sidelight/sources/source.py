"""Source: rows that can be asked about. Every kind of source answers the questions that lead to a schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from sidelight.schema import Schema
from sidelight.sources.cells import Stated
from sidelight.sources.summaries import Summary


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(ABC):
    """Rows that can be asked about. NaN is missing, and dates and times count seconds since 1970.

    Attributes:
        label: what to call it in messages.
        notes: what a reader must know about how the rows were taken.
    """

    label: str
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def columns(self) -> dict[str, str]:
        """Every column's name and the name of its type in DuckDB."""

    @abstractmethod
    def prepared(self, columns: Sequence[str], stated: Stated) -> Self:
        """Return the named columns with text parsed, read only once if scans would be slow."""

    @abstractmethod
    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""

    @abstractmethod
    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""

    @abstractmethod
    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; ties go to the smaller value."""

    @abstractmethod
    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""

    @abstractmethod
    def summary(self, column: str, bins: int) -> Summary:
        """Return what is needed to cut a column of numbers into `bins` bins."""

    @abstractmethod
    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""

    @abstractmethod
    def reader(self, select: str, rest: str = "") -> pa.RecordBatchReader:
        """Return a reader of the rows of `SELECT select FROM source rest`, in DuckDB's SQL."""

    def foresee(self, columns: Sequence[str], bins: int) -> None:  # noqa: B027 - most sources gain nothing
        """Be told whose summaries will be asked for, where one scan can answer for several columns."""
