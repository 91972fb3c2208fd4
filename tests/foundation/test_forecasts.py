"""What probabilities are worth: against scikit-learn, brute force and simulation."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, roc_auc_score

from sidelight.foundation.errors import InputError
from sidelight.foundation.forecasts import Finding, Measures, measure, suspected
from sidelight.foundation.intervals import Interval, exact_interval, wilson_interval
from sidelight.foundation.ranking import Ranking
from sidelight.foundation.reliability import Reliability


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct scores, so that most are tied; at least one person has the value and one has not."""
    has = draw(st.lists(st.booleans(), min_size=2, max_size=40).filter(lambda x: 0 < sum(x) < len(x)))
    levels = draw(st.integers(1, 6))
    scores = draw(st.lists(st.integers(0, levels), min_size=len(has), max_size=len(has)))
    return np.array(scores) / 7, np.array(has)


@given(scored())
def test_areas_and_precisions_are_scikit_learns(case) -> None:
    scores, has = case
    ranking = Ranking.of(scores, has)
    assert ranking.auc == pytest.approx(roc_auc_score(has, scores), abs=1e-12)
    assert ranking.average_precision == pytest.approx(average_precision_score(has, scores), abs=1e-12)
    found, suspects = ranking.roc()[::-1]
    assert np.trapezoid(found, suspects) == pytest.approx(ranking.auc, abs=1e-12)


@given(scored())
def test_the_variance_of_an_area_is_that_of_its_pairs(case) -> None:
    """DeLong's variance by all pairs, one by one."""
    scores, has = case
    ranking = Ranking.of(scores, has)
    own, others = scores[has], scores[~has]
    wins = (own[:, None] > others) + 0.5 * (own[:, None] == others)
    expected = wins.mean(axis=1).var() / len(own) + wins.mean(axis=0).var() / len(others)
    assert ranking.auc_variance == pytest.approx(expected, abs=1e-12)


@given(scored(), st.integers(1, 40))
def test_hits_among_tied_people_are_a_mean_over_their_orders(case, count: int) -> None:
    scores, has = case
    count = min(count, len(has))
    order = np.argsort(-scores, kind="stable")
    least = scores[order[count - 1]]
    surely, tied = scores > least, scores == least
    expected = has[surely].sum() + has[tied].mean() * (count - surely.sum())
    assert Ranking.of(scores, has).hits_among(count) == pytest.approx(expected, abs=1e-9)


def test_what_chance_gives_is_the_mean_over_all_orders() -> None:
    """Seven people of whom three have the value, in all 5,040 orders: mean, and the variance of the area."""
    orders = [np.array(order) for order in itertools.permutations(range(7))]
    has = np.arange(7) < 3
    found = [Ranking.of(order / 7, has) for order in orders]
    mean = np.mean([ranking.average_precision for ranking in found])
    assert found[0].chance_precision == pytest.approx(mean, abs=1e-12)
    assert found[0].chance_variance == pytest.approx(np.var([ranking.auc for ranking in found]), abs=1e-12)
    tied = np.array([0, 0, 0, 1, 1, 2, 2])
    aucs = [Ranking.of(tied[order] / 7, has).auc for order in orders]
    assert Ranking.of(tied / 7, has).chance_variance == pytest.approx(np.var(aucs), abs=1e-12)


def test_the_influence_on_average_precision_is_its_derivative(rng) -> None:
    """One more copy of each person moves it by 1 / n of the influence (to 1e-3 with weights of 1e-5)."""
    scores, has = np.round(rng.random(60), 1), rng.random(60) < 0.4
    base, step = average_precision_score(has, scores), 1e-5
    squares = 0.0
    for person in range(60):
        weights = np.ones(60)
        weights[person] += step * 60
        moved = average_precision_score(has, scores, sample_weight=weights)
        squares += ((moved - base) / step) ** 2
    interval = Ranking.of(scores, has).precision_interval(0.95)
    expected = wilson_interval(base, base * (1 - base) / (squares / 60**2), 0.95)
    assert interval.lower == pytest.approx(expected.lower, abs=1e-3)
    assert interval.upper == pytest.approx(expected.upper, abs=1e-3)


@pytest.mark.parametrize("hits", [0, 1, 7, 30])
def test_shares_have_the_exact_interval(hits: int) -> None:
    found = exact_interval(hits, 30, 0.99)
    expected = binomtest(hits, 30).proportion_ci(0.99, method="exact")
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert exact_interval(7.5, 30).lower > exact_interval(7, 30).lower


def test_scores_that_rounding_tells_apart_are_equal() -> None:
    ranking = Ranking.of(np.array([0.3, 0.1 + 0.2, 0.5]), np.array([True, False, True]))
    assert ranking.people.tolist() == [1, 2]


def truth_and_scores(rng, people: int, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """A value that 11 % have, and probabilities that know a normal number about each person."""
    truth = (rng.random(people) < 0.11).astype(np.intp)
    odds = np.log(0.11 / 0.89) - strength**2 / 2 + strength * (strength * truth + rng.normal(size=people))
    yes = 1 / (1 + np.exp(-odds))
    return truth, np.stack([1 - yes, yes], axis=1)


def measured(truth: np.ndarray, scores: np.ndarray, confidence: float = 0.95) -> Measures:
    return measure(scores, truth, ["no", "yes"], scores.argmax(axis=1), confidence)


def test_all_measures_are_scikit_learns(rng) -> None:
    truth, scores = truth_and_scores(rng, 4000, 1.0)
    found = measured(truth, scores)
    guesses = scores.argmax(axis=1)
    assert found.find("AUC").figure.value == pytest.approx(roc_auc_score(truth, scores[:, 1]))
    assert found.find("balanced accuracy").figure.value == pytest.approx(
        balanced_accuracy_score(truth, guesses)
    )
    assert found.find("accuracy").figure.value == pytest.approx((guesses == truth).mean())
    assert found.log_loss.value == pytest.approx(log_loss(truth, scores))
    assert found.find("average precision", "yes").figure.value == pytest.approx(
        average_precision_score(truth, scores[:, 1])
    )
    top = np.argsort(-scores[:, 1])[:400]
    share = next(item for item in found.findings if item.suspected == 400 and item.value == "yes")
    assert share.figure.value == pytest.approx(truth[top].mean())
    assert share.lift.value == pytest.approx(truth[top].mean() / truth.mean())
    assert found.looks == 15
    assert len(found.findings) == 13


def test_the_mean_area_of_several_values_has_the_variance_of_its_parts(rng) -> None:
    """Against 400 bootstrap samples (a deviation known to 4 %): within 15 %."""
    truth = rng.choice(3, size=1500, p=[0.6, 0.3, 0.1])
    scores = rng.dirichlet(np.ones(3), size=1500) + 0.4 * np.eye(3)[truth] * rng.random((1500, 1))
    scores /= scores.sum(axis=1, keepdims=True)
    found = measure(scores, truth, ["a", "b", "c"], scores.argmax(axis=1))
    macro = found.find("AUC")
    aucs = []
    for _ in range(400):
        rows = rng.integers(0, 1500, 1500)
        aucs.append(np.mean([Ranking.of(scores[rows, v], truth[rows] == v).auc for v in range(3)]))
    z = NormalDist().inv_cdf(1 - 0.025 / found.looks)
    assert (macro.figure.upper - macro.figure.lower) / 2 / z == pytest.approx(np.std(aucs), rel=0.15)


def test_intervals_cover_together_as_often_as_they_say(rng) -> None:
    """300 samples of 1,500 people; the true figures are those of two million.

    Together they cover with at least 95 %. False alarm below 1e-3: fewer than 270 of 300.
    """
    truth, scores = truth_and_scores(rng, 2_000_000, 0.8)
    large = Ranking.of(scores[:, 1], truth == 1)
    known = {"AUC": large.auc, "average precision": large.average_precision}
    known["share of hits"] = large.hits_among(200_000) / 200_000
    known["accuracy"] = (scores.argmax(axis=1) == truth).mean() - (truth == 0).mean()
    covered = 0
    for sample in range(300):
        rows = slice(1500 * sample, 1500 * (sample + 1))
        found = measured(truth[rows], scores[rows])
        told = [found.find("AUC", "yes"), found.find("average precision", "yes")]
        told.append(next(f for f in found.findings if f.suspected == 150 and f.value == "yes"))
        inside = [item.figure.lower <= known[item.kind] <= item.figure.upper for item in told]
        accuracy = found.find("accuracy")
        gain = known["accuracy"] + accuracy.control
        covered += all(inside) and accuracy.figure.lower <= gain <= accuracy.figure.upper
    assert covered >= 270


def test_single_intervals_are_not_far_too_wide_either(rng) -> None:
    """400 samples at 80 % each: between 74 % and 88 % cover (false alarm below 1e-3)."""
    truth, scores = truth_and_scores(rng, 800_000, 0.8)
    large = Ranking.of(scores[:, 1], truth == 1)
    covered = np.zeros(2)
    for sample in range(400):
        rows = slice(2000 * sample, 2000 * (sample + 1))
        ranking = Ranking.of(scores[rows, 1], truth[rows] == 1)
        both = ranking.auc_interval(0.8), ranking.precision_interval(0.8)
        values = large.auc, large.average_precision
        covered += [part.lower <= value <= part.upper for part, value in zip(both, values, strict=True)]
    assert (covered >= 296).all()
    assert (covered <= 352).all()


def test_probabilities_that_are_right_are_calibrated_and_others_are_not(rng) -> None:
    truth, scores = truth_and_scores(rng, 30_000, 1.0)
    right = measured(truth, scores).calibration
    assert right.error.lower == 0
    assert right.error.value < 2 * right.chance
    bold = scores**2 / (scores**2).sum(axis=1, keepdims=True)
    wrong = measured(truth, bold).calibration
    assert wrong.error.lower > wrong.chance


def test_reliability_by_hand() -> None:
    """Two groups of tied people in two bins: 0.2 with 1 of 4, 0.6 with 3 of 4."""
    scores = np.repeat([0.2, 0.6], 4)
    has = np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    part = Reliability.of("yes", Ranking.of(scores, has), bins=2)
    assert part.people.tolist() == [4, 4]
    assert part.predicted.tolist() == pytest.approx([0.2, 0.6])
    assert part.found.tolist() == pytest.approx([0.25, 0.75])
    assert part.error == pytest.approx(0.5 * 0.05 + 0.5 * 0.15)


def test_what_was_held_impossible_makes_the_log_loss_infinite() -> None:
    scores = np.array([[1.0, 0.0], [0.5, 0.5], [0.3, 0.7]])
    found = measured(np.array([1, 0, 1]), scores)
    assert math.isinf(found.log_loss.value)
    assert found.impossible == 1
    assert found.to_dict()["log_loss"]["value"] is None
    assert found.to_dict()["information"]["value"] is None


def test_where_nothing_is_ranked_every_figure_is_its_control(rng) -> None:
    truth = (rng.random(500) < 0.3).astype(np.intp)
    found = measured(truth, np.tile([0.7, 0.3], (500, 1)))
    assert found.find("AUC").figure == Interval.exactly(0.5)
    share = next(item for item in found.findings if item.suspected and item.value == "yes")
    assert share.figure == Interval.exactly(truth.mean())


def test_few_people_prove_little() -> None:
    """Three of 300 have it and all three lead: the area is 1, and its interval has one half in it."""
    truth = (np.arange(300) < 3).astype(np.intp)
    yes = np.linspace(0.9, 0.1, 300)
    found = measured(truth, np.stack([1 - yes, yes], axis=1))
    auc = found.find("AUC", "yes")
    assert auc.figure.value == 1
    assert auc.figure.lower < 0.5
    assert found.find("AUC") is None, "no mean over values that so few have"


def test_a_value_that_all_or_none_have_is_left_out(rng) -> None:
    scores = rng.dirichlet(np.ones(3), size=100)
    found = measure(scores, np.zeros(100, dtype=np.intp), ["a", "b", "c"], scores.argmax(axis=1))
    assert {item.kind for item in found.findings} == {"accuracy", "balanced accuracy"}
    assert found.entropy == 0


def test_odds_are_compared_with_those_of_the_control() -> None:
    item = Finding("share of hits", "yes", Interval(0.4, 0.3, 1.0), 0.1, 500)
    assert item.odds_factor(0.4) == pytest.approx(0.4 / 0.6 / (0.1 / 0.9))
    assert item.odds_factor(1.0) == math.inf
    assert item.is_above
    assert item.to_dict()["lift"]["value"] == pytest.approx(4.0)


def test_how_many_are_suspected() -> None:
    assert suspected(1_000_000) == [500, 10_000, 100_000]
    assert suspected(50_000) == [500, 5000]
    assert suspected(39) == []


@pytest.mark.parametrize("confidence", [0, 1, math.nan])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(InputError, match="`confidence`"):
        measured(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]), confidence)
