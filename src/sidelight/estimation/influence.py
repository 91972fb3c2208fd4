"""How far forged reports can move a figure.

A server cannot tell an honest report from one that somebody made up: both look like what the randomiser can
make. What it can say is how much a made-up report weighs. If a share s of all reports is forged, an unbiased
estimate moves by at most s times the figure given here; it is about the inverse of what noise leaves of an
answer (Cheu, Smith, Ullman 2021: manipulation attacks are stronger the more private the reports are).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidelight.estimation.linear import split
from sidelight.estimation.unbiased import Inversion, unbiased
from sidelight.foundation.arrays import Array
from sidelight.protocols.groups import ReportedGroup
from sidelight.protocols.records import RecordSums

_STEP = 1e-4
"""Of all people: so many are moved to see how much an estimate follows."""


def influence(parts: Sequence[RecordSums]) -> dict[str, Array]:
    """Return by attribute, for each value, how far its unbiased estimate moves per share of forged reports.

    For protocols whose choice is hidden the estimate is solved from all columns together; there the figure is
    its slope at the sums, summed over the columns that a forger fills in. Infinite where nothing bounds it,
    as for noise on numbers whose reports have no marks.
    """
    people = sum(part.people for part in parts)
    if any(part.protocol.is_linear for part in parts):
        return _slopes(parts, people)
    weights: dict[str, list[Array]] = {}
    for part in parts:
        if part.people:
            for name, reach in _reaches(part).items():
                weights.setdefault(name, []).append(reach)
    # Whoever combines several estimates moves no further than the one that moves most.
    return {name: np.max(several, axis=0) for name, several in weights.items()}


def _reaches(part: RecordSums) -> dict[str, Array]:
    """Return how far apart one report can put each estimate, times all people over its part's senders."""
    protocol = part.protocol
    if not protocol.groups:
        inverse = Inversion.of(protocol).weights
        return split(inverse.max(axis=0) - inverse.min(axis=0), protocol.schema)
    reaches: dict[str, Array] = {}
    for group, sums in zip(protocol.groups, part.parts, strict=True):
        share = part.people / sums.reports if sums.reports else np.inf
        for name, size in zip(group.names, group.sizes, strict=True):
            one = np.full(size, _reach(group, size) * share)
            reaches[name] = np.maximum(reaches[name], one) if name in reaches else one
    return reaches


def _reach(group: ReportedGroup, size: int) -> float:
    """Return how far apart one report's estimates of a value can be.

    A report that marks values adds (marks - q)/(p - q); of the cells that belong to a value of a product
    domain it marks none up to all, or as many as a report has.
    """
    mechanism = group.randomiser
    if mechanism.mark_rates is None:
        law = mechanism.report_law(1 << 12)
        if law is None:
            return np.inf
        inverse = np.linalg.pinv(law)
        return float((inverse.max(axis=0) - inverse.min(axis=0)).max())
    keep, other = map(float, mechanism.mark_rates)
    cells = group.size // size
    marks = cells if mechanism.set_size is None else min(cells, mechanism.set_size)
    return marks / (keep - other)


def _slopes(parts: Sequence[RecordSums], people: int) -> dict[str, Array]:
    """Return how far estimates follow counts, by moving a few of them, one code after the other."""
    start = {name: item.estimate for name, item in unbiased(parts).items()}
    total = {name: np.zeros_like(item) for name, item in start.items()}
    for place, part in enumerate(parts):
        worst = {name: np.zeros_like(item) for name, item in start.items()}
        for label in range(len(part.parts)):
            moved = [_moved(parts, place, label, code) for code in range(part.parts[label].sums.size)]
            for name, item in start.items():
                shifts = np.array([(other[name] - item) / _STEP for other in moved])
                worst[name] += shifts.max(axis=0) - shifts.min(axis=0)
        scale = people / part.people if part.people else np.inf
        total = {name: np.maximum(total[name], worst[name] * scale) for name in total}
    return total


def _moved(parts: Sequence[RecordSums], place: int, label: int, code: int) -> dict[str, Array]:
    """Return the estimates with a few more people who sent this code in this part."""
    part = parts[place]
    sums = part.parts[label].sums.astype(np.float64)
    sums[code] += _STEP * part.people
    columns = list(part.parts)
    columns[label] = replace(columns[label], sums=sums)  # type: ignore[arg-type]
    changed = [*parts[:place], replace(part, parts=tuple(columns)), *parts[place + 1 :]]
    return {name: item.estimate for name, item in unbiased(changed).items()}
