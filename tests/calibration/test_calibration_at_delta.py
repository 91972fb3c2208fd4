"""Calibration to limits at delta: plans keep them by enumeration, and hardly larger budgets would not."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest

import enumeration
import release_cases
import sidelight as sl
from sidelight.calibration import delta_search
from sidelight.calibration.at_delta import at_delta
from sidelight.calibration.common_draws import CommonDraws
from sidelight.calibration.problem import LARGEST_BUDGET, Problem, choice_of, limits_of
from sidelight.leakage.totals.at_delta import BETA

KEPT = 1 + 1e-8


def truth_of(rows: np.ndarray, delta: float) -> float:
    """The smallest L with a hockey-stick divergence of at most delta for all pairs, by bisection."""

    def divergence(limit: float) -> float:
        return max(np.maximum(g - np.exp(limit) * h, 0).sum() for g, h in permutations(rows, 2))

    low, high = 0.0, 60.0
    if len(rows) < 2 or divergence(0.0) <= delta:
        return 0.0
    if divergence(high) > delta:
        return np.inf
    while high - low > 1e-11:
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) > delta else (low, middle)
    return high


def truth(joint: np.ndarray, plan: sl.Plan, secret: str, delta: float) -> float:
    tables = {int(name[1:]): release_cases.report_table(plan[name]) for name in plan.names}
    return truth_of(release_cases.release_rows(joint, tables, int(secret[1:])), delta)


def belief_of(joint: np.ndarray) -> sl.Belief:
    return sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(joint.ndim)])


def problem_of(belief: sl.Belief, limit: float, mechanism: str = "grr", **rules: object) -> Problem:
    return Problem.of(belief, limits_of(belief, limit, **rules), choice_of(belief, mechanism))


@pytest.fixture
def unlisted(monkeypatch) -> None:
    """Have every figure drawn, however small the release."""
    monkeypatch.setattr("sidelight.leakage.totals.at_delta._LARGEST_EXACT", 1)


@pytest.mark.parametrize("part", range(12))
def test_the_uniform_budget_is_the_largest_that_keeps_every_limit(part: int) -> None:
    rng = np.random.default_rng([part, 1])
    shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(2, 5))))
    joint, delta = enumeration.random_joint(rng, shape), float(rng.choice([0.2, 0.05, 1e-3]))
    found = sl.calibrate(belief_of(joint), 0.7, limits={"x0": 0.4}, budgets="uniform", delta=delta)
    assert found.is_within
    assert found.decide_by == found.constraint == "table"
    (budget,) = set(found.budgets.values())
    figures = {name: truth(joint, found.plan, name, delta) / limit for name, limit in found.limits.items()}
    assert max(figures.values()) <= KEPT
    for name, leakage in found.leakages.items():
        assert leakage.value == pytest.approx(figures[name] * found.limits[name], abs=1e-8)
        assert {0.01, 1e-3, 1e-4, delta} == {point.delta for point in leakage.points}
    if budget < LARGEST_BUDGET:
        raised = sl.Plan.uniform(belief_of(joint).schema, "grr", 1.001 * budget)
        assert any(truth(joint, raised, name, delta) > limit for name, limit in found.limits.items())


@pytest.mark.parametrize("part", range(6))
def test_unequal_budgets_keep_every_limit_and_have_less_error(part: int) -> None:
    rng = np.random.default_rng([part, 2])
    shape = tuple(int(size) for size in rng.integers(2, 4, size=3))
    joint = enumeration.random_joint(rng, shape)
    weights = {"x1": 3.0}
    found = sl.calibrate(belief_of(joint), 0.5, secrets=["x0", "x2"], delta=0.02, weights=weights)
    assert found.is_within
    assert all(truth(joint, found.plan, name, 0.02) <= 0.5 * KEPT for name in ("x0", "x2"))
    assert found.chosen.weighted_error <= found.uniform.weighted_error * KEPT
    assert found.certificate is not None
    assert found.certificate.gain >= 1 / KEPT


def test_unequal_budgets_find_what_is_free() -> None:
    """Only x0 says anything about itself, so that the others are released almost as they are."""
    joint = np.full((2, 3, 2), 1 / 12)
    found = sl.calibrate(belief_of(joint), 0.5, secrets=["x0"], delta=0.01)
    alone = sl.calibrate(sl.Belief.from_joint([0.5, 0.5], ["x0"]), 0.5, delta=0.01)
    assert found.budgets["x0"] == pytest.approx(alone.budgets["x0"], rel=1e-6)
    assert min(found.budgets["x1"], found.budgets["x2"]) > 4


@pytest.mark.parametrize("budgets", ["uniform", "unequal"])
@pytest.mark.usefixtures("unlisted")
def test_drawn_plans_keep_their_limits(budgets) -> None:
    """Each of 2 plans breaks its limit with probability 1e-6 at most; 0.85 of it means a bad search."""
    for seed in range(2):
        rng = np.random.default_rng([seed, 3])
        joint = rng.dirichlet(np.full(12, 0.6)).reshape(2, 3, 2)
        found = sl.calibrate(
            belief_of(joint), 0.8, secrets=["x0", "x1"], budgets=budgets, delta=0.05, seed=seed
        )
        assert found.is_within
        assert found.audit["x0"].deciding.leakage.upper.kind == "sampled"
        figures = [truth(joint, found.plan, name, 0.05) / 0.8 for name in ("x0", "x1")]
        assert 0.85 < max(figures) <= 1
        assert all(found.leakages[name].value <= 0.8 for name in ("x0", "x1"))
        assert found.chosen.weighted_error < 1.2 * found.uniform.weighted_error


@pytest.mark.usefixtures("unlisted")
def test_a_failed_certificate_is_drawn_anew_at_half_the_beta(monkeypatch) -> None:
    """The search is made to end far above the limit."""
    joint = np.random.default_rng(5).dirichlet(np.full(8, 0.6)).reshape(2, 2, 2)
    monkeypatch.setattr(delta_search, "_AIM", 1.3)
    found = sl.calibrate(belief_of(joint), 0.8, secrets=["x0"], budgets="uniform", delta=0.05, seed=1)
    assert found.leakages["x0"].beta in [BETA / 2**attempt for attempt in range(2, 6)]
    assert found.is_within
    assert found.leakages["x0"].value <= 0.8
    assert 0.85 * 0.8 < truth(joint, found.plan, "x0", 0.05) <= 0.8


@pytest.mark.usefixtures("unlisted")
def test_room_that_a_certificate_leaves_is_used(monkeypatch) -> None:
    joint = np.random.default_rng(5).dirichlet(np.full(8, 0.6)).reshape(2, 2, 2)
    monkeypatch.setattr(delta_search, "_AIM", 0.7)
    found = sl.calibrate(belief_of(joint), 0.8, secrets=["x0"], budgets="uniform", delta=0.05, seed=1)
    assert 0.85 * 0.8 < truth(joint, found.plan, "x0", 0.05) <= 0.8


@pytest.mark.usefixtures("unlisted")
def test_budgets_fall_back_to_composition(monkeypatch) -> None:
    """So few attempts are allowed that none succeeds; what composition allows needs no draws."""
    joint = np.random.default_rng(5).dirichlet(np.full(8, 0.6)).reshape(2, 2, 2)
    monkeypatch.setattr(delta_search, "_AIM", 4.0)
    monkeypatch.setattr(delta_search, "_ATTEMPTS", 1)
    found = sl.calibrate(belief_of(joint), 0.8, budgets="uniform", delta=0.05, seed=1, compare=True)
    composed = next(item for item in found.alternatives if item.constraint == "composition")
    assert found.is_within
    assert set(found.budgets.values()) == {composed.budget}


@pytest.mark.parametrize("mechanism", ["grr", "ss", "sue", "oue", "olh", "hadamard", "the"])
def test_growth_is_the_derivative_of_the_figure(mechanism: str, monkeypatch) -> None:
    """From 100,000 draws: standard errors are about 0.01, so that 0.06 is passed by chance once in 1e8."""
    rng = np.random.default_rng(8)
    belief = belief_of(rng.dirichlet(np.full(12, 0.5)).reshape(2, 3, 2))
    problem = problem_of(belief, 1.0, mechanism, secrets=["x0"]).settled(np.array([0.8, 1.1, 0.6]))
    rule = at_delta(problem, belief, "table", 0.02)
    budgets = np.array([0.8, 1.1, 0.6])
    view = belief.view("x0")
    draws = CommonDraws(view, 0.02, 100_000, 3)
    now, then = ({item.name: item for item in problem.releases_at(b)} for b in (budgets, budgets * 1.01))
    grown = draws.growth(draws.look(now), now, then) / 0.01
    if rule.is_listed:
        true = rule.growth(budgets, budgets * 1.001)[0] / 0.001
    else:  # hashed reports are too many to list; two looks with common draws tell as much
        monkeypatch.setattr("sidelight.calibration.common_draws._scaled", lambda *_: None)
        true = draws.growth(draws.look(now), now, then) / 0.01
    assert grown == pytest.approx(true, abs=0.06)


def test_growth_is_compared_where_a_mechanism_does_not_state_its_scales() -> None:
    """Two looks at budgets a tenth apart, 100,000 draws each: standard errors are about 0.03."""
    belief = belief_of(np.random.default_rng(8).dirichlet(np.full(12, 0.5)).reshape(2, 3, 2))
    problem = problem_of(belief, 1.0, "exp", secrets=["x0"])
    budgets = np.array([1.6, 2.2, 1.2])
    now, then = ({item.name: item for item in problem.releases_at(b)} for b in (budgets, budgets * 1.01))
    draws = CommonDraws(belief.view("x0"), 0.02, 100_000, 3)
    true = at_delta(problem, belief, "table", 0.02).growth(budgets, budgets * 1.1)[0] / np.log(1.1)
    assert draws.growth(draws.look(now), now, then) / np.log(1.01) == pytest.approx(true, abs=0.15)


def test_reports_of_large_budgets_sent_often_do_not_vanish() -> None:
    """Products of 64 likelihoods of e^-30 leave the range of doubles; what is left of each must not."""
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    release = sl.Release(belief.schema["b"], "oue", 30.0, times=64)
    look = CommonDraws(belief.view("a"), 1e-2, 2000, 3).look({"b": release})
    truth = sl.leakage_at(belief, sl.Plan((sl.Release(belief.schema["b"], "identity"),)), "a", 1e-2).value
    assert look.figure == pytest.approx(truth, abs=0.05)  # so many reports tell the value


@pytest.mark.parametrize("mechanism", ["grr", "oue"])
def test_growth_of_repeated_reports_is_the_derivative_of_the_figure(mechanism: str) -> None:
    """From 100,000 draws, against the change of the exact figure; see the test of single reports."""
    rng = np.random.default_rng(8)
    belief = belief_of(rng.dirichlet(np.full(6, 0.5)).reshape(2, 3))
    now, then = (
        {"x1": sl.Release(belief.schema["x1"], mechanism, budget, times=3)} for budget in (0.5, 0.505)
    )
    draws = CommonDraws(belief.view("x0"), 0.02, 100_000, 3)
    exact = [sl.leakage_at(belief, sl.Plan((part["x1"],)), "x0", 0.02).value for part in (now, then)]
    assert draws.growth(draws.look(now), now, then) / 0.005 == pytest.approx(np.diff(exact) / 0.005, abs=0.06)


@pytest.mark.usefixtures("unlisted")
def test_the_same_draws_serve_all_budgets() -> None:
    """Estimates at neighbouring budgets differ by what the budgets do: the figure rises along the way."""
    belief = belief_of(np.random.default_rng(9).dirichlet(np.full(8, 0.6)).reshape(2, 2, 2))
    problem = problem_of(belief, 1.0, secrets=["x0"])
    rule = at_delta(problem, belief, "table", 0.05)
    figures = [rule.figure("x0", problem.alike(budget)) for budget in np.linspace(0.5, 0.6, 11)]
    assert figures == [rule.figure("x0", problem.alike(budget)) for budget in np.linspace(0.5, 0.6, 11)]
    steps = np.diff(figures)  # with draws of their own, some steps are less than half as long as others
    assert steps.min() > 0.8 * steps.mean()
    assert steps.max() < 1.25 * steps.mean()


@pytest.mark.parametrize(("mechanism", "held"), [("ss", "width"), ("olh", "g")])
def test_parameters_that_follow_the_budget_are_held(mechanism: str, held: str) -> None:
    joint = np.random.default_rng(11).dirichlet(np.full(12, 0.5)).reshape(2, 6)
    found = sl.calibrate(belief_of(joint), 0.8, secrets=["x0"], mechanism=mechanism, delta=0.05, seed=2)
    assert found.is_within
    assert all(held in release.parameters for release in found.plan.releases)
    assert truth(joint, found.plan, "x0", 0.05) <= 0.8 * KEPT or mechanism == "olh"


def test_budgets_that_are_not_ordered_are_scanned() -> None:
    joint = np.random.default_rng(12).dirichlet(np.full(8, 0.5)).reshape(2, 4)
    found = sl.calibrate(
        belief_of(joint), 0.8, secrets=["x0"], mechanism="interval", budgets="uniform", delta=0.05
    )
    assert found.is_within
    assert 0.8 * 0.99 < truth(joint, found.plan, "x0", 0.05) <= 0.8 * KEPT


def test_a_mechanism_still_to_be_chosen_adds_its_budget() -> None:
    joint = np.random.default_rng(0).dirichlet(np.full(8, 0.8)).reshape(2, 2, 2)
    mechanisms = {"x2": "any"}
    found = sl.calibrate(belief_of(joint), 1.0, mechanisms=mechanisms, budgets="uniform", delta=0.05, seed=1)
    assert found.is_within
    assert max(item.value for item in found.leakages.values()) > 0.5


def people(count: int = 3000) -> sl.Table:
    rng = np.random.default_rng(13)
    ill = rng.random(count) < 0.3
    columns = {"ill": ill, "treated": ill ^ (rng.random(count) < 0.1), "old": rng.random(count) < 0.5}
    return sl.read({name: np.where(column, "yes", "no") for name, column in columns.items()})


@pytest.mark.parametrize("decide_by", ["population", "table", "tree"])
def test_limits_are_kept_for_whoever_decides(decide_by) -> None:
    belief = sl.Belief.from_data(people())
    found = sl.calibrate(belief, 1.0, secrets=["ill"], delta=0.01, decide_by=decide_by, seed=1)
    assert found.is_within
    assert (found.decide_by, found.constraint) == (decide_by, decide_by)
    assert found.audit["ill"].deciding.adversary == decide_by
    assert found.leakages["ill"].value <= 1.0
    assert found.is_sound == (decide_by == "table")
    assert f"at delta {0.01:g}" in found.promise
    assert found.plan.origin == found.promise


def test_the_plan_stands_beside_other_rules() -> None:
    belief = sl.Belief.from_data(people())
    found = sl.calibrate(belief, 1.0, secrets=["ill"], delta=0.01, budgets="uniform", compare=True, seed=1)
    named = {(item.constraint, item.delta): item for item in found.alternatives}
    assert [*named] == [("table", 0.01), ("composition", 0.01), ("table", None), ("published", None)]
    budgets = {key: item.budget for key, item in named.items()}
    even = next(iter(found.even.budgets.values()))
    assert even <= budgets["table", None] <= budgets["table", 0.01]
    assert even <= budgets["composition", 0.01] <= budgets["table", 0.01]
    assert named["table", 0.01].ratio == pytest.approx(found.uniform_ratio)
    assert not named["published", None].is_sound


def test_collected_people_are_audited_at_delta_too() -> None:
    belief = sl.Belief.from_data(people())
    found = sl.calibrate(belief, 1.0, secrets=["ill"], delta=0.01, collected=sl.Belief.from_data(people(500)))
    assert found.collected.delta == 0.01
    assert found.collected.decide_by == "table"


def test_the_result_is_plain_data() -> None:
    belief = sl.Belief.from_data(people())
    factors = [0.5, 1.0]
    found = sl.calibrate(belief, 1.0, secrets=["ill"], delta=0.01, seed=1, frontier=factors, compare=True)
    plain = json.loads(found.to_json())
    assert plain["delta"] == 0.01
    assert plain["decide_by"] == "table"
    assert [point["delta"] for point in plain["leakage_at_delta"]["ill"]["points"]] == [1e-2, 1e-3, 1e-4]
    assert [item["delta"] for item in plain["alternatives"]] == [0.01, 0.01, None, None]
    assert any("1 person in 100" in note for note in plain["notes"])
    assert any("worst case" in note for note in plain["notes"])
    assert "at delta 0.01" in repr(found)
    assert found.frontier[0].uniform > found.frontier[1].uniform


@pytest.mark.parametrize("delta", [0, 1, -0.1, float("nan"), "small"])
def test_refuses_a_delta_that_is_none(delta) -> None:
    with pytest.raises(sl.InputError, match="`delta`"):
        sl.calibrate(belief_of(np.full((2, 2), 0.25)), 1.0, delta=delta)


def test_refuses_what_it_cannot_keep() -> None:
    belief = belief_of(np.full((2, 2), 0.25))
    with pytest.raises(sl.InputError, match="limit of x0 at delta"):
        sl.calibrate(belief, 0.0, delta=0.01)
    with pytest.raises(sl.InputError, match="decide_by.*at delta"):
        sl.calibrate(belief, 1.0, delta=0.01, decide_by="report")
    with pytest.raises(sl.InputError, match="decide_by"):
        sl.calibrate(belief, 1.0, delta=0.01, decide_by="nobody")
    with pytest.raises(sl.InputError, match="population"):
        sl.calibrate(belief, 1.0, delta=0.01, decide_by="population")
    with pytest.raises(sl.InputError, match="decide_by"):
        sl.calibrate(belief, 1.0, decide_by="table")
    with pytest.raises(sl.InputError, match="worst case"):
        sl.calibrate(belief, 1.0, delta=0.01, constraint="robust")
    with pytest.raises(sl.InputError, match="`seed`"):
        sl.calibrate(belief, 1.0, delta=0.01, seed=-1)
    pairs = sl.Belief.from_data(people(), kind="pairwise")
    with pytest.raises(sl.InputError, match="whole records"):
        sl.calibrate(pairs, 1.0, delta=0.01)
    with pytest.raises(sl.InputError, match="no budget keeps the limit"):
        sl.calibrate(belief, 1.0, delta=0.01, mechanisms={"x0": "identity"})
