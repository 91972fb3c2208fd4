"""Paper CPL, Tables I and II: leakage counted from replicated records against exact and worst-case figures.

Every coding of `readings` is tried, and two ways to count: infinite columns left out and told, or as the
public artefact does it (cells of no count ignored, the result cut at epsilon). Beside them stands the exact
figure of a guess, which counting comes to with ever more replicates. A table is shown in the reading that
meets most of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sidelight.foundation.progress import track
from sidelight.leakage import leakage_error
from sidelight.leakage.analysers import generic_analysis
from sidelight.studies.benchmarks import MAKERS, exact_analysis
from sidelight.studies.cpl.readings import CODINGS, REPLICATES, coded, count_leakage
from sidelight.studies.register import CATALOGUE
from sidelight.studies.study import Reading, StudyResult, Work, judged, plain_table

DSS = "DSS is not available"
"""What becomes of the paper's fourth table."""
SMALL = 5.5e-3
"""Below this all errors of Table I lie, the text says."""
NEAR = 0.016
"""How far a value of Table II may be from the printed one; two draws of one reading differ by less."""
COUNTED, ARTEFACT, EXACT = "counted", "counted as the artefact does", "exact guesses"


@dataclass(frozen=True)
class ErrorRow:
    """How far leakages are from a theory's, over all ordered pairs of a table (CPL, eq. (29))."""

    data: str  # the table
    coding: str  # how it is coded, in words
    way: str  # how the leakage was found
    epsilon: float  # the budget of every attribute
    mechanism: str  # what perturbs
    to_worst: float  # NMSE-CPL against the worst mechanism of the budget (Algorithm 2)
    to_exact: float  # NMSE-CPL against the exact figure of the guess (Algorithm 1)
    infinite: int  # pairs that are infinite when counted, since a cell was never seen

    @property
    def reading(self) -> tuple[str, str]:
        """How the table was coded, and how the leakage was found."""
        return self.coding, self.way


def error_rows(quick: bool) -> list[ErrorRow]:
    """Return both tables in every reading; quickly, in the first coding of each table."""
    rows = []
    chosen = {name: codings[: 1 if quick else None] for name, codings in CODINGS.items()}
    tried = [(name, coding) for name, codings in chosen.items() for coding in codings]
    for name, coding in track(tried, "codings"):
        belief = coded(name, coding)
        for epsilon in (1.0, 3.0):
            worst = generic_analysis(belief, epsilon)
            for mechanism, maker in MAKERS.items():
                exact = exact_analysis(maker, guess=True)(belief, epsilon)
                counted = count_leakage(belief, maker, epsilon)
                ways = {COUNTED: counted.finite, ARTEFACT: counted.artefact, EXACT: exact}
                for way, found in ways.items():
                    errors = (leakage_error(worst, found), leakage_error(exact, found))
                    lost = counted.infinite if way == COUNTED else 0
                    rows.append(ErrorRow(name, coding.words, way, epsilon, mechanism, *errors, lost))
    return rows


Meets = Callable[[ErrorRow, float], bool]
"""Whether a row meets the printed value."""


def _best(rows: Sequence[ErrorRow], printed: Sequence[float], meets: Meets) -> tuple[list[ErrorRow], int]:
    """Return a table's rows in the reading that meets most of its values, and how many it meets."""
    by_reading: dict[tuple[str, str], list[ErrorRow]] = {}
    for row in rows:
        by_reading.setdefault(row.reading, []).append(row)

    def met(chosen: Sequence[ErrorRow]) -> int:
        return sum(meets(row, value) for row, value in zip(chosen, printed, strict=True))

    best = max(by_reading.values(), key=met)
    return best, met(best)


def _judge(
    name: str, rows: Sequence[ErrorRow], meets: Meets, value: Callable[[ErrorRow], float]
) -> StudyResult:
    """Judge a table: every printed value must be met in the best reading of its data."""
    published = {key: float(printed) for key, printed in CATALOGUE[name].published.items()}
    ours: dict[str, float | str] = {}
    words, missed = [], []
    for data in dict.fromkeys(row.data for row in rows):
        printed = {key: number for key, number in published.items() if key.startswith(f"{data}, ")}
        best, count = _best([row for row in rows if row.data == data], list(printed.values()), meets)
        found = dict(zip(printed, best, strict=True))
        ours |= {key: value(row) for key, row in found.items()}
        missed += [key for key, row in found.items() if not meets(row, printed[key])]
        lost = sum(row.infinite for row in best)
        words.append(
            f"{data} {count} of {len(printed)} ({best[0].coding}; {best[0].way}"
            f"{f'; {lost} infinite estimates are left out' if lost else ''})"
        )
    readings = len({(row.data, *row.reading) for row in rows})
    reason = (
        f"met in the best reading of each table: {'; '.join(words)}. Codings and ways of counting tried, "
        f"with {REPLICATES} replicates: {readings}"
    )
    if missed:
        reached = {_key(row) for row in rows if meets(row, published[_key(row)])}
        never = [key for key in missed if key not in reached]
        reason += f"; not met: {'; '.join(missed)}; in no reading: {'; '.join(never) or 'none of these'}"
    ordered = {key: ours[key] for key in published}
    return StudyResult(judged(not missed, f"{reason}; {DSS}"), ordered, *plain_table(rows))


def _key(row: ErrorRow) -> str:
    return f"{row.data}, epsilon {row.epsilon:g}, {row.mechanism}"


def _judge_table_1(rows: Sequence[ErrorRow]) -> StudyResult:
    """Judge the text's claim that every error of an estimate is below 5.5e-3."""
    chosen = [row for row in rows if row.mechanism in ("GRR", "EXP") and row.way != EXACT]
    return _judge("cpl-table1", chosen, lambda row, _: row.to_exact < SMALL, lambda row: row.to_exact)


def _judge_table_2(rows: Sequence[ErrorRow]) -> StudyResult:
    """Judge every value by its distance from the printed one."""
    return _judge(
        "cpl-table2", rows, lambda row, printed: abs(row.to_worst - printed) <= NEAR, lambda row: row.to_worst
    )


_WORK = Work("cpl-tables", error_rows, minutes=1)
STUDIES = {
    "cpl-table1": Reading(_WORK, _judge_table_1),
    "cpl-table2": Reading(_WORK, _judge_table_2),
}
