"""Group commit: uploads that come while a transaction is under way share the next one.

A transaction costs a wait for the disk, whatever is in it. So uploads of one round are gathered, up to a
number of reports and for a moment at most, and each is answered once its transaction is over. Where a store
gains from several transactions at once, what waits is shared out among them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from sidelight.service.errors import BusyError
from sidelight.service.store import Submission

ANSWERS = ("accepted", "repeated", "malformed", "closed", "over quota", "bad token")
"""What may become of a report."""


@dataclass(frozen=True)
class Answer:
    """What became of one report: a word of `ANSWERS`, and why where it was refused."""

    status: str
    reason: str = ""


Accept = Callable[[Sequence[Submission]], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class Grouping:
    """How uploads are gathered.

    Attributes:
        most: so many reports are enough for a transaction; a larger upload is one by itself.
        seconds: so long the first upload waits for others.
        waiting: if more reports than this are waiting, senders are told to come back.
    """

    most: int = 20_000
    seconds: float = 0.002
    waiting: int = 200_000


_LEAST_SHARE = 8000
"""Fewer reports are not worth a transaction of their own while others are under way: a report costs
PostgreSQL a third less among 8,000 than among 2,000, whose ids seldom share a page of the index."""


@dataclass
class _Upload:
    submissions: Sequence[Submission]
    answered: asyncio.Future[Sequence[Answer]]


class Committer:
    """Gathers the uploads of one round."""

    def __init__(self, accept: Accept, grouping: Grouping, writers: int = 1) -> None:
        """Take what stores the reports of a transaction, and how many of them may be under way at once."""
        self._accept, self._grouping, self._writers = accept, grouping, writers
        self._uploads: deque[_Upload] = deque()
        self._waiting = 0
        self._busy = 0
        self._workers: set[asyncio.Task[None]] = set()

    async def submit(self, submissions: Sequence[Submission]) -> Sequence[Answer]:
        """Store reports and return what became of each."""
        if self._waiting + len(submissions) > self._grouping.waiting:
            raise BusyError("too many reports are waiting to be stored; come back in a moment.")
        upload = _Upload(submissions, asyncio.get_running_loop().create_future())
        self._uploads.append(upload)
        self._waiting += len(submissions)
        wanted = min(self._writers, 1 + self._waiting // _LEAST_SHARE)
        if self._busy < wanted:
            self._busy += 1
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return await upload.answered

    async def drain(self) -> None:
        """Wait until everything that came is answered."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def _work(self) -> None:
        try:
            while self._uploads:
                if self._grouping.seconds and self._waiting < self._grouping.most:
                    await asyncio.sleep(self._grouping.seconds)
                if self._uploads:  # another worker may have taken them
                    await self._commit(self._taken())
        finally:
            self._busy -= 1

    def _taken(self) -> list[_Upload]:
        share = max(_LEAST_SHARE, -(-self._waiting // self._writers))
        most = min(share, self._grouping.most)
        group, size = [self._uploads.popleft()], 0
        size += len(group[0].submissions)
        while self._uploads and size + len(self._uploads[0].submissions) <= most:
            group.append(self._uploads.popleft())
            size += len(group[-1].submissions)
        self._waiting -= size
        return group

    async def _commit(self, group: Sequence[_Upload]) -> None:
        """Store a group; what goes wrong is told to each of its senders, and the next group goes on."""
        try:
            answers = await self._accept([item for upload in group for item in upload.submissions])
        except Exception as error:  # noqa: BLE001 - it is raised again in every sender's own call
            for upload in group:
                if not upload.answered.done():
                    upload.answered.set_exception(error)
            return
        start = 0
        for upload in group:
            stop = start + len(upload.submissions)
            if not upload.answered.done():  # its sender may have hung up
                upload.answered.set_result(answers[start:stop])
            start = stop
