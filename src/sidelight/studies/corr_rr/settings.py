"""Which settings each figure of the paper shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sidelight.studies.corr_rr.records import available_tables
from sidelight.studies.corr_rr.simulation import Setting

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

    @property
    def places(self) -> dict[tuple[str, float], Setting]:
        """The settings by panel and by place on its axis."""
        return {
            (panel.title, place): setting
            for panel in self.panels
            for place, setting in zip(panel.places, panel.settings, strict=True)
        }


def all_figures() -> list[Figure]:
    """Return Figs. 4 to 14, with adult as a further panel, for the tables that are there."""
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
        _by_correlation("13"),
    ]
    real = {name: partial(Setting, name, 0, 0, 0.0) for name in available_tables()}
    if real:
        figures.append(_figure("14", "real tables, against the budget", "epsilon", BUDGETS, real))
    return figures


def _figure(
    number: str, title: str, axis: str, places: Sequence[float], panels: Mapping[str, Callable[..., Setting]]
) -> Figure:
    """Return a figure whose panels share their places; each panel maps a place to its setting."""
    drawn = [Panel(name, axis, tuple(places), tuple(map(made, places))) for name, made in panels.items()]
    return Figure(number, title, tuple(drawn))


def _by_budget(number: str, attributes: int, values: int) -> Figure:
    title = f"{attributes} attributes of {values} values, against the budget"
    panels = {f"rho = {rho:g}": partial(Setting, "star", attributes, values, rho) for rho in CORRELATIONS}
    return _figure(number, title, "epsilon", BUDGETS, panels)


def _for_budgets(setting: Callable[[float, Any], Setting]) -> dict[str, Callable[..., Setting]]:
    """Return a panel for each of three budgets."""
    return {f"epsilon = {budget:g}": partial(setting, budget) for budget in THREE_BUDGETS}


def _by_count(number: str, values: int, rho: float) -> Figure:
    title = f"{values} values, rho = {rho:g}, against the number of attributes"
    panels = _for_budgets(lambda budget, count: Setting("star", count, values, rho, budget))
    return _figure(number, title, "attributes", COUNTS, panels)


def _by_share(number: str, attributes: int) -> Figure:
    title = f"{attributes} attributes of 10 values, against the first phase's share"
    panels = _for_budgets(lambda *at: Setting("star", attributes, 10, SHARED_CORRELATION, *at))
    return _figure(number, title, "share of the first phase", SHARES, panels)


def _by_correlation(number: str) -> Figure:
    panels = _for_budgets(lambda budget, rho: Setting("star", 6, 10, rho, budget))
    return _figure(number, "6 attributes of 10 values, against the correlation", "rho", RISING, panels)
