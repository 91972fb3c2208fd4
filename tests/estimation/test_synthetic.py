"""Synthetic people: near the estimated tables, drawn again by a seed, and nothing about anybody."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pyarrow.csv as pc
import pytest

import sidelight as sl
from sidelight.attacks import attack_synthetic
from sidelight.estimation.dependence import cramers_v
from sidelight.estimation.synthetic import draw, model_steps
from sidelight.protocols import pairs

SCHEMA = sl.Schema(
    tuple(sl.categorical(n, [f"{n}{v}" for v in range(k)]) for n, k in zip("abcd", (2, 3, 4, 2), strict=True))
)


def people(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=count)
    b = np.where(rng.random(count) < 0.7, a, rng.integers(3, size=count))
    c = np.where(rng.random(count) < 0.6, b, rng.integers(4, size=count))
    return np.column_stack([a, b, c, rng.integers(2, size=count)]).astype(np.uint16)


def tables_of(records: np.ndarray) -> dict[tuple[str, ...], np.ndarray]:
    tables = {}
    for first, second in combinations(range(4), 2):
        shape = SCHEMA.sizes[first], SCHEMA.sizes[second]
        codes = records[:, first].astype(np.intp) * shape[1] + records[:, second]
        counts = np.bincount(codes, minlength=shape[0] * shape[1])
        tables[SCHEMA.names[first], SCHEMA.names[second]] = counts.reshape(shape) / len(records)
    return tables


def estimates(count: int = 5_000, epsilon: float = 3.0):
    return sl.estimate_pairs(pairs(SCHEMA, epsilon).randomise(people(count), seed=1))


@pytest.mark.parametrize("most", [1 << 16, 12, 6])
def test_the_model_has_the_pairs_that_fit_a_clique(most: int) -> None:
    """At most 6 or 12 cells make a tree of cliques; a pair inside one is right but for 200,000 draws."""
    records = people(20_000)
    tables = tables_of(records)
    marginals = {
        n: np.bincount(records[:, i], minlength=SCHEMA.sizes[i]) / 20_000 for i, n in enumerate("abcd")
    }
    steps = list(model_steps(SCHEMA, tables, marginals, most))
    assert sorted(name for step in steps for name in step.drawn) == list("abcd")
    drawn = tables_of(draw(SCHEMA, steps, 200_000, seed=1))
    for step in steps:
        assert step.law.sum(axis=1) == pytest.approx(1.0)
        assert step.law.size <= most
        for pair in combinations((*step.given, *step.drawn), 2):
            names = tuple(sorted(pair, key=SCHEMA.index))
            assert drawn[names] == pytest.approx(tables[names], abs=0.006)


def test_the_fit_has_the_largest_entropy() -> None:
    """Among joints with the same pairs, found by moving along what leaves them as they are, none has more."""
    records = people(20_000)
    tables = tables_of(records)
    marginals = {
        n: np.bincount(records[:, i], minlength=SCHEMA.sizes[i]) / 20_000 for i, n in enumerate("abcd")
    }
    (step,) = model_steps(SCHEMA, tables, marginals)
    joint = step.law.reshape(SCHEMA.sizes)
    entropy = -(joint * np.log(joint)).sum()
    rng = np.random.default_rng(1)
    for _ in range(50):
        signs = [rng.normal(size=size) for size in SCHEMA.sizes[:3]]
        signs = [sign - sign.mean() for sign in signs]
        move = np.einsum("a,b,c->abc", *signs)[..., None] * np.ones(2)
        move *= 0.5 * (joint / np.maximum(np.abs(move), 1e-12)).min()
        other = joint + move
        assert -(other * np.log(other)).sum() <= entropy + 1e-9


def test_people_are_drawn_near_the_tables_and_again_by_a_seed(tmp_path) -> None:
    found = estimates()
    drawn = sl.estimation.synthetic_people(found, 20_000, seed=5)
    assert drawn.people == 20_000
    assert max(drawn.errors.values()) < 0.03
    assert np.array_equal(drawn.codes, sl.estimation.synthetic_people(found, 20_000, seed=5).codes)
    assert not np.array_equal(drawn.codes, sl.estimation.synthetic_people(found, 20_000).codes)
    assert cramers_v(tables_of(drawn.codes)["a", "b"]) == pytest.approx(
        found.dependence["a", "b"].cramers_v, abs=0.05
    )
    rows = pc.read_csv(drawn.write(tmp_path / "people.csv"))
    assert rows.column_names == list("abcd")
    assert set(rows.column("a").to_pylist()) == {"a0", "a1"}
    assert json.loads(drawn.to_json())["people"] == 20_000
    with pytest.raises(sl.InputError):
        drawn.write(tmp_path / "people.csv")


def test_every_cell_of_a_step_has_its_share_of_people_but_for_one() -> None:
    found = estimates()
    pair = {names: table.frequencies for names, table in found.tables.items()}
    steps = list(model_steps(SCHEMA, pair, found.marginals, 12))
    codes = draw(SCHEMA, steps, 3_000, seed=2)
    for step in steps:
        given, drawn = (
            np.ravel_multi_index(
                codes[:, [SCHEMA.index(name) for name in names]].T.astype(np.intp),
                [SCHEMA[name].size for name in names],
            )
            if names
            else np.zeros(3_000, dtype=np.intp)
            for names in (step.given, step.drawn)
        )
        counts = np.zeros(step.law.shape)
        np.add.at(counts, (given, drawn), 1)
        assert np.abs(counts - counts.sum(axis=1, keepdims=True) * step.law).max() < 1 + 1e-6


def test_what_cannot_be_drawn_is_refused() -> None:
    some = sl.estimate_pairs(pairs(SCHEMA, 1.0).randomise(people(200), seed=1), sets=[["a", "b"]])
    with pytest.raises(sl.InputError, match="tables of all pairs"):
        sl.estimation.synthetic_people(some)
    with pytest.raises(sl.InputError, match="`people`"):
        sl.estimation.synthetic_people(estimates(200), 0)


def test_synthetic_people_tell_little_about_members() -> None:
    """Ten collections of 2,000: the mean error is a coin's but for 0.0125, five standard errors.

    Were the tables of others, it would be 0.5; the members' own reports lower it by about 0.0015.
    """
    scores: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(10):
        members, outsiders, others = (people(2_000, 3 * seed + place) for place in range(3))
        for is_theirs, reporting in ((True, members), (False, others)):
            found = sl.estimate_pairs(pairs(SCHEMA, 1.0).randomise(reporting, seed=seed))
            drawn = sl.estimation.synthetic_people(found, seed=seed).codes
            result = attack_synthetic(drawn, members, outsiders, epsilon=1.0)
            scores[is_theirs].append(result.score.value)
            assert result.limit.value == pytest.approx(1 / (1 + np.e))
    for some in scores.values():
        assert abs(np.mean(some) - 0.5) < 0.0125
    assert min(scores[True]) >= 1 / (1 + np.e)


def test_the_attack_finds_members_where_tables_hardly_have_noise() -> None:
    """Eight collections of 200 at epsilon 20: a gain of 0.065 +- 0.0053 on average, within four of these."""
    gains = []
    for seed in range(8):
        members, outsiders = people(200, 2 * seed), people(200, 2 * seed + 1)
        found = sl.estimate_pairs(pairs(SCHEMA, 20.0, [list("abcd")]).randomise(members, seed=seed))
        drawn = sl.estimation.synthetic_people(found, 20_000, seed=seed).codes
        gains.append(attack_synthetic(drawn, members, outsiders, epsilon=20.0).gain.value)
    assert np.mean(gains) > 0.044


def test_the_attack_finds_members_where_records_are_published_as_they_are() -> None:
    """A control of the attack itself: 60 people's own records of many values give them away."""
    rng = np.random.default_rng(1)
    members, outsiders = (rng.integers(40, size=(60, 4)).astype(np.uint16) for _ in range(2))
    result = attack_synthetic(members, members, outsiders, epsilon=np.inf)
    assert result.gain.lower > 0.2
    for bad in (members[:, :2], members[:0]):
        with pytest.raises(sl.InputError, match="same attributes"):
            attack_synthetic(members, bad, outsiders, epsilon=1.0)
    with pytest.raises(sl.InputError, match="as many outsiders"):
        attack_synthetic(members, members, outsiders[:9], epsilon=1.0)
