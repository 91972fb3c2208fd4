"""Learning where only the label is secret: attributes as they are, one randomised label of each person.

Three learners, each made for noisy labels, and their mixture. Noise grows as 1/(p - q)^2, hence so does what
holds a model back: the penalty of the logistic regression, the leaves and the penalty of boosting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from sidelight.foundation.arrays import Array, Codes, Mask, Positions
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.progress import track
from sidelight.learning.bayes import BayesModel, LabelModel
from sidelight.learning.debiasing import PrivateTargets, restored
from sidelight.learning.logistic import LogisticModel, fit_logistic
from sidelight.learning.stacking import stacking_weights
from sidelight.learning.tables import TableEstimate, shrunken_tables

Method = Literal["probabilities", "weights"]
METHODS = ("probabilities", "weights")
_ROUNDS = 3  # of weights from the model and of the model from weights


@dataclass(frozen=True, eq=False)
class Columns:
    """Everyone's attributes: as given, as codes, and as numbers, where those that are none stay codes.

    What is given is an array, or a data frame whose columns a classifier may select by name.
    """

    given: Any
    codes: Codes
    numbers: Array
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...] = ()

    @classmethod
    def of_codes(cls, codes: NDArray[Any], sizes: Sequence[int], ordered: Sequence[bool] = ()) -> Columns:
        """Take codes for everything."""
        small = codes.astype(np.uint16)
        return cls(small, small, small.astype(np.float64), tuple(sizes), tuple(ordered))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, people: Mask) -> Columns:
        given = rows_of(self.given, np.flatnonzero(people))
        return Columns(given, self.codes[people], self.numbers[people], self.sizes, self.ordered)


def rows_of(records: Any, rows: Positions) -> Any:
    """Return some rows of an array or of a data frame."""
    return _safe_indexing(records, rows)


Predictor = Callable[[Columns], Array]
"""Gives Pr(label | attributes) for each record, (records, labels)."""
Learner = Callable[[Columns, PrivateTargets], Predictor]


def logistic(columns: Columns, targets: PrivateTargets) -> Predictor:
    """Fit a logistic regression on indicators of all values, by its corrected loss."""
    return _OverCodes(logistic_model(columns, targets))


def logistic_model(columns: Columns, targets: PrivateTargets) -> LogisticModel:
    """Return the regression itself, with a penalty that grows with the noise."""
    return fit_logistic(columns.codes, targets.unbiased, columns.sizes, 3 + 9 / targets.gap**2)


def bayes(columns: Columns, targets: PrivateTargets) -> Predictor:
    """Fit Naive Bayes on unbiased counts, its tables drawn to independence."""
    return _OverCodes(bayes_model(columns, targets))


def bayes_model(columns: Columns, targets: PrivateTargets) -> BayesModel:
    """Return Naive Bayes from unbiased counts of each value with each label."""
    people, prior = len(targets), targets.shares()
    rate = float(targets.selection.mark_rates[1]) + targets.gap * prior
    noise = rate * (1 - rate) / targets.gap**2 / people
    estimates = []
    for i, size in enumerate(columns.sizes):
        codes = columns.codes[:, i]
        sums: Array = np.stack([np.bincount(codes, part, size) for part in targets.unbiased.T], axis=1)
        marginal = (np.bincount(codes, minlength=size) + 1 / size) / (people + 1)
        is_ordered = bool(columns.ordered) and columns.ordered[i]
        estimates.append(TableEstimate(sums / people, np.outer(marginal, noise), marginal, is_ordered))
    return BayesModel(prior, shrunken_tables(estimates, prior))


def boosting(columns: Columns, targets: PrivateTargets) -> Predictor:
    """Fit boosted trees to the reported labels, and bring their probabilities back to the true ones'."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    noise = 1 / targets.gap**2
    leaf = min(round(20 + 20 * noise), max(1, len(columns) // 4))
    model = HistGradientBoostingClassifier(
        min_samples_leaf=leaf, l2_regularization=5 * noise, early_stopping=False, random_state=0
    )
    return _restored(model, targets, columns.numbers, "numbers")


LEARNERS: Mapping[str, Learner] = {"logistic": logistic, "boosting": boosting, "bayes": bayes}


def wrapped(estimator: Any, method: Method) -> Learner:
    """Return a learner from any classifier of scikit-learn.

    "probabilities": it learns to predict the reported label, and the channel's inverse gives the true one's.
    "weights": every record counts once for each label, with the label's probability given the report and what
    the model says of the record, in turns (Dempster, Laird, Rubin 1977).
    """
    _check_classifier(estimator)
    if method == "weights" and not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__} takes no sample weights; use method='probabilities' instead."
        )

    def learn(columns: Columns, targets: PrivateTargets) -> Predictor:
        if method == "probabilities":
            return _restored(clone(estimator), targets, columns.given, "given")
        return _reweighted(estimator, columns, targets)

    return learn


def _check_classifier(estimator: Any) -> None:
    try:
        is_classifier = callable(estimator.predict_proba) and not isinstance(estimator, type)
    except AttributeError:
        is_classifier = False
    if not is_classifier:
        raise invalid(
            "estimator", "a classifier of scikit-learn with predict_proba, or a list of them", estimator
        )


@dataclass(frozen=True, eq=False)
class _OverCodes:
    """A model of codes."""

    model: LabelModel

    def __call__(self, columns: Columns) -> Array:
        return self.model.probabilities(columns.codes)


@dataclass(frozen=True, eq=False)
class _OverRecords:
    """A fitted classifier; with targets its probabilities are of the label that they report."""

    model: Any
    labels: int
    taken: Literal["given", "numbers"] = "given"
    targets: PrivateTargets | None = None

    def __call__(self, columns: Columns) -> Array:
        likely = _spread(
            self.model, columns.numbers if self.taken == "numbers" else columns.given, self.labels
        )
        if self.targets is None:
            return likely
        # The way back ends on the edge of the simplex for many; one more record makes no label impossible.
        people, back = len(self.targets), restored(likely, self.targets.selection)
        return np.asarray((people * back + self.targets.shares()) / (people + 1))


@dataclass(frozen=True, eq=False)
class _Always:
    """The same probabilities for everyone."""

    shares: Array

    def __call__(self, columns: Columns) -> Array:
        return np.tile(self.shares, (len(columns), 1))


def _restored(
    model: Any, targets: PrivateTargets, records: Any, taken: Literal["given", "numbers"]
) -> Predictor:
    """Fit a model to the reported labels, each of a set as a record of its own."""
    people, labels = np.nonzero(targets.held)
    if len(np.unique(labels)) < 2:  # hardly anyone reported
        return _Always(targets.shares())
    model.fit(rows_of(records, people), labels)
    return _OverRecords(model, targets.held.shape[1], taken, targets)


def _reweighted(estimator: Any, columns: Columns, targets: PrivateTargets) -> Predictor:
    people, labels = targets.held.shape
    rows, marks = np.repeat(np.arange(people), labels), np.tile(np.arange(labels), people)
    likely, repeated = np.tile(targets.shares(), (people, 1)), rows_of(columns.given, rows)
    for _ in range(_ROUNDS):
        weights = targets.posterior(likely).reshape(-1)
        model = clone(estimator).fit(repeated, marks, sample_weight=weights)
        likely = np.maximum(_spread(model, columns.given, labels), 1e-9)
    return _OverRecords(model, labels)


def _spread(model: Any, records: Any, labels: int) -> Array:
    """Return a fitted model's probabilities of all labels, 0 for those it never met."""
    out = np.zeros((len(records), labels))
    out[:, model.classes_] = model.predict_proba(records)
    return out


@dataclass(frozen=True, eq=False)
class Blend:
    """Models by name, and how much each counts."""

    weights: Array
    parts: Mapping[str, Predictor]

    def __call__(self, columns: Columns) -> Array:
        """Return the mean of the models' probabilities by their weights."""
        return np.asarray(
            sum(w * part(columns) for w, part in zip(self.weights, self.parts.values(), strict=True))
        )


def blended(
    learners: Mapping[str, Learner], columns: Columns, targets: PrivateTargets, *, folds: int = 5
) -> Blend:
    """Fit all learners, and weigh them by what they say of people they did not learn from."""
    if len(columns) != len(targets):
        raise InputError(f"there must be one report for each record, got {len(targets)} and {len(columns)}.")
    weights = _weights(learners, columns, targets, folds)
    return Blend(weights, {name: learner(columns, targets) for name, learner in learners.items()})


def _weights(learners: Mapping[str, Learner], columns: Columns, targets: PrivateTargets, folds: int) -> Array:
    """Return the stacking weights; equal ones where there are too few people to tell."""
    people, labels = targets.held.shape
    if len(learners) == 1 or people < 4 * folds:
        return np.full(len(learners), 1 / len(learners))
    # Which fold someone is in says nothing about them, so an ordinary generator will do.
    fold = np.random.default_rng(0).permutation(people) % folds
    outside = np.empty((len(learners), people, labels))
    for number in track(range(folds), "cross-validation"):
        away = fold == number
        for place, learner in enumerate(learners.values()):
            outside[place, away] = learner(columns[~away], targets[~away])(columns[away])
    return stacking_weights(outside, targets.unbiased)


@dataclass(frozen=True, eq=False)
class BlendModel(LabelModel):
    """A blend over codes, as a model of a table's label; it lives in memory only."""

    blend: Blend
    sizes: tuple[int, ...]
    labels: int

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels)."""
        return self.blend(Columns.of_codes(codes, self.sizes))

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether it is about attributes of these sizes and this number of labels."""
        return tuple(sizes) == self.sizes and labels == self.labels

    def to_dict(self) -> dict[str, Any]:
        """Return how much each model counts; the models themselves have no file."""
        shares = zip(self.blend.parts, self.blend.weights, strict=True)
        return {"weights": {name: float(weight) for name, weight in shares}}
