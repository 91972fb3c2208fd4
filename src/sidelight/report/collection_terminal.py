"""Estimates and advice as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table as Grid

from sidelight.advice.advice import MOST_VALUES, Advice
from sidelight.estimation.estimates import Comparison, Estimates
from sidelight.protocols.records import RecordReports
from sidelight.report.console import open_console
from sidelight.report.wording import weak_budgets

SIMULATED = "The noise came from a seed: a simulation, which protects nobody."
MOST_ROWS = 60
"""A terminal shows so many values; the rest is in the report and in JSON."""


def print_estimates(result: Estimates | Comparison) -> None:
    """Print every value's frequency with its interval, and what to know about them."""
    console = open_console()
    compared = isinstance(result, Comparison)
    found = result.estimates if isinstance(result, Comparison) else result
    grid = Grid(title="Estimated frequencies", title_justify="left")
    for title in ("attribute", "value", "frequency", "interval", *(("truth",) if compared else ())):
        grid.add_column(
            title, justify="left" if title in ("attribute", "value") else "right", overflow="fold"
        )
    rows = list(found)
    for row in rows[:MOST_ROWS]:
        cells = [row.attribute, row.value, f"{row.frequency:.4f}"]
        cells.append(f"{row.lower:.4f} to {row.upper:.4f}")
        if isinstance(result, Comparison):
            cells.append(f"{result.truth[row.attribute][found.schema[row.attribute].code(row.value)]:.4f}")
        grid.add_row(*cells)
    console.print(grid)
    if len(rows) > MOST_ROWS:
        console.print(f"- {len(rows) - MOST_ROWS} further values: see --report or --json.")
    if found.means:
        console.print(_means_grid(found, result.means if isinstance(result, Comparison) else {}))
    for note in notes(result):
        console.print(f"- {note}")


def _means_grid(found: Estimates, truth: Mapping[str, float]) -> Grid:
    grid = Grid(title="Means of the numbers that stand for the values", title_justify="left")
    for title in ("attribute", "mean", "standard error", "interval", *(("truth",) if truth else ())):
        grid.add_column(title, justify="left" if title == "attribute" else "right", overflow="fold")
    for item in found.means.values():
        interval = f"{item.lower:.5g} to {item.upper:.5g}"
        cells = [item.attribute, f"{item.mean:.5g}", f"{item.standard_error:.2g}", interval]
        grid.add_row(*cells, *([f"{truth[item.attribute]:.5g}"] if truth else []))
    return grid


def notes(result: Estimates | Comparison) -> list[str]:
    """Return the figures that a page shows as facts, and what a reader must know."""
    found = result.estimates if isinstance(result, Comparison) else result
    said = [
        f"{found.people} reports of {found.protocol!r}, at most {found.epsilon:.4g} nats for a whole record"
        f"{with_delta(found)}; estimator {found.estimator!r}.",
        f"Mean squared error to expect: {found.expected_error:.3g}.",
    ]
    if isinstance(result, Comparison):
        said.append(
            f"Measured against the truth: {result.error:.3g}; {result.covered:.0%} of the intervals hold it."
        )
    return said + readings(found)


def with_delta(found: Estimates) -> str:
    """Return the words for a budget that may fail; none for one that always holds."""
    return f", with delta {found.delta:.3g}" if found.delta else ""


def readings(found: Estimates) -> list[str]:
    """Return what a reader of the estimates must know."""
    whom = "the people who reported" if found.about == "collected" else "the population they came from"
    said = [
        f"Intervals hold the frequency among {whom} with {found.confidence:.0%} confidence, each by itself.",
        f"Standard errors and intervals are those of the unbiased estimates, whose mean squared error to "
        f"expect is {found.unbiased_error:.3g}.",
    ]
    if found.is_simulation:
        said.append(SIMULATED)
    return said


def collected_notes(collected: RecordReports) -> list[str]:
    """Return what whoever makes reports must know: values that are written as they are, a simulation."""
    said = []
    groups = collected.protocol.groups
    raw = [group.label for group in groups if not math.isfinite(group.randomiser.epsilon)]
    if raw:
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
    console = open_console()
    title = f"Mean squared error to expect: {advice.people} people, epsilon {advice.epsilon:g} a record"
    grid = Grid(title=title, title_justify="left")
    for name in ("protocol", "best estimator", "unbiased", "reported together"):
        grid.add_column(
            name, justify="right" if name in ("best estimator", "unbiased") else "left", overflow="fold"
        )
    for option in advice.options:
        together = ", ".join(" x ".join(group) for group in option.groups if len(group) > 1)
        grid.add_row(option.name, error(option.best_error), error(option.unbiased_error), together)
    console.print(grid)
    console.print(f"- Advised: {advice.advised.name}.")
    console.print(f"- Assumed: {advice.origin}.")
    for note in advice_notes(advice):
        console.print(f"- {note}")


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
