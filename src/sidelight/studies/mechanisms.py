"""The variance of the mechanisms against the budget and against the number of values.

`python -m sidelight.studies.mechanisms OUT.svg` draws it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import write_atomically
from sidelight.mechanisms import create

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COMPARED = ("grr", "ss", "oue", "olh", "sue", "the", "she", "blh", "hadamard", "rappor")
_BUDGETS = np.geomspace(0.1, 6, 40)
_SIZES = np.unique(np.geomspace(2, 4096, 34).astype(int))
_SETTINGS: Any = {"svg.hashsalt": "sidelight", "svg.fonttype": "none", "font.size": 9}


@dataclass(frozen=True, eq=False)
class VarianceStudy:
    """The variance of one person's report about a value that nobody has, for each mechanism.

    Attributes:
        budgets: (b,) the nominal budgets of the first panel.
        by_budget: (b,) the variances at `size` values, by mechanism.
        sizes: (s,) the numbers of values of the second panel.
        by_size: (s,) the variances at budget `epsilon`, by mechanism.
        size: the number of values in the first panel.
        epsilon: the budget in the second panel.
    """

    budgets: NDArray[np.float64]
    by_budget: dict[str, NDArray[np.float64]]
    sizes: NDArray[np.int64]
    by_size: dict[str, NDArray[np.float64]]
    size: int
    epsilon: float


def variance_study(size: int = 100, epsilon: float = 1.0, names: Sequence[str] = COMPARED) -> VarianceStudy:
    """Compute the stated variance of each mechanism over budgets and over numbers of values.

    >>> study = variance_study(names=["grr", "oue"])
    >>> bool(study.by_size["grr"][0] < study.by_size["oue"][0])
    True
    >>> bool(study.by_size["grr"][-1] > study.by_size["oue"][-1])
    True
    """
    by_budget = {name: np.array([_variance(name, size, budget) for budget in _BUDGETS]) for name in names}
    by_size = {name: np.array([_variance(name, int(count), epsilon) for count in _SIZES]) for name in names}
    return VarianceStudy(_BUDGETS, by_budget, _SIZES, by_size, size, epsilon)


def _variance(name: str, size: int, epsilon: float) -> float:
    return float(create(name, size, epsilon).variance(1, 0.0))


def draw_variance(study: VarianceStudy, path: str | Path) -> Path:
    """Draw both panels to an SVG or PNG file; the same study always gives the same file."""
    from matplotlib import rc_context

    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in ("svg", "png"):
        raise InputError(f"{path} must end in .svg or .png.")
    with rc_context(_SETTINGS):
        figure = figure_of(study)
        metadata = {"Date": None} if kind == "svg" else {}
        return write_atomically(
            path, lambda temporary: figure.savefig(temporary, format=kind, metadata=metadata)
        )


def figure_of(study: VarianceStudy) -> Figure:
    """Return both panels as one figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, study.budgets, study.by_budget, "nominal epsilon", f"{study.size} values")
    _panel(right, study.sizes, study.by_size, "number of values", f"epsilon = {study.epsilon:g}")
    left.set_ylabel("n x variance of a rare value's frequency")
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def _panel(
    axes: Axes, x: NDArray[np.generic], lines: dict[str, NDArray[np.float64]], label: str, title: str
) -> None:
    for number, (name, values) in enumerate(lines.items()):
        style = ("-", "--", "-.", ":")[number % 4]
        axes.loglog(x, values, style, label=name, linewidth=1.5)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, which="major", alpha=0.3)


def main(arguments: Sequence[str]) -> int:
    """Draw the study to the file named on the command line."""
    if len(arguments) != 1:
        raise InputError("name one file to draw to, for example mechanism-variance.svg.")
    draw_variance(variance_study(), arguments[0])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
