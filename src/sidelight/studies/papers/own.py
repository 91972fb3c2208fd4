"""Benchmarks of ours that no paper has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sidelight.studies.study import OURS, Drawing, Study, StudyResult, Verdict, Work

if TYPE_CHECKING:
    from sidelight.studies.cost import Cost
    from sidelight.studies.mechanisms import VarianceStudy


def _variance(_quick: bool) -> VarianceStudy:
    from sidelight.studies.mechanisms import variance_study

    return variance_study()


def _read_variance(found: VarianceStudy) -> StudyResult:
    from sidelight.studies.mechanisms import figure_of

    rows = [
        (name, "epsilon", float(x), float(y))
        for name, heights in found.by_budget.items()
        for x, y in zip(found.budgets, heights, strict=True)
    ]
    rows += [
        (name, "values", float(x), float(y))
        for name, heights in found.by_size.items()
        for x, y in zip(found.sizes, heights, strict=True)
    ]
    crossed = int((found.by_size["grr"] > found.by_size["oue"]).argmax())
    reason = (
        f"at epsilon {found.epsilon:g} randomised response errs less than unary encoding up to "
        f"{found.sizes[crossed - 1]} values, and more from {found.sizes[crossed]} on"
    )
    return StudyResult(
        Verdict("measured", reason),
        {},
        ("mechanism", "against", "x", "variance"),
        tuple(rows),
        (Drawing("mechanism-variance", "variance of a rare value's frequency", partial(figure_of, found)),),
    )


def _cost(quick: bool) -> list[Cost]:
    from sidelight.studies.cost import run

    return run(quick)


def _read_cost(found: list[Cost]) -> StudyResult:
    from sidelight.studies.cost import figure_of

    rows = [
        (cost.step, cost.unit, size, seconds)
        for cost in found
        for size, seconds in zip(cost.sizes, cost.seconds, strict=True)
    ]
    slowest = max(found, key=lambda cost: cost.seconds[-1])
    size = f"{slowest.sizes[-1]} {slowest.unit}"
    reason = f"the slowest, {slowest.step}, takes {slowest.seconds[-1]:.2g} s for {size}"
    return StudyResult(
        Verdict("measured", reason),
        {},
        ("step", "unit", "size", "seconds"),
        tuple(rows),
        (Drawing("leakage-cost", "seconds against size", partial(figure_of, found)),),
    )


STUDIES: tuple[Study, ...] = (
    Study(
        "mechanism-variance",
        OURS,
        "Variance of every mechanism against budget and number of values",
        Work("mechanism-variance", _variance),
        _read_variance,
    ),
    Study(
        "leakage-cost", OURS, "What leakage figures cost", Work("leakage-cost", _cost, minutes=1), _read_cost
    ),
)
