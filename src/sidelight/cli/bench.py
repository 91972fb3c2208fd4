"""The commands `bench analysers` and `bench mechanisms`: the two benchmarks of paper CPL on any table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import check_writable, echo_json, progress, read_table
from sidelight.cli.options import WITHOUT_ENGINE, Data, Json, Names, Reading, flag, grouped
from sidelight.foundation.errors import check_choice
from sidelight.foundation.modules import load_object

if TYPE_CHECKING:
    from sidelight.studies.benchmarks import Maker

app = typer.Typer(
    name="bench",
    help="Compare analysers of leakage, or mechanisms by error against leakage, your own among them.",
    rich_markup_mode=None,
)

_WITHOUT = (*WITHOUT_ENGINE, "schema", "kinds")
Epsilon = Annotated[
    list[float] | None, typer.Option(help="A budget of every attribute, below 30; repeatable [1, 3, 5].")
]


@dataclass(frozen=True)
class Analysers:
    """The analysers, and what they are measured by."""

    analyser: Names = flag(None, "One of yours as module:object, beside the paper's seven; repeatable.")
    reference: str = flag("generic", "'generic', a mechanism's name (its whole reports), or module:object.")
    epsilon: Epsilon = None


@dataclass(frozen=True)
class Mechanisms:
    """The mechanisms."""

    mechanism: Names = flag(
        None, "A further one, by its name or as module:object, beside the paper's eight; repeatable."
    )
    epsilon: Epsilon = None


@dataclass(frozen=True)
class Drawn:
    """How a benchmark is shown."""

    figure: Path | None = flag(None, "Draw to this .svg or .png file.", "--figure")
    json: Json = False

    def __post_init__(self) -> None:
        """Refuse before the work a figure that could not be drawn after it."""
        check_writable(self.figure, (".svg", ".png"))

    def show(self, result: Any, figure: Callable[[], Any], printer: Callable[[Any], None]) -> None:
        """Draw the benchmark if a file is named, and print it."""
        from sidelight.studies.outputs import save_figure

        if self.figure:
            save_figure(figure(), self.figure)
        if self.json:
            echo_json(asdict(result))
        else:
            printer(result)


@app.command("analysers")
@grouped(without=_WITHOUT)
def analysers(data: Data, chosen: Analysers, reading: Reading, drawn: Drawn) -> None:
    """Place analysers by how far they are below and above a reference, over all pairs of attributes."""
    from sidelight.studies.benchmarks import BUDGETS, analyser_figure, benchmark_analysers

    own = {name: load_object(name, "analyser") for name in chosen.analyser or []}
    with progress(quiet=drawn.json):
        belief = sl.Belief.from_data(read_table(data, reading))
        result = benchmark_analysers(
            belief, dict(sl.leakage.ANALYSERS) | own, chosen.epsilon or BUDGETS,
            reference=_reference(chosen.reference), name=chosen.reference,
        )  # fmt: skip
    drawn.show(result, lambda: analyser_figure({Path(data).stem: result}), sl.report.print_analysers)


@app.command("mechanisms")
@grouped(without=_WITHOUT)
def mechanisms(data: Data, chosen: Mechanisms, reading: Reading, drawn: Drawn) -> None:
    """Place mechanisms by frequency error and wrong guesses against their share of the worst leakage."""
    from sidelight.studies.benchmarks import BUDGETS, MAKERS, benchmark_mechanisms, mechanism_figure

    own = {name: _maker(name) for name in chosen.mechanism or []}
    with progress(quiet=drawn.json):
        belief = sl.Belief.from_data(read_table(data, reading))
        result = benchmark_mechanisms(belief, dict(MAKERS) | own, chosen.epsilon or BUDGETS)
    error = partial(mechanism_figure, result, "frequency_error", "frequency error")
    drawn.show(result, error, sl.report.print_mechanisms)


def _reference(name: str) -> sl.leakage.Analyser:
    from sidelight.leakage.analysers import generic_analysis
    from sidelight.studies.benchmarks import exact_analysis

    if name == "generic":
        return generic_analysis
    if ":" in name:
        reference: sl.leakage.Analyser = load_object(name, "reference")
        return reference
    return exact_analysis(_maker(name))


def _maker(name: str) -> Maker:
    """Return what makes a mechanism: one of ours by name, a class with `from_plan`, or any function."""
    if ":" not in name:
        return partial(sl.create, check_choice("mechanism", name, sl.mechanisms.MECHANISMS))
    named = load_object(name, "mechanism")
    if hasattr(named, "from_plan"):
        return lambda size, epsilon: named.from_plan(size, epsilon, {})
    maker: Maker = named
    return maker
