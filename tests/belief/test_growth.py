"""How much work a belief and its audit take as a table grows: counted, so that no clock decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.belief import belief as belief_module
from sidelight.foundation import compiled
from sidelight.leakage.totals import joint, lower
from sidelight.leakage.totals.base import composition
from sidelight.schema import axes_schema
from sidelight.sources import counts
from sidelight.sources.counter import Counter
from sidelight.sources.counts import Records, block_counts, number_hashes

HUMP = 1.5
"""A size that takes so many times the work of a larger one is a hump."""


def people(rows: int, attributes: int, values: int, mixing: float = 0.5) -> pa.Table:
    rng = np.random.default_rng(attributes)
    common = rng.random(rows)
    columns = ((1 - mixing) * common + mixing * rng.random(rows) for _ in range(attributes))
    return pa.table({
        f"a{number}": np.minimum(column * values, values - 1).astype(np.uint8)
        for number, column in enumerate(columns)
    })  # fmt: skip


@pytest.fixture
def small_limits(monkeypatch) -> None:
    """Every size at which the work changes, a thousandth of what it is."""
    monkeypatch.setattr(belief_module, "LARGEST_RECORDS", 4096)
    monkeypatch.setattr(joint, "MANY_RECORDS", 256)
    monkeypatch.setattr(joint, "THINNED", 64)


def counted_work(monkeypatch, work: Callable[[], object]) -> int:
    """Return how many rows were grouped, counted or evaluated."""
    done: list[int] = []
    number, add, evaluate = counts.number_hashes, Counter.add, lower._evaluate

    def evaluated(records, own, said, pair):
        values = records.codes[:, records.schema.index(own.secret)]
        done.append(int(np.isin(values, own.possible[list(pair)]).sum()))
        return evaluate(records, own, said, pair)

    with monkeypatch.context() as patch:
        patch.setattr(counts, "number_hashes", lambda hashed: done.append(len(hashed)) or number(hashed))
        patch.setattr(Counter, "add", lambda self, codes: done.append(codes.shape[1]) or add(self, codes))
        patch.setattr(lower, "_evaluate", evaluated)
        work()
    return sum(done)


def audited(rows: int, attributes: int, values: int) -> None:
    belief = sl.Belief.from_data(sl.read(people(rows, attributes, values), few=values))
    sl.audit(belief, sl.Plan.uniform(belief.schema, "grr", 1.0))


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(("attributes", "values"), [(6, 10), (8, 6)])
def test_no_size_takes_much_more_work_than_a_larger_one(attributes: int, values: int, monkeypatch) -> None:
    sizes = (300, 1000, 3000, 4000, 6000, 10_000)
    work = [counted_work(monkeypatch, lambda rows=rows: audited(rows, attributes, values)) for rows in sizes]
    for place, done in enumerate(work[:-1]):
        assert done <= HUMP * min(work[place + 1 :]), dict(zip(sizes, work, strict=True))


@pytest.mark.usefixtures("small_limits")
def test_a_bound_that_many_records_cannot_lower_is_not_computed_from_all_of_them(monkeypatch) -> None:
    belief = sl.Belief.from_data(sl.read(people(3000, 8, 6), few=6))
    channels = sl.Plan.uniform(belief.schema, "grr", 1.0).channels()
    total = sl.leakage.total_leakage(belief, channels, "a0").upper
    assert total.method == "composition"
    full = sl.leakage.total_leakage(belief, channels, "a0", "joint generic").upper.value
    assert joint.WORTH * total.value <= full <= total.value
    seen: list[int] = []
    number = counts.number_hashes
    monkeypatch.setattr(counts, "number_hashes", lambda hashed: seen.append(len(hashed)) or number(hashed))
    sl.leakage.total_leakage(belief, channels, "a0")
    assert sum(seen) <= 4 * joint.THINNED


@pytest.mark.usefixtures("small_limits")
def test_a_bound_that_records_do_lower_is_computed_from_all_of_them() -> None:
    belief = sl.Belief.from_data(sl.read(people(3000, 5, 4, mixing=1.0), few=4))
    channels = sl.Plan.uniform(belief.schema, "oue", 0.5).channels()
    assert belief.records is not None
    assert len(belief.records.weights) > joint.MANY_RECORDS
    assert joint.is_joint_worth(belief, channels, "a0")
    sums = composition(channels).value
    assert sl.leakage.total_leakage(belief, channels, "a0", "joint generic").upper.value < joint.WORTH * sums


@pytest.mark.usefixtures("small_limits")
def test_a_release_of_few_attributes_of_a_large_table_is_audited() -> None:
    """Of few combinations of what is released, the share that is looked at first may hold none."""
    table = sl.read(people(3000, 8, 6), few=6)
    belief = sl.Belief.from_data(table)
    for second in belief.schema.names[1:]:
        channels = sl.Plan.uniform(belief.schema.select(["a0", second]), "grr", 1.0).channels()
        assert all(joint.is_joint_worth(belief, channels, secret) for secret in belief.schema.names)
        totals = sl.leakage.total_leakage(belief, channels, "a0")
        assert totals.upper.value <= composition(channels).value


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 4), st.booleans())
def test_merged_records_are_those_of_a_dictionary(seed: int, rows: int, parts: int, is_clumsy: bool) -> None:
    """Also where hashes of unequal rows agree, and where loops are compiled."""
    rng = np.random.default_rng(seed)
    schema = axes_schema(["a", "b", "c"], (3, 2, 4))
    hashes = counts.row_hashes

    def clumsy(codes, columns, salt):
        made = hashes(codes, columns, salt)
        return made if salt > 1 else made % np.uint64(3)

    pieces, wanted = [], dict[tuple[int, ...], float]()
    for _ in range(parts):
        codes = np.stack([rng.integers(0, size, rows) for size in schema.sizes], axis=1).astype(np.uint8)
        weights = rng.integers(1, 5, rows) / 2.0
        for row, weight in zip(codes.tolist(), weights, strict=True):
            wanted[tuple(row)] = wanted.get(tuple(row), 0.0) + weight
        pieces.append((codes, weights))
    for least in (0, 1 << 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "_least", least)
            if is_clumsy:
                patch.setattr(counts, "row_hashes", clumsy)
            each = [counts.distinct_records(schema, *piece) for piece in pieces]
            merged = counts.merge_records(each, 1000)
            assert merged is not None
            found = dict(zip(map(tuple, merged.codes.tolist()), merged.weights.tolist(), strict=True))
            assert found == wanted
            assert len(merged.codes) == len(wanted)
            names = ["a", "c"]
            group, number = merged.groups(names)
            assert number == len({(row[0], row[2]) for row in wanted})
            assert (
                len({(g, *row) for g, row in zip(group, merged.codes[:, [0, 2]].tolist(), strict=True)})
                == number
            )


def test_a_share_of_the_records_keeps_groups_whole(rng) -> None:
    codes = np.unique(rng.integers(0, 5, size=(4000, 5)), axis=0).astype(np.uint16)
    schema = axes_schema([f"a{number}" for number in range(5)], (5,) * 5)
    records = Records(schema, codes, np.arange(1.0, len(codes) + 1))
    names = ["a1", "a2", "a4"]
    some = records.thinned(names, len(codes) // 4)
    assert len(codes) / 8 < len(some.weights) < len(codes) / 2
    kept = {tuple(row) for row in some.codes[:, [1, 2, 4]].tolist()}
    together = [tuple(row) in kept for row in codes[:, [1, 2, 4]].tolist()]
    assert np.array_equal(some.codes, codes[together])
    assert np.array_equal(some.weights, records.weights[together])
    assert len(records.thinned(names, len(codes)).weights) == len(codes)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 63))
def test_both_paths_number_hashes_alike(seed: int, rows: int, distinct: int, common: int) -> None:
    """Even where many hashes begin with the same bits, so that one bucket holds them all."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 1 << 64, distinct, dtype=np.uint64) >> np.uint64(common)
    hashed = hashes[rng.integers(0, distinct, rows)]
    found = []
    for least in (0, 1 << 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "_least", least)
            found.append(number_hashes(hashed))
    (group, firsts), (plain, first) = found
    assert np.array_equal(group, plain)
    assert np.array_equal(firsts, first)
    assert np.array_equal(group, np.unique(hashed, return_inverse=True)[1])


@pytest.mark.parametrize("sizes", [(2,) * 9, (3, 7, 2, 40), (5,)])
def test_whole_weights_are_counted_by_their_digits(sizes: tuple[int, ...], rng, monkeypatch) -> None:
    codes = np.stack([rng.integers(0, size, 2000) for size in sizes], axis=1).astype(np.uint16)
    schema = axes_schema([f"a{number}" for number in range(len(sizes))], sizes)
    monkeypatch.setattr(compiled, "_least", 0)
    for weights in (rng.geometric(0.2, 2000).astype(float), np.full(2000, 2.0**21), rng.random(2000)):
        tables = Records(schema, codes, weights).pair_tables()
        exact = block_counts(codes, sizes, weights)
        assert np.array_equal(tables, exact)
