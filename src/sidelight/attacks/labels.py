"""Attacks on the labels of a collection: what can be guessed from what one person released.

The published attack (CLLDP, section 7.4) trains Naive Bayes on the reports and applies it to what was
released: the true attributes under LabelDP, the reported ones under kHR. The optimal attack knows the
distribution of the records and reads the whole report. Each stands beside its control: guessing the commonest
label, which needs no release at all.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sidelight.attacks.attack import Guess
from sidelight.attacks.result import AttackResult
from sidelight.foundation.arrays import Array, Whole
from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.intervals import mean_interval
from sidelight.labels import AttributeReports, LabelledRows
from sidelight.learning.bayes import BayesFit, BayesModel
from sidelight.sources.counts import distinct_rows

LabelAttack = Literal["published", "optimal"]
Scores = tuple[Array, Whole | None, Whole]
"""The score of each label (people, labels), the label as reported where one is, and the true one."""


def attack_labels(fit: BayesFit, attack: LabelAttack = "optimal", *, label: str = "label") -> AttackResult:
    """Guess the label of everyone who reported, from their own release alone, in a simulated collection.

    "published" applies the learnt model to what was released; "optimal" knows the distribution of the records
    themselves, which includes the people attacked. Values are named by their codes.
    """
    check_choice("attack", attack, ("published", "optimal"))
    is_labeldp = fit.statement.protocol == "labeldp"
    scores, reported, truth = (_true_attributes if is_labeldp else _reported_pairs)(fit, attack)
    limit = mean_interval(1 - scores.max(axis=1) / scores.sum(axis=1)) if attack == "optimal" else None
    words = f"{attack} label attack", f"{fit.reports[0].response.name} at epsilon {fit.statement.epsilon:g}"
    commonest = np.asarray(np.bincount(truth).argmax())
    likely = scores / scores.sum(axis=1, keepdims=True)
    values = tuple(map(str, range(scores.shape[1])))
    guess = Guess(*words, "error rate", likely.argmax(axis=1), commonest, reported, limit, likely, values)
    return guess.measured(truth, label, limit)


def _true_attributes(fit: BayesFit, attack: LabelAttack) -> Scores:
    """Return the scores for LabelDP's reports, which show everyone's true attributes."""
    rows, part = fit.rows, fit.reports[0]
    is_optimal = attack == "optimal"
    scores = label_only_scores(rows, part) if is_optimal else fit.model.probabilities(rows.codes)
    return scores, part.response.shown_labels(part.reports), rows.labels.astype(np.int64)


def label_only_scores(rows: LabelledRows, part: AttributeReports) -> Array:
    """Return Pr(label, record, report) up to a factor a person, given the records' own distribution.

    The part is LabelDP's reports of any attribute; their label sets are used.
    """
    cells, combinations = distinct_rows(rows.codes)
    joint = np.zeros((combinations, rows.classes))
    np.add.at(joint, (cells, rows.labels.astype(np.intp)), 1 / len(rows))
    # The joint has the record's attributes already: of the report only the label's part is new.
    unaware = np.ones((rows.classes, part.response.values))
    return np.asarray(joint[cells] * part.response.likelihood(part.reports, unaware))


def _reported_pairs(fit: BayesFit, attack: LabelAttack) -> Scores:
    """Return the scores for reports about pairs of value and label."""
    rows = fit.rows
    prior = np.bincount(rows.labels.astype(np.int64), minlength=rows.classes) / len(rows)
    scores, truth, shown = [], [], []
    for part in fit.reports:
        if part.people is None:
            raise InputError("an attack is scored in a simulation only; nobody knows who sent these reports.")
        if attack == "published":
            scores.append(published_scores(fit.model, part))
        else:
            known = np.nan_to_num(rows.conditionals(part.attribute))
            scores.append(prior * part.response.likelihood(part.reports, known))
        truth.append(rows.labels[part.people].astype(np.int64))
        shown.append(part.response.shown_labels(part.reports))
    reported = [labels for labels in shown if labels is not None]
    baseline = np.concatenate(reported) if len(reported) == len(shown) else None
    return np.concatenate(scores), baseline, np.concatenate(truth)


def published_scores(model: BayesModel, part: AttributeReports) -> Array:
    """Return the model's score of each label for the attribute values in each kHR report.

    A report about attribute a holds k pairs; their values' conditional probabilities are averaged.
    """
    values = part.response.shown_values(part.reports)
    if values is None:
        raise InputError(f"the attack reads kHR reports, not those of {part.response.name!r}.")
    return np.asarray(model.prior * model.conditionals[part.attribute].T[values].mean(axis=1))
