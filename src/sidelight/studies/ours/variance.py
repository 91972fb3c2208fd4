"""The variance of the mechanisms against the budget and against the number of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Whole
from sidelight.mechanisms import create
from sidelight.studies.figures import STYLES, canvas, finish, legend_beside
from sidelight.studies.study import Reading, StudyResult, Verdict, Work

COMPARED = ("grr", "ss", "oue", "olh", "sue", "the", "she", "blh", "hadamard", "rappor")
_BUDGETS = np.geomspace(0.1, 6, 40)
_SIZES = np.unique(np.geomspace(2, 4096, 34).astype(int))


@dataclass(frozen=True, eq=False)
class VarianceStudy:
    """The variance of one person's report about a value that nobody has, for each mechanism."""

    budgets: Array  # (b,) the nominal budgets of the first panel
    by_budget: dict[str, Array]  # (b,) the variances at `size` values, by mechanism
    sizes: Whole  # (s,) the numbers of values of the second panel
    by_size: dict[str, Array]  # (s,) the variances at budget `epsilon`, by mechanism
    size: int  # the number of values in the first panel
    epsilon: float  # the budget in the second panel


def variance_study(size: int = 100, epsilon: float = 1.0, names: Sequence[str] = COMPARED) -> VarianceStudy:
    """Compute the stated variance of each mechanism over budgets and over numbers of values.

    >>> study = variance_study(names=["grr", "oue"])
    >>> bool(study.by_size["grr"][0] < study.by_size["oue"][0])
    True
    >>> bool(study.by_size["grr"][-1] > study.by_size["oue"][-1])
    True
    """

    def variance(name: str, size: int, epsilon: float) -> float:
        return float(create(name, size, epsilon).variance(1, 0.0))

    by_budget = {name: np.array([variance(name, size, budget) for budget in _BUDGETS]) for name in names}
    by_size = {name: np.array([variance(name, int(count), epsilon) for count in _SIZES]) for name in names}
    return VarianceStudy(_BUDGETS, by_budget, _SIZES, by_size, size, epsilon)


def variance_figure(study: VarianceStudy) -> Figure:
    """Return both panels as one figure."""
    figure, (left, right) = canvas(9.5, 4.2, 2, sharey=True)
    _panel(left, study.budgets, study.by_budget, "nominal epsilon", f"{study.size} values")
    _panel(right, study.sizes, study.by_size, "number of values", f"epsilon = {study.epsilon:g}")
    left.set_ylabel("n x variance of a rare value's frequency")
    legend_beside(right)
    return figure


def _panel(axes: Axes, x: NDArray[np.generic], lines: dict[str, Array], label: str, title: str) -> None:
    for number, (name, values) in enumerate(lines.items()):
        axes.loglog(x, values, STYLES[number % 4], label=name, linewidth=1.5)
    finish(axes, label, title=title)


def _judge_variance(study: VarianceStudy) -> StudyResult:
    panels = (("epsilon", study.budgets, study.by_budget), ("values", study.sizes, study.by_size))
    rows = [
        (name, against, float(x), float(y))
        for against, places, lines in panels
        for name, heights in lines.items()
        for x, y in zip(places, heights, strict=True)
    ]
    crossed = int((study.by_size["grr"] > study.by_size["oue"]).argmax())
    reason = (
        f"at epsilon {study.epsilon:g} randomised response errs less than unary encoding up to "
        f"{study.sizes[crossed - 1]} values, and more from {study.sizes[crossed]} on"
    )
    columns = ("mechanism", "against", "x", "variance")
    return StudyResult(Verdict("measured", reason), {}, columns, tuple(rows))


_WORK = Work("mechanism-variance", lambda _quick: variance_study())
STUDIES = {"mechanism-variance": Reading(_WORK, _judge_variance, variance_figure)}
