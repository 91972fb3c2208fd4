"""What single mechanisms promise beyond the shared contract: exact words, published figures, refusals."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from sidelight.foundation import bits
from sidelight.foundation.errors import InputError, MissingExtraError
from sidelight.foundation.randomness import Secure, below, below_each, derive_seed, randomness
from sidelight.mechanisms import (
    FavouringChannel,
    Reports,
    arrays,
    create,
    kernels,
    reports_from_arrow,
)
from sidelight.mechanisms.exact import WORDS
from sidelight.mechanisms.hashing import OptimisedHashing
from sidelight.mechanisms.longitudinal.rappor import Rappor
from sidelight.mechanisms.numeric import gaussian_delta
from sidelight.plan import Plan, Release
from sidelight.schema import categorical

FALSE_ALARM = 1e-6
EVERY_WORD = np.uint64(WORDS - 1)


@dataclass
class Scripted:
    """Randomness that plays back chosen words: first those asked for by position, then the retries."""

    script: dict[int, int] = field(default_factory=dict)
    compiled: bool = False
    is_secure: bool = False

    def words(self, start, count, out=None):  # noqa: ARG002 - nobody here asks for it
        return self.words_at(np.arange(start, start + count, dtype=np.uint64))

    def words_at(self, positions):
        return np.array([self.script[int(position)] for position in positions], dtype=np.uint64)


@pytest.mark.parametrize("step", [arrays, kernels])
@pytest.mark.parametrize("size", [2, 3, 256, 65_536])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0, 60.0])
def test_randomised_response_gives_each_value_exactly_its_words(step, size: int, epsilon: float):
    mechanism = create("grr", size, epsilon)
    truth, other = mechanism.truth, mechanism.other
    lies = sorted({0, 1, size - 2} & set(range(size - 1)))
    edges = [
        0,
        truth - 1,
        *(truth + lie * other for lie in lies),
        *(truth + (lie + 1) * other - 1 for lie in lies),
    ]
    for code in {0, size // 2, size - 1}:
        dtype = np.uint8 if size <= 256 else np.uint16
        codes, out = np.full(len(edges), code, dtype=dtype), np.empty(len(edges), dtype=dtype)
        step.respond(np.array(edges, dtype=np.uint64), codes, np.uint64(truth), np.uint64(other), out)
        named = [lie + (lie >= code) for lie in lies]
        assert out.tolist() == [code, code, *named, *named]
    assert truth + (size - 1) * other == WORDS


@pytest.mark.parametrize("threshold", [1, 3 << 40, WORDS // 2, WORDS // 3, WORDS - 1])
def test_bits_are_set_for_exactly_the_words_below_the_threshold(threshold: int):
    numbers = [0, threshold - 1, threshold, min(threshold + 1, WORDS - 1), WORDS - 1, threshold ^ 1]
    turns = {
        turn << 56: sum((u >> (63 - turn) & 1) << lane for lane, u in enumerate(numbers))
        for turn in range(64)
    }
    drawn = int(bits.bernoulli(Scripted(turns), 0, 1, threshold)[0])
    assert [drawn >> lane & 1 for lane in range(len(numbers))] == [int(u < threshold) for u in numbers]


def test_uniform_numbers_draw_again_where_a_run_is_incomplete():
    bound = np.array(
        [6], dtype=np.uint64
    )  # 2^64 = 4 modulo 6, so products whose lower half is below 4 are out
    again = Scripted({0: 0, (1 << 56): 0, (2 << 56): WORDS - 1})
    assert below(again, 0, 1, bound).tolist() == [[5]]
    again = Scripted({0: WORDS - 1, (1 << 56): WORDS - 5})
    assert below_each(again, 0, bound).tolist() == [(WORDS - 5) % 6]
    assert below_each(Scripted({0: WORDS - 5}), 0, bound).tolist() == [5]


@pytest.mark.parametrize("bound", [2, 3, 5])
def test_uniform_numbers_are_exactly_uniform_on_a_small_word(bound: int):
    """The acceptance rule, with words of 6 bits in place of 64."""
    accepted = [word * bound >> 6 for word in range(64) if word * bound % 64 >= 64 % bound]
    assert len({accepted.count(value) for value in range(bound)}) == 1


def test_multiply_add_shift_is_strongly_universal():
    """The family with words of 6 bits, values of 3 and hashes of 4: 6 >= 3 + 4 - 1, as 32 >= 16 + 17 - 1."""
    for one, other in itertools.combinations(range(8), 2):
        pairs = np.zeros((16, 16), dtype=int)
        for a, b in itertools.product(range(64), repeat=2):
            pairs[((a * one + b) % 64) >> 2, ((a * other + b) % 64) >> 2] += 1
        assert (pairs == 16).all()


@pytest.mark.parametrize("buckets", [2, 3, 7, 4096, 65_535])
def test_collision_probability_is_that_of_the_runs_in_use(buckets: int):
    mechanism = OptimisedHashing(10, 1.0, buckets)
    runs = np.bincount((np.arange(1 << 17) * buckets) >> 17)
    assert len(runs) == buckets
    assert float(mechanism.collision) == pytest.approx(float((runs / 2**17) @ (runs / 2**17)), rel=1e-12)
    assert runs.tolist() == np.diff(mechanism.edges).tolist()


def test_published_rappor_spends_what_was_published():
    published = create("rappor", 10, f=0.5, p=0.5, q=0.75)
    assert published.epsilon == pytest.approx(0.537, abs=5e-4)
    assert published.epsilon_unlimited == pytest.approx(2 * math.log(3), rel=1e-12)
    assert create("rappor", 10) == published
    assert published.repeated(1000).epsilon == pytest.approx(1000 * published.epsilon)


def test_rappor_stores_its_permanent_bits_and_reports_from_them():
    mechanism = Rappor(9, 2.0)
    stored = mechanism.permanent(np.full(50_000, 4), seed=3)
    first, second = (mechanism.report(stored, seed=seed) for seed in (1, 2))
    assert not np.array_equal(first.values, second.values)
    kept = np.unpackbits(stored.values, axis=1, bitorder="little")[:, 4].astype(bool)
    seen = np.unpackbits(first.values, axis=1, bitorder="little")[:, 4]
    assert seen[kept].mean() == pytest.approx(0.75, abs=0.02)  # 9 standard errors
    assert seen[~kept].mean() == pytest.approx(0.5, abs=0.04)  # 9 standard errors
    with pytest.raises(InputError, match="more than its `epsilon`"):
        create("rappor", 9, 1.0, f=0.5)
    assert create("rappor", 9, 3.0, f=0.5).epsilon_unlimited < 3.0


def test_thresholded_histogram_spends_what_the_science_says():
    assert create("the", 5, 1.0).epsilon == pytest.approx(0.896, abs=1e-3)


def test_the_exponential_mechanism_spends_half_on_matching():
    channel = create("exp", 4, 1.0).channel
    assert isinstance(channel, FavouringChannel)
    assert channel.family == "singletons"
    assert channel.epsilon == pytest.approx(0.5)


def test_favoured_families():
    families = {"grr": "singletons", "sue": "all", "oue": "all", "rappor": "all", "the": "all", "she": "all"}
    families |= {"olh": "all", "blh": "all", "ss": "subsets", "exp": "singletons", "identity": "singletons"}
    for name, family in families.items():
        channel = create(name, 6, None if name == "identity" else 1.0).channel
        assert channel.family == family
        assert channel.realises_all == (name not in ("olh", "blh"))
    assert create("ss", 20, 1.0).channel.width == 5
    assert create("identity", 3).channel.epsilon == math.inf
    assert create("withheld", 3).channel.epsilon == 0
    for name in ("hadamard", "interval"):
        assert create(name, 3000, 1.0).channel.claim == "certified"


def test_a_report_of_many_columns_states_its_likelihoods(monkeypatch):
    for name in ("hadamard", "interval"):
        cells, large = create(name, 40, 1.0).channel.matrix(), create(name, 3000, 1.0)
        with monkeypatch.context() as patched:
            patched.setattr("sidelight.mechanisms.channel.dense.LARGEST_MATRIX", 0)
            listed = create(name, 40, 1.0).channel
        for report in (0, 7, 39):
            np.testing.assert_allclose(listed.likelihood(report), cells[:, report], rtol=1e-12)
        likely = large.channel.likelihood(17)
        assert math.log(likely.max() / likely.min()) <= large.epsilon * (1 + 1e-12)
        with pytest.raises(InputError, match="not built"):
            large.channel.matrix()


def test_simulated_numbers_have_the_stated_density():
    """One Kolmogorov-Smirnov test each; false alarms at one in a million."""
    for name, law in (("laplace", stats.laplace), ("gaussian", stats.norm)):
        extra = {"delta": 1e-5} if name == "gaussian" else {}
        mechanism = create(name, 3, 0.7, lower=-2.0, upper=6.0, **extra)
        noise = mechanism.randomise(np.full(40_000, 1.0), seed=9).values - 1.0
        assert stats.kstest(noise, law(scale=mechanism.channel.scale).cdf).pvalue > FALSE_ALARM
        density = mechanism.channel.log_density([0.5, 3.0])
        expected = law(scale=mechanism.channel.scale).logpdf(np.array([[0.5], [3.0]]) - mechanism.grid_points)
        np.testing.assert_allclose(density, expected, rtol=1e-12)


def test_simulated_discrete_laplace_has_the_stated_mass():
    mechanism = create("discrete-laplace", 5, 2.0, lower=0, upper=4)
    noise = mechanism.randomise(np.full(60_000, 2), seed=4).values - 2
    ratio = math.exp(-0.5)
    support = np.arange(-8, 9)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(support)
    seen = np.array([np.count_nonzero(noise == value) for value in support])
    expected = np.append(mass, 1 - mass.sum()) * len(noise)
    found = np.append(seen, len(noise) - seen.sum())
    assert ((found - expected) ** 2 / expected).sum() < stats.chi2.isf(FALSE_ALARM, len(support))


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete-laplace", "she"])
def test_secure_numbers_have_the_stated_spread(name: str):
    """Noise without a seed: 8 standard errors of mean and spread, below one false alarm in 10^12."""
    pytest.importorskip("opendp", reason="secure noise on numbers needs the extra numeric")
    bounds = {} if name == "she" else {"lower": 0.0, "upper": 4.0}
    extra = {"delta": 1e-4} if name == "gaussian" else {}
    mechanism = create(name, 2, 1.0, **bounds, **extra)
    reports = mechanism.randomise(np.zeros(1500, dtype=np.int64))
    values = reports.values[:, 1] if name == "she" else reports.values
    stated = float(mechanism.variance(1, [1.0, 0.0])[-1])
    assert abs(values.mean()) < 8 * math.sqrt(stated / 1500)
    assert values.var() == pytest.approx(stated, rel=8 * math.sqrt(5 / 1500))
    assert not reports.is_simulation


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete-laplace", "she"])
def test_secure_numbers_without_the_extra_are_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    bounds = {} if name == "she" else {"lower": 0.0, "upper": 1.0}
    extra = {"delta": 1e-4} if name == "gaussian" else {}
    mechanism = create(name, 2, 1.0, **bounds, **extra)
    with pytest.raises(MissingExtraError, match=r"sidelight\[numeric\]"):
        mechanism.randomise([0, 1])
    assert mechanism.randomise([0, 1], seed=1).is_simulation


def test_gaussian_calibrations():
    classic = create("gaussian", 2, 0.5, lower=0, upper=1, delta=1e-5, calibration="classic")
    assert classic.channel.scale == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 0.5)
    analytic = create("gaussian", 2, 0.5, lower=0, upper=1, delta=1e-5)
    assert analytic.scale < classic.scale
    assert classic.delta < analytic.delta <= 1e-5
    assert gaussian_delta(0.5, analytic.channel.scale * (1 - 1e-6)) > 1e-5
    with pytest.raises(InputError, match="below 1 for the classic calibration"):
        create("gaussian", 2, 1.5, lower=0, upper=1, delta=1e-5, calibration="classic")
    gaussian = create("gaussian", 2, 1.0, lower=0, upper=1, delta=1e-5)
    twice = gaussian.repeated(2)
    assert (twice.size, twice.epsilon, twice.delta) == (2, 2.0, pytest.approx(2e-5))
    assert twice.within.scale == gaussian.channel.scale


def test_intervals_cut_numbers_as_a_schema_does():
    mechanism = create("interval", 4, 1.0, edges=[0.0, 10.0, 20.0])
    assert mechanism.cut([-5.0, 0.0, 9.9, 10.0, 99.0]).tolist() == [0, 1, 1, 2, 3]
    numbers = mechanism.randomise(np.array([5.0, 25.0]), seed=1).values
    coded = create("interval", 4, 1.0)
    np.testing.assert_array_equal(numbers, coded.randomise([1, 3], seed=1).values)
    with pytest.raises(InputError, match="no `edges`"):
        create("interval", 4, 1.0).randomise(np.array([5.0]), seed=1)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ss", {"width": 4}, "`width` must be"),
        ("ss", {"width": 9}, "`width` must be"),
        ("ss", {"width": 0}, "`width` must be"),
        ("grr", {"width": 1}, "no parameter 'width'"),
        ("olh", {"g": 1}, "`g` must be"),
        ("olh", {"g": 1 << 20}, "`g` must be"),
        ("the", {"theta": 0.4}, "`theta` must be"),
        ("the", {"theta": 1.5}, "`theta` must be"),
        ("rappor", {"p": 0.8}, "`p` must be below q"),
        ("rappor", {"q": 1.0}, "`q` must be"),
        ("rappor", {"f": 0.0}, "`f` must be"),
        ("exp", {"utility": [[1.0, 0.0]]}, "`utility` must be a matrix of 4 rows"),
        ("exp", {"utility": [1.0, 0.0]}, "`utility` must be"),
        ("exp", {"utility": "distant"}, "`utility` must be"),
        ("exp", {"utility": [[1.0, math.nan]] * 4}, "`utility` must be finite"),
        ("exp", {"utility": [[1.0, 0.0]] * 4}, "`utility` must differ"),
        ("interval", {"edges": [1.0]}, "`edges` must be"),
        ("interval", {"edges": [1.0, 1.0, 2.0]}, "`edges` must be"),
        ("laplace", {}, "needs the parameter 'lower'"),
        ("laplace", {"lower": 0.0}, "needs the parameter 'upper'"),
        ("laplace", {"lower": 1.0, "upper": 1.0}, "`upper` must be"),
        ("laplace", {"lower": 0.0, "upper": math.inf}, "`upper` must be"),
        ("laplace", {"lower": 0.0, "upper": 1.0, "points": [0.0]}, "`points` must be"),
        ("laplace", {"lower": 0.0, "upper": 1.0, "points": [0.0, 0.1, 0.2, 3.0]}, "`points` must be"),
        ("gaussian", {"lower": 0.0, "upper": 1.0}, "needs the parameter 'delta'"),
        ("gaussian", {"lower": 0.0, "upper": 1.0, "delta": 0.0}, "`delta` must be"),
        ("gaussian", {"lower": 0.0, "upper": 1.0, "delta": 0.1, "calibration": "x"}, "`calibration` must be"),
        ("discrete-laplace", {"lower": 0.0, "upper": 1.0, "grid": 0.3}, "`grid` must be"),
    ],
)
def test_bad_parameters_are_refused(name: str, parameters: dict, message: str):
    with pytest.raises(InputError, match=message):
        create(name, 4, 1.0, **parameters)


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "olh", "ss", "hadamard", "interval", "laplace", "she"])
def test_budgets_too_small_to_realise_are_refused(name: str):
    bounds = {"lower": 0.0, "upper": 1.0} if name == "laplace" else {}
    with pytest.raises(InputError, match="`epsilon` must be large enough"):
        create(name, 3, 1e-30, **bounds)


@pytest.mark.parametrize("name", ["identity", "withheld"])
def test_mechanisms_without_a_budget_refuse_one(name: str):
    attribute = categorical("sex", ["female", "male"])
    with pytest.raises(InputError, match="leave `epsilon` out"):
        Release(attribute, name, 1.0)
    release = Release(attribute, name)
    assert release.channel() == release.randomiser().channel
    assert Release(attribute, name, times=5).channel() == release.channel()


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("grr", Reports(np.array([0, 9]))),
        ("grr", Reports(np.array([0.5]))),
        ("grr", Reports(np.array([[1]]))),
        ("oue", Reports(np.array([[8]], dtype=np.uint8))),
        ("oue", Reports(np.array([[1, 0]], dtype=np.uint8))),
        ("olh", Reports(np.array([0], dtype=np.uint8))),
        ("olh", Reports(np.array([99], dtype=np.uint8), np.array([1], dtype=np.uint64))),
        ("ss", Reports(np.array([[3]], dtype=np.uint16))),
        ("hadamard", Reports(np.array([4], dtype=np.uint8))),
        ("she", Reports(np.array([[math.nan, 0, 0]]))),
        ("withheld", Reports(np.array([1], dtype=np.uint8))),
    ],
)
def test_reports_of_another_form_are_refused(name: str, reports: Reports):
    mechanism = create(name, 3, None if name == "withheld" else 1.0)
    with pytest.raises(InputError, match="`reports`"):
        mechanism.aggregate(reports)


def test_missing_reports_are_refused():
    import pyarrow as pa

    with pytest.raises(InputError, match="missing values"):
        reports_from_arrow(pa.array([1, None]), is_simulation=True)


def test_small_inputs_do_not_load_the_compiler():
    script = (
        "import sys; from sidelight.mechanisms import create\n"
        "for name in ('grr', 'oue', 'olh', 'ss', 'hadamard', 'rappor'):\n"
        "    made = create(name, 9, 1.0); made.estimate(made.aggregate(made.randomise([1, 2] * 50)))\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_secure_words_are_fresh_and_bits_are_even():
    """2^22 secure bits: 7 standard errors, one false alarm in 4e11."""
    words = Secure().words(0, 1 << 16)
    assert len(np.unique(words)) == len(words)
    ones = int(np.bitwise_count(words).sum())
    assert abs(ones - (1 << 21)) < 7 * (1 << 10)
    assert not np.array_equal(words, Secure().words(0, 1 << 16))


def test_parts_of_one_simulation_do_not_share_noise():
    seeds = {derive_seed(1, name) for name in ("age", "sex")} | {1}
    assert len(seeds) == 3
    words = {int(randomness(seed, "grr").words(0, 1)[0]) for seed in seeds}
    assert len(words) == 3


def test_a_plan_of_version_1_still_reads():
    text = """
version = 1
limit = 1.0

[[release]]
attribute = "sex"
mechanism = "grr"
epsilon = 1.0
times = 1
kind = "categorical"
values = ["female", "male"]
missing = "absent"
"""
    plan = Plan.from_toml(text)
    assert plan["sex"].epsilon == 1.0
    assert Plan.from_toml(plan.to_toml()) == plan
    with pytest.raises(InputError, match="needs an `epsilon`"):
        Plan.from_toml(text.replace("epsilon = 1.0\n", ""))


@pytest.mark.parametrize("size", [2, 5, 100])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_variance_of_a_rare_value_is_the_published_one(size: int, epsilon: float):
    e, half = math.exp(epsilon), math.exp(epsilon / 2)
    published = {
        "grr": (e + size - 2) / (e - 1) ** 2,
        "sue": half / (half - 1) ** 2,
        "oue": 4 * e / (e - 1) ** 2,
        "blh": ((e + 1) / (e - 1)) ** 2,
        "hadamard": ((e + 1) / (e - 1)) ** 2,
        "she": 8 / epsilon**2,
    }
    stated = {name: float(create(name, size, epsilon).variance(1, 0.0)) for name in published}
    assert stated == pytest.approx(published, rel=1e-9)
    assert float(create("ss", size, epsilon).variance(1, 0.0)) <= min(stated.values()) * (1 + 1e-9)
