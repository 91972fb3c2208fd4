"""Random words: secure when no seed is given, reproducible and addressed by position when one is.

A seeded stream is for simulation. Word number i depends on the seed, the stream's name and i alone,
so chunks of one table, taken in any order on any engine, get the same words.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import check_whole

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Randomness(Protocol):
    """A source of uniform 64-bit words."""

    @property
    def is_secure(self) -> bool:
        """Whether the words may protect a real person's value."""

    def words(self, start: int, count: int) -> Words:
        """Return the words number `start` to `start + count`."""


@dataclass(frozen=True)
class Seeded:
    """A counter-based stream for simulation: SplitMix64 (Steele, Lea, Flood 2014) read at any position."""

    key: int

    @property
    def is_secure(self) -> bool:
        """Never: whoever knows the seed knows the noise."""
        return False

    def words(self, start: int, count: int) -> Words:
        """Return the words number `start` to `start + count`, shape (count,)."""
        with np.errstate(over="ignore"):
            z = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN + np.uint64(self.key)
            z = (z ^ (z >> np.uint64(30))) * _MIX_1
            z = (z ^ (z >> np.uint64(27))) * _MIX_2
            return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Secure:
    """The operating system's generator, stretched by ChaCha20 with a fresh key for every call."""

    @property
    def is_secure(self) -> bool:
        """Always."""
        return True

    def words(self, start: int, count: int) -> Words:  # noqa: ARG002 - secure words have no address
        """Return `count` fresh words; asking twice for the same position gives other words."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        cipher = Cipher(algorithms.ChaCha20(os.urandom(32), bytes(16)), mode=None)
        stream = cipher.encryptor().update(bytes(8 * count))
        return np.frombuffer(stream, dtype=np.uint64)


def randomness(seed: int | None, stream: str) -> Randomness:
    """Return secure randomness without a seed, and the seed's stream of that name with one.

    >>> randomness(7, "age").words(2, 3)[0] == randomness(7, "age").words(0, 3)[2]
    np.True_
    """
    if seed is None:
        return Secure()
    number = check_whole("seed", seed, at_least=0)
    digest = hashlib.blake2b(f"{number}/{stream}".encode(), digest_size=8).digest()
    return Seeded(int.from_bytes(digest, "little"))
