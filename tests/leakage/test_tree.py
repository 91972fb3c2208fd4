"""Tree beliefs against their dense joints, and tree totals against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from operator import mul
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from enumeration import conditional, randomised_response, total
from sidelight.leakage.totals.messages import (
    box_pairs,
    column_pairs,
    programme_pairs,
    range_pairs,
    ray_columns,
)
from sidelight.mechanisms import AnyChannel, Channel, DenseChannel, FavouringChannel

SEEDS = st.integers(0, 2**32 - 1)
METHODS = ("plain", "weighted", "linear programs", "auto")


def random_rows(rng: np.random.Generator, shape: tuple[int, int], zeros: float) -> np.ndarray:
    cells = rng.gamma(0.5, size=shape)
    cells[rng.random(shape) < zeros] = 0
    cells[rng.random(shape) < zeros / 4] *= 1e-12
    cells[:, 0] += cells.sum(axis=1) == 0
    return cells / cells.sum(axis=1, keepdims=True)


def random_tree(rng: np.random.Generator, sizes: list[int]) -> sl.belief.Tree:
    """A tree of random shape, with impossible values and cells in most cases."""
    names = [f"x{i}" for i in range(len(sizes))]
    zeros = float(rng.choice([0.0, 0.2, 0.4]))
    rows = {}
    for child in range(1, len(sizes)):
        parent = int(rng.integers(child))
        rows[names[parent], names[child]] = random_rows(rng, (sizes[parent], sizes[child]), zeros)
    return sl.belief.Tree.from_conditionals("x0", random_rows(rng, (1, sizes[0]), zeros)[0], rows)


def dense_joint(tree: sl.belief.Tree) -> np.ndarray:
    """Every cell as the plain product of its conditionals."""
    cells = np.zeros(tree.schema.sizes)
    for record in product(*(range(size) for size in cells.shape)):
        cells[record] = math.prod(
            float(rows[record[parent] if parent >= 0 else 0, record[position]])
            for position, (parent, rows) in enumerate(zip(tree.parents, tree.conditionals, strict=True))
        )
    return cells


def unary(size: int, keep: float, add: float) -> np.ndarray:
    """The matrix of a unary encoding: every report is a set of values."""
    columns = []
    for bits in product((0, 1), repeat=size):
        columns.append(
            [
                math.prod(
                    (keep if bits[v] else 1 - keep) if v == u else (add if bits[v] else 1 - add)
                    for v in range(size)
                )
                for u in range(size)
            ]
        )
    return np.array(columns).T


def subset_selection(size: int, width: int, epsilon: float) -> np.ndarray:
    sets = list(combinations(range(size), width))
    cells = np.array([[math.exp(epsilon) if u in s else 1.0 for s in sets] for u in range(size)])
    return cells / cells.sum(axis=1, keepdims=True)


def random_channel(rng: np.random.Generator, size: int) -> tuple[Channel, np.ndarray]:
    """A channel as the package states it, and its matrix."""
    epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0, 5.0]))
    kind = rng.choice(["grr", "dense", "all", "subsets", "any"], p=[0.5, 0.2, 0.1, 0.1, 0.1])
    if kind == "dense":
        cells = rng.dirichlet(np.full(3, 0.7), size=size)
        cells[rng.random(cells.shape) < 0.1] = 0
        cells[:, 0] += 1e-3
        cells /= cells.sum(axis=1, keepdims=True)
        return DenseChannel(cells), cells
    if kind == "all":
        keep, add = 0.5, 1 / (math.exp(epsilon) + 1)
        return FavouringChannel(size, "all", math.exp(-epsilon)), unary(size, keep, add)
    if kind == "subsets":
        width = int(rng.integers(1, size + 1))
        return FavouringChannel(size, "subsets", math.exp(-epsilon), width), subset_selection(
            size, width, epsilon
        )
    cells = randomised_response(size, epsilon)
    return (AnyChannel(size, epsilon) if kind == "any" else sl.create("grr", size, epsilon).channel), cells


def check_tables(rng: np.random.Generator) -> None:
    tree = random_tree(rng, [int(size) for size in rng.integers(1, 5, size=int(rng.integers(2, 6)))])
    names = tree.schema.names
    cells = dense_joint(tree)
    dense = sl.Belief.from_joint(cells / cells.sum(), tree.schema)
    belief = sl.Belief.from_tree(tree.rooted_at(str(rng.choice(names))))
    some = [str(name) for name in rng.permutation(names)[: int(rng.integers(1, len(names) + 1))]]
    assert belief.joint(some) == pytest.approx(dense.joint(some), abs=1e-12)
    assert belief.tree.joint(some) == pytest.approx(dense.joint(some), abs=1e-12)
    assert belief.blocks == pytest.approx(dense.blocks, abs=1e-12)
    first, second = (str(name) for name in rng.choice(names, size=2, replace=False))
    possible = dense.prior(first) > 1e-6
    assert belief.conditional(second, given=first)[possible] == pytest.approx(
        dense.conditional(second, given=first)[possible], abs=1e-6
    )
    learnt = sl.Belief.tree_of(dense)
    assert learnt.joint(names) == pytest.approx(cells, abs=1e-9), "a tree's own tree is another one"


def check_tree_totals(rng: np.random.Generator) -> None:
    count = int(rng.integers(3, 6))
    sizes = [int(size) for size in rng.integers(2, 5 if count < 4 else 4 if count < 5 else 3, size=count)]
    tree = random_tree(rng, sizes)
    names = tree.schema.names
    pairs = {i: random_channel(rng, size) for i, size in enumerate(sizes) if rng.random() < 0.8}
    if math.prod(cells.shape[1] for _, cells in pairs.values()) > 400:
        return
    channels = {names[i]: channel for i, (channel, _) in pairs.items()}
    secret = int(rng.integers(count))
    joint = dense_joint(tree)
    truth = total(joint, {i: cells for i, (_, cells) in pairs.items()}, secret)
    belief = sl.Belief.from_tree(tree)
    found = {method: sl.leakage.tree_total(belief, channels, names[secret], method) for method in METHODS}
    for method, bound in found.items():
        assert bound.value >= truth - 1e-9, method
        assert bound.kind in ("exact", "certified")
        if bound.kind == "exact":
            assert bound.value == pytest.approx(truth, abs=1e-9), method
    assert found["plain"].value >= found["weighted"].value - 1e-9
    assert found["weighted"].value >= found["linear programs"].value - 1e-9
    everything = sl.leakage.tree_totals(belief, channels)
    assert everything[names[secret]].value == found["auto"].value
    inner_is_binary = all(
        np.count_nonzero(tree.marginals[i]) <= 2
        for i in range(count)
        if i != secret and len(tree.rooted_at(names[secret]).children[i])
    )
    known = all(channel.claim == "exact" for channel in channels.values())
    assert found["linear programs"].kind == "exact" or not (inner_is_binary and known)


@given(SEEDS)
@settings(max_examples=10)
def test_a_tree_belief_gives_the_tables_of_its_joint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        check_tables(rng)


@given(SEEDS)
@settings(max_examples=10)
def test_tree_totals_are_never_below_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(30):
        check_tree_totals(rng)


@pytest.mark.deep
@pytest.mark.parametrize("check", [check_tables, check_tree_totals])
@pytest.mark.parametrize("seed", range(10))
def test_many_random_trees(check, seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    for _ in range(1500):
        check(rng)


def test_mean_ratios_to_the_exact_total() -> None:
    rng = np.random.default_rng(5)
    ratios: dict[str, list[float]] = {method: [] for method in METHODS[:3]}
    for _ in range(250):
        tree = random_tree(rng, [int(size) for size in rng.integers(2, 4, size=int(rng.integers(3, 6)))])
        names = tree.schema.names
        secret = int(rng.integers(len(names)))
        channels = {
            a.name: sl.create("grr", a.size, 1.0).channel for a in tree.schema if a.name != names[secret]
        }
        cells = tree.joint(names)
        dense = sl.Belief.from_joint(cells / cells.sum(), tree.schema)
        exact = sl.total_leakage(dense, channels, names[secret], "exact").value
        if exact > 1e-3:
            belief = sl.Belief.from_tree(tree)
            for method, seen in ratios.items():
                seen.append(sl.leakage.tree_total(belief, channels, names[secret], method).value / exact)
    means = {method: float(np.mean(seen)) for method, seen in ratios.items()}
    assert 1.1 < means["weighted"] < means["plain"] < 1.5
    assert 1.0 <= means["linear programs"] < 1.03


def test_the_witness_of_an_exact_total_reaches_it(rng) -> None:
    for _ in range(40):
        tree = random_tree(rng, [2] * int(rng.integers(2, 7)))
        names = tree.schema.names
        released = [name for name in names if rng.random() < 0.8]
        budgets = {name: float(rng.choice([0.5, 1.0, 2.0])) for name in released}
        channels = {name: sl.create("grr", 2, epsilon).channel for name, epsilon in budgets.items()}
        secret = str(rng.choice(names))
        found = sl.leakage.tree_total(sl.Belief.from_tree(tree), channels, secret)
        assert found.kind == "exact"
        if found.value < 1e-9:
            continue
        said = dict(part.split(" = ") for part in found.witness.report.split(", "))
        given_secret = conditional(dense_joint(tree), names.index(secret))
        likelihood = {
            value: math.fsum(
                mass
                * math.prod(
                    float(randomised_response(2, budgets[name])[record[names.index(name)], int(report)])
                    for name, report in said.items()
                )
                for record, mass in records.items()
            )
            for value, records in given_secret.items()
        }
        reached = math.log(
            likelihood[int(found.witness.likelier)] / likelihood[int(found.witness.unlikelier)]
        )
        assert reached == pytest.approx(found.value, abs=1e-9)


def random_spreads(rng: np.random.Generator, size: int) -> np.ndarray:
    return column_pairs(rng.gamma(0.7, size=(size, int(rng.integers(1, 8)))))[0]


def test_listed_rays_and_linear_programs_agree_and_the_quick_forms_are_not_below(rng) -> None:
    for size in (2, 3, 4, 5, 6) * 2:
        spreads = random_spreads(rng, size)
        rows, reports = random_rows(rng, (3, size), 0.2), rng.random((size, 3)) + 0.05
        tight = column_pairs(ray_columns(rows, reports, spreads))[0]
        assert programme_pairs(rows, reports, spreads) == pytest.approx(tight, abs=1e-7)
        boxed = box_pairs(rows, reports, spreads)
        plain = range_pairs(rows, reports, float(spreads.max()))
        assert (boxed >= tight - 1e-9).all()
        assert (plain >= boxed - 1e-9).all()
        start = rng.exponential(spreads.max(), size=(1, size, 5))
        messages = np.exp((spreads[:, :, None] + start).min(axis=1))  # the triangle inequality: in the cone
        sampled = column_pairs(rows @ (reports[:, :, None] * messages[:, None]).reshape(size, -1))[0]
        assert (tight >= sampled - 1e-9).all()


def enumerated_boxes(rows: np.ndarray, reports: np.ndarray, boxes: list[np.ndarray]) -> np.ndarray:
    """For each report the least over the boxes of the largest over a box's corners, by listing them all."""
    values = np.zeros((len(rows), len(rows)))
    for report in reports.T:
        least = np.full_like(values, np.inf)
        for low, high in boxes:
            corners = np.array([np.where(chosen, high, low) for chosen in product((0, 1), repeat=len(low))])
            least = np.minimum(least, column_pairs(rows @ (report * corners).T)[0])
        values = np.maximum(values, least)
    return values


@given(SEEDS)
@settings(max_examples=40)
def test_boxes_give_what_listing_their_corners_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    rows = random_rows(rng, (int(rng.integers(2, 5)), size), float(rng.choice([0.0, 0.4])))
    reports = rng.random((size, int(rng.integers(1, 5)))) + 0.05
    reports[rng.random(reports.shape) < rng.choice([0.0, 0.3])] = 0
    spreads = random_spreads(rng, size) * float(rng.choice([0.1, 1.0, 5.0]))
    if rng.random() < 0.2:
        spreads[0, 1:] = np.inf  # no reference but the first value's, and the whole range is unbounded
    whole = np.exp([[-spreads.max()] * size, [0.0] * size])
    assert range_pairs(rows, reports, float(spreads.max())) == pytest.approx(
        enumerated_boxes(rows, reports, [whole]), abs=1e-12
    )
    references = [b for b in range(size) if np.isfinite(spreads[:, b]).all()]
    boxes = [whole, *(np.exp([-spreads[b], spreads[:, b]]) for b in references)]
    assert box_pairs(rows, reports, spreads) == pytest.approx(
        enumerated_boxes(rows, reports, boxes), abs=1e-12
    )


def rational_log(top: Fraction, bottom: Fraction) -> float:
    """ln(top / bottom) of numbers whose digits doubles do not hold."""
    if bottom == 0:
        return math.inf if top else 0.0
    ratio = top / bottom
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio else -math.inf


@given(SEEDS)
@settings(max_examples=60)
def test_a_heavy_value_does_not_hide_what_the_others_add(seed: int) -> None:
    """Wide boxes against all their corners in rational numbers: sums in doubles lose the small values."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 6))
    rows = random_rows(rng, (4, size), float(rng.choice([0.0, 0.4])))
    spreads = random_spreads(rng, size)
    spreads *= float(rng.choice([20, 60, 200])) / spreads.max()
    found = box_pairs(rows, np.ones((size, 1)), spreads)
    boxes = [np.exp([[-spreads.max()] * size, [0.0] * size])]
    boxes += [np.exp([-spreads[b], spreads[:, b]]) for b in range(size)]
    least = np.full((4, 4), np.inf)
    for box in boxes:
        corners = list(product(*([Fraction(float(end)) for end in ends] for ends in box.T)))
        sums = [[sum(map(mul, map(Fraction, row.tolist()), corner)) for corner in corners] for row in rows]
        for i, j in permutations(range(4), 2):
            least[i, j] = min(least[i, j], max(0.0, *map(rational_log, sums[i], sums[j])))
    off = ~np.eye(4, dtype=bool)
    assert found[off] == pytest.approx(least[off], abs=1e-9)


def test_large_budgets_on_a_wide_attribute_stay_certified() -> None:
    """Two reports of 20 nats each about seven values: a climb that stopped early said 1.2215."""
    rows = np.array([[0.21, 0.33, 0.23, 0.115, 0.115, 0, 0], [0, 0.26, 0.09, 0.045, 0.045, 0.28, 0.28]])
    child = np.array([[0, 1], *[[0.5, 0.5]] * 4, [1, 0], [1, 0]])
    tree = sl.belief.Tree.from_conditionals(
        "s", [0.5, 0.5], {("s", "u"): rows, ("u", "a"): child, ("u", "b"): child}
    )
    belief = sl.Belief.from_tree(tree)

    def truth(budgets: tuple[float, float]) -> float:
        first, second = (randomised_response(2, budget) for budget in budgets)
        reports = np.einsum("su,uy,uz->syz", rows, child @ first, child @ second).reshape(2, -1)
        return float(np.abs(np.log(reports[0] / reports[1])).max())

    channels = {name: FavouringChannel(2, "singletons", math.exp(-20)) for name in "ab"}
    for method in METHODS:
        assert sl.leakage.tree_total(belief, channels, "s", method).value >= truth((20, 20)) - 1e-9
    for budgets in ("uniform", "unequal"):
        withheld = {"s": "withheld", "u": "withheld"}
        found = sl.calibrate(belief, 1.25, secrets=["s"], mechanisms=withheld, budgets=budgets)
        assert truth((found.budgets["a"], found.budgets["b"])) <= 1.25 + 1e-9


@pytest.mark.parametrize("method", ["weighted", "linear programs", "auto"])
def test_large_alphabets_stay_above_the_exact_total(rng, method) -> None:
    for _ in range(4):
        rows = {
            ("secret", "middle"): random_rows(rng, (3, 8), 0.2),
            ("middle", "a"): random_rows(rng, (8, 3), 0.0),
            ("middle", "b"): random_rows(rng, (8, 2), 0.0),
        }
        tree = sl.belief.Tree.from_conditionals("secret", [0.2, 0.3, 0.5], rows)
        belief = sl.Belief.from_tree(tree)
        channels = sl.Plan.uniform(tree.schema, "grr", 2.0).channels()
        cells = tree.joint(tree.schema.names)
        dense = sl.Belief.from_joint(cells / cells.sum(), tree.schema)
        exact = sl.total_leakage(dense, channels, "secret", "exact").value
        found = sl.leakage.tree_total(belief, channels, "secret", method)
        assert exact - 1e-9 <= found.value <= 8.0 + 1e-9
        assert found.kind == "certified"


def test_a_learnt_tree_is_a_model_and_misses_exclusive_or() -> None:
    cells = np.zeros((2, 2, 2))
    for a, b in product((0, 1), repeat=2):
        cells[a, b, a ^ b] = 0.25
    table = sl.Belief.from_joint(cells, ["a", "b", "secret"])
    learnt = sl.Belief.tree_of(table)
    channels = sl.Plan.uniform(table.schema).channels()
    found = sl.leakage.tree_total(learnt, channels, "secret")
    assert (found.value, found.kind) == (pytest.approx(1.0, abs=1e-12), "model")
    assert sl.total_leakage(table, channels, "secret").value == pytest.approx(1.43378, abs=5e-6)


def test_a_tree_learnt_from_records_remembers_them() -> None:
    table = sl.example("titanic")
    plain = sl.Belief.from_data(table, "tree")
    joint = sl.Belief.from_data(table)
    assert (plain.kind, plain.is_model, plain.sample_size) == ("tree", True, 2201)
    assert sl.Belief.tree_of(plain) is plain
    for parent, child in plain.tree.edges:
        assert plain.joint([parent, child]) == pytest.approx(joint.joint([parent, child]))
    smoothed = sl.Belief.from_data(table, "tree", smoothing=32)
    for belief in (plain, smoothed):
        assert belief.support("survived").tolist() == [1490, 711]
        assert belief.joint(["age", "class", "sex"]).sum() == pytest.approx(1)
    assert smoothed.prior("age") == pytest.approx(sl.Belief.from_data(table, smoothing=32).prior("age"))
    assert smoothed.zero_cells == 0


def test_learning_takes_the_strongest_pairs(rng) -> None:
    tree = sl.belief.Tree.from_conditionals(
        "b",
        [0.5, 0.5],
        {
            ("b", "a"): [[0.9, 0.1], [0.2, 0.8]],
            ("b", "c"): [[0.7, 0.3], [0.4, 0.6]],
            ("c", "d"): [[0.8, 0.2], [0.3, 0.7]],
        },
    )
    cells = rng.multinomial(200_000, tree.joint(["a", "b", "c", "d"]).ravel()).reshape(2, 2, 2, 2)
    schema = tree.schema.select(["a", "b", "c", "d"])
    learnt = sl.Belief.tree_of(sl.Belief.from_counts(sl.Counts(schema, cells)))
    assert {frozenset(edge) for edge in learnt.tree.edges} == {frozenset(edge) for edge in tree.edges}


def test_learnt_trees_are_below_most_exact_totals_of_celeba(data: Path) -> None:
    table = sl.read(data / "celeba_attr.parquet")
    whole = sl.Belief.from_data(table)
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(8):
        names = [str(name) for name in rng.choice(table.schema.names, size=6, replace=False)]
        counted = sl.Counts(table.schema.select(names), whole.records.cells(names).astype(np.int64))
        belief = sl.Belief.from_counts(counted)
        channels = sl.Plan.uniform(counted.schema).channels()
        models = sl.leakage.tree_totals(sl.Belief.tree_of(belief), channels)
        assert {bound.kind for bound in models.values()} == {"model"}
        below += sum(
            models[name].value < sl.total_leakage(belief, channels, name).value - 1e-9 for name in names
        )
    assert below > 24, "of 48"


def test_infinity_passes_through_a_tree() -> None:
    tree = sl.belief.Tree.from_conditionals(
        "x", [0.5, 0.5], {("x", "u"): [[1.0, 0.0], [0.5, 0.5]], ("u", "w"): [[0.9, 0.1], [0.0, 1.0]]}
    )
    belief = sl.Belief.from_tree(tree)
    as_it_is = FavouringChannel(2, "singletons", 0.0)
    truth = total(dense_joint(tree), {2: np.eye(2)}, 0)
    assert sl.leakage.tree_total(belief, {"w": as_it_is}, "x").value == pytest.approx(truth, abs=1e-9)
    assert sl.leakage.tree_total(belief, {"u": as_it_is, "w": as_it_is}, "x").value == math.inf
    assert sl.leakage.tree_total(belief, {"u": as_it_is}, "x", "plain").value == math.inf


@pytest.mark.parametrize("method", METHODS)
def test_a_report_that_no_possible_value_sends_is_skipped(method) -> None:
    tree = sl.belief.Tree.from_conditionals(
        "x",
        [0.5, 0.5],
        {("x", "u"): [[0.3, 0.7, 0.0], [0.6, 0.4, 0.0]], ("u", "w"): [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]},
    )
    cells = np.array([[0.8, 0.2, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    channels = {"u": DenseChannel(cells), "w": sl.create("grr", 2, 1.0).channel}
    truth = total(dense_joint(tree), {1: cells, 2: randomised_response(2, 1.0)}, 0)
    found = sl.leakage.tree_total(sl.Belief.from_tree(tree), channels, "x", method)
    assert found.value >= truth - 1e-9
    if method == "linear programs":
        assert found.value == pytest.approx(truth, abs=1e-9)


def test_nothing_released_leaks_nothing() -> None:
    belief = sl.Belief.from_tree(sl.belief.Tree.from_pairs({("a", "b"): [[0.5, 0.0], [0.0, 0.5]]}))
    assert sl.leakage.tree_total(belief, {}, "a").value == 0
    released = {"b": sl.create("grr", 2, 1.0).channel}
    assert sl.leakage.tree_total(belief, released, "a").value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sl.belief.Tree.from_pairs({}), "at least one edge"),
        (lambda: sl.belief.Tree.from_pairs({("a", "b"): [[0.5, 0.6]]}), "sum to 1"),
        (
            lambda: sl.belief.Tree.from_pairs({("a", "b"): [[0.5, 0.5]], ("b", "c"): [[0.9], [0.1]]}),
            "disagree about its own probabilities",
        ),
        (
            lambda: sl.belief.Tree.from_pairs({("a", "b"): [[0.5, 0.5]], ("c", "d"): [[0.5, 0.5]]}),
            "do not form one tree",
        ),
        (
            lambda: sl.belief.Tree.from_conditionals("a", [0.5, 0.5], {("b", "a"): [[0.5, 0.5]]}),
            "there is no attribute 'b'",
        ),
        (
            lambda: sl.belief.Tree.from_conditionals("a", [0.5, 0.5], {("a", "b"): [[0.5, 0.6], [1, 0]]}),
            "rows of probabilities",
        ),
        (
            lambda: sl.belief.Tree.from_conditionals("a", [0.5, 0.5], {("a", "b"): [[1, 0]]}),
            r"shape \(2, 2\)",
        ),
        (
            lambda: sl.leakage.tree_total(sl.Belief.from_data(sl.example("titanic")), {}, "age"),
            "Belief.tree_of",
        ),
        (
            lambda: sl.leakage.tree_total(sl.Belief.from_data(sl.example("titanic"), "tree"), {}, "ages"),
            "did you mean 'age'",
        ),
        (
            lambda: sl.leakage.tree_total(
                sl.Belief.from_data(sl.example("titanic"), "tree"), {}, "age", "best"
            ),
            "`method` must be one of",
        ),
    ],
)
def test_bad_trees_are_refused(call, words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        call()


def test_a_joint_too_large_is_refused() -> None:
    names = [f"x{i}" for i in range(30)]
    tree = sl.belief.Tree.from_pairs({edge: [[0.4, 0.1], [0.1, 0.4]] for edge in pairwise(names)})
    with pytest.raises(sl.TooLargeError, match="use tree propagation"):
        sl.Belief.from_tree(tree).joint(names)
    ends = sl.Belief.from_tree(tree).joint(["x0", "x29", "x1"])
    assert ends.sum(axis=1) == pytest.approx(np.array([[0.4, 0.1], [0.1, 0.4]]))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_many_valued_attributes_below_few_valued_ones_stay_certified(seed: int) -> None:
    """Bounds of many-valued attributes need not obey the triangle inequality that listing rays relies on."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        sizes = 2, int(rng.integers(3, 5)), 7, int(rng.integers(2, 4))
        rows = {
            (f"x{i}", f"x{i + 1}"): rng.dirichlet(np.full(sizes[i + 1], 0.3), size=sizes[i]) for i in range(3)
        }
        tree = sl.belief.Tree.from_conditionals("x0", rng.dirichlet(np.ones(2)), rows)
        belief = sl.Belief.from_tree(tree)
        channels = {"x3": sl.create("grr", sizes[3], float(rng.choice([1.0, 3.0, 6.0]))).channel}
        exact = sl.total_leakage(belief, channels, "x0", "exact").value
        assert sl.leakage.tree_total(belief, channels, "x0").value >= exact - 1e-9
