"""Source: rows that can be asked about. Every kind of source answers the questions that lead to a schema.

What binning asks of numbers is asked for many columns at once: their ends, quantiles and frequent values.
Reading a wide table waits for such questions most, so all columns share three scans. The first finds the ends
and fine quantiles. A value that fills a bin spans several fine quantiles, so few values need to be counted,
in the second scan; the third finds the quantiles of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import pyarrow as pa

from sidelight.schema import Schema
from sidelight.sources.cells import Stated

_FINER = 4
"""Fine quantiles per bin: a value that fills a bin equals at least `_SPANNED` of them, ..."""
_SPANNED = 3
_ROUGH = 10
"""... if there are at least this many records per fine quantile."""

Ask = Callable[[Sequence[str]], Sequence[Any]]
"""Return what SQL aggregates give; number i is called vi in them, and fi where it is finite."""


@dataclass(frozen=True)
class Summary:
    """What is known of a column of numbers."""

    count: int  # how many finite numbers there are
    ends: tuple[float | None, float | None]  # the least and greatest finite number; None where there is none
    reach: tuple[float, float]  # the same with infinite numbers
    cuts: tuple[float, ...] = ()  # cut the finite numbers into equally full bins, frequent values set apart
    masses: tuple[float, ...] = ()  # the values that fill a bin or more, in order
    following: Mapping[float, float | None] = field(default_factory=dict)  # each with the least number above


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(ABC):
    """Rows that can be asked about. NaN is missing, and dates and times count seconds since 1970."""

    label: str  # what to call it in messages
    notes: tuple[str, ...] = ()  # what a reader must know about how the rows were taken
    _summaries: dict[str, Summary] = field(default_factory=dict, init=False, repr=False)

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

    def summary(self, column: str, bins: int) -> Summary:
        """Return what is needed to cut a column of numbers into `bins` bins."""
        self.foresee([column], bins)
        return self._summaries[column]

    @abstractmethod
    def foresee(self, columns: Sequence[str], bins: int) -> None:
        """Find out the summaries of columns of numbers that are not known yet, in few scans if possible."""

    @abstractmethod
    def complete(self, schema: Schema) -> int:
        """Return the number of rows that lack no value whose absence drops its record."""

    @abstractmethod
    def reader(self, select: str, rest: str = "") -> pa.RecordBatchReader:
        """Return a reader of the rows of `SELECT select FROM source rest`, in DuckDB's SQL."""


def summarise(ask: Ask, columns: int, bins: int) -> list[Summary]:
    """Return the summaries of several columns of numbers."""
    parts = []
    for i in range(columns):
        parts += [f"count(f{i})", f"min(f{i})", f"max(f{i})", f"min(v{i})", f"max(v{i})"]
        parts.append(f"quantile_disc(f{i}, [{_steps(bins * _FINER)}])")
    figures = iter(ask(parts))
    summaries, candidates = [], []
    for _ in range(columns):
        count, low, high, least, most, fine = islice(figures, 6)
        cuts = _floats((fine or ())[_FINER - 1 :: _FINER])
        summaries.append(Summary(count, (low, high), (least, most), cuts))
        candidates.append(_candidates(summaries[-1], fine or (), bins))
    return _set_apart(ask, _with_masses(ask, summaries, candidates, bins), bins)


def _candidates(summary: Summary, fine: Sequence[float], bins: int) -> list[float]:
    """Return, in order, the values that may fill a bin."""
    often = Counter(_floats(value for value in (*fine, *summary.ends) if value is not None))
    is_rough = summary.count < _ROUGH * _FINER * bins  # too few records for quantiles to tell
    return sorted(value for value, times in often.items() if is_rough or times >= _SPANNED)


def _with_masses(
    ask: Ask, summaries: Sequence[Summary], candidates: Sequence[Sequence[float]], bins: int
) -> list[Summary]:
    """Count the candidates and keep those that fill a bin."""
    numbers = [(i, value) for i, some in enumerate(candidates) for value in some]
    figures = iter(ask([f"count(*) FILTER (WHERE v{i} = {value!r})" for i, value in numbers]))
    return [
        replace(summary, masses=tuple(value for value in some if next(figures) * bins >= summary.count))
        for summary, some in zip(summaries, candidates, strict=True)
    ]


def _set_apart(ask: Ask, summaries: Sequence[Summary], bins: int) -> list[Summary]:
    """Cut the other numbers of the columns that have masses into equally full bins."""
    parts = []
    for i, summary in enumerate(summaries):
        if summary.masses:
            others = f"FILTER (WHERE f{i} NOT IN ({', '.join(map(repr, summary.masses))}))"
            parts.append(f"quantile_disc(f{i}, [{_steps(bins)}]) {others}")
            parts += [f"min(v{i}) FILTER (WHERE v{i} > {mass!r})" for mass in summary.masses]
    figures = iter(ask(parts))
    parted = []
    for summary in summaries:
        cuts = _floats(next(figures) or ()) if summary.masses else summary.cuts
        parted.append(replace(summary, cuts=cuts, following={mass: next(figures) for mass in summary.masses}))
    return parted


def _steps(bins: int) -> str:
    return ", ".join(repr(step / bins) for step in range(1, bins))


def _floats(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
