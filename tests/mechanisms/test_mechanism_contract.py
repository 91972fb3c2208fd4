"""The contract that every mechanism keeps.

The checks are plain functions of a mechanism, so that broken copies can be handed to them too (see the end).
Statistical checks use fixed seeds; each has a false-alarm rate of at most one in a million.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sidelight.foundation import arrays
from sidelight.foundation.bits import row_bytes
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import MECHANISMS, Reports, create, reports_from_arrow, reports_to_arrow
from sidelight.mechanisms.channel import FavouringChannel
from sidelight.mechanisms.exponential import Exponential
from sidelight.mechanisms.hadamard import HadamardResponse
from sidelight.mechanisms.hashing import Hashing, OptimisedHashing
from sidelight.mechanisms.noise import LAPLACE_REACH
from sidelight.mechanisms.rappor import Rappor
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.mechanisms.unary import Unary
from sidelight.plan import Plan, Release
from sidelight.schema import categorical

FALSE_ALARM = 1e-6
SIGMAS = 6.0  # two-sided 2e-9 each; fewer than 500 such comparisons are made
BOUNDS = {"lower": -1.0, "upper": 4.0}
UTILITY = [[3.0, 1.0, 0.0, 0.5], [0.0, 2.0, 1.0, 0.5], [0.0, 1.0, 4.0, 0.0]]

CODED = ["grr", "sue", "oue", "rappor", "blh", "olh", "the", "ss", "exp", "hadamard", "interval", "identity"]
NUMERIC = ["laplace", "gaussian", "discrete-laplace"]
EVERY = [*CODED, "she", *NUMERIC, "withheld"]
BUDGETED = [name for name in EVERY if name not in ("identity", "withheld")]


def make(name: str, size: int, epsilon: float = 1.0):
    if name in ("identity", "withheld"):
        return create(name, size)
    if name in NUMERIC:
        extra = {"delta": 1e-4} if name == "gaussian" else {}
        return create(name, size, epsilon, **BOUNDS, **extra)
    return create(name, size, epsilon)


def inputs(mechanism, rows: int, shares: np.ndarray | None = None) -> np.ndarray:
    """Draw values: codes, or the points of a numeric mechanism."""
    rng = np.random.default_rng(rows)
    codes = rng.choice(mechanism.size, rows, p=shares)
    return mechanism.support[codes] if mechanism.name in NUMERIC else codes


def skewed(size: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def assert_same(one: Reports, other: Reports) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.seeds is None) == (other.seeds is None)
    if one.seeds is not None:
        np.testing.assert_array_equal(one.seeds, other.seeds)


def supported(mechanism, reports: Reports) -> np.ndarray:
    """Return which values each report supports, shape (n, size)."""
    size, values = mechanism.size, reports.values
    if isinstance(mechanism, Unary | Rappor):
        return np.unpackbits(values, axis=1, bitorder="little")[:, :size].astype(bool)
    if isinstance(mechanism, Hashing):
        buckets = [mechanism.hashed(np.full(len(values), v), reports.seeds) for v in range(size)]
        return np.stack(buckets, axis=1) == values[:, None]
    if values.ndim == 2:
        return (values[:, :, None] == np.arange(size)).any(axis=1)
    return values[:, None] == np.arange(size)


def outcomes(mechanism, reports: Reports) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the different reports, as far as the channel tells them apart, and state their likelihoods."""
    channel = mechanism.channel
    if channel.family == "dense":
        found, place = np.unique(reports.values, return_inverse=True)
        return place, [channel.likelihood(int(value)) for value in found]
    assert isinstance(channel, FavouringChannel)
    sets, place = np.unique(supported(mechanism, reports), axis=0, return_inverse=True)
    if channel.family == "singletons":
        assert (sets.sum(axis=1) == 1).all()
    return place.reshape(-1), [channel.likelihood(np.flatnonzero(chosen)) for chosen in sets]


# --- the checks ------------------------------------------------------------------------------------------


def check_channel(mechanism, rows: int = 60_000) -> None:
    """Each report's counts under the values split as its stated likelihoods.

    Given how often a report was seen, its counts under the values are close to a multinomial split; fixing
    the number of people for each value only narrows it, so the chi-square limit is on the safe side.
    """
    size = mechanism.size
    codes = np.repeat(np.arange(size), rows)
    place, likelihoods = outcomes(mechanism, mechanism.randomise(codes, seed=17))
    counts = np.zeros((len(likelihoods), size))
    np.add.at(counts, (place, codes), 1)
    statistic, freedom = 0.0, 0
    for seen, likelihood in zip(counts, likelihoods, strict=True):
        expected = seen.sum() * likelihood / likelihood.sum()
        assert not seen[expected == 0].any(), "a report occurs where its channel says it cannot"
        possible = expected > 0
        if expected[possible].min() < 5:
            continue
        statistic += float(((seen - expected)[possible] ** 2 / expected[possible]).sum())
        freedom += int(possible.sum()) - 1
    assert freedom > 0 or mechanism.name == "identity"
    assert statistic <= stats.chi2.isf(FALSE_ALARM, max(freedom, 1))


def check_encoding(mechanism, rows: int = 20_000) -> None:
    """What a report supports (and its public seed) determines it: no order, no spare bit says more."""
    codes = inputs(mechanism, rows)
    reports = mechanism.randomise(codes, seed=5)
    if mechanism.channel.family == "dense":
        assert reports.values.max() < mechanism.channel.matrix().shape[1]
        return
    if isinstance(mechanism, Hashing):
        assert reports.values.max() < mechanism.buckets  # with its seed, a bucket is what it supports
        return
    place = np.unique(supported(mechanism, reports), axis=0, return_inverse=True)[1]
    values = reports.values.reshape(len(reports), -1)
    first = np.unique(place.reshape(-1), return_index=True)[1]
    np.testing.assert_array_equal(values, values[first][place.reshape(-1)])


def check_estimate(mechanism, runs: int = 2_000, people: int = 200) -> None:
    """Estimates have the right mean and the stated variance, over many collections of new people."""
    shares = skewed(mechanism.size)
    values = inputs(mechanism, runs * people, shares)
    reports = mechanism.randomise(values, seed=23)
    estimates = np.array(
        [
            mechanism.estimate(mechanism.aggregate(reports[start : start + people]))
            for start in range(0, runs * people, people)
        ]
    )
    truth = np.array([shares @ mechanism.support]) if mechanism.name in NUMERIC else shares
    stated = mechanism.variance(people, shares)
    error = np.abs(estimates.mean(axis=0) - truth)
    assert (error <= SIGMAS * np.sqrt(stated / runs) + 1e-9).all()
    squares = (estimates - truth) ** 2
    spread = squares.std(axis=0) / math.sqrt(runs)
    assert (np.abs(squares.mean(axis=0) - stated) <= SIGMAS * spread + 1e-15).all()


def exponential(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 90
        return Fraction(Decimal(epsilon).exp().next_minus())


def check_budget_kept(mechanism, epsilon: float) -> None:
    """The realised budget is at most the nominal one, in exact arithmetic."""
    if hasattr(mechanism, "factor"):
        assert 1 < mechanism.factor <= exponential(epsilon)
    elif hasattr(mechanism, "exact_epsilon"):
        assert mechanism.exact_epsilon <= Fraction(epsilon)
    assert 0 < mechanism.epsilon <= epsilon


# --- every mechanism keeps it ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_stated_channel_is_the_empirical_one(name: str, size: int, epsilon: float):
    check_channel(make(name, size, epsilon))


@pytest.mark.parametrize("width", [2, 3])
def test_wide_subsets_and_other_utilities_have_their_stated_channel(width: int):
    check_channel(create("ss", 5, 1.0, width=width))
    check_channel(create("exp", 5, 2.0, utility="distance"))
    check_channel(create("exp", 3, 2.0, utility=UTILITY))
    check_channel(create("rappor", 3, f=0.3, p=0.2, q=0.9))
    check_channel(create("olh", 4, 1.0, g=width + 3))


@pytest.mark.parametrize("name", CODED)
def test_encoding_carries_nothing(name: str):
    check_encoding(make(name, 11))
    if name == "ss":
        check_encoding(create(name, 5, 0.5, width=3))


@pytest.mark.parametrize("name", [name for name in EVERY if name != "withheld"])
@pytest.mark.parametrize("size", [2, 4])
def test_estimate_is_unbiased_with_the_stated_variance(name: str, size: int):
    check_estimate(make(name, size))


def test_estimate_of_other_parameters_is_unbiased_with_the_stated_variance():
    check_estimate(create("exp", 3, 4.0, utility=UTILITY))
    check_estimate(create("exp", 3, 8.0, utility="distance"))
    check_estimate(create("ss", 6, 1.0, width=3))
    check_estimate(create("olh", 5, 1.0, g=7))
    check_estimate(create("rappor", 4, f=0.25, p=0.25, q=0.8))


@pytest.mark.parametrize("name", BUDGETED)
@pytest.mark.parametrize("size", [2, 3, 100, 65_536])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 20.0])
def test_realised_budget_never_exceeds_the_nominal_one(name: str, size: int, epsilon: float):
    mechanism = make(name, size, epsilon)
    check_budget_kept(mechanism, epsilon)
    if name in ("grr", "oue", "sue", "ss", "olh", "blh", "hadamard", "she", "laplace"):
        assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-3)  # a word has 2^64 values to share out
    channel = mechanism.channel
    if channel.family != "continuous":
        assert channel.epsilon == pytest.approx(mechanism.epsilon, rel=1e-8)


@pytest.mark.parametrize("name", ["exp", "interval", "hadamard"])
def test_factor_bounds_every_ratio_of_the_stated_matrix(name: str):
    for size in (2, 3, 7, 64):
        extra = {"utility": "distance"} if name == "exp" else {}
        mechanism = create(name, size, 3.0, **extra)
        cells = mechanism.channel.matrix()
        worst = float((cells.max(axis=0) / cells.min(axis=0)).max())
        assert worst <= float(mechanism.factor) * (1 + 1e-12)
        assert math.log(worst) == pytest.approx(mechanism.epsilon, rel=1e-6)
    table = create("exp", 3, 3.0, utility=UTILITY)
    assert table.channel.epsilon == pytest.approx(table.epsilon, rel=1e-9)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("size", [2, 9, 33, 300])
def test_numpy_and_compiled_paths_give_the_same_bits(name: str, size: int, monkeypatch: pytest.MonkeyPatch):
    mechanism = make(name, size)
    values = inputs(mechanism, 700)
    monkeypatch.setattr(arrays, "LARGE", 1 << 60)
    plain = mechanism.randomise(values, seed=3, offset=11)
    sums = mechanism.aggregate(plain).sums
    monkeypatch.setattr(arrays, "LARGE", 0)
    assert_same(plain, mechanism.randomise(values, seed=3, offset=11))
    np.testing.assert_array_equal(sums, mechanism.aggregate(plain).sums)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_chunks_agree_with_the_whole(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrays, "LARGE", path)
    monkeypatch.setattr(arrays, "CHUNK", 64)
    for size in (3, 20, 70):
        mechanism = make(name, size)
        values = inputs(mechanism, 101)
        whole = mechanism.randomise(values, seed=8)
        parts = [
            mechanism.randomise(values[start : start + 37], seed=8, offset=start)
            for start in range(0, 101, 37)
        ]
        assert_same(whole, Reports.joined(parts))


@pytest.mark.parametrize("name", EVERY)
def test_merged_aggregates_estimate_as_all_reports_do(name: str):
    mechanism = make(name, 6)
    reports = mechanism.randomise(inputs(mechanism, 501), seed=2)
    whole = mechanism.aggregate(reports)
    merged = mechanism.aggregate(reports[300:]) + mechanism.aggregate(reports[:0])
    merged = merged + mechanism.aggregate(reports[:300])
    assert merged.reports == whole.reports
    np.testing.assert_array_equal(merged.sums, whole.sums)
    if name != "withheld":
        np.testing.assert_array_equal(mechanism.estimate(merged), mechanism.estimate(whole))


@pytest.mark.parametrize("name", EVERY)
def test_empty_and_single_inputs(name: str):
    mechanism = make(name, 4)
    empty = mechanism.randomise(np.array([], dtype=np.int64), seed=1)
    assert len(empty) == 0
    assert mechanism.aggregate(empty).reports == 0
    with pytest.raises(InputError):
        mechanism.estimate(mechanism.aggregate(empty))
    single = mechanism.randomise([1], seed=1)
    assert mechanism.aggregate(single).reports == 1


@pytest.mark.parametrize("name", [name for name in EVERY if name not in NUMERIC])
def test_codes_outside_the_domain_are_refused(name: str):
    mechanism = make(name, 4)
    for bad in ([0, 4], [-1, 2], np.array([4], dtype=np.uint8), [[0, 1]], ["a"]):
        with pytest.raises(InputError, match="`values` must be"):
            mechanism.randomise(bad, seed=1)


@pytest.mark.parametrize("name", NUMERIC)
def test_numbers_are_checked_and_kept_within_the_bounds(name: str):
    mechanism = make(name, 4)
    for bad in ([math.nan], [math.inf], [[1.0]], ["a"]):
        with pytest.raises(InputError, match="`values` must be"):
            mechanism.randomise(bad, seed=1)
    outside = mechanism.randomise([-50.0, 50.0], seed=1)
    assert_same(outside, mechanism.randomise([-1.0, 4.0], seed=1))


@pytest.mark.parametrize("name", EVERY)
def test_seeded_is_reproducible_and_says_so(name: str):
    mechanism = make(name, 50)
    values = inputs(mechanism, 400)
    one, again, other = (mechanism.randomise(values, seed=seed) for seed in (4, 4, 5))
    assert_same(one, again)
    assert one.is_simulation
    if name not in ("identity", "withheld"):
        assert not np.array_equal(one.values, other.values)


@pytest.mark.parametrize("name", EVERY)
def test_unseeded_is_secure_and_never_the_same(name: str):
    if name in NUMERIC or name == "she":
        pytest.importorskip("opendp", reason="secure noise on numbers needs the extra numeric")
    mechanism = make(name, 20)
    values = inputs(mechanism, 100)
    one, other = mechanism.randomise(values), mechanism.randomise(values)
    assert not one.is_simulation
    if name not in ("identity", "withheld"):
        assert not np.array_equal(one.values, other.values)


@pytest.mark.parametrize("name", [name for name in CODED if name != "identity"])
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_secure_reports_have_the_stated_law_too(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    """Secure noise has no fixed seed; 7 standard errors give one false alarm in 4e11 comparisons."""
    monkeypatch.setattr(arrays, "LARGE", path)
    mechanism = make(name, 4, 2.0)
    shares = skewed(4)
    values = inputs(mechanism, 40_000, shares)
    seen = np.bincount(values, minlength=4) / len(values)
    estimate = mechanism.estimate(mechanism.aggregate(mechanism.randomise(values)))
    assert (np.abs(estimate - seen) <= 7 * np.sqrt(mechanism.variance(len(values), seen))).all()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_arrow_round_trip(name: str, path: int, monkeypatch: pytest.MonkeyPatch):
    import pyarrow as pa

    monkeypatch.setattr(arrays, "LARGE", path)
    mechanism = make(name, 12)
    reports = mechanism.randomise(inputs(mechanism, 30), seed=6)
    column = reports_to_arrow(reports)
    back = reports_from_arrow(column, is_simulation=True)
    assert_same(reports, back)
    assert_same(reports[5:20], reports_from_arrow(column[5:20], is_simulation=True))
    assert_same(reports, reports_from_arrow(pa.chunked_array([column[:9], column[9:]]), is_simulation=True))
    np.testing.assert_array_equal(mechanism.aggregate(back).sums, mechanism.aggregate(reports).sums)


@pytest.mark.parametrize("name", [*EVERY, "any"])
def test_plan_round_trip(name: str):
    parameters = {**BOUNDS, "points": [-1.0, 0.0, 4.0]} if name in NUMERIC else {}
    parameters |= {"gaussian": {"delta": 1e-5}, "exp": {"utility": UTILITY}, "rappor": {"q": 0.8}}.get(
        name, {}
    )
    epsilon = None if name in ("identity", "withheld") else 1.5
    attribute = categorical("colour", ["red", "green", "blue"])
    plan = Plan((Release(attribute, name, epsilon, 2, parameters),))
    assert Plan.from_toml(plan.to_toml()) == plan
    assert Plan.from_json(plan.to_json()) == plan
    mechanism = plan["colour"].randomiser()
    assert mechanism == Plan.from_toml(plan.to_toml())["colour"].randomiser()
    assert plan["colour"].channel().epsilon <= 2 * mechanism.epsilon or name == "withheld"


@pytest.mark.parametrize("name", [name for name in EVERY if name != "withheld"])
@pytest.mark.parametrize("epsilon", [1e-6, 20.0])
def test_the_ends_of_the_budget_range_estimate_within_their_variance(name: str, epsilon: float):
    """One comparison for each value at 7 standard errors; a rare value at 20 may be seen once by chance."""
    mechanism = make(name, 4, epsilon)
    shares = skewed(4)
    values = inputs(mechanism, 5_000, shares)
    truth = np.array([shares @ mechanism.support]) if name in NUMERIC else shares
    estimate = mechanism.estimate(mechanism.aggregate(mechanism.randomise(values, seed=12)))
    assert (np.abs(estimate - truth) <= 7 * np.sqrt(mechanism.variance(len(values), shares))).all()


FORGED = 7


def replaced(reports: Reports, **parts: object) -> Reports:
    return Reports(**{"values": reports.values, "seeds": reports.seeds} | parts)


def with_row(reports: Reports, row: object) -> Reports:
    """Return a copy in which one report is another one."""
    values = reports.values.copy()
    values[FORGED] = row
    return replaced(reports, values=values)


def forged_numbers(mechanism, reports: Reports):
    """Numbers that are none, too far out, or between two steps of the grid."""
    row = reports.values[FORGED]
    step = mechanism.step if mechanism.name in NUMERIC else 2.0**-20
    noise = getattr(mechanism, "reach", LAPLACE_REACH) * mechanism.scale * step
    top = mechanism.upper if mechanism.name in NUMERIC else 1.0
    bottom = mechanism.lower if mechanism.name in NUMERIC else 0.0
    for bad in (math.nan, math.inf, -math.inf, 8.5e9, top + noise + 3 * step, bottom - noise - 3 * step):
        yield with_row(reports, bad)
        yield with_row(reports, np.where(np.arange(np.size(row)) == 0, bad, row).reshape(np.shape(row)))
    yield with_row(reports, row + 0.4 * step)


def forged_codes(mechanism, reports: Reports):
    """Codes, buckets or columns that do not exist; sets with one twice, or out of order."""
    outputs = getattr(mechanism, "buckets", getattr(mechanism, "columns", mechanism.size))
    outputs = 1 if mechanism.name == "withheld" else outputs
    for bad in (outputs, 2 * outputs, 255):
        yield with_row(reports, bad)
    if reports.values.ndim == 2 and reports.values.shape[1] > 1:
        yield with_row(reports, reports.values[FORGED, 0])
        yield with_row(reports, reports.values[FORGED, ::-1])
        yield with_row(reports, [*reports.values[FORGED, 1:], outputs])


def forged_bits(mechanism, reports: Reports):
    """Each bit after the last value's."""
    for place in range(mechanism.size, 8 * reports.values.shape[1]):
        row = reports.values[FORGED].copy()
        row[place // 8] |= 1 << (place % 8)
        yield with_row(reports, row)


def forged_forms(reports: Reports):
    """Arrays of another form: shape, type, seeds, a mask."""
    values, seeds = reports.values, np.arange(len(reports), dtype=np.uint64)
    yield replaced(reports, values=values[:, None])
    yield replaced(reports, values=values.astype(str))
    yield replaced(reports, values=np.ma.masked_array(values))
    yield replaced(reports, values=values.astype(np.int64 if values.dtype.kind == "f" else np.float64))
    yield replaced(reports, values=-1 - values.astype(np.int64))
    yield replaced(reports, seeds=seeds if reports.seeds is None else None)
    yield replaced(reports, seeds=seeds[:-1])


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("size", [3, 11])
def test_a_report_that_the_randomiser_cannot_have_made_is_refused(name: str, size: int):
    mechanism = make(name, size, 0.7)
    reports = mechanism.randomise(inputs(mechanism, 50), seed=1)
    assert mechanism.aggregate(reports).reports == 50
    is_packed = isinstance(mechanism, Unary | Rappor)
    forge = forged_numbers if reports.values.dtype.kind == "f" else forged_bits if is_packed else forged_codes
    for forged in forge(mechanism, reports):
        with pytest.raises(InputError, match=rf"1 of 50 are not \(row {FORGED}, counted from 0\)"):
            mechanism.aggregate(forged)
    for forged in forged_forms(reports):
        with pytest.raises(InputError, match="`reports` must be"):
            mechanism.aggregate(forged)


def test_a_refusal_names_a_few_rows_and_shows_no_report():
    mechanism = make("she", 3)
    reports = mechanism.randomise(np.zeros(40, dtype=int), seed=1)
    reports.values[5:30] = 12345.0
    with pytest.raises(InputError, match=r"25 of 40 are not \(rows 5, 6, 7 and 22 more, counted") as caught:
        mechanism.aggregate(reports)
    assert "12345" not in str(caught.value)


def test_every_registered_mechanism_is_under_contract():
    assert set(MECHANISMS) == {*EVERY, "any"}


@pytest.mark.parametrize("name", EVERY)
def test_the_largest_alphabet_works(name: str):
    mechanism = make(name, 65_536, 3.0)
    if name in NUMERIC:
        return
    reports = mechanism.randomise([0, 1, 65_535], seed=1)
    assert mechanism.aggregate(reports).reports == 3
    if name in ("sue", "oue", "the", "rappor"):
        assert reports.values.shape == (3, row_bytes(65_536))
    if isinstance(mechanism, HadamardResponse | Exponential):
        likely = mechanism.channel.likelihood(int(reports.values[0]))
        assert likely.shape == (65_536,)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None])
@pytest.mark.parametrize("name", [*BUDGETED, "any"])
def test_bad_budgets_are_refused(name: str, epsilon: object):
    if name == "rappor" and epsilon is None:
        return
    with pytest.raises(InputError, match="`epsilon`"):
        make(name, 4, epsilon) if name != "any" else create(name, 4, epsilon)


@pytest.mark.parametrize("size", [1, 0, -3, 2.5, 65_537])
@pytest.mark.parametrize("name", [name for name in BUDGETED if name not in NUMERIC])
def test_bad_sizes_are_refused(name: str, size: object):
    with pytest.raises(InputError, match="`size` must be"):
        make(name, size)


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


class WithoutAddend(OptimisedHashing):
    """Multiply-shift hashing, whose values collide too often."""

    def randomise(self, values, *, seed=None, offset=0):  # noqa: ARG002 - the broken copy has no chunks
        seeds = np.random.default_rng(1).integers(0, 1 << 32, len(values), dtype=np.uint64) << np.uint64(32)
        buckets = self.hashed(values, seeds)
        return Reports(self.response.randomise(buckets, seed=seed).values, seeds, True)


def test_a_bit_that_is_never_cleared_turns_the_contract_red():
    check_channel(Rappor(3, 1.0))
    with pytest.raises(AssertionError):
        check_channel(NeverClearing(3, 1.0))
    with pytest.raises(AssertionError):
        check_estimate(NeverClearing(3, 1.0))


def test_a_true_value_that_stands_first_turns_the_contract_red():
    check_encoding(SubsetSelection(5, 0.5, 3))
    with pytest.raises(AssertionError):
        check_encoding(TruthFirst(5, 0.5, 3), rows=2_000)
    with pytest.raises(InputError, match="rising order"):
        TruthFirst(5, 0.5, 3).aggregate(TruthFirst(5, 0.5, 3).randomise([3] * 100, seed=1))


def test_a_hash_that_collides_too_often_turns_the_contract_red():
    check_estimate(OptimisedHashing(5, 1.0, 2))
    with pytest.raises(AssertionError):
        check_estimate(WithoutAddend(5, 1.0, 2))
