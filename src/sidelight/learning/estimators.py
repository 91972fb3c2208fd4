"""The learners with scikit-learn's estimator interface.

`fit(X, y)` simulates the whole collection from the records; `fit_reports` takes a real one. The bins of
numbers and the values of other columns are learnt from X and taken as public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sidelight.foundation.arrays import Array, Codes
from sidelight.foundation.errors import InputError, check_whole, invalid
from sidelight.labels import AttributeReports, BudgetRule, LabelledRows, LabelSettings, WidthRule
from sidelight.labels.collection import OmegaSource, ProtocolName
from sidelight.learning.bayes import LabelModel, bayes_from_reports, private_bayes
from sidelight.learning.cart import private_tree
from sidelight.learning.decision_tree import DecisionTree, tree_text
from sidelight.learning.diagram import draw_tree
from sidelight.learning.statement import Statement
from sidelight.learning.tree_rounds import Scheme, TreeRounds, TreeSettings
from sidelight.schema import Attribute, categorical, numeric


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the private classifiers share: coding the columns, validation, prediction.

    Nothing is checked before `fit`: scikit-learn wants parameters kept as they are given.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    protocol: ProtocolName = "khr"
    omega: OmegaSource = "learnt"
    k: WidthRule | int = "search"
    confidence: float | None = 0.95
    share: float = 0.1
    bins: int = 10
    random_state: int | None = None
    attributes_: tuple[Attribute, ...] = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    model_: LabelModel = field(init=False)
    statement_: Statement | None = field(init=False)
    promise_: float = field(init=False)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect: noise makes small samples useless, and strings are welcome."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.classifier_tags.poor_score = True
        tags.input_tags.string = True
        return tags

    def _coded(self, records: ArrayLike, labels: ArrayLike) -> LabelledRows:
        """Learn the coding and return the records coded."""
        columns, marks = validate_data(self, records, labels, dtype=None)
        check_present(np.asarray(marks), "the label")
        check_classification_targets(marks)
        if self.random_state is not None and not isinstance(self.random_state, (int, np.integer)):
            raise invalid("random_state", "None (secure) or a whole number (a simulation)", self.random_state)
        self.classes_, codes = np.unique(marks, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("the label is constant; there is nothing to learn from one class.")
        named = vars(self).get("feature_names_in_", ())  # scikit-learn sets it where the columns have names
        names = list(named) or [f"x{i}" for i in range(columns.shape[1])]
        self.attributes_ = learn_attributes(columns, self.bins, names)
        coded = code_columns(columns, self.attributes_)
        sizes = tuple(attribute.size for attribute in self.attributes_)
        return LabelledRows(coded, codes.astype(np.uint16), sizes, len(self.classes_))

    def _settings(self) -> LabelSettings:
        return LabelSettings(self.epsilon, self.protocol, self.omega, self.k, self.confidence, self.share)

    def _learnt(self, model: LabelModel, statement: Statement) -> Self:
        self.model_, self.statement_, self.promise_ = model, statement, statement.promise
        return self

    def _take(self, model: LabelModel, attributes: Sequence[Attribute], classes: ArrayLike) -> None:
        """Take a model of a real collection, with its coding and its labels as they are."""
        labels = np.asarray(classes)
        sizes = [attribute.size for attribute in attributes]
        if labels.ndim != 1 or not model.fits(sizes, len(labels)):
            raise InputError(
                f"the reports are not about {len(labels)} classes and attributes of {sizes} values; give the "
                "attributes in the order in which they were reported."
            )
        self.model_, self.attributes_, self.classes_ = model, tuple(attributes), labels
        self.n_features_in_, self.statement_ = len(self.attributes_), None

    def predict_proba(self, X: ArrayLike) -> Array:  # noqa: N803 - scikit-learn's name
        """Return the labels' probabilities for each record, in the order of `classes_`."""
        check_is_fitted(self, "model_")
        columns = validate_data(self, X, dtype=None, reset=False)
        return self.model_.probabilities(code_columns(columns, self.attributes_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the likeliest label of each record."""
        chances = self.predict_proba(X)  # an estimator that is not fitted says so here
        return np.asarray(self.classes_[chances.argmax(axis=1)])


class PrivateNaiveBayes(PrivateClassifier):
    """Naive Bayes from one private report of each person (CLLDP, Algorithm 3).

    Args:
        epsilon: what the report may say about the label.
        protocol: "khr", "basic" or "labeldp" (which leaks more than its budget).
        omega: "learnt", "known", a number, or one `Omega` for each attribute; see `LabelSettings`.
        k: "search", "published" or a number.
        confidence: of a learnt omega; None for the point estimate, which promises nothing.
        share: of the people that omega is learnt from.
        bins: of a column of numbers.
        random_state: a whole number for a simulation that can be repeated; None is secure.

    After fitting: `classes_`, `attributes_`, `model_`, `promise_` (what someone's reports say about the label
    at most, if no omega is below the truth) and `statement_` (what they say for the records in hand; None
    after `fit_reports`, when nobody has them).
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Simulate the collection and learn from the reports."""
        fitted = private_bayes(self._coded(X, y), self._settings(), seed=self.random_state)
        return self._learnt(fitted.model, fitted.statement)

    def fit_reports(
        self, reports: Sequence[AttributeReports], attributes: Sequence[Attribute], classes: ArrayLike
    ) -> Self:
        """Learn from reports that were really collected, in the order of the attributes.

        The attributes say how the columns were coded; the classes are the labels in the order of their codes.
        """
        if [part.attribute for part in reports] != list(range(len(attributes))):
            raise InputError(f"there must be reports of all {len(attributes)} attributes, in their order.")
        self._take(bayes_from_reports(reports), attributes, classes)
        self.promise_ = max(part.response.label_epsilon for part in reports)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDecisionTree(PrivateClassifier):
    """A decision tree grown in rounds of private reports (CLLDP, Algorithm 4).

    Args:
        epsilon: what all of a person's reports together may say about the label.
        max_depth: the number of rounds.
        scheme: "turns", "leaves" or "published"; see `learning.tree_rounds`.
        budgets: "closed" or "published" (eq. (15)).
        protocol, omega, k, confidence, share, bins, random_state: as for `PrivateNaiveBayes`.
        caution: how clearly a value must stand out; 0 is the published stop rule.

    After fitting it has the same attributes as `PrivateNaiveBayes`.
    """

    max_depth: int = 5
    scheme: Scheme = "turns"
    budgets: BudgetRule = "closed"
    caution: float = 3.0

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Simulate all rounds and grow the tree from the answers."""
        rows, settings = self._coded(X, y), self._settings()
        tree = TreeSettings(
            depth=self.max_depth, scheme=self.scheme, budgets=self.budgets, caution=self.caution
        ).under(settings)
        fitted = private_tree(rows, settings, tree, seed=self.random_state)
        return self._learnt(fitted.tree, fitted.statement)

    def fit_reports(self, rounds: TreeRounds, attributes: Sequence[Attribute], classes: ArrayLike) -> Self:
        """Take the tree of rounds that were really collected: the collector's state after the last one.

        Attributes and classes are as for `PrivateNaiveBayes.fit_reports`.
        """
        if not rounds.is_done:
            raise InputError(
                f"round {rounds.number + 1} of {rounds.settings.depth} has not been received; ask it first."
            )
        self._take(rounds.tree, attributes, classes)
        self.promise_ = max(group.ledger.label_epsilon for group in rounds.groups)
        return self

    def text(self) -> str:
        """Return the tree as indented lines."""
        return tree_text(*self._shown())

    def draw(self, path: str | Path) -> Path:
        """Draw the tree to an SVG file."""
        return draw_tree(*self._shown(), path)

    def _shown(self) -> tuple[DecisionTree, tuple[Attribute, ...], Attribute]:
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, DecisionTree):
            raise InputError("there is no tree to show; fit the estimator first.")
        label = categorical("label", [str(value) for value in self.classes_])
        return self.model_, self.attributes_, label


def learn_attributes(columns: NDArray[Any], bins: int, names: Sequence[str]) -> tuple[Attribute, ...]:
    """Return one attribute for each column: numbers in bins of equal weight, others by their values.

    The edges and the values are taken as public: what is coded here is not part of what is promised.
    """
    check_whole("bins", bins, at_least=2, at_most=10_000)
    learnt = []
    for name, column in zip(names, columns.T, strict=True):
        check_present(column, f"column {name!r}")
        if (numbers := _numbers(column, name)) is None:
            learnt.append(categorical(name, sorted({str(value) for value in column})))
        else:
            learnt.append(numeric(name, _edges(numbers, bins).tolist()))
    return tuple(learnt)


def _edges(numbers: Array, bins: int) -> Array:
    """Return the edges of equally full bins, with a bin of its own for every value that fills one.

    Plain quantiles would put such a value into one bin with its neighbours, or leave one bin altogether: nine
    in ten records of a census table have a capital gain of 0.
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    between = (distinct[1:] + distinct[:-1]) / 2
    if len(distinct) <= bins:
        return np.unique(between[between > distinct[:-1]])  # neighbouring doubles have no middle
    is_mass = counts * bins >= len(numbers)  # it fills a bin alone
    others = numbers[~np.isin(numbers, distinct[is_mass])]
    cuts = np.quantile(others, np.arange(1, bins) / bins) if len(others) else np.empty(0)
    around = np.concatenate([distinct[is_mass], between[is_mass[:-1]]])
    edges = np.unique(np.concatenate([cuts, around]))
    return np.asarray(edges[(edges > distinct[0]) & (edges <= distinct[-1])])


def code_columns(columns: NDArray[Any], attributes: Sequence[Attribute]) -> Codes:
    """Return the codes of the columns, shape (rows, attributes)."""
    codes = np.empty((len(columns), len(attributes)), dtype=np.uint16)
    for i, attribute in enumerate(attributes):
        codes[:, i] = _code(columns[:, i], attribute)
    return codes


def _code(column: NDArray[Any], attribute: Attribute) -> NDArray[np.integer]:
    check_present(column, f"column {attribute.name!r}")
    if attribute.kind == "numeric":
        numbers = _numbers(column, attribute.name)
        if numbers is None:
            raise InputError(f"column {attribute.name!r} must be numbers, as it was in training.")
        return np.searchsorted(np.asarray(attribute.edges), numbers, side="right")
    places = {value: code for code, value in enumerate(attribute.values)}
    texts = [str(value) for value in column]
    unseen = sorted({text for text in texts if text not in places})
    if unseen:
        raise InputError(
            f"column {attribute.name!r} has the value {unseen[0]!r}, never seen in training; it had "
            f"{', '.join(attribute.values[:10])}{' ...' if attribute.size > 10 else ''}."
        )
    return np.array([places[text] for text in texts], dtype=np.int64)


def check_present(column: NDArray[Any], name: str) -> None:
    """Refuse a column of objects in which something is missing: it would become a value of its own."""
    if column.dtype.kind != "O":
        return
    missing = [row for row, value in enumerate(column) if value is None or value != value]
    if missing:
        raise InputError(
            f"{name} is missing in {len(missing)} records, first in record {missing[0]}; fill it in, or "
            "leave these records out."
        )


def _numbers(column: NDArray[Any], name: str) -> Array | None:
    """Return the column as finite numbers, or None if it holds anything else."""
    if column.dtype.kind in "OUS" and any(isinstance(value, str) for value in column):
        return None
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(numbers).all():
        raise InputError(f"column {name!r} must hold finite numbers; leave out records with infinite ones.")
    return numbers
