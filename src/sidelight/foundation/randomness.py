"""Random words: secure when no seed is given, reproducible and addressed by position when one is.

A seeded stream is for simulation. Word number i depends on the seed, the stream's name and i alone,
so chunks of one table, taken in any order on any engine, get the same words.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Mask, Positions
from sidelight.foundation.arrays import Words as Words
from sidelight.foundation.errors import check_whole

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
_AGAIN = 1 << 56
"""Words that are drawn again come from positions this far on, which no stream of rows reaches."""
_KEY_BYTES = 32


@dataclass(frozen=True)
class Seeded:
    """A counter-based stream for simulation: SplitMix64 (Steele, Lea, Flood 2014) read at any position."""

    key: int
    compiled: bool = False
    is_secure: ClassVar[bool] = False  # whoever knows the seed knows the noise

    def words(self, start: int, count: int, out: Words | None = None) -> Words:
        """Return the words number `start` to `start + count`, shape (count,), written to `out` if given."""
        filled = np.empty(count, dtype=np.uint64) if out is None else out
        if self.compiled:
            from sidelight.foundation.kernels import fill_words

            fill_words(np.uint64(self.key), np.uint64(start), filled)
        else:
            filled[:] = self.words_at(np.arange(start, start + count, dtype=np.uint64))
        return filled

    def words_at(self, positions: Words) -> Words:
        """Return the words at the given positions."""
        with np.errstate(over="ignore"):  # arithmetic is meant modulo 2^64
            z = (positions + np.uint64(1)) * GOLDEN + np.uint64(self.key)  # it steps before it mixes
            z = (z ^ (z >> np.uint64(30))) * MIX_1
            z = (z ^ (z >> np.uint64(27))) * MIX_2
            return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True)
class Secure:
    """The operating system's generator, stretched by ChaCha20 with a fresh key for every call."""

    compiled: bool = False
    is_secure: ClassVar[bool] = True  # the words may protect a real person's value

    def words(self, start: int, count: int, out: Words | None = None) -> Words:  # noqa: ARG002 - no address
        """Return `count` fresh words; asking twice for the same position gives other words."""
        stream = _stretched(os.urandom(_KEY_BYTES), count)
        if out is None:
            return stream
        out[:] = stream
        return out

    def words_at(self, positions: Words) -> Words:
        """Return one fresh word for each position."""
        return self.words(0, len(positions))


Randomness = Seeded | Secure
"""A source of uniform 64-bit words; it is `compiled` where the caller's work is worth compiled loops."""


def _stretched(key: bytes, count: int) -> Words:
    """Return the first words of the ChaCha20 stream of a key."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None)  # a key makes one stream: no nonce
    stream = np.empty(count + 8, dtype=np.uint64)  # the cipher asks for room for one more block
    cipher.encryptor().update_into(bytes(8 * count), stream.view(np.uint8).data)
    return stream[:count]


def order_key(seed: int | None) -> bytes:
    """Return the key of an order of rows: a new and secure one without a seed, the seed's with one."""
    return os.urandom(_KEY_BYTES) if seed is None else _digest(seed, "order of rows", _KEY_BYTES)


def permutation(key: bytes, size: int) -> Positions:
    """Return the permutation of `size` rows that belongs to a key; without the key, all are equally likely.

    >>> sorted(permutation(order_key(3), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.argsort(_stretched(key, size), kind="stable")  # equal words keep their order on any machine


def randomness(seed: int | None, stream: str, *, compiled: bool = False) -> Randomness:
    """Return secure randomness without a seed, and the seed's stream of that name with one.

    >>> randomness(7, "age").words(2, 3)[0] == randomness(7, "age").words(0, 3)[2]
    np.True_
    """
    return Secure(compiled) if seed is None else Seeded(_key(seed, stream), compiled)


@overload
def derive_seed(seed: int, name: str) -> int: ...


@overload
def derive_seed(seed: int | None, name: str) -> int | None: ...


def derive_seed(seed: int | None, name: str) -> int | None:
    """Return a seed of its own for the part called `name`, so that no two parts share their noise.

    >>> derive_seed(7, "age") != derive_seed(7, "sex"), derive_seed(None, "age") is None
    (True, True)
    """
    return None if seed is None else _key(seed, f"derived/{name}")


def below(source: Randomness, start: int, rows: int, bounds: Words) -> NDArray[np.uint32]:
    """Return exactly uniform whole numbers, each below its column's bound, shape (rows, bounds).

    The upper half of word x bound is uniform once the words of an incomplete run are drawn again (Lemire
    2019). Row i uses the words from `start + i * len(bounds)` on; bounds stay below 2^32.
    """
    words = source.words(start, rows * len(bounds)).reshape(rows, len(bounds))
    least = (np.uint64(0) - bounds) % bounds  # 2^64 mod bound: the words beyond the last complete run
    if source.compiled:
        from sidelight.foundation.kernels import scale_words

        out = np.empty(words.shape, dtype=np.uint32)
        if scale_words(words, bounds, least, out):
            return out
    _draw_again(source, start, words, lambda: words * bounds < least)
    high, low = words >> HALF, words & LOW
    return ((high * bounds + ((low * bounds) >> HALF)) >> HALF).astype(np.uint32)


def below_each(source: Randomness, start: int, bounds: Words) -> Words:
    """Return one exactly uniform whole number below each bound; bounds stay below 2^63."""
    words = source.words(start, len(bounds))
    most = np.uint64((1 << 64) - 1) - (np.uint64(0) - bounds) % bounds  # the end of the last whole run
    _draw_again(source, start, words, lambda: words > most)
    return np.asarray(words % bounds)


def _draw_again(source: Randomness, start: int, words: Words, are_lost: Callable[[], Mask]) -> None:
    """Replace words until none is lost; each attempt takes them from a range of positions of its own."""
    attempt = 0
    while (lost := np.flatnonzero(are_lost())).size:
        attempt += 1
        places = lost.astype(np.uint64) + np.uint64(start + attempt * _AGAIN)
        words.reshape(-1)[lost] = source.words_at(places)


def _key(seed: int, stream: str) -> int:
    return _kept_key(check_whole("seed", seed, at_least=0), stream)


@lru_cache(maxsize=1 << 10)  # a collection in batches derives the same seeds for each of them
def _kept_key(seed: int, stream: str) -> int:
    return int.from_bytes(_digest(seed, stream, 8), "little")


def _digest(seed: int, stream: str, size: int) -> bytes:
    number = check_whole("seed", seed, at_least=0)  # it holds no slash, so no two pairs give one text
    return hashlib.blake2b(f"{number}/{stream}".encode(), digest_size=size).digest()
