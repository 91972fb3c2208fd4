"""Labelled records for the tests of labels and learners."""

from __future__ import annotations

import numpy as np

from sidelight.labels import Omega
from sidelight.labels.collection import LabelledRows


def people(count: int, seed: int = 1) -> LabelledRows:
    """Three attributes: the first follows the label, the second follows the first, the third is chance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    first = np.where(rng.random(count) < 0.85, labels, rng.integers(0, 3, count))
    second = np.where(rng.random(count) < 0.8, first, rng.integers(0, 3, count))
    codes = np.stack([first, second, rng.integers(0, 2, count)], axis=1).astype(np.uint16)
    return LabelledRows(codes, labels.astype(np.uint16), (3, 3, 2), 2)


def known_omegas(rows: LabelledRows) -> list[Omega]:
    """The records' own omega of each attribute."""
    return [Omega.known(rows.conditionals(i)) for i in range(len(rows.sizes))]
