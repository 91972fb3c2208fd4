"""The mechanisms where they are easily wrong: rounding, other types of numbers, sums, what is refused."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sidelight.foundation import compiled
from sidelight.foundation.errors import InputError, SidelightError, TooLargeError, check_number, check_whole
from sidelight.mechanisms import (
    MECHANISMS,
    Aggregate,
    AnyChannel,
    DenseChannel,
    FavouringChannel,
    GaussianChannel,
    LaplaceChannel,
    ReportForm,
    Reports,
    create,
    reports_from_arrow,
    reports_to_arrow,
)
from sidelight.mechanisms.exact import WORDS, exp_below, least_share
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.longitudinal.rappor import Rappor
from sidelight.mechanisms.numeric import gaussian_delta, least_multiple
from sidelight.plan import Plan, Release
from sidelight.schema import categorical

NUMERIC = ("laplace", "gaussian", "discrete-laplace")
FREE = ("identity", "withheld")
BUDGETED = [name for name in MECHANISMS if name not in FREE]
RUNNABLE = [name for name in MECHANISMS if name != "any"]
COLOUR = categorical("colour", ["red", "green", "blue", "grey"])


def parameters_of(name: str) -> dict[str, float]:
    bounds = {"lower": 0.0, "upper": 4.0} if name in NUMERIC else {}
    return bounds | ({"delta": 1e-5} if name == "gaussian" else {})


def make(name: str, size: object = 4, epsilon: object = 1.0):
    return create(name, size, None if name in FREE else epsilon, **parameters_of(name))


# --- numbers that are moved to a grid --------------------------------------------------------------------


def test_points_off_the_grid_are_stated_as_they_are_reported():
    """At a budget of 20 a report is the moved point but for one in 300 at most, so medians are exact."""
    mechanism = create("discrete-laplace", 4, 20.0, lower=0, upper=4)
    assert mechanism.grid_points.tolist() == [0.0, 1.0, 3.0, 4.0]
    assert mechanism.channel.points.tolist() == [0.0, 1.0, 3.0, 4.0]
    given = np.repeat(np.linspace(0, 4, 4), 501)
    medians = np.median(mechanism.randomise(given, seed=1).values.reshape(4, -1), axis=1)
    assert medians.tolist() == mechanism.grid_points.tolist()
    shares = np.array([0.0, 0.5, 0.5, 0.0])
    noise = mechanism.noise_variance
    assert mechanism.variance(1, shares)[0] == pytest.approx(1.0 + noise)


@pytest.mark.parametrize("name", NUMERIC)
def test_bounds_too_far_from_zero_for_their_steps_are_refused(name: str):
    far = {"lower": 1e18, "upper": 1e18 + 4096.0}
    extra = {"delta": 1e-5} if name == "gaussian" else {}
    with pytest.raises(InputError, match="`lower` must be so near to 0"):
        create(name, 2, 1.0, **far, **extra)


def test_a_grid_of_too_many_steps_is_refused():
    with pytest.raises(InputError, match="`grid` must be at least"):
        create("discrete-laplace", 2, 1.0, lower=0.0, upper=1e300, grid=1e-100)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-15])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_gaussian_noise_keeps_its_delta_with_a_margin_for_the_grid(delta: float, epsilon: float):
    mechanism = create("gaussian", 2, epsilon, lower=0, upper=1, delta=delta)
    assert mechanism.delta <= delta
    least = least_multiple(epsilon, delta)
    assert mechanism.scale / (1 << 24) >= least * (1 + 0.9e-9)
    assert gaussian_delta(epsilon, mechanism.scale / (1 << 24)) == mechanism.delta
    assert mechanism.repeated(10**16).delta == 1.0 if delta > 1e-15 else mechanism.repeated(2).delta > 0


# --- sums ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1e12, -1e300, math.inf, math.nan])
def test_a_report_beyond_the_grid_is_refused(value: float):
    laplace = create("laplace", 2, 1.0, lower=0.0, upper=1.0)
    with pytest.raises(
        InputError, match=r"-45\.05.. to 46\.05.., where noise can lead; 1 of 2 are not \(row 1,"
    ):
        laplace.aggregate(Reports(np.array([0.5, value])))
    with pytest.raises(InputError, match=r"from -90\.1... to 91\.1..., where noise can lead; 1 of 1 are not"):
        create("she", 2, 1.0).aggregate(Reports(np.array([[0.5, value]])))


@pytest.mark.parametrize("path", [0, 1 << 60], ids=["compiled", "numpy"])
@pytest.mark.parametrize(("rows", "size"), [(1, 3), (2, 100), (7, 100), (129, 3), (130, 2)])
def test_every_number_of_a_histogram_is_added_and_looked_at(
    path: int, rows: int, size: int, monkeypatch: pytest.MonkeyPatch
):
    """Numbers are added in several places at once; each counts once, and a wrong one is seen anywhere."""
    monkeypatch.setattr(compiled, "_least", path)
    she = create("she", size, 1.0)
    whole = np.random.default_rng(5).integers(-(1 << 24), 1 << 24, (rows, size))
    numbers = whole / 2.0**20
    assert she.aggregate(Reports(numbers)).sums.tolist() == whole.sum(axis=0).tolist()
    for row in range(rows):
        for wrong in (numbers[row, -1] + 2.0**-21, 91.25, -90.25, 1e9, math.inf, math.nan):
            forged = numbers.copy()
            forged[row, -1] = wrong
            with pytest.raises(InputError, match=rf"1 of {rows} are not \(row {row},"):
                she.aggregate(Reports(forged))


@pytest.mark.parametrize("row", [0, 200, 333, 600, 999])
def test_a_number_beyond_the_limits_is_seen_anywhere_in_a_long_block(
    row: int, monkeypatch: pytest.MonkeyPatch
):
    """Squares are added up for some rows at a time."""
    monkeypatch.setattr(compiled, "_least", 0)
    numbers = np.zeros((1000, 64))
    numbers[row, 1] = -90.25
    with pytest.raises(InputError, match=rf"1 of 1000 are not \(row {row},"):
        create("she", 64, 1.0).aggregate(Reports(numbers))


@pytest.mark.parametrize("path", [0, 1 << 60], ids=["compiled", "numpy"])
def test_histograms_far_out_are_looked_at_one_by_one(path: int, monkeypatch: pytest.MonkeyPatch):
    """Where squares say nothing, each number is compared with the limits, 91.1 and -90.1 here."""
    monkeypatch.setattr(compiled, "_least", path)
    she = create("she", 2, 1.0)
    numbers = np.tile([[91.0, -90.0]], (1000, 1))
    assert she.aggregate(Reports(numbers)).sums.tolist() == [91_000 << 20, -90_000 << 20]
    numbers[999, 1] = -90.25
    with pytest.raises(InputError, match=r"1 of 1000 are not \(row 999,"):
        she.aggregate(Reports(numbers))


def test_sums_are_exact_or_refused():
    """Noise of 2^46 steps, the widest there is, leads to 2^51 steps and beyond."""
    step = 2.0**51 / (1 << 24)
    laplace = create("laplace", 2, 2.0**-22, lower=0.0, upper=1.0)
    kept = laplace.aggregate(Reports(np.array([step, -step] * 3000)))
    assert kept.sums.tolist() == [0]
    with pytest.raises(InputError, match="more than 64 bits"):
        laplace.aggregate(Reports(np.full(5000, step)))
    with pytest.raises(InputError, match="more than 64 bits"):
        create("she", 2, 2.0**-25).aggregate(Reports(np.full((5000, 2), 2.0**31)))
    half = laplace.aggregate(Reports(np.full(4000, step)))
    assert half.sums.tolist() == [4000 * 2**51]
    with pytest.raises(InputError, match="more than 64 bits"):
        half + half


def test_variances_of_extreme_bounds_do_not_raise():
    assert create("laplace", 2, 1.0, lower=-1e200, upper=1e200).variance(1, [0.5, 0.5]).tolist() == [math.inf]
    assert create("laplace", 2, 1.0, lower=0, upper=1e-100).variance(1, [0.5, 0.5])[0] == pytest.approx(
        2.25e-200
    )


def test_aggregates_of_different_mechanisms_do_not_mix():
    values = [0, 1, 2, 3]
    grr, ss = (make(name).aggregate(make(name).randomise(values, seed=1)) for name in ("grr", "ss"))
    with pytest.raises(InputError, match="only aggregates of the same mechanism"):
        grr + ss
    with pytest.raises(InputError, match="the aggregate is of 'ss', this mechanism is 'grr'"):
        make("grr").estimate(ss)
    unnamed = Aggregate(grr.reports, grr.sums)
    assert (grr + unnamed).mechanism == (unnamed + grr).mechanism == "grr"
    with pytest.raises(TypeError):
        grr + 3
    with pytest.raises(InputError, match="`aggregate` must be"):
        make("grr").estimate(np.ones(4))


# --- what reaches the server -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds",
    [np.arange(2, dtype=np.uint64), np.arange(4.0), np.arange(4), np.zeros((4, 1), dtype=np.uint64), [1] * 4],
)
def test_seeds_of_another_form_are_refused(seeds: object):
    with pytest.raises(InputError, match="`reports` must be"):
        make("olh").aggregate(Reports(np.zeros(4, dtype=np.uint8), seeds))


@pytest.mark.parametrize("path", [0, 1 << 60])
@pytest.mark.parametrize("dtype", [np.uint16, np.uint64])
def test_packed_bits_are_bytes(path: int, dtype: type, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled, "_least", path)
    rows = Reports(np.full((64, 1), 3, dtype=dtype))
    for name in ("oue", "rappor"):
        with pytest.raises(InputError, match="an array of bytes"):
            make(name).aggregate(rows)
    with pytest.raises(InputError, match="an array of bytes"):
        Rappor(4, 1.0).report(rows, seed=1)


@pytest.mark.parametrize("name", RUNNABLE)
def test_raw_and_masked_arrays_are_refused(name: str):
    mechanism = make(name)
    masked = np.ma.masked_array([0, 1], mask=[True, False])
    for bad in (np.zeros(3), [1, 2], None, Reports([0, 1]), Reports(masked)):
        with pytest.raises(InputError, match="`reports` must be"):
            mechanism.aggregate(bad)
    with pytest.raises(InputError, match="without a mask"):
        mechanism.randomise(masked, seed=1)
    with pytest.raises(InputError, match="`values` must be"):
        mechanism.randomise([[0], [1, 2]], seed=1)


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("offset", [-1, "1", None, 1.5, 1 << 41])
def test_offsets_are_checked(name: str, offset: object):
    with pytest.raises(InputError, match="`offset` must be a whole number"):
        make(name).randomise([0, 1], seed=1, offset=offset)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("times", [0, 1.5, "a", True])
def test_repetitions_are_checked(name: str, times: object):
    with pytest.raises(InputError, match="`times` must be a whole number"):
        make(name).repeated(times)


@pytest.mark.parametrize("name", [name for name in RUNNABLE if name != "withheld"])
@pytest.mark.parametrize("bad", [[0.5, 0.5], [math.nan] * 4, [-0.1, 1.1, 0, 0], ["a"] * 4, [[0.25] * 4]])
def test_frequencies_are_checked(name: str, bad: object):
    with pytest.raises(InputError, match="`frequencies` must be"):
        make(name).variance(10, bad)


@pytest.mark.parametrize(("name", "extra"), [("interval", {}), ("exp", {"utility": "distance"})])
def test_a_single_frequency_says_nothing_where_values_differ(name: str, extra: dict):
    with pytest.raises(InputError, match="4 numbers, one for each value"):
        create(name, 4, 1.0, **extra).variance(10, 0.0)


# --- other types of numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_numbers_of_numpy_make_the_same_mechanism(name: str):
    given = {key: np.float64(value) for key, value in parameters_of(name).items()}
    epsilon = None if name in FREE else np.float32(1.0)
    made = create(name, np.int64(4), epsilon, **given)
    assert made == make(name)
    assert type(made.size) is int
    assert made.channel.epsilon == make(name).channel.epsilon
    if name not in FREE:
        assert create(name, 4, Fraction(1), **parameters_of(name)) == made


def test_parameters_of_numpy_are_stored_as_plain_numbers():
    assert type(create("ss", 6, 1.0, width=np.int64(2)).width) is int
    assert type(create("olh", 6, 1.0, g=np.int16(3)).g) is int
    assert type(create("the", 6, 1.0, theta=np.float64(0.75)).theta) is float
    rappor = create("rappor", 6, f=np.float32(0.5), p=np.float32(0.5), q=np.float64(0.75))
    assert rappor == create("rappor", 6)
    edges = create("interval", 3, 1.0, edges=np.array([1, 2])).edges
    assert edges == (1.0, 2.0)
    assert type(edges[0]) is float
    table = np.array([[1, 0], [0, 1]])
    assert create("exp", 2, 1.0, utility=table) == create("exp", 2, 1.0, utility=table.tolist())


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        pytest.param(10**5000, id="endless"),
        np.array([1.0]),
        np.ones(2),
        "1",
        True,
        None,
        Decimal("sNaN"),
    ],
)
def test_what_is_no_number_is_refused(value: object):
    with pytest.raises(InputError, match="`epsilon` must be a finite number"):
        check_number("epsilon", value)


@pytest.mark.parametrize("value", [np.arange(2), np.float64(2.0), 2.0, "2", True])
def test_what_is_no_whole_number_is_refused(value: object):
    with pytest.raises(InputError, match="`size` must be a whole number"):
        check_whole("size", value, at_least=0)


def test_intervals_with_edges_always_cut():
    """Whole numbers are numbers too: 3 lies below an edge at 10."""
    mechanism = create("interval", 4, 20.0, edges=[10, 20, 30])
    whole = mechanism.randomise([3, 15, 25, 35], seed=1).values
    np.testing.assert_array_equal(whole, mechanism.randomise([3.0, 15.0, 25.0, 35.0], seed=1).values)
    for bad in ([math.nan], ["a"], [[1.0]]):
        with pytest.raises(InputError, match="`values` must be"):
            mechanism.randomise(bad, seed=1)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("interval", {"edges": None}, "`edges` must be a list of numbers"),
        ("interval", {"edges": 5}, "`edges` must be a list of numbers"),
        ("interval", {"edges": ["a", 1, 2]}, "`edges` must be a finite number"),
        ("laplace", {"lower": 0, "upper": 1, "points": 5}, "`points` must be a list of numbers"),
        ("exp", {"utility": [[1.0, 0.0], [1.0]]}, "`utility` must be"),
        ("exp", {"utility": [["1", "0"]] * 4}, "`utility` must be"),
        ("exp", {"utility": [[1e308, -1e308], [-1e308, 1e308]] * 2}, "`utility` must be numbers whose ratio"),
        ("exp", {"utility": [[1e300, 0.0], [1e300, 1e-310]] * 2}, "`utility` must be numbers whose ratio"),
        ("gaussian", {"lower": 0, "uper": 1}, "no parameter 'uper'"),
    ],
)
def test_parameters_of_another_form_are_refused(name: str, given: dict, message: str):
    with pytest.raises(InputError, match=message):
        create(name, 4, 1.0, **given)


def test_tiny_utilities_are_scaled_by_their_sensitivity():
    tiny = create("exp", 2, 2.0, utility=[[1e-310, 0.0], [0.0, 1e-310]])
    usual = create("exp", 2, 2.0, utility=[[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(tiny.channel.matrix(), usual.channel.matrix(), rtol=1e-9)


# --- budgets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BUDGETED if name not in ("any", "gaussian")])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-30])
def test_budgets_too_small_for_any_mechanism_are_refused(name: str, epsilon: float):
    with pytest.raises(InputError, match="`epsilon` must be large enough"):
        make(name, 4, epsilon)


def test_the_message_of_noise_too_large_shows_the_budget():
    with pytest.raises(InputError, match=r"at most 2\^46 steps \(here 2.1e\+36\), got 1e-30"):
        create("she", 3, 1e-30)


class Overspending(RandomisedResponse):
    """One word too few for each lie."""

    @property
    def other(self) -> int:
        return least_share(self.size, self.nominal_budget) - 1


def test_thresholds_that_overspend_are_found_when_a_mechanism_is_made():
    assert RandomisedResponse(4, 1.0).epsilon <= 1.0
    with pytest.raises(SidelightError, match="spend more than the `epsilon` of 1.0"):
        Overspending(4, 1.0)


@pytest.mark.parametrize(
    "name", ["grr", "sue", "oue", "olh", "blh", "ss", "hadamard", "exp", "interval", "she"]
)
def test_no_stated_budget_exceeds_the_nominal_one_by_an_ulp(name: str):
    for size in (2, 3, 7):
        for epsilon in np.random.default_rng(size).uniform(0.01, 12, 40).tolist():
            mechanism = make(name, size, epsilon)
            assert mechanism.channel.epsilon <= epsilon
            assert mechanism.channel.epsilon == mechanism.epsilon


@pytest.mark.parametrize("f", [5e-324, 1e-20, 2.0**-64, 0.1, 0.3, 1 / 3, 0.5, 0.7, 1 - 2.0**-53])
def test_rappor_rounds_its_noise_to_the_safe_side(f: float):
    made = Rappor.with_noise(4, f)
    with localcontext() as context:
        context.prec = 90
        limit = Fraction(Decimal(made.nominal_budget).exp())
    assert Fraction(made.lie, WORDS) >= Fraction(f) / 2
    assert made.factor_unlimited <= limit
    assert made.epsilon_unlimited <= made.nominal_budget
    if made.nominal_budget < 100:  # a budget that f just exceeds is refused
        short = math.nextafter(math.nextafter(made.nominal_budget, 0), 0)
        assert made.factor_unlimited > exp_below(short)
        with pytest.raises(InputError, match="more than its `epsilon`"):
            create("rappor", 4, short, f=f)


# --- channels --------------------------------------------------------------------------------------------


def test_the_guess_from_a_hash_is_marked_as_published():
    """All functions: 0.41899 for six values at a budget of 2; the family in use guesses right more often."""
    channel = create("olh", 6, 2.0).guess_channel()
    assert channel.is_model
    assert channel.claim == "published"
    assert create("oue", 6, 2.0).guess_channel().claim == "exact"
    assert create("olh", 6, 2.0).channel.claim == "certified"


def test_guesses_of_many_values_are_made_or_refused_for_their_size():
    for name in ("hadamard", "interval"):
        with pytest.raises(TooLargeError, match=f"the guess from '{name}' needs its matrix"):
            create(name, 3000, 1.0).guess_channel()
    for name in ("oue", "olh", "blh", "ss", "she"):
        assert 0 < create(name, 65_536, 1e-6).guess_channel().baseline <= 1


@pytest.mark.parametrize("name", ["hadamard", "interval"])
@pytest.mark.parametrize("size", [5, 3000])
def test_likelihoods_of_reports_that_do_not_exist_are_refused(name: str, size: int):
    channel = create(name, size, 1.0).channel
    for bad in (-1, 4096, 1.5):
        with pytest.raises(InputError, match="`report` must be a whole number"):
            channel.likelihood(bad)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: FavouringChannel(4, "dense", 0.5),
        lambda: FavouringChannel(4, "singletons", 0.5, 2),
        lambda: FavouringChannel(4, "all", 0.5, budget=-1),
        lambda: AnyChannel(4, 1.0, 1.5),
        lambda: AnyChannel(4, 1.0, -0.1),
        lambda: DenseChannel(np.zeros((0, 3))),
        lambda: LaplaceChannel(np.array([0.0, math.nan]), 1.0, 1.0),
        lambda: LaplaceChannel(np.zeros(0), 1.0, 1.0),
        lambda: LaplaceChannel(np.array([0.0]), 0.0, 1.0),
        lambda: GaussianChannel(np.array([0.0]), 1.0, 1.0, 1.5),
    ],
)
def test_channels_that_cannot_be_are_refused(broken):
    with pytest.raises(InputError):
        broken()


def test_a_channel_that_doubles_cannot_invert_says_so():
    mechanism = create("interval", 300, 1e-9)
    with pytest.raises(InputError, match="cannot be inverted in doubles"):
        mechanism.variance(10, np.full(300, 1 / 300))
    same = create("exp", 2, 1.0, utility=[[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    assert same.variance(10, [0.5, 0.5]).shape == (2,)
    alike = create("exp", 3, 1.0, utility=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    with pytest.raises(InputError, match="cannot be inverted in doubles"):
        alike.variance(10, [0.5, 0.25, 0.25])


def test_a_channel_is_inverted_once():
    law = create("interval", 50, 1.0).law
    assert law.inverse is law.inverse
    assert law.channel is law.channel
    np.testing.assert_allclose(law.inverse @ law.channel.matrix().T, np.eye(50), atol=1e-9)


# --- reports and plans as files and messages -------------------------------------------------------------


def test_reports_from_a_column_must_say_whether_they_are_a_simulation():
    column = reports_to_arrow(make("grr").randomise([0, 1], seed=1))
    with pytest.raises(TypeError, match="is_simulation"):
        reports_from_arrow(column)
    assert reports_from_arrow(column, is_simulation=True).is_simulation


@pytest.mark.parametrize("column", [[1, 2], pa.array([[1], [1, 2]]), pa.array(["a"])])
def test_columns_that_hold_no_reports_are_refused(column: object):
    with pytest.raises(InputError, match="`column` must be"):
        reports_from_arrow(column, is_simulation=True)


def test_reports_in_another_order_of_bytes_go_into_arrow():
    swapped = Reports(np.array([1, 2], dtype=">u2"), np.array([3, 4], dtype=">u8"))
    back = reports_from_arrow(reports_to_arrow(swapped), is_simulation=True)
    assert (back.values.tolist(), back.seeds.tolist()) == ([1, 2], [3, 4])


def test_codes_that_no_type_of_reports_holds_are_refused():
    """Codes of 33 bits would wrap around and be read as others."""
    assert [ReportForm.codes(count).dtype.itemsize for count in (1, 256, 257, 65_536, 65_537, 1 << 32)] == [
        1, 1, 2, 2, 4, 4,
    ]  # fmt: skip
    for count in (0, (1 << 32) + 1, 1 << 33):
        with pytest.raises(
            InputError, match="`count` must be a whole number of at least 1 and at most 4294967296"
        ):
            ReportForm.codes(count)


def test_reports_of_different_forms_do_not_join():
    for other in (np.zeros((2, 2), dtype=np.uint8), np.zeros((2, 1)), np.zeros(2, dtype=np.uint8)):
        with pytest.raises(InputError, match="can be joined"):
            Reports.joined([Reports(np.zeros((2, 1), dtype=np.uint8)), Reports(other)])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("interval", {"edges": (1.0, 2.0, 3.0)}),
        ("interval", {"edges": np.array([1.0, 2.0, 3.0])}),
        ("ss", {"width": np.int64(2)}),
        ("exp", {"utility": np.eye(4)}),
        ("exp", {"utility": tuple(map(tuple, np.eye(4).tolist()))}),
        ("laplace", {"lower": np.float32(0.0), "upper": np.int64(4)}),
    ],
)
def test_plans_are_the_same_after_files_messages_and_copies(name: str, parameters: dict):
    plan = Plan((Release(COLOUR, name, 1.0, parameters=parameters),), limits={"colour": 0.5})
    assert Plan.from_toml(plan.to_toml()) == plan
    assert Plan.from_json(plan.to_json()) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert copy.deepcopy(plan) == plan
    with pytest.raises(TypeError):
        plan["colour"].parameters["width"] = 3
