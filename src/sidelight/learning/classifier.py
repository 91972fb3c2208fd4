"""What all private classifiers share: scikit-learn's tags, the check of what they learn from, labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from sidelight.foundation.errors import InputError, invalid
from sidelight.learning.coding import check_present


class LabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of records whose labels are learnt from private reports."""

    random_state: int | None
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect: noise makes small samples useless, and strings are welcome."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.classifier_tags.poor_score = True
        tags.input_tags.string = True
        return tags

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the likeliest label of each record."""
        chances = self.predict_proba(X)  # an estimator that is not fitted says so here
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def _checked(self, records: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Learn the classes; return the records and the labels' codes, or raise if nothing can be learnt."""
        columns, marks = validate_data(self, records, labels, dtype=None)
        check_present(np.asarray(marks), "the label")
        check_classification_targets(marks)
        if self.random_state is not None and not isinstance(self.random_state, (int, np.integer)):
            raise invalid("random_state", "None (secure) or a whole number (a simulation)", self.random_state)
        self.classes_, codes = np.unique(marks, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("the label is constant; there is nothing to learn from one class.")
        return columns, codes

    def _names(self, columns: NDArray[Any]) -> list[str]:
        """Return the names of the columns, numbered where they have none."""
        named = vars(self).get("feature_names_in_", ())  # scikit-learn sets it where the columns have names
        return list(named) or [f"x{i}" for i in range(columns.shape[1])]
