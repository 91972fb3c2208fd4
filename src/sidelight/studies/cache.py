"""The cache of finished works: one folder each, named by everything that the result depends on.

The name holds the work, whether it was quick, the code of the package, the size and time of every table it
uses, and the versions of Python and of the libraries that compute. A folder appears under its name only when
it is complete.

A change of the package, of a library or of a table gives a work another name, and this version never takes
again what lies under the former one. Another version may, a second checkout for instance, so a run removes
only what nobody has used for a month. A run holds the cache as long as it lasts, and nothing is removed while
anyone holds it. What is removed is first moved aside, whole, so that an interruption leaves no half of it
under its name.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.files import lock
from sidelight.foundation.fingerprint import code_version, library_versions
from sidelight.studies.outputs import RESULT, Saved, load, save
from sidelight.studies.register import all_studies, sharing
from sidelight.studies.study import Work, run_together, table_file

_DIGITS = 16
KEY = rf"[a-z0-9-]+-(quick|full)-[0-9a-f]{{{_DIGITS}}}"
"""The pattern of the name of a work's folder."""
USED = ".used"
"""The file in a work's folder whose time says when it was used last."""
ASIDE = ".work-"
"""The prefix of folders that are being written or removed."""
UNUSED_DAYS = 30
"""After so many days without use a run removes what this version does not take."""
_DAY = 86_400.0
_LOCK = ".lock"


def default_store() -> Path:
    """Return the folder of finished works: below XDG_CACHE_HOME, else below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sidelight" / "studies"


def key_of(work: Work, quick: bool) -> str:
    """Return the name of a work's folder."""
    studies = sharing(work)
    names = sorted({*work.uses, *(name for study in studies for name in study.tables)})
    parts = [work.name, str(quick), code_version(), *(_table_state(name) for name in names)]
    parts += library_versions()
    parts += sorted(study.name for study in studies)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
    return f"{work.name}-{'quick' if quick else 'full'}-{digest}"


def _table_state(name: str) -> str:
    path = table_file(name)
    if not path.is_file():
        return f"{name} absent"
    state = path.stat()
    return f"{name} {state.st_size} {state.st_mtime_ns}"


def finished(store: Path, work: Work, quick: bool) -> dict[str, Saved] | None:
    """Return the results of a finished work, or None where it is not finished or cannot be read."""
    folder = store / key_of(work, quick)
    try:
        results = {study.name: load(folder / study.name) for study in sharing(work)}
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # a cache that cannot be written is not cleaned either
        (folder / USED).touch()
    return results


def check_folder(name: str, folder: Path) -> None:
    """Create the folder if there is none; raise in terms of `name` unless it can be written to."""
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


def compute(work: Work, store: Path, *, quick: bool) -> None:
    """Compute a work and keep the results of all its studies; an interruption leaves nothing behind."""
    target = store / key_of(work, quick)  # before computing: if a table changes meanwhile, it is not taken
    start = time.perf_counter()
    results = run_together(sharing(work), quick)
    seconds = time.perf_counter() - start
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=store) as temporary:
        whole = Path(temporary) / "whole"
        for study, result in zip(sharing(work), results, strict=True):
            save(study, result, whole / study.name, quick=quick, seconds=seconds)
        (whole / USED).touch()
        if target.exists():
            shutil.move(target, Path(temporary) / "old")
        # one step: whoever looks sees the old folder, none, or the whole new one
        whole.rename(target)


@dataclass(frozen=True)
class Cleaned:
    """What a cleaning did."""

    removed: int = 0  # how many works it removed
    freed: int = 0  # how many bytes they had
    kept: int = 0  # how many works are left


@contextmanager
def holding(store: Path) -> Iterator[None]:
    """Keep others from removing anything in the meantime; several runs may hold the cache at once."""
    try:
        store.mkdir(parents=True, exist_ok=True)
        handle = (store / _LOCK).open("ab")
    except OSError:  # nothing can be removed from where nothing can be written
        yield
        return
    with handle:
        with suppress(OSError):  # a file system without locks; a month of use still protects what is taken
            lock(handle, shared=True, wait=True)
        yield


def clean(store: Path, *, unused_days: float = 0.0, everything: bool = False) -> Cleaned:
    """Remove works that this version does not take, or `everything`, if unused for so many days."""
    if not store.exists():
        return Cleaned()
    if not store.is_dir():
        raise invalid("store", "a folder", str(store))
    try:
        with (store / _LOCK).open("ab") as handle:
            lock(handle)
            return _clean(store, time.time() - unused_days * _DAY, everything=everything)
    except BlockingIOError:
        raise InputError(f"{store} is in use by a run of studies; clean it when that has ended.") from None
    except OSError as error:
        raise InputError(f"{store} cannot be cleaned: {error.strerror}.") from error


def clean_after_run(store: Path) -> Cleaned:
    """Remove what this version does not take and nobody has used for a month, unless others are running."""
    with suppress(InputError):
        return clean(store, unused_days=UNUSED_DAYS)
    return Cleaned()


def _clean(store: Path, before: float, *, everything: bool) -> Cleaned:
    current = () if everything else {study.work for study in all_studies()}
    taken = {key_of(work, quick) for work in current for quick in (True, False)}
    works = [path for path in store.iterdir() if _is_work(path)]
    old = [path for path in works if path.name not in taken and last_used(path) <= before]
    aside = (path for path in store.glob(f"{ASIDE}*") if path.is_dir())
    left = [path for path in aside if path.stat().st_mtime <= time.time() - _DAY]  # of processes killed then
    freed = sum(item.stat().st_size for path in old for item in path.rglob("*") if item.is_file())
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=store) as removed:
        for path in old:
            path.rename(Path(removed) / path.name)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return Cleaned(len(old), freed, len(works) - len(old))


def _is_work(path: Path) -> bool:
    """Whether a folder is a work, by its name and by all it contains: a user's folder is never removed."""
    if path.is_symlink() or not path.is_dir() or not re.fullmatch(KEY, path.name):
        return False
    return all(item.name == USED or (item / RESULT).is_file() for item in path.iterdir())
