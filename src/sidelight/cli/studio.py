"""The command `studio`: a page on this machine that shows what leaks while budgets move."""

from __future__ import annotations

import os
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import need_service
from sidelight.cli.options import WITHOUT_ENGINE, Reading, flag, grouped
from sidelight.foundation.errors import InputError
from sidelight.foundation.terminal import say

if TYPE_CHECKING:
    from sidelight.project import Project
    from sidelight.studio.opened import Place
    from sidelight.studio.session import Session

Opened = Annotated[str, typer.Argument(help="A table, as every command reads it, or a project file (.toml).")]


@dataclass(frozen=True)
class Shown:
    """Where the page is, and where its state is kept."""

    state: Path | None = flag(None, "Keep the state in this .json file [TABLE.studio.json, in this folder].")
    host: str = flag("127.0.0.1", "The address to listen on; another one lets other machines in.")
    port: int | None = flag(None, "The port; 0 takes a free one [8765, or a free one].")
    browser: bool = flag(True, "Open the browser.", "--browser/--no-browser")


@grouped(without=WITHOUT_ENGINE, project=False)
def studio(data: Opened, *, shown: Shown, reading: Reading) -> None:
    """Move budgets and see at once what leaks, in a page on this machine; nothing leaves it.

    What is decided is kept in a file and found again the next time. The page exports the plan, a project, a
    report, and the command lines that do the same.
    """
    need_service("the studio")
    from sidelight.studio.server import Address, serve

    place, project = _place(data, reading)
    path = Path(f"{place.stem}.studio.json") if shown.state is None else shown.state
    if path.suffix.lower() != ".json":
        raise InputError(f"{path} must end in .json; it keeps the state of the studio.")
    if shown.host not in ("127.0.0.1", "localhost", "::1"):
        say(
            f"Other machines can reach {shown.host}; the figures are raw, and nothing is encrypted.", err=True
        )

    def ready(url: str, session: Session) -> None:
        table = session.opened.table
        say(f"{session.place.name}: {table.rows} records, {len(table.schema)} attributes. State: {path}.")
        say(f"The studio is at {url} (good for one browser); stop with Ctrl-C.")
        if shown.browser:
            webbrowser.open(url)

    with suppress(KeyboardInterrupt):
        serve(place, path, Address(shown.host, shown.port), ready, project)
    say(f"Stopped; what was decided is in {path}.")


def _place(data: str, reading: Reading) -> tuple[Place, Project | None]:
    """Return where the table is, and the project that has decided something already."""
    from sidelight.studio.opened import Place

    if not data.endswith(".toml"):
        if data == "-":
            raise InputError("the studio reads a table more than once; name a file, not standard input.")
        stated = reading.rules | {"drop": reading.drop}
        given = {name: part for name, part in stated.items() if part not in (None, {})}
        return Place(os.path.abspath(data), given), None  # noqa: PTH100 - a pattern is no path
    from sidelight.project import Project

    project = Project.read(data)
    rules: dict[str, Any] = project.reading
    return Place(os.path.abspath(project.source), rules), project  # noqa: PTH100
