"""Paper CPL, Table III and eq. (6): what needs no table of records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array
from sidelight.leakage import statistical_leakage, total_leakage
from sidelight.leakage.analysers import generic_analysis
from sidelight.leakage.published import pairwise_sum
from sidelight.mechanisms import create
from sidelight.schema import Schema, categorical
from sidelight.sources import Counts
from sidelight.studies.study import Reading, StudyResult, Value, Verdict, Work, gaps, judged, plain_table

EXAMPLE = ((0.2, 0, 0, 0), (0, 0.2, 0, 0), (0.1, 0.15, 0.03, 0.02), (0.1, 0.15, 0.03, 0.02))
"""CPL, eq. (28)."""


@dataclass(frozen=True)
class ExampleRow:
    """One budget of Table III: both directions, exact and estimated from 100,000 records."""

    epsilon: float
    forth: float
    back: float
    seen_forth: float
    seen_back: float


def example_rows() -> list[ExampleRow]:
    """Return Table III: eq. (28), the worst mechanism of the budget, and randomised response counted."""
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
        rows.append(ExampleRow(epsilon, float(worst[1, 0]), float(worst[0, 1]), *seen))
    return rows


def exclusive_or() -> tuple[float, float]:
    """Return the published sum and the exact total of X = A xor B, fair coins, budget 1 on all three."""
    a, b, x = np.indices((2, 2, 2))
    return _sum_and_total(np.where(x == a ^ b, 0.25, 0.0))


def random_joints(count: int) -> list[tuple[float, float]]:
    """Return published sum and exact total of one attribute in random joints of three."""
    rng = np.random.default_rng(150)
    return [_sum_and_total(rng.dirichlet(np.full(8, 0.5)).reshape(2, 2, 2)) for _ in range(count)]


def _sum_and_total(cells: Array) -> tuple[float, float]:
    belief = Belief.from_joint(cells, ["a", "b", "x"])
    channels = {name: create("grr", 2, 1.0).channel for name in belief.schema.names}
    total = total_leakage(belief, channels, "x", "exact")
    return pairwise_sum(belief, channels, "x").value, total.value


@dataclass(frozen=True)
class FormulaStudy:
    """Table III, and eq. (6) on one small case and on random ones."""

    example: list[ExampleRow]
    coins: tuple[float, float]
    joints: list[tuple[float, float]]


def run_formulas(quick: bool) -> FormulaStudy:
    """Compute what needs no table."""
    return FormulaStudy(example_rows(), exclusive_or(), random_joints(50 if quick else 500))


_FORMULAS = Work("cpl-formulas", run_formulas)
PRINTED_3: dict[str, Value] = {
    "epsilon 0.5, other to secret": 0.5,
    "epsilon 0.5, secret to other": 0.2810,
    "epsilon 1, other to secret": 1.0,
    "epsilon 1, secret to other": 0.6203,
    "epsilon 2, other to secret": 2.0,
    "epsilon 2, secret to other": 1.4340,
    "epsilon 0.5, other to secret, estimated": 0.5007,
    "epsilon 0.5, secret to other, estimated": 0.2833,
    "epsilon 1, other to secret, estimated": 0.9985,
    "epsilon 1, secret to other, estimated": 0.6222,
    "epsilon 2, other to secret, estimated": 2.0020,
    "epsilon 2, secret to other, estimated": 1.4369,
}
"""The worst mechanism of the budget, and randomised response estimated from 100,000 records."""
_BELOW = "random joints in which the sum is below the truth"
_CASES = ("other to secret", "secret to other", "other to secret, estimated", "secret to other, estimated")


def _read_table_3(study: FormulaStudy) -> StudyResult:
    ours: dict[str, Value] = {}
    for budget, *figures in plain_table(study.example)[1]:
        names = (f"epsilon {budget:g}, {case}" for case in _CASES)
        ours |= dict(zip(names, figures, strict=True))
    apart = gaps(ours, PRINTED_3)
    gap, strayed = (
        max(value for name, value in apart.items() if name.endswith("estimated") == is_estimate)
        for is_estimate in (False, True)
    )
    columns = ("epsilon", "other to secret", "secret to other", "estimated forth", "estimated back")
    reason = (
        f"both directions within {gap:.4f}, the printed ones a little above the exact values; the estimates, "
        f"which depend on the draw, within {strayed:.3f}"
    )
    verdict = judged(gap < 5e-4 and strayed < 0.02, reason)
    return StudyResult(verdict, ours, columns, plain_table(study.example)[1])


def _read_equation_6(study: FormulaStudy) -> StudyResult:
    stated, exact = study.coins
    below = [(a, b) for a, b in study.joints if a < b - 1e-9]
    most = max((1 - a / b for a, b in below), default=0.0)
    share = f"{len(below)} of {len(study.joints)}"
    verdict = Verdict(
        "refuted" if exact > stated + 1e-9 else "reproduced",
        f"reports that say nothing one by one can tell all together; the sum is below the truth in {share} "
        f"random joints of three attributes, by up to {most:.0%}",
        "X = A xor B with fair coins, randomised response of budget 1 on all three: the sum is "
        f"{stated:.4g}, the truth {exact:.5f}",
    )
    rows = tuple(("random joint", a, b) for a, b in study.joints)
    columns = ("case", "published sum", "exact total")
    return StudyResult(verdict, {_BELOW: share}, columns, (("xor", stated, exact), *rows))


STUDIES = {
    "cpl-table3": Reading(_FORMULAS, _read_table_3, PRINTED_3),
    "cpl-eq6": Reading(_FORMULAS, _read_equation_6, {_BELOW: "none: it is called a bound"}),
}
