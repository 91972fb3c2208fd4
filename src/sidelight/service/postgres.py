"""The store for several workers and hosts: PostgreSQL, through asyncpg.

READ COMMITTED is enough: whoever counts in a round or closes it holds the lock of its row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import asyncpg

from sidelight.foundation.errors import InputError
from sidelight.service.errors import StoreError
from sidelight.service.migrating import BASE, LOCK, migration
from sidelight.service.session import Row, Session
from sidelight.service.sql import SqlStore

MOST_CONNECTIONS = 8
COMMAND_SECONDS = 60.0
_AWAY = (
    OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError, asyncpg.PostgresIOError, TimeoutError,
)  # fmt: skip


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database, named by its URL."""

    def __init__(self, url: str) -> None:
        """Take a URL such as postgresql://user@host/database; `open` connects."""
        super().__init__()
        self.url = url
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Connect, and bring the tables up to date."""
        try:
            await _upgrade(self.url)
            self._pool = await asyncpg.create_pool(
                self.url, min_size=1, max_size=MOST_CONNECTIONS, command_timeout=COMMAND_SECONDS,
                connection_class=_Connection, init=_prepared,
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"the URL of the store cannot be used: {error}.") from None
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise InputError(f"PostgreSQL does not let us in: {error}.") from None
        except asyncpg.InvalidCatalogNameError as error:
            raise InputError(f"{error}; create it first: createdb.") from None
        except _AWAY as error:
            raise _gone(error) from None

    async def close(self) -> None:
        """Close all connections once their transactions are over."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Return a transaction that writes, see `SqlStore.session`."""
        async with self._begun("read_committed") as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Return a transaction that reads, see `SqlStore.snapshot`."""
        async with self._begun("repeatable_read") as session:
            yield session

    @asynccontextmanager
    async def _begun(self, isolation: Any) -> AsyncIterator[Session]:
        if self._pool is None:
            raise StoreError("the store is closed.")
        try:
            async with self._pool.acquire() as connection, connection.transaction(isolation=isolation):
                yield PostgresSession(connection)
        except (*_AWAY, asyncpg.DeadlockDetectedError) as error:
            raise _gone(error) from None


async def _upgrade(url: str) -> None:
    """Bring the tables up to date."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            named = await connection.fetchval("SELECT to_regclass('alembic_version')")
            row = await connection.fetchrow("SELECT version_num FROM alembic_version") if named else None
            for statement in migration("postgresql", row[0] if row else BASE):
                await connection.execute(statement)
    finally:
        await connection.close()


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """A connection that is given back as it is: transactions change nothing that outlives them."""

    def get_reset_query(self) -> str:
        """Return what makes it as new: nothing, which spares a journey after every transaction."""
        return ""


async def _prepared(connection: Any) -> None:
    """Let a commit wait for the disk, whatever the database's habits are: what is answered must last."""
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )
    if await connection.fetchval("SELECT current_setting('fsync')") == "off":
        raise InputError(
            "PostgreSQL runs with fsync = off: what was answered could be lost with the power; turn fsync on."
        )


def _gone(error: BaseException) -> StoreError:
    return StoreError(f"PostgreSQL does not answer: {type(error).__name__}: {error}.")


class PostgresSession(Session):
    """A transaction of PostgreSQL."""

    alone: ClassVar[str] = " FOR UPDATE"

    def __init__(self, connection: Any) -> None:
        """Take a connection in a transaction."""
        self._connection = connection

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """Run a statement, see `Session.fetch`."""
        rows: list[Row] = await self._connection.fetch(sql, *arguments)
        return rows

    async def many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement for each row."""
        await self._connection.executemany(sql, rows)

    async def take_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Remove tokens, see `Session.take_tokens`."""
        sql = "DELETE FROM tokens WHERE round = $1 AND hash = ANY($2::bytea[]) RETURNING hash"
        return {row[0] for row in await self.fetch(sql, key, list(hashes))}

    async def append(self, key: int, place: int, block: bytes, sums: tuple[int, bytes]) -> None:
        """Append a block, see `Session.append`: in one journey, as other workers wait for the lock."""
        await self.fetch(
            "WITH block AS (INSERT INTO id_blocks (round, place, ids) VALUES ($1, $2, $3)) "
            "UPDATE sums SET place = $2, people = $4, cells = $5 WHERE round = $1",
            key, place, block, *sums,
        )  # fmt: skip

    async def after_load(self) -> None:
        """Set the sequences after the highest keys."""
        for table, column in (("rounds", "key"), ("tasks", "place")):
            await self.fetch(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}"
            )
