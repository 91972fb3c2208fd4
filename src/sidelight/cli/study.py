"""The commands `study list`, `study show`, `study run` and `study clean`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli.common import Json, echo_json, progress
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.studies.runner import Outcome, Settings
    from sidelight.studies.study import Study

app = typer.Typer(
    name="study",
    help="The papers' tables and figures, and benchmarks of ours.",
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="A study's name, or `all`.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer points, people and repetitions.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Copy every study's table and figures to a folder in this one.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute again what is finished.")]
Workers = Annotated[int | None, typer.Option(help="Processes at a time [2, or 1 on one core].")]
Store = Annotated[
    Path | None, typer.Option(help="Where finished studies are kept [a cache folder of the user's].")
]
Pages = Annotated[
    Path | None,
    typer.Option(help="Write the pages of documentation to this folder; needs `all`, and that none fails."),
]


@app.command("list")
def list_studies(json: Json = False) -> None:
    """List every study, paper by paper."""
    from sidelight.report.studies import print_studies
    from sidelight.studies.register import CATALOGUE, all_studies

    if json:
        echo_json([_described(study) for study in all_studies()])
    else:
        print_studies(CATALOGUE.values())


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A study's name.")], json: Json = False) -> None:
    """Show what is published about a study, and what it needs."""
    from sidelight.report.studies import print_study
    from sidelight.studies.register import find_study

    study = find_study(name)
    if json:
        echo_json(_described(study))
    else:
        print_study(study)


@app.command("run")
def run(
    name: Name,
    quick: Quick = False,
    out: Out = None,
    fresh: Fresh = False,
    workers: Workers = None,
    store: Store = None,
    pages: Pages = None,
    json: Json = False,
) -> None:
    """Run one study or `all`; finished ones are taken from the cache, and an interruption keeps them."""
    from sidelight.foundation.errors import InputError
    from sidelight.report.studies import print_tally
    from sidelight.studies.cache import default_store
    from sidelight.studies.register import all_studies, find_study
    from sidelight.studies.runner import Settings

    chosen = all_studies() if name == "all" else (find_study(name),)
    if pages is not None and (name != "all" or out is None):
        raise InputError("--pages draws on the outputs of every study; say `run all --out FOLDER` with it.")
    count = min(2, os.cpu_count() or 1) if workers is None else workers
    settings = Settings(store or default_store(), out, quick, fresh, count)
    outcomes = _run(chosen, settings, quiet=json)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if pages is not None and out is not None and not failed:
        from sidelight.studies.pages import write_pages

        write_pages(out, pages)
    if json:
        echo_json([_told(outcome) for outcome in outcomes])
    elif len(chosen) > 1:
        print_tally(outcomes)
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
    from dataclasses import asdict

    from sidelight.foundation.errors import check_number
    from sidelight.studies.cache import clean as clean_store
    from sidelight.studies.cache import default_store

    folder = store or default_store()
    found = clean_store(folder, unused_days=check_number("days", days, at_least=0), everything=everything)
    if json:
        echo_json({"store": str(folder), **asdict(found)})
    else:
        words = f"{found.removed} finished works removed, {found.freed:,} bytes; {found.kept} kept"
        say(f"{words} in {folder}.")


def _run(chosen: tuple[Study, ...], settings: Settings, *, quiet: bool) -> list[Outcome]:
    """Run, telling each outcome as it comes."""
    from sidelight.foundation.progress import track
    from sidelight.report.studies import lines_of
    from sidelight.studies.runner import run_studies

    outcomes = []
    with progress(quiet=quiet):
        for outcome in track(run_studies(chosen, settings), "studies", len(chosen)):
            outcomes.append(outcome)
            for line in () if quiet else lines_of(outcome):
                say(line)
    return outcomes


def _described(study: Study) -> dict[str, object]:
    return {
        "name": study.name,
        "paper": study.paper,
        "title": study.title,
        "published": dict(study.published),
        "tables": list(study.needs),
    }


def _told(outcome: Outcome) -> dict[str, object]:
    if outcome.saved is None:
        return {"study": outcome.study.name, "state": outcome.state, "error": outcome.error}
    return {"state": outcome.state, **outcome.saved.to_dict()}
