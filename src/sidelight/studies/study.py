"""A study: one table or figure of a paper, or a benchmark of ours, with what is published and what we find.

A study reads its result from a *work*, the computation behind it. Several studies may share a work (the
figures of one simulation), which is then computed once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from sidelight.foundation.errors import MissingExtraError
from sidelight.studies.tables import data_folder, missing_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["reproduced", "differs", "refuted", "not possible", "measured"]
Value = float | str
OURS = "ours"
"""The "paper" of a study that no paper has."""


@dataclass(frozen=True)
class Verdict:
    """What became of a published statement.

    Attributes:
        kind: "reproduced", "differs", "refuted" or "not possible"; where nothing is published,
            "measured", or "differs" if the result is not what we claim ourselves.
        reason: one line.
        counter_example: of a refuted statement, the smallest case that shows it.
    """

    kind: Kind
    reason: str
    counter_example: str = ""


@dataclass(frozen=True, eq=False)
class Drawing:
    """One figure that can be drawn.

    Attributes:
        name: the file's name without its ending.
        title: what it shows, in a line.
        build: returns the figure.
    """

    name: str
    title: str
    build: Callable[[], Figure]


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found.

    Attributes:
        verdict: against what is published.
        ours: our value for each published one, by the same names.
        columns: the names of the table's columns.
        rows: the table.
        drawings: its figures.
    """

    verdict: Verdict
    ours: Mapping[str, Value] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    drawings: tuple[Drawing, ...] = ()


def plain_table(rows: Sequence[Any], *extra: str) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the column names and the rows of a table whose rows are dataclasses, with further properties."""
    names = (*(field.name for field in fields(rows[0])), *extra)
    return names, tuple(tuple(getattr(row, name) for name in names) for row in rows)


def columns_of(rows: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the columns of a table whose rows are dataclasses, by name."""
    names, cells = plain_table(rows)
    return dict(zip(names, zip(*cells, strict=True), strict=True))


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def judged(is_met: bool, reason: str) -> Verdict:
    """Return the verdict on a claim that is met or not."""
    return Verdict("reproduced" if is_met else "differs", reason)


def gaps(ours: Mapping[str, Value], published: Mapping[str, Value]) -> dict[str, float]:
    """Return how far our number is from each published one."""
    return {name: abs(float(ours[name]) - float(printed)) for name, printed in published.items()}


def against_exact(
    figures: tuple[float, float],
    words: tuple[str, str],
    ours: Mapping[str, Value],
    what: str,
    label: str = "published",
) -> StudyResult:
    """Return the result for a published bound on one figure, which is refuted where the exact one is above.

    Args:
        figures: the published figure and the exact one.
        words: the reason for the verdict, and the smallest counter-example.
        ours: our value for each published one.
        what: the name of the figure's column.
        label: what the published figure is called in the table.
    """
    published, exact = figures
    # both are computed in double precision: what differs by rounding refutes nothing
    kind: Kind = "refuted" if exact > published + 1e-9 else "reproduced"
    return StudyResult(Verdict(kind, *words), ours, ("figure", what), ((label, published), ("exact", exact)))


@dataclass(frozen=True)
class Work:
    """A computation that one or more studies are read from.

    Attributes:
        name: of the computation.
        compute: takes whether to be quick, returns what the studies read.
        tables: the public tables it needs, by the names of their files.
        uses: further tables it reads if they are there.
        minutes: about how long it takes in full, to start the longest first.
    """

    name: str
    compute: Callable[[bool], Any]
    tables: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    minutes: float = 0.1


@dataclass(frozen=True)
class Reading:
    """How a study is read from a work, and what is published about it.

    Attributes:
        work: the computation behind it.
        read: turns what the work computed into the result.
        published: the values and claims that the paper's text gives, by name; none for a study of ours.
        tables: tables it needs beyond those of its work.
    """

    work: Work
    read: Callable[[Any], StudyResult]
    published: Mapping[str, Value] = field(default_factory=dict)
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Study(Reading):
    """One table or figure with what is published about it.

    Attributes:
        name: like "cpl-fig4a".
        paper: the paper's short name, or "ours".
        title: what it shows.
    """

    name: str
    paper: str
    title: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The tables without which it is not possible."""
        return tuple(dict.fromkeys((*self.work.tables, *self.tables)))

    def run(self, quick: bool = False) -> StudyResult:
        """Compute the study; a missing table or extra gives the verdict "not possible", never an error."""
        return run_together((self,), quick)[0]


def run_together(studies: tuple[Study, ...], quick: bool) -> list[StudyResult]:
    """Return the results of studies that share a work, computed once."""
    work = studies[0].work
    absent = missing_tables(work.tables)
    if absent:
        return [_without(absent)] * len(studies)
    try:
        computed = work.compute(quick)
    except MissingExtraError as error:
        return [StudyResult(Verdict("not possible", str(error)))] * len(studies)
    return [_result(study, computed) for study in studies]


def _result(study: Study, computed: Any) -> StudyResult:
    absent = missing_tables(study.tables)
    return _without(absent) if absent else study.read(computed)


def _without(absent: list[str]) -> StudyResult:
    files = ", ".join(f"{name}.parquet" for name in absent)
    reason = f"{files} missing: put it into {data_folder()}, or set SIDELIGHT_DATA to the folder that has it"
    return StudyResult(Verdict("not possible", reason))
