"""The commands `init` and `run`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import check_writable, echo_json, progress, read_table
from sidelight.cli.options import WITHOUT_ENGINE, Data, Force, Json, Reading, flag, grouped
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import PROJECT_FILE, write_text
from sidelight.foundation.terminal import say

File = Annotated[Path, typer.Argument(help="The project file.", metavar="[FILE]")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything again, whatever is known.")]


@dataclass(frozen=True)
class Drafted:
    """Where a project is drafted, and where its report goes."""

    output: Path = flag(Path(PROJECT_FILE), "Write the project to this .toml file.", "--output", "-o")
    report: str = flag("sidelight-report", "The folder that a run writes its report to.")
    force: Force = False


@grouped(without=(*WITHOUT_ENGINE, "schema"), project=False)
def init(data: Data, drafted: Drafted, reading: Reading, json: Json = False) -> None:
    """Draft a project file by looking at a table; what is guessed is marked, for you to check.

    A data dictionary is drafted beside it. Then `sidelight run` makes a report of it.
    """
    target = drafted.output
    schema = target.with_name(f"{Path(data).name.partition('.')[0] or 'data'}.schema.toml")
    if data == "-":
        raise InputError("a project needs a file that can be read again, not standard input; name one.")
    for path in (target, schema):
        check_writable(path, (".toml",), sources=(data,), force=drafted.force)
    with progress(quiet=json):
        table = read_table(data, reading)
        place = _relative(data, target.parent)
        draft = sl.project.draft_project(table, place, schema.name, _stated(reading), drafted.report)
    dictionary = sl.sources.Dictionary.draft(table)
    sl.project.Project.from_toml(
        draft.text, target
    )  # a draft that could not be read would be a fault of ours
    dictionary.write(schema, overwrite=drafted.force)
    write_text(target, draft.text)
    _show_draft(draft, table, (target, schema), json)


def _relative(data: str, folder: Path) -> str:
    """Return the path of the table as the project file writes it: from its folder, where that is near."""
    path = Path(data)
    if path.is_absolute() and not path.is_relative_to(folder.resolve()):
        return data
    return Path(os.path.relpath(path, folder)).as_posix()


def _stated(reading: Reading) -> dict[str, Any]:
    """Return the options of reading that were given, as the project file calls them."""
    given = {
        "sql": reading.sql, "encoding": None if reading.encoding == "utf-8" else reading.encoding,
        "na": reading.na, "columns": reading.column, "drop": reading.drop, "missing": reading.missing,
        "bins": reading.bins, "max_values": reading.max_values,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _show_draft(draft: Any, table: Any, written: tuple[Path, Path], json: bool) -> None:
    if json:
        notes = table.notes()
        echo_json({"project": str(written[0]), "schema": str(written[1]), "secrets": dict(draft.secrets),
                   "dropped": dict(draft.dropped), "notes": notes})  # fmt: skip
        return
    say(f"{table.rows} records, {len(table.schema)} attributes.")
    for name, reason in draft.secrets.items():
        say(f"- Guessed to be secret: {name}, since {reason}.")
    if not draft.secrets:
        say("- No name looks sensitive, so every attribute is taken as a secret.")
    for name, reason in draft.dropped.items():
        say(f"- Guessed to be left out: {name}, since {reason}.")
    for note in table.notes():
        say(f"- {note}")
    say(f"The project is in {written[0]}, its data dictionary in {written[1]}. Check what was guessed.")
    run = "sidelight run" if written[0] == Path(PROJECT_FILE) else f"sidelight run {written[0]}"
    say(f"Next: {run}")


@grouped(project=False)
def run(
    file: File = Path(PROJECT_FILE), *, fresh: Fresh = False, force: Force = False, json: Json = False
) -> None:
    """Report on a project: audit, calibration, simulated collection, estimates and attack, all linked.

    Nothing is sent to anyone. What did not change since the last run is not computed again. Exit code 0 means
    that what is planned is certified to keep every limit, for the adversary who decides.
    """
    if not file.exists():
        raise InputError(f"there is no project file {file}; `sidelight init DATA` drafts one.")
    project = sl.project.Project.read(file)
    outcome = sl.project.run_project(
        project, fresh=fresh, force=force, tell=None if json else partial(say, err=True),
        working=partial(progress, quiet=json),
    )  # fmt: skip
    if json:
        echo_json({"report": str(outcome.page), "is_unchanged": outcome.is_unchanged, "code": outcome.code,
                   "answers": outcome.answers, "steps": outcome.facts})  # fmt: skip
    else:
        for question, answer in outcome.answers:
            say(f"{question} {answer}")
        unchanged = " Nothing changed since it was made." if outcome.is_unchanged else ""
        say(f"The report is in {outcome.page}.{unchanged}")
    if outcome.code:
        raise typer.Exit(outcome.code)
