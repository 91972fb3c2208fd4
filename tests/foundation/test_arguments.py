"""A newcomer's first mistakes: every public function says what it was to be handed and how to come by it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sidelight as sl
from sidelight.schema import Schema

FRAME = pd.DataFrame({"a": ["x", "y"] * 9, "b": ["u", "v", "w"] * 6})
BELIEF = "`belief` must be a `Belief`, got 'Table'. Belief.from_data makes one from a table."
CHANNELS = "`channels` must be a mapping from attributes to channels, got 'Plan'. plan.channels() makes one."
ADVERSARY = "`adversary` must be an `Adversary`, got 'str'. Adversary(target, known) makes one."
CREDAL = "`credal` must be a `Credal`, got 'Belief'"
QUERY = "`query` must be a `Query`, got"
CHANNEL = "`channel` must be a `Channel`, got 'Plan'. A plan's are in plan.channels()."


@pytest.fixture(scope="module")
def at() -> SimpleNamespace:
    """A table, its belief, a plan and its channels, and a query."""
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table)
    plan = sl.Plan.uniform(table.schema)
    query = sl.Query.sum(table.schema)
    return SimpleNamespace(table=table, belief=belief, plan=plan, channels=plan.channels(), query=query)


Call = Callable[[SimpleNamespace], object]
MISTAKES: list[tuple[Call, str]] = [
    (lambda _: sl.Belief.from_data(None), "`source` must be a path"),
    (lambda _: sl.Belief.from_counts(), "from_counts needs at least one count table, got none"),
    (lambda at: sl.Belief.from_counts(at.table), "and the names of its axes, got 'Table'"),
    (lambda _: sl.Belief.from_counts([[1, 2], [3, 4]]), "and the names of its axes, got 'list'"),
    (lambda _: sl.Belief.from_counts([0.5, 0.5], ["a"]), "whole numbers, being counts; use from_joint"),
    (lambda _: sl.Belief.from_counts([1, 2], ["a", "b"]), "or 1 names, one for each axis, got ['a', 'b']"),
    (lambda _: sl.Belief.from_joint("x", ["a"]), "`cells` must be numbers with one axis for each attribute"),
    (lambda _: sl.Belief.from_joint([[0.5, 0.2], [0.3]], ["a", "b"]), "Give all rows the same length."),
    (lambda _: sl.Belief.from_joint([0.5, 0.5], 3), "or 1 names, one for each axis, got 3"),
    (lambda _: sl.Belief.from_joint([0.5, 0.5], "a"), "or 1 names, one for each axis, got 'a'"),
    (lambda at: sl.Belief.from_tree(at.table), "`tree` must be a `Tree`, got 'Table'. Tree.from_pairs"),
    (lambda at: sl.Belief.tree_of(at.table), BELIEF),
    (lambda at: sl.audit(at.table, at.plan), BELIEF),
    (lambda at: sl.audit(at.belief, None), "`plan` must be a `Plan`, got 'NoneType'. Plan.uniform(table"),
    (lambda _: sl.Plan.uniform(None), "`schema` must be a `Schema`, got 'NoneType'. A table's is"),
    (lambda _: sl.Plan.uniform(FRAME), "`schema` must be a `Schema`, got 'DataFrame'"),
    (lambda _: sl.Plan.from_toml(None), "`text` must be a `str`, got 'NoneType'. It is the content"),
    (lambda _: sl.Plan.from_json(3), "`text` must be a `str`, got 'int'"),
    (lambda _: sl.Plan.read(None), "`path` must be the path of a .toml or .json file, got 'NoneType'"),
    (lambda at: sl.calibrate(at.table), BELIEF),
    (lambda at: sl.collect(at.table, "smp"), "`plan` must be a `Plan`, a protocol or a `TwoPhase` design"),
    (lambda at: sl.collect(FRAME, at.plan), "`table` must be a `Table`, got 'DataFrame'. sl.read opens one."),
    (lambda at: sl.protocols.record_budget(at.plan), "`protocol` must be a `Protocol`, got 'Plan'. advise"),
    (lambda _: sl.estimate(None), "`reports` must be what `collect` or `read_reports` returned"),
    (lambda at: sl.estimate([at.table]), "`reports` must be what `collect` or `read_reports` returned"),
    (lambda at: sl.total_leakage(at.table, at.channels, "sex"), BELIEF),
    (lambda at: sl.total_leakage(at.belief, at.plan, "sex"), CHANNELS),
    (lambda at: sl.total_leakage(at.belief, {"sex": at.plan}, "sex"), CHANNEL),
    (lambda at: sl.leakage.set_leakage(at.belief, at.plan, "sex", ["age"]), CHANNELS),
    (lambda at: sl.leakage.pairwise_sum(at.belief, at.plan, "sex"), CHANNELS),
    (lambda at: sl.leakage.synergy_scan(at.belief, at.plan), CHANNELS),
    (lambda at: sl.leakage.tree_totals(at.belief, at.plan), CHANNELS),
    (lambda at: sl.leakage.tree_total(at.table, at.channels, "sex"), BELIEF),
    (lambda at: sl.pair_leakage(at.belief, at.plan, "sex", "age"), CHANNEL),
    (lambda at: sl.pair_leakage(at.table, at.channels["age"], "sex", "age"), BELIEF),
    (lambda at: sl.leakage.direct_leakage(at.belief, at.plan, "sex"), CHANNEL),
    (lambda at: sl.leakage.saturation(at.table, "sex", "age"), BELIEF),
    (lambda at: sl.leakage.average_leakage(at.belief, at.plan, "sex", "age"), CHANNEL),
    (lambda at: sl.leakage.correlation_matrix(at.table), BELIEF),
    (lambda at: sl.leakage.mutual_information_matrix(at.table), BELIEF),
    (lambda at: sl.leakage.privacy_profile(at.belief, at.plan, "sex", "age", 1.0), CHANNEL),
    (lambda at: sl.leakage.profile_epsilon(at.table, at.channels["age"], "sex", "age", 0.1), BELIEF),
    (lambda at: sl.leakage.approximate_pair(at.table, 1.0, 0.1, "sex", "age"), BELIEF),
    (lambda at: sl.leakage.published_approximate_pair(at.table, 1.0, 0.1, "sex", "age"), BELIEF),
    (lambda at: sl.leakage.statistical_leakage(at.table, {}, "sex"), BELIEF),
    (lambda at: sl.leakage.hashing_leakage(at.table, sl.create("olh", 2, 1.0), "sex", "age"), BELIEF),
    (lambda at: sl.leakage.robust_total(at.belief, at.channels, "sex"), CREDAL),
    (lambda at: sl.leakage.robust_pair(at.belief.credal(), at.plan, "sex", "age"), CHANNEL),
    (lambda at: sl.studies.benchmark_analysers(at.table), BELIEF),
    (lambda at: sl.studies.benchmark_mechanisms(at.table), BELIEF),
    (lambda _: sl.Query.sum(None), "`schema` must be a `Schema`, got 'NoneType'"),
    (lambda _: sl.Query.histogram(["age"]), "`schema` must be a `Schema`, got 'list'"),
    (lambda at: sl.knowledge.prior_leakage(at.belief, at.query, "sex"), ADVERSARY),
    (lambda at: sl.knowledge.prior_leakage(at.belief, "sum", sl.Adversary("sex")), QUERY),
    (lambda at: sl.knowledge.posterior(at.belief, None, "sex", 1.0), QUERY),
    (lambda at: sl.knowledge.group_bound(at.belief, at.query, "sex"), ADVERSARY),
    (lambda _: sl.example("surveys"), "`name` must be one of 'survey', 'titanic', 'admissions'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_first_mistake_is_answered_in_words(call: Call, words: str, at: SimpleNamespace) -> None:
    with pytest.raises(sl.InputError) as raised:
        call(at)
    assert words in str(raised.value)


def test_a_belief_is_made_of_whatever_can_be_read() -> None:
    found, through = sl.Belief.from_data(FRAME), sl.Belief.from_data(sl.read(FRAME))
    assert found.schema == through.schema
    assert np.array_equal(found.blocks, through.blocks)
    tree = sl.Belief.from_data(FRAME, kind="tree")
    assert tree.tree is not None


def test_a_belief_is_made_of_an_array_of_counts() -> None:
    found = sl.Belief.from_counts([[1, 2], [3, 4]], ["a", "b"], smoothing=1)
    assert (found.sample_size, found.smoothing, found.schema.names) == (10, 1, ("a", "b"))
    assert found.support("a").tolist() == [3, 7]
    schema = Schema((sl.categorical("a", ["no", "yes"]),))
    assert sl.Belief.from_counts(np.array([5, 6]), schema).schema == schema


def test_where_a_schema_is_asked_for_its_owner_will_do(at: SimpleNamespace) -> None:
    assert sl.Plan.uniform(at.table) == sl.Plan.uniform(at.belief) == at.plan
    assert sl.Query.sum(at.table).schema == at.table.schema


def test_the_survey_is_that_of_the_command() -> None:
    assert np.array_equal(sl.example("survey").codes()[:500], sl.sources.survey(20_000, 1).codes()[:500])
