"""Attacks on the labels of a collection: what can be guessed from what one person released.

The published attack (CLLDP, section 7.4) trains Naive Bayes on the reports and applies it to what was
released: the true attributes under LabelDP, the reported ones under kHR. The Bayes-optimal attack knows the
distribution and reads the whole report. Each stands beside its control: guessing the commonest label, which
needs no release at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.collection.labels.gathering import AttributeReports, LabelledRows
from sidelight.collection.labels.responses import BasicResponse, HeadsResponse, LabelOnlyResponse
from sidelight.foundation.errors import InputError
from sidelight.learning.bayes import BayesModel

Array = NDArray[np.float64]
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class LabelInference:
    """How many labels an attack guesses right.

    Attributes:
        attack: its name.
        people: how many it was tried on.
        accuracy: the share of right guesses.
        lower: of the 95 % interval (Wilson 1927).
        upper: of the 95 % interval.
        control: the share of the commonest label, guessed without any release.
    """

    attack: str
    people: int
    accuracy: float
    lower: float
    upper: float
    control: float

    @property
    def gain(self) -> float:
        """What the release adds to guessing."""
        return self.accuracy - self.control

    @property
    def beats_control(self) -> bool:
        """Whether it is clearly better than guessing without the release."""
        return self.lower > self.control


def published_attack_on_labeldp(model: BayesModel, rows: LabelledRows) -> LabelInference:
    """Apply a model trained on LabelDP's reports to the true attributes it released."""
    guesses = model.probabilities(rows.codes).argmax(axis=1)
    return _result("published, true attributes", guesses, rows.labels)


def published_attack_on_heads(
    model: BayesModel, parts: Sequence[AttributeReports], rows: LabelledRows
) -> LabelInference:
    """Apply a model trained on kHR reports to the attribute values in each report.

    A report about attribute a holds k pairs; their values' conditional probabilities are averaged.
    """
    guesses, truth = [], []
    for part in parts:
        values = _reported_values(part)
        table = model.conditionals[part.attribute].T
        scores = model.prior * table[values].mean(axis=1)
        guesses.append(scores.argmax(axis=1))
        truth.append(_truth(part, rows))
    return _result("published, reported attributes", np.concatenate(guesses), np.concatenate(truth))


def optimal_attack_on_labeldp(
    rows: LabelledRows,
    reports: AttributeReports,
    conditionals: Array,
    prior: Array,
    cells: NDArray[np.integer],
) -> LabelInference:
    """Guess from the true combination and the label's report, knowing the distribution.

    Args:
        rows: the people.
        reports: LabelDP's reports of any attribute; their label sets are used.
        conditionals: (labels, combinations) Pr(combination | label).
        prior: (labels,).
        cells: (people,) each person's combination.
    """
    response = reports.response
    if not isinstance(response, LabelOnlyResponse):
        raise InputError("the attack reads LabelDP's reports; these are of another protocol.")
    held = np.zeros((len(rows), rows.classes), dtype=np.bool_)
    held[np.arange(len(rows))[:, None], reports.reports.values[:, 1:].astype(np.int64)] = True
    likelihood = np.where(held, float(response.selection.factor), 1.0)
    scores = prior * np.nan_to_num(conditionals).T[cells] * likelihood
    return _result("optimal, LabelDP", scores.argmax(axis=1), rows.labels)


def optimal_attack_on_heads(
    parts: Sequence[AttributeReports], rows: LabelledRows, conditionals: Sequence[Array], prior: Array
) -> LabelInference:
    """Guess from the whole report about one attribute, knowing the distribution.

    Under label l a report with the set S has the likelihood 1 + (theta - 1) sum of Pr(value | l) over the
    pairs of S with label l, up to a factor.
    """
    guesses, truth = [], []
    for part, known in zip(parts, conditionals, strict=True):
        guesses.append((prior * _report_likelihood(part, np.nan_to_num(known))).argmax(axis=1))
        truth.append(_truth(part, rows))
    return _result("optimal, kHR", np.concatenate(guesses), np.concatenate(truth))


def _report_likelihood(part: AttributeReports, rows: Array) -> Array:
    """Return Pr(report | label) up to a factor a report, shape (people, labels)."""
    response = part.response
    if isinstance(response, HeadsResponse):
        pairs = part.reports.values.astype(np.int64)
        weights = rows.T.reshape(-1)[pairs]
        held = np.zeros((len(pairs), response.labels))
        for label in range(response.labels):
            held[:, label] = np.where(pairs % response.labels == label, weights, 0.0).sum(axis=1)
        return np.asarray(1 + (float(response.factor) - 1) * held)
    if isinstance(response, BasicResponse):
        bits = _bits(part, response).reshape(-1, response.values, response.labels)
        held = np.einsum("nvl,lv->nl", bits, rows)
        return np.asarray(1 + (float(response.encoding.factor) - 1) * held)
    raise InputError(f"the attack reads reports about pairs, not those of {response.name!r}.")


def _truth(part: AttributeReports, rows: LabelledRows) -> NDArray[np.integer]:
    """Return the labels of the people behind the reports."""
    if part.people is None:
        raise InputError("an attack is scored in a simulation only; it is not known who sent these reports.")
    return np.asarray(rows.labels[part.people])


def _reported_values(part: AttributeReports) -> NDArray[np.int64]:
    if not isinstance(part.response, HeadsResponse):
        raise InputError(f"the attack reads kHR reports, not those of {part.response.name!r}.")
    return np.asarray(part.reports.values.astype(np.int64) // part.response.labels)


def _bits(part: AttributeReports, response: BasicResponse) -> Array:
    rows = np.unpackbits(part.reports.values, axis=1, bitorder="little")
    return rows[:, : response.values * response.labels].astype(np.float64)


def _result(attack: str, guesses: NDArray[np.integer], truth: NDArray[np.integer]) -> LabelInference:
    """Return the share of right guesses with Wilson's interval, beside the control."""
    people = len(truth)
    if not people:
        raise InputError("there are no reports to attack.")
    share = float(np.mean(guesses == truth))
    control = float(np.bincount(truth.astype(np.int64)).max() / people)
    lower, upper = wilson(share, people)
    return LabelInference(attack, people, share, lower, upper, control)


def wilson(share: float, people: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    z = _NORMAL_95**2 / people
    centre = (share + z / 2) / (1 + z)
    half = math.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return max(0.0, centre - half), min(1.0, centre + half)
