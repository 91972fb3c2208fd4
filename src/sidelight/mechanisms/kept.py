"""Responses that a memory can make again: a response as a plain function of given random words.

A device that keeps its response needs no table if the words come from a keyed generator: the same words give
the same response, on every platform. Every rule here is therefore fixed for ever; `docs/repeated.md` has
them for other languages, and `tests/mechanisms/memory_vectors.json` the numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from sidelight.foundation.arrays import Words
from sidelight.foundation.draws import Draws
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.reports import Reports


class Kept(Mechanism):
    """A mechanism whose response can be made from given words.

    `shared` below are words that do not depend on the value and go out with every report, as a public seed
    does; `subject` is what a response is of: the value, or its bucket.
    """

    shared_words: ClassVar[int] = 0
    """How many words responses to different values have in common."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What names the channel: its kind, the number of values and its thresholds, in decimals.

        Equal channels have equal names, whatever they were made from, so that all who ask through one
        channel, about the same values in the same order, get one and the same response.
        """

    @property
    @abstractmethod
    def memo_words(self) -> int:
        """How many words a response is made from."""

    def subject(self, code: int, shared: Words) -> str:
        """Return what the response is of, besides the attribute: empty for the value itself."""
        del code, shared
        return ""

    def drawn(self, code: int, draws: Draws) -> Reports:
        """Return the response that the next words make, those that are shared first, see `Mechanism`."""
        shared = draws.words(self.shared_words)
        return self.made(code, draws.words(self.memo_words), shared)

    @abstractmethod
    def made(self, code: int, words: Words, shared: Words) -> Reports:
        """Return the one response to a code that these words make."""
