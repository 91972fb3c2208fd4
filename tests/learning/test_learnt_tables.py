"""Tables drawn to independence, what is secret as an argument, trees read off tables."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.labelled_people import people

from sidelight.foundation.errors import InputError
from sidelight.labels import HeadsResponse, LabelledRows, LabelSettings
from sidelight.labels.collection import gather, learning_pays, make_responses, settle_omegas
from sidelight.labels.value_response import ValueOnlyResponse
from sidelight.learning.bayes import BayesModel, bayes_from_reports, private_bayes
from sidelight.learning.bayes_trees import bayes_trees, tree_of_bayes
from sidelight.learning.cart import private_tree
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.learnt import checked_kind, learn, read_model
from sidelight.learning.private_labels import PrivateLabels
from sidelight.learning.tables import TableEstimate, shrunken_shares, shrunken_tables, table_around
from sidelight.learning.tree_rounds import TreeRounds, TreeSettings
from sidelight.mechanisms.reports import Reports
from sidelight.sources import clinic

PRIOR = np.array([0.3, 0.7])
MARGINAL = np.array([0.2, 0.5, 0.3])


def estimates(joint: np.ndarray, noise: float, *, ordered: bool = False) -> TableEstimate:
    return TableEstimate(joint, np.full(joint.shape, noise), joint.sum(axis=1), ordered)


def test_noise_is_drawn_to_independence_and_signal_is_kept() -> None:
    table = np.array([[0.5, 0.4, 0.1], [0.1, 0.6, 0.3]])
    joint = (PRIOR[:, None] * table).T
    (clear,) = shrunken_tables([estimates(joint, 1e-9)], PRIOR)
    assert clear == pytest.approx(table, abs=1e-3)
    (drowned,) = shrunken_tables([estimates(joint, 1e3)], PRIOR)
    assert drowned == pytest.approx(np.tile(joint.sum(axis=1), (2, 1)), abs=1e-3)
    kept = [
        np.abs(shrunken_tables([estimates(joint, noise)], PRIOR)[0] - joint.sum(axis=1)).sum()
        for noise in (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
    ]
    assert kept == sorted(kept, reverse=True)


def test_the_mean_is_that_of_the_normal_model() -> None:
    """One spread only, by hand: the posterior mean of e given the joint, without the eigenbasis."""
    from sidelight.learning import tables

    spread, noise = 0.1, 1e-3
    joint = np.outer(MARGINAL, PRIOR) + np.array([[0.01, -0.01], [-0.01, 0.01], [0.0, 0.0]])
    rough = spread * (np.diag(MARGINAL) - np.outer(MARGINAL, MARGINAL))
    centre = np.eye(2) - PRIOR
    side = np.outer(PRIOR, PRIOR) * (centre @ centre.T)
    prior = np.kron(rough, side)
    seen = (joint - np.outer(MARGINAL, PRIOR)).reshape(-1)
    mean = (prior @ np.linalg.solve(prior + noise * np.eye(6), seen)).reshape(3, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_SPREADS", np.array([spread]))
        patch.setattr(tables, "_LAW", np.ones(1))
        (found,) = shrunken_tables([estimates(joint, noise)], PRIOR)
    assert pytest.approx(np.outer(MARGINAL, PRIOR) + mean, abs=1e-9) == found.T * PRIOR


@given(st.integers(2, 12), st.integers(2, 5), st.floats(1e-6, 10.0), st.booleans(), st.integers(0, 1000))
@hypothesis_settings(max_examples=40)
def test_every_table_is_a_positive_distribution(values, labels, noise, ordered, seed) -> None:
    rng = np.random.default_rng(seed)
    prior, marginal = rng.dirichlet(np.ones(labels) * 2), rng.dirichlet(np.ones(values))
    prior, marginal = (np.maximum(part, 1e-3) / np.maximum(part, 1e-3).sum() for part in (prior, marginal))
    joint = np.outer(marginal, prior) + rng.normal(scale=math.sqrt(noise), size=(values, labels))
    estimate = TableEstimate(joint, np.full(joint.shape, noise), marginal, ordered)
    tables = shrunken_tables([estimate, estimate], prior)
    around = table_around(estimate, prior, rng.dirichlet(np.ones(values), size=labels))
    assert BayesModel(prior, (*tables, around)).fits([values] * 3, labels)
    shares = shrunken_shares(joint.sum(axis=1), np.full(values, noise))
    assert shares.sum() == pytest.approx(1.0)
    assert np.all(shares > 0)


def test_neighbouring_bins_help_each_other() -> None:
    """A trend over ten bins, 100 collections; smoothing more than halves the squared error."""
    rng = np.random.default_rng(4)
    trend = np.stack([np.linspace(0.04, 0.16, 10), np.linspace(0.16, 0.04, 10)])
    joint = trend.T / 2
    noise, errors = 4e-4, np.zeros(2)
    for _ in range(100):
        seen = joint + rng.normal(scale=math.sqrt(noise), size=joint.shape)
        for place, ordered in enumerate((False, True)):
            estimate = TableEstimate(seen, np.full(seen.shape, noise), np.full(10, 0.1), ordered)
            errors[place] += ((shrunken_tables([estimate], np.array([0.5, 0.5]))[0] - trend) ** 2).sum()
    assert errors[1] < errors[0] / 2


def test_a_guess_that_the_reports_belie_counts_for_little() -> None:
    guess = np.array([[0.4, 0.4, 0.2], [0.1, 0.5, 0.4]])
    alone = np.outer(MARGINAL, PRIOR)
    belied = table_around(TableEstimate(alone, np.full((3, 2), 1e-8), MARGINAL), PRIOR, guess)
    assert belied == pytest.approx(np.tile(MARGINAL, (2, 1)), abs=1e-2)
    unknown = table_around(TableEstimate(alone, np.full((3, 2), 1e4), MARGINAL), PRIOR, guess)
    half = (guess + MARGINAL) / 2
    assert unknown == pytest.approx(half / half.sum(axis=1, keepdims=True), abs=1e-2)


def test_values_beside_public_labels_are_estimated_without_bias() -> None:
    """By the law of one report, for every value and label; and the noise over 200 collections."""
    response = ValueOnlyResponse(5, 3, 0.2)
    law = response.mechanism.report_law(100)
    assert law is not None
    sets = list(combinations(range(5), response.mechanism.width))
    assert len(sets) > 5, "a report names more than one value"
    for label in range(3):
        sent = [Reports(np.array([[label, *part]], dtype=np.uint16)) for part in sets]
        told = np.stack([response.joint(response.aggregate(part)) for part in sent])
        mean = np.tensordot(law, told, 1)  # (true value, value, label)
        assert mean[:, :, label] == pytest.approx(np.eye(5), abs=1e-9)
        assert np.delete(mean, label, axis=2) == pytest.approx(0.0, abs=1e-9)
    rows = people(2000)
    codes, labels = rows.codes[:, 0], rows.labels
    small = ValueOnlyResponse(3, 2, 1.0)
    true = rows.table(0).T / len(rows)
    found = [small.joint(small.aggregate(small.randomise(codes, labels, seed=seed))) for seed in range(200)]
    assert np.mean(found, axis=0) == pytest.approx(true, abs=5 * np.std(found, axis=0).max() / math.sqrt(200))
    spread = np.var(found, axis=0).sum()
    assert spread == pytest.approx(small.total_variance(len(rows)), rel=0.25)
    cells = small.cell_variance(true.sum(axis=1), true.sum(axis=0)).sum() / len(rows)
    assert cells == pytest.approx(spread, rel=0.25)
    assert found[0].sum(axis=0) == pytest.approx(true.sum(axis=0)), "labels are as they are"
    assert small.value_epsilon <= 1.0
    assert small.label_epsilon == math.inf
    with pytest.raises(InputError, match="nothing to hide"):
        ValueOnlyResponse(1, 2, 1.0)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("both", "Label leakage"),
        ("label", "public here. Both together"),
        ("attributes", "The label is public here"),
    ],
)
def test_what_is_secret_is_an_argument(secret, said) -> None:
    rows = people(6000)
    fit = private_bayes(rows, LabelSettings(2.0, secret=secret), seed=1)
    assert said in fit.statement.sentence()
    assert fit.statement.is_kept
    assert np.mean(fit.model.predict(rows.codes) == rows.labels) > 0.8
    assert fit.statement.secret == secret
    if secret == "both":
        assert fit.statement.value <= 2.0, "with omega 1 the value is as safe as the label"
        assert "whatever the adversary believes" in fit.statement.sentence()


def test_secrets_and_protocols_must_agree() -> None:
    assert LabelSettings(secret="label").protocol == "labeldp"
    assert LabelSettings(secret="attributes").protocol == "valuedp"
    with pytest.raises(InputError, match="`secret` must be one of"):
        LabelSettings(secret="nothing")
    with pytest.raises(InputError, match="hides attributes and label alike"):
        LabelSettings(protocol="basic", secret="label")
    with pytest.raises(InputError, match="shows the label"):
        LabelSettings(protocol="valuedp")
    with pytest.raises(InputError, match="where only the attributes are secret; use one of bayes"):
        checked_kind("tree", "attributes")
    with pytest.raises(InputError, match="ask for the label too"):
        private_tree(people(100), LabelSettings(secret="attributes"), TreeSettings(), seed=1)
    with pytest.raises(InputError, match="has no rounds"):
        TreeRounds.start(TreeSettings(scheme="once"), (2,), 2, [])


def test_omega_is_learnt_only_where_it_is_predicted_to_pay() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 20, size=(200_000, 1)).astype(np.uint16)
    labels = rng.integers(0, 2, 200_000).astype(np.uint16)
    many = LabelledRows(codes, labels, (20,), 2)
    few = many[np.arange(300)]
    assert learning_pays(many, LabelSettings(2.0))
    assert not learning_pays(few, LabelSettings(2.0))
    assert not learning_pays(many, LabelSettings(2.0, confidence=None)), "a point estimate promises nothing"
    settled = settle_omegas(many, LabelSettings(2.0), seed=1, reused=True)
    assert settled.omegas[0].at(1) < 0.5
    assert settled.samples
    alone = settle_omegas(few, LabelSettings(2.0), seed=1)
    assert alone.omegas[0].at(1) == 1
    assert len(alone.rows) == len(few)
    fit = private_bayes(many, LabelSettings(2.0), seed=1)
    assert fit.statement.value > 2.0, "the value is protected less than the label, and the statement says so"
    assert "with 95 % confidence" in fit.statement.sentence()


def test_reports_for_omega_are_used_again() -> None:
    rows = people(4000)
    responses = [HeadsResponse(size, 2, 2.0, 1, 1.0) for size in rows.sizes]
    first, second = (gather(rows, responses, seed=seed) for seed in (1, 2))
    once, twice = bayes_from_reports(first), bayes_from_reports([*first, *second])
    true = [rows.conditionals(i) for i in range(3)]
    errors = [
        sum(((a - b) ** 2).sum() for a, b in zip(m.conditionals, true, strict=True)) for m in (once, twice)
    ]
    assert errors[1] < errors[0]


def test_a_tree_that_noise_drowns_is_its_root() -> None:
    alone = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert len(tree_of_bayes(BayesModel(PRIOR, (alone, alone)), 3).nodes) == 1
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    tree = tree_of_bayes(BayesModel(PRIOR, (alone, table)), 3)
    assert tree.nodes[0].attribute == 1
    leaf = tree.nodes[1]
    exact = PRIOR * table[:, leaf.path[0].value]
    assert leaf.shares == pytest.approx(exact / exact.sum())
    assert leaf.mass == pytest.approx(exact.sum())


def test_trees_are_not_below_the_commonest_label_beyond_noise() -> None:
    """Attributes that say nothing of a label of 80 %: 30 trees; at most 3 a hundredth below it (1e-3)."""
    rng = np.random.default_rng(5)
    below = 0
    for seed in range(30):
        codes = rng.integers(0, 4, size=(4000, 3)).astype(np.uint16)
        labels = (rng.random(4000) < 0.8).astype(np.uint16)
        rows = LabelledRows(codes, labels, (4, 4, 4), 2)
        model = bayes_trees(rows, LabelSettings(1.0), 4, seed=seed).model
        below += np.mean(model.predict(codes) == labels) < labels.mean() - 0.01
    assert below <= 3


@pytest.mark.parametrize("trees", [1, 4])
def test_trees_keep_their_promise_and_predict(trees) -> None:
    rows = people(6000)
    made = bayes_trees(rows, LabelSettings(4.0), 3, trees, seed=1)
    assert made.statement.is_kept
    assert made.statement.promise <= 4.0 + 1e-9
    first = HeadsResponse(3, 2, 4.0, 1, 1.0)
    assert made.statement.leakage >= first.leakage(rows.conditionals(0)).value - 1e-9
    assert made.statement.labeldp == pytest.approx(
        private_bayes(rows, LabelSettings(4.0), seed=1).statement.labeldp
    )
    assert sum(part.people for part in made.spent) == len(rows), "everyone reports once"
    assert np.mean(made.model.predict(rows.codes) == rows.labels) > 0.85
    assert made.model.fits(rows.sizes, 2)
    if isinstance(made.model, DecisionTree):
        for node in made.model.nodes:
            if node.children is not None:
                masses = [made.model.nodes[child].mass for child in node.children]
                assert sum(masses) == pytest.approx(node.mass), "those at a node are those of its children"


@pytest.mark.parametrize("trees", [1, 3])
def test_a_known_omega_of_trees_is_that_of_all_records(trees) -> None:
    """Those who report an attribute are fewer, and their own omega may be below that of everyone."""
    rows = people(400)
    for seed in range(8):
        said = bayes_trees(rows, LabelSettings(2.0, omega="known"), 2, trees, seed=seed).statement
        assert said.is_kept
        assert said.omega_source == "the records themselves"
    assert bayes_trees(rows, LabelSettings(2.0, "basic", omega="known"), 2, trees, seed=1).statement.is_kept


def test_one_label_beside_all_attributes_counts_once() -> None:
    """With LabelDP more attributes are no more reports of the label."""
    rows = people(300)
    one = replace(rows, codes=rows.codes[:, :1], sizes=rows.sizes[:1])
    settings = LabelSettings(0.3, secret="label")
    alone, many = (private_bayes(part, settings, seed=1).model.prior for part in (one, rows))
    assert many == pytest.approx(alone)


@pytest.mark.parametrize(("kind", "secret"), [("trees", "both"), ("logistic", "label")])
def test_new_models_have_files(kind, secret, tmp_path) -> None:
    found = learn(clinic(2000), "condition", kind, LabelSettings(4.0, secret=secret), seed=1)
    back = read_model(found.write(tmp_path / "model.json"))
    codes = np.zeros((3, len(found.attributes)), dtype=np.uint16)
    assert back.probabilities(codes) == pytest.approx(found.model.probabilities(codes))


def test_a_blend_has_no_file_and_says_so(tmp_path) -> None:
    found = learn(clinic(1500), "condition", None, LabelSettings(4.0, secret="label"), seed=1)
    assert found.kind == "blend"
    with pytest.raises(InputError, match="has no file; learn 'logistic'"):
        found.write(tmp_path / "model.json")
    assert found.to_data()["statement"]["secret"] == "label"


def test_published_algorithms_stay() -> None:
    rows = people(4000)
    settings = LabelSettings(2.0, omega=1.0)
    reports = gather(
        rows, make_responses(settings, rows, settle_omegas(rows, settings, seed=1).omegas), seed=1
    )
    published = bayes_from_reports(reports, tables="published")
    assert published.fits(rows.sizes, 2)
    assert not np.allclose(published.conditionals[0], bayes_from_reports(reports).conditionals[0])
    with pytest.raises(InputError, match="`tables` must be one of"):
        bayes_from_reports(reports, tables="odd")
    assert PrivateLabels().get_params()["estimator"] is None
