"""The two benchmarks as tables for a terminal."""

from __future__ import annotations

from rich.table import Table as Grid

from sidelight.report.console import open_console
from sidelight.studies.benchmarks import AnalyserBenchmark, MechanismBenchmark

_REGIONS = {"P1": "exact", "R1": "only below", "R2": "only above", "R3": "both"}


def print_analysers(found: AnalyserBenchmark) -> None:
    """Print undershoot, overshoot and region of every analyser."""
    console = open_console()
    grid = Grid(title=f"Analysers against {found.reference}", title_justify="left")
    grid.add_column("analyser", overflow="fold")
    for title in ("epsilon", "undershoot", "overshoot"):
        grid.add_column(title, justify="right")
    grid.add_column("region")
    for point in found.points:
        low, high = f"{point.undershoot:.4f}", f"{point.overshoot:.4f}"
        words = f"{point.region} ({_REGIONS[point.region]})"
        grid.add_row(point.analyser, f"{point.epsilon:g}", low, high, words)
    console.print(grid)
    for name, reason in found.refused.items():
        console.print(f"- {name} was left out: {reason}")


def print_mechanisms(found: MechanismBenchmark) -> None:
    """Print leakage and errors of every mechanism."""
    console = open_console()
    grid = Grid(title=f"Mechanisms, {found.people:,} people", title_justify="left")
    grid.add_column("mechanism", overflow="fold")
    titles = ("epsilon", "leakage, whole report", "leakage, guess", "frequency error", "wrong guesses")
    for title in titles:
        grid.add_column(title, justify="right")
    for point in found.points:
        cells = (point.report, point.guess, point.frequency_error, point.wrong)
        grid.add_row(point.mechanism, f"{point.epsilon:g}", *map(_cell, cells))
    console.print(grid)
    console.print("- Leakage is TCPL as a share of that of the worst mechanism of the budget.")


def _cell(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
