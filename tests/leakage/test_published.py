"""Published formulas as printed, and the cases in which each of them is below the truth."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import generic, random_joint, randomised_response, sup_ratio, total
from sidelight.leakage.analysers import (
    ANALYSERS,
    budget_analysis,
    exponential_analysis,
    generic_analysis,
    graph_analysis,
    leakage_error,
    normalised_overshoot,
    normalised_undershoot,
    randomised_response_analysis,
    region,
    symmetric_analysis,
    two_level_analysis,
)
from sidelight.leakage.profile import delta_at
from sidelight.leakage.published import (
    budget_sum,
    graph_budget_sum,
    pairwise_sum,
    reconstruction_advanced,
    reconstruction_sum,
    sampling_amplification,
)

SEEDS = st.integers(0, 2**32 - 1)
EQUATION_28 = [[0.2, 0, 0, 0], [0, 0.2, 0, 0], [0.1, 0.15, 0.03, 0.02], [0.1, 0.15, 0.03, 0.02]]


def exclusive_or() -> sl.Belief:
    cells = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        cells[a, b, a ^ b] = 0.25
    return sl.Belief.from_joint(cells, ["a", "b", "secret"])


def added() -> sl.Belief:
    """Two fair bits and their sum."""
    cells = np.zeros((2, 2, 3))
    for a, b in np.ndindex(2, 2):
        cells[a, b, a + b] = 0.25
    return sl.Belief.from_joint(cells, ["a", "b", "sum"])


def shortfalls(rng: np.random.Generator, joints: int) -> list[float]:
    """By which share the pairwise sum is below the exact total, for each random three-attribute joint."""
    found = []
    for _ in range(joints):
        joint = random_joint(rng, (2, 2, 2))
        belief = sl.Belief.from_joint(joint, ["a", "b", "c"])
        channels = sl.Plan.uniform(belief.schema).channels()
        truth = total(joint, dict.fromkeys(range(3), randomised_response(2, 1.0)), 0)
        published = pairwise_sum(belief, channels, "a")
        assert published.kind == "published"
        found.append((truth - published.value) / truth if truth > 0 else 0.0)
    return found


def test_the_pairwise_sum_is_below_the_truth_in_many_random_joints() -> None:
    found = np.array(shortfalls(np.random.default_rng(8), 300))
    assert np.mean(found > 1e-6) > 0.1
    assert found.max() > 0.2


def test_the_pairwise_sum_on_the_exclusive_or() -> None:
    belief = exclusive_or()
    channels = sl.Plan.uniform(belief.schema).channels()
    truth = total(belief.joint(["a", "b", "secret"]), dict.fromkeys(range(3), randomised_response(2, 1.0)), 2)
    assert truth == pytest.approx(1.43378, abs=5e-6)
    assert pairwise_sum(belief, channels, "secret").value == pytest.approx(1.0, abs=1e-9)
    assert graph_budget_sum(belief, channels, 0.2).value == pytest.approx(1.0, abs=1e-9)
    assert budget_sum(channels).value == pytest.approx(3.0, abs=1e-9)


def test_connected_budgets_are_added_up() -> None:
    pair = np.array([[0.45, 0.05], [0.05, 0.45]])
    chain = 2 * pair[:, :, None] * pair[None, :, :]
    cells = chain[..., None] * np.array([0.7, 0.3])
    belief = sl.Belief.from_joint(cells, ["a", "b", "c", "alone"])
    channels = {name: sl.create("grr", 2, 0.5 + i).channel for i, name in enumerate(belief.schema.names)}
    assert graph_budget_sum(belief, channels, 0.7).value == pytest.approx(0.5 + 1.5 + 2.5, abs=1e-9)
    assert graph_budget_sum(belief, channels, 0.9).value == pytest.approx(3.5, abs=1e-9)
    without_bridge = {name: channels[name] for name in ("a", "c", "alone")}
    assert graph_budget_sum(belief, without_bridge, 0.7).value == pytest.approx(3.5, abs=1e-9)
    assert graph_analysis(belief, 1.0, 0.7)[0].tolist() == [0, 1, 0, 0]


def test_theorem_1_of_the_reconstruction_paper_forgets_the_own_report() -> None:
    belief = added()
    channels = sl.Plan.uniform(belief.schema).channels()
    cells = {0: randomised_response(2, 1.0), 1: randomised_response(2, 1.0), 2: randomised_response(3, 1.0)}
    joint = belief.joint(["a", "b", "sum"])
    stated = reconstruction_sum(1.0, [1.0, 1.0])
    assert (stated.value, stated.kind) == (2.0, "published")
    assert total(joint, cells, 2) == pytest.approx(3.0, abs=1e-9)
    assert sl.total_leakage(belief, channels, "sum").value == pytest.approx(3.0, abs=1e-9)
    del cells[2], channels["sum"]
    assert total(joint, cells, 2) == pytest.approx(2.0, abs=1e-9)
    assert sl.total_leakage(belief, channels, "sum").value == pytest.approx(2.0, abs=1e-9)
    assert reconstruction_sum(3.0, [1.0, 1.0]).value == 3.0


def test_theorem_2_of_the_reconstruction_paper_forgets_the_own_report() -> None:
    stated = reconstruction_advanced(1.0, 0.1, 2, 1e-6)
    assert (stated.value, stated.kind) == (1.0, "published")
    joint = added().joint(["a", "b", "sum"])
    bit, own = randomised_response(2, 0.1), randomised_response(3, 1.0)
    given_sum = joint / joint.sum(axis=(0, 1))
    rows = np.einsum("abs,ax,by,sz->sxyz", given_sum, bit, bit, own).reshape(3, -1)
    assert delta_at(rows, stated.value)[0] == pytest.approx(0.0288, abs=5e-5)
    root = math.sqrt(2 * 5 * math.log(1e5))
    assert reconstruction_advanced(0.0, 0.5, 5, 1e-5).value == pytest.approx(
        0.5 * root + 2.5 * (math.exp(0.5) - 1)
    )


def record_law(record: tuple[int, ...], epsilon: float, size: int) -> list[float]:
    """RS+FD: one attribute through randomised response, uniform fakes elsewhere, the choice hidden."""
    channel = randomised_response(size, epsilon)
    law = []
    for report in product(range(size), repeat=len(record)):
        parts = [float(channel[record[j], report[j]]) / size ** (len(record) - 1) for j in range(len(record))]
        law.append(math.fsum(parts) / len(record))
    return law


@pytest.mark.parametrize(("attributes", "size"), [(2, 2), (2, 3), (3, 2)])
def test_amplification_is_false_for_whole_records(attributes: int, size: int) -> None:
    amplified = sampling_amplification(1.0, attributes)
    assert amplified.kind == "published"
    laws = {
        record: record_law(record, amplified.value, size)
        for record in product(range(size), repeat=attributes)
    }
    assert sup_ratio(list(laws.values())) == pytest.approx(amplified.value, abs=1e-9)
    one_apart = max(
        sup_ratio([laws[a], laws[b]])
        for a, b in product(laws, laws)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
    assert one_apart == pytest.approx(1.0, abs=1e-9), (
        "uniform fakes, equal alphabets, one attribute: it holds"
    )
    if attributes == 2:
        assert amplified.value == pytest.approx(1.4899, abs=5e-5)


def test_estimates_of_pairs_below_the_worst_release() -> None:
    belief = sl.Belief.from_joint(EQUATION_28, ["k", "hat"])
    assert generic_analysis(belief, 1.0)[1, 0] == pytest.approx(1.0, abs=1e-9)
    assert not graph_analysis(belief, 1.0, 0.4).any()
    assert graph_analysis(belief, 1.0, 0.2).tolist() == [[0, 1], [1, 0]]
    rows = np.array([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]])
    pairs = sl.Belief.from_joint(rows / 2, ["x", "u"])
    assert two_level_analysis(pairs, 1.0)[1, 0] == pytest.approx(0.36457, abs=5e-6)
    assert generic_analysis(pairs, 1.0)[1, 0] == pytest.approx(0.56945, abs=5e-6)
    uneven = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["x", "u"])
    exact = randomised_response_analysis(uneven, 1.0)
    assert (exact[1, 0], exact[0, 1]) == pytest.approx((0.62011, 0.76338), abs=5e-6)
    assert symmetric_analysis(uneven, 1.0)[0, 1] == pytest.approx(0.62011, abs=5e-6)


def check_analysers(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 4, size=3))
    joint = random_joint(rng, shape)
    names = ["a", "b", "c"]
    belief = sl.Belief.from_joint(joint, names)
    epsilon = float(rng.choice([0.1, 1.0, 4.0]))
    response, half = randomised_response_analysis(belief, epsilon), exponential_analysis(belief, epsilon)
    worst = generic_analysis(belief, epsilon)
    for i, j in product(range(3), range(3)):
        if i == j:
            assert response[i, j] == half[i, j] == worst[i, j] == 0
            continue
        truth = total(joint, {i: randomised_response(shape[i], epsilon)}, j)
        assert response[i, j] == pytest.approx(truth, abs=1e-9)
        assert half[i, j] == pytest.approx(
            total(joint, {i: randomised_response(shape[i], epsilon / 2)}, j), abs=1e-9
        )
        rows = np.moveaxis(joint.sum(axis=3 - i - j), 0, 0 if j < i else 1)
        rows = rows[rows.sum(axis=1) > 0]
        rows /= rows.sum(axis=1, keepdims=True)
        assert worst[i, j] == pytest.approx(generic(rows, epsilon), abs=1e-9)
    assert np.all(budget_analysis(belief, epsilon) >= worst - 1e-9)


@given(SEEDS)
@settings(max_examples=10)
def test_exact_analysers_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        check_analysers(rng)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_many_exact_analysers_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    for _ in range(300):
        check_analysers(rng)


@pytest.mark.deep
def test_the_pairwise_sum_is_below_the_truth_in_many_more_random_joints() -> None:
    found = np.array(shortfalls(np.random.default_rng(9), 5000))
    assert np.mean(found > 1e-6) > 0.1
    assert found.max() > 0.25


def test_smoothing_reaches_the_exact_analysers(rng: np.random.Generator) -> None:
    cells = rng.integers(0, 3, size=(2, 3))
    schema = sl.Schema((sl.categorical("x", ["a", "b"]), sl.categorical("y", ["a", "b", "c"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells), smoothing=3.0)
    smooth = (cells + 0.5) / (cells.sum() + 3)
    expected = total(smooth, {1: randomised_response(3, 1.0)}, 0)
    assert randomised_response_analysis(belief, 1.0)[1, 0] == pytest.approx(expected, abs=1e-9)


def test_undershoot_overshoot_and_regions() -> None:
    reference = np.array([[9.0, 0.5, 0.2], [0.0, 9.0, 1.0], [0.4, 0.3, 9.0]])
    estimate = np.array([[0.0, 0.3, 0.2], [0.6, 0.0, 1.0], [0.4, 0.0, 0.0]])
    assert normalised_undershoot(reference, estimate, 2.0) == pytest.approx((0.2 + 0.3) / 12)
    assert normalised_overshoot(reference, estimate, 2.0) == pytest.approx(0.6 / 12)
    assert leakage_error(reference, estimate) == pytest.approx((0.04 + 0.36 + 0.09) / 1.54)
    assert leakage_error(np.zeros((2, 2)), np.zeros((2, 2))) == 0
    assert leakage_error(np.zeros((2, 2)), np.ones((2, 2))) == math.inf
    endless = np.full((2, 2), math.inf)
    assert normalised_undershoot(endless, endless, 1.0) == 0
    assert normalised_undershoot(endless, np.ones((2, 2)), 1.0) == math.inf
    assert [region(0, 0), region(0.1, 0), region(0, 0.1), region(0.1, 0.1)] == ["P1", "R1", "R2", "R3"]
    assert region(1e-12, 1e-12) == "P1"
    assert region(1e-12, 0.0, tolerance=0.0) == "R1"


def test_the_first_benchmark_on_celeba(data: Path) -> None:
    """The regions of CPL, Fig. 6(b) and (d): references are the worst release and randomised response."""
    belief = sl.Belief.from_data(sl.read(data / "celeba_attr.parquet"), "pairwise")
    for epsilon in (1.0, 4.0):
        reference = generic_analysis(belief, epsilon)
        places = {}
        for name, analyser in ANALYSERS.items():
            found = analyser(belief, epsilon)
            places[name] = region(
                normalised_undershoot(reference, found, epsilon),
                normalised_overshoot(reference, found, epsilon),
            )
        assert places == {
            "SPL-ANL": "R2",
            "GRF 0.2": "R3",
            "GRF 0.4": "R3",
            "ITS": "P1",
            "CBP": "R1",
            "GRR-ANL": "P1",
            "EXP-ANL": "R1",
        }


def test_errors_say_what_to_do() -> None:
    belief = sl.Belief.from_joint(EQUATION_28, ["k", "hat"])
    with pytest.raises(sl.InputError, match="CBP is for binary attributes; 'k' has 4 values. Leave it out"):
        symmetric_analysis(belief, 1.0)
    with pytest.raises(sl.InputError, match="`threshold` must be a correlation, at most 1, got 2"):
        graph_analysis(belief, 1.0, 2)
    with pytest.raises(sl.InputError, match="`estimate` must be a matrix of the reference's shape"):
        leakage_error(np.zeros((3, 3)), np.zeros((2, 2)))
    with pytest.raises(sl.InputError, match="`reference` must be a square matrix of at least two attributes"):
        normalised_undershoot(np.zeros((1, 1)), np.zeros((1, 1)), 1.0)
    with pytest.raises(sl.InputError, match="`parts` must hold the budget of at least one other attribute"):
        reconstruction_sum(1.0, [])
    with pytest.raises(sl.InputError, match="`slack` must be a finite number above 0 and below 1, got 1"):
        reconstruction_advanced(1.0, 0.1, 2, 1.0)
