"""Files are written whole or not at all, and untrusted ones are parsed strictly."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

from sidelight.foundation.errors import InputError

REPORTS_KEY = b"sidelight"
"""The key of an Arrow or Parquet schema's metadata under which a file of reports names its protocol."""


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a temporary file beside `path`, then move it into place.

    An interruption at any moment leaves either the old file or the new one, never a part.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist; create it first.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(_usual_mode())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def write_text(path: str | Path, text: str) -> Path:
    """Write `text` to `path` atomically, as UTF-8."""
    return write_atomically(path, lambda temporary: _fill(temporary, text))


def _fill(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def lock(handle: IO[bytes], *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file against other processes until it is closed; raises BlockingIOError where one has it.

    Args:
        handle: the file.
        shared: whether others may share the lock.
        wait: whether to wait for it instead.
    """
    if sys.platform == "win32":  # which has no such locks
        return
    import fcntl

    fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def strict_json(text: str) -> Any:
    """Parse JSON, refusing what JSON does not know and keys given twice."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twins)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def json_number(value: float) -> float | str:
    """Return a number as JSON can hold it: what is not finite becomes the string "infinity".

    >>> json_number(0.5), json_number(float("inf"))
    (0.5, 'infinity')
    """
    return value if math.isfinite(value) else "infinity"


def json_plain(value: Any) -> Any:
    """Return plain data with every number in it as JSON can hold it; see `json_number`.

    >>> json_plain({"budgets": (1, float("inf")), "name": "open"})
    {'budgets': [1, 'infinity'], 'name': 'open'}
    """
    if isinstance(value, dict):
        return {name: json_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_plain(item) for item in value]
    return json_number(value) if isinstance(value, float) and not math.isnan(value) else value
