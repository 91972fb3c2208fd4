"""Plans as people discuss them: every difference is told, and figures are those of the audits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.auditing import Sampling
from sidelight.comparison import changes, check, compare
from sidelight.comparison.changes import WHOLE, spent
from sidelight.protocols import planned
from sidelight.report.page import render
from sidelight.report.plans import (
    comparison_headline,
    comparison_markdown,
    comparison_page,
    markdown,
    plan_sections,
)


@pytest.fixture(scope="module")
def belief() -> sl.Belief:
    return sl.Belief.from_data(sl.example("titanic"))


@pytest.fixture(scope="module")
def plan(belief: sl.Belief) -> sl.Plan:
    return sl.Plan.uniform(belief.schema, epsilon=1.0, limits={"survived": 2.0})


def told(before: sl.Plan, after: sl.Plan) -> dict[tuple[str, str], tuple[str, str]]:
    return {(item.subject, item.aspect): (item.before, item.after) for item in changes(before, after)}


def changed(plan: sl.Plan, name: str, **parts: object) -> sl.Plan:
    return replace(
        plan,
        releases=tuple(replace(item, **parts) if item.name == name else item for item in plan.releases),
    )


def test_plans_that_are_alike_have_no_changes(plan: sl.Plan) -> None:
    assert changes(plan, plan) == ()


def test_every_part_of_a_plan_that_differs_is_told(plan: sl.Plan) -> None:
    assert told(plan, replace(plan, purpose="p", limit=1.0, delta=0.01, decide_by="table", origin="o")) == {
        (WHOLE, "purpose"): ("", "p"),
        (WHOLE, "limit of every secret"): ("", "1"),
        (WHOLE, "delta"): ("", "0.01"),
        (WHOLE, "limits kept for"): ("", "table"),
        (WHOLE, "origin of the budgets"): ("", "o"),
    }
    assert told(plan, replace(plan, limits={"sex": math.inf}, reasons={"sex": "public"})) == {
        ("survived", "limit"): ("2", "none"),
        ("sex", "limit"): ("none", "without limit"),
        ("sex", "reason of the limit"): ("", "public"),
    }
    other = changed(plan, "sex", mechanism="ss", epsilon=2.0, times=3, parameters={"width": 1}, reason="why")
    assert told(plan, other) == {
        ("sex", "mechanism"): ("grr", "ss"),
        ("sex", "budget"): ("1", "2"),
        ("sex", "reports of a person"): ("1", "3"),
        ("sex", "parameters"): ("", "width = 1"),
        ("sex", "reason"): ("", "why"),
    }
    assert told(plan, plan.withholding(["age"])) == {("age", "released"): ("grr at 1", "no")}
    assert told(plan.withholding(["age"]), plan) == {("age", "released"): ("no", "grr at 1")}


def test_other_values_are_told(plan: sl.Plan) -> None:
    classes = plan["class"].attribute.values
    fewer = changed(plan, "class", attribute=sl.categorical("class", [classes[0], "(other)"], ordinal=True))
    ((before, after),) = told(plan, fewer).values()
    assert before == f"4 values, {', '.join(classes[1:])} among them"
    assert after == "2 values, (other) among them"
    turned = changed(plan, "class", attribute=sl.categorical("class", classes[::-1], ordinal=True))
    assert told(plan, turned) == {
        ("class", "values"): (
            f"in this order: {', '.join(classes)}", f"in this order: {', '.join(classes[::-1])}"
        )
    }  # fmt: skip


@given(st.data())
def test_a_difference_is_told_if_and_only_if_there_is_one(data: st.DataObject) -> None:
    def drawn() -> sl.Plan:
        names = data.draw(st.lists(st.sampled_from("abc"), min_size=1, unique=True))
        releases = tuple(
            sl.Release(
                sl.categorical(name, data.draw(st.sampled_from([["x", "y"], ["x", "y", "z"]]))),
                data.draw(st.sampled_from(["grr", "any"])),
                data.draw(st.sampled_from([0.5, 1.0])),
                data.draw(st.integers(1, 2)),
                reason=data.draw(st.sampled_from(["", "r"])),
            )
            for name in sorted(names)
        )
        limits = data.draw(st.dictionaries(st.sampled_from("ab"), st.sampled_from([1.0, 2.0]), max_size=2))
        reasons = data.draw(st.dictionaries(st.sampled_from("ab"), st.just("why"), max_size=2))
        return sl.Plan(releases, data.draw(st.sampled_from([None, 1.0])), limits, reasons=reasons)

    first, second = drawn(), drawn()
    assert bool(changes(first, second)) == (first != second)
    there, back = told(first, second), told(second, first)
    assert {key: (after, before) for key, (before, after) in back.items()} == there


def test_figures_are_those_of_the_audits_and_of_the_prediction(belief: sl.Belief, plan: sl.Plan) -> None:
    cheaper = changed(plan, "sex", epsilon=0.25)
    result = compare(belief, {"a": plan, "b": cheaper}, people=500)
    for side, own in zip(result.sides, (plan, cheaper), strict=True):
        audited = sl.audit(belief, own)
        assert {name: item.decisive for name, item in side.audit.secrets.items()} == {
            name: item.total.upper for name, item in audited.secrets.items()
        }
        frequencies = {name: belief.prior(name) for name in own.names}
        expected = sl.estimation.usefulness(planned(own), 500, frequencies)
        assert [side.error(name) for name in own.names] == [item.error for item in expected.attributes]
    move = result.move("sex")
    assert move == result.sides[1].audit["sex"].total.value - result.sides[0].audit["sex"].total.value < 0
    assert result.sides[1].error("sex") > result.sides[0].error("sex")
    assert result.is_within is True
    assert compare(belief, {"a": replace(plan, limits={"survived": 0.5}), "b": plan}).is_within is False
    assert compare(belief, {"a": replace(plan, limits={}), "b": replace(plan, limits={})}).is_within is None


def test_all_plans_are_asked_the_same_question(belief: sl.Belief, plan: sl.Plan) -> None:
    at_delta = replace(plan, delta=0.05, decide_by="population")
    result = compare(belief, {"old": plan, "new": at_delta}, ["sex"])
    assert (result.delta, result.decide_by) == (0.05, "population")
    assert all(side.audit["sex"].decide_by == "population" for side in result.sides)
    assert result.move("sex") == pytest.approx(0.0, abs=0.02)
    assert any("judged alike" in note for note in result.notes())
    given_one = compare(belief, {"old": plan, "new": at_delta}, ["sex"], delta=0.1, decide_by="report")
    assert (given_one.delta, given_one.decide_by) == (0.1, "report")


def test_secrets_of_other_values_are_named() -> None:
    rows = pa.table(sl.sources.survey(500, seed=1))
    tables = [sl.read(rows, max_values=most) for most in (50, 2)]
    plans = {name: sl.Plan.uniform(table.schema) for name, table in zip("ab", tables, strict=True)}
    beliefs = {name: sl.Belief.from_data(table) for name, table in zip("ab", tables, strict=True)}
    notes = compare(beliefs, plans, ["region", "smokes"]).notes()
    assert any(note.startswith("The plans tell other values of region apart") for note in notes)


def test_what_cannot_be_collected_has_no_error_and_says_why(belief: sl.Belief, plan: sl.Plan) -> None:
    result = compare(belief, {"a": plan, "often": changed(plan, "sex", times=2)}, ["sex"])
    assert result.sides[1].use is None
    assert "asks for 2 reports of 'sex'" in result.sides[1].unpredicted
    assert "asks for 2 reports" in comparison_markdown(result)
    assert json.loads(result.to_json())["plans"][1]["use"] is None


def test_figures_on_few_people_are_suppressed_on_request(belief: sl.Belief, plan: sl.Plan) -> None:
    shown = compare(belief, {"a": plan, "b": plan}, ["sex"])
    hidden = compare(belief, {"a": plan, "b": plan}, ["sex"], min_support=50)
    assert hidden.sides[0].audit["sex"].decisive.value == pytest.approx(4.0)
    assert shown.sides[0].audit["sex"].decisive.value < 4.0


def test_nothing_to_compare_is_refused(belief: sl.Belief) -> None:
    with pytest.raises(sl.InputError, match="nothing to compare"):
        compare(belief, {})


def test_the_page_and_markdown_say_the_same_and_obey_no_name(plan: sl.Plan, belief: sl.Belief) -> None:
    result = compare(belief, {"<b>a|b</b>": plan, "new_plan": changed(plan, "sex", epsilon=0.5)})
    page, text = render(comparison_page(result)), comparison_markdown(result)
    assert "<b>a|b" not in page
    assert "&lt;b&gt;a|b" in page
    assert r"\<b\>a\|b\</b\>" in text
    assert r"new\_plan leaks less about every secret" in text
    assert "leaks less about every secret" in comparison_headline(result)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in rows if "survived" in line}) <= 3
    three = compare(belief, {"a": plan, "b": plan, "c": plan}, ["sex"], sampling=Sampling(seed=1))
    assert "3 plans" in comparison_headline(three)
    assert three.changes == ()
    same = compare(belief, {"a": plan, "b": plan}, ["sex"])
    assert "leaks as much as a about every secret" in comparison_headline(same)
    assert comparison_headline(same).endswith(" percentage points as well.")
    assert "The plans say the same." in comparison_markdown(same)


def test_a_plan_s_name_is_text_in_the_figure_and_in_markdown(plan: sl.Plan, belief: sl.Belief) -> None:
    """Figures take some HTML for markup, and readers of Markdown make links of addresses."""
    named = {"<b>.toml": plan, "http://x.example \u202eturned": changed(plan, "sex", epsilon=0.5)}
    result = compare(belief, named, ["sex"])
    figure = comparison_page(result).figures["leakage"]
    assert next(trace["name"] for trace in figure.data) == "&lt;b&gt;.toml"
    text = comparison_markdown(result)
    assert "http://" not in text
    assert "\u202e" not in text


def test_all_plans_are_weighed_by_the_same_draws(
    belief: sl.Belief, plan: sl.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With draws of its own each, a plan would be said to leak less than itself."""
    seeds = []

    def spied(*given: Any, sampling: Sampling, **settings: Any) -> sl.Audit:
        seeds.append(sampling.seed)
        return sl.audit(*given, sampling=sampling, **settings)

    monkeypatch.setattr("sidelight.comparison.weighed.audit", spied)
    for sampling in (None, Sampling(draws=64), Sampling(seed=5)):
        compare(belief, {"a": plan, "b": plan}, ["sex"], sampling=sampling)
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    assert None not in seeds
    assert seeds[4:] == [5, 5]


def test_who_is_to_report_and_what_is_believed_must_be_said_right(belief: sl.Belief, plan: sl.Plan) -> None:
    with pytest.raises(sl.InputError, match="`people` must be a whole number of at least 1"):
        compare(belief, {"a": plan}, ["sex"], people=0)
    with pytest.raises(sl.InputError, match="no plan with a belief 'a'"):
        compare({"b": belief}, {"a": plan}, ["sex"])


def test_an_infinite_leak_is_an_answer(belief: sl.Belief, plan: sl.Plan) -> None:
    bare = changed(plan, "sex", mechanism="identity", epsilon=None)
    result = compare(belief, {"noisy": plan, "bare": bare}, ["sex"])
    assert result.move("sex") == math.inf
    assert compare(belief, {"a": bare, "b": bare}, ["sex"]).move("sex") == 0
    assert json.loads(result.to_json())["plans"][1]["secrets"]["sex"]["leakage"]["value"] == "infinity"
    assert "∞" in comparison_markdown(result)
    render(comparison_page(result))


def levels(found: sl.comparison.PlanCheck) -> dict[str, str]:
    return {finding.text: finding.level for finding in found.findings}


def test_a_check_without_data_holds_limits_against_the_budgets(plan: sl.Plan) -> None:
    assert check(plan).is_fit
    kept = check(replace(plan, limits={"survived": 4.0}))
    assert "All limits are kept for every population: the budgets add up to less." in levels(kept)
    broken = check(replace(plan, limits={"survived": 0.5}))
    assert not broken.is_fit
    assert levels(broken)["survived may leak 0.5, and its own report alone 1."] == "fault"
    assert broken.findings[0].level == "fault"
    at_delta = check(replace(plan, limits={"survived": 0.5}, delta=0.01))
    assert at_delta.is_fit, "at delta nothing is sure without people"


def test_a_check_without_data_names_who_decides(plan: sl.Plan) -> None:
    for settings, who in (
        ({"decide_by": "guess"}, "a guess"),
        ({"delta": 0.01}, "someone who knows this very table"),
        ({"delta": 0.01, "decide_by": "population"}, "someone who knows the population"),
    ):
        said = f"Whether limits are kept for {who} depends on the people (--data)."
        assert levels(check(replace(plan, **settings)))[said] == "note"
    broken = replace(plan, limits={"sex": 0.5}, delta=0.01, decide_by="report")  # still a worst case
    assert not check(broken).is_fit


def test_a_check_with_data_judges_as_the_audit_does(belief: sl.Belief, plan: sl.Plan) -> None:
    for limit in (1.0, 1.9):
        limited = replace(plan, limits={"survived": limit})
        found = check(limited, belief)
        assert found.is_fit == sl.audit(belief, limited).is_within
        assert found.to_dict()["within_limits"] == found.is_fit


def test_a_check_says_what_the_budget_of_a_kept_response_bounds() -> None:
    colour = sl.categorical("colour", ["red", "green", "blue"])

    def said(*releases: sl.Release) -> list[str]:
        found = check(sl.Plan(releases)).findings
        return [item.text for item in found if "udget of colour" in item.text]

    kept = sl.Release(colour, "l-grr", 2.0)
    unlimited = "The budget of colour bounds unlimited reports from one kept response"
    assert said(kept) == [f"{unlimited}; the first report spends 1."]
    fresh = replace(kept, memory="fresh")
    assert said(fresh) == [f"{unlimited}; responses are not kept, and every report spends 1."]
    assert said(sl.Release(colour, "grr", 2.0, times=9, memory="kept")) == []
    half = "The nominal budget of colour is 2, the realised one 1."
    assert said(sl.Release(colour, "dbitflip", 2.0, parameters={"d": 1})) == [half]
    assert [spent(item) for item in (kept, fresh)] == ["2", "2 (realised 1)"]
    assert [replace(kept, times=9, memory=way).spent for way in ("kept", "fresh")] == pytest.approx(
        [2.0, 9.0], abs=1e-3
    )


def test_a_check_names_what_protects_little(plan: sl.Plan) -> None:
    odd = changed(changed(plan, "sex", mechanism="identity", epsilon=None), "age", epsilon=12.0)
    odd = changed(odd, "class", times=2)
    said = levels(check(odd))
    assert said["sex is released without noise (identity)."] == "warning"
    assert said["age is hardly protected: its budget is 12."] == "warning"
    assert any(text.startswith("class is reported 2 times") for text in said)


def test_a_plan_is_shown_in_full(plan: sl.Plan) -> None:
    full = replace(
        changed(plan, "sex", reason="asked by law"), purpose="a study of ships", delta=0.01,
        decide_by="population", reasons={"survived": "it is sensitive"},
    )  # fmt: skip
    text = markdown(plan_sections(full), headline="plan")
    for words in ("a study of ships", "asked by law", "it is sensitive", "someone who knows the population",
                  "0.01", "2 (odds × 7.39)"):  # fmt: skip
        assert words in text
