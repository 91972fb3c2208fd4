"""What is asked of a person, and what the answer is charged with. Neither depends on any value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from sidelight.foundation.errors import InputError, check_is, check_whole, invalid
from sidelight.ledger.units import MOST_UNITS, charged, shown
from sidelight.mechanisms.longitudinal.device import Device
from sidelight.mechanisms.mechanism import Mechanism

MOST_ROUND = (1 << 53) - 1


@dataclass(frozen=True)
class Charge:
    """What the report of one attribute spends.

    A report with fresh noise spends its budget each time. One through a memo spends the memo's budget once
    for its channel, attribute and epoch, whoever asks and however often: all get the same memo.

    Attributes:
        attribute: what is reported.
        channel: what names the channel, as `Device.channel` does for memos.
        units: the budget, in billionths of a nat.
        epoch: of the memo; None for fresh noise.
    """

    attribute: str
    channel: str
    units: int
    epoch: str | None = None

    def __post_init__(self) -> None:
        check_whole("units", self.units, at_least=0, at_most=MOST_UNITS)
        texts = {"attribute": self.attribute, "channel": self.channel, "epoch": self.epoch or ""}
        for name, text in texts.items():
            check_text(name, text)

    @classmethod
    def of(cls, attribute: str, channel: str, epsilon: float, epoch: str | None = None) -> Self:
        """Return a charge in nats, such as that of a whole record's report."""
        return cls(attribute, channel, charged("epsilon", epsilon), epoch)

    @classmethod
    def fresh(cls, attribute: str, mechanism: Mechanism) -> Self:
        """Return what a report with fresh noise spends."""
        check_is("mechanism", mechanism, Mechanism, "sl.create makes one.")
        if mechanism.delta:
            raise InputError(
                f"the mechanism {mechanism.name!r} keeps its budget but for a probability of "
                f"{mechanism.delta:g}; a ledger counts pure budgets only."
            )
        return cls(attribute, mechanism.name, charged("epsilon", mechanism.epsilon))

    @property
    def memo(self) -> tuple[str, str, str] | None:
        """What names the memo; None for fresh noise."""
        return None if self.epoch is None else (self.channel, self.attribute, self.epoch)

    @property
    def terms(self) -> tuple[str, str, int, bool]:
        """What must stay the same from round to round."""
        return self.attribute, self.channel, self.units, self.epoch is not None

    def __str__(self) -> str:
        return f"{shown(self.units)} for {self.attribute!r} through {self.channel!r}"


@dataclass(frozen=True)
class Question:
    """One round of one task.

    Attributes:
        task: what names the task over all askers, such as the digest of its document.
        round: its number; rounds go forward.
        charges: what the answer spends.
    """

    task: str
    round: int
    charges: tuple[Charge, ...] = field(default=())

    def __post_init__(self) -> None:
        check_whole("round", self.round, at_least=0, at_most=MOST_ROUND)
        if not check_text("task", self.task):
            raise invalid("task", "the name of a task", self.task)
        if not self.charges:
            raise InputError(f"{self} charges nothing; say what each of its reports spends.")
        for charge in self.charges:
            check_is("charges", charge, Charge, "Charge.of makes one.")
        memos = [charge.memo for charge in self.charges if charge.memo]
        if len(set(memos)) < len(memos):
            raise InputError(f"{self} charges one memo twice; its reports are the same.")

    @property
    def key(self) -> tuple[str, int]:
        """What names the question."""
        return self.task, self.round

    @property
    def terms(self) -> tuple[tuple[str, str, int, bool], ...]:
        """What every round of the task charges; only the memos' epochs may differ."""
        return tuple(sorted(charge.terms for charge in self.charges))

    def __str__(self) -> str:
        return f"round {self.round} of the task {self.task!r}"


def check_text(name: str, value: object) -> str:
    """Return a text that a file can hold, or raise."""
    check_is(name, value, str)
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid(name, "a text of whole characters", text, "It holds half of one.") from None
    return text


def charge_for(device: Device, number: int) -> Charge:
    """Return what the report of round `number` of a device that remembers spends.

    With a value frozen in each epoch it is the memo's budget, once; where changes are followed, what every
    report says about the memo, each time (a budget of the memo for each value would be too little).
    """
    units = charged("epsilon", device.epsilon_charged)
    epoch = None if device.follow_changes else device.epoch_of(number)
    return Charge(device.attribute.name, device.channel, units, epoch)
