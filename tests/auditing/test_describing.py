"""An audit without a limit of the user's describes; with one it judges."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.report.audit import audit_page, print_audit
from sidelight.report.page import render


@pytest.fixture(scope="module")
def table() -> sl.Table:
    return sl.example("titanic")


@pytest.fixture(scope="module")
def belief(table: sl.Table) -> sl.Belief:
    return sl.Belief.from_data(table)


def test_three_coins_exceed_nothing(rng) -> None:
    columns = {f"coin{at}": rng.integers(0, 2, 100_000).astype(str) for at in range(3)}
    coins = sl.read(pa.table(columns))
    audit = sl.audit(sl.Belief.from_data(coins), sl.Plan.uniform(coins.schema))
    assert {item.decision for item in audit.secrets.values()} == {"described"}
    assert all(item.limit is None and item.total.value > 1.0 for item in audit.secrets.values())
    assert audit.judged == ()
    assert audit.is_within is None


def test_one_limit_judges_one_secret(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema, limits={"sex": 1.0})
    audit = sl.audit(belief, plan)
    assert [item.secret for item in audit.judged] == ["sex"]
    assert {name: item.decision for name, item in audit.secrets.items()} == {
        "class": "described", "age": "described", "sex": "exceeded", "survived": "described",
    }  # fmt: skip
    assert audit.is_within is False
    assert sl.audit(belief, replace(plan, limits={"sex": 9.0})).is_within is True
    plain = audit.to_dict()
    assert plain["within_limits"] is False
    assert plain["secrets"]["sex"]["within_limit"] is False
    assert plain["secrets"]["age"]["within_limit"] is None
    assert plain["secrets"]["age"]["verdict"] == "described"
    assert plain["secrets"]["age"]["limit"] is None


@pytest.mark.parametrize("options", [{}, {"delta": 0.01}, {"adversary": "guess"}, {"model": True}])
def test_a_description_has_the_figures_of_a_judgement(belief: sl.Belief, options: dict[str, object]) -> None:
    said = sl.audit(belief, sl.Plan.uniform(belief.schema), ["sex"], **options)
    judged = sl.audit(belief, sl.Plan.uniform(belief.schema, limit=1.0), ["sex"], **options)
    assert set(said["sex"].outcomes.values()) == {"described"}
    assert said["sex"].statement == said["sex"].verdict == "described"
    assert "described" not in judged["sex"].outcomes.values()
    assert (said["sex"].total, said["sex"].neighbours) == (judged["sex"].total, judged["sex"].neighbours)


def test_the_plan_names_delta_and_who_decides(belief: sl.Belief) -> None:
    plan = replace(sl.Plan.uniform(belief.schema, limit=2.0), delta=0.05, decide_by="population")
    audit = sl.audit(belief, plan, ["sex"])
    assert (audit.delta, audit.decide_by) == (0.05, "population")
    assert [story.adversary for story in audit["sex"].stories] == ["population", "table"]
    other = sl.audit(belief, plan, ["sex"], delta=0.1, decide_by="report")
    assert (other.delta, other.decide_by) == (0.1, "report")


def test_a_plan_s_decider_may_take_a_tree_for_the_population(belief: sl.Belief) -> None:
    plan = replace(sl.Plan.uniform(belief.schema, limit=2.0), delta=0.05, decide_by="tree")
    item = sl.audit(belief, plan, ["sex"])["sex"]
    assert item.deciding is not None
    assert item.deciding.adversary == "tree"
    own = sl.audit(sl.Belief.tree_of(belief), plan, ["sex"])["sex"].deciding
    assert item.deciding.leakage.value == pytest.approx(own.leakage.value, rel=0.05)


@pytest.mark.parametrize("decider", ["guess", "model", "model guess"])
def test_figures_that_a_plan_s_decider_needs_are_computed(belief: sl.Belief, decider: str) -> None:
    plan = replace(sl.Plan.uniform(belief.schema, "oue", limit=1.5), decide_by=decider)
    audit = sl.audit(belief, plan, ["survived"])
    assert audit.decide_by == decider
    assert decider in audit["survived"].outcomes
    with pytest.raises(sl.InputError, match="`decide_by` must be an adversary whose figures"):
        sl.audit(belief, replace(plan, decide_by=None), ["survived"], decide_by=decider)


def test_reasons_reach_the_report_and_must_be_about_attributes(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema, limits={"sex": 1.0})
    reasoned = replace(
        plan, reasons={"sex": "a reason for <sex>"}, purpose="what it is for",
        releases=(replace(plan.releases[0], reason="why class"), *plan.releases[1:]),
    )  # fmt: skip
    audit = sl.audit(belief, reasoned)
    page = render(audit_page(audit))
    assert all(text in page for text in ("a reason for &lt;sex&gt;", "what it is for", "why class"))
    plain = audit.to_dict()
    assert plain["purpose"] == "what it is for"
    assert plain["secrets"]["sex"]["reason"] == "a reason for <sex>"
    assert plain["plan"][0]["reason"] == "why class"
    with pytest.raises(sl.InputError, match="the plan has a reason for 'cabin', which is not among"):
        sl.audit(belief, replace(plan, reasons={"cabin": "x"}))


@pytest.mark.parametrize("delta", [None, 0.01])
def test_a_description_says_odds_people_and_neighbours_and_no_verdict(
    belief: sl.Belief, table: sl.Table, delta: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = sl.audit(belief, sl.Plan.uniform(belief.schema), delta=delta)
    page = render(audit_page(audit))
    body = page[page.index("<main") : page.index("</main>")]
    first_screen = body[: body.index('id="words"')]
    assert "multiply the odds about" in first_screen
    assert "survived" in first_screen
    assert "people" in first_screen
    assert "describes and does not judge" in first_screen
    for word in ("exceeded", "its limit", "breaks the limit", "keeps the limit", "Whose verdict"):
        assert word not in body
    print_audit(audit, table)
    printed = capsys.readouterr().out
    assert "multipl" in printed
    assert "No limit is set, so nothing is judged" in " ".join(printed.split())
    assert "exceeded" not in printed


def test_calibration_keeps_to_limits_of_some_secrets_alone(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema, limits={"sex": 1.0})
    result = sl.calibrate(belief, plan=plan, budgets="uniform")
    assert dict(result.limits) == {"sex": 1.0}
    assert (result.plan.limit, dict(result.plan.limits)) == (None, {"sex": 1.0})
    assert sl.audit(belief, result.plan).is_within
    everyone = sl.calibrate(belief, plan=sl.Plan.uniform(belief.schema), budgets="uniform")
    assert set(everyone.limits.values()) == {1.0}
    assert everyone.plan.limit == 1.0


def test_calibration_keeps_what_a_plan_says_and_says_for_whom_it_holds(belief: sl.Belief) -> None:
    plan = sl.Plan.uniform(belief.schema, limit=2.0)
    plan = replace(
        plan, delta=0.02, decide_by="table", purpose="p", reasons={"sex": "r"},
        releases=tuple(replace(item, reason=f"why {item.name}") for item in plan.releases),
    )  # fmt: skip
    result = sl.calibrate(belief, plan=plan, budgets="uniform", seed=1)
    assert (result.plan.delta, result.plan.decide_by) == (0.02, "table")
    assert (result.plan.purpose, dict(result.plan.reasons)) == ("p", {"sex": "r"})
    assert [item.reason for item in result.plan.releases] == [item.reason for item in plan.releases]
    assert result.is_within
    assert json.loads(result.to_json())["plan"]["delta"] == 0.02
    again = sl.audit(belief, result.plan, sampling=sl.auditing.Sampling(seed=5))
    assert (again.delta, again.decide_by) == (0.02, "table")
    worst = sl.calibrate(belief, plan=plan, budgets="uniform", decide_by="report")
    assert (worst.delta, worst.plan.delta, worst.plan.decide_by) == (None, None, None)
    beside = sl.calibrate(belief, plan=replace(plan, decide_by="report"), budgets="uniform")
    assert (beside.delta, beside.plan.delta, beside.plan.decide_by) == (None, 0.02, "report")
