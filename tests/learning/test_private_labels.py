"""Where only the label is secret: corrections without bias, weights of models, the estimator."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.learning.test_learning_estimators import NEEDS_MORE

from sidelight.foundation.errors import InputError
from sidelight.learning import PrivateLabels
from sidelight.learning.debiasing import PrivateTargets, restored
from sidelight.learning.label_only import Columns, blended, wrapped
from sidelight.learning.logistic import corrected_loss, fit_logistic
from sidelight.learning.stacking import mixture_scores, stacking_weights
from sidelight.mechanisms.subset import SubsetSelection


def all_reports(selection: SubsetSelection) -> tuple[PrivateTargets, np.ndarray]:
    """Every set that can be reported, and its probability given each label, (labels, sets)."""
    sets = list(combinations(range(selection.size), selection.width))
    held = np.zeros((len(sets), selection.size), dtype=bool)
    for row, part in zip(held, sets, strict=True):
        row[list(part)] = True
    law = selection.report_law(1 << 12)
    assert law is not None
    return PrivateTargets(selection, held), law


@given(st.integers(2, 6), st.floats(0.1, 4.0), st.integers(0, 10_000))
def test_corrections_have_no_bias(labels: int, epsilon: float, seed: int) -> None:
    """By enumeration of all reports: targets, the corrected loss and the way back of probabilities."""
    for width in range(1, labels):
        targets, law = all_reports(SubsetSelection(labels, epsilon, width))
        assert law @ targets.unbiased == pytest.approx(np.eye(labels), abs=1e-9)
        assert targets.unbiased.sum(axis=1) == pytest.approx(1.0)
        scores = np.random.default_rng(seed).normal(scale=2, size=labels)
        losses = corrected_loss(np.tile(scores, (len(targets), 1)), targets.unbiased)
        true = np.log(np.exp(scores).sum()) - scores
        assert law @ losses == pytest.approx(true, abs=1e-7)
        chances = np.random.default_rng(seed).dirichlet(np.ones(labels))
        reported = (chances @ law) @ targets.held / width  # one label of the set by chance
        assert restored(reported[None, :], targets.selection)[0] == pytest.approx(chances, abs=1e-7)
        posterior = targets.posterior(np.tile(chances, (len(targets), 1)))
        exact = chances[:, None] * law
        assert posterior == pytest.approx((exact / exact.sum(axis=0)).T, abs=1e-9)


def test_the_score_of_a_mixture_has_no_bias_and_a_known_noise() -> None:
    """400 collections of the same people; the mean is within 5 of its standard errors (1e-6)."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 400)
    outside = rng.dirichlet(np.ones(3), size=(2, 400))
    found, noises = [], []
    for seed in range(400):
        targets = PrivateTargets.simulated(labels, 3, 1.0, seed=seed)
        _, hits, noise = mixture_scores(outside, targets.unbiased)
        found.append(hits)
        noises.append(noise)
    true = outside[:, np.arange(400), labels].mean(axis=1)
    spread = np.std(found, axis=0, ddof=1)
    assert np.abs(np.mean(found, axis=0) - true).max() < 5 * spread.max() / 20
    assert np.sqrt(np.diag(np.mean(noises, axis=0))) == pytest.approx(spread, rel=0.2)


def test_weights_go_to_the_better_model_and_are_shared_where_noise_hides_it() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 4000)
    good = np.where(labels[:, None] == np.arange(2), 0.8, 0.2)
    outside = np.stack([good, np.full((4000, 2), 0.5), 1 - good])
    clear = stacking_weights(outside, PrivateTargets.simulated(labels, 2, 3.0, seed=1).unbiased)
    assert clear[0] > 0.9
    assert clear.sum() == pytest.approx(1.0)
    alike = np.stack([good, good + rng.normal(scale=1e-3, size=good.shape)])
    many = [PrivateTargets.simulated(labels, 2, 0.1, seed=seed) for seed in range(40)]
    hidden = [stacking_weights(alike, targets.unbiased)[0] for targets in many]
    assert 0.3 < np.mean(hidden) < 0.7, "uniform where nothing tells them apart: 4 standard errors"
    assert stacking_weights(good[None], np.eye(2)[labels]).tolist() == [1.0]


def test_logistic_regression_without_noise_is_the_usual_one() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, size=(500, 2)).astype(np.uint16)
    labels = (codes[:, 0] + rng.integers(0, 2, 500) > 1).astype(int)
    model = fit_logistic(codes, np.eye(2)[labels], (3, 3), 2.0)
    design = np.concatenate([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]], axis=1)
    # Two columns of weights a and -a are held back twice as much as one of 2 a.
    usual = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(design, labels)
    assert model.probabilities(codes)[:, 1] == pytest.approx(usual.predict_proba(design)[:, 1], abs=0.02)
    assert model.fits((3, 3), 2)
    assert not model.fits((3, 2), 2)


def products(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A label that no linear model predicts."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, 2))
    return numbers, np.where(numbers[:, 0] * numbers[:, 1] > 0, "yes", "no")


def test_the_default_finds_what_a_linear_model_misses() -> None:
    train, labels = products(3000, 1)
    test, truth = products(1000, 2)
    model = PrivateLabels(epsilon=2.0, folds=3, random_state=1).fit(train, labels)
    assert model.score(test, truth) > 0.85
    assert max(model.weights_, key=model.weights_.get) == "boosting"
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert model.promise_ <= 2.0
    assert model.statement_.is_kept
    assert "attributes say, which are public here" in model.statement_.sentence()
    again = PrivateLabels(epsilon=2.0, folds=3, random_state=1).fit(train, labels)
    assert np.array_equal(again.predict_proba(test), model.predict_proba(test))


@pytest.mark.parametrize("method", ["probabilities", "weights"])
def test_any_classifier_learns_from_private_labels(method) -> None:
    train, labels = products(3000, 3)
    test, truth = products(1000, 4)
    forest = RandomForestClassifier(20, min_samples_leaf=40, random_state=0)
    model = PrivateLabels(forest, epsilon=2.0, method=method, random_state=1).fit(train, labels)
    assert model.score(test, truth) > 0.8
    several = PrivateLabels([forest, LogisticRegression()], epsilon=2.0, folds=2, random_state=1)
    weights = several.fit(train, labels).weights_
    assert weights["RandomForestClassifier 1"] > 0.9 > weights["LogisticRegression 2"]


def test_real_reports_are_learnt_from() -> None:
    train, labels = products(2000, 5)
    classes = ["no", "yes"]
    codes = (labels == "yes").astype(np.uint16)
    reports = SubsetSelection(2, 2.0).randomise(codes, seed=3)
    forest = RandomForestClassifier(20, min_samples_leaf=40, random_state=0)
    model = PrivateLabels(forest, epsilon=2.0).fit_reports(train, reports, classes)
    assert model.statement_ is None
    assert model.score(*products(500, 6)) > 0.75
    with pytest.raises(InputError, match="one report for each record, got 2000 and 1999"):
        PrivateLabels(forest, epsilon=2.0).fit_reports(train[:-1], reports, classes)
    for classes in (["no"], ["no", "no"], [["no", "yes"]]):
        with pytest.raises(InputError, match="at least two classes"):
            PrivateLabels(forest).fit_reports(train, reports, classes)


def test_the_statement_is_of_the_attributes_as_they_are_sent() -> None:
    """Bins would say less: a number of its own tells the label of everyone."""
    numbers = np.arange(400.0)[:, None]
    labels = np.where(np.arange(400) % 2 == 0, "yes", "no")
    model = PrivateLabels(epsilon=1.0, folds=2, bins=2, random_state=1).fit(numbers, labels)
    assert model.statement_.labeldp == np.inf
    assert model.statement_.leakage <= 1.0
    named = np.array([["a", 1], ["a", 1], ["b", 2], ["b", 2]] * 50, dtype=object)
    other = np.array(["yes", "no", "yes", "no"] * 50)
    forest = RandomForestClassifier(5, random_state=0)
    only = np.array([[0], [0], [1], [1]] * 50)
    said = PrivateLabels(forest, epsilon=1.0, random_state=1).fit(only, other).statement_
    assert said.labeldp == pytest.approx(1.0), "attributes that say nothing add nothing"
    default = PrivateLabels(epsilon=1.0, folds=2, random_state=1).fit(named, other)
    assert default.statement_.labeldp == pytest.approx(1.0)


def test_no_label_becomes_impossible() -> None:
    train, labels = products(2000, 8)
    for estimator in (None, RandomForestClassifier(20, min_samples_leaf=5, random_state=0)):
        model = PrivateLabels(estimator, epsilon=1.0, folds=2, random_state=1).fit(train, labels)
        for part in model.model_.parts.values():
            likely = part(model._columns(train, train))
            assert likely.min() > 0
            assert likely.sum(axis=1) == pytest.approx(1.0)


def test_bad_input_says_what_to_change() -> None:
    train, labels = products(200, 7)
    for odd in ("logistic", LogisticRegression, RidgeClassifier(), 3, [LogisticRegression(), None]):
        with pytest.raises(
            InputError, match="`estimator` must be a classifier of scikit-learn with predict_p"
        ):
            PrivateLabels(odd).fit(train, labels)
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample weights"):
        PrivateLabels(KNeighborsClassifier(), method="weights").fit(train, labels)
    with pytest.raises(InputError, match="`method` must be one of"):
        PrivateLabels(method="odd").fit(train, labels)
    with pytest.raises(InputError, match="`folds` must be"):
        PrivateLabels(folds=1).fit(train, labels)
    with pytest.raises(InputError, match="from 1 to 8 classifiers, got 0"):
        PrivateLabels([]).fit(train, labels)
    with pytest.raises(InputError, match="label is constant"):
        PrivateLabels().fit(train, ["no"] * len(train))
    with pytest.raises(InputError, match="`random_state` must be"):
        PrivateLabels(random_state=np.random.RandomState(1)).fit(train, labels)
    with pytest.raises(InputError):
        PrivateLabels(epsilon=0.0).fit(train, labels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [LogisticRegression(), pytest.param(None, marks=pytest.mark.deep)])
def test_the_contract_of_scikit_learn(estimator) -> None:
    checked = PrivateLabels(estimator, folds=2, random_state=1)
    results = check_estimator(checked, on_fail=None, on_skip=None)
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= NEEDS_MORE


@pytest.mark.parametrize("method", ["probabilities", "weights"])
def test_classifiers_may_select_columns_by_name(method) -> None:
    """A data frame stays one on its way to the classifier; the column that is left out changes nothing."""
    train, labels = products(1500, 7)
    frame = pd.DataFrame(train.astype(np.float64), columns=[f"c{i}" for i in range(train.shape[1])])
    scaled = ColumnTransformer([("scaled", StandardScaler(), ["c1", "c0"])])
    classifier = Pipeline([("columns", scaled), ("model", LogisticRegression())])
    if method == "weights":
        classifier = BaggingClassifier(LogisticRegression(), n_estimators=2, random_state=1)
    model = PrivateLabels(classifier, epsilon=4.0, method=method, random_state=1).fit(frame, labels)
    assert list(model.feature_names_in_) == list(frame.columns)
    likely = model.predict_proba(frame)
    if method == "probabilities":
        other = frame.assign(**dict.fromkeys(frame.columns[2:], 0.0))
        assert model.predict_proba(other) == pytest.approx(likely)
        with pytest.raises(ValueError, match="only supported for dataframes"):
            PrivateLabels(classifier).fit(frame.to_numpy(), labels)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"c0": "other"}))


def test_hardly_any_people_do_no_harm() -> None:
    targets = PrivateTargets.simulated([0, 0], 2, 8.0, seed=1)
    columns = Columns.of_codes(np.zeros((2, 1), dtype=np.uint16), (2,))
    blend = blended({"a": wrapped(LogisticRegression(), "probabilities")}, columns, targets)
    assert blend(columns).sum(axis=1) == pytest.approx(1.0)
