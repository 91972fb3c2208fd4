"""A process beside the server for what takes longer, so that live answers never wait for it.

It opens the table itself, tells of its progress, and stops at the next step of whatever runs when it is told
so; where that takes too long it is ended and another one started.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Literal

from pydantic import TypeAdapter

from sidelight.foundation.errors import SidelightError
from sidelight.foundation.progress import Description, tracking
from sidelight.foundation.threads import keep_one_thread
from sidelight.studio import messages as said
from sidelight.studio.document import Document
from sidelight.studio.final import Refined, Refiner
from sidelight.studio.jobs import Found, done
from sidelight.studio.opened import Place, open_again

_ORDER: TypeAdapter[Any] = TypeAdapter(said.WorkOrder)
_NICE = 5
_BEGINS = {
    "calibrate": "looking for budgets", "remedies": "looking for remedies", "collect": "collecting reports",
    "attack": "guessing",
}  # fmt: skip
"""What work says before it can say how far it is."""
_LAST = ("done", "failed", "cancelled")
_DIED = (
    "the process that computed this was ended, perhaps for want of memory; change something, or try again."
)
_EVERY = 0.2
"""Seconds between two words about progress."""


@dataclass(frozen=True)
class Job:
    """What is to be done: the figures of a plan, or what an order says."""

    id: str
    document: str
    revision: int
    plan: str
    order: str | None = None


@dataclass(frozen=True)
class Told:
    """What a job says on its way, and at its end."""

    job: Job
    kind: Literal["progress", "refined", "found", "done", "failed", "cancelled"]
    text: str = ""
    done: int = 0
    of: int | None = None
    left: float | None = None
    refined: Refined | None = None
    found: Found | None = None


class CancelledError(Exception):
    """The job is no longer wanted."""


class Worker:
    """The server's end: hands out one job at a time, and is told what comes of it."""

    def __init__(self, place: Place, tell: Callable[[Told], None]) -> None:
        """Start the process; `tell` is called from a thread of its own."""
        self._place, self._tell = place, tell
        self._job: Job | None = None
        self._start()

    def _start(self) -> None:
        self._is_ending = False
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=serve_jobs, args=(theirs, self._place), daemon=True)
        with _uninterrupted():
            self._process.start()
        theirs.close()
        self._listener = threading.Thread(target=self._listen, args=(self._ours,), daemon=True)
        self._listener.start()

    def _listen(self, ours: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                told = ours.recv()
                if told.kind in _LAST and told.job == self._job:
                    self._job = None
                self._tell(told)
        if self._job is not None and not self._is_ending:
            self._tell(Told(self._job, "failed", _DIED))

    def do(self, job: Job) -> None:
        """Do a job instead of the one that is on the way, if there is one."""
        if not self._process.is_alive() and not self._is_ending:
            self._start()
        self._job = job
        with suppress(OSError):
            self._ours.send(job)

    def cancel(self) -> None:
        """Stop what is on the way."""
        with suppress(OSError):
            self._ours.send(None)

    def restart(self) -> None:
        """End a process that does not stop, and start another one."""
        self._end()
        self._start()

    def close(self) -> None:
        """End the process."""
        self._end()

    def _end(self) -> None:
        # The listener reads its end of the pipe and goes; closed under it, the pipe's number could become
        # that of another connection, of which it would read.
        self._is_ending = True
        self._process.kill()
        self._process.join()
        self._listener.join()
        self._ours.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let what is started here hear no Ctrl-C, not even before it can say so: the server ends it."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # its start would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve_jobs(pipe: Connection, place: Place) -> None:
    """Do jobs until the server is gone: the newest one, never two."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    with suppress(OSError, AttributeError):
        os.nice(_NICE)
    waiting: SimpleQueue[Job] = SimpleQueue()
    newest = [""]

    def listen() -> None:
        while True:
            try:
                job: Job | None = pipe.recv()
            except (EOFError, OSError):
                os._exit(0)  # nobody is left to tell, whatever is being computed
            newest[0] = "" if job is None else job.id
            if job is not None:
                waiting.put(job)

    threading.Thread(target=listen, daemon=True).start()
    keep_one_thread()  # populations are fitted beside draws, and the number of threads decides digits
    desk = Desk(place)
    while True:
        job = waiting.get()
        if job.id == newest[0]:
            desk.work(job, pipe.send, partial(_is_newest, newest, job.id))


def _is_newest(newest: list[str], job: str) -> bool:
    return newest[0] == job


class Desk:
    """Does one job after the other; the table stays open between them."""

    def __init__(self, place: Place) -> None:
        """Take where the table is; it is opened with the first job."""
        self._place = place
        self._fixes: object = None
        self._refiner: Refiner | None = None
        self._fitter = ThreadPoolExecutor(1, "population")

    def work(self, job: Job, tell: Callable[[Told], None], wanted: Callable[[], bool]) -> None:
        """Do a job and tell what comes of it; an error is told too."""
        tell = _one_at_a_time(tell)
        try:
            with tracking(_tracker(job, tell, wanted)):
                for told in self._told(job):
                    if not wanted():
                        raise CancelledError
                    tell(told)
            tell(Told(job, "done"))
        except CancelledError:
            tell(Told(job, "cancelled"))
        except SidelightError as error:
            tell(Told(job, "failed", str(error)))
        except Exception as error:  # noqa: BLE001 - the process goes on, the page says that it failed
            tell(Told(job, "failed", f"{type(error).__name__}: {error}"))

    def _told(self, job: Job) -> Iterator[Told]:
        document = Document.model_validate_json(job.document)
        refiner = self._opened(job, document)
        if job.order is None:
            for part in refiner.refined(document, job.plan):
                yield Told(job, "refined", refined=part)
            return
        order = _ORDER.validate_json(job.order)
        yield Told(job, "progress", _BEGINS[order.work])
        yield Told(job, "found", found=done(refiner.opened, document, order, job.id, job.revision))

    def _opened(self, job: Job, document: Document) -> Refiner:
        if self._refiner is None or self._fixes != document.columns:
            opened = open_again(self._place, document.columns)
            if self._refiner is not None:
                self._refiner.forget()
            self._fixes, self._refiner = document.columns, Refiner(opened, self._fitter)
            if job.order is None:
                self._refiner.prepare()
        return self._refiner


def _one_at_a_time(tell: Callable[[Told], None]) -> Callable[[Told], None]:
    """Return what lets one thread tell at a time: a pipe would mix up what several write at once."""
    lock = threading.Lock()

    def told(item: Told) -> None:
        with lock:
            tell(item)

    return told


def _tracker(job: Job, tell: Callable[[Told], None], wanted: Callable[[], bool]) -> Any:
    """Return a tracker that tells the progress of the outermost loop, and stops what is no longer wanted.

    How deep a loop is belongs to its context: threads that work at once count for themselves.
    """
    depth, said_at = ContextVar("depth", default=0), [0.0]

    def tracker(items: Iterable[Any], description: Description, total: int | None) -> Iterator[Any]:
        depth.set(depth.get() + 1)
        begun = time.monotonic()
        try:
            for count, item in enumerate(items):
                if not wanted():
                    raise CancelledError
                if depth.get() == 1 and time.monotonic() - said_at[0] > _EVERY:
                    said_at[0] = time.monotonic()
                    text = description if isinstance(description, str) else description()
                    tell(
                        Told(
                            job,
                            "progress",
                            text,
                            count,
                            total,
                            seconds_left(count, total, said_at[0] - begun),
                        )
                    )
                yield item
        finally:
            depth.set(depth.get() - 1)

    return tracker


def seconds_left(done: int, total: int | None, passed: float) -> float | None:
    """Return the seconds that the rest takes if it goes on like this; None before that can be said."""
    return None if not done or total is None else passed / done * (total - done)
