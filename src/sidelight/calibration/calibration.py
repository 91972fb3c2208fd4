"""From a belief and limits to a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sidelight.auditing import AdversaryName, Audit, audit, check_decider
from sidelight.belief import Belief, check_belief
from sidelight.calibration.constraint import Constraint, ConstraintName, check_constraint, constraint_of
from sidelight.calibration.problem import Problem, Utility, choice_of, limits_of, usual_limit
from sidelight.calibration.result import Alternative, Budgets, Calibration, FrontierPoint, Setting, is_capped
from sidelight.calibration.unequal import FEW, certificate, unequal_budgets
from sidelight.calibration.uniform import check_feasible, excess, shares_over, uniform_budget
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_choice, check_is, check_number
from sidelight.foundation.progress import track
from sidelight.leakage.bounds import Bound
from sidelight.leakage.totals import TotalMethod, check_order
from sidelight.mechanisms.mechanism import check_list
from sidelight.plan import Plan

COMPARED: tuple[ConstraintName, ...] = ("table", "tree", "published")
_SETTLINGS = 3  # a mechanism may go to and fro between two; the best so far is kept


def calibrate(
    belief: Belief, limit: float | None = None, *, limits: Mapping[str, float] | None = None,
    secrets: Iterable[str] | None = None, budgets: Budgets = "unequal", constraint: ConstraintName = "table",
    method: TotalMethod = "auto", confidence: float | None = None, mechanism: str = "grr",
    mechanisms: Mapping[str, str] | None = None, fixed: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None, utility: Utility = "variance", reports: int | None = None,
    plan: Plan | None = None, collected: Belief | None = None, frontier: Sequence[float] = (),
    compare: bool = False, decide_by: AdversaryName = "report",
) -> Calibration:  # fmt: skip
    """Return the largest budgets whose certified leakage stays under every limit.

    Args:
        belief: what the adversary knows.
        limit: how much each secret may leak in total, in nats; by default as the plan says, without one 1.
        limits: the limit of single secrets, where it differs.
        secrets: the attributes to protect; by default all to which the plan, if there is one, sets a limit.
        budgets: "unequal", a nominal one for each attribute, for the least weighted error, or "uniform".
        constraint: "table" (certified for the belief), "tree" (for an adversary who models it so), "robust"
            (for all that the sample leaves open) or "published" (no bound); see `constraint.ConstraintName`.
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
        decide_by: for whom limits must hold in the end, "report" or the constraint's "model"; budgets stay.
    """
    factors = _checked(belief, constraint, method, confidence, budgets, plan, collected, decide_by, frontier)
    choice = choice_of(belief, mechanism, mechanisms, fixed, plan)
    bounds = limits_of(belief, limit, limits, secrets, plan)
    problem = Problem.of(belief, bounds, choice, weights, utility, reports)
    solution = _solved(problem, lambda asked: constraint_of(asked, constraint, method, confidence), budgets)
    result = _result(solution, solution.plan(usual_limit(limit, plan)), method, decide_by)
    return replace(result, **solution.beside(result, collected, factors, compare))


def _checked(
    belief: Belief, constraint: ConstraintName, method: TotalMethod, confidence: float | None,
    budgets: Budgets, plan: Plan | None, collected: Belief | None, decide_by: AdversaryName,
    frontier: Sequence[float],
) -> list[float]:  # fmt: skip
    """Raise before the search for what is wrong in itself; return the factors of the frontier as numbers."""
    check_constraint(constraint, method, confidence)
    check_belief("belief", belief)
    is_model = belief.is_model or (constraint == "tree" and belief.tree is None)
    check_decider(decide_by, "report", is_model=is_model, has_model=False)
    check_choice("budgets", budgets, ("unequal", "uniform"))
    if collected is not None:
        check_belief("collected", collected)
    if plan is not None:
        check_is("plan", plan, Plan, "Plan.read takes a file.")
    return [check_number("frontier", factor, above=0) for factor in check_list("frontier", frontier)]


@dataclass(frozen=True, eq=False)
class _Solution:
    """Nominal budgets that keep the limits of a problem with settled mechanisms, and the largest for all."""

    problem: Problem
    rule: Constraint
    uniform: float
    budgets: Array
    is_unequal: bool

    def plan(self, limit: float) -> Plan:
        """Return the plan; attributes that are no secrets get an infinite limit, so that any audit knows."""
        problem = self.problem
        limits = dict.fromkeys(problem.belief.schema.names, math.inf) | dict(problem.limits)
        own = {name: value for name, value in limits.items() if value != limit}
        return Plan(problem.releases_at(self.budgets), limit, own, self.rule.promise)

    def setting(self, budgets: Array) -> Setting:
        """Return budgets and what comes of them."""
        problem, parts = self.problem, (budgets, self.problem.errors(budgets))
        chosen, errors = (dict(zip(problem.free, part.tolist(), strict=True)) for part in parts)
        bounds = self.rule.bounds(problem.channels(budgets))
        return Setting(chosen, errors, problem.weighted_error(budgets), bounds)

    def is_saturated(self) -> bool:
        """Whether attributes with the largest budget that is searched could be released as they are."""
        problem = self.problem
        chosen = zip(problem.free, self.budgets, strict=True)
        truth = {name: problem.truth(name) for name, budget in chosen if is_capped(budget)}
        if not truth:
            return False
        figures = self.rule.figures(problem.channels(self.budgets) | truth)
        return bool((shares_over(figures, problem.bounds) <= 0).all())

    def beside(
        self, result: Calibration, collected: Belief | None, factors: Sequence[float], compare: bool
    ) -> dict[str, Any]:
        """Return the parts of a result that were asked for beside the budgets, by their names."""
        parts: dict[str, Any] = {}
        if collected is not None:  # where a model decides, under a tree learnt from it as well
            by, plan, limits = result.decide_by, result.plan, result.limits
            parts["collected"] = audit(collected, plan, limits, model=by == "model", decide_by=by)
        if self.is_unequal:
            parts["certificate"] = certificate(self.problem, self.rule, self.budgets, self.uniform)
        others = tuple(self.alternatives()) if compare else ()
        return parts | {"alternatives": others, "frontier": tuple(self.frontier(factors))}

    def alternatives(self) -> Iterator[Alternative]:
        """Yield one budget for all under the certified, the tree's and the published constraint."""
        problem, even = self.problem, self.problem.even_split()
        for name in track(COMPARED, "constraints"):
            rule = self.rule if name == self.rule.name else constraint_of(problem, name)
            budget = None
            if excess(problem, rule, problem.alike(problem.least)) <= 0:
                budget = self.uniform if rule is self.rule else uniform_budget(problem, rule)
            ratio = math.nan if even is None or budget is None else budget / even
            yield Alternative(name, budget, ratio, rule.promise, rule.is_sound)

    def frontier(self, factors: Sequence[float]) -> Iterator[FrontierPoint]:
        """Yield the weighted errors at limits some times as large, with the mechanisms as they are.

        Unequal budgets are left out where they take long: with many attributes.
        """
        for factor in track(factors, "frontier"):
            limits = {name: factor * limit for name, limit in self.problem.limits.items()}
            asked = replace(self.problem, limits=limits)  # it shares the channels, which limits do not change
            if excess(asked, self.rule, asked.alike(asked.least)) > 0:
                continue  # what is fixed already leaks more than this
            even, uniform, unequal = asked.even_split(), uniform_budget(asked, self.rule), math.nan
            split = math.nan if even is None else asked.weighted_error(asked.alike(even))
            if self.is_unequal and len(asked.free) <= FEW:
                unequal = asked.weighted_error(unequal_budgets(asked, self.rule, uniform))
            yield FrontierPoint(factor, split, asked.weighted_error(asked.alike(uniform)), unequal)


def _solved(problem: Problem, constrain: Callable[[Problem], Constraint], budgets: Budgets) -> _Solution:
    """Settle the mechanisms and return the best budgets.

    During a search mechanisms and the sizes of sets are frozen at what suits the budgets it starts from. If
    others suit the budgets it ends at, they are tried too, and the better of the two is kept.
    """
    guess = problem.alike(problem.even_split() or problem.least)
    best: _Solution | None = None
    for _ in range(_SETTLINGS):
        settled = problem.settled(guess)
        if best is not None and settled.is_settled_as(best.problem):
            break
        rule = constrain(settled)
        check_feasible(settled, rule)
        uniform = uniform_budget(settled, rule)
        guess = unequal_budgets(settled, rule, uniform) if budgets == "unequal" else settled.alike(uniform)
        if best is None or settled.weighted_error(guess) < best.problem.weighted_error(best.budgets):
            best = _Solution(settled, rule, uniform, guess, budgets == "unequal")
    assert best is not None  # noqa: S101 - the loop runs at least once
    return best


def _result(solution: _Solution, plan: Plan, method: TotalMethod, decide_by: AdversaryName) -> Calibration:
    """Audit the plan, and put what it is compared with beside it."""
    problem, rule, even = solution.problem, solution.rule, solution.problem.even_split()
    is_model = rule.name == "tree" and problem.belief.tree is None
    return Calibration(
        plan=plan,
        audit=_confirmed(solution, plan, method, decide_by),
        table_audit=audit(problem.belief, plan, problem.secrets) if is_model else None,
        constraint=rule.name, promise=rule.promise, is_sound=rule.is_sound, limits=problem.limits,
        weights=problem.weights, utility=problem.utility, reports=problem.reports,
        chosen=solution.setting(solution.budgets),
        uniform=solution.setting(problem.alike(solution.uniform)),
        even=None if even is None else solution.setting(problem.alike(even)),
        is_saturated=solution.is_saturated(),
    )  # fmt: skip


def _confirmed(solution: _Solution, plan: Plan, method: TotalMethod, decide_by: AdversaryName) -> Audit:
    """Audit the plan under the constraint's own belief, and raise if its figure breaks a limit after all."""
    problem, rule = solution.problem, solution.rule
    if rule.name in ("tree", "robust"):
        checked = audit(rule.belief, plan, problem.secrets, decide_by=decide_by)
        checked = _with_totals(checked, rule.bounds(plan.channels()))
    else:
        checked = audit(problem.belief, plan, problem.secrets, method=method, decide_by=decide_by)
    broken = [name for name, item in checked.secrets.items() if item.outcomes[item.adversary] != "within"]
    if broken and rule.name != "published":  # that rule promises nothing, so its limits may break
        raise ArithmeticError(f"the audit does not confirm the limits of {', '.join(broken)}")
    return checked


def _with_totals(audited: Audit, bounds: Mapping[str, Bound]) -> Audit:
    """Return the audit with the constraint's figures as the upper ends of its totals."""
    secrets = {}
    for name, item in audited.secrets.items():
        upper = bounds[name]
        lower = min(item.total.lower, upper, key=lambda bound: bound.value)
        check_order(item.total.lower.value, upper.value)  # two ways to the figure must not contradict
        secrets[name] = replace(item, total=replace(item.total, lower=lower, upper=upper))
    return replace(audited, secrets=secrets)
