"""Tasks: what is collected, from whom, for what purpose and for how long. They never change.

A task is a document; its id is the SHA-256 of its bytes. It says everything that a person's device must know
before it answers: the design with its budgets, the smallest crowd that figures are shown of, how long
anything is kept. What is learnt on the way (a second phase, a tree) is in the documents of its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from sidelight.foundation.errors import InputError, check_is, check_whole, invalid, naming
from sidelight.foundation.strict import Strict, validated, versioned
from sidelight.protocols.files import AttributeFile, attribute_from, protocol_from
from sidelight.protocols.protocol import Design
from sidelight.protocols.two_phase import DesignFile, TwoPhase
from sidelight.schema import Schema
from sidelight.service.canonical import canonical, digest_of, parsed_document
from sidelight.service.course import Course, course_of
from sidelight.service.label_design import LabelsFile
from sidelight.service.panels import PanelFile

TASK_VERSION = 1
MOST_ROUNDS = 10_000
MOST_PEOPLE = 1 << 40
MOST_TEXT = 10_000
SMALLEST_CROWD = 100
"""Figures of fewer people are not shown unless a task says otherwise: their noise says little else."""


@dataclass(frozen=True)
class Terms:
    """Under which terms a task collects.

    Attributes:
        smallest_crowd: figures of fewer people than this are shown to nobody.
        retention_days: how long after its publication a round's sums and ids are kept; None for ever.
        most_reports: how many reports a round takes; None without end.
        needs_token: whether each report needs a one-time token that the operator gave out.
        keeps_reports: whether the reports themselves are kept beside their sums.
    """

    smallest_crowd: int = SMALLEST_CROWD
    retention_days: int | None = None
    most_reports: int | None = None
    needs_token: bool = False
    keeps_reports: bool = False

    def __post_init__(self) -> None:
        check_whole("smallest_crowd", self.smallest_crowd, at_least=1, at_most=MOST_PEOPLE)
        if self.retention_days is not None:
            check_whole("retention_days", self.retention_days, at_least=0, at_most=100_000)
        if self.most_reports is not None:
            check_whole("most_reports", self.most_reports, at_least=1, at_most=MOST_PEOPLE)


@dataclass(frozen=True)
class Pace:
    """When the service closes a round by itself, and opens the next: at the first of these that comes.

    Attributes:
        reports: when the round has so many; None for any number.
        seconds: so long after it was opened, if the smallest crowd is there; None for ever.
    """

    reports: int | None = None
    seconds: int | None = None

    def __post_init__(self) -> None:
        if self.reports is None and self.seconds is None:
            raise InputError(
                "a pace needs `reports` or `seconds`; leave it out, and an operator closes rounds."
            )
        if self.reports is not None:
            check_whole("reports", self.reports, at_least=1, at_most=MOST_PEOPLE)
        if self.seconds is not None:
            check_whole("seconds", self.seconds, at_least=1, at_most=MOST_PEOPLE)


@dataclass(frozen=True)
class Task:
    """A collection: a design, a purpose in words, whom to ask about it, and its terms.

    Attributes:
        design: a protocol, asked in each of the rounds, a two-phase design, whose phases are its rounds, a
            `PanelDesign` or a `LabelDesign`.
        purpose: what the figures are for, in words that every participant reads.
        contact: whom to write to.
        rounds: how often a protocol is asked, each time with fresh noise; every other design has its own.
        terms: of the collection.
        pace: when rounds go on by themselves; None where an operator closes them.
    """

    design: Design
    purpose: str
    contact: str
    rounds: int = 1
    terms: Terms = field(default_factory=Terms)
    pace: Pace | None = None

    def __post_init__(self) -> None:
        check_is("design", self.design, Design, "make_protocol makes one.")
        for name, text in (("purpose", self.purpose), ("contact", self.contact)):
            if not isinstance(text, str) or not text.strip() or len(text) > MOST_TEXT:
                raise invalid(name, f"a text of 1 to {MOST_TEXT} characters", text)
        check_whole("rounds", self.rounds, at_least=1, at_most=MOST_ROUNDS)
        if self.rounds != self.course.rounds:
            raise invalid("rounds", f"{self.course.rounds}, {self.course.counted}", self.rounds)
        if self.pace is not None and (self.pace.reports or MOST_PEOPLE) < self.terms.smallest_crowd:
            wanted = f"at least the smallest crowd, {self.terms.smallest_crowd}"
            raise invalid("reports of the pace", wanted, self.pace.reports)

    @cached_property
    def course(self) -> Course:
        """How its rounds follow each other."""
        return course_of(self.design, self.rounds)

    @cached_property
    def document(self) -> bytes:
        """The task as canonical JSON."""
        pace = {} if self.pace is None else {"pace": vars(self.pace)}
        return canonical(
            {
                "version": TASK_VERSION, "purpose": self.purpose, "contact": self.contact,
                "rounds": self.rounds, "terms": vars(self.terms), **pace, **self.course.stated(),
            }
        )  # fmt: skip

    @cached_property
    def id(self) -> str:
        """What names the task: the SHA-256 of its document."""
        return digest_of(self.document)

    @property
    def epsilon(self) -> float:
        """What one person's answers spend at most."""
        return self.course.epsilon

    def check_number(self, number: int) -> int:
        """Return a round's number, or raise if there is no such round."""
        return check_whole("round", number, at_least=1, at_most=self.rounds)

    def learns_from(self, number: int) -> tuple[int, ...]:
        """Return the rounds whose sums a round's document is computed from."""
        return self.course.learns_from(number)

    def read_together(self, number: int) -> tuple[int, ...]:
        """Return the rounds whose sums are estimated from together, up to this one."""
        return self.course.read_together(number)


class _TermsFile(Strict):
    smallest_crowd: int = SMALLEST_CROWD
    retention_days: int | None = None
    most_reports: int | None = None
    needs_token: bool = False
    keeps_reports: bool = False


class _PhasesFile(DesignFile):
    attribute: list[AttributeFile]

    def made(self) -> Design:
        data = dict(self)
        attributes = data.pop("attribute")
        return TwoPhase(Schema(tuple(map(attribute_from, attributes))), **data)


class _PaceFile(Strict):
    reports: int | None = None
    seconds: int | None = None


class _TaskFile(Strict):
    version: Literal[1]
    purpose: str
    contact: str
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] | None = None
    terms: _TermsFile = Field(default_factory=_TermsFile)
    pace: _PaceFile | None = None
    protocol: dict[str, Any] | None = None
    phases: _PhasesFile | None = None
    panel: PanelFile | None = None
    labels: LabelsFile | None = None


_DESIGNS = ("protocol", "phases", "panel", "labels")


def task_from(data: Mapping[str, Any], label: str = "the task") -> Task:
    """Return the task that plain data describe; what is left out gets its default."""
    parsed = versioned(_TaskFile, data, label, TASK_VERSION, "task")
    stated = {name: part for name, part in dict(parsed).items() if name in _DESIGNS and part is not None}
    if len(stated) != 1:
        named = ", ".join(f"`{name}`" for name in _DESIGNS)
        raise InputError(f"{label} must have exactly one of {named}; it has {', '.join(stated) or 'none'}.")
    ((name, part),) = stated.items()
    with naming(f"{label}: {name}"):
        design = protocol_from(part, "the protocol") if name == "protocol" else part.made()
    rounds = parsed.rounds if parsed.rounds is not None else course_of(design, 1).rounds
    with naming(label):
        pace = None if parsed.pace is None else Pace(**dict(parsed.pace))
        return Task(design, parsed.purpose, parsed.contact, rounds, Terms(**dict(parsed.terms)), pace)


def read_task(document: bytes, digest: str | None = None) -> Task:
    """Return the task of a document, which must be the one that the digest names and written canonically."""
    task = task_from(parsed_document(document, "the task", digest))
    if task.document != document:
        raise InputError("the task is not written as it must be: sorted keys, no spaces, nothing left out.")
    return task


def validated_terms(data: Mapping[str, Any]) -> Terms:
    """Return terms from plain data."""
    return Terms(**dict(validated(_TermsFile, data, "terms")))
