"""Draw the pictures of the concepts page: `python docs/pictures.py docs/images`.

The curves are computed, so that a picture says what the code says.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import sidelight as sl

STYLE = {"svg.hashsalt": "sidelight", "svg.fonttype": "path", "font.size": 11}
INK, ACCENT, WARNING, QUIET = "#1f2937", "#3f51b5", "#c2410c", "#9ca3af"


def sidelight() -> Figure:
    """Noisy answers beside a secret, each pointing at it with the leakage it has alone."""
    table = sl.sources.survey(20_000, seed=1)
    belief = sl.Belief.from_data(table)
    channels = sl.Plan.uniform(table.schema, epsilon=1.0).channels()
    figure, axes = plt.subplots(figsize=(7.4, 3.2))
    axes.set(xlim=(0, 10), ylim=(0, 5))
    axes.axis("off")
    others = ("medication", "age", "smokes")
    total = sl.leakage.set_leakage(belief, channels, "diabetes", through=others).value
    for height, name in zip((4.2, 2.5, 0.8), others, strict=True):
        value = sl.pair_leakage(belief, channels[name], "diabetes", name).value
        _box(axes, 1.3, height, name, QUIET)
        _box(axes, 4.3, height, "report", ACCENT)
        _arrow(axes, (2.25, height), (3.5, height), QUIET)
        _arrow(axes, (5.1, height), (7.5, 2.5 + (height - 2.5) * 0.25), WARNING)
        axes.text(5.5, height + (0.32 if height >= 2.5 else -0.5), f"{value:.2f} nats", color=WARNING)
    axes.text(2.85, 4.75, "budget 1 each", color=INK, ha="center")
    _box(axes, 8.5, 2.5, "diabetes", WARNING)
    axes.text(8.5, 1.55, f"all three: {total:.2f} nats", color=WARNING, ha="center")
    return figure


def saturation() -> Figure:
    """Leakage about diabetes through each neighbour, against its budget."""
    table = sl.sources.survey(20_000, seed=1)
    belief = sl.Belief.from_data(table)
    budgets = np.linspace(0.02, 6, 60)
    figure, axes = plt.subplots(figsize=(7.4, 3.4))
    axes.plot(budgets, budgets, color=QUIET, linestyle=":", label="the budget itself")
    for name, colour in (("medication", WARNING), ("age", ACCENT), ("region", INK)):
        size = table.schema[name].size
        values = [
            sl.pair_leakage(belief, sl.create("grr", size, float(budget)).channel, "diabetes", name).value
            for budget in budgets
        ]
        axes.plot(budgets, values, color=colour, label=f"through {name}")
    axes.set(xlabel="budget of the neighbour", ylabel="leakage about diabetes (nats)", ylim=(0, 4.2))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def kinds() -> Figure:
    """Where each kind of figure lies beside the truth; a scheme, without numbers."""
    figure, axes = plt.subplots(figsize=(7.4, 1.9))
    axes.set(xlim=(0, 3.4), ylim=(-1, 1.6))
    axes.axis("off")
    axes.annotate("", (3.3, 0), (0.1, 0), arrowprops={"arrowstyle": "->", "color": INK})
    axes.text(3.3, -0.55, "nats", ha="right", color=INK)
    marks = (
        (0.65, "published", QUIET, "may be below"),
        (1.35, "lower", ACCENT, "a witness"),
        (1.9, "exact", WARNING, "the truth"),
        (2.6, "certified", ACCENT, "never below"),
    )
    for x, name, colour, meaning in marks:
        axes.plot([x, x], [-0.18, 0.18], color=colour, linewidth=3)
        axes.text(x, 0.9, name, ha="center", color=colour, weight="bold")
        axes.text(x, 0.42, meaning, ha="center", color=INK, fontsize=9)
    axes.plot([1.35, 2.6], [-0.5, -0.5], color=ACCENT, linewidth=1)
    axes.text(1.975, -0.95, "an interval", ha="center", color=ACCENT)
    return figure


def _box(axes: plt.Axes, x: float, y: float, text: str, colour: str) -> None:
    style = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
    axes.text(x, y, text, ha="center", va="center", color=INK, bbox=style)


def _arrow(axes: plt.Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})


def draw(folder: Path) -> list[Path]:
    """Write every picture to the folder; return where they are."""
    plt.switch_backend("Agg")
    plt.rcParams.update(STYLE)
    paths = []
    for picture in (sidelight, saturation, kinds):
        paths.append(folder / f"concept-{picture.__name__}.svg")
        picture().savefig(paths[-1], bbox_inches="tight", metadata={"Date": None})
        plt.close("all")
    return paths


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
