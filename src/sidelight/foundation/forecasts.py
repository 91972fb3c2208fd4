"""What probabilities of each value are worth, held against the values that people have.

A `Finding` is a share between 0 and 1 beside its control, what would be reached without knowing anything
about the person: accuracy, AUC, average precision, the share of hits among the most suspected. Their
intervals hold jointly (Bonferroni 1936): each has the confidence 1 - (1 - confidence) / looks. Log loss and
calibration say whether the probabilities are what they claim to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.intervals import (
    Interval,
    check_confidence,
    normal_quantile,
    paired_interval,
    student_interval,
)
from sidelight.foundation.ranking import FEW, Ranking, share_interval, widened
from sidelight.foundation.reliability import BINS, Calibration, calibration_of

FindingKind = Literal["accuracy", "balanced accuracy", "AUC", "average precision", "share of hits"]
_SHARES = (0.01, 0.1)
_COUNT = 500
_FEWEST_SUSPECTED = 10


@dataclass(frozen=True)
class Finding:
    """A figure beside its control, both between 0 and 1.

    Attributes:
        value: whose: the value that people are suspected of; None for all of them together.
        figure: with the interval that holds jointly with all others'.
        control: what it is without knowing anything about the person.
        suspected: how many people are suspected, for a share of hits; else None.
    """

    kind: FindingKind
    value: str | None
    figure: Interval
    control: float
    suspected: int | None = None

    @property
    def is_above(self) -> bool:
        """Whether the whole interval lies above the control."""
        return self.figure.lower > self.control

    @property
    def lift(self) -> Interval:
        """The figure over its control."""
        figure, control = self.figure, self.control
        return Interval(figure.value / control, figure.lower / control, figure.upper / control)

    def odds_factor(self, figure: float) -> float:
        """Return the odds of a figure, the value or an end of its interval, over those of the control."""
        own = math.inf if figure >= 1 else figure / (1 - figure)
        return own * (1 - self.control) / self.control

    @property
    def name(self) -> str:
        """Say what it is in a few words."""
        about = "" if self.value is None else f" for {self.value!r}"
        if self.suspected is None:
            return f"{self.kind}{about}"
        return f"share of hits among the {self.suspected} most suspected{about}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain data."""
        plain = {"measure": self.kind, "value_of_secret": self.value, "suspected": self.suspected}
        lift = self.lift.plain() if self.kind == "share of hits" else None
        ends = {**self.figure.plain(), "control": self.control, "is_above": self.is_above}
        return plain | ends | ({"lift": lift} if lift else {})


@dataclass(frozen=True, eq=False)
class Measures:
    """Everything that is measured of probabilities.

    Attributes:
        findings: the figures beside their controls.
        log_loss: the mean of -ln of the probability that the true value had, infinite where one was 0.
        entropy: the log loss of the best prediction that is the same for everyone: the control.
        confidence: of all figures together; `looks` is how many were looked at.
        impossible: how many people have a value that was given the probability 0.
    """

    findings: tuple[Finding, ...]
    log_loss: Interval
    entropy: float
    calibration: Calibration
    confidence: float
    looks: int
    impossible: int

    def find(self, kind: FindingKind, value: str | None = None) -> Finding | None:
        """Return the first figure of a kind; None where there is none."""
        return next((each for each in self.findings if (each.kind, each.value) == (kind, value)), None)

    @property
    def information(self) -> Interval:
        """By how much the log loss is below its control, in nats: what was learnt about a person on average.

        The mutual information of the predictions and the truth is no smaller on average.
        """
        loss = self.log_loss
        return Interval(self.entropy - loss.value, self.entropy - loss.upper, self.entropy - loss.lower)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        calibration = self.calibration
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "log_loss": self.log_loss.plain() | {"control": self.entropy},
            "impossible": self.impossible,
            "information": self.information.plain(),
            "calibration": {
                "expected_error": calibration.error.plain(), "by_chance": calibration.chance, "bins": BINS,
            },
            "confidence": self.confidence,
            "looks": self.looks,
        }  # fmt: skip


def measure(
    scores: Array, truth: Positions, values: Sequence[str], guesses: Positions, confidence: float = 0.95
) -> Measures:
    """Hold probabilities, (people, values), and guesses, (people,), against the true codes of the values."""
    check_confidence(confidence)
    rankings, sizes = _rankings(scores, truth), suspected(len(truth))
    common = {code: ranking for code, ranking in rankings.items() if ranking.fewest >= FEW}
    named = {values[code]: ranking for code, ranking in rankings.items()}
    # Accuracy, balanced accuracy, log loss and calibration, then the ranking of each value.
    looks = 4 + bool(common) + len(rankings) * (2 + len(sizes))
    each = 1 - (1 - confidence) / looks
    counts = np.bincount(truth, minlength=len(values))
    findings = [
        _accuracy(guesses, truth, int(counts.argmax()), each),
        _balanced(guesses, truth, counts, each),
    ]
    findings += [_macro(common, truth, each)] if common else []
    for value, ranking in named.items():
        findings += _ranked(value, ranking, sizes, each)
    own = np.take_along_axis(scores, truth[:, None], axis=1)[:, 0]
    shares = counts[counts > 0] / len(truth)
    entropy, unseen = float(-(shares * np.log(shares)).sum()), int((own <= 0).sum())
    calibration = calibration_of(named, each)
    return Measures(tuple(findings), _log_loss(own, each), entropy, calibration, confidence, looks, unseen)


def suspected(people: int) -> list[int]:
    """Return how many of the most suspected are looked at: 1 %, 500 and 10 % where that is sensible.

    >>> suspected(20_000), suspected(2201), suspected(300), suspected(30)
    ([200, 500, 2000], [23, 221, 500], [30], [])
    """
    sizes = {math.ceil(share * people) for share in _SHARES} | {_COUNT}
    return sorted(size for size in sizes if _FEWEST_SUSPECTED <= size <= people / 4)


def _rankings(scores: Array, truth: Positions) -> dict[int, Ranking]:
    """Return the order of suspicion for each value that some people have and others do not."""
    held = np.bincount(truth, minlength=scores.shape[1])
    codes = np.flatnonzero((held > 0) & (held < len(truth))).tolist()
    return {code: Ranking.of(scores[:, code], truth == code) for code in codes}


def _accuracy(guesses: Positions, truth: Positions, commonest: int, confidence: float) -> Finding:
    """Return the share of right guesses beside that of the value that most of these people have.

    That is the best guess that is the same for everyone: guesses that have nothing to do with the truth are
    right no more often, however they are spread.
    """
    control = (truth == commonest).astype(np.float64)
    gain = paired_interval((guesses == truth) - control, confidence)
    base = float(control.mean())
    ends = max(base + gain.lower, 0.0), min(base + gain.upper, 1.0)
    return Finding("accuracy", None, Interval(base + gain.value, *ends), base)


def _balanced(guesses: Positions, truth: Positions, counts: Whole, confidence: float) -> Finding:
    """Return the mean over the values of the share of right guesses among people who have the value."""
    right = np.bincount(truth[guesses == truth], minlength=len(counts))[counts > 0]
    people = counts[counts > 0]
    value = float((right / people).mean())
    smooth = (right + 1) / (people + 2)  # as if one more were right and one wrong: no share is certain
    spread = math.sqrt(float((smooth * (1 - smooth) / people).sum())) / len(people)
    half = normal_quantile(confidence) * spread
    interval = Interval(value, max(value - half, 0.0), min(value + half, 1.0))
    return Finding("balanced accuracy", None, interval, 1 / len(people))


def _macro(kept: Mapping[int, Ranking], truth: Positions, confidence: float) -> Finding:
    """Return the mean AUC of the values that enough people have and do not have."""
    influence = np.zeros(len(truth))
    for code, ranking in kept.items():
        # Each person's part in every AUC is added up, since the AUCs depend on each other.
        with_value, without = ranking.auc_influence()
        influence += np.where(truth == code, with_value[ranking.group], without[ranking.group])
    aucs = [ranking.auc for ranking in kept.values()]
    value = sum(aucs) / len(aucs)
    spread = float((influence / len(kept)) @ (influence / len(kept))) / len(truth) ** 2
    if all(ranking.is_constant for ranking in kept.values()):
        return Finding("AUC", None, Interval.exactly(0.5), 0.5)
    figure = share_interval(value, spread, FEW, confidence)
    # The deviation of a mean is at most the mean of the deviations, however the AUCs depend on each other.
    chance = sum(math.sqrt(ranking.chance_variance) for ranking in kept.values()) / len(kept)
    is_chance = abs(value - 0.5) <= normal_quantile(confidence) * chance
    return Finding("AUC", None, widened(figure, 0.5) if is_chance else figure, 0.5)


def _ranked(value: str, ranking: Ranking, sizes: Sequence[int], confidence: float) -> list[Finding]:
    """Return what the order of suspicion of one value is worth."""
    shares = [
        Finding("share of hits", value, ranking.share_among(size, confidence), ranking.base_rate, size)
        for size in sizes
    ]
    precision = ranking.precision_interval(confidence)
    return [
        Finding("AUC", value, ranking.auc_interval(confidence), 0.5),
        Finding("average precision", value, precision, ranking.chance_precision),
        *shares,
    ]


def _log_loss(own: Array, confidence: float) -> Interval:
    """Return the mean of -ln of the probabilities that the true values had."""
    if (own <= 0).any():
        return Interval(math.inf, math.inf, math.inf)
    found = student_interval(0.0 - np.log(np.minimum(own, 1.0)), confidence)
    return replace(found, lower=max(found.lower, 0.0))  # no loss is below 0
