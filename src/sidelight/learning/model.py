"""LabelModel: the contract of a model that predicts the label of coded records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Whole


class LabelModel(ABC):
    """What the classifiers, the model files and their readers ask of a model; frozen data."""

    @abstractmethod
    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels)."""

    @abstractmethod
    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether the model is sound, and about attributes of these sizes and this number of labels."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data, for a file."""

    def predict(self, codes: NDArray[Any]) -> Whole:
        """Return the code of the likeliest label of each record."""
        return np.asarray(self.probabilities(codes).argmax(axis=1))
