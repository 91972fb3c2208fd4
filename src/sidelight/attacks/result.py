"""AttackResult: what an attack reached, beside what it would without the release, the limit, and intervals.

Every attack is measured by a loss for each record: 0 or 1 for a wrong guess of a value, the distance to the
truth for a guess of a number. Its mean is the score; smaller is better for the attacker. Three means of the
same kind stand beside it: the *control* (the same attacker without any release), the *baseline* (the
release taken at face value) and the *limit* (no attacker can do better, where the belief is known). What
counts is the gain over the control: whatever beats the noise but not the control has learnt about the
population, not about the person.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError, check_number, unknown
from sidelight.foundation.html import html_table

Measure = Literal["error rate", "mean distance"]


@dataclass(frozen=True)
class Interval:
    """A figure and the ends of its confidence interval; all three are equal where it is known exactly."""

    value: float
    lower: float
    upper: float

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """Return a figure that has no error."""
        return cls(value, value, value)


def check_confidence(confidence: float) -> float:
    """Return the confidence after checking that it lies strictly between 0 and 1."""
    return check_number("confidence", confidence, above=0, below=1)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent values with its interval.

    Zeros and ones get Wilson's interval (1927), which stays within 0 and 1 and has a width where all are
    alike; other numbers Student's (1908).

    >>> mean_interval([0, 1, 1, 1])
    Interval(value=0.75, lower=0.300641842582402, upper=0.9544127391902995)
    """
    array = _checked(values)
    if not ((array == 0) | (array == 1)).all():
        return student_interval(array, confidence)
    share, count, z = float(array.mean()), len(array), _normal_quantile(confidence)
    weight = z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return Interval(share, max(centre - half, 0.0), min(centre + half, 1.0))


def student_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent numbers with Student's interval; of one alone nothing is known."""
    from scipy.special import stdtrit

    array = _checked(values)
    check_confidence(confidence)
    mean, count = float(array.mean()), len(array)
    if count == 1:
        return Interval(mean, -math.inf, math.inf)
    quantile = float(stdtrit(count - 1, (1 + confidence) / 2))
    error = quantile * float(array.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - error, mean + error)


def paired_interval(differences: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of differences between paired zeros and ones, each -1, 0 or 1, with its interval.

    Agresti and Min (2005): half a pair is added to each of the four cells, so that a few pairs that all
    agree prove little.

    >>> paired_interval([1, 1])
    Interval(value=1.0, lower=-0.19295191217483876, upper=1.0)
    """
    array = _checked(differences)
    count = len(array) + 2
    centre = float(array.sum()) / count
    spread = float(np.abs(array).sum()) + 1 - count * centre**2
    half = _normal_quantile(confidence) * math.sqrt(spread) / count
    return Interval(float(array.mean()), max(centre - half, -1.0), min(centre + half, 1.0))


def _checked(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError("a mean needs at least one value in one dimension.")
    return array


def _normal_quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One attack on one target, which may be several attributes.

    Attributes:
        measure: "error rate" (share of wrong guesses) or "mean distance".
        guesses: (n,) or (n, targets) what the attacker says about each record.
        losses: (n,) how far each guess is from the truth; `control_losses` without a release.
        baseline_losses: (n,) the same for the release itself; None where it does not show the target.
        limit: the least mean loss that any attacker can have; None where it is not known.
        confidence: of all intervals; they take the records as independent of each other.
    """

    target: str
    attack: str
    release: str
    measure: Measure
    guesses: NDArray[Any]
    losses: Array
    control_losses: Array
    baseline_losses: Array | None = None
    limit: Interval | None = None
    confidence: float = 0.95

    @cached_property
    def score(self) -> Interval:
        """The attack's mean loss."""
        return mean_interval(self.losses, self.confidence)

    @cached_property
    def control(self) -> Interval:
        """The mean loss of the same attacker without the release."""
        return mean_interval(self.control_losses, self.confidence)

    @cached_property
    def baseline(self) -> Interval | None:
        """The mean loss of taking the release at face value."""
        return None if (losses := self.baseline_losses) is None else mean_interval(losses, self.confidence)

    @cached_property
    def gain(self) -> Interval:
        """How much smaller the loss is than the control's, record by record."""
        difference = self.control_losses - self.losses
        if self.measure == "error rate":
            return paired_interval(difference, self.confidence)
        return student_interval(difference, self.confidence) if difference.any() else Interval.exactly(0.0)

    @property
    def beats_control(self) -> bool:
        """Whether the whole interval of the gain is above 0."""
        return self.gain.lower > 0

    @property
    def noise_removed(self) -> float | None:
        """The share of the release's own loss that the attack removes; negative if it adds to it."""
        if self.baseline is None or self.baseline.value == 0:
            return None
        return 1 - self.score.value / self.baseline.value

    @property
    def share_of_limit(self) -> float | None:
        """The share of the way from the control to the limit that the attack covers; 1 at the limit.

        None where no limit is known, or where it is not below the control's interval: a share of almost no
        distance says nothing.
        """
        if self.limit is None or self.control.lower <= self.limit.value:
            return None
        return (self.control.value - self.score.value) / (self.control.value - self.limit.value)

    @property
    def warning(self) -> str | None:
        """What to keep in mind where the attack does not beat its control; None where it does."""
        if self.beats_control:
            return None
        return (
            f"the attack on {self.target} does not beat its control: {self.score.value:.4g} against "
            f"{self.control.value:.4g} without any release ({self.measure}), a gain of {self.gain.value:.4g} "
            f"in [{self.gain.lower:.4g}, {self.gain.upper:.4g}]. What it removes is noise, not privacy."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, without the records."""
        return {
            "target": self.target,
            "attack": self.attack,
            "release": self.release,
            "measure": self.measure,
            "records": len(self.losses),
            "confidence": self.confidence,
            "score": _plain(self.score),
            "control": _plain(self.control),
            "baseline": _plain(self.baseline),
            "limit": _plain(self.limit),
            "gain_over_control": _plain(self.gain),
            "noise_removed": self.noise_removed,
            "share_of_limit": self.share_of_limit,
            "beats_control": self.beats_control,
            "warning": self.warning,
        }

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        verdict = "beats its control" if self.beats_control else "does not beat its control"
        return (
            f"AttackResult({self.attack} on {self.target}: {self.measure} {self.score.value:.4g}, "
            f"control {self.control.value:.4g}, {verdict})"
        )

    def _repr_html_(self) -> str:
        names = ("attack", "control", "baseline", "limit", "gain over control")
        figures = (self.score, self.control, self.baseline, self.limit, self.gain)
        named = zip(names, figures, strict=True)
        rows = [[name, *vars(item).values()] for name, item in named if item is not None]
        return html_table(repr(self), ("", self.measure, "lower", "upper"), rows)


@dataclass(frozen=True, eq=False)
class AttackComparison:
    """Several attacks, or one attack on several releases, side by side: results by name, in order."""

    title: str
    results: dict[str, AttackResult]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> AttackResult:
        if name not in self.results:
            raise unknown("result", name, self.results)
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def to_json(self) -> str:
        """Return all figures of all results as JSON."""
        shown = {name: result.to_dict() for name, result in self.results.items()}
        content = {"title": self.title, "results": shown, "notes": list(self.notes)}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _plain(interval: Interval | None) -> dict[str, float | None] | None:
    """Return an interval as JSON can hold it: an end that is not known is null."""
    if interval is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in vars(interval).items()}
