"""A calibration as tables for a terminal."""

from __future__ import annotations

from rich.table import Table as Grid

from sidelight.calibration import Calibration
from sidelight.report.console import open_console
from sidelight.report.terminal import nats
from sidelight.report.wording import budget, error, weak_budgets
from sidelight.sources import Table


def print_calibration(result: Calibration, table: Table) -> None:
    """Print the budgets and errors before and after, the leakage against the limits, and what to know."""
    console = open_console()
    console.print(_budgets(result))
    console.print(_leakage(result))
    statement = "Computed from raw data: the budgets are themselves a statement about them."
    weak = weak_budgets({name: channel.epsilon for name, channel in result.plan.channels().items()})
    for note in [*result.notes(), *weak, *table.notes(), statement]:
        console.print(f"- {note}")


def _budgets(result: Calibration) -> Grid:
    grid = Grid(title="Budgets, and the error each buys", title_justify="left")
    grid.add_column("attribute", overflow="fold")
    grid.add_column("mechanism")
    for title in ("even split", "error", "one for all", "error", "chosen", "error"):
        grid.add_column(title, justify="right")
    for name in result.budgets:
        cells = [name, result.plan[name].mechanism]
        for setting in (result.even, result.uniform, result.chosen):
            cells += (
                ["none", ""]
                if setting is None
                else [budget(setting.budgets[name]), error(setting.errors[name])]
            )
        grid.add_row(*cells)
    weighted = [
        "" if setting is None else error(setting.weighted_error)
        for setting in (result.even, result.uniform, result.chosen)
    ]
    grid.add_section()
    grid.add_row("weighted", "", "", weighted[0], "", weighted[1], "", weighted[2])
    return grid


def _leakage(result: Calibration) -> Grid:
    grid = Grid(title="Leakage against the limits (nats)", title_justify="left")
    grid.add_column("secret", overflow="fold")
    for title in ("limit", "even split", "chosen"):
        grid.add_column(title, justify="right")
    grid.add_column("figure")
    for name, limit in result.limits.items():
        bound = result.chosen.bounds[name]
        before = "none" if result.even is None else nats(result.even.bounds[name].value)
        grid.add_row(name, nats(limit), before, nats(bound.value), f"{bound.kind} ({bound.method})")
    return grid
