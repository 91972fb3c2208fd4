"""How far scores are believed: all of it without noise, little of it where there is nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from sidelight.foundation.ranking import Ranking
from sidelight.learning.bayes import BayesModel
from sidelight.learning.learnt import _BayesFile
from sidelight.learning.tables import TableEstimate, shrunken_shares, shrunken_tables
from sidelight.learning.tempering import offsets, strength

PRIOR = np.array([0.7, 0.3])


def estimates(noise: float, depend: bool, seed: int, values: int = 6, attributes: int = 12):
    """Joints of attributes and a label, that depend or not, with normal noise of that deviation.

    Of many values, most are rare; the attributes' shares are estimated too.
    """
    rng = np.random.default_rng(seed)
    made, true = [], []
    for _ in range(attributes):
        marginal = rng.dirichlet(np.full(values, 24.0 / values**2 + 0.05)) + 1e-4
        marginal /= marginal.sum()
        rows = np.stack([marginal, marginal])
        if depend:
            rows = 0.9 * rng.dirichlet(30 * marginal + 1e-3, size=2) + 0.1 * rows
        joint = (rows * PRIOR[:, None]).T
        seen = joint + rng.normal(scale=noise, size=joint.shape)
        shares = shrunken_shares(seen.sum(axis=1), np.full(values, 2 * noise**2))
        made.append(TableEstimate(seen, np.full(joint.shape, noise**2), shares))
        true.append(rows)
    return made, true


def tempered(made: list[TableEstimate]) -> tuple[BayesModel, BayesModel]:
    tables = shrunken_tables(made, PRIOR)
    share = strength(made, tables, PRIOR)
    added = offsets(tables, [part.marginal for part in made], PRIOR, share)
    return BayesModel(PRIOR, tables), BayesModel(PRIOR, tables, share, added)


def test_all_is_believed_without_noise_and_little_where_there_is_nothing_else() -> None:
    """Five draws each; a strength above 0.9 is 1."""
    sure = [strength(made, shrunken_tables(made, PRIOR), PRIOR)
            for made, _ in (estimates(1e-5, True, seed) for seed in range(5))]  # fmt: skip
    assert sure == [1.0] * 5
    unsure = [strength(made, shrunken_tables(made, PRIOR), PRIOR)
              for made, _ in (estimates(0.05, False, seed, values=30) for seed in range(5))]  # fmt: skip
    assert np.mean(unsure) < 0.55


def test_tempered_models_forecast_better_and_rank_alike() -> None:
    """Six collections with many rare values; the mean log loss falls by much, and the order stays in each."""
    gains = []
    for seed in range(6):
        made, true = estimates(0.04, True, seed, values=30)
        rng = np.random.default_rng(100 + seed)
        labels = (rng.random(2_000) < PRIOR[1]).astype(int)
        columns = [(rng.random((2_000, 1)) > np.cumsum(rows, axis=1)[labels]).sum(axis=1) for rows in true]
        codes = np.minimum(np.column_stack(columns), 29)
        plain, model = (part.probabilities(codes) for part in tempered(made))
        losses = [-np.log(part[np.arange(2_000), labels]).mean() for part in (plain, model)]
        gains.append(losses[0] - losses[1])
        ranks = [Ranking.of(part[:, 1], labels == 1).auc for part in (plain, model)]
        assert ranks[1] == pytest.approx(ranks[0], abs=2e-3)  # probabilities of 0 and 1 are tied
    assert np.mean(gains) > 0.5


def test_people_have_the_labels_shares_on_average() -> None:
    made, _ = estimates(0.03, True, 3)
    tables = shrunken_tables(made, PRIOR)
    marginals = [part.marginal for part in made]
    model = BayesModel(PRIOR, tables, 0.5, offsets(tables, marginals, PRIOR, 0.5))
    rng = np.random.default_rng(5)
    codes = np.column_stack([rng.choice(6, 20_000, p=share / share.sum()) for share in marginals])
    assert model.probabilities(codes).mean(axis=0) == pytest.approx(PRIOR, abs=0.02)


def test_more_than_two_labels_are_left_as_they_are() -> None:
    prior = np.array([0.5, 0.3, 0.2])
    joint = np.outer([0.6, 0.4], prior)
    made = [TableEstimate(joint, np.full(joint.shape, 0.1), joint.sum(axis=1))]
    assert strength(made, shrunken_tables(made, prior), prior) == 1.0


def test_a_tempered_model_keeps_its_strength_in_its_file() -> None:
    made, _ = estimates(0.05, True, 1, values=30)
    model = tempered(made)[1]
    assert model.strength < 1
    data = model.to_dict()
    back = _BayesFile.model_validate(data).made()
    codes = np.zeros((1, len(made)), dtype=np.int64)
    assert back.probabilities(codes) == pytest.approx(model.probabilities(codes))
    assert not _BayesFile.model_validate(data | {"offsets": [0.0]}).made().fits([30] * 12, 2)
    for odd in ({"strength": 0.0}, {"strength": 2.0}, {"offsets": [float("nan"), 0.0]}):
        with pytest.raises(ValueError, match="strength|offsets"):
            _BayesFile.model_validate(data | odd)


def test_a_strength_is_kept_with_and_without_offsets() -> None:
    tables = (np.array([[0.7, 0.3], [0.4, 0.6]]),)
    for added in (None, np.array([0.1, -0.1])):
        data = BayesModel(np.array([0.5, 0.5]), tables, 0.5, added).to_dict()
        assert data["strength"] == 0.5
        assert ("offsets" in data) == (added is not None)
    assert set(BayesModel(np.array([0.5, 0.5]), tables).to_dict()) == {"prior", "conditionals"}
