"""Attacks on the labels of a collection: what can be guessed from what one person released.

The published attack (CLLDP, section 7.4) trains Naive Bayes on the reports and applies it to what was
released: the true attributes under LabelDP, the reported ones under kHR. The optimal attack knows the
distribution of the records and reads the whole report. Each stands beside its control: guessing the commonest
label, which needs no release at all.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.intervals import mean_interval
from sidelight.attacks.result import AttackResult
from sidelight.foundation.errors import InputError, check_choice
from sidelight.labels.devices import AttributeReports, LabelledRows
from sidelight.labels.responses import BasicResponse, HeadsResponse, LabelOnlyResponse
from sidelight.learning.bayes import BayesFit, BayesModel
from sidelight.sources.counts import distinct_rows

Array = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
LabelAttack = Literal["published", "optimal"]


def attack_labels(fit: BayesFit, attack: LabelAttack = "optimal", *, label: str = "label") -> AttackResult:
    """Guess the label of everyone who reported, from their own release alone.

    Args:
        fit: a simulated collection and the model learnt from it.
        attack: "published" applies the learnt model to what was released; "optimal" knows the distribution of
            the records themselves.
        label: what to call the label.
    """
    check_choice("attack", attack, ("published", "optimal"))
    if isinstance(fit.reports[0].response, LabelOnlyResponse):
        found = _true_attributes(fit, attack)
    else:
        found = _reported_pairs(fit, attack)
    scores, baseline, truth = found
    guesses = scores.argmax(axis=1)
    limit = None
    if attack == "optimal":
        limit = mean_interval(1 - scores.max(axis=1) / scores.sum(axis=1))
    return AttackResult(
        target=label,
        attack=f"{attack} label attack",
        release=f"{fit.reports[0].response.name} at epsilon {fit.statement.epsilon:g}",
        measure="error rate",
        guesses=guesses,
        losses=_wrong(guesses, truth),
        control_losses=_wrong(np.full(len(truth), np.bincount(truth).argmax()), truth),
        baseline_losses=None if baseline is None else _wrong(baseline, truth),
        limit=limit,
    )


def _wrong(guesses: Codes, truth: Codes) -> Array:
    return np.asarray(guesses != truth, dtype=np.float64)


def _true_attributes(fit: BayesFit, attack: LabelAttack) -> tuple[Array, Codes | None, Codes]:
    """Return each label's score, the label as reported, and the truth, for LabelDP's reports."""
    rows, reports = fit.rows, fit.reports[0]
    sets = reports.reports.values[:, 1:].astype(np.int64)
    baseline = sets[:, 0] if sets.shape[1] == 1 else None
    is_optimal = attack == "optimal"
    scores = label_only_scores(rows, reports) if is_optimal else fit.model.probabilities(rows.codes)
    return scores, baseline, rows.labels.astype(np.int64)


def label_only_scores(rows: LabelledRows, reports: AttributeReports) -> Array:
    """Return Pr(label, record, report) up to a factor a person, given the records' own distribution.

    Args:
        rows: the people.
        reports: LabelDP's reports of any attribute; their label sets are used.
    """
    response = reports.response
    if not isinstance(response, LabelOnlyResponse):
        raise InputError(f"the attack reads LabelDP's reports, not those of {response.name!r}.")
    cells, combinations = distinct_rows(rows.codes)
    joint = np.zeros((combinations, rows.classes))
    np.add.at(joint, (cells, rows.labels.astype(np.intp)), 1 / len(rows))
    held = np.zeros((len(rows), rows.classes), dtype=np.bool_)
    held[np.arange(len(rows))[:, None], reports.reports.values[:, 1:].astype(np.int64)] = True
    return np.asarray(joint[cells] * np.where(held, float(response.selection.factor), 1.0))


def _reported_pairs(fit: BayesFit, attack: LabelAttack) -> tuple[Array, Codes | None, Codes]:
    """Return each label's score, the label as reported, and the truth, for reports about pairs."""
    rows = fit.rows
    prior = np.bincount(rows.labels.astype(np.int64), minlength=rows.classes) / len(rows)
    scores, truth = [], []
    for part in fit.reports:
        if part.people is None:
            raise InputError("an attack is scored in a simulation only; nobody knows who sent these reports.")
        if attack == "published":
            scores.append(published_scores(fit.model, part))
        else:
            known = np.nan_to_num(rows.conditionals(part.attribute))
            scores.append(prior * report_likelihood(part, known))
        truth.append(rows.labels[part.people].astype(np.int64))
    shown = [label for part in fit.reports if (label := _shown_label(part)) is not None]
    baseline = np.concatenate(shown) if len(shown) == len(fit.reports) else None
    return np.concatenate(scores), baseline, np.concatenate(truth)


def _shown_label(part: AttributeReports) -> Codes | None:
    """Return the label that a report shows, where it shows just one."""
    response = part.response
    if isinstance(response, HeadsResponse) and response.width == 1:
        return np.asarray(part.reports.values[:, 0].astype(np.int64) % response.labels)
    return None


def published_scores(model: BayesModel, part: AttributeReports) -> Array:
    """Return the model's score of each label for the attribute values in each kHR report.

    A report about attribute a holds k pairs; their values' conditional probabilities are averaged.
    """
    if not isinstance(part.response, HeadsResponse):
        raise InputError(f"the attack reads kHR reports, not those of {part.response.name!r}.")
    values = part.reports.values.astype(np.int64) // part.response.labels
    return np.asarray(model.prior * model.conditionals[part.attribute].T[values].mean(axis=1))


def report_likelihood(part: AttributeReports, rows: Array) -> Array:
    """Return Pr(report | label) up to a factor a report, shape (people, labels).

    Under label l a report that favours the set S has the likelihood 1 + (theta - 1) sum of Pr(value | l) over
    the pairs of S with label l.

    Args:
        part: the reports.
        rows: (labels, values) Pr(value | label).
    """
    response = part.response
    if isinstance(response, HeadsResponse):
        pairs = part.reports.values.astype(np.int64)
        weights = rows.T.reshape(-1)[pairs]
        held = np.stack(
            [
                np.where(pairs % response.labels == label, weights, 0.0).sum(axis=1)
                for label in range(response.labels)
            ],
            axis=1,
        )
    elif isinstance(response, BasicResponse):
        bits = np.unpackbits(part.reports.values, axis=1, bitorder="little")
        favoured = bits[:, : response.values * response.labels].reshape(-1, response.values, response.labels)
        held = np.einsum("nvl,lv->nl", favoured.astype(np.float64), rows)
    else:
        raise InputError(f"the attack reads reports about pairs, not those of {response.name!r}.")
    return np.asarray(1 + (float(response.factor) - 1) * held)
