"""What a whole record's report really spends, by enumeration, and between which records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_choice, check_is
from sidelight.protocols.protocol import Protocol

Neighbours = Literal["any two records", "records that differ in one attribute"]
NEIGHBOURS = ("any two records", "records that differ in one attribute")


@dataclass(frozen=True)
class RecordBudget:
    """The exact budget of a report between neighbouring records.

    Attributes:
        epsilon: the largest log-ratio of a report's probabilities.
        neighbours: between which records.
        nominal: what the protocol states for any two records.
        method: how it was found.
    """

    epsilon: float
    neighbours: Neighbours
    nominal: float
    method: str = "enumeration of every record and report"


def record_budget(protocol: Protocol, neighbours: Neighbours = "any two records") -> RecordBudget:
    """Return the exact budget of a report, by enumerating the protocol's law.

    "Amplification by sampling" is what is left for records that differ in one attribute only, when the
    choice is hidden. It is never assumed: the published ln(d (e^eps - 1) + 1) fails for most protocols.
    """
    fix = "advise(...).choice is one, and so are the reports' collected.protocol."
    check_is("protocol", protocol, Protocol, fix)
    check_choice("neighbours", neighbours, NEIGHBOURS)
    law = protocol.matrix()
    if neighbours == "any two records":
        return RecordBudget(_largest_ratio(law), neighbours, protocol.epsilon)
    shaped = law.reshape(*protocol.schema.sizes, -1)
    worst = 0.0
    for axis in range(len(protocol.schema)):
        moved = np.moveaxis(shaped, axis, 0)
        worst = max(worst, _largest_ratio(moved.reshape(moved.shape[0], -1)))
    return RecordBudget(worst, neighbours, protocol.epsilon)


def _largest_ratio(law: Array) -> float:
    """Return the largest log-ratio within a column; a zero beside a non-zero is infinite."""
    high, low = law.max(axis=0), law.min(axis=0)
    used = high > 0
    if np.any(low[used] == 0):
        return float("inf")
    return float(np.max(np.log(high[used]) - np.log(low[used]), initial=0.0))
