"""Old works in the cache: what the installed version does not take and nobody has used for long.

A change of the package, of a library or of a table gives a work another name in the cache, and what lies
under the former name is never taken again by this version. It may be taken by another one, a second checkout
for instance, so that a run removes it only when it has not been used for a month.

A run holds the cache as long as it lasts, and nothing is removed while anyone holds it. What is removed is
moved aside first, whole, so that an interruption leaves no half of it under its name.
"""

from __future__ import annotations

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
from sidelight.studies.register import all_studies, sharing
from sidelight.studies.saving import RESULT
from sidelight.studies.store import ASIDE, KEY, USED, key_of, last_used

UNUSED_DAYS = 30
"""After so many days without use a run removes what this version does not take."""
_DAY = 86_400.0
_LOCK = ".lock"


@dataclass(frozen=True)
class Cleaned:
    """What a cleaning did.

    Attributes:
        removed: how many works it removed.
        freed: how many bytes they had.
        kept: how many works are left.
    """

    removed: int = 0
    freed: int = 0
    kept: int = 0


@contextmanager
def holding(store: Path) -> Iterator[None]:
    """Keep others from removing anything meanwhile; several runs may hold the cache at once."""
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
    """Remove works that this version does not take.

    Args:
        store: the cache.
        unused_days: only those that have not been used for so many days.
        everything: also those that this version takes.
    """
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
    """Remove what this version does not take and nobody has used for a month; not while others run."""
    with suppress(InputError):
        return clean(store, unused_days=UNUSED_DAYS)
    return Cleaned()


def _clean(store: Path, before: float, *, everything: bool) -> Cleaned:
    taken = set() if everything else _current_keys()
    works = [path for path in store.iterdir() if _is_work(path)]
    old = [path for path in works if path.name not in taken and last_used(path) <= before]
    left = [path for path in store.iterdir() if _is_leftover(path)]
    freed = sum(_size(path) for path in old)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=store) as aside:
        for path in old:
            path.rename(Path(aside) / path.name)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return Cleaned(len(old), freed, len(works) - len(old))


def _current_keys() -> set[str]:
    works = {study.work for study in all_studies()}
    return {key_of(work, sharing(work), quick) for work in works for quick in (True, False)}


def _is_work(path: Path) -> bool:
    """Whether a folder is a work by its name and by all that is in it: a user's is never removed."""
    if path.is_symlink() or not path.is_dir() or not re.fullmatch(KEY, path.name):
        return False
    return all(item.name == USED or (item / RESULT).is_file() for item in path.iterdir())


def _is_leftover(path: Path) -> bool:
    """Whether a process that was killed left this a day ago or longer."""
    return path.name.startswith(ASIDE) and path.is_dir() and path.stat().st_mtime <= time.time() - _DAY


def _size(path: Path) -> int:
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
