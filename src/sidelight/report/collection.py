"""A collection: estimates with intervals, beside the truth where it is at hand, and advice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from rich.console import RenderableType

from sidelight.advice.advice import MOST_VALUES, Advice
from sidelight.estimation.estimates import Comparison, Estimate, Estimates
from sidelight.estimation.usefulness import RIGHT_TO
from sidelight.protocols.records import RecordReports
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, plotted
from sidelight.report.style import Trace, axis, finite, log_ticks, places, scatter, whiskers
from sidelight.report.wording import labels, paragraph, short_value, weak_budgets

MOST_DRAWN = 1000
"""A figure draws so many values; the table has all of them."""


@singledispatch
def with_truth(result: Any) -> tuple[Estimates, Comparison | None]:
    """Return the estimates, and their comparison with the truth where the result is one."""
    return result, None


@with_truth.register
def _(result: Comparison) -> tuple[Estimates, Comparison | None]:
    return result.estimates, result


def estimates_page(result: Estimates | Comparison) -> Page:
    """Return the page of estimates, beside the truth where it is at hand."""
    estimates, compared = with_truth(result)
    rows = list(estimates)
    truth = _truth(estimates, compared)
    said = [*estimates.guessing.notes(), RIGHT_TO, *readings(estimates)]
    words = {"notes": said, "error": error, "delta": with_delta(estimates), "use": estimates.guessing}
    table = {"rows": list(zip(rows, truth, strict=True)), "drawn": min(len(rows), MOST_DRAWN)}
    context = {"estimates": estimates, "compared": compared, **table, **words}
    title = f"Sidelight estimates from {estimates.people} reports"
    figures = {"frequencies": frequencies_figure(rows[:MOST_DRAWN], truth[:MOST_DRAWN])}
    return Page(title, "collection.html.j2", context, figures)


def _truth(estimates: Estimates, compared: Comparison | None) -> list[float | None]:
    """Return the true frequency of every value in the order of the estimates; None where it is unknown."""
    if compared is None:
        return [None] * sum(estimates.schema.sizes)
    return [float(value) for name in estimates.schema.names for value in compared.truth[name]]


def frequencies_figure(rows: list[Estimate], truth: list[float | None]) -> Figure:
    """Draw each value's frequency with its interval, and the truth as a mark of its own."""
    lines = list(range(len(rows)))
    hover = [
        paragraph(
            f"{row.attribute}: {row.value}",
            f"estimated {row.frequency:.4f}",
            f"interval {row.lower:.4f} to {row.upper:.4f}",
            "" if value is None else f"true {value:.4f}",
        )
        for row, value in zip(rows, truth, strict=True)
    ]
    shares, dot = [row.frequency for row in rows], {"color": "@series-1", "size": 8}
    ends = whiskers(
        shares, [(row.lower, row.upper) for row in rows], color="@series-1", thickness=1.2, width=3
    )
    data = [scatter("markers", shares, lines, marker=dot, error_x=ends, hovers=hover)]
    if any(value is not None for value in truth):
        cross = {"symbol": "x-thin", "size": 9, "line": {"color": "@series-2", "width": 2}}
        data.append(scatter("markers", truth, lines, marker=cross, hovers=hover))
    said = "Each value's estimated frequency with its interval."
    names = [short_value(row.attribute, row.value) for row in rows]
    return _listed(data, said, names, 70 + 20 * len(rows), axis("frequency", rangemode="tozero"))


def _listed(data: list[Trace], said: str, names: list[str], height: int, across: Trace) -> Figure:
    """Return a figure with one line for each name; on a phone it fits where the names are short."""
    shown = labels(names, 32)
    down = axis("", autorange="reversed", **places(shown), showgrid=False)
    longest = max((min(len(name), 36) for name in shown), default=0)
    description = f"{said} The same figures are in the table below."
    return plotted(data, description, height, across, down, min_width=180 + 7 * longest)


def advice_page(advice: Advice) -> Page:
    """Return the page of advice."""
    undrawn = [option.name for option in advice.options if finite(option.error) is None]
    words = {"notes": advice_notes(advice), "undrawn": undrawn, "error": error}
    context = {"advice": advice, "use": advice.usefulness, **words}
    title = f"Sidelight advice for {advice.people} people"
    return Page(title, "advice.html.j2", context, {"errors": errors_figure(advice)})


def errors_figure(advice: Advice) -> Figure:
    """Draw the error to expect of each protocol, on a logarithmic axis."""
    options = [option for option in advice.options if finite(option.error) is not None]
    lines = list(range(len(options)))
    unbiased = [finite(option.unbiased_error) for option in options]
    best = [None if option.best_error is None else finite(option.best_error) for option in options]
    diamond = {"color": "@muted", "size": 9, "symbol": "diamond-open"}
    marked = ((unbiased, diamond), (best, {"color": "@series-1", "size": 10}))
    data = [scatter("markers", errors, lines, marker=mark, hoverinfo="x") for errors, mark in marked]
    shown = [value for option in options for value in (option.error, option.unbiased_error) if value > 0]
    across = axis("error to expect (logarithmic)", **log_ticks(shown, 6))
    names = [option.name for option in options]
    return _listed(data, "The error to expect of each protocol.", names, 90 + 28 * len(options), across)


SIMULATED = "The noise came from a seed: a simulation, which protects nobody."
MOST_ROWS = 60
"""A terminal shows so many values; the rest is in the report and in JSON."""


def print_estimates(result: Estimates | Comparison) -> None:
    """Print every value's frequency with its interval, and what to know about them."""
    estimates, compared = with_truth(result)
    rows = list(estimates)
    cells = [
        (row.attribute, row.value, f"{row.frequency:.4f}", f"{row.lower:.4f} to {row.upper:.4f}")
        + (() if value is None else (f"{value:.4f}",))
        for row, value in list(zip(rows, _truth(estimates, compared), strict=True))[:MOST_ROWS]
    ]
    truth = ("truth",) if compared else ()
    columns = ("attribute", "value", "frequency", "interval", *truth)
    parts: list[RenderableType] = [table_of("Estimated frequencies", columns, cells, left=columns[:2])]
    if len(rows) > MOST_ROWS:
        parts.append(f"- {len(rows) - MOST_ROWS} further values: see --report or --json.")
    if estimates.means:
        columns = ("attribute", "mean", "standard error", "interval", *truth)
        title = "Means of the numbers that stand for the values"
        parts.append(table_of(title, columns, _means(estimates, compared), left=("attribute",)))
    print_parts([estimates.guessing.headline(), *parts], notes(result))


def _means(estimates: Estimates, compared: Comparison | None) -> Iterator[list[str]]:
    for item in estimates.means.values():
        interval = f"{item.lower:.5g} to {item.upper:.5g}"
        truth = [] if compared is None else [f"{compared.means[item.attribute]:.5g}"]
        yield [item.attribute, f"{item.mean:.5g}", f"{item.standard_error:.2g}", interval, *truth]


def notes(result: Estimates | Comparison) -> list[str]:
    """Return the figures that a page shows as facts, and what a reader must know."""
    estimates, compared = with_truth(result)
    said = [
        *estimates.guessing.notes()[1:],
        f"{estimates.people} reports of {estimates.protocol!r}, at most {estimates.epsilon:.4g} nats for a "
        f"whole record{with_delta(estimates)}; estimator {estimates.estimator!r}.",
        f"Mean squared error to expect: {estimates.expected_error:.3g}.",
    ]
    if compared is not None:
        held = f"{compared.covered:.0%} of the intervals hold it"
        said.append(f"Measured against the truth: {compared.error:.3g}; {held}.")
    return [*said, RIGHT_TO, *readings(estimates)]


def with_delta(estimates: Estimates) -> str:
    """Return the words for a budget that may fail; none for one that always holds."""
    return f", with delta {estimates.delta:.3g}" if estimates.delta else ""


def readings(estimates: Estimates) -> list[str]:
    """Return what a reader of the estimates must know."""
    whom = "the people who reported" if estimates.about == "collected" else "the population they came from"
    said = [
        f"Intervals hold the frequency among {whom} with {estimates.confidence:.0%} confidence, each by "
        "itself.",
        f"Standard errors and intervals are those of the unbiased estimates, whose mean squared error to "
        f"expect is {estimates.unbiased_error:.3g}.",
    ]
    if estimates.is_simulation:
        said.append(SIMULATED)
    return said


def collected_notes(collected: RecordReports) -> list[str]:
    """Return what whoever makes reports must know: values that are written as they are, a simulation."""
    said, groups = [], collected.protocol.groups
    if raw := [group.label for group in groups if not math.isfinite(group.randomiser.epsilon)]:
        said.append(
            f"Warning: the raw values of {', '.join(raw)} are written as they are. Nothing protects them: "
            "treat the reports like the data."
        )
    said += weak_budgets({"a record": collected.protocol.epsilon})
    if collected.is_simulation:
        said.append(SIMULATED)
    return said


def print_advice(advice: Advice) -> None:
    """Print the protocols in order of the error to expect."""
    title = f"Mean squared error to expect: {advice.people} people, epsilon {advice.epsilon:g} a record"
    columns = ("protocol", "best estimator", "unbiased", "reported together")
    grid = table_of(title, columns, left=("protocol", "reported together"))
    for option in advice.options:
        together = ", ".join(" x ".join(group) for group in option.groups if len(group) > 1)
        grid.add_row(option.name, error(option.best_error), error(option.unbiased_error), together)
    chosen = (f"Advised: {advice.advised.name}.", f"Assumed: {advice.origin}.")
    first, *use = advice.prospect.notes()
    print_parts([first, grid], [*chosen, *use, *advice_notes(advice)])


def advice_notes(advice: Advice) -> list[str]:
    """Return what a reader of the advice must know."""
    said = ["The error is about the people who report; that not all are asked everything counts."]
    if not advice.compares_fakes:
        said.append(
            f"Protocols that hide their choice are compared up to {MOST_VALUES} values of all attributes "
            "together; here are more."
        )
    return [*said, *weak_budgets({"a record": advice.epsilon}), *advice.notes]


def error(value: float | None) -> str:
    """Write an error for people.

    >>> error(0.00123), error(None), error(math.inf)
    ('1.23e-03', '', 'not determined')
    """
    if value is None:
        return ""
    return f"{value:.2e}" if math.isfinite(value) else "not determined"
