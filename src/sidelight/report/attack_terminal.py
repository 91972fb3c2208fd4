"""An attack as a table for a terminal."""

from __future__ import annotations

from rich.table import Table as Grid

from sidelight.attacks.intervals import Interval
from sidelight.attacks.result import AttackComparison, AttackResult
from sidelight.report.console import open_console

_COLUMNS = (
    "attack",
    "measure",
    "attack's",
    "without a release",
    "release itself",
    "limit",
    "noise removed",
    "gain over control",
)


_LEAST_REMOVED = -10.0


def print_attack(comparison: AttackComparison) -> None:
    """Print every result beside its control, its baseline and the limit, and what to know about them."""
    console = open_console(180)
    grid = Grid(title=comparison.title, title_justify="left")
    for number, title in enumerate(_COLUMNS):
        grid.add_column(title, justify="left" if number < 2 else "right", overflow="fold")
    for name, result in comparison.results.items():
        grid.add_row(*_cells(name, result))
    console.print(grid)
    for said in _releases(comparison.results):
        console.print(f"- {said}")
    for note in comparison.notes:
        console.print(f"- {note}")
    for result in comparison.results.values():
        if result.warning:
            console.print(f"- Warning: {result.warning}")


def _releases(results: dict[str, AttackResult]) -> list[str]:
    """Say what was released: once where all attacks are on one release, else for each."""
    said = {name: f"{result.release}; {len(result.losses)} records." for name, result in results.items()}
    if len(set(said.values())) == 1:
        return [f"Release: {next(iter(said.values()))}"]
    return [f"Release of {name}: {text}" for name, text in said.items()]


def _cells(name: str, result: AttackResult) -> list[str]:
    removed = result.noise_removed
    return [
        name,
        result.measure,
        _interval(result.score),
        _interval(result.control),
        _interval(result.baseline),
        _interval(result.limit),
        removed_share(removed),
        _interval(result.gain),
    ]


def removed_share(removed: float | None) -> str:
    """Write the share of the noise that an attack removes; one that adds many times as much says no figure.

    >>> removed_share(0.7), removed_share(-0.25), removed_share(-3e6), removed_share(None)
    ('70.0%', '-25.0%', 'below -1000%', '')
    """
    if removed is None:
        return ""
    return f"{removed:.1%}" if removed >= _LEAST_REMOVED else f"below {_LEAST_REMOVED:.0%}"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{interval.value:.4f} ±{(interval.upper - interval.lower) / 2:.4f}"
