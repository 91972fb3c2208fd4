"""The commands `plan show`, `plan diff` and `plan check`: plans as things that people discuss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sidelight as sl
from sidelight.cli import common
from sidelight.cli.common import PAGE, check_writable, echo_json, progress, read_table
from sidelight.cli.options import Json, MinSupport, Names, Reading, ReportFile, flag, grouped
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.auditing import Sampling
    from sidelight.comparison import Change, Comparison

app = typer.Typer(
    name="plan",
    help="Read a plan, say what changes from one to another, or check one.",
    rich_markup_mode=None,
)
PlanFile = Annotated[Path, typer.Argument(help="A plan file (.toml or .json).")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print it as Markdown, for a review.")]
DataOption = Annotated[
    str | None, typer.Option("--data", help="A table: also say what leaks, and what estimates are worth.")
]


@dataclass(frozen=True)
class Said:
    """How a result is said."""

    markdown: Markdown = False
    json: Json = False

    def __post_init__(self) -> None:
        common.refuse_several({"--markdown": self.markdown or None, "--json": self.json or None})


@dataclass(frozen=True)
class Weighing:
    """What plans are weighed by, with --data."""

    secret: Names = flag(None, "A secret to compare; repeatable. All attributes by default.")
    people: int | None = flag(None, "How many people report [as many as the table has records].")
    delta: float | None = flag(None, "Compare what leaks at this delta [as the last plan says].")
    decide_by: str | None = flag(None, "Whose figures are compared [as the last plan says].")
    seed: int | None = flag(None, "For figures at delta that can be repeated.")
    min_support: MinSupport = 0
    report: ReportFile = None

    def __post_init__(self) -> None:
        """Refuse before the work what no table makes right."""
        check_writable(self.report, PAGE)
        if self.delta is not None:
            check_number("delta", self.delta, above=0, below=1)
        if self.decide_by is not None:
            check_choice("decide_by", self.decide_by, sl.auditing.ADVERSARIES)
        if self.people is not None:
            check_whole("people", self.people, at_least=1)
        check_whole("min_support", self.min_support, at_least=0)

    @property
    def sampling(self) -> Sampling:
        """How releases are drawn."""
        return sl.auditing.Sampling(seed=self.seed)

    def refuse_without_data(self) -> None:
        """Refuse options that say nothing about plans alone."""
        written = {f"--{name.replace('_', '-')}": value or None for name, value in vars(self).items()}
        if name := common.first_given(written):
            raise InputError(f"{name} is about what leaks; name the table too, as in --data people.csv.")


@app.command("show")
@grouped(project=False)
def show(plan: PlanFile, said: Said) -> None:
    """Show a plan in full: what is collected and how, what may leak, and the reasons."""
    read = sl.Plan.read(plan)
    if said.json:
        say_json(read.to_json())
        return
    sections = sl.report.plan_sections(read)
    if said.markdown:
        _say_lines(sl.report.markdown(sections, headline=str(plan)))
    else:
        sl.report.print_sections(sections)


@app.command("diff")
@grouped()
def diff(
    before: PlanFile, after: PlanFile, data: DataOption = None, *, weighing: Weighing, reading: Reading,
    said: Said,
) -> None:  # fmt: skip
    """Say what changes from one plan to another; with --data also in leakage and error.

    Exit code 1 means that one of the plans is not certified to keep its limits, with the table at hand.
    """
    plans = read_plans([before, after])
    if data is None:
        weighing.refuse_without_data()
        _show_changes(sl.comparison.changes(*plans.values()), said)
        return
    with progress(quiet=said.json or said.markdown):
        result = weighed(data, plans, reading, weighing)
    show_comparison(result, said, weighing.report)


@app.command("check")
@grouped()
def check(plan: PlanFile, data: DataOption = None, *, reading: Reading, json: Json = False) -> None:
    """Check a plan: its budgets, its limits and, with --data, whether it fits a table and keeps them.

    Exit code 0 means that nothing speaks against it, 1 that a limit is broken or not certified to be kept,
    2 that it cannot be read, or does not fit the table.
    """
    read = sl.Plan.read(plan)
    belief = None
    with progress(quiet=json):
        if data is not None:
            belief = sl.Belief.from_data(read_table(data, reading, read))
        found = sl.comparison.check(read, belief)
    if json:
        say_json(found.to_json())
    else:
        for line in sl.report.check_lines(found):
            say(line)
    if not found.is_fit:
        raise typer.Exit(1)


def read_plans(paths: Sequence[Path]) -> dict[str, sl.Plan]:
    """Read plans, each called by as much of its path as tells it from the others."""
    names = [path.name for path in paths]
    shown = [str(path) for path in paths] if len(set(names)) < len(names) else names
    if len(set(shown)) < len(shown):
        raise InputError(f"{shown[0]} is named twice; name plans that differ.")
    return {name: sl.Plan.read(path) for name, path in zip(shown, paths, strict=True)}


def weighed(
    data: str, plans: Mapping[str, sl.Plan], reading: Reading, weighing: Weighing, *,
    sampling: Sampling | None = None, smoothing: float = 0.0,
) -> Comparison:  # fmt: skip
    """Weigh plans under a table, which is read for each with the values that it knows."""
    named = weighing.secret or []
    beliefs = {
        name: sl.Belief.from_data(read_table(data, reading, plan, named), smoothing=smoothing)
        for name, plan in plans.items()
    }
    return sl.comparison.compare(
        beliefs, plans, weighing.secret, delta=weighing.delta, decide_by=weighing.decide_by,  # type: ignore[arg-type]
        people=weighing.people, sampling=sampling or weighing.sampling, min_support=weighing.min_support,
    )  # fmt: skip


def show_comparison(result: Comparison, said: Said, report: Path | None) -> None:
    """Write the report that was asked for, print the comparison, and exit as an audit of the plans would."""
    written = sl.write_report(result, report) if report else None
    if said.json:
        say_json(result.to_json())
    elif said.markdown:
        _say_lines(sl.report.comparison_markdown(result))
    else:
        sl.report.print_comparison(result)
        if written:
            say(f"The report is in {written}.")
    if result.is_within is False:
        raise typer.Exit(1)


def _show_changes(found: Sequence[Change], said: Said) -> None:
    if said.json:
        echo_json([asdict(change) for change in found])
        return
    sections = {"changes": sl.report.changes_section(found)}
    if said.markdown:
        _say_lines(sl.report.markdown(sections))
    else:
        sl.report.print_sections(sections)


def _say_lines(text: str) -> None:
    for line in text.split("\n"):
        say(line)
