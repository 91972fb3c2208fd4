"""Prior knowledge with few records behind it: what is replaced, by what, and what is left out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from test_knowledge_cli import table_fixture

import sidelight as sl
from knowledge_enumeration import adversaries
from sidelight.report.page import page_of, render

__all__ = ["table_fixture"]


@pytest.fixture(scope="module")
def people() -> sl.Belief:
    return sl.Belief.from_data(sl.example("titanic"))


def counted(cells: list[list[float]]) -> sl.Belief:
    schema = sl.Belief.from_joint(np.full(np.shape(cells), 1 / np.size(cells)), ["a", "b"]).schema
    return sl.Belief.from_counts(sl.Counts(schema, np.array(cells)))


def test_one_record_near_the_answer_is_not_hidden_by_many_far_from_it() -> None:
    """The one of 5,000 with b = 9 makes a large answer 2.6 times likelier; nothing else does."""
    cells = [[4999, 0, 1], [5000, 0, 0]]
    belief = counted(cells)
    query = sl.Query.additive(belief.schema, {"a": [0, 0], "b": [0, 1, 9]})
    found = sl.knowledge.prior_leakage(belief, query, sl.Adversary("a"))
    near = 1 + 4999 * math.exp(-9)
    assert found.value == pytest.approx(math.log(near / (5000 * math.exp(-9))), abs=1e-9)
    assert found.support == int(near) == 1
    wide = sl.knowledge.prior_leakage(belief, query.with_scale(1000.0), sl.Adversary("a"))
    assert wide.support == int(1 + 4999 * math.exp(-0.009))
    assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("b", ("a",))).support == 1


@pytest.mark.parametrize("least", [1, 30, 100])
def test_a_figure_is_shown_only_with_enough_records_behind_it(people: sl.Belief, least: int) -> None:
    query = sl.Query.sum(people.schema)
    audit = sl.knowledge_audit(people, query, min_support=least)
    hidden = 0
    for target, known in adversaries(len(people.schema)):
        names = people.schema.names
        adversary = sl.Adversary(names[target], tuple(names[k] for k in known))
        truth = sl.knowledge.prior_leakage(people, query, adversary)
        is_hidden = truth.support is None or truth.support < least
        group = sl.knowledge.group_bound(people, query, adversary).value
        assert audit.is_hidden(adversary) == is_hidden
        assert audit.exact.of(adversary) == pytest.approx(group if is_hidden else truth.value)
        hidden += is_hidden
    assert json.loads(audit.to_json())["hidden_adversaries"] == hidden
    assert 0 < hidden < 32 or least == 1


def test_what_is_replaced_names_no_one_and_no_answer(people: sl.Belief) -> None:
    query = sl.Query.sum(people.schema)
    full = sl.knowledge_audit(people, query, limit=1.0)
    rare = full.worst.adversary
    assert full.worst.exact.support < 300
    audit = sl.knowledge_audit(people, query, limit=1.0, min_support=300, named=[rare])
    assert audit.standing == "hidden"
    assert (audit.certified, audit.graph) == (None, None)
    assert audit.named[0].exact.witness is None
    assert audit.named[0].exact.is_suppressed
    assert audit.named[0].exact.value >= full.worst.exact.value
    assert audit.noise.scale == audit.noise.group_scale > full.noise.scale
    text = render(page_of(audit))
    assert "≤" in text
    assert "nothing is suppressed" not in text
    assert f"{full.worst.exact.value:.3f}" not in text
    assert full.worst.exact.witness.report not in text


def test_noise_with_enough_records_behind_it_stays(people: sl.Belief) -> None:
    query = sl.Query.sum(people.schema)
    plain = sl.knowledge.least_noise(people, query, 1.0)
    kept = sl.knowledge_audit(people, query, limit=1.0, min_support=plain.leakage.support).noise
    assert kept.scale == plain.scale


def test_beliefs_without_counted_records() -> None:
    given = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    audit = sl.knowledge_audit(given, sl.Query.sum(given.schema), min_support=10)
    assert (audit.hidden, audit.min_support) == (None, 0), "no records are behind a belief given by hand"
    for belief in (
        sl.Belief.from_data(sl.example("titanic"), smoothing=1.0),
        sl.Belief.from_data(sl.example("titanic"), "tree"),
    ):
        query = sl.Query.sum(belief.schema)
        hidden = sl.knowledge_audit(belief, query, min_support=1).hidden
        assert hidden.sum() == 32, "figures whose records are not counted are not shown"


def test_any_query_is_replaced_by_infinity(people: sl.Belief) -> None:
    largest = sl.Query.any(people.schema, lambda *codes: max(codes))
    audit = sl.knowledge_audit(people, largest, ["survived"], min_support=10**6)
    assert audit.worst.exact.value == math.inf
    assert json.loads(audit.to_json())["worst"]["exact"]["value"] == "infinity"
    assert "∞" in render(page_of(audit))


def test_the_command_line_suppresses_too(run, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "few.html"
    _, out, _ = run("knowledge", table, "--min-support", 60, "--report", page)
    assert "rest on fewer than 60 records" in out
    assert "≤" in out
    assert "too few records" in page.read_text(encoding="utf-8")
    _, out, _ = run(
        "knowledge", table, "--target", "sick", "--known", "cough,fever", "--only", "--min-support", 399
    )
    assert "too few records to show" in out
    code, _, err = run("knowledge", table, "--min-support", -1)
    assert (code, "`--min-support` must be a whole number" in err) == (2, True)
    code, _, err = run("knowledge", table, "--min-support", 5, "--graph", tmp_path / "graph.json")
    assert (code, "no --min-support" in err) == (2, True)


def test_supports_are_those_of_single_adversaries(people: sl.Belief) -> None:
    from sidelight.knowledge.search import supported_adversaries

    query = sl.Query.sum(people.schema)
    values, supports = supported_adversaries(people, query)
    np.testing.assert_allclose(values.table, sl.knowledge.all_adversaries(people, query).table, atol=1e-9)
    adversary = sl.Adversary("class", ("survived",))
    assert supports.of(adversary) == sl.knowledge.prior_leakage(people, query, adversary).support
