"""What binning asks of numbers, for many columns at once: their ends, quantiles and frequent values.

Reading a wide table waits for such questions most, so all columns share three scans. The first finds the ends
and fine quantiles. A value that fills a bin spans several fine quantiles, so few values need to be
counted, in the second scan; the third finds the quantiles of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

_FINER = 4
"""So many fine quantiles a bin: a value that fills one equals at least three of them, ..."""
_SPANNED = 3
_ROUGH = 10
"""... where there are at least so many records a fine quantile."""

Ask = Callable[[Sequence[str]], Sequence[Any]]
"""Return what SQL aggregates of a source give."""


@dataclass(frozen=True)
class Summary:
    """What is known of a column of numbers.

    Attributes:
        value: SQL for its numbers, as doubles.
        count: how many finite ones there are.
        ends: the least and the greatest finite one, None where there is none.
        reach: the same with infinite ones.
        cuts: the numbers that cut the finite ones into equally full bins, frequent values set apart.
        masses: the values that fill a bin or more, in order.
        following: for each of these the least number above it.
    """

    value: str
    count: int
    ends: tuple[float | None, float | None]
    reach: tuple[float, float]
    cuts: tuple[float, ...] = ()
    masses: tuple[float, ...] = ()
    following: dict[float, float | None] = field(default_factory=dict)

    @property
    def finite(self) -> str:
        """SQL for whether a number is finite."""
        return f"isfinite({self.value})"


def summarise(ask: Ask, values: Sequence[str], bins: int) -> list[Summary]:
    """Return the summaries of several columns, each given as SQL for its numbers."""
    found = _ends(ask, values, bins)
    counted = _masses(ask, [summary for summary, _ in found], [fine for _, fine in found], bins)
    return _set_apart(ask, counted, bins)


def _ends(ask: Ask, values: Sequence[str], bins: int) -> list[tuple[Summary, list[float]]]:
    steps = _steps(bins * _FINER)
    parts = []
    for value in values:
        finite = f"FILTER (WHERE isfinite({value}))"
        parts += [f"count(*) {finite}", f"min({value}) {finite}", f"max({value}) {finite}"]
        parts += [f"min({value})", f"max({value})", f"quantile_disc({value}, [{steps}]) {finite}"]
    figures = iter(ask(parts))
    found = []
    for value in values:
        count, low, high, least, most, fine = _next(figures, 6)
        cuts = tuple(float(cut) for cut in (fine or ())[_FINER - 1 :: _FINER])
        found.append((Summary(value, count, (low, high), (least, most), cuts), list(fine or ())))
    return found


def _masses(ask: Ask, summaries: Sequence[Summary], fine: Sequence[list[float]], bins: int) -> list[Summary]:
    candidates = [
        _candidates(summary, quantiles, bins) for summary, quantiles in zip(summaries, fine, strict=True)
    ]
    parts = [
        f"count(*) FILTER (WHERE {summary.value} = {candidate!r})"
        for summary, some in zip(summaries, candidates, strict=True)
        for candidate in some
    ]
    figures = iter(ask(parts))
    return [
        replace(summary, masses=tuple(mass for mass in some if next(figures) * bins >= summary.count))
        for summary, some in zip(summaries, candidates, strict=True)
    ]


def _candidates(summary: Summary, fine: Sequence[float], bins: int) -> list[float]:
    """Return, in order, the values that may fill a bin."""
    if summary.count < _ROUGH * _FINER * bins:
        return sorted({float(value) for value in (*fine, *summary.ends) if value is not None})
    ends = [end for end in summary.ends if end is not None]
    often = Counter(float(value) for value in (*fine, *ends))
    return sorted(value for value, times in often.items() if times >= _SPANNED)


def _set_apart(ask: Ask, summaries: Sequence[Summary], bins: int) -> list[Summary]:
    parts = []
    for summary in summaries:
        if summary.masses:
            listed = ", ".join(map(repr, summary.masses))
            others = f"FILTER (WHERE {summary.finite} AND {summary.value} NOT IN ({listed}))"
            parts.append(f"quantile_disc({summary.value}, [{_steps(bins)}]) {others}")
            parts += [
                f"min({summary.value}) FILTER (WHERE {summary.value} > {mass!r})" for mass in summary.masses
            ]
    figures = iter(ask(parts))
    found = []
    for summary in summaries:
        if not summary.masses:
            found.append(summary)
            continue
        cuts, *after = _next(figures, 1 + len(summary.masses))
        following = dict(zip(summary.masses, after, strict=True))
        found.append(replace(summary, cuts=tuple(float(cut) for cut in cuts or ()), following=following))
    return found


def _steps(bins: int) -> str:
    return ", ".join(repr(step / bins) for step in range(1, bins))


def _next(figures: Iterator[Any], count: int) -> list[Any]:
    return [next(figures) for _ in range(count)]
