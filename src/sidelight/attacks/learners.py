"""Plain learners from scikit-learn, which every network is measured against.

Gradient-boosted trees are the strong one. Imputation fills the secret in from the attacker's records that
look most like the release. It is a baseline of the reconstruction paper, whose own source (Kabir, Craig,
Mehnaz 2025) is not followed in detail: the reading here is the plain one, the mean of the secret over the
nearest clean records.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from sidelight.foundation.arrays import Array, Positions

_FEWEST = 10
"""A value with fewer records is not learnt: the split that stops training must have it on both sides."""


def fit_regression(rows: Array, secrets: Array, seed: int) -> Callable[[Array], Array]:
    """Return the function from rows to the secrets, each target on its own, with the least distance.

    It is trained on rows (n, features) and the secrets (n, targets) of the same records; the seed is for the
    split that stops training.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    make = partial(HistGradientBoostingRegressor, loss="absolute_error", max_iter=300, learning_rate=0.05)
    with _one_thread():
        models = [make(early_stopping=True, random_state=seed).fit(rows, column) for column in secrets.T]

    def predict(released: Array) -> Array:
        with _one_thread():
            return np.stack([model.predict(released) for model in models], axis=1)

    return predict


def fit_classification(rows: Array, codes: Positions, seed: int) -> Callable[[Array], Positions]:
    """Return the function from rows (n, features) to the likeliest code; the seed as for a regression."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    common = np.bincount(codes)[codes] >= _FEWEST
    stops = bool(common.any())
    kept = common if stops else np.ones_like(common)
    model = HistGradientBoostingClassifier(
        max_iter=300 if stops else 30, learning_rate=0.1, max_leaf_nodes=15, early_stopping=stops,
        random_state=seed,
    )  # fmt: skip
    with _one_thread():
        model.fit(rows[kept], codes[kept])

    def predict(released: Array) -> Positions:
        with _one_thread():
            return np.asarray(model.predict(released), dtype=np.intp)

    return predict


def fit_imputation(rows: Array, secrets: Array, neighbours: int = 10) -> Callable[[Array], Array]:
    """Return the function from released rows to the mean secret of the nearest clean ones.

    It has the attacker's clean records without the secret, (n, attributes), and their secrets (n, targets).
    """
    from sklearn.neighbors import KNeighborsRegressor

    model = KNeighborsRegressor(n_neighbors=min(neighbours, len(rows))).fit(rows, secrets)
    return lambda released: np.asarray(model.predict(released), dtype=np.float64)


def _one_thread() -> AbstractContextManager[object]:
    """Use one core inside: on a busy machine threads that wait for each other cost many times their gain."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="openmp")
    return limits
