"""A private DuckDB: how it is opened, where rows that were read once are kept, and the SQL of every column.

The SQL is the same here and on the workers of a cluster.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from sidelight.schema import MISSING, OTHER, Attribute, Schema

LARGE = 256 << 20
"""Files or rows of this many bytes or more are kept on disk, so that memory stays bounded."""
_TEMPORAL = ("DATE", "TIME")
_DECIMAL = re.compile(r"-?\d+\.\d+")


def connect(database: str = ":memory:", **config: Any) -> duckdb.DuckDBPyConnection:
    """Return a connection that never downloads an extension and draws no bars of its own."""
    offline = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(database, config=offline | config)
    with suppress(duckdb.InvalidInputException):  # a notebook that cannot draw bars refuses to set them
        connection.execute("SET enable_progress_bar = false")
    return connection


def scratch() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database for questions about files and tables in memory, and for stores.

    Opening a database takes longer than most questions, so there is one for all of them in a process.
    """
    return _opened().cursor()


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    return connect(temp_directory=_spilling())


def reopen() -> None:
    """Open another database for the next question: one that met an error of DuckDB's own answers no more."""
    _opened.cache_clear()


def _spilling() -> str:
    """Return where DuckDB makes a folder once it has to spill; "" where nobody else is sure to be kept out.

    What holds that folder is ours alone and stays, since many processes end without a chance to remove it.
    """
    owner = str(os.geteuid()) if sys.platform != "win32" else "spilled"  # there, this folder is a user's own
    folder = Path(tempfile.gettempdir()) / f"sidelight-{owner}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return ""
    is_private = stat.S_ISDIR(state.st_mode) and not state.st_mode & 0o077 and owner == str(state.st_uid)
    return str(folder / secrets.token_hex(8)) if is_private or sys.platform == "win32" else ""


if sys.platform != "win32":
    # Its threads do not live on in a fork, which would wait for them for ever when it ends and closes it.
    os.register_at_fork(before=_opened.cache_clear)


_serial = count()


class Store:
    """Tables of a private database, which may spill to disk and goes with the last who uses it."""

    def __init__(self, *, large: bool = False) -> None:
        self.connection = scratch()
        self._database, file = f"sidelight_store_{next(_serial)}", ":memory:"
        if large:
            folder = Path(tempfile.mkdtemp(prefix="sidelight-"))  # for us alone
            weakref.finalize(self, _remove, folder, os.getpid())  # once it is detached: the last goes first
            file = str(folder / "rows.duckdb")
        self.connection.execute(f"ATTACH {literal(file)} AS {self._database}")
        weakref.finalize(self, _detach, self.connection, self._database, os.getpid())

    def keep(self, name: str, query: str) -> str:
        """Run a query once and keep its rows as a table; return what SQL calls it."""
        table = f"{self._database}.main.{name}"
        self.connection.execute(f"CREATE TABLE {table} AS {query}")
        return table

    def forget(self, table: str) -> None:
        """Give the space of a table back."""
        self.connection.execute(f"DROP TABLE {table}")

    def rows(self, table: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a table; each time anew, so that one scan does not disturb another."""
        return self.connection.cursor().table(table)


def _detach(connection: duckdb.DuckDBPyConnection, database: str, owner: int) -> None:
    if os.getpid() == owner:  # a fork has a copy of it
        connection.execute(f"DETACH {database}")
        connection.close()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def quoted(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string for SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_temporal(kind: str) -> bool:
    """Whether a column of this type holds dates or times."""
    return kind.startswith(_TEMPORAL)


def present(column: str, kind: str) -> str:
    """Return SQL for the column with NaN as missing; 0.50 is 0.5, as in a text file."""
    name = quoted(column)
    if kind == "DECIMAL":
        return f"{name}::DOUBLE"
    if kind not in ("FLOAT", "DOUBLE"):
        return name
    return f"(CASE WHEN {_is_number(name)} THEN {name} + 0 END)"  # + 0 makes one value of 0.0 and -0.0


def _is_number(name: str) -> str:
    """Return SQL for not NaN; DuckDB takes isnan for false by a Parquet file's bounds, which omit NaN."""
    return f"(isfinite({name}) OR isinf({name}))"


def number(column: str, kind: str) -> str:
    """Return SQL for the column as a double; dates and times, text among them, count seconds since 1970.

    A number of 32 bits is the shortest decimal that means it, as in a text file: 0.1, not 0.10000000149.
    """
    value = present(column, kind)
    if kind == "FLOAT":
        return f"{value}::VARCHAR::DOUBLE"
    if kind == "TIMESTAMPTZ_NS":  # the one kind of time of which DuckDB's epoch knows nothing
        value = f"{value}::TIMESTAMPTZ"
    if kind == "VARCHAR":
        return f"epoch({value}::TIMESTAMP)::DOUBLE"
    return f"epoch({value})::DOUBLE" if is_temporal(kind) else f"{value}::DOUBLE"


def written(numbers: Sequence[float]) -> list[float]:
    """Return what numbers of 32 bits mean as doubles, by the rule of `number`."""
    query = "SELECT unnest(?::FLOAT[])::VARCHAR::DOUBLE"
    return [row[0] for row in scratch().execute(query, [list(numbers)]).fetchall()] if numbers else []


def is_among(value: str, words: Iterable[str]) -> str:
    """Return SQL for whether a text is one of some words.

    Of a longer list, IN and list_contains make a join, and rows come out of a join in any order.
    """
    keys = ", ".join(f"{literal(word)}: 1" for word in dict.fromkeys(words))
    return f"map_contains(MAP {{{keys}}}, {value})"


def label_code(attribute: Attribute, kind: str) -> str:
    """Return SQL for the code of an attribute's label.

    A value outside the alphabet and a missing value that is none of its values become NULL.
    """
    value = present(attribute.name, kind)
    labels = _shortest(attribute.values) if kind == "DECIMAL" else attribute.values
    alphabet = ", ".join(map(literal, labels))
    label = _merged(f"{value}::VARCHAR", attribute, is_decimal=kind == "DECIMAL")
    code = f"TRY_CAST({label} AS ENUM({alphabet}))"
    if attribute.has_other:
        code = f"coalesce({code}, {literal(OTHER)}::ENUM({alphabet}))"
    absent = f"{literal(MISSING)}::ENUM({alphabet})" if attribute.missing == "value" else "NULL"
    return f"enum_code(CASE WHEN {value} IS NULL THEN {absent} ELSE {code} END)"


def _merged(label: str, attribute: Attribute, *, is_decimal: bool) -> str:
    """Return SQL for the label of a raw value: of merged ones, what they are merged into."""
    if not attribute.merged:
        return label
    cases = [
        f"WHEN {literal(raw)} THEN {literal(into)}"
        for into, parts in attribute.merged
        for raw in (_shortest(parts) if is_decimal else parts)
    ]
    own = [into for into, parts in attribute.merged if into not in parts]
    # a raw value that only looks like a merged label is none of its values
    rest = f"CASE WHEN {is_among(label, own)} THEN NULL ELSE {label} END" if own else label
    return f"CASE {label} {' '.join(cases)} ELSE {rest} END"


def _shortest(labels: Sequence[str]) -> Sequence[str]:
    """Return labels with 0.50 as 0.5, which is how a decimal is labelled; old plans have 0.50."""
    shortest = [repr(float(label)) if _DECIMAL.fullmatch(label) else label for label in labels]
    return shortest if len(set(shortest)) == len(shortest) else labels


def where_complete(schema: Schema, types: dict[str, str]) -> str:
    """Return the SQL condition that drops records with a missing value where an attribute asks for it."""
    tests = []
    for item in schema:
        if item.missing == "drop":
            kind, name = types[item.name], quoted(item.name)
            tests.append(f"{number(item.name, kind) if item.is_binned else name} IS NOT NULL")
            tests += [_is_number(name)] if kind in ("FLOAT", "DOUBLE") and not item.is_binned else []
    return "WHERE " + " AND ".join(tests) if tests else ""
