"""Batches: reports that travel together under an id, sealed so that damage and mix-ups are seen.

The seal is a digest of the id and of every report. It is no signature: it tells a damaged file from a whole
one, not a friend from a forger.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.files import strict_json
from sidelight.foundation.strict import Strict, validated
from sidelight.protocols.files import parsed_text
from sidelight.protocols.records import RecordReports, fingerprint

BATCH_KEY = b"sidelight.batch"
"""Where a report file's metadata hold the stamp."""

_SEAL_BYTES = 16
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Stamp(Strict):
    """What a batch says about itself: an id, under which it counts once, and a digest of id and reports."""

    id: str
    seal: str


class Sealer:
    """Digests reports as they come; how they are cut into pieces does not matter."""

    def __init__(self) -> None:
        self._digests: dict[tuple[int, str], Any] = {}
        self._people = 0

    def add(self, collected: RecordReports) -> None:
        """Digest the next piece."""
        for number, (part, senders) in enumerate(zip(collected.parts, collected.senders, strict=True)):
            self._update(number, "values", part.values)
            if part.seeds is not None:
                self._update(number, "seeds", part.seeds)
            if senders is not None:
                self._update(number, "senders", senders.astype(np.int64) + self._people)
        self._people += collected.people

    def _update(self, number: int, what: str, values: NDArray[Any]) -> None:
        digest = self._digests.setdefault((number, what), hashlib.blake2b(digest_size=_SEAL_BYTES))
        plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        digest.update(plain.reshape(-1).view(np.uint8))

    def seal(self, batch: str, made_by: str, *, is_simulation: bool) -> str:
        """Return the seal of all pieces under an id, made by the protocol of that fingerprint."""
        parts = [[*key, digest.hexdigest()] for key, digest in sorted(self._digests.items())]
        text = json.dumps([batch, made_by, is_simulation, self._people, parts])
        return hashlib.blake2b(text.encode(), digest_size=_SEAL_BYTES).hexdigest()


def check_batch_id(batch: object) -> str:
    """Return an id that may name a batch, or raise."""
    if not isinstance(batch, str) or not _ID.fullmatch(batch):
        raise invalid("batch", "up to 64 letters, digits, dots, dashes or underscores", batch)
    return batch


def stamp(collected: RecordReports, batch: str | None = None) -> Stamp:
    """Return the stamp of reports, under the id given, the one they were read with, or a new one."""
    given = collected.batch if batch is None else batch
    name = secrets.token_hex(16) if given is None else check_batch_id(given)
    sealer = Sealer()
    sealer.add(collected)
    made_by = fingerprint(collected.protocol)
    return Stamp(id=name, seal=sealer.seal(name, made_by, is_simulation=collected.is_simulation))


def check_seal(seal: str, stamp: Stamp, label: str) -> None:
    """Raise unless the seal of the reports that were read is the one that the stamp holds."""
    if seal != stamp.seal:
        raise InputError(f"{label}: the reports are not those that were sealed; the file is damaged.")


def stamp_of(metadata: Mapping[bytes, bytes] | None, label: str) -> Stamp:
    """Return the stamp that a report file's metadata hold."""
    stored = (metadata or {}).get(BATCH_KEY)
    if stored is None:
        raise InputError(
            f"{label} carries no batch id, so it could be counted twice; write it with `write_reports`."
        )
    data = parsed_text(stored.decode("utf-8", "replace"), f"{label}: the batch id", strict_json)
    stated = validated(Stamp, data, f"{label}: the batch id")
    try:
        check_batch_id(stated.id)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    return stated
