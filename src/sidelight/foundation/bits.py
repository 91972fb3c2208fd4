"""Rows of bits: drawn 64 at a time with any probability, stored packed, counted by position.

A row of `size` bits takes 1, 2 or 4 bytes or a multiple of 8; bit v of a row is bit v mod 8 of byte v // 8,
and the bits after the last are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Mask, Positions, Whole, Words, spans
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.randomness import Randomness, Seeded

Rows = NDArray[np.uint8]

_ALL = np.uint64((1 << 64) - 1)
_TOGETHER = 12
"""After this many bits, 64 numbers of a word are all decided with probability 0.98."""
_ROUND = 1 << 56
"""Each bit of a number comes from positions this far on, which no stream of rows reaches."""


def row_bytes(size: int) -> int:
    """Return how many bytes a packed row of `size` bits takes.

    >>> [row_bytes(size) for size in (2, 9, 20, 64, 100)]
    [1, 2, 4, 8, 16]
    """
    small = next((width for width in (1, 2, 4) if size <= 8 * width), 0)  # none lies across two words
    return small or 8 * -(-size // 64)


def row_words(size: int) -> float:
    """Return how many words are drawn for a row of `size` bits, and one for what is laid over it."""
    return 1 + row_bytes(size) * _TOGETHER / 8


def random_rows(source: Randomness, offset: int, rows: int, size: int, threshold: int) -> Rows:
    """Return packed rows whose bits are 1 with probability threshold / 2^64, shape (rows, row_bytes).

    Row i of the result is row `offset + i` of the stream.
    """
    width = row_bytes(size)
    first, last = offset * width // 8, -(-(offset + rows) * width // 8)
    words = bernoulli(source, first, last - first, threshold)
    words.reshape(-1, max(1, width // 8))[:, -1] &= last_word_mask(size)
    skipped = offset * width - first * 8
    packed = words.astype("<u8", copy=False).view(np.uint8)
    return packed[skipped : skipped + rows * width].reshape(rows, width)


def packed_rows(bits: Mask) -> Rows:
    """Return rows of bits packed, shape (rows, row_bytes).

    >>> packed_rows(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    rows = np.zeros((len(bits), row_bytes(bits.shape[1])), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    rows[:, : packed.shape[1]] = packed
    return rows


def bernoulli(source: Randomness, start: int, count: int, threshold: int) -> Words:
    """Return words whose bits are independent and 1 with probability threshold / 2^64, exactly.

    Each of the 64 bit positions is a random number, revealed bit by bit from the highest, until it differs
    from the threshold. Twelve bits decide nearly all; the few words left over go on alone.
    """
    # After its lowest set bit a threshold has only zeros, below which no number can be.
    rounds = 64 - ((threshold & -threshold).bit_length() - 1) if threshold else 0
    result = np.zeros(count, dtype=np.uint64)
    if source.compiled and isinstance(source, Seeded):
        from sidelight.foundation.kernels import draw_bits

        key, first, turns = np.uint64(source.key), np.uint64(start), (_TOGETHER, rounds)
        draw_bits(key, first, np.uint64(threshold), turns, np.full(count, _ALL), result)
        return result
    places, undecided = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.uint64)]
    for span in spans(count):
        still, part = np.full(span.stop - span.start, _ALL), result[span]
        for turn in range(min(rounds, _TOGETHER)):
            words = source.words(start + span.start + turn * _ROUND, len(part))
            _narrow(words, bool(threshold >> (63 - turn) & 1), still, part)
        if rounds <= _TOGETHER:  # the rest of the threshold is zeros: all is decided
            continue
        left = np.flatnonzero(still)
        places.append(left + span.start)
        undecided.append(still[left])
    _finish(source, start, threshold, rounds, np.concatenate(places), np.concatenate(undecided), result)
    return result


def _finish(
    source: Randomness, start: int, threshold: int, rounds: int, at: Positions, bits: Words, result: Words
) -> None:
    """Reveal the rest of the numbers in the few words that are left, until all are decided."""
    for turn in range(_TOGETHER, rounds):
        if not len(at):
            break
        words = source.words_at(at.astype(np.uint64) + np.uint64(start + turn * _ROUND))
        decided = result[at]
        _narrow(words, bool(threshold >> (63 - turn) & 1), bits, decided)
        result[at] = decided
        at, bits = at[bits != 0], bits[bits != 0]


def _narrow(words: Words, bit: bool, undecided: Words, result: Words) -> None:
    """Compare one more bit of 64 random numbers in each word with one bit of the threshold."""
    if bit:
        result |= undecided & ~words
        undecided &= words
    else:
        undecided &= ~words


def last_word_mask(size: int) -> np.uint64:
    """Return the bits in use of the word that ends a row, or of one that holds several short rows."""
    width = row_bytes(size)
    row = np.packbits(np.arange(8 * width) < size, bitorder="little")
    return np.uint64(np.tile(row, max(1, 8 // width)).view("<u8")[-1])


def bit_counts(rows: Rows) -> Whole:
    """Return how often each bit is set in packed rows, those after the last value's included."""
    width = rows.shape[1]
    if not use_loop("foundation.count_bits", len(rows), width):
        total = np.zeros(8 * width, dtype=np.int64)
        for span in spans(len(rows), width):
            total += np.unpackbits(rows[span], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        return total
    from sidelight.foundation.kernels import count_bits

    flat = np.ascontiguousarray(rows).reshape(-1)
    # The loop reads whole words; zeros at the end count nothing.
    whole = np.concatenate([flat, np.zeros(-len(flat) % 8, dtype=np.uint8)]) if len(flat) % 8 else flat
    counts = np.zeros(64 * max(1, width // 8), dtype=np.int64)
    count_bits(whole.view("<u8").reshape(-1, max(1, width // 8)), counts)
    return np.asarray(counts.reshape(-1, 8 * width).sum(axis=0))


def code_type(size: int) -> type[np.uint8 | np.uint16]:
    """Return the narrowest type that holds codes below `size`."""
    return np.uint8 if size <= 256 else np.uint16


def code_counts(codes: NDArray[np.unsignedinteger], size: int) -> Whole:
    """Return how often each of the codes 0 to size-1 occurs."""
    # The loop saves a nanosecond a code: a server that counts small batches for days needs no compiler.
    if not use_loop("foundation.count_codes", len(codes), waits=False):
        return np.bincount(codes, minlength=size).astype(np.int64)
    from sidelight.foundation.kernels import count_codes

    counts = np.zeros((4, size), dtype=np.int64)
    count_codes(np.ascontiguousarray(codes), counts)
    return np.asarray(counts.sum(axis=0))
