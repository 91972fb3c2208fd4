"""Which settings each figure of the paper shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.studies.collection.simulation import Setting
from sidelight.studies.collection.tables import REAL, is_available

BUDGETS = (1.0, 2.0, 3.0, 4.0, 5.0)
THREE_BUDGETS = (1.0, 3.0, 5.0)
CORRELATIONS = (0.1, 0.5, 0.9)
COUNTS = (2, 3, 4, 5, 6)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
SHARED_CORRELATION = 0.5
"""The paper does not print the correlation of its Figs. 11 and 12; this one is ours."""
RISING = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: its title, the meaning of its x-axis, and the settings along it."""

    title: str
    axis: str
    places: tuple[float, ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, or one of ours in its form."""

    number: str
    title: str
    panels: tuple[Panel, ...]


def all_figures() -> list[Figure]:
    """Return Figs. 4 to 14, with adult as a further panel, as far as the tables are there."""
    figures = [
        _by_budget("4", 2, 2),
        _by_budget("5", 2, 10),
        _by_budget("6", 4, 2),
        _by_budget("7", 4, 10),
        _by_count("8", 2, 0.1),
        _by_count("9", 2, 0.9),
        _by_count("10", 10, 0.5),
        _by_share("11", 2),
        _by_share("12", 4),
        _by_correlation("13", 6, 10),
    ]
    names = [name for name in REAL if is_available(name)]
    return [*figures, _by_table("14", names)] if names else figures


def _by_budget(number: str, attributes: int, values: int) -> Figure:
    panels = tuple(
        Panel(
            f"rho = {rho:g}", "epsilon", BUDGETS,
            tuple(Setting("star", attributes, values, rho, budget) for budget in BUDGETS),
        )
        for rho in CORRELATIONS
    )  # fmt: skip
    return Figure(number, f"{attributes} attributes of {values} values, against the budget", panels)


def _by_count(number: str, values: int, rho: float) -> Figure:
    panels = tuple(
        Panel(
            f"epsilon = {budget:g}", "attributes", COUNTS,
            tuple(Setting("star", count, values, rho, budget) for count in COUNTS),
        )
        for budget in THREE_BUDGETS
    )  # fmt: skip
    return Figure(number, f"{values} values, rho = {rho:g}, against the number of attributes", panels)


def _by_share(number: str, attributes: int) -> Figure:
    panels = tuple(
        Panel(
            f"epsilon = {budget:g}", "share of the first phase", SHARES,
            tuple(Setting("star", attributes, 10, SHARED_CORRELATION, budget, share) for share in SHARES),
        )
        for budget in THREE_BUDGETS
    )  # fmt: skip
    return Figure(number, f"{attributes} attributes of 10 values, against the first phase's share", panels)


def _by_correlation(number: str, attributes: int, values: int) -> Figure:
    panels = tuple(
        Panel(
            f"epsilon = {budget:g}", "rho", RISING,
            tuple(Setting("star", attributes, values, rho, budget) for rho in RISING),
        )
        for budget in THREE_BUDGETS
    )  # fmt: skip
    return Figure(number, f"{attributes} attributes of {values} values, against the correlation", panels)


def _by_table(number: str, names: Sequence[str]) -> Figure:
    panels = tuple(
        Panel(name, "epsilon", BUDGETS, tuple(Setting(name, 0, 0, 0.0, budget) for budget in BUDGETS))
        for name in names
    )
    return Figure(number, "real tables, against the budget", panels)
