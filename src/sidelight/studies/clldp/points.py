"""The points of paper CLLDP's tables and figures: one point, a line of them, a figure drawn from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sidelight.studies.figures import STYLES, canvas, finish, legend_beside
from sidelight.studies.study import Drawing, StudyResult, Value, Verdict, plain_table


@dataclass(frozen=True)
class Point:
    """One point of a figure or table."""

    figure: str  # which one
    data: str  # the set of records
    line: str  # the method
    x: float  # the budget, k, or the number of a table's column
    value: float  # the figure
    error: float = 0.0  # its standard error; 0 for an exact one


def mean_point(figure: str, data: str, line: str, x: float, values: Sequence[float]) -> Point:
    """Return the mean of several runs as a point, with its standard error."""
    spread = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Point(figure, data, line, x, float(np.mean(values)), spread)


def line_of(points: Sequence[Point], figure: str, line: str) -> dict[tuple[str, float], float]:
    """Return one line of a figure: its values by set of records and x."""
    chosen = [point for point in points if (point.figure, point.line) == (figure, line)]
    return {(point.data, point.x): point.value for point in chosen}


def result_of(
    points: Sequence[Point], figure: str, verdict: Verdict, ours: Mapping[str, Value], *drawings: Drawing
) -> StudyResult:
    """Return the result of a study with the table of its own points."""
    columns, rows = plain_table([point for point in points if point.figure.startswith(figure)])
    return StudyResult(verdict, ours, (*columns[:-1], "standard error"), rows, drawings)


def drawing_of(points: Sequence[Point], figure: str, name: str, title: str) -> Drawing:
    """Return the drawing of one figure."""
    chosen = [point for point in points if point.figure == figure]
    return Drawing(name, title, partial(_figure, chosen, figure))


def _figure(points: Sequence[Point], figure: str) -> Figure:
    """Draw a panel for each set of records."""
    names = list(dict.fromkeys(point.data for point in points))
    drawing, panels = canvas(3.6 * len(names) + 1.6, 3.6, len(names))
    for axes, name in zip(panels, names, strict=True):
        _panel(axes, [point for point in points if point.data == name], figure, name)
    legend_beside(panels[-1])
    return drawing


def _panel(axes: Axes, points: Sequence[Point], figure: str, title: str) -> None:
    shown = dict.fromkeys(point.line for point in points if not point.line.startswith("leakage"))
    for number, line in enumerate(shown):
        chosen = [point for point in points if point.line == line]
        x, y, error = zip(*((point.x, point.value, point.error) for point in chosen), strict=True)
        axes.errorbar(x, y, error, linestyle=STYLES[number % 4], label=line, linewidth=1.2)
    is_error = figure in ("figure 3", "figure 6")
    axes.set_yscale("log" if is_error else "linear")
    measure = "l2 error of the joint" if is_error else "share of right labels"
    finish(axes, "k" if figure == "figure 6" else "epsilon", measure, title=title, size=9)
