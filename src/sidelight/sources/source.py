"""What a schema is found by: a few questions about columns that every kind of source can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sidelight.schema import Schema


class Source(Protocol):
    """Rows that can be asked about. NaN is missing, and dates and times count seconds since 1970."""

    @property
    def label(self) -> str:
        """What to call it in messages."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about how the rows were taken."""

    @property
    def columns(self) -> dict[str, str]:
        """Every column's name and the name of its type in DuckDB."""

    def profile(self, columns: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of rows and, for each column, its values and about how many are distinct."""

    def distinct(self, column: str) -> int:
        """Return exactly how many distinct values a column has."""

    def frequent(self, column: str, most: int) -> list[str]:
        """Return the labels of the `most` most frequent values; of equally frequent ones the first."""

    def dates(self, column: str) -> int:
        """Return how many values of a column of text are dates in ISO form."""

    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Be told which columns are to be cut into so many bins, before what is below is asked of them."""

    def ends(self, column: str) -> tuple[float | None, float | None]:
        """Return the least and the greatest finite number; None where there is none."""

    def masses(self, column: str) -> Sequence[float]:
        """Return, in order, the finite numbers that at least one in `bins` of them equals."""

    def quantiles(self, column: str) -> Sequence[float]:
        """Return the numbers that cut the finite ones, the masses set apart, into equally full bins."""

    def following(self, column: str, mass: float) -> float | None:
        """Return the least number above a mass."""

    def reach(self, column: str) -> tuple[float, float]:
        """Return the least and the greatest number, infinite ones among them."""

    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""
