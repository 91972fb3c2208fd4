"""Figures at delta in an audit: three stories side by side, their nulls, verdicts and suppression."""

from __future__ import annotations

import gc
import json
import math
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

import sidelight as sl
from sidelight.auditing import Sampling, Story
from sidelight.auditing.result import SUPPRESSED
from sidelight.belief.population import Population
from sidelight.belief.shuffled import all_shuffled, shuffled
from sidelight.leakage import DeltaLeakage, DeltaPoint
from sidelight.leakage.totals import at_delta

SEEDED = Sampling(draws=2000, seed=5)


@pytest.fixture(scope="module")
def belief() -> sl.Belief:
    return sl.Belief.from_data(sl.example("titanic"))


@pytest.fixture(scope="module")
def audit(belief: sl.Belief) -> sl.Audit:
    return sl.audit(belief, sl.Plan.uniform(belief.schema), delta=5e-3)


def coins(people: int, attributes: int, seed: int = 1) -> sl.Belief:
    """Return the table of people who tossed coins: nothing goes together but by chance."""
    codes = np.random.default_rng(seed).integers(0, 2, size=(people, attributes))
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", ["0", "1"]) for i in range(attributes)))
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    records = sl.sources.Records(schema, rows.astype(np.uint16), counts.astype(float))
    return sl.Belief.from_records(records)


def test_three_stories_in_their_order_with_all_deltas(audit: sl.Audit) -> None:
    assert audit.delta == 5e-3
    assert audit.population is not None
    assert audit.population.is_model
    for secret, item in audit.secrets.items():
        assert [story.adversary for story in item.stories] == ["population", "table"]
        for story, belief in zip(item.stories, (audit.population, audit.belief), strict=True):
            expected = sl.leakage_at(belief, audit.plan, secret, 5e-3)
            assert [point.delta for point in story.leakage.points] == [1e-2, 5e-3, 1e-3, 1e-4]
            assert story.leakage.points == expected.points
            assert set(story.nulls) == {1e-2, 5e-3, 1e-3, 1e-4}
        assert item.stories[1].leakage.value <= item.worst_case.upper.value + 1e-9


def test_the_table_decides_unless_another_is_named(audit: sl.Audit) -> None:
    plan = audit.plan
    assert audit.decide_by == "table"
    assert sl.audit(audit.belief, plan, ["sex"]).decide_by == "report"
    for name in ("population", "table", "report"):
        asked = sl.audit(audit.belief, plan, ["sex"], delta=1e-2, decide_by=name)
        assert asked["sex"].decision == asked["sex"].outcomes[name]
    value = audit["survived"].stories[1].leakage.value
    for limit, outcome in ((value + 1e-6, "within"), (value - 1e-6, "exceeded")):
        limited = replace(plan, limits={"survived": limit})
        item = sl.audit(audit.belief, limited, ["survived"], delta=5e-3)["survived"]
        assert item.decision == outcome
        assert item.outcomes["report"] == "exceeded"
        assert (
            item.statement == f"{outcome}, for someone who knows this very table; exceeded in the worst case"
        )


def test_a_belief_is_modelled_once_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fit = Population.fit.__func__
    monkeypatch.setattr(Population, "fit", classmethod(lambda *given: fits.append(1) or fit(*given)))
    table = coins(300, 3)
    first, again = (
        sl.audit(table, sl.Plan.uniform(table.schema, epsilon=budget), ["x0"], delta=1e-2)
        for budget in (1.0, 2.0)
    )
    assert again.population is first.population
    assert len(fits) == 4  # itself, and dealt anew three times
    sl.audit(coins(300, 3), first.plan, ["x0"], delta=1e-2)
    assert len(fits) == 8, "an equal table is another one"
    kept = ref(table)
    del table, first, again
    gc.collect()
    assert kept() is None


def test_a_sampled_story_can_be_repeated(belief: sl.Belief, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_delta, "_LARGEST_EXACT", 1)
    plan = sl.Plan.uniform(belief.schema)
    first, again = (sl.audit(belief, plan, ["sex"], delta=1e-2, sampling=SEEDED)["sex"] for _ in range(2))
    assert [story.to_dict() for story in first.stories] == [story.to_dict() for story in again.stories]
    assert first.stories[1].leakage.draws == 2000
    assert set(first.stories[1].nulls) == {1e-2}  # 200 draws say nothing about one in a thousand
    precise = Sampling(draws=2000, precision=0.02, seed=5)
    assert (
        sl.audit(belief, plan, ["sex"], delta=1e-2, sampling=precise)["sex"].stories[1].leakage.draws > 2000
    )


def test_shuffling_keeps_all_but_the_secret_s_connections(belief: sl.Belief) -> None:
    dealt = shuffled(belief, "sex")
    others = ["class", "age", "survived"]
    np.testing.assert_allclose(dealt.joint(others), belief.joint(others), atol=1e-12)
    np.testing.assert_allclose(dealt.prior("sex"), belief.prior("sex"), atol=1e-12)
    np.testing.assert_allclose(dealt.blocks, dealt.records.pair_tables())
    assert dealt.records.total == belief.records.total
    assert not np.allclose(dealt.joint(["sex", "class"]), belief.joint(["sex", "class"]), atol=0.01)
    apart = np.outer(belief.prior("sex"), belief.prior("class"))
    # 2,201 people: a cell of an independent table is off by 0.05 with a probability below 1e-5
    np.testing.assert_allclose(dealt.joint(["sex", "class"]), apart, atol=0.05)
    assert np.array_equal(shuffled(belief, "sex").records.codes, dealt.records.codes)
    every = all_shuffled(belief)
    for name in belief.schema.names:
        np.testing.assert_allclose(every.prior(name), belief.prior(name), atol=1e-12)
    np.testing.assert_allclose(
        every.joint(["class", "age"]), np.outer(every.prior("class"), every.prior("age")), atol=0.05
    )


def test_nulls_are_what_the_shuffled_table_says(audit: sl.Audit) -> None:
    deals = [shuffled(audit.belief, "survived", seed) for seed in range(3)]
    item = audit["survived"]
    nulls = [sl.leakage_at(dealt, audit.plan, "survived", 5e-3) for dealt in deals]
    for delta, null in item.stories[1].nulls.items():
        assert null == pytest.approx(max(leakage.at(delta).upper.value for leakage in nulls))
    totals = [sl.total_leakage(dealt, audit.plan.channels(), "survived") for dealt in deals]
    assert item.null == max(totals, key=lambda total: total.value)
    assert len({total.value for total in totals}) == 3
    assert not any(story.is_noise(point) for story in item.stories for point in story.leakage.points)
    assert not item.is_noise


def test_coins_say_no_more_than_their_null() -> None:
    """A figure of chance rises above the largest of three nulls in one case of four, less the margin.

    Of nine that hang together, so many as five are allowed; with this seed it is one.
    """
    belief = coins(500, 12)
    plan = sl.Plan.uniform(belief.schema, "grr", 0.5)
    audit = sl.audit(belief, plan, ["x0", "x1", "x2"], delta=1e-2, sampling=SEEDED)
    rising = 0
    for item in audit.secrets.values():
        population, table = item.stories
        assert population.leakage.value < 0.56
        rising += sum(not story.is_noise(story.leakage.at(1e-2)) for story in item.stories) + (
            not item.is_noise
        )
        told = json.loads(audit.to_json())["secrets"][item.secret]["stories"]
        assert told[1]["points"][0]["is_noise"] == table.is_noise(table.leakage.at(1e-2))
    assert rising <= 5


def test_a_secret_that_is_not_released_has_a_null_near_0(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema).withholding(["survived"])
    item = sl.audit(belief, plan, ["survived"], delta=1e-2)["survived"]
    for story in item.stories:
        assert story.nulls[1e-2] < 0.1 < story.leakage.value
        assert not story.is_noise(story.leakage.at(1e-2))


@pytest.mark.parametrize(
    ("upper", "kind", "estimate", "outcome"),
    [
        (1.0, "sampled", 0.9, "within"),
        (1.3, "sampled", 0.9, "not certified"),
        (1.3, "sampled", 1.1, "not certified"),
        (1.3, "sampled", 1.2, "exceeded"),
        (9.0, "certified", 1.2, "not certified"),
        (1.3, "certified", 1.28, "not certified"),
        (1.3, "certified", None, "not certified"),
        (1.3, "exact", None, "exceeded"),
        (1.3, "model", None, "exceeded"),
        (math.inf, "sampled", math.inf, "not certified"),
        (math.inf, "exact", None, "exceeded"),
    ],
)
def test_what_shows_that_a_limit_is_broken(
    upper: float, kind: str, estimate: float | None, outcome: str
) -> None:
    composed = sl.Bound(9.0, "certified", "composition at delta")
    point = DeltaPoint(1e-3, sl.Bound(upper, kind, "test"), estimate, composed)
    leakage = DeltaLeakage("x", (), 1e-3, (point,), 100, 1e-6, np.ones(1), np.ones(1))
    assert Story("table", leakage, {}).outcome(1.0) == outcome


def test_budgets_that_are_only_counted_break_no_limit(belief: sl.Belief) -> None:
    """Of "any" mechanism nothing can be drawn: its budget is in every figure, yet need not leak."""
    schema = belief.schema
    plan = sl.Plan(
        (sl.Release(schema["age"], "any", 2.0), sl.Release(schema["class"], "grr", 0.1)), limit=1.5
    )
    item = sl.audit(belief, plan, ["sex"], delta=1e-2, sampling=SEEDED)["sex"]
    assert item.stories[1].beyond == pytest.approx(2.0)
    assert item.outcomes["table"] != "exceeded"


def test_a_table_of_fractions_has_no_population() -> None:
    schema = sl.Schema((sl.categorical("a", ["0", "1"]), sl.categorical("b", ["0", "1"])))
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint16)
    halves = sl.Belief.from_records(sl.sources.Records(schema, codes, np.array([0.5, 1.5, 2.0, 3.25])))
    item = sl.audit(halves, sl.Plan.uniform(schema), ["a"], delta=1e-2)["a"]
    assert [story.adversary for story in item.stories] == ["table"]
    many = sl.Belief.from_records(sl.sources.Records(schema, codes, np.array([1e9, 2e9, 3e9, 1e9])))
    story = sl.audit(many, sl.Plan.uniform(schema), ["a"], delta=1e-2)["a"].stories[1]
    assert story.nulls[1e-2] == pytest.approx(
        sl.leakage_at(many, sl.Plan.uniform(schema), "a", 1e-2, through=["a"]).value
    )


def test_draws_never_break_a_limit_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth by listing is the limit: "exceeded" would be wrong, and above it "within" would be.

    Each verdict errs with a probability of about 1e-6; 60 joints give 120 of them.
    """
    rng = np.random.default_rng(8)
    for trial in range(60):
        belief = sl.Belief.from_joint(rng.dirichlet(np.full(12, 0.7)).reshape(2, 3, 2), ["s", "u", "v"])
        plan = sl.Plan.uniform(belief.schema, "grr", float(rng.choice([0.5, 1.0, 2.0])))
        truth = sl.leakage_at(belief, plan, "s", 1e-2).value
        with monkeypatch.context() as patch:
            patch.setattr(at_delta, "_LARGEST_EXACT", 1)
            story = Story("table", sl.leakage_at(belief, plan, "s", 1e-2, draws=4000, seed=trial), {})
        assert story.outcome(truth) != "exceeded"
        assert story.outcome(truth - 1e-6) != "within"


def test_the_worst_case_and_the_table_do_not_contradict_each_other(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema, limits={"survived": 1.9})
    item = sl.audit(belief, plan, ["survived"], delta=1e-2)["survived"]
    assert item.outcomes["report"] == "within" == item.outcomes["table"]
    shaky = replace(
        item.stories[1].leakage.at(1e-2), upper=sl.Bound(2.5, "sampled", "few draws"), estimate=1.7
    )
    leakage = replace(item.stories[1].leakage, points=(shaky,))
    told = replace(item, stories=(replace(item.stories[1], leakage=leakage),))
    assert told.outcomes["table"] == "within"
    hidden = replace(item, limit=1.0, total=replace(item.total, lower=sl.Bound(0.0, "lower", "hidden")))
    assert hidden.outcomes["report"] == "exceeded" == hidden.outcomes["table"]


def test_a_model_has_its_own_story_and_a_table_by_hand_no_population(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema)
    tree = sl.audit(sl.Belief.tree_of(belief), plan, ["sex"], delta=1e-2)
    assert [story.adversary for story in tree["sex"].stories] == ["tree"]
    assert tree.decide_by == "tree"
    assert tree["sex"].worst_case.value == pytest.approx(4.0)
    assert tree.population is None
    own = sl.leakage_at(belief, plan, "sex", 1e-2, through=["sex"]).value
    assert tree["sex"].stories[0].nulls[1e-2] == pytest.approx(own)
    population = sl.audit(sl.Belief.population_of(belief), plan, ["sex"], delta=1e-2)
    assert [story.adversary for story in population["sex"].stories] == ["population"]
    by_hand = sl.Belief.from_joint([[0.3, 0.2], [0.1, 0.4]], ["a", "b"])
    table = sl.audit(by_hand, sl.Plan.uniform(by_hand.schema), delta=1e-2)
    assert [story.adversary for story in table["a"].stories] == ["table"]
    assert table.decide_by == "table"
    assert json.loads(table.to_json())["population_gain"] is None


def test_a_pairwise_belief_has_bounds_that_hold_for_every_table() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table, "pairwise")
    item = sl.audit(belief, sl.Plan.uniform(table.schema), ["sex"], delta=1e-2)["sex"]
    (story,) = item.stories
    point = story.leakage.at(1e-2)
    assert story.adversary == "table"
    assert story.leakage.draws == 0
    assert point.upper.kind == "certified"
    assert story.nulls[1e-2] == point.upper.value
    assert story.is_noise(point)


def test_few_people_are_not_told_apart_under_suppression() -> None:
    cells = np.array([[[400, 100], [3, 1]], [[100, 300], [150, 250]], [[0, 0], [1, 4]]])
    schema = sl.Schema(
        (
            sl.categorical("x", ["a", "b", "rare"]),
            sl.categorical("u", ["0", "1"]),
            sl.categorical("v", ["0", "1"]),
        )
    )
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    plan = sl.Plan.uniform(schema, epsilon=2.0)
    seen = sl.audit(belief, plan, ["x", "u"], delta=0.05, sampling=SEEDED)
    closed = sl.audit(belief, plan, ["x", "u"], delta=0.05, sampling=SEEDED, min_support=10)
    assert seen["x"].stories[1].leakage.upper.witness.unlikelier == "rare"
    assert "rare" not in json.dumps(closed.to_dict()["secrets"]["x"]["stories"])
    for story in closed["x"].stories:
        assert {point.upper.method for point in story.leakage.points} == {SUPPRESSED}
        assert all(point.estimate is None and point.coupled is None for point in story.leakage.points)
        assert not story.nulls
        assert story.leakage.moved(0.5) == pytest.approx(6.0)
    # 409 people have the rarer value of u: a share of 0.05 of them are enough, a share of 0.01 are not.
    for story, whole in zip(closed["u"].stories, seen["u"].stories, strict=True):
        assert story.leakage.at(0.05) == whole.leakage.at(0.05)
        assert story.leakage.at(0.01).upper.method == SUPPRESSED
        assert set(story.nulls) == {0.05}
        assert story.leakage.moved(0.5) == whole.leakage.moved(0.5)
        assert story.leakage.moved(0.999) == pytest.approx(6.0)
    for name in ("x", "u"):
        for story, whole in zip(closed[name].stories, seen[name].stories, strict=True):
            assert story.leakage.value >= whole.leakage.value - 1e-9


def test_plain_data_keeps_its_keys_and_gains_stories(belief: sl.Belief, audit: sl.Audit) -> None:
    before = sl.audit(belief, audit.plan).to_dict()
    told = audit.to_dict()
    assert set(before) == set(told)
    assert set(before["secrets"]["sex"]) == set(told["secrets"]["sex"])
    assert before["delta"] is None
    assert [story["adversary"] for story in before["secrets"]["sex"]["stories"]] == ["report"]
    stories = told["secrets"]["sex"]["stories"]
    assert [story["adversary"] for story in stories] == ["population", "table", "report"]
    assert [point["delta"] for point in stories[1]["points"]] == [1e-2, 5e-3, 1e-3, 1e-4]
    assert all({"null", "is_noise", "upper"} <= set(point) for point in stories[1]["points"])
    assert stories[2]["upper"]["value"] == told["secrets"]["sex"]["total"]["upper"]["value"]
    assert stories[2]["null"]["upper"]["value"] < stories[2]["upper"]["value"]
    assert told["population_gain"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0}, "`delta` must be a finite number above 0 and below 1, got 0"),
        ({"delta": 1.0}, "`delta` must be"),
        ({"delta": "0.1"}, "`delta` must be"),
        ({"delta": 0.1, "sampling": 100}, "`sampling` must be a `Sampling`, got 'int'"),
        ({"decide_by": "population"}, "Give a delta, as 0.001"),
        ({"delta": 0.1, "decide_by": "tree"}, "an adversary whose figures are computed"),
        ({"delta": 0.1, "decide_by": "guess"}, "Ask for its figures too"),
    ],
)
def test_bad_questions_are_refused(belief: sl.Belief, options: dict, message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        sl.audit(belief, sl.Plan.uniform(belief.schema), **options)


@pytest.mark.parametrize("options", [{"draws": 3}, {"draws": 1.5}, {"precision": 0}, {"seed": -1}])
def test_bad_sampling_is_refused_before_the_work(options: dict) -> None:
    (name,) = options
    with pytest.raises(sl.InputError, match=f"`{name}` must be"):
        Sampling(**options)


def test_a_secret_of_one_value_and_a_table_of_one_row() -> None:
    belief = sl.Belief.from_counts([[5, 5], [0, 0]], ["constant", "x"])
    item = sl.audit(belief, sl.Plan.uniform(belief.schema), ["constant"], delta=1e-2)["constant"]
    assert [story.leakage.value for story in item.stories[1:]] == [0.0]
    one = sl.Belief.from_counts([[1, 0], [0, 0]], ["a", "b"])
    assert sl.audit(one, sl.Plan.uniform(one.schema, limit=1.0), delta=1e-2).is_within
