"""A device that is asked again and again: it makes its memo once and sends fresh reports of it."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.errors import InputError, check_is, check_whole, invalid
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms.checks import check_codes
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.longitudinal.memory import Memory, Topic, prefixed
from sidelight.mechanisms.longitudinal.oracle import Longitudinal
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.reports import Reports
from sidelight.schema import Attribute


@dataclass(frozen=True, eq=False)
class Device:
    """One person's reports of one attribute, round after round, through one memory.

    Rounds are cut into *epochs*. In each, the value is frozen at the first that was reported, and a new memo
    is made: whatever changes, an epoch costs no more than unlimited reports of one value. Where changes are
    to be followed within an epoch, every distinct value has a memo of its own; then only the budget of one
    report about the memo, times the number of reports, bounds what changes cost.

    Attributes:
        mechanism: a longitudinal oracle, or a one-shot mechanism whose response is sent again as it is.
        attribute: what is reported.
        memory: the device's.
        epoch_rounds: how many rounds an epoch has; None for one epoch without end.
        follow_changes: whether a new value within an epoch is reported.
        series: what the rounds are counted in, such as a task's id, without spaces: the epochs of another
            series are others, whose values are frozen, and charged, by themselves. Empty, there is one series
            for all askers.
    """

    mechanism: Mechanism
    attribute: Attribute
    memory: Memory
    epoch_rounds: int | None = None
    follow_changes: bool = False
    series: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, (Longitudinal, Kept)):
            raise InputError(
                f"the mechanism {self.mechanism.name!r} has no response that can be made again; take 'grr', "
                "'sue', 'oue', 'olh' or a longitudinal one."
            )
        if self.mechanism.size != self.attribute.size:
            raise invalid("attribute", f"one of {self.mechanism.size} values", self.attribute.size)
        if self.epoch_rounds is not None:
            check_whole("epoch_rounds", self.epoch_rounds, at_least=1)
        check_is("series", self.series, str)
        if any(map(str.isspace, self.series)):
            raise invalid("series", "a name without spaces", self.series)

    @property
    def stored(self) -> Kept:
        """The mechanism of the memo."""
        one = self.mechanism
        if isinstance(one, Longitudinal):
            return one.stored
        assert isinstance(one, Kept)  # noqa: S101 - checked when the device is made
        return one

    @property
    def channel(self) -> str:
        """What names the memos' channel: all who ask through it about an attribute get the same memos."""
        return memo_channel(self.stored, self.attribute)

    @property
    def epsilon_charged(self) -> float:
        """What an epoch spends, once; where changes are followed, what every report spends.

        That is infinite where the memo is sent as it is: two memos that differ show two values that do.
        """
        if not self.follow_changes:
            return self.stored.epsilon
        return self.mechanism.epsilon_instant if isinstance(self.mechanism, Longitudinal) else math.inf

    def epoch_of(self, number: int) -> str:
        """Return the epoch of a round."""
        count = check_whole("number", number, at_least=0)
        place = 0 if self.epoch_rounds is None else count // self.epoch_rounds
        return f"{self.series} {place}" if self.series else str(place)

    def memo(self, value: int | str, number: int = 0) -> Reports:
        """Return the memo of a value, given by its code or its label, in a round: one row.

        It is not to be sent where the mechanism adds noise to it.
        """
        code = self._code(value)
        epoch = self.epoch_of(number)
        if not self.follow_changes:
            code = self.attribute.code(self._held(epoch, self.attribute.values[code]))
        return recalled(self.stored, self.attribute, self.memory, epoch, code)

    def _held(self, epoch: str, label: str) -> str:
        """Return the value that holds in an epoch, one of this attribute's.

        Another asker may have listed other values under the same name. If the one that was frozen for them
        is none of these, to refuse would tell an asker who chose the lists that it is not, for no budget. So
        these values are frozen by themselves; their memos have a channel, hence a charge, of their own.
        """
        name = self.attribute.name
        held = self.memory.held(name, epoch, label)
        if held in self.attribute.values:
            return held
        # An epoch ends with its number, a series has no space: no asker can name what is frozen here.
        return self.memory.held(name, f"{epoch} {meaning(self.attribute)}", label)

    def report(self, value: int | str, number: int = 0, *, seed: int | None = None) -> Reports:
        """Return the report of round `number`: one row; its noise is secure unless a seed is given.

        Reports of one round differ when asked for again: send one, and resend the same bytes.
        """
        memo = self.memo(value, number)
        if isinstance(self.mechanism, Longitudinal):
            return self.mechanism.report(memo, seed=derive_seed(seed, f"round/{number}"))
        return memo

    def _code(self, value: int | str) -> int:
        if isinstance(value, str):
            return self.attribute.code(value)
        return check_whole("value", value, at_least=0, at_most=self.attribute.size - 1)


@lru_cache(maxsize=256)
def meaning(attribute: Attribute) -> str:
    """Return what the codes of an attribute mean, as a digest: labels in order, edges, and merged values.

    Two askers whose alphabets differ must not get responses from the same words. If one lists three values
    the other way round, a lie is "the next value" to both and another label to each: two different answers
    would leave only the third, true value.
    """
    edges = [struct.pack(">d", edge + 0.0).hex() for edge in attribute.edges]  # -0.0 is the edge 0.0
    groups = [attribute.values, edges, *((label, *raws) for label, raws in attribute.merged)]
    texts = [text for group in groups for text in (str(len(group)), *group)]
    return hashlib.sha256(prefixed(texts)).hexdigest()


def memo_channel(stored: Kept, attribute: Attribute) -> str:
    """Name the channel of memos: that of the responses, and what its codes mean."""
    return f"{stored.identity} {meaning(attribute)}"


def recalled(stored: Kept, attribute: Attribute, memory: Memory, epoch: str, code: int) -> Reports:
    """Return the memo of a code: for one memory, channel, attribute, epoch and value the same for ever."""
    channel, name = memo_channel(stored, attribute), attribute.name
    shared = memory.words(Topic("shared", channel, name, epoch, ""), stored.shared_words)
    subject = stored.subject(code, shared) or attribute.values[code]
    words = memory.words(Topic("response", channel, name, epoch, subject), stored.memo_words)
    return stored.made(code, words, shared)


def recalled_of_all(
    stored: Kept, attribute: Attribute, memories: Sequence[Memory], epoch: str, codes: ArrayLike
) -> Reports:
    """Return the memos of many devices, one row for each memory and its code."""
    values = check_codes(codes, attribute.size, "codes")
    if len(values) != len(memories):
        raise invalid("codes", f"one for each of {len(memories)} memories", f"{len(values)} codes")
    parts = [
        recalled(stored, attribute, memory, epoch, int(code))
        for memory, code in zip(memories, values, strict=True)
    ]
    return Reports.joined([stored.form.empty(), *parts])


def simulate_rounds(
    oracle: Longitudinal,
    values: ArrayLike,
    *,
    seed: int,
    times: int | None = None,
    epoch_rounds: int | None = None,
    follow_changes: bool = False,
) -> Iterator[Reports]:
    """Yield everybody's reports of one round after another, for simulation.

    Args:
        oracle: how they report.
        values: codes, shape (people,) where they stay the same, else (people, rounds).
        seed: where all noise comes from.
        times: how many rounds, where values stay the same.
        epoch_rounds: how many rounds an epoch has; by default there is one without end.
        follow_changes: whether a new value within an epoch is reported, with a memo of its own.
    """
    table = np.asarray(values)
    if table.ndim == 1 and times is not None:
        table = np.broadcast_to(table[:, None], (len(table), check_whole("times", times, at_least=1)))
    if table.ndim != 2:
        raise invalid("values", "codes of shape (people, rounds), or (people,) with `times`", table.shape)
    length = table.shape[1] if epoch_rounds is None else check_whole("epoch_rounds", epoch_rounds, at_least=1)
    memos, before = oracle.form.empty(), None
    for number in range(table.shape[1]):
        starts = number % max(length, 1) == 0
        codes = check_codes(table[:, number], oracle.size)
        epoch = derive_seed(seed, f"epoch/{number // max(length, 1)}")
        if not follow_changes:
            memos = oracle.permanent(codes, seed=epoch) if starts else memos
        elif starts or before is None or not np.array_equal(codes, before):
            memos = oracle.memos(codes, seed=epoch)
        before = codes
        yield oracle.report(memos, seed=derive_seed(seed, f"round/{number}"))
