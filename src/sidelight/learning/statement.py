"""What a collection for learning says about each person's label, in figures and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.collection.labels.gathering import LabelledRows, LabelSettings
from sidelight.collection.labels.omega import Omega
from sidelight.collection.labels.responses import LabelResponse
from sidelight.leakage.bounds import Figure
from sidelight.leakage.labels import labeldp_leakage
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.sources.counts import distinct_rows


@dataclass(frozen=True)
class Statement:
    """The leakage of the label through one person's reports.

    Attributes:
        protocol: "khr", "basic" or "labeldp".
        epsilon: the budget.
        promise: what the reports say about the label at most, if omega is not below the truth; infinite for
            LabelDP.
        confidence: the probability that omega is not below the truth; None where that is taken for granted.
        omega_source: where omega came from, in words.
        leakage: for an adversary who knows the distribution of the records in hand.
        kind: whether that figure is exact or certified.
        labeldp: what LabelDP at the same budget would leak, for the same adversary.
    """

    protocol: str
    epsilon: float
    promise: float
    confidence: float | None
    omega_source: str
    leakage: float
    kind: Figure
    labeldp: float

    @property
    def is_kept(self) -> bool:
        """Whether the leakage stays within the budget."""
        return self.leakage <= self.epsilon * (1 + 1e-9)

    def sentence(self) -> str:
        """Say it in words."""
        found = f"{_nats(self.leakage)} ({self.kind})"
        verdict = "within" if self.is_kept else "above"
        text = f"Label leakage {found}, {verdict} the budget of {self.epsilon:g}"
        if self.protocol == "labeldp":
            return f"{text}: LabelDP releases the attributes as they are."
        sure = "" if self.confidence is None else f" with {self.confidence:.0%} confidence"
        return (
            f"{text}; promised: at most {_nats(self.promise)}{sure}, omega {self.omega_source}. "
            f"LabelDP would leak {_nats(self.labeldp)}."
        )


def single_report_statement(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], responses: Sequence[LabelResponse]
) -> Statement:
    """Return the statement of a collection in which everyone sends one report."""
    full = labeldp_of(rows, settings.epsilon)
    if settings.protocol == "labeldp":
        return Statement("labeldp", settings.epsilon, math.inf, None, "not used", full, "exact", full)
    worst = max(response.leakage(rows.conditionals(i)).value for i, response in enumerate(responses))
    promise = max(response.label_epsilon for response in responses)
    return Statement(
        settings.protocol,
        settings.epsilon,
        promise,
        omegas[0].confidence,
        omegas[0].source,
        worst,
        "exact",
        full,
    )


def labeldp_of(rows: LabelledRows, epsilon: float) -> float:
    """Return what LabelDP leaks about the label when all attributes are released as they are."""
    group, count = distinct_rows(rows.codes)
    cells = np.zeros((rows.classes, count))
    np.add.at(cells, (rows.labels.astype(np.intp), group), 1.0)
    mass = cells.sum(axis=1, keepdims=True)
    conditionals = np.divide(cells, mass, out=np.full_like(cells, np.nan), where=mass > 0)
    return labeldp_leakage(conditionals, SubsetSelection(rows.classes, epsilon).channel).value


def _nats(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "infinite"
