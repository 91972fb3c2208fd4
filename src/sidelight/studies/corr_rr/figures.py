"""Paper Corr-RR, Figs. 4 to 14: every method's error, with uniform marginals and with skewed ones.

The paper does not print the frequencies of its synthetic tables. Uniform ones, the default of its public
code, are the reading that brings its Figs. 4 to 12 out; skewed ones show what happens elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

from matplotlib.figure import Figure as Canvas

from sidelight.foundation.progress import track
from sidelight.studies.corr_rr.records import REAL, Marginals, available_tables
from sidelight.studies.corr_rr.simulation import KNOWN, OURS, Cell, Setting, simulate, with_share
from sidelight.studies.figures import canvas, finish, legend_beside
from sidelight.studies.study import Work

TRIALS = 60
"""The paper has 200; with 60 the whole of the studies takes minutes."""
QUICK_TRIALS = 2
SHARED_CORRELATION = 0.5
"""The paper does not print the correlation of its Figs. 11 and 12; this one is ours."""
_BUDGETS = (1.0, 2.0, 3.0, 4.0, 5.0)
_STYLES = {
    "spl": ("#8b97a3", "-"), "rs+fd": ("#e69f00", "--"), "rs+rfd": ("#cc79a7", "-."),
    "corr-rr": ("#d55e00", "-"), "smp": ("#0072b2", "--"), "smp + simplex": ("#56b4e9", ":"),
    "product": ("#009e73", "-."), OURS: ("#000000", "-"), KNOWN: ("#cc79a7", ":"),
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, or one of ours in its form."""

    number: str
    title: str
    axis: str  # what lies along the x-axis of every panel
    panels: Mapping[str, Mapping[float, Setting]]  # by title, the settings by their place on the axis

    @property
    def readings(self) -> tuple[Marginals, ...]:
        """The marginals that it is drawn with; a real table has its own, which count as no reading."""
        is_star = any(each.table == "star" for each in self.places().values())
        return get_args(Marginals) if is_star else ("uniform",)

    def places(self, marginals: Marginals = "uniform") -> dict[tuple[str, float], Setting]:
        """Return the settings of one reading by panel and by place on its axis."""
        along = self.panels.items()
        return {
            (panel, place): each if each.table != "star" else replace(each, marginals=marginals)
            for panel, settings in along
            for place, each in settings.items()
        }


def all_figures() -> list[Figure]:
    """Return Figs. 4 to 14, with adult as a further panel, for the tables that are there."""
    rising = _for_budgets((0.1, 0.3, 0.5, 0.7, 0.9), lambda budget, rho: Setting("star", 6, 10, rho, budget))
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
        Figure("13", "6 attributes of 10 values, against the correlation", "rho", rising),
    ]
    real = {name: {at: Setting(name, 0, 0, 0.0, at) for at in _BUDGETS} for name in available_tables()}
    return [*figures, *([Figure("14", "real tables, against the budget", "epsilon", real)] if real else [])]


def _by_budget(number: str, attributes: int, values: int) -> Figure:
    title = f"{attributes} attributes of {values} values, against the budget"
    panels = {
        f"rho = {rho:g}": {budget: Setting("star", attributes, values, rho, budget) for budget in _BUDGETS}
        for rho in (0.1, 0.5, 0.9)
    }
    return Figure(number, title, "epsilon", panels)


def _for_budgets(places: Sequence[float], setting: Callable[..., Setting]) -> dict[str, dict[float, Setting]]:
    """Return a panel for each of three budgets; the setting is made from the budget and the place."""
    budgets = {f"epsilon = {budget:g}": budget for budget in (1.0, 3.0, 5.0)}
    return {title: {place: setting(budget, place) for place in places} for title, budget in budgets.items()}


def _by_count(number: str, values: int, rho: float) -> Figure:
    title = f"{values} values, rho = {rho:g}, against the number of attributes"
    panels = _for_budgets(range(2, 7), lambda budget, count: Setting("star", count, values, rho, budget))
    return Figure(number, title, "attributes", panels)


def _by_share(number: str, attributes: int) -> Figure:
    title = f"{attributes} attributes of 10 values, against the first phase's share"
    setting = partial(Setting, "star", attributes, 10, SHARED_CORRELATION)
    return Figure(number, title, "share of the first phase", _for_budgets((0.1, 0.2, 0.3, 0.4, 0.5), setting))


@dataclass(frozen=True, eq=False)
class ErrorStudy:
    """The errors of every cell."""

    trials: int  # how many trials a cell has; half as many with skewed marginals
    figures: tuple[Figure, ...]  # the figures' settings
    cells: Mapping[Setting, Cell]  # the errors, by setting

    def points(self, figure: Figure, marginals: Marginals = "uniform") -> dict[tuple[str, float], Cell]:
        """Return the cells of a figure under one reading, by panel and place."""
        return {at: self.cells[setting] for at, setting in figure.places(marginals).items()}


def run(quick: bool = False, workers: int = 2) -> ErrorStudy:
    """Run every figure, with `quick` in a few trials; so many processes share the work."""
    trials = QUICK_TRIALS if quick else TRIALS
    figures = tuple(all_figures())
    settings = [
        setting
        for figure in figures
        for marginals in figure.readings
        for setting in figure.places(marginals).values()
    ]
    return ErrorStudy(trials, figures, _simulated(settings, trials, workers))


def _trials(setting: Setting, trials: int) -> int:
    """Return the trials of a setting: skewed marginals, which the paper has no figures of, take half."""
    is_beside = setting.table == "star" and setting.marginals == "skewed"
    return max(2, trials // 2) if is_beside else trials


def _simulated(settings: list[Setting], trials: int, workers: int) -> dict[Setting, Cell]:
    """Simulate each setting once; settings that differ only in the first phase's size share the rest."""
    plain = list(dict.fromkeys(replace(setting, share=0.1) for setting in settings))
    shared = list(dict.fromkeys(setting for setting in settings if setting.share != 0.1))
    with ProcessPoolExecutor(workers) as pool:
        simulated = pool.map(simulate, plain, [_trials(setting, trials) for setting in plain])
        cells = dict(zip(plain, track(simulated, "simulating", len(plain)), strict=True))
        bases = [cells[replace(setting, share=0.1)] for setting in shared]
        return cells | dict(zip(shared, pool.map(with_share, bases, shared), strict=True))


def error_figure(study: ErrorStudy, figure: Figure) -> Canvas:
    """Return one of Figs. 4 to 14, a line for each method, a row of panels for each reading."""
    drawing, many = canvas(
        3.4 * len(figure.panels) + 1.4, 3.2 * len(figure.readings), len(figure.panels), len(figure.readings)
    )
    panels = [(marginals, title) for marginals in figure.readings for title in figure.panels]
    for axes, (marginals, panel) in zip(many, panels, strict=True):
        here = study.points(figure, marginals)
        cells = {place: cell for (title, place), cell in here.items() if title == panel}
        title = panel if len(figure.readings) == 1 else f"{panel}, {marginals} marginals"
        for method, (colour, style) in _STYLES.items():
            points = [
                (x, cell.mean(method))
                for x, cell in cells.items()
                if method in cell.errors and cell.mean(method) < 1  # a larger error says nothing
            ]
            if points:
                width = 2.2 if method == OURS else 1.3
                axes.semilogy(*zip(*points, strict=True), style, color=colour, label=method, linewidth=width)
        finish(axes, figure.axis, title=title)
    for first in many[:: len(figure.panels)]:
        first.set_ylabel("mean squared error")
    legend_beside(many[-1])
    drawing.suptitle(f"Fig. {figure.number}: {figure.title} ({study.trials} trials)", fontsize=10)
    return drawing


WORK = Work("collection", run, uses=REAL, minutes=4)
