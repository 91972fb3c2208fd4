"""How far the scores of Naive Bayes can be believed, from what is known about the noise.

Scores are sums over attributes, and so is what they are expected to differ by between labels. A model that is
learnt from noisy tables expects more than there is: it has learnt some of the noise. How much there is can be
read off reports that it did not learn from. Nobody's whole record is known, but a sum needs none: the joints
of one attribute and the label are enough, and noise of a known variance is split into independent parts
("data thinning"; Neufeld, Dharamshi, Gao, Witten 2024): with g as noisy as the estimate J, J + c g and
J - g / c are independent. Tables from the first are held against the second.

Of two labels the order of people stays as it is. Of more it would not: one label is ranked against others
whose scores change too. So these are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.learning.tables import TableEstimate, shrunken_tables

_DRAWS, _PART = 12, 0.5  # of g, and c: little noise is added to what is learnt from
_USUAL, _SPREAD = 0.5, 0.5  # the strength before anything is seen: some of what is learnt is noise
_WHOLE = 0.9  # with more, scores are left as they are
_LEAST = 0.05  # with less, nobody would be told apart
_PEOPLE, _ROUNDS = 2_000, 30  # drawn to find the offsets, which then hardly move


def strength(estimates: Sequence[TableEstimate], tables: Sequence[Array], prior: Array) -> float:
    """Return by what share of themselves the scores should count, from 0.05 to 0.9, or 1."""
    if len(prior) > 2:
        return 1.0
    rng = np.random.default_rng(0)  # fixed draws: the same reports give the same model
    there = expected = 0.0
    for _ in range(_DRAWS):
        moves = [rng.normal(size=part.joint.shape) * np.sqrt(part.noise) for part in estimates]
        pairs = list(zip(estimates, moves, strict=True))
        learnt = shrunken_tables([replace(part, joint=part.joint + _PART * g) for part, g in pairs], prior)
        for (part, g), table in zip(pairs, learnt, strict=True):
            scores, apart = _scores(table, part.marginal, prior), np.outer(part.marginal, prior)
            there += float(((part.joint - g / _PART - apart) * scores).sum()) / _DRAWS
            expected += float(((table.T * prior - apart) * scores).sum()) / _DRAWS
    if expected <= 0:
        return 1.0
    every = zip(estimates, tables, strict=True)
    noise = sum(
        float((part.noise * _scores(table, part.marginal, prior) ** 2).sum()) for part, table in every
    )
    # What the draws add to the noise of the reports themselves.
    precision = expected**2 / max(noise * (1 + 1 / (_PART**2 * _DRAWS)), 1e-300)
    found = (there / expected * precision + _USUAL / _SPREAD**2) / (precision + 1 / _SPREAD**2)
    return 1.0 if found > _WHOLE else max(float(found), _LEAST)


def _scores(table: Array, marginal: Array, prior: Array) -> Array:
    """Return what each value adds to each label's score, (values, labels), 0 on average over both."""
    logs = np.log(table).T
    beside = logs - (logs @ prior)[:, None]
    return np.asarray(beside - marginal @ beside)


def offsets(tables: Sequence[Array], marginals: Sequence[Array], prior: Array, share: float) -> Array:
    """Return what to add to the labels' scores, so that people on average have the labels' shares.

    People are drawn attribute by attribute, as nobody knows whole records.
    """
    rng = np.random.default_rng(0)
    scores = np.zeros((_PEOPLE, len(prior)))
    for table, marginal in zip(tables, marginals, strict=True):
        drawn = rng.choice(len(marginal), _PEOPLE, p=marginal / marginal.sum())
        scores += share * np.log(table).T[drawn]
    added = -scores.mean(axis=0)
    for _ in range(_ROUNDS):
        likely = scores + added + np.log(prior)
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        average = (likely / likely.sum(axis=1, keepdims=True)).mean(axis=0)
        added = added + np.log(prior / np.maximum(average, 1e-12))
    return np.asarray(added - added @ prior)
