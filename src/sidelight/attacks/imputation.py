"""The imputation attack: fill the secret in from the attacker's records that look most like the release.

A baseline of the reconstruction paper, whose own source (Kabir, Craig, Mehnaz 2025) is not followed in
detail: the reading here is the plain one, the mean of the secret over the nearest clean records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def fit_imputation(rows: Array, secrets: Array, neighbours: int = 10) -> Callable[[Array], Array]:
    """Return the function from released rows to the mean secret of the nearest clean ones.

    Args:
        rows: (n, attributes) the attacker's clean records without the secret.
        secrets: (n, targets) their secrets.
        neighbours: how many records are averaged.
    """
    from sklearn.neighbors import KNeighborsRegressor

    model = KNeighborsRegressor(n_neighbors=min(neighbours, len(rows))).fit(rows, secrets)
    return lambda released: np.asarray(model.predict(released), dtype=np.float64)
