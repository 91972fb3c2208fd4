"""Calibration: what is returned keeps every limit by brute force, and no more would."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration
import sidelight as sl
from sidelight.calibration.problem import LARGEST_BUDGET
from sidelight.calibration.uniform import largest_safe
from sidelight.leakage.totals import TreeTotals
from sidelight.mechanisms import create

KEPT = 1 + 1e-9
XOR = np.zeros((2, 2, 2))
XOR[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, float, dict[int, float]]:
    """A joint of two to four attributes with zeros and near-zeros, a limit, and limits of single secrets."""
    shape = tuple(draw(st.lists(st.integers(2, 3), min_size=2, max_size=4)))
    joint = enumeration.random_joint(np.random.default_rng(draw(st.integers(0, 2**32))), shape)
    limit = draw(st.sampled_from([0.05, 0.3, 1.0, 2.5]))
    own = draw(st.dictionaries(st.integers(0, len(shape) - 1), st.sampled_from([0.1, 0.7, 3.0]), max_size=2))
    return joint, limit, own


def belief_of(joint: np.ndarray) -> sl.Belief:
    return sl.Belief.from_joint(joint, [f"x{axis}" for axis in range(joint.ndim)])


def belief_named(joint: np.ndarray) -> sl.Belief:
    return sl.Belief.from_joint(joint, ["a", "b", "apart"])


def truth(joint: np.ndarray, budgets: dict[str, float], secret: int) -> float:
    """The exact leakage by plain loops; nothing shared with the package."""
    channels = {
        int(name[1:]): enumeration.randomised_response(joint.shape[int(name[1:])], budget)
        for name, budget in budgets.items()
    }
    return enumeration.total(joint, channels, secret)


def largest_excess(joint: np.ndarray, budgets: dict[str, float], limits: dict[str, float]) -> float:
    return max(truth(joint, budgets, int(name[1:])) / limit for name, limit in limits.items())


def check_uniform(case: tuple[np.ndarray, float, dict[int, float]]) -> None:
    joint, limit, own = case
    limits = {f"x{axis}": value for axis, value in own.items()}
    result = sl.calibrate(belief_of(joint), limit, limits=limits, budgets="uniform")
    assert len(set(result.budgets.values())) == 1
    assert largest_excess(joint, dict(result.budgets), dict(result.limits)) <= KEPT
    assert result.is_within
    raised = {name: 1.01 * budget for name, budget in result.budgets.items()}
    if not result.capped:
        assert largest_excess(joint, raised, dict(result.limits)) > 1


def check_unequal(case: tuple[np.ndarray, float, dict[int, float]]) -> None:
    joint, limit, own = case
    limits = {f"x{axis}": value for axis, value in own.items()}
    result = sl.calibrate(belief_of(joint), limit, limits=limits, weights={"x0": 4.0})
    assert largest_excess(joint, dict(result.budgets), dict(result.limits)) <= KEPT
    assert result.is_within
    assert result.chosen.weighted_error <= result.uniform.weighted_error * KEPT
    assert result.certificate is not None
    for name, blocker in result.certificate.blocked.items():
        raised = dict(result.budgets) | {name: 1.01 * result.budgets[name]}
        if blocker is None:
            assert raised[name] > LARGEST_BUDGET
        else:
            assert truth(joint, raised, int(blocker[1:])) > result.limits[blocker]


@settings(max_examples=100)
@given(cases())
def test_the_uniform_budget_keeps_every_limit_and_one_percent_more_does_not(case) -> None:
    check_uniform(case)


@settings(max_examples=25)
@given(cases())
def test_unequal_budgets_keep_every_limit_and_none_can_be_raised(case) -> None:
    check_unequal(case)


def test_a_frequency_that_rounds_to_over_1_is_taken_as_1() -> None:
    cells = np.zeros((2, 2, 2))
    cells[:, :, 1] = np.random.default_rng(7).dirichlet(np.ones(4)).reshape(2, 2)
    assert belief_of(cells).prior("x2").max() > 1
    check_uniform((cells, 0.05, {}))


@pytest.mark.parametrize("share", [0.9978263985190975, 0.997826365052483, 0.93, 0.7])
def test_rounding_at_a_limit_does_not_keep_a_budget_from_being_raised(share: float) -> None:
    """What one attribute's limit leaves is used up; the other has one value, so any budget is safe."""
    check_unequal((np.array([[share, 0.0], [1 - share, 0.0], [0.0, 0.0]]), 0.05, {}))


@pytest.mark.deep
@settings(max_examples=4000)
@given(cases())
def test_the_uniform_budget_in_thousands_of_cases(case) -> None:
    check_uniform(case)


@pytest.mark.deep
@settings(max_examples=1000)
@given(cases())
def test_unequal_budgets_in_many_cases(case) -> None:
    check_unequal(case)


@settings(max_examples=30)
@given(cases(), st.sampled_from(["oue", "ss", "hadamard", "olh", "sue", "exp"]))
def test_every_mechanism_is_certified_by_the_audit(case, mechanism: str) -> None:
    joint, limit, _ = case
    belief = belief_of(joint)
    result = sl.calibrate(belief, limit, mechanism=mechanism, budgets="uniform")
    again = sl.audit(belief, result.plan)
    assert again.is_within
    raised = [
        sl.Release(item.attribute, item.mechanism, 1.01 * item.epsilon, parameters=item.parameters)
        for item in result.plan.releases
    ]
    if not result.capped:
        assert sl.audit(belief, sl.Plan(tuple(raised), limit)).is_within is False


def test_xor_is_where_the_published_sum_fails() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "secret"])
    certified = sl.calibrate(belief, 1.0, budgets="uniform")
    published = sl.calibrate(belief, 1.0, budgets="uniform", constraint="published")
    assert published.budgets["a"] == pytest.approx(1.0, abs=1e-6)
    assert published.audit["secret"].verdict == "exceeded"
    assert not published.is_sound
    assert published.is_within is False
    assert "no promise" in published.plan.origin
    # eps + ln cosh eps = 1 at 0.745
    root = certified.budgets["a"]
    assert root + math.log(math.cosh(root)) == pytest.approx(1.0, abs=1e-7)
    assert certified.even is not None
    assert certified.even.budgets["a"] == pytest.approx(1 / 3)


def test_a_tree_is_a_model_and_the_plan_says_so() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "secret"])
    result = sl.calibrate(belief, 1.0, constraint="tree", budgets="uniform")
    assert result.budgets["a"] == pytest.approx(1.0, abs=1e-6)
    assert "models the population as this tree" in result.plan.origin
    assert {item.total.upper.kind for item in result.audit.secrets.values()} == {"model"}
    assert {item.verdict for item in result.audit.secrets.values()} == {"within, for a model"}
    assert result.table_audit is not None
    assert result.table_audit["secret"].verdict == "exceeded"


def test_a_tree_s_budgets_are_no_all_clear_for_the_table() -> None:
    """The calibration and an audit of its plan agree, whoever decides."""
    belief = sl.Belief.from_joint(XOR, ["a", "b", "secret"])
    for known, constraint in ((belief, "tree"), (sl.Belief.tree_of(belief), "table")):
        result = sl.calibrate(known, 1.0, constraint=constraint)
        assert not result.is_sound
        assert result.is_within is False
        assert sl.audit(known, result.plan).is_within is False
        assert (result.to_dict()["is_sound"], result.to_dict()["within_limits"]) == (False, False)
        assert any("an adversary who knows the table itself" in note for note in result.notes())
        asked = sl.calibrate(known, 1.0, constraint=constraint, decide_by="model")
        assert asked.budgets == result.budgets
        assert asked.is_within
        assert not asked.is_sound
        assert "for a model" in repr(asked)
    assert sl.audit(belief, result.plan, model=True, decide_by="model").is_within
    for options in ({"decide_by": "model"}, {"decide_by": "guess"}):
        with pytest.raises(sl.InputError, match="must be an adversary whose figures are computed"):
            sl.calibrate(belief, 1.0, **options)


def test_a_tree_s_budgets_count_where_the_table_keeps_the_limits_too() -> None:
    """Without any dependence a tree is the table."""
    cells = np.einsum("i,j,k->ijk", [0.3, 0.7], [0.5, 0.5], [0.2, 0.8])
    result = sl.calibrate(sl.Belief.from_joint(cells, ["a", "b", "c"]), 1.0, constraint="tree")
    assert not result.is_sound
    assert result.table_audit is not None
    assert result.is_within == result.table_audit.is_within
    assert result.is_within


def test_a_tree_given_by_hand_is_the_belief_itself() -> None:
    tree = sl.belief.Tree.from_pairs(
        {("a", "b"): [[0.4, 0.1], [0.1, 0.4]], ("b", "c"): [[0.3, 0.2], [0.1, 0.4]]}
    )
    result = sl.calibrate(sl.Belief.from_tree(tree), 1.0, budgets="uniform")
    joint = tree.joint(["a", "b", "c"])
    assert (
        largest_excess(joint, {f"x{i}": result.budgets[n] for i, n in enumerate("abc")}, {"x1": 1.0}) <= KEPT
    )
    assert result.table_audit is None
    assert result.audit["b"].total.upper.kind == "exact"


def test_robust_limits_hold_over_the_credal_set(rng: np.random.Generator) -> None:
    joint = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    sample = rng.multinomial(400, joint.ravel()).reshape(2, 2, 2)
    names = sl.Belief.from_joint(joint, ["x0", "x1", "x2"]).schema
    counts = sl.Counts(names, sample)
    belief = sl.Belief.from_counts(counts)
    robust = sl.calibrate(belief, 1.0, constraint="robust", confidence=0.9)
    plain = sl.calibrate(belief, 1.0)
    assert robust.is_within
    assert robust.chosen.weighted_error > plain.chosen.weighted_error
    assert "confidence 0.9" in robust.plan.origin
    for name in robust.limits:
        assert sl.leakage.robust_total(belief.credal(0.9), robust.plan.channels(), name).value <= KEPT
        assert truth(joint, dict(robust.budgets), int(name[1:])) <= 1  # fails with probability 0.1 at most


@pytest.fixture(scope="module")
def titanic() -> sl.Belief:
    return sl.Belief.from_data(sl.example("titanic"))


def test_weights_move_budgets_towards_what_counts(titanic: sl.Belief) -> None:
    plain = sl.calibrate(titanic, 1.0)
    weighted = sl.calibrate(titanic, 1.0, weights={"age": 50.0})
    assert weighted.budgets["age"] > 1.2 * plain.budgets["age"]
    assert weighted.certificate is not None
    assert weighted.certificate.gain > 1.1
    assert weighted.certificate.stationarity < 0.02


def test_fixed_withheld_and_unprotected_attributes(titanic: sl.Belief) -> None:
    result = sl.calibrate(
        titanic,
        3.0,
        secrets=["survived"],
        fixed={"sex": 0.2},
        mechanisms={"age": "identity", "class": "withheld"},
    )
    assert set(result.budgets) == {"survived"}
    assert result.plan["sex"].epsilon == 0.2
    assert result.plan["age"].mechanism == "identity"
    assert "class" not in result.plan.names
    assert result.even is None
    assert result.audit["survived"].total.value == pytest.approx(3.0)
    assert result.plan.limit_of("sex") == math.inf
    assert sl.audit(titanic, result.plan).is_within, "a plain audit of the plan knows what is no secret"


def test_leakage_that_saturates_leaves_the_largest_budget() -> None:
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "secret"])
    result = sl.calibrate(belief, 1.0, secrets=["secret"], mechanisms={"secret": "withheld"})
    assert result.budgets["a"] == LARGEST_BUDGET
    assert result.capped == ("a",)
    assert result.is_saturated
    notes = " ".join(result.notes())
    assert "No limit stops a, but the search, which ends at 20: leakage has saturated there" in notes
    assert "raised by 1 %" not in notes, "no limit is at work, so none is said to be"


@pytest.mark.parametrize("budgets", ["unequal", "uniform"])
def test_the_search_and_not_a_limit_may_end_it(budgets) -> None:
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    result = sl.calibrate(belief, 50.0, budgets=budgets)
    assert result.capped == ("a", "b")
    assert not result.is_saturated, "without noise the limit of 50 would be broken"
    notes = " ".join(result.notes())
    assert "leakage still grows there" in notes
    assert "even split" not in notes
    if result.certificate is not None:
        assert result.certificate.blocked == {"a": None, "b": None}


def test_notes_are_true_of_one_attribute() -> None:
    belief = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    result = sl.calibrate(belief, 1.0, secrets=["a"], mechanisms={"b": "withheld"}, collected=belief)
    notes = " ".join(result.notes())
    assert "release fewer attributes" not in notes
    assert "there is nothing to split" in notes
    assert "the secret is certified to stay within its limit" in notes


def test_a_limit_of_0_on_what_nothing_tells_is_kept() -> None:
    pair = np.array([[0.31, 0.17], [0.2, 0.32]])
    joint = np.einsum("ab,c->abc", pair, [0.6, 0.4])
    belief = belief_named(joint)
    withheld = {"apart": "withheld"}
    result = sl.calibrate(belief, 1.0, limits={"apart": 0}, mechanisms=withheld, weights={"a": 3.0})
    assert result.audit["apart"].total.value == pytest.approx(0, abs=1e-12)
    assert max(result.audit[name].total.value for name in "ab") == pytest.approx(1.0)
    assert result.budgets["a"] > result.budgets["b"]
    assert result.certificate is not None
    assert set(result.certificate.blocked.values()) <= {"a", "b"}
    hardly = 1e-8 * np.array([[1, -1], [-1, 1]])[:, None, :] + joint
    with pytest.raises(sl.InputError, match="a limit of 0 for 'apart' .* and a would. Withhold it"):
        sl.calibrate(belief_named(hardly), 1.0, limits={"apart": 0}, mechanisms=withheld)


def test_fixed_releases_that_leak_together_are_named_together() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "secret"])
    plain = {"a": "identity", "b": "identity"}
    with pytest.raises(sl.InputError, match="leaks infinitely much already, through a, b together"):
        sl.calibrate(belief, 1.0, secrets=["secret"], mechanisms=plain)


def test_a_secret_at_its_limit_does_not_block_what_does_not_concern_it() -> None:
    pair = np.array([[0.31, 0.17], [0.2, 0.32]])
    joint = np.einsum("ab,c->abc", pair, [0.6, 0.4])
    belief = sl.Belief.from_joint(joint, ["a", "b", "other"])
    result = sl.calibrate(belief, 1.0, secrets=["a", "b"], weights={"a": 9.0})
    assert result.budgets["other"] == LARGEST_BUDGET
    assert result.certificate is not None
    assert result.certificate.blocked["other"] is None


def test_subset_selection_freezes_the_size_of_its_sets(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(rng.dirichlet(np.ones(50)).reshape(10, 5), ["a", "b"])
    result = sl.calibrate(belief, 2.0, mechanism="ss", budgets="uniform")
    assert all("width" in item.parameters for item in result.plan.releases)
    assert result.is_within


def test_auto_takes_the_mechanism_with_the_least_error(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(rng.dirichlet(np.ones(60)).reshape(30, 2), ["many", "few"])
    auto = sl.calibrate(belief, 2.0, mechanism="auto")
    assert auto.plan["few"].mechanism == "grr"
    assert auto.plan["many"].mechanism == "ss"
    assert auto.chosen.weighted_error < sl.calibrate(belief, 2.0, mechanism="grr").chosen.weighted_error


def test_auto_settles_the_mechanism_of_a_fixed_budget_too(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(rng.dirichlet(np.ones(60)).reshape(30, 2), ["many", "few"])
    result = sl.calibrate(belief, 2.0, mechanism="auto", fixed={"many": 0.5})
    assert result.plan["many"].epsilon == 0.5
    assert result.plan["many"].mechanism == "ss"
    assert result.is_within
    assert "Kept as given: many (ss, budget 0.5)." in result.notes()
    given = sl.Plan((sl.Release(belief.schema["many"], "grr", 1.0, times=3),))
    again = sl.calibrate(belief, 2.0, plan=given, mechanisms={"many": "auto"})
    assert (again.plan["many"].mechanism, again.plan["many"].times) == ("ss", 3)


def test_a_plan_lends_its_mechanisms_parameters_and_repetitions(titanic: sl.Belief) -> None:
    schema = titanic.schema
    lent = sl.Plan(
        (
            sl.Release(schema["class"], "ss", 9.0, parameters={"width": 2}),
            sl.Release(schema["sex"], "grr", 9.0, times=3),
        )
    )
    result = sl.calibrate(titanic, 1.0, plan=lent)
    assert result.plan["class"].parameters == {"width": 2}
    assert result.plan["sex"].times == 3
    assert result.plan["sex"].epsilon < result.plan["class"].epsilon
    assert sl.audit(titanic, result.plan).is_within


def test_a_plan_lends_its_limits_where_none_are_given(titanic: sl.Belief) -> None:
    own = {"class": math.inf, "sex": 0.25}
    lent = sl.Plan.uniform(titanic.schema, limit=0.5, limits=own)
    found = {
        name: sl.calibrate(titanic, plan=lent, budgets="uniform", **given)  # type: ignore[arg-type]
        for name, given in {
            "none": {}, "secrets": {"secrets": ["sex"]}, "limits": {"limits": {"sex": 2.0}},
            "limit": {"limit": 2.0},
        }.items()
    }  # fmt: skip
    assert dict(found["none"].limits) == {"sex": 0.25, "age": 0.5, "survived": 0.5}
    assert dict(found["secrets"].limits) == {"sex": 0.25}
    assert dict(found["limits"].limits) == {"sex": 2.0, "age": 0.5, "survived": 0.5}
    assert set(found["limit"].limits.values()) == {2.0}
    assert [found["none"].plan.limit_of(name) for name in titanic.schema.names] == [math.inf, 0.25, 0.5, 0.5]
    assert found["none"].is_within
    with pytest.raises(sl.InputError, match="'class' is named as a secret, but the plan lets it leak"):
        sl.calibrate(titanic, plan=lent, secrets=["class", "sex"])
    everything = sl.Plan.uniform(titanic.schema, limit=math.inf)
    with pytest.raises(sl.InputError, match="every limit is infinite"):
        sl.calibrate(titanic, plan=everything)


def test_accuracy_as_utility(titanic: sl.Belief) -> None:
    result = sl.calibrate(titanic, 1.0, utility="accuracy", budgets="uniform")
    odds = math.exp(result.budgets["sex"])
    assert result.chosen.errors["sex"] == pytest.approx(1 / (1 + odds))
    assert result.chosen.errors["class"] == pytest.approx(3 / (3 + odds))
    with pytest.raises(sl.InputError, match="'olh' is not known in closed form"):
        sl.calibrate(titanic, 1.0, utility="accuracy", mechanism="olh")


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "ss", "exp", "hadamard", "interval"])
def test_the_stated_accuracy_is_that_of_guesses(name: str) -> None:
    mechanism = create(name, 5, 1.5)
    values = np.random.default_rng(5).choice(5, 40_000, p=[0.4, 0.3, 0.1, 0.1, 0.1]).astype(np.uint8)
    prior = np.bincount(values, minlength=5) / len(values)
    reports = mechanism.randomise(values, seed=9)
    guesses = guess(mechanism, reports, np.random.default_rng(6))
    seen = float(np.mean(guesses == values))
    # five standard errors: a false alarm has a probability below 6e-7
    assert abs(seen - mechanism.guess_accuracy(prior)) < 5 * 0.5 / math.sqrt(len(values))


def guess(mechanism, reports, rng: np.random.Generator) -> np.ndarray:
    """A value drawn evenly from those each report makes likeliest."""
    found = []
    cells = mechanism.channel.matrix() if mechanism.channel.is_listable else None
    for row in reports.values:
        if cells is not None:
            likely = np.flatnonzero(cells[:, int(row)] >= cells[:, int(row)].max() * (1 - 1e-12))
        elif mechanism.name == "ss":
            likely = row
        else:
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: mechanism.size]
            likely = np.flatnonzero(bits)
        found.append(rng.choice(likely if len(likely) else mechanism.size))
    return np.array(found)


def test_calibrate_here_collect_there(rng: np.random.Generator) -> None:
    there = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    here = sl.Belief.from_joint((there + 0.125) / 2, ["x0", "x1", "x2"])
    result = sl.calibrate(here, 1.0, collected=sl.Belief.from_joint(there, ["x0", "x1", "x2"]))
    assert result.is_within
    assert result.collected is not None
    assert result.collected.is_within is False
    assert result.collected["x0"].total.value == pytest.approx(truth(there, dict(result.budgets), 0))
    assert any("Applied to a belief given by hand" in note for note in result.notes())
    other = sl.Belief.from_joint(np.full((3, 2), 1 / 6), ["x0", "x1"])
    with pytest.raises(sl.InputError):
        sl.calibrate(here, 1.0, collected=other)


def test_the_frontier_falls_with_the_limit(titanic: sl.Belief) -> None:
    result = sl.calibrate(titanic, 1.0, frontier=[0.5, 1, 2])
    for column in ("even", "uniform", "unequal"):
        errors = [getattr(point, column) for point in result.frontier]
        assert errors == sorted(errors, reverse=True)
    middle = result.frontier[1]
    assert middle.uniform == pytest.approx(result.uniform.weighted_error)
    assert middle.unequal <= middle.uniform <= middle.even


def test_many_attributes_are_close_to_the_even_split_and_it_says_so() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2, (3000, 24)) | (rng.random((3000, 1)) < 0.3)
    table = sl.read(pa.table({f"x{i:02d}": rows[:, i] for i in range(24)}))
    result = sl.calibrate(sl.Belief.from_data(table), 1.0, budgets="uniform")
    assert result.uniform_ratio < 1.1
    assert any("release fewer attributes" in note for note in result.notes())


def test_the_result_as_data(titanic: sl.Belief) -> None:
    data = json.loads(sl.calibrate(titanic, 1.0, secrets=["survived"], frontier=[1]).to_json())
    assert data["within_limits"] is True
    assert data["plan"]["limits"]["sex"] == "infinity"
    assert set(data["chosen"]["budgets"]) == {"class", "sex", "age", "survived"}
    assert data["audit"]["secrets"]["survived"]["verdict"] == "within"
    unstated = sl.calibrate(titanic, 1.0, mechanism="any", budgets="uniform").to_dict()
    assert unstated["chosen"]["errors"]["sex"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limit": 0}, "a limit of 0 for"),
        ({"limits": {"survived": 0}}, "class, sex, age, survived would"),
        ({"mechanisms": {"sex": "identity"}, "secrets": ["survived"]}, "through sex (1.744 alone)"),
        ({"mechanisms": {"sex": "identity"}}, "limit of 1 for 'sex': what is fixed leaks infinitely much"),
        ({"fixed": {"sex": 1.5}}, "through sex (1.5 alone)"),
        ({"secrets": ["x"]}, "there is no attribute 'x'"),
        ({"secrets": []}, "`secrets` must name at least one"),
        ({"limits": {"x": 1.0}}, "there is no attribute 'x'"),
        ({"weights": {"age": 0}}, "`weight of age` must be a finite number above 0 and"),
        ({"weights": {"age": -1.0}}, "`weight of age` must be"),
        ({"weights": {"agee": 1.0}}, "did you mean 'age'?"),
        ({"weights": {"age": 1.0}, "fixed": {"age": 0.1}}, "'age' has a weight but no budget to choose"),
        ({"fixed": {"age": 0}}, "epsilon of age"),
        ({"fixed": {"age": 1.0}, "mechanisms": {"age": "identity"}}, "it cannot be fixed"),
        ({"limit": -1}, "`limit` must be a number of at least 0"),
        ({"limit": math.nan}, "`limit` must be"),
        ({"limit": math.inf}, "every limit is infinite"),
        ({"mechanism": "withheld"}, "all are withheld"),
        ({"mechanism": "identity"}, "there is no budget to choose"),
        ({"mechanism": "any"}, "'any' states none"),
        ({"mechanism": "magic"}, "`mechanism` must be one of"),
        ({"constraint": "magic"}, "`constraint` must be one of"),
        ({"constraint": "tree", "method": "exact"}, "`method` is for the constraint 'table'"),
        ({"method": "magic"}, "`method` must be one of"),
        ({"utility": "magic"}, "`utility` must be one of"),
        ({"budgets": "magic"}, "`budgets` must be one of"),
        ({"reports": 0}, "`reports` must be a whole number of at least 1"),
        ({"frontier": [0]}, "`frontier` must be a finite number above 0"),
        ({"confidence": 2.0, "constraint": "robust"}, "`confidence` must be a finite number above 0"),
        ({"confidence": 0.9}, "`confidence` is for the constraint 'robust', got 0.9 for 'table'"),
        ({"limits": [1.0]}, "`limits` must be a mapping from attributes"),
        ({"weights": [1.0]}, "`weights` must be a mapping from attributes"),
        ({"weights": {"age": math.nan}}, "`weight of age` must be a finite number above 0 and"),
        ({"weights": {"age": 1e300}}, "below 1e+09, got 1e+300"),
        ({"secrets": 5}, "`secrets` must be a list of attributes, got 5"),
        ({"frontier": 2}, "`frontier` must be a list of numbers, got 2"),
        ({"plan": "plan.toml"}, "`plan` must be a `Plan`, got 'str'"),
        ({"collected": 1}, "`collected` must be a `Belief`, got 'int'"),
        ({"belief": 1}, "`belief` must be a `Belief`, got 'int'"),
        ({"limit": 1e-300}, "the limit of 1e-300 for 'sex' is too small"),
    ],
)
def test_bad_input_names_the_thing_and_the_fix(titanic: sl.Belief, arguments, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        sl.calibrate(**({"belief": titanic} | arguments))
    assert words in str(caught.value)


def test_the_search_returns_what_it_has_seen_to_be_safe() -> None:
    assert largest_safe(lambda x: x - math.pi, 1e-6) == pytest.approx(math.pi, rel=1e-8)
    assert largest_safe(lambda x: x - math.pi, 1e-6) <= math.pi
    assert largest_safe(lambda x: math.inf if x > 2 else -1.0, 1e-6) == pytest.approx(2, rel=1e-6)
    assert largest_safe(lambda _: -1.0, 1e-6) == LARGEST_BUDGET
    # a bump that a doubling steps over: what is returned is safe all the same
    bumpy = largest_safe(lambda x: 1.0 if 0.9 < x < 0.95 or x > 3 else -1.0, 1e-6)
    assert bumpy == pytest.approx(3, rel=1e-6)


def test_a_jump_far_below_the_largest_budget_is_found() -> None:
    """It takes more steps than root finders are allowed as a rule."""
    found = largest_safe(lambda x: 5.5 if x > 1.7863188e-9 else -8.5e-14, 1.23307884e-12)
    assert found == pytest.approx(1.7863188e-9, rel=1e-6)
    assert found <= 1.7863188e-9


@pytest.mark.parametrize(
    ("share", "most"),
    [
        (lambda x: x / 3 - 1, 10),
        (lambda x: 0.5 + x / 8 - 1, 10),  # half of the limit is used up by what is fixed
        (lambda x: math.expm1(x) / 3 - 1, 15),
        (lambda x: math.tanh(x) / 0.9 - 1, 15),
        (lambda x: min(x, 1) * 0.8 - 1, 10),
    ],
)
def test_a_search_asks_few_questions(share, most: int) -> None:
    asked = []

    def over(number: float) -> float:
        asked.append(number)
        return share(number)

    found = largest_safe(over, 1e-6)
    assert share(found) <= 0
    assert found == LARGEST_BUDGET or share(found * 1.001) > 0
    assert len(asked) <= most


@pytest.mark.parametrize("method", ["exact", "joint generic", "composition"])
def test_methods_of_the_total(titanic: sl.Belief, method) -> None:
    result = sl.calibrate(titanic, 1.0, budgets="uniform", method=method)
    audit = sl.audit(titanic, result.plan, method=method)
    worst = max(item.total.value for item in audit.secrets.values())
    assert worst == pytest.approx(1.0, abs=1e-7)
    if method == "composition":
        assert result.budgets["sex"] == pytest.approx(0.25, abs=1e-7)


def _small() -> sl.Belief:
    rng = np.random.default_rng(8)
    return sl.Belief.from_joint(rng.dirichlet(np.ones(8)).reshape(2, 2, 2), ["x0", "x1", "x2"])


def test_repeated_reports_count_in_the_even_split() -> None:
    belief = _small()
    plan = sl.Plan(tuple(sl.Release(a, "grr", 1.0, times=5) for a in belief.schema))
    found = sl.calibrate(belief, 1.0, plan=plan, budgets="uniform")
    assert found.even.budgets["x0"] == pytest.approx(1 / 15)
    assert found.uniform.budgets["x0"] >= found.even.budgets["x0"] * (1 - 1e-6)


def test_an_infinite_limit_is_never_broken() -> None:
    belief = _small()
    limits = {"x0": math.inf, "x1": 5.0}
    found = sl.calibrate(belief, 1.0, limits=limits, secrets=["x1"], mechanisms={"x0": "identity"})
    assert found.audit["x1"].verdict == "within"


def test_what_the_plan_does_not_release_cannot_be_fixed() -> None:
    belief = _small()
    plan = sl.Plan((sl.Release(belief.schema["x0"], "grr", 1.0),))
    with pytest.raises(sl.InputError, match="'x1' is given .* but the plan does not release it"):
        sl.calibrate(belief, 1.0, plan=plan, fixed={"x1": 0.2})


def test_figures_of_a_tree_do_not_depend_on_what_was_asked_before() -> None:
    rng = np.random.default_rng(12)
    joint = rng.dirichlet(np.ones(54)).reshape(3, 2, 3, 3)
    tree = sl.Belief.tree_of(belief_of(joint))
    totals = TreeTotals(tree, tree.schema.names)
    plans = [sl.Plan.uniform(tree.schema, "grr", budget).channels() for budget in (0.3, 1.0, 2.0)]
    for _ in range(30):
        channels = {name: plans[rng.integers(3)][name] for name in tree.schema.names}
        known = totals.bounds(channels, witnesses=False)
        fresh = sl.leakage.tree_totals(tree, dict(channels))
        assert [known[name].value for name in known] == [fresh[name].value for name in fresh]
