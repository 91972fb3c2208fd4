"""One device's random bytes, read in order: the same bytes make the same report, in every language.

Vectorised randomness (`randomness`) addresses words by the row of a table. A device has no table: it makes
one report from a stream of bytes, which are its operating system's, or a test's. The rules are in
`docs/wire.md`; they are fixed for ever.
"""

from __future__ import annotations

import os

import numpy as np

from sidelight.foundation.arrays import Words
from sidelight.foundation.errors import InputError, check_is

_WORD_BYTES = 8
_WORDS = 1 << 64


class Draws:
    """A stream of random bytes, read as words: eight bytes each, the lowest first.

    >>> draws = Draws(bytes(range(16)))
    >>> hex(draws.word()), draws.below(6), draws.used
    ('0x706050403020100', 0, 16)
    """

    def __init__(self, given: bytes | None = None) -> None:
        """Read the given bytes, then no more; without them, the operating system's, without end."""
        if given is not None:
            check_is("given", given, bytes, "Leave it out for secure randomness.")
        self._given = given
        self.used = 0
        """How many bytes were read."""

    def _take(self, count: int) -> bytes:
        if self._given is None:
            taken = os.urandom(count)
        else:
            taken = self._given[self.used : self.used + count]
            if len(taken) < count:
                raise InputError(
                    f"the report needs more than the {len(self._given)} random bytes that were given; give "
                    "more."
                )
        self.used += count
        return taken

    def word(self) -> int:
        """Return the next word, a whole number below 2^64."""
        return int.from_bytes(self._take(_WORD_BYTES), "little")

    def words(self, count: int) -> Words:
        """Return the next words, shape (count,)."""
        return np.frombuffer(self._take(_WORD_BYTES * count), dtype="<u8").astype(np.uint64)

    def below(self, bound: int) -> int:
        """Return an exactly uniform whole number below a bound of at most 2^63 (Lemire 2019).

        It is floor(word bound / 2^64); a word whose word bound mod 2^64 lies in the incomplete run at the
        start, below 2^64 mod bound, is passed over for the next one.
        """
        least = _WORDS % bound
        while True:
            product = self.word() * bound
            if product % _WORDS >= least:
                return product // _WORDS
