"""A study: one table or figure of a paper, or a benchmark of ours, with what is published and what we find.

A study reads its result from a *work*, the computation behind it. Several studies may share a work (the
figures of one simulation), which is then computed once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sidelight.foundation.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["reproduced", "differs", "refuted", "not possible", "measured"]
Value = float | str
OURS = "ours"
"""The "paper" of a study that no paper has."""


@dataclass(frozen=True)
class Verdict:
    """What became of a published statement."""

    # "reproduced", "differs", "refuted" or "not possible"; where nothing is published, "measured", or
    # "differs" if the result is not what we claim ourselves
    kind: Kind
    reason: str  # one line
    counter_example: str = ""  # of a refuted statement, the smallest case that shows it


@dataclass(frozen=True, eq=False)
class Drawing:
    """One figure that can be drawn."""

    name: str  # the file's name without its ending
    title: str  # what it shows, in a line
    build: Callable[[], Figure]  # returns the figure


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found."""

    verdict: Verdict  # against what is published
    # our value for each published one, by the same names
    ours: Mapping[str, Value] = field(default_factory=dict)
    columns: tuple[str, ...] = ()  # the names of the table's columns
    rows: tuple[tuple[Any, ...], ...] = ()  # the table
    drawings: tuple[Drawing, ...] = ()  # its figures


def plain_table(rows: Sequence[Any], *extra: str) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the column names and the rows of a table whose rows are dataclasses, with further properties."""
    names = (*(field.name for field in fields(rows[0])), *extra)
    return names, tuple(tuple(getattr(row, name) for name in names) for row in rows)


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def judged(is_met: bool, reason: str) -> Verdict:
    """Return the verdict on a claim that is met or not."""
    return Verdict("reproduced" if is_met else "differs", reason)


def measured(is_met: bool, reason: str) -> Verdict:
    """Return the verdict on a benchmark, where nothing is published: whether our own claim is met."""
    return Verdict("measured" if is_met else "differs", reason)


def gaps(ours: Mapping[str, Value], published: Mapping[str, Value]) -> dict[str, float]:
    """Return how far our number is from each published one."""
    return {name: abs(float(ours[name]) - float(printed)) for name, printed in published.items()}


def against_exact(
    figures: tuple[float, float],
    words: tuple[str, str],
    ours: Mapping[str, Value],
    what: str,
    label: str = "",
) -> StudyResult:
    """Return the result for a published bound on one figure, which is refuted where the exact one is above.

    `figures` are the published and the exact one, `words` the reason for the verdict and the smallest
    counter-example; `what` names the figure's column, and `label` the published figure in it.
    """
    published, exact = figures
    # both are computed in double precision: what differs by rounding refutes nothing
    verdict = refuted_if(exact > published + 1e-9, *words)
    rows = ((label or "published", published), ("exact", exact))
    return StudyResult(verdict, ours, ("figure", what), rows)


def refuted_if(is_refuted: bool, reason: str, case: str) -> Verdict:
    """Return the verdict on a statement that one case refutes."""
    return Verdict("refuted", reason, case) if is_refuted else Verdict("reproduced", reason)


@dataclass(frozen=True)
class Work:
    """A computation that one or more studies are read from."""

    name: str  # of the computation
    compute: Callable[[bool], Any]  # takes whether to be quick, returns what the studies read
    uses: tuple[str, ...] = ()  # tables that it reads if they are there, beyond those that its studies need
    minutes: float = 0.1  # about how long it takes in full, to start the longest first


@dataclass(frozen=True)
class Reading:
    """How a study is read from a work."""

    work: Work  # the computation behind it
    judge: Callable[[Any], StudyResult]  # turns what the work computed into the result
    # draws what the work computed, as the figure that has the study's name; None where it has none
    draw: Callable[[Any], Figure] | None = None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What is known of a study before its code is loaded."""

    name: str  # like "cpl-fig4a"
    paper: str  # the paper's short name, or "ours"
    title: str  # what it shows
    rule: str = ""  # how its verdict is decided from the result
    home: str = ""  # the module of this room whose `STUDIES` has its reading
    figure: str = ""  # the title of its drawing
    tables: Sequence[str] = ()  # the public tables without which it is not possible, by their files' names
    # the values and claims that the paper's text gives, by name; none for a study of ours
    published: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Study(Reading, Listing):
    """One table or figure with what is published about it, and how ours is found."""

    def read(self, computed: Any) -> StudyResult:
        """Return the result from what the work computed, the drawing that has the study's name first."""
        result = self.judge(computed)
        if self.draw is None:
            return result
        own = Drawing(self.name, self.figure, partial(self.draw, computed))
        return replace(result, drawings=(own, *result.drawings))

    def run(self, quick: bool = False) -> StudyResult:
        """Compute the study; a missing table or extra gives the verdict "not possible", never an error."""
        return run_together((self,), quick)[0]


def run_together(studies: tuple[Study, ...], quick: bool) -> list[StudyResult]:
    """Return the results of studies that share a work, computed once."""
    absences = [missing_tables(study.tables) for study in studies]
    if all(absences):
        return list(map(_without, absences))
    try:
        computed = studies[0].work.compute(quick)
    except MissingExtraError as error:
        return [StudyResult(Verdict("not possible", str(error)))] * len(studies)
    return [_without(a) if a else s.read(computed) for s, a in zip(studies, absences, strict=True)]


def _without(absent: list[str]) -> StudyResult:
    files = ", ".join(f"{name}.parquet" for name in absent)
    reason = f"{files} missing: put it into {data_folder()}, or set SIDELIGHT_DATA to the folder that has it"
    return StudyResult(Verdict("not possible", reason))


def data_folder() -> Path:
    """Return the folder of the public tables: SIDELIGHT_DATA, else `shared/data` beside the repository.

    An installed package has no repository: there it is `shared/data` in the working directory.
    """
    root = Path(__file__).resolve().parents[3]
    beside = root.parent if (root / "pyproject.toml").is_file() else Path.cwd()
    return Path(os.environ.get("SIDELIGHT_DATA", beside / "shared" / "data"))


def table_file(name: str) -> Path:
    """Return the file in which a public table is looked for."""
    return data_folder() / f"{name}.parquet"


def missing_tables(names: Iterable[str]) -> list[str]:
    """Return the tables among `names` that are not there."""
    return [name for name in names if not table_file(name).is_file()]


def existing_table(name: str) -> Path:
    """Return the file of a public table; raise with the folder's name where it is not there."""
    path = table_file(name)
    if not path.is_file():
        where = f"there is no {path.name} in {path.parent}"
        raise InputError(f"{where}; set SIDELIGHT_DATA to the folder of the tables.")
    return path
