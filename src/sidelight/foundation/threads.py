"""Threads of the libraries that compute."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which every product of matrices is computed by one thread.

    Ours are mostly so small that threads cost far more than they save, most of all where other processes
    keep the processors busy; and their number would decide the last digits.
    """
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _controller() -> Any:
    """Return what limits threads; made once, since it looks through all libraries that are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
