"""Checkpoints: an aggregator's state, and the files it has looked at, in one file that is whole or absent.

The ids of the batches and their sums are in the same file, so no crash can part them. A checkpoint is data,
never code: strict JSON with a checksum, and every number is checked against the protocol it is of.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
from pydantic import Field

from sidelight.foundation import files
from sidelight.foundation.errors import InputError
from sidelight.foundation.files import read_text, strict_json, sync_folder, write_text
from sidelight.foundation.strict import Strict, parsed_table, validated, versioned
from sidelight.mechanisms import Aggregate
from sidelight.protocols.files import protocol_data, protocol_from
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordSums, fingerprint
from sidelight.transport.aggregator import Aggregator, Batch
from sidelight.transport.report_files import check_batch_id

CHECKPOINT_VERSION = 1
_CHECKSUM_BYTES = 16
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


@dataclass(frozen=True)
class Seen:
    """A file of a followed folder that was looked at."""

    size: int  # in bytes
    changed: int  # when, in nanoseconds
    inode: int  # its number in the file system
    batch: str = ""  # the id of the batch in it; empty if it was refused
    refused: str = ""  # why; empty if it was not

    def is_still(self, status: os.stat_result) -> bool:
        """Whether a file is as it was when it was looked at."""
        return (self.size, self.changed, self.inode) == signature(status)

    def says_the_same(self, other: Seen) -> bool:
        """Whether looking at a file gave the same as another look."""
        return (self.batch, self.refused) == (other.batch, other.refused)


def signature(status: os.stat_result) -> tuple[int, int, int]:
    """Return what changes when a file does: its size, its time and its inode.

    A sender may set the time of the last writing, also into the future, but not that of the last change.
    """
    changed = status.st_mtime_ns if sys.platform == "win32" else status.st_ctime_ns  # there: of its making
    return status.st_size, changed, status.st_ino


class _PartFile(Strict):
    reports: _Count
    sums: list[int]


class SumsFile(Strict):
    """The sums of one protocol, as a checkpoint holds them."""

    protocol: dict[str, Any]
    people: _Count
    parts: list[_PartFile]


class _BatchFile(Strict):
    seal: str
    people: _Count
    protocol: str


class _SeenFile(Strict):
    size: _Count
    changed: _Count
    inode: Annotated[int, Field(ge=0)]
    batch: str
    refused: str


class _StateFile(Strict):
    is_simulation: bool
    sums: dict[str, SumsFile]
    batches: dict[str, _BatchFile]
    files: dict[str, _SeenFile]


class _CheckpointFile(Strict):
    version: int
    checksum: str
    state: dict[str, Any]


def write_checkpoint(
    aggregator: Aggregator, path: str | Path, files: Mapping[str, Seen] | None = None
) -> Path:
    """Write an aggregator's state to a .json file, whole or not at all, and durably.

    Hold `locked` meanwhile where another process may write it too. The files are those of a followed folder
    that were looked at, by name.
    """
    check_ending(path)
    aggregator.check()  # sums and ids that disagree must not replace a checkpoint that is whole
    state = {
        "is_simulation": aggregator.is_simulation,
        "sums": {fingerprint(part.protocol): sums_to_data(part) for part in aggregator.sums},
        "batches": {name: vars(batch) for name, batch in aggregator.batches.items()},
        "files": {name: vars(seen) for name, seen in (files or {}).items()},
    }
    text = state_text(state)
    head = f'"version": {CHECKPOINT_VERSION}, "checksum": "{checksum_of(text)}"'
    try:
        sync_folder(write_text(_real(path), f'{{{head}, "state": {text}}}\n').parent)
    except OSError as error:
        raise InputError(
            f"the checkpoint {path} cannot be written: {error.strerror}; mend that, and start again from the "
            "last one, which is whole."
        ) from None
    return Path(path)


def read_checkpoint(
    path: str | Path, expected: Sequence[Protocol] = ()
) -> tuple[Aggregator, dict[str, Seen]]:
    """Read an aggregator's state, and what was looked at in a followed folder; nothing is repaired.

    It may hold reports of the expected protocols, by default of any.
    """
    check_ending(path)
    label = str(path)
    text = read_text(path, f"{label} is no checkpoint: it is not UTF-8 text.")
    try:
        data = parsed_table(text, label, partial(strict_json, halves=True))
    except InputError as error:
        raise InputError(f"{error} The checkpoint is damaged; take an older one, or start anew.") from None
    whole = versioned(_CheckpointFile, data, label, CHECKPOINT_VERSION, "checkpoint")
    if not _is_sealed(whole):
        wrong = "was damaged or changed: its checksum is wrong"
        raise InputError(f"{label} {wrong}; take an older one, or start anew.")
    state = validated(_StateFile, whole.state, label)
    try:
        files = {name: Seen(**dict(seen)) for name, seen in state.files.items()}
        return _aggregator(state, label, expected), files
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(label) else f"{label}: {message}") from None


def _aggregator(state: _StateFile, label: str, expected: Sequence[Protocol]) -> Aggregator:
    batches = {check_batch_id(name): Batch(**dict(batch)) for name, batch in state.batches.items()}
    sums = [sums_from_data(key, item, label) for key, item in state.sums.items()]
    made = Aggregator.from_parts(sums, batches, is_simulation=state.is_simulation, expected=expected)
    for name, seen in state.files.items():
        if not seen.refused and seen.batch not in batches:
            raise InputError(f"the file {name!r} holds the batch {seen.batch!r}, which is not in the sums.")
    return made


def sums_to_data(part: RecordSums) -> dict[str, Any]:
    """Return the sums of one protocol as plain data."""
    parts = [{"reports": item.reports, "sums": item.sums.reshape(-1).tolist()} for item in part.parts]
    return {"protocol": protocol_data(part.protocol), "people": part.people, "parts": parts}


def sums_from_data(key: str, item: SumsFile, label: str) -> RecordSums:
    """Return the sums of one protocol, which must have the shapes that it gives them."""
    protocol = protocol_from(item.protocol, label)
    if fingerprint(protocol) != key:
        raise InputError(f"the protocol {key} was changed after its reports were taken.")
    shapes = protocol.nobody().aggregate().parts
    if [len(part.sums) for part in item.parts] != [part.sums.size for part in shapes]:
        raise InputError(f"the sums of {protocol.name!r} ({key}) do not have the protocol's shape.")
    counts = [part.reports for part in item.parts]
    together = sum(counts) == item.people if protocol.sends_one_part else set(counts) == {item.people}
    if not together:
        raise InputError(f"the reports of {protocol.name!r} ({key}) are not those of {item.people} people.")
    try:
        values = [np.array(part.sums, dtype=np.int64) for part in item.parts]
    except OverflowError:
        raise InputError(f"the sums of {protocol.name!r} ({key}) do not fit into 64 bits.") from None
    sums = tuple(
        Aggregate(reports, value.reshape(shape.sums.shape), shape.mechanism)
        for reports, value, shape in zip(counts, values, shapes, strict=True)
    )
    counted = [group.randomiser.counted for group in protocol.groups] or [slice(None)] * len(sums)
    for part, places in zip(sums, counted, strict=True):
        counts_of = part.sums[places]
        if np.any((counts_of < 0) | (counts_of > part.reports)):
            raise InputError(
                f"the sums of {protocol.name!r} ({key}) are not counts of {part.reports} reports: they go "
                f"from {counts_of.min()} to {counts_of.max()}."
            )
    return RecordSums(protocol, item.people, sums)


def _is_sealed(whole: _CheckpointFile) -> bool:
    try:
        return checksum_of(state_text(whole.state)) == whole.checksum
    except (ValueError, RecursionError):  # a number beyond all doubles, which no checkpoint holds
        return False


def state_text(state: Mapping[str, Any]) -> str:
    """Return a state as the text that is written and that its checksum is of."""
    return json.dumps(state, allow_nan=False)


def checksum_of(text: str) -> str:
    """Return the digest that tells a torn state from a whole one."""
    return hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_BYTES).hexdigest()


def check_ending(path: str | Path) -> None:
    """Raise unless a checkpoint's name says what it is."""
    if Path(path).suffix.lower() != ".json":
        raise InputError(f"the checkpoint {path} must end in .json.")


def locked(checkpoint: str | Path) -> IO[bytes]:
    """Return an open file whose lock keeps other processes off a checkpoint; see `files.locked`."""
    return files.locked(_real(checkpoint), "checkpoint", "stop it, or name another checkpoint")


def _real(checkpoint: str | Path) -> Path:
    """Return where a checkpoint is, so that one behind a link is locked and written, not the link."""
    return Path(os.path.realpath(checkpoint))
