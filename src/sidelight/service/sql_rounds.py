"""Rounds and trails in SQL: how a round is read, locked and taken a step on within a transaction."""

from __future__ import annotations

from sidelight.foundation.arrays import Whole
from sidelight.service.errors import NotFoundError
from sidelight.service.session import Row, Session
from sidelight.service.store import Step, StoredRound
from sidelight.service.tally import row_from
from sidelight.service.trail import Change, Entry, next_entry

ROUND = "key, task, number, state, document, digest, sums, published, published_digest, is_retired"
"""The columns of a round."""


async def apply_step(session: Session, before: StoredRound, step: Step) -> None:
    """Take a round a step on, and make room for the sums of one that opens."""
    names = ["state", *step.values]
    marks = ", ".join(f"{name} = ${place}" for place, name in enumerate(names, start=2))
    await session.fetch(
        f"UPDATE rounds SET {marks} WHERE key = $1", before.key, step.state, *step.values.values()
    )
    if step.cells:
        sql = "INSERT INTO sums (round, place, settled, people, cells) VALUES ($1, 0, 0, 0, $2)"
        await session.fetch(sql, before.key, bytes(8 * step.cells))


async def lock_task(session: Session, task: str) -> None:
    """Keep others from changing the task: its trail has one end."""
    if not await session.fetch(f"SELECT id FROM tasks WHERE id = $1{session.alone}", task):
        raise NotFoundError(f"there is no task {task}.")


async def locked_round(session: Session, task: str, number: int) -> StoredRound:
    """Return a round that nobody else changes meanwhile."""
    sql = f"SELECT {ROUND} FROM rounds WHERE task = $1 AND number = $2{session.alone}"
    rows = await session.fetch(sql, task, number)
    if not rows:
        raise NotFoundError(f"the task {task} has no round {number}.")
    return stored_round(rows[0])


def stored_round(row: Row) -> StoredRound:
    """Return a round from its row."""
    key, task, number, state, document, digest, sums, published, published_digest, is_retired = row
    return StoredRound(
        key, task, number, state, None if document is None else bytes(document), sums,
        None if published is None else bytes(published), (digest, published_digest), bool(is_retired),
    )  # fmt: skip


async def summed_row(session: Session, key: int) -> Whole | None:
    """Return the sums of a round; None if there are none."""
    rows = await session.fetch("SELECT cells FROM sums WHERE round = $1", key)
    return row_from(rows[0][0]) if rows else None


async def append_change(session: Session, task: str, time: int, change: Change) -> None:
    """Add a change to the end of a task's trail."""
    rows = await session.fetch(
        "SELECT number, body, digest FROM trail WHERE task = $1 ORDER BY number DESC LIMIT 1", task
    )
    last = Entry(rows[0][0], bytes(rows[0][1]), bytes(rows[0][2])) if rows else None
    entry = next_entry(last, time, change)
    await session.fetch(
        "INSERT INTO trail (task, number, body, digest) VALUES ($1, $2, $3, $4)",
        task, entry.number, entry.body, entry.digest,
    )  # fmt: skip
