"""What the steps of a run work on, made when one asks for it: the table, the belief, the plan as stated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from sidelight.auditing import Audit, Sampling, audit
from sidelight.belief import Belief
from sidelight.calibration.problem import AUTOMATIC
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_choice, naming
from sidelight.mechanisms import MECHANISMS, mechanism_class
from sidelight.plan import AT_DELTA, AdversaryName, Plan, Release
from sidelight.project.file import Project
from sidelight.schema import Attribute
from sidelight.sources import Table, read
from sidelight.transport import true_frequencies

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Bench:
    """A project and what is read and made for its steps, each once; other `rows` can stand for its table."""

    project: Project
    rows: Table | None = None

    @cached_property
    def table(self) -> Table:
        """The table, whose columns the project's secrets and mechanisms must be about."""
        with naming(str(self.project.file)):
            table = read(self.project.source, **self._reading) if self.rows is None else self.rows
        self.project.check_columns(table.schema.names)
        return table

    @property
    def _reading(self) -> dict[str, Any]:
        """How the table is read: as the plan codes values, where one is named."""
        reading = self.project.reading
        if self.given is None:
            return reading
        return reading | {"schema": self.given.schema, "rest": reading.get("schema", True)}

    @cached_property
    def given(self) -> Plan | None:
        """The plan whose releases the project takes, where it names one."""
        path = self.project.plan_file
        return None if path is None else Plan.read(path)

    @cached_property
    def belief(self) -> Belief:
        """What whoever knows the table knows."""
        return Belief.from_data(self.table)

    @cached_property
    def frequencies(self) -> Mapping[str, Array]:
        """The true frequencies of every attribute."""
        return true_frequencies(self.table, self.table.schema)

    @property
    def people(self) -> int:
        """How many people are expected to report."""
        return self.project.wanted.people or self.table.rows

    @property
    def secrets(self) -> list[str]:
        """The secrets: those that are named, or every attribute."""
        return list(self.project.secrets or self.table.schema.names)

    @property
    def decider(self) -> AdversaryName | None:
        """The adversary who decides; None leaves it to the audit."""
        return cast("AdversaryName | None", self.project.protect.decide_by)

    @property
    def delta_of_limits(self) -> float | None:
        """The delta at which limits must be kept; None where they are for the worst case."""
        delta = self.project.protect.delta
        return delta if self.decider is None or self.decider in AT_DELTA else None

    @cached_property
    def stated(self) -> Plan:
        """The plan as the project states it: its budgets, or the one that is audited first."""
        if self.given is not None:
            return self.judged(self.given.releases, self.given.origin)
        with naming(str(self.project.file)):
            releases = [self._release(item) for item in self.table.schema]
            return self.judged(tuple(release for release in releases if release is not None))

    @cached_property
    def audit(self) -> Audit:
        """The audit of the plan as stated, for the project's secrets."""
        protect = self.project.protect
        sampling = Sampling(protect.draws, seed=self.project.seed)
        return audit(self.belief, self.stated, self.secrets, sampling=sampling, adversary=protect.adversary)

    def judged(self, releases: tuple[Release, ...], origin: str = "") -> Plan:
        """Return a plan with the project's limits, reasons and purpose."""
        project = self.project
        limits = project.limits
        usual = None if project.secrets else project.limit
        if project.secrets and project.judges:  # what is no secret may leak
            others = (name for name in self.table.schema.names if name not in project.secrets)
            limits = dict.fromkeys(others, math.inf) | limits
        reasons = {name: item.reason for name, item in project.secrets.items() if item.reason}
        return Plan(
            releases, usual, limits, origin, project.protect.delta, self.decider, reasons, project.purpose
        )

    def _release(self, attribute: Attribute) -> Release | None:
        """Return the release of an attribute with its budget; None where it is withheld."""
        project = self.project.release
        name = project.mechanisms.get(attribute.name, project.mechanism)
        check_choice(f"mechanism of {attribute.name}", name, (AUTO, *MECHANISMS))
        budgets = project.budgets
        if isinstance(budgets, dict):
            budget = budgets.get(attribute.name, project.epsilon)
        else:
            budget = project.epsilon if isinstance(budgets, str) else budgets
        if name == AUTO:
            options = [Release(attribute, option, budget) for option in AUTOMATIC]
            return min(options, key=self._error)
        kind = mechanism_class(name)
        if kind.estimates == "nothing":
            return None
        return Release(attribute, name, budget if kind.has_budget else None)

    def _error(self, release: Release) -> float:
        prior = self.frequencies[release.name]
        return float(release.variance(self.people, prior).sum())

    def kept(self, plan: Plan) -> Plan:
        """Return a plan with the project's reasons and purpose beside its own limits."""
        stated = self.stated
        return replace(plan, reasons=stated.reasons, purpose=stated.purpose)
