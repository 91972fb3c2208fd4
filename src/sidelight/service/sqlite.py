"""The embedded store: one SQLite file, no set-up. WAL, synchronous FULL, one writer at a time."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from sidelight.foundation.errors import InputError
from sidelight.service.errors import StoreError
from sidelight.service.migrating import BASE, migration
from sidelight.service.session import Row, Session
from sidelight.service.sql import SqlStore

T = TypeVar("T")
BUSY_SECONDS = 30.0
"""So long a writer waits for another process's transaction, which takes milliseconds."""
_HASH_BYTES = 32
# What is deleted is overwritten: a retired round is not left in the file.
_SETTINGS = (
    "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON",
)  # fmt: skip
# The pieces of one argument: a list of thousands of arguments would be parsed anew each time.
_PIECES = (
    "WITH RECURSIVE place(i) AS (SELECT 0 WHERE length($2) > 0 UNION ALL SELECT i + 1 FROM place WHERE "
    "(i + 1) * $3 < length($2)), piece(hash) AS (SELECT substr($2, i * $3 + 1, $3) FROM place) "
)


class SqliteStore(SqlStore):
    """A store in one file; several processes of one machine may share it, writing one after the other."""

    def __init__(self, path: str | Path) -> None:
        """Take the file's name; `open` makes it."""
        super().__init__()
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Open the file, or make it."""
        if not self.path.parent.is_dir():
            raise InputError(f"the folder {self.path.parent} does not exist; create it first.")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        await self._call(self._connect)

    def _connect(self) -> None:
        with suppress(OSError):  # SQLite says better what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # nobody else reads it
        # Statements are committed by ourselves; one thread uses the connection.
        self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        for setting in _SETTINGS:
            self._connection.execute(f"PRAGMA {setting}")
        _upgrade(self._connection)

    async def close(self) -> None:
        """Close the file, once the transaction under way is over."""
        async with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                await self._call(connection.close)
            if self._thread is not None:
                self._thread.shutdown()
                self._thread = None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Return a transaction that writes, see `SqlStore.session`."""
        async with self._turn, self._begun("BEGIN IMMEDIATE") as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Return a transaction that reads, see `SqlStore.snapshot`."""
        async with self._turn, self._begun("BEGIN") as session:
            yield session

    @asynccontextmanager
    async def _begun(self, begin: str) -> AsyncIterator[Session]:
        connection = self._connection
        if connection is None:
            raise StoreError("the store is closed.")
        session = SqliteSession(connection, self._call, begin)
        try:
            yield session
            await self._call(_commit, connection)
        except BaseException:
            # In the store's thread, after what a cancelled caller left it to do.
            await self._call(_undo, connection)
            raise

    async def _call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run something in the store's own thread; what is wrong with the file is a `StoreError`."""
        if self._thread is None:
            raise StoreError("the store is closed.")
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        try:
            return await asyncio.shield(future)
        except sqlite3.OperationalError as error:
            raise StoreError(f"the store {self.path} does not answer: {error}.") from None
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the store {self.path} is broken: {error}; restore a backup.") from None


class SqliteSession(Session):
    """A transaction of SQLite, which keeps all other writers away."""

    def __init__(self, connection: sqlite3.Connection, call: Callable[..., Any], begin: str = "") -> None:
        """Take a connection, what runs something in its thread, and how the first statement begins it all."""
        self._connection, self._call, self._begin = connection, call, begin

    async def run(self, work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        """Do everything in one go in the connection's thread, see `Session.run`."""
        inner = SqliteSession(self._connection, _at_once, self._begin)
        done: T = await self._call(_driven, work(inner))
        return done

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """Run a statement, see `Session.fetch`."""
        rows: list[Row] = await self._call(self._fetched, sql, arguments)
        return rows

    def _fetched(self, sql: str, arguments: Sequence[Any]) -> list[Row]:
        self._start()
        return self._connection.execute(_numbered(sql), arguments).fetchall()

    def _start(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute(self._begin)

    async def many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement for each row."""
        await self._call(self._fetched_many, sql, rows)

    def _fetched_many(self, sql: str, rows: Sequence[Row]) -> None:
        self._start()
        self._connection.executemany(_numbered(sql), rows)

    async def take_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Remove tokens, see `Session.take_tokens`."""
        sql = f"{_PIECES}DELETE FROM tokens WHERE round = $1 AND hash IN piece RETURNING hash"
        return {row[0] for row in await self.fetch(sql, key, b"".join(hashes), _HASH_BYTES)}


def _upgrade(connection: sqlite3.Connection) -> None:
    """Bring the tables up to date."""
    connection.execute("BEGIN EXCLUSIVE")
    named = connection.execute("SELECT name FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if named else None
    for statement in migration("sqlite", row[0] if row else BASE):
        connection.execute(statement)
    connection.execute("COMMIT")


async def _at_once(work: Callable[..., T], *arguments: Any) -> T:
    return work(*arguments)


def _driven(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose every step is there at once, without a loop."""
    try:
        steps.send(None)
    except StopIteration as end:
        done: T = end.value
        return done
    raise AssertionError("a transaction of SQLite waits for nothing else.")


def _commit(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("COMMIT")


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@lru_cache(maxsize=256)
def _numbered(sql: str) -> str:
    """Return SQL with the arguments as SQLite numbers them."""
    return re.sub(r"\$(\d+)", r"?\1", sql)
