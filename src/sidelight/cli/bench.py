"""The commands `bench analysers` and `bench mechanisms`: the two benchmarks of paper CPL on any table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Bins,
    Column,
    Data,
    Drop,
    Encoding,
    Json,
    MaxValues,
    Missing,
    Na,
    Sql,
    check_writable,
    echo_json,
    progress,
)

if TYPE_CHECKING:
    from sidelight.belief import Belief
    from sidelight.leakage.analysers import Analyser
    from sidelight.studies.benchmarks import Maker

app = typer.Typer(
    name="bench",
    help="Compare analysers of leakage, or mechanisms by error against leakage, your own among them.",
    rich_markup_mode=None,
)

Epsilon = Annotated[
    list[float] | None, typer.Option(help="A budget of every attribute, below 30; repeatable [1, 3, 5].")
]
AnalyserOption = Annotated[
    list[str] | None,
    typer.Option(help="One of yours as module:object, beside the paper's seven; repeatable."),
]
Reference = Annotated[
    str, typer.Option(help="'generic', a mechanism's name (its whole reports), or module:object.")
]
MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A further one, by its name or as module:object, beside the paper's eight; repeatable."
    ),
]
FigureFile = Annotated[Path | None, typer.Option("--figure", help="Draw to this .svg or .png file.")]


@app.command("analysers")
def analysers(
    data: Data,
    analyser: AnalyserOption = None,
    reference: Reference = "generic",
    epsilon: Epsilon = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    column: Column = None,
    na: Na = None,
    sql: Sql = None,
    figure: FigureFile = None,
    json: Json = False,
) -> None:
    """Place analysers by how far they are below and above a reference, over all pairs of attributes."""
    from sidelight.foundation.modules import load_object
    from sidelight.leakage.analysers import ANALYSERS
    from sidelight.report.studies import print_analysers
    from sidelight.studies.benchmarks import BUDGETS, benchmark_analysers

    check_writable(figure, (".svg", ".png"))
    chosen = dict(ANALYSERS) | {name: load_object(name, "analyser") for name in analyser or []}
    rules: dict[str, Any] = {"bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding}
    rules |= {"columns": column, "na": na, "sql": sql}
    with progress(quiet=json):
        belief = _belief(data, drop, rules)
        truth = _reference(reference)
        found = benchmark_analysers(belief, chosen, epsilon or BUDGETS, reference=truth, name=reference)
    if figure:
        from sidelight.studies.benchmarks import analyser_figure

        _draw(figure, analyser_figure({Path(data).stem: found}))
    if json:
        echo_json(asdict(found))
    else:
        print_analysers(found)


@app.command("mechanisms")
def mechanisms(
    data: Data,
    mechanism: MechanismOption = None,
    epsilon: Epsilon = None,
    drop: Drop = None,
    bins: Bins = 10,
    max_values: MaxValues = 50,
    missing: Missing = "value",
    encoding: Encoding = "utf-8",
    column: Column = None,
    na: Na = None,
    sql: Sql = None,
    figure: FigureFile = None,
    json: Json = False,
) -> None:
    """Place mechanisms by frequency error and wrong guesses against their share of the worst leakage."""
    from sidelight.report.studies import print_mechanisms
    from sidelight.studies.benchmarks import BUDGETS, MAKERS, benchmark_mechanisms

    check_writable(figure, (".svg", ".png"))
    chosen: Mapping[str, Maker] = dict(MAKERS) | {name: _maker(name) for name in mechanism or []}
    rules: dict[str, Any] = {"bins": bins, "max_values": max_values, "missing": missing, "encoding": encoding}
    rules |= {"columns": column, "na": na, "sql": sql}
    with progress(quiet=json):
        found = benchmark_mechanisms(_belief(data, drop, rules), chosen, epsilon or BUDGETS)
    if figure:
        from sidelight.studies.benchmarks import mechanism_figure

        _draw(figure, mechanism_figure(found, "frequency_error", "frequency error"))
    if json:
        echo_json(asdict(found))
    else:
        print_mechanisms(found)


def _belief(data: str, drop: list[str] | None, rules: dict[str, Any]) -> Belief:
    import sidelight as sl

    return sl.Belief.from_data(sl.read(data, drop=drop or [], **rules))


def _reference(name: str) -> Analyser:
    from sidelight.leakage.analysers import generic_analysis
    from sidelight.studies.benchmarks import exact_analysis

    if name == "generic":
        return generic_analysis
    if ":" in name:
        from sidelight.foundation.modules import load_object

        found: Analyser = load_object(name, "reference")
        return found
    return exact_analysis(_maker(name))


def _maker(name: str) -> Maker:
    """Return what makes a mechanism: one of ours by name, a class with `from_plan`, or any function."""
    from functools import partial

    from sidelight.foundation.errors import check_choice
    from sidelight.foundation.modules import load_object
    from sidelight.mechanisms import MECHANISMS, create

    if ":" not in name:
        return partial(create, check_choice("mechanism", name, MECHANISMS))
    found = load_object(name, "mechanism")
    if hasattr(found, "from_plan"):
        return lambda size, epsilon: found.from_plan(size, epsilon, {})
    maker: Maker = found
    return maker


def _draw(path: Path, figure: Any) -> None:
    from sidelight.studies.outputs import save_figure

    save_figure(figure, path)
