"""The tables and figures of the calibration study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelight.foundation.files import write_atomically, write_text
from sidelight.studies.calibration import PAPER_RATIO, CalibrationStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}
_BUDGETS = {
    "published": "published sum (no bound)",
    "stepped": "the same by Algorithm 3 as printed",
    "public": "published, learnt from LFW",
    "tree": "tree model",
    "certified": "certified",
    "even": "even split",
}


def write_tables(study: CalibrationStudy, path: Path) -> Path:
    """Write every table as Markdown, the verdict first."""
    low, high = min(study.subsets), max(study.subsets)
    parts = [
        "# Calibration",
        f"Fig. 8: {study.verdict}",
        "## Budgets against limits, 38 shared attributes of CelebA\n\n" + _table(study.limits),
        f"Published over even split on {len(study.subsets)} random sets of 21: {low:.2f} to {high:.2f}.",
        "## One budget for all over the even split, by how many attributes are released\n\n"
        + _table(study.fewer),
        "## Weighted error at the same limits\n\n" + _table(study.unequal),
        "## Cholesterol reported, cardio secret: accuracy\n\n" + _table(study.channels),
    ]
    return write_text(path, "\n\n".join(parts) + "\n")


def _table(rows: Sequence[Any]) -> str:
    names = [field.name for field in fields(rows[0])]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        cells = [getattr(row, name) for name in names]
        lines.append(
            "| "
            + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
            + " |"
        )
    return "\n".join(lines)


def draw(study: CalibrationStudy, folder: Path) -> list[Path]:
    """Draw Fig. 8, what fewer attributes help, and the optimal channel; the same study, the same files."""
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        return [
            _save(figure_8(study), folder / "calibration-budgets.svg"),
            _save(figure_fewer(study), folder / "calibration-fewer.svg"),
            _save(figure_channels(study), folder / "calibration-channel.svg"),
        ]


def _save(figure: Figure, path: Path) -> Path:
    return write_atomically(
        path, lambda temporary: figure.savefig(temporary, format="svg", metadata={"Date": None})
    )


def _new(panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.9 * panels, 4.0), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    return figure, list(axes)


def figure_8(study: CalibrationStudy) -> Figure:
    """Return the budget and the error against the limit (CPL, Fig. 8)."""
    figure, (left, right) = _new(2)
    limits = [row.limit for row in study.limits]
    for number, (name, label) in enumerate(_BUDGETS.items()):
        budgets = [getattr(row, name) for row in study.limits]
        style = ("-", "--", "-.", ":")[number % 4]
        left.semilogy(limits, budgets, style, marker="o", markersize=3, label=label)
        right.plot(
            limits, [1 / (1 + math.exp(budget)) for budget in budgets], style, marker="o", markersize=3
        )
    left.set_ylabel("budget of each attribute")
    right.set_ylabel("0-1 error of one report")
    for axes in (left, right):
        axes.set_xlabel("limit on each attribute's total leakage")
        axes.grid(visible=True, alpha=0.3)
    left.legend(frameon=False, fontsize=7)
    figure.suptitle("38 attributes that CelebA and LFW share (CPL, Fig. 8)", fontsize=10)
    return figure


def figure_fewer(study: CalibrationStudy) -> Figure:
    """Return what releasing fewer attributes does."""
    figure, (axes,) = _new(1)
    counts = [row.attributes for row in study.fewer]
    for name, style in (("published", "--"), ("tree", "-."), ("certified", "-")):
        axes.plot(
            counts, [getattr(row, name) for row in study.fewer], style, marker="o", label=_BUDGETS[name]
        )
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.axhline(PAPER_RATIO, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("released attributes of CelebA")
    axes.set_ylabel("one budget for all over the even split")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return figure


def figure_channels(study: CalibrationStudy) -> Figure:
    """Return the optimal channel against randomised response."""
    figure, (left, right) = _new(2)
    limits = [row.limit for row in study.channels]
    for name, label, style in (
        ("optimal", "optimal channel", "-"),
        ("guess", "randomised response, best guess", "--"),
        ("response", "randomised response, as reported", ":"),
    ):
        left.plot(limits, [getattr(row, name) for row in study.channels], style, marker="o", label=label)
    for name, label, style in (
        ("balanced_optimal", "optimal channel", "-"),
        ("balanced_response", "randomised response", ":"),
    ):
        right.plot(limits, [getattr(row, name) for row in study.channels], style, marker="o", label=label)
    left.set_ylabel("accuracy")
    right.set_ylabel("accuracy, every value counting the same")
    for axes in (left, right):
        axes.set_xlabel("limit on what it says about cardio")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    figure.suptitle("cholesterol reported, cardio secret", fontsize=10)
    return figure
