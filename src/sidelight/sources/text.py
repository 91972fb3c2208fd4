"""Text files with separators: how they are written is found out once, before they are read."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import file_name
from sidelight.sources.faults import reading
from sidelight.sources.local import LocalSource, rename_notes
from sidelight.sources.locations import escaped, files_of
from sidelight.sources.scans import Scan
from sidelight.sources.sql import literal
from sidelight.sources.store import connect

_SAMPLE = "sample_size = 2048"
_WRITTEN = "Delimiter, Quote, Escape, SkipRows, HasHeader, Columns"
_ROWS_ALIKE = 3
"""This many skipped lines with the same number of separators are rows, not a title."""


def open_text(pattern: str, label: str, encoding: str, options: list[str]) -> LocalSource:
    """Open text files with separators; how they are written is found out here, once."""
    first, *others = files_of(pattern, label)
    options = [f"encoding = {literal(encoding)}", *options]
    delimiter, quote, escape, skipped, header, columns = _sniffed(first, label, options)
    names = [column["name"] for column in columns]
    if len(names) == 1 and any(sign in names[0] for sign in ",;|\t"):
        reason = "has rows of different lengths, or an unknown separator"
        raise InputError(f"{label} {reason}; use commas or tabs.")
    for file in others if skipped else ():
        if _sniffed(file, label, options)[3] != skipped:
            raise InputError(f"{file} has other lines before its table than {first}; remove them from both.")
    notes = _skip_notes(_first_lines(first, encoding, skipped), delimiter, label)
    said = (option for option in options if not option.startswith("delim"))
    options = [*said, *_dialect(delimiter, quote, escape), f"skip = {skipped}"]
    plain = (*options, "header = false", "all_varchar = true")
    options.append(f"header = {str(header).lower()}")
    text: tuple[str, ...] = (*options, "all_varchar = true")
    stating = None
    if not others:  # of several files each is asked for its own columns
        stating = partial(_stated_columns, (*options, "auto_detect = false"), names)
        text = stating(frozenset())
    scanned = Scan(pattern, label, "read_csv", text, skipped + bool(header), stating)
    return scanned.source(notes + _header_notes(names, Scan(pattern, label, "read_csv", plain)))


def _sniffed(file: str, label: str, options: Sequence[str]) -> tuple[Any, ...]:
    """Return how a text file is written, and its columns."""
    sniffed = f"sniff_csv({', '.join([literal(escaped(file)), *options, _SAMPLE])})"
    with reading(label):
        return tuple(connect().execute(f"SELECT {_WRITTEN} FROM {sniffed}").fetchall()[0])


def _first_lines(file: str, encoding: str, count: int) -> list[str]:
    """Return the first `count` lines of a text file, which may be compressed."""
    opener: Callable[..., Any] = gzip.open if file.endswith(".gz") else open
    with opener(file, "rt", encoding=encoding, errors="replace") as text:
        return list(islice(text, count))


def _skip_notes(lines: Sequence[str], delimiter: str, label: str) -> tuple[str, ...]:
    """Say that lines before the table are skipped, as those of a title; raise if they are rows themselves."""
    written = [line for line in lines if line.strip()]
    alike = Counter(line.count(delimiter) for line in written if delimiter in line)
    if max(alike.values(), default=0) >= _ROWS_ALIKE:
        raise InputError(
            f"{label} has rows of different lengths: those from line {len(lines) + 1} on have another number "
            "of cells than those before; give all rows the same columns."
        )
    if not written:
        return ()
    return (f"{file_name(label)}: the table begins in line {len(lines) + 1}; what comes before was skipped.",)


def _stated_columns(options: tuple[str, ...], names: Sequence[str], reals: frozenset[str]) -> tuple[str, ...]:
    """Return arguments that read some columns as doubles and all others as text."""
    listed = ", ".join(f"{literal(name)}: '{'DOUBLE' if name in reals else 'VARCHAR'}'" for name in names)
    return (*options, f"columns = {{{listed}}}")


def _dialect(delimiter: str, quote: str, escape: str) -> list[str]:
    """Return how cells are written; a quote that the first lines lack may come later."""
    quote, escape = ('"', '"') if quote == "(empty)" else (quote, escape)
    escape = quote if escape == "(empty)" else escape
    signs = {"delim": delimiter, "quote": quote, "escape": escape}
    return [f"{name} = {literal(sign)}" for name, sign in signs.items()]


def _header_notes(names: Sequence[str], plain: Scan) -> tuple[str, ...]:
    """Say which columns of a text file were given a name: those without one, and those with another's."""
    if names == [f"column{place}" for place in range(len(names))]:
        name = file_name(plain.label)
        return (f"{name} has no header row, so its columns are called column0, column1 and so on.",)
    lowered = {name.lower() for name in names}
    if not any(_may_be_made_up(name, place, lowered) for place, name in enumerate(names)):
        return ()
    first = plain.source().rows("*", "LIMIT 1")
    header = first[0] if first and len(first[0]) == len(names) else names
    return rename_notes(header, names)


def _may_be_made_up(name: str, place: int, lowered: set[str]) -> bool:
    """Whether DuckDB may have made the name up: columnN where there was none, a_1 where a was taken."""
    stem, _, number = name.lower().rpartition("_")
    return name == f"column{place}" or (number.isdigit() and stem in lowered)
