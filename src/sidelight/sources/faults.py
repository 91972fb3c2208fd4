"""Why rows cannot be read, in one line that names the file and the column but no value of the data."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from sidelight.foundation.errors import InputError
from sidelight.sources.sql import reopen

_FILE = re.compile(
    r"^\s*(?:file = |Current file: )(?P<line>.+)$"
    r"|(?:sniffing|reading|read) file \"(?P<quoted>[^\"]+)\"|File '(?P<named>[^']+)' too small",
    re.MULTILINE,
)
_COLUMN = re.compile(
    r"^Column (?P<text>.+) is being converted as type (?P<type>\w+)"
    r"|column \"(?P<cell>[^\"]+)\" from type \w+ to (?P<wanted>\w+)",
    re.MULTILINE,
)
_ARROW = re.compile(r"Duplicate column names found|Conversion failed for column .+ with type \w+")
_MODEL = re.compile(r"Main file schema: (.+)$|original file \"([^\"]+)\"", re.MULTILINE)
_INTERRUPTED = ("Query interrupted", "INTERRUPT Error")
"""How what DuckDB makes of Ctrl-C begins: a RuntimeError, or an OSError where Arrow reads a stream of it."""
_HEAD = 1 << 16


def is_interruption(error: BaseException) -> bool:
    """Whether an error is what Ctrl-C becomes while DuckDB works."""
    return isinstance(error, duckdb.InterruptException) or str(error).startswith(_INTERRUPTED)


@contextmanager
def reading(label: str, column: str = "", kind: str = "") -> Iterator[None]:
    """Turn DuckDB's and Arrow's errors into one line that names the file, and the column if one is asked for.

    An interruption while DuckDB works stays an interruption, and an error of the system's stays as it is.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowInvalid, RuntimeError, OSError) as error:
        if is_interruption(error):
            raise KeyboardInterrupt from error
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            reopen()
        if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise unreadable(label, error, column, kind) from error


def unreadable(label: str, error: Exception, column: str = "", kind: str = "") -> InputError:
    """Say in one line why `label` cannot be read, and what would help, without any value of the data.

    The column is the one that was asked for, and `kind` its type; both are "" where several were.
    """
    text = str(error)
    lowered = text.lower()
    file = _first_group(_FILE, text)
    where = label if file in ("", label) else f"{file} (of {label})"
    if "sniffing file" in lowered:
        return InputError(_unsniffed(where, Path(file), is_utf8="encoding: utf-8" in lowered))
    if "schema mismatch" in lowered:
        model = _first_group(_MODEL, text)
        return InputError(f"{where} has other columns than {model}; give all files the same columns.")
    if "unicode" in lowered or "utf-8" in lowered or "utf8" in lowered:
        return InputError(_not_utf8(where))
    if "parquet" in lowered and ("magic" in lowered or "footer" in lowered or "too small" in lowered):
        return InputError(f"{where} is not a Parquet file, or it is damaged; write it again.")
    if "could not convert" in lowered or "conversion error" in lowered:
        return InputError(_unfitting(where, text, column, kind))
    cause = re.sub(r"'[^']*'", "'...'", text.splitlines()[0].strip())
    subject = f"column {column!r} ({kind}) of {where}" if column else where
    return InputError(f"{subject} cannot be read: {cause}")


def _first_group(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return next((group.strip() for group in match.groups() if group), "") if match else ""


def _not_utf8(where: str) -> str:
    return f"{where} is not UTF-8 text; convert it, or name its encoding (for example encoding='latin-1')."


def _unfitting(where: str, text: str, column: str, kind: str) -> str:
    """Say which column has a value of another type."""
    line = re.search(r"line:? (\d+)", text.lower())
    match = _COLUMN.search(text)
    if match:
        column, kind = (group for group in match.groups() if group)
    subject = f"column {column!r} of {where}" if column else where
    kind = f"the type {kind}" if kind else "its column's type"
    place = f" (line {line.group(1)})" if line else ""
    return f"{subject} has a value that does not fit {kind}{place}; give every column one type."


def _unsniffed(where: str, file: Path, *, is_utf8: bool) -> str:
    """Say what may keep a text file from being taken for rows and columns, as far as its beginning tells."""
    head = b""
    if is_utf8 and file.is_file() and file.suffix.lower() != ".gz":
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return _not_utf8(where)
    if b"\r\n" in head and re.search(rb"(?<!\r)\n", head):
        return (
            f"{where} has two kinds of line ends, CR LF and LF alone, perhaps inside quotes; write it with "
            "one kind."
        )
    return f"{where} shows no rows and columns; check its separator, its quotes and its encoding."


def are_reports(label: str, noun: str) -> InputError:
    """Say that rows are reports: they would be taken for what people really are."""
    return InputError(
        f"{label} {noun} of reports, not of records; name the records they were collected from, or take the "
        "reports to `sidelight estimate`."
    )


def not_columns(label: str, error: Exception) -> InputError:
    """Say why an object is no table of columns of one type each, with Arrow's reason where it has no data."""
    texts = [str(part) for part in error.args] if isinstance(error, pa.ArrowException) else [str(error)]
    reason = next((match.group() for text in texts if (match := _ARROW.search(text))), "check its columns")
    return InputError(f"{label} cannot be turned into columns of one type each: {reason}.")
