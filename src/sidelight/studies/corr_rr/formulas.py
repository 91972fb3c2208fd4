"""Paper Corr-RR, Table 1, Figs. 2 and 3 and the amplified budget: what needs no simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sidelight.estimation.second_phase import published_copy
from sidelight.foundation.arrays import Array
from sidelight.leakage.published import sampling_amplification
from sidelight.protocols.fake_data import rs_fd
from sidelight.protocols.protocol import record_budget
from sidelight.studies.corr_rr.records import available_tables, correlations, real, schema_of
from sidelight.studies.figures import canvas
from sidelight.studies.register import beside
from sidelight.studies.study import Reading, StudyResult, Work, against_exact, judged

TABLE_1 = {"clave": (16, 2, -0.07, 0.05), "nursery": (8, 3, -0.07, 0.05), "mushroom": (9, 6, -0.37, 0.6)}
"""Table 1 as printed: attributes, values, least and largest correlation."""


@dataclass(frozen=True, eq=False)
class TableRow:
    """One row of Table 1, ours beside the printed one."""

    name: str
    attributes: int
    values: tuple[int, ...]
    people: int
    least: float
    largest: float
    printed: tuple[int, int, float, float] | None
    matrix: Array

    @property
    def agrees(self) -> bool:
        """Whether form and correlations agree with the printed row to its digits."""
        if self.printed is None:
            return True
        attributes, values, least, largest = self.printed
        same = self.attributes == attributes and set(self.values) == {values}
        return same and abs(self.least - least) < 0.011 and abs(self.largest - largest) < 0.011  # to 0.01


def _row(name: str) -> TableRow:
    schema, codes = real(name)
    matrix = correlations(codes)
    apart = matrix[~np.eye(len(matrix), dtype=bool)]
    ends = (float(apart.min()), float(apart.max()))
    return TableRow(name, len(schema), schema.sizes, len(codes), *ends, TABLE_1.get(name), matrix)


def _form(row: TableRow) -> str:
    sizes = ", ".join(map(str, sorted(set(row.values))))
    return f"{row.attributes} attributes, {sizes} values, correlations {row.least:.2f} to {row.largest:.2f}"


def _judge_table_1(rows: list[TableRow]) -> StudyResult:
    shown = beside("corr-rr-table1", *(_form(row) for row in rows if row.printed))
    differing = [row.name for row in rows if not row.agrees]
    alike = " and ".join(row.name for row in rows if row.printed and row.agrees)
    reason = f"to the printed digits: {alike or 'none'}"
    if differing:
        reason += f"; not {' and '.join(differing)}"
    if "nursery" in differing:
        reason += (
            ": nursery's inputs are a full factorial, exactly independent, and the printed range is clave's"
        )
    columns = ("table", "attributes", "people", "least correlation", "largest correlation", "agrees")
    table = [(row.name, row.attributes, row.people, row.least, row.largest, str(row.agrees)) for row in rows]
    return StudyResult(judged(not differing, reason), shown, columns, tuple(table))


def _judge_matrices(rows: list[TableRow]) -> StudyResult:
    ours = beside("corr-rr-fig3", *(row.largest for row in rows if row.printed))
    return replace(_judge_table_1(rows), ours=ours)


def _matrices_figure(rows: list[TableRow]) -> Figure:
    figure, panels = canvas(3.2 * len(rows), 3.2, len(rows))
    for axes, row in zip(panels, rows, strict=True):
        # a constant column has no correlation, which is drawn as none
        shown = axes.imshow(np.nan_to_num(row.matrix), vmin=-1, vmax=1, cmap="RdBu")
        axes.set_title(row.name, fontsize=10)
    figure.colorbar(shown, ax=figure.axes, shrink=0.8)
    return figure


_TABLES = Work("corr-rr-tables", lambda _: list(map(_row, available_tables())), ("adult",))
COPY_LINES = (0.1, 0.3, 0.5, 0.7, 0.9)


def copy_curves(_quick: bool = False) -> dict[float, Array]:
    """Return Fig. 2: the published p_y against one marginal, for several others; shape (points, 2)."""

    def copy(first: float, second: float) -> float:
        # nine tenths of 10,000 people are in the second phase
        return published_copy([first, 1 - first], [second, 1 - second], 1.0, 9000)

    grid = np.linspace(0.02, 0.98, 49)
    return {second: np.array([(first, copy(first, second)) for first in grid]) for second in COPY_LINES}


def _copies_figure(copies: Mapping[float, Array]) -> Figure:
    figure, (axes,) = canvas(5.6, 3.6)
    for second, points in copies.items():
        axes.plot(points[:, 0], points[:, 1], label=f"second marginal {second:g}")
    axes.set(xlabel="first marginal", ylabel="probability to copy, as published")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _judge_copies(curves: Mapping[float, Array]) -> StudyResult:
    rows = [(second, float(x), float(y)) for second, curve in curves.items() for x, y in curve]
    alike, unlike, even = (
        float(min(curves[second], key=lambda point: abs(point[0] - first))[1])
        for second, first in ((0.9, 0.9), (0.9, 0.1), (0.5, 0.5))
    )
    verdict = judged(
        alike > 0.9 and unlike < 0.1 and abs(even - 0.5) < 0.05,  # as far as a drawing can be read
        f"p_y is {alike:.2f}, {unlike:.2f} and {even:.2f}: it depends on how alike two marginals are, not on "
        "whether the attributes depend on each other",
    )
    columns = ("second marginal", "first marginal", "p_y")
    return StudyResult(verdict, beside("corr-rr-fig2", alike, unlike, even), columns, tuple(rows))


def _amplification(_quick: bool) -> tuple[float, float]:
    """Return the claimed and the exact record-level budget of RS+FD: two bits, claimed budget 1."""
    spent = sampling_amplification(1.0, 2).value
    return 1.0, record_budget(rs_fd(schema_of(2, 2), spent)).epsilon


def _judge_amplification(budgets: tuple[float, float]) -> StudyResult:
    claimed, exact = budgets
    words = (
        f"hiding which attribute was sampled does not lower what a whole record spends: {exact:.4f}, not "
        f"{claimed:g}; the claim is RS+FD's, which the paper only cites for its second phase, and its own "
        "Theorem 5 does not rest on it (see corr-rr-theorem5)",
        f"two bits, budget ln(2(e - 1) + 1) = {math.log(2 * (math.e - 1) + 1):.4f} on the sampled one",
    )
    return against_exact(budgets, words, beside("corr-rr-amplification", exact), "epsilon", "claimed")


STUDIES = {
    "corr-rr-table1": Reading(_TABLES, _judge_table_1),
    "corr-rr-fig3": Reading(_TABLES, _judge_matrices, _matrices_figure),
    "corr-rr-fig2": Reading(Work("corr-rr-copies", copy_curves), _judge_copies, _copies_figure),
    "corr-rr-amplification": Reading(Work("corr-rr-amplification", _amplification), _judge_amplification),
}
