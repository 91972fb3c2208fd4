"""Tables of several attributes: unbiased, consistent, shrunk by evidence; dependence, shares, advice."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.advice import advise_pairs
from sidelight.estimation.allotment import Allotment, Dependence, first_share
from sidelight.estimation.dependence import cramers_v, mutual_information
from sidelight.estimation.pair_shrinkage import prior_weights, shared_weights
from sidelight.estimation.set_tables import (
    SetTable,
    averaged,
    consistent,
    fitted,
    left_variance,
    outer,
    raked,
    set_tables,
)
from sidelight.estimation.unbiased import Unbiased, unbiased
from sidelight.protocols import pairs, rs_fd, smp, spl
from sidelight.protocols.groups import make_group, table_moments

SHARED = sl.Schema(tuple(sl.categorical(name, ["0", "1", "2"]) for name in "abc"))
OWN = sl.Schema(
    tuple(sl.categorical(n, [f"{n}{v}" for v in range(k)]) for n, k in (("a", 2), ("b", 3), ("c", 4)))
)


def copies(count: int, share: float = 0.9, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.integers(3, size=(count, 1))
    return np.hstack(
        [first, np.where(rng.random((count, 2)) < share, first, rng.integers(3, size=(count, 2)))]
    ).astype(np.uint16)


def apart(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(size, size=count) for size in OWN.sizes]).astype(np.uint16)


def truth(schema: sl.Schema, records: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    columns = [schema.index(name) for name in names]
    sizes = [schema.sizes[column] for column in columns]
    flat = np.ravel_multi_index(tuple(records[:, column].astype(np.intp) for column in columns), sizes)
    return np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes) / len(records)


def test_tables_are_distributions_that_agree_on_what_they_share() -> None:
    found = sl.estimate_pairs(pairs(OWN, 1.0, singles=0.3).randomise(apart(2_000), seed=1))
    for (first, second), table in found.tables.items():
        assert table.frequencies.min() >= 0
        assert table.frequencies.sum() == pytest.approx(1.0)
        assert table.frequencies.sum(axis=1) == pytest.approx(found[first], abs=1e-6)
        assert table.frequencies.sum(axis=0) == pytest.approx(found[second], abs=1e-6)
        assert np.all((table.lower <= table.frequencies) & (table.frequencies <= table.upper))
    assert found["b", "a"] == pytest.approx(found["a", "b"].T)


def test_unbiased_tables_are_so_and_their_errors_are_true() -> None:
    """Over 400 collections the mean and the variance of each cell: z within 5, false alarms 1e-6 a cell."""
    records = copies(600, 0.6)
    true = truth(SHARED, records, ("a", "b")).reshape(-1)
    protocol = pairs(SHARED, 1.5, singles=0.2)
    cells, spreads = [], []
    for seed in range(400):
        parts = [protocol.randomise(records, seed=seed).aggregate()]
        table = set_tables(parts, [("a", "b")], "collected")["a", "b"]
        marginals = unbiased(parts)
        raw, variance = consistent(table, marginals)
        cells.append(raw)
        for axis, name in enumerate("ab"):
            share = marginals[name].estimate
            assert raw.reshape(3, 3).sum(axis=1 - axis) == pytest.approx(share + (1 - share.sum()) / 3)
        spreads.append(variance)
    error = np.std(cells, axis=0) / 20
    assert np.abs((np.mean(cells, axis=0) - true) / error).max() < 5
    ratio = np.var(cells, axis=0).mean() / np.mean(spreads)
    assert ratio == pytest.approx(1.0, abs=0.12)


def test_intervals_hold_the_truth_at_their_rate() -> None:
    """Of 30 collections 810 cells: 95 % of them, within 4 points (clustered; well beyond five errors)."""
    held = []
    for seed in range(30):
        records = copies(1_000, 0.7, seed)
        found = sl.estimate_pairs(pairs(SHARED, 1.0).randomise(records, seed=seed))
        for names, table in found.tables.items():
            real = truth(SHARED, records, names)
            held.append((table.lower <= real) & (real <= table.upper))
    assert 0.91 < np.mean(held) <= 1.0


def test_intervals_of_dependence_hold_the_truth() -> None:
    """Of 90 pairs of each kind each end holds 97.5 %: seven fail by chance of 0.7 % were pairs apart."""
    binary = sl.Schema(tuple(sl.categorical(name, [f"{name}0", f"{name}1"]) for name in "abc"))

    def halves(count: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        first = rng.integers(2, size=(count, 1))
        others = np.where(rng.random((count, 2)) < 0.3, first, rng.integers(2, size=(count, 2)))
        return np.hstack([first, others]).astype(np.uint16)

    for schema, draw, epsilon in (
        (SHARED, lambda seed: copies(3_000, 0.5, seed), 2.0),
        (OWN, lambda seed: apart(3_000, seed), 2.0),
        (binary, lambda seed: halves(2_000, seed), 1.0),
    ):
        below, above = 0, 0
        for seed in range(30):
            records = draw(seed)
            found = sl.estimate_pairs(pairs(schema, epsilon).randomise(records, seed=seed))
            for names, told in found.dependence.items():
                real = cramers_v(truth(schema, records, names))
                below, above = below + (told.upper < real), above + (real < told.lower)
        assert below < 7
        assert above < 7


@pytest.mark.parametrize("seed", [3, 4])
def test_the_dependence_of_rare_values_is_not_thought_known(seed: int) -> None:
    """One in 200 have the value, and nearly all of those have both: V is nearly 1."""
    rng = np.random.default_rng(seed)
    first = rng.random(20_000) < 0.005
    second = np.where(rng.random(20_000) < 0.97, first, rng.random(20_000) < 0.005)
    schema = sl.Schema(tuple(sl.categorical(name, [f"{name}0", f"{name}1"]) for name in "ab"))
    records = np.column_stack([first, second]).astype(np.uint16)
    found = sl.estimate_pairs(pairs(schema, 3.0).randomise(records, seed=seed))
    told = found.dependence["a", "b"]
    assert told.lower <= cramers_v(truth(schema, records, ("a", "b"))) <= told.upper


def test_evidence_tells_copies_from_chance() -> None:
    strong = sl.estimate_pairs(pairs(SHARED, 2.0).randomise(copies(5_000), seed=1))
    assert min(told.probability for told in strong.dependence.values()) > 0.99


def test_independent_attributes_hardly_seem_to_depend() -> None:
    """Twelve collections: V is 0.05 on average (0.2 before shrinking); one at most of 36 lies above 0.2.

    The lower end is above the truth, about 0.02, in 2.5 % of pairs: in five of 36 by chance of 0.2 %.
    """
    stated, plain, wrong = [], [], 0
    for seed in range(12):
        records = apart(5_000, seed)
        weak = sl.estimate_pairs(pairs(OWN, 1.0).randomise(records, seed=seed))
        for names, told in weak.dependence.items():
            stated.append(told.cramers_v)
            plain.append(cramers_v(weak.tables[names].unbiased))
            wrong += told.lower > cramers_v(truth(OWN, records, names))
    assert np.mean(stated) < 0.08
    assert np.mean(stated) < 0.4 * np.mean(plain)
    assert np.sum(np.array(stated) > 0.2) <= 1
    assert wrong < 5


def test_shrinking_beats_projected_tables_on_average() -> None:
    """Twelve collections of each kind: the error of ours is below that of projection in all."""
    from sidelight.foundation.arrays import to_simplex

    for schema, draw in ((SHARED, copies), (OWN, apart)):
        for seed in range(12):
            records = draw(2_000, seed=seed)
            reports = pairs(schema, 1.0).randomise(records, seed=seed)
            real = {names: truth(schema, records, names) for names in combinations(schema.names, 2)}
            tables = set_tables([reports.aggregate()], list(real), "collected")
            plain = [np.mean((to_simplex(tables[n].cells.estimate) - real[n].reshape(-1)) ** 2) for n in real]
            assert sl.estimate_pairs(reports).error(real) < np.mean(plain)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_larger_sets_agree_with_their_pairs(seed: int) -> None:
    """Of seeds 1 and 2 the pairs, each by itself, are those of no joint."""
    records = copies(4_000, seed=seed)
    reports = pairs(SHARED, 2.0, [["a", "b", "c"]]).randomise(records, seed=seed)
    wanted = list(combinations(SHARED.names, 2))
    found = sl.estimate_pairs(reports, sets=[["c", "a", "b"], *wanted])
    assert set(found.tables) == {("a", "b", "c"), *wanted}
    joint = found["a", "b", "c"]
    for axis, names in enumerate(reversed(wanted)):
        assert joint.sum(axis=axis) == pytest.approx(found[names], abs=1e-6)
        assert found[names].sum(axis=1) == pytest.approx(found[names[0]], abs=1e-6)
    assert np.abs(joint - truth(SHARED, records, ("a", "b", "c"))).max() < 0.08


def test_larger_sets_agree_with_each_other() -> None:
    schema = sl.Schema(tuple(sl.categorical(name, ["0", "1", "2"]) for name in "abcd"))
    records = np.column_stack([copies(4_000, seed=2), copies(4_000, seed=2)[:, 0]])
    sets = [["a", "b", "c"], ["a", "b", "d"], ["b", "c", "d"]]
    found = sl.estimate_pairs(pairs(schema, 1.0).randomise(records, seed=2), sets=[*sets, ["a", "b"]])
    assert found["a", "b", "c"].sum(axis=2) == pytest.approx(found["a", "b"], abs=1e-4)
    assert found["a", "b", "c"].sum(axis=2) == pytest.approx(found["a", "b", "d"].sum(axis=2), abs=1e-4)
    assert found["a", "b", "c"].sum(axis=0) == pytest.approx(found["b", "c", "d"].sum(axis=2), abs=1e-4)


def test_sets_that_nobody_reported_show_what_their_pairs_imply() -> None:
    implied = sl.estimate_pairs(pairs(SHARED, 2.0).randomise(copies(4_000), seed=1), sets=[["a", "b", "c"]])
    assert "what pairs of them imply" in implied.notes[0]


@pytest.mark.parametrize("mechanism", ["grr", "ss", "oue"])
@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_variances_beside_marginals_are_those_of_every_report(mechanism: str, names: tuple[str, ...]) -> None:
    """The covariance of one report's estimates, listed, through the matrix that replaces marginals."""
    small = sl.Schema(
        tuple(sl.categorical(n, ["0", "1", "2"][:k]) for n, k in (("a", 2), ("b", 3), ("c", 2)))
    )
    group = make_group(small, names, mechanism, 1.3)
    sizes, shares = group.sizes, np.random.default_rng(1).dirichlet(np.full(group.size, 0.5))
    rates = tuple(map(float, group.randomiser.mark_rates))
    law, marks = listed(group)
    cells = (marks - rates[1]) / (rates[0] - rates[1])
    covariance = (cells * (shares @ law)) @ cells.T - np.outer(shares, shares)
    kept = (0.3, 0.8, 0.5)[: len(names)]
    mean = np.full((group.size, group.size), 1 / group.size)
    through = np.eye(group.size) - mean
    for axis, part in enumerate(kept):
        same = np.indices(sizes)[axis].reshape(-1)
        through += (part - 1) * ((same[:, None] == same) * sizes[axis] / group.size - mean)
    none, full = table_moments(group, names)
    columns = (np.full(group.size, value) for value in (none, full - none, -1.0))
    table = SetTable(names, sizes, Unbiased(shares, *columns, 1), group.randomiser.adds_up)
    true = np.diag(through @ covariance @ through.T)
    assert left_variance(table, shares, kept).reshape(-1) == pytest.approx(true, rel=1e-6, abs=1e-9)


def listed(group) -> tuple[np.ndarray, np.ndarray]:
    """Every report of a group: its probabilities given each cell, and the cells that it marks."""
    law = group.randomiser.report_law(1 << 14)
    if group.randomiser.set_size is None:
        return law, (np.arange(law.shape[1]) >> np.arange(group.size)[:, None]) & 1
    return law, law > (law.max() + law.min()) / 2


def test_all_reports_of_a_cell_are_averaged_by_precision() -> None:
    records, even = copies(2_000), np.full(9, 1 / 9)
    reports = pairs(SHARED, 1.0, [["a", "b"], ["a", "b", "c"]]).randomise(records, seed=1)
    both = set_tables([reports.aggregate()], [("a", "b")], "population")["a", "b"].cells
    assert both.reports == 2_000
    precision = 0.0
    for names, part in zip((["a", "b"], ["a", "b", "c"]), reports.parts, strict=True):
        alone = pairs(SHARED, 1.0, [names]).randomise(records, seed=1).aggregate()
        cells = set_tables([alone], [("a", "b")], "population")["a", "b"].cells
        precision += len(part) / cells.reports / cells.variance(even).sum()
    assert both.variance(even).sum() == pytest.approx(1 / precision)
    assert averaged([both]).estimate == pytest.approx(both.estimate)


@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 10_000))
def test_fitting_has_its_margins_and_keeps_odds_ratios(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, wanted = (
        rng.dirichlet(np.ones(rows * columns) * 3).reshape(rows, columns),
        rng.dirichlet(np.ones(rows) * 5),
    )
    other = rng.dirichlet(np.ones(columns) * 5)
    found = fitted(table, {(0,): wanted, (1,): other}, 2000)
    assert found.sum(axis=1) == pytest.approx(wanted, abs=1e-6)
    assert found.sum(axis=0) == pytest.approx(other, abs=1e-6)
    odds = [cells[0, 0] * cells[1, 1] / (cells[0, 1] * cells[1, 0]) for cells in (table, found)]
    assert odds[1] == pytest.approx(odds[0], rel=1e-5)


def test_several_tables_are_raked_as_each_is_fitted() -> None:
    rng = np.random.default_rng(1)
    tables = rng.dirichlet(np.ones(12) * 2, size=5).reshape(5, 3, 4)
    first, second = rng.dirichlet(np.ones(3) * 5), rng.dirichlet(np.ones(4) * 5)
    found = raked(tables, first, second)
    for table, one in zip(tables, found, strict=True):
        assert one == pytest.approx(fitted(table, {(0,): first, (1,): second}), abs=1e-7)


@pytest.mark.parametrize("sizes", [(2, 3, 2, 2, 3), (2, 2, 2, 2, 2, 2)])
def test_margins_of_neighbouring_and_distant_axes_are_met(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    joint, start = (rng.dirichlet(np.ones(np.prod(sizes)) * 3).reshape(sizes) for _ in range(2))
    axes = [(0, 1), (0, 3), (2, 4), (1, len(sizes) - 1), (3,)]
    margins = {kept: joint.sum(axis=tuple(set(range(len(sizes))) - set(kept))) for kept in axes}
    found = fitted(start, margins, 2000)
    for kept, wanted in margins.items():
        assert found.sum(axis=tuple(set(range(len(sizes))) - set(kept))) == pytest.approx(wanted, abs=1e-7)


def test_margins_that_no_joint_has_end_the_fit_early() -> None:
    """Three attributes of which every two mostly differ: no round comes nearer, and none is waited for."""
    apart = np.array([[0.01, 0.49], [0.49, 0.01]])
    found = fitted(np.full((2, 2, 2), 1 / 8), {(0, 1): apart, (0, 2): apart, (1, 2): apart}, 10**9)
    assert found.sum() == pytest.approx(1.0)


def test_weights_lean_on_other_tables_without_their_own() -> None:
    priors = np.tile([0.5, 0.5], (3, 1))
    logs = np.array([[0.0, 0.0], [0.0, 6.0], [0.0, 6.0]])
    weights = shared_weights(logs, priors, 2.0)
    assert weights[0, 1] > 0.7
    alone = shared_weights(np.array([[0.0, 1.0]]), priors[:1], 2.0)
    assert alone[0, 1] == pytest.approx(1 / (1 + math.exp(-1)))
    assert prior_weights(11, (3, 4)).sum() == pytest.approx(1.0)


@given(st.integers(0, 1000))
def test_dependence_of_known_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    assert cramers_v(outer([a, b]).reshape(3, 4)) == pytest.approx(0.0, abs=1e-6)
    assert mutual_information(np.diag(a)) == pytest.approx(-(a * np.log(a)).sum(), abs=1e-9)
    assert cramers_v(np.diag(a)) == pytest.approx(1.0)


def test_shares_are_the_best_there_are() -> None:
    """The shares found have no larger error than 300 random ones, but for what is hedged between pairs."""
    rng = np.random.default_rng(1)
    believed = Allotment.prior(OWN, 1.0)
    sets = list(believed.groups)
    for people in (1_000, 30_000):
        best = believed.best(people)
        error = believed.error({names: people * share for names, share in best.items()})
        for _ in range(300):
            shares = rng.dirichlet(np.full(len(sets), 0.5))
            assert error <= 1.02 * believed.error(dict(zip(sets, people * shares, strict=True)))


def test_independent_pairs_are_not_asked_for() -> None:
    none = {names: Dependence.known(0.0) for names in combinations(OWN.names, 2)}
    shares = Allotment(OWN, 1.0, none, {"a": 0.5, "b": 1 / 3, "c": 0.25}).best(10_000)
    assert all(len(names) == 1 for names in shares)
    assert first_share(OWN, 0.1, 50) < 0.03
    assert first_share(OWN, 3.0, 100_000) == 0.2


def test_advice_follows_people_and_budget() -> None:
    few, many = advise_pairs(OWN, 0.2, 100), advise_pairs(OWN, 2.0, 100_000)
    assert few.choice.two_phase is None
    assert many.choice.two_phase is not None
    assert many.advised.errors["strong"] < few.advised.errors["strong"]
    assert json.loads(many.to_json())["advised"] == many.advised.name
    known = sl.estimate_pairs(pairs(OWN, 2.0).randomise(apart(5_000), seed=1))
    learnt = advise_pairs(OWN, 1.0, 5_000, known)
    assert learnt.choice.two_phase is None
    with pytest.raises(sl.InputError, match="tables of other attributes"):
        advise_pairs(SHARED, 1.0, 5_000, known)
    some = sl.estimate_pairs(pairs(OWN, 2.0).randomise(apart(500), seed=1), sets=[["a", "b"]])
    with pytest.raises(sl.InputError, match="no table of a and c"):
        advise_pairs(OWN, 1.0, 5_000, some)


def test_advice_states_what_a_report_says_at_most() -> None:
    advice = advise_pairs(OWN, 1.5, 5_000)
    assert 1.49 < advice.leakage <= 1.5
    assert json.loads(advice.to_json())["leakage"] == {"value": advice.leakage, "kind": "certified"}


def test_tables_are_written_and_read(tmp_path) -> None:
    found = sl.estimate_pairs(pairs(OWN, 1.0).randomise(apart(500), seed=1))
    cells = pq.read_table(found.write(tmp_path / "t.parquet"))
    assert cells.num_rows == 2 * 3 + 2 * 4 + 3 * 4
    assert cells.column("attributes").to_pylist()[0] == ["a", "b"]
    assert (tmp_path / "t.parquet").exists()
    with pytest.raises(sl.InputError):
        found.write(tmp_path / "t.parquet")
    assert "a x b" in found.write(tmp_path / "t.csv").read_text()
    data = json.loads(found.write(tmp_path / "t.json").read_text())
    assert len(data["dependence"]) == 3
    assert "reports" in found._repr_html_()
    assert "depend most" in repr(found)


def test_people_who_report_one_attribute_give_products() -> None:
    found = sl.estimate_pairs(smp(OWN, 1.0).randomise(apart(1_000), seed=1))
    assert found["a", "b"] == pytest.approx(np.outer(found["a"], found["b"]), abs=1e-9)
    assert "their tables show independence" in found.notes[0]
    assert found.dependence["a", "b"].upper == 1.0
    json.loads(found.to_json())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda r: sl.estimate_pairs(r, sets=["a,b"]), "must be a list of attributes"),
        (lambda r: sl.estimate_pairs(r, sets=[["a"]]), "two or more different attributes"),
        (lambda r: sl.estimate_pairs(r, sets=[["a", "a"]]), "two or more different attributes"),
        (lambda r: sl.estimate_pairs(r, sets=[["a", "z"]]), "'z'"),
        (lambda r: sl.estimate_pairs(r, sets=[]), "tables need two attributes"),
        (lambda r: sl.estimate_pairs(r, confidence=1.0), "`confidence`"),
        (lambda r: sl.estimate_pairs(r, about="all"), "`about`"),
        (lambda _: sl.estimate_pairs([]), "no reports"),
        (lambda r: sl.estimate_pairs([r, r]), "the very same"),
        (
            lambda _: sl.estimate_pairs(rs_fd(OWN, 1.0).randomise(apart(50), seed=1)),
            "collect with the protocol",
        ),
        (lambda r: sl.estimate_pairs(r)["a", "z"], "'z'"),
        (lambda r: sl.estimate_pairs(r, sets=[["a", "b"]])["a", "c"], "there is no table of a, c"),
    ],
)
def test_bad_requests_are_refused(make, words: str) -> None:
    reports = pairs(OWN, 1.0).randomise(apart(200), seed=1)
    with pytest.raises(sl.InputError) as caught:
        make(reports)
    assert words in str(caught.value)


def test_reports_of_all_attributes_give_products_too() -> None:
    assert len(sl.estimate_pairs(spl(OWN, 3.0).randomise(apart(300), seed=1)).tables) == 3
