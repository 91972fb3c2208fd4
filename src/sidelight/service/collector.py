"""The service itself, without HTTP: tasks are made, rounds go their way, reports are taken, figures given.

Everything that must survive is in the store; a collector keeps only copies of documents, which never change.
So any number of collectors may share a store.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError, check_whole
from sidelight.protocols.records import RecordSums
from sidelight.service.batches import ID_BYTES, Batch, Submission
from sidelight.service.canonical import canonical, check_digest, digest_of, is_digest
from sidelight.service.committing import ANSWERS, Answer, Committer, Grouping
from sidelight.service.course import Earlier
from sidelight.service.errors import ConflictError, NotFoundError, NotShownError, StoreError
from sidelight.service.figures import check_crowd, figures
from sidelight.service.rounds import Round, State, check_step, read_round
from sidelight.service.store import Step, Store, StoredRound
from sidelight.service.tally import Tally, row_digest
from sidelight.service.task import Task, read_task
from sidelight.service.trail import Change, Entry, check_trail
from sidelight.transport.wire import REFUSALS, Wire

MOST_TOKENS = 1_000_000
DAY = 86_400
_REASONS = {
    "closed": "the round is closed",
    "over quota": "the round has all the reports that it takes",
    "bad token": "the token was used before, or was never given out",
}
_ANSWERS = {word: Answer(word, _REASONS.get(word, "")) for word in ANSWERS}


@dataclass(frozen=True)
class Asked:
    """An open or later round with everything that its reports need, worked out once."""

    task: Task
    round: Round
    key: int

    @cached_property
    def wire(self) -> Wire:
        """What reads its reports."""
        return Wire(self.round.protocol)

    @cached_property
    def tally(self) -> Tally:
        """What adds them up."""
        return Tally.of(self.task, self.round)


class Collector:
    """A service over a store.

    Args:
        store: which is open.
        grouping: how uploads are gathered into transactions.
        clock: the time in whole seconds, for the trail.
    """

    def __init__(
        self, store: Store, grouping: Grouping | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        self.store = store
        self._grouping = grouping or Grouping()
        self._clock = clock or (lambda: int(time.time()))
        self._tasks: dict[str, Task] = {}
        self._asked: dict[tuple[str, int], Asked] = {}
        self._committers: dict[int, Committer] = {}

    @property
    def now(self) -> int:
        """The time in whole seconds."""
        return self._clock()

    async def make(self, task: Task, by: str = "") -> bool:
        """Keep a task; False if it was there already: its id says that it is the same.

        `by` names the operator in the trail, here and below.
        """
        return await self.store.add_task(task.id, task.document, task.rounds, self._clock(), by)

    async def task(self, name: str) -> Task:
        """Return a task by its id."""
        if name not in self._tasks:
            document = await self.store.task(name) if is_digest(name) else None
            if document is None:
                raise NotFoundError(f"there is no task {name[:64]!r}.")
            self._tasks[name] = read_task(document, name)
        return self._tasks[name]

    async def stored(self, name: str, number: int) -> StoredRound:
        """Return a round as the store has it now."""
        task = await self.task(name)
        if not 1 <= number <= task.rounds:
            raise NotFoundError(f"the task {name} has no round {number}; it has {task.rounds}.")
        return (await self.store.rounds(name))[number - 1]

    async def asked(self, name: str, number: int) -> Asked:
        """Return a round that has been opened."""
        if (name, number) not in self._asked:
            found = await self.stored(name, number)
            if found.document is None:
                raise ConflictError(f"round {number} is a draft; it has no document yet.")
            task = await self.task(name)
            read = read_round(task, number, found.document, found.digests[0])
            self._asked[name, number] = Asked(task, read, found.key)
        return self._asked[name, number]

    async def open(self, name: str, number: int, by: str = "") -> StoredRound:
        """Open a round; what it learns from earlier ones is computed from their sums: they must be closed."""
        task = await self.task(name)
        found = await self.stored(name, number)
        if found.state != "draft":
            self._follows(found, "open")
            return found
        if task.course.in_order and number > 1 and (await self.stored(name, number - 1)).state == "draft":
            raise ConflictError(f"round {number - 1} is a draft; the rounds of a panel are opened in order.")
        made = await self._computed(task, number)
        cells = Tally.of(task, made).size

        def decide(before: StoredRound, _row: Whole | None) -> Step | None:
            if not self._follows(before, "open"):
                return None
            values = {"document": made.document, "digest": made.digest}
            change = Change("opened", {"round": number, "digest": made.digest}, by)
            return Step("open", change, values, cells)

        return await self.store.change(name, number, self._clock(), decide)

    async def _computed(self, task: Task, number: int) -> Round:
        earlier = []
        for before in task.learns_from(number):
            found = await self.stored(task.id, before)
            if found.state in ("draft", "open"):
                raise ConflictError(
                    f"round {number} is computed from the sums of round {before}, which is {found.state}; "
                    "close that."
                )
            earlier.append(await self.left(task, found))
        return await asyncio.to_thread(task.course.made, task.id, number, earlier)

    async def left(self, task: Task, found: StoredRound) -> Earlier:
        """Return what a closed round left; refused below the smallest crowd."""
        row = await self._row(found)
        told = (await self.asked(task.id, found.number)).tally.first(row)
        check_crowd(task, [told.sums])  # everybody will read what is learnt from them
        return Earlier(told, row_digest(row))

    async def close(self, name: str, number: int, by: str = "") -> StoredRound:
        """Close a round: nothing is counted in it any more."""

        def decide(before: StoredRound, row: Whole | None) -> Step | None:
            if not self._follows(before, "closed") or row is None:
                return None
            sums = row_digest(row)
            said = {"round": number, "sums": sums, "people": int(row[0])}
            return Step("closed", Change("closed", said, by), {"sums": sums})

        await self.task(name)
        return await self.store.change(name, number, self._clock(), decide)

    async def publish(self, name: str, number: int, by: str = "") -> StoredRound:
        """Publish the figures of a closed round; they stay as they are for ever."""
        found = await self.stored(name, number)
        if found.state != "closed":
            self._follows(found, "published")
            return found
        document = canonical(await self._figures(name, number, "best", 0.95))
        digest = digest_of(document)

        def decide(before: StoredRound, _row: Whole | None) -> Step | None:
            if not self._follows(before, "published"):
                return None
            values = {"published": document, "published_digest": digest}
            change = Change("published", {"round": number, "published": digest}, by)
            return Step("published", change, values)

        return await self.store.change(name, number, self._clock(), decide)

    @staticmethod
    def _follows(before: StoredRound, state: State) -> bool:
        try:
            return check_step(before.state, state, f"round {before.number}")
        except InputError as error:
            raise ConflictError(str(error)) from None

    async def retire(self, name: str, number: int) -> None:
        """Drop what is kept of a published round, but for what was published."""
        await self.store.retire(name, number, self._clock())

    async def retire_due(self) -> list[tuple[str, int]]:
        """Drop every round whose retention is over, and return which."""
        due = []
        for name in await self.store.tasks():
            days = (await self.task(name)).terms.retention_days
            if days is None:
                continue
            for entry in (item.data for item in await self.store.trail(name)):
                if entry["kind"] == "published" and self._clock() >= entry["time"] + days * DAY:
                    due.append((name, int(entry["round"])))
        done = [(name, number) for name, number in due if not (await self.stored(name, number)).is_retired]
        for name, number in done:
            await self.retire(name, number)
        return done

    async def tokens(self, name: str, number: int, count: int, by: str = "") -> list[str]:
        """Return new one-time tokens; only their hashes are kept."""
        check_whole("count", count, at_least=1, at_most=MOST_TOKENS)
        if not (await self.task(name)).terms.needs_token:
            raise ConflictError("the task takes reports without tokens.")
        made = [secrets.token_urlsafe(16) for _ in range(count)]
        hashes = [hash_token(token) for token in made]
        await self.store.add_tokens(name, number, hashes, self._clock(), by)
        return made

    async def upload(self, name: str, number: int, digest: str, batch: Batch) -> Sequence[Answer]:
        """Take reports that were made for the round whose document has this digest; answer each."""
        asked = await self.asked(name, number)
        if check_digest("round", digest) != asked.round.digest:
            raise ConflictError(
                f"the reports were made for a round {digest}; round {number} is {asked.round.digest}. Fetch "
                "it again."
            )
        if not len(batch):
            return []
        committer = self._committers.get(asked.key)
        if committer is None:
            committer = Committer(partial(self._accept, asked), self._grouping)
            self._committers[asked.key] = committer
        return await committer.submit(batch)

    async def _accept(self, asked: Asked, batch: Batch) -> Sequence[Answer]:
        """Store the reports of one transaction, setting apart what is none and what comes twice."""
        unpacked = asked.wire.unpack(batch.payloads)
        # Nearly always all are reports, and each has an id of its own.
        is_plain = not unpacked.refused and batch.is_distinct
        # Of those that share an id the first: dictionaries keep the later of two.
        kept = () if is_plain else reversed(unpacked.kept.tolist())
        first = {batch.names[place]: place for place in kept}
        fine = batch if is_plain else batch.taken(sorted(first.values()))

        def add_up(chosen: Sequence[int]) -> Whole:
            if len(chosen) == len(batch):
                return asked.tally.row(unpacked.reports)
            return asked.tally.row(asked.wire.unpack(fine.taken(chosen).payloads).reports)

        outcomes = await self.store.accept(asked.key, fine, asked.task.terms, add_up) if len(fine) else []
        if is_plain and outcomes.count("accepted") == len(outcomes):
            return [_ANSWERS["accepted"]] * len(outcomes)
        if is_plain:
            return [_ANSWERS[outcome] for outcome in outcomes]
        answers: dict[int, Answer] = {
            place: Answer("malformed", REFUSALS[reason]) for place, reason in unpacked.refused.items()
        }
        by_id = dict(zip(fine.names, outcomes, strict=True))
        for place, id_ in enumerate(batch.names):
            if place not in answers:
                outcome = by_id[id_]
                again = outcome == "accepted" and first[id_] != place
                answers[place] = _ANSWERS["repeated" if again else outcome]
        return [answers[place] for place in range(len(batch))]

    async def people(self, name: str, number: int) -> int:
        """Return how many reports a round has counted."""
        found = await self.stored(name, number)
        row = await self.store.sums(found.key)
        return 0 if row is None else int(row[0])

    async def sums(self, name: str, number: int) -> RecordSums:
        """Return the sums of a round."""
        asked = await self.asked(name, number)
        return asked.tally.sums(await self._row(await self.stored(name, number)))

    async def _row(self, found: StoredRound) -> Whole:
        row = await self.store.sums(found.key)
        if row is None:
            gone = (
                "its sums were dropped when its retention ended"
                if found.is_retired
                else "it was never opened"
            )
            raise NotShownError(f"round {found.number} has no sums: {gone}.")
        if found.sums is not None and row_digest(row) != found.sums:
            raise StoreError(f"the sums of round {found.number} are not those that it was closed with.")
        return row

    async def estimates(
        self, name: str, number: int, estimator: str = "best", confidence: float = 0.95
    ) -> Mapping[str, Any]:
        """Return the figures of a round as they are now, with those of the rounds that it builds on."""
        return await self._figures(name, number, estimator, confidence)

    async def _figures(self, name: str, number: int, estimator: str, confidence: float) -> Mapping[str, Any]:
        task = await self.task(name)
        await self.stored(name, number)
        parts = []
        for earlier in task.read_together(number):
            row = await self._row(await self.stored(name, earlier))
            parts.append((await self.asked(name, earlier)).tally.first(row))
        said = await asyncio.to_thread(figures, task, parts, estimator, confidence)
        return {"task": name, "round": number, **said}

    async def published(self, name: str, number: int) -> StoredRound:
        """Return a round whose figures are published."""
        found = await self.stored(name, number)
        if found.published is None:
            raise NotShownError(f"round {number} is {found.state}; its figures are not published.")
        if digest_of(found.published) != found.digests[1]:
            raise StoreError(f"what is kept of round {number} is not what was published.")
        return found

    async def trail(self, name: str) -> list[Entry]:
        """Return a task's trail after checking that it replays to the present state."""
        await self.task(name)
        entries = await self.store.trail(name)
        check_trail(entries, {item.number: item.told for item in await self.store.rounds(name)})
        return entries

    async def drain(self) -> None:
        """Wait until every upload that came is answered."""
        for committer in list(self._committers.values()):
            await committer.drain()


def hash_token(token: str) -> bytes:
    """Return what is kept of a token: its SHA-256. It is random, so nothing can be guessed from it."""
    return hashlib.sha256(token.encode()).digest()


def submission(report_id: bytes, payload: bytes, token: str | None = None) -> Submission:
    """Return a submission, or raise if its id is not 16 bytes."""
    if len(report_id) != ID_BYTES:
        raise InputError(f"a report's id has {ID_BYTES} bytes, got {len(report_id)}.")
    return Submission(report_id, payload, None if token is None else hash_token(token))
