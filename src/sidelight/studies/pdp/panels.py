"""A panel of lines with its verdict: how the figures of paper PDP are kept, tabulated and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sidelight.studies.figures import canvas, grid
from sidelight.studies.study import Drawing, StudyResult, Value, Verdict


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: a name, where its points are, and their height; a spread where there were several runs."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Panel:
    """One figure with its verdict."""

    key: str  # the study's name without the paper's
    title: str  # what it shows
    axes: tuple[str, str]  # the names of both axes
    curves: tuple[Curve, ...]  # its lines
    verdict: Verdict  # how it compares with what the paper says
    log: str = ""  # which axes are logarithmic: "", "y" or "xy"

    @property
    def drawing(self) -> Drawing:
        """The panel as a figure of its study."""
        return Drawing(f"pdp-{self.key}", self.title, partial(_figure, self))


def read_panel(key: str, ours: Callable[[Panel], dict[str, Value]], panels: list[Panel]) -> StudyResult:
    """Return the result of the study that consists of one panel."""
    panel = next(panel for panel in panels if panel.key == key)
    rows = [
        (curve.name, x, y, curve.spread[place] if curve.spread else 0.0)
        for curve in panel.curves
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True))
    ]
    columns = ("line", *panel.axes, "standard deviation")
    return StudyResult(panel.verdict, ours(panel), columns, tuple(rows), (panel.drawing,))


def _figure(panel: Panel) -> Figure:
    figure, (axes,) = canvas(5.6, 3.9)
    for number, curve in enumerate(panel.curves):
        style = ("o-", "s--", "^-.", "d:")[number % 4]
        axes.plot(curve.x, curve.y, style, label=curve.name, markersize=4, linewidth=1.4)
        if curve.spread:
            low, high = (np.array(curve.y) + sign * np.array(curve.spread) for sign in (-1, 1))
            axes.fill_between(curve.x, low, high, alpha=0.2)
    if "y" in panel.log:
        axes.set_yscale("log")
    if "x" in panel.log:
        axes.set_xscale("log")
    axes.set(xlabel=panel.axes[0], ylabel=panel.axes[1])
    axes.set_title(f"{panel.title} ({panel.verdict.kind})", fontsize=9)
    grid(axes)
    axes.legend(frameon=False)
    return figure
