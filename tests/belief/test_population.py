"""Populations: their models against enumeration, and what they make of small, odd and random tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import sidelight as sl
from sidelight.belief import population as population_room
from sidelight.belief.components import Component, LatentClasses, RecordKernel, TreeMixture, log_mixture
from sidelight.belief.likelihoods import centre
from sidelight.belief.population import Population
from sidelight.belief.tree import Tree, is_single, log_mixed_sums
from sidelight.schema import Schema, plain_schema
from sidelight.sources import Records


def schema_of(sizes: tuple[int, ...]) -> Schema:
    return plain_schema((f"a{place}", size) for place, size in enumerate(sizes))


def rows_of(rng: np.random.Generator, sizes: tuple[int, ...], rows: int) -> np.ndarray:
    """Draw rows in which every attribute leans on the one before it."""
    codes = rng.integers(0, sizes, size=(rows, len(sizes)))
    for place in range(1, len(sizes)):
        copied = rng.random(rows) < 0.7
        codes[copied, place] = codes[copied, place - 1] % sizes[place]
    return codes.astype(np.uint16)


def belief_of(codes: np.ndarray, sizes: tuple[int, ...], **options: float) -> sl.Belief:
    counts = np.zeros(sizes, dtype=np.int64)
    np.add.at(counts, tuple(codes.T.astype(int)), 1)
    return sl.Belief.from_counts(counts, schema_of(sizes), **options)


def components(seed: int) -> tuple[tuple[int, ...], list[Component]]:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(1, 4, size=rng.integers(2, 5)))
    codes = rows_of(rng, sizes, 80)
    from sidelight.belief import population

    sample = population._Sample(schema_of(sizes), codes)
    return sizes, population._fitted(sample, rng)


@pytest.mark.parametrize("seed", range(8))
def test_every_model_is_one_distribution(seed: int) -> None:
    sizes, models = components(seed)
    every = np.array(list(product(*map(range, sizes))), dtype=np.uint16)
    rng = np.random.default_rng(seed)
    kinds = [LatentClasses, TreeMixture, RecordKernel, TreeMixture, TreeMixture, TreeMixture, LatentClasses]
    assert [type(model) for model in models] == [*kinds, LatentClasses]
    for model in models:
        cells = np.exp(model.log_records(every)).reshape(sizes)
        near = {"rel": 2e-5} if isinstance(model, RecordKernel) else {"rel": 1e-9}
        assert cells.sum() == pytest.approx(1, **near)
        assert model.joint(range(len(sizes))) == pytest.approx(cells, **near)
        assert model.joint([1, 0]) == pytest.approx(cells.sum(axis=tuple(range(2, len(sizes)))).T, **near)
        blocks = model.pair_tables()
        assert blocks == pytest.approx(blocks.T)
        assert blocks[: sizes[0], sizes[0] : sizes[0] + sizes[1]] == pytest.approx(model.joint([0, 1]))
        place = int(rng.integers(len(sizes)))
        others = [other for other in range(len(sizes)) if other != place]
        assert model.marginal(place) == pytest.approx(cells.sum(axis=tuple(others)), **near)
        said = {other: rng.random((5, sizes[other])) + 0.01 for other in others}
        expected = np.zeros((5, sizes[place]))
        for values in np.ndindex(*sizes):
            term = np.full(5, model.joint(range(len(sizes)))[values])
            for other, table in said.items():
                term = term * table[:, values[other]]
            expected[:, values[place]] += term
        error = np.abs(model.log_joint(centre(said), place) - np.log(expected)).max()
        assert error <= model.rounding(centre(said), place) + 1e-13


@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_all_tables_of_a_population_belong_to_one_joint(smoothing: float) -> None:
    rng = np.random.default_rng(3)
    belief = sl.Belief.population_of(belief_of(rows_of(rng, (2, 3, 2), 300), (2, 3, 2), smoothing=smoothing))
    assert (belief.kind, belief.is_model, belief.knows_joints, belief.sample_size) == (
        "population",
        True,
        True,
        300,
    )
    whole = belief.joint(["a0", "a1", "a2"])
    assert whole.sum() == pytest.approx(1)
    assert whole.min() > 0
    assert whole.sum(axis=1) == pytest.approx(belief.joint(["a0", "a2"]))
    assert whole.sum(axis=(0, 2)) == pytest.approx(belief.prior("a1"))
    assert belief.pair_probabilities()[:2, 2:5] == pytest.approx(belief.joint(["a0", "a1"]))
    assert belief.conditional("a1", given="a0").sum(axis=1) == pytest.approx(np.ones(2))
    assert belief.support("a0").sum() == 300
    assert belief.zero_cells == 0
    assert "above independence" in belief.source
    assert f"{belief.population.gain:.2f} nats" in repr(belief)
    assert "nats" in belief._repr_html_()


def test_a_population_is_close_to_the_table_that_it_was_learnt_from() -> None:
    table = sl.example("titanic")
    belief = sl.Belief.from_data(table, "population")
    seen = sl.Belief.from_data(table)
    assert belief.population.gain > 0.15
    names = table.schema.names
    assert np.abs(belief.joint(names) - seen.joint(names)).sum() < 0.15


def test_the_same_table_gives_the_same_belief_and_another_seed_another() -> None:
    table = sl.example("titanic")
    first, again, other = (sl.Belief.from_data(table, "population", seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.blocks, again.blocks)
    assert not np.array_equal(first.blocks, other.blocks)


def test_the_rows_and_starts_of_a_fit_come_from_other_coins_than_its_seed_gives_elsewhere() -> None:
    from sidelight.belief.population import _coins

    uses = [np.random.default_rng(3), _coins(3, 0), _coins(3, 1), _coins(3, 1, 0, 0), _coins(3, 1, 1, 0)]
    assert len({coins.integers(1 << 62) for coins in uses}) == len(uses)


def test_what_a_view_keeps_goes_with_it() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"), "population")
    kept = [set(vars(component)) for component in belief.population.components]
    belief.view("sex").log_probabilities({"class": np.ones((1, 4))})
    assert [set(vars(component)) for component in belief.population.components] == kept


@pytest.mark.parametrize("rows", [1, 2, 10, 19, 20, 45])
@pytest.mark.parametrize("sizes", [(2,), (1, 3), (4, 5, 1), (2, 7)])
def test_few_rows_constants_and_values_that_never_occur(rows: int, sizes: tuple[int, ...]) -> None:
    codes = rows_of(np.random.default_rng(rows), tuple(min(size, 3) for size in sizes), rows)
    belief = sl.Belief.population_of(belief_of(codes, sizes))
    view = belief.view(belief.schema.names[0])
    assert view.prior.sum() == pytest.approx(1)
    assert view.prior.min() > 0
    assert np.isfinite(belief.population.gain)
    if rows < 20:
        assert belief.population.gain == 0
        assert len(belief.population.components) == 1
    drawn = view.draw(0, 50, np.random.default_rng(0))
    assert (drawn < np.array(sizes)).all()


def coins() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 2, size=(500, 300)).astype(np.uint16)


def test_independent_coins_are_seen_to_be_independent() -> None:
    schema = schema_of((2,) * 300)
    population = Population.fit(schema, coins())
    assert abs(population.gain) < 0.1
    alone = [
        share
        for share, model in zip(population.shares, population.components, strict=True)
        if isinstance(model, LatentClasses) and len(model.shares) == 1
    ]
    assert sum(alone) > 0.9


def test_a_population_needs_the_records_of_a_sample() -> None:
    by_hand = sl.Belief.from_joint([[0.5, 0.5]], ["a", "b"])
    with pytest.raises(sl.InputError, match="which a distribution without counts has not"):
        sl.Belief.population_of(by_hand)
    pairs = sl.Belief.from_data(sl.example("titanic"), "pairwise")
    with pytest.raises(sl.InputError, match="which a pairwise belief has not"):
        sl.Belief.population_of(pairs)
    with pytest.raises(sl.InputError, match="`belief` must be"):
        sl.Belief.population_of(sl.example("titanic"))
    shares = Records(by_hand.schema, np.zeros((1, 2), dtype=np.uint16), np.array([7.5]))
    with pytest.raises(sl.InputError, match="which a distribution without counts has not"):
        sl.Belief.population_of(sl.Belief.from_records(shares))
    with pytest.raises(sl.InputError, match="`seed` must be"):
        sl.Belief.from_data(sl.example("titanic"), "population", seed=-1)
    population = sl.Belief.from_data(sl.example("titanic"), "population")
    assert sl.Belief.population_of(population) is population
    with pytest.raises(sl.InputError, match="a population is a model of them"):
        population.credal()


def test_joints_that_do_not_fit_in_memory_are_refused() -> None:
    codes = np.random.default_rng(0).integers(0, 2, size=(10, 30)).astype(np.uint16)
    population = Population.fit(schema_of((2,) * 30), codes)
    with pytest.raises(sl.TooLargeError, match="the joint table of 30 attributes"):
        population.joint(population.schema.names)
    assert population.joint(["a3", "a1", "a2"]).shape == (2, 2, 2)


def test_reports_are_weighed_by_one_thread_so_that_digits_do_not_depend_on_their_number(monkeypatch) -> None:
    threads: set[int] = set()

    def watched(*given: object) -> object:
        threads.update(part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas")
        return weigh(*given)  # type: ignore[arg-type]

    weigh = TreeMixture.log_joint
    monkeypatch.setattr(TreeMixture, "log_joint", watched)
    table = sl.example("titanic")
    population = sl.Belief.population_of(sl.Belief.from_data(table))
    with threadpool_limits(limits=2, user_api="blas"):
        population.view("survived").log_probabilities({"sex": np.full((3, table.schema["sex"].size), 0.5)})
    assert threads == {1}


@pytest.mark.parametrize("seed", range(6))
def test_messages_in_single_precision_are_within_their_rounding_of_those_in_double(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 11, size=7))
    sample = population_room._Sample(schema_of(sizes), rows_of(rng, sizes, 300))
    tree = Tree.learn(sample.schema, sample.pairs)
    place = int(rng.integers(len(sizes)))
    rooted = TreeMixture(np.ones(1), (tree.rooted_at(f"a{place}"),))
    released = [other for other in range(len(sizes)) if other != place and rng.random() < 0.6]
    tables = {other: rng.uniform(0.01, 1.0, size=(150, sizes[other])) for other in released}
    said = centre(tables)
    doubles = rooted.trees[0].log_sums(said)
    singles = log_mixed_sums(rooted.trees, rooted.shares, said)
    error = np.abs(singles - doubles).max()
    assert error <= rooted.rounding(said, place) < 1e-4
    assert error > 0 or len(released) < 2, "or it was not computed in single precision"


@pytest.mark.parametrize("prior", [1e-290, 1e-307, 5e-324])
@pytest.mark.parametrize("share", [1.0, 1e-20])
def test_a_value_as_rare_as_doubles_allow_keeps_its_digits(prior: float, share: float) -> None:
    rare = Tree.from_conditionals("a", [1 - prior, prior], {("a", "b"): [[0.5, 0.5], [0.0, 1.0]]})
    other = Tree.from_conditionals("a", [1.0, 0.0], {("a", "b"): [[0.2, 0.8], [0.0, 0.0]]})
    mixture = TreeMixture(np.array([share, 1 - share])[: 1 + (share < 1)], (rare, other)[: 1 + (share < 1)])
    said = centre({1: np.exp([[25.0, -25.0]])})
    assert is_single(said)
    error = abs(mixture.log_joint(said, 0)[0, 1] - (np.log(prior) + np.log(share) - 25))
    assert error <= mixture.rounding(said, 0)


@pytest.mark.parametrize("seed", range(40))
def test_messages_of_extreme_trees_are_within_their_rounding_of_logarithms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.choice([2, 3, 5, 40, 120]))
    sizes = tuple(int(size) for size in rng.integers(1, 7, size=count))
    sizes = (1000, *sizes[1:]) if seed % 10 == 0 else sizes
    mixture = TreeMixture(np.array([1 - 1e-200, 1e-200]), (wild_tree(rng, sizes), wild_tree(rng, sizes)))
    place = int(rng.integers(count))
    released = [other for other in range(count) if other != place]
    budget = rng.choice([0.0, 1.0, min(20.0, 59.9 / len(released)), 59.9 / len(released)])
    tables = {other: np.exp(budget * rng.integers(0, 2, (70, sizes[other]))) for other in released}
    said = centre(tables)
    if not is_single(said):
        said = centre(dict(list(tables.items())[:2]))
    singles = mixture.log_joint(said, place)
    with np.errstate(divide="ignore"):
        # as if there were zeros: term by term, as logarithms
        logs = [tree.log_sums(replace(said, has_zeros=True)) for tree in mixture._rooted(place)]
        doubles = log_mixture(logs, mixture.shares)
    known = np.isfinite(doubles)
    assert (np.isfinite(singles) == known).all()
    assert np.abs(singles[known] - doubles[known]).max(initial=0.0) <= mixture.rounding(said, place)


def wild_tree(rng: np.random.Generator, sizes: tuple[int, ...]) -> Tree:
    """Return a chain, a star or anything between, with chances down to e^-300, or 0."""
    width = rng.choice([1, 3, len(sizes)])
    parents = [-1, *(int(rng.integers(max(0, own - width), own)) for own in range(1, len(sizes)))]
    conditionals = []
    for size, parent in zip(sizes, parents, strict=True):
        rows = np.exp(
            -rng.choice([1.0, 90.0, 300.0]) * rng.random((sizes[parent] if parent >= 0 else 1, size))
        )
        rows[rng.random(rows.shape) < rng.choice([0.0, 0.4])] = 0.0
        rows[np.arange(len(rows)), rng.integers(size, size=len(rows))] += 1.0
        conditionals.append(rows / rows.sum(axis=1, keepdims=True))
    return Tree(schema_of(sizes), tuple(parents), tuple(conditionals))


@pytest.mark.parametrize("classes", [1, 3])
def test_pairs_counted_one_by_one_are_those_of_the_product(classes: int, monkeypatch) -> None:
    rng = np.random.default_rng(classes)
    sizes = (7, 5, 9)
    sample = population_room._Sample(schema_of(sizes), rows_of(rng, sizes, 200))
    parts = rng.dirichlet(np.full(classes, 0.05), 200).astype(np.float32)
    one_by_one = population_room._pair_counts(sample, parts[:, 0])
    monkeypatch.setattr(population_room, "_SPARSE", 100)
    np.testing.assert_allclose(one_by_one, population_room._pair_counts(sample, parts[:, 0]), rtol=1e-5)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 90), st.integers(1, 70),
    st.integers(0, 9999),
)  # fmt: skip
def test_values_that_are_looked_up_are_those_of_the_product(
    sizes: list[int], rows: int, classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sample = population_room._Sample(schema_of(tuple(sizes)), rows_of(rng, tuple(sizes), rows))
    said, parts = rng.normal(size=(sum(sizes), classes)), rng.random((rows, classes)).astype(np.float32)
    shown = sample.shown.astype(np.float64)
    np.testing.assert_allclose(sample.lookups.sums(said), shown @ said, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sample.lookups.counts(parts), shown.T @ parts, rtol=1e-12)


def test_records_are_looked_up_in_groups_however_many_values_they_have() -> None:
    sizes = (60, 2, 40, 3, 50, 2, 2)
    rng = np.random.default_rng(4)
    sample = population_room._Sample(schema_of(sizes), rows_of(rng, sizes, 3000))
    assert 1 < sample.lookups.codes.shape[1] < len(sizes)
    assert (sample.lookups.counts(np.ones((3000, 1), np.float32))[:, 0] == sample.shown.sum(axis=0)).all()


@pytest.mark.parametrize("budget", [0.5, 30.0, 68.0, 69.0, 200.0])
def test_products_of_latent_classes_are_within_their_rounding_of_logarithms(budget: float) -> None:
    rng = np.random.default_rng(int(budget))
    sizes = (3, *(4,) * 20)
    chances = tuple(rng.dirichlet(np.full(size, 0.05), 5) + 1e-12 for size in sizes)
    classes = LatentClasses(
        rng.dirichlet(np.full(5, 0.3)), tuple(part / part.sum(1)[:, None] for part in chances)
    )
    said = centre({place: np.exp(budget * rng.random((70, 4))) for place in range(1, len(sizes))})
    apart = np.abs(classes.log_joint(said, 0) - classes.log_joint(replace(said, has_zeros=True), 0)).max()
    assert apart <= 2 * classes.rounding(said, 0) < 1e-6
    assert (apart > 0) == (said.reach < 620), "or products were not taken where they keep their digits"
