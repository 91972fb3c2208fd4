"""What a question about totals costs: the model that chooses the method, beside counted operations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sidelight.belief import Belief
from sidelight.leakage.totals import contraction, prepare_totals, total
from sidelight.leakage.totals.contraction import ListedTotals
from sidelight.leakage.totals.exact import _contracted_logs
from sidelight.leakage.totals.joint import JointTotal
from sidelight.leakage.totals.total import exact_operations
from sidelight.mechanisms import create
from sidelight.mechanisms.channel import DenseChannel
from sidelight.mechanisms.channel.degraded import DegradedChannel

SHAPES = ((2,) * 8, (2,) * 12, (3,) * 7, (4,) * 6, (10,) * 4, (2,) * 14, (25,) * 3, (5,) * 7)


def listed(sizes: tuple[int, ...]) -> tuple[ListedTotals, dict]:
    rng = np.random.default_rng(len(sizes))
    cells = rng.random(sizes)
    names = tuple(f"a{number}" for number in range(len(sizes)))
    channels = {name: create("grr", size, 0.4).channel for name, size in zip(names, sizes, strict=True)}
    return ListedTotals(names, cells / cells.sum(), names), channels


def counted(sizes: tuple[int, ...], monkeypatch) -> int:
    """The multiplications of all contractions of one question."""
    totals, channels = listed(sizes)
    done = []
    contracted = contraction._contracted

    def count(cells, columns, axes):
        done.append(sum(cells.size * columns[axis].shape[1] for axis in axes))
        return contracted(cells, columns, axes)

    monkeypatch.setattr(contraction, "_contracted", count)
    monkeypatch.setattr(contraction, "LARGE", 1 << 60)
    totals.values(channels)
    return sum(done)


def test_the_model_orders_questions_as_they_cost(monkeypatch) -> None:
    """Wherever one shape costs three times another, the model says so."""
    told = [exact_operations(dict(enumerate(sizes))) for sizes in SHAPES]
    done = [counted(sizes, monkeypatch) for sizes in SHAPES]
    for i in range(len(SHAPES)):
        for j in range(len(SHAPES)):
            if done[i] > 3 * done[j]:
                assert told[i] > told[j], (SHAPES[i], SHAPES[j])


@pytest.mark.parametrize("few", ["a0", "a3 a7", "a0 a5 a15"])
def test_compiled_contractions_agree_with_products_of_matrices(few: str, monkeypatch) -> None:
    totals, channels = listed((2,) * 16)
    compiled = totals.values(channels)
    moved = {"a2": create("grr", 2, 0.5).channel}
    changes = totals.changes(channels, moved)
    part = totals.among(few.split())
    whole = {name: compiled[name] for name in part.secrets}
    assert part.values(channels) == pytest.approx(whole, abs=1e-12)
    monkeypatch.setattr(contraction, "LARGE", 1 << 60)
    assert totals.values(channels) == pytest.approx(compiled, abs=1e-12)
    for name, grown in totals.changes(channels, moved).items():
        np.testing.assert_allclose(grown, changes[name], atol=1e-12)
    assert totals.among(["unknown"]) is None


@pytest.mark.parametrize("seed", range(12))
def test_compiled_contractions_find_extremes_wherever_they_are(seed: int, monkeypatch) -> None:
    """Tables of many pieces, uneven and with gaps; the pieces after the first are mostly passed over."""
    rng = np.random.default_rng(seed)
    names = tuple(f"a{number}" for number in range(15 + seed % 4))
    cells = rng.random((2,) * len(names)) ** rng.choice([1, 30])
    cells[rng.random(cells.shape) < rng.choice([0, 0.5, 0.999])] = 0.0
    cells[0, ..., 0] = cells[1, ..., 1] = 1.0
    truths = rng.random((len(names), 2)) ** rng.choice([0.1, 1, 5], size=(len(names), 1))
    channels = {
        name: DenseChannel(np.array([[first, 1 - first], [1 - second, second]]))
        for name, (first, second) in zip(names, truths, strict=True)
    } | {names[int(rng.integers(len(names)))]: create("identity", 2).channel}
    totals = ListedTotals(names, cells / cells.sum(), names)
    compiled = totals.values(channels)
    monkeypatch.setattr(contraction, "LARGE", 1 << 60)
    plain = replace(totals).values(channels)
    assert compiled == pytest.approx(plain, rel=1e-12, abs=1e-12)
    assert any(0 < value < np.inf for value in plain.values())


def test_the_last_question_is_not_the_next_one_though_reports_are_as_likely() -> None:
    """A response that is kept leaks less than its reports say: by the budget of its memory."""
    totals, channels = listed((2,) * 15)
    kept = create("grr", 2, 2.0).channel
    for budget in (0.5, 1.9):
        asked = {**channels, "a0": DegradedChannel(kept, budget)}
        assert totals.values(asked)["a0"] == pytest.approx(replace(totals).values(asked)["a0"], abs=1e-12)


@pytest.mark.parametrize("others", [14, 15, 17])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_secret_beside_many_others_is_contracted_as_by_products(others: int, order) -> None:
    """Every axis has a channel of its own, of which no entry equals another."""
    rng = np.random.default_rng(others)
    truths = rng.uniform(0.1, 0.9, (others, 2))
    channels = [
        DenseChannel(np.array([[first, 1 - first], [1 - second, second]])) for first, second in truths
    ]
    tensor = np.asarray(rng.random((2,) * (others + 1)), order=order)
    expected = tensor.copy()
    for axis, channel in enumerate(channels, start=1):
        expected = np.moveaxis(np.tensordot(expected, channel.columns(), axes=(axis, 0)), -1, axis)
    assert tensor.size >= contraction.LARGE
    np.testing.assert_allclose(np.exp(_contracted_logs(tensor, channels)), expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [30.0, 41.0, 45.0, 60.0])
@pytest.mark.parametrize("seed", range(8))
def test_products_that_are_rounded_to_0_do_not_hide_what_is_infinite(epsilon: float, seed: int) -> None:
    """A value that only one of a secret's values goes with, and rarely, anywhere in the table."""
    names = tuple(f"a{number}" for number in range(15))
    mask = np.random.default_rng(seed).integers(0, 2, 15)
    cells = np.zeros((2,) * 15)
    for place, weight in (((0,) * 15, 0.5), ((1,) * 7 + (0,) + (1,) * 7, 0.5), ((1,) * 15, 1e-99)):
        cells[tuple(place ^ mask)] = weight
    channels = {name: create("grr", 2, epsilon).channel for name in names}
    channels["a7"] = create("identity", 2).channel
    found = ListedTotals(names, cells, ("a0", "a1")).values(channels)
    assert found == {"a0": np.inf, "a1": np.inf}


def test_impossible_reports_leak_infinitely_much_on_both_paths(monkeypatch) -> None:
    cells = np.zeros((2,) * 15)
    cells[(0,) * 15] = cells[(1,) * 15] = 0.5
    names = tuple(f"a{number}" for number in range(15))
    channels = {name: create("identity", 2).channel for name in names}
    totals = ListedTotals(names, cells, names)
    assert set(totals.values(channels).values()) == {np.inf}
    monkeypatch.setattr(contraction, "LARGE", 1 << 60)
    assert set(totals.values(channels).values()) == {np.inf}


def test_a_dear_question_is_answered_by_the_cheaper_method(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    belief = Belief.from_counts(rng.integers(0, 9, (4, 4, 4)), ["a", "b", "c"])
    channels = {name: create("grr", 4, 0.4).channel for name in belief.schema.names}
    assert isinstance(prepare_totals(belief, channels, ["a"])[0], ListedTotals)
    monkeypatch.setattr(total, "LARGEST_QUESTION", 0)
    assert isinstance(prepare_totals(belief, channels, ["a"])[0], JointTotal)
    monkeypatch.setattr(total, "joint_operations", lambda *_: math.inf)
    assert isinstance(prepare_totals(belief, channels, ["a"])[0], ListedTotals)
