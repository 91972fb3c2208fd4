"""Beliefs seen from a secret, against enumeration of every record."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import sidelight as sl
from sidelight.belief import Tree
from sidelight.belief.components import LatentClasses, RecordKernel, TreeMixture
from sidelight.belief.likelihoods import centre
from sidelight.belief.record_sums import RecordSums
from sidelight.foundation import threads
from sidelight.schema import plain_schema
from sidelight.sources import Records

FALSE_ALARM = 1e-6
"""Each statistical test here fails by chance with this probability, over the choice of its seed."""


def joint_of(rng: np.random.Generator) -> np.ndarray:
    sizes = tuple(rng.integers(1, 5, size=rng.integers(1, 5)))
    cells = rng.dirichlet(np.full(np.prod(sizes), 0.5)).reshape(sizes)
    cells[rng.random(sizes) < 0.3] = 0
    cells.flat[rng.integers(cells.size)] += 0.1
    return cells / cells.sum()


def names_of(cells: np.ndarray) -> list[str]:
    return [f"a{axis}" for axis in range(cells.ndim)]


def tree_of(rng: np.random.Generator) -> Tree:
    sizes = rng.integers(2, 5, size=4)
    rows = {}
    for child in range(1, 4):
        parent = rng.integers(child)
        table = rng.dirichlet(np.ones(sizes[child]), size=sizes[parent])
        table[rng.random(table.shape) < 0.2] = 0
        table[:, 0] += 1 - table.sum(axis=1)
        rows[f"a{parent}", f"a{child}"] = table
    return Tree.from_conditionals("a0", rng.dirichlet(np.ones(sizes[0])), rows)


def beliefs(seed: int) -> list[sl.Belief]:
    rng = np.random.default_rng(seed)
    cells = joint_of(rng)
    counts = rng.poisson(40 * cells)
    counts.flat[0] += 1
    names = names_of(cells)
    return [
        sl.Belief.from_joint(cells, names),
        sl.Belief.from_counts(counts, names, smoothing=2.5),
        sl.Belief.from_tree(tree_of(rng)),
        sl.Belief.tree_of(sl.Belief.from_counts(counts, names)),
        sl.Belief.population_of(sl.Belief.from_counts(counts, names, smoothing=1.5)),
    ]


def likelihoods_of(rng: np.random.Generator, belief: sl.Belief, releases: int) -> dict[str, np.ndarray]:
    """Draw reports of several mechanisms, some of which rule values out, for some of the attributes."""
    tables = {}
    for item in belief.schema:
        ones = np.ones((releases, item.size))
        said = rng.integers(item.size, size=releases)[:, None] == np.arange(item.size)
        spread = rng.choice([0.5, 4.0, 60.0])
        choices = [
            np.where(said, np.exp(spread), ones),  # randomised response
            np.exp(-spread * rng.random((releases, item.size))),  # noise on numbers, unary encoding
            np.where(said | (rng.random(said.shape) < 0.5), 1.0, 0.0),  # a set without noise
        ]
        if rng.random() < 0.8:
            tables[item.name] = choices[rng.integers(3)] * rng.random((releases, 1))
    return tables


def enumerated(belief: sl.Belief, secret: str, likelihoods: Mapping[str, np.ndarray]) -> np.ndarray:
    cells = belief.joint(belief.schema.names)
    place, names = belief.schema.index(secret), belief.schema.names
    releases = len(next(iter(likelihoods.values()))) if likelihoods else 1
    out = np.zeros((releases, belief.schema[secret].size))
    for values in np.ndindex(cells.shape):
        term = np.full(releases, cells[values])
        for name, table in likelihoods.items():
            term = term * table[:, values[names.index(name)]]
        out[:, values[place]] += term
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(out) - np.log(belief.prior(secret))


def up_to_a_factor(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference that a factor for each release does not explain."""
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.array_equal(np.isneginf(found), np.isneginf(expected))
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isfinite(expected), found - expected, np.nan)
    apart = apart[np.isfinite(apart).any(axis=1)]
    return float((np.nanmax(apart, axis=1) - np.nanmin(apart, axis=1)).max()) if len(apart) else 0.0


@pytest.mark.parametrize("seed", range(40))
def test_every_view_is_the_enumeration(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    for belief in beliefs(seed):
        secret = str(rng.choice(belief.schema.names))
        view = belief.view(secret)
        assert view.prior == pytest.approx(belief.prior(secret), abs=1e-12)
        likelihoods = likelihoods_of(rng, belief, int(rng.integers(1, 70)))
        found = view.log_probabilities(likelihoods)
        expected = enumerated(belief, secret, likelihoods)
        error = up_to_a_factor(np.broadcast_to(found, expected.shape), expected)
        assert error <= 2 * view.rounding(likelihoods) + 1e-13
        assert error <= 2e-5


def test_rare_values_and_small_likelihoods_stay_within_the_range_of_doubles() -> None:
    cells = np.array([[0.5, 0.25], [0.25, 1e-310]])
    said = np.array([[1.0, 3.0]])
    for factor in (1.0, 1e-306):  # likelihoods are given up to a factor
        view = sl.Belief.from_joint(cells, ["a", "b"]).view("a")
        found = np.diff(view.log_probabilities({"b": factor * said}))
        assert found.item() == pytest.approx(np.diff(np.log((cells @ said[0]) / cells.sum(axis=1))).item())
        assert view.rounding({"b": factor * said}) < 1e-9
    names = [f"a{place}" for place in range(400)]
    rows = {("s", name): np.eye(2) for name in names}
    view = sl.Belief.from_tree(Tree.from_conditionals("s", [1 - 1e-30, 1e-30], rows)).view("s")
    logs = view.log_probabilities({name: np.exp([[0.0, -3.4]]) for name in names})
    assert np.diff(logs).item() == pytest.approx(-3.4 * 400)


def test_records_that_never_occur_are_left_out() -> None:
    schema = plain_schema([("a", 2), ("b", 2)])
    codes = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.uint16)
    belief = sl.Belief.from_records(Records(schema, codes, np.array([1.0, 0.0, 2.0])))
    logs = belief.view("a").log_probabilities({"b": np.array([[1.0, 3.0]])})
    assert logs == pytest.approx(np.zeros((1, 2)), abs=1e-6)


def test_rows_that_sum_to_1_nearly_are_taken_as_shares() -> None:
    rows = np.array([[0.5, 0.5 + 9e-10], [0.25, 0.75]])
    tree = Tree.from_conditionals("a", [0.5, 0.5], {("a", "b"): rows})
    logs = sl.Belief.from_tree(tree).view("a").log_probabilities({"b": np.ones((1, 2))})
    assert logs == pytest.approx(np.zeros((1, 2)), abs=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_people_are_drawn_as_often_as_the_belief_says(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    for belief in beliefs(seed):
        secret = belief.schema.names[-1]
        view = belief.view(secret)
        value = int(view.prior.argmax())
        drawn = view.draw(value, 4000, rng)
        assert drawn.dtype == np.uint16
        assert (drawn[:, -1] == value).all()
        chances = belief.joint(belief.schema.names)[..., value].ravel() / view.prior[value]
        counts = np.bincount(
            np.ravel_multi_index(tuple(drawn.T[:-1]), belief.schema.sizes[:-1]) if len(belief.schema) > 1
            else np.zeros(4000, dtype=int), minlength=len(chances),
        )  # fmt: skip
        assert not counts[chances == 0].any()
        assert is_plausible(counts, chances)


def test_every_model_draws_people_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    sizes = (3, 2, 4)
    schema = plain_schema((f"a{place}", size) for place, size in enumerate(sizes))
    edges = [{("a0", "a1"): (3, 2), ("a0", "a2"): (3, 4)}, {("a0", "a2"): (3, 4), ("a2", "a1"): (4, 2)}]
    trees = [
        Tree.from_conditionals(
            "a0", rng.dirichlet(np.ones(3)),
            {edge: rng.dirichlet(np.ones(shape[1]), size=shape[0]) for edge, shape in tables.items()}, schema,
        )
        for tables in edges
    ]  # fmt: skip
    codes = rng.integers(0, sizes, size=(20, 3)).astype(np.uint16)
    marginals = tuple(rng.dirichlet(np.ones(size)) for size in sizes)
    models = [
        TreeMixture(np.array([0.3, 0.7]), tuple(trees)),
        LatentClasses(np.array([0.2, 0.8]), tuple(rng.dirichlet(np.ones(size), size=2) for size in sizes)),
        RecordKernel(Records(schema, codes, rng.random(20)), np.array([0.2, 0.0, 0.6]), marginals),
    ]
    for model, place in product(models, range(3)):
        chances = np.moveaxis(model.joint(range(3)), place, 0)[0].ravel()
        drawn = np.delete(model.draw(place, 0, 20_000, rng), place, axis=1)
        shape = np.delete(sizes, place)
        counts = np.bincount(np.ravel_multi_index(tuple(drawn.T), tuple(shape)), minlength=len(chances))
        assert is_plausible(counts, chances / chances.sum())


def is_plausible(counts: np.ndarray, chances: np.ndarray) -> bool:
    """Pearson's test, with cells that expect fewer than 8 taken together."""
    rare = chances * counts.sum() < 8
    seen = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(chances[~rare], chances[rare].sum()) * counts.sum()
    seen, expected = seen[expected > 0], expected[expected > 0]
    return len(seen) < 2 or stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > FALSE_ALARM


def test_a_value_that_cannot_occur_is_not_a_number_and_is_not_drawn() -> None:
    view = sl.Belief.from_joint([[0.5, 0.0, 0.5]], ["a", "b"]).view("b")
    found = view.log_probabilities({"a": np.ones((2, 1)), "b": np.ones((2, 3))})
    assert np.isnan(found).tolist() == [[False, True, False]] * 2
    with pytest.raises(sl.InputError, match="`value` must be a value of b that occurs"):
        view.draw(1, 10, np.random.default_rng(0))
    assert view.draw(0, 0, np.random.default_rng(0)).shape == (0, 2)


def test_only_reports_that_are_given_count() -> None:
    view = sl.Belief.from_joint([[0.4, 0.1], [0.1, 0.4]], ["a", "b"]).view("a")
    said = np.array([[1.0, 3.0]])
    assert view.log_probabilities({}) == pytest.approx(np.zeros((1, 2)), abs=1e-12)
    own = view.log_probabilities({"a": said})
    assert own[0, 1] - own[0, 0] == pytest.approx(np.log(3))
    other = view.log_probabilities({"b": said})
    assert other[0, 1] - other[0, 0] == pytest.approx(np.log((0.2 + 0.8 * 3) / (0.8 + 0.2 * 3)), abs=1e-5)
    both = view.log_probabilities({"a": said, "b": said})
    assert both == pytest.approx(own + other, abs=1e-5)


def test_a_view_needs_whole_records_and_a_known_secret() -> None:
    table = sl.example("titanic")
    with pytest.raises(sl.InputError, match="kind='joint', or a model"):
        sl.Belief.from_data(table, "pairwise").view("sex")
    with pytest.raises(sl.InputError, match="there is no attribute 'sx'"):
        sl.Belief.from_data(table).view("sx")
    view = sl.Belief.from_data(table).view("sex")
    with pytest.raises(sl.InputError, match=r"`likelihoods of class` must be of the shape \(2, 4\)"):
        view.log_probabilities({"sex": np.ones((2, 2)), "class": np.ones((2, 3))})
    with pytest.raises(sl.InputError, match="there is no attribute 'clas'"):
        view.log_probabilities({"clas": np.ones((2, 3))})


def sums_of(rng: np.random.Generator, attributes: int, records: int = 300) -> RecordSums:
    codes = rng.integers(0, 3, size=(records, attributes)).astype(np.uint16)
    return RecordSums((3,) * attributes, codes, rng.integers(1, 9, size=records).astype(float), 0)


def by_logarithms(sums: RecordSums, likelihoods: Mapping[int, np.ndarray]) -> np.ndarray:
    logs = np.log(sums.weights)[None, :] + sum(np.log(t)[:, sums.codes[:, j]] for j, t in likelihoods.items())
    own = sums.codes[:, sums.by]
    return np.stack([logsumexp(logs[:, own == value], axis=1) for value in range(3)], axis=1)


@pytest.mark.parametrize(("attributes", "spread", "digits"), [
    (2, 1.0, np.float32), (7, 1.0, np.float32), (20, 1.0, np.float32), (33, 1.0, np.float32),
    (50, 1.0, np.float32), (70, 1.0, np.float32), (60, 20.0, np.float64), (200, 3.0, np.float64),
    (300, 10.0, None), (1500, 4.0, None),
])  # fmt: skip
def test_sums_keep_their_digits_in_every_range(attributes: int, spread: float, digits: type | None) -> None:
    """Up to thousands of attributes, whose likelihoods multiply to numbers far beyond doubles."""
    rng = np.random.default_rng(attributes)
    sums = sums_of(rng, attributes)
    likelihoods = {place: np.exp(-spread * rng.random((40, 3))) for place in range(1, attributes)}
    assert sums._digits(centre(likelihoods).reach) is digits
    error = np.abs(sums.logs(centre(likelihoods)) - by_logarithms(sums, likelihoods)).max()
    assert error <= sums.rounding(centre(likelihoods))
    assert sums.rounding(centre(likelihoods)) < (3e-5 if digits is np.float32 else 1e-8)


def test_the_bound_of_rounding_is_not_far_from_what_happens() -> None:
    rng = np.random.default_rng(1)
    sums = sums_of(rng, 60, records=5000)
    likelihoods = {place: np.exp(-2 * rng.random((500, 3))) for place in range(1, 60)}
    error = np.abs(sums.logs(centre(likelihoods)) - by_logarithms(sums, likelihoods)).max()
    assert sums.rounding(centre(likelihoods)) / 1000 < error < sums.rounding(centre(likelihoods))


@pytest.mark.parametrize("knows", ["table", "population"])
def test_the_number_of_threads_changes_no_bit(knows: str, monkeypatch) -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    view = (belief if knows == "table" else sl.Belief.population_of(belief)).view("survived")
    rng = np.random.default_rng(0)
    said = {name: rng.random((700, view.schema[name].size)) for name in view.schema.names}
    told = set()
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "processors", lambda count=count: count)
        told.add(view.log_probabilities(said).tobytes())
    assert len(told) == 1
