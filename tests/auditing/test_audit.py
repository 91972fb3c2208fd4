"""Audits: every figure in its place, verdicts, suppression, plain data out."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from enumeration import random_joint, sup_ratio, total
from sidelight.leakage.totals.exact import LARGEST_AUTOMATIC


@pytest.fixture(scope="module")
def audit() -> sl.Audit:
    table = sl.example("titanic")
    return sl.audit(
        sl.Belief.from_data(table), sl.Plan.uniform(table.schema, limit=1.0, limits={"survived": 1.9})
    )


def test_every_figure_is_the_library_s_own(audit: sl.Audit) -> None:
    channels = audit.plan.channels()
    for secret, item in audit.secrets.items():
        assert item.total == sl.total_leakage(audit.belief, channels, secret)
        assert item.direct.value == pytest.approx(1.0)
        assert item.published.value == pytest.approx(
            sl.leakage.pairwise_sum(audit.belief, channels, secret).value
        )
        assert [leakage.value for leakage in item.neighbours] == sorted(
            (leakage.value for leakage in item.neighbours), reverse=True
        )
        for leakage in item.neighbours:
            name = leakage.through[0]
            alone = sl.pair_leakage(audit.belief, channels[name], secret, name)
            assert leakage.value == pytest.approx(alone.value, rel=1e-14)  # all at once, or one alone
            assert leakage.upper.kind == alone.upper.kind
            assert leakage.upper.witness == alone.upper.witness
            row, column = audit.plan.names.index(name), list(audit.secrets).index(secret)
            assert audit.pairs[row, column] == leakage.value
    assert np.diagonal(audit.pairs) == pytest.approx(1.0)


def test_verdicts(audit: sl.Audit) -> None:
    assert audit["survived"].verdict == "within"
    assert audit["sex"].verdict == "exceeded"
    assert audit.is_within is False
    assert audit["survived"].commonest == ("no", pytest.approx(1490 / 2201))
    loose = sl.audit(audit.belief, sl.Plan.uniform(audit.belief.schema, limit=3.0), method="composition")
    assert {item.verdict for item in loose.secrets.values()} == {"not certified"}
    assert sl.audit(audit.belief, sl.Plan.uniform(audit.belief.schema, limit=4.0), "sex").is_within
    with pytest.raises(sl.InputError, match="'cabin' was not audited"):
        audit["cabin"]


def test_a_secret_that_is_not_released(audit: sl.Audit) -> None:
    plan = sl.Plan.uniform(audit.belief.schema).withholding(["survived"])
    item = sl.audit(audit.belief, plan, ["survived"])["survived"]
    assert item.direct.value == 0
    assert item.total.value == pytest.approx(audit["survived"].total.value - 1.0)
    assert len(item.neighbours) == 3


def test_curves_rise_to_their_saturation(audit: sl.Audit) -> None:
    values, limit = audit.curve("survived", "sex", [0.5, 1, 2, 4, 8, 16])
    assert values == sorted(values)
    assert values[1] == pytest.approx(audit["survived"].neighbours[0].value)
    assert values[-1] == pytest.approx(limit, abs=1e-5)


def test_rare_figures_are_replaced_by_the_budgets() -> None:
    cells = np.array([[500, 2], [0, 3], [300, 200]])
    schema = sl.Schema((sl.categorical("x", ["a", "rare", "c"]), sl.categorical("u", ["0", "1"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    plan = sl.Plan.uniform(schema)
    open_audit, closed = sl.audit(belief, plan), sl.audit(belief, plan, min_support=5)
    assert open_audit["x"].neighbours[0].upper.witness.unlikelier == "rare"
    assert open_audit["x"].neighbours[0].upper.support == 3
    shown = closed["x"]
    assert shown.neighbours[0].upper.value == pytest.approx(1.0)
    assert shown.total.upper.value == pytest.approx(2.0)
    assert shown.total.lower.value == pytest.approx(1.0)
    assert "rare" not in json.dumps(closed.to_dict()["secrets"]["x"])
    values, limit = closed.curve("x", "u", [1.0, 8.0])
    assert np.isnan([*values, limit]).all()
    for secret in schema.names:
        assert closed[secret].total.value >= open_audit[secret].total.value - 1e-12


def test_json_holds_every_figure_and_infinity() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["x", "u"])
    plan = sl.Plan.uniform(belief.schema, limit=math.inf)
    data = json.loads(sl.audit(belief, plan).to_json())
    assert data["secrets"]["x"]["limit"] == "infinity"
    assert data["secrets"]["x"]["verdict"] == "within"
    assert data["secrets"]["x"]["total"]["upper"]["kind"] == "exact"


def test_a_plan_that_does_not_fit_is_refused(audit: sl.Audit) -> None:
    other = sl.Plan.uniform(sl.sources.admissions().schema)
    with pytest.raises(
        sl.InputError, match="releases 'department', which is not among the table's attributes"
    ):
        sl.audit(audit.belief, other)
    coded = sl.Plan((sl.Release(sl.categorical("sex", ["f", "m", "x"]), "grr", 1.0),))
    with pytest.raises(sl.InputError, match="disagree about the values of 'sex'"):
        sl.audit(audit.belief, coded)
    with pytest.raises(sl.InputError, match="there is no attribute 'cabin'"):
        sl.audit(audit.belief, audit.plan, ["cabin"])
    limited = sl.Plan(audit.plan.releases, limits={"cabin": 1.0})
    with pytest.raises(sl.InputError, match="the plan has a limit for 'cabin', which is not among"):
        sl.audit(audit.belief, limited)


def test_large_joints_get_an_interval(rng) -> None:
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", list("abcd")) for i in range(14)))
    assert LARGEST_AUTOMATIC < 4**14
    codes = rng.integers(0, 4, size=(300, 14))
    codes[:, 1] = codes[:, 0]
    table = sl.read(pa.table({f"x{i}": np.array(list("abcd"))[codes[:, i]] for i in range(14)}))
    result = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(schema), ["x0"])["x0"]
    assert 2.0 < result.total.lower.value < result.total.upper.value <= 14.0 + 1e-9
    assert result.total.lower.method == "search over reports"
    assert "x0 = " in result.total.lower.witness.report


def test_one_record_is_not_told_apart_under_suppression() -> None:
    cells = np.array([[500, 499, 1], [500, 500, 0]])
    schema = sl.Schema((sl.categorical("x", ["a", "b"]), sl.categorical("u", ["p", "q", "unique"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    plan = sl.Plan.uniform(schema, epsilon=6.0)
    assert sl.audit(belief, plan)["x"].neighbours[0].upper.support == 1
    closed = sl.audit(belief, plan, min_support=20)
    assert "unique" not in json.dumps(closed.to_dict()["secrets"]["x"])
    assert closed["x"].neighbours[0].value == pytest.approx(6.0)
    assert closed["x"].published.method == "pairwise sum of the figures shown"
    assert np.isnan(closed.curve("x", "u", [6.0])[1])


def test_witnesses_reach_their_figures(audit: sl.Audit) -> None:
    """A witness is read back from its words, and its ratio computed from the counts and the channels."""
    cells = sl.sources.titanic().cells
    schema = audit.belief.schema
    channels = audit.plan.channels()
    for secret, item in audit.secrets.items():
        for leakage in (item.total, item.direct, *item.neighbours):
            witness = leakage.upper.witness
            report = dict(part.split(" = ") for part in witness.report.split(", "))
            assert set(report) == set(leakage.through)
            likelihoods = []
            for label in (witness.likelier, witness.unlikelier):
                given = np.zeros(schema[secret].size)
                given[schema[secret].code(label)] = 1
                weights = cells.astype(float)
                for axis, attribute in enumerate(schema):
                    column = np.ones(attribute.size)
                    if attribute.name in report:
                        column = channels[attribute.name].likelihood(attribute.code(report[attribute.name]))
                    if attribute.name == secret:
                        column = column * given
                    shape = [1] * cells.ndim
                    shape[axis] = attribute.size
                    weights = weights * column.reshape(shape)
                likelihoods.append(
                    weights.sum() / np.moveaxis(cells, schema.index(secret), 0)[given == 1].sum()
                )
            assert math.log(likelihoods[0] / likelihoods[1]) == pytest.approx(leakage.value, abs=1e-9)


def test_support_counts_the_records_that_match_the_witness(audit: sl.Audit) -> None:
    bound = audit["survived"].total.upper
    assert bound.witness.report == "survived = yes, class = 1st, sex = female, age = child"
    assert bound.support == 1
    pair = audit["survived"].neighbours[0].upper
    assert pair.witness.report == "sex = female"
    assert pair.support == 126


def test_a_budget_as_large_as_the_limit_keeps_it(audit: sl.Audit) -> None:
    for epsilon in (0.1, 0.2, 0.6, 1.0):
        plan = sl.Plan((sl.Release(audit.belief.schema["sex"], "grr", epsilon),), limit=epsilon)
        assert sl.audit(audit.belief, plan, ["sex"])["sex"].verdict == "within"


def test_a_few_repeated_reports_are_exact() -> None:
    cells = np.array([[0.389, 0.187, 0.273, 0.042], [0.109, 0.0, 0.0, 0.0]])
    belief = sl.Belief.from_joint(cells / cells.sum(), ["x", "u"])
    release = sl.Release(belief.schema["u"], "grr", 1.0, times=2)
    single = sl.create("grr", 4, 1.0).channel.matrix()
    twice = np.stack([np.outer(row, row).ravel() for row in single])
    rows = cells / cells.sum(axis=1, keepdims=True) @ twice
    truth = float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())
    found = sl.total_leakage(belief, {"u": release.channel()}, "x")
    pair = sl.pair_leakage(belief, release.channel(), "x", "u")
    for leakage in (found, pair):
        assert (leakage.value, leakage.upper.kind) == (pytest.approx(truth), "exact")
    often = sl.pair_leakage(belief, sl.Release(belief.schema["u"], "grr", 1.0, times=100).channel(), "x", "u")
    assert (often.lower.kind, often.upper.kind) == ("lower", "certified")


@pytest.mark.parametrize(("size", "times"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_repeated_rappor_is_audited_as_fresh_collections(size: int, times: int, rng) -> None:
    """Every collection draws new permanent bits: the truth is that of independent reports, enumerated."""
    rappor = sl.create("rappor", size, 1.0, p=0.01, q=0.99)
    chances = [[float(rappor.mark_if_other)] * size for _ in range(size)]
    for value in range(size):
        chances[value][value] = float(rappor.mark_if_true)
    bits = list(product([0, 1], repeat=size))
    once = np.array(
        [[math.prod(p if b else 1 - p for p, b in zip(row, report, strict=True)) for report in bits]
         for row in chances]
    )  # fmt: skip
    together = once
    for _ in range(times - 1):
        together = (together[:, :, None] * once[:, None, :]).reshape(size, -1)
    joint = 0.9 * random_joint(rng, (size, size)) + 0.1 / size**2
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    release = sl.Release(belief.schema["u"], "rappor", 1.0, times, {"p": 0.01, "q": 0.99})
    result = sl.audit(belief, sl.Plan((release,)))
    for axis, name in enumerate(belief.schema.names):
        truth = total(joint, {1: together}, axis)
        assert result[name].total.lower.value - 1e-9 <= truth <= result[name].total.upper.value + 1e-9
    own = sup_ratio(together.tolist())
    assert own > rappor.epsilon_unlimited, "more than what stored bits would say"
    assert result["u"].direct.value == pytest.approx(own)


def test_years_of_daily_reports_stay_finite(audit: sl.Audit) -> None:
    releases = tuple(sl.Release(attribute, "grr", 1.0, times=730) for attribute in audit.belief.schema)
    result = sl.audit(audit.belief, sl.Plan(releases, limit=3000.0))
    for item in result.secrets.values():
        assert item.direct.value == pytest.approx(730)
        assert 730 <= item.total.value <= 4 * 730
        assert item.verdict == "within"


def test_an_audit_can_show_a_model_robust_figures_and_synergies() -> None:
    table = sl.sources.survey(3000, seed=4)
    belief = sl.Belief.from_data(table)
    plan = sl.Plan.uniform(table.schema)
    result = sl.audit(belief, plan, model=True, confidence=0.95, synergies=5)
    channels = plan.channels()
    tree = sl.Belief.tree_of(belief)
    for secret, item in result.secrets.items():
        assert item.model == sl.leakage.tree_total(tree, channels, secret)
        assert item.model.kind == "model"
        assert item.robust.value >= item.total.value - 1e-9
        assert set(item.robust_neighbours) == {leakage.through[0] for leakage in item.neighbours}
        for leakage in item.neighbours:
            name = leakage.through[0]
            assert item.robust_neighbours[name].value >= leakage.value - 1e-12
            average = item.averages[name]
            assert average == sl.leakage.average_leakage(belief, channels[name], secret, name)
            assert average.min_entropy_leakage <= leakage.value + 1e-12
    assert len(result.synergies) <= 5
    assert [item.excess for item in result.synergies] == sorted(
        (i.excess for i in result.synergies), reverse=True
    )
    data = json.loads(result.to_json())
    assert data["confidence"] == 0.95
    assert data["secrets"]["diabetes"]["model"]["kind"] == "model"


def test_suppression_covers_the_further_figures() -> None:
    table = sl.sources.survey(300, seed=4)
    belief = sl.Belief.from_data(table)
    result = sl.audit(
        belief, sl.Plan.uniform(table.schema), model=True, confidence=0.9, synergies=50, min_support=40
    )
    for item in result.secrets.values():
        hidden = {leakage.through[0] for leakage in item.neighbours if leakage.upper.witness is None}
        assert not hidden & set(item.averages)
        assert item.model is None or item.model.support >= 40
        assert item.robust.value >= item.total.lower.value
    assert all(item.support >= 40 for item in result.synergies)


def test_the_guessing_adversary_learns_less() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plan = sl.Plan.uniform(table.schema, "oue")
    whole, guess = sl.audit(belief, plan), sl.audit(belief, plan, adversary="guess")
    for secret in belief.schema.names:
        assert guess[secret].total.value < whole[secret].total.value
    assert guess.to_dict()["adversary"] == "guess"
    with pytest.raises(sl.InputError, match="`adversary` must be one of"):
        sl.audit(belief, plan, adversary="oracle")


XOR = np.zeros((2, 2, 2))
XOR[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25


def test_a_model_s_figure_is_not_within_for_the_table() -> None:
    """Under a tree the exclusive-or leaks 1.0, in truth 1.434; the limit lies between."""
    truth = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    tree = sl.Belief.tree_of(truth)
    plan = sl.Plan.uniform(truth.schema, limit=1.2)
    assert sl.audit(truth, plan).is_within is False
    found = sl.audit(tree, plan)
    assert found.is_within is False
    for item in found.secrets.values():
        assert (item.verdict, item.adversary, item.decision) == (
            "within, for a model",
            "model",
            "not certified",
        )
        assert item.outcomes == {"report": "not certified", "model": "within"}
        assert item.whole.lower.value <= sl.audit(truth, plan)[item.secret].total.value <= item.whole.value
        assert item.statement == "not certified, for the whole report; within, for a model"
    data = found.to_dict()["secrets"]["a"]
    assert data["verdicts"] == {"report": "not certified", "model": "within"}
    assert (data["verdict"], data["within_limit"]) == ("within, for a model", False)
    assert data["whole_report"]["upper"]["kind"] == "certified"
    asked = sl.audit(tree, plan, decide_by="model")
    assert asked.is_within
    assert asked["a"].verdict == "within, for a model", "the name stays"


def test_a_model_s_audit_certifies_what_holds_for_every_table() -> None:
    tree = sl.Belief.tree_of(sl.Belief.from_joint(XOR, ["a", "b", "c"]))
    assert sl.audit(tree, sl.Plan.uniform(tree.schema, limit=3.0)).is_within, "the budgets add up to 3"
    strict = sl.audit(tree, sl.Plan.uniform(tree.schema, limit=0.9))
    assert {item.outcomes["report"] for item in strict.secrets.values()} == {"exceeded"}, "own reports do"


def test_a_tree_given_by_hand_is_no_model() -> None:
    tree = sl.belief.Tree.from_pairs(
        {("a", "b"): [[0.4, 0.1], [0.1, 0.4]], ("b", "c"): [[0.3, 0.2], [0.1, 0.4]]}
    )
    found = sl.audit(sl.Belief.from_tree(tree), sl.Plan.uniform(tree.schema, limit=3.0))
    assert {item.verdict for item in found.secrets.values()} == {"within"}
    assert all(item.whole is None for item in found.secrets.values())


def test_a_guess_within_the_limit_is_no_all_clear() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, "oue", limit=0.7)
    found = sl.audit(belief, plan, adversary="guess")
    assert found.is_within is False
    for item in found.secrets.values():
        assert (item.verdict, item.decision) == ("within, for a guess", "exceeded")
        assert item.whole == sl.audit(belief, plan)[item.secret].total
    assert found.to_dict()["secrets"]["a"]["verdicts"] == {"report": "exceeded", "guess": "within"}
    assert sl.audit(belief, plan, adversary="guess", decide_by="guess").is_within
    closed = sl.audit(belief, plan, adversary="guess", min_support=1)
    assert closed.is_within is False, "what cannot be shown is not within"


def test_what_a_guess_exceeds_is_exceeded() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    found = sl.audit(belief, sl.Plan.uniform(belief.schema, "oue", limit=0.3), adversary="guess")
    assert {(item.verdict, item.statement) for item in found.secrets.values()} == {("exceeded", "exceeded")}


def test_a_published_figure_is_within_nothing() -> None:
    """The guess from a hashed bucket is that of an idealised family of functions."""
    belief = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, "olh", limit=2.0)
    found = sl.audit(belief, plan, adversary="guess", decide_by="guess")
    assert found["a"].total.upper.kind == "published"
    assert found["a"].verdict == "not certified, for a guess"
    assert found.is_within is False


@pytest.mark.parametrize("asked", [{"min_support": 10}, {"model": True, "decide_by": "model guess"}])
def test_a_published_figure_stays_one_where_it_is_suppressed_or_a_model_s(asked: dict[str, object]) -> None:
    """The budget of an idealised guess certifies nothing either, nor does a model with such guesses."""
    cells = np.array([[[40, 3], [2, 30], [1, 1]], [[3, 25], [30, 2], [2, 2]]])
    belief = sl.Belief.from_counts(cells, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, "olh", limit=2.0)
    found = sl.audit(belief, plan, adversary="guess", **{"decide_by": "guess", **asked})
    assert {item.decision for item in found.secrets.values()} == {"not certified"}
    kinds = {leakage.upper.kind for item in found.secrets.values() for leakage in item.neighbours}
    assert kinds == {item.total.upper.kind for item in found.secrets.values()} == {"published"}
    tree = sl.audit(sl.Belief.tree_of(belief), plan, adversary="guess", decide_by="model guess")
    assert tree.is_within is False
    assert {item.verdict for item in tree.secrets.values()} == {"not certified, for a guess under a model"}


def test_a_tree_beside_the_totals_decides_only_if_asked() -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, limit=1.2)
    beside = sl.audit(belief, plan, model=True)
    assert beside.is_within is False
    assert (beside["a"].verdict, beside["a"].statement) == ("exceeded", "exceeded")
    assert beside["a"].outcomes == {"report": "exceeded", "model": "within"}
    asked = sl.audit(belief, plan, model=True, decide_by="model")
    assert asked.is_within
    assert asked["a"].statement == "within, for a model; exceeded, for the whole report"
    weakest = sl.audit(belief, plan, model=True, adversary="guess", decide_by="model guess")
    assert weakest.is_within
    assert weakest["a"].outcomes["report"] == "exceeded"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decide_by": "guess"}, r"computed \('report'\), got 'guess'"),
        ({"decide_by": "model"}, r"computed \('report'\), got 'model'"),
        ({"decide_by": "guess", "model": True}, r"computed \('report', 'model'\), got 'guess'"),
        ({"decide_by": "model", "adversary": "guess"}, r"computed \('report', 'guess'\), got 'model'"),
        ({"decide_by": "nobody"}, "must be one of 'report', 'guess', 'model', 'model guess'"),
    ],
)
def test_whoever_decides_has_figures(options: dict[str, object], words: str) -> None:
    belief = sl.Belief.from_joint(XOR, ["a", "b", "c"])
    with pytest.raises(sl.InputError, match=words):
        sl.audit(belief, sl.Plan.uniform(belief.schema), **options)


@pytest.mark.parametrize(
    "mechanism",
    ["grr", "sue", "oue", "rappor", "blh", "olh", "she", "the", "ss", "exp", "hadamard", "interval"],
)
def test_every_mechanism_can_be_audited(mechanism: str) -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    result = sl.audit(belief, sl.Plan.uniform(table.schema, mechanism))
    for item in result.secrets.values():
        assert 0 < item.direct.value <= 1 + 1e-9
        assert item.total.lower.value <= item.total.upper.value <= 4 + 1e-9
        assert all(leakage.value <= 1 + 1e-9 for leakage in item.neighbours)


def test_numeric_releases_and_plain_ones_can_be_audited() -> None:
    belief = sl.Belief.from_counts(
        sl.Counts(
            sl.Schema((sl.categorical("x", ["a", "b"]), sl.numeric("u", [1.0, 2.0]))),
            np.array([[30, 10, 5], [5, 10, 30]]),
        )
    )
    bounds = {"lower": 0.0, "upper": 3.0}
    for mechanism, parameters in [
        ("laplace", bounds),
        ("gaussian", bounds | {"delta": 1e-6}),
        ("discrete-laplace", {"lower": 0, "upper": 3}),
    ]:
        release = sl.Release(belief.schema["u"], mechanism, 0.9, parameters=parameters)
        item = sl.audit(belief, sl.Plan((release,)), ["x"])["x"]
        assert 0 < item.total.value <= 0.9 + 1e-9
        assert (item.total.delta > 0) == (mechanism == "gaussian")
    plain = sl.Plan((sl.Release(belief.schema["x"], "withheld"), sl.Release(belief.schema["u"], "identity")))
    assert sl.audit(belief, plan=plain)["x"].total.value == pytest.approx(math.log(6))


def test_laplace_is_exact_at_the_points_and_both_ends() -> None:
    belief = sl.Belief.from_joint([[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]], ["x", "u"])
    channel = sl.create("laplace", 3, 1.0, lower=0.0, upper=2.0).channel
    found = sl.pair_leakage(belief, channel, "x", "u")
    reports = np.linspace(-40, 42, 20_001)
    densities = np.exp(channel.log_density(reports))
    rows = belief.conditional("u", given="x") @ densities.T
    assert found.value == pytest.approx(float(np.abs(np.log(rows[0] / rows[1])).max()), abs=1e-6)
    assert found.is_exact


def test_nothing_of_a_rare_value_is_left_under_suppression() -> None:
    schema = sl.Schema((sl.categorical("x", ["a", "rare"]), sl.categorical("u", ["0", "1"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, np.array([[1000, 0], [0, 9]])))
    plan = sl.Plan.uniform(schema, epsilon=3.0)
    item = sl.audit(belief, plan, confidence=0.95, model=True, min_support=10)["x"]
    assert item.robust.lower.value == pytest.approx(3.0)
    assert item.commonest == ("a", 1.0)
    assert not item.averages
    data = sl.audit(belief, plan, min_support=10).to_dict()
    assert data["belief"]["zero_cells"] is None
    repeated = sl.Plan((sl.Release(schema["u"], "grr", 1.0, times=2),))
    shown = sl.audit(belief, repeated, ["x"], min_support=10)["x"].neighbours[0]
    assert shown.lower.witness is None


def test_a_limit_of_0_is_kept_by_independent_attributes() -> None:
    schema = sl.Schema((sl.categorical("x", list("abc")), sl.categorical("u", list("pqr"))))
    belief = sl.Belief.from_counts(sl.Counts(schema, np.outer([1, 2, 3], [1, 3, 7])))
    plan = sl.Plan((sl.Release(schema["u"], "grr", 1.0),), limit=0.0)
    assert sl.audit(belief, plan, ["x"]).is_within


def test_of_an_unspecified_mechanism_nothing_is_surely_reached() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    result = sl.audit(belief, sl.Plan.uniform(table.schema, "any", limit=1.2))
    assert {item.verdict for item in result.secrets.values()} == {"not certified"}
    assert all(item.total.lower.value == 0 for item in result.secrets.values())


def test_the_delta_of_approximate_releases_is_shown() -> None:
    schema = sl.Schema((sl.categorical("x", ["a", "b"]), sl.numeric("u", [1.0, 2.0])))
    belief = sl.Belief.from_counts(sl.Counts(schema, np.array([[30, 10, 5], [5, 10, 30]])))
    release = sl.Release(schema["u"], "gaussian", 0.5, parameters={"lower": 0.0, "upper": 3.0, "delta": 0.01})
    result = sl.audit(belief, sl.Plan((release,)), ["x"], confidence=0.9)
    assert 0 < result.to_dict()["secrets"]["x"]["total"]["delta"] <= 0.01
    assert 0 < result["x"].robust.delta <= 0.01


def test_a_tree_figure_without_a_witness_rests_on_its_rarest_pair() -> None:
    """Nine people carry it, eight of them of one secret value; the others say nothing."""
    schema = sl.Schema((sl.categorical("s", "01"), sl.categorical("n", "abcR"), sl.categorical("k", "abcR")))
    counts = np.zeros((2, 4, 4))
    counts[:, :3, :3] = 300 * (1 + np.eye(3))
    counts[:, 3, 3] = 1, 8
    belief = sl.Belief.from_counts(sl.Counts(schema, counts))
    plan = sl.Plan.uniform(belief.schema, epsilon=8.0)
    model = sl.audit(belief, plan, ["s"], model=True)["s"].model
    assert (model.method, model.witness, model.support) == ("tree propagation (linear programs)", None, 1)
    assert sl.audit(belief, plan, ["s"], model=True, min_support=100)["s"].model is None
