"""A private DuckDB: how every connection is opened, and where rows that were read once are kept."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

LARGE = 256 << 20
"""Text files of this many bytes or more are kept on disk, so that memory stays bounded."""


def connect(database: str = ":memory:", **config: Any) -> duckdb.DuckDBPyConnection:
    """Return a connection that never downloads an extension and draws no bars of its own."""
    offline = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(database, config=offline | config)
    with suppress(duckdb.InvalidInputException):  # a notebook that cannot draw bars refuses to set them
        connection.execute("SET enable_progress_bar = false")
    return connection


class Store:
    """Tables of a private database, which may spill to disk and goes with the last who uses it."""

    def __init__(self, *, large: bool = False) -> None:
        folder = Path(tempfile.mkdtemp(prefix="sidelight-"))  # made here, since only we may read what spills
        database = str(folder / "rows.duckdb") if large else ":memory:"
        self.connection = connect(database, temp_directory=str(folder / "spilled"))
        weakref.finalize(self, _discard, self.connection, folder)

    def keep(self, name: str, query: str) -> None:
        """Run a query once and keep its rows as the table `name`."""
        self.connection.execute(f"CREATE TABLE {name} AS {query}")

    def forget(self, name: str) -> None:
        """Give the space of a table back."""
        self.connection.execute(f"DROP TABLE {name}")

    def rows(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a table; each time anew, so that one scan does not disturb another."""
        return self.connection.cursor().table(name)


def _discard(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)
