"""The pages of a collection: estimates with intervals, beside the truth where it is at hand, and advice."""

from __future__ import annotations

from typing import Any

from sidelight.advice.advice import Advice
from sidelight.estimation.estimates import Comparison, Estimate, Estimates
from sidelight.report.collection_terminal import advice_notes, error, readings, with_delta
from sidelight.report.page import Figure, Page
from sidelight.report.style import Trace, axis, finite, layout, log_ticks
from sidelight.report.wording import labels, paragraph, short_value

MOST_DRAWN = 1000
"""A figure draws so many values; the table has all of them."""


def estimates_page(found: Estimates) -> Page:
    """Return the page of estimates."""
    return _page(found, None)


def comparison_page(result: Comparison) -> Page:
    """Return the page of estimates beside the truth."""
    return _page(result.estimates, result)


def _page(found: Estimates, compared: Comparison | None) -> Page:
    rows = list(found)
    truth = _truth(found, compared)
    context = {
        "found": found,
        "rows": [
            (row, value, _is_first(rows, place))
            for place, (row, value) in enumerate(zip(rows, truth, strict=True))
        ],
        "compared": compared,
        "notes": readings(found),
        "drawn": min(len(rows), MOST_DRAWN),
        "error": error,
        "delta": with_delta(found),
        "sections": {"summary": "Summary", "figure": "At a glance", "table": "All frequencies"}
        | ({"means": "Means"} if found.means else {}),
    }
    title = f"Sidelight estimates from {found.people} reports"
    figures = {"frequencies": frequencies_figure(rows[:MOST_DRAWN], truth[:MOST_DRAWN])}
    return Page(title, "collection.html.j2", context, figures)


def _is_first(rows: list[Estimate], place: int) -> bool:
    return place == 0 or rows[place].attribute != rows[place - 1].attribute


def _truth(found: Estimates, compared: Comparison | None) -> list[float | None]:
    if compared is None:
        return [None] * sum(found.schema.sizes)
    return [float(value) for name in found.schema.names for value in compared.truth[name]]


def frequencies_figure(rows: list[Estimate], truth: list[float | None]) -> Figure:
    """Draw each value's frequency with its interval, and the truth as a mark of its own."""
    places = list(range(len(rows)))
    hover = [
        paragraph(
            f"{row.attribute}: {row.value}",
            f"estimated {row.frequency:.4f}",
            f"interval {row.lower:.4f} to {row.upper:.4f}",
            "" if value is None else f"true {value:.4f}",
        )
        for row, value in zip(rows, truth, strict=True)
    ]
    data: list[Trace] = [
        {
            "type": "scatter", "mode": "markers", "y": places, "x": [row.frequency for row in rows],
            "marker": {"color": "@series-1", "size": 8}, "hoverinfo": "text", "hovertext": hover,
            "error_x": {
                "type": "data", "symmetric": False, "color": "@series-1", "thickness": 1.2, "width": 3,
                "array": [max(row.upper - row.frequency, 0.0) for row in rows],
                "arrayminus": [max(row.frequency - row.lower, 0.0) for row in rows],
            },
        }
    ]  # fmt: skip
    if any(value is not None for value in truth):
        data.append(
            {
                "type": "scatter", "mode": "markers", "y": places, "x": truth, "hoverinfo": "text",
                "hovertext": hover,
                "marker": {"symbol": "x-thin", "size": 9, "line": {"color": "@series-2", "width": 2}},
            }
        )  # fmt: skip
    return _listed(
        data,
        [short_value(row.attribute, row.value) for row in rows],
        70 + 20 * len(rows),
        axis("frequency", rangemode="tozero"),
        "Each value's estimated frequency with its interval. The same figures are in the table below.",
    )


def _listed(
    data: list[Trace], names: list[str], height: int, across: dict[str, Any], description: str
) -> Figure:
    """Return a figure with one line for each name; on a phone it fits where the names are short."""
    shown = labels(names, 32)
    down = axis(
        "", autorange="reversed", tickmode="array", tickvals=list(range(len(names))), ticktext=shown,
        showgrid=False,
    )  # fmt: skip
    longest = max((min(len(name), 36) for name in shown), default=0)
    return Figure(
        data, layout(height=height, xaxis=across, yaxis=down), description, min_width=180 + 7 * longest
    )


def advice_page(advice: Advice) -> Page:
    """Return the page of advice."""
    context = {
        "advice": advice,
        "notes": advice_notes(advice),
        "undrawn": [option.name for option in advice.options if finite(option.error) is None],
        "error": error,
        "sections": {"summary": "Advice", "figure": "At a glance", "table": "All protocols"},
    }
    title = f"Sidelight advice for {advice.people} people"
    return Page(title, "advice.html.j2", context, {"errors": errors_figure(advice)})


def errors_figure(advice: Advice) -> Figure:
    """Draw the error to expect of each protocol, on a logarithmic axis."""
    options = [option for option in advice.options if finite(option.error) is not None]
    places = list(range(len(options)))
    data: list[Trace] = [
        {
            "type": "scatter", "mode": "markers", "y": places,
            "x": [finite(option.unbiased_error) for option in options],
            "marker": {"color": "@muted", "size": 9, "symbol": "diamond-open"}, "hoverinfo": "x",
        },
        {
            "type": "scatter", "mode": "markers", "y": places,
            "x": [None if option.best_error is None else finite(option.best_error) for option in options],
            "marker": {"color": "@series-1", "size": 10}, "hoverinfo": "x",
        },
    ]  # fmt: skip
    shown = [value for option in options for value in (option.error, option.unbiased_error) if value > 0]
    return _listed(
        data,
        [option.name for option in options],
        90 + 28 * len(options),
        axis("error to expect (logarithmic)", **log_ticks(shown, 6)),
        "The error to expect of each protocol. The same figures are in the table below.",
    )
