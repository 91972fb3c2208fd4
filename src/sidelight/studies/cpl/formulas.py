"""Paper CPL, Table III and eq. (6): what needs no table of records."""

from __future__ import annotations

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.leakage import statistical_leakage, total_leakage
from sidelight.leakage.analysers import generic_analysis
from sidelight.leakage.published import pairwise_sum
from sidelight.mechanisms import create
from sidelight.schema import Schema, categorical
from sidelight.sources import Counts
from sidelight.studies.register import CATALOGUE, beside
from sidelight.studies.study import Reading, StudyResult, Work, gaps, judged, refuted_if

EXAMPLE = ((0.2, 0, 0, 0), (0, 0.2, 0, 0), (0.1, 0.15, 0.03, 0.02), (0.1, 0.15, 0.03, 0.02))
"""CPL, eq. (28)."""
Pair = tuple[float, float]
"""The published sum and the exact total of one attribute's leakage."""


def _example(_quick: bool) -> list[tuple[float, ...]]:
    """Return Table III, eq. (28): budget, the worst mechanism's two directions, and GRR's as counted."""
    names = ["secret", "other"]
    belief = Belief.from_joint(EXAMPLE, names)
    cells = np.rint(np.array(EXAMPLE) * 100_000).astype(np.int64)  # 0.03 x 100,000 is 3,000 but for rounding
    schema = Schema(tuple(categorical(name, ["1", "2", "3", "4"]) for name in names))
    counted = Belief.from_counts(Counts(schema, cells))
    rows = []
    for epsilon in (0.5, 1.0, 2.0):
        worst = generic_analysis(belief, epsilon)
        view = create("grr", 4, epsilon).channel.matrix()
        seen = [
            statistical_leakage(counted, {through: view}, about, seed=8).value
            for through, about in (("other", "secret"), ("secret", "other"))
        ]
        rows.append((epsilon, float(worst[1, 0]), float(worst[0, 1]), *seen))
    return rows


def _sums(quick: bool) -> list[Pair]:
    """Return sum and total of X = A xor B with fair coins, budget 1 on all three, and in random joints."""
    a, b, x = np.indices((2, 2, 2))
    rng = np.random.default_rng(150)
    joints = (rng.dirichlet(np.full(8, 0.5)).reshape(2, 2, 2) for _ in range(50 if quick else 500))
    return [_sum_and_total(cells) for cells in (np.where(x == a ^ b, 0.25, 0.0), *joints)]


def _sum_and_total(cells: Array) -> Pair:
    belief = Belief.from_joint(cells, ["a", "b", "x"])
    channels = {name: create("grr", 2, 1.0).channel for name in belief.schema.names}
    total = total_leakage(belief, channels, "x", "exact")
    return pairwise_sum(belief, channels, "x").value, total.value


def _judge_table_3(rows: list[tuple[float, ...]]) -> StudyResult:
    exact = [value for _, forth, back, *_ in rows for value in (forth, back)]
    ours = beside("cpl-table3", *exact, *(value for row in rows for value in row[3:]))
    apart = list(gaps(ours, CATALOGUE["cpl-table3"].published).values())
    gap, strayed = max(apart[: len(exact)]), max(apart[len(exact) :])
    columns = ("epsilon", "other to secret", "secret to other", "estimated forth", "estimated back")
    reason = (
        f"both directions within {gap:.4f}, the printed ones a little above the exact values; the estimates, "
        f"which depend on the draw, within {strayed:.3f}"
    )
    return StudyResult(judged(gap < 5e-4 and strayed < 0.02, reason), ours, columns, tuple(rows))


def _judge_equation_6(pairs: list[Pair]) -> StudyResult:
    (stated, exact), *joints = pairs
    below = [(a, b) for a, b in joints if a < b - 1e-9]  # by more than rounding
    most = max((1 - a / b for a, b in below), default=0.0)
    share = f"{len(below)} of {len(joints)}"
    verdict = refuted_if(
        exact > stated + 1e-9,
        f"reports that say nothing one by one can tell all together; the sum is below the truth in {share} "
        f"random joints of three attributes, by up to {most:.0%}",
        "X = A xor B with fair coins, randomised response of budget 1 on all three: the sum is "
        f"{stated:.4g}, the truth {exact:.5f}",
    )
    rows = (("xor", stated, exact), *(("random joint", a, b) for a, b in joints))
    return StudyResult(verdict, beside("cpl-eq6", share), ("case", "published sum", "exact total"), rows)


STUDIES = {
    "cpl-table3": Reading(Work("cpl-table3", _example), _judge_table_3),
    "cpl-eq6": Reading(Work("cpl-eq6", _sums), _judge_equation_6),
}
