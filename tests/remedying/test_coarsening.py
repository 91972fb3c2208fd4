"""Coarser values: the alphabets, the beliefs, and the way from a raw value to a coarse report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.leakage import total_leakage
from sidelight.remedying.coarsening import Coarsening, coarse_belief, coarsenings
from sidelight.schema import MISSING, OTHER, Attribute, binned, categorical


def shares_of(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(size))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 40), st.sampled_from(["categorical", "ordinal", "numeric", "date"]), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_every_value_goes_somewhere_and_neighbours_stay_together(
    size: int, kind: str, missing: bool, seed: int
) -> None:
    absent = "value" if missing else "absent"
    if kind in ("numeric", "date"):
        fine = binned("x", kind, [float(86_400 * edge) for edge in range(1, size)], absent)  # type: ignore[arg-type]
    else:
        labels = tuple(f"v{code}" for code in range(size)) + ((MISSING,) if missing else ())
        fine = Attribute("x", kind, labels, missing=absent)  # type: ignore[arg-type]
    before = fine.size
    for item in coarsenings(fine, shares_of(fine.size, seed)):
        assert 2 <= item.coarse.size < before
        before = item.coarse.size
        assert set(item.codes) == set(range(item.coarse.size))
        assert item.coarse.missing == fine.missing
        if missing:
            assert item.codes[-1] == item.coarse.size - 1
            assert (item.codes == item.coarse.size - 1).sum() == 1
        if kind != "categorical":
            ordered = item.codes[: fine.size - missing]
            assert (np.diff(ordered) >= 0).all()


def test_the_rarest_are_folded_and_the_commonest_kept() -> None:
    fine = categorical("town", ["a", "b", "c", "d"])
    (first, *_) = coarsenings(fine, np.array([0.1, 0.5, 0.3, 0.1]))
    assert first.coarse.values == ("b", OTHER)
    assert first.codes.tolist() == [1, 0, 1, 1]
    assert first.frequencies(np.array([0.1, 0.5, 0.3, 0.1])).tolist() == [0.5, 0.5]


def test_ordinal_values_are_merged_by_name() -> None:
    fine = categorical("grade", ["1", "2", "3", "4"], ordinal=True)
    (first, *_) = coarsenings(fine, np.array([0.1, 0.1, 0.2, 0.6]))
    assert first.coarse.values == ("1 to 3", "4")
    assert first.coarse.merged == (("1 to 3", ("1", "2", "3")),)
    again = categorical("grade", [str(grade) for grade in range(8)], ordinal=True)
    *_, last = coarsenings(again, np.full(8, 0.125))
    assert dict(last.coarse.merged)["0 to 3"] == ("0", "1", "2", "3")


def test_two_values_cannot_be_fewer() -> None:
    assert list(coarsenings(categorical("x", ["a", "b"]), np.array([0.5, 0.5]))) == []
    assert list(coarsenings(binned("x", "numeric", [1.0]), np.array([0.5, 0.5]))) == []


def coarsest(belief: sl.Belief, name: str) -> Coarsening:
    *_, last = coarsenings(belief.schema[name], belief.prior(name))
    return last


@pytest.mark.parametrize("kind", ["joint", "pairwise"])
def test_a_coarse_belief_is_that_of_the_coarse_table(kind: str) -> None:
    table = sl.sources.survey(2000)
    belief = sl.Belief.from_data(table, kind)  # type: ignore[arg-type]
    item = coarsest(belief, "education")
    coarse = coarse_belief(belief, {"education": item})
    cells = belief.joint(["education", "diabetes"])
    merged = np.zeros((item.coarse.size, 2))
    np.add.at(merged, item.codes, cells)
    assert coarse.joint(["education", "diabetes"]) == pytest.approx(merged)
    assert coarse.sample_size == belief.sample_size
    channels = sl.Plan.uniform(coarse.schema).channels()
    assert total_leakage(coarse, channels, "diabetes").value > 0
    assert coarse_belief(belief, {}) is belief


CSV = "age,grade,town,secret\n" + "\n".join(
    f"{20 + i % 50},{i % 6 + 1},{'abcdefgh'[(i * i) % 8]},{'yes' if (i * 7) % 10 < 3 + (i % 6) else 'no'}"
    for i in range(600)
)


def test_a_coarse_plan_collects_raw_values_and_estimates_coarse_ones(tmp_path: Path) -> None:
    """Values fold at the device: the raw file is read by the plan, and frequencies come out coarse.

    Estimates are within five standard errors: a false alarm in about a million.
    """
    raw = tmp_path / "raw.csv"
    raw.write_text(CSV)
    table = sl.read(raw, kinds={"grade": "ordinal", "age": "numeric"}, bins=8)
    belief = sl.Belief.from_data(table)
    items = {name: coarsest(belief, name) for name in ("age", "grade", "town")}
    releases = tuple(sl.Release(item.coarse, "grr", 4.0) for item in items.values())
    path = sl.Plan(releases, limit=1.0).write(tmp_path / "plan.toml")
    plan = sl.Plan.read(path)
    assert plan == sl.Plan(releases, limit=1.0)
    again = sl.read(raw, schema=plan.schema)
    reports = sl.collect(again, plan, seed=3)
    estimates = sl.estimate(reports, estimator="inversion")
    for name, item in items.items():
        truth = item.frequencies(belief.prior(name))
        assert sl.Belief.from_data(again).prior(name) == pytest.approx(truth)
        assert np.all(np.abs(estimates.frequencies[name] - truth) <= 5 * estimates.standard_errors[name])


def test_merged_values_are_coded_from_text_and_from_whole_numbers(tmp_path: Path) -> None:
    merged = Attribute("x", "ordinal", ("1 to 2", "3"), merged=(("1 to 2", ("1", "2")),))
    for name, cells in (("whole", "1\n2\n3\n2\n"), ("text", "1\n2\n3\n2\n")):
        path = tmp_path / f"{name}.csv"
        path.write_text("x\n" + cells)
        counted = sl.read(path, schema=sl.Schema((merged,)), few=2)
        assert sl.Belief.from_data(counted).prior("x").tolist() == [0.75, 0.25]
    words = Attribute(
        "x", "ordinal", ("low to middle", "high"), merged=(("low to middle", ("low", "middle")),)
    )
    path = tmp_path / "words.csv"
    path.write_text("x\nlow\nmiddle\nhigh\nlow\n")
    assert sl.Belief.from_data(sl.read(path, schema=sl.Schema((words,)))).prior("x").tolist() == [0.75, 0.25]
    path.write_text("x\nlow\nlow to middle\nhigh\n")
    with pytest.raises(sl.InputError, match="outside the 2 values"):
        sl.Belief.from_data(sl.read(path, schema=sl.Schema((words,))))


def test_merged_values_travel_in_plans_and_protocols(tmp_path: Path) -> None:
    merged = Attribute("x", "ordinal", ("1 to 2", "3"), merged=(("1 to 2", ("1", "2")),))
    plan = sl.Plan((sl.Release(merged, "grr", 1.0),), limit=1.0)
    assert "version = 3" in plan.to_toml()
    assert sl.Plan.from_json(plan.to_json()) == plan
    with pytest.raises(sl.InputError, match="what x merges needs `version = 3`"):
        sl.Plan.from_toml(plan.to_toml().replace("version = 3", "version = 1"))
    other = Attribute("y", "categorical", ("a", "b"))
    protocol = sl.protocols.smp(sl.Schema((merged, other)), 1.0)
    path = sl.protocols.write_protocol(protocol, tmp_path / "smp.toml")
    assert sl.protocols.read_protocol(path).schema == protocol.schema


@pytest.mark.parametrize(
    ("values", "merged", "message"),
    [
        (("a", "b"), (("c", ("x",)),), "none of its values"),
        (("a", "b"), (("a", ("b", "x")),), "lists 'b' and merges it too"),
        (("a", "b"), (("a", ("x", "x")),), "merges 'x' twice"),
        (("a", OTHER), ((OTHER, ("x",)),), "none of its values"),
    ],
)
def test_merged_values_that_nobody_could_code_are_refused(
    values: tuple[str, ...], merged: tuple[tuple[str, tuple[str, ...]], ...], message: str
) -> None:
    with pytest.raises(sl.InputError, match=message):
        Attribute("x", "ordinal", values, merged=merged)
    with pytest.raises(sl.InputError, match="merged by its edges"):
        Attribute("x", "numeric", ("a", "b"), edges=(1.0,), merged=(("a", ("x", "y")),))
