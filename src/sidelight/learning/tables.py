"""Tables of Pr(value | label) from noisy joints: drawn to independence by as much as the noise explains.

Write the joint of an attribute and the label as x(v, l) = pi_l (m_v + e(v, l)), with the label's shares pi,
the attribute's shares m and deviations e whose mean over labels is 0. The labels' columns are taken as
Dirichlet(alpha m), in its normal approximation: their covariance is tau (diag m - m m') with
tau = 1/(alpha + 1), and tau = 0 is independence. Three things are averaged by their evidence:

* tau, on a grid; attributes tell each other which values are usual (each without itself);
* whether neighbouring bins of a number deviate alike (a Gaussian kernel over ranks) or on their own;
* whether all labels deviate alike, or rare ones more.

With a noise of variance a_v b_l both sides are diagonal in one basis, so all of it is a pair of
eigendecompositions for each structure and then arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidelight.foundation.arrays import Array

_ALPHAS = np.geomspace(0.3, 3e4, 22)
_SPREADS = np.append(1 / (1 + _ALPHAS), 0.0)
"""Tau: from columns that share nothing to independence."""
_USUAL_ALPHA, _APART = 50.0, 0.1
_FALLING = 1 / (1 + np.log(_ALPHAS / _USUAL_ALPHA) ** 2)
_LAW = np.append((1 - _APART) * _FALLING / _FALLING.sum(), _APART)
"""Of tau before anything is seen: ln alpha is Cauchy's around that of 50, and a tenth is independence."""
_OWN_LAW = 4.0  # so many attributes the flat law of tau counts for among those that are seen
_ROUNDS = 10  # of telling each other; the law hardly moves after five
_REACHES = (0.15, 0.5)  # of the kernel, in shares of all records: bumps, and trends
_ROUGH = 0.02  # what a smooth attribute may do on its own
_LEAST_RATIO, _LEAST_SPREAD, _TINY = 0.1, 0.25, 1e-4
"""No estimate makes a value less than a tenth as likely under a label as it is overall, or than a quarter of
its standard deviation where that is less: one wrong zero would outvote all other attributes."""
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of a guess


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """What is known of one attribute and the label.

    Attributes:
        joint: unbiased, (values, labels); cells may be negative.
        noise: the variance of each cell.
        marginal: the attribute's shares, all positive.
        ordered: whether the values are bins of a number, in order.
    """

    joint: Array
    noise: Array
    marginal: Array
    ordered: bool = False


def shrunken_tables(estimates: Sequence[TableEstimate], prior: Array) -> tuple[Array, ...]:
    """Return Pr(value | label) of each attribute, (labels, values), given the labels' positive shares."""
    bases = [_Basis(estimate, prior) for estimate in estimates]
    laws = _shared_laws([basis.evidence for basis in bases], [basis.weights for basis in bases])
    return tuple(basis.conditionals(law) for basis, law in zip(bases, laws, strict=True))


def table_around(estimate: TableEstimate, prior: Array, guess: Array) -> Array:
    """Return Pr(value | label) of one attribute, (labels, values), where a guess of it is at hand.

    The table is drawn to the attribute's own shares plus a part of what the guess has beyond them; which
    part, from none to all, is averaged by evidence as well. So a guess that the reports belie counts for
    little, and where noise drowns them half of it is believed.
    """
    beyond = (guess - estimate.marginal).T  # (values, labels)
    bases = [
        _Basis(replace(estimate, joint=estimate.joint - part * beyond * prior), prior) for part in _PARTS
    ]
    laws = _normalised(np.stack([basis.evidence for basis in bases]))
    shares = np.zeros(estimate.joint.shape)
    for basis, law, part in zip(bases, laws, _PARTS, strict=True):
        if law.any():  # what the reports belie has an evidence of 0
            shares += law.sum() * basis.shares(law / law.sum(), part * beyond)
    return np.asarray((shares / shares.sum(axis=0)).T)


def shrunken_shares(raw: Array, noise: Array) -> Array:
    """Return shares from unbiased ones with these variances, drawn to equal ones; all are positive.

    The same normal model of a Dirichlet prior, around equal shares, averaged over its spread by evidence; of
    what it leaves possible the positive part counts.
    """
    from scipy.special import log_ndtr

    equal = np.full(len(raw), 1 / len(raw))
    scale = np.sqrt(noise)
    values, basis = np.linalg.eigh((np.diag(equal) - np.outer(equal, equal)) / np.outer(scale, scale))
    signal = _SPREADS[:-1, None] * np.maximum(values, 0.0)
    seen = basis.T @ ((raw - equal) / scale)
    evidence = -0.5 * (np.log1p(signal) + seen**2 / (1 + signal)).sum(axis=1)
    law = _normalised(evidence)
    kept = law @ (signal / (1 + signal))
    mean, sd = equal + scale * (basis @ (kept * seen)), scale * np.sqrt(basis**2 @ kept)
    sd = np.maximum(sd, 1e-9 / len(raw))
    ratio = mean / sd
    # The mean of a normal that is known to be positive.
    positive = mean + sd * np.exp(-(ratio**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(ratio))
    positive = np.maximum(positive, 1e-9 / len(raw))
    return np.asarray(positive / positive.sum())


class _Basis:
    """One attribute in the basis of each structure in which signal and noise are diagonal."""

    def __init__(self, estimate: TableEstimate, prior: Array) -> None:
        self.prior, self.marginal = prior, estimate.marginal
        # The noise as a product a_v b_l: exact where it comes from people alone, else its geometric mean.
        logs = np.log(estimate.noise)
        self.rows = np.sqrt(np.exp(logs.mean(axis=1) - logs.mean() / 2))
        self.columns = np.sqrt(np.exp(logs.mean(axis=0) - logs.mean() / 2))
        seen = (estimate.joint - np.outer(estimate.marginal, prior)) / np.outer(self.rows, self.columns)
        values = [
            np.linalg.eigh(part / np.outer(self.rows, self.rows))
            for part in _value_structures(estimate.marginal, estimate.ordered)
        ]
        labels = [
            np.linalg.eigh(part / np.outer(self.columns, self.columns)) for part in _label_structures(prior)
        ]
        self.kinds = len(labels)
        self.parts = [
            (left, right, left.T @ seen @ right, np.maximum(np.outer(high, wide), 0.0))
            for wide, right in labels
            for high, left in values
        ]

    @cached_property
    def evidence(self) -> Array:
        """The logarithm of each structure's evidence for each spread, up to a constant."""
        out = np.empty((len(self.parts), len(_SPREADS)))
        for row, (_, _, seen, signal) in zip(out, self.parts, strict=True):
            spread = 1 + _SPREADS[:, None, None] * signal
            row[:] = -0.5 * (np.log(spread) + seen**2 / spread).sum(axis=(1, 2))
        return out.reshape(self.kinds, -1, len(_SPREADS))

    @property
    def weights(self) -> Array:
        """The law of structure and spread before anything is seen."""
        kinds, structures, _ = self.evidence.shape
        return np.tile(_LAW / (kinds * structures), (kinds, structures, 1))

    def conditionals(self, law: Array) -> Array:
        """Return the posterior mean of Pr(value | label), (labels, values), given the law of the priors."""
        shares = self.shares(law)
        return np.asarray((shares / shares.sum(axis=0)).T)

    def shares(self, law: Array, centre: Array | float = 0.0) -> Array:
        """Return the same before it is scaled, (values, labels); `centre` was left out of the joint."""
        total, left_open = np.zeros((2, len(self.rows), len(self.columns)))
        laws = law.reshape(len(self.parts), -1)
        for (left, right, seen, signal), weights in zip(self.parts, laws, strict=True):
            spread = _SPREADS[:, None, None] * signal
            kept = np.tensordot(weights, spread / (1 + spread), 1)
            total += left @ (kept * seen) @ right.T
            left_open += left**2 @ kept @ (right**2).T  # the variance after the reports, in units of noise
        overall, unit = self.marginal[:, None], np.outer(self.rows, self.columns) / self.prior
        least = np.minimum(_LEAST_RATIO * overall, _LEAST_SPREAD * unit * np.sqrt(np.maximum(left_open, 0.0)))
        return np.asarray(np.maximum(overall + centre + unit * total, least + _TINY * overall))


def _value_structures(marginal: Array, ordered: bool) -> list[Array]:
    """Return the covariances of a column that are possible, all with the same total variance."""
    rough = np.diag(marginal) - np.outer(marginal, marginal)
    if not ordered or len(marginal) < 3:
        return [rough]
    ranks = np.cumsum(marginal) - marginal / 2
    centre = np.eye(len(marginal)) - marginal[:, None]
    structures = [rough]
    for reach in _REACHES:
        kernel = np.exp(-((ranks[:, None] - ranks) ** 2) / (2 * reach**2))
        smooth = centre @ (marginal[:, None] * kernel * marginal) @ centre.T
        structures.append(smooth * (np.trace(rough) / np.trace(smooth)) + _ROUGH * rough)
    return structures


def _label_structures(prior: Array) -> list[Array]:
    """Return the covariances of pi_l e(., l) over labels: equal spread of e, or one that grows as 1 / pi."""
    labels = len(prior)
    centre = np.eye(labels) - prior  # the mean of e over people is 0
    kinds = [np.eye(labels)] if labels == 2 else [np.eye(labels), np.diag(1 / (labels * prior))]
    return [np.outer(prior, prior) * (centre @ kind @ centre.T) for kind in kinds]


def _shared_laws(evidence: Sequence[Array], weights: Sequence[Array]) -> list[Array]:
    """Return each attribute's law of (label structure, value structure, spread).

    What is usual of label structure and spread is learnt from the other attributes: the mean of their laws
    and of the flat one, until it settles.
    """
    laws = [_posterior(part, flat) for part, flat in zip(evidence, weights, strict=True)]
    for _ in range(_ROUNDS):
        told = [law.sum(axis=1) for law in laws]
        total = np.sum(told, axis=0)
        laws = [
            _posterior(part, flat / flat.sum(axis=1, keepdims=True) * _usual(flat, total - own)[:, None])
            for part, flat, own in zip(evidence, weights, told, strict=True)
        ]
    return laws


def _usual(flat: Array, others: Array) -> Array:
    raised = _OWN_LAW * flat.sum(axis=1) + others
    return np.asarray(raised / raised.sum())


def _posterior(evidence: Array, weights: Array) -> Array:
    return _normalised(evidence + np.log(weights))


def _normalised(logs: Array) -> Array:
    raised = np.exp(logs - logs.max())
    return np.asarray(raised / raised.sum())
