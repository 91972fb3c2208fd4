"""Paper Corr-RR, Fig. 2 and the amplified budget: what needs no simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sidelight.leakage.published import sampling_amplification
from sidelight.protocols.budgets import record_budget
from sidelight.protocols.copies import published_copy
from sidelight.protocols.fake_data import rs_fd
from sidelight.studies.corr_rr.records import schema_of
from sidelight.studies.figures import canvas
from sidelight.studies.study import Drawing, Reading, StudyResult, Value, Work, against_exact, judged

Array = NDArray[np.float64]
COPY_LINES = (0.1, 0.3, 0.5, 0.7, 0.9)
PRINTED: dict[str, Value] = {
    "p_y where both marginals are 0.9": "near 1",
    "p_y where the marginals are 0.9 and 0.1": "near 0",
    "p_y where both marginals are 0.5": 0.5,
}
"""Fig. 2, read off."""


def copy_curves() -> dict[float, Array]:
    """Return Fig. 2: the published p_y against one marginal, for several others; shape (points, 2)."""
    grid = np.linspace(0.02, 0.98, 49)
    return {
        second: np.array(
            [(first, published_copy([first, 1 - first], [second, 1 - second], 1.0, 9000)) for first in grid]
        )
        for second in COPY_LINES
    }


def _copies_figure(copies: Mapping[float, Array]) -> Figure:
    figure, (axes,) = canvas(5.6, 3.6)
    for second, points in copies.items():
        axes.plot(points[:, 0], points[:, 1], label=f"second marginal {second:g}")
    axes.set(xlabel="first marginal", ylabel="probability to copy, as published")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _read_copies(curves: Mapping[float, Array]) -> StudyResult:
    rows = [(second, float(x), float(y)) for second, curve in curves.items() for x, y in curve]
    alike, unlike, even = (
        float(min(curves[second], key=lambda point: abs(point[0] - first))[1])
        for second, first in ((0.9, 0.9), (0.9, 0.1), (0.5, 0.5))
    )
    ours: dict[str, Value] = dict(zip(PRINTED, (alike, unlike, even), strict=True))
    verdict = judged(
        alike > 0.9 and unlike < 0.1 and abs(even - 0.5) < 0.05,
        "the rule copies a value exactly where two marginals are alike, whether or not the attributes depend "
        "on each other",
    )
    drawing = Drawing("corr-rr-fig2", "p_y against a marginal", partial(_copies_figure, curves))
    columns = ("second marginal", "first marginal", "p_y")
    return StudyResult(verdict, ours, columns, tuple(rows), (drawing,))


def _amplification(_quick: bool) -> tuple[float, float]:
    """Return the claimed and the exact record-level budget of RS+FD: two bits, claimed budget 1."""
    spent = sampling_amplification(1.0, 2).value
    return 1.0, record_budget(rs_fd(schema_of(2, 2), spent)).epsilon


def _read_amplification(budgets: tuple[float, float]) -> StudyResult:
    claimed, exact = budgets
    words = (
        f"hiding which attribute was sampled does not lower what a whole record spends: {exact:.4f}, not "
        f"{claimed:g}",
        f"two bits, budget ln(2(e - 1) + 1) = {math.log(2 * (math.e - 1) + 1):.4f} on the sampled one",
    )
    return against_exact(budgets, words, {"budget of a record, two bits": exact}, "epsilon", "claimed")


STUDIES = {
    "corr-rr-fig2": Reading(Work("corr-rr-copies", lambda _quick: copy_curves()), _read_copies, PRINTED),
    "corr-rr-amplification": Reading(
        Work("corr-rr-amplification", _amplification),
        _read_amplification,
        {"budget of a record, two bits": 1.0},
    ),
}
