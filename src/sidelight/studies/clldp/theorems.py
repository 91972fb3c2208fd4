"""Paper CLLDP, Theorem 3: how the variance of kHR changes with k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sidelight.labels import HeadsResponse, Omega
from sidelight.studies.clldp.records import LABELS, SYNTHETIC, VALUES, synthetic_conditionals
from sidelight.studies.register import beside
from sidelight.studies.study import Kind, Reading, StudyResult, Verdict, Work, plain_table

EPSILON = 3.0
"""The budget of Fig. 6."""
LARGEST = 100


@dataclass(frozen=True)
class WidthRow:
    """The variance at one k."""

    data: str  # the set of records
    k: int  # how many bits are set
    omega: float  # adversarial belief at that k
    variance: float  # of one cell's frequency for one person, eq. (7)


def width_rows(_quick: bool) -> list[WidthRow]:
    """Return eq. (7)'s variance for every k of Fig. 6."""
    rows = []
    for name in SYNTHETIC:
        omega = Omega.known(synthetic_conditionals(name))
        for width in range(1, LARGEST + 1):
            response = HeadsResponse(VALUES, LABELS, EPSILON, width, omega.at(width))
            rows.append(WidthRow(name, width, omega.at(width), cell_variance(response)))
    return rows


def cell_variance(response: HeadsResponse) -> float:
    """Return q (1 - q) / (p - q)^2 (CLLDP, eq. (7)), for one person.

    >>> round(cell_variance(HeadsResponse(50, 5, 3.0, 1, 0.6387)), 3)
    0.312
    """
    high, low = float(response.mechanism.mark_if_true), float(response.mechanism.mark_if_other)
    return low * (1 - low) / (high - low) ** 2


def _judge_theorem_3(rows: Sequence[WidthRow]) -> StudyResult:
    steps = [(a, b) for a, b in pairwise(rows) if a.data == b.data and b.omega < 1]
    # by more than rounding; the theorem says that it rises while omega is below 1
    falls = [(a, b) for a, b in steps if b.variance < a.variance * (1 - 1e-9)]
    kind: Kind = "refuted" if falls else "reproduced"
    share = f"{len(falls)} of {len(steps)}"
    case = ""
    if falls:
        a, b = min(falls, key=lambda step: (step[0].k, step[0].omega))
        case = (
            f"{a.data} at epsilon {EPSILON:g}: from k = {a.k} to {b.k} omega rises from {a.omega:.3f} to "
            f"{b.omega:.3f} and the variance of a cell falls from {a.variance:.3f} to {b.variance:.3f}"
        )
    reason = (
        f"of the steps of k at which omega is still below 1 the variance falls in {share}; its proof takes q "
        "alone to decide the numerator and omega alone to decide p, and k itself counts in both"
    )
    ours = beside("clldp-theorem3", f"falls in {share} steps")
    return StudyResult(Verdict(kind, reason, case), ours, *plain_table(rows))


STUDIES = {"clldp-theorem3": Reading(Work("clldp-theorem3", width_rows), _judge_theorem_3)}
