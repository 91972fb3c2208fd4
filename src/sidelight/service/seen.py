"""What a process remembers of the ids that a round has counted, so that it need not look each of them up.

The truth is in the store. A memory is never ahead of it: own ids are added once their commit is known to have
succeeded, those of others once they were read. To be behind does no harm, since a transaction reads what is
new before it decides. All ids are in Bloom filters (Bloom 1970, blocked as by Putze, Sanders and Singler
2007), which say "certainly new", or "perhaps known", and then it is looked up: recent ones here, where they
are kept as they came, the rest in the store. So a filter saves work, and never decides.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sidelight.foundation.arrays import Whole
from sidelight.service.batches import ID_BYTES

Words = npt.NDArray[np.uint64]
_WORD = 64
_PROBES = 2
"""Words of a filter that an id has bits in."""
_BITS = 4
"""Bits of an id in each of them."""
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio (Knuth 1973, section 6.4)


@dataclass(frozen=True)
class Keeping:
    """How the ids of a round are kept.

    Attributes:
        recent: so many of them may be in blocks, as they came; then they are settled.
        page: so many settled ids are one row. Four rows of 120 fill a page of PostgreSQL, two one of SQLite.
        filter_words: of the first filter, a power of two; each further one has twice as many.
        load: ids of a filter for each of its words of 64 bits; at 2 it is wrong about once in 40,000.
    """

    recent: int = 1 << 17
    page: int = 120
    filter_words: int = 1 << 19
    load: int = 2


class Seen:
    """The ids of one round that a process knows to be in the store.

    Attributes:
        last: the place of the last block that it knows.
        run: the place of the last run that it knows; no block before it is left.
        recent: how many ids it knows from blocks.
        settled: how many it knows from runs.
    """

    def __init__(self, keeping: Keeping) -> None:
        """Start with nothing known."""
        self._keeping = keeping
        self.forget()

    def forget(self) -> None:
        """Know nothing any more."""
        self.run, self.settled = 0, 0
        self._filters: list[_Filter] = []
        self.forget_recent()

    def forget_recent(self) -> None:
        """Know nothing any more but what is settled."""
        self._blocks: list[bytes] = []
        self.recent, self.last = 0, self.run

    def __len__(self) -> int:
        """Return how many ids are known."""
        return self.settled + self.recent

    @property
    def size(self) -> int:
        """How many bytes this takes, about."""
        return ID_BYTES * self.recent + sum(each.words.nbytes for each in self._filters)

    def add(self, block: bytes, place: int) -> None:
        """Take note of a block."""
        self._filter(block)
        self._blocks.append(block)
        self.recent += len(block) // ID_BYTES
        self.last = place

    def settle(self) -> None:
        """Take note that all blocks became a run."""
        self.settled += self.recent
        self.run = self.last
        self.forget_recent()

    def add_run(self, content: bytes, place: int) -> None:
        """Take note of another's run: all ids up to a place that no run has yet, our recent among them."""
        self._filter(content)
        self.settled += len(content) // ID_BYTES
        self.run = place
        self.forget_recent()

    def _filter(self, content: bytes) -> None:
        count = len(content) // ID_BYTES
        if not self._filters or self._filters[-1].count + count > self._filters[-1].most:
            words = self._keeping.filter_words << len(self._filters)
            self._filters.append(_Filter(words, self._keeping.load))
        self._filters[-1].add(_pairs(content))

    def perhaps(self, content: bytes) -> list[bytes]:
        """Return which of some ids may be known; all that are known are among them."""
        if not self._filters:
            return []
        pairs = _pairs(content)
        found: set[int] = set()
        for each in self._filters:
            found.update(each.perhaps(pairs).tolist())
        return [content[ID_BYTES * place : ID_BYTES * (place + 1)] for place in sorted(found)]

    def recent_among(self, names: Sequence[bytes]) -> set[bytes]:
        """Return which of some ids are recent."""
        content = b"".join(self._blocks)
        self._blocks = [content]  # many small blocks are joined once
        heads, asked = (_pairs(each)[:, 0] for each in (content, b"".join(names)))
        alike = ID_BYTES * np.flatnonzero(np.isin(heads, asked))
        return set(names).intersection(content[at : at + ID_BYTES] for at in alike.tolist())


class _Filter:
    """A Bloom filter of words of 64 bits: each id has a few bits in two of them.

    Which bits is kept secret, by factors that each filter draws for itself: nobody can make up ids that it
    takes for known ones, and so let the store be asked in vain.
    """

    def __init__(self, words: int, load: int) -> None:
        self.words: Words = np.zeros(words, dtype=np.uint64)
        self.count, self.most = 0, load * words
        self._shift = np.uint64(_WORD - words.bit_length() + 1)
        factors = [secrets.randbits(_WORD) | 1 for _ in range(2 * _PROBES)]
        self._factors: Words = np.array(factors, dtype=np.uint64).reshape(_PROBES, 2)

    def add(self, pairs: Words) -> None:
        for probe in range(_PROBES):
            at, mask = self._hashed(pairs, probe)
            while at.size:  # of several ids that share a word one gets its bits in; the rest try again
                self.words[at] |= mask
                left = np.flatnonzero(self.words[at] & mask != mask)
                at, mask = at[left], mask[left]
        self.count += len(pairs)

    def perhaps(self, pairs: Words) -> Whole:
        """Return the places of those that may be in it."""
        places: Whole = np.arange(len(pairs))
        for probe in range(_PROBES):
            at, mask = self._hashed(pairs[places], probe)
            places = places[self.words[at] & mask == mask]
            if not places.size:
                break
        return places

    def _hashed(self, pairs: Words, probe: int) -> tuple[Whole, Words]:
        """Return the word of each id, and its bits in that."""
        first, second = self._factors[probe]
        mixed: Words = pairs[:, 0] * first
        # An odd factor leaves the highest bit alone: else who changes it in both words changes nothing.
        mixed ^= mixed >> np.uint64(32)
        mixed += pairs[:, 1] * second
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX
        mask: Words = np.zeros_like(mixed)
        for bit in range(_BITS):
            mask |= np.uint64(1) << ((mixed >> np.uint64(6 * bit)) & np.uint64(_WORD - 1))
        # A shift by all 64 bits is not defined, and a filter of one word needs it.
        at = mixed >> self._shift if len(self.words) > 1 else np.zeros_like(mixed)
        return at.astype(np.int64), mask


def _pairs(content: bytes) -> Words:
    """Return ids as two words each."""
    return np.frombuffer(content, dtype=np.uint64).reshape(-1, 2)


def among(names: Sequence[bytes], content: bytes) -> list[bytes]:
    """Return which ids are among those of some bytes, which are in order."""
    # Bytes of one length compare as such: what numpy leaves out at the end is zero on both sides.
    kept = np.frombuffer(content, dtype=f"S{ID_BYTES}")
    asked = np.frombuffer(b"".join(names), dtype=f"S{ID_BYTES}")
    at = np.minimum(np.searchsorted(kept, asked), len(kept) - 1)
    return [names[place] for place in np.flatnonzero(kept[at] == asked).tolist()]
