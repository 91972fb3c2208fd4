"""The weighted hierarchical graph: as published, where it fails, and the sound edges that do not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import random_joint
from sidelight.knowledge.graph import WeightedGraph, certified_values, fast_search, full_search


def bits(joint: np.ndarray, scale: float = 1.0) -> tuple[sl.Belief, sl.Query]:
    belief = sl.Belief.from_joint(joint, [f"x{j + 1}" for j in range(joint.ndim)])
    return belief, sl.Query.sum(belief.schema, scale)


def test_the_counter_example_to_theorem_2() -> None:
    belief, query = bits(np.array([[0.5, 0.0], [0.45, 0.05]]))
    adversary = sl.Adversary("x1")
    assert sl.knowledge.prior_leakage(belief, query, adversary, "published").value == pytest.approx(
        1.0653, abs=5e-5
    )
    assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(1.1586, abs=5e-5)
    assert sl.knowledge.prior_leakage(belief, query, adversary, "certified").value >= 1.15856
    assert sl.knowledge.WeightedGraph.from_belief(belief, query).case == "weakest"


def test_three_equal_coins_where_repairing_the_ends_is_not_enough() -> None:
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = 0.5
    belief, query = bits(joint)
    adversary = sl.Adversary("x1")
    assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(3.0)
    assert sl.knowledge.prior_leakage(belief, query, adversary, "certified").value == pytest.approx(3.0)
    assert sl.knowledge.prior_leakage(belief, query, adversary, "group").value == pytest.approx(3.0)


def figures(joint: np.ndarray, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    belief, query = bits(joint, scale)
    exact = sl.knowledge.all_adversaries(belief, query).table
    there = ~np.isnan(exact)
    published = sl.knowledge.WeightedGraph.from_belief(belief, query).values.table
    return exact[there], published[there], certified_values(belief, query).table[there]


def check_soundness(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (2, 2, 2), (3, 2, 2), (2, 2, 2, 2)][rng.integers(4)]
    exact, _, certified = figures(random_joint(rng, shape), float(rng.choice([1.0, 1.0, 0.01, 1e-3])))
    assert np.all(certified >= exact * (1 - 1e-12) - 1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_sound_edge_is_never_below_the_truth(seed: int) -> None:
    check_soundness(seed)


@pytest.mark.deep
@given(st.integers(0, 10**9))
@settings(max_examples=2000)
def test_the_sound_edge_is_never_below_the_truth_many_times(seed: int) -> None:
    check_soundness(seed)


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-3, 1e-4, 1e-6])
def test_copies_are_certified_however_little_noise_there_is(scale: float) -> None:
    """Impossible records must not count as merely unlikely: beside little noise that would decide."""
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = joint[1, 1, 1] = 0.5
    exact, _, certified = figures(joint, scale)
    assert certified[0] == pytest.approx(3 / scale, rel=1e-12)
    assert np.all(certified >= exact)


def test_hypothesis_finds_where_the_published_graph_is_below_the_truth() -> None:
    def is_below(seed: int) -> bool:
        exact, published, _ = figures(np.random.default_rng(seed).dirichlet(np.ones(8)).reshape(2, 2, 2))
        return bool(np.any(published < exact - 1e-6))

    assert find(st.integers(0, 10**6), is_below, settings=settings(max_examples=200)) >= 0


def test_a_third_of_the_nodes_of_random_joints_is_understated() -> None:
    rng = np.random.default_rng(5)
    below, total = 0, 0
    for _ in range(120):
        cells = rng.gamma(0.5, size=(2, 2, 2))
        exact, published, _ = figures(cells / cells.sum())
        below, total = below + int(np.sum(published < exact - 1e-9)), total + len(exact)
    assert 0.25 < below / total < 0.45


def test_corollary_1_in_its_cases() -> None:
    independent, query = bits(np.full((2, 2, 2), 1 / 8))
    graph = sl.knowledge.WeightedGraph.from_belief(independent, query)
    assert graph.case == "none"  # every increment is 0
    assert np.nanmax(np.abs(graph.values.table - 1)) < 1e-12  # Theorem 1
    group = WeightedGraph.given(np.ones((3, 3, 8)), np.ones(3))
    assert group.case == "group"
    assert group.values.of(sl.Adversary("x1")) == pytest.approx(3.0)
    negative = WeightedGraph.given(np.full((3, 3, 8), -0.3), np.ones(3))
    assert negative.case == "strongest"
    assert len(negative.values.worst()[0].known) == 2


def test_corollary_1_3_holds_for_the_largest_target_only() -> None:
    belief = sl.Belief.from_joint([[0.0, 0.5], [0.5, 0.0]], ["x1", "x2"])
    query = sl.Query.additive(belief.schema, {"x1": [0, 1], "x2": [0, 5]})
    assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("x1")).value == pytest.approx(4.0)
    published = sl.knowledge.WeightedGraph.from_belief(belief, query)
    assert published.case == "strongest"
    assert published.values.worst()[1] == pytest.approx(5.0)


def test_theorem_3_3_fails_for_more_than_two_values() -> None:
    """Positive correlation, scale above the sensitivity, and still a negative increment."""
    cells = np.array([[0.0, 0.5, 0.0], [0.5 * 0.499, 0.0, 0.5 * 0.501]])
    belief = sl.Belief.from_joint(cells, ["i", "j"])
    graph = sl.knowledge.WeightedGraph.from_belief(belief, sl.Query.sum(belief.schema, 3.0))
    edge = next(edge for edge in graph.all_edges("i") if edge.removed == "j")
    assert np.cov([0, 1, 1], [1, 0, 2], aweights=[0.5, 0.2495, 0.2505])[0, 1] > 0
    assert edge.increment == pytest.approx(-0.054, abs=5e-4)
    assert edge.ratio == pytest.approx(edge.increment / (2 / 3))
    assert edge.sensitivity == pytest.approx(2 / 3)


def test_full_search_keeps_the_least_path_and_the_chain_rule_agrees(rng: np.random.Generator) -> None:
    weights = rng.uniform(0, 1, size=(4, 4, 16))
    graph = WeightedGraph.given(weights, np.ones(4))
    orders = [["x2", "x3", "x4"], ["x2", "x4", "x3"], ["x3", "x2", "x4"],
              ["x3", "x4", "x2"], ["x4", "x2", "x3"], ["x4", "x3", "x2"]]  # fmt: skip
    paths = [graph.along("x1", order) for order in orders]
    assert graph.values.of(sl.Adversary("x1")) == pytest.approx(min(paths))
    last = min(
        abs(graph.values.of(sl.Adversary("x1", (name,))) + weights[0, j, 0])
        for j, name in ((1, "x2"), (2, "x3"), (3, "x4"))
    )
    assert graph.values.of(sl.Adversary("x1")) == pytest.approx(last)


def test_fast_search_keeps_the_largest_nodes_and_is_not_below_full_search() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        edges = WeightedGraph.given(rng.beta(5, 5, size=(6, 6, 64)), np.ones(6))
        full, fast = full_search(edges), fast_search(edges)
        assert fast[0] == 1.0
        assert fast[1] == pytest.approx(np.nanmax(full[:, np.bitwise_count(np.arange(64)) == 4]))
        assert max(fast) >= np.nanmax(full) - 1e-12


def test_the_graph_exports_nodes_edges_and_a_drawing() -> None:
    belief, query = bits(random_joint(np.random.default_rng(1), (2, 2, 2)))
    graph = sl.knowledge.WeightedGraph.from_belief(belief, query)
    data = json.loads(json.dumps(graph.to_dict()))
    assert len(data["nodes"]) == 12  # PDP, Fig. 3
    assert len(data["edges"]) == 12
    assert {"ic", "ir", "ls_over_scale"} <= set(data["edges"][0])
    assert all(-1 - 1e-9 <= edge["ir"] <= 1 + 1e-9 for edge in data["edges"])  # Theorem 3(1)
    dot = graph.to_dot("x1")
    assert dot.count("->") == 4
    assert '"nothing"' in dot


def test_with_both_signs_the_least_of_each_layer_is_not_the_least_path() -> None:
    """A middle node is reached with 0.5 or 0.9; the last edge turns 0.9 into 0 and 0.5 into 0.4."""
    weights = np.zeros((4, 4, 16))
    weights[0, 1, 12], weights[0, 2, 8] = -0.1, 0.0  # forgetting x2, then x3: 0.9
    weights[0, 2, 10], weights[0, 1, 8] = -0.5, 0.0  # forgetting x3, then x2: 0.5
    weights[0, 3, 0], weights[0, 3, 2], weights[0, 3, 4] = -0.9, 5.0, 5.0
    weights[0, 1, 0], weights[0, 2, 0] = 5.0, 5.0
    graph = WeightedGraph.given(weights, np.ones(4))
    assert graph.along("x1", ["x2", "x3", "x4"]) == pytest.approx(0.0)
    assert graph.along("x1", ["x3", "x2", "x4"]) == pytest.approx(0.4)
    assert graph.values.of(sl.Adversary("x1")) == pytest.approx(0.4)


EMPTY = WeightedGraph.given(np.zeros((2, 2, 4)), np.ones(2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: WeightedGraph.given(np.zeros((2, 2, 3)), np.ones(2)), "must be of the shape (2, 2, 4)"),
        (lambda: WeightedGraph.given(np.full((2, 2, 4), np.nan), np.ones(2)), "`weights` must be finite"),
        (lambda: WeightedGraph.given(np.zeros((1, 1, 1)), np.ones(30)), "at most 18"),
        (lambda: EMPTY.along("x1", ["x1"]), "cannot be forgotten"),
        (lambda: histogram_graph(), "needs one number as an answer"),
        (lambda: thirteen(), "take at most 12 attributes"),
    ],
)  # fmt: skip
def test_bad_graphs_are_named(call, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        call()
    assert words in str(caught.value)


def histogram_graph() -> sl.knowledge.WeightedGraph:
    belief, _ = bits(np.full((2, 2), 0.25))
    return sl.knowledge.WeightedGraph.from_belief(belief, sl.Query.histogram(belief.schema))


def thirteen() -> sl.knowledge.WeightedGraph:
    return sl.knowledge.WeightedGraph.from_belief(*bits(np.full((2,) * 13, 2.0**-13)))
