"""Rounds: one question to people, from draft to open to closed to published, and never back.

A round gets its document when it is opened. Of a second phase, or of a round of a label collection, the
document holds what was learnt from the sums of earlier rounds, with their digest, so that everybody can see
what it was computed from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sidelight.foundation.errors import InputError, naming
from sidelight.foundation.strict import Strict, versioned
from sidelight.protocols.files import protocol_data, protocol_from
from sidelight.protocols.protocol import Protocol
from sidelight.service.canonical import canonical, digest_of, parsed_document
from sidelight.service.label_basis import Basis, BasisFile

if TYPE_CHECKING:
    from sidelight.service.task import Task

ROUND_VERSION = 1
State = Literal["draft", "open", "closed", "published"]
STATES: tuple[State, ...] = ("draft", "open", "closed", "published")


def check_step(before: State, after: State, what: str) -> bool:
    """Return whether a round must still go from one state to another; raise if it cannot.

    It is False where the round is there already: asking twice changes nothing.
    """
    if before == after:
        return False
    if STATES.index(after) != STATES.index(before) + 1:
        raise InputError(
            f"{what} is {before}; it cannot become {after}. A round goes {' -> '.join(STATES)}, never back."
        )
    return True


@dataclass(frozen=True)
class Learnt:
    """Where the parameters of a round come from: so many reports, whose sums have this digest."""

    reports: int
    sums: str


@dataclass(frozen=True)
class Round:
    """The document of an open round: which protocol people answer with.

    Attributes:
        task: the id of its task.
        number: from 1.
        protocol: what makes and adds up reports.
        learnt: what the protocol was learnt from; None where the task says it.
        basis: what the questions of a label collection rest on; None for every other task.
    """

    task: str
    number: int
    protocol: Protocol
    learnt: Learnt | None = None
    basis: Basis | None = None

    @cached_property
    def document(self) -> bytes:
        """The round as canonical JSON."""
        learnt = None if self.learnt is None else vars(self.learnt)
        labels = {} if self.basis is None else {"labels": self.basis.to_data()}
        return canonical(
            {
                "version": ROUND_VERSION, "task": self.task, "round": self.number,
                "protocol": protocol_data(self.protocol), "learnt": learnt, **labels,
            }
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """What names the round, in every upload too."""
        return digest_of(self.document)


class _LearntFile(Strict):
    reports: int
    sums: str


class _RoundFile(Strict):
    version: int
    task: str
    round: int
    protocol: dict[str, Any]
    learnt: _LearntFile | None
    labels: BasisFile | None = None


def first_round(task: Task, number: int) -> Round:
    """Return a round whose protocol the task says."""
    if task.learns_from(task.check_number(number)):
        raise InputError(f"round {number} is computed from the sums of an earlier one; close that first.")
    return task.course.made(task.id, number, ())


def read_round(task: Task, number: int, document: bytes, digest: str | None = None) -> Round:
    """Return the round of a document, or raise unless it is one of this task that keeps to its budgets."""
    label = f"round {number} of the task"
    parsed = versioned(_RoundFile, parsed_document(document, label, digest), label, ROUND_VERSION, "round")
    if (parsed.task, parsed.round) != (task.id, number):
        raise InputError(f"{label} is of another task or round, {parsed.task} and {parsed.round}.")
    learnt = None if parsed.learnt is None else Learnt(**dict(parsed.learnt))
    with naming(label):
        basis = None if parsed.labels is None else parsed.labels.made()
    made = Round(task.id, task.check_number(number), protocol_from(parsed.protocol, label), learnt, basis)
    if made.document != document:
        raise InputError(f"{label} is not written as it must be: sorted keys, no spaces, nothing left out.")
    task.course.check(made)
    return made


def state_data(states: Mapping[int, State]) -> dict[str, str]:
    """Return the states of all rounds as JSON has them."""
    return {str(number): state for number, state in sorted(states.items())}
