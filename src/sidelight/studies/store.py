"""The cache of finished works: one folder each, named by everything that the result depends on.

The name holds the work, whether it was quick, the code of the package, the size and time of every table it
uses, and the versions of Python and of the libraries that compute. A folder appears under its name only when
it is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sidelight.studies as room
from sidelight.foundation.errors import invalid
from sidelight.studies.saving import Saved, load, save
from sidelight.studies.study import Study, StudyResult, Work
from sidelight.studies.tables import table_file

_DIGITS = 16
KEY = rf"[a-z0-9-]+-(quick|full)-[0-9a-f]{{{_DIGITS}}}"
"""How the name of a work's folder looks."""
USED = ".used"
"""The file in a work's folder whose time says when it was used last."""
ASIDE = ".work-"
"""How the names of folders begin that are written or removed just now."""
_LIBRARIES = (
    "duckdb", "matplotlib", "numba", "numpy", "opendp", "pyarrow", "scikit-learn", "scipy", "torch",
)  # fmt: skip
"""Whose version a result can depend on, by the names of their distributions."""


def default_store() -> Path:
    """Return the folder of finished works: below XDG_CACHE_HOME, else below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sidelight" / "studies"


@cache
def code_version() -> str:
    """Return a digest of every module of the package."""
    package = Path(str(room.__file__)).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def key_of(work: Work, studies: tuple[Study, ...], quick: bool) -> str:
    """Return the name of a work's folder."""
    names = sorted({*work.tables, *work.uses, *(name for study in studies for name in study.tables)})
    parts = [work.name, str(quick), code_version(), *(_table_state(name) for name in names)]
    parts += [sys.version, *(f"{name} {_version(name)}" for name in _LIBRARIES)]
    parts += sorted(study.name for study in studies)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
    return f"{work.name}-{'quick' if quick else 'full'}-{digest}"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "absent"


def _table_state(name: str) -> str:
    path = table_file(name)
    if not path.is_file():
        return f"{name} absent"
    state = path.stat()
    return f"{name} {state.st_size} {state.st_mtime_ns}"


def finished(store: Path, key: str, studies: tuple[Study, ...]) -> dict[str, Saved] | None:
    """Return the results of a finished work, or None where it is not finished or cannot be read."""
    try:
        found = {study.name: load(store / key / study.name) for study in studies}
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # a cache that cannot be written is not cleaned either
        (store / key / USED).touch()
    return found


def check_folder(name: str, folder: Path) -> None:
    """Raise in terms of `name` unless the folder can be written to; it is made where there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise invalid(name, "a folder that can be written", str(folder), f"{error.strerror}.") from None


def last_used(folder: Path) -> float:
    """Return when a work was used last, in seconds since 1970: computed, or taken from the cache."""
    mark = folder / USED
    return (mark if mark.exists() else folder).stat().st_mtime


def keep(
    store: Path,
    key: str,
    studies: tuple[Study, ...],
    results: list[StudyResult],
    *,
    quick: bool,
    seconds: float,
) -> dict[str, Saved]:
    """Write the results of a work; an interruption leaves nothing under its name."""
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=store) as temporary:
        whole = Path(temporary) / "whole"
        saved = {
            study.name: save(study, result, whole / study.name, quick=quick, seconds=seconds)
            for study, result in zip(studies, results, strict=True)
        }
        (whole / USED).touch()
        if (store / key).exists():
            shutil.move(store / key, Path(temporary) / "old")
        whole.rename(store / key)
    return saved
