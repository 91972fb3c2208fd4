"""The error output of programs we start: kept in a file if something fails, otherwise removed."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_open: list[Path] = []


@contextmanager
def diverted_errors(program: str) -> Iterator[None]:
    """Write standard error to a log: this process's for the moment, that of programs it starts for good."""
    if sys.stderr is None:  # closed by whoever started us
        yield
        return
    handle, name = tempfile.mkstemp(prefix=f"sidelight-{program}-", suffix=".log")
    _open.append(Path(name))
    sys.stderr.flush()
    former = os.dup(2)
    os.dup2(handle, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(former, 2)
        os.close(former)
        os.close(handle)


def kept_logs() -> list[Path]:
    """Return the logs that say something; from now on they stay."""
    written = [path for path in _open if path.exists() and path.stat().st_size]
    for path in written:
        _open.remove(path)
    return written


@atexit.register
def _remove() -> None:
    for path in _open:
        path.unlink(missing_ok=True)
