"""What a model of a label is worth: the limit by brute force, the references, the words."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.tree import DecisionTreeClassifier

import sidelight as sl
from sidelight.foundation.forecasts import measure
from sidelight.labels.collection import LabelledRows, LabelSettings
from sidelight.learning.learnt import Learnt, labelled_rows, learn, read_model
from sidelight.learning.tested import OWN, UNPROTECTED, limit_of, unprotected, verdict
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.report.learning import model_rows, notes
from sidelight.report.page import page_of, render
from sidelight.sources import clinic


def rows_of(rng, people: int = 60, values: int = 3) -> LabelledRows:
    codes = rng.integers(0, values, size=(people, 1)).astype(np.uint16)
    labels = ((codes[:, 0] == 0) ^ (rng.random(people) < 0.3)).astype(np.uint16)
    return LabelledRows(codes, labels, (values,), 2)


def test_no_model_exceeds_the_limit(rng) -> None:
    """Every prediction of the three values, and every order of them: the best of all is the limit."""
    rows = rows_of(rng)
    limit = limit_of(rows)
    truth, cell = rows.labels, rows.codes[:, 0]
    rules = [np.array(rule)[cell] for rule in product((0, 1), repeat=3)]
    assert limit.accuracy == pytest.approx(max((rule == truth).mean() for rule in rules))
    recalls = [np.mean([(rule[truth == v] == v).mean() for v in (0, 1)]) for rule in rules]
    assert limit.balanced_accuracy == pytest.approx(max(recalls))
    orders = [np.array(order)[cell] for order in product(range(3), repeat=3)]
    assert limit.auc == pytest.approx(max(roc_auc_score(truth, order) for order in orders))
    shares = np.array([truth[cell == value].mean() for value in range(3)])
    other = np.clip(shares + rng.normal(0, 0.05, 3), 0.01, 0.99)[cell]
    loss = -np.where(truth == 1, np.log(other), np.log(1 - other)).mean()
    assert limit.log_loss < loss
    assert limit.alone == 0


def test_records_that_are_alone_are_counted() -> None:
    codes = np.array([[0], [1], [2], [2]], dtype=np.uint16)
    limit = limit_of(LabelledRows(codes, np.array([0, 1, 0, 1], dtype=np.uint16), (3,), 2))
    assert limit.alone == 0.5
    assert limit.accuracy == 0.75
    assert limit.auc is None, "too few people for an AUC"


def test_a_limit_without_loss_is_not_below_zero() -> None:
    codes = np.array([[0], [1], [2]], dtype=np.uint16)
    limit = limit_of(LabelledRows(codes, np.array([0, 1, 0], dtype=np.uint16), (3,), 2))
    assert f"{limit.log_loss:.4f}" == "0.0000"


@pytest.mark.parametrize("depth", [None, 3])
def test_the_unprotected_model_is_scikit_learns(depth: int | None) -> None:
    rows, *_ = labelled_rows(clinic(3000), "condition")
    train, test = rows[np.arange(2000)], rows[np.arange(2000, 3000)]
    plain = CategoricalNB() if depth is None else DecisionTreeClassifier(max_depth=depth, random_state=0)
    plain.fit(train.codes, train.labels)
    found = unprotected(train, test, "bayes" if depth is None else "tree", depth or 1)
    assert (found > 0).all()
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found.argmax(axis=1).tolist() == plain.predict(test.codes).tolist()


@pytest.fixture(scope="module")
def weak() -> Learnt:
    settings = TreeSettings(scheme="turns")
    return learn(clinic(6000), "condition", "tree", LabelSettings(0.5), settings, seed=1)


def test_a_model_that_is_no_better_than_the_commonest_label_says_so_first(weak: Learnt) -> None:
    assert "no better than always guessing the commonest label" in notes(weak)[0]
    assert "no better than chance (AUC 0.500)" in weak.verdict
    assert "no better than the commonest label" in render(page_of(weak))


def test_a_model_that_ranks_says_so_where_accuracy_does_not() -> None:
    found = learn(clinic(), "condition", "bayes", LabelSettings(0.2), seed=1)
    assert "It does rank people, with an AUC of 0." in found.verdict
    better = learn(clinic(), "condition", "bayes", LabelSettings(8.0), seed=1)
    assert better.verdict == "The model is better than always guessing the commonest label."


def test_chance_is_seldom_called_better(rng) -> None:
    """200 models that know nothing; each is called better with at most 5 %: more than 21 with 1e-3."""
    better = 0
    for _ in range(200):
        truth = (rng.random(800) < 0.45).astype(np.intp)
        likely = rng.dirichlet([2.0, 2.0], size=800)
        better += "is better" in verdict(measure(likely, truth, ["no", "yes"], likely.argmax(axis=1)))
    assert better <= 21


def test_every_model_stands_beside_the_others(weak: Learnt, tmp_path) -> None:
    rows = {row[0]: row[1:] for row in model_rows(weak)}
    assert list(rows) == ["decision tree", UNPROTECTED, "commonest label", "limit of any model"]
    assert rows["commonest label"][0] == f"{weak.control:.4f}"
    assert rows["decision tree"][0].startswith(f"{weak.accuracy:.4f} (")
    plain = json.loads(weak.to_json())
    assert set(plain["measures"]) == {OWN, UNPROTECTED}
    assert plain["limit"]["accuracy"] >= plain["references"][UNPROTECTED]
    assert plain["verdict"] == weak.verdict
    path = weak.write(tmp_path / "model.json")
    codes = sl.example("clinic").codes()[:50, 1:]
    assert read_model(path).predict(codes).tolist() == weak.predict(codes).tolist()


def test_a_model_file_without_the_measures_is_still_read(weak: Learnt, tmp_path) -> None:
    content = weak.to_data()
    for name in ("measures", "limit", "verdict"):
        del content[name]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    assert read_model(path).fits([2] * 12, 2)


def test_the_interval_of_a_log_loss_is_not_below_zero() -> None:
    likely = np.full((200, 2), [1.0, 0.0])
    likely[0] = [0.9, 0.1]
    truth = np.zeros(200, dtype=np.intp)
    truth[1:20], likely[1:20] = 1, [0.0, 1.0]
    loss = measure(likely, truth, ["a", "b"], likely.argmax(axis=1)).log_loss
    assert f"{loss.lower:.4f}" == "0.0000"
    assert loss.lower < loss.value < loss.upper
