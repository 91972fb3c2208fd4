"""What the entries of a ledger add up to, and which entry may follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from sidelight.foundation.errors import InputError
from sidelight.ledger.entries import Compacted, Entry, Mark, Opening, Settled, Step
from sidelight.ledger.limits import Use, check_fits
from sidelight.ledger.question import Charge, Question
from sidelight.ledger.units import shown
from sidelight.ledger.windows import written

State = Literal["reserved", "sent", "acknowledged", "withdrawn"]
CLOCK_SLACK = 300
"""Clocks are corrected by seconds; going back by more than so many is refused."""
_NEXT: dict[tuple[State, Mark], State] = {
    ("reserved", "send"): "sent",
    ("reserved", "withdraw"): "withdrawn",
    ("sent", "acknowledge"): "acknowledged",
}


@dataclass(frozen=True)
class Answer:
    """A question that was paid for.

    Attributes:
        question: which.
        time: when it was reserved.
        report: the bytes that are sent for it, until they are acknowledged.
        state: "reserved", "sent" (it may have arrived), "acknowledged" or "withdrawn" (it was never sent).
    """

    question: Question
    time: int
    report: bytes | None
    state: State = "reserved"


@dataclass
class Book:
    """Everything that holds after the entries so far."""

    opening: Opening
    answers: dict[tuple[str, int], Answer] = field(default_factory=dict)
    frozen: dict[tuple[str, str], str] = field(default_factory=dict)
    last: int = 0  # the latest time
    heads: tuple[str, ...] = ()  # of the lines that were there before the file was compacted
    _latest: dict[str, Question] = field(default_factory=dict)  # of each task
    _memos: dict[tuple[str, str, str], tuple[Charge, Question]] = field(default_factory=dict)  # last used

    def __post_init__(self) -> None:
        self.last = self.opening.opened

    @property
    def uses(self) -> list[Use]:
        """All charges that count, in their order."""
        counted = (answer for answer in self.answers.values() if answer.state != "withdrawn")
        return [Use(answer.time, charge) for answer in counted for charge in answer.question.charges]

    def time_of(self, now: int) -> int:
        """Return the time to write down: never before the last one."""
        if now < self.last - CLOCK_SLACK:
            raise InputError(
                f"the clock was set back: it says {written(now)}, and the ledger's last entry is of "
                f"{written(self.last)}; set it right, or wait until then."
            )
        return max(now, self.last)

    def check_fits(self, question: Question, now: int) -> None:
        """Raise unless every limit allows a question that was not asked before."""
        self.check_new(question)
        check_fits(question, self.opening.limits, self.uses, self.opening.opened, now)

    def check_new(self, question: Question) -> None:
        """Raise unless a question that was not asked before may follow, whatever it spends."""
        self._check_round(question)
        for charge in question.charges:
            before = self._memos.get(charge.memo) if charge.memo else None
            if before is not None and before[0].units != charge.units:
                raise InputError(
                    f"{question} charges {charge}, and the same memo was charged {shown(before[0].units)} "
                    "before; a channel has one budget."
                )

    def _check_round(self, question: Question) -> None:
        latest = self._latest.get(question.task)
        if latest is None:
            return
        if question.round < latest.round:
            raise InputError(f"{question} comes after round {latest.round} was answered; rounds go forward.")
        self._check_terms(question, latest)

    @staticmethod
    def _check_terms(question: Question, before: Question) -> None:
        if question.terms != before.terms:
            new = ", ".join(map(str, question.charges))
            old = ", ".join(map(str, before.charges))
            raise InputError(
                f"{question} charges {new}, but round {before.round} charged {old}; a task keeps its "
                "budgets: ask it as another task."
            )

    def asked(self, question: Question) -> Answer | None:
        """Return the answer to a question that was asked before, on the same terms."""
        answer = self.answers.get(question.key)
        if answer is None:
            return None
        self._check_terms(question, answer.question)
        if set(question.charges) != set(answer.question.charges):
            raise InputError(f"{question} was answered in another epoch; a question has one answer.")
        return answer

    def apply(self, entry: Entry) -> None:
        """Take an entry over, or raise if it cannot follow."""
        match entry:
            case Step():
                self._step(entry)
            case Compacted():
                if self.answers or self.heads:
                    raise InputError("what a compacted ledger left behind stands in its second line.")
                self.heads, self.frozen = entry.heads, dict(entry.frozen)
            case Settled():
                self._add(Answer(entry.question, entry.time, None, entry.state))
            case _:
                if self.frozen.keys() & entry.frozen.keys():
                    raise InputError(f"{entry.question} freezes a value that was frozen before.")
                self._add(Answer(entry.question, entry.time, entry.report))
                self.frozen.update(entry.frozen)

    def _add(self, answer: Answer) -> None:
        question = answer.question
        if question.key in self.answers:
            raise InputError(f"{question} is reserved twice.")
        if answer.time < self.last:
            raise InputError(f"{question} is reserved before what stands above it.")
        self.check_new(question)
        self.answers[question.key] = answer
        self.last = answer.time
        self._latest[question.task] = question
        self._memos.update({charge.memo: (charge, question) for charge in question.charges if charge.memo})

    def is_settled(self, answer: Answer) -> bool:
        """Whether nothing that may come depends on an answer: it counts no more, and no check needs it.

        Needed are the latest of each task, and the latest that used a memo, whose budget stays the same.
        """
        memos = (self._memos[charge.memo][1] for charge in answer.question.charges if charge.memo)
        needed = {question.key for question in (self._latest[answer.question.task], *memos)}
        if answer.state not in ("acknowledged", "withdrawn") or answer.question.key in needed:
            return False
        windows = [limit.window for limit in self.opening.limits]
        ends = [window.leaves(answer.time, self.opening.opened) for window in windows]
        # Not by the clock, which may be wrong: times to come are at least the last one.
        over = all(end is not None and end <= self.last for end in ends)
        return over or answer.state == "withdrawn"

    def check_step(self, step: Step) -> State:
        """Return the state that a step leads to, or raise if there is none."""
        answer = self.answers.get((step.task, step.round))
        if answer is None:
            raise InputError(f"round {step.round} of the task {step.task!r} was never reserved.")
        state = _NEXT.get((answer.state, step.mark))
        if state is None:
            raise InputError(f"{answer.question} is {answer.state}; there is nothing to {step.mark}.")
        return state

    def _step(self, step: Step) -> None:
        state, answer = self.check_step(step), self.answers[step.task, step.round]
        is_over = state in ("acknowledged", "withdrawn")
        report = None if is_over else answer.report
        self.answers[step.task, step.round] = replace(answer, state=state, report=report)
