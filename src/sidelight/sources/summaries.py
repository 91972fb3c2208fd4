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
"""Return what SQL aggregates give; number i is called vi in them, and fi where it is finite."""


@dataclass(frozen=True)
class Summary:
    """What is known of a column of numbers.

    Attributes:
        place: its place among the columns that are asked about together.
        count: how many finite ones there are.
        ends: the least and the greatest finite one, None where there is none.
        reach: the same with infinite ones.
        cuts: the numbers that cut the finite ones into equally full bins, frequent values set apart.
        masses: the values that fill a bin or more, in order.
        following: for each of these the least number above it.
    """

    place: int
    count: int
    ends: tuple[float | None, float | None]
    reach: tuple[float, float]
    cuts: tuple[float, ...] = ()
    masses: tuple[float, ...] = ()
    following: dict[float, float | None] = field(default_factory=dict)


def summarise(ask: Ask, columns: int, bins: int) -> list[Summary]:
    """Return the summaries of so many columns."""
    found = _ends(ask, columns, bins)
    counted = _masses(ask, [summary for summary, _ in found], [fine for _, fine in found], bins)
    return _set_apart(ask, counted, bins)


def _ends(ask: Ask, columns: int, bins: int) -> list[tuple[Summary, list[float]]]:
    steps = _steps(bins * _FINER)
    parts = []
    for i in range(columns):
        parts += [f"count(f{i})", f"min(f{i})", f"max(f{i})", f"min(v{i})", f"max(v{i})"]
        parts.append(f"quantile_disc(f{i}, [{steps}])")
    figures = iter(ask(parts))
    found = []
    for place in range(columns):
        count, low, high, least, most, fine = _next(figures, 6)
        cuts = tuple(float(cut) for cut in (fine or ())[_FINER - 1 :: _FINER])
        found.append((Summary(place, count, (low, high), (least, most), cuts), list(fine or ())))
    return found


def _masses(ask: Ask, summaries: Sequence[Summary], fine: Sequence[list[float]], bins: int) -> list[Summary]:
    candidates = [
        _candidates(summary, quantiles, bins) for summary, quantiles in zip(summaries, fine, strict=True)
    ]
    parts = [
        f"count(*) FILTER (WHERE v{summary.place} = {candidate!r})"
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
            others = f"FILTER (WHERE f{summary.place} NOT IN ({listed}))"
            parts.append(f"quantile_disc(f{summary.place}, [{_steps(bins)}]) {others}")
            above = "min(v{0}) FILTER (WHERE v{0} > {1!r})"
            parts += [above.format(summary.place, mass) for mass in summary.masses]
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
