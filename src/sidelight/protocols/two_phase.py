"""Two phases as three files: reports of the first phase, published parameters, reports of the second.

Each step stands on its own and can be taken up later by someone else. Later rounds learn from all reports of
first phases so far (iterative refinement, Corr-RR section 3.3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from sidelight.foundation.arrays import Mask
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole
from sidelight.foundation.randomness import randomness
from sidelight.foundation.strict import Strict, read_data, versioned, write_data
from sidelight.protocols import files
from sidelight.protocols.direct import spl
from sidelight.protocols.fake_data import FakeDataProtocol
from sidelight.protocols.protocol import Design, Protocol, check_budget
from sidelight.protocols.records import FirstPhase, RecordReports, check_same, fingerprint
from sidelight.protocols.sets import SetSample, pairs
from sidelight.schema import Schema

Method = Literal["corr-rr", "cond-rr", "pairs"]
METHODS = ("corr-rr", "cond-rr", "pairs")
Copying = Literal["published", "corrected"]
COPYING = ("published", "corrected")
PARAMETERS_VERSION = 1
_WORDS = 2.0**64


@dataclass(frozen=True)
class TwoPhase(Design):
    """Corr-RR, Cond-RR or pairs: what the first phase does and how the second is derived from it.

    The method is to copy what was reported ("corr-rr", with p_y set as `copying` says), to draw from
    conditionals ("cond-rr"), or to report one set of attributes, a random pair in the first phase, and in the
    second what the evidence of dependence makes worth reporting ("pairs"). The budget is that of a record, in
    either phase; a share of all people take part in the first, and the second divides the attributes into so
    many groups (Corr-RR section 3.3.3).
    """

    schema: Schema
    epsilon: float
    method: Method = "corr-rr"
    copying: Copying = "published"
    share: float = 0.1
    groups: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget(self.epsilon))
        check_choice("method", self.method, METHODS)
        check_choice("copying", self.copying, COPYING)
        check_number("share", self.share, above=0, below=1)
        check_whole("groups", self.groups, at_least=1, at_most=len(self.schema))
        if self.method == "pairs":
            _ = self.first  # there must be a pair

    @cached_property
    def first(self) -> Protocol:
        """The first phase: a random pair, or every attribute with an even share of the budget (GRR)."""
        if self.method == "pairs":
            return pairs(self.schema, self.epsilon)
        return spl(self.schema, self.epsilon)

    @property
    def two_phase(self) -> TwoPhase:
        """The design itself."""
        return self

    @property
    def phase(self) -> FirstPhase:
        """What the first phase's reports say about this collection."""
        return FirstPhase(method=self.method, epsilon=self.epsilon, share=self.share)

    def to_data(self) -> dict[str, Any]:
        """Return the design without its schema as plain data."""
        return {name: value for name, value in vars(self).items() if name in DesignFile.model_fields}

    def in_first(self, people: int, offset: int = 0) -> Mask:
        """Return who takes part in the first phase, by position; the choice is public and always the same."""
        return _in_first(self.share, people, offset)


def corr_rr(schema: Schema, epsilon: float, share: float = 0.1) -> TwoPhase:
    """Return Corr-RR: fakes copy what was reported, as likely as the first phase suggests."""
    return TwoPhase(schema, epsilon, "corr-rr", share=share)


def cond_rr(schema: Schema, epsilon: float, share: float = 0.1) -> TwoPhase:
    """Return Cond-RR: fakes are drawn from the conditionals that the first phase suggests."""
    return TwoPhase(schema, epsilon, "cond-rr", share=share)


def adaptive_pairs(schema: Schema, epsilon: float, share: float = 0.2) -> TwoPhase:
    """Return pairs in two phases: random ones tell which attributes depend on each other, see `TwoPhase`."""
    return TwoPhase(schema, epsilon, "pairs", share=share)


@dataclass(frozen=True, eq=False)
class SecondPhase:
    """What the server publishes between the phases: in this round, from so many reports of first phases."""

    design: TwoPhase
    second: Protocol
    reports: int
    round_number: int = 1

    def write(self, path: str | Path) -> Path:
        """Write the parameters to a .toml or .json file."""
        second = files.protocol_data(self.second)
        head = {"version": PARAMETERS_VERSION, "round": self.round_number, "reports": self.reports}
        return write_data({**head, "design": self.design.to_data(), "second": second}, path)

    @classmethod
    def read(cls, path: str | Path) -> SecondPhase:
        """Read parameters from a .toml or .json file."""
        data = read_data(path)
        files.check_kind(data, str(path), "parameters")
        parsed = versioned(_ParametersFile, data, str(path), PARAMETERS_VERSION, "parameter file")
        second = files.protocol_from(parsed.second, f"{path}: second")
        try:
            design = TwoPhase(second.schema, **dict(parsed.design))
            return cls.of(design, second, parsed.reports, parsed.round)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def of(cls, design: TwoPhase, second: Protocol, reports: int, round_number: int = 1) -> SecondPhase:
        """Return a protocol that others may have made as the second phase of a design, or raise."""
        _check_agrees(design, second)
        return cls(design, second, reports, round_number)


def phase_rows(reports: RecordReports, people: int, parameters: SecondPhase | None = None) -> Mask | None:
    """Return which of the whole table's rows reports of one phase are of; None where nothing says so.

    Those of a first phase say its share; those of a second need the parameters they were collected with.
    """
    if parameters is not None:
        check_same(parameters.second, reports.protocol)
        return ~parameters.design.in_first(people)
    return None if reports.phase is None else _in_first(reports.phase.share, people)


def _in_first(share: float, people: int, offset: int = 0) -> Mask:
    words = randomness(0, "collection/phase").words(offset, people)  # a public seed: all must agree
    return np.asarray(words < np.uint64(min(share * _WORDS, _WORDS - 2048)))  # 2^64 would wrap to 0


def origin_of(first: Protocol) -> str:
    """Return how the origin of a second phase begins that was learnt from this first one."""
    return f"first phase {fingerprint(first)},"


def _check_agrees(design: TwoPhase, second: Protocol) -> None:
    """Raise unless a second phase is the design's, so that a changed file spends no other budget."""
    for what, stated, wanted in _agreement(design, second):
        if stated != wanted:
            must = f"the {what} of the second phase must be the design's"
            raise InputError(f"{must}, {wanted!r}, got {stated!r}; learn again.")
    if second.first_phase != fingerprint(design.first):
        raise InputError("the second phase was not learnt from this design's first phase; learn again.")


def _agreement(design: TwoPhase, second: Protocol) -> list[tuple[str, object, object]]:
    """Return what must agree: its name, what the second phase states and what the design does."""
    if design.method == "pairs":
        budgets = {group.epsilon for group in second.groups} or {None}
        return [
            ("kind", second.kind, SetSample.kind),
            ("number of groups", 1, design.groups),
            *(("epsilon", budget, design.epsilon) for budget in budgets),
        ]
    if not isinstance(second, FakeDataProtocol):
        raise InputError(f"the second phase must hide its choice, got {second.name!r}.")
    return [
        ("epsilon", second.nominal_budget, design.epsilon),
        ("name", second.name, design.method),
        ("number of groups", len(second.partition), design.groups),
    ]


class DesignFile(Strict):
    """A design without its schema, as files have it."""

    epsilon: float
    method: Method
    copying: Copying
    share: float
    groups: int


class _ParametersFile(Strict):
    version: int
    round: int = Field(ge=1)
    reports: int = Field(ge=1)
    design: DesignFile
    second: dict[str, Any]
