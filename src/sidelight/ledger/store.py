"""Where a ledger's lines are kept: durable before anything relies on them, for one process at a time.

A plain file was preferred to a database: what must hold after a crash is one line that is there or not, every
client can keep the same lines, and their digests show damage, which a database does not look for.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import lock, sync_folder, write_atomically


@dataclass(frozen=True)
class Head:
    """How far a ledger had come: so many lines, the last of which has this digest, in hexadecimal.

    Kept elsewhere, it shows a ledger that was set back to an older copy, which its own file cannot show.
    """

    lines: int
    digest: str


class Store(ABC):
    """What a ledger needs of a place to keep its lines."""

    label: str
    """What messages call it."""

    @abstractmethod
    def read(self) -> bytes:
        """Return all that is kept, made durable first: a killed process may have left it in a cache."""

    @abstractmethod
    def append(self, line: bytes) -> None:
        """Add bytes at the end; they are durable when this returns. OSError if that may not be so."""

    @abstractmethod
    def cut(self, size: int) -> None:
        """Keep the first bytes alone, durably."""

    @abstractmethod
    def replace(self, content: bytes) -> None:
        """Keep other bytes instead, durably: a crash leaves all of the old ones or all of the new ones."""

    @abstractmethod
    def close(self) -> None:
        """Let others have it."""


class FileStore(Store):
    """A file that one process has at a time."""

    def __init__(self, path: str | Path) -> None:
        """Open and lock a file that is there."""
        self.label = str(path)
        self._path = Path(path).resolve()  # of a link, what it leads to: that is the file to replace
        self._handle = _opened(Path(path))
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise InputError(f"{path} is no ledger: it is a device or a pipe, not a file.")
            lock(self._handle)
            if not os.path.samestat(os.fstat(self._handle), os.stat(path)):  # noqa: PTH116 - beside fstat
                raise InputError(f"{path} was replaced just now; open it again.")
        except OSError as error:
            os.close(self._handle)
            in_use = isinstance(error, BlockingIOError)
            reason = "is in use by another process; wait for it" if in_use else f"cannot be locked: {error}"
            raise InputError(f"the ledger {path} {reason}.") from None
        except InputError:
            os.close(self._handle)
            raise

    @staticmethod
    def create(path: str | Path, line: bytes) -> None:
        """Write a new file with its first line, for its owner alone to read; one that is there stays."""
        target = write_atomically(path, lambda place: place.write_bytes(line), replace=False, private=True)
        sync_folder(target.parent)

    def read(self) -> bytes:
        """Return all that is kept, see `Store.read`."""
        os.fsync(self._handle)
        os.lseek(self._handle, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._handle, 1 << 20):
            parts.append(part)
        return b"".join(parts)

    def append(self, line: bytes) -> None:
        """Add bytes at the end, see `Store.append`."""
        _write(self._handle, line)

    def cut(self, size: int) -> None:
        """Keep the first bytes alone."""
        os.ftruncate(self._handle, size)
        os.fsync(self._handle)

    def replace(self, content: bytes) -> None:
        """Write a file beside it, locked before it gets the name, see `Store.replace`."""
        own = os.fstat(self._handle)
        if not (self._path.exists() and os.path.samestat(own, self._path.stat())):
            raise InputError(f"{self.label} was moved while it was open; close it, and open it where it is.")
        if own.st_nlink > 1:
            raise InputError(
                f"{self.label} has a second name, under which the old file would stay; remove it."
            )
        # Only who has the ledger writes here, so that what a crash left of it is written over.
        beside = self._path.with_name(f".{self._path.name}.compact")
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock(handle)
            _write(handle, content)
            beside.replace(self._path)
            sync_folder(self._path.parent)
        except BaseException:
            os.close(handle)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._handle)
        self._handle = handle

    def close(self) -> None:
        """Close the file, which unlocks it."""
        os.close(self._handle)


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        raise InputError(f"there is no ledger {path}; Ledger.create makes one.") from None
    except OSError as error:
        raise InputError(f"the ledger {path} cannot be opened: {error.strerror}.") from None
