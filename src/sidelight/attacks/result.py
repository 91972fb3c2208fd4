"""AttackResult: what an attack reached, beside what it would without the release, the limit, and intervals.

Every attack is measured by a loss for each record: 0 or 1 for a wrong guess of a value, the distance to the
truth for a guess of a number. Its mean is the score; smaller is better for the attacker. Three means of the
same kind stand beside it: the *control* (the same attacker without any release), the *baseline* (the
release taken at face value) and the *limit* (no attacker can do better, where the belief is known). What
counts is the gain over the control: whatever beats the noise but not the control has learnt about the
population, not about the person.

Where the attacker says how likely each value is, more is measured than the share of wrong guesses, which says
nothing of a rare value: see `foundation.forecasts`. The verdict is by the most damning sound measure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from numpy.typing import NDArray

from sidelight.attacks.verdict import Verdict, judge, judge_distances, judge_guesses
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import unknown
from sidelight.foundation.forecasts import Measures, measure
from sidelight.foundation.html import html_table
from sidelight.foundation.intervals import Interval, mean_interval, paired_interval, student_interval

Measure = Literal["error rate", "mean distance"]


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
        probabilities: (n, values) how likely the attacker holds each value of the secret; None where he
            guesses only.
        truth: (n,) the true codes of the values, where there are probabilities.
        values: the names of the values.
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
    probabilities: Array | None = None
    truth: Positions | None = None
    values: tuple[str, ...] = ()

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

    @cached_property
    def measures(self) -> Measures | None:
        """Everything that is measured of the probabilities; None where the attacker guesses only."""
        if self.probabilities is None or self.truth is None:
            return None
        return measure(self.probabilities, self.truth, self.values, self.guesses, self.confidence)

    @cached_property
    def verdict(self) -> Verdict:
        """What the attack shows, by the most damning sound measure."""
        if self.measures is not None:
            return judge(self.measures, self.target)
        if self.measure == "error rate":
            return judge_guesses(self.gain, self.target)
        return judge_distances(self.gain, self.control, self.confidence, self.target)

    @property
    def beats_control(self) -> bool:
        """Whether a sound measure lies above its control with its whole interval."""
        return self.verdict.outcome == "tells"

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
        text = f"the attack on {self.target} does not beat its control"
        if self.measures is not None:
            return f"{text}. {self.verdict.sentence}"
        return (
            f"{text}: {self.score.value:.4g} against "
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
            "score": self.score.plain(),
            "control": self.control.plain(),
            "baseline": _plain(self.baseline),
            "limit": _plain(self.limit),
            "gain_over_control": self.gain.plain(),
            "noise_removed": self.noise_removed,
            "share_of_limit": self.share_of_limit,
            "beats_control": self.beats_control,
            "verdict": self.verdict.to_dict(),
            "measures": None if self.measures is None else self.measures.to_dict(),
            "warning": self.warning,
        }

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        verdict = "beats its control" if self.beats_control else "does not beat its control"
        auc = None if self.measures is None else self.measures.find("AUC")
        ranked = "" if auc is None else f"AUC {auc.figure.value:.3f}, "
        return (
            f"AttackResult({self.attack} on {self.target}: {self.measure} {self.score.value:.4g}, "
            f"control {self.control.value:.4g}, {ranked}{verdict})"
        )

    def _repr_html_(self) -> str:
        names = ("attack", "control", "baseline", "limit", "gain over control")
        figures = (self.score, self.control, self.baseline, self.limit, self.gain)
        named = zip(names, figures, strict=True)
        rows = [[name, *vars(item).values()] for name, item in named if item is not None]
        return html_table(repr(self), ("", self.measure, "lower", "upper"), rows) + self._findings_html()

    def _findings_html(self) -> str:
        if self.measures is None:
            return ""
        rows = [[item.name, *vars(item.figure).values(), item.control] for item in self.measures.findings]
        return html_table(self.verdict.sentence, ("", "value", "lower", "upper", "control"), rows)


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
    return None if interval is None else interval.plain()
