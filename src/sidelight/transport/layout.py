"""How the parts of one report lie in bytes: fields of so many bits, one after the other, and nothing else.

The layout follows from what the reports look like (`ReportForm`), so it is the same for everyone who has the
protocol. All reports of a protocol have one length and every report one encoding; `docs/wire.md` has it for
other languages. Bit j of a report's body is bit j mod 8 of byte j // 8, numbers have their lowest bit first,
and the bits after the last field are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Mask, Positions, Words
from sidelight.foundation.bits import packed_rows, row_bytes
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import ReportForm, Reports

Refusal = Literal["length", "version", "part", "range", "set", "padding", "impossible"]
Bytes = NDArray[np.uint8]

_SEED_BITS = 64
_MOST_STEPS = 1 << 53  # up to here doubles count steps of a grid exactly


@dataclass(frozen=True)
class PartLayout:
    """Where the numbers of one part lie: a public seed where there is one, then `numbers` of `bits` each.

    A set is a list of codes, or a bit for each code where that is no longer. A noisy number is the number of
    its step on the grid, counted from the lowest that noise can lead to.
    """

    form: ReportForm

    @cached_property
    def choices(self) -> int:
        """How many different numbers a field can hold."""
        if self.form.grid is None:
            return 2 if self.is_flags else self.form.count
        return self.form.grid.steps + 2 * self._margin + 1

    @cached_property
    def is_flags(self) -> bool:
        """Whether there is one bit for each code."""
        form = self.form
        if form.encoding == "sets":
            return form.count <= (form.width or 0) * _bits_for(form.count)
        return form.encoding == "bits"

    @cached_property
    def bits(self) -> int:
        """How many bits a number has."""
        return _bits_for(self.choices)

    @cached_property
    def numbers(self) -> int:
        """How many numbers there are."""
        return self.form.count if self.is_flags else self.form.width or 1

    @cached_property
    def length(self) -> int:
        """How many bits the part has."""
        return _SEED_BITS * self.form.seeded + self.numbers * self.bits

    @cached_property
    def _margin(self) -> int:
        grid = self.form.grid
        if grid is None or not grid.steps + 2 * grid.reach < _MOST_STEPS - 4:
            raise InputError(
                "a noisy number has no wire form where noise leads further than 2^53 steps; take a larger "
                "epsilon, or report files."
            )
        return floor(grid.reach) + 1

    def put(self, reports: Reports, out: Bytes, offset: int) -> None:
        """Write reports into zeroed rows, from a bit on; the rows have a spare byte at the end."""
        values = self.form.check(reports)
        if reports.seeds is not None:
            _put(_as_bytes(reports.seeds, _SEED_BITS), out, offset)
            offset += _SEED_BITS
        if self.is_flags:
            rows = values if self.form.encoding == "bits" else packed_rows(_members(values, self.form.count))
            _put(rows[:, : -(-self.form.count // 8)], out, offset)
            return
        for column in self._numbered(values).reshape(len(values), self.numbers).T:
            _put(_as_bytes(column, self.bits), out, offset)
            offset += self.bits

    def _numbered(self, values: NDArray[Any]) -> NDArray[Any]:
        grid = self.form.grid
        if grid is None:
            return values
        steps = np.rint((values - grid.lower) / grid.step)
        if not np.array_equal(grid.lower + steps * grid.step, values):
            raise InputError(
                "some noisy numbers lie so far out that doubles no longer tell their steps; write a report "
                "file instead."
            )
        return np.asarray(steps + self._margin)

    def take(self, body: Bytes, offset: int) -> tuple[Reports, dict[Refusal, Mask]]:
        """Return the reports that lie from a bit on, and where they are none, by the reason.

        What is returned of a report that is none has no meaning.
        """
        seeds = None
        if self.form.seeded:
            seeds = _number(body, offset, _SEED_BITS)
            offset += _SEED_BITS
        if self.is_flags:
            values, faults = self._take_flags(_taken(body, offset, self.form.count))
        else:
            starts = [offset + self.bits * number for number in range(self.numbers)]
            columns = [_number(body, start, self.bits) for start in starts]
            values, faults = self._take_numbers(np.stack(columns, axis=1))
        return Reports(values, seeds), faults

    def _take_flags(self, rows: Bytes) -> tuple[NDArray[Any], dict[Refusal, Mask]]:
        form = self.form
        if form.encoding == "bits":
            padded = np.zeros((len(rows), row_bytes(form.count)), dtype=np.uint8)
            padded[:, : rows.shape[1]] = rows
            return padded, {}
        members = np.unpackbits(rows, axis=1, count=form.count, bitorder="little").view(np.bool_)
        wrong = np.count_nonzero(members, axis=1) != form.width
        members[wrong] = np.arange(form.count) < (form.width or 0)
        return np.nonzero(members)[1].astype(form.dtype).reshape(len(rows), form.width or 0), {"set": wrong}

    def _take_numbers(self, numbers: Words) -> tuple[NDArray[Any], dict[Refusal, Mask]]:
        form, single = self.form, self.form.width is None
        faults: dict[Refusal, Mask] = {"range": _any(numbers >= np.uint64(self.choices))}
        if form.encoding == "sets":
            faults["set"] = _any(numbers[:, 1:] <= numbers[:, :-1])
        values: NDArray[Any] = numbers.astype(form.dtype)
        if form.grid is not None:
            values = form.grid.lower + (values - self._margin) * form.grid.step
        return values[:, 0] if single else values, faults


@dataclass(frozen=True)
class Layout:
    """Where the parts of a report lie in its body, all of them or, after its number, the one that is sent."""

    forms: tuple[ReportForm, ...]
    sends_one_part: bool = False

    @cached_property
    def parts(self) -> tuple[PartLayout, ...]:
        """Each part's layout."""
        return tuple(map(PartLayout, self.forms))

    @cached_property
    def part_bits(self) -> int:
        """How many bits tell which part is sent."""
        return _bits_for(len(self.forms)) if self.sends_one_part else 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The bit each part begins at."""
        if self.sends_one_part:
            return (self.part_bits,) * len(self.forms)
        return tuple(sum(part.length for part in self.parts[:i]) for i in range(len(self.parts)))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The bit after each part's last."""
        return tuple(start + part.length for start, part in zip(self.starts, self.parts, strict=True))

    @cached_property
    def length(self) -> int:
        """How many bytes every body has: where one part is sent, those of the longest."""
        return -(-max(self.ends) // 8)

    def packed(self, parts: Sequence[Reports], senders: Sequence[Positions | None], people: int) -> Bytes:
        """Return the bodies of people's reports, shape (people, length)."""
        out = np.zeros((people, self.length + 1), dtype=np.uint8)  # a field may end where a byte does
        for number, (part, rows) in enumerate(zip(parts, senders, strict=True)):
            if not self.sends_one_part:
                self.parts[number].put(part, out, self.starts[number])
                continue
            own = np.zeros((len(part), self.length + 1), dtype=np.uint8)
            _put(_as_bytes(np.full(len(part), number), self.part_bits), own, 0)
            self.parts[number].put(part, own, self.starts[number])
            out[... if rows is None else rows] = own
        return out[:, :-1]

    def unpacked(self, body: Bytes) -> tuple[list[Reports], list[Positions | None], dict[Refusal, Mask]]:
        """Return the parts of all reports, who sent each (None: everyone), and which bodies are none.

        The reasons are in the order in which the first one counts.
        """
        padded = np.zeros((len(body), self.length + 1), dtype=np.uint8)
        padded[:, :-1] = body
        faults: dict[Refusal, Mask] = {
            reason: np.zeros(len(body), dtype=np.bool_) for reason in ("part", "range", "set", "padding")
        }
        chosen = _number(padded, 0, self.part_bits) if self.sends_one_part else None
        if chosen is not None:
            faults["part"] = chosen >= np.uint64(len(self.forms))
        parts, senders = [], []
        for number, layout in enumerate(self.parts):
            rows = None if chosen is None else np.flatnonzero(chosen == np.uint64(number))
            own = padded if rows is None else padded[rows]
            part, wrong = layout.take(own, self.starts[number])
            if rows is not None or number + 1 == len(self.parts):
                wrong["padding"] = _any_after(own, self.ends[number])
            for reason, mask in wrong.items():
                faults[reason][... if rows is None else rows] |= mask
            parts.append(part)
            senders.append(rows)
        return parts, senders, faults


def _bits_for(choices: int) -> int:
    """Return how many bits tell so many numbers apart: none for a single one."""
    return (choices - 1).bit_length()


def _members(sets: NDArray[Any], count: int) -> Mask:
    marked = np.zeros((len(sets), count), dtype=np.bool_)
    np.put_along_axis(marked, sets.astype(np.intp), True, axis=1)
    return marked


def _as_bytes(numbers: NDArray[Any], bits: int) -> Bytes:
    """Return whole numbers as the bytes that so many bits need, lowest first, shape (n, bytes)."""
    plain = np.ascontiguousarray(numbers).astype("<u8")
    return plain.view(np.uint8).reshape(len(plain), 8)[:, : -(-bits // 8)]


def _number(rows: Bytes, offset: int, bits: int) -> Words:
    """Return the whole numbers that so many bits of every row are, from a bit on; at most 64."""
    first, shift = divmod(offset, 8)
    numbers: Words = np.zeros(len(rows), dtype=np.uint64)
    for place in range(-(-(shift + bits) // 8)):  # a byte of all rows at a time
        column, left = rows[:, first + place].astype(np.uint64), 8 * place - shift
        numbers |= column << np.uint64(left) if left >= 0 else column >> np.uint64(-left)
    return numbers & np.uint64((1 << bits) - 1)


def _put(rows: Bytes, out: Bytes, offset: int) -> None:
    """Add bytes to zeroed rows, from a bit on."""
    first, shift = divmod(offset, 8)
    end = first + rows.shape[1]
    if not shift:
        out[:, first:end] |= rows
        return
    out[:, first:end] |= rows << np.uint8(shift)
    out[:, first + 1 : end + 1] |= rows >> np.uint8(8 - shift)


def _taken(rows: Bytes, offset: int, bits: int) -> Bytes:
    """Return so many bits of every row, from a bit on, as bytes; the rows have a spare byte at the end."""
    first, shift = divmod(offset, 8)
    count = -(-bits // 8)
    taken = rows[:, first : first + count] >> np.uint8(shift)
    if shift:
        high = rows[:, first + 1 : first + count + 1]
        taken[:, : high.shape[1]] |= high << np.uint8(8 - shift)
    if bits % 8:
        taken[:, -1] &= np.uint8((1 << bits % 8) - 1)
    return taken


def _any_after(rows: Bytes, offset: int) -> Mask:
    """Return which rows have a bit set from a bit on."""
    first, shift = divmod(offset, 8)
    marked: Mask = rows[:, first] >> np.uint8(shift) > 0
    for column in rows[:, first + 1 :].T:
        marked |= column > 0
    return marked


def _any(marks: Mask) -> Mask:
    """Return which rows have a mark."""
    return marks[:, 0] if marks.shape[1] == 1 else np.asarray(marks.any(axis=1))
