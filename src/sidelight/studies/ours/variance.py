"""The variance of the mechanisms against the budget and against the number of values."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sidelight.foundation.arrays import Array
from sidelight.mechanisms import create
from sidelight.studies.figures import STYLES, canvas, finish, legend_beside
from sidelight.studies.study import Reading, StudyResult, Work, measured

COMPARED = ("grr", "ss", "oue", "olh", "sue", "the", "she", "blh", "hadamard", "rappor")
_BUDGETS = np.geomspace(0.1, 6, 40)
_SIZES = np.unique(np.geomspace(2, 4096, 34).astype(int))
_PLACES = {"epsilon": _BUDGETS, "values": _SIZES}


SIZE = 100
"""The number of values where the budget varies."""
EPSILON = 1.0
"""The budget where the number of values varies."""


def variances(_quick: bool = False) -> dict[str, dict[str, Array]]:
    """Return the stated variance of one person's report about a value that nobody has, by mechanism.

    Once it is against the budget, "epsilon", and once against the number of "values".

    >>> by_size = variances()["values"]
    >>> bool(by_size["grr"][0] < by_size["oue"][0]), bool(by_size["grr"][-1] > by_size["oue"][-1])
    (True, True)
    """

    def variance(name: str, size: int, epsilon: float) -> float:
        return float(create(name, size, epsilon).variance(1, 0.0))

    return {
        "epsilon": {name: np.array([variance(name, SIZE, at) for at in _BUDGETS]) for name in COMPARED},
        "values": {name: np.array([variance(name, int(k), EPSILON) for k in _SIZES]) for name in COMPARED},
    }


def variance_figure(found: dict[str, dict[str, Array]]) -> Figure:
    """Return both panels as one figure."""
    figure, panels = canvas(9.5, 4.2, 2, sharey=True)
    words = (("nominal epsilon", f"{SIZE} values"), ("number of values", f"epsilon = {EPSILON:g}"))
    for axes, (against, lines), (label, title) in zip(panels, found.items(), words, strict=True):
        for number, (name, values) in enumerate(lines.items()):
            axes.loglog(_PLACES[against], values, STYLES[number % 4], label=name, linewidth=1.5)
        finish(axes, label, title=title)
    panels[0].set_ylabel("n x variance of a rare value's frequency")
    legend_beside(panels[1])
    return figure


def _judge_variance(found: dict[str, dict[str, Array]]) -> StudyResult:
    rows = [
        (name, against, float(x), float(y))
        for against, lines in found.items()
        for name, heights in lines.items()
        for x, y in zip(_PLACES[against], heights, strict=True)
    ]
    is_more = found["values"]["grr"] > found["values"]["oue"]
    crossed = int(is_more.argmax())
    crosses_once = bool(not is_more[0] and is_more[crossed:].all() and is_more.any())
    reason = (
        f"at epsilon {EPSILON:g} randomised response errs less than unary encoding up to "
        f"{_SIZES[crossed - 1]} values, and more from {_SIZES[crossed]} on"
        if crosses_once
        else f"at epsilon {EPSILON:g} randomised response and unary encoding do not cross once"
    )
    columns = ("mechanism", "against", "x", "variance")
    return StudyResult(measured(crosses_once, reason), {}, columns, tuple(rows))


_WORK = Work("mechanism-variance", variances)
STUDIES = {"mechanism-variance": Reading(_WORK, _judge_variance, variance_figure)}
