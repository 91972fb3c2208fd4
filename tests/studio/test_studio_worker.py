"""The process beside the server: what it says about the time left, and what is said where it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import repeat
from multiprocessing import active_children
from pathlib import Path
from queue import SimpleQueue

import pytest

from conftest import AT_MOST
from sidelight.foundation.progress import track
from sidelight.studio import worker as worker_room
from sidelight.studio.final import _side_by_side
from sidelight.studio.opened import Place
from sidelight.studio.worker import CancelledError, Desk, Job, Told, Worker, seconds_left


def test_work_fails_in_words_where_its_process_dies(tmp_path: Path) -> None:
    before, told = set(active_children()), SimpleQueue[Told]()
    worker = Worker(Place(str(tmp_path / "people.csv")), told.put)
    try:
        job = Job("one", "", 0, "plan-1", "{}")
        worker.do(job)
        for child in set(active_children()) - before:
            child.kill()
        found = told.get(timeout=AT_MOST)
        assert (found.job, found.kind) == (job, "failed")
        assert "was ended" in found.text
    finally:
        worker.close()
    assert told.empty(), "whoever ends it needs no telling"


@pytest.mark.skipif(sys.platform == "win32", reason="no signal is masked there")
def test_a_process_starts_deaf_to_ctrl_c_even_where_it_is_the_first_of_all() -> None:
    script = (
        "import signal\nfrom multiprocessing import resource_tracker\n"
        "from sidelight.studio.worker import _uninterrupted\n"
        "with _uninterrupted():\n"
        "    resource_tracker.getfd()\n"  # as the start of a process does, which then has this mask
        "    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("done", "of", "left"), [(0, 10, None), (3, None, None), (2, 10, 40.0), (10, 10, 0.0)]
)
def test_the_time_left_is_that_of_the_rest(done: int, of: int | None, left: float | None) -> None:
    assert seconds_left(done, of, 10.0 if done == 2 else 5.0) == left


def test_threads_that_work_at_once_tell_one_after_the_other(monkeypatch) -> None:
    """Messages that two threads write into one pipe at once would be mixed up."""
    told, busy, clashes = list[Told](), threading.Lock(), list[Told]()

    def tell(item: Told) -> None:
        if not busy.acquire(blocking=False):
            clashes.append(item)
            return
        told.append(item)
        time.sleep(0.001)
        busy.release()

    def draw() -> None:
        for _ in track(range(20), "drawing"):
            pass

    def side_by_side(_: Desk, job: Job) -> Iterator[Told]:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(copy_context().run, draw) for _ in range(4)]:
                done.result()
        yield Told(job, "progress", "drawn")

    monkeypatch.setattr(worker_room, "_EVERY", -1.0)
    monkeypatch.setattr(Desk, "_told", side_by_side)
    Desk(Place("people.csv")).work(Job("one", "", 0, "plan-1", "{}"), tell, lambda: True)
    assert not clashes
    assert [item.kind for item in told] == ["progress"] * 81 + ["done"]


def test_figures_drawn_at_once_come_in_their_order_and_the_first_error_ends_them() -> None:
    begun: list[str] = []
    slow = threading.Event()

    def tell(who: str, _: object) -> str:
        begun.append(who)
        if who == "a":
            assert slow.wait(AT_MOST), "the second is told beside the first"
        slow.set()
        if who == "c":
            raise MemoryError("no room for c")
        return f"story of {who}"

    stories = _side_by_side(tell, [(who, None) for who in "abcdefgh"])  # type: ignore[arg-type, misc]
    assert [next(stories)[1], next(stories)[1]] == ["story of a", "story of b"]
    with pytest.raises(MemoryError, match="no room for c"):
        next(stories)


def test_figures_drawn_at_once_stop_where_nobody_wants_them_any_more() -> None:
    wanted, drawing, told = [True], threading.Barrier(3), list[Told]()
    stopped: list[str] = []

    def tell(who: str, _: object) -> None:
        if who in "ab":
            drawing.wait(AT_MOST)
        try:
            for _ in track(repeat(None), "drawing"):
                time.sleep(0.001)
        except CancelledError:
            stopped.append(who)
            raise

    def work(_: Desk, job: Job) -> Iterator[Told]:
        for _, story in _side_by_side(tell, [(who, None) for who in "abcdefgh"]):  # type: ignore[arg-type, misc]
            yield Told(job, "progress", str(story))

    def supersede() -> None:
        drawing.wait(AT_MOST)  # two are being drawn
        wanted[0] = False

    other = threading.Thread(target=supersede)
    other.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Desk, "_told", work)
        Desk(Place("people.csv")).work(Job("one", "", 0, "plan-1", "{}"), told.append, lambda: wanted[0])
    other.join()
    assert told[-1].kind == "cancelled"
    assert {"a", "b"} <= set(stopped), "and what was begun meanwhile"
