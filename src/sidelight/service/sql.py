"""What both stores do, in the SQL that both know; sessions know the rest."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, NamedTuple

from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError
from sidelight.service.batches import Batch
from sidelight.service.errors import ConflictError
from sidelight.service.seen import Keeping, Seen
from sidelight.service.session import Row, Session
from sidelight.service.sql_counting import Counting, count
from sidelight.service.sql_ids import newer_runs, read_run, settle
from sidelight.service.sql_rounds import (
    ROUND,
    append_change,
    apply_step,
    lock_task,
    locked_round,
    stored_round,
    summed_row,
)
from sidelight.service.store import AddUp, Decide, Outcome, Store, StoredRound
from sidelight.service.task import Terms
from sidelight.service.trail import Change, Entry

TABLES = {
    "tasks": "place, id, document",
    "rounds": ROUND,
    "trail": "task, number, body, digest",
    "sums": "round, place, settled, people, cells",
    "id_blocks": "round, place, ids",
    "id_runs": "round, run",
    "id_pages": "round, run, first, ids",
    "reports": "round, id, payload",
    "tokens": "round, hash",
    "keys": "name, hash",
}
"""What is kept, in the order in which it can be written again."""
_ALONE = {"id_pages": 3}
"""How many columns no two rows share, of what has more than two such."""
MOST_REMEMBERED = 1 << 28
"""If a process remembers more bytes of ids than this, it forgets the rounds that it met longest ago."""


class _Memory(NamedTuple):
    """What is remembered of a round's ids, for one transaction at a time."""

    turn: asyncio.Lock
    seen: Seen


class SqlStore(Store):
    """A store whose sessions speak SQL."""

    keeping: ClassVar[Keeping] = Keeping()
    """How ids are kept."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._memories: dict[int, _Memory] = {}

    @abstractmethod
    def session(self) -> AbstractAsyncContextManager[Session]:
        """Return a transaction that may write: committed at the end, rolled back by an exception."""

    async def ping(self) -> None:
        """Ask for nothing, see `Store.ping`."""
        async with self.session() as session:
            await session.fetch("SELECT 1")

    async def add_task(self, task: str, document: bytes, rounds: int, time: int, by: str = "") -> bool:
        """Keep a task, see `Store.add_task`."""
        async with self.session() as session:
            made = await session.fetch(
                "INSERT INTO tasks (id, document) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id",
                task, document,
            )  # fmt: skip
            if made:
                drafts = [(task, number, "draft", False) for number in range(1, rounds + 1)]
                await session.many(
                    "INSERT INTO rounds (task, number, state, is_retired) VALUES ($1, $2, $3, $4)", drafts
                )
                await append_change(session, task, time, Change("made", {"task": task}, by))
            return bool(made)

    async def task(self, task: str) -> bytes | None:
        """Return a task's document, see `Store.task`."""
        async with self.session() as session:
            rows = await session.fetch("SELECT document FROM tasks WHERE id = $1", task)
        return bytes(rows[0][0]) if rows else None

    async def tasks(self) -> list[str]:
        """Return the ids of all tasks."""
        async with self.session() as session:
            return [row[0] for row in await session.fetch("SELECT id FROM tasks ORDER BY place")]

    async def rounds(self, task: str) -> list[StoredRound]:
        """Return the rounds of a task."""
        async with self.session() as session:
            rows = await session.fetch(f"SELECT {ROUND} FROM rounds WHERE task = $1 ORDER BY number", task)
        return [stored_round(row) for row in rows]

    async def change(self, task: str, number: int, time: int, decide: Decide) -> StoredRound:
        """Change a round, see `Store.change`."""
        async with self.session() as session:
            await lock_task(session, task)
            before = await locked_round(session, task, number)
            step = decide(before, await summed_row(session, before.key))
            if step is None:
                return before
            await apply_step(session, before, step)
            if step.state == "closed":  # from now on only runs tell in which order ids came
                await settle(session, before.key, self.keeping)
            await append_change(session, task, time, step.change)
            return await locked_round(session, task, number)

    async def retire(self, task: str, number: int, time: int) -> None:
        """Drop a round, see `Store.retire`."""
        async with self.session() as session:
            await lock_task(session, task)
            before = await locked_round(session, task, number)
            if before.is_retired:
                return
            if before.state != "published":
                raise ConflictError(f"round {number} is {before.state}; publish it before it is retired.")
            await session.fetch("UPDATE rounds SET is_retired = $2 WHERE key = $1", before.key, True)
            for table in ("sums", "id_blocks", "id_runs", "id_pages", "reports", "tokens"):
                await session.fetch(f"DELETE FROM {table} WHERE round = $1", before.key)
            await append_change(session, task, time, Change("retired", {"round": number}))

    async def accept(self, key: int, batch: Batch, terms: Terms, add_up: AddUp) -> list[Outcome]:
        """Count reports, see `Store.accept`."""
        asked = Counting(key, batch, terms, add_up)
        memory = self._memory(key)
        async with memory.turn:
            if not memory.seen.last:
                await self._read_runs(key, memory.seen)
            async with self.session() as session:
                done = await session.run(lambda inner: count(inner, asked, memory.seen, self.keeping))
            # Only now: if the commit failed, or nobody knows, the next transaction reads what is there.
            done.added.note(memory.seen)
        return done.outcomes

    def _memory(self, key: int) -> _Memory:
        """Return what is remembered of a round."""
        if (memory := self._memories.pop(key, None)) is None:
            memory = _Memory(asyncio.Lock(), Seen(self.keeping))
            while sum(item.seen.size for item in self._memories.values()) > MOST_REMEMBERED:
                del self._memories[next(iter(self._memories))]
        self._memories[key] = memory  # at the end: the latest
        return memory

    async def _read_runs(self, key: int, seen: Seen) -> None:
        """Read what was settled before this process met the round, while others go on counting."""
        async with self.snapshot() as session:
            runs = await newer_runs(session, key, seen)
        for run in runs:
            async with self.snapshot() as session:
                await read_run(session, key, seen, run)

    async def sums(self, key: int) -> Whole | None:
        """Return a round's row, see `Store.sums`."""
        async with self.session() as session:
            return await summed_row(session, key)

    async def add_tokens(
        self, task: str, number: int, hashes: Sequence[bytes], time: int, by: str = ""
    ) -> None:
        """Keep the hashes of tokens, see `Store.add_tokens`."""
        async with self.session() as session:
            await lock_task(session, task)
            found = await locked_round(session, task, number)
            if found.state in ("closed", "published"):
                raise ConflictError(f"round {number} is {found.state}; it needs no more tokens.")
            rows = [(found.key, item) for item in hashes]
            await session.many("INSERT INTO tokens (round, hash) VALUES ($1, $2)", rows)
            said = {"round": number, "count": len(hashes)}
            await append_change(session, task, time, Change("tokens", said, by))

    async def reports(self, key: int, step: int = 10_000) -> AsyncIterator[list[bytes]]:
        """Return the kept reports, see `Store.reports`."""
        last = b""
        while True:
            async with self.session() as session:
                rows = await session.fetch(
                    "SELECT id, payload FROM reports WHERE round = $1 AND id > $2 ORDER BY id LIMIT $3",
                    key, last, step,
                )  # fmt: skip
            if not rows:
                return
            yield [bytes(row[1]) for row in rows]
            last = bytes(rows[-1][0])

    async def trail(self, task: str) -> list[Entry]:
        """Return the trail of a task."""
        async with self.session() as session:
            rows = await session.fetch(
                "SELECT number, body, digest FROM trail WHERE task = $1 ORDER BY number", task
            )
        return [Entry(row[0], bytes(row[1]), bytes(row[2])) for row in rows]

    async def add_key(self, name: str, key_hash: bytes) -> None:
        """Keep a key's hash, see `Store.add_key`."""
        async with self.session() as session:
            await session.fetch(
                "INSERT INTO keys (name, hash) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET "
                "hash = excluded.hash", name, key_hash,
            )  # fmt: skip

    async def keys(self) -> dict[str, bytes]:
        """Return the hashes of all operators' keys."""
        async with self.session() as session:
            return {row[0]: bytes(row[1]) for row in await session.fetch("SELECT name, hash FROM keys")}

    async def dump(self, step: int = 200) -> AsyncIterator[tuple[str, list[list[Any]]]]:
        """Return everything, see `Store.dump`."""
        async with self.snapshot() as session:
            for table, columns in TABLES.items():
                alone = _ALONE.get(table, 2)
                names = ", ".join(columns.split(", ")[:alone])
                marks = ", ".join(f"${place}" for place in range(2, alone + 2))
                after: Row = ()
                while True:
                    where = f"WHERE ({names}) > ({marks})" if after else ""
                    sql = f"SELECT {columns} FROM {table} {where} ORDER BY {names} LIMIT $1"
                    if not (rows := await session.fetch(sql, step, *after)):
                        break
                    yield table, [list(row) for row in rows]
                    after = tuple(rows[-1][:alone])

    @abstractmethod
    def snapshot(self) -> AbstractAsyncContextManager[Session]:
        """Return a transaction that reads, and sees everything as of one moment."""

    async def load(self, rows: AsyncIterator[tuple[str, list[list[Any]]]], time: int) -> None:
        """Take a dump over, see `Store.load`."""
        async with self.session() as session:
            if await session.fetch("SELECT id FROM tasks LIMIT 1"):
                raise InputError("the store holds tasks already; restore into an empty one.")
            await session.fetch("DELETE FROM keys")
            tasks = []
            async for table, chunk in rows:
                if table not in TABLES:
                    raise InputError(f"the backup has a table {table!r} that this Sidelight does not know.")
                names = TABLES[table].split(", ")
                if table == "rounds":
                    chunk = [[*row[:-1], bool(row[-1])] for row in chunk]  # SQLite has no such type
                marks = ", ".join(f"${place}" for place in range(1, len(names) + 1))
                await session.many(f"INSERT INTO {table} ({TABLES[table]}) VALUES ({marks})", chunk)
                tasks += [row[1] for row in chunk] if table == "tasks" else []
            for task in tasks:
                await append_change(session, task, time, Change("restored"))
            await session.after_load()
