"""The keeper of a session's file: writes it within a second of each change, whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from sidelight.foundation.errors import SidelightError
from sidelight.foundation.files import write_text

_WAIT = 0.3
"""Seconds in which changes gather before they are written together."""


class Keeper:
    """Writes what it is handed to one file, from a thread of its own; only the newest counts."""

    def __init__(self, path: Path, told: Callable[[int, str], None]) -> None:
        """Take the file, and whom to tell: the revision that is written, and why it could not be."""
        self._path, self._told = path, told
        self._newest: tuple[int, Callable[[], str]] | None = None
        self._lock, self._changed, self._closing = threading.Lock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def keep(self, revision: int, text: Callable[[], str]) -> None:
        """Let a revision be written; its text is made when it is."""
        with self._lock:
            self._newest = revision, text
        self._changed.set()

    def close(self) -> None:
        """Write what is not written yet, and stop."""
        self._closing.set()
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._changed.wait()
            self._closing.wait(_WAIT)
            self._changed.clear()
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            newest, self._newest = self._newest, None
        if newest is None:
            return
        revision, text = newest
        try:
            write_text(self._path, text(), private=True)
        except SidelightError as error:
            self._told(revision, str(error))
        else:
            self._told(revision, "")
