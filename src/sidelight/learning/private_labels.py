"""Any classifier where only the label is secret, with scikit-learn's estimator interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_choice, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.learning.classifier import LabelClassifier
from sidelight.learning.coding import code_columns, distinct_records, learn_attributes
from sidelight.learning.debiasing import PrivateTargets
from sidelight.learning.label_only import LEARNERS, METHODS, Blend, Columns, Learner, Method, blended, wrapped
from sidelight.learning.statement import Statement, label_only_statement
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.schema import Attribute

_MOST_ESTIMATORS = 8  # the mixtures that are compared grow quickly with them


@dataclass(eq=False, repr=False)
class PrivateLabels(LabelClassifier):
    """A classifier of true attributes and randomised labels, one report of each person.

    Args:
        estimator: any classifier of scikit-learn with `predict_proba`, or several that are weighed by
            cross-validation on the private labels. None for logistic regression, boosted trees and Naive
            Bayes, each made for noisy labels, weighed in the same way.
        epsilon: what a report may say about the label, beside what the public attributes say.
        method: "probabilities" or "weights"; how a given estimator learns, see `label_only.wrapped`.
        folds: of the cross-validation.
        bins: of a column of numbers, for logistic regression and Naive Bayes.
        random_state: a whole number for a simulation that can be repeated; None is secure.

    After fitting: `classes_`, `weights_` (how much each estimator counts, by name), `model_`, `promise_` and
    `statement_` (None after `fit_reports`).
    """

    estimator: Any = None
    epsilon: float = 1.0
    _: KW_ONLY
    method: Method = "probabilities"
    folds: int = 5
    bins: int = 10
    random_state: int | None = None
    attributes_: tuple[Attribute, ...] = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    model_: Blend = field(init=False)
    weights_: dict[str, float] = field(init=False)
    statement_: Statement | None = field(init=False)
    promise_: float = field(init=False)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Randomise the labels as people would, and learn from the reports."""
        records, codes = self._checked(X, y)
        seed = None if self.random_state is None else int(self.random_state)
        noise = derive_seed(seed, "label")
        targets = PrivateTargets.simulated(codes, len(self.classes_), self.epsilon, seed=noise)
        self._fit(X, records, targets)
        # Attributes are sent as they are, so that they say more than their bins.
        cells = distinct_records(records).astype(np.uint64)[:, None]
        self.statement_ = label_only_statement(cells, codes, (int(cells.max()) + 1,), targets.selection)
        return self

    def fit_reports(self, X: ArrayLike, reports: Reports, classes: ArrayLike) -> Self:  # noqa: N803
        """Learn from labels that people randomised by subset selection at `epsilon`, in the records' order.

        The classes are the labels in the order of their codes.
        """
        records = validate_data(self, X, dtype=None)
        self.classes_ = np.asarray(classes)
        different = len(set(self.classes_.reshape(-1).tolist()))
        if self.classes_.ndim != 1 or different < max(2, len(self.classes_)):
            raise InputError(f"there must be at least two classes, all different, got {classes!r}.")
        selection = SubsetSelection(len(self.classes_), self.epsilon)
        self._fit(X, records, PrivateTargets.of(selection, reports))
        self.statement_ = None
        return self

    def predict_proba(self, X: ArrayLike) -> Array:  # noqa: N803 - scikit-learn's name
        """Return the labels' probabilities for each record, in the order of `classes_`."""
        check_is_fitted(self, "model_")
        return self.model_(self._columns(X, validate_data(self, X, dtype=None, reset=False)))

    def _fit(self, given: ArrayLike, records: NDArray[Any], targets: PrivateTargets) -> None:
        check_choice("method", self.method, METHODS)
        check_whole("folds", self.folds, at_least=2, at_most=100)
        self.attributes_ = (
            learn_attributes(records, self.bins, self._names(records)) if self.estimator is None else ()
        )
        self.model_ = blended(self._learners(), self._columns(given, records), targets, folds=self.folds)
        shares = zip(self.model_.parts, self.model_.weights, strict=True)
        self.weights_ = {name: float(weight) for name, weight in shares}
        self.promise_ = targets.selection.epsilon

    def _learners(self) -> Mapping[str, Learner]:
        if self.estimator is None:
            return LEARNERS
        given = self.estimator if isinstance(self.estimator, (list, tuple)) else [self.estimator]
        if not 1 <= len(given) <= _MOST_ESTIMATORS:
            raise InputError(
                f"`estimator` must be from 1 to {_MOST_ESTIMATORS} classifiers, got {len(given)}."
            )
        return {f"{type(part).__name__} {i}": wrapped(part, self.method) for i, part in enumerate(given, 1)}

    def _columns(self, given: ArrayLike, records: NDArray[Any]) -> Columns:
        if self.estimator is not None:  # it takes the records as they are, with the names of their columns
            nothing = np.zeros((len(records), 0))
            frame = given if "feature_names_in_" in vars(self) else records
            return Columns(frame, nothing.astype(np.uint16), nothing, ())
        codes = code_columns(records, self.attributes_)
        ordered = tuple(attribute.kind == "numeric" for attribute in self.attributes_)
        numbers = codes.astype(np.float64)
        if any(ordered):
            numbers[:, ordered] = records[:, ordered].astype(np.float64)
        return Columns(records, codes, numbers, tuple(part.size for part in self.attributes_), ordered)
