"""The manifest of an unfinished collection: who is in which batch, and which batches are finished.

A person whose report was written must get no second one: under other noise it would spend the budget again.
So an interrupted collection is taken up where it stopped. The manifest is written before the first batch and
removed after the last; while it is there it also says how the rows were shuffled.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.files import lock, sync_folder, write_text
from sidelight.foundation.strict import Strict, read_data, versioned
from sidelight.protocols.records import RecordReports, fingerprint

MANIFEST = ".unfinished.json"
MANIFEST_VERSION = 1
_ID_BYTES = 16
_LEFTOVER = re.compile(rf"\.(\d{{6,}}-[0-9a-f]{{12}}\.parquet|{re.escape(MANIFEST)})\.[a-z0-9_]{{8}}")
"""The names of files that we write before they are moved into place."""


class Manifest(Strict):
    """What an unfinished collection must be continued with."""

    records: str  # the digest of what the reports are made from
    protocol: str  # the fingerprint of what makes them
    people: int  # how many report
    batches: int  # how many files they are written to
    order: str  # the key of the order they are written in, as hexadecimal digits; "" for the table's own
    key: str  # what the batches' ids are derived from
    done: int = 0  # how many files are finished; they are written in order
    version: int = MANIFEST_VERSION

    @classmethod
    def start(cls, collected: RecordReports, batches: int, records: str, order: bytes | None) -> Manifest:
        """Return the manifest of a collection that begins."""
        key = secrets.token_hex(_ID_BYTES)
        made_by = fingerprint(collected.protocol)
        return cls(
            records=records, protocol=made_by, people=collected.people, batches=batches,
            order=(order or b"").hex(), key=key,
        )  # fmt: skip

    def batch(self, number: int) -> str:
        """Return a batch's id, which no other has."""
        return hashlib.blake2b(f"{self.key}/{number}".encode(), digest_size=_ID_BYTES).hexdigest()

    def path(self, folder: Path, number: int) -> Path:
        """Return where a batch is written."""
        return folder / f"{number + 1:06d}-{self.batch(number)[:12]}.parquet"

    def rows(self, number: int) -> slice:
        """Return who is in a batch, by their places in the order of writing."""
        return slice(*(self.people * edge // self.batches for edge in (number, number + 1)))

    def finish(self, folder: Path, number: int) -> Manifest:
        """Note durably that a batch is written, and return what is noted."""
        sync_folder(folder)  # the batch first: it must not be noted and lost
        return self.model_copy(update={"done": number + 1}).write(folder)

    def write(self, folder: Path) -> Manifest:
        """Write the manifest into the folder."""
        write_text(folder / MANIFEST, self.model_dump_json() + "\n", private=True)  # it can undo the order
        return self

    def resumed(self, wanted: Manifest, folder: Path) -> Manifest:
        """Return this manifest if it is of the same collection, or raise."""
        parts = (
            (self.records, wanted.records, "other records, or another seed"),
            (self.protocol, wanted.protocol, "another protocol"),
            (self.people, wanted.people, "other people"),
            (self.batches, wanted.batches, f"{self.batches} batches"),
        )
        differing = [words for begun, asked, words in parts if begun != asked]
        if bool(self.order) != bool(wanted.order):
            differing.append("rows that are" + ("" if self.order else " not") + " shuffled")
        if differing:
            raise InputError(
                f"the folder {folder} holds an unfinished collection of {' and '.join(differing)}; finish it "
                "with the command that began it, or name another folder."
            )
        return self


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of the unfinished collection in a folder; None where there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    return versioned(Manifest, read_data(path), str(path), MANIFEST_VERSION, "manifest of a collection")


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep other collections out of a folder, and clear away what a killed one left half written."""
    handle = None if sys.platform == "win32" else os.open(folder, os.O_RDONLY)  # there are no locks there
    try:
        if handle is not None:
            lock(handle)
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
        yield
    except BlockingIOError:
        raise InputError(f"another collection writes into the folder {folder}; wait for it.") from None
    finally:
        if handle is not None:
            os.close(handle)
