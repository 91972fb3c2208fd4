"""Beliefs: from data, counts or by hand, with what they remember."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sidelight as sl


@pytest.fixture(scope="module")
def titanic() -> sl.Counts:
    return sl.sources.titanic()


def test_all_ways_give_the_same_tables(titanic: sl.Counts) -> None:
    table = sl.example("titanic")
    joint = sl.Belief.from_data(table, "joint")
    pairwise = sl.Belief.from_data(table, "pairwise")
    counted = sl.Belief.from_counts(titanic)
    paired = sl.Belief.from_counts(*table.pair_counts())
    by_hand = sl.Belief.from_joint(titanic.cells / titanic.total, titanic.schema)
    for belief in (pairwise, counted, paired, by_hand):
        assert belief.schema == joint.schema
        for first, second in combinations(joint.schema.names, 2):
            assert belief.joint([first, second]) == pytest.approx(joint.joint([first, second]))
        assert belief.zero_cells == joint.zero_cells == 1
    names = titanic.schema.names
    assert joint.joint(names) == pytest.approx(titanic.cells / 2201)
    assert joint.joint(names[::-1]) == pytest.approx(titanic.cells.T / 2201)
    assert (joint.sample_size, by_hand.sample_size) == (2201, None)
    assert joint.support("survived").tolist() == [1490, 711]
    assert by_hand.support("survived") is None


def test_conditionals_and_their_undefined_rows() -> None:
    belief = sl.Belief.from_joint([[0.25, 0.25], [0.0, 0.0], [0.5, 0.0]], ["x", "u"])
    rows = belief.conditional("u", given="x")
    assert rows[0] == pytest.approx([0.5, 0.5])
    assert rows[2] == pytest.approx([1.0, 0.0])
    assert np.isnan(rows[1]).all()
    assert belief.prior("u") == pytest.approx([0.75, 0.25])


def test_smoothing_adds_evenly_spread_records(titanic: sl.Counts) -> None:
    belief = sl.Belief.from_counts(titanic, smoothing=32)
    assert belief.joint(["age", "class"]).sum() == pytest.approx(1)
    child_crew = belief.joint(["age", "class"])[0, 3]
    assert child_crew == pytest.approx((32 / 8) / (2201 + 32))
    assert belief.joint(titanic.schema.names).sum(axis=(1, 2))[3, 0] == pytest.approx(
        belief.joint(["class", "survived"])[3, 0]
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sl.Belief.from_joint([[0.5, 0.6]], ["a", "b"]), "sum to 1"),
        (lambda: sl.Belief.from_joint([[1.5, -0.5]], ["a", "b"]), "at least 0"),
        (lambda: sl.Belief.from_joint([[np.nan, 0.5]], ["a", "b"]), "must be finite"),
        (lambda: sl.Belief.from_joint([[0.5, 0.5]], ["a"]), "2 names, one for each axis"),
        (lambda: sl.Belief.from_joint([0.5, 0.5], sl.sources.titanic().schema), r"shape \(4, 2, 2, 2\)"),
        (lambda: sl.Belief.from_counts(), "at least one count table"),
        (
            lambda: sl.Belief.from_counts(sl.sources.titanic(), smoothing=-1),
            "`smoothing` must be a finite number",
        ),
        (lambda: sl.Belief.from_data(sl.example("titanic"), "magic"), "`kind` must be one of"),
        (
            lambda: sl.Belief.from_data(sl.example("titanic"), "pairwise").joint(["age", "sex", "class"]),
            "kind='joint'",
        ),
        (lambda: sl.Belief.from_data(sl.example("titanic")).joint(["age", "age"]), "different attributes"),
        (lambda: sl.Belief.from_counts(*sl.example("titanic").pair_counts()[:3]), "every pair"),
        (
            lambda: sl.Belief.from_counts(*sl.example("titanic").pair_counts()[:3], sl.sources.titanic()),
            "two attributes",
        ),
    ],
)
def test_bad_beliefs_are_refused(call, words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        call()


def test_too_many_distinct_records_fall_back_to_pairs(monkeypatch) -> None:
    monkeypatch.setattr("sidelight.belief.belief.LARGEST_RECORDS", 10)
    table = sl.example("titanic")
    assert sl.Belief.from_data(table).kind == "pairwise"
    with pytest.raises(sl.InputError, match="use kind='pairwise'"):
        sl.Belief.from_data(table, "joint")


def test_pair_tables_must_count_the_same_records() -> None:
    first, *rest = sl.example("titanic").pair_counts()
    other = sl.Counts(first.schema, first.cells * 2)
    with pytest.raises(sl.InputError, match="must count the same records"):
        sl.Belief.from_counts(other, *rest)
