"""Paper Corr-RR, Theorems 4 and 5: the error of its second phase, and the budget of a whole record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from sidelight.estimation.second_phase import copy_laws
from sidelight.foundation.arrays import Array
from sidelight.protocols.direct import spl
from sidelight.protocols.fake_data import FakeDataProtocol, whole_law
from sidelight.protocols.protocol import record_budget
from sidelight.studies.corr_rr.records import SKEWED, schema_of, star
from sidelight.studies.register import beside
from sidelight.studies.study import Kind, Reading, StudyResult, Verdict, Work, plain_table

EPSILON = 1.0
RHO = 0.5
"""How often the second attribute of Theorem 4's records copies the first."""
COPIES = (0.2, 0.5, 0.8)
SIZES = (2, 10)
CASE = (10, 0.2)
"""The case that is shown: so many values, and p_y."""
SECOND = 9000
"""People in the second phase: nine tenths, as in the paper."""
RECORDS = ((2, 2), (2, 3), (2, 4), (3, 2), (4, 2))
"""Attributes and values of the designs whose every report is enumerated."""
_Z = NormalDist().inv_cdf(1 - 0.0005)
"""Two-sided, one false alarm in a thousand for each of six means."""


@dataclass(frozen=True)
class PhaseError:
    """The mean squared error of the second phase's estimate of the first attribute."""

    values: int  # how many each attribute has
    copy: float  # the probability p_y
    printed: float  # by Theorem 4
    exact: float  # with the factor 1 / (k - 1) and the variance pi (1 - pi)
    simulated: float  # mean over the trials
    half: float  # half of the simulated mean's 99.9 % interval

    @property
    def is_off(self) -> bool:
        """Whether the printed figure lies outside the interval."""
        return abs(self.printed - self.simulated) > self.half


def printed_error(first: Array, second: Array, copy: float, epsilon: float, people: int) -> float:
    """Return the mean squared error as printed (Corr-RR, Theorem 4), the mean over the values."""
    gap = float(np.expm1(epsilon) / (np.expm1(epsilon) + len(first)))
    tilt = copy * (2 * second - 1)
    bias = (1 - first - second + tilt) / 2
    middle = gap / 2 * (first - second + tilt)
    return float(np.mean(bias**2 + (0.25 - middle**2) / (people * gap**2)))


def exact_error(first: Array, second: Array, copy: float, epsilon: float, people: int) -> float:
    """Return the mean squared error, the mean over the values.

    A copy that is not made is one of the k - 1 others, so that Pr(y = v | the other attribute is reported) is
    q + gap (p_y f_b + (1 - p_y)(1 - f_b) / (k - 1)); the proof of Theorem 4 loses the divisor.
    """
    low = 1 / (np.expm1(epsilon) + len(first))
    gap = float(np.expm1(epsilon) * low)
    copied = copy * second + (1 - copy) * (1 - second) / (len(first) - 1)
    share = low + gap / 2 * (first + copied)
    bias = (share - low) / gap - first
    return float(np.mean(bias**2 + share * (1 - share) / (people * gap**2)))


def phase_errors(quick: bool) -> list[PhaseError]:
    """Return Theorem 4's figure beside the exact and the simulated one."""
    return [_phase_error(size, copy, 20 if quick else 100) for size in SIZES for copy in COPIES]


def copying(attributes: int, values: int, copies: ArrayLike) -> FakeDataProtocol:
    """Return a second phase with a given p_y for each ordered pair of attributes."""
    schema = schema_of(attributes, values)
    laws = whole_law(copy_laws(copies, values).reshape(-1, values)).reshape(-1, values, values)
    fakes = dict(zip(permutations(schema.names, 2), laws, strict=True))
    return FakeDataProtocol(schema, (schema.names,), EPSILON, fakes, "corr-rr", "given p_y")


def _phase_error(size: int, copy: float, trials: int) -> PhaseError:
    first = np.array(SKEWED[size])
    second = RHO * first + (1 - RHO) / size
    protocol = copying(2, size, [copy, copy])
    response = protocol.responses[protocol.schema.names[0]]
    errors = []
    for trial in range(trials):
        records = star(2, size, RHO, trial)[:SECOND]
        sums = protocol.randomise(records, seed=trial).aggregate().parts[0]
        errors.append(float(np.mean((response.estimate(sums) - first) ** 2)))
    known = (first, second, copy, EPSILON, SECOND)
    half = _Z * float(np.std(errors, ddof=1)) / np.sqrt(trials)
    return PhaseError(
        size, copy, printed_error(*known), exact_error(*known), float(np.mean(errors)), float(half)
    )


def _judge_theorem_4(rows: Sequence[PhaseError]) -> StudyResult:
    shown = next(row for row in rows if (row.values, row.copy) == CASE)
    off = [row for row in rows if row.is_off]
    missed = sum(abs(row.exact - row.simulated) > row.half for row in rows)
    kind: Kind = "refuted" if off else "reproduced"
    binary = sum(row.values == 2 for row in off)
    reason = (
        f"the printed error is outside the simulated 99.9 % interval in {len(off)} of {len(rows)} "
        f"cases, {binary} of them with two values; with a copy that is not made spread over the others, "
        f"and the variance pi (1 - pi), {missed} are"
    )
    case = (
        f"two attributes of {shown.values} values, budget {EPSILON:g}, p_y = {shown.copy:g}, {SECOND:,} "
        f"people: {shown.printed:.3g} printed, {shown.simulated:.2g} +- {shown.half:.1g} simulated"
    )
    ours = beside("corr-rr-theorem4", f"{shown.simulated:.4f} simulated, {shown.exact:.4f} exact")
    return StudyResult(Verdict(kind, reason, case if off else ""), ours, *plain_table(rows))


@dataclass(frozen=True)
class RecordRow:
    """The exact budget of a record in both phases of one design, every report enumerated."""

    attributes: int
    values: int
    nominal: float  # the budget that is claimed
    first: float  # of the first phase's report
    second: float  # of the second phase's, at its worst among several p_y


def record_rows(quick: bool) -> list[RecordRow]:
    """Return the budgets for p_y of 0, 1/2 and 1, and drawn at random for every pair."""
    rng = np.random.default_rng(5)
    rows = []
    for attributes, values in RECORDS[: 3 if quick else None]:
        pairs = attributes * (attributes - 1)
        copies = [np.full(pairs, share) for share in (0.0, 0.5, 1.0)] + [rng.random(pairs) for _ in range(3)]
        second = max(record_budget(copying(attributes, values, each)).epsilon for each in copies)
        first = record_budget(spl(schema_of(attributes, values), EPSILON)).epsilon
        rows.append(RecordRow(attributes, values, EPSILON, first, second))
    return rows


def _judge_theorem_5(rows: Sequence[RecordRow]) -> StudyResult:
    # both budgets are computed in double precision: what differs by rounding refutes nothing
    over = [row for row in rows if max(row.first, row.second) > row.nominal + 1e-9]
    most = max(max(row.first, row.second) for row in rows)
    reason = (
        f"the largest budget of a record over {len(rows)} designs and six choices of p_y each, every report "
        f"enumerated, is {most:.6g} of {EPSILON:g}: the second phase works on a report alone"
    )
    case = ""
    if over:
        case = f"{over[0].attributes} attributes of {over[0].values} values spend {most:.4f}"
    ours = beside("corr-rr-theorem5", f"{most:.6g}")
    verdict = Verdict("refuted" if over else "reproduced", reason, case)
    return StudyResult(verdict, ours, *plain_table(rows))


STUDIES = {
    "corr-rr-theorem4": Reading(Work("corr-rr-theorem4", phase_errors), _judge_theorem_4),
    "corr-rr-theorem5": Reading(Work("corr-rr-theorem5", record_rows), _judge_theorem_5),
}
