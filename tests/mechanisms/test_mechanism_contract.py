"""The contract that every mechanism of the register keeps.

Parameters come from each mechanism's own `examples`, so a new line in the register is all the suite needs:
`pytest tests/mechanisms/test_mechanism_contract.py -k NAME` runs the whole contract on one mechanism.

The checks are plain functions of a mechanism, so that broken copies can be handed to them too (see the end).
Statistical checks use fixed seeds; each has a false-alarm rate of at most one in a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from sidelight.foundation import arrays, compiled
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import (
    MECHANISMS,
    Mechanism,
    Reports,
    create,
    make,
    mechanism_class,
    reports_from_arrow,
    reports_to_arrow,
)
from sidelight.mechanisms.hashing import OptimisedHashing
from sidelight.mechanisms.longitudinal.rappor import Rappor
from sidelight.mechanisms.oracle import CodedMechanism
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.plan import Plan, Release
from sidelight.schema import categorical

FALSE_ALARM = 1e-6
SIGMAS = 6.0  # two-sided 2e-9 each; fewer than 500 such comparisons are made
KINDS = {name: mechanism_class(name) for name in MECHANISMS}
RUN = [name for name, kind in KINDS.items() if kind.makes_reports]
BUDGETED = [name for name, kind in KINDS.items() if kind.has_budget]
ESTIMATING = [name for name, kind in KINDS.items() if kind.estimates != "nothing"]


def examples(name: str, size: int, epsilon: float = 1.0) -> Iterator[Mechanism]:
    """Return the mechanism under each of its example parameters."""
    kind = KINDS[name]
    for parameters in kind.examples(size):
        yield make(name, size, epsilon if kind.has_budget else None, parameters)


def usual(name: str, size: int, epsilon: float = 1.0) -> Mechanism:
    return next(examples(name, size, epsilon))


def is_noisy(mechanism: Mechanism) -> bool:
    return 0 < mechanism.epsilon < math.inf


def draw(mechanism: Mechanism, rows: int, shares: np.ndarray | None = None) -> np.ndarray:
    """Draw codes and return what the mechanism takes for them."""
    rng = np.random.default_rng(rows)
    return mechanism.inputs(rng.choice(mechanism.size, rows, p=shares))


def truth_of(mechanism: Mechanism, shares: np.ndarray) -> np.ndarray:
    """Return what the estimate is of: the frequencies, or the mean of the values' numbers."""
    if mechanism.estimates == "frequencies":
        return shares
    return np.array([shares @ mechanism.inputs(np.arange(mechanism.size))])


def skewed(size: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def assert_same(one: Reports, other: Reports) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.seeds is None) == (other.seeds is None)
    if one.seeds is not None:
        np.testing.assert_array_equal(one.seeds, other.seeds)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each distinct row is first, and which of them every row is; `np.unique` sorts for long.

    Rows are told apart by random sums of them: two that differ have the same one by a chance of 1e-10.
    """
    weights = np.random.default_rng(3).normal(size=rows.shape[1])
    sums = np.zeros(len(rows))
    for column, weight in zip(rows.T, weights, strict=True):
        sums += weight * column
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    return first, place


def law(mechanism: Mechanism) -> tuple[np.ndarray, Reports | None]:
    """Return Pr(report | value) of every report, shape (size, reports), and the reports themselves.

    A hashed report is one of the true bucket's randomised response, whatever its seed, so that its law is
    over buckets and lists no reports.
    """
    form, size = mechanism.form, mechanism.size
    if form.is_listed:
        return mechanism.channel.matrix(), Reports(np.arange(form.count, dtype=form.dtype))
    p, q = map(float, mechanism.mark_rates)
    if form.encoding == "bits":
        sets = np.array(list(product([0, 1], repeat=size)), dtype=np.uint8)
        chance = np.where(np.eye(size) == 1, p, q)
        cells = np.where(sets, chance[:, None, :], 1 - chance[:, None, :]).prod(axis=2)
        packed = np.zeros((len(sets), form.width), dtype=np.uint8)
        packed[:, : -(-size // 8)] = np.packbits(sets, axis=1, bitorder="little")
        return cells, Reports(packed)
    if form.encoding == "sets":
        sets = np.array(list(combinations(range(size), form.width)), dtype=form.dtype)
        holds = (sets[None] == np.arange(size)[:, None, None]).any(axis=2)
        inside, outside = math.comb(size - 1, form.width - 1), math.comb(size - 1, form.width)
        return np.where(holds, p / inside, (1 - p) / outside), Reports(sets)
    same = np.eye(form.count, dtype=bool)
    return np.where(same, p, (1 - p) / (form.count - 1)), None


def is_enumerable(mechanism: Mechanism) -> bool:
    if mechanism.form.is_listed:
        return mechanism.epsilon > 0 and mechanism.channel.is_listable
    return mechanism.mark_rates is not None


# --- the checks ------------------------------------------------------------------------------------------


def check_likelihoods(mechanism: Mechanism, rows: int = 60_000) -> None:
    """Reports that are stated to say the same come from the values as often as their likelihoods say.

    Given how often such reports were seen, their counts under the values are close to a multinomial split;
    fixing the number of people for each value only narrows it, so the chi-square limit is on the safe side.
    """
    size = mechanism.size
    codes = np.repeat(np.arange(size), rows)
    likely = mechanism.likelihoods(mechanism.randomise(mechanism.inputs(codes), seed=17))
    assert likely.shape == (len(codes), size)
    rounded = np.round(np.log(np.maximum(likely, 1e-300)), 9)
    first, place = distinct_rows(rounded)
    counts = np.bincount(place * size + codes, minlength=len(first) * size).reshape(-1, size).astype(float)
    statistic, freedom = 0.0, 0
    for seen, likelihood in zip(counts, likely[first], strict=True):
        expected = seen.sum() * likelihood / likelihood.sum()
        assert not seen[expected == 0].any(), "a report occurs where its likelihood says it cannot"
        possible = expected > 0
        if expected[possible].min() < 5:
            continue
        statistic += float(((seen - expected)[possible] ** 2 / expected[possible]).sum())
        freedom += int(possible.sum()) - 1
    assert freedom > 0 or not is_noisy(mechanism)
    assert statistic <= stats.chi2.isf(FALSE_ALARM, max(freedom, 1))


def check_posteriors(mechanism: Mechanism, rows: int = 40_000) -> None:
    """On average the true value has the probability that the posterior itself expects it to have."""
    codes = np.random.default_rng(1).integers(0, mechanism.size, rows)
    likely = mechanism.likelihoods(mechanism.randomise(mechanism.inputs(codes), seed=7))
    posterior = likely / likely.sum(axis=1, keepdims=True)
    gap = posterior[np.arange(rows), codes] - (posterior**2).sum(axis=1)
    assert abs(gap.mean()) <= SIGMAS * gap.std() / math.sqrt(rows)


def check_encoding(mechanism: Mechanism, rows: int = 20_000) -> None:
    """A report's likelihoods (and its public seed) determine it: no order, no spare bit says more."""
    reports = mechanism.randomise(draw(mechanism, rows), seed=5)
    values = reports.values.reshape(rows, -1)
    if reports.seeds is not None:
        assert reports.values.max() < mechanism.form.count
        return
    first, place = distinct_rows(mechanism.likelihoods(reports))
    np.testing.assert_array_equal(values, values[first][place])


def check_form(mechanism: Mechanism) -> None:
    """The form is that of real reports, to the type of an Arrow column."""
    form, reports = mechanism.form, mechanism.randomise(draw(mechanism, 40), seed=1)
    assert reports.values.dtype == form.dtype
    assert reports.values.shape == ((40,) if form.width is None else (40, form.width))
    assert (reports.seeds is not None) == form.seeded
    assert reports_to_arrow(form.empty()).type == reports_to_arrow(reports).type
    np.testing.assert_array_equal(mechanism.check(reports), reports.values)
    assert_same(Reports.joined([form.empty(), reports]), reports)
    sums = mechanism.aggregate(reports).sums
    assert mechanism.aggregate(form.empty()).sums.shape == sums.shape
    counts = sums[mechanism.counted]
    assert ((counts >= 0) & (counts <= 40)).all()


def check_estimate(mechanism: Mechanism, runs: int = 2_000, people: int = 200) -> None:
    """Estimates have the right mean and the stated variance, over many collections of new people."""
    shares = skewed(mechanism.size)
    reports = mechanism.randomise(draw(mechanism, runs * people, shares), seed=23)
    estimates = np.array(
        [
            mechanism.estimate(mechanism.aggregate(reports[start : start + people]))
            for start in range(0, runs * people, people)
        ]
    )
    truth, stated = truth_of(mechanism, shares), mechanism.variance(people, shares)
    error = np.abs(estimates.mean(axis=0) - truth)
    assert (error <= SIGMAS * np.sqrt(stated / runs) + 1e-9).all()
    squares = (estimates - truth) ** 2
    spread = squares.std(axis=0) / math.sqrt(runs)
    assert (np.abs(squares.mean(axis=0) - stated) <= SIGMAS * spread + 1e-15).all()


def exponential(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 90
        return Fraction(Decimal(epsilon).exp().next_minus())


def check_budget_kept(mechanism: Mechanism, epsilon: float) -> None:
    """The realised budget is at most the nominal one, in exact arithmetic, and the channel states it."""
    if isinstance(mechanism, CodedMechanism):
        assert 1 < mechanism.factor <= exponential(epsilon)
    assert 0 < mechanism.epsilon <= epsilon
    assert mechanism.channel.epsilon == pytest.approx(mechanism.epsilon, rel=1e-8)


def check_ratios(mechanism: Mechanism) -> None:
    """No report's likelihoods differ by more than e^epsilon, and with delta 0 some differ by that much."""
    reports = mechanism.randomise(draw(mechanism, 3_000), seed=9)
    logs = np.log(mechanism.likelihoods(reports))
    spans = logs.max(axis=1) - logs.min(axis=1)
    if mechanism.delta == 0:
        assert spans.max() <= mechanism.epsilon * (1 + 1e-9)
    assert spans.max() >= 0.5 * mechanism.epsilon  # the two ends of noisy numbers may not be met


def check_degrades(mechanism: Mechanism) -> None:
    """Where it is claimed, a stochastic matrix makes the smaller budget's reports from the larger's."""
    larger, smaller = law(mechanism)[0], law(mechanism.at(0.6 * mechanism.nominal_budget))[0]
    assert mechanism.at(0.6 * mechanism.nominal_budget).epsilon < mechanism.epsilon
    (size, given), made = larger.shape, smaller.shape[1]
    rows = np.kron(larger, np.eye(made))
    totals = np.kron(np.eye(given), np.ones(made))
    slack = np.ones((len(rows), 1))
    found = linprog(
        np.append(np.zeros(given * made), 1.0),
        A_ub=np.block([[rows, -slack], [-rows, -slack]]),
        b_ub=np.concatenate([smaller.reshape(-1), -smaller.reshape(-1)]),
        A_eq=np.hstack([totals, np.zeros((given, 1))]),
        b_eq=np.ones(given),
    )
    assert found.x[-1] < 1e-9, f"the reports of {size} values are off by {found.x[-1]}"


def check_number_degrades(mechanism: Mechanism) -> None:
    """No pair of numbers is told apart better at the smaller budget: no hockey-stick divergence is larger."""
    smaller = mechanism.at(0.6 * mechanism.nominal_budget)
    places = np.linspace(mechanism.lower - 60, mechanism.upper + 60, 120_001)

    def densities(one: Mechanism) -> np.ndarray:
        density = np.exp(one.channel.log_density(places)).T
        return density / density.sum(axis=1, keepdims=True)

    wide, narrow = densities(smaller), densities(mechanism)
    for i, j in combinations(range(mechanism.size), 2):
        for factor in np.exp(np.linspace(0, 2, 9)):
            noisier = np.maximum(wide[i] - factor * wide[j], 0).sum()
            assert noisier <= np.maximum(narrow[i] - factor * narrow[j], 0).sum() + 1e-6


def check_guess(mechanism: Mechanism) -> None:
    """The guess is one of the values under which a report is likeliest, evenly, and as accurate as stated."""
    cells, reports = law(mechanism)
    likely = mechanism.likelihoods(reports).T
    guess = np.isclose(likely, likely.max(axis=0), rtol=1e-9)
    guess = guess / guess.sum(axis=0)
    prior = skewed(mechanism.size)
    truth = sum(
        prior[value] * sum(cells[value, report] * guess[value, report] for report in range(cells.shape[1]))
        for value in range(mechanism.size)
    )
    assert mechanism.guess_accuracy(prior) == pytest.approx(truth, rel=1e-9)
    np.testing.assert_allclose(mechanism.guess_channel().matrix(), cells @ guess.T, rtol=1e-9)


# --- every mechanism keeps it ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_stated_likelihoods_are_the_empirical_ones(name: str, size: int, epsilon: float):
    for mechanism in examples(name, size, epsilon):
        if mechanism.form.encoding != "numbers":
            check_likelihoods(mechanism)
        elif is_noisy(mechanism):
            check_posteriors(mechanism)


@pytest.mark.parametrize("name", RUN)
def test_likelihoods_are_those_of_the_channel(name: str):
    for mechanism in examples(name, 4, 2.0):
        reports = mechanism.randomise(draw(mechanism, 50), seed=3)
        likely = mechanism.likelihoods(reports)
        if mechanism.form.width is None and not mechanism.form.seeded:
            asked = reports.values
        elif mechanism.mark_rates is not None:
            asked = [np.flatnonzero(row) for row in mechanism.marked(reports)]
        else:
            continue  # a histogram names no set of values and no column of a matrix
        stated = np.array([mechanism.channel.likelihood(report) for report in asked])
        np.testing.assert_allclose(
            likely / likely.sum(axis=1, keepdims=True),
            stated / stated.sum(axis=1, keepdims=True),
            rtol=1e-9,
        )


@pytest.mark.parametrize("name", RUN)
def test_tabulated_reports_have_their_likelihoods(name: str):
    for mechanism in examples(name, 5, 1.0):
        coded = mechanism.over_codes()
        reports = coded.randomise(np.arange(200) % 5, seed=3)
        if coded.form.encoding == "numbers" and coded.numbers is None:
            with pytest.raises(InputError, match="have no likelihood that is written out"):
                coded.tabulated(reports)
            continue
        table, rows = coded.tabulated(reports)
        assert rows.shape == (200,)
        if coded.numbers is not None:
            continue  # cells of the line, tested with the mechanism that bins them
        likely = coded.likelihoods(reports)
        np.testing.assert_allclose(
            table[rows] / table[rows].sum(axis=1, keepdims=True),
            likely / likely.sum(axis=1, keepdims=True),
            rtol=1e-9,
        )


def check_report_law(mechanism: Mechanism) -> None:
    """A law that is listed is a law, favours what real reports favour, and has the stated losses."""
    law = mechanism.report_law(1 << 12)
    assert mechanism.report_law(1) is None or law.shape[1] == 1
    if law is None:
        return
    assert np.allclose(law.sum(axis=1), 1, atol=1e-12)
    reports = mechanism.randomise(draw(mechanism, 4_000), seed=11)
    favoured = np.unique(np.round(mechanism.likelihoods(reports), 9), axis=0)
    listed = np.unique(np.round((law / law.max(axis=0)).T[law.any(axis=0)], 9), axis=0)
    scaled = np.unique(np.round(favoured / favoured.max(axis=1, keepdims=True), 9), axis=0)
    assert {tuple(row) for row in scaled} <= {tuple(row) for row in listed}


def check_loss_rates(mechanism: Mechanism) -> None:
    law, rates = mechanism.report_law(1 << 12), mechanism.loss_rates
    if law is None or rates is None:
        return
    for value, other in combinations(range(mechanism.size), 2):
        losses = np.log(law[value] / law[other])
        for rate, loss in zip(rates, (mechanism.epsilon, -mechanism.epsilon), strict=True):
            assert law[value][np.isclose(losses, loss, atol=1e-9)].sum() == pytest.approx(rate, abs=1e-12)
        assert np.isclose(np.abs(losses), mechanism.epsilon, atol=1e-9).sum() + np.isclose(
            losses, 0, atol=1e-9
        ).sum() == len(losses)


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_listed_reports_have_the_law_and_the_losses_that_are_stated(name: str, size: int):
    for mechanism in examples(name, size):
        check_report_law(mechanism)
        check_loss_rates(mechanism)


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "rappor", "the", "ss", "exp", "hadamard", "interval"])
def test_the_law_of_few_reports_is_listed(name: str):
    assert usual(name, 4).report_law(1 << 12) is not None


@pytest.mark.parametrize("name", RUN)
def test_the_law_of_very_many_reports_is_not_listed(name: str):
    law = usual(name, 3_000).report_law(1 << 10)
    assert law is None or law.shape[1] <= 1 << 10


@pytest.mark.parametrize("name", RUN)
def test_encoding_carries_nothing(name: str):
    for mechanism in examples(name, 11):
        if mechanism.form.encoding != "numbers":
            check_encoding(mechanism)


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [2, 12])
def test_the_form_is_that_of_real_reports(name: str, size: int):
    for mechanism in examples(name, size):
        check_form(mechanism)


@pytest.mark.parametrize("name", ESTIMATING)
@pytest.mark.parametrize("size", [2, 4])
def test_estimate_is_unbiased_with_the_stated_variance(name: str, size: int):
    for mechanism in examples(name, size, 2.0):
        check_estimate(mechanism)


@pytest.mark.parametrize("name", BUDGETED)
@pytest.mark.parametrize("size", [2, 3, 100, 65_536])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 20.0])
def test_realised_budget_never_exceeds_the_nominal_one(name: str, size: int, epsilon: float):
    for mechanism in examples(name, size, epsilon):
        check_budget_kept(mechanism, epsilon)


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "ss", "olh", "blh", "hadamard", "she", "laplace"])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_some_mechanisms_spend_all_that_a_word_of_64_bits_can_share_out(name: str, epsilon: float):
    assert usual(name, 100, epsilon).epsilon == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("name", [name for name in BUDGETED if name in RUN])
@pytest.mark.parametrize("size", [2, 3, 7])
def test_no_report_says_more_than_the_realised_budget(name: str, size: int):
    for mechanism in examples(name, size, 3.0):
        check_ratios(mechanism)


@pytest.mark.parametrize("name", [name for name in BUDGETED if name in RUN])
@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (3, 0.4), (3, 3.0)])
def test_a_smaller_budget_is_a_post_processing_where_that_is_claimed(name: str, size: int, epsilon: float):
    for mechanism in examples(name, size, epsilon):
        if mechanism.degrades and is_enumerable(mechanism):
            check_degrades(mechanism)
        elif mechanism.degrades and mechanism.estimates == "mean":
            check_number_degrades(mechanism)


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_guess_accuracy_is_that_of_enumeration(name: str, size: int):
    for mechanism in examples(name, size, 1.3):
        if is_enumerable(mechanism) and not mechanism.guess_is_model:
            check_guess(mechanism)


@pytest.mark.parametrize("name", RUN)
def test_a_guess_is_stated_or_refused_in_both_ways(name: str):
    for mechanism in examples(name, 4):
        is_unlisted = mechanism.form.is_listed and not mechanism.channel.is_listable
        if mechanism.estimates == "mean" or is_unlisted:
            for guess in (mechanism.guess_channel, mechanism.guess_accuracy):
                with pytest.raises(InputError, match="no guess is defined"):
                    guess()
        else:
            cells = mechanism.guess_channel().matrix()
            assert mechanism.guess_accuracy() == pytest.approx(np.diagonal(cells).mean())


@pytest.mark.parametrize("name", RUN)
def test_a_report_at_face_value_is_nearly_always_true_at_a_large_budget(name: str):
    for mechanism in examples(name, 4, 100.0):
        codes = np.arange(400) % 4
        face = mechanism.face_value(mechanism.randomise(mechanism.inputs(codes), seed=1))
        if face is not None:
            assert face.shape == (400,)
            assert (face == codes).mean() > 0.9


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [2, 9, 33, 300])
def test_numpy_and_compiled_paths_give_the_same_bits(name: str, size: int, monkeypatch: pytest.MonkeyPatch):
    for mechanism in examples(name, size):
        values = draw(mechanism, 700)
        monkeypatch.setattr(compiled, "_least", 1 << 60)
        plain = mechanism.randomise(values, seed=3, offset=11)
        sums = mechanism.aggregate(plain).sums
        monkeypatch.setattr(compiled, "_least", 0)
        assert_same(plain, mechanism.randomise(values, seed=3, offset=11))
        np.testing.assert_array_equal(sums, mechanism.aggregate(plain).sums)


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_chunks_agree_with_the_whole(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled, "_least", path)
    monkeypatch.setattr(arrays, "CHUNK", 64)
    for size in (3, 20, 70):
        mechanism = usual(name, size)
        values = draw(mechanism, 101)
        whole = mechanism.randomise(values, seed=8)
        parts = [
            mechanism.randomise(values[start : start + 37], seed=8, offset=start)
            for start in range(0, 101, 37)
        ]
        assert_same(whole, Reports.joined(parts))


@pytest.mark.parametrize("name", RUN)
def test_merged_aggregates_estimate_as_all_reports_do(name: str):
    mechanism = usual(name, 6)
    reports = mechanism.randomise(draw(mechanism, 501), seed=2)
    whole = mechanism.aggregate(reports)
    merged = mechanism.aggregate(reports[300:]) + mechanism.aggregate(reports[:0])
    merged = merged + mechanism.aggregate(reports[:300])
    assert merged.reports == whole.reports
    np.testing.assert_array_equal(merged.sums, whole.sums)
    if name in ESTIMATING:
        np.testing.assert_array_equal(mechanism.estimate(merged), mechanism.estimate(whole))


@pytest.mark.parametrize("name", RUN)
def test_empty_and_single_inputs(name: str):
    mechanism = usual(name, 4)
    empty = mechanism.randomise(np.array([], dtype=np.int64), seed=1)
    assert len(empty) == 0
    assert mechanism.aggregate(empty).reports == 0
    with pytest.raises(InputError):
        mechanism.estimate(mechanism.aggregate(empty))
    single = mechanism.randomise(mechanism.inputs(np.array([1])), seed=1)
    assert mechanism.aggregate(single).reports == 1


@pytest.mark.parametrize("name", RUN)
def test_values_that_it_does_not_take_are_refused(name: str):
    codes = ([0, 4], [-1, 2], np.array([4], dtype=np.uint8), [[0, 1]], ["a"])
    numbers = ([math.nan], [math.inf], [[1.0]], ["a"])
    for mechanism in examples(name, 4):
        for bad in codes if mechanism.takes == "codes" else numbers:
            with pytest.raises(InputError, match="`values` must be"):
                mechanism.randomise(bad, seed=1)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.estimates == "mean"])
def test_numbers_are_kept_within_the_bounds(name: str):
    mechanism = usual(name, 4)
    outside = mechanism.randomise([-50.0, 50.0], seed=1)
    assert_same(outside, mechanism.randomise([mechanism.lower, mechanism.upper], seed=1))


@pytest.mark.parametrize("name", RUN)
def test_seeded_is_reproducible_and_says_so(name: str):
    mechanism = usual(name, 50)
    values = draw(mechanism, 400)
    one, again, other = (mechanism.randomise(values, seed=seed) for seed in (4, 4, 5))
    assert_same(one, again)
    assert one.is_simulation
    assert is_noisy(mechanism) != np.array_equal(one.values, other.values)


@pytest.mark.parametrize("name", RUN)
def test_unseeded_is_secure_and_never_the_same(name: str):
    mechanism = usual(name, 20)
    if mechanism.form.encoding == "numbers":
        pytest.importorskip("opendp", reason="secure noise on numbers needs the extra numeric")
    values = draw(mechanism, 100)
    one, other = mechanism.randomise(values), mechanism.randomise(values)
    assert not one.is_simulation
    assert is_noisy(mechanism) != np.array_equal(one.values, other.values)


@pytest.mark.parametrize("name", ESTIMATING)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_secure_reports_have_the_stated_law_too(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    """Secure noise has no fixed seed; 7 standard errors give one false alarm in 4e11 comparisons."""
    monkeypatch.setattr(compiled, "_least", path)
    mechanism = usual(name, 4, 2.0)
    if mechanism.form.encoding == "numbers":
        pytest.importorskip("opendp", reason="secure noise on numbers needs the extra numeric")
    codes = np.random.default_rng(4).choice(4, 10_000, p=skewed(4))
    seen = np.bincount(codes, minlength=4) / len(codes)
    estimate = mechanism.estimate(mechanism.aggregate(mechanism.randomise(mechanism.inputs(codes))))
    error = np.abs(estimate - truth_of(mechanism, seen))
    assert (error <= 7 * np.sqrt(mechanism.variance(len(codes), seen)) + 1e-9).all()


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_arrow_round_trip(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    import pyarrow as pa

    monkeypatch.setattr(compiled, "_least", path)
    mechanism = usual(name, 12)
    reports = mechanism.randomise(draw(mechanism, 30), seed=6)
    column = reports_to_arrow(reports)
    back = reports_from_arrow(column, is_simulation=True)
    assert_same(reports, back)
    assert_same(reports[5:20], reports_from_arrow(column[5:20], is_simulation=True))
    assert_same(reports, reports_from_arrow(pa.chunked_array([column[:9], column[9:]]), is_simulation=True))
    np.testing.assert_array_equal(mechanism.aggregate(back).sums, mechanism.aggregate(reports).sums)


@pytest.mark.parametrize("name", MECHANISMS)
def test_plan_round_trip(name: str):
    attribute = categorical("colour", ["red", "green", "blue"])
    for parameters in KINDS[name].examples(3):
        epsilon = 1.5 if KINDS[name].has_budget else None
        plan = Plan((Release(attribute, name, epsilon, 2, parameters),))
        assert Plan.from_toml(plan.to_toml()) == plan
        assert Plan.from_json(plan.to_json()) == plan
        mechanism = plan["colour"].randomiser()
        assert mechanism == Plan.from_toml(plan.to_toml())["colour"].randomiser()
        assert plan["colour"].channel().epsilon <= 2 * mechanism.epsilon


@pytest.mark.parametrize("name", MECHANISMS)
def test_parameters_are_named_and_others_refused(name: str):
    kind = KINDS[name]
    epsilon = 1.0 if kind.has_budget else None
    for parameters in kind.examples(4):
        assert set(parameters) <= set(kind.parameters)
    with pytest.raises(InputError, match="has no parameter 'nonsense'"):
        make(name, 4, epsilon, {"nonsense": 1})


@pytest.mark.parametrize("name", [name for name in BUDGETED if KINDS[name].makes_reports])
def test_stated_scales_make_likelihoods_probabilities(name: str):
    """A report's probability at one budget over that at another averages to 1 under the other.

    Of 40,000 reports; the standard error is computed, and 5.5 of them are passed by chance once in 1e7.
    """
    for mechanism in examples(name, 4, 1.0):
        codes = np.repeat(np.arange(4), 10_000)
        reports = mechanism.randomise(mechanism.inputs(codes), seed=5)
        before, other = mechanism.log_scales(reports), mechanism.at(1.3)
        if before is None:
            assert other.log_scales(reports) is None
            continue
        logs = other.log_scales(reports) - before
        logs += np.log(other.likelihoods(reports) / mechanism.likelihoods(reports))[np.arange(40_000), codes]
        for ratios in np.exp(logs).reshape(4, -1):
            assert abs(ratios.mean() - 1) < 5.5 * ratios.std() / 100


@pytest.mark.parametrize("name", BUDGETED)
def test_parameters_to_hold_are_kept_at_another_budget(name: str):
    for mechanism in examples(name, 9, 1.0):
        held = {**mechanism.held}
        assert make(name, 9, 2.5, {**next(iter(KINDS[name].examples(9))), **held}).held == held
        assert mechanism.at(0.7).held == held
        assert mechanism.at(0.7).nominal_budget == 0.7


@pytest.mark.parametrize("name", ESTIMATING)
@pytest.mark.parametrize("epsilon", [1e-6, 20.0])
def test_the_ends_of_the_budget_range_estimate_within_their_variance(name: str, epsilon: float):
    """One comparison for each value at 7 standard errors; a rare value at 20 may be seen once by chance."""
    mechanism = usual(name, 4, epsilon)
    shares = skewed(4)
    reports = mechanism.randomise(draw(mechanism, 5_000, shares), seed=12)
    error = np.abs(mechanism.estimate(mechanism.aggregate(reports)) - truth_of(mechanism, shares))
    assert (error <= 7 * np.sqrt(mechanism.variance(5_000, shares))).all()


FORGED = 7


def replaced(reports: Reports, **parts: object) -> Reports:
    return Reports(**{"values": reports.values, "seeds": reports.seeds} | parts)


def with_row(reports: Reports, row: object) -> Reports:
    """Return a copy in which one report is another one."""
    values = reports.values.copy()
    values[FORGED] = row
    return replaced(reports, values=values)


def forged_numbers(mechanism: Mechanism, reports: Reports) -> Iterator[Reports]:
    """Numbers that are none, too far out, or between two steps of the grid."""
    row, grid = reports.values[FORGED], mechanism.form.grid
    high = grid.lower + (grid.steps + grid.reach + 3) * grid.step
    low = grid.lower - (grid.reach + 3) * grid.step
    for bad in (math.nan, math.inf, -math.inf, 8.5e9, high, low):
        yield with_row(reports, bad)
        yield with_row(reports, np.where(np.arange(np.size(row)) == 0, bad, row).reshape(np.shape(row)))
    yield with_row(reports, row + 0.4 * grid.step)


def forged_codes(mechanism: Mechanism, reports: Reports) -> Iterator[Reports]:
    """Codes, buckets or columns that do not exist; sets with one twice, or out of order."""
    count = mechanism.form.count
    for bad in (count, 2 * count, 255):
        yield with_row(reports, bad)
    if reports.values.ndim == 2 and reports.values.shape[1] > 1:
        yield with_row(reports, reports.values[FORGED, 0])
        yield with_row(reports, reports.values[FORGED, ::-1])
        yield with_row(reports, [*reports.values[FORGED, 1:], count])


def forged_bits(mechanism: Mechanism, reports: Reports) -> Iterator[Reports]:
    """Each bit after the last value's."""
    for place in range(mechanism.form.count, 8 * reports.values.shape[1]):
        row = reports.values[FORGED].copy()
        row[place // 8] |= 1 << (place % 8)
        yield with_row(reports, row)


def forged_forms(reports: Reports) -> Iterator[Reports]:
    """Arrays of another form: shape, type, seeds, a mask."""
    values, seeds = reports.values, np.arange(len(reports), dtype=np.uint64)
    yield replaced(reports, values=values[:, None])
    yield replaced(reports, values=values.astype(str))
    yield replaced(reports, values=np.ma.masked_array(values))
    yield replaced(reports, values=values.astype(np.int64 if values.dtype.kind == "f" else np.float64))
    yield replaced(reports, values=-1 - values.astype(np.int64))
    yield replaced(reports, seeds=seeds if reports.seeds is None else None)
    yield replaced(reports, seeds=seeds[:-1])


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("size", [3, 11])
def test_a_report_that_the_randomiser_cannot_have_made_is_refused(name: str, size: int):
    forgers = {"numbers": forged_numbers, "bits": forged_bits}
    for mechanism in examples(name, size, 0.7):
        reports = mechanism.randomise(draw(mechanism, 50), seed=1)
        assert mechanism.aggregate(reports).reports == 50
        forge = forgers.get(mechanism.form.encoding, forged_codes)
        readers = [mechanism.check, mechanism.aggregate, mechanism.likelihoods]
        for forged, read in product(forge(mechanism, reports), readers):
            with pytest.raises(InputError, match=rf"1 of 50 are not \(row {FORGED}, counted from 0\)"):
                read(forged)
        for forged, read in product(forged_forms(reports), readers):
            with pytest.raises(InputError, match="`reports` must be"):
                read(forged)


def test_a_refusal_names_a_few_rows_and_shows_no_report():
    mechanism = usual("she", 3)
    reports = mechanism.randomise(np.zeros(40, dtype=int), seed=1)
    reports.values[5:30] = 12345.0
    with pytest.raises(InputError, match=r"25 of 40 are not \(rows 5, 6, 7 and 22 more, counted") as caught:
        mechanism.aggregate(reports)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in RUN])
def test_what_cannot_be_run_refuses_every_report(name: str):
    mechanism = usual(name, 3)
    reports = Reports(np.zeros(2, dtype=np.uint8))
    for ask in (
        lambda: mechanism.form,
        lambda: mechanism.randomise([0]),
        lambda: mechanism.aggregate(reports),
        lambda: mechanism.likelihoods(reports),
        lambda: mechanism.tabulated(reports),
        mechanism.guess_accuracy,
    ):
        with pytest.raises(InputError, match="still to be chosen"):
            ask()
    assert mechanism.face_value(reports) is None


@pytest.mark.parametrize("name", RUN)
def test_the_largest_alphabet_works(name: str):
    mechanism = usual(name, 65_536, 3.0)
    reports = mechanism.randomise(mechanism.inputs(np.array([0, 1, 65_535])), seed=1)
    assert mechanism.aggregate(reports).reports == 3
    likely = mechanism.likelihoods(reports)
    assert likely.shape == (3, 65_536)
    assert (likely.max(axis=1) > 0).all()


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None])
@pytest.mark.parametrize("name", BUDGETED)
def test_bad_budgets_are_refused(name: str, epsilon: object):
    if name == "rappor" and epsilon is None:
        return  # its noise can be given instead
    with pytest.raises(InputError, match="`epsilon`"):
        usual(name, 4, epsilon)


@pytest.mark.parametrize("size", [1, 0, -3, 2.5, 65_537])
@pytest.mark.parametrize("name", [name for name in BUDGETED if KINDS[name].estimates != "mean"])
def test_bad_sizes_are_refused(name: str, size: object):
    with pytest.raises(InputError, match="`size` must be"):
        create(name, size, 1.0)


# --- broken copies turn the contract red -----------------------------------------------------------------


class NeverClearing(Rappor):
    """The defect of a well-known client: a set bit is never flipped to 0."""

    def permanent(self, values, *, seed=None, offset=0):
        stored = super().permanent(values, seed=seed, offset=offset)
        codes = np.asarray(values)
        stored.values[np.arange(len(codes)), codes >> 3] |= (1 << (codes & 7)).astype(np.uint8)
        return stored


class TruthFirst(SubsetSelection):
    """The defect of another: the true value stands first in the set."""

    def randomise(self, values, *, seed=None, offset=0):
        reports = super().randomise(values, seed=seed, offset=offset)
        for row, code in zip(reports.values, values, strict=True):
            if code in row:
                row[:] = [code, *(value for value in row if value != code)]
        return reports

    def check(self, reports):
        return reports.values  # nor does it look at the order


class WithoutAddend(OptimisedHashing):
    """Multiply-shift hashing, whose values collide too often."""

    def randomise(self, values, *, seed=None, offset=0):  # noqa: ARG002 - the broken copy has no chunks
        seeds = np.random.default_rng(1).integers(0, 1 << 32, len(values), dtype=np.uint64) << np.uint64(32)
        buckets = self.hashed(values, seeds)
        return Reports(self.response.randomise(buckets, seed=seed).values, seeds, True)


class WithoutHold(SubsetSelection):
    """Sets that narrow with the budget, so that a smaller budget is no post-processing of a larger one."""

    def at(self, nominal_budget):
        return SubsetSelection(self.size, nominal_budget, self.width - 2)


def test_a_bit_that_is_never_cleared_turns_the_contract_red():
    check_likelihoods(Rappor(3, 1.0))
    with pytest.raises(AssertionError):
        check_likelihoods(NeverClearing(3, 1.0))
    with pytest.raises(AssertionError):
        check_estimate(NeverClearing(3, 1.0))


def test_a_true_value_that_stands_first_turns_the_contract_red():
    check_encoding(SubsetSelection(5, 0.5, 3))
    with pytest.raises(AssertionError):
        check_encoding(TruthFirst(5, 0.5, 3), rows=2_000)
    with pytest.raises(InputError, match="rising order"):
        SubsetSelection(5, 0.5, 3).aggregate(TruthFirst(5, 0.5, 3).randomise([3] * 100, seed=1))


def test_a_hash_that_collides_too_often_turns_the_contract_red():
    check_estimate(OptimisedHashing(5, 1.0, 2))
    with pytest.raises(AssertionError):
        check_estimate(WithoutAddend(5, 1.0, 2))


def test_a_parameter_that_follows_the_budget_turns_the_contract_red():
    check_degrades(SubsetSelection(5, 1.6, 3))
    with pytest.raises(AssertionError):
        check_degrades(WithoutHold(5, 1.6, 3))
