"""Where the files are: paths, globs, folders and standard input, and the format that a name tells."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from sidelight.foundation.errors import InputError
from sidelight.sources.faults import reading
from sidelight.sources.sql import connect, literal

_TEXTS = {"csv": (".csv",), "tsv": (".tsv", ".tab"), "json": (".json", ".ndjson", ".jsonl")}
_SUFFIXES = {
    **{end + zipped: kind for kind, ends in _TEXTS.items() for end in ends for zipped in ("", ".gz")},
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".xlsx": "excel", ".xlsm": "excel",
    ".duckdb": "database", ".ddb": "database", ".db": "database",
    ".sqlite": "database", ".sqlite3": "database",
}  # fmt: skip
_ELSEWHERE = {
    ".xls": "save it as .xlsx or .csv",
    ".ods": "save it as .xlsx or .csv",
    ".sav": "read it with pandas.read_spss and hand over the DataFrame, or save it as .csv",
    ".dta": "read it with pandas.read_stata and hand over the DataFrame, or save it as .csv",
    ".sas7bdat": "read it with pandas.read_sas and hand over the DataFrame, or save it as .csv",
    ".orc": "read it with pyarrow.orc.read_table and hand over the table",
    ".zip": "unpack it first",
    ".txt": "name it .csv or .tsv, by its separator",
}
"""Formats that are not read, and the way to do it all the same."""
_FOLDERS = ("csv", "tsv", "json", "parquet")
STANDARD_INPUT = "-"


def locate(text: str) -> tuple[str, str]:
    """Return a glob DuckDB can read and the format of its files."""
    if not text.strip():
        raise InputError("the path is empty; name a file, a glob or a folder.")
    path = Path(text)
    if path.is_dir():
        return _locate_in_folder(path)
    if not path.exists() and "://" in text:
        raise InputError(
            f"{text} is an address, and only files of this machine are read; download it first, or use "
            "--engine spark."
        )
    if not path.exists() and not any(sign in text for sign in "*?["):
        raise InputError(f"there is no file {text}; check the path.")
    suffix = format_of(text)
    way = next((way for end, way in _ELSEWHERE.items() if text.lower().endswith(end)), "")
    if not suffix and way:
        raise InputError(f"{text} has a format that is not read; {way}.")
    if not suffix:
        raise InputError(f"{text} must end in one of {', '.join(_SUFFIXES)}, so that its format is known.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{text} is empty; it needs a header and at least two rows.")
    return (escaped(text) if suffix in _FOLDERS and path.exists() else text), suffix


def escaped(text: str) -> str:
    """Return a glob that means one file, whatever signs its name has."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def format_of(text: str) -> str:
    """Return the format of a file by the end of its name; "" where it tells none."""
    return next((kind for end, kind in _SUFFIXES.items() if text.lower().endswith(end)), "")


def _locate_in_folder(folder: Path) -> tuple[str, str]:
    """Return the glob of a folder's files, sub-folders included, if they are all of one format."""
    ends = [end for end, kind in _SUFFIXES.items() if kind in _FOLDERS]
    held = {end for end in ends for file in folder.rglob(f"*{end}") if file.is_file()}
    if not held:
        raise InputError(f"the folder {folder} holds no .parquet, .csv, .tsv or .json file.")
    if len(held) > 1:
        raise InputError(
            f"the folder {folder} holds files of several kinds ({', '.join(sorted(held))}); name a glob."
        )
    end = held.pop()
    return str(Path(escaped(str(folder))) / "**" / f"*{end}"), _SUFFIXES[end]


class _Arrival:
    """What came by standard input, which can be read only once, in a file that goes with the process.

    The first bytes tell its format: Parquet, or text with separators that may be compressed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        first = stream.read(1 << 16)
        self.kind = "parquet" if first.startswith(b"PAR1") else "csv"
        zipped = ".gz" if first.startswith(b"\x1f\x8b") else ""
        with tempfile.NamedTemporaryFile(prefix="sidelight-", suffix=zipped, delete=False) as file:
            weakref.finalize(self, Path(file.name).unlink, missing_ok=True)
            file.write(first)
            shutil.copyfileobj(stream, file)
        self.path = file.name
        self.is_empty = not first


_arrivals: dict[int, _Arrival] = {}


def arrived() -> tuple[str, str]:
    """Return where standard input was put, and its format."""
    stream = sys.stdin.buffer
    if id(stream) not in _arrivals:
        _arrivals[id(stream)] = _Arrival(stream)
    arrival = _arrivals[id(stream)]
    if arrival.is_empty:
        raise InputError("standard input is empty; it needs a header and at least two rows.")
    return arrival.path, arrival.kind


def files_of(pattern: str, label: str) -> list[str]:
    """Return the files that a glob means."""
    with reading(label):
        rows = connect().execute(f"SELECT file FROM glob({literal(pattern)})").fetchall()
    if not rows:
        raise InputError(f"there is no file {label}; check the path.")
    return [row[0] for row in rows]
