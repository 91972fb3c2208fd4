"""What a search for budgets asks between two figures: how they change with one budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration
import sidelight as sl
from sidelight.calibration.constraint import ConstraintName, WorstCase, constraint_of
from sidelight.calibration.problem import LARGEST_BUDGET, Problem, choice_of, limits_of
from sidelight.calibration.unequal import certificate, unequal_budgets
from sidelight.calibration.uniform import excess, uniform_budget

SEEDS = st.integers(0, 2**32 - 1)


def random_belief(rng: np.random.Generator, shape: tuple[int, ...]) -> sl.Belief:
    joint = enumeration.random_joint(rng, shape)
    return sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(len(shape))])


def test_budgets_for_many_values_are_not_set_by_composition() -> None:
    """Calibration uses the exact total of unary encodings of many values, and the audit agrees."""
    rows = np.random.default_rng(3).dirichlet(np.full(12, 5.0), size=3)
    belief = sl.Belief.from_joint(rows / 3, ["x", "u"])
    found = sl.calibrate(belief, limit=1.0, mechanism="oue", secrets=["x"], limits={"x": 1.0})
    audit = sl.audit(belief, found.plan, secrets=["x"])
    assert audit["x"].total.is_exact
    assert 0.99 < audit["x"].total.value <= 1.0
    assert sum(release.epsilon for release in found.plan.releases) > 1.1


@given(SEEDS)
@settings(max_examples=10)
def test_every_constraint_tells_its_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_belief(rng, (2, 3, 2)))
    budgets = rng.uniform(0.1, 2.0, size=3)
    names: tuple[ConstraintName, ...] = ("table", "tree", "published")
    for name in names:
        rule = constraint_of(problem, name)
        found = rule.growth(budgets, budgets * 1.05)
        assert found.shape == (3, 3)
        for moving, column in enumerate(found.T):
            moved = budgets * np.where(np.arange(3) == moving, 1.05, 1.0)
            true = rule.figures(moved) - rule.figures(budgets)
            assert (column <= true + 1e-12).all()
            assert (column >= 0.5 * true - 1e-12).all()


def problem_of(belief: sl.Belief) -> Problem:
    return Problem.of(belief, limits_of(belief, 1.0), choice_of(belief), reports=100)


def test_channels_are_shared_by_releases_alike_in_all_that_decides_on_them() -> None:
    forms: dict[str, dict] = {
        "plain": {}, "alike": {"reason": "It is asked for, too.", "epsilon": 0.7}, "fixed": {"epsilon": 0.3},
        "fixed as well": {"epsilon": 0.6},
        "first half": {"mechanism": "l-grr", "times": 2, "memory": "kept", "parameters": {"first": 0.5}},
        "first fifth": {
            "mechanism": "l-grr", "times": 2, "memory": "kept", "parameters": {"first": 0.5}, "epsilon": 2.5
        },
        "often": {"times": 2}, "kept": {"times": 2, "memory": "kept"}, "bits": {"mechanism": "oue"},
        "narrow": {"mechanism": "ss", "parameters": {"width": 1}},
        "wide": {"mechanism": "ss", "parameters": {"width": 2}}, "three values": {},
    }  # fmt: skip
    belief = random_belief(np.random.default_rng(5), (*[2] * 8, 3, 3, 3, 3))
    belief = sl.Belief.from_joint(belief.joint(belief.schema.names), list(forms))
    releases = {
        name: sl.Release(belief.schema[name], **{"mechanism": "grr", "epsilon": 1.0, **form})
        for name, form in forms.items()
    }
    fixed = {"fixed": 0.3, "fixed as well": 0.6}
    choice = choice_of(belief, plan=sl.Plan(tuple(releases.values())), fixed=fixed)
    problem = Problem.of(belief, limits_of(belief, 9.0), choice, reports=100)
    channels = problem.channels(problem.alike(0.3))
    assert channels["plain"] is channels["alike"]
    assert len({id(channel) for channel in channels.values()}) == len(forms) - 1
    for name, release in releases.items():
        own = release.at(fixed.get(name, 0.3)).channel()
        assert channels[name].epsilon == own.epsilon
        np.testing.assert_array_equal(channels[name].columns(), own.columns())
    assert problem.channels(problem.alike(0.4))["plain"].epsilon > 0.3


class Silent(WorstCase):
    """A constraint whose figures grow by nothing for sure."""

    def growth(self, budgets: np.ndarray, raised: np.ndarray) -> np.ndarray:
        return np.zeros_like(super().growth(budgets, raised))


@given(SEEDS)
@settings(max_examples=4)
def test_budgets_are_largest_even_where_no_growth_is_sure(seed: int) -> None:
    check_largest(seed)


@pytest.mark.deep
@given(SEEDS)
@settings(max_examples=40)
def test_budgets_are_largest_for_many_more_beliefs(seed: int) -> None:
    check_largest(seed)


def check_largest(seed: int) -> None:
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
