"""Leakage against brute force on random small beliefs, and against the numbers of the papers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import conditional, favouring, generic, random_joint, randomised_response, subsets, total
from sidelight.leakage.pair import pair_matrix
from sidelight.leakage.totals import JointTotal, lower_total
from sidelight.mechanisms import AnyChannel, Channel, DenseChannel, FavouringChannel
from sidelight.mechanisms.channel import generic as generic_module
from sidelight.mechanisms.channel.generic import generic_pairs, generic_worst
from sidelight.mechanisms.channel.kernels import search_rows

SEEDS = st.integers(0, 2**32 - 1)
EPSILONS = (1e-6, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0)

EQUATION_28 = [[0.2, 0, 0, 0], [0, 0.2, 0, 0], [0.1, 0.15, 0.03, 0.02], [0.1, 0.15, 0.03, 0.02]]


def exclusive_or() -> sl.Belief:
    cells = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            cells[a, b, a ^ b] = 0.25
    return sl.Belief.from_joint(cells, ["a", "b", "secret"])


def random_rows(rng: np.random.Generator) -> np.ndarray:
    shape = (int(rng.integers(2, 5)), int(rng.integers(2, 6)))
    joint = random_joint(rng, shape)
    rows = joint[joint.sum(axis=1) > 0]
    return rows / rows.sum(axis=1, keepdims=True)


def check_generic(rng: np.random.Generator) -> None:
    rows = random_rows(rng)
    epsilon = float(rng.choice([*EPSILONS, math.inf]))
    truth = generic(rows, epsilon)
    found = generic_worst(rows, math.exp(-epsilon))
    assert found.value == pytest.approx(truth, abs=1e-9)
    assert generic_pairs(rows, math.exp(-epsilon)).max() == pytest.approx(truth, abs=1e-9)
    ratio, _i, _j = search_rows(rows, math.exp(-epsilon))
    assert math.log(ratio) == pytest.approx(truth, abs=1e-9)
    reached = generic(rows[[found.likelier, found.unlikelier]], epsilon)
    assert reached == pytest.approx(truth, abs=1e-9)
    g, h = rows[[found.likelier, found.unlikelier]][:, found.report].sum(axis=1)
    if truth > 1e-9:
        a = math.exp(-epsilon)
        top, bottom = a + (1 - a) * g, a + (1 - a) * h
        value = math.inf if bottom == 0 else math.log(top / bottom)
        assert value == pytest.approx(truth, abs=1e-9), "the witness does not reach the figure"


def joint_generic(belief: sl.Belief, channels: dict[str, Channel], secret: str) -> float:
    return JointTotal.of(belief, list(channels), secret, "joint generic").values(channels)[secret]


def check_pairs(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 5, size=2))
    joint = random_joint(rng, shape)
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    epsilon = float(rng.choice(EPSILONS))
    if len(conditional(joint, 0)) < 2:
        return
    truth = total(joint, {1: randomised_response(shape[1], epsilon)}, 0)
    found = sl.pair_leakage(belief, sl.create("grr", shape[1], epsilon).channel, "x", "u")
    assert found.value == pytest.approx(truth, abs=1e-9)
    assert found.is_exact
    identity = sl.pair_leakage(belief, FavouringChannel(shape[1], "singletons", 0.0), "x", "u")
    assert identity.value == pytest.approx(total(joint, {1: np.eye(shape[1])}, 0), abs=1e-9)
    cells = rng.dirichlet(np.full(3, 0.5), size=shape[1])
    cells[rng.random(cells.shape) < 0.2] = 0
    cells[:, 0] += 1e-3
    cells /= cells.sum(axis=1, keepdims=True)
    dense = sl.pair_leakage(belief, DenseChannel(cells), "x", "u")
    assert dense.value == pytest.approx(total(joint, {1: cells}, 0), abs=1e-9)
    rows = joint[joint.sum(axis=1) > 0]
    anything = sl.pair_leakage(belief, AnyChannel(shape[1], epsilon), "x", "u")
    assert anything.value == pytest.approx(generic(rows / rows.sum(axis=1, keepdims=True), epsilon), abs=1e-9)
    assert anything.upper.kind == "certified"
    assert found.value <= anything.value + 1e-12


def random_channel(rng: np.random.Generator, size: int) -> tuple[Channel, np.ndarray]:
    """A channel of a random family, and its reports by brute force."""
    epsilon = float(rng.choice(EPSILONS[1:]))
    family = rng.choice(["grr", "identity", "withheld", "subsets", "all", "any", "dense"])
    if family == "grr":
        return sl.create("grr", size, epsilon).channel, randomised_response(size, epsilon)
    if family == "identity":
        return FavouringChannel(size, "singletons", 0.0), np.eye(size)
    if family == "withheld":
        return FavouringChannel(size, "singletons", 1.0), np.ones((size, 1))
    if family == "subsets":
        width = int(rng.integers(1, size + 1))
        sets = list(combinations(range(size), width))
        return FavouringChannel(size, "subsets", math.exp(-epsilon), width), favouring(size, sets, epsilon)
    if family == "dense":
        cells = rng.dirichlet(np.full(3, 0.3), size=size)
        return DenseChannel(cells), cells
    columns = favouring(size, list(subsets(size)), epsilon)
    if family == "any":
        return AnyChannel(size, epsilon), columns
    return FavouringChannel(size, "all", math.exp(-epsilon)), columns


def check_families(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 5, size=2))
    joint = random_joint(rng, shape)
    belief = sl.Belief.from_joint(joint, ["x", "u"])
    if len(conditional(joint, 0)) < 2:
        return
    channel, columns = random_channel(rng, shape[1])
    truth = total(joint, {1: columns}, 0)
    found = sl.pair_leakage(belief, channel, "x", "u")
    assert found.value == pytest.approx(truth, abs=1e-9)
    assert pair_matrix(belief, {"u": channel}, ["x"])[0][0].value == pytest.approx(truth, abs=1e-9)
    rows = joint[joint.sum(axis=1) > 0]
    rows = rows / rows.sum(axis=1, keepdims=True)
    assert channel.ratio_pairs(rows).max() == pytest.approx(truth, abs=1e-9)
    listed = channel.columns()
    assert total(joint, {1: listed}, 0) == pytest.approx(truth, abs=1e-9)


def check_totals(rng: np.random.Generator) -> None:
    shape = tuple(int(size) for size in rng.integers(2, 4, size=int(rng.integers(2, 5))))
    joint = random_joint(rng, shape)
    names = [f"x{i}" for i in range(len(shape))]
    belief = sl.Belief.from_joint(joint, names)
    released = [i for i in range(len(shape)) if rng.random() < 0.8]
    secret = int(rng.integers(len(shape)))
    drawn = {i: random_channel(rng, shape[i]) for i in released}
    channels = {names[i]: channel for i, (channel, _) in drawn.items()}
    truth = total(joint, {i: columns for i, (_, columns) in drawn.items()}, secret)
    found = sl.total_leakage(belief, channels, names[secret])
    assert found.value == pytest.approx(truth, abs=1e-9)
    if len(conditional(joint, secret)) < 2:
        return
    assert lower_total(belief, channels, names[secret]).value <= truth + 1e-9
    assert joint_generic(belief, channels, names[secret]) >= truth - 1e-9
    assert sl.total_leakage(belief, channels, names[secret], "composition").value >= truth - 1e-9


@given(SEEDS)
@settings(max_examples=10)
def test_generic_bound_is_the_worst_subset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        check_generic(rng)


@given(SEEDS)
@settings(max_examples=10)
def test_pairs_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        check_pairs(rng)


@given(SEEDS)
@settings(max_examples=10)
def test_every_family_agrees_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        check_families(rng)


@given(SEEDS)
@settings(max_examples=10)
def test_totals_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(30):
        check_totals(rng)


@pytest.mark.deep
@pytest.mark.parametrize("check", [check_generic, check_pairs, check_families, check_totals])
@pytest.mark.parametrize("seed", range(10))
def test_many_random_beliefs_agree_with_enumeration(check, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    for _ in range(3000):
        check(rng)


def test_the_compiled_search_is_used_for_large_rows_and_agrees(monkeypatch, rng) -> None:
    rows = rng.dirichlet(np.full(30, 0.3), size=40)
    small = generic_worst(rows, math.exp(-1)).value
    monkeypatch.setattr(generic_module, "SMALL_SEARCH", 0)
    assert generic_worst(rows, math.exp(-1)).value == pytest.approx(small, abs=1e-12)


@pytest.mark.parametrize("epsilon", [100.0, math.inf])
def test_tiny_cells_beside_large_ones_are_not_lost(epsilon: float, monkeypatch) -> None:
    """Against all sets in rational numbers; a tiny cell decides where larger ones cancel but for rounding."""
    rng = np.random.default_rng(5)
    baseline = math.exp(-epsilon)
    for _ in range(400):
        rows = rng.random((2, 4)) * 10.0 ** -rng.choice([0, 0, 15, 17, 20, 30], size=(2, 4))
        rows /= rows.sum(axis=1, keepdims=True)
        truth, back = (
            rational_generic(rows[0], rows[1], baseline),
            rational_generic(rows[1], rows[0], baseline),
        )
        assert generic_pairs(rows, baseline)[0, 1] == pytest.approx(truth, abs=1e-9)
        assert generic_worst(rows, baseline).value == pytest.approx(max(truth, back), abs=1e-9)
        with monkeypatch.context() as patched:
            patched.setattr(generic_module, "SMALL_SEARCH", 0)
            assert generic_worst(rows, baseline).value == pytest.approx(max(truth, back), abs=1e-9)


def rational_generic(g: np.ndarray, h: np.ndarray, baseline: float) -> float:
    """ln of the largest ratio over all sets, without rounding; every cell of h is above 0."""
    a = Fraction(baseline)
    largest = Fraction(1)
    for chosen in product((False, True), repeat=len(g)):
        top, bottom = (a + (1 - a) * sum(map(Fraction, row[list(chosen)].tolist())) for row in (g, h))
        largest = max(largest, top / bottom) if bottom else largest
    return math.log(largest.numerator) - math.log(largest.denominator)


@pytest.mark.parametrize("mechanism", ["grr", "any"])
@pytest.mark.parametrize(("epsilon", "back"), [(0.5, 0.28093), (1.0, 0.62011), (2.0, 1.43378)])
def test_equation_28_of_the_cpl_paper(mechanism: str, epsilon: float, back: float) -> None:
    belief = sl.Belief.from_joint(EQUATION_28, ["k", "hat"])
    channels = sl.Plan.uniform(belief.schema, mechanism, epsilon).channels()
    assert sl.pair_leakage(belief, channels["hat"], "k", "hat").value == pytest.approx(epsilon, abs=5e-6)
    assert sl.pair_leakage(belief, channels["k"], "hat", "k").value == pytest.approx(back, abs=5e-6)


def test_exclusive_or_leaks_more_than_the_published_sum() -> None:
    belief = exclusive_or()
    channels = sl.Plan.uniform(belief.schema).channels()
    exact = sl.total_leakage(belief, channels, "secret")
    assert exact.value == pytest.approx(1 + math.log(math.cosh(1)), abs=1e-12)
    assert exact.is_exact
    published = sl.leakage.pairwise_sum(belief, channels, "secret")
    assert published.value == pytest.approx(1.0, abs=1e-12)
    assert published.kind == "published"


def test_cardio_pair(data: Path) -> None:
    table = sl.read(data / "cardio.parquet", columns=["cholesterol", "cardio"])
    belief = sl.Belief.from_data(table)
    channels = sl.Plan.uniform(table.schema).channels()
    about_cholesterol = sl.pair_leakage(belief, channels["cardio"], "cholesterol", "cardio")
    assert about_cholesterol.value == pytest.approx(0.33534, abs=5e-6)
    assert sl.pair_leakage(belief, channels["cholesterol"], "cardio", "cholesterol").value == pytest.approx(
        0.17612, abs=5e-6
    )
    assert about_cholesterol.upper.support == 1892


@pytest.mark.parametrize(
    ("neighbour", "curve", "limit"),
    [
        ("Wearing_Necklace", (0.263, 0.710, 1.781, 2.289, 2.390), 2.407),
        ("No_Beard", (0.515, 1.251, 3.036, 4.686, 5.565), 5.815),
        ("Smiling", (0.133, 0.225, 0.289, 0.299, 0.300), 0.300),
    ],
)
def test_celeba_curves(data: Path, neighbour: str, curve: tuple[float, ...], limit: float) -> None:
    table = sl.read(data / "celeba_attr.parquet", columns=[neighbour, "Male"])
    belief = sl.Belief.from_data(table)
    found = [
        sl.pair_leakage(belief, sl.create("grr", 2, epsilon).channel, "Male", neighbour).value
        for epsilon in (1, 2, 4, 6, 8)
    ]
    assert found == pytest.approx(curve, abs=5e-4)
    assert sl.leakage.saturation(belief, "Male", neighbour).value == pytest.approx(limit, abs=5e-4)


def many_sets(size: int, width: int | None, epsilon: float) -> np.ndarray:
    sets = list(subsets(size) if width is None else combinations(range(size), width))
    return favouring(size, sets, epsilon)


def listed_total(joint: np.ndarray, columns: list[np.ndarray]) -> float:
    """The leakage of the first attribute through the listed reports of the others, all of them at once."""
    rows = joint.reshape(len(joint), -1) / joint.reshape(len(joint), -1).sum(axis=1, keepdims=True)
    matrix = np.ones((1, 1))
    for column in columns:
        matrix = np.kron(matrix, column)
    reports = rows @ matrix
    return float(np.log(reports.max(axis=0) / reports.min(axis=0)).max())


@pytest.mark.parametrize("width", [None, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_report_with_too_many_sets_to_list_is_exact(width: int | None, seed: int) -> None:
    """Of 11 values and more: alone, beside a listed report, and beside another that favours sets."""
    rng, epsilon = np.random.default_rng([seed, 7]), 1.5
    size = 12 if width else 11
    large = FavouringChannel(size, "subsets" if width else "all", math.exp(-epsilon), width or 1)
    small = FavouringChannel(3, "all", math.exp(-1.0))
    joint = random_joint(rng, (3, size, 3)) + 1e-9
    belief = sl.Belief.from_joint(joint / joint.sum(), ["x", "u", "v"])
    columns = many_sets(size, width, epsilon)
    alone = sl.total_leakage(belief, {"u": large}, "x")
    assert alone.value == sl.pair_leakage(belief, large, "x", "u").value
    assert alone.value == pytest.approx(listed_total(joint.sum(axis=2), [columns]), abs=1e-9)
    for beside, listed in ((small, many_sets(3, None, 1.0)), (DenseChannel(np.eye(3)), np.eye(3))):
        own = sl.create("hadamard", 3, 0.7).channel
        found = sl.total_leakage(belief, {"v": beside, "u": large}, "x")
        assert found.is_exact
        assert found.value == pytest.approx(listed_total(joint, [columns, listed]), abs=1e-9)
        with_own = sl.total_leakage(belief, {"x": own, "v": beside, "u": large}, "x")
        assert with_own.is_exact
        assert found.value - 1e-9 <= with_own.value <= found.value + own.epsilon + 1e-9


def test_two_unary_encodings_of_many_values_are_exact(rng) -> None:
    joint = random_joint(rng, (2, 11, 11)) + 1e-6
    joint /= joint.sum()
    belief = sl.Belief.from_joint(joint, ["x", "u", "v"])
    channels = {name: sl.create("oue", 11, 1.0).channel for name in ("u", "v")}
    found = sl.total_leakage(belief, channels, "x")
    rows = joint / joint.sum(axis=(1, 2), keepdims=True)
    sets = favouring(11, list(subsets(11)), channels["u"].epsilon)
    reports = np.einsum("xuv,uy,vz->xyz", rows, sets, sets, optimize=True)
    assert found.is_exact
    assert found.value == pytest.approx(np.abs(np.log(reports[0] / reports[1])).max(), abs=1e-9)


def test_the_own_report_need_not_be_listable(rng) -> None:
    joint = random_joint(rng, (12, 2, 3)) + 1e-3
    belief = sl.Belief.from_joint(joint / joint.sum(), ["x", "u", "v"])
    channels = sl.Plan.uniform(belief.schema, "grr", 1.0).channels()
    channels["x"] = sl.create("oue", 12, 1.0).channel
    found = sl.total_leakage(belief, channels, "x")
    truth = total(joint, {1: randomised_response(2, 1.0), 2: randomised_response(3, 1.0)}, 0)
    assert found.is_exact
    assert found.value == pytest.approx(channels["x"].epsilon + truth, abs=1e-9)


def test_more_sets_than_doubles_count_are_no_obstacle() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(1200), size=2)
    belief = sl.Belief.from_joint(rows / 2, ["x", "u"])
    for mechanism in ("oue", "ss"):
        channels = {"u": sl.create(mechanism, 1200, 1.0).channel}
        found = sl.total_leakage(belief, channels, "x")
        assert found.value == sl.pair_leakage(belief, channels["u"], "x", "u").value


def rational_total(joint: np.ndarray, columns: list[np.ndarray]) -> float:
    """The leakage of the first attribute through the listed reports of the others, without rounding."""
    worst = 0.0
    rows = []
    for cells in joint:
        mass = sum(map(Fraction, cells.ravel().tolist()))
        likely = {}
        for report in product(*(range(column.shape[1]) for column in columns)):
            parts = (
                Fraction(float(cells[record]))
                * math.prod(Fraction(float(c[u, y])) for c, u, y in zip(columns, record, report, strict=True))
                for record in product(*map(range, cells.shape))
            )
            likely[report] = sum(parts) / mass
        rows.append(likely)
    for high, low in product(rows, rows):
        for report, top in high.items():
            if top and not low[report]:
                return math.inf
            if top:
                ratio = top / low[report]
                worst = max(worst, math.log(ratio.numerator) - math.log(ratio.denominator))
    return worst


def test_infinity_is_never_an_underflow() -> None:
    cells = np.zeros((2, 2, 2))
    cells[0], cells[1] = [[0.25, 0.125], [0.125, 0]], [[1e-308, 0], [0.25, 0.25]]
    cells[0, 1, 1] = 1 - cells.sum()
    belief = sl.Belief.from_joint(cells, ["a", "b", "c"])
    channels = {"b": sl.create("identity", 2).channel, "c": sl.create("grr", 2, 40).channel}
    for found in (sl.total_leakage(belief, channels, "a").upper, lower_total(belief, channels, "a")):
        assert found.value == pytest.approx(747.1087, abs=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_tiny_probabilities_are_as_exact_as_rational_numbers(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    for _ in range(12):
        exponents = rng.choice([0, 0, 20, 150, 290, 300, 307], size=(2, 2, 2))
        joint = rng.random((2, 2, 2)) * 10.0**-exponents * (rng.random((2, 2, 2)) < 0.8)
        joint[:, 1, 1] += 0.1
        joint /= joint.sum()
        belief = sl.Belief.from_joint(joint, ["x", "u", "v"])
        tiny = float(rng.choice([1e-5, 1e-20, 1e-200]))
        choices: list[tuple[Channel, np.ndarray]] = [
            (FavouringChannel(2, "singletons", 0.0), np.eye(2)),
            (FavouringChannel(2, "singletons", tiny), np.array([[1, tiny], [tiny, 1]])),
            (DenseChannel(np.array([[1 - tiny, tiny], [0, 1]])), np.array([[1 - tiny, tiny], [0, 1]])),
            (FavouringChannel(2, "all", tiny), np.array([[1, tiny, 1], [tiny, 1, 1]])),
        ]
        drawn = [choices[int(k)] for k in rng.integers(len(choices), size=2)]
        channels = {name: channel for name, (channel, _) in zip("uv", drawn, strict=True)}
        truth = rational_total(joint, [columns for _, columns in drawn])
        found = sl.total_leakage(belief, channels, "x")
        assert found.value == pytest.approx(truth, rel=1e-9, abs=1e-9)
        assert lower_total(belief, channels, "x").value <= truth * (1 + 1e-9) + 1e-9
        pair = sl.pair_leakage(belief, channels["u"], "x", "u").value
        assert pair == pytest.approx(rational_total(joint.sum(axis=2), [drawn[0][1]]), rel=1e-9, abs=1e-9)


def test_facts_about_the_generic_bound() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    assert generic_worst(rows, math.exp(-2)).value == pytest.approx(2.0)
    assert generic_worst(rows, 0.0).value == math.inf
    assert generic_worst(np.array([[0.3, 0.7], [0.3, 0.7]]), math.exp(-3)).value == 0
    assert generic_worst(np.array([[0.3, 0.7], [0.7, 0.3]]), 1.0).value == 0


def test_infinity_is_an_answer() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.25, 0.25]], ["x", "u"])
    released_as_is = FavouringChannel(2, "singletons", 0.0)
    assert sl.pair_leakage(belief, released_as_is, "x", "u").value == math.inf
    assert sl.total_leakage(belief, {"u": released_as_is}, "x").value == math.inf
    assert sl.leakage.saturation(belief, "x", "u").value == math.inf


def test_impossible_values_are_skipped() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.0, 0.0], [0.25, 0.25]], ["x", "u"])
    channel = sl.create("grr", 2, 1.0).channel
    truth = total(np.array([[0.5, 0.0], [0.25, 0.25]]), {1: randomised_response(2, 1.0)}, 0)
    found = sl.pair_leakage(belief, channel, "x", "u")
    assert found.value == pytest.approx(truth)
    assert {found.upper.witness.likelier, found.upper.witness.unlikelier} == {"0", "2"}


def test_smoothing_is_one_joint_for_pairs_and_totals(rng) -> None:
    cells = rng.integers(0, 3, size=(2, 3, 2))
    schema = sl.Schema(
        tuple(sl.categorical(name, ["a", "b", "c"][:k]) for name, k in zip("xyz", (2, 3, 2), strict=True))
    )
    belief = sl.Belief.from_counts(sl.Counts(schema, cells), smoothing=6.0)
    mixed = (cells + 6 / 12) / (cells.sum() + 6)
    by_hand = sl.Belief.from_joint(mixed, schema)
    channels = sl.Plan.uniform(schema).channels()
    for secret in schema.names:
        assert belief.joint(["x", "y", "z"]) == pytest.approx(mixed)
        assert sl.total_leakage(belief, channels, secret).value == pytest.approx(
            sl.total_leakage(by_hand, channels, secret).value, abs=1e-12
        )
        assert joint_generic(belief, channels, secret) == pytest.approx(
            joint_generic(by_hand, channels, secret), abs=1e-9
        )


def test_errors_say_what_to_do_instead(rng) -> None:
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", [str(v) for v in range(8)]) for i in range(10)))
    codes = rng.integers(0, 8, size=(50, 10))
    cells = sl.sources.Records(schema, codes.astype(np.uint16), np.ones(50))
    belief = sl.Belief.from_records(cells)
    channels = sl.Plan.uniform(schema).channels()
    with pytest.raises(sl.TooLargeError, match="use method='joint generic' or 'composition'"):
        sl.total_leakage(belief, channels, "x0", "exact")
    with pytest.raises(sl.InputError, match="there is no attribute 'y0'"):
        sl.total_leakage(belief, channels, "y0")
    with pytest.raises(sl.InputError, match="another attribute"):
        sl.pair_leakage(belief, channels["x0"], "x0", "x0")
    with pytest.raises(sl.InputError, match="read the table with schema=plan.schema"):
        sl.pair_leakage(belief, sl.create("grr", 3, 1.0).channel, "x0", "x1")
    interval = sl.total_leakage(belief, channels, "x0")
    assert interval.lower.value <= interval.upper.value
    assert interval.lower.kind == "lower"
    assert interval.upper.kind == "certified"


def test_where_doubles_end_a_figure_is_certified_not_exact() -> None:
    """At a budget of 700 the baseline of a report is too small; the truth is 699.3."""
    belief = sl.Belief.from_joint([[0.25, 0.25], [0.0, 0.5]], ["x", "u"])
    channel = FavouringChannel(2, "all", 0.0, budget=700.0)
    for found in (sl.pair_leakage(belief, channel, "x", "u"), sl.total_leakage(belief, {"u": channel}, "x")):
        assert found.upper.kind == "certified"
        assert found.lower.value <= 700 - math.log(2) + 1e-9 <= found.upper.value + 2e-9
        assert found.lower.value > 600


def test_probabilities_whose_digits_doubles_lose_are_refused() -> None:
    """Divided by 0.3, 5e-324 becomes 1.5e-323: an "exact" figure was off by 0.1."""
    with pytest.raises(
        sl.InputError, match="`cells` must be 0 or at least 1e-312, where doubles end, got 5e"
    ):
        sl.Belief.from_joint([[0.3, 5e-324], [0.2, 0.5]], ["x", "u"])
    with pytest.raises(sl.InputError, match="`smoothing` must be 0 or at least 1e-200, got 1e-318"):
        sl.Belief.from_counts([[5, 0], [0, 7]], ["x", "u"], smoothing=1e-318)
    cells = [[0.3, 1e-312], [0.2, 0.5]]
    found = sl.total_leakage(
        sl.Belief.from_joint(cells, ["x", "u"]), {"u": sl.create("identity", 2).channel}, "x"
    )
    truth = math.log(0.5 / 0.7) - (math.log(1e-312) - math.log(0.3))
    assert found.value == pytest.approx(truth, rel=1e-11)


def test_a_finite_ratio_too_large_for_doubles_is_finite() -> None:
    belief = sl.Belief.from_joint([[0.25, 0.25], [1e-310, 0.5]], ["x", "u"])
    for channel in (AnyChannel(2, math.inf), FavouringChannel(2, "all", 0.0)):
        found = sl.pair_leakage(belief, channel, "x", "u")
        assert found.value == pytest.approx(math.log(0.25) - math.log(1e-310), abs=1e-3)
        assert found.upper.witness.reports == {"u": (0,)}
