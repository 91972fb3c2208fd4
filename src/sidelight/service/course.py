"""Courses: how the rounds of a task follow each other, what each asks of whom, and what comes of their sums.

A course is a design that the service can run. One protocol asked several times and a collection in two phases
are here; panels are in `panels`, label collections in `label_design`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from sidelight.estimation.second_phase import FirstSums, count_pairs, needs_pairs, second_phase_from
from sidelight.foundation.arrays import AnyCodes, Whole
from sidelight.ledger import Question
from sidelight.mechanisms.longitudinal import Memory
from sidelight.protocols.files import attribute_data, protocol_data
from sidelight.protocols.protocol import Design, Protocol
from sidelight.protocols.records import RecordReports, RecordSums, check_same
from sidelight.protocols.two_phase import SecondPhase, TwoPhase
from sidelight.schema import Schema
from sidelight.service.answering import record_question, takes_first
from sidelight.service.canonical import digest_of
from sidelight.service.errors import NotFoundError
from sidelight.service.figures import record_figures
from sidelight.service.rounds import Learnt, Round

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairCounts:
    """Which pairs of attributes a round counts together, beside its sums: their sizes, and how."""

    shapes: Mapping[Pair, tuple[int, int]]
    count: Callable[[RecordReports], Mapping[Pair, Whole]]


@dataclass(frozen=True, eq=False)
class Earlier:
    """What a closed round left: its sums, and their digest."""

    told: FirstSums
    digest: str

    @property
    def sums(self) -> RecordSums:
        """The sums of its reports."""
        return self.told.sums


class Course(Design):
    """How a task goes; frozen data, the same on the server and on the device.

    Attributes:
        opens_itself: whether the service opens every round but the first by itself, once the one before is
            closed.
    """

    opens_itself: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    """Whether a round is opened only after the one before: devices go forward."""
    is_panel: ClassVar[bool] = False
    """Whether the same people are asked in all rounds, which show together how something changes."""
    counted: ClassVar[str] = "as many as its design has"
    """What its rounds are, in words."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds there are at most."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """What one person's answers spend at most."""

    @abstractmethod
    def stated(self) -> dict[str, Any]:
        """Return what the task's document says of it."""

    def learns_from(self, number: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return the rounds whose sums a round's document is computed from."""
        return ()

    def read_together(self, number: int) -> tuple[int, ...]:
        """Return the rounds whose sums are read together, up to this one."""
        return (number,)

    def pairs(self, number: int) -> PairCounts | None:  # noqa: ARG002
        """Return which pairs a round counts beside its sums; None for none."""
        return None

    @abstractmethod
    def made(self, task: str, number: int, earlier: Sequence[Earlier]) -> Round:
        """Return a round, from the sums of the rounds that it learns from."""

    def check(self, found: Round) -> None:
        """Raise unless a round that was read keeps to the course, so that it spends no other budget."""
        check_same(self.first, found.protocol)

    def takes_part(self, person: str, task: str, number: int) -> bool:  # noqa: ARG002
        """Whether a device takes part in a round."""
        return True

    def asked(self, found: Round) -> Schema:
        """Return what a person is asked in a round."""
        del found
        return self.schema

    def question(self, found: Round) -> Question:
        """Return what a round's answer is charged with."""
        return record_question(found.task, found.number, found.protocol)

    def shown(self, found: Round) -> tuple[str, ...]:
        """Return which attributes a report sends as they are, beside what its question is charged."""
        del found
        return ()

    def report(self, found: Round, codes: AnyCodes, memory: Memory) -> RecordReports:
        """Return one person's report of a round, from codes of what is asked and the device's memory."""
        del memory
        return found.protocol.randomise(codes)

    def figures(self, parts: Sequence[FirstSums], estimator: str, confidence: float) -> dict[str, Any]:
        """Return what is shown of the rounds that are read together."""
        return record_figures([part.sums for part in parts], estimator, confidence)

    def over_time(self, sums: Mapping[int, RecordSums], confidence: float) -> dict[str, Any]:  # noqa: ARG002
        """Return what all rounds of a panel show together."""
        raise NotFoundError("the task is no panel.")

    def model(self, task: str, earlier: Sequence[Earlier]) -> dict[str, Any]:  # noqa: ARG002
        """Return the model that the closed rounds led to."""
        raise NotFoundError("the task learns no model; ask for its estimates.")


@dataclass(frozen=True)
class Repeated(Course):
    """One protocol, asked so often, each time with fresh noise."""

    protocol: Protocol
    times: int = 1

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The protocol's."""
        return self.protocol.schema

    @property
    def first(self) -> Protocol:
        """The protocol itself."""
        return self.protocol

    @property
    def rounds(self) -> int:
        """How often it is asked."""
        return self.times

    @property
    def epsilon(self) -> float:
        """The budgets of all rounds."""
        return self.times * self.protocol.epsilon

    def stated(self) -> dict[str, Any]:
        """Return the protocol."""
        return {"protocol": protocol_data(self.protocol)}

    def made(self, task: str, number: int, earlier: Sequence[Earlier]) -> Round:
        """Return a round of the protocol."""
        del earlier
        return Round(task, number, self.protocol)


@dataclass(frozen=True)
class Phased(Course):
    """Two phases, the second learnt from the sums of the first; a person takes part in one of them."""

    counted: ClassVar[str] = "the phases of a two-phase design"
    design: TwoPhase

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The design's."""
        return self.design.schema

    @property
    def first(self) -> Protocol:
        """The first phase."""
        return self.design.first

    @property
    def rounds(self) -> int:
        """Two."""
        return 2

    @property
    def epsilon(self) -> float:
        """The budget of one phase: who takes part in one leaves out the other."""
        return self.first.epsilon

    def stated(self) -> dict[str, Any]:
        """Return the design with its schema."""
        attributes = [attribute_data(attribute) for attribute in self.schema]
        return {"phases": {**self.design.to_data(), "attribute": attributes}}

    def learns_from(self, number: int) -> tuple[int, ...]:
        """Return that the second learns from the first."""
        return (1,) if number == 2 else ()

    def read_together(self, number: int) -> tuple[int, ...]:
        """Return both phases, once there are two."""
        return tuple(range(1, number + 1))

    def pairs(self, number: int) -> PairCounts | None:
        """Return all pairs where the second phase depends on how attributes go together."""
        if number != 1 or not needs_pairs(self.design):
            return None
        sizes = dict(zip(self.schema.names, self.schema.sizes, strict=True))
        shapes = {(a, b): (sizes[a], sizes[b]) for a, b in combinations(self.schema.names, 2)}
        return PairCounts(shapes, count_pairs)

    def made(self, task: str, number: int, earlier: Sequence[Earlier]) -> Round:
        """Return a phase; the second is learnt from the sums of the first."""
        if number == 1:
            return Round(task, 1, self.first)
        parameters = second_phase_from(self.design, earlier[0].told)
        return Round(task, 2, parameters.second, learnt_from(earlier))

    def check(self, found: Round) -> None:
        """Raise unless a phase is the design's."""
        if found.number == 1:
            check_same(self.first, found.protocol)
        else:
            SecondPhase.of(self.design, found.protocol, 0 if found.learnt is None else found.learnt.reports)

    def takes_part(self, person: str, task: str, number: int) -> bool:
        """Whether a device is drawn into a phase."""
        return takes_first(person, task, self.design.share) == (number == 1)


def learnt_from(earlier: Sequence[Earlier]) -> Learnt | None:
    """Return what a round was learnt from; None where nothing was."""
    if not earlier:
        return None
    digests = [item.digest for item in earlier]
    whole = digests[0] if len(digests) == 1 else digest_of("".join(digests).encode())
    return Learnt(sum(item.sums.people for item in earlier), whole)


def course_of(design: Design, rounds: int) -> Course:
    """Return the course of a design, asked so often where it is one protocol."""
    if isinstance(design, Course):
        return design
    if design.two_phase is not None:
        return Phased(design.two_phase)
    return Repeated(design.first, rounds)
