"""The estimators keep scikit-learn's contract, and say what a column, a label or a value must be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sidelight.foundation.errors import InputError
from sidelight.labels import Omega
from sidelight.labels.collection import LabelledRows, LabelSettings, gather, make_response
from sidelight.learning.estimators import (
    PrivateDecisionTree,
    PrivateNaiveBayes,
    code_columns,
    learn_attributes,
)
from sidelight.learning.participants import answer
from sidelight.learning.tree_rounds import TreeRounds, TreeSettings
from sidelight.schema import categorical

NEEDS_MORE = {"check_array_api_input", "check_pipeline_consistency"}
"""Skipped by scikit-learn itself: no array library to test with; noise without a seed differs each time."""


def records(count: int = 6000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A number and a text that follow the label, and one number that does not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    texts = np.where(rng.random(count) < 0.8, np.array(["red", "blue"])[labels], "green")
    columns = np.empty((count, 3), dtype=object)
    columns[:, 0], columns[:, 1], columns[:, 2] = rng.normal(3.0 * labels), texts, rng.normal(size=count)
    return columns, np.array(["no", "yes"])[labels]


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateNaiveBayes(random_state=1),
        PrivateNaiveBayes(),
        PrivateDecisionTree(random_state=1),
        PrivateDecisionTree(scheme="published", random_state=1),
    ],
    ids=["bayes, seeded", "bayes, secure", "tree", "tree, published"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_contract_of_scikit_learn(estimator) -> None:
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert failed == []
    assert skipped <= NEEDS_MORE
    assert len(results) > 45


@pytest.mark.parametrize("kind", [PrivateNaiveBayes, PrivateDecisionTree])
def test_numbers_and_texts_are_learnt_together(kind) -> None:
    train, labels = records()
    test, truth = records(2000, seed=2)
    model = kind(6.0, omega="known", random_state=1).fit(train, labels)
    assert model.score(test, truth) > 0.85
    assert np.allclose(model.predict_proba(test).sum(axis=1), 1)
    assert model.statement_.is_kept
    assert [attribute.kind for attribute in model.attributes_] == ["numeric", "categorical", "numeric"]
    assert clone(model).get_params() == model.get_params()
    again = kind(6.0, omega="known", random_state=1).fit(train, labels)
    assert np.array_equal(again.predict_proba(test), model.predict_proba(test))


def test_pipelines_and_cross_validation_work() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 3000)
    numbers = np.stack([rng.normal(3 * labels), rng.normal(size=3000)], axis=1)
    pipeline = make_pipeline(StandardScaler(), PrivateNaiveBayes(4.0, omega="known", random_state=1))
    assert cross_val_score(pipeline, numbers, labels, cv=3).mean() > 0.85


@pytest.mark.parametrize("kind", [PrivateNaiveBayes, PrivateDecisionTree])
def test_bad_input_says_what_to_change(kind) -> None:
    train, labels = records(500)
    model = kind(4.0, random_state=1).fit(train, labels)
    unseen = train[:3].copy()
    unseen[1, 1] = "violet"
    with pytest.raises(InputError, match="value 'violet', never seen in training; it had blue, green, red"):
        model.predict(unseen)
    words = train[:3].copy()
    words[0, 0] = "many"
    with pytest.raises(InputError, match="must be numbers, as it was in training"):
        model.predict(words)
    with pytest.raises(InputError, match="label is constant"):
        kind().fit(train, ["no"] * len(train))
    with pytest.raises(ValueError, match="requires y"):
        kind().fit(train, None)
    with pytest.raises(InputError, match="`epsilon` must be"):
        kind(0.0).fit(train, labels)
    with pytest.raises(InputError, match="`omega` must be"):
        kind(omega=1.5).fit(train, labels)
    for column in (0, 1):
        gap = train.copy()
        gap[3, column] = None
        with pytest.raises(InputError, match=f"'x{column}' is missing in 1 records, first in record 3"):
            kind().fit(gap, labels)
        with pytest.raises(InputError, match=f"column 'x{column}' is missing"):
            model.predict(gap)
    endless = train.copy()
    endless[0, 0] = np.inf
    with pytest.raises(InputError, match="must hold finite numbers"):
        kind().fit(endless, labels)
    unlabelled = labels.astype(object)
    unlabelled[5] = None
    with pytest.raises(InputError, match="the label is missing in 1 records, first in record 5"):
        kind().fit(train, unlabelled)
    with pytest.raises(InputError, match="at least 0.3333, since the likeliest of 3 values"):
        kind(omega=0.2, random_state=1).fit(train, labels)
    for omega in (None, [0.5], np.array([0.5, 0.5])):
        with pytest.raises(InputError, match="`omega` must be"):
            kind(omega=omega).fit(train, labels)
    with pytest.raises(InputError, match="`random_state` must be"):
        kind(random_state=np.random.RandomState(1)).fit(train, labels)


def test_real_reports_are_learnt_from() -> None:
    train, labels = records()
    test, truth = records(2000, seed=2)
    attributes = learn_attributes(train, 10, ["size", "colour", "noise"])
    sizes = tuple(attribute.size for attribute in attributes)
    codes = (labels == "yes").astype(np.uint16)
    rows = LabelledRows(code_columns(train, attributes), codes, sizes, 2)
    omegas = [Omega.given(1.0, size) for size in sizes]
    settings = LabelSettings(6.0)
    responses = [make_response(settings, size, 2, omega) for size, omega in zip(sizes, omegas, strict=True)]
    model = PrivateNaiveBayes().fit_reports(gather(rows, responses, seed=None), attributes, ["no", "yes"])
    assert model.score(test, truth) > 0.8
    assert model.promise_ <= 6.0
    reports = gather(rows, responses, seed=1)
    with pytest.raises(InputError, match="all 3 attributes, in their order"):
        PrivateNaiveBayes().fit_reports(reports[::-1], attributes, ["no", "yes"])
    with pytest.raises(InputError, match="not about 3 classes"):
        PrivateNaiveBayes().fit_reports(reports, attributes, ["no", "yes", "perhaps"])
    state = TreeRounds.start(TreeSettings(6.0, 2), sizes, 2, omegas)
    tree = PrivateDecisionTree()
    with pytest.raises(InputError, match="round 1 of 2 has not been received"):
        tree.fit_reports(state, attributes, ["no", "yes"])
    groups = np.zeros(len(rows), dtype=np.int64)
    while not state.is_done:
        asked = state.ask()
        answers = answer(asked, rows, groups)
        state, groups = state.receive(asked, answers.aggregates), answers.groups
    tree.fit_reports(state, attributes, ["no", "yes"])
    assert tree.score(test, truth) > 0.7
    assert "colour" in tree.text() or "size" in tree.text()


@pytest.mark.parametrize("secret", ["label", "attributes"])
def test_the_promise_of_real_reports_is_about_what_is_secret(secret) -> None:
    attributes = [categorical("colour", ["red", "blue"])]
    codes = np.random.default_rng(1).integers(0, 2, size=(500, 1)).astype(np.uint16)
    rows = LabelledRows(codes, codes[:, 0], (2,), 2)
    settings = LabelSettings(2.0, secret=secret)
    reports = gather(rows, [make_response(settings, 2, 2, Omega.given(1.0, 2))], seed=1)
    model = PrivateNaiveBayes(2.0, secret=secret).fit_reports(reports, attributes, ["no", "yes"])
    assert 1.9 < model.promise_ <= 2.0
    assert PrivateNaiveBayes(2.0).fit_reports(reports, attributes, ["no", "yes"]).promise_ == np.inf


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"secret": "label", "scheme": "turns"}, "`scheme` 'turns' has people answer in rounds"),
        ({"protocol": "labeldp", "scheme": "published"}, "leave it out, or use secret='both' with protocol="),
        ({"budgets": "published"}, "with scheme='once' everyone answers once"),
        ({"scheme": "turns", "budgets": "published"}, "or use scheme='leaves'"),
    ],
)
def test_rounds_that_nobody_would_have_are_refused(given, words) -> None:
    with pytest.raises(InputError, match=words):
        PrivateDecisionTree(random_state=1, **given).fit(*records(300))


def test_a_constant_column_has_nothing_to_hide() -> None:
    train = np.column_stack([np.arange(100) % 2, np.ones(100)])
    with pytest.raises(InputError, match="column 'x1' is constant and has nothing to hide"):
        PrivateNaiveBayes(secret="attributes").fit(train, train[:, 0].astype(int))


def test_a_value_that_many_share_has_a_bin_of_its_own() -> None:
    """Nine in ten are 0, as with capital gains: plain deciles would leave a single bin."""
    rng = np.random.default_rng(1)
    numbers = np.where(rng.random(2000) < 0.92, 0.0, rng.exponential(5, 2000))
    (attribute,) = learn_attributes(numbers[:, None], 10, ["gain"])
    codes = code_columns(numbers[:, None], [attribute])[:, 0]
    assert attribute.size > 5
    assert np.array_equal(codes == 0, numbers == 0)
    both = np.concatenate([numbers, -numbers])
    (attribute,) = learn_attributes(both[:, None], 10, ["gain"])
    codes = code_columns(both[:, None], [attribute])[:, 0]
    own = codes[both == 0][0]
    assert np.array_equal(codes == own, both == 0)


def test_a_tree_is_drawn(tmp_path) -> None:
    train, labels = records()
    tree = PrivateDecisionTree(6.0, max_depth=2, omega="known", random_state=1).fit(train, labels)
    assert tree.draw(tmp_path / "tree.svg").read_text().startswith("<svg")
    with pytest.raises(InputError, match="must end in .svg"):
        tree.draw(tmp_path / "tree.png")
