"""Logistic regression on private labels: the loss is corrected, so that its mean is that on true labels.

With targets w whose rows sum to 1 the corrected loss of scores z is ln sum_l e^z_l - <w, z>: linear in the
noise and convex in the weights, so it has one minimum even where w is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, offsets
from sidelight.learning.bayes import LabelModel

_STEPS = 200


@dataclass(frozen=True, eq=False)
class LogisticModel(LabelModel):
    """Weights of each attribute's values for each label, one table (values, labels) an attribute."""

    intercept: Array
    tables: tuple[Array, ...]

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether the weights are finite and of these sizes, for this number of labels."""
        parts = [self.intercept[None, :] if self.intercept.ndim == 1 else self.intercept, *self.tables]
        shapes = [(1, labels), *((size, labels) for size in sizes)]
        return [part.shape for part in parts] == shapes and all(bool(np.isfinite(p).all()) for p in parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the weights as plain data."""
        return {"intercept": self.intercept.tolist(), "weights": [part.tolist() for part in self.tables]}

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels)."""
        scores = np.tile(self.intercept, (len(codes), 1))
        for i, table in enumerate(self.tables):
            scores += table[codes[:, i]]
        return softmax(scores)


def softmax(scores: Array) -> Array:
    """Return the probabilities of scores, row by row."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def corrected_loss(scores: Array, targets: Array) -> Array:
    """Return everyone's loss, (people,): its mean over the noise is the log loss of the true label."""
    most = scores.max(axis=1)
    whole = most + np.log(np.exp(scores - most[:, None]).sum(axis=1))
    return np.asarray(whole - (targets * scores).sum(axis=1))


def fit_logistic(codes: NDArray[Any], targets: Array, sizes: Sequence[int], penalty: float) -> LogisticModel:
    """Return the minimum of the corrected loss plus penalty / 2 times the squared weights."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    starts = offsets(sizes)
    people, width, labels = len(codes), int(starts[-1]), targets.shape[1]
    places = (codes.astype(np.int64) + starts[:-1]).reshape(-1)
    ends = np.arange(0, places.size + 1, codes.shape[1])
    design = csr_matrix((np.ones(places.size), places, ends), (people, width))
    # The targets enter only through these sums: the rest of the loss does not know the reports.
    of_values, of_labels = design.T @ targets, targets.sum(axis=0)

    def value(flat: Array) -> tuple[float, Array]:
        intercept, weights = flat[:labels], flat[labels:].reshape(width, labels)
        scores = design @ weights + intercept
        most = scores.max(axis=1, keepdims=True)
        raised = np.exp(scores - most)
        total = raised.sum(axis=1, keepdims=True)
        shares = raised / total
        loss = float((np.log(total) + most).sum() - (of_values * weights).sum() - of_labels @ intercept)
        slope = design.T @ shares - of_values + penalty * weights
        held = loss + penalty / 2 * float((weights**2).sum()) + float(intercept @ intercept) / 2
        return held, np.concatenate([shares.sum(axis=0) - of_labels + intercept, slope.reshape(-1)])

    start = np.zeros(labels * (width + 1))
    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    tables = np.split(found[labels:].reshape(width, labels), starts[1:-1])
    return LogisticModel(found[:labels], tuple(tables))
