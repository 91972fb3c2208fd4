"""The ids of a round in SQL: appended as blocks, settled in sorted runs.

A transaction appends its ids as one block, a few bytes more than the ids themselves: an index of random ids
would cost a page for each. Once many have come, whoever comes next settles them: they are sorted and written
as a run of pages, and the blocks are dropped. Which ids are known a process remembers (`seen`); here it reads
what others added, and looks up what its memory is not sure of. Everything needs the lock of the round, but
for the reading of runs, which never change.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from sidelight.service.batches import ID_BYTES, ordered, split
from sidelight.service.seen import Keeping, Seen, among
from sidelight.service.session import Row, Session

_FEW = 400
"""So many ids are looked up one by one, a page of each run; for more it is quicker to read all pages once."""

_STRIDE = 30
"""Bits of what lies between two places, at most: room for eight billion transactions of a round."""


class Extent(NamedTuple):
    """How far the ids of a round go: the place of the last block, and of the last that is settled."""

    place: int
    settled: int


class Added(NamedTuple):
    """What a transaction added: a block at a place, or nothing, and whether it settled all blocks then."""

    block: bytes
    place: int
    is_settled: bool = False

    def note(self, seen: Seen) -> None:
        """Remember it, once it is known to be committed."""
        if self.block:
            seen.add(self.block, self.place)
        if self.is_settled:
            seen.settle()


async def catch_up(session: Session, key: int, seen: Seen, extent: Extent) -> None:
    """Read what others have added since, or we by a commit of which we did not hear."""
    if extent.settled != seen.run:
        for run in await newer_runs(session, key, seen):
            await read_run(session, key, seen, run)
    if extent.place != seen.last:
        for place, ids in await _newer_blocks(session, key, seen):
            seen.add(ids, place)


async def newer_runs(session: Session, key: int, seen: Seen) -> list[int]:
    """Return the runs that a process does not know yet, each named by the last place in it.

    If the last that it knows is not there, the database was set back behind its back, and it forgets all.
    """
    sql = "SELECT run FROM id_runs WHERE round = $1 AND run >= $2 ORDER BY run"
    runs = [row[0] for row in await session.fetch(sql, key, seen.run)]
    if not seen.run:
        return runs
    if seen.run in runs[:1]:
        return runs[1:]
    seen.forget()
    return await newer_runs(session, key, seen)


async def _newer_blocks(session: Session, key: int, seen: Seen) -> list[Row]:
    """Return the blocks that a process does not know yet, after a look whether the last it knows is there."""
    sql = (
        "SELECT place, CASE WHEN place > $2 THEN ids END FROM id_blocks "
        "WHERE round = $1 AND place >= $2 ORDER BY place"
    )
    rows = await session.fetch(sql, key, seen.last)
    if seen.last == seen.run:
        return rows
    if rows and rows[0][0] == seen.last:
        return rows[1:]
    seen.forget_recent()
    return await _newer_blocks(session, key, seen)


async def read_run(session: Session, key: int, seen: Seen, run: int) -> None:
    """Take note of a run, unless its round was retired meanwhile."""
    if content := await _run(session, key, run):
        seen.add_run(content, run)


async def _run(session: Session, key: int, run: int) -> bytes:
    sql = "SELECT ids FROM id_pages WHERE round = $1 AND run = $2 ORDER BY first"
    return b"".join([row[0] for row in await session.fetch(sql, key, run)])


async def known_ids(session: Session, key: int, seen: Seen, ids: bytes) -> set[bytes]:
    """Return which of the ids that stand in some bytes a round has counted; `seen` must be up to date."""
    if not (asked := seen.perhaps(ids)):
        return set()
    known = seen.recent_among(asked)
    asked = [name for name in asked if name not in known]
    if len(asked) <= _FEW:
        for name in asked:
            if await _is_settled(session, key, name):
                known.add(name)
        return known
    for (run,) in await session.fetch("SELECT run FROM id_runs WHERE round = $1", key):
        known.update(among(asked, await _run(session, key, run)))
    return known


async def _is_settled(session: Session, key: int, name: bytes) -> bool:
    page = (
        "SELECT ids FROM id_pages AS page WHERE page.round = runs.round AND page.run = runs.run "
        "AND page.first <= $2 ORDER BY page.first DESC LIMIT 1"
    )
    rows = await session.fetch(f"SELECT ({page}) FROM id_runs AS runs WHERE runs.round = $1", key, name)
    return any(row[0] is not None and name in split(row[0]) for row in rows)


def place_after(place: int) -> int:
    """Return where the next block goes: by chance, so that places tell one course of events from another.

    If a database is set back, what follows is elsewhere, and who remembers what was lost does not find it.
    """
    return place + 1 + secrets.randbits(_STRIDE)


async def settle(session: Session, key: int, keeping: Keeping) -> None:
    """Make a run of all blocks."""
    # From the store, not from memory: what is written is what was counted, whatever a process believes.
    rows = await session.fetch("DELETE FROM id_blocks WHERE round = $1 RETURNING place, ids", key)
    content = ordered(b"".join([ids for _, ids in rows]))
    if content:
        place = max(place for place, _ in rows)
        size = keeping.page * ID_BYTES
        pages = [
            (key, place, content[at : at + ID_BYTES], content[at : at + size])
            for at in range(0, len(content), size)
        ]
        await session.many("INSERT INTO id_pages (round, run, first, ids) VALUES ($1, $2, $3, $4)", pages)
        await session.fetch("INSERT INTO id_runs (round, run) VALUES ($1, $2)", key, place)
        await session.fetch("UPDATE sums SET settled = $2 WHERE round = $1", key, place)
