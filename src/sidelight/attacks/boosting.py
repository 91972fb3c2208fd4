"""Gradient-boosted trees from scikit-learn: the strong plain learner every network is measured against."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_FEWEST = 10
"""A value with fewer records is not learnt: the split that stops training must have it on both sides."""


def fit_regression(rows: Array, secrets: Array, seed: int) -> Callable[[Array], Array]:
    """Return the function from rows to the secrets, each target on its own, with the least distance.

    Args:
        rows: (n, features) what the attacker trains on.
        secrets: (n, targets) the secrets of the same records.
        seed: for the split that stops training.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    with _one_thread():
        models = [
            HistGradientBoostingRegressor(
                loss="absolute_error",
                max_iter=300,
                learning_rate=0.05,
                early_stopping=True,
                random_state=seed,
            ).fit(rows, secrets[:, target])
            for target in range(secrets.shape[1])
        ]

    def predict(released: Array) -> Array:
        with _one_thread():
            return np.stack([model.predict(released) for model in models], axis=1)

    return predict


def fit_classification(
    rows: Array, codes: NDArray[np.intp], seed: int
) -> Callable[[Array], NDArray[np.intp]]:
    """Return the function from rows to the likeliest code.

    Args:
        rows: (n, features) what the attacker trains on.
        codes: (n,) the secret of the same records.
        seed: for the split that stops training.
    """
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

    def predict(released: Array) -> NDArray[np.intp]:
        with _one_thread():
            return np.asarray(model.predict(released), dtype=np.intp)

    return predict


def _one_thread() -> AbstractContextManager[object]:
    """Use one core inside: on a busy machine threads that wait for each other cost many times their gain."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="openmp")
    return limits
