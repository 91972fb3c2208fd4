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
from sklearn.utils.validation import check_is_fitted, validate_data

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_whole
from sidelight.labels import (
    AttributeTold,
    BudgetRule,
    LabelledRows,
    LabelResponse,
    LabelSettings,
    WidthRule,
)
from sidelight.labels.collection import OmegaSource, ProtocolName, Secret
from sidelight.learning.bayes import LabelModel, TableRule, bayes_from_reports, private_bayes
from sidelight.learning.bayes_trees import bayes_trees
from sidelight.learning.cart import private_tree
from sidelight.learning.classifier import LabelClassifier
from sidelight.learning.coding import code_columns, learn_attributes
from sidelight.learning.decision_tree import DecisionTree, tree_text
from sidelight.learning.diagram import draw_tree
from sidelight.learning.statement import Statement
from sidelight.learning.tree_rounds import Scheme, TreeRounds, TreeSettings
from sidelight.schema import Attribute, categorical


@dataclass(eq=False, repr=False)
class PrivateClassifier(LabelClassifier):
    """What the private classifiers share: coding the columns, validation, prediction.

    Nothing is checked before `fit`: scikit-learn wants parameters kept as they are given.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    secret: Secret = "both"
    protocol: ProtocolName = "khr"
    omega: OmegaSource = "auto"
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

    def _coded(self, records: ArrayLike, labels: ArrayLike) -> LabelledRows:
        """Learn the coding and return the records coded."""
        columns, codes = self._checked(records, labels)
        self.attributes_ = learn_attributes(columns, self.bins, self._names(columns))
        constant = [attribute.name for attribute in self.attributes_ if attribute.size == 1]
        if constant and self.secret == "attributes":
            raise InputError(f"column {constant[0]!r} is constant and has nothing to hide; leave it out.")
        coded = code_columns(columns, self.attributes_)
        sizes = tuple(attribute.size for attribute in self.attributes_)
        ordered = tuple(attribute.kind == "numeric" for attribute in self.attributes_)
        return LabelledRows(coded, codes.astype(np.uint16), sizes, len(self.classes_), ordered)

    def _settings(self) -> LabelSettings:
        return LabelSettings(
            self.epsilon, self.protocol, self.omega, self.k, self.confidence, self.share, self.secret
        )

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


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateNaiveBayes(PrivateClassifier):
    """Naive Bayes from one private report of each person.

    Args:
        epsilon: what the report may say about the label; about the attribute where only these are secret.
        tables: "shrunken" to independence by as much as the noise explains, or "published" (CLLDP,
            Algorithm 3).
        secret: "both", "label" or "attributes"; see `LabelSettings`.
        protocol: "khr", "basic" or "labeldp" (which leaks more than its budget).
        omega: "auto", "learnt", "known", a number, or one `Omega` for each attribute; see `LabelSettings`.
            With 1 the budget holds for the attribute's value as well as for the label.
        k: "search", "published" or a number.
        confidence: of a learnt omega; None for the point estimate, which promises nothing.
        share: of the people that omega is learnt from.
        bins: of a column of numbers.
        random_state: a whole number for a simulation that can be repeated; None is secure.

    After fitting: `classes_`, `attributes_`, `model_`, `promise_` (what someone's reports say about the label
    at most, if no omega is below the truth) and `statement_` (what they say for the records in hand; None
    after `fit_reports`, when nobody has them).
    """

    tables: TableRule = "shrunken"

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Simulate the collection and learn from the reports."""
        rows = self._coded(X, y)
        fitted = private_bayes(rows, self._settings(), tables=self.tables, seed=self.random_state)
        return self._learnt(fitted.model, fitted.statement)

    def fit_reports(
        self, reports: Sequence[AttributeTold], attributes: Sequence[Attribute], classes: ArrayLike
    ) -> Self:
        """Learn from reports that were really collected, in the order of the attributes.

        The attributes say how the columns were coded; the classes are the labels in the order of their codes.
        """
        if [part.attribute for part in reports] != list(range(len(attributes))):
            raise InputError(f"there must be reports of all {len(attributes)} attributes, in their order.")
        ordered = [attribute.kind == "numeric" for attribute in attributes]
        model = bayes_from_reports(reports, tables=self.tables, ordered=ordered)
        self._take(model, attributes, classes)
        said = [part.response for part in reports]
        self.promise_ = max(_promised(part, self.secret) for part in said)
        return self


def _promised(response: LabelResponse, secret: Secret) -> float:
    """Return what a report says at most about what is secret."""
    if secret == "attributes":
        return response.value_epsilon
    if secret == "label" and response.shows == "value":
        return response.mechanism.epsilon  # of the label's report, beside the public attributes
    return response.label_epsilon


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDecisionTree(PrivateClassifier):
    """A decision tree from private reports, or the mean of several.

    Args:
        epsilon: what all of a person's reports together may say about the label.
        max_depth: the longest path, and the number of rounds if there are any.
        scheme: "once" (see `learning.bayes_trees`), or in rounds: "turns", "leaves" or "published" (CLLDP,
            Algorithm 4; see `learning.tree_rounds`); none where attributes are sent as they are.
        trees: how many; more than one with "once" only.
        budgets: "closed" or "published" (eq. (15)).
        caution: how clearly a value must stand out; 0 is the published stop rule.

    All other arguments, and the attributes after fitting, are those of `PrivateNaiveBayes`.
    """

    max_depth: int = 5
    scheme: Scheme = "once"
    trees: int = 1
    budgets: BudgetRule = "closed"
    caution: float = 3.0

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Simulate all rounds and grow the tree from the answers."""
        rows, settings = self._coded(X, y), self._settings()
        self._check_rounds(settings)
        tree = TreeSettings(
            depth=self.max_depth, scheme=self.scheme, budgets=self.budgets, caution=self.caution
        ).under(settings)
        if check_whole("trees", self.trees, at_least=1) > 1:
            if self.scheme != "once":
                raise InputError(f"`trees` above 1 are for scheme='once', got scheme={self.scheme!r}.")
            made = bayes_trees(rows, settings, tree.depth, self.trees, seed=self.random_state)
            return self._learnt(made.model, made.statement)
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

    def _check_rounds(self, settings: LabelSettings) -> None:
        """Refuse what would be left aside: rounds where there are none, budgets of one answer."""
        if settings.protocol == "labeldp" and self.scheme != "once":
            raise InputError(
                f"`scheme` {self.scheme!r} has people answer in rounds, but where attributes are sent as "
                "they are there are none; leave it out, or use secret='both' with protocol='khr'."
            )
        if self.budgets != "closed" and self.scheme not in ("leaves", "published"):
            raise InputError(
                f"`budgets` {self.budgets!r} divides a budget between rounds, but with scheme="
                f"{self.scheme!r} everyone answers once; leave it out, or use scheme='leaves'."
            )

    def text(self) -> str:
        """Return the tree as indented lines."""
        return tree_text(*self._shown())

    def draw(self, path: str | Path) -> Path:
        """Draw the tree to an SVG file."""
        return draw_tree(*self._shown(), path)

    def _shown(self) -> tuple[DecisionTree, tuple[Attribute, ...], Attribute]:
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, DecisionTree):
            raise InputError("there is no single tree to show; fit the estimator with trees=1.")
        label = categorical("label", [str(value) for value in self.classes_])
        return self.model_, self.attributes_, label
