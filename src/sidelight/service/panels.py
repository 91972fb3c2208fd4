"""Panels as tasks: the same people asked in rounds, their devices keeping what a panel keeps.

Every device has a memory of its own, in its ledger: one response for a value is made once in an epoch and
reported again, as `protocols.Panel` says. An epoch is one task's: a later panel about the same attribute asks
for the value of its own time, and is charged for it. The service sees reports that nothing links, so it knows
how many people a round has, and not which of them were there before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sidelight.estimation.round_estimates import estimate_round_sums
from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import Strict
from sidelight.ledger import Charge, Question
from sidelight.ledger.question import charge_for
from sidelight.ledger.units import UNITS
from sidelight.mechanisms import Reports
from sidelight.mechanisms.longitudinal import Device, Memory, StoredMemory
from sidelight.plan import Plan
from sidelight.protocols.groups import ReportedGroup
from sidelight.protocols.panel import Panel
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import Division, PanelRound, RecordReports, RecordSums, check_same
from sidelight.schema import Schema
from sidelight.service.answering import drawn_place
from sidelight.service.course import Course, Earlier
from sidelight.service.rounds import Round


@dataclass(frozen=True)
class PanelDesign(Course):
    """A panel: every released attribute is asked in all rounds."""

    in_order: ClassVar[bool] = True
    is_panel: ClassVar[bool] = True
    counted: ClassVar[str] = "the rounds of its panel"
    panel: Panel

    def __post_init__(self) -> None:
        times = {
            release.name: release.times
            for release in self.panel.plan.releases
            if release.mechanism != "withheld"
        }
        if len(set(times.values())) > 1:
            said = ", ".join(f"{name!r} {count} times" for name, count in times.items())
            raise InputError(
                f"a task asks all its attributes in every round, and the plan asks for {said}; make a task "
                "for each number of times: a device's ledger holds a task to its budgets."
            )

    @cached_property
    def first(self) -> Protocol:
        """The protocol of every round."""
        return self.panel.protocol(1)

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """What is asked in every round."""
        return self.first.schema

    @property
    def rounds(self) -> int:
        """How many the plan has."""
        return self.panel.rounds

    @property
    def epsilon(self) -> float:
        """What all of a person's reports are charged: a kept response once in an epoch, however often."""
        if math.isinf(self.panel.spent):  # memos as they are, of every new value
            return math.inf
        numbers = range(1, 2 if self.panel.division == "people" else self.rounds + 1)
        charges = [(n, self._charge(group, n)) for n in numbers for group in self.first.groups]
        counted = {charge.memo or (number, charge.attribute): charge.units for number, charge in charges}
        return sum(counted.values()) / UNITS

    def stated(self) -> dict[str, Any]:
        """Return the panel as plain data."""
        plan, panel = json.loads(self.panel.plan.to_json()), self.panel
        said = {"division": panel.division, "epoch": panel.epoch, "follow_changes": panel.follow_changes}
        return {"panel": {"plan": plan, **said}}

    def made(self, task: str, number: int, earlier: Sequence[Earlier]) -> Round:
        """Return a round."""
        del earlier
        return Round(task, number, self.panel.protocol(number))

    def check(self, found: Round) -> None:
        """Raise unless a round is the panel's."""
        check_same(self.panel.protocol(found.number), found.protocol)

    def takes_part(self, person: str, task: str, number: int) -> bool:
        """Whether a device reports in a round: in all, or where people are divided in the one it drew."""
        if self.panel.division != "people":
            return True
        return drawn_place(person, task, "round", self.rounds) + 1 == number

    def question(self, found: Round) -> Question:
        """Return what a round charges: a kept response once in its epoch, fresh noise each time."""
        charges = [self._charge(group, found.number, found.task) for group in self.first.groups]
        return Question(found.task, found.number, tuple(charges))

    def _charge(self, group: ReportedGroup, number: int, task: str = "") -> Charge:
        if group.label not in self.panel.kept:
            return Charge.fresh(group.label, group.randomiser)
        # What is charged does not depend on what is remembered.
        return charge_for(self._device(group, StoredMemory(), task), number - 1)

    def _device(self, group: ReportedGroup, memory: Memory, task: str) -> Device:
        attribute, panel = self.panel.plan[group.label].attribute, self.panel
        return Device(group.randomiser, attribute, memory, panel.epoch, panel.follow_changes, task)

    def report(self, found: Round, codes: AnyCodes, memory: Memory) -> RecordReports:
        """Return one person's report: of kept responses, or with fresh noise."""
        protocol = found.protocol
        parts = tuple(self._part(group, found, codes, memory) for group in protocol.groups)
        return RecordReports(protocol, parts, (None,) * len(parts), 1)

    def _part(self, group: ReportedGroup, found: Round, codes: AnyCodes, memory: Memory) -> Reports:
        own = group.codes(codes, found.protocol.schema)
        if group.label not in self.panel.kept:
            return group.randomiser.randomise(own)
        return self._device(group, memory, found.task).report(int(own[0]), found.number - 1)

    def over_time(self, sums: Mapping[int, RecordSums], confidence: float) -> dict[str, Any]:
        """Return the levels of every round and how they change, as `sl.estimate_rounds` has them."""
        stamps = {number: self.stamp(number, part.people) for number, part in sums.items()}
        said: dict[str, Any] = json.loads(estimate_round_sums(sums, stamps, confidence=confidence).to_json())
        said.pop("is_simulation")
        return said

    def stamp(self, number: int, people: int) -> PanelRound:
        """Return what is known of a round's reports: not who was there before."""
        panel = self.panel
        kept = [group.label for group in self.first.groups if group.label in panel.kept]
        return PanelRound(
            panel="", number=number, rounds=panel.rounds, people=people, kept=kept, epoch=panel.epoch,
            follow_changes=panel.follow_changes, division=panel.division,
        )  # fmt: skip


class PanelFile(Strict):
    """A panel as a task's document has it."""

    plan: dict[str, Any]
    division: Division = "none"
    epoch: int | None = None
    follow_changes: bool = False

    def made(self) -> PanelDesign:
        """Return the design."""
        plan = Plan.from_json(json.dumps(self.plan))
        return PanelDesign(Panel(plan, self.division, self.epoch, self.follow_changes))
