"""Where a ledger's lines are kept: durable before anything relies on them, for one process at a time.

A plain file was preferred to a database: what must hold after a crash is one line that is there or not, every
client can keep the same lines, and their digests show damage, which a database does not look for.
"""

from __future__ import annotations

import os
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
    def close(self) -> None:
        """Let others have it."""


class FileStore(Store):
    """A file that one process has at a time."""

    def __init__(self, path: str | Path) -> None:
        """Open and lock a file that is there."""
        self.label = str(path)
        self._handle = _opened(Path(path))
        try:
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
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        os.fsync(self._handle)

    def cut(self, size: int) -> None:
        """Keep the first bytes alone."""
        os.ftruncate(self._handle, size)
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file, which unlocks it."""
        os.close(self._handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        raise InputError(f"there is no ledger {path}; Ledger.create makes one.") from None
    except OSError as error:
        raise InputError(f"the ledger {path} cannot be opened: {error.strerror}.") from None
