"""Estimates over the rounds of a panel: lines with bands, changes, and the mean over all rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType

from sidelight.estimation.round_estimates import RoundEstimates
from sidelight.estimation.round_rows import Change, Level, are_covered
from sidelight.report.collection import SIMULATED
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, Section, plotted, sections_page
from sidelight.report.style import LEGEND, SERIES, Trace, axis, scatter
from sidelight.report.wording import label, paragraph

MOST_LINES = len(SERIES)
"""A figure draws so many values, the most frequent; the tables have all."""
MOST_FIGURES = 24
MOST_ROWS = 60
"""A terminal shows so many rows; the rest is in the report and in JSON."""
_DIVIDED = {"none": "nothing", "people": "the people", "budget": "each person's budget"}
LEVELS = ("attribute", "value", "round", "frequency", "standard error", "interval")
CHANGES = ("attribute", "value", "from round", "to round", "change", "standard error", "interval")
SEEN = "seen"
TRUTH = "truth"
MEANS = ("attribute", "value", "frequency", "standard error", "interval", "floor")


def headline(result: RoundEstimates) -> str:
    """Return the main finding in a sentence."""
    changes = list(result.changes())
    names = list(dict.fromkeys(item.attribute for item in changes if item.is_seen))
    seen = sum(item.is_seen for item in changes)
    chance = round((1 - result.confidence) * len(changes), 1)
    rounds = f"{len(result.numbers)} rounds"
    if not seen:
        return f"No change is seen in {rounds}: every interval of a change holds 0."
    what = f"{seen} of {len(changes)} changes are seen in {rounds}"
    if seen <= chance:
        return f"{what}, no more than the {chance:g} that chance alone would show."
    return f"{what}, of {', '.join(names[:5])}; chance alone would show about {chance:g}."


def round_estimates_page(result: RoundEstimates) -> Page:
    """Return the page of estimates over time."""
    sections = {"rounds": _turnout_section(result)}
    for place, attribute in enumerate(list(result.schema)[:MOST_FIGURES]):
        levels = list(result.levels(attribute.name))
        sections[f"attribute-{place}"] = Section(
            f"{attribute.name} over the rounds", _lines_prose(attribute.size), lines_figure(levels)
        )
    figures = ("change", "standard error")
    sections["changes"] = Section(
        "Changes",
        "How much more frequent a value is in a later round than in an earlier one. Errors take into account "
        "what the reports of people who stayed have in common.",
        columns=_columns(result, (*CHANGES, SEEN)), rows=[change_cells(item) for item in result.changes()],
        numbers=figures,
    )  # fmt: skip
    sections["means"] = Section(
        "Over all rounds",
        "The mean over all reports. The floor is the part of the standard error that more rounds of the same "
        "people would not remove: the noise of the responses that they keep.",
        columns=MEANS, rows=list(_mean_cells(result)), numbers=("frequency", "standard error", "floor"),
    )  # fmt: skip
    sections["levels"] = Section(
        "All levels", columns=_columns(result, LEVELS), rows=[level_cells(item) for item in result.levels()],
        numbers=("frequency", "standard error"),
    )  # fmt: skip
    return sections_page(f"Sidelight estimates of {len(result.numbers)} rounds", headline(result), sections)


def _lines_prose(size: int) -> str:
    said = "Lines are estimates, bands their intervals."
    if size > MOST_LINES:
        said += f" The {MOST_LINES} most frequent of {size} values are drawn; the table has all."
    return said


def _turnout_section(result: RoundEstimates) -> Section:
    rows = [
        [str(item.round), f"{item.people:,}", "" if item.stayed is None else f"{item.stayed:,}"]
        for item in result.turnout
    ]
    columns = ("round", "people", "of them in the round before")
    return Section("Who reported", " ".join(_said(result)), columns=columns, rows=rows, numbers=columns)


def _said(result: RoundEstimates) -> Iterator[str]:
    divided = _DIVIDED[result.panel.division]
    kept = ", ".join(result.panel.kept) or "none"
    yield f"The rounds divide {divided}; responses that are kept: {kept}."
    yield from result.notes
    if result.error is not None:
        yield (
            f"Beside the truth: mean squared error {result.error:.3g}; {are_covered(result.levels()):.1%} of "
            f"the intervals of levels hold it, and {are_covered(result.changes()):.1%} of those of changes."
        )
    if result.is_simulation:
        yield SIMULATED


def lines_figure(levels: Sequence[Level]) -> Figure:
    """Draw the frequencies of one attribute's values over the rounds, each with its band."""
    by_value = {
        value: list(items)
        for value, items in groupby(sorted(levels, key=lambda row: row.value), lambda row: row.value)
    }
    often = sorted(by_value, key=lambda value: -sum(row.frequency for row in by_value[value]))[:MOST_LINES]
    data: list[Trace] = []
    for value, colour in zip(often, SERIES, strict=False):
        data += _line(by_value[value], f"@{colour}")
    name = levels[0].attribute
    rounds = sorted({row.round for row in levels})
    across = axis("round", dtick=max(1, len(rounds) // 12), tick0=rounds[0])
    down = axis("frequency", rangemode="tozero")
    said = f"The frequency of each value of {name} in every round, with its interval. The same figures are in"
    return plotted(data, f"{said} the table below.", 320, across, down, headroom=36,
                   showlegend=True, legend=LEGEND)  # fmt: skip


def _line(rows: Sequence[Level], colour: str) -> list[Trace]:
    """Return the band and the line of one value."""
    rounds = [row.round for row in rows]
    ends = [row.upper for row in rows] + [row.lower for row in reversed(rows)]
    band = scatter(
        "lines", rounds + rounds[::-1], ends, fill="toself", fillcolor=colour, opacity=0.16,
        line={"width": 0}, hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    hover = [
        paragraph(
            f"{row.attribute}: {row.value}, round {row.round}",
            f"estimated {row.frequency:.4f}",
            f"interval {row.lower:.4f} to {row.upper:.4f}",
        )
        for row in rows
    ]
    look = {"line": {"color": colour, "width": 2}, "marker": {"color": colour, "size": 6}}
    shares = [row.frequency for row in rows]
    name = label(rows[0].value)
    return [band, scatter("lines+markers", rounds, shares, hovers=hover, name=name, **look)]


def level_cells(row: Level) -> list[str]:
    """Return a level's cells, in the order of `LEVELS`."""
    figures = [f"{row.frequency:.4f}", f"{row.standard_error:.4f}", f"{row.lower:.4f} to {row.upper:.4f}"]
    return [row.attribute, row.value, str(row.round), *figures, *_true(row.truth, ".4f")]


def change_cells(row: Change, *, is_seen_told: bool = True) -> list[str]:
    """Return a change's cells, in the order of `CHANGES`, and whether it is seen where not all are."""
    figures = [f"{row.change:+.4f}", f"{row.standard_error:.4f}", f"{row.lower:+.4f} to {row.upper:+.4f}"]
    seen = ["yes" if row.is_seen else "–"] if is_seen_told else []
    rounds = [str(row.first), str(row.last)]
    return [row.attribute, row.value, *rounds, *figures, *seen, *_true(row.truth, "+.4f")]


def _true(truth: float | None, form: str) -> list[str]:
    return [] if truth is None else [format(truth, form)]


def _columns(result: RoundEstimates, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, with the truth where it is known."""
    return names if result.truth is None else (*names, TRUTH)


def _mean_cells(result: RoundEstimates) -> Iterator[list[str]]:
    for row in result.means():
        figures = [f"{row.frequency:.4f}", f"{row.standard_error:.4f}", f"{row.lower:.4f} to {row.upper:.4f}"]
        yield [row.attribute, row.value, *figures, f"{row.floor:.4f}"]


def print_round_estimates(result: RoundEstimates) -> None:
    """Print the levels, the changes that are seen, the means, and what to know about them."""
    levels = [level_cells(item) for item in result.levels()]
    seen = [change_cells(item, is_seen_told=False) for item in result.changes() if item.is_seen]
    words = ("attribute", "value")
    parts: list[RenderableType] = [
        headline(result),
        table_of("Frequencies of each round", _columns(result, LEVELS), levels[:MOST_ROWS], left=words),
    ]
    if len(levels) > MOST_ROWS:
        parts.append(f"- {len(levels) - MOST_ROWS} further levels: see --report or --json.")
    if seen:
        parts.append(
            table_of("Changes that are seen", _columns(result, CHANGES), seen[:MOST_ROWS], left=words)
        )
    means = list(_mean_cells(result))[:MOST_ROWS]
    parts.append(table_of("Over all rounds", MEANS, means, left=words))
    print_parts(parts, _said(result))
