"""Tasks: what is collected, from whom, for what purpose and for how long. They never change.

A task is a document; its id is the SHA-256 of its bytes. It says everything that a person's device must know
before it answers: the design with its budgets, the smallest crowd that figures are shown of, how long
anything is kept. What is learnt on the way (a second phase) is in the documents of its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from sidelight.foundation.errors import InputError, check_is, check_whole, invalid
from sidelight.foundation.strict import Strict, validated, versioned
from sidelight.protocols.files import (
    AttributeFile,
    attribute_data,
    attribute_from,
    protocol_data,
    protocol_from,
)
from sidelight.protocols.protocol import Design, Protocol
from sidelight.protocols.two_phase import DesignFile, TwoPhase
from sidelight.schema import Schema
from sidelight.service.canonical import canonical, digest_of, parsed_document

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
class Task:
    """A collection: a design, a purpose in words, whom to ask about it, and its terms.

    Attributes:
        design: a protocol, asked in each of the rounds, or a two-phase design, whose phases are its rounds.
        purpose: what the figures are for, in words that every participant reads.
        contact: whom to write to.
        rounds: how often a protocol is asked, each time with fresh noise; 2 for a two-phase design.
        terms: of the collection.
    """

    design: Design
    purpose: str
    contact: str
    rounds: int = 1
    terms: Terms = field(default_factory=Terms)

    def __post_init__(self) -> None:
        check_is("design", self.design, Design, "make_protocol makes one.")
        for name, text in (("purpose", self.purpose), ("contact", self.contact)):
            if not isinstance(text, str) or not text.strip() or len(text) > MOST_TEXT:
                raise invalid(name, f"a text of 1 to {MOST_TEXT} characters", text)
        check_whole("rounds", self.rounds, at_least=1, at_most=MOST_ROUNDS)
        if self.design.two_phase is not None and self.rounds != 2:
            raise invalid("rounds", "2, the phases of a two-phase design", self.rounds)

    @cached_property
    def document(self) -> bytes:
        """The task as canonical JSON."""
        phased = self.design.two_phase
        asked: dict[str, Any]
        if phased is None:
            asked = {"protocol": protocol_data(self.design.first)}
        else:
            attributes = [attribute_data(attribute) for attribute in phased.schema]
            asked = {"phases": {**phased.to_data(), "attribute": attributes}}
        return canonical(
            {
                "version": TASK_VERSION, "purpose": self.purpose, "contact": self.contact,
                "rounds": self.rounds, "terms": vars(self.terms), **asked,
            }
        )  # fmt: skip

    @cached_property
    def id(self) -> str:
        """What names the task: the SHA-256 of its document."""
        return digest_of(self.document)

    @property
    def epsilon(self) -> float:
        """What one person's answers spend at most; who answers one of two phases leaves out the other."""
        each = self.design.first.epsilon
        return each if self.design.two_phase is not None else self.rounds * each

    def check_number(self, number: int) -> int:
        """Return a round's number, or raise if there is no such round."""
        return check_whole("round", number, at_least=1, at_most=self.rounds)

    def learns_from(self, number: int) -> tuple[int, ...]:
        """Return the rounds whose sums a round's document is computed from."""
        return (1,) if self.design.two_phase is not None and number == 2 else ()

    def read_together(self, number: int) -> tuple[int, ...]:
        """Return the rounds whose sums are estimated from together, up to this one."""
        return tuple(range(1, number + 1)) if self.design.two_phase is not None else (number,)


class _TermsFile(Strict):
    smallest_crowd: int = SMALLEST_CROWD
    retention_days: int | None = None
    most_reports: int | None = None
    needs_token: bool = False
    keeps_reports: bool = False


class _PhasesFile(DesignFile):
    attribute: list[AttributeFile]


class _TaskFile(Strict):
    version: Literal[1]
    purpose: str
    contact: str
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] | None = None
    terms: _TermsFile = Field(default_factory=_TermsFile)
    protocol: dict[str, Any] | None = None
    phases: _PhasesFile | None = None


def task_from(data: Mapping[str, Any], label: str = "the task") -> Task:
    """Return the task that plain data describe; what is left out gets its default."""
    parsed = versioned(_TaskFile, data, label, TASK_VERSION, "task")
    if (parsed.protocol is None) == (parsed.phases is None):
        raise InputError(f"{label} must have either `protocol` or `phases`; give one of them.")
    design = _design(parsed, label)
    rounds = parsed.rounds if parsed.rounds is not None else 1 if design.two_phase is None else 2
    try:
        return Task(design, parsed.purpose, parsed.contact, rounds, Terms(**dict(parsed.terms)))
    except InputError as error:
        raise InputError(f"{label}: {error}") from None


def read_task(document: bytes, digest: str | None = None) -> Task:
    """Return the task of a document, which must be the one that the digest names and written canonically."""
    task = task_from(parsed_document(document, "the task", digest))
    if task.document != document:
        raise InputError("the task is not written as it must be: sorted keys, no spaces, nothing left out.")
    return task


def _design(parsed: _TaskFile, label: str) -> Design:
    if parsed.phases is None:
        made: Protocol = protocol_from(parsed.protocol or {}, f"{label}: protocol")
        return made
    data = dict(parsed.phases)
    attributes = data.pop("attribute")
    try:
        return TwoPhase(Schema(tuple(map(attribute_from, attributes))), **data)
    except InputError as error:
        raise InputError(f"{label}: phases: {error}") from None


def validated_terms(data: Mapping[str, Any]) -> Terms:
    """Return terms from plain data."""
    return Terms(**dict(validated(_TermsFile, data, "terms")))
