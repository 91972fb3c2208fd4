"""Released: the reports that people sent about single attributes, one row for each person.

Beside it what any release says: as evidence about whole records, for every protocol of a collection, and at
face value, in words and with the secret's own report taken for the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, invalid, unknown
from sidelight.foundation.files import REPORTS_KEY
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms import Reports
from sidelight.plan import Plan, Release
from sidelight.protocols.factors import Choice, Factor
from sidelight.protocols.protocol import Rows, check_records
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema

Batch = tuple[Rows, list[Factor]]
"""Some people's rows and what their reports say."""


@dataclass(frozen=True, eq=False)
class Released:
    """What an attacker sees: the plan, and so many people's reports of every released attribute.

    Where the reports are shuffled their rows are in another order than the people.
    """

    plan: Plan
    columns: Mapping[str, Reports]
    people: int
    is_shuffled: bool = False

    def __post_init__(self) -> None:
        for name in self.plan.names:
            if name not in self.columns:
                raise InputError(f"the plan releases {name!r}, but there are no reports of it.")
        for name, reports in self.columns.items():
            if name not in self.plan.names:
                raise unknown("released attribute", name, self.plan.names)
            if (count := len(reports)) != self.people:
                raise InputError(f"{self.people} people reported {name!r}, but there are {count} reports.")

    @classmethod
    def of(cls, reports: Released | RecordReports) -> Released:
        """Take a collection in which everyone reports single attributes: by a plan, or SPL."""
        if isinstance(reports, Released):
            return reports
        protocol = check_collected(reports).protocol
        is_partial = any(rows is not None for rows in reports.senders)
        if not protocol.groups or is_partial or any(len(group.names) > 1 for group in protocol.groups):
            raise InputError(
                "a learnt attack reads everyone's reports of single attributes, collected by a plan or SPL; "
                f"got {protocol.name}. Take the Bayes attack."
            )
        parts = tuple(
            Release(protocol.schema[group.label], group.mechanism, group.epsilon, parameters=group.parameters)
            for group in protocol.groups
        )
        columns = dict(zip(protocol.labels, reports.parts, strict=True))
        return cls(Plan(parts), columns, reports.people, reports.is_shuffled)

    def __len__(self) -> int:
        return self.people

    def __getitem__(self, name: str) -> Reports:
        if name not in self.columns:
            raise unknown("released attribute", name, self.columns)
        return self.columns[name]

    def batches(self, step: int) -> Iterator[Batch]:
        """Return what runs of at most so many people say of each attribute."""
        mechanisms = {part.name: part.randomiser() for part in self.plan.releases}
        telling = {name: mechanism for name, mechanism in mechanisms.items() if mechanism.epsilon}
        for start in range(0, self.people, step):
            span = slice(start, min(start + step, self.people))
            said = {name: each.likelihoods(self[name][span]).T for name, each in telling.items()}
            yield span, [Choice({name: likely}) for name, likely in said.items()]


def check_collected(reports: object) -> RecordReports:
    """Return reports after checking that they are what `collect` returns."""
    if not isinstance(reports, RecordReports):
        raise invalid("reports", "what `collect` or `release` returned", type(reports).__name__)
    return reports


def evidence_of(
    reports: Released | RecordReports,
) -> tuple[Schema, int, Callable[[int], Iterator[Batch]]]:
    """Return the attributes, the most values that a part of a report is about, and what reports say.

    The last goes from the largest number of rows to what people say, each person once; who did not report an
    attribute says nothing of it.
    """
    if isinstance(reports, Released):
        schema = reports.plan.schema
        return schema, max(schema.sizes), reports.batches
    protocol = check_collected(reports).protocol
    return protocol.schema, protocol.widest_factor, partial(protocol.evidence, reports)


def is_reports_file(path: str | Path) -> bool:
    """Whether the file is Parquet and names the protocol of its reports."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        return False
    try:
        return REPORTS_KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def release(codes: ArrayLike, schema: Schema, plan: Plan, *, seed: int | None = None) -> Released:
    """Randomise coded records, one column for each attribute of the schema, as the plan says.

    Each person reports once; the noise is secure without a seed, a simulation with one.
    """
    array = check_records(codes, schema)
    columns = {}
    for part in plan.releases:
        if part.times > 1:
            raise invalid(f"times of {part.name}", "1 for an attack", part.times, "Release it once.")
        if schema[part.name] != part.attribute:
            raise InputError(f"the plan codes {part.name!r} in another way than the records.")
        mechanism = part.randomiser()
        inputs = mechanism.inputs(array[:, schema.index(part.name)])
        columns[part.name] = mechanism.randomise(inputs, seed=derive_seed(seed, part.name))
    return Released(plan, columns, len(array))


def face_value(reports: Released | RecordReports, secret: str, points: Array | None) -> NDArray[Any] | None:
    """Return the secret's own report as a guess; None where it is not released or is no single value.

    `points` are the numbers that stand for its values; None where codes are guessed.
    """
    if not isinstance(reports, Released):
        codes = reports.protocol.face_value(reports, secret)
        return codes if codes is None or points is None else points[codes]
    if secret not in reports.plan.names:
        return None
    mechanism = reports.plan[secret].randomiser()
    codes = mechanism.face_value(reports[secret])
    if codes is None or points is None:
        return codes
    return reports[secret].values if mechanism.form.encoding == "numbers" else points[codes]


def describe_release(reports: Released | RecordReports) -> str:
    """Say in a few words what was released."""
    if isinstance(reports, Released):
        return describe_plan(reports.plan)
    protocol = reports.protocol
    kinds = sorted({group.mechanism for group in protocol.groups})
    through = f" through {', '.join(kinds)}" if kinds else ""
    budget = f"budget {protocol.epsilon:.4g} a record"
    return f"{len(protocol.schema)} attributes by {protocol.name}{through}, {budget}"


def describe_plan(plan: Plan) -> str:
    """Say in a few words what a plan releases."""
    kinds = sorted({release.mechanism for release in plan.releases})
    budgets = sorted({release.epsilon for release in plan.releases if release.epsilon is not None})
    spent = f", budget {budgets[0]:.3g}" if budgets else ""
    spent += f" to {budgets[-1]:.3g}" if len(budgets) > 1 else ""
    return f"{len(plan.releases)} attributes through {', '.join(kinds)}{spent}"
