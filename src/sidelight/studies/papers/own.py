"""Benchmarks of ours that no paper has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sidelight.studies.study import OURS, Drawing, Study, StudyResult, Verdict, Work, plain_table

if TYPE_CHECKING:
    from sidelight.studies.cost import Cost
    from sidelight.studies.floating_point import FloatingPointStudy
    from sidelight.studies.limits import LimitStudy
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


def _floating_point(quick: bool) -> FloatingPointStudy:
    from sidelight.studies.floating_point import run

    return run(quick)


def _read_floating_point(found: FloatingPointStudy) -> StudyResult:
    from sidelight.studies.floating_point import figure_of

    sampler, meets_reference = _naive_sampler(found)
    release, resists = _our_release(found)
    drawing = Drawing("floating-point", "what is recovered, and what is left", partial(figure_of, found))
    verdict = Verdict("measured" if meets_reference and resists else "differs", f"{sampler}; {release}")
    return StudyResult(verdict, {}, *plain_table(found.rows), (drawing,))


def _naive_sampler(found: FloatingPointStudy) -> tuple[str, bool]:
    """Say what the naive sampler gives away, and whether that meets the reference."""
    from sidelight.studies.floating_point import NAIVE, REFERENCE, meets

    parts, missed = [], []
    for name, (words, low, high) in REFERENCE.items():
        rows = found.of(NAIVE, candidates=name)
        share, left = (
            _range([row.recovered for row in rows], ".1%"),
            _range([row.left for row in rows], ".3g"),
        )
        beside = f"reference {words}; {left} of {rows[0].values} candidates are left"
        parts.append(f"{share} where values are {name} ({beside})")
        missed += [] if meets(rows, low, high) else [name]
    words = f"the naive sampler gives away for certain {', '.join(parts)}"
    return words + (f", which is not the reference on {', '.join(missed)}" if missed else ""), not missed


def _our_release(found: FloatingPointStudy) -> tuple[str, bool]:
    """Say whether our release excludes nothing by its grid and loses nothing by the naive sampler's test."""
    from sidelight.studies.floating_point import DOUBLES, GRID, SECURE, SIMULATED

    grid = [*found.of(SIMULATED, GRID), *found.of(SECURE, GRID)]
    open_rows = sum(not row.excludes_nothing for row in grid)
    beaten = sum(row.gain_lower > 0 for row in found.of(SIMULATED, DOUBLES))
    noise = f"seeded noise only: {found.missing}" if found.missing else "seeded noise and a real release's"
    if not open_rows and not beaten:
        return f"ours excludes no candidate ({noise}), and the naive sampler's test gains nothing on it", True
    shown = f"ours excludes candidates in {open_rows} of {len(grid)} settings ({noise})"
    return f"{shown}, and the naive sampler's test beats its control in {beaten}", False


def _range(values: Sequence[float], digits: str) -> str:
    low, high = format(min(values), digits), format(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _limits(quick: bool) -> LimitStudy:
    from sidelight.studies.limits import run

    return run(quick)


def _read_limits(found: LimitStudy) -> StudyResult:
    from sidelight.studies.limits import ENOUGH, figure_of

    best = found.best()
    least = min(best, key=lambda row: row.share)
    short = sum(row.share < ENOUGH for row in best)
    beyond = sum(row.is_beyond for row in found.rows)
    way = f"at least {least.share:.1%} [{least.share_lower:.1%}, {least.share_upper:.1%}] of the way"
    reached = (
        f"short of {ENOUGH:.0%} in {short} of {len(best)} settings" if short else f"{len(best)} settings"
    )
    passed = f"{beyond or 'none'} of {len(found.rows)} attacks {'are' if beyond > 1 else 'is'} beyond it"
    reason = (
        f"the best learnt attack goes {way} to the Bayes limit ({least.setting}, {least.attacker}; "
        f"{reached}); {passed} by more than its interval"
    )
    if found.missing:
        reason += f"; no network was tried: {found.missing}"
    drawing = Drawing("attack-limit", "share of the way to the Bayes limit", partial(figure_of, found))
    verdict = Verdict("differs" if short or beyond else "measured", reason)
    return StudyResult(verdict, {}, *plain_table(found.rows), (drawing,))


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
    Study(
        "attack-limit",
        OURS,
        "Learnt attacks against the Bayes limit",
        Work("attack-limit", _limits, minutes=0.5),
        _read_limits,
    ),
    Study(
        "floating-point",
        OURS,
        "The floating-point attack on a naive sampler and on our release",
        Work("floating-point", _floating_point),
        _read_floating_point,
    ),
)
