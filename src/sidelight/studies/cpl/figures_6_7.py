"""Paper CPL, Figs. 6 and 7: both benchmarks on its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from sidelight.leakage.analysers import ANALYSERS, TOLERANCE, randomised_response_analysis
from sidelight.studies.benchmarks import (
    MAKERS,
    AnalyserBenchmark,
    MechanismBenchmark,
    MechanismPoint,
    analyser_figure,
    benchmark_analysers,
    benchmark_mechanisms,
    exact_analysis,
    mechanism_figure,
    statistical_analysis,
)
from sidelight.studies.cpl.records import DSS, THREE, available, belief_of
from sidelight.studies.study import Drawing, Kind, Study, StudyResult, Value, Verdict, Work

_ITS = "ITS"
_NOISE = 2e-3
"""What 50 replicates may stray by on the mean of all pairs, in units of epsilon, and still count as 0."""


@dataclass(frozen=True)
class BenchmarkStudy:
    """Both benchmarks on the tables that are there.

    Attributes:
        generic: analysers against the worst mechanism of the budget, by table.
        response: against randomised response.
        guessed: against what is estimated of guesses from unary encoding.
        reported: against whole reports of unary encoding.
        mechanisms: the second benchmark, by table.
    """

    generic: Mapping[str, AnalyserBenchmark]
    response: Mapping[str, AnalyserBenchmark]
    guessed: Mapping[str, AnalyserBenchmark]
    reported: Mapping[str, AnalyserBenchmark]
    mechanisms: Mapping[str, MechanismBenchmark]


def _run(_quick: bool) -> BenchmarkStudy:
    beliefs = {name: belief_of(name) for name in available()}
    two = {name: ANALYSERS[name] for name in (_ITS, "CBP")}
    one = {_ITS: ANALYSERS[_ITS]}
    references: dict[str, tuple[Any, Any, str, float]] = {
        "response": (two, randomised_response_analysis, "GRR, exact", TOLERANCE),
        "guessed": (one, statistical_analysis(MAKERS["OUE"]), "OUE, guesses counted", _NOISE),
        "reported": (one, exact_analysis(MAKERS["OUE"]), "OUE, whole reports", TOLERANCE),
    }
    placed = {
        key: {
            name: benchmark_analysers(belief, analysers, reference=reference, name=label, tolerance=tolerance)
            for name, belief in beliefs.items()
        }
        for key, (analysers, reference, label, tolerance) in references.items()
    }
    generic = {name: benchmark_analysers(belief) for name, belief in beliefs.items()}
    mechanisms = {name: benchmark_mechanisms(belief) for name, belief in beliefs.items()}
    return BenchmarkStudy(generic, **placed, mechanisms=mechanisms)


_WORK = Work("cpl-benchmarks", _run, uses=THREE, minutes=0.4)
_COLUMNS = ("data", "reference", "analyser", "epsilon", "undershoot", "overshoot", "region")


def _regions(benchmark: AnalyserBenchmark, analyser: str) -> str:
    return ", ".join(dict.fromkeys(point.region for point in benchmark.points if point.analyser == analyser))


def _rows(benchmarks: Mapping[str, AnalyserBenchmark]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (data, benchmark.reference, *(getattr(point, field.name) for field in fields(point)))
        for data, benchmark in benchmarks.items()
        for point in benchmark.points
    )


def _plane(name: str, title: str, benchmarks: Mapping[str, AnalyserBenchmark]) -> Drawing:
    return Drawing(name, title, partial(analyser_figure, benchmarks))


def _read_figure_6b(study: BenchmarkStudy) -> StudyResult:
    faces = {"CelebA": study.generic["CelebA"]}
    ours: dict[str, Value] = {name: _regions(faces["CelebA"], name) for name in _FIGURE_6B}
    missed = [name for name, printed in _FIGURE_6B.items() if ours[name] != printed]
    kind: Kind = "differs" if missed else "reproduced"
    reason = (
        f"not met: {', '.join(missed)}" if missed else "every analyser lies in the region that is printed"
    )
    drawing = _plane("cpl-fig6b", "analysers on CelebA", faces)
    return StudyResult(
        Verdict(kind, f"{reason}, at epsilon 1, 3 and 5"), ours, _COLUMNS, _rows(faces), (drawing,)
    )


def _read_figure_6c(study: BenchmarkStudy) -> StudyResult:
    others = {name: study.generic[name] for name in ("Adult", "Cardio")}
    regions = {name: _regions(benchmark, _ITS) for name, benchmark in others.items()}
    shown = ", ".join(f"{region} on {name}" for name, region in regions.items())
    ours: dict[str, Value] = {"ITS on a table that is not binary": shown}
    reason = f"{DSS}; on other tables with more than two values ITS undershoots as told ({shown})"
    drawing = _plane("cpl-fig6c", "analysers on Adult and Cardio", others)
    return StudyResult(Verdict("not possible", reason), ours, _COLUMNS, _rows(others), (drawing,))


def _read_figure_6d(study: BenchmarkStudy) -> StudyResult:
    regions = dict.fromkeys(_regions(benchmark, _ITS) for benchmark in study.response.values())
    ours: dict[str, Value] = {
        "ITS, every table": ", ".join(regions),
        "CBP on CelebA": _regions(study.response["CelebA"], "CBP"),
    }
    holds = ours == _FIGURE_6D
    reason = "ITS is exact for randomised response; CBP, as read here, takes the smaller of two directions"
    verdict = Verdict("reproduced" if holds else "differs", f"{reason}; {DSS}")
    drawing = _plane("cpl-fig6d", "ITS and CBP against exact randomised response", study.response)
    return StudyResult(verdict, ours, _COLUMNS, _rows(study.response), (drawing,))


def _read_figure_6e(study: BenchmarkStudy) -> StudyResult:
    guessed = {name: _regions(benchmark, _ITS) for name, benchmark in study.guessed.items()}
    reported = {name: _regions(benchmark, _ITS) for name, benchmark in study.reported.items()}
    ours: dict[str, Value] = {
        "ITS against OUE": f"guess: {_listed(guessed)}; whole report: {_listed(reported)}"
    }
    below = [name for name, region in reported.items() if "R1" in region or "R3" in region]
    verdict = Verdict(
        "refuted" if below else "reproduced",
        "that ITS may stand in for OUE, since it overshoots, holds for an adversary who guesses (but for "
        "estimates of rare values, which stray upwards); whole "
        f"reports of OUE leak more than ITS says on {' and '.join(below)}; {DSS}",
        "rows (.4, .4, .1, .1) and (.1, .1, .4, .4) at epsilon 1: ITS says 0.36457, OUE leaks 0.56945",
    )
    both = {f"{name}, guess": benchmark for name, benchmark in study.guessed.items()}
    both |= {f"{name}, report": benchmark for name, benchmark in study.reported.items()}
    drawing = _plane("cpl-fig6e", "ITS against unary encoding", both)
    return StudyResult(verdict, ours, _COLUMNS, _rows(both), (drawing,))


def _listed(regions: Mapping[str, str]) -> str:
    return ", ".join(f"{region} on {name}" for name, region in regions.items())


def _read_figure_7(utility: str, label: str, name: str, study: BenchmarkStudy) -> StudyResult:
    adult = study.mechanisms["Adult"]
    at_1 = {point.mechanism: point for point in adult.points if point.epsilon == 1}
    hashing, subset = at_1["OLH"], at_1["SS"]
    guess = (hashing.guess or 0.0) / (subset.guess or 1.0)
    report = hashing.report / subset.report
    ours: dict[str, Value] = {
        "OLH over SS, normalised TCPL, epsilon 1": f"guess {guess:.2f}, whole report {report:.2f}"
    }
    if utility == "frequency_error":
        ours["OLH, frequency error, epsilon 1"] = hashing.frequency_error or 0.0
    verdict = Verdict(
        "refuted" if report >= 1 else "reproduced" if abs(guess - 0.6) < 0.05 else "differs",
        f"OLH leaks {guess:.0%} of what SS does to an adversary who guesses (printed 60 %), and {report:.0%} "
        "to one who keeps the whole report: that it hides more at the same error is an artefact of the guess",
        "eq. (28) at epsilon 1: local hashing with all functions, OUE and SS all leak 0.62011 about the "
        "second attribute",
    )
    columns = tuple(field.name for field in fields(MechanismPoint))
    rows = tuple(
        (data, *(getattr(point, column) for column in columns))
        for data, benchmark in study.mechanisms.items()
        for point in benchmark.points
    )
    drawing = Drawing(
        name, f"{label} against leakage, Adult", partial(mechanism_figure, adult, utility, label)
    )
    return StudyResult(verdict, ours, ("data", *columns), rows, (drawing,))


_FIGURE_6B: dict[str, Value] = {
    "SPL-ANL": "R2",
    "GRF 0.2": "R3",
    "GRF 0.4": "R3",
    "ITS": "P1",
    "CBP": "R1",
    "GRR-ANL": "P1",
    "EXP-ANL": "R1",
}
_FIGURE_6D: dict[str, Value] = {"ITS, every table": "P1", "CBP on CelebA": "R1"}
_FREQUENCY: dict[str, Value] = {
    "OLH over SS, normalised TCPL, epsilon 1": 0.6,
    "OLH, frequency error, epsilon 1": 0.002,
}


def _study(key: str, title: str, read: Any, published: dict[str, Value], tables: Sequence[str]) -> Study:
    return Study(f"cpl-{key}", "CPL", title, _WORK, read, published, tuple(tables))


STUDIES = (
    _study("fig6b", "Fig. 6(b): analysers on CelebA", _read_figure_6b, _FIGURE_6B, ("celeba_attr",)),
    _study(
        "fig6c",
        "Fig. 6(c): analysers on a table that is not binary",
        _read_figure_6c,
        {"ITS on a table that is not binary": "R1 on DSS"},
        ("adult", "cardio"),
    ),
    _study("fig6d", "Fig. 6(d): ITS and CBP against GRR", _read_figure_6d, _FIGURE_6D, THREE),
    _study(
        "fig6e",
        "Fig. 6(e): ITS against OUE",
        _read_figure_6e,
        {"ITS against OUE": "R2 on every table"},
        THREE,
    ),
    _study(
        "fig7a",
        "Fig. 7(a): frequency error against leakage",
        partial(_read_figure_7, "frequency_error", "frequency error", "cpl-fig7a"),
        _FREQUENCY,
        ("adult",),
    ),
    _study(
        "fig7b",
        "Fig. 7(b): 0-1 error against leakage",
        partial(_read_figure_7, "wrong", "share of wrong guesses", "cpl-fig7b"),
        {"OLH over SS, normalised TCPL, epsilon 1": 0.6},
        ("adult",),
    ),
)
