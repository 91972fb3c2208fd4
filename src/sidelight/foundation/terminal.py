"""All output to the terminal goes through here, so that no name or value in the data can control it.

Text from data may contain escape sequences, line breaks, marks that change the writing direction, or what
looks like rich's markup. It is shown literally. The error output of programs we start is kept in a file if
something fails, otherwise removed.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

_JOINERS = "\u200c\u200d"
"""Invisible, harmless, and needed to write Persian, Hindi and some emoji."""
_open: list[Path] = []


class ClosedPipeError(Exception):
    """Whoever read our output has gone, as `head` does; there is nothing left to say."""


def printable(text: str) -> str:
    r"""Return a text whose control characters are written out.

    >>> printable("caf\u00e9 \x1b[31m\n\u202e\ud800")
    'café \\x1b[31m\\n\\u202e\\ud800'
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(sign: str) -> str:
    if sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs":
        return sign
    return sign.encode("unicode_escape").decode("ascii")


def printable_json(text: str) -> str:
    r"""Return JSON that says the same, with every control character inside its strings written out.

    >>> printable_json('{"a\u202e": "\x9b"}')
    '{"a\\u202e": "\\u009b"}'
    """
    return re.sub(r"[^\n -~]", lambda match: _json_shown(match[0]), text)


def _json_shown(sign: str) -> str:
    if _shown(sign) == sign:
        return sign
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def say(text: str, *, err: bool = False) -> None:
    """Print one line."""
    _write(printable(text), sys.stderr if err else sys.stdout)


def say_json(text: str) -> None:
    """Print JSON, of one line or many."""
    _write(printable_json(text), sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:
        raise ClosedPipeError from None


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
