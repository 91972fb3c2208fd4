"""What a search asks between two figures: how they change with one budget, and large tables in few passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration
import sidelight as sl
from sidelight.calibration.constraint import Constraint, ConstraintName, constraint_of
from sidelight.calibration.problem import LARGEST_BUDGET, Problem, choice_of, limits_of
from sidelight.calibration.unequal import certificate, unequal_budgets
from sidelight.calibration.uniform import excess, uniform_budget
from sidelight.leakage.totals import ExactTotal, JointTotal, ListedTotals, Totals, exact_totals
from sidelight.mechanisms import Channel, create

SEEDS = st.integers(0, 2**32 - 1)
MECHANISMS = ("grr", "oue", "ss", "exp")


def random_belief(rng: np.random.Generator, shape: tuple[int, ...]) -> sl.Belief:
    joint = enumeration.random_joint(rng, shape)
    return sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(len(shape))])


def random_channels(rng: np.random.Generator, belief: sl.Belief, factor: float = 1.0) -> dict[str, Channel]:
    channels: dict[str, Channel] = {}
    for attribute in belief.schema:
        name, budget = str(rng.choice(MECHANISMS)), float(rng.choice([0.2, 1.0, 3.0]))
        parameters = {"width": (attribute.size + 1) // 2} if name == "ss" else {}
        channels[attribute.name] = create(name, attribute.size, budget * factor, **parameters).channel
    return channels


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(1, 5))))


@given(SEEDS)
@settings(max_examples=40)
def test_exact_totals_together_are_those_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief = random_belief(rng, random_shape(rng))
    channels, names = random_channels(rng, belief), belief.schema.names
    totals = ListedTotals.of(belief, names, names).values(channels)
    for name in names:
        exact = sl.total_leakage(belief, channels, name, "exact")
        assert totals[name] == pytest.approx(exact.value, abs=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 2, 2, 5, 2, 2, 3, 2), (40, 3), (3, 40, 2), (30, 2, 20)])
def test_axes_are_contracted_together_as_one_by_one(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    belief = random_belief(rng, shape)
    channels = {item.name: create("grr", item.size, 1.0).channel for item in belief.schema}
    totals = ListedTotals.of(belief, belief.schema.names, belief.schema.names).values(channels)
    assert sorted(totals) == list(belief.schema.names)
    for name, value in totals.items():
        assert value == pytest.approx(sl.total_leakage(belief, channels, name, "exact").value, abs=1e-12)


def test_a_search_sees_the_totals_of_the_audit_where_reports_are_too_many_to_list(rng) -> None:
    belief = random_belief(rng, (3, 12, 2))
    channels = {
        item.name: create(name, item.size, 1.0).channel
        for item, name in zip(belief.schema, ("grr", "oue", "grr"), strict=True)
    }
    parts = exact_totals(belief, channels, belief.schema.names)
    found = {name: bound for part in parts for name, bound in part.bounds(channels).items()}
    for name in belief.schema.names:
        audited = sl.total_leakage(belief, channels, name)
        assert (found[name].value, found[name].kind) == (pytest.approx(audited.value, abs=1e-12), "exact")


def test_budgets_for_many_values_are_not_set_by_composition() -> None:
    """Calibration uses the exact total of unary encodings of many values, and the audit agrees."""
    rows = np.random.default_rng(3).dirichlet(np.full(12, 5.0), size=3)
    belief = sl.Belief.from_joint(rows / 3, ["x", "u"])
    found = sl.calibrate(belief, limit=1.0, mechanism="oue", secrets=["x"], limits={"x": 1.0})
    audit = sl.audit(belief, found.plan, secrets=["x"])
    assert audit["x"].total.is_exact
    assert 0.99 < audit["x"].total.value <= 1.0
    assert sum(release.epsilon for release in found.plan.releases) > 1.1


@given(SEEDS, st.sampled_from([1 + 1e-6, 1.01, 1.5]))
@settings(max_examples=40)
def test_changes_are_never_above_the_true_ones_and_agree_for_small_moves(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    belief = random_belief(rng, random_shape(rng))
    names, state = belief.schema.names, rng.integers(2**32)
    now, moved = (random_channels(np.random.default_rng(state), belief, by) for by in (1.0, factor))
    parts: list[Totals] = [ListedTotals.of(belief, names, names)]
    parts += [JointTotal.of(belief, names, name, "auto") for name in names]
    parts += [ExactTotal(belief, name) for name in names]
    for part in parts:
        base = part.values(now)
        for secret, grown in part.changes(now, moved).items():
            for name, least in zip(names, grown, strict=True):
                true = part.values({**now, name: moved[name]})[secret] - base[secret]
                assert least <= true + 1e-12
                assert factor > 1 + 1e-5 or least == pytest.approx(true, abs=1e-9)


@given(SEEDS)
@settings(max_examples=10)
def test_every_constraint_tells_its_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_belief(rng, (2, 3, 2)))
    budgets = rng.uniform(0.1, 2.0, size=3)
    now, moved = problem.channels(budgets), problem.channels(budgets * 1.05)
    names: tuple[ConstraintName, ...] = ("table", "tree", "published")
    for name in names:
        rule = constraint_of(problem, name)
        found = rule.changes(now, {"x0": moved["x0"], "x2": moved["x2"]})
        assert found.shape == (3, 2)
        for column, moving in zip(found.T, ("x0", "x2"), strict=True):
            true = rule.figures({**now, moving: moved[moving]}) - rule.figures(now)
            assert (column <= true + 1e-12).all()
            assert (column >= 0.5 * true - 1e-12).all()


def problem_of(belief: sl.Belief) -> Problem:
    return Problem.of(belief, limits_of(belief, 1.0), choice_of(belief), reports=100)


class Silent(Constraint):
    """A constraint whose figures grow by nothing for sure."""

    def changes(self, channels: Mapping[str, Channel], moved: Mapping[str, Channel]) -> np.ndarray:
        return np.zeros_like(super().changes(channels, moved))


@given(SEEDS)
@settings(max_examples=10)
def test_budgets_are_largest_even_where_no_growth_is_sure(seed: int) -> None:
    problem = problem_of(random_belief(np.random.default_rng(seed), (2, 3, 2)))
    rule = constraint_of(problem, "table")
    silent = Silent(**vars(rule))
    one = uniform_budget(problem, rule)
    budgets = unequal_budgets(problem, silent, one)
    assert excess(problem, rule, budgets) <= 0
    blocked = certificate(problem, silent, budgets, one).blocked
    assert all(blocked[name] or budgets[i] == LARGEST_BUDGET for i, name in enumerate(problem.free))
    assert [*map(bool, blocked.values())] == [
        bool(name) for name in certificate(problem, rule, budgets, one).blocked.values()
    ]


def test_what_is_released_as_it_is_stays_infinite() -> None:
    belief = random_belief(np.random.default_rng(3), (3, 2))
    totals = ListedTotals.of(belief, belief.schema.names, belief.schema.names)
    open_door = sl.Release(belief.schema["x0"], "identity").channel()
    now, then = (create("grr", 2, budget).channel for budget in (1.0, 1.1))
    grown = totals.changes({"x0": open_door, "x1": now}, {"x1": then})
    assert totals.values({"x0": open_door, "x1": now})["x0"] == np.inf
    assert not grown["x0"] > 0


def test_large_exact_tables_are_calibrated_within_every_limit() -> None:
    rng = np.random.default_rng(14)
    joint = rng.gamma(0.3, size=(2,) * 12)
    belief = sl.Belief.from_joint(joint / joint.sum(), [f"x{axis}" for axis in range(12)])
    found = sl.calibrate(belief, 1.0)
    assert found.is_within
    assert found.certificate is not None
    assert all(found.certificate.blocked.values())
    assert found.certificate.gain > 1
    assert found.certificate.stationarity < 0.05
