"""Draw the study, and write its tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelight.foundation.files import write_atomically, write_text
from sidelight.studies.collection.figures import Figure, Panel
from sidelight.studies.collection.simulation import BASELINES, FURTHER, OURS
from sidelight.studies.collection.study import Array, CollectionStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}
_STYLES = {
    "spl": ("#8b97a3", "-"), "rs+fd": ("#e69f00", "--"), "rs+rfd": ("#cc79a7", "-."),
    "corr-rr": ("#d55e00", "-"), "smp": ("#0072b2", "--"), "smp + simplex": ("#56b4e9", ":"),
    "product": ("#009e73", "-."), OURS: ("#000000", "-"),
}  # fmt: skip


def write_study(study: CollectionStudy, folder: str | Path) -> list[Path]:
    """Write every figure as SVG, all cells and losses as CSV, and the verdict; the folder must exist."""
    place = Path(folder)
    paths = [_draw_figure(study, figure, place) for figure in study.figures]
    paths += [_save(copies_figure(study.copies), place / "figure-2.svg")]
    if study.rows:
        paths += [_save(matrices_figure(study), place / "figure-3.svg")]
    paths += [
        write_text(place / "cells.csv", cells_csv(study)),
        write_text(place / "lost.csv", losses_csv(study)),
        write_text(place / "table-1.csv", rows_csv(study)),
        write_text(place / "verdict.txt", study.verdict + "\n"),
    ]
    return paths


def cells_csv(study: CollectionStudy) -> str:
    """Return every cell: the mean error of each method, and the ratio of ours to it with its interval."""
    lines: list[list[Any]] = [
        ["figure", "panel", "x", "method", "mse", "ratio_of_ours", "lower", "upper", "our_protocol"]
    ]
    for figure in study.figures:
        for panel in figure.panels:
            for place, setting in zip(panel.places, panel.settings, strict=True):
                cell = study.cells[setting]
                for method in (OURS, *BASELINES, *FURTHER):
                    if method in cell.errors:
                        ratio = [f"{value:.4f}" for value in cell.ratio(method)]
                        head = [figure.number, panel.title, place, method]
                        lines.append([*head, f"{cell.mean(method):.4g}", *ratio, cell.chosen])
    return _csv(lines)


def losses_csv(study: CollectionStudy) -> str:
    """Return the cells that ours loses, with the reason."""
    lines: list[list[Any]] = [["figure", "panel", "x", "method", "ratio", "lower", "upper", "reason"]]
    for loss in study.losses:
        numbers = [f"{value:.4f}" for value in (loss.ratio, loss.lower, loss.upper)]
        lines.append([loss.figure, loss.panel, loss.place, loss.method, *numbers, loss.explanation])
    return _csv(lines)


def rows_csv(study: CollectionStudy) -> str:
    """Return Table 1, ours beside the printed one."""
    lines: list[list[Any]] = [
        ["table", "attributes", "values", "people", "least", "largest", "printed", "agrees"]
    ]
    for row in study.rows:
        printed = "not in the paper" if row.printed is None else " ".join(map(str, row.printed))
        values = " ".join(map(str, sorted(set(row.values))))
        ends = [f"{row.least:.3f}", f"{row.largest:.3f}"]
        lines.append([row.name, row.attributes, values, row.people, *ends, printed, row.agrees])
    return _csv(lines)


def _csv(lines: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _draw_figure(study: CollectionStudy, figure: Figure, folder: Path) -> Path:
    return _save(figure_of(study, figure), folder / f"figure-{figure.number}.svg")


def figure_of(study: CollectionStudy, figure: Figure) -> Drawing:
    """Return one of Figs. 4 to 14, a line for each method."""
    from matplotlib.figure import Figure as Canvas

    drawing = Canvas(figsize=(3.4 * len(figure.panels) + 1.4, 3.4), layout="constrained")
    many = drawing.subplots(1, len(figure.panels), squeeze=False)[0]
    for axes, panel in zip(many, figure.panels, strict=True):
        _panel(axes, study, panel)
    many[0].set_ylabel("mean squared error")
    many[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    drawing.suptitle(f"Fig. {figure.number}: {figure.title} ({study.trials} trials)", fontsize=10)
    return drawing


def _panel(axes: Axes, study: CollectionStudy, panel: Panel) -> None:
    cells = [study.cells[setting] for setting in panel.settings]
    for method, (colour, style) in _STYLES.items():
        points = [
            (x, cell.mean(method))
            for x, cell in zip(panel.places, cells, strict=True)
            if method in cell.errors and cell.mean(method) < 1
        ]
        if points:
            width = 2.2 if method == OURS else 1.3
            axes.semilogy(*zip(*points, strict=True), style, color=colour, label=method, linewidth=width)
    axes.set_xlabel(panel.axis)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(visible=True, which="major", alpha=0.3)


def copies_figure(copies: Mapping[float, Array]) -> Drawing:
    """Return Fig. 2 from its curves, by the second marginal."""
    from matplotlib.figure import Figure as Canvas

    drawing = Canvas(figsize=(5.6, 3.6), layout="constrained")
    axes = drawing.subplots()
    for second, points in copies.items():
        axes.plot(points[:, 0], points[:, 1], label=f"second marginal {second:g}")
    axes.set_xlabel("first marginal")
    axes.set_ylabel("probability to copy, as published")
    axes.legend(frameon=False, fontsize=8)
    return drawing


def matrices_figure(study: CollectionStudy) -> Drawing:
    """Return Fig. 3."""
    from matplotlib.figure import Figure as Canvas

    drawing = Canvas(figsize=(3.2 * len(study.rows), 3.2), layout="constrained")
    for axes, row in zip(drawing.subplots(1, len(study.rows), squeeze=False)[0], study.rows, strict=True):
        shown = axes.imshow(np.nan_to_num(row.matrix), vmin=-1, vmax=1, cmap="RdBu")
        axes.set_title(row.name, fontsize=10)
    drawing.colorbar(shown, ax=drawing.axes, shrink=0.8)
    return drawing


def _save(drawing: Drawing, path: Path) -> Path:
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        return write_atomically(
            path, lambda temporary: drawing.savefig(temporary, format="svg", metadata={"Date": None})
        )
