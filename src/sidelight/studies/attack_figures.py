"""The drawings of the reconstruction studies, and their table as a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelight.foundation.files import write_atomically, write_text
from sidelight.studies.attacks import AttackStudy, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}
FIGURES = {
    "Fig. 2": ("Fig. 2",),
    "Fig. 2, stricter secret": ("Fig. 2, stricter secret",),
    "Fig. 3": ("Fig. 2", "Fig. 3"),
    "Fig. 4": ("Fig. 4",),
    "Fig. 5": ("Fig. 5",),
}
"""Which rows each drawing shows: Fig. 3 has Laplace noise, which is Fig. 2's, beside Gaussian."""


def write_study(study: AttackStudy, folder: Path) -> list[Path]:
    """Draw every figure that has rows and write all rows as CSV; return the files."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    written = [write_text(folder / "attacks.csv", _csv(study.rows))]
    with rc_context(_SETTINGS):
        for figure in FIGURES:
            rows = rows_of(study.rows, figure)
            if rows:
                written.append(_save(levels_figure(rows, figure), folder / f"{_plain(figure)}-levels.svg"))
        if study.densities:
            written.append(_save(distances_figure(study), folder / "fig-2-distances.svg"))
    return written


def rows_of(rows: Sequence[Row], figure: str) -> list[Row]:
    """Return the rows that a drawing shows: of another figure's only the two models that Fig. 3 has."""
    return [
        row
        for row in rows
        if row.figure in FIGURES[figure] and (row.figure == figure or row.model in ("mlp", "cnn"))
    ]


def _plain(figure: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", figure.lower())


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    names = [part.name for part in fields(Row)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "removed", "beats_control"])
    for row in rows:
        writer.writerow([*(getattr(row, name) for name in names), row.removed, row.beats_control])
    return out.getvalue()


def levels_figure(rows: Sequence[Row], title: str) -> Figure:
    """Draw the mean distance against the level, a panel for each table and family."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((row.table, row.family) for row in rows))
    figure = Figure(figsize=(4.2 * len(panels), 3.8), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (table, family) in zip(grid, panels, strict=True):
        _levels_panel(axes, [row for row in rows if (row.table, row.family) == (table, family)])
        axes.set_title(f"{title}, {table}, {family}", fontsize=10)
    grid[0].set_ylabel("mean distance to the truth")
    fullest = max(grid, key=lambda axes: len(axes.lines))
    figure.legend(handles=fullest.lines, frameon=False, fontsize=7, loc="outside right upper")
    return figure


def _levels_panel(axes: Axes, rows: Sequence[Row]) -> None:
    levels = sorted({row.level for row in rows})
    ours = [row for row in rows if row.attacker != "baseline"]
    for name, style in (("release", "k--"), ("control", "k:")):
        values = [np.mean([getattr(row, name) for row in ours if row.level == level]) for level in levels]
        axes.plot(levels, values, style, label={"release": "release itself", "control": "no release"}[name])
    for attacker, style in (("published", "-"), ("noise-aware", "-."), ("baseline", ":")):
        for model in dict.fromkeys(row.model for row in rows if row.attacker == attacker):
            line = {row.level: row.score for row in rows if (row.attacker, row.model) == (attacker, model)}
            axes.plot(
                levels, [line[level] for level in levels], style, marker=".", label=f"{model}, {attacker}"
            )
    axes.set_yscale("log")
    if rows[0].family != "swap":
        axes.set_xscale("log")
    axes.set_xlabel("share swapped (no budget)" if rows[0].family == "swap" else "budget of the secret")
    axes.grid(visible=True, alpha=0.3)


def distances_figure(study: AttackStudy) -> Figure:
    """Draw density and cumulative share of the distances, a row for each table."""
    from matplotlib.figure import Figure

    tables = list(dict.fromkeys(table for table, _ in study.densities))
    figure = Figure(figsize=(9, 3.2 * len(tables)), layout="constrained")
    grid = figure.subplots(len(tables), 2, squeeze=False)
    for (density, cumulative), table in zip(grid, tables, strict=True):
        edges = study.edges[table]
        for (owner, line), heights in study.densities.items():
            if owner == table:
                density.plot((edges[1:] + edges[:-1]) / 2, heights, label=line)
                cumulative.plot(edges[1:], np.cumsum(heights) * (edges[1] - edges[0]), label=line)
        density.set_ylabel(f"{table}: density")
        cumulative.set_ylabel("share of records within")
        for axes in (density, cumulative):
            axes.set_xlabel("distance to the truth")
            axes.grid(visible=True, alpha=0.3)
        cumulative.legend(frameon=False, fontsize=8)
    return figure


def _save(figure: Figure, path: Path) -> Path:
    return write_atomically(
        path, lambda temporary: figure.savefig(temporary, format="svg", metadata={"Date": None})
    )
