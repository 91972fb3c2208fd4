"""Prior knowledge: the paper's examples, the truth by enumeration, trees, Gaussians, noise, bad input."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import sidelight as sl
from enumeration import random_joint
from knowledge_enumeration import adversaries, leakage, sums
from sidelight.knowledge import search
from sidelight.knowledge.graph import WeightedGraph

SHAPES = ((2, 2), (2, 3), (2, 2, 2), (3, 2, 2), (2, 2, 2, 2))
STEPS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0, 3.0)


def pair(cells: list[list[float]], second: float = 1.0) -> tuple[sl.Belief, sl.Query]:
    belief = sl.Belief.from_joint(cells, ["x1", "x2"])
    return belief, sl.Query.additive(belief.schema, {"x1": [0, 1], "x2": [0, second]})


@pytest.mark.parametrize(
    ("cells", "second", "known", "expected"),
    [
        ([[0.3, 0.2], [0.2, 0.3]], 1, ("x2",), 1.0),
        ([[0.3, 0.2], [0.2, 0.3]], 1, (), 1.18538),
        ([[0.2, 0.3], [0.3, 0.2]], 1, (), 0.81462),
        ([[0.49, 0.01], [0.01, 0.49]], 1, (), 1.95349),
        ([[0.01, 0.49], [0.49, 0.01]], 1, (), 0.04651),
        ([[0.5, 0.0], [0.0, 0.5]], 1, (), 2.0),
        ([[0.5, 0.0], [0.0, 0.5]], 5, (), 6.0),
        ([[0.5, 0.0], [0.45, 0.05]], 1, (), 1.15857),
    ],
)
def test_examples_2_to_4_and_the_counter_example(cells, second, known, expected) -> None:
    belief, query = pair(cells, second)
    found = sl.knowledge.prior_leakage(belief, query, sl.Adversary("x1", known))
    assert found.value == pytest.approx(expected, abs=5e-6)
    assert found.kind == "exact"


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.99])
def test_example_5_gaussian_pair(rho: float) -> None:
    belief = sl.belief.Gaussian(("x1", "x2"), np.array([[1, rho], [rho, 1]]))
    weak, strong = sl.Adversary("x1"), sl.Adversary("x1", ("x2",))
    assert sl.knowledge.gaussian_leakage(belief, weak, reach=3, scale=2).value == pytest.approx(
        1.5 * (1 + rho), abs=1e-12
    )
    assert sl.knowledge.gaussian_leakage(belief, strong, reach=3, scale=2).value == pytest.approx(
        1.5, abs=1e-12
    )
    assert sl.knowledge.gaussian_weakest(belief, "x1", reach=3, scale=2).value == pytest.approx(
        1.5 * (1 + rho), abs=1e-12
    )


def test_example_1_posteriors_at_an_answer_of_2() -> None:
    together = sl.Belief.from_joint([[0.5, 0], [0, 0.5]], ["s1", "s2"])
    query = sl.Query.sum(together.schema)
    weak = sl.knowledge.posterior(together, query, "s1", 2.0)
    assert weak[1] == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-12)
    assert list(sl.knowledge.posterior(together, query, "s1", 2.0, {"s2": "1"})) == [0.0, 1.0]
    apart = sl.Belief.from_joint([[0, 0.5], [0.5, 0]], ["s1", "s2"])
    assert sl.knowledge.posterior(apart, query, "s1", 2.0) == pytest.approx([0.5, 0.5])
    certain = sl.Belief.from_joint([[1.0, 0.0], [0.0, 0.0]], ["s1", "s2"])
    with pytest.raises(sl.InputError, match="never occur together"):
        sl.knowledge.posterior(certain, query, "s1", 2.0, {"s2": "1"})


def random_case(seed: int) -> tuple[np.ndarray, list[list[float]], float]:
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, SHAPES[rng.integers(len(SHAPES))])
    joint = np.where(joint > 1e-9, joint, 0.0)  # the enumeration is plain doubles
    parts = [list(rng.choice(STEPS, size=size)) for size in joint.shape]
    return joint / joint.sum(), parts, float(rng.choice([0.3, 1.0, 4.0]))


def check_against_enumeration(seed: int) -> None:
    joint, parts, scale = random_case(seed)
    names = [f"x{j}" for j in range(joint.ndim)]
    belief = sl.Belief.from_joint(joint, names)
    query = sl.Query.additive(belief.schema, dict(zip(names, parts, strict=True)), scale)
    values = sl.knowledge.all_adversaries(belief, query)
    for target, known in adversaries(joint.ndim):
        adversary = sl.Adversary(names[target], tuple(names[k] for k in known))
        truth = leakage(joint, sums(parts), target, known, scale)
        assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(truth, abs=1e-8)
        assert values.of(adversary) == pytest.approx(truth, abs=1e-8)
        assert sl.knowledge.prior_leakage(belief, query, adversary, "group").value >= truth - 1e-9


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_exact_equals_enumeration_with_mixed_signs_and_repeated_sums(seed: int) -> None:
    check_against_enumeration(seed)


@pytest.mark.deep
@given(st.integers(0, 10**9))
@settings(max_examples=1500)
def test_exact_equals_enumeration_many_times(seed: int) -> None:
    check_against_enumeration(seed)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_compiled_and_the_plain_loop_agree(seed: int) -> None:
    joint, parts, scale = random_case(seed)
    names = [f"x{j}" for j in range(joint.ndim)]
    belief = sl.Belief.from_joint(joint, names)
    query = sl.Query.additive(belief.schema, dict(zip(names, parts, strict=True)), scale)
    plain = sl.knowledge.all_adversaries(belief, query).table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SMALL", 0.0)
        compiled = sl.knowledge.all_adversaries(belief, query).table
        patch.setattr(search, "_is_dense", lambda *_: False)
        listed = sl.knowledge.all_adversaries(belief, query).table
    np.testing.assert_allclose(compiled, plain, atol=1e-10)
    np.testing.assert_allclose(listed, plain, atol=1e-10)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_any_query_and_vectors_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, (2, 2, 2))
    joint = np.where(joint > 1e-9, joint, 0.0)
    joint /= joint.sum()
    belief = sl.Belief.from_joint(joint, ["a", "b", "c"])
    largest = sl.Query.any(belief.schema, lambda a, b, c: max(a, 2 * b, 3 * c * a), 0.8, name="largest")
    assert largest.name == "largest"
    counts = sl.Query.histogram(belief.schema, 1.5)
    records = list(product((0, 1), repeat=3))
    tables = (
        (largest, {r: (float(max(r[0], 2 * r[1], 3 * r[2] * r[0])),) for r in records}),
        (counts, {r: (float(3 - sum(r)), float(sum(r))) for r in records}),
    )
    for target, known in adversaries(3):
        adversary = sl.Adversary("abc"[target], tuple("abc"[k] for k in known))
        for query, answers in tables:
            truth = leakage(joint, answers, target, known, query.scale)
            assert sl.knowledge.prior_leakage(belief, query, adversary).value == pytest.approx(
                truth, abs=1e-8
            )


def test_one_binary_tuple_in_two_noisy_cells_leaks_twice() -> None:
    belief = sl.Belief.from_joint([0.4, 0.6], ["x"])
    for scale in (0.5, 2.0):
        query = sl.Query.histogram(belief.schema, scale)
        assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("x")).value == pytest.approx(2 / scale)


def random_tree(rng: np.random.Generator, count: int) -> sl.belief.Tree:
    sizes = rng.integers(2, 4, size=count)
    prior = rng.dirichlet(np.ones(sizes[0]))
    links = {}
    for child in range(1, count):
        parent = int(rng.integers(child))
        rows = rng.dirichlet(np.full(sizes[child], 0.6), size=sizes[parent])
        rows[rng.random(rows.shape) < 0.2] = 0
        rows[rows.sum(axis=1) == 0] = 1
        links[f"x{parent}", f"x{child}"] = rows / rows.sum(axis=1, keepdims=True)
    return sl.belief.Tree.from_conditionals("x0", prior, links)


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_convolution_on_trees_equals_the_dense_method(seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief = sl.Belief.from_tree(random_tree(rng, int(rng.integers(2, 6))))
    names = belief.schema.names
    dense = sl.Belief.from_joint(belief.tree.joint(names), belief.schema)
    parts = {a.name: rng.choice(STEPS, size=a.size) for a in belief.schema}
    query = sl.Query.additive(belief.schema, parts, float(rng.choice([0.5, 2.0])))
    for target, known in adversaries(len(names)):
        adversary = sl.Adversary(names[target], tuple(names[k] for k in known))
        found = sl.knowledge.prior_leakage(belief, query, adversary)
        assert found.value == pytest.approx(
            sl.knowledge.prior_leakage(dense, query, adversary).value, abs=1e-9
        )
        assert found.method.startswith("convolution")


def test_a_long_chain_of_copies_leaks_one_for_every_copy() -> None:
    links = {(f"x{j}", f"x{j + 1}"): np.eye(2) for j in range(299)}
    belief = sl.Belief.from_tree(sl.belief.Tree.from_conditionals("x0", [0.5, 0.5], links))
    query = sl.Query.sum(belief.schema)
    assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("x7")).value == pytest.approx(300, abs=1e-9)
    everyone = sl.Adversary.strongest("x7", belief.schema.names)
    assert sl.knowledge.prior_leakage(belief, query, everyone).value == 0.0  # its copies already tell it
    loose = {(f"x{j}", f"x{j + 1}"): [[0.9, 0.1], [0.1, 0.9]] for j in range(299)}
    belief = sl.Belief.from_tree(sl.belief.Tree.from_conditionals("x0", [0.5, 0.5], loose))
    assert sl.knowledge.prior_leakage(belief, query, everyone).value == pytest.approx(1.0)


def test_a_learnt_tree_is_a_model() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"), kind="tree")
    query = sl.Query.sum(belief.schema)
    assert sl.knowledge.prior_leakage(belief, query, sl.Adversary("survived")).kind == "model"


def test_a_set_of_distributions_takes_the_worst() -> None:
    first, query = pair([[0.3, 0.2], [0.2, 0.3]])
    second, _ = pair([[0.49, 0.01], [0.01, 0.49]])
    adversary = sl.Adversary("x1")
    assert sl.knowledge.prior_leakage([first, second], query, adversary).value == pytest.approx(
        1.95349, abs=1e-5
    )
    with pytest.raises(sl.InputError, match="at least one belief"):
        sl.knowledge.prior_leakage([], query, adversary)


def test_the_worst_adversary_with_pruning_is_the_worst_of_all(rng: np.random.Generator) -> None:
    for _ in range(20):
        joint = random_joint(rng, (2, 3, 2, 2))
        belief = sl.Belief.from_joint(joint, list("abcd"))
        query = sl.Query.sum(belief.schema, 0.7, {"c": -1.5})
        adversary, bound, looked = sl.knowledge.worst_adversary(belief, query)
        values = sl.knowledge.all_adversaries(belief, query)
        assert bound.value == pytest.approx(values.worst()[1], abs=1e-9)
        assert values.of(adversary) == pytest.approx(bound.value, abs=1e-9)
        assert 0 < looked <= 1
    copies = sl.Belief.from_joint(np.diag([0.5, 0.5])[:, :, None] * [0.5, 0.5], list("abc"))
    _, bound, looked = sl.knowledge.worst_adversary(copies, sl.Query.sum(copies.schema))
    assert bound.value == pytest.approx(2.0)
    assert looked < 1, "the group bound cuts adversaries off"


def test_weights_means_counts_and_offsets_are_the_same_question(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(random_joint(rng, (2, 2, 2)), list("abc"))
    schema, adversary = belief.schema, sl.Adversary("b", ("c",))
    ones = {name: ["1"] for name in "abc"}
    figures = [
        sl.knowledge.prior_leakage(belief, query, adversary).value
        for query in (
            sl.Query.sum(schema, 1.0),
            sl.Query.sum(schema, 3.0, {"a": 3, "b": 3, "c": 3}),
            sl.Query.mean(schema, 1 / 3),
            sl.Query.count(schema, ones, 1.0),
            sl.Query.additive(schema, {"a": [7.25, 8.25], "b": [-1, 0], "c": [0.1, 1.1]}),
        )
    ]
    assert figures == pytest.approx([figures[0]] * 5, abs=1e-9)


def test_tails_far_below_a_double_are_kept() -> None:
    belief, query = pair([[0.3, 0.2], [0.2, 0.3]])
    for scale in (1e-3, 1e-4):
        weak = sl.knowledge.prior_leakage(belief, query.with_scale(scale), sl.Adversary("x1")).value
        assert weak == pytest.approx(1 / scale + math.log(1.5), rel=1e-9)


def log_density(distance: float, spread: float, scale: float) -> float:
    """The log-density of Laplace noise plus a centred Gaussian at a distance, by numerical integration."""
    if spread == 0:
        return -abs(distance) / scale
    peak = min(spread * spread / scale, distance)

    def exponent(s: float) -> float:
        return -0.5 * (s / spread) ** 2 - abs(distance - s) / scale

    top = exponent(peak)
    ends = (peak - 12 * spread, peak + 12 * spread)
    value, _ = quad(lambda s: math.exp(exponent(s) - top), *ends, points=[peak], epsabs=0, epsrel=1e-11)
    return top + math.log(value)


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_gaussian_closed_form_equals_integration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    factor = rng.normal(size=(count, count + 1))
    names = tuple(f"x{j}" for j in range(count))
    belief = sl.belief.Gaussian(names, factor @ factor.T)
    known = tuple(name for name in names[1:] if rng.random() < 0.5)
    weights = {name: float(rng.normal()) for name in names}
    adversary, scale, reach = (
        sl.Adversary("x0", known),
        float(rng.uniform(0.5, 3)),
        float(rng.uniform(0.1, 2)),
    )
    closed = sl.knowledge.gaussian_leakage(belief, adversary, scale=scale, reach=reach, weights=weights).value
    rest, given_names = adversary.unknown(names), ["x0", *known]
    slope, spread = weights["x0"], 0.0
    if rest:
        a = np.array([weights[name] for name in rest])
        slope += float(a @ belief.regression(rest, given_names)[:, 0])
        spread = math.sqrt(max(0.0, float(a @ belief.residual(rest, given_names) @ a)))
    shift = reach * slope
    far = abs(shift) + scale * 40 + spread * (40 + spread / scale)  # the ratio approaches the closed form
    numeric = abs(log_density(far - shift, spread, scale) - log_density(far, spread, scale))
    assert numeric == pytest.approx(closed, abs=1e-6)


def test_corollary_2_is_theorem_6_for_the_weakest(rng: np.random.Generator) -> None:
    factor = rng.normal(size=(5, 6))
    belief = sl.belief.Gaussian(tuple("abcde"), factor @ factor.T)
    for name in "abcde":
        full = sl.knowledge.gaussian_leakage(belief, sl.Adversary(name)).value
        assert sl.knowledge.gaussian_weakest(belief, name).value == pytest.approx(full, abs=1e-12)


def test_gaussian_from_values_is_a_model(rng: np.random.Generator) -> None:
    values = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=20_000)
    belief = sl.belief.Gaussian.from_values(values, ["a", "b"])
    found = sl.knowledge.gaussian_leakage(belief, sl.Adversary("a"))
    assert found.kind == "model"
    assert found.value == pytest.approx(1.5, abs=0.05)  # 7 standard errors of the slope (0.0061)


def test_least_noise_keeps_the_limit_and_beats_group_privacy(rng: np.random.Generator) -> None:
    belief = sl.Belief.from_joint(random_joint(rng, (2, 2, 3)), list("abc"))
    query = sl.Query.sum(belief.schema)
    chosen = sl.knowledge.least_noise(belief, query, 0.8)
    _, at, _ = sl.knowledge.worst_adversary(belief, query.with_scale(chosen.scale))
    _, less, _ = sl.knowledge.worst_adversary(belief, query.with_scale(0.999 * chosen.scale))
    assert at.value <= 0.8 * (1 + 1e-9) < less.value
    assert chosen.saving >= 1
    free = sl.Belief.from_joint(np.full((2, 2, 2), 1 / 8), list("abc"))
    assert sl.knowledge.least_noise(free, sl.Query.sum(free.schema), 1.0).saving == pytest.approx(3.0)


BELIEF, QUERY = pair([[0.3, 0.2], [0.2, 0.3]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sl.Adversary("x1", ("x1",)), "is among the known attributes"),
        (lambda: sl.Adversary("x1", ("x2", "x2")), "listed twice"),
        (lambda: sl.Adversary("x1", "x2"), "must be a list of attributes"),
        (lambda: sl.knowledge.prior_leakage(BELIEF, QUERY, sl.Adversary("x3")), "there is no attribute 'x3'"),
        (
            lambda: sl.knowledge.prior_leakage(BELIEF, QUERY, sl.Adversary("x1", ("y",))),
            "there is no attribute 'y'",
        ),
        (lambda: QUERY.with_scale(0.0), "`scale` must be a finite number above 0, got 0.0"),
        (lambda: QUERY.with_scale(-1.0), "`scale` must be a finite number above 0"),
        (lambda: QUERY.with_scale(math.nan), "`scale` must be a finite number above 0"),
        (lambda: sl.Query.sum(BELIEF.schema, 1.0, {"z": 1.0}), "there is no attribute 'z'"),
        (lambda: sl.Query.additive(BELIEF.schema, {"x1": [0, 1, 2]}), "`parts of x1` must be 2 finite"),
        (lambda: sl.Query.count(BELIEF.schema, {"x1": ["9"]}), "there is no value '9' of x1"),
        (lambda: sl.Query.additive(BELIEF.schema, {"x1": 3}), "`parts of x1` must be 2 finite"),
        (lambda: sl.Query.additive(BELIEF.schema, {"x1": ["0", "1"]}), "`parts of x1` must be numbers"),
        (lambda: sl.Query.additive(BELIEF.schema, {"x1": [[0], [1, 2]]}), "vectors of one length"),
        (lambda: sl.Query.additive(BELIEF.schema, {"x1": [[], []]}), "at least one number"),
        (lambda: sl.Query.any(BELIEF.schema, lambda a: a), "`function` must be a function of 2 codes"),
        (lambda: sl.Query.any(BELIEF.schema, lambda a, b: [1.0] * (a + b + 1)), "vectors of one length"),
        (lambda: sl.belief.Gaussian(("a", "b"), [[1, 0], [0]]), "`covariance` must be a square table"),
        (lambda: WeightedGraph.given(np.zeros((1, 1, 2)), 1.0), "`sensitivities` must be a list"),
        (lambda: WeightedGraph.given(np.zeros((2, 2, 4)), [1, 1], ("a", "a")), "`names` must be 2 different"),
        (lambda: sl.knowledge.WeightedGraph.from_belief(BELIEF, QUERY).to_dot("nope"), "no attribute 'nope'"),
        (lambda: sl.knowledge.least_noise(BELIEF, QUERY, 0.0), "`limit` must be a finite number above 0"),
        (lambda: sl.knowledge.all_adversaries(BELIEF, QUERY, []), "`targets` must be a list of at least one"),
        (lambda: sl.belief.Gaussian(("a", "b"), [[1, 1], [1, 1]]), "is singular"),
        (lambda: sl.belief.Gaussian.equicorrelated(15, -0.2), "belongs to no distribution"),
        (lambda: sl.belief.Gaussian(("a", "b"), [[1, 0], [0, 0]]), "positive variances"),
        (lambda: sl.belief.Gaussian(("a", "b"), [[1, 2]]), "2 x 2 finite numbers"),
        (lambda: sl.belief.Gaussian(("a", "b"), [[1, 0.2], [0.1, 1]]), "must be symmetric"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        call()
    assert words in str(caught.value)


def test_what_is_too_large_is_refused_with_a_way_out() -> None:
    wide = sl.Schema(tuple(sl.categorical(f"x{j}", ["a", "b"]) for j in range(25)))
    tree = sl.Belief.from_tree(
        sl.belief.Tree.from_conditionals(
            "x0", [0.5, 0.5], {(f"x{j}", f"x{j + 1}"): [[0.9, 0.1], [0.2, 0.8]] for j in range(24)}, wide
        )
    )
    query = sl.Query.sum(wide)
    with pytest.raises(sl.TooLargeError, match="take fewer attributes or coarser bins"):
        sl.knowledge.all_adversaries(tree, query)
    assert sl.knowledge.prior_leakage(tree, query, sl.Adversary("x3")).value > 1
    with pytest.raises(sl.TooLargeError, match="fewer attributes"):
        sl.knowledge.prior_leakage(tree, query, sl.Adversary("x3"), "published")
    even = sl.Adversary("x1", tuple(f"x{j}" for j in range(0, 25, 2)))
    long = sl.Query.sum(wide, 1.0, {"x1": 1e5})
    with pytest.raises(sl.TooLargeError, match="combinations of known values"):
        sl.knowledge.prior_leakage(tree, long, even)
    pairs = sl.Belief.from_data(sl.example("titanic"), kind="pairwise")
    with pytest.raises(sl.InputError, match="pairwise belief knows no joint"):
        sl.knowledge.prior_leakage(pairs, sl.Query.sum(pairs.schema), sl.Adversary("sex"))
