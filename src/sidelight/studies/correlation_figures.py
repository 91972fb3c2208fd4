"""The drawings of paper CPL's Figs. 4 to 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sidelight.studies.benchmarks import AnalyserBenchmark, MechanismBenchmark
from sidelight.studies.correlations import COMPARED, FACES, SEVEN, FaceRow, GenderRow, Pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = "osD^vP*"
_LEAST_REACH = 0.02
"""How far an axis reaches at least: rounding must not fill a panel."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b97a3")


def _new(panels: int, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels, height), layout="constrained")
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def gender_figure(rows: Sequence[GenderRow]) -> Figure:
    """Return Fig. 4(a): bars of a guess, and the whole report as a mark above each."""
    figure, (axes,) = _new(1, 6.4)
    neighbours = list(dict.fromkeys(row.neighbour for row in rows))
    for number, mechanism in enumerate(COMPARED):
        chosen = [row for row in rows if row.mechanism == mechanism]
        places = np.arange(len(neighbours)) + 0.16 * number
        axes.bar(places, [row.estimate for row in chosen], 0.14, label=mechanism, color=_COLOURS[number])
        axes.plot(places, [row.report for row in chosen], "_", color="black", markersize=9)
    axes.plot([], [], "_", color="black", label="whole report")
    axes.set_xticks(np.arange(len(neighbours)) + 0.32, neighbours)
    axes.set_ylabel("leakage about sex (nats)")
    axes.legend(frameon=False, fontsize=7)
    return figure


def face_figure(rows: Sequence[FaceRow]) -> Figure:
    """Return Fig. 4(b): leakage about Male against the budget."""
    figure, (axes,) = _new(1, 6.0)
    budgets = [row.epsilon for row in rows]
    for number, name in enumerate(FACES):
        axes.plot(budgets, [row.single[name] for row in rows], "o-", label=name, color=_COLOURS[number])
    axes.plot(budgets, [row.together for row in rows], "k-", label="all three, exact")
    axes.plot(budgets, [row.added for row in rows], "k--", label="all three, sum of eq. (6)")
    axes.plot(budgets, budgets, ":", color="grey", label="budget")
    axes.set_xlabel("epsilon of each attribute")
    axes.set_ylabel("leakage about Male (nats)")
    axes.legend(frameon=False, fontsize=7)
    return figure


def heat_figure(pairs: Pairs) -> Figure:
    """Return Fig. 4(c): what each report (row) says about each attribute (column)."""
    chosen = [pairs.names.index(name) for name in SEVEN]
    cells = pairs.leakage[np.ix_(chosen, chosen)]
    figure, (axes,) = _new(1, 5.4, 4.4)
    shown = axes.imshow(cells, vmin=0, vmax=1, cmap="viridis")
    for (i, j), value in np.ndenumerate(cells):
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="white", fontsize=7)
    axes.set_xticks(range(len(SEVEN)), SEVEN, rotation=45, ha="right")
    axes.set_yticks(range(len(SEVEN)), SEVEN)
    axes.set_xlabel("secret")
    axes.set_ylabel("reported")
    figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure


def histogram_figure(pairs: Mapping[str, Pairs]) -> Figure:
    """Return Fig. 4(d): how often each size of leakage occurs."""
    figure, (axes,) = _new(1, 5.6)
    edges = np.linspace(0, 1, 21)
    for number, (name, found) in enumerate(pairs.items()):
        values = found.apart(found.leakage)
        heights = np.histogram(values, edges)[0] / len(values)
        axes.step(edges[:-1], heights, where="post", label=name, color=_COLOURS[number])
    axes.set_xlabel("leakage between two attributes, epsilon 1 (nats)")
    axes.set_ylabel("share of the ordered pairs")
    axes.legend(frameon=False)
    return figure


def metric_figure(pairs: Mapping[str, Pairs]) -> Figure:
    """Return Fig. 5: leakage against two measures of correlation, every pair a point, means in bins."""
    figure, panels = _new(2)
    for axes, metric, title in zip(
        panels,
        ("information", "correlation"),
        ("normalised mutual information", "absolute Pearson correlation"),
        strict=True,
    ):
        x = np.concatenate([found.apart(getattr(found, metric)) for found in pairs.values()])
        y = np.concatenate([found.apart(found.leakage) for found in pairs.values()])
        axes.plot(x, y, ".", color="#8b97a3", markersize=2, alpha=0.4, rasterized=True)
        edges = np.linspace(0, 1, 11)
        place = np.digitize(x, edges) - 1
        used = [number for number in range(10) if np.count_nonzero(place == number) > 1]
        means = [y[place == number].mean() for number in used]
        spread = [y[place == number].std() for number in used]
        axes.errorbar(edges[used] + 0.05, means, spread, fmt="o-", color="#0072b2", capsize=3)
        axes.set_xlabel(title)
        axes.set_ylabel("leakage, epsilon 1 (nats)")
    return figure


def analyser_figure(benchmarks: Mapping[str, AnalyserBenchmark]) -> Figure:
    """Return the undershoot and overshoot plane of Fig. 6, a panel for each table."""
    from matplotlib.figure import Figure

    wide = min(len(benchmarks), 3)
    high = -(-len(benchmarks) // wide)
    figure = Figure(figsize=(3.8 * wide + 1.2, 3.5 * high), layout="constrained")
    panels = figure.subplots(high, wide, squeeze=False)
    names = list(dict.fromkeys(point.analyser for found in benchmarks.values() for point in found.points))
    for axes, (title, found) in zip(panels.ravel(), benchmarks.items(), strict=False):
        _plane(axes, found, names)
        axes.set_title(f"{title}, against {found.reference}", fontsize=8)
    for axes in panels[:, 0]:
        axes.set_ylabel("normalised overshoot")
    for axes in panels[-1]:
        axes.set_xlabel("normalised undershoot")
    panels[0, -1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
    return figure


def _plane(axes: Axes, found: AnalyserBenchmark, names: Sequence[str]) -> None:
    """Draw the points of one table and the regions they may lie in."""
    for number, name in enumerate(names):
        chosen = [point for point in found.points if point.analyser == name]
        axes.plot(
            [point.undershoot for point in chosen],
            [point.overshoot for point in chosen],
            _MARKS[number % len(_MARKS)],
            color=_COLOURS[number % len(_COLOURS)],
            label=name,
            alpha=0.8,
            markersize=5,
        )
    axes.axhline(0, color="grey", linewidth=0.6)
    axes.axvline(0, color="grey", linewidth=0.6)
    ends = [
        1.1 * max((getattr(point, side) for point in found.points), default=0.0)
        for side in ("undershoot", "overshoot")
    ]
    reach = [max(end, _LEAST_REACH) for end in ends]
    axes.set(xlim=(-0.06 * reach[0], reach[0]), ylim=(-0.06 * reach[1], reach[1]))
    axes.locator_params(nbins=5)
    for x, y, words in ((0.07, 0.07, "P1"), (0.92, 0.07, "R1"), (0.07, 0.93, "R2"), (0.5, 0.5, "R3")):
        axes.text(x, y, words, transform=axes.transAxes, color="grey", fontsize=8)


def mechanism_figure(found: MechanismBenchmark, utility: str, label: str) -> Figure:
    """Return Fig. 7: an error against normalised TCPL, for a guess and for whole reports."""
    figure, panels = _new(2, 4.4)
    names = list(dict.fromkeys(point.mechanism for point in found.points))
    for axes, view, title in zip(
        panels, ("guess", "report"), ("one guessed value", "whole report"), strict=True
    ):
        for number, name in enumerate(names):
            chosen = [
                (getattr(point, view), getattr(point, utility))
                for point in found.points
                if point.mechanism == name
            ]
            points = [(x, y) for x, y in chosen if x is not None and y is not None]
            if points:
                mark, colour = _MARKS[number % len(_MARKS)], _COLOURS[number % len(_COLOURS)]
                axes.plot(*zip(*points, strict=True), mark + "-", color=colour, label=name, linewidth=0.6)
        axes.set_yscale("log")
        axes.set_xlabel("normalised TCPL")
        axes.set_title(f"adversary keeps {title}", fontsize=9)
    panels[0].set_ylabel(label)
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
    return figure
