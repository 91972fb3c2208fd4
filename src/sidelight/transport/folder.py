"""Following a folder: report files are taken as they appear, and the state survives a kill at any moment.

A checkpoint lags behind by a few batches. What it does not hold is still in the folder, and is taken again
after a crash: a batch is in the sums exactly if its id is in the same file, so it is never lost, never twice.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.progress import track
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports
from sidelight.transport.aggregator import Aggregator, opened
from sidelight.transport.checkpoint import (
    Seen,
    check_ending,
    locked,
    read_checkpoint,
    signature,
    write_checkpoint,
)
from sidelight.transport.manifest import MANIFEST, Manifest, holding, read_manifest
from sidelight.transport.report_files import write_reports

CHECKPOINT = "checkpoint.json"
"""The checkpoint's name in the followed folder, unless another is given."""

_TICK = 20_000_000
"""In so many nanoseconds a file may change twice, and its time but once."""
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Pace:
    """How often a checkpoint is written: after so many batches or seconds, if it does not cost too much.

    No more than the `share` of the time goes into checkpoints; they wait where they would take more.
    """

    batches: int = 256
    seconds: float = 10.0
    share: float = 0.1


@dataclass(frozen=True)
class Scan:
    """What one look at the folder found."""

    taken: tuple[str, ...]  # the files whose batches are new
    repeated: tuple[str, ...]  # those whose batches were counted already
    refused: tuple[tuple[str, str], ...]  # those that were refused, with the reason
    left: int = 0  # how many are still to be looked at

    @property
    def is_news(self) -> bool:
        """Whether anything was found."""
        return bool(self.taken or self.repeated or self.refused)


def check_inbox(folder: str | Path) -> None:
    """Raise if a folder holds report files already: whoever reports again spends the budget again."""
    target = Path(folder)
    held = sum(_is_complete(path.name) for path in target.iterdir()) if target.is_dir() else 0
    if held:
        raise InputError(
            f"the folder {folder} holds {held} report files already; people who report again count twice, "
            "and spend their budget twice. Name another folder, or, if these are other people, say `append` "
            "(--append)."
        )


def write_batches(
    collected: RecordReports,
    folder: str | Path,
    count: int,
    *,
    append: bool = False,
    records: str = "",
    order: bytes | None = None,
) -> list[Path]:
    """Write reports as so many report files, each a batch with an id of its own, into a folder.

    With `records` an interruption is made good by the same call: finished files stay as they are, and the
    people of the others get the reports at hand. Without, the folder is refused then.

    Args:
        collected: the reports, in the order of the records.
        folder: is made if need be.
        count: how many files.
        append: whether it may hold report files already, because they are other people's.
        records: the digest of what the reports were made from, as `digest_of` gives it.
        order: the key of another order to write them in.
    """
    check_whole("batches", count, at_least=1, at_most=max(collected.people, 1))
    target = Path(folder)
    wanted = Manifest.start(collected, count, records, order)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {target} cannot be made: {error.strerror}.") from None
    with holding(target):
        begun = read_manifest(target)
        if begun is None and not append:
            check_inbox(target)
        manifest = wanted if begun is None else begun.resumed(wanted, target)
        return _write_all(collected, target, manifest, is_kept=bool(records))


def _write_all(collected: RecordReports, folder: Path, manifest: Manifest, *, is_kept: bool) -> list[Path]:
    """Write the batches that are not finished, noting each where an interruption is to be made good."""
    if is_kept:
        manifest.write(folder)
    arranged = collected.shuffled(bytes.fromhex(manifest.order)) if manifest.order else collected
    for number in track(range(manifest.done, manifest.batches), "batches"):
        path = manifest.path(folder, number)
        if not path.exists():  # else it was written, and the interruption came before that was noted
            write_reports(arranged[manifest.rows(number)], path, manifest.batch(number))
        if is_kept:
            manifest = manifest.finish(folder, number)
    (folder / MANIFEST).unlink(missing_ok=True)
    return [manifest.path(folder, number) for number in range(manifest.batches)]


class Follower:
    """Takes the report files of a folder, and those that come, into an aggregator with a checkpoint.

    Use it in a `with` statement: no other process may write the same checkpoint meanwhile.

    Args:
        folder: is looked at, not what is under it. Names that start with a dot or an underscore, or do not
            end in .parquet, are of files that are still being written, or of others.
        checkpoint: a .json file, read if it exists; "checkpoint.json" in the folder by default.
        expected: the protocols whose reports are taken, see `Aggregator`.
        pace: how often the checkpoint is written.
    """

    def __init__(
        self,
        folder: str | Path,
        checkpoint: str | Path | None = None,
        *,
        expected: Sequence[Protocol] = (),
        pace: Pace | None = None,
    ) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            other = f"{folder} is a file, not a folder; follow the folder that reports come into."
            raise InputError(other if self.folder.exists() else f"there is no folder {folder}.")
        self.path = Path(checkpoint) if checkpoint is not None else self.folder / CHECKPOINT
        check_ending(self.path)
        self.pace = pace or Pace()
        self._lock = locked(self.path)
        try:
            state = read_checkpoint(self.path, expected) if self.path.exists() else (Aggregator(expected), {})
        except BaseException:
            self._lock.close()
            raise
        self.aggregator, files = state
        self._seen = {name: seen for name, seen in files.items() if not seen.refused}  # those are tried again
        self._pending, self._is_stale = 0, not self.path.exists()
        self._written, self._cost = time.monotonic(), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.write()
        finally:
            self._lock.close()

    @property
    def refused(self) -> dict[str, str]:
        """The files that are refused at present, with the reason."""
        return {name: seen.refused for name, seen in sorted(self._seen.items()) if seen.refused}

    def scan(self, seconds: float | None = None, stop: Callable[[], bool] = lambda: False) -> Scan:
        """Take what is new in the folder, in the order of names, unless asked to `stop` before a file.

        After so many seconds the rest is left for the next call.
        """
        new = self.new_names()
        started, done = time.monotonic(), 0
        taken: list[str] = []
        repeated: list[str] = []
        refused: list[tuple[str, str]] = []
        for name in track(new, "batches"):
            if stop() or (done and seconds is not None and time.monotonic() - started > seconds):
                break
            done += 1
            former, is_new = self._seen.get(name), self._look(name)
            seen = self._seen.get(name)
            if seen is None or (former is not None and seen.says_the_same(former)):
                continue
            if seen.refused:
                refused.append((name, seen.refused))
            else:
                (taken if is_new else repeated).append(name)
            self._write_at_pace()
        self._write_at_pace()
        return Scan(tuple(taken), tuple(repeated), tuple(refused), len(new) - done)

    def new_names(self) -> list[str]:
        """Return the names of complete files that are new or changed, and forget those that are gone."""
        try:
            with os.scandir(self.folder) as entries:
                found = {entry.name: _status(entry) for entry in entries if _is_complete(entry.name)}
        except OSError as error:
            raise InputError(f"the folder {self.folder} cannot be read: {error.strerror}.") from None
        here = {name: status for name, status in found.items() if status is not None}
        for name in self._seen.keys() - here.keys():
            del self._seen[name]
            self._is_stale = True
        return sorted(
            name for name, status in here.items()
            if name not in self._seen or not self._seen[name].is_still(status)
        )  # fmt: skip

    def _look(self, name: str) -> bool:
        """Take one file; return whether its batch was new."""
        path = self.folder / name
        try:
            handle = opened(path)
        except InputError as error:
            if os.path.lexists(path):  # it is tried at every look: not the file need change
                self._note(name, Seen(0, 0, 0, refused=_shortened(str(error))))
            return False
        with handle:
            size, changed, inode = signature(os.fstat(handle.fileno()))
            is_settled = abs(time.time_ns() - changed) >= _TICK  # if not, it is looked at again
            try:
                batch, is_new = self.aggregator.take_file(handle, name)
                reason = ""
            except InputError as error:
                batch, is_new, reason = "", False, _shortened(str(error))
        self._note(name, Seen(size, changed if is_settled else 0, inode, batch, reason))  # 0: never the same
        return is_new

    def _note(self, name: str, seen: Seen) -> None:
        former = self._seen.get(name)
        self._seen[name] = seen
        if former is None or not seen.says_the_same(former):
            self._pending += 1
            self._is_stale = True

    def _write_at_pace(self) -> None:
        passed = time.monotonic() - self._written
        due = self._pending >= self.pace.batches or passed >= self.pace.seconds
        if due and self._cost <= self.pace.share * (passed + self._cost):
            self.write()

    def write(self) -> None:
        """Write the checkpoint if it would say anything new."""
        if not self._is_stale:
            return
        started = time.monotonic()
        write_checkpoint(self.aggregator, self.path, self._seen)
        self._written = time.monotonic()
        self._cost = self._written - started
        self._pending, self._is_stale = 0, False


def _is_complete(name: str) -> bool:
    return not name.startswith((".", "_")) and name.lower().endswith(".parquet")


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a file, of a link that leads nowhere, or None for anything else."""
    for follows in (True, False):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=follows)
            return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None
    return None


def _shortened(reason: str) -> str:
    """Return a reason that does not fill the checkpoint, whatever a file says of itself."""
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} ..."
