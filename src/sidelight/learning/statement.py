"""What a collection for learning says about each person's label, in figures and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.numbers import decimals
from sidelight.labels import LabelledRows, LabelResponse, LabelSettings, Omega, joint_confidence
from sidelight.labels.collection import Secret
from sidelight.labels.leakage import labeldp_leakage, row_shares
from sidelight.leakage.bounds import Claim
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.sources.counts import distinct_rows


@dataclass(frozen=True)
class Statement:
    """The leakage of the label through one person's reports.

    Attributes:
        promise: what the reports say about the label at most, if omega is not below the truth; infinite for
            LabelDP.
        confidence: the probability that omega is not below the truth; None where that is taken for granted, 0
            where nothing is known of it.
        omega_source: where omega came from, in words.
        leakage: for an adversary who knows the distribution of the records in hand, exact or certified; the
            largest over all people, including those whom omega was learnt from.
        labeldp: what LabelDP at the same budget would leak, for the same adversary.
        secret: what is not sent as it is. Where that is the label alone, the figures are of its report, given
            the attributes that everybody knows; where it is the attributes alone, of one attribute's value.
        value: what a report says about the attribute's value at most, whatever the adversary believes.
        is_conditional: whether the promise rests on an omega.
    """

    protocol: str
    epsilon: float
    promise: float
    confidence: float | None
    omega_source: str
    leakage: float
    kind: Claim
    labeldp: float
    secret: Secret = "both"
    value: float = math.inf
    is_conditional: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether the leakage stays within the budget."""
        return self.leakage <= self.epsilon * (1 + 1e-9)  # what adding doubles may cost

    def sentence(self) -> str:
        """Say it in words."""
        verdict = "within" if self.is_kept else "above"
        figure = f"{_nats(self.leakage)} ({self.kind})"
        labeldp = _nats(self.labeldp) if math.isfinite(self.labeldp) else "without limit"
        if self.secret == "label":
            return (
                f"The label's report says at most {figure} about it, {verdict} the budget of "
                f"{self.epsilon:g}, beside what the attributes say, which are public here. Both together: "
                f"{labeldp}."
            )
        if self.secret == "attributes":
            return (
                f"A report says at most {figure} about the attribute's value, {verdict} the budget of "
                f"{self.epsilon:g}. The label is public here."
            )
        text = f"Label leakage {figure}, {verdict} the budget of {self.epsilon:g}"
        if self.protocol == "labeldp":
            return f"{text}: LabelDP releases the attributes as they are."
        value = f"About the attribute's value a report says at most {_nats(self.value)}."
        return f"{text}; {self._promised()}. {value} LabelDP would leak {labeldp}."

    def _promised(self) -> str:
        """Say what is promised, and on which condition."""
        if not self.is_conditional:
            return f"promised: at most {_nats(self.promise)}, whatever the adversary believes"
        if self.confidence == 0:
            return f"nothing is promised: omega is {self.omega_source}, which may be below the truth"
        limit = f"promised: at most {_nats(self.promise)}"
        if self.confidence is None:
            return f"{limit} if omega ({self.omega_source}) is not below the truth"
        return f"{limit} with {100 * self.confidence:.3g} % confidence, omega {self.omega_source}"


@dataclass(frozen=True)
class Spending:
    """What one question, or one round of questions, asked for, of how many people, in words and figures.

    The pairs are the least and the largest nominal budget of an answer, k (0 for the basic solution, which
    may favour any number of pairs) and omega. The leakage is what the answers up to here say about the label
    at most, if no omega is below the truth.
    """

    asked: str
    people: int
    budgets: tuple[float, float]
    widths: tuple[int, int]
    omegas: tuple[float, float]
    leakage: float


def spending(asked: str, people: int, responses: Iterable[LabelResponse], leakage: float) -> Spending:
    """Return what some responses asked for; nothing where nobody was asked."""
    used = list(responses)
    if not used:
        return Spending(asked, 0, (0.0, 0.0), (0, 0), (1.0, 1.0), leakage)
    budgets = [response.budget for response in used]
    widths = [response.width for response in used]
    omegas = [response.omega for response in used]
    ends = (min(budgets), max(budgets)), (min(widths), max(widths)), (min(omegas), max(omegas))
    return Spending(asked, people, *ends, leakage)


def single_report_statement(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], responses: Sequence[LabelResponse]
) -> Statement:
    """Return the statement of a collection in which everyone sends one report."""
    if settings.secret == "label":
        selection = SubsetSelection(rows.classes, settings.epsilon)
        return label_only_statement(rows.codes, rows.labels, rows.sizes, selection)
    if settings.secret == "attributes":
        worst = max(response.value_epsilon for response in responses)
        known = ("not used", worst, "exact", math.inf, "attributes", worst, False)
        return Statement("valuedp", settings.epsilon, worst, None, *known)  # type: ignore[arg-type]
    if settings.protocol == "labeldp":
        return labeldp_statement(rows, settings.epsilon)
    worst = max(response.leakage(rows.conditionals(i)).value for i, response in enumerate(responses))
    promise = max(response.label_epsilon for response in responses)
    value = max(response.value_epsilon for response in responses)
    return private_statement(rows, settings, omegas, promise, (worst, "exact"), value)


def label_only_statement(
    codes: AnyCodes, labels: ArrayLike, sizes: Sequence[int], selection: SubsetSelection
) -> Statement:
    """Return the statement of randomised labels beside attributes that everybody knows.

    The report's own leakage is exact: given the attributes it depends on nothing but the label.
    """
    marks = np.asarray(labels).astype(np.uint16)
    epsilon = selection.epsilon
    budget = selection.nominal_budget
    both = labeldp_of(LabelledRows(codes, marks, tuple(sizes), selection.size), budget)
    return Statement(
        "labeldp", budget, epsilon, None, "not used", epsilon, "exact", both, "label", math.inf, False
    )


def labeldp_statement(rows: LabelledRows, epsilon: float) -> Statement:
    """Return the statement of a collection by LabelDP, which promises nothing about true attributes."""
    full = labeldp_of(rows, epsilon)
    return Statement("labeldp", epsilon, math.inf, None, "not used", full, "exact", full)


def private_statement(
    rows: LabelledRows,
    settings: LabelSettings,
    omegas: Sequence[Omega],
    promise: float,
    leakage: tuple[float, Claim],
    value: float,
) -> Statement:
    """Return the statement of a collection by kHR or the basic solution.

    The promise is what the reports for the model say about the label at most, if no omega is below the truth;
    the leakage what they say for the records' own distribution, and of which kind that figure is; the value
    what a report says about the attribute's value at most.
    """
    source, confidence = joint_confidence(omegas)
    # An omega of 1 is never below the truth.
    is_conditional = settings.protocol == "khr" and any(omega.curve[0] < 1 for omega in omegas)
    worst = leakage[0]
    if source.startswith("learnt"):
        # Of the reports that omega is learnt from those about the label alone say most.
        worst = max(worst, SubsetSelection(rows.classes, settings.epsilon).epsilon)
    epsilon, full = settings.epsilon, labeldp_of(rows, settings.epsilon)
    figures = (promise, confidence, source, worst, leakage[1], full)
    return Statement(settings.protocol, epsilon, *figures, "both", value, is_conditional)


def labeldp_of(rows: LabelledRows, epsilon: float) -> float:
    """Return what LabelDP leaks about the label when all attributes are released as they are."""
    conditionals = row_shares(rows.counts(*distinct_rows(rows.codes)))
    return labeldp_leakage(conditionals, SubsetSelection(rows.classes, epsilon).channel).value


def _nats(value: float) -> str:
    return decimals(value, "infinite")
