"""Threads of the libraries that compute."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_RANGES = 4
"""Work is divided into so many ranges a processor: one that is held up by other processes holds up little."""


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def in_ranges(work: Callable[[int, int], object], count: int, step: int) -> None:
    """Call `work(first, last)` for ranges that make up `range(count)`, on all processors.

    For compiled loops that leave the interpreter to others. Several threads may ask at once, which the
    parallel loops of numba do not allow everywhere. All ranges but the last are multiples of `step` long.

    >>> in_ranges(print, 10, 16)
    0 10
    """
    blocks = -(-count // step)
    each = step * max(1, -(-blocks // (_RANGES * processors())))
    firsts = range(0, count, each)
    if len(firsts) <= 1 or processors() == 1:
        work(0, count)
        return
    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(lambda first: work(first, min(first + each, count)), firsts))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute every product of matrices inside by one thread.

    Ours are mostly so small that threads cost far more than they save, most of all where other processes
    keep the processors busy; and their number would decide the last digits. The limit is the process's: of
    several threads that ask at once, the last to leave lifts it.
    """
    keep_one_thread()
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.inside -= 1
            while _LIMIT.held and not _LIMIT.inside:
                _LIMIT.held.popitem()[1].restore_original_limits()


def keep_one_thread() -> None:
    """Do as `one_thread` for as long as the process lives."""
    with _LIMIT.lock:
        _LIMIT.inside += 1
        controller = _controller(len(sys.modules))
        if controller not in _LIMIT.held:
            _LIMIT.held[controller] = controller.limit(limits=1, user_api="blas")


@dataclass
class _Limit:
    """How many threads are inside `one_thread`, and what to undo by each controller once none is."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    held: dict[Any, Any] = field(default_factory=dict)


_LIMIT = _Limit()


@lru_cache(maxsize=1)
def _controller(modules: int) -> Any:  # noqa: ARG001 - what has been imported since may bring a library along
    """Return what limits the threads of all libraries that are loaded; kept, since it looks for them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
