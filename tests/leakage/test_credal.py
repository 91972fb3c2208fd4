"""Credal sets: their limits, what lies inside them, and how often they hold."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import sidelight as sl
from enumeration import generic, randomised_response, sup_ratio, total
from sidelight.belief.credal import Region, binomial_limit, chernoff_limit
from sidelight.leakage import credal as credal_module
from sidelight.leakage.credal import robust_generic, share_bounds
from sidelight.mechanisms import AnyChannel, DenseChannel, FavouringChannel
from sidelight.mechanisms.channel.generic import all_sets


def region_of(counts: np.ndarray, risk: float = 1e-3) -> Region:
    return Region(np.asarray(counts, dtype=np.float64), risk)


@pytest.mark.parametrize("size", [1, 7, 60, 1000])
@pytest.mark.parametrize("risk", [0.05, 1e-6])
def test_limits_fail_no_oftener_than_their_risk(size: int, risk: float) -> None:
    counts = np.arange(size + 1, dtype=np.float64)
    exact = binomial_limit(counts, np.float64(size), risk)
    chernoff = chernoff_limit(counts / size, np.float64(-math.log(risk) / size))
    assert (chernoff >= exact - 1e-9).all()
    assert (chernoff <= np.minimum(counts / size + math.sqrt(-math.log(risk) / 2 / size), 1) + 1e-9).all()
    for limits in (exact, chernoff):
        assert (np.diff(limits) >= 0).all()
        for p in (1e-5, 0.01, 0.3, 0.5, 0.9, 0.999):
            failing = binom.pmf(counts, size, p)[limits < p].sum()
            assert failing <= risk * (1 + 1e-9)


def testchernoff_limit_is_the_root_it_names() -> None:
    shares = np.array([0.0, 1e-4, 0.1, 0.5, 0.97])
    limits = chernoff_limit(shares, np.float64(0.02))
    for q, p in zip(shares, limits, strict=True):
        first = q * math.log(q / p) if q else 0.0
        assert first + (1 - q) * math.log((1 - q) / (1 - p)) == pytest.approx(0.02, rel=1e-6)


def vertices(rng: np.random.Generator, region: Region, row: int, count: int) -> list[np.ndarray]:
    """Distributions on the border of a row's region, by linear programs in random directions."""
    size = region.counts.shape[1]
    sets = all_sets(size)
    limits = region.upper(sets)[row]
    found = []
    for _ in range(count):
        direction = rng.normal(size=size) * rng.choice([0.01, 1, 100], size=size)
        solution = linprog(
            direction, A_ub=sets.T, b_ub=limits, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=(0, 1)
        )
        found.append(np.clip(solution.x, 0, 1) / np.clip(solution.x, 0, 1).sum())
    return found


def random_counts(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    scale = rng.choice([3, 30, 1000])
    return rng.poisson(rng.gamma(0.5, size=shape) * scale).astype(np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_no_distribution_inside_the_region_leaks_more(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    shape = (int(rng.integers(2, 4)), int(rng.integers(2, 6)))
    counts = random_counts(rng, shape)
    counts[0, 0] += 1
    schema = sl.Belief.from_joint(np.full(shape, 1 / np.prod(shape)), ["x", "u"]).schema
    credal = sl.Belief.from_counts(sl.Counts(schema, counts)).credal()
    region = credal.pair("x", "u")
    epsilon = float(rng.choice([0.5, 1.0, 4.0]))
    width = int(rng.integers(1, shape[1] + 1))
    sets = list(combinations(range(shape[1]), width))
    subset = np.array([[math.exp(epsilon) if u in s else 1.0 for s in sets] for u in range(shape[1])])
    dense = rng.dirichlet(np.full(4, 0.6), size=shape[1])
    channels = {
        "grr": (sl.create("grr", shape[1], epsilon).channel, randomised_response(shape[1], epsilon)),
        "subsets": (
            FavouringChannel(shape[1], "subsets", math.exp(-epsilon), width),
            subset / subset.sum(axis=1, keepdims=True),
        ),
        "dense": (DenseChannel(dense), dense),
    }
    inside = [vertices(rng, region, row, 8) for row in range(shape[0])]
    for _ in range(40):
        rows = np.array([part[int(rng.integers(len(part)))] for part in inside])
        for channel, cells in channels.values():
            robust = sl.leakage.robust_pair(credal, channel, "x", "u")
            truth = sup_ratio((rows @ cells).tolist())
            assert robust.lower.value - 1e-9 <= truth <= robust.value + 1e-7
        for channel in (AnyChannel(shape[1], epsilon), FavouringChannel(shape[1], "all", math.exp(-epsilon))):
            robust = sl.leakage.robust_pair(credal, channel, "x", "u")
            assert robust.lower.value - 1e-9 <= generic(rows, epsilon) <= robust.value + 1e-7


def test_many_values_are_bounded_as_ifall_sets_were_listed(rng) -> None:
    for size, epsilon in ((11, 0.5), (11, 4.0), (12, 1.0)):
        counts = rng.poisson(rng.gamma(0.4, size=(3, size)) * 200).astype(np.float64)
        counts[:, 0] += 1
        region = region_of(counts)
        sets = all_sets(size)
        baseline = math.exp(-epsilon)
        tops = np.log(baseline + (1 - baseline) * region.upper(sets))
        bottoms = np.log(baseline + (1 - baseline) * region.lower(sets))
        listed = max(float((tops[i] - bottoms[j]).max()) for i, j in permutations(range(3), 2))
        found = robust_generic(region, baseline).value
        assert listed - 1e-9 <= found <= 1.2 * listed


def test_the_curve_of_shares_bounds_every_set_on_any_grid(rng, monkeypatch) -> None:
    """Sets between two points of the grid count too, which a fine grid would hide."""
    monkeypatch.setattr(credal_module, "_GRID", np.array([0.0, 1.0]))
    for _ in range(300):
        size = int(rng.integers(2, 6))
        region = region_of(random_counts(rng, (2, size)) + 1, float(rng.choice([0.5, 0.05, 1e-6])))
        baseline = math.exp(-float(rng.choice([0.5, 2.0, 6.0])))
        sets = all_sets(size)
        shares = np.minimum(region.shares @ sets, 1)
        high = baseline + (1 - baseline) * region.upper_share(shares[0], 0)
        low = baseline + (1 - baseline) * (1 - region.upper_share(1 - shares[1], 1))
        listed = float(np.log(high / low).max())
        assert share_bounds(region, 0, baseline)[1] >= listed - 1e-9


def test_few_values_take_every_set() -> None:
    region = region_of([[40, 10], [10, 40]])
    lam = math.expm1(2.0)
    worst = (1 + lam * region.high[0, 0]) / (1 + lam * region.low[1, 0])
    assert robust_generic(region, math.exp(-2)).value == pytest.approx(math.log(worst))


@pytest.mark.parametrize("size", [2, 5, 12, 40])
def test_equal_rows_leak_little_and_less_than_a_total_variation_ball_says(size: int) -> None:
    region = region_of(np.full((2, size), 100_000 // size))
    radius = math.sqrt((math.log(2**size - 2) - math.log(1e-3)) / (2 * 100_000))
    lam = math.expm1(4)
    ball = max(
        (1 + lam * min(1, k / size + radius)) / (1 + lam * max(0, k / size - radius)) for k in range(1, size)
    )
    found = robust_generic(region, math.exp(-4)).value
    assert 0 < found < math.log(ball)
    assert found < 0.2


def test_limits_are_never_wider_than_those_of_weissman(rng) -> None:
    for size in (2, 3, 7):
        counts = rng.multinomial(500, rng.dirichlet(np.ones(size)), size=2).astype(np.float64)
        region = region_of(counts)
        sets = all_sets(size)[:, :-1]
        halved = 2 if size > 4 else 1
        radius = math.sqrt((math.log(2**size - 2) + math.log(halved / 1e-3)) / (2 * 500))
        assert (region.upper(sets) <= counts / 500 @ sets + radius + 1e-9).all()


@pytest.mark.parametrize("mechanism", ["grr", "any"])
def test_the_robust_figure_tends_to_the_point_figure(mechanism: str) -> None:
    schema, joint = sl.sources.survey_joint()
    channels = sl.Plan.uniform(schema, mechanism, 1.0).channels()
    gaps = []
    for rows in (10**3, 10**5, 10**7):
        counts = np.rint(joint * rows).astype(np.int64)
        belief = sl.Belief.from_counts(sl.Counts(schema, counts))
        credal = belief.credal()
        gap = 0.0
        for secret, neighbour in permutations(schema.names, 2):
            robust = sl.leakage.robust_pair(credal, channels[neighbour], secret, neighbour)
            point = sl.pair_leakage(belief, channels[neighbour], secret, neighbour).value
            assert robust.lower.value - 1e-9 <= point <= robust.value + 1e-9
            assert robust.upper.kind == "certified"
            assert "confidence 0.95" in robust.upper.method
            gap = max(gap, robust.value - point)
        gaps.append(gap)
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]
    assert gaps[2] < 0.02


def test_all_true_figures_hold_together_in_95_of_100_audits() -> None:
    """Union bounds make it far more than 95 %: were it 99 %, fewer than 190 of 200 had probability 7e-6."""
    schema, joint = sl.sources.survey_joint()
    truth = sl.Belief.from_joint(joint, schema)
    channels = sl.Plan.uniform(schema, "grr", 2.0).channels()
    pairs = list(permutations(schema.names, 2))
    exact = {pair: sl.pair_leakage(truth, channels[pair[1]], *pair).value for pair in pairs}
    few = {name: channels[name] for name in ("diabetes", "medication", "smokes")}
    together = sl.total_leakage(truth, few, "diabetes").value
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        counts = rng.multinomial(2000, joint.ravel()).reshape(joint.shape)
        credal = sl.Belief.from_counts(sl.Counts(schema, counts)).credal(0.95)
        robust = {pair: sl.leakage.robust_pair(credal, channels[pair[1]], *pair) for pair in pairs}
        total_found = sl.leakage.robust_total(credal, few, "diabetes")
        held += total_found.lower.value <= together <= total_found.value and all(
            robust[pair].lower.value <= exact[pair] <= robust[pair].value for pair in pairs
        )
    assert held >= 190


@pytest.mark.deep
@pytest.mark.parametrize("rows", [100, 500, 5000])
@pytest.mark.parametrize("mechanism", ["grr", "any"])
def test_coverage_at_several_sizes(rows: int, mechanism: str) -> None:
    """Were the coverage 99 %, fewer than 950 of 1000 had probability below 1e-18."""
    schema, joint = sl.sources.survey_joint()
    truth = sl.Belief.from_joint(joint, schema)
    channels = sl.Plan.uniform(schema, mechanism, 1.0).channels()
    pairs = list(permutations(schema.names, 2))
    exact = {pair: sl.pair_leakage(truth, channels[pair[1]], *pair).value for pair in pairs}
    rng = np.random.default_rng([rows, 5])
    held = 0
    for _ in range(1000):
        counts = rng.multinomial(rows, joint.ravel()).reshape(joint.shape)
        credal = sl.Belief.from_counts(sl.Counts(schema, counts)).credal(0.95)
        held += all(
            sl.leakage.robust_pair(credal, channels[pair[1]], *pair).value >= exact[pair] - 1e-12
            for pair in pairs
        )
    assert held >= 950


def test_the_limits_of_one_row_fail_about_as_often_as_they_may(rng) -> None:
    """A region ten times too wide would never fail; this one's risk of 0.2 is nearly used up (2 values).

    The limits of this row fail with probability 0.1894; 2,000 draws leave 0.1 to 0.22 with probability 3e-4.
    """
    counts = rng.multinomial(200, [0.3, 0.7], size=2000).astype(np.float64)
    region = region_of(counts, 0.2)
    failed = (region.high < [0.3, 0.7]).any(axis=1) | (region.low > [0.3, 0.7]).any(axis=1)
    assert 0.1 < failed.mean() < 0.22


def test_a_value_never_seen_may_still_occur() -> None:
    schema = sl.Schema((sl.categorical("x", ["a", "b", "c"]), sl.categorical("u", ["0", "1"])))
    seen = sl.Counts(schema, np.array([[5000, 5000], [5000, 5000], [0, 0]]))
    belief = sl.Belief.from_counts(seen)
    for mechanism in ("grr", "any"):
        channel = sl.create(mechanism, 2, 1.0).channel
        robust = sl.leakage.robust_pair(belief.credal(), channel, "x", "u")
        assert sl.pair_leakage(belief, channel, "x", "u").value == 0
        assert 0.5 < robust.value <= channel.epsilon
        assert robust.lower.value == 0
        assert robust.upper.support == 0
    two = sl.Counts(schema, np.array([[5000, 5000], [0, 0], [0, 0]]))
    robust = sl.leakage.robust_pair(
        sl.Belief.from_counts(two).credal(), sl.create("grr", 2, 1.0).channel, "x", "u"
    )
    assert robust.value == pytest.approx(1.0, abs=1e-9)


def test_robust_totals() -> None:
    schema, joint = sl.sources.survey_joint()
    counts = np.rint(joint * 1_000_000).astype(np.int64)
    belief = sl.Belief.from_counts(sl.Counts(schema, counts))
    credal = belief.credal(0.9)
    channels = sl.Plan.uniform(schema, "grr", 1.0).channels()
    one = {name: channels[name] for name in ("diabetes", "medication")}
    found = sl.leakage.robust_total(credal, one, "diabetes")
    exact = sl.total_leakage(belief, one, "diabetes").value
    assert exact <= found.value <= exact + 0.02
    assert found.upper.method == "own report and one pair, credal set, confidence 0.9"
    few = one | {"smokes": channels["smokes"]}
    joined = sl.leakage.robust_total(credal, few, "diabetes")
    assert sl.total_leakage(belief, few, "diabetes", "joint generic").value <= joined.value < 3
    assert joined.upper.method == "joint generic, credal set, confidence 0.9"
    everything = sl.leakage.robust_total(credal, channels, "diabetes")
    assert everything.value <= math.fsum(channel.epsilon for channel in channels.values())
    assert everything.lower.value <= sl.total_leakage(belief, channels, "diabetes").value <= everything.value
    pairwise = sl.Belief.from_counts(*sl.sources.survey(1000, 1).pair_counts()).credal()
    assert sl.leakage.robust_total(pairwise, channels, "diabetes").upper.method == "composition"


def test_robust_figures_of_an_idealised_channel_are_not_certified() -> None:
    belief = sl.Belief.from_data(sl.example("titanic"))
    guesses = {item.name: sl.create("olh", item.size, 1.0).guess_channel() for item in belief.schema}
    credal = belief.credal(0.95)
    assert sl.leakage.robust_pair(credal, guesses["sex"], "survived", "sex").upper.kind == "published"
    assert sl.leakage.robust_total(credal, guesses, "survived").upper.kind == "published"


def test_the_joint_region_encloses_the_true_joint() -> None:
    schema, joint = sl.sources.survey_joint()
    rng = np.random.default_rng(2)
    names = ["diabetes", "medication", "smokes"]
    axes = tuple(i for i, name in enumerate(schema.names) if name not in names)
    small = joint.sum(axis=axes)
    chosen = schema.select([name for name in schema.names if name in names])
    channels = sl.Plan.uniform(chosen, "grr", 3.0).channels()
    for secret in names:
        position = chosen.index(secret)
        truth = total(small, {i: randomised_response(2, 3.0) for i in range(3)}, position)
        for rows in (200, 20_000):
            counts = rng.multinomial(rows, small.ravel()).reshape(small.shape)
            credal = sl.Belief.from_counts(sl.Counts(chosen, counts)).credal(0.999)
            assert sl.leakage.robust_total(credal, channels, secret).value >= truth


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sl.Belief.from_joint([[0.5, 0.5]], ["a", "b"]).credal(), "estimated from records"),
        (lambda: sl.Belief.from_data(sl.example("titanic"), "tree").credal(), "use kind='joint'"),
        (lambda: sl.Belief.from_data(sl.example("titanic")).credal(1.0), "`confidence` must be"),
        (
            lambda: sl.leakage.robust_pair(
                sl.Belief.from_data(sl.example("titanic")).credal(),
                sl.create("grr", 2, 1.0).channel,
                "age",
                "age",
            ),
            "another attribute",
        ),
        (
            lambda: sl.leakage.robust_total(
                sl.Belief.from_data(sl.example("titanic")).credal(),
                {"class": sl.create("grr", 2, 1.0).channel},
                "age",
            ),
            "read the table with schema=plan.schema",
        ),
    ],
)
def test_bad_credal_sets_are_refused(call, words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        call()
