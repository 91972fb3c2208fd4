"""Paper CPL, Figs. 6 and 7: both benchmarks on its tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from sidelight.leakage.analysers import ANALYSERS, TOLERANCE, randomised_response_analysis
from sidelight.studies import AnalyserBenchmark, MechanismBenchmark, benchmark_analysers, benchmark_mechanisms
from sidelight.studies import benchmarks as bench
from sidelight.studies.cpl.pairs import belief_of
from sidelight.studies.cpl.readings import FILES, QUARTILES, Coding, coded
from sidelight.studies.cpl.tables import DSS
from sidelight.studies.register import CATALOGUE, beside
from sidelight.studies.study import (
    Reading,
    StudyResult,
    Value,
    Verdict,
    Work,
    judged,
    missing_tables,
    plain_table,
    refuted_if,
)

Benchmarks = Mapping[str, AnalyserBenchmark]
"""Analysers on several tables, by name."""
_ITS = "ITS"
_NOISE = 2e-3
"""What 50 replicates may stray by on the mean of all pairs, in units of epsilon, and still count as 0."""


def _placed(*names: str, analysers: Mapping[str, Any] = ANALYSERS, **reference: Any) -> Benchmarks:
    """Place analysers on tables, by default against the worst mechanism of the budget."""
    return {name: benchmark_analysers(belief_of(name), analysers, **reference) for name in names}


def _against_response(_quick: bool) -> Benchmarks:
    """Place ITS and CBP against randomised response."""
    two = {name: ANALYSERS[name] for name in (_ITS, "CBP")}
    return _placed(*FILES, analysers=two, reference=randomised_response_analysis, name="GRR, exact")


def _against_unary(_quick: bool) -> Benchmarks:
    """Place ITS against unary encoding: what is estimated of guesses, and whole reports."""
    references = {
        "guess": (bench.statistical_analysis(bench.MAKERS["OUE"]), "OUE, guesses counted", _NOISE),
        "report": (bench.exact_analysis(bench.MAKERS["OUE"]), "OUE, whole reports", TOLERANCE),
    }
    return {
        f"{name}, {kept}": placed
        for kept, (reference, label, noise) in references.items()
        for name, placed in _placed(
            *FILES, analysers={_ITS: ANALYSERS[_ITS]}, reference=reference, name=label, tolerance=noise
        ).items()
    }


def _regions(benchmark: AnalyserBenchmark, analyser: str = _ITS) -> str:
    return ", ".join(dict.fromkeys(point.region for point in benchmark.points if point.analyser == analyser))


def _listed(benchmarks: Benchmarks) -> str:
    """Say in which regions ITS lies, table by table."""
    return ", ".join(f"{_regions(benchmark)} on {name}" for name, benchmark in benchmarks.items())


def _result(verdict: Verdict, ours: Mapping[str, Value], placed: Benchmarks) -> StudyResult:
    """Return the result of Fig. 6, a point a row."""
    columns = ("data", "reference", "analyser", "epsilon", "undershoot", "overshoot", "region")
    rows = [(data, b.reference, *row) for data, b in placed.items() for row in plain_table(b.points)[1]]
    return StudyResult(verdict, ours, columns, tuple(rows))


def _judge_figure_6b(faces: Benchmarks) -> StudyResult:
    published = CATALOGUE["cpl-fig6b"].published
    ours = {name: _regions(faces["CelebA"], name) for name in published}
    missed = [name for name, printed in published.items() if ours[name] != printed]
    met = "every analyser lies in the region that is printed"
    reason = f"not met: {', '.join(missed)}" if missed else met
    return _result(judged(not missed, f"{reason}, at epsilon 1, 3 and 5"), ours, faces)


def _judge_figure_6c(others: Benchmarks) -> StudyResult:
    as_told = all(_regions(benchmark) == "R1" for benchmark in others.values())
    said = "undershoots as told" if as_told else "does not undershoot as told"
    reason = f"{DSS}; on other tables with more than two values ITS {said} ({_listed(others)})"
    verdict = Verdict("not possible" if as_told else "differs", reason)
    return _result(verdict, beside("cpl-fig6c", _listed(others)), others)


def _judge_figure_6d(response: Benchmarks) -> StudyResult:
    regions = dict.fromkeys(map(_regions, response.values()))
    ours = beside("cpl-fig6d", ", ".join(regions), _regions(response["CelebA"], "CBP"))
    reason = "ITS is exact for randomised response; CBP, as read here, takes the smaller of two directions"
    return _result(judged(ours == CATALOGUE["cpl-fig6d"].published, f"{reason}; {DSS}"), ours, response)


def _judge_figure_6e(both: Benchmarks) -> StudyResult:
    guessed, reported = (
        {name.removesuffix(kept): benchmark for name, benchmark in both.items() if name.endswith(kept)}
        for kept in (", guess", ", report")
    )
    below = [name for name, found in reported.items() if {"R1", "R3"} & {*_regions(found).split(", ")}]
    above = [name for name, found in guessed.items() if _regions(found) == "R2"]
    verdict = refuted_if(
        bool(below),
        "that ITS may stand in for OUE, since it overshoots, holds for an adversary who guesses on "
        f"{' and '.join(above) or 'no table'}{'' if len(above) == len(guessed) else ' alone'}; whole reports "
        f"of OUE leak more than ITS says on {' and '.join(below) or 'none'}; {DSS}",
        "rows (.4, .4, .1, .1) and (.1, .1, .4, .4) at epsilon 1: ITS says 0.36457, OUE leaks 0.56945",
    )
    regions = f"guess: {_listed(guessed)}; whole report: {_listed(reported)}"
    return _result(verdict, beside("cpl-fig6e", regions), both)


def _judge_figure_7(name: str, placed: Mapping[str, MechanismBenchmark]) -> StudyResult:
    adult = placed["Adult"]
    at_1 = {point.mechanism: point for point in adult.points if point.epsilon == 1}
    hashing, subset = at_1["OLH"], at_1["SS"]
    guess = (hashing.guess or 0.0) / (subset.guess or 1.0)
    report = hashing.report / subset.report
    error = [hashing.frequency_error or 0.0] if name == "cpl-fig7a" else []
    ours = beside(name, f"guess {guess:.2f}, whole report {report:.2f}", *error)
    reason = (
        f"OLH leaks {guess:.0%} of what SS does to an adversary who guesses (printed 60 %), and {report:.0%} "
        "to one who keeps the whole report: that it hides more at the same error is an artefact of the guess"
    )
    case = "eq. (28) at epsilon 1: local hashing with all functions, OUE and SS all leak 0.62011"
    # to the one printed digit of 60 %
    verdict = refuted_if(True, reason, case) if report >= 1 else judged(abs(guess - 0.6) < 0.05, reason)
    columns = ("data", *plain_table(adult.points)[0])
    rows = [(data, *row) for data, found in placed.items() for row in plain_table(found.points)[1]]
    return StudyResult(verdict, ours, columns, tuple(rows))


def _figure_7(name: str, utility: str, label: str) -> Reading:
    def draw(placed: Mapping[str, MechanismBenchmark]) -> Figure:
        return bench.mechanism_figure(placed["Adult"], utility, label)

    return Reading(_MECHANISMS, partial(_judge_figure_7, name), draw)


def _mechanisms(_quick: bool) -> dict[str, MechanismBenchmark]:
    """Run the benchmark with numbers in quartiles, which bring Fig. 7's 60 % out; ten bins give 73 %."""
    there = [name for name, file in FILES.items() if not missing_tables([file])]
    codings = dict.fromkeys(there, QUARTILES) | {"CelebA": Coding()}
    return {name: benchmark_mechanisms(coded(name, codings[name])) for name in there}


_FACES = Work("cpl-fig6b", lambda _quick: _placed("CelebA"))
_OTHERS = Work("cpl-fig6c", lambda _quick: _placed("Adult", "Cardio"))
_UNARY = Work("cpl-fig6e", _against_unary, minutes=0.3)
_MECHANISMS = Work("cpl-mechanisms", _mechanisms, uses=tuple(FILES.values()))
STUDIES = {
    "cpl-fig6b": Reading(_FACES, _judge_figure_6b, bench.analyser_figure),
    "cpl-fig6c": Reading(_OTHERS, _judge_figure_6c, bench.analyser_figure),
    "cpl-fig6d": Reading(Work("cpl-fig6d", _against_response), _judge_figure_6d, bench.analyser_figure),
    "cpl-fig6e": Reading(_UNARY, _judge_figure_6e, bench.analyser_figure),
    "cpl-fig7a": _figure_7("cpl-fig7a", "frequency_error", "frequency error"),
    "cpl-fig7b": _figure_7("cpl-fig7b", "wrong", "share of wrong guesses"),
}
