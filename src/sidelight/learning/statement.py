"""What a collection for learning says about each person's label, in figures and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.numbers import decimals
from sidelight.labels.devices import LabelledRows, LabelSettings
from sidelight.labels.leakage import labeldp_leakage
from sidelight.labels.omega import Omega, joint_confidence
from sidelight.labels.responses import BasicResponse, HeadsResponse, LabelResponse
from sidelight.leakage.bounds import Claim
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
        confidence: the probability that omega is not below the truth; None where that is taken for granted,
            0 where nothing is known of it.
        omega_source: where omega came from, in words.
        leakage: for an adversary who knows the distribution of the records in hand; of whoever's reports say
            most, those that omega was learnt from included.
        kind: whether that figure is exact or certified.
        labeldp: what LabelDP at the same budget would leak, for the same adversary.
    """

    protocol: str
    epsilon: float
    promise: float
    confidence: float | None
    omega_source: str
    leakage: float
    kind: Claim
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
        return f"{text}; {self._promised()}. LabelDP would leak {_amount(self.labeldp)}."

    def _promised(self) -> str:
        """Say what is promised, and on which condition."""
        if self.protocol == "basic":
            return f"promised: at most {_nats(self.promise)}, whatever the adversary believes"
        if self.confidence == 0:
            return f"nothing is promised: omega is {self.omega_source}, which may be below the truth"
        limit = f"promised: at most {_nats(self.promise)}"
        if self.confidence is None:
            return f"{limit} if omega ({self.omega_source}) is not below the truth"
        return f"{limit} with {100 * self.confidence:.3g} % confidence, omega {self.omega_source}"


@dataclass(frozen=True)
class Spending:
    """What one question, or one round of questions, asked for.

    Attributes:
        asked: what was asked, in words.
        people: how many answered.
        budgets: the least and the most that one answer was allowed.
        widths: the least and the largest k.
        omegas: the least and the largest omega.
        leakage: what the answers up to here say about the label at most, if no omega is below the truth.
    """

    asked: str
    people: int
    budgets: tuple[float, float]
    widths: tuple[int, int]
    omegas: tuple[float, float]
    leakage: float


def spending(
    asked: str, people: int, responses: Iterable[HeadsResponse | BasicResponse], leakage: float
) -> Spending:
    """Return what some responses asked for; the basic one may favour any number of pairs."""
    used = list(responses)
    budgets = [response.budget for response in used]
    heads = [response for response in used if isinstance(response, HeadsResponse)]
    widths = [response.width for response in heads] or [0]
    omegas = [response.omega for response in heads] or [1.0]
    return Spending(
        asked,
        people,
        (min(budgets), max(budgets)),
        (min(widths), max(widths)),
        (min(omegas), max(omegas)),
        leakage,
    )


def single_report_statement(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], responses: Sequence[LabelResponse]
) -> Statement:
    """Return the statement of a collection in which everyone sends one report."""
    if settings.protocol == "labeldp":
        full = labeldp_of(rows, settings.epsilon)
        return Statement("labeldp", settings.epsilon, math.inf, None, "not used", full, "exact", full)
    worst = max(response.leakage(rows.conditionals(i)).value for i, response in enumerate(responses))
    promise = max(response.label_epsilon for response in responses)
    return private_statement(rows, settings, omegas, promise, (worst, "exact"))


def private_statement(
    rows: LabelledRows,
    settings: LabelSettings,
    omegas: Sequence[Omega],
    promise: float,
    found: tuple[float, Claim],
) -> Statement:
    """Return the statement of a collection by kHR or the basic solution.

    Args:
        rows: the people's records.
        settings: the protocol.
        omegas: of each attribute.
        promise: what the reports for the model say about the label at most, if no omega is below the truth.
        found: what they say for the records' own distribution, and of which kind that figure is.
    """
    source, confidence = joint_confidence(omegas)
    worst = max(found[0], teaching_leakage(settings, rows.classes))
    full = labeldp_of(rows, settings.epsilon)
    return Statement(settings.protocol, settings.epsilon, promise, confidence, source, worst, found[1], full)


def teaching_leakage(settings: LabelSettings, classes: int) -> float:
    """Return what the reports say that omega is learnt from: those about the label alone say most."""
    if settings.protocol != "khr" or settings.omega != "learnt":
        return 0.0
    return SubsetSelection(classes, settings.epsilon).epsilon


def labeldp_of(rows: LabelledRows, epsilon: float) -> float:
    """Return what LabelDP leaks about the label when all attributes are released as they are."""
    group, count = distinct_rows(rows.codes)
    cells = np.zeros((rows.classes, count))
    np.add.at(cells, (rows.labels.astype(np.intp), group), 1.0)
    mass = cells.sum(axis=1, keepdims=True)
    conditionals = np.divide(cells, mass, out=np.full_like(cells, np.nan), where=mass > 0)
    return labeldp_leakage(conditionals, SubsetSelection(rows.classes, epsilon).channel).value


def _amount(value: float) -> str:
    return decimals(value, "without limit")


def _nats(value: float) -> str:
    return decimals(value, "infinite")
