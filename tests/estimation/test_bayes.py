"""The posterior means on the simplex against integration and draws, and what `best` makes of them."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import betaincinv, gammaln

import sidelight as sl
from sidelight.estimation import averaging, in_common
from sidelight.estimation.averaging import average, averaged, averaged_each, improved, posteriors
from sidelight.estimation.bayes import Noisy, posterior
from sidelight.estimation.bayes_cumulants import cumulants, make_tables
from sidelight.estimation.bayes_kernels import mixture, projected, spread_apart
from sidelight.estimation.levels import combine_levels
from sidelight.estimation.priors import fitted, log_density_of_one, possible, prior_weights
from sidelight.estimation.unbiased import Unbiased
from sidelight.estimation.under_priors import under_all
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.protocols import smp

TABLES = make_tables()


@pytest.mark.parametrize("shape", [1e-4, 0.01, 0.23, 1.0, 4.6, 10.0, 40.0])
@pytest.mark.parametrize("t", [-60.0, -30.3, -8.1, -2.2, 0.0, 3.3, 6.9, 7.1, 30.0])
def test_cumulants_are_those_of_the_integral(shape: float, t: float) -> None:
    # In ln x the weight is not singular; below e^-20 it is e^(a ln x) alone.
    place = np.linspace(-20.0, 4.5, 100_000)
    x = np.exp(place)
    logs = shape * place - x * x / 2 + t * x
    density = np.exp(logs - logs.max()) * (place[1] - place[0])
    head = math.exp(shape * place[0] - logs.max()) / shape
    whole = density.sum() + head
    mean = density @ x / whole
    spread = density @ x**2 / whole - mean**2
    out = np.empty(5)
    cumulants(shape, t, *TABLES, out)
    assert out[0] == pytest.approx(math.log(whole) + logs.max() - gammaln(shape), abs=5e-4)
    assert out[1] == pytest.approx(mean, abs=5e-3 * math.sqrt(spread) + 1e-9)
    assert out[2] == pytest.approx(spread, rel=5e-3)


def test_noise_given_its_sum_is_taken_apart(rng: np.random.Generator) -> None:
    for shape in (0.05, 0.5, 5.0):
        for size in (3, 10, 300):
            share = rng.dirichlet(np.full(size, shape))
            np.testing.assert_allclose(
                spread_apart(2 * share * (1 - share)), 2 * share, rtol=1e-5, atol=1e-12
            )
    assert spread_apart(np.array([1.0, 1.0])).tolist() == [2.0, 2.0]
    assert spread_apart(np.array([1.0, 0.2, 0.2])).tolist() == pytest.approx([1.5, 0.3, 0.3])
    assert not spread_apart(np.zeros(4)).any()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("alpha", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("deviation", [0.03, 0.15, 0.8])
def test_few_values_agree_with_integration(size: int, alpha: float, deviation: float) -> None:
    rng = np.random.default_rng([size, round(10 * alpha), round(100 * deviation)])
    prior = rng.dirichlet(np.full(size, 4.0))
    noise = deviation * rng.uniform(0.7, 1.3, size)
    estimate = rng.dirichlet(np.full(size, max(alpha / size, 0.3))) + rng.normal(size=size) * noise
    found = posterior(estimate, noise**2, prior, alpha, adds_up=False)
    moved = estimate + (1 - estimate.sum()) * noise**2 / (noise**2).sum()
    shapes = alpha * prior
    # Cells in the quantiles of the Beta priors that make up the Dirichlet: no weight is singular there.
    levels = (np.arange(1200) + 0.5) / 1200
    first = betaincinv(shapes[0], shapes[1:].sum(), levels)
    if size == 2:
        points = np.stack([first, 1 - first], axis=-1)
    else:
        second = betaincinv(shapes[1], shapes[2], levels)
        head, rest = np.meshgrid(first, second, indexing="ij")
        points = np.stack([head, (1 - head) * rest, (1 - head) * (1 - rest)], axis=-1).reshape(-1, 3)
    logs = -0.5 * (((points - moved) / noise) ** 2).sum(axis=-1)
    weights = np.exp(logs - logs.max())
    evidence = math.log(weights.mean()) + logs.max()
    mean = weights @ points / weights.sum()
    spread = np.sqrt(weights @ (points - mean) ** 2 / weights.sum())
    assert np.abs((found.mean - mean) / spread).max() < 0.06
    assert found.evidence == pytest.approx(evidence, abs=0.06)


@pytest.mark.parametrize(("size", "alpha"), [(10, 0.05), (10, 3.0), (10, 10.0), (40, 12.0), (40, 400.0)])
def test_many_values_agree_with_draws_from_the_prior(size: int, alpha: float) -> None:
    rng = np.random.default_rng(size)
    prior = rng.dirichlet(np.full(size, 4.0))
    noise = rng.uniform(0.15, 0.25, size)
    estimate = rng.dirichlet(np.full(size, 0.5)) + rng.normal(size=size) * noise
    estimate += (1 - estimate.sum()) * noise**2 / (noise**2).sum()
    found = posterior(estimate, noise**2, prior, alpha, adds_up=False)
    points = rng.dirichlet(alpha * prior, 100_000)
    logs = -0.5 * (((points - estimate) / noise) ** 2).sum(axis=-1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ points
    spread = np.sqrt(weights @ (points - mean) ** 2)
    error = np.sqrt(weights**2 @ (points - mean) ** 2)  # the draws' own, five of which 40 values may reach
    assert np.all(np.abs(found.mean - mean) < 5 * error + 0.05 * spread)
    assert found.mean.sum() == pytest.approx(1.0)


def test_a_prior_trusted_wholly_is_the_posterior_and_a_flat_one_is_the_default() -> None:
    estimate, variances, prior = np.array([0.7, 0.4, -0.1]), np.full(3, 0.01), np.array([0.2, 0.3, 0.5])
    assert posterior(estimate, variances, prior, math.inf).mean.tolist() == prior.tolist()
    flat, asked = posterior(estimate, variances), posterior(estimate, variances, np.full(3, 1 / 3), 3.0)
    assert flat.mean.tolist() == asked.mean.tolist()
    nearly = posterior(estimate, variances, prior, 1e6)
    np.testing.assert_allclose(nearly.mean, prior, atol=1e-4)
    assert nearly.evidence == pytest.approx(
        posterior(estimate, variances, prior, math.inf).evidence, abs=0.01
    )


SIZES = (2, 3, 10, 40)


def collected(size: int, share: np.ndarray, people: int, epsilon: float, seed: int) -> sl.RecordSums:
    schema = sl.Schema([sl.Attribute("a", "categorical", tuple(map(str, range(size))))])
    records = np.random.default_rng(seed).choice(size, size=(people, 1), p=share).astype(np.uint16)
    return smp(schema, epsilon, "best").randomise(records, seed=seed).aggregate()


@pytest.mark.parametrize("size", SIZES)
def test_posterior_means_are_on_the_simplex_and_the_same_whenever_they_are_made(size: int) -> None:
    sums = collected(size, np.full(size, 1 / size), 500, 1.0, size)
    first, again = sl.estimate(sums, estimator="best"), sl.estimate(sums, estimator="best")
    assert first["a"].sum() == pytest.approx(1.0)
    assert np.all(first["a"] >= 0)
    assert first["a"].tolist() == again["a"].tolist()
    plain = sl.estimate(sums, estimator="inversion")
    assert first.unbiased["a"].tolist() == plain["a"].tolist()
    assert first.standard_errors["a"].tolist() == plain.standard_errors["a"].tolist()


@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("kind", ["even", "point", "Zipf"])
def test_posterior_means_err_less_than_projection(size: int, kind: str) -> None:
    # Ratios of means over 20 collections are at most 0.8 here; 1 is five standard errors away.
    share = {
        "even": np.full(size, 1 / size),
        "point": np.eye(size)[0],
        "Zipf": 1 / np.arange(1, size + 1) / (1 / np.arange(1, size + 1)).sum(),
    }[kind]
    errors = np.zeros(2)
    for seed in range(20):
        sums = collected(size, share, 2000, 1.0, seed)
        for place, estimator in enumerate(("best", "simplex")):
            found = sl.estimate(sums, estimator=estimator)["a"]
            errors[place] += float(((found - share) ** 2).sum())
    assert errors[0] < errors[1]


def test_a_prior_helps_where_it_is_right_and_costs_little_where_it_is_wrong() -> None:
    share = np.array([0.05, 0.4, 0.05, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.1])
    wrong = np.roll(share[::-1], 3)
    errors = {"none": 0.0, "right": 0.0, "wrong": 0.0}
    for seed in range(20):
        sums = collected(10, share, 2000, 1.0, seed)
        for name, prior in (("none", None), ("right", {"a": share}), ("wrong", {"a": wrong})):
            errors[name] += float(
                ((sl.estimate(sums, estimator="best", prior=prior)["a"] - share) ** 2).sum()
            )
    assert errors["right"] < 0.5 * errors["none"]
    assert errors["wrong"] < 1.25 * errors["none"]


def test_a_prior_that_cannot_be_used_is_refused_in_words() -> None:
    sums = collected(3, np.full(3, 1 / 3), 100, 1.0, 0)
    with pytest.raises(InputError, match="goes with the estimator 'best'"):
        sl.estimate(sums, estimator="simplex", prior={"a": np.full(3, 1 / 3)})
    with pytest.raises(InputError, match="add up to 1"):
        sl.estimate(sums, estimator="best", prior={"a": np.array([0.5, 0.2, 0.1])})
    for prior, words in (
        ({"b": np.full(3, 1 / 3)}, "none of the attributes a"),
        (np.full(3, 1 / 3), "by attribute, as a dict"),
        ({"a": "even"}, "'a' must be numbers"),
    ):
        with pytest.raises(InputError, match=words):
            sl.estimate(sums, estimator="best", prior=prior)  # type: ignore[arg-type]


@pytest.mark.parametrize("deviation", [0.055, 0.11, 0.3, 1.0])
def test_lattices_of_every_width_agree_with_draws(deviation: float) -> None:
    # 200,000 draws of the prior weighted by the likelihood: the means are off by less than 2 % of the noise.
    rng = np.random.default_rng(8)
    estimate = rng.dirichlet(np.full(5, 0.4)) + rng.normal(size=5) * deviation
    points = rng.dirichlet(np.full(5, 0.4), 200_000)
    logs = -0.5 * (((points - estimate) / deviation) ** 2).sum(axis=1)
    weights = np.exp(logs - logs.max())
    found = posterior(estimate, np.full(5, deviation**2), concentration=2.0, adds_up=False)
    np.testing.assert_allclose(found.mean, weights @ points / weights.sum(), atol=0.02 * deviation)


def told_and_alone(truths: list[Array], deviation: float) -> tuple[Array, Array]:
    """Return squared errors of attributes that tell each other, and of each by itself, over 20 draws."""
    rng = np.random.default_rng(6)
    errors = np.zeros((2, len(truths)))
    for _ in range(20):
        noise = [deviation * rng.normal(size=len(truth)) for truth in truths]
        items = [
            Noisy.of(truth + off, np.full(len(truth), deviation**2))
            for truth, off in zip(truths, noise, strict=True)
        ]
        alone = [averaged([item], [[0]])[0] for item in items]
        for row, means in enumerate((averaged(items, [[place] for place in range(len(items))]), alone)):
            errors[row] += [((mean - truth) ** 2).sum() for mean, truth in zip(means, truths, strict=True)]
    return errors[0], errors[1]


def test_many_even_attributes_help_each_other_and_do_not_speak_for_one_that_is_not() -> None:
    """When all alike was compared with no telling at all, eight even attributes made the ninth even."""
    even = [np.full(size, 1 / size) for size in (3, 5, 4, 4, 3, 2, 3, 3)]
    uneven = np.array([0.333, 0.329, 0.312, 0.0258, 0.0002])
    told, alone = told_and_alone([*even, uneven], 0.05)
    assert told[:-1].sum() < 0.3 * alone[:-1].sum()
    assert told[-1] < 2 * alone[-1]  # 4.1 times, when they did


def test_attributes_of_few_values_say_nothing_about_priors_for_many() -> None:
    few = [np.array(share) for share in ([0.7, 0.3], [0.6, 0.4], [0.5, 0.2, 0.1, 0.1, 0.06, 0.04])]
    many = np.concatenate([[0.9, 0.04], np.full(38, 0.06 / 38)])
    told, alone = told_and_alone([*few, many], 0.008)
    assert told[-1] < 1.4 * alone[-1]  # 1.54 times, when power laws and fitted mixtures lost weight by them


def test_attributes_that_are_alike_are_found_to_be() -> None:
    told, alone = told_and_alone([np.full(2, 0.5)] * 10, 0.2)
    assert told.sum() < 0.02 * alone.sum()  # 0.045, if they only told each other


def test_estimates_do_not_depend_on_the_order_of_attributes(rng: np.random.Generator) -> None:
    sizes = (2, 3, 6, 20, 40)
    items = [
        Noisy.of(rng.dirichlet(np.full(size, 0.5)) + rng.normal(size=size) * 0.03, np.full(size, 0.03**2))
        for size in sizes
    ]
    found = averaged(items, [[place] for place in range(len(items))])
    for order in (rng.permutation(len(items)) for _ in range(5)):
        again = averaged([items[place] for place in order], [[place] for place in range(len(items))])
        for place, mean in zip(order, again, strict=True):
            np.testing.assert_allclose(mean, found[place], atol=1e-12)


@pytest.mark.parametrize(("count", "off"), [(2, 1e-12), (3, 0.2)])
def test_the_evidence_of_telling_is_that_of_an_urn(count: int, off: float) -> None:
    """Two attributes exactly; of more, what those before a third probably have stands for what they have."""
    rng = np.random.default_rng(count)
    base = np.tile(prior_weights(np.full(5, 0.1)), (count, 1))
    places = np.flatnonzero(base[0])
    for _ in range(10):
        evidence = np.full(base.shape, -np.inf)
        evidence[:, places] = 2 * rng.normal(size=(count, len(places)))
        whole = 0.0
        for drawn in product(places, repeat=count):
            likely = 1.0
            for step, place in enumerate(drawn):
                weight = averaging._TOLD * base[step, place] + drawn[:step].count(place)
                likely *= weight / (averaging._TOLD + step) * math.exp(evidence[step, place])
            whole += likely
        assert averaging._telling(evidence, base) == pytest.approx(math.log(whole), abs=off)


def test_values_in_common_are_used_as_far_as_frequencies_are_alike() -> None:
    rng = np.random.default_rng(3)
    noise = np.full(10, 0.05**2)
    same = rng.dirichlet(np.ones(10))
    apart = [rng.dirichlet(np.ones(10)) for _ in range(8)]
    for truths, least, most in (([same] * 8, 0.0, 0.4), (apart, 0.7, 1.1)):
        errors = {"together": 0.0, "alone": 0.0}
        for _ in range(5):
            items = [Noisy.of(truth + rng.normal(size=10) * 0.05, noise, False) for truth in truths]
            for places, name in (([list(range(8))], "together"), ([[i] for i in range(8)], "alone")):
                for mean, truth in zip(averaged(items, places), truths, strict=True):
                    errors[name] += float(((mean - truth) ** 2).sum())
        assert least <= errors["together"] / errors["alone"] < most


def test_one_attribute_that_stands_apart_does_not_keep_the_others_from_helping_each_other() -> None:
    rng = np.random.default_rng(4)
    odd, like = [0.6, 0.2, 0.1, 0.05, 0.03, 0.02], [0.22, 0.21, 0.17, 0.16, 0.13, 0.11]
    truths, errors = np.array([odd, *[like] * 4]), np.zeros(2)
    for _ in range(10):
        items = [Noisy.of(row, np.full(6, 1e-4), False) for row in truths + 0.01 * rng.normal(size=(5, 6))]
        for way, places in enumerate(([list(range(5))], [[0], [1, 2, 3, 4]])):
            errors[way] += float(((np.array(averaged(items, places)) - truths) ** 2).sum())
    assert errors[0] < 1.1 * errors[1]  # as good as if one knew which of them it is


@pytest.mark.parametrize(
    ("count", "size", "part", "noise"), [(3, 9, 0.7, 0.006), (4, 20, 0.6, 0.005), (6, 6, 0.3, 0.02)]
)
def test_one_attribute_that_is_further_away_leans_on_the_others_less_closely(
    count: int, size: int, part: float, noise: float
) -> None:
    """It gains by that, and the others have the error that they have without it."""
    rng = np.random.default_rng(8)
    first = 1 / np.arange(1, size + 1)
    first /= first.sum()
    truths = np.array([first, *[part * first + (1 - part) / size] * (count - 1)])
    errors = np.zeros((2, count))
    for _ in range(20):
        drawn = truths + rng.normal(0, noise, truths.shape)
        items = [Noisy.of(row, np.full(size, noise**2)) for row in drawn]
        for way, places in enumerate(([range(count)], [[0], range(1, count)])):
            errors[way] += ((np.array(averaged(items, places)) - truths) ** 2).sum(axis=1)
    assert errors[0, 0] < 0.95 * errors[1, 0]  # 1.02 to 1.15 times, if it leans on none
    assert errors[0, 1:].sum() < 1.1 * errors[1, 1:].sum()  # up to 1.66 times, if it leans as they do


@pytest.mark.parametrize("seed", range(6))
def test_who_leaves_at_a_level_and_how_closely_these_lean_is_as_in_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size, half = 7, 4, math.log(0.5)
    near, noise = rng.dirichlet(np.ones(size)), 0.02**2
    centres = near + rng.normal(0, 10 ** rng.uniform(-3, -0.5, (count, 1)), (count, size))
    spreads = noise + near / (in_common._COMMON[:, None, None] + 1) * np.ones((1, count, 1))
    alone = rng.normal(4, 3, count)
    found = in_common._closest(centres, spreads, alone)

    def foretold(wide: np.ndarray, members: set[int], place: int) -> float:
        mask = np.isin(np.arange(count), list(members))
        return float(in_common._foretold(centres, wide, mask)[place])

    for level, wide in enumerate(spreads):
        members, least = set(range(count)), alone + (half if level else 0.0)
        while len(members) > 2:
            gains = {place: foretold(wide, members, place) - least[place] for place in members}
            worst = min(gains, key=gains.__getitem__)
            if gains[worst] >= 0:
                break
            members.remove(worst)
        assert members == set(np.flatnonzero(found[level]))
        alphas, known = in_common._further(centres, spreads[: level + 1], found[level], alone)
        total = 0.0
        for place in set(range(count)) - members:
            mixed = [np.where(found[level][:, None], wide, lower) for lower in spreads[:level]]
            choices = {0.0: alone[place] + (half if level else 0.0)} | {
                float(alpha): foretold(lower, members, place) + half - math.log(level)
                for alpha, lower in zip(in_common._COMMON, mixed, strict=False)
            }
            assert alphas[place] == max(choices, key=choices.__getitem__)
            total += max(choices.values())
        assert known == pytest.approx(total)


def test_values_in_common_do_not_depend_on_the_order_of_attributes() -> None:
    """Not even where two pairs are as far from what all have in common."""
    falling = 1 / np.arange(1, 6) / sum(1 / np.arange(1, 6))
    rows = [falling, falling, falling[::-1], falling[::-1], np.full(5, 0.2)]
    items = [Noisy.of(row, np.full(5, 1e-4)) for row in rows]
    expected = averaged(items, [range(5)])
    for order in permutations(range(5)):
        again = averaged([items[place] for place in order], [range(5)])
        for place, mean in zip(order, again, strict=True):
            np.testing.assert_allclose(mean, expected[place], atol=1e-9)


def test_a_thousand_attributes_may_share_frequencies_although_hundreds_stand_apart() -> None:
    """There are more ways to choose so many of them than a double can hold."""
    rng = np.random.default_rng(41)
    truths = np.where(np.arange(1_100)[:, None] < 700, [0.8, 0.2], [0.1, 0.9])
    estimates = truths[:, :1] + rng.normal(0, 0.03, (1_100, 1))
    items = [Noisy.of(row, np.full(2, 0.0009)) for row in np.hstack([estimates, 1 - estimates])]
    means = np.array(averaged(items, [range(1_100)]))
    errors, plain = (float(((rows[:700] - truths[:700]) ** 2).mean()) for rows in (means, estimates))
    assert errors < 0.2 * plain


def test_skewed_counts_of_many_equally_common_values_do_not_look_uneven() -> None:
    """Sums of unary bits at 18 expected reports a value: taken for normal they err 1.5 times as much."""
    rng = np.random.default_rng(5)
    size, people, lie = 1_000, 1_000, 1 / (math.e**4 + 1)
    gap, flat = 0.5 - lie, np.ones(size)
    none, full = lie * (1 - lie) / gap**2, (0.25 + (0.5 - lie) ** 2 - 0.25 + lie * (1 - lie)) / gap**2
    errors = 0.0
    for _ in range(4):
        held = rng.multinomial(people, flat / size)
        estimate = ((rng.binomial(held, 0.5) + rng.binomial(people - held, lie)) / people - lie) / gap
        law = Unbiased(estimate, none / people * flat, (full - none) / people * flat, 0 * flat, people, False)
        errors += float(((improved([law], [[0]])[0].mean - held / people) ** 2).mean()) / 4
    assert errors < 1.2e-6  # even estimates: 1.0e-6


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e9])
def test_the_compiled_projection_is_the_projection(scale: float, rng: np.random.Generator) -> None:
    for size in (1, 2, 7, 100):
        values = scale * rng.normal(size=size)
        np.testing.assert_allclose(projected(values), to_simplex(values), atol=1e-9 * scale)


def test_evidence_of_mixtures_is_exact_where_noise_is_wide(rng: np.random.Generator) -> None:
    # Draws of three exponentials of random scale, those with a sum near 1 moved onto it.
    rates, weights = np.array([1.0, 20.0]), np.log([1 / 3, 40 / 3])
    kinds = rng.choice(2, size=(1_000_000, 3), p=[1 / 3, 2 / 3])
    drawn = rng.exponential(1 / rates[kinds])
    total = drawn.sum(axis=1)
    near = np.abs(total - 1) < 0.03
    points = drawn[near] / total[near, None]
    centre, noise = np.array([0.6, 0.5, -0.1]), np.array([0.2, 0.3, 0.25])
    logs = -0.5 * (((points - centre) / noise) ** 2).sum(axis=1)
    expected = math.log(np.exp(logs).mean()) + math.log(near.mean() / 0.06)
    mean, spread = np.empty((2, 3))
    assert mixture(centre, noise, rates, weights, TABLES, mean, spread) == pytest.approx(expected, abs=0.05)
    np.testing.assert_allclose(mean, np.exp(logs) @ points / np.exp(logs).sum(), atol=0.01)


@pytest.mark.parametrize("shape", [1.0, 4.0])
def test_the_density_of_a_sum_of_gamma_laws_is_that_of_its_characteristic_function(shape: float) -> None:
    rates = np.array([0.5, 20.0, 400.0]) * shape
    weights = np.log([0.01, 0.29, 0.7]) + shape * np.log(rates)
    steps, step = np.arange(0, 3_000, 0.02), 0.02
    one = (np.exp(weights)[:, None] * (rates[:, None] - 1j * steps) ** -shape).sum(axis=0)
    whole = (one**200 * np.exp(-1j * steps)).real
    exact = math.log((whole.sum() - whole[0] / 2) * step / math.pi)
    assert log_density_of_one(200, rates, weights, shape) == pytest.approx(exact, abs=0.1)


def test_the_fitted_mixture_follows_frequencies_of_which_none_is_small(rng: np.random.Generator) -> None:
    """Mixtures of exponentials always have small ones: their error is above that of a flat prior."""
    share, deviation = np.repeat([0.008, 0.012], 50), 0.004
    errors = np.zeros(2)
    for _ in range(20):
        noisy = Noisy.of(share + deviation * rng.normal(size=100), np.full(100, deviation**2), adds_up=False)
        shape, rates, weights = fitted(noisy)
        mean, spread = np.empty((2, 100))
        mixture(noisy.centre, noisy.deviations, rates, weights, TABLES, mean, spread, shape)
        flat = posterior(noisy.centre, noisy.variances, adds_up=False).mean
        errors += [float(((found - share) ** 2).sum()) for found in (mean, flat)]
    assert errors[0] < 0.8 * errors[1]


def test_levels_have_posterior_means_that_err_less(rng: np.random.Generator) -> None:
    share = np.array([0.7, 0.1, 0.1, 0.05, 0.05, 0.0, 0.0, 0.0])
    mechanisms = [sl.mechanisms.create("grr", 8, 0.5), sl.mechanisms.create("oue", 8, 1.0)]
    errors = np.zeros(2)
    for seed in range(20):
        codes = rng.choice(8, size=(2, 1000), p=share).astype(np.uint16)
        levels = [
            (one, one.aggregate(one.randomise(row, seed=seed)))
            for one, row in zip(mechanisms, codes, strict=True)
        ]
        found = combine_levels(levels)
        assert not found.adds_up
        assert found.posterior_means.sum() == pytest.approx(1.0)
        errors += [float(((one - share) ** 2).sum()) for one in (found.posterior_means, found.frequencies)]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("size", [1, 2, 3, 40])
@pytest.mark.parametrize("deviation", [0.0, 1e-9, 0.01, 1e4])
def test_no_noise_and_noise_beyond_all_bounds_have_posterior_means_too(size: int, deviation: float) -> None:
    wild = np.concatenate([[5.0], np.full(size - 1, -4.0 / max(size - 1, 1))])
    for estimate in (np.eye(size)[0], np.full(size, 1 / size), wild):
        for adds_up in (True, False):
            found = average(estimate, np.full(size, deviation**2), adds_up=adds_up)
            assert found.sum() == pytest.approx(1.0)
            assert found.min() >= -1e-12


@pytest.mark.parametrize("size", [3, 10, 50])
@pytest.mark.parametrize("deviation", [1e-6, 1e-5, 1e-3])
def test_beside_little_noise_nothing_moves_far(size: int, deviation: float) -> None:
    rng = np.random.default_rng(size)
    for share in rng.dirichlet(np.ones(size), 5):
        noisy = Noisy.of(share + deviation * rng.normal(size=size), np.full(size, deviation**2))
        off = np.abs(averaged([noisy], [[0]])[0] - noisy.centre)
        assert off.max() < 4 * deviation  # what noise makes negative is moved by as much
        assert off[noisy.centre > 20 * deviation].max() < deviation


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.5])
def test_posterior_variances_are_the_errors_that_are_seen(deviation: float) -> None:
    rng = np.random.default_rng(5)
    seen = stated = 0.0
    for share in rng.dirichlet(np.ones(6), 150):
        noisy = Noisy.of(share + deviation * rng.normal(size=6), np.full(6, deviation**2), adds_up=False)
        found = posteriors([noisy], [[0]])[0]
        seen += float(((found.mean - share) ** 2).sum())
        stated += float(found.variance.sum())
    # Priors other than the one that is true widen the posterior where noise hides which it is.
    assert 0.7 < stated / seen < (1.5 if deviation < 0.5 else 2.5)


def test_attributes_that_are_all_even_tell_each_other_so() -> None:
    rng = np.random.default_rng(6)
    errors = {"together": 0.0, "alone": 0.0}
    even, noise = np.full(10, 0.1), np.full(10, 0.5**2)
    for _ in range(5):
        items = [Noisy.of(even + rng.normal(size=10) * 0.5, noise, False) for _ in range(12)]
        places = [[place] for place in range(12)]
        for mean in averaged(items, places):
            errors["together"] += float(((mean - even) ** 2).sum())
        for item in items:
            errors["alone"] += float(((averaged([item], [[0]])[0] - even) ** 2).sum())
    assert errors["together"] < 0.6 * errors["alone"]


@pytest.mark.parametrize("sizes", [(4,), (5, 5, 5), (2, 40, 2, 9)])
def test_many_collections_at_once_are_each_as_if_alone(rng, sizes: tuple[int, ...]) -> None:
    domains = [[place for place, size in enumerate(sizes) if size == kind] for kind in set(sizes)]

    def drawn(size: int) -> Noisy:
        return Noisy.of(rng.dirichlet(np.ones(size)) + rng.normal(0, 0.05, size), np.full(size, 0.0025))

    collections = [[drawn(size) for size in sizes] for _ in range(5)]
    for found, attributes in zip(averaged_each(collections, domains), collections, strict=True):
        for mean, alone in zip(found, averaged(attributes, domains), strict=True):
            assert np.array_equal(mean, alone)


@pytest.mark.parametrize("size", [2, 5, 20, 100, 1_000])
@pytest.mark.parametrize("is_given", [False, True])
def test_weights_of_priors_add_up_and_change_with_the_noise_only_between_little_and_much(
    size: int, is_given: bool
) -> None:
    noise = [1e-12, 1e-9, 0.04, 0.07, 0.12, 0.2, 0.4, 0.41, 50.0, math.inf]
    none, least, little, *between, much, more, most, endless = (
        prior_weights(np.full(size, variance), is_given) for variance in noise
    )
    for weights in (little, *between, much):
        assert weights.sum() == pytest.approx(1.0)
        assert not weights[~possible(size, is_given)].any()
    for weights in (none, least):
        np.testing.assert_allclose(weights, little, atol=1e-12)
    for weights in (more, most, endless):
        np.testing.assert_allclose(weights, much, atol=1e-12)
    parts = [float((weights - little) @ (much - little)) for weights in (little, *between, much)]
    assert parts == sorted(parts)
    assert 0 < parts[1] < parts[-1]


def test_one_value_with_much_noise_does_not_make_noise_of_the_others() -> None:
    uneven = prior_weights(np.array([1e-3, 1e-3, 1e-3, 1e-3, 10.0]))
    assert np.array_equal(uneven, prior_weights(np.full(5, 1e-3)))


@pytest.mark.parametrize("size", [4, 10, 20])
def test_much_noise_makes_even_frequencies_likelier_at_little_cost_to_uneven_ones(size: int) -> None:
    """The noise of 1,000 people at eps = 0.1; by eight seeds 0.28 to 0.41 of the error, and 1.03 to 1.18."""
    rng = np.random.default_rng([9, size])
    noise, little = np.full(size, 0.4), prior_weights(np.full(size, 1e-3))
    ratios = []
    for share in (np.full(size, 1 / size), np.eye(size)[0]):
        errors = np.zeros(2)
        for _ in range(150):
            noisy = Noisy.of(share + np.sqrt(noise) * rng.normal(size=size), noise, False)
            plain = under_all([noisy], [None])[0].posterior(little).mean
            for place, mean in enumerate((averaged([noisy], [[0]])[0], plain)):
                errors[place] += float(((mean - share) ** 2).sum())
        ratios.append(errors[0] / errors[1])
    assert ratios[0] < 0.5
    assert ratios[1] < 1.25
