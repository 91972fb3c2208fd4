"""Evidence: what reports say about whole records, for every protocol of a collection and every release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sidelight.attacks.released import Released, check_collected
from sidelight.foundation.arrays import Array
from sidelight.mechanisms import Mechanism
from sidelight.protocols.factors import Choice, Factor
from sidelight.protocols.protocol import Rows
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema

Batch = tuple[Rows, list[Factor]]
"""Some people's rows and what their reports say."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an attacker reads.

    Attributes:
        schema: the attributes that the reports are about.
        people: how many people reported.
        cells: the largest number of values that a part of a report is about.
        batches: from the largest number of rows to what people say, each person once.
    """

    schema: Schema
    people: int
    cells: int
    batches: Callable[[int], Iterator[Batch]]


def evidence_of(reports: Released | RecordReports) -> Evidence:
    """Return what reports of any protocol say."""
    if isinstance(reports, Released):
        return _released(reports)
    protocol = check_collected(reports).protocol
    cells, batches = protocol.widest_factor, lambda step: protocol.evidence(reports, step)
    return Evidence(protocol.schema, reports.people, cells, batches)


def _released(released: Released) -> Evidence:
    """Who did not report an attribute says nothing of it."""
    mechanisms = {part.name: part.randomiser() for part in released.plan.releases}
    telling = {name: mechanism for name, mechanism in mechanisms.items() if mechanism.epsilon}

    def batches(step: int) -> Iterator[Batch]:
        for start in range(0, len(released), step):
            span = slice(start, min(start + step, len(released)))
            yield span, [Choice({name: _said(released, name, each, span)}) for name, each in telling.items()]

    schema = released.plan.schema
    return Evidence(schema, len(released), max(schema.sizes), batches)


def _said(released: Released, name: str, mechanism: Mechanism, span: slice) -> Array:
    reports, rows = released.part(name, span.start, span.stop)
    likely = mechanism.likelihoods(reports).T
    if rows is None:
        return likely
    everyone = np.ones((len(likely), span.stop - span.start))
    everyone[:, rows] = likely
    return everyone
