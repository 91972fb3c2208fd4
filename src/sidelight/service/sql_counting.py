"""The transaction in which reports are counted: their ids, their tokens and their sums change together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidelight.service.batches import Batch
from sidelight.service.errors import ConflictError, StoreError
from sidelight.service.seen import Keeping, Seen
from sidelight.service.session import Session
from sidelight.service.sql_ids import Added, Extent, catch_up, known_ids, place_after, settle
from sidelight.service.store import AddUp, Outcome
from sidelight.service.tally import add_rows, row_bytes, row_from
from sidelight.service.task import Terms


class Counting(NamedTuple):
    """What one transaction counts."""

    key: int
    batch: Batch
    terms: Terms
    add_up: AddUp


class Counted(NamedTuple):
    """What became of each report, and what was added."""

    outcomes: list[Outcome]
    added: Added


class _Sums(NamedTuple):
    """The sums of a round under its lock."""

    state: str
    place: int
    settled: int
    people: int
    cells: bytes


async def count(session: Session, asked: Counting, seen: Seen, keeping: Keeping) -> Counted:
    """Count those reports whose ids are new; what was added may be remembered once it is committed."""
    before = await _locked_sums(session, asked.key)
    if before is None:  # a retired round has no ids any more
        seen.forget()
        return Counted(["closed"] * len(asked.batch), Added(b"", 0))
    await _catch_up(session, asked.key, seen, before)
    batch = asked.batch
    known = await known_ids(session, asked.key, seen, batch.ids)
    if before.state != "open":
        told: list[Outcome] = ["repeated" if name in known else "closed" for name in batch.names]
        return Counted(told, Added(b"", before.place))
    outcomes = await _claim(session, asked, known, before.people)
    counted: Sequence[int] = range(len(batch))
    if outcomes.count("accepted") < len(batch):
        counted = [place for place in counted if outcomes[place] == "accepted"]
        batch = batch.taken(counted)
    if not counted:
        return Counted(outcomes, Added(b"", before.place))
    if asked.terms.keeps_reports:
        kept = [(asked.key, *each) for each in zip(batch.names, batch.listed, strict=True)]
        await session.many("INSERT INTO reports (round, id, payload) VALUES ($1, $2, $3)", kept)
    total = add_rows(row_from(before.cells), asked.add_up(counted))
    end = place_after(before.place)
    await session.append(asked.key, end, batch.block, (int(total[0]), row_bytes(total)))
    is_full = seen.recent + len(counted) > keeping.recent
    if is_full:
        await settle(session, asked.key, keeping)
    return Counted(outcomes, Added(batch.block, end, is_full))


async def _locked_sums(session: Session, key: int) -> _Sums | None:
    """Return the sums of a round that nobody else counts in meanwhile; None if it is retired."""
    # Both rows are locked, so that PostgreSQL returns both as they are once it need not wait any more.
    sql = "SELECT state, place, settled, people, cells FROM rounds JOIN sums ON round = key WHERE key = $1"
    if rows := await session.fetch(f"{sql}{session.alone}", key):
        return _Sums(*rows[0])
    states = await session.fetch("SELECT state FROM rounds WHERE key = $1", key)
    if not states or states[0][0] != "published":  # or it was opened a moment ago
        raise ConflictError("the round is not open yet; come back when it is.")
    return None


async def _catch_up(session: Session, key: int, seen: Seen, before: _Sums) -> None:
    """Let the memory know what the store holds: as many ids as people were counted."""
    extent = Extent(before.place, before.settled)
    await catch_up(session, key, seen, extent)
    if len(seen) != before.people:  # whatever was believed, the store is right
        seen.forget()
        await catch_up(session, key, seen, extent)
    if len(seen) != before.people:
        raise StoreError(
            f"the store counted {before.people} people in a round, and has {len(seen)} ids; restore a backup."
        )


async def _claim(session: Session, asked: Counting, known: set[bytes], people: int) -> list[Outcome]:
    """Return what becomes of reports of which some ids are known; so many people were counted before."""
    outcomes: list[Outcome] = ["accepted"] * len(asked.batch)
    if known:
        outcomes = ["repeated" if name in known else "accepted" for name in asked.batch.names]
    if asked.terms.needs_token:
        await _pay(session, asked, outcomes)
    if asked.terms.most_reports is not None:
        fine = [place for place, outcome in enumerate(outcomes) if outcome == "accepted"]
        over = fine[max(0, asked.terms.most_reports - people) :]
        for place in over:
            outcomes[place] = "over quota"
        if asked.terms.needs_token:  # who was not counted has not used up a token
            back = [(asked.key, asked.batch.tokens[place]) for place in over]
            await session.many("INSERT INTO tokens (round, hash) VALUES ($1, $2)", back)
    return outcomes


async def _pay(session: Session, asked: Counting, outcomes: list[Outcome]) -> None:
    """Take the token of each report that would be accepted; one without is not."""
    given = asked.batch.tokens or [None] * len(outcomes)
    tokens = {place: given[place] for place, outcome in enumerate(outcomes) if outcome == "accepted"}
    left = await session.take_tokens(asked.key, sorted({token or b"" for token in tokens.values()}))
    for place, token in tokens.items():
        if token not in left:
            outcomes[place] = "bad token"
        left.discard(token or b"")
