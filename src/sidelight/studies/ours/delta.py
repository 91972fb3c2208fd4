"""The leakage of a whole release at delta, against the worst case, as attributes are added.

A secret bit has neighbours that each agree with it with a fixed probability, and all of them are reported.
The worst case grows with every neighbour, since there is always a record whose reports all point one way;
how often that happens is what a delta takes into account. Every figure is checked by listing all reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.leakage.totals import leakage_at, total_leakage
from sidelight.mechanisms import create
from sidelight.plan import Plan
from sidelight.studies.figures import canvas, draw_lines, finish
from sidelight.studies.study import Reading, StudyResult, Work, measured, plain_table

EPSILON = 0.5
"""The budget of every attribute."""
AGREES = 0.7
"""How often a neighbour has the secret's value."""
DELTAS = (0.01, 0.001)
_LINK = np.array([[AGREES, 1 - AGREES], [1 - AGREES, AGREES]])
_MOST = 11


@dataclass(frozen=True)
class DeltaRow:
    """What all reports say about the secret, with so many neighbours."""

    neighbours: int  # how many are reported beside the secret
    budgets: float  # the sum of all budgets
    worst_case: float  # the exact total
    at_hundredth: float  # the same at delta 0.01
    at_thousandth: float  # and at 0.001
    fails_hundredth: float  # how often the figure at 0.01 fails, by listing all reports
    fails_thousandth: float  # and that at 0.001


def run(quick: bool = False) -> tuple[DeltaRow, ...]:
    """Add neighbours one by one; quickly, only a few."""
    return tuple(_row(count) for count in range(5 if quick else _MOST + 1))


def _row(neighbours: int) -> DeltaRow:
    names = ["secret", *(f"n{number}" for number in range(neighbours))]
    belief = Belief.from_joint(_star(neighbours), names)
    plan = Plan.uniform(belief.schema, "grr", EPSILON)
    total = total_leakage(belief, plan.channels(), "secret").value
    found = [leakage_at(belief, plan, "secret", delta).value for delta in DELTAS]
    rows = _reports(neighbours)
    fails = [_failing(rows, figure) for figure in found]
    return DeltaRow(neighbours, EPSILON * len(names), total, found[0], found[1], fails[0], fails[1])


def _star(neighbours: int) -> Array:
    """Return the joint distribution: a fair secret and neighbours that are independent given it."""
    given = [_product([_LINK[value]] * neighbours) for value in (0, 1)]
    return np.stack(given).reshape((2,) * (neighbours + 1)) / 2


def _reports(neighbours: int) -> Array:
    """Return Pr(all reports | secret), (2, reports), without any code of the leakage room."""
    noise = create("grr", 2, EPSILON).channel.matrix()
    return np.stack([_product([noise[value], *[_LINK[value] @ noise] * neighbours]) for value in (0, 1)])


def _failing(rows: Array, figure: float) -> float:
    """Return the delta of a figure by its definition: the larger hockey stick of both directions."""
    return float(np.maximum(rows - np.exp(figure) * rows[::-1], 0).sum(axis=1).max())


def _product(parts: Sequence[Array]) -> Array:
    """Return the law of independent values, flat; 1 of none."""
    law = np.ones(1)
    for part in parts:
        law = np.outer(law, part).reshape(-1)
    return law


def delta_figure(rows: Sequence[DeltaRow]) -> Figure:
    """Draw the sum of budgets, the worst case and both figures at delta."""
    figure, (axes,) = canvas(7.5, 4.2)
    lines = {
        "budgets": ("sum of budgets", ":"),
        "worst_case": ("worst case", "-"),
        "at_thousandth": ("at delta 0.001", "--"),
        "at_hundredth": ("at delta 0.01", "-."),
    }
    draw_lines(axes, rows, "neighbours", lines)
    finish(axes, "reported neighbours", "leakage about the secret (nats)", legend=9)
    return figure


def judge_delta(rows: Sequence[DeltaRow]) -> StudyResult:
    """Check that the figures at delta hold, are tight, and lie below the worst case."""
    last = rows[-1]
    fails = np.array([(row.fails_hundredth, row.fails_thousandth) for row in rows])
    is_so = bool(np.allclose(fails, DELTAS, rtol=1e-6))
    is_so &= all(row.at_hundredth <= row.at_thousandth <= row.worst_case + 1e-9 for row in rows)
    reason = (
        f"with {last.neighbours} neighbours at a budget of {EPSILON:g} each, the worst case is "
        f"{last.worst_case:.2f} nats and the sum of budgets {last.budgets:.2f}; at delta 0.001 it is "
        f"{last.at_thousandth:.2f}, at delta 0.01 {last.at_hundredth:.2f}"
    )
    return StudyResult(measured(is_so, reason), {}, *plain_table(rows))


STUDIES = {"leakage-at-delta": Reading(Work("leakage-at-delta", run), judge_delta, delta_figure)}
