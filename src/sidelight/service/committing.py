"""Group commit: uploads that come while a transaction is under way share the next one.

A transaction costs a wait for the disk, whatever is in it. So uploads of one round are gathered, up to a
number of reports and for a moment at most, and each is answered once its transaction is over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from sidelight.service.batches import Batch
from sidelight.service.errors import BusyError

ANSWERS = ("accepted", "repeated", "malformed", "closed", "over quota", "bad token")
"""What may become of a report."""


@dataclass(frozen=True)
class Answer:
    """What became of one report: a word of `ANSWERS`, and why where it was refused."""

    status: str
    reason: str = ""


Accept = Callable[[Batch], Awaitable[Sequence[Answer]]]


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


@dataclass
class _Upload:
    batch: Batch
    answered: asyncio.Future[Sequence[Answer]]


class Committer:
    """Gathers the uploads of one round."""

    def __init__(self, accept: Accept, grouping: Grouping) -> None:
        """Take what stores the reports of a transaction."""
        self._accept, self._grouping = accept, grouping
        self._uploads: deque[_Upload] = deque()
        self._waiting = 0
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, batch: Batch) -> Sequence[Answer]:
        """Store reports and return what became of each."""
        if self._waiting + len(batch) > self._grouping.waiting:
            raise BusyError("too many reports are waiting to be stored; come back in a moment.")
        upload = _Upload(batch, asyncio.get_running_loop().create_future())
        self._uploads.append(upload)
        self._waiting += len(batch)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await upload.answered

    async def drain(self) -> None:
        """Wait until everything that came is answered."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    async def _work(self) -> None:
        while self._uploads:
            if self._grouping.seconds and self._waiting < self._grouping.most:
                await asyncio.sleep(self._grouping.seconds)
            await self._commit(self._taken())

    def _taken(self) -> list[_Upload]:
        group, size = [self._uploads.popleft()], 0
        size += len(group[0].batch)
        while self._uploads and size + len(self._uploads[0].batch) <= self._grouping.most:
            group.append(self._uploads.popleft())
            size += len(group[-1].batch)
        self._waiting -= size
        return group

    async def _commit(self, group: Sequence[_Upload]) -> None:
        """Store a group; what goes wrong is told to each of its senders, and the next group goes on."""
        try:
            answers = await self._accept(Batch.joined([upload.batch for upload in group]))
        except Exception as error:  # noqa: BLE001 - it is raised again in every sender's own call
            for upload in group:
                if not upload.answered.done():
                    upload.answered.set_exception(error)
            return
        start = 0
        for upload in group:
            stop = start + len(upload.batch)
            if not upload.answered.done():  # its sender may have hung up
                upload.answered.set_result(answers[start:stop])
            start = stop
