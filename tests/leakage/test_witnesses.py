"""Witnesses are replayed: their reports and values alone must reach the figure, and rest on its records."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import random_joint
from sidelight.leakage.totals import lower_total
from sidelight.mechanisms import Channel, ContinuousChannel, DenseChannel, FavouringChannel

SEEDS = st.integers(0, 2**32 - 1)
MECHANISMS = (
    "grr",
    "oue",
    "sue",
    "rappor",
    "the",
    "she",
    "ss",
    "olh",
    "blh",
    "exp",
    "hadamard",
    "interval",
    "laplace",
    "identity",
    "withheld",
    "any",
)


def random_channel(rng: np.random.Generator, size: int) -> Channel:
    name = str(rng.choice(MECHANISMS))
    if name in ("identity", "withheld"):
        return sl.create(name, size).channel
    epsilon = float(rng.choice([0.1, 1.0, 3.0, 8.0]))
    if name == "laplace":
        return sl.create(name, size, epsilon, lower=0, upper=size - 1).channel
    return sl.create(name, size, epsilon).channel


def some_joint(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Random, or with many ties: even, of independent attributes, of one attribute that matters."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(shape, 1 / math.prod(shape))
    if kind == 1:
        cells = np.ones(shape)
        for axis, size in enumerate(shape):
            cells = cells * rng.dirichlet(np.ones(size)).reshape(
                [-1 if i == axis else 1 for i in range(len(shape))]
            )
        return cells
    if kind == 2:
        pair = random_joint(rng, shape[:2])
        return pair.reshape(*shape[:2], *[1] * (len(shape) - 2)) * np.full(shape, 1 / math.prod(shape[2:]))
    return random_joint(rng, shape)


def likelihoods(channel: Channel, named: tuple[int, ...]) -> np.ndarray:
    """The likelihood of a report for every value, from what names it; also that there is such a report."""
    if isinstance(channel, DenseChannel):
        return channel.matrix()[:, named[0]]
    if isinstance(channel, ContinuousChannel):
        ends = (channel.points.min() - 1e3 * channel.scale, channel.points.max() + 1e3 * channel.scale)
        logs = channel.log_density([[*channel.points, *ends][named[0]]])[0]
        return np.exp(logs - logs.max())
    if isinstance(channel, FavouringChannel) and channel.family != "all":
        assert len(set(named)) == channel.width
    likely = np.full(channel.size, math.exp(-channel.epsilon))
    likely[list(named)] = 1.0
    return likely


def replayed(
    joint: np.ndarray,
    names: list[str],
    channels: dict[str, Channel],
    secret: str,
    witness: sl.leakage.Witness,
) -> float:
    """The log-ratio of the witness's reports under its two secret values, record by record."""
    sums = []
    for value in (int(witness.likelier), int(witness.unlikelier)):
        cells = joint.take([value], axis=names.index(secret))
        mass = cells.sum()
        for name, named in witness.reports.items():
            column = likelihoods(channels[name], named)
            column = column[[value]] if name == secret else column
            cells = cells * column.reshape([-1 if other == name else 1 for other in names])
        sums.append(cells.sum() / mass)
    return math.inf if sums[1] == 0 else math.log(sums[0]) - math.log(sums[1])


def check_bound(
    joint: np.ndarray, names: list[str], channels: dict[str, Channel], secret: str, bound: sl.Bound
) -> None:
    if bound.witness is None:
        return
    assert bound.witness.likelier != bound.witness.unlikelier
    reached = replayed(joint, names, channels, secret, bound.witness)
    assert reached == pytest.approx(bound.value, abs=1e-9), (bound, channels)


def check_witnesses(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 5, size=int(rng.integers(2, 5))))
    joint, names = some_joint(rng, shape), [f"x{i}" for i in range(len(shape))]
    belief = sl.Belief.from_joint(joint, names)
    channels = {n: random_channel(rng, k) for n, k in zip(names, shape, strict=True) if rng.random() < 0.8}
    surely = {name: channel.attained for name, channel in channels.items()}
    secret = str(rng.choice(names))
    if np.count_nonzero(belief.prior(secret)) < 2:
        return
    total = sl.total_leakage(belief, channels, secret)
    check_bound(joint, names, channels, secret, total.upper)
    assert total.upper.witness is not None or total.upper.value < 1e-9
    check_bound(joint, names, surely, secret, lower_total(belief, channels, secret))
    direct = sl.leakage.direct_leakage(belief, channels.get(secret), secret)
    check_bound(joint, names, channels, secret, direct.upper)
    for name in channels:
        if name != secret:
            pair = sl.pair_leakage(belief, channels[name], secret, name)
            check_bound(joint, names, channels, secret, pair.upper)
            check_bound(joint, names, surely, secret, pair.lower)


@given(SEEDS)
@settings(max_examples=10)
def test_every_witness_reaches_its_figure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        check_witnesses(rng)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_many_witnesses_reach_their_figures(seed: int) -> None:
    rng = np.random.default_rng([seed, 15])
    for _ in range(1000):
        check_witnesses(rng)


@given(SEEDS)
@settings(max_examples=10)
def test_a_tree_witness_and_a_synergy_reach_their_figures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = list("abc")
    for _ in range(10):
        chain = np.einsum("a,ab,bc->abc", *(rng.dirichlet([1, 1], size=k).squeeze() for k in (1, 2, 2)))
        plain = sl.Belief.from_joint(chain, names)
        pairs = {p: plain.joint(p) for p in (("a", "b"), ("b", "c"))}
        belief = sl.Belief.from_tree(sl.belief.Tree.from_pairs(pairs))
        channels = {
            name: sl.create(str(rng.choice(["grr", "ss", "hadamard"])), 2, 1.0).channel for name in names
        }
        for secret in names:
            check_bound(chain, names, channels, secret, sl.leakage.tree_total(belief, channels, secret))
        for item in sl.leakage.synergy_scan(plain, channels):
            if item.witness is not None:
                reached = replayed(chain, names, channels, item.secret, item.witness)
                assert reached == pytest.approx(item.joint, abs=1e-9)


def test_a_witness_names_two_different_values() -> None:
    belief = sl.Belief.from_joint([[0.25, 0.25], [0.25, 0.25]], ["a", "b"])
    channels = sl.Plan.uniform(belief.schema, "grr", 1.0).channels()
    for bound in (sl.total_leakage(belief, channels, "a").upper, lower_total(belief, channels, "a")):
        assert bound.value == pytest.approx(1.0, abs=1e-12)
        assert {bound.witness.likelier, bound.witness.unlikelier} == {"0", "1"}


def test_a_total_rests_on_both_values_of_its_pair() -> None:
    belief = sl.Belief.from_counts([[1000, 1000], [2, 2]], ["a", "b"])
    plan = sl.Plan.uniform(belief.schema, "grr", 1.0)
    assert sl.total_leakage(belief, plan.channels(), "a").upper.support == 4
    audit = sl.audit(belief, plan, min_support=20)
    assert audit["a"].total.upper.kind == "certified"
    assert audit["a"].total.upper.value == pytest.approx(2.0)
    assert audit["a"].total.upper.witness is None


@pytest.mark.parametrize("mechanism", ["grr", "oue", "ss", "hadamard"])
def test_of_pairs_that_reach_the_same_total_the_commonest_is_the_witness(mechanism: str) -> None:
    """The order of a table's values decided whether its figure was shown with 1000 records or hidden."""
    for order in permutations([[2, 0], [1000, 0], [0, 1000]]):
        belief = sl.Belief.from_counts(list(order), ["a", "b"])
        plan = sl.Plan.uniform(belief.schema, mechanism)
        for min_support in (0, 20):
            found = sl.audit(belief, plan, ["a"], min_support=min_support)["a"].total
            assert (found.upper.kind, found.upper.support) == ("exact", 1000)
            assert found.upper.value == pytest.approx(2.0)


def test_an_own_report_that_tells_all_is_witnessed_by_the_commonest_values() -> None:
    belief = sl.Belief.from_counts(
        [[[2, 0], [0, 0]], [[500, 1], [0, 9]], [[0, 300], [2, 0]]], ["a", "b", "c"]
    )
    channels = {"a": sl.create("identity", 3).channel} | dict.fromkeys("bc", sl.create("grr", 2, 1.0).channel)
    found = sl.total_leakage(belief, channels, "a").upper
    assert (found.value, found.support) == (math.inf, 302)


def pair_figures(
    cells: np.ndarray, names: list[str], channels: dict[str, Channel], secret: str
) -> dict[tuple[int, int], float]:
    """The exact total of every ordered pair of secret values, each as a belief of these two alone."""
    axis = names.index(secret)
    found = {}
    for i, j in permutations(np.flatnonzero(cells.sum(axis=tuple(set(range(cells.ndim)) - {axis}))), 2):
        two = np.zeros_like(cells, dtype=float)
        for value in (i, j):
            at = tuple([slice(None)] * axis + [value])
            two[at] = cells[at] / cells[at].sum() / 2
        found[int(i), int(j)] = sl.total_leakage(sl.Belief.from_joint(two, names), channels, secret).value
    return found


@given(SEEDS)
@settings(max_examples=10)
def test_support_is_that_of_the_best_known_pair_that_reaches_the_total(seed: int) -> None:
    """Of all pairs that reach the figure, the witness is one whose rarer value has most records."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        shape = tuple(int(size) for size in rng.integers(2, 5, size=3))
        cells = rng.integers(1, 1000, size=shape) * (rng.random(shape) < 0.8) + 1
        if rng.random() < 0.5:
            cells = np.multiply.outer(rng.integers(1, 1000, size=shape[0]), cells[0])
        names = list("abc")
        belief = sl.Belief.from_counts(cells, names)
        channels = {n: sl.create("grr", k, 1.0).channel for n, k in zip(names, shape, strict=True)}
        channels["a"] = sl.create(str(rng.choice(["grr", "interval"])), shape[0], 1.0).channel
        bound = sl.total_leakage(belief, channels, "a").upper
        figures = pair_figures(cells, names, channels, "a")
        counts = cells.sum(axis=(1, 2))
        pair = int(bound.witness.likelier), int(bound.witness.unlikelier)
        backed = max(
            counts[list(p)].min() for p in figures if max(figures[p], figures[p[::-1]]) >= bound.value - 1e-13
        )
        assert max(figures[pair], figures[pair[::-1]]) == pytest.approx(bound.value, abs=1e-9)
        assert bound.support <= counts[list(pair)].min()
        assert counts[list(pair)].min() >= backed
