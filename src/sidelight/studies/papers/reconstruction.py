"""Paper Reconstruction: Figs. 2 to 5, Theorems 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sidelight.studies.study import Drawing, Kind, Study, StudyResult, Value, Verdict, Work

if TYPE_CHECKING:
    from sidelight.belief import Belief
    from sidelight.studies.attacks import AttackStudy, Row

_STRICTER = "Fig. 2, stricter secret"
_STRONGEST: tuple[Kind, ...] = ("refuted", "differs", "reproduced", "not possible")
_CONTROL = "settings in which the published attack beats the guess without a release"
_NEARER = "settings in which the published attack is nearer to the truth than the release"


def _run(quick: bool) -> AttackStudy:
    from sidelight.studies.attacks import run

    return run(quick)


_WORK = Work(
    "attacks",
    _run,
    tables=("nyse_fundamentals",),
    uses=("geolife_sample", "sf_cabs_sample"),
    minutes=15,
)


def _read_figure(number: str, found: AttackStudy) -> StudyResult:
    from dataclasses import fields

    from sidelight.studies.attack_figures import distances_figure, levels_figure, rows_of
    from sidelight.studies.attacks import Row

    rows = rows_of(found.rows, f"Fig. {number}")
    stricter = rows_of(found.rows, _STRICTER) if number == "2" else []
    names = tuple(field.name for field in fields(Row))
    table = tuple((*(getattr(row, name) for name in names), row.removed) for row in (*rows, *stricter))
    draw = partial(levels_figure, rows, f"Fig. {number}")
    drawings = [Drawing(f"reconstruction-fig{number}", "mean distance to the truth", draw)]
    if stricter:
        title = "mean distance where the secret has half of the others' budget"
        draw = partial(levels_figure, stricter, _STRICTER)
        drawings.append(Drawing("reconstruction-fig2-stricter", title, draw))
    if number == "2" and found.densities:
        draw = partial(distances_figure, found)
        drawings.append(Drawing("reconstruction-fig2-distances", "density and share of distances", draw))
    return StudyResult(
        _verdict(number, found.verdicts, rows),
        _ours(number, rows),
        (*names, "removed"),
        table,
        tuple(drawings),
    )


def _verdict(number: str, lines: Sequence[str], rows: Sequence[Row]) -> Verdict:
    """Return the figure's verdict over all tables: the strongest of theirs, with every reason."""
    figure = f"Fig. {number}, "
    parts = [line.removeprefix(figure).partition(": ") for line in lines if line.startswith(figure)]
    kinds: list[Kind] = [Verdict.parse(words).kind for _, _, words in parts]
    kind: Kind = min(kinds, key=_STRONGEST.index) if kinds else "not possible"
    if number == "3":
        published = [row for row in rows if row.attacker == "published"]
        kind = "reproduced" if all(row.score < row.release for row in published) else "differs"
    reasons = [
        f"{table}: {words.removeprefix('not possible to compare: ').rstrip('.')}" for table, _, words in parts
    ]
    if kind == "not possible":
        reasons.insert(0, "no share is published for the tables of this run")
    return Verdict(kind, "; ".join(reasons))


def _ours(number: str, rows: Sequence[Row]) -> dict[str, Value]:
    published = [row for row in rows if row.attacker == "published"]
    found: dict[str, Value] = {
        name: _removed([row for row in published if row.kind == kind])
        for name, kind in _KINDS.items()
        if name in _PUBLISHED[number]
    }
    if _NEARER in _PUBLISHED[number]:
        found[_NEARER] = f"{sum(row.score < row.release for row in published)} of {len(published)}"
    found[_CONTROL] = f"{sum(row.beats_control for row in published)} of {len(published)}"
    return found


def _removed(rows: Sequence[Row]) -> Value:
    shares = [row.removed for row in rows if row.model in ("mlp", "cnn")]
    if not shares:
        return "not computed: quick, or its tables are missing"
    return f"{min(shares):.1%} to {max(shares):.1%}, by budget and model"


_KINDS = {
    "vehicular: share of the noise removed": "vehicular",
    "finance: share of the noise removed": "finance",
}
_PUBLISHED: dict[str, dict[str, Value]] = {
    "2": {
        "vehicular: share of the noise removed": "46.84%",
        "finance: share of the noise removed": "50.50%",
        _CONTROL: "no control",
    },
    "3": {_NEARER: "all", _CONTROL: "no control"},
    "4": {
        "vehicular: share of the noise removed": "38.58%",
        "finance: share of the noise removed": "18.71%",
        _CONTROL: "no control",
    },
    "5": {"vehicular: share of the noise removed": "33.28%", _CONTROL: "no control"},
}


def _theorems(_quick: bool) -> dict[str, tuple[float, float]]:
    """Return each theorem's published figure and the exact one, for C = A + B with fair bits, all reported.

    Of Theorem 1 the figures are budgets; of Theorem 2 the probability that its budget fails.
    """
    from sidelight.belief import Belief
    from sidelight.leakage import reconstruction_sum, total_leakage
    from sidelight.mechanisms import create

    joint = [[[0.25, 0, 0], [0, 0.25, 0]], [[0, 0.25, 0], [0, 0, 0.25]]]
    belief = Belief.from_joint(joint, ["a", "b", "c"])
    channels = {name: create("grr", belief.schema[name].size, 1.0).channel for name in "abc"}
    exact = total_leakage(belief, channels, "c", "exact").value
    return {
        "theorem 1": (reconstruction_sum(1.0, [1.0, 1.0]).value, exact),
        "theorem 2": (_SLACK, _failure(belief)),
    }


def _failure(belief: Belief) -> float:
    """Return how often the budget that Theorem 2 states fails: budget 1 on C, 0.1 on A and B."""
    import numpy as np

    from sidelight.leakage import reconstruction_advanced
    from sidelight.leakage.divergence import delta_at
    from sidelight.mechanisms import create

    budgets = {"a": 0.1, "b": 0.1, "c": 1.0}
    cells = belief.joint(["c", "a", "b"])
    law = {name: create("grr", belief.schema[name].size, budgets[name]).channel.matrix() for name in budgets}
    rows = np.einsum("cab,ax,by,cz->cxyz", cells, law["a"], law["b"], law["c"]).reshape(len(cells), -1)
    stated = reconstruction_advanced(1.0, 0.1, 2, _SLACK).value
    return float(delta_at(rows / rows.sum(axis=1, keepdims=True), stated)[0])


_SLACK = 1e-6


def _read_theorem(name: str, what: str, case: str, found: dict[str, tuple[float, float]]) -> StudyResult:
    published, exact = found[name]
    verdict = Verdict(
        "refuted" if exact > published + 1e-9 else "reproduced",
        f"the secret's own report and the others' are seen together: {exact:.4g}, not {published:g}",
        case,
    )
    return StudyResult(verdict, {what: exact}, ("figure", what), (("published", published), ("exact", exact)))


_TITLES = {
    "2": "five networks under Laplace noise",
    "3": "Laplace and Gaussian noise against the budget",
    "4": "intervals",
    "5": "swaps within an entity",
}
_FORMULAS = Work("reconstruction-theorems", _theorems)


def _figure(number: str) -> Study:
    title = f"Fig. {number}: {_TITLES[number]}"
    read = partial(_read_figure, number)
    return Study(f"reconstruction-fig{number}", "Reconstruction", title, _WORK, read, _PUBLISHED[number])


def _theorem(number: str, what: str, printed: float, case: str) -> Study:
    read = partial(_read_theorem, f"theorem {number}", what, case)
    name, title = f"reconstruction-theorem{number}", f"Theorem {number}: the effective budget"
    return Study(name, "Reconstruction", title, _FORMULAS, read, {what: printed})


STUDIES: tuple[Study, ...] = (
    *(_figure(number) for number in _PUBLISHED),
    _theorem(
        "1", "budget spent on C", 2.0, "C = A + B, fair bits, randomised response of budget 1 on all three"
    ),
    _theorem(
        "2",
        "probability that budget 1 fails",
        _SLACK,
        "C = A + B, fair bits, budget 1 on C and 0.1 on A and B, slack 1e-6",
    ),
)
