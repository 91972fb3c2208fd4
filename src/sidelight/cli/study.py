"""The commands `study list`, `study show`, `study run` and `study clean`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sidelight as sl
from sidelight.cli.common import echo_json, progress
from sidelight.cli.options import Json, flag, grouped
from sidelight.foundation.errors import InputError, check_number
from sidelight.foundation.progress import track
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.studies.runner import Outcome, Settings

app = typer.Typer(
    name="study", help="The papers' tables and figures, and benchmarks of ours.", rich_markup_mode=None
)

Store = Annotated[
    Path | None, typer.Option(help="Where finished studies are kept [a cache folder of the user's].")
]


@dataclass(frozen=True)
class Running:
    """How studies are run, and where their outputs go."""

    quick: bool = flag(False, "Fewer points, people and repetitions.", "--quick")
    out: Path | None = flag(None, "Copy every study's table and figures to a folder in this one.", "--out")
    fresh: bool = flag(False, "Compute again what is finished.", "--fresh")
    workers: int | None = flag(None, "Processes at a time [2, or 1 on one core].")
    store: Store = None
    pages: Path | None = flag(
        None, "Write the pages of documentation to this folder; needs `all`, and that none fails."
    )


@app.command("list")
def list_studies(json: Json = False) -> None:
    """List every study, paper by paper."""
    if json:
        echo_json([_described(study) for study in sl.studies.all_studies()])
    else:
        sl.report.print_studies(sl.studies.CATALOGUE.values())


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A study's name.")], json: Json = False) -> None:
    """Show what is published about a study, and what it needs."""
    study = sl.studies.find_study(name)
    if json:
        echo_json(_described(study))
    else:
        sl.report.print_study(study)


@app.command("run")
@grouped()
def run(
    name: Annotated[str, typer.Argument(help="A study's name, or `all`.")],
    running: Running,
    json: Json = False,
) -> None:
    """Run one study or `all`; finished ones are taken from the cache, and an interruption keeps them."""
    from sidelight.studies.cache import default_store
    from sidelight.studies.pages import write_pages
    from sidelight.studies.runner import Settings

    out, pages = running.out, running.pages
    chosen = sl.studies.all_studies() if name == "all" else (sl.studies.find_study(name),)
    if pages is not None and (name != "all" or out is None):
        raise InputError("--pages draws on the outputs of every study; say `run all --out FOLDER` with it.")
    workers = min(2, os.cpu_count() or 1) if running.workers is None else running.workers
    settings = Settings(running.store or default_store(), out, running.quick, running.fresh, workers)
    outcomes = _run(chosen, settings, quiet=json)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if pages is not None and out is not None and not failed:
        write_pages(out, pages)
    if json:
        echo_json([_told(outcome) for outcome in outcomes])
    elif len(chosen) > 1:
        sl.report.print_tally(outcomes)
    if failed:
        raise typer.Exit(3 if any(outcome.is_fault for outcome in failed) else 2)


@app.command("clean")
def clean(
    days: Annotated[float, typer.Option(help="Only what has not been used for so many days.")] = 0.0,
    everything: Annotated[bool, typer.Option("--all", help="Also what this version would take.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Remove finished studies that this version would not take: of former code, libraries or tables."""
    from sidelight.studies.cache import clean as clean_store
    from sidelight.studies.cache import default_store

    folder = store or default_store()
    found = clean_store(folder, unused_days=check_number("days", days, at_least=0), everything=everything)
    if json:
        echo_json({"store": str(folder), **asdict(found)})
    else:
        words = f"{found.removed} finished works removed, {found.freed:,} bytes; {found.kept} kept"
        say(f"{words} in {folder}.")


def _run(chosen: tuple[sl.studies.Study, ...], settings: Settings, *, quiet: bool) -> list[Outcome]:
    """Run, telling each outcome as it comes."""
    from sidelight.studies.runner import run_studies

    outcomes = []
    with progress(quiet=quiet):
        for outcome in track(run_studies(chosen, settings), "studies", len(chosen)):
            outcomes.append(outcome)
            for line in () if quiet else sl.report.lines_of(outcome):
                say(line)
    return outcomes


def _described(study: sl.studies.Study) -> dict[str, object]:
    about = {"name": study.name, "paper": study.paper, "title": study.title, "rule": study.rule}
    return about | {"published": dict(study.published), "tables": list(study.tables)}


def _told(outcome: Outcome) -> dict[str, object]:
    if outcome.saved is None:
        return {"study": outcome.study.name, "state": outcome.state, "error": outcome.error}
    return {"state": outcome.state, **asdict(outcome.saved)}
