"""What both stores do, in the SQL that both know; sessions know the rest."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, NamedTuple

from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError
from sidelight.service.errors import ConflictError
from sidelight.service.session import Row, Session
from sidelight.service.sql_rounds import (
    ROUND,
    append_change,
    apply_step,
    lock_task,
    locked_round,
    stored_round,
    summed_row,
)
from sidelight.service.store import AddUp, Decide, Outcome, Store, StoredRound, Submission
from sidelight.service.tally import add_rows, row_bytes, row_from
from sidelight.service.task import Terms
from sidelight.service.trail import Change, Entry

TABLES = {
    "tasks": "place, id, document",
    "rounds": ROUND,
    "trail": "task, number, body, digest",
    "sums": "round, shard, people, cells",
    "ids": "id, round",
    "reports": "round, id, payload",
    "tokens": "round, hash",
    "keys": "name, hash",
}
"""What is kept, in the order in which it can be written again."""


class SqlStore(Store):
    """A store whose sessions speak SQL."""

    shards: ClassVar[int] = 1
    """In how many rows a round's sums are kept, so that writers do not queue for one."""

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
            await apply_step(session, before, step, self.shards)
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
            await session.drop_round(before.key)
            for table in ("sums", "reports", "tokens"):
                await session.fetch(f"DELETE FROM {table} WHERE round = $1", before.key)
            await append_change(session, task, time, Change("retired", {"round": number}))

    async def accept(
        self, key: int, submissions: Sequence[Submission], terms: Terms, add_up: AddUp
    ) -> list[Outcome]:
        """Count submissions, see `Store.accept`."""
        # Nearly always all ids are new. Which are not costs more to ask, so it is asked only then, once more.
        counting = _Counting(key, submissions, terms, add_up, secrets.randbelow(self.shards))
        try:
            async with self.session() as session:
                return await session.run(lambda inner: _count(inner, counting, are_new=True))
        except _RepeatedError:
            async with self.session() as session:
                return await session.run(lambda inner: _count(inner, counting, are_new=False))

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

    async def dump(self, step: int = 1000) -> AsyncIterator[tuple[str, list[list[Any]]]]:
        """Return everything, see `Store.dump`."""
        async with self.snapshot() as session:
            for table, columns in TABLES.items():
                first, second = columns.split(", ")[:2]  # which every row has alone
                after: Row = ()
                while True:
                    where = f"WHERE ({first}, {second}) > ($2, $3)" if after else ""
                    sql = f"SELECT {columns} FROM {table} {where} ORDER BY {first}, {second} LIMIT $1"
                    if not (rows := await session.fetch(sql, step, *after)):
                        break
                    yield table, [list(row) for row in rows]
                    after = tuple(rows[-1][:2])

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
                    await _prepare(session, [row[0] for row in chunk])
                marks = ", ".join(f"${place}" for place in range(1, len(names) + 1))
                await session.many(f"INSERT INTO {table} ({TABLES[table]}) VALUES ({marks})", chunk)
                tasks += [row[1] for row in chunk] if table == "tasks" else []
            for task in tasks:
                await append_change(session, task, time, Change("restored"))
            await _spread(session, self.shards)
            await session.after_load()


async def _spread(session: Session, shards: int) -> None:
    """Give every round of a loaded backup the shards that this store has."""
    sizes = "SELECT round, max(length(cells)) FROM sums GROUP BY round"
    rows = [
        (key, shard, 0, bytes(size)) for key, size in await session.fetch(sizes) for shard in range(shards)
    ]
    await session.many(
        "INSERT INTO sums (round, shard, people, cells) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", rows
    )


class _RepeatedError(Exception):
    """Some ids are known."""


class _Counting(NamedTuple):
    """What one transaction counts, and in which shard of the sums."""

    key: int
    submissions: Sequence[Submission]
    terms: Terms
    add_up: AddUp
    shard: int


async def _count(session: Session, asked: _Counting, *, are_new: bool) -> list[Outcome]:
    """Count submissions; if all ids are said to be new and are not, raise `_RepeatedError`."""
    key, submissions, terms = asked.key, asked.submissions, asked.terms
    # A quota is exact only if nobody else counts meanwhile.
    lock = session.shared if terms.most_reports is None else session.alone
    rows = await session.fetch(f"SELECT state FROM rounds WHERE key = $1{lock}", key)
    if not rows or rows[0][0] == "draft":
        raise ConflictError("the round is not open yet; come back when it is.")
    # In one order, so that two processes with the same ids wait for each other and not in a circle.
    ids = sorted([item.id for item in submissions])
    if rows[0][0] != "open":
        known = await session.known_ids(key, ids)
        return ["repeated" if item.id in known else "closed" for item in submissions]
    if not are_new:
        known = await session.add_ids(key, ids)
    elif await session.add_new_ids(key, ids):
        known = set()
    else:
        raise _RepeatedError
    outcomes = await _claim(session, key, submissions, terms, known)
    counted = [place for place, outcome in enumerate(outcomes) if outcome == "accepted"]
    if counted:
        await _add(session, key, asked.shard, asked.add_up(counted))
        if terms.keeps_reports:
            kept = [(key, submissions[place].id, submissions[place].payload) for place in counted]
            await session.many("INSERT INTO reports (round, id, payload) VALUES ($1, $2, $3)", kept)
    return outcomes


async def _add(session: Session, key: int, shard: int, row: Whole) -> None:
    where = "WHERE round = $1 AND shard = $2"
    found = await session.fetch(f"SELECT cells FROM sums {where}{session.alone}", key, shard)
    total = add_rows(row_from(found[0][0]), row)
    await session.fetch(
        f"UPDATE sums SET people = $3, cells = $4 {where}", key, shard, int(total[0]), row_bytes(total)
    )


async def _prepare(session: Session, keys: Sequence[int]) -> None:
    for key in keys:
        await session.prepare_round(key)


async def _claim(
    session: Session, key: int, submissions: Sequence[Submission], terms: Terms, known: set[bytes]
) -> list[Outcome]:
    """Return what becomes of submissions whose ids were added but for the known, and drop the refused."""
    outcomes: list[Outcome] = ["accepted"] * len(submissions)
    if known:
        outcomes = ["repeated" if item.id in known else "accepted" for item in submissions]
    if terms.needs_token:
        await _pay(session, key, submissions, outcomes)
    if terms.most_reports is not None:
        people = await session.fetch("SELECT sum(people) FROM sums WHERE round = $1", key)
        fine = [place for place, outcome in enumerate(outcomes) if outcome == "accepted"]
        over = fine[max(0, terms.most_reports - int(people[0][0])) :]
        for place in over:
            outcomes[place] = "over quota"
        if terms.needs_token:  # who was not counted has not used up a token
            back = [(key, submissions[place].token) for place in over]
            await session.many("INSERT INTO tokens (round, hash) VALUES ($1, $2)", back)
    if not terms.needs_token and terms.most_reports is None:
        return outcomes
    refused = [item.id for item, outcome in zip(submissions, outcomes, strict=True)
               if outcome not in ("accepted", "repeated")]  # fmt: skip
    if refused:
        await session.drop_ids(key, refused)
    return outcomes


async def _pay(
    session: Session, key: int, submissions: Sequence[Submission], outcomes: list[Outcome]
) -> None:
    """Take the token of each submission that would be accepted; one without is not."""
    asked = [place for place, outcome in enumerate(outcomes) if outcome == "accepted"]
    left = await session.take_tokens(key, sorted({submissions[place].token or b"" for place in asked}))
    for place in asked:
        token = submissions[place].token
        if token not in left:
            outcomes[place] = "bad token"
        left.discard(token or b"")
