"""Naive Bayes from private reports (CLLDP, Algorithm 3), and the contract of all models of a label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Whole, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import AttributeReports, LabelledRows, LabelSettings
from sidelight.labels.collection import gather, make_responses, settle_omegas
from sidelight.learning.statement import Statement, single_report_statement

_LEAST = 1e-12  # a label that nobody seems to have still needs a positive mass to project to


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


@dataclass(frozen=True, eq=False)
class BayesModel(LabelModel):
    """Naive Bayes over codes: the labels' prior, and each attribute's Pr(value | label), (labels, values)."""

    prior: Array
    conditionals: tuple[Array, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of values."""
        return tuple(table.shape[1] for table in self.conditionals)

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether all tables are positive distributions of these sizes, for this number of labels."""
        tables = [self.prior[None, :] if self.prior.ndim == 1 else self.prior, *self.conditionals]
        shapes = [(1, labels), *((labels, size) for size in sizes)]
        return [table.shape for table in tables] == shapes and all(
            bool(np.all(table > 0)) and np.allclose(table.sum(axis=1), 1) for table in tables
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the probabilities as plain data."""
        return {"prior": self.prior.tolist(), "conditionals": [part.tolist() for part in self.conditionals]}

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels) (CLLDP, eq. (9))."""
        scores = np.tile(np.log(self.prior), (len(codes), 1))
        for i, table in enumerate(self.conditionals):
            scores += np.log(table).T[codes[:, i]]
        # The largest becomes 1, so that the sum is never 0.
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class BayesFit:
    """A model, the reports it was learnt from, and what they say about the label.

    `rows` are the records of those who reported for the model; the reports' `people` count within them.
    """

    model: BayesModel
    reports: tuple[AttributeReports, ...]
    rows: LabelledRows
    statement: Statement


def bayes_from_reports(reports: Sequence[AttributeReports]) -> BayesModel:
    """Learn Naive Bayes from the reports of all attributes (CLLDP, Algorithm 3, collector side).

    The labels' probabilities are the mean over attributes, weighted by how many reported; each attribute's
    joint is projected to the distributions with these labels, and a cell that came out as 0 gets the weight
    of one report. An attribute that nobody reported on says nothing.
    """
    sent = [part for part in reports if len(part.reports)]
    if not sent:
        raise InputError("there are no reports to learn from; collect some first.")
    joints = {part.attribute: part.joint() for part in sent}
    people = np.array([len(part.reports) for part in sent], dtype=np.float64)
    marginals = np.stack([joints[part.attribute].sum(axis=0) for part in sent])
    prior = _positive(to_simplex(people @ marginals / people.sum(), shift=False), float(people.sum()))
    tables = []
    for part in reports:
        if part.attribute not in joints:
            tables.append(np.full((len(prior), part.response.values), 1 / part.response.values))
            continue
        # The nearest joint whose labels have the given frequencies: each label's column on its own.
        columns = zip(joints[part.attribute].T, np.maximum(prior, _LEAST).tolist(), strict=True)
        cells = np.stack([to_simplex(column, weight, shift=False) for column, weight in columns])
        tables.append(_positive(cells / cells.sum(axis=1, keepdims=True), float(len(part.reports))))
    return BayesModel(prior, tuple(tables))


def _positive(shares: Array, people: float) -> Array:
    """Give every cell one more report, so that no estimate rules anything out."""
    raised = shares + 1 / people  # logarithms are taken of them
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def private_bayes(rows: LabelledRows, settings: LabelSettings, *, seed: int | None = None) -> BayesFit:
    """Simulate the whole collection and learn Naive Bayes from it."""
    omegas, kept = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"))
    responses = make_responses(settings, rows, omegas)
    reports = gather(kept, responses, seed=derive_seed(seed, "reports"))
    statement = single_report_statement(rows, settings, omegas, responses)
    return BayesFit(bayes_from_reports(reports), tuple(reports), kept, statement)
