"""The office: one session, the workers beside it, its file, and the pages that listen.

Everything that touches the session runs in one thread, in the order in which it came, so that the session
needs no locks; pages are told over queues of their own.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sidelight.foundation.errors import InputError
from sidelight.studio import messages as said
from sidelight.studio.history import read_state, state_text
from sidelight.studio.keeper import Keeper
from sidelight.studio.session import Session
from sidelight.studio.worker import Job, Told, Worker

T = TypeVar("T")

_PATIENCE = 2.0
"""Seconds in which cancelled work may stop by itself."""
_QUEUED = 1_000
"""A page that does not read so many events has gone."""


class Office:
    """Does what pages ask for."""

    def __init__(self, session: Session, path: Path, key: str) -> None:
        """Take a session, its file, and the key of its pages."""
        self.session, self._key = session, key
        self._thread = ThreadPoolExecutor(1, "session")
        self._pages: dict[asyncio.Queue[said.StudioEvent | None], asyncio.AbstractEventLoop] = {}
        self._keeper = Keeper(path, self._saved)
        self._refiner = Worker(session.place, self._told)
        self._worker: Worker | None = None
        self._refining: list[str] = []
        self._working = ""
        self._job: Job | None = None
        self._stopped: set[str] = set()
        self._thread.submit(self._begin)

    def _begin(self) -> None:
        """Ask for the final figures of the first revision, and prepare totals beside the questions."""
        self._prepare()
        self._refine([draft.id for draft in self.session.document.plans])
        self._keep()

    def _prepare(self) -> None:
        threading.Thread(target=self.session.live.prepare, daemon=True).start()

    # What pages ask for; each is called from the event loop

    async def asked(self, question: Callable[[Session], T]) -> T:
        """Ask the session something, in its thread."""
        return await asyncio.wrap_future(self._thread.submit(question, self.session))

    async def change(self, changes: said.Changes) -> said.Update:
        """Make changes."""
        return await self._changing(lambda session: session.change(changes), changes.window)

    async def import_state(self, text: str) -> said.Update:
        """Take a state that somebody shared."""
        history, _ = read_state(text, "the file")
        return await self._changing(lambda session: session.import_history(history), "")

    async def _changing(self, change: Callable[[Session], said.Update], window: str) -> said.Update:
        def work(session: Session) -> said.Update:
            live = session.live
            update = change(session)
            if session.live is not live:
                self._prepare()
            self._keep()
            self._refine([item.plan for item in update.figures])
            return update

        update = await self.asked(work)
        self._publish(said.ChangedEvent(revision=update.revision, window=window))
        return update

    async def order(self, order: said.WorkOrder) -> said.WorkState:
        """Begin work; what is on the way is stopped, since nobody waits for it any more."""
        return await self.asked(lambda _: self._order(order))

    async def cancel(self, work: str) -> None:
        """Stop work."""
        await self.asked(lambda _: self._cancel(work))

    def listen(self) -> asyncio.Queue[said.StudioEvent | None]:
        """Return a queue that gets every event from now on; None means that there are no more."""
        queue: asyncio.Queue[said.StudioEvent | None] = asyncio.Queue(_QUEUED)
        queue.put_nowait(said.HelloEvent(revision=self.session.revision))
        self._pages[queue] = asyncio.get_running_loop()
        return queue

    def leave(self, queue: asyncio.Queue[said.StudioEvent | None]) -> None:
        """Send no more events to a queue."""
        self._pages.pop(queue, None)

    def hush(self) -> None:
        """End all streams: the server stops."""
        for queue in list(self._pages):
            self._put(queue, None)

    def close(self) -> None:
        """Write the file, and end the workers."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._keeper.close()
        self._refiner.close()
        if self._worker is not None:
            self._worker.close()

    # In the session's thread

    def _keep(self) -> None:
        history, revision = self.session.history, self.session.revision
        name, key = self.session.place.name, self._key
        self._keeper.keep(revision, lambda: state_text(history, name, revision, key))

    def _refine(self, plans: list[str]) -> None:
        """Let the final figures of plans be made, those of the active plan first."""
        session = self.session
        there = [draft.id for draft in session.document.plans]
        waiting = [plan for plan in there if plan in plans or plan in self._refining]
        self._refining = sorted(waiting, key=lambda plan: plan != session.document.active)
        self._next()

    def _next(self) -> None:
        if self._refining:
            document, plan = self.session.document, self._refining[0]
            job = Job(secrets.token_hex(8), document.model_dump_json(), self.session.revision, plan)
            self._refiner.do(job)

    def _order(self, order: said.WorkOrder) -> said.WorkState:
        session = self.session
        session.document.plan(order.plan)
        if self._working:
            self._cancel(self._working)
        if self._worker is None:
            self._worker = Worker(session.place, self._told)
        work = secrets.token_hex(8)
        state = said.WorkState(
            id=work, kind=order.work, plan=order.plan, status="running", text="", done=0, of=None,
            revision=session.revision,
        )  # fmt: skip
        session.work[work], self._working = state, work
        document = session.document.model_dump_json()
        self._job = Job(work, document, session.revision, order.plan, order.model_dump_json())
        self._worker.do(self._job)
        self._publish(said.WorkEvent(work=state))
        return state

    def _cancel(self, work: str) -> None:
        if work not in self.session.work:
            raise InputError("there is no such work.")
        if work == self._working and self._worker is not None:
            self._worker.cancel()
            threading.Timer(_PATIENCE, self._submit, (self._end, work)).start()
            self._finish(work, "cancelled", "")

    def _end(self, work: str) -> None:
        """End a worker that has not stopped in time; what was ordered since is begun anew."""
        if self._worker is not None and work not in self._stopped:
            self._stopped.add(work)
            self._worker.restart()
            if self._job is not None and self._job.id == self._working:
                self._worker.do(self._job)

    def _finish(self, work: str, status: said.Status, text: str) -> None:
        update = {"status": status, "text": text}
        state = self.session.work[work] = self.session.work[work].model_copy(update=update)
        if work == self._working:
            self._working = ""
        self._publish(said.WorkEvent(work=state))

    def _heard(self, told: Told) -> None:
        """Take what a worker tells."""
        if told.job.order is None:
            self._heard_figures(told)
        else:
            self._heard_work(told)

    def _heard_figures(self, told: Told) -> None:
        job = told.job
        if job.revision != self.session.revision or job.plan not in self._refining:
            return
        if told.refined is not None:
            shown = self.session.refine(job.plan, told.refined)
            if shown is not None:
                self._publish(said.FiguresEvent(figures=shown))
        if told.kind == "failed":
            shown = self.session.figures[job.plan].model_copy(update={"problem": told.text, "pending": []})
            self.session.figures[job.plan] = shown
            self._publish(said.FiguresEvent(figures=shown))
        if told.kind in ("done", "failed"):
            self._refining.remove(job.plan)
            self._next()

    def _heard_work(self, told: Told) -> None:
        work = told.job.id
        if told.kind in ("done", "failed", "cancelled"):
            self._stopped.add(work)
        if work != self._working:
            return
        if told.kind == "progress":
            update = {"text": told.text, "done": told.done, "of": told.of, "left": told.left}
            state = self.session.work[work] = self.session.work[work].model_copy(update=update)
            self._publish(said.WorkEvent(work=state))
        elif told.found is not None:
            self.session.keep(work, told.found)
            self._publish(said.ResultEvent(result=told.found.result))
        elif told.kind in ("done", "failed"):
            self._finish(work, told.kind, told.text)

    # From other threads

    def _told(self, told: Told) -> None:
        self._submit(self._heard, told)

    def _saved(self, revision: int, problem: str) -> None:
        if not problem:
            self.session.saved = revision
        self._publish(said.SavedEvent(revision=revision, problem=problem))

    def _submit(self, work: Callable[..., None], *given: object) -> Future[None] | None:
        try:
            return self._thread.submit(work, *given)
        except RuntimeError:  # the office is closed
            return None

    def _publish(self, event: said.StudioEvent) -> None:
        for queue in list(self._pages):
            self._put(queue, event)

    def _put(self, queue: asyncio.Queue[said.StudioEvent | None], event: said.StudioEvent | None) -> None:
        loop = self._pages.get(queue)
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._hand, queue, event)

    def _hand(self, queue: asyncio.Queue[said.StudioEvent | None], event: said.StudioEvent | None) -> None:
        if queue.full():
            self.leave(queue)
        else:
            queue.put_nowait(event)
