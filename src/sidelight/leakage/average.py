"""Average-case figures, to stand beside the worst case.

A worst case can rest on one rare value; an average says how much a release tells on the whole. Between two
attributes: mutual information, normalised mutual information, Pearson correlation. Between a secret and a
report, both from the joint of the two: mutual information, and how much likelier the best guess becomes
(Bayes vulnerability and min-entropy leakage: Smith 2009, "On the foundations of quantitative information
flow"). None of them bounds what one unlucky person loses, and none is a substitute for the worst case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array
from sidelight.leakage.pair import secret_rows
from sidelight.mechanisms import Channel


@dataclass(frozen=True)
class AverageLeakage:
    """What one report says about a secret on average; exact for the belief.

    Attributes:
        secret: the attribute it is about.
        through: the released attribute; the secret itself for its own report.
        mutual_information: of secret and report, in nats.
        prior_vulnerability: the chance that the best guess is right before the report.
        posterior_vulnerability: the same after it.
    """

    secret: str
    through: str
    mutual_information: float
    prior_vulnerability: float
    posterior_vulnerability: float

    @property
    def min_entropy_leakage(self) -> float:
        """The log of posterior over prior vulnerability, in nats; at most the worst case."""
        return math.log(self.posterior_vulnerability / self.prior_vulnerability)


def average_leakage(belief: Belief, channel: Channel, secret: str, neighbour: str) -> AverageLeakage:
    """Return what the neighbour's report says about the secret on average.

    The channel's reports must be few enough to be listed. The secret as its own neighbour: its own report.
    """
    check_belief("belief", belief)
    rows, possible = secret_rows(belief, channel, secret, neighbour)
    prior = belief.prior(secret)[possible]
    joint = prior[:, None] * rows
    guess = float(prior.max())
    better = min(max(float(joint.max(axis=0).sum()), guess), 1.0)  # a report never makes a guess worse
    return AverageLeakage(secret, neighbour, _information(joint), guess, better)


def _information(joint: Array) -> float:
    """Return the mutual information of rows and columns, in nats."""
    return max(float(_information_terms(joint, joint.sum(axis=1), joint.sum(axis=0)).sum()), 0.0)


def _information_terms(joint: Array, rows: Array, columns: Array) -> Array:
    """Return p ln(p / (p_row p_column)) for every cell, as a difference of logs: their product may be 0."""
    i, j = np.nonzero(joint)
    cells = joint[i, j]
    terms = np.zeros_like(joint)
    terms[i, j] = cells * (np.log(cells) - np.log(rows[i]) - np.log(columns[j]))
    return terms


def mutual_information(belief: Belief, first: str, second: str) -> float:
    """Return the mutual information of two attributes, in nats."""
    return _information(_pair(belief, first, second))


def normalised_mutual_information(belief: Belief, first: str, second: str) -> float:
    """Return mutual information over joint entropy, the CPL paper's NMI: 0 to 1; 0 if both are constant.

    Others divide by a mean of the two entropies instead, which gives larger figures.
    """
    joint = _pair(belief, first, second)
    entropy = float(_entropy_terms(joint).sum())
    return _information(joint) / entropy if entropy > 0 else 0.0


def pearson_correlation(belief: Belief, first: str, second: str) -> float:
    """Return the Pearson correlation of the two attributes' codes; 0 if either has one value only.

    Codes of a categorical attribute stand in no natural order, so it is a figure of the coding as well.
    """
    joint = _pair(belief, first, second)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    if min(np.count_nonzero(rows), np.count_nonzero(columns)) < 2:
        return 0.0
    x, y = _centred_codes(rows), _centred_codes(columns)
    return float(x @ joint @ y / math.sqrt((x**2 @ rows) * (y**2 @ columns)))


def mutual_information_matrix(belief: Belief, *, normalised: bool = False) -> Array:
    """Return the mutual information of every pair of attributes, shape (n, n).

    The diagonal holds the entropies. With `normalised` every entry is divided by the pair's joint entropy
    (see `normalised_mutual_information`), and the diagonal is 1, or 0 for a constant.
    """
    check_belief("belief", belief)
    joint = belief.pair_probabilities()
    marginal = np.diagonal(joint)
    information = np.maximum(_block_sums(belief, _information_terms(joint, marginal, marginal)), 0.0)
    if not normalised:
        return information
    entropy = _block_sums(belief, _entropy_terms(joint))
    return np.asarray(np.divide(information, entropy, out=np.zeros_like(entropy), where=entropy > 0))


def correlation_matrix(belief: Belief) -> Array:
    """Return the Pearson correlation of the codes of every pair of attributes, shape (n, n).

    Rows and columns of an attribute with one value only are 0.
    """
    check_belief("belief", belief)
    joint = belief.pair_probabilities()
    centred = np.zeros((len(joint), len(belief.schema)))
    for attribute, (start, stop) in enumerate(pairwise(belief.offsets)):
        marginal = np.diagonal(joint)[start:stop]
        if np.count_nonzero(marginal) > 1:
            centred[start:stop, attribute] = _centred_codes(marginal)
    covariance = centred.T @ joint @ centred
    spread = np.sqrt(np.diagonal(covariance))
    scale = np.outer(spread, spread)
    return np.asarray(np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0))


def _centred_codes(marginal: Array) -> Array:
    codes = np.arange(len(marginal))
    return np.asarray(codes - codes @ marginal)


def _pair(belief: Belief, first: str, second: str) -> Array:
    return belief.joint([first, second]) if first != second else np.diag(belief.prior(first))


def _entropy_terms(cells: Array) -> Array:
    terms = np.zeros_like(cells)
    seen = cells > 0
    terms[seen] = -cells[seen] * np.log(cells[seen])
    return terms


def _block_sums(belief: Belief, cells: Array) -> Array:
    starts = belief.offsets[:-1]
    return np.asarray(np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1))
