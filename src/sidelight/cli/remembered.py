"""Commands of a project whose result is known: what they printed and wrote before is given again.

Only what a command depends on decides: its arguments, the contents of the files it reads, the project, the
code and libraries, and how the terminal is laid out.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import check_overwrite, write_atomically
from sidelight.foundation.fingerprint import Digests, digest_of_file, fingerprint
from sidelight.foundation.terminal import say
from sidelight.project.cache import FOLDER, Cache, Entry, key_of

if TYPE_CHECKING:
    from sidelight.project import Project

_READ = ("data", "schema", "plan", "plans", "collected", "prior")
_WRITTEN = ("report", "save_plan", "output", "assessment")
_TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "PYTHONIOENCODING", "LANG")


def remembered(command: str, project: Project, given: dict[str, Any], run: Callable[[], None]) -> None:
    """Run a command, or give again what it gave before if nothing changed."""
    cache = Cache(project.output_folder / FOLDER)
    digests = cache.digests()
    read = _read(digests, project, given)
    if read["data"] is None or given.get("sql") is not None or given.get("engine", "local") != "local":
        run()  # what cannot be told to be unchanged
        return
    ingredients = {
        "command": command, "given": {name: str(value) for name, value in given.items()}, "read": read,
        "project": project.file.read_text("utf-8"), "terminal": _terminal(),
    }  # fmt: skip
    key, made = key_of(command, ingredients), _outputs(given)
    entry = cache.get(f"said-{command}", key)
    if entry is not None and entry.files.keys() == made.keys() and not _has_words(entry, made):
        _give_again(entry, made)
        return
    code, printed = _watched(run)
    if _read(digests, project, given) == read:  # or the result may be of what was written meanwhile
        with suppress(OSError, InputError):  # where nothing can be kept, the next time only takes longer
            _keep(cache, command, key, {"printed": printed, "code": code}, made)
            cache.keep_digests(digests)
    if code:
        raise typer.Exit(code)


def _keep(cache: Cache, command: str, key: str, facts: dict[str, Any], made: dict[str, Path]) -> None:
    """Keep what a command printed, with copies of what it wrote."""
    cache.open()
    with cache.workspace() as temporary:
        copies = {name: Path(shutil.copyfile(path, Path(temporary) / name)) for name, path in made.items()}
        cache.put(f"said-{command}", key, facts, copies)


def _read(digests: Digests, project: Project, given: dict[str, Any]) -> dict[str, str | None]:
    """Return the digests of all that a command reads, by what names it: an option, or the project."""
    read = {name: _digest(digests, given.get(name)) for name in _READ}
    return read | {"release.plan": _digest(digests, project.plan_file)}


def _digest(digests: Digests, source: object) -> str | None:
    """Return the digest of what is read; None for what is not given, or cannot be read twice."""
    if isinstance(source, list):
        return fingerprint({"files": [digests.of(str(item)) for item in source]})
    return None if source is None or str(source) == "-" else digests.of(str(source))


def _outputs(given: dict[str, Any]) -> dict[str, Path]:
    return {name: Path(given[name]) for name in _WRITTEN if given.get(name) is not None}


def _has_words(entry: Entry, made: dict[str, Path]) -> bool:
    """Whether a plan that is there is not as it was written: people's comments in it are carried over."""
    plans = {name: path for name, path in made.items() if path.suffix.lower() == ".toml" and path.is_file()}
    return any(digest_of_file(path) != entry.digests[name] for name, path in plans.items())


def _terminal() -> list[str]:
    size = shutil.get_terminal_size()
    stream = sys.stdout
    return [
        str(size.columns),
        str(stream.isatty()),
        str(stream.encoding),
        *(os.environ.get(name, "") for name in _TERMINAL),
    ]


def _give_again(entry: Entry, made: dict[str, Path]) -> None:
    """Print what was printed, and write the files again that were written."""
    for name, path in made.items():
        check_overwrite(path)
        write_atomically(path, partial(shutil.copyfile, entry.files[name]))
    sys.stdout.write(entry.facts["printed"])
    sys.stdout.flush()
    say("Nothing changed since this was computed.", err=True)
    if entry.facts["code"]:
        raise typer.Exit(entry.facts["code"])


class _Tee(io.TextIOBase):
    """A stream that passes on what it is given, and keeps it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.kept: list[str] = []

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    def write(self, text: str) -> int:
        self.kept.append(text)
        return self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()


def _watched(run: Callable[[], None]) -> tuple[int, str]:
    """Run a command and return its exit code with what it printed; errors are not kept."""
    tee = _Tee(sys.stdout)
    with redirect_stdout(tee):
        try:
            run()
            code = 0
        except typer.Exit as ended:
            code = ended.exit_code
    return code, "".join(tee.kept)
