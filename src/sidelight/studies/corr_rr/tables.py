"""Paper Corr-RR, Table 1 and Fig. 3: the real tables and the correlations of their codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sidelight.studies.corr_rr.records import available_tables, correlations, real
from sidelight.studies.figures import canvas
from sidelight.studies.study import Drawing, Reading, StudyResult, Work, judged

Array = NDArray[np.float64]
PRINTED = {"clave": (16, 2, -0.07, 0.05), "nursery": (8, 3, -0.07, 0.05), "mushroom": (9, 6, -0.37, 0.6)}
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
        return same and abs(self.least - least) < 0.011 and abs(self.largest - largest) < 0.011


def _row(name: str) -> TableRow:
    schema, codes = real(name)
    matrix = correlations(codes)
    apart = matrix[~np.eye(len(matrix), dtype=bool)]
    return TableRow(
        name, len(schema), schema.sizes, len(codes), float(apart.min()), float(apart.max()),
        PRINTED.get(name), matrix,
    )  # fmt: skip


def _read_table_1(rows: list[TableRow]) -> StudyResult:
    shown = {
        row.name: f"{row.attributes} attributes, {', '.join(map(str, sorted(set(row.values))))} values, "
        f"correlations {row.least:.2f} to {row.largest:.2f}"
        for row in rows
        if row.printed is not None
    }
    differing = [row.name for row in rows if not row.agrees]
    reason = "clave and mushroom agree to the printed digits"
    if differing:
        reason += (
            f"; {', '.join(differing)} cannot: its inputs are a full factorial, exactly independent, and the "
            "printed range is clave's"
        )
    columns = ("table", "attributes", "people", "least correlation", "largest correlation", "agrees")
    table = tuple(
        (row.name, row.attributes, row.people, row.least, row.largest, str(row.agrees)) for row in rows
    )
    return StudyResult(judged(not differing, reason), shown, columns, table)


def _read_matrices(rows: list[TableRow]) -> StudyResult:
    result = _read_table_1(rows)
    drawing = Drawing("corr-rr-fig3", "correlations of the codes", partial(_matrices_figure, rows))
    ours = {f"{row.name}: largest correlation": row.largest for row in rows if row.printed is not None}
    return replace(result, ours=ours, drawings=(drawing,))


def _matrices_figure(rows: list[TableRow]) -> Figure:
    figure, panels = canvas(3.2 * len(rows), 3.2, len(rows))
    for axes, row in zip(panels, rows, strict=True):
        shown = axes.imshow(np.nan_to_num(row.matrix), vmin=-1, vmax=1, cmap="RdBu")
        axes.set_title(row.name, fontsize=10)
    figure.colorbar(shown, ax=figure.axes, shrink=0.8)
    return figure


_WORK = Work(
    "corr-rr-tables",
    lambda _quick: [_row(name) for name in available_tables()],
    tables=tuple(PRINTED),
    uses=("adult",),
)
_FORMS = {
    name: f"{attributes} attributes, {values} values, correlations {least:.2f} to {largest:.2f}"
    for name, (attributes, values, least, largest) in PRINTED.items()
}
_LARGEST = {f"{name}: largest correlation": printed[-1] for name, printed in PRINTED.items()}
STUDIES = {
    "corr-rr-table1": Reading(_WORK, _read_table_1, _FORMS),
    "corr-rr-fig3": Reading(_WORK, _read_matrices, _LARGEST),
}
