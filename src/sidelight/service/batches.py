"""Reports on their way to a store, as columns: ids in one block, wire forms in one array, tokens.

A Python object for each report would cost a server more than everything else that it does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from sidelight.transport.wire import Payloads

ID_BYTES = 16


class Submission(NamedTuple):
    """One report: its random id of 16 bytes, its wire form, and the hash of its token if it has one."""

    id: bytes
    payload: bytes
    token: bytes | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """The reports of an upload, or of a transaction.

    Attributes:
        ids: 16 bytes each, one after the other.
        payloads: their wire forms, as rows of bytes where all have one length.
        tokens: the hash of each one's token; empty where none has one.
    """

    ids: bytes
    payloads: Payloads
    tokens: Sequence[bytes | None] = ()

    @classmethod
    def of(cls, submissions: Sequence[Submission]) -> Batch:
        """Return reports that were given one by one."""
        ids = b"".join([item.id for item in submissions])
        tokens = [item.token for item in submissions]
        return cls(ids, [item.payload for item in submissions], tokens if any(tokens) else ())

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Return the reports of several batches as one."""
        if len(batches) == 1:
            return batches[0]
        rows = [each.payloads for each in batches if isinstance(each.payloads, np.ndarray)]
        is_even = len(rows) == len(batches) and len({each.shape[1] for each in rows}) == 1
        payloads = np.concatenate(rows) if is_even else list(chain(*(each.listed for each in batches)))
        has_tokens = any(each.tokens for each in batches)
        tokens = chain(*(each.tokens or [None] * len(each) for each in batches)) if has_tokens else ()
        return cls(b"".join([each.ids for each in batches]), payloads, tuple(tokens))

    def __len__(self) -> int:
        """Return how many reports there are."""
        return len(self.ids) // ID_BYTES

    @cached_property
    def names(self) -> list[bytes]:
        """The id of each report."""
        return split(self.ids)

    @property
    def listed(self) -> Sequence[bytes]:
        """The wire form of each report."""
        if isinstance(self.payloads, np.ndarray):
            return split(self.payloads.tobytes(), self.payloads.shape[1])
        return self.payloads

    @cached_property
    def block(self) -> bytes:
        """The ids in their own order, so that none tells that it came before another."""
        return ordered(self.ids)

    @cached_property
    def is_distinct(self) -> bool:
        """Whether no two reports share an id."""
        words = np.frombuffer(self.block, dtype=np.uint64).reshape(-1, 2)
        return not (words[1:] == words[:-1]).all(axis=1).any()

    def taken(self, places: Sequence[int]) -> Batch:
        """Return some of the reports, by their places."""
        own = self.payloads
        payloads = own[places] if isinstance(own, np.ndarray) else [own[place] for place in places]
        tokens = [self.tokens[place] for place in places] if self.tokens else ()
        return Batch(b"".join([self.names[place] for place in places]), payloads, tokens)


def split(content: bytes, size: int = ID_BYTES) -> list[bytes]:
    """Return the ids, or other pieces of one size, that stand one after the other in some bytes.

    >>> split(b"a" * 16 + b"b" * 16)[1]
    b'bbbbbbbbbbbbbbbb'
    """
    parts: list[bytes] = np.frombuffer(content, dtype=f"V{size}").tolist()
    return parts


def ordered(content: bytes) -> bytes:
    """Return ids in the order of their bytes, which is not that in which they came.

    >>> ordered(b"b" * 16 + b"a" * 16) == b"a" * 16 + b"b" * 16
    True
    """
    words = np.frombuffer(content, dtype=">u8").reshape(-1, 2)
    heads = words[:, 0].astype(np.uint64)
    order = np.argsort(heads)
    if np.any(np.diff(heads[order]) == 0):  # as in one of two billion runs of random ids
        order = np.lexsort((words[:, 1].astype(np.uint64), heads))
    return np.frombuffer(content, dtype=f"V{ID_BYTES}")[order].tobytes()
