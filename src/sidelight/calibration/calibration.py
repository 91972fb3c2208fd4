"""From a belief and limits to a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sidelight.auditing import AdversaryName, Audit, Story, audit, check_decider
from sidelight.belief import Belief, check_belief
from sidelight.calibration.at_delta import AtDelta, at_delta, composed_at_delta, knower_of, known_belief
from sidelight.calibration.constraint import Constraint, ConstraintName, check_constraint, constraint_of
from sidelight.calibration.delta_search import (
    certificate_at_delta,
    certified,
    unequal_at_delta,
    uniform_at_delta,
)
from sidelight.calibration.problem import Problem, Utility, choice_of, limits_of, usual_limit
from sidelight.calibration.result import Alternative, Budgets, Calibration, FrontierPoint, Setting, is_capped
from sidelight.calibration.unequal import FEW, Certificate, certificate, unequal_budgets
from sidelight.calibration.uniform import check_feasible, excess, shares_over, uniform_budget
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_is, check_number, check_whole
from sidelight.foundation.progress import steps, track
from sidelight.foundation.threads import one_thread
from sidelight.leakage.bounds import Bound
from sidelight.leakage.totals import DeltaLeakage, TotalMethod, check_order
from sidelight.mechanisms.mechanism import check_list
from sidelight.plan import AT_DELTA, Plan

COMPARED: tuple[ConstraintName, ...] = ("table", "tree", "published")
Rule = TypeVar("Rule", bound=Constraint)
_SETTLINGS = 3  # a mechanism may go to and fro between two; the best so far is kept


def calibrate(
    belief: Belief, limit: float | None = None, *, limits: Mapping[str, float] | None = None,
    secrets: Iterable[str] | None = None, budgets: Budgets = "unequal", constraint: ConstraintName = "table",
    method: TotalMethod = "auto", confidence: float | None = None, mechanism: str = "grr",
    mechanisms: Mapping[str, str] | None = None, fixed: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None, utility: Utility = "variance", reports: int | None = None,
    plan: Plan | None = None, collected: Belief | None = None, frontier: Sequence[float] = (),
    compare: bool = False, delta: float | None = None, decide_by: AdversaryName | None = None,
    seed: int | None = None,
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
        delta: keep the limits at delta instead of in the worst case: the probability, averaged over the
            people with a value, with which a release may say more than its limit. See `leakage_at`.
        decide_by: for whom limits must hold in the end. Without a delta, "report" (so by default) or the
            constraint's "model"; budgets stay. With one, budgets are chosen for it: someone who knows this
            very "table" (so by default) or the "population", or who takes a "tree" for the population.
        seed: for a certificate at delta that can be repeated; else the operating system's coins.
    """
    factors = _checked(belief, constraint, method, confidence, budgets, plan, collected, frontier)
    delta, decide_by = _judging(plan, delta, decide_by)
    question = _Asked(belief, constraint, method, confidence, delta, decide_by)
    choice = choice_of(belief, mechanism, mechanisms, fixed, plan)
    bounds = limits_of(belief, limit, limits, secrets, plan)
    problem = Problem.of(belief, bounds, choice, weights, utility, reports)
    usual = usual_limit(limit, plan)
    with one_thread():  # threads would wait for each other: the products are small
        if delta is None:
            solution: _Solution[Any] = _solved(problem, question.worst_case(), budgets)
            result = _result(solution, solution.plan(usual), _confirmed(solution, usual, question))
        else:
            coins = None if seed is None else check_whole("seed", seed, at_least=0)
            solution, leakages = _certified(_solved(problem, question.at_delta(bounds), budgets), coins)
            result = _result(solution, solution.plan(usual), _told(solution, usual, leakages))
            chosen = replace(result.chosen, bounds={name: item.upper for name, item in leakages.items()})
            uniform = result.uniform if solution.is_unequal else chosen
            result = replace(result, chosen=chosen, uniform=uniform, delta=delta, leakages=leakages)
        return _signed(replace(result, **solution.beside(result, collected, factors, compare)), plan)


def _judging(
    plan: Plan | None, delta: float | None, decide_by: AdversaryName | None
) -> tuple[float | None, AdversaryName | None]:
    """Return the delta and the adversary who decides: those given, else the plan's.

    A plan may tell what leaks at delta and let the worst case decide; then its delta is none of the limits.
    """
    if plan is None:
        return delta, decide_by
    by = decide_by or plan.decide_by
    span = plan.delta if delta is None and (by is None or by in AT_DELTA) else delta
    return span, by if decide_by or span is None or by in AT_DELTA else None


def _signed(result: Calibration, given: Plan | None) -> Calibration:
    """Let the plan say at which delta and for whom it keeps its limits, and what a given plan said in words.

    This comes last: while budgets are checked, no audit is to draw for the delta of the plan.
    """
    by = None if result.decide_by == "report" else result.decide_by
    plan = replace(result.plan, delta=result.delta, decide_by=by)
    if given is not None:
        plan = replace(plan, reasons=given.reasons, purpose=given.purpose)
    if given is not None and by is None and given.decide_by == "report":
        plan = replace(plan, delta=given.delta, decide_by="report")
    return replace(result, plan=plan, audit=replace(result.audit, plan=plan))


def _checked(
    belief: Belief, constraint: ConstraintName, method: TotalMethod, confidence: float | None,
    budgets: Budgets, plan: Plan | None, collected: Belief | None, frontier: Sequence[float],
) -> list[float]:  # fmt: skip
    """Raise before the search for what is wrong in itself; return the factors of the frontier as numbers."""
    check_constraint(constraint, method, confidence)
    check_belief("belief", belief)
    check_choice("budgets", budgets, ("unequal", "uniform"))
    if collected is not None:
        check_belief("collected", collected)
    if plan is not None:
        check_is("plan", plan, Plan, "Plan.read takes a file.")
    return [check_number("frontier", factor, above=0) for factor in check_list("frontier", frontier)]


@dataclass(frozen=True, eq=False)
class _Search(Generic[Rule]):
    """How budgets are found under a constraint, and what stands beside it."""

    constrain: Callable[[Problem], Rule]
    uniform: Callable[[Problem, Rule], float]
    unequal: Callable[[Problem, Rule, float], Array]
    certificate: Callable[[Problem, Rule, Array, float], Certificate]
    beside: Callable[[Problem, Rule], Iterable[Constraint]]


@dataclass(frozen=True, eq=False)
class _Asked:
    """What must keep the limits, and for whom; see `calibrate`."""

    belief: Belief
    constraint: ConstraintName
    method: TotalMethod
    confidence: float | None
    delta: float | None
    decide_by: AdversaryName | None

    @property
    def decider(self) -> AdversaryName:
        """Whose verdict counts in the worst case."""
        return self.decide_by or "report"

    def worst_case(self) -> _Search[Constraint]:
        """Return the search under the constraint that was named."""
        is_model = self.belief.is_model or (self.constraint == "tree" and self.belief.tree is None)
        check_decider(self.decider, "report", is_model=is_model, has_model=False)

        def constrain(problem: Problem) -> Constraint:
            return constraint_of(problem, self.constraint, self.method, self.confidence)

        def beside(problem: Problem, rule: Constraint) -> Iterator[Constraint]:
            return (rule if name == rule.name else constraint_of(problem, name) for name in COMPARED)

        return _Search(constrain, uniform_budget, unequal_budgets, certificate, beside)

    def at_delta(self, limits: Mapping[str, float]) -> _Search[AtDelta]:
        """Return the search at delta, for whoever decides."""
        delta = check_number("delta", self.delta, above=0, below=1)
        if self.constraint != "table" or self.method != "auto":
            raise InputError(
                "`constraint` and `method` are for limits in the worst case; at delta, `decide_by` says who "
                "the limits are kept for: 'population', 'table' or 'tree'."
            )
        for name, limit in limits.items():
            check_number(f"limit of {name} at delta", limit, above=0, infinite=True)
        knower = knower_of(self.belief, self.decide_by)
        known = known_belief(self.belief, knower)

        def beside(problem: Problem, rule: AtDelta) -> Iterator[Constraint]:
            yield from (rule, composed_at_delta(problem, delta))
            yield from (constraint_of(problem, "table"), constraint_of(problem, "published"))

        return _Search(
            lambda problem: at_delta(problem, known, knower, delta),
            uniform_at_delta, unequal_at_delta, certificate_at_delta, beside,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Solution(Generic[Rule]):
    """Nominal budgets that keep the limits of a problem with settled mechanisms, and the largest for all."""

    search: _Search[Rule]
    problem: Problem
    rule: Rule
    uniform: float
    budgets: Array
    is_unequal: bool

    def plan(self, limit: float | None) -> Plan:
        """Return the plan; attributes that are no secrets get an infinite limit, so that any audit knows.

        Where there is no limit for all, they have none and are described.
        """
        problem = self.problem
        others = {} if limit is None else dict.fromkeys(problem.belief.schema.names, math.inf)
        limits = others | dict(problem.limits)
        own = {name: value for name, value in limits.items() if value != limit}
        return Plan(problem.releases_at(self.budgets), limit, own, self.rule.promise)

    def setting(self, budgets: Array) -> Setting:
        """Return budgets and what comes of them."""
        problem, parts = self.problem, (budgets, self.problem.errors(budgets))
        chosen, errors = (dict(zip(problem.free, part.tolist(), strict=True)) for part in parts)
        bounds = self.rule.bounds(budgets)
        return Setting(chosen, errors, problem.weighted_error(budgets), bounds)

    def is_saturated(self) -> bool:
        """Whether attributes with the largest budget that is searched could be released as they are."""
        problem = self.problem
        chosen = zip(problem.free, self.budgets, strict=True)
        bare = [name for name, budget in chosen if is_capped(budget)]
        if not bare:
            return False
        figures = self.rule.figures(self.budgets, bare)
        return bool((shares_over(figures, problem.bounds) <= 0).all())

    def beside(
        self, result: Calibration, collected: Belief | None, factors: Sequence[float], compare: bool
    ) -> dict[str, Any]:
        """Return the parts of a result that were asked for beside the budgets, by their names."""
        parts: dict[str, Any] = {}
        if collected is not None:
            parts["collected"] = _collected(collected, result)
        if self.is_unequal:
            found = self.search.certificate(self.problem, self.rule, self.budgets, self.uniform)
            parts["certificate"] = found
        others = tuple(self.alternatives()) if compare else ()
        return parts | {"alternatives": others, "frontier": tuple(self.frontier(factors))}

    def alternatives(self) -> Iterator[Alternative]:
        """Yield one budget for all under this constraint and under others."""
        problem, even = self.problem, self.problem.even_split()
        for rule in track(list(self.search.beside(problem, self.rule)), "constraints"):
            budget = None
            if rule is self.rule:
                budget = self.uniform
            elif excess(problem, rule, problem.alike(problem.least)) <= 0:
                budget = uniform_budget(problem, rule)
            ratio = math.nan if even is None or budget is None else budget / even
            yield Alternative(rule.name, budget, ratio, rule.promise, rule.is_sound, rule.delta)

    def frontier(self, factors: Sequence[float]) -> Iterator[FrontierPoint]:
        """Yield the weighted errors at limits some times as large, with the mechanisms as they are.

        Unequal budgets are left out where they take long: with many attributes.
        """
        for factor in track(factors, "frontier"):
            limits = {name: factor * limit for name, limit in self.problem.limits.items()}
            asked = replace(self.problem, limits=limits)  # it shares the channels, which limits do not change
            if excess(asked, self.rule, asked.alike(asked.least)) > 0:
                continue  # what is fixed already leaks more than this
            even, uniform, unequal = asked.even_split(), self.search.uniform(asked, self.rule), math.nan
            split = math.nan if even is None else asked.weighted_error(asked.alike(even))
            if self.is_unequal and len(asked.free) <= FEW:
                unequal = asked.weighted_error(self.search.unequal(asked, self.rule, uniform))
            yield FrontierPoint(factor, split, asked.weighted_error(asked.alike(uniform)), unequal)


def _solved(problem: Problem, search: _Search[Rule], budgets: Budgets) -> _Solution[Rule]:
    """Settle the mechanisms and return the best budgets.

    During a search mechanisms and the sizes of sets are frozen at what suits the budgets it starts from. If
    others suit the budgets it ends at, they are tried too, and the better of the two is kept.
    """
    guess = problem.alike(problem.even_split() or problem.least)
    best: _Solution[Rule] | None = None
    for _ in range(_SETTLINGS):
        settled = problem.settled(guess)
        if best is not None and settled.is_settled_as(best.problem):
            break
        rule = search.constrain(settled)
        with steps("whether any budget keeps the limits") as step:
            step()
            check_feasible(settled, rule)
        uniform = search.uniform(settled, rule)
        guess = search.unequal(settled, rule, uniform) if budgets == "unequal" else settled.alike(uniform)
        if best is None or settled.weighted_error(guess) < best.problem.weighted_error(best.budgets):
            best = _Solution(search, settled, rule, uniform, guess, budgets == "unequal")
    assert best is not None  # noqa: S101 - the loop runs at least once
    return best


def _certified(
    solution: _Solution[AtDelta], seed: int | None
) -> tuple[_Solution[AtDelta], dict[str, DeltaLeakage]]:
    """Return budgets that are certified by fresh draws, and the figures that show it."""
    sure = certified(solution.problem, solution.rule, solution.budgets, seed)
    uniform = solution.uniform if solution.is_unequal else float(sure.budgets[0])
    return replace(solution, budgets=sure.budgets, uniform=uniform), sure.leakages


def _result(solution: _Solution[Any], plan: Plan, audited: Audit) -> Calibration:
    """Put what the budgets are compared with beside them."""
    problem, rule, even = solution.problem, solution.rule, solution.problem.even_split()
    is_model = rule.delta is None and rule.name == "tree" and problem.belief.tree is None
    return Calibration(
        plan=plan,
        audit=audited,
        table_audit=audit(problem.belief, plan, problem.secrets) if is_model else None,
        constraint=rule.name, promise=rule.promise, is_sound=rule.is_sound, limits=problem.limits,
        weights=problem.weights, utility=problem.utility, reports=problem.reports,
        chosen=solution.setting(solution.budgets),
        uniform=solution.setting(problem.alike(solution.uniform)),
        even=None if even is None else solution.setting(problem.alike(even)),
        is_saturated=solution.is_saturated(),
    )  # fmt: skip


def _told(solution: _Solution[AtDelta], limit: float | None, leakages: Mapping[str, DeltaLeakage]) -> Audit:
    """Audit the plan in the worst case, and tell what was certified at delta beside it.

    The null of an audit at delta is left out: it says what a figure means, not whether it keeps a limit.
    """
    rule, problem = solution.rule, solution.problem
    checked = audit(problem.belief, solution.plan(limit), problem.secrets)
    secrets = {
        name: replace(item, stories=(Story(rule.knower, leakages[name], {}),), decide_by=rule.knower)
        for name, item in checked.secrets.items()
    }
    population = rule.belief if rule.belief.population is not None else None
    return replace(checked, secrets=secrets, delta=rule.delta, population=population)


def _collected(belief: Belief, result: Calibration) -> Audit:
    """Audit the plan under a belief about the people it will be used on, for whoever decides."""
    by, plan, limits = result.decide_by, result.plan, result.limits
    if result.delta is None:  # where a model decides, under a tree learnt from it as well
        return audit(belief, plan, limits, model=by == "model", decide_by=by)
    known = Belief.tree_of(belief) if by == "tree" else belief
    return audit(known, plan, limits, delta=result.delta, decide_by=by)


def _confirmed(solution: _Solution[Any], limit: float | None, question: _Asked) -> Audit:
    """Audit the plan under the constraint's own belief, and raise if its figure breaks a limit after all."""
    problem, rule, plan, by = solution.problem, solution.rule, solution.plan(limit), question.decider
    if rule.name in ("tree", "robust"):
        checked = audit(rule.belief, plan, problem.secrets, decide_by=by)
        checked = _with_totals(checked, rule.bounds(solution.budgets))
    else:
        checked = audit(problem.belief, plan, problem.secrets, method=question.method, decide_by=by)
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
