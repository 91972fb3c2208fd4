"""The process beside the server: what it says about the time left, and what is said where it dies."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path
from queue import SimpleQueue

import pytest

from conftest import AT_MOST
from sidelight.studio.opened import Place
from sidelight.studio.worker import Job, Told, Worker, seconds_left


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
