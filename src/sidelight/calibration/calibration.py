"""From a belief and limits to a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sidelight.auditing import AdversaryName, Audit, audit, check_decider
from sidelight.belief import Belief, check_belief
from sidelight.calibration.constraint import (
    Constraint,
    ConstraintName,
    check_constraint,
    constraint_of,
)
from sidelight.calibration.infeasible import check_feasible
from sidelight.calibration.problem import Problem, build, usual_limit
from sidelight.calibration.result import (
    Alternative,
    Budgets,
    Calibration,
    FrontierPoint,
    Setting,
    is_capped,
)
from sidelight.calibration.unequal import FEW, certificate, unequal_budgets
from sidelight.calibration.uniform import excess, shares_over, uniform_budget
from sidelight.calibration.utility import Utility
from sidelight.foundation.errors import check_choice, check_number
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound
from sidelight.leakage.totals import TotalMethod, check_order
from sidelight.mechanisms import FavouringChannel
from sidelight.mechanisms.mechanism import check_list
from sidelight.plan import Plan

Array = NDArray[np.float64]
COMPARED: tuple[ConstraintName, ...] = ("table", "tree", "published")
_SETTLINGS = 3


def calibrate(
    belief: Belief,
    limit: float | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    secrets: Iterable[str] | None = None,
    budgets: Budgets = "unequal",
    constraint: ConstraintName = "table",
    method: TotalMethod = "auto",
    confidence: float | None = None,
    mechanism: str = "grr",
    mechanisms: Mapping[str, str] | None = None,
    fixed: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    utility: Utility = "variance",
    reports: int | None = None,
    plan: Plan | None = None,
    collected: Belief | None = None,
    frontier: Sequence[float] = (),
    compare: bool = False,
    decide_by: AdversaryName = "report",
) -> Calibration:
    """Return the largest budgets whose certified leakage stays under every limit.

    Args:
        belief: what the adversary knows.
        limit: how much each secret may leak in total, in nats; by default as the plan says, without one 1.
        limits: the limit of single secrets, where it differs.
        secrets: the attributes to protect; by default all to which the plan, if there is one, sets a limit.
        budgets: "unequal", one for each attribute with the least weighted error, or "uniform", one for all.
        constraint: "table" (certified for the belief), "tree" (for an adversary who models the population as
            a tree learnt from it), "robust" (for every distribution the sample leaves open) or "published"
            (the sum of pairwise figures, which is not a bound).
        method: of the certified total, for "table"; see `total_leakage`.
        confidence: of the credal set, for "robust" alone; 0.95 by default.
        mechanism: of every attribute; "auto" takes the one with the least error at its size and budget.
        mechanisms: of single attributes, where it differs; "identity" releases one as it is, "withheld" not.
        fixed: budgets that are not to be changed.
        weights: how much the error of each attribute counts; 1 by default.
        utility: "variance" (of the estimated frequencies) or "accuracy" (of a guess from one report).
        reports: how many people report; as many as the belief has records by default.
        plan: takes mechanisms, parameters, repetitions and, if not given, limits from here; no budgets.
        collected: a belief about the people the plan will be used on; the plan is audited under it too.
        frontier: factors on all limits at which the weighted error is computed as well.
        compare: whether to say what one budget for all would be under the other constraints.
        decide_by: for whom the limits must be kept in the end: for the whole "report" and the table, or for
            a "model", where the constraint is one. It changes no budget.
    """
    check_constraint(constraint, method, confidence)
    check_belief("belief", belief)
    is_model = belief.is_model or (constraint == "tree" and belief.tree is None)
    check_decider(decide_by, "report", is_model=is_model, has_model=False)
    factors = _asked(budgets, collected, frontier)
    problem = build(
        belief, limit, limits=limits or {}, secrets=secrets, mechanism=mechanism,
        mechanisms=mechanisms or {}, fixed=fixed or {}, weights=weights or {}, plan=plan, utility=utility,
        reports=reports,
    )  # fmt: skip
    solved = _solved(problem, lambda asked: constraint_of(asked, constraint, method, confidence), budgets)
    usual = usual_limit(plan) if limit is None else limit
    found = _result(usual, method, budgets, collected, decide_by, *solved)
    settled, rule, one, _ = solved
    return replace(
        found,
        frontier=_frontier(settled, rule, budgets, factors),
        alternatives=_alternatives(settled, rule, one) if compare else (),
    )


def _asked(budgets: Budgets, collected: Belief | None, frontier: Sequence[float]) -> list[float]:
    """Check what is asked for beside the problem, before the long work; return the frontier's factors."""
    check_choice("budgets", budgets, ("unequal", "uniform"))
    if collected is not None:
        check_belief("collected", collected)
    return [check_number("frontier", factor, above=0) for factor in check_list("frontier", frontier)]


def _result(
    limit: float,
    method: TotalMethod,
    budgets: Budgets,
    collected: Belief | None,
    decide_by: AdversaryName,
    problem: Problem,
    rule: Constraint,
    one: float,
    chosen: Array,
) -> Calibration:
    """Make the plan, audit it, and put what it is compared with beside it."""
    belief, even, count = problem.belief, problem.even_split(), len(chosen)
    plan = _plan(problem, chosen, limit, rule.promise)
    is_model = rule.name == "tree" and belief.tree is None
    return Calibration(
        plan=plan,
        audit=_checked(problem, rule, plan, method, decide_by),
        table_audit=audit(belief, plan, problem.secrets) if is_model else None,
        collected=None if collected is None else _elsewhere(collected, plan, problem.secrets, decide_by),
        constraint=rule.name,
        promise=rule.promise,
        is_sound=rule.is_sound,
        limits=problem.limits,
        weights=problem.weights,
        utility=problem.utility,
        reports=problem.reports,
        chosen=_setting(problem, rule, chosen),
        uniform=_setting(problem, rule, np.full(count, one)),
        even=None if even is None else _setting(problem, rule, np.full(count, even)),
        certificate=certificate(problem, rule, chosen, one) if budgets == "unequal" else None,
        is_saturated=_is_saturated(problem, rule, chosen),
    )


def _is_saturated(problem: Problem, rule: Constraint, budgets: Array) -> bool:
    """Whether attributes with the largest budget that is searched could be released as they are."""
    capped = [name for name, budget in zip(problem.free, budgets, strict=True) if is_capped(budget)]
    if not capped:
        return False
    told = {name: FavouringChannel(problem.belief.schema[name].size, "singletons", 0.0) for name in capped}
    figures = rule.figures(problem.channels(budgets) | told)
    return bool((shares_over(figures, problem.bounds) <= 0).all())


def _solved(
    problem: Problem, constrain: Callable[[Problem], Constraint], budgets: Budgets
) -> tuple[Problem, Constraint, float, Array]:
    """Return the problem with its mechanisms settled, the constraint, the budget for all, and the budgets.

    Mechanisms and the sizes of sets are frozen for a search at what suits the budgets before it. If others
    suit the budgets that are found, these are tried as well, and the better of the two is kept.
    """
    count = len(problem.free)
    guess = np.full(count, problem.even_split() or problem.least)
    best: tuple[Problem, Constraint, float, Array] | None = None
    for _ in range(_SETTLINGS):
        settled = problem.settled(guess)
        if best is not None and settled.is_settled_as(best[0]):
            break
        rule = constrain(settled)
        check_feasible(settled, rule)
        one = uniform_budget(settled, rule)
        chosen = unequal_budgets(settled, rule, one) if budgets == "unequal" else np.full(count, one)
        if best is None or _error(settled, chosen) < _error(best[0], best[3]):
            best = settled, rule, one, chosen
        guess = chosen
    assert best is not None  # noqa: S101 - the loop runs at least once
    return best


def _error(problem: Problem, budgets: Array) -> float:
    return problem.weighted(problem.errors(budgets))


def _plan(problem: Problem, budgets: Array, limit: float, origin: str) -> Plan:
    """Return the plan; attributes that are no secrets get an infinite limit, so that any audit knows."""
    limits = dict.fromkeys(problem.belief.schema.names, math.inf) | dict(problem.limits)
    own = {name: value for name, value in limits.items() if value != limit}
    return Plan(problem.releases_at(budgets), limit, own, origin)


def _elsewhere(collected: Belief, plan: Plan, secrets: Iterable[str], decide_by: AdversaryName) -> Audit:
    """Audit the plan under another belief; where a model decides, under a tree learnt from it as well."""
    return audit(collected, plan, secrets, model=decide_by == "model", decide_by=decide_by)


def _checked(
    problem: Problem, rule: Constraint, plan: Plan, method: TotalMethod, decide_by: AdversaryName
) -> Audit:
    """Audit the plan under the constraint's own belief, and raise if its figure breaks a limit after all."""
    if rule.name in ("tree", "robust"):
        found = audit(rule.belief, plan, problem.secrets, decide_by=decide_by)
        found = _with_totals(found, rule.bounds(plan.channels()))
    else:
        found = audit(problem.belief, plan, problem.secrets, method=method, decide_by=decide_by)
    broken = [name for name, item in found.secrets.items() if item.outcomes[item.adversary] != "within"]
    if broken and rule.name != "published":
        raise ArithmeticError(f"the audit does not confirm the limits of {', '.join(broken)}")
    return found


def _with_totals(found: Audit, bounds: Mapping[str, Bound]) -> Audit:
    """Return the audit with the constraint's figures as the upper ends of its totals."""
    secrets = {}
    for name, item in found.secrets.items():
        upper = bounds[name]
        lower = min(item.total.lower, upper, key=lambda bound: bound.value)
        check_order(item.total.lower.value, upper.value)
        secrets[name] = replace(item, total=replace(item.total, lower=lower, upper=upper))
    return replace(found, secrets=secrets)


def _setting(problem: Problem, rule: Constraint, budgets: Array) -> Setting:
    errors = problem.errors(budgets)
    return Setting(
        dict(zip(problem.free, budgets.tolist(), strict=True)),
        dict(zip(problem.free, errors.tolist(), strict=True)),
        problem.weighted(errors),
        rule.bounds(problem.channels(budgets)),
    )


def _alternatives(problem: Problem, rule: Constraint, one: float) -> tuple[Alternative, ...]:
    """Return one budget for all under the certified, the tree's and the published constraint."""
    even = problem.even_split()
    found = []
    for name in track(COMPARED, "constraints"):
        other = rule if name == rule.name else constraint_of(problem, name)
        least = np.full(len(problem.free), problem.least)
        is_feasible = excess(problem, other, least) <= 0
        budget = (one if other is rule else uniform_budget(problem, other)) if is_feasible else None
        ratio = math.nan if even is None or budget is None else budget / even
        found.append(Alternative(name, budget, ratio, other.promise, other.is_sound))
    return tuple(found)


def _frontier(
    problem: Problem, rule: Constraint, budgets: Budgets, factors: Sequence[float]
) -> tuple[FrontierPoint, ...]:
    """Return the weighted errors at limits some times as large, with the mechanisms as they are.

    Unequal budgets are left out where they take long: with many attributes.
    """
    points = []
    for factor in track(factors, "frontier"):
        limits = {name: factor * limit for name, limit in problem.limits.items()}
        asked = replace(problem, limits=limits)
        if excess(asked, rule, np.full(len(asked.free), asked.least)) > 0:
            continue  # what is fixed already leaks more than this
        even, one = asked.even_split(), uniform_budget(asked, rule)
        ones = np.ones(len(asked.free))
        wanted = budgets == "unequal" and len(asked.free) <= FEW
        points.append(
            FrontierPoint(
                factor,
                math.nan if even is None else _error(asked, even * ones),
                _error(asked, one * ones),
                _error(asked, unequal_budgets(asked, rule, one)) if wanted else math.nan,
            )
        )
    return tuple(points)
