"""What a model of a label is worth on records that nobody reported, beside what is possible on them.

Accuracy alone flatters a model of a rare label: the commonest one is right most of the time. So balanced
accuracy, AUC and log loss stand beside it, each next to what the commonest label, the same kind of model
without protection and the best possible model reach on the same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.forecasts import Measures, measure
from sidelight.foundation.ranking import FEW, Ranking
from sidelight.labels import LabelledRows
from sidelight.sources.counts import distinct_rows

OWN = "the model"
UNPROTECTED = "without protection"


@dataclass(frozen=True)
class Limit:
    """What no model of these attributes exceeds on these records, whatever it was learnt from.

    It knows the labels of all records with the same attributes, so it is exact for these records, and says
    little where most of them are alone with their attributes, as the share `alone` are.
    """

    accuracy: float
    balanced_accuracy: float
    auc: float | None
    log_loss: float
    alone: float


def tested(probabilities: Array, test: LabelledRows, values: Sequence[str]) -> Measures:
    """Hold a model's probabilities of each label, (records, labels), against the true labels."""
    return measure(probabilities, test.labels.astype(np.intp), values, probabilities.argmax(axis=1))


def unprotected(train: LabelledRows, test: LabelledRows, kind: str, depth: int) -> Array:
    """Return the probabilities of scikit-learn's model without any protection.

    A tree of this depth, each leaf with one more record of every label; boosted trees for models of true
    attributes; Naive Bayes otherwise.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.tree import DecisionTreeClassifier

    out = np.zeros((len(test), train.classes))
    if kind in ("blend", "boosting", "logistic"):
        boosted = HistGradientBoostingClassifier(random_state=0).fit(train.codes, train.labels)
        out[:, boosted.classes_] = boosted.predict_proba(test.codes)
        return out
    if kind == "bayes":
        bayes = CategoricalNB(min_categories=list(train.sizes)).fit(train.codes, train.labels)
        out[:, bayes.classes_] = bayes.predict_proba(test.codes)
        return out
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(train.codes, train.labels)
    out[:, tree.classes_] = tree.predict_proba(test.codes)
    people = tree.tree_.n_node_samples[tree.apply(test.codes)][:, None]
    return np.asarray((out * people + 1) / (people + train.classes))  # no label is impossible


def limit_of(test: LabelledRows) -> Limit:
    """Return what no model of the attributes exceeds on the records, for each measure its own best model.

    A record's attributes tell the shares of the labels among all records that have them. The commonest of
    these labels is the most accurate prediction; the order of the shares has the largest AUC (Neyman and
    Pearson 1933), and the shares themselves have the least log loss (Gibbs' inequality).
    """
    cell, cells = distinct_rows(test.codes)
    counts = test.counts(cell, cells)
    totals, people = counts.sum(axis=1), counts.sum(axis=0)
    held = totals > 0
    shares = counts[:, cell] / people[cell]
    truth = test.labels.astype(np.intp)
    # The AUC is the mean over the same labels as that of a model.
    common = np.flatnonzero((totals >= FEW) & (len(test) - totals >= FEW))
    aucs = [Ranking.of(shares[code], truth == code).auc for code in common]
    return Limit(
        float(counts.max(axis=0).sum()) / len(test),
        float((counts[held] / totals[held, None]).max(axis=0).sum()) / int(held.sum()),
        float(np.mean(aucs)) if aucs else None,
        max(0.0, float(-np.log(shares[truth, np.arange(len(test))]).mean())),  # not -0.0 where all is known
        float(people[people == 1].sum()) / len(test),
    )


def verdict(measures: Measures) -> str:
    """Say whether a model is better than always guessing the commonest label."""
    accuracy, auc = measures.find("accuracy"), measures.find("AUC")
    if accuracy is None or accuracy.is_above:
        return "The model is better than always guessing the commonest label."
    figure = accuracy.figure
    how = "not clearly" if figure.value > accuracy.control else "no"
    text = (
        f"The model is {how} better than always guessing the commonest label: {figure.value:.4f} of its "
        f"predictions are right, {accuracy.control:.4f} of that one"
    )
    if auc is not None and auc.is_above:
        return f"{text}. It does rank people, with an AUC of {auc.figure.value:.3f}."
    if auc is None:
        return f"{text}."
    return f"{text}, and it ranks people no better than chance (AUC {auc.figure.value:.3f})."
