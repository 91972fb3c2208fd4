"""Studies and benchmarks as lines and tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from sidelight.report.console import print_parts, print_plain, table_of
from sidelight.studies.runner import Outcome
from sidelight.studies.study import OURS, Listing, Study, missing_tables

if TYPE_CHECKING:  # a list of studies must not wait for what computes benchmarks
    from sidelight.studies.benchmarks import AnalyserBenchmark, MechanismBenchmark


def print_studies(studies: Iterable[Listing]) -> None:
    """Print every study's name, paper and title."""
    print_plain(("study", "paper", "title"), ((study.name, study.paper, study.title) for study in studies))


def print_study(study: Study) -> None:
    """Print what is published about a study and what it needs."""
    rows = [(name, shown(value)) for name, value in study.published.items()]
    told: RenderableType = "A benchmark of ours; no paper publishes it."
    if study.paper != OURS:
        told = table_of("Published", ("what", "value"), rows, left=("what",))
    parts = [f"{study.name} ({study.paper}): {study.title}", told, f"Verdict: {study.rule}."]
    if study.tables:
        absent = missing_tables(study.tables)
        missing = f"; missing: {', '.join(absent)}" if absent else ""
        parts.append(f"Tables: {', '.join(study.tables)}{missing}")
    together = f"Computed by the work {study.work.name!r}"
    print_parts([*parts, f"{together}; run it with `sidelight study run {study.name}`."])


def lines_of(outcome: Outcome) -> list[str]:
    """Return an outcome in one line, name, verdict and reason, and its counter-example in another."""
    if outcome.saved is None:
        return [f"{outcome.study.name}: failed: {outcome.error}"]
    saved = outcome.saved
    taken = "finished before" if outcome.state == "cached" else f"{saved.seconds:.1f} s"
    kind = "" if outcome.study.paper == OURS else f"{saved.verdict}: "
    line = f"{outcome.study.name}: {kind}{saved.reason} ({taken})"
    return [line, *([f"    counter-example: {saved.counter_example}"] if saved.counter_example else [])]


def print_tally(outcomes: Sequence[Outcome]) -> None:
    """Print how many studies ended how."""
    kinds = Counter(_ending(outcome) for outcome in outcomes)
    cached = sum(outcome.state == "cached" for outcome in outcomes)
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print_parts([f"{len(outcomes)} studies: {words}; {cached} were finished before."])


def _ending(outcome: Outcome) -> str:
    if outcome.saved is None:
        return "failed"
    return "of ours" if outcome.study.paper == OURS else outcome.saved.verdict


def shown(value: float | str) -> str:
    """Write a published value or ours.

    >>> shown(0.6201145), shown("R1"), shown(8.89e-5)
    ('0.6201', 'R1', '8.89e-05')
    """
    return value if isinstance(value, str) else f"{value:.4g}"


_REGIONS = {"P1": "exact", "R1": "only below", "R2": "only above", "R3": "both"}


def print_analysers(benchmark: AnalyserBenchmark) -> None:
    """Print undershoot, overshoot and region of every analyser."""
    columns = ("analyser", "epsilon", "undershoot", "overshoot", "region")
    grid = table_of(f"Analysers against {benchmark.reference}", columns, left=("analyser", "region"))
    for point in benchmark.points:
        low, high = f"{point.undershoot:.4f}", f"{point.overshoot:.4f}"
        words = f"{point.region} ({_REGIONS[point.region]})"
        grid.add_row(point.analyser, f"{point.epsilon:g}", low, high, words)
    print_parts([grid], [f"{name} was left out: {reason}" for name, reason in benchmark.refused.items()])


def print_mechanisms(benchmark: MechanismBenchmark) -> None:
    """Print leakage and errors of every mechanism."""
    titles = ("epsilon", "leakage, whole report", "leakage, guess", "frequency error", "wrong guesses")
    title = f"Mechanisms, {benchmark.people:,} people"
    grid = table_of(title, ("mechanism", *titles), left=("mechanism",))
    for point in benchmark.points:
        figures = (point.report, point.guess, point.frequency_error, point.wrong)
        cells = ("none" if figure is None else shown(figure) for figure in figures)
        grid.add_row(point.mechanism, f"{point.epsilon:g}", *cells)
    print_parts([grid], ["Leakage is TCPL as a share of that of the worst mechanism of the budget."])
