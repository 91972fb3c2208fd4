"""The synergy scan against brute force, the exclusive or, and a real table."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import random_joint, randomised_response, total
from sidelight.leakage.synergy import synergy_scan
from sidelight.mechanisms import AnyChannel, Channel, DenseChannel, FavouringChannel

SEEDS = st.integers(0, 2**32 - 1)


def exclusive_or() -> sl.Belief:
    cells = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        cells[a, b, a ^ b] = 0.25
    return sl.Belief.from_joint(cells, ["a", "b", "secret"])


def random_channel(rng: np.random.Generator, size: int) -> tuple[Channel, np.ndarray]:
    """A channel and its matrix: randomised response, the identity, or any matrix with zeros."""
    choice = int(rng.integers(3))
    if choice == 0:
        epsilon = float(rng.choice([0.1, 1.0, 5.0]))
        return sl.create("grr", size, epsilon).channel, randomised_response(size, epsilon)
    if choice == 1:
        return FavouringChannel(size, "singletons", 0.0), np.eye(size)
    cells = rng.dirichlet(np.full(3, 0.5), size=size)
    cells[rng.random(cells.shape) < 0.2] = 0
    cells[:, 0] += 1e-3
    cells /= cells.sum(axis=1, keepdims=True)
    return DenseChannel(cells), cells


def check_scan(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(3, 5))))
    joint = random_joint(rng, shape)
    names = [f"x{i}" for i in range(len(shape))]
    made = {name: random_channel(rng, size) for name, size in zip(names, shape, strict=True)}
    released = [i for i in range(len(shape)) if rng.random() < 0.9]
    belief = sl.Belief.from_joint(joint, names)
    if rng.random() < 0.5:  # whole numbers are counted another way
        counts = rng.multinomial(20, joint.ravel()).reshape(shape)
        joint = counts / 20
        belief = sl.Belief.from_counts(sl.Counts(belief.schema, counts))
    found = synergy_scan(belief, {names[i]: made[names[i]][0] for i in released}, top=10_000)
    assert [item.excess for item in found] == sorted((item.excess for item in found), reverse=True)
    by_triple = {(item.secret, item.first, item.second): item for item in found}
    assert len(by_triple) == len(found)
    for secret in range(len(shape)):
        for first, second in combinations([i for i in released if i != secret], 2):
            item = by_triple.pop((names[secret], names[first], names[second]))
            cells = {i: made[names[i]][1] for i in (first, second)}
            together = total(joint, cells, secret)
            apart = sum(total(joint, {i: cells[i]}, secret) for i in cells)
            assert item.joint == pytest.approx(together, abs=1e-9)
            assert item.pair_sum == pytest.approx(apart, abs=1e-9)
            expected = together - apart if math.isfinite(apart) else 0.0
            assert item.excess == pytest.approx(expected, abs=1e-9)
            assert (item.witness is not None) or together < 1e-9
    assert not by_triple


@given(SEEDS)
@settings(max_examples=10)
def test_every_triple_agrees_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        check_scan(rng)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_many_triples_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    for _ in range(500):
        check_scan(rng)


def test_exclusive_or() -> None:
    belief = exclusive_or()
    worst = synergy_scan(belief, sl.Plan.uniform(belief.schema).channels(), secrets="secret")[0]
    assert (worst.secret, worst.first, worst.second) == ("secret", "a", "b")
    assert worst.excess == pytest.approx(0.43378, abs=5e-6)
    assert worst.joint == pytest.approx(math.log(math.cosh(1)), abs=1e-9)
    assert worst.pair_sum == pytest.approx(0.0, abs=1e-12)
    assert worst.witness is not None
    assert {worst.witness.likelier, worst.witness.unlikelier} == {"0", "1"}


def test_smoothing_and_support(rng: np.random.Generator) -> None:
    sizes = (2, 3, 2)
    cells = rng.integers(0, 4, size=sizes)
    schema = sl.Schema(
        tuple(sl.categorical(name, list("abc")[:size]) for name, size in zip("xyz", sizes, strict=True))
    )
    channels = sl.Plan.uniform(schema).channels()
    smooth = sl.Belief.from_counts(sl.Counts(schema, cells), smoothing=6.0)
    by_hand = sl.Belief.from_joint((cells + 6 / 12) / (cells.sum() + 6), schema)
    for found, expected in zip(synergy_scan(smooth, channels), synergy_scan(by_hand, channels), strict=True):
        assert (found.joint, found.excess) == pytest.approx((expected.joint, expected.excess), abs=1e-12)
        assert found.support is not None
        assert expected.support is None


def test_the_best_are_kept(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(random_joint(rng, (2, 2, 2, 2, 2)), list("abcde"))
    channels = sl.Plan.uniform(belief.schema).channels()
    everything = synergy_scan(belief, channels, top=100)
    assert len(everything) == 30
    assert synergy_scan(belief, channels, top=4) == everything[:4]


def test_one_release_has_no_partner() -> None:
    belief = exclusive_or()
    channel = sl.create("grr", 2, 1.0).channel
    assert synergy_scan(belief, {}) == []
    assert synergy_scan(belief, {"a": channel}) == []
    assert synergy_scan(belief, {"a": channel, "b": channel}, secrets=["a"]) == []


def test_errors_say_what_to_do() -> None:
    belief = exclusive_or()
    channels = sl.Plan.uniform(belief.schema).channels()
    counts = [
        sl.Counts(belief.schema.select(pair), np.ones((2, 2), dtype=np.int64))
        for pair in combinations(belief.schema.names, 2)
    ]
    with pytest.raises(sl.InputError, match="a pairwise belief does not hold; make it with kind='joint'"):
        synergy_scan(sl.Belief.from_counts(*counts), channels)
    with pytest.raises(sl.InputError, match="lists all reports of 'a'"):
        synergy_scan(belief, {"a": AnyChannel(2, 1.0), "b": channels["b"]})
    with pytest.raises(sl.TooLargeError, match="8001 values or reports in all.*fewer of them"):
        synergy_scan(belief, {"a": DenseChannel(np.full((2, 7999), 1 / 7999)), "b": channels["b"]})
    with pytest.raises(sl.InputError, match="there is no attribute 'nobody'"):
        synergy_scan(belief, channels, secrets=["nobody"])


@pytest.mark.deep
def test_celeba(data: Path) -> None:
    table = sl.read(data / "celeba_attr.parquet")
    belief = sl.Belief.from_data(table)
    channels = sl.Plan.uniform(table.schema).channels()
    found = synergy_scan(belief, channels, top=20)
    for item in found:
        released = {name: channels[name] for name in (item.first, item.second)}
        exact = sl.total_leakage(belief, released, item.secret, "exact")
        apart = sum(sl.pair_leakage(belief, channels[name], item.secret, name).value for name in released)
        assert item.joint == pytest.approx(exact.value, abs=1e-9)
        assert item.pair_sum == pytest.approx(apart, abs=1e-9)
    assert found[0].excess > 0.1


def test_an_underflow_is_no_infinite_synergy() -> None:
    cells = np.zeros((2, 2, 2))
    cells[0], cells[1] = [[0.25, 0.125], [0.125, 0]], [[1e-308, 0], [0.25, 0.25]]
    cells[0, 1, 1] = 1 - cells.sum()
    belief = sl.Belief.from_joint(cells, ["a", "b", "c"])
    channels = {"b": sl.create("identity", 2).channel, "c": sl.create("grr", 2, 40).channel}
    item = synergy_scan(belief, channels, secrets="a")[0]
    assert item.joint == pytest.approx(747.1087, abs=1e-4)
    assert item.excess == pytest.approx(item.joint - item.pair_sum, abs=1e-9)
    assert item.excess < 50
