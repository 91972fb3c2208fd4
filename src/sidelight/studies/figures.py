"""What the drawings of several papers share: a canvas, line styles, colours, a legend beside the panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sidelight.studies.study import plain_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b97a3")
"""The palette of Okabe and Ito, which colour-blind readers can tell apart, and a grey."""
STYLES = ("-", "--", "-.", ":")


def canvas(
    width: float, height: float, panels: int = 1, rows: int = 1, *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of a width and height in inches, and its panels row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, panels, sharey=sharey, squeeze=False).ravel())


def finish(
    axes: Axes, x: str, y: str = "", *, title: str = "", size: float = 10, legend: float | None = None
) -> None:
    """Name the axes and the panel, draw pale grid lines, and a legend where the size of its words is said."""
    axes.set(xlabel=x)
    if y:
        axes.set_ylabel(y)
    axes.set_title(title, fontsize=size)
    axes.grid(visible=True, alpha=0.3)
    if legend:
        axes.legend(frameon=False, fontsize=legend)


def columns_of(rows: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the columns of a table whose rows are dataclasses, by name."""
    names, cells = plain_table(rows)
    return dict(zip(names, zip(*cells, strict=True), strict=True))


def draw_lines(axes: Axes, rows: Sequence[Any], x: str, lines: Mapping[str, tuple[str, str]]) -> None:
    """Draw columns of a table against another one; each has a label and a style."""
    columns = columns_of(rows)
    for name, (label, style) in lines.items():
        axes.plot(columns[x], columns[name], style, marker="o", label=label)


def legend_beside(axes: Axes, size: float | None = None) -> None:
    """Put the legend to the right of a panel."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=size)
