"""Estimators: unbiasedness by exact expectation, intervals by coverage, shrinkage, EM, prediction, advice."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.advice import choose_protocol
from sidelight.estimation import predicted_error, predicted_variances
from sidelight.estimation.estimators import published
from sidelight.estimation.expected_error import published_error
from sidelight.estimation.joint import Term, estimate_joint, maximise, terms_of
from sidelight.estimation.linear import condition, separate, solve_linear
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.shrinkage import least_risk, marginal_moves, shrunken
from sidelight.estimation.unbiased import Unbiased, unbiased
from sidelight.foundation.arrays import to_simplex
from sidelight.mechanisms import Aggregate
from sidelight.protocols import FakeDataProtocol, TwoPhase, rs_fd, rs_rfd, smp, spl
from sidelight.protocols import product as product_domain
from sidelight.protocols.fake_data import whole_law
from sidelight.protocols.records import RecordSums

UNEQUAL = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv"), sl.categorical("c", "pq")))
SKEWED = {"a": [0.7, 0.2, 0.1], "b": [0.9, 0.1], "c": [0.35, 0.65]}
MANY = 10**12


def equal(attributes: int, values: int) -> sl.Schema:
    labels = [str(v) for v in range(values)]
    return sl.Schema(tuple(sl.categorical(f"x{j}", labels) for j in range(attributes)))


def joint(rng: np.random.Generator, schema: sl.Schema) -> np.ndarray:
    return rng.dirichlet(np.ones(math.prod(schema.sizes))).reshape(schema.sizes)


def marginals(cells: np.ndarray) -> list[np.ndarray]:
    axes = range(cells.ndim)
    return [cells.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]


def copies(schema: sl.Schema, rng: np.random.Generator) -> FakeDataProtocol:
    fakes = {
        (a, b): whole_law(rng.dirichlet(np.ones(schema[b].size), size=schema[a].size))
        for a in schema.names
        for b in schema.names
        if a != b
    }
    return FakeDataProtocol(schema, (schema.names,), 1.3, fakes, "corr-rr", "by hand")


def test_expected_counts_are_those_of_the_enumerated_law(rng: np.random.Generator) -> None:
    cells = joint(rng, UNEQUAL)
    for protocol in (rs_fd(UNEQUAL, 1.3), rs_rfd(UNEQUAL, 1.3, SKEWED, "x"), copies(UNEQUAL, rng)):
        reports = (cells.reshape(-1) @ protocol.matrix()).reshape(UNEQUAL.sizes)
        stacked = np.concatenate(marginals(cells))
        np.testing.assert_allclose(
            protocol.expected_counts() @ stacked, np.concatenate(marginals(reports)), atol=1e-9
        )


def test_corr_rr_columns_have_the_expectation_of_the_corrected_theorem(rng: np.random.Generator) -> None:
    """E[c_l/n] = q + (D/d)(f_l + sum over j != l of p f_j + (1 - p)(1 - f_j)/(k-1)), to rounding."""
    schema = equal(3, 4)
    p = rng.random((3, 3))
    fakes = {}
    for j in range(3):
        for i in range(3):
            if i != j:
                law = np.full((4, 4), (1 - p[j, i]) / 3)
                np.fill_diagonal(law, p[j, i])
                fakes[schema.names[j], schema.names[i]] = whole_law(law)
    protocol = FakeDataProtocol(schema, (schema.names,), 1.0, fakes, "corr-rr", "by hand")
    f = rng.dirichlet(np.ones(4), size=3)
    keep = math.e / (math.e + 3)
    low = 1 / (math.e + 3)
    for i in range(3):
        mixed = f[i] + sum(p[j, i] * f[j] + (1 - p[j, i]) * (1 - f[j]) / 3 for j in range(3) if j != i)
        seen = np.split(protocol.expected_counts() @ f.reshape(-1), 3)[i]
        np.testing.assert_allclose(seen, low + (keep - low) / 3 * mixed, atol=1e-9)


def expectation(protocol: FakeDataProtocol, f: np.ndarray) -> RecordSums:
    """An aggregate of 10^12 reports that are exactly as expected."""
    shares = np.split(protocol.expected_counts() @ f, np.cumsum(protocol.schema.sizes)[:-1])
    parts = tuple(Aggregate(MANY, np.rint(share * MANY).astype(np.int64)) for share in shares)
    return RecordSums(protocol, MANY, parts)


def test_the_linear_system_is_unbiased_and_is_the_published_formula_for_fakes(rng) -> None:
    f = np.concatenate(marginals(joint(rng, UNEQUAL)))
    for protocol in (rs_fd(UNEQUAL, 1.3), rs_rfd(UNEQUAL, 1.3, SKEWED, "x"), copies(UNEQUAL, rng)):
        assert condition(protocol) < 1e4
        solved = solve_linear([expectation(protocol, f)], {})
        np.testing.assert_allclose(np.concatenate([solved[name][0] for name in "abc"]), f, atol=1e-8)


@pytest.mark.parametrize("make", [lambda: rs_fd(UNEQUAL, 1.3), lambda: rs_rfd(UNEQUAL, 1.3, SKEWED, "x")])
def test_columns_that_tell_of_one_attribute_each_are_solved_as_the_system_is(make, rng, monkeypatch) -> None:
    protocol = make()
    sums = expectation(protocol, np.concatenate(marginals(joint(rng, UNEQUAL))))
    quick, number = solve_linear([sums], {}), condition(protocol)
    monkeypatch.setattr("sidelight.estimation.linear.separate", lambda _: None)
    for name, (estimate, spread) in solve_linear([sums], {}).items():
        np.testing.assert_allclose(quick[name][0], estimate, atol=1e-12)
        np.testing.assert_allclose(quick[name][1], spread, rtol=1e-9)
    assert number == pytest.approx(condition(protocol), rel=1e-9)
    assert separate(copies(UNEQUAL, rng)) is None


def test_a_singular_system_is_refused_alone_and_leans_on_the_first_phase() -> None:
    """Everything copied: the columns are alike, so they do not tell the attributes apart."""
    schema = equal(2, 3)
    fakes = {pair: whole_law(np.eye(3)) for pair in (("x0", "x1"), ("x1", "x0"))}
    protocol = FakeDataProtocol(schema, (schema.names,), 1.0, fakes, "corr-rr", "by hand")
    f = np.array([0.5, 0.3, 0.2, 0.2, 0.3, 0.5])
    assert condition(protocol) == math.inf
    with pytest.raises(sl.InputError, match="do not determine the frequencies"):
        solve_linear([expectation(protocol, f)], {})
    known = {"x0": (f[:3], 1e-4 * np.eye(3)), "x1": (f[3:], 1e-4 * np.eye(3))}
    solved = solve_linear([expectation(protocol, f)], known)
    np.testing.assert_allclose(solved["x0"][0], f[:3], atol=1e-8)
    sums = solved["x0"][1] + solved["x1"][1]
    assert (sums < 2e-4).all()


def star(people: int, schema: sl.Schema, correlation: float, rng: np.random.Generator) -> np.ndarray:
    first = rng.choice(schema.sizes[0], size=people, p=np.array([0.6, 0.3, 0.1]))
    columns = [first]
    for size in schema.sizes[1:]:
        same = rng.random(people) < correlation
        columns.append(np.where(same, first % size, rng.integers(0, size, people)))
    return np.stack(columns, axis=1).astype(np.uint8)


def truths(records: np.ndarray, schema: sl.Schema) -> dict[str, np.ndarray]:
    return {
        name: np.bincount(records[:, i], minlength=size) / len(records)
        for i, (name, size) in enumerate(zip(schema.names, schema.sizes, strict=True))
    }


DIRECT = {
    "spl": lambda schema: spl(schema, 2.0),
    "spl oue": lambda schema: spl(schema, 2.0, "oue"),
    "smp": lambda schema: smp(schema, 2.0),
    "smp olh": lambda schema: smp(schema, 2.0, "olh"),
    "smp hadamard": lambda schema: smp(schema, 2.0, "hadamard"),
    "smp exp": lambda schema: smp(schema, 2.0, "exp"),
    "shares": lambda schema: smp(schema, 2.0, shares=(4, 2, 1)),
    "product": lambda schema: product_domain(schema, 2.0),
    "product ss": lambda schema: product_domain(schema, 1.0, mechanism="ss"),
    "groups": lambda schema: product_domain(schema, 2.0, [["a", "b"], ["c"]], "best"),
    "overlapping": lambda schema: product_domain(schema, 2.0, [["a", "b"], ["b", "c"], ["c"]]),
    "rs+fd": lambda schema: rs_fd(schema, 2.0),
    "rs+rfd": lambda schema: rs_rfd(schema, 2.0, SKEWED, "made up"),
}


@pytest.mark.parametrize(
    ("name", "about"),
    [*((name, "collected") for name in DIRECT), ("smp", "population"), ("product", "population")],
)
def test_estimates_are_unbiased_and_intervals_cover(name: str, about: str) -> None:
    """200 collections of 1,200 people, 7 values each.

    The mean error of each value is within 4.5 standard errors of 0 (false alarms below 5e-5 for all values
    of a case). The 95 % intervals cover in 92 % to 98 % of the cases: four of the seven values are free, so
    that is 3.9 standard deviations of 800 cases, a false alarm in 10^4.
    """
    protocol = DIRECT[name](UNEQUAL)
    rng = np.random.default_rng(98)
    errors, covered, variances = [], [], []
    fixed = star(1200, UNEQUAL, 0.6, rng)
    many = star(100_000, UNEQUAL, 0.6, np.random.default_rng(1))
    population = truths(many, UNEQUAL)
    for trial in range(200):
        records = fixed if about == "collected" else many[rng.integers(0, len(many), 1200)]
        truth = truths(fixed, UNEQUAL) if about == "collected" else population
        found = sl.estimate(protocol.randomise(records, seed=trial), estimator="inversion", about=about)
        for attribute in UNEQUAL.names:
            errors.append(found[attribute] - truth[attribute])
            variances.append(found.standard_errors[attribute] ** 2)
            inside = (found.lower[attribute] <= truth[attribute]) & (
                truth[attribute] <= found.upper[attribute]
            )
            covered.append(inside)
    rows = [np.concatenate(errors[i : i + 3]) for i in range(0, len(errors), 3)]
    spread = np.std(rows, axis=0, ddof=1)
    assert np.all(np.abs(np.mean(rows, axis=0)) < 4.5 * spread / math.sqrt(200))
    stated = np.sqrt(
        np.mean([np.concatenate(variances[i : i + 3]) for i in range(0, len(variances), 3)], axis=0)
    )
    np.testing.assert_allclose(stated, spread, rtol=0.25)
    assert 0.92 <= np.concatenate(covered).mean() <= 0.98


def test_intervals_cover_where_nearly_everyone_or_nobody_has_a_value() -> None:
    """1,000 people, values of one in a thousand and of nobody, a large budget: plug-in intervals are empty.

    600 cases cover in at least 92 %: 3.4 standard deviations below 95 %, a false alarm in 3,000.
    """
    schema = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv")))
    records = np.zeros((1000, 2), dtype=np.uint8)
    records[0, 0] = 1
    covered = []
    for trial in range(300):
        found = sl.estimate(smp(schema, 6.0).randomise(records, seed=trial), about="population")
        covered.append((found.lower["a"][1] <= 0.001) and (found.upper["a"][1] >= 0.001))
        covered.append(found.lower["a"][2] <= 0)
    assert np.mean(covered) >= 0.92


@given(
    st.floats(-20, 20),
    st.floats(0, 1),
    st.floats(1e-6, 30),
    st.floats(0, 2),
    st.floats(0, 1),
    st.floats(0.1, 4),
)
def test_an_interval_holds_every_frequency_that_the_estimate_is_near_to(
    estimate: float, frequency: float, constant: float, slope: float, curve: float, deviations: float
) -> None:
    """The rule that makes it cover at its rate, and that it never shrinks to a point."""
    item = Unbiased(*(np.array([x]) for x in (estimate, constant, curve + slope, -curve)), 10)
    low, high = item.interval(deviations)
    assert 0 <= low[0] < high[0] <= 1
    spread = math.sqrt(max(float(item.variance(np.array([frequency]))[0]), 0.0))
    if abs(estimate - frequency) <= deviations * spread:
        assert low[0] - 1e-9 <= frequency <= high[0] + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_interval_is_a_point_beside_an_error_and_all_cover(epsilon: float) -> None:
    """20 people and 2 values, four frequencies, four mechanisms, 40 collections each: a rate of 95 % falls
    below 92 % of 640 with a probability below 0.001, and the seeds are fixed."""
    schema = sl.Schema((sl.categorical("a", "xy"),))
    covered = []
    for share, name, seed in product((0.0, 0.05, 0.95, 1.0), ("grr", "oue", "olh", "she"), range(40)):
        records = (np.arange(20)[:, None] < round(20 * share)).astype(np.uint8)
        found = sl.estimate(spl(schema, epsilon, name).randomise(records, seed=seed), estimator="inversion")
        low, high = found.lower["a"], found.upper["a"]
        assert (high - low >= np.minimum(found.standard_errors["a"], 1.0)).all()
        covered.append(low[1] <= share + 1e-12 and share <= high[1] + 1e-12)
    assert np.mean(covered) >= 0.92


def test_the_published_estimator_keeps_its_bias_however_many_report() -> None:
    schema = equal(2, 2)
    fakes = {pair: whole_law(np.eye(2)) for pair in (("x0", "x1"), ("x1", "x0"))}
    protocol = FakeDataProtocol(schema, (schema.names,), 1.0, fakes, "corr-rr", "by hand")
    f = np.array([0.9, 0.1, 0.5, 0.5])
    found = published([expectation(protocol, f)])
    np.testing.assert_allclose(found["x0"], [0.7, 0.3], atol=1e-6)


def test_predictions_meet_what_is_seen() -> None:
    """Mean squared errors of 80 collections, within 35 %: over 4 standard errors for every protocol."""
    schema = UNEQUAL
    records = star(3000, schema, 0.6, np.random.default_rng(5))
    truth = truths(records, schema)
    for name, make in DIRECT.items():
        protocol = make(schema)
        seen = []
        for trial in range(80):
            parts = unbiased([protocol.randomise(records, seed=trial).aggregate()])
            seen.append(np.mean([np.mean((parts[n].estimate - truth[n]) ** 2) for n in schema.names]))
        assert predicted_error(protocol, 3000, truth) == pytest.approx(np.mean(seen), rel=0.35), name


def test_the_prediction_of_corr_rr_and_of_shrinkage_meets_what_is_seen() -> None:
    schema = equal(4, 3)
    truth_rng = np.random.default_rng(4)
    records = star(6000, schema, 0.9, truth_rng)
    truth = truths(records, schema)
    protocol = smp(schema, 1.0)
    best, corr = [], []
    design = TwoPhase(schema, 1.0)
    for trial in range(150):
        found = sl.estimate(protocol.randomise(records, seed=trial))
        best.append(np.mean([np.mean((found[n] - truth[n]) ** 2) for n in schema.names]))
        order = np.random.default_rng(trial).permutation(6000)
        first = design.first.randomise(records[order[:600]], seed=trial)
        second = learn_second_phase(design, first, people=5400).second.randomise(
            records[order[600:]], seed=trial
        )
        result = sl.estimate([first, second], estimator="published")
        corr.append(np.mean([np.mean((result[n] - truth[n]) ** 2) for n in schema.names]))
    assert predicted_error(protocol, 6000, truth, shrinks=True) == pytest.approx(np.mean(best), rel=0.3)
    assert predicted_error(protocol, 6000, truth, shrinks=True) < predicted_error(protocol, 6000, truth)
    assert published_error(design, 6000, truth) == pytest.approx(np.mean(corr), rel=0.4)
    assert np.mean(best) < np.mean(corr)


def test_not_asking_everyone_is_part_of_the_error() -> None:
    schema = equal(4, 2)
    f = {name: np.array([0.5, 0.5]) for name in schema.names}
    sure = predicted_error(smp(schema, 30.0), 1000, f)
    assert sure == pytest.approx(0.25 * (4 - 1) / 1000, rel=1e-6)
    assert predicted_error(product_domain(schema, 30.0), 1000, f) < 1e-9


def test_the_simplex_projection_is_the_nearest_point(rng) -> None:
    for _ in range(50):
        given = rng.normal(0.2, 0.4, size=4)
        found = to_simplex(given)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        others = rng.dirichlet(np.ones(4), size=200)
        assert ((found - given) ** 2).sum() <= ((others - given) ** 2).sum(axis=1).min() + 1e-12


def test_shrinkage_gains_where_attributes_agree_and_steps_back_where_they_do_not() -> None:
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(500, 5, 6)) * 0.05
    noise -= noise.mean(axis=-1, keepdims=True)
    spread = np.full((500, 5), 0.05**2 * 5)
    alike = np.tile([0.3, 0.25, 0.2, 0.1, 0.1, 0.05], (5, 1))
    points = np.eye(6)[:5]

    def error(result: np.ndarray, truth: np.ndarray) -> float:
        return float(((result - truth) ** 2).mean())

    assert error(shrunken(alike + noise, spread), alike) < 0.5 * error(to_simplex(alike + noise), alike)
    assert error(least_risk(alike + noise, spread), alike) < 0.5 * error(to_simplex(alike + noise), alike)
    assert error(shrunken(points + noise, spread), points) > 1.1 * error(to_simplex(points + noise), points)
    assert error(least_risk(points + noise, spread), points) < 1.05 * error(
        to_simplex(points + noise), points
    )


def test_an_accurate_attribute_does_not_lean_on_noisy_ones() -> None:
    """Pooled with four attributes of 10,000 times its noise its error would be as large as theirs."""
    rng = np.random.default_rng(9)
    truth = np.stack([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], *[[0.25] * 4] * 3])
    deviation = np.array([0.001, 0.1, 0.1, 0.1, 0.1])
    noise = rng.normal(size=(300, 5, 4)) * deviation[:, None]
    noise -= noise.mean(axis=-1, keepdims=True)
    spread = np.broadcast_to(3 * deviation**2, (300, 5))
    for method in (least_risk, shrunken):
        errors = ((method(truth + noise, spread) - truth) ** 2).mean(axis=(0, 2))
        assert errors[0] < 2e-6
        assert errors[2] < 0.8 * ((to_simplex(truth + noise) - truth) ** 2).mean(axis=(0, 2))[2]
    order = [2, 0, 1, 4, 3]
    moved = least_risk((truth + noise)[:, order], spread[:, order])
    np.testing.assert_allclose(moved, least_risk(truth + noise, spread)[:, order], rtol=1e-9, atol=1e-15)


def test_shrinkage_leaves_small_domains_as_they_are() -> None:
    """Below 3 degrees of freedom no shrinkage is better everywhere."""
    given = np.array([[0.6, 0.4], [0.5, 0.5]])
    np.testing.assert_allclose(shrunken(given, np.array([0.01, 0.01])), given, atol=1e-12)


def dependent(sizes: tuple[int, ...], strength: float, rng: np.random.Generator) -> np.ndarray:
    first = rng.choice(sizes[0], size=6000, p=np.array([0.5, 0.25, 0.15, 0.1]))
    columns = [first]
    for number, size in enumerate(sizes[1:]):
        copied = (first * (number + 2) + number) % size
        columns.append(np.where(rng.random(6000) < strength, copied, rng.integers(0, size, 6000)))
    return np.stack(columns, axis=1).astype(np.uint8)


@pytest.mark.parametrize(("strength", "most"), [(1.0, 0.9), (0.0, 1.05)])
def test_dependent_attributes_without_a_common_domain_borrow_from_their_joint(strength, most) -> None:
    """80 paired collections: gains over 10 % where one attribute tells the others, else loses at most 5 %.

    Measured: 0.64 with a standard error of 0.04, and 1.00; the first bound is 6 standard errors away.
    """
    sizes = (4, 3, 2)
    labels = [[f"{i} {v}" for v in range(size)] for i, size in enumerate(sizes)]
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", values) for i, values in enumerate(labels)))
    protocol = product_domain(schema, 4.0)
    ours, plain = [], []
    for trial in range(80):
        records = dependent(sizes, strength, np.random.default_rng(trial))
        truth = truths(records, schema)
        reports = protocol.randomise(records, seed=trial)
        for errors, estimator in ((ours, "best"), (plain, "simplex")):
            found = sl.estimate(reports, estimator=estimator)
            errors.append(np.mean([np.mean((found[n] - truth[n]) ** 2) for n in schema.names]))
    assert np.mean(ours) < most * np.mean(plain)


def test_how_far_a_projected_joint_moves_is_the_trace_of_its_covariance(rng) -> None:
    shape = (3, 4)
    spread, near = rng.random(shape), rng.random(shape) * (rng.random(shape) < 0.6)
    d, s = spread.reshape(-1), (near.reshape(-1) > 0).astype(float)
    covariance = np.diag(d) - np.outer(d, d) / d.sum()
    projection = np.diag(s) - np.outer(s, s) / s.sum()
    for axis in (0, 1):
        place = np.indices(shape)[axis].reshape(-1)
        summing = np.stack([(place == value).astype(float) for value in range(shape[axis])])
        expected = np.trace(summing @ projection @ covariance @ summing.T)
        assert marginal_moves(spread, near, axis) == pytest.approx(expected, rel=1e-12)


def test_em_finds_the_likeliest_joint(rng) -> None:
    schema = equal(2, 2)
    law = rng.dirichlet(np.ones(3), size=4)
    counts = np.array([500.0, 300.0, 200.0])
    term = Term(schema.names, law.T, counts)
    found = maximise(schema, [term]).reshape(-1)
    best = counts @ np.log(law.T @ found)
    assert found.sum() == pytest.approx(1)
    for other in rng.dirichlet(np.ones(4), size=3000):
        assert best >= counts @ np.log(law.T @ other) - 1e-6


@pytest.mark.parametrize(("mechanism", "epsilon"), [("grr", 0.05), ("grr", 1.0), ("oue", 0.2)])
def test_em_arrives_at_small_budgets_too(mechanism: str, epsilon: float) -> None:
    """No cell's slope promises more than a thousandth of a nat; plain updates stopped 3 nats short."""
    schema = equal(1, 10)
    shares = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0, 0])
    records = np.random.default_rng(1).choice(10, size=(20_000, 1), p=shares).astype(np.uint8)
    reports = smp(schema, epsilon, mechanism).randomise(records, seed=1)
    found = sl.estimate(reports, estimator="em")["x0"]
    (term,) = terms_of(reports, ["x0"])
    slopes = (term.counts / (term.likelihood @ found)) @ term.likelihood
    assert slopes.max() - 20_000 < 1.1e-3
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("mechanism", ["grr", "oue", "sue", "olh", "ss", "hadamard", "exp", "rappor"])
def test_em_of_marginals_uses_every_kind_of_report(mechanism: str) -> None:
    """30,000 people, errors below 0.05: over 6 standard deviations for the noisiest of them."""
    schema = sl.Schema((sl.categorical("a", "vwxyz"),))
    records = np.random.default_rng(2).choice(5, size=(30_000, 1), p=[0.5, 0.3, 0.2, 0, 0]).astype(np.uint8)
    found = sl.estimate(smp(schema, 3.0, mechanism).randomise(records, seed=1), estimator="em")
    np.testing.assert_allclose(found["a"], [0.5, 0.3, 0.2, 0, 0], atol=0.05)


def test_joints_of_spl_products_and_hidden_choices(rng) -> None:
    """20,000 people; total variation below 0.06, several times what the noise gives."""
    schema = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv")))
    cells = np.array([[0.4, 0.05], [0.05, 0.3], [0.1, 0.1]])
    drawn = rng.choice(6, size=20_000, p=cells.reshape(-1))
    records = np.stack(np.unravel_index(drawn, (3, 2)), axis=1).astype(np.uint8)
    protocols = (
        spl(schema, 4.0),
        product_domain(schema, 2.0),
        product_domain(schema, 1.0, mechanism="ss"),
    )
    for protocol in protocols:
        found = estimate_joint(protocol.randomise(records, seed=4), ["a", "b"])
        assert np.abs(found - cells).sum() / 2 < 0.06
    with pytest.raises(sl.InputError, match="nobody reported a, b together"):
        estimate_joint(smp(schema, 1.0).randomise(records, seed=4), ["a", "b"])
    hidden = rs_fd(schema, 3.0).randomise(records, seed=4)
    with pytest.raises(sl.InputError, match="nobody reported a, b together"):
        estimate_joint(hidden, ["a", "b"])
    assert np.abs(sl.estimate(hidden, estimator="em")["a"] - cells.sum(axis=1)).max() < 0.04


def test_the_choice_of_protocol_is_never_worse_than_the_usual_ones() -> None:
    for attributes, values in ((2, 2), (4, 2), (2, 10), (5, 3), (3, 4)):
        schema = equal(attributes, values)
        f = {name: np.full(values, 1 / values) for name in schema.names}
        for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0):
            own = predicted_error(choose_protocol(schema, epsilon), 10_000, f)
            for other in (
                spl(schema, epsilon),
                smp(schema, epsilon),
                rs_fd(schema, epsilon),
                product_domain(schema, epsilon),
            ):
                assert own <= predicted_error(other, 10_000, f) * (1 + 1e-9)


def test_the_measured_table_of_products_is_met() -> None:
    """n = 10^4, k = 2, eps = 5: checked figures of SPL, SMP and the product domain for d = 2 and d = 4.

    The figures come from 20 trials at frequencies of the star model; predicted here at (.5, .5), the order
    and the size are what counts: within a factor of 2.5.
    """
    for attributes, figures in ((2, (9.0e-6, 2.9e-5, 1.3e-6)), (4, (5.2e-5, 6.5e-5, 6.5e-6))):
        schema = equal(attributes, 2)
        f = {name: np.array([0.5, 0.5]) for name in schema.names}
        for protocol, figure in zip(
            (spl(schema, 5.0), smp(schema, 5.0), product_domain(schema, 5.0)), figures, strict=True
        ):
            assert 0.4 < predicted_error(protocol, 10_000, f) / figure < 2.5


def test_unequal_domains_are_sampled_by_the_root_of_their_error() -> None:
    schema = sl.Schema((sl.categorical("few", "uv"), sl.categorical("many", [str(v) for v in range(40)])))
    f = {name: np.full(schema[name].size, 1 / schema[name].size) for name in schema.names}
    chosen = choose_protocol(schema, 1.0)
    assert predicted_error(chosen, 10_000, f) <= predicted_error(smp(schema, 1.0, "best"), 10_000, f)


def test_advice_is_sorted_and_names_what_it_assumes() -> None:
    schema = equal(3, 4)
    advice = sl.advise(schema, 1.0, 5000)
    errors = [option.error for option in advice.options]
    assert errors == sorted(errors)
    assert "equally likely" in advice.origin
    assert advice.choice.epsilon == pytest.approx(1.0, abs=1e-9)
    first = sl.estimate(smp(schema, 1.0).randomise(np.zeros((500, 3), dtype=np.uint8), seed=1))
    assert "500 reports" in sl.advise(schema, 1.0, 5000, first).origin
    assert {"protocol", "unbiased_error", "best_error"} <= set(
        __import__("json").loads(advice.to_json())["options"][0]
    )
    with pytest.raises(sl.InputError, match="shares that add up to 1"):
        sl.advise(schema, 1.0, 5000, {name: np.ones(4) for name in schema.names})
    with pytest.raises(sl.InputError, match="lack the attribute"):
        sl.advise(schema, 1.0, 5000, {})


def test_variances_of_every_value_are_predicted() -> None:
    schema = equal(2, 3)
    f = {name: np.array([0.8, 0.1, 0.1]) for name in schema.names}
    found = predicted_variances(smp(schema, 1.0), 1000, f)
    assert found["x0"].shape == (3,)
    grr = sl.create("grr", 3, 1.0)
    np.testing.assert_allclose(found["x0"], grr.variance(500, f["x0"]) - f["x0"] * (1 - f["x0"]) / 1000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "magic"}, "`estimator` must be one of"),
        ({"confidence": 1.5}, "`confidence` must be"),
        ({"about": "nobody"}, "`about` must be one of"),
        ({"estimator": "published"}, "is Corr-RR's"),
    ],
)
def test_bad_requests_are_refused(options, words: str) -> None:
    reports = smp(UNEQUAL, 1.0).randomise(np.zeros((50, 3), dtype=np.uint8), seed=1)
    with pytest.raises(sl.InputError, match=words):
        sl.estimate(reports, **options)
