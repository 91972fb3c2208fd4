"""Naive Bayes from private reports, and the contract of all models of a label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Whole, to_simplex
from sidelight.foundation.errors import InputError, check_choice
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import AttributeReports, AttributeTold, LabelledRows, LabelResponse, LabelSettings
from sidelight.labels.collection import gather, make_responses, settle_omegas
from sidelight.learning.statement import Statement, single_report_statement
from sidelight.learning.tables import TableEstimate, shrunken_shares, shrunken_tables
from sidelight.learning.tempering import offsets, strength

TableRule = Literal["shrunken", "published"]
TABLES = ("shrunken", "published")
_LEAST_SHARE = 1e-3  # of a label: what is believed of rarer ones is nothing but noise
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
    """Naive Bayes over codes.

    Attributes:
        prior: the labels' shares.
        conditionals: each attribute's Pr(value | label), (labels, values).
        strength: by what share of themselves the logarithms of these count, 1 as in the formula; see
            `learning.tempering`.
        offsets: what is added to each label's score then; None for nothing.
    """

    prior: Array
    conditionals: tuple[Array, ...]
    strength: float = 1.0
    offsets: Array | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of values."""
        return tuple(table.shape[1] for table in self.conditionals)

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether all tables are positive distributions of these sizes, for this number of labels."""
        tables = [self.prior[None, :] if self.prior.ndim == 1 else self.prior, *self.conditionals]
        shapes = [(1, labels), *((labels, size) for size in sizes)]
        if self.offsets is not None and self.offsets.shape != (labels,):
            return False
        return [table.shape for table in tables] == shapes and all(
            bool(np.all(table > 0)) and np.allclose(table.sum(axis=1), 1) for table in tables
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the probabilities, and how far they are believed, as plain data."""
        tables = [part.tolist() for part in self.conditionals]
        data: dict[str, Any] = {"prior": self.prior.tolist(), "conditionals": tables}
        if self.strength != 1.0:
            data["strength"] = self.strength
        return data if self.offsets is None else data | {"offsets": self.offsets.tolist()}

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels) (CLLDP, eq. (9))."""
        first = np.log(self.prior) if self.offsets is None else np.log(self.prior) + self.offsets
        scores = np.tile(first, (len(codes), 1))
        for i, table in enumerate(self.conditionals):
            scores += self.strength * np.log(table).T[codes[:, i]]
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


def bayes_from_reports(
    reports: Sequence[AttributeTold], *, tables: TableRule = "shrunken", ordered: Sequence[bool] = ()
) -> BayesModel:
    """Learn Naive Bayes from the reports of all attributes.

    "shrunken" tables are drawn to independence by as much as the noise explains (`learning.tables`), where
    `ordered` says which attributes are bins of numbers. An attribute may have several sets of reports, which
    count by their precision; one that nobody reported on says nothing. "published" is CLLDP, Algorithm 3.
    """
    check_choice("tables", tables, TABLES)
    if not any(part.count for part in reports):
        raise InputError("there are no reports to learn from; collect some first.")
    if tables == "published":
        return _published(reports)
    count = 1 + max(part.attribute for part in reports)
    told = [_Told.of([part for part in reports if part.attribute == i]) for i in range(count)]
    prior = _label_shares(told)
    is_ordered = [*ordered, *[False] * (count - len(ordered))]
    estimates = [part.estimate(prior, order) for part, order in zip(told, is_ordered, strict=True)]
    return _tempered(estimates, shrunken_tables(estimates, prior), prior)


def _tempered(estimates: Sequence[TableEstimate], tables: tuple[Array, ...], prior: Array) -> BayesModel:
    """Return Naive Bayes whose scores count as far as the noise lets them be believed."""
    share = strength(estimates, tables, prior)
    if share == 1.0:
        return BayesModel(prior, tables)
    added = offsets(tables, [part.marginal for part in estimates], prior, share)
    return BayesModel(prior, tables, share, added)


@dataclass(frozen=True, eq=False)
class _Told:
    """All that was reported on one attribute: the mean joint by precision, and how precise it is.

    The people are as many as would be as precise with the widest-used response; `response` is that one.
    """

    response: LabelResponse
    joint: Array
    people: float

    @classmethod
    def of(cls, parts: Sequence[AttributeTold]) -> _Told:
        """Average the sets of reports on one attribute."""
        sent = [part for part in parts if part.count]
        if not sent:
            response = parts[0].response
            return cls(response, np.zeros((response.values, response.labels)), 0.0)
        weights = np.array([1 / part.response.total_variance(part.count) for part in sent])
        joint = np.tensordot(weights / weights.sum(), np.stack([part.joint() for part in sent]), 1)
        most = max(sent, key=lambda part: part.count).response
        return cls(most, joint, float(weights.sum()) * most.total_variance(1))

    def estimate(self, prior: Array, ordered: bool) -> TableEstimate:
        """Return the joint with its noise and the attribute's own shares."""
        values = self.response.values
        equal = np.full(values, 1 / values)
        if not self.people:  # nothing but noise, so that the table is the attribute's own shares
            return TableEstimate(np.outer(equal, prior), np.full(self.joint.shape, 1e6), equal, ordered)
        raw = self.joint.sum(axis=1)
        if self.response.shows == "value":
            marginal = (raw * self.people + 1 / values) / (self.people + 1)
        else:
            noise = self.response.cell_variance(equal, prior).sum(axis=1)
            marginal = shrunken_shares(raw, noise / self.people)
        noise = self.response.cell_variance(marginal, prior) / self.people
        return TableEstimate(self.joint, noise, marginal, ordered)


def _label_shares(told: Sequence[_Told]) -> Array:
    """Return the labels' shares from all attributes: the mean by precision, each at least a thousandth."""
    labels = told[0].response.labels
    equal = np.full(labels, 1 / labels)
    total, weight = np.zeros(labels), np.zeros(labels)
    # Beside true values everyone sends one label, the same for all attributes: it counts once.
    for part in told[:1] if told[0].response.shows == "value" else told:
        if part.people:
            values = part.response.values
            noise = part.response.cell_variance(np.full(values, 1 / values), equal).sum(axis=0)
            weight += part.people / noise
            total += part.joint.sum(axis=0) * part.people / noise
    shares = total / weight
    if told[0].response.shows != "label":
        shares = shrunken_shares(shares, 1 / weight)
    shares = np.maximum(shares, _LEAST_SHARE)
    return np.asarray(shares / shares.sum())


def _published(reports: Sequence[AttributeTold]) -> BayesModel:
    """Learn Naive Bayes as published (CLLDP, Algorithm 3, collector side).

    The labels' probabilities are the mean over attributes, weighted by how many reported; each attribute's
    joint is projected to the distributions with these labels, and a cell that came out as 0 gets the weight
    of one report.
    """
    sent = [part for part in reports if part.count]
    joints = {part.attribute: part.joint() for part in sent}
    people = np.array([part.count for part in sent], dtype=np.float64)
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
        tables.append(_positive(cells / cells.sum(axis=1, keepdims=True), float(part.count)))
    return BayesModel(prior, tuple(tables))


def _positive(shares: Array, people: float) -> Array:
    """Give every cell one more report, so that no estimate rules anything out."""
    raised = shares + 1 / people  # logarithms are taken of them
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def private_bayes(
    rows: LabelledRows, settings: LabelSettings, *, tables: TableRule = "shrunken", seed: int | None = None
) -> BayesFit:
    """Simulate the whole collection and learn Naive Bayes from it.

    "shrunken" tables learn from the reports that omega was learnt from too; "published" ones do not.
    """
    check_choice("tables", tables, TABLES)
    reused = tables == "shrunken"
    settled = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"), reused=reused)
    responses = make_responses(settings, rows, settled.omegas)
    reports = gather(settled.rows, responses, seed=derive_seed(seed, "reports"))
    statement = single_report_statement(rows, settings, settled.omegas, responses)
    everything = [*reports, *settled.samples] if reused else reports
    model = bayes_from_reports(everything, tables=tables, ordered=rows.ordered)
    return BayesFit(model, tuple(reports), settled.rows, statement)
