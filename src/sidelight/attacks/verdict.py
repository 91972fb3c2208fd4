"""What an attack shows: that the release tells something, that it tells next to nothing, or neither.

An attack *tells* if one sound measure lies above its control with its whole interval (or an AUC below it: an
order of suspicion that is upside down tells as much, for whoever turns it round). The intervals hold
jointly, so that looking at many measures and values raises no false alarm: where the release has nothing to
do with the secret, an attack tells with a probability of at most 1 - confidence. Accuracy, AUC and the hits
among the most suspected decide. Log loss does not: where a value is rare, a sample without the few people who
would cost most looks better than it is. Nor does average precision, whose interval is too short where only a
handful of people have the value.

"All clear" is said of upper limits alone: all of them must lie within the tolerance, in odds. Among the most
suspected that is twice the odds of everyone; for accuracy and AUC it is 1.25 times: an AUC of 0.556, what one
answer to a yes-or-no question with a budget of 0.22 gives. What is neither is not shown either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sidelight.foundation.forecasts import Finding, FindingKind, Measures
from sidelight.foundation.intervals import Interval

Outcome = Literal["tells", "clear", "open"]

TOLERANCES: dict[FindingKind, float] = {
    "accuracy": 1.25, "AUC": 1.25, "average precision": 2.0, "share of hits": 2.0,
}  # fmt: skip
"""The largest odds, over those of the control, that an upper limit may have where all is clear."""
NUMBER_TOLERANCE = 0.05
"""The same for numbers: the largest share of the control's distance that may be gained."""
_DECIDE: tuple[FindingKind, ...] = ("accuracy", "AUC", "share of hits")


@dataclass(frozen=True)
class Verdict:
    """What an attack shows, in a word and a sentence.

    Attributes:
        outcome: "tells", "clear" or "open".
        worst: the measure that decides: of those above their control the one whose lower limit has the
            largest odds over the control's, else the one whose upper limit is furthest from its tolerance.
    """

    outcome: Outcome
    sentence: str
    worst: Finding | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        worst = None if self.worst is None else self.worst.to_dict()
        return {"outcome": self.outcome, "sentence": self.sentence, "worst": worst}


def judge(measures: Measures, target: str) -> Verdict:
    """Return the verdict by the most damning measure."""
    findings = measures.findings
    above = [item for item in findings if item.kind in _DECIDE and _at_least(item) > 1]
    bounded = [item for item in findings if item.kind in TOLERANCES]
    if not any(item.kind == "AUC" for item in bounded):
        return Verdict("open", f"Not shown either way: all people attacked have the same {target}.")
    loosest = max(bounded, key=_beyond)
    is_clear = _beyond(loosest) <= 1
    if above:
        worst = max(above, key=_at_least)
        return Verdict("tells", _telling(worst, measures, target, is_clear=is_clear), worst)
    if is_clear:
        return Verdict("clear", _clearing(bounded, measures, target), loosest)
    return Verdict("open", _undecided(loosest, measures, target), loosest)


def judge_guesses(gain: Interval, target: str) -> Verdict:
    """Return the verdict on guesses without probabilities, by how many more are right than without."""
    told = f"{gain.value:.4f} more of the guesses are right than without the release"
    ends = f"from {gain.lower:.4f} to {gain.upper:.4f}"
    if gain.lower > 0:
        return Verdict("tells", f"The release tells something about {target}: {told} ({ends}).")
    said = "the attack guesses without saying how sure it is, so nobody can be ranked"
    return Verdict("open", f"Not shown either way: {told} ({ends}), and {said}.")


def judge_distances(gain: Interval, control: Interval, confidence: float, target: str) -> Verdict:
    """Return the verdict on guesses of a number, by how much nearer they are than without the release."""
    told = f"guesses are nearer by {gain.value:.4g}, from {gain.lower:.4g} to {gain.upper:.4g}"
    of = f"where the distance without the release is {control.value:.4g}"
    if gain.lower > 0:
        return Verdict("tells", f"The release tells something about {target}: {told}, {of}.")
    if gain.upper <= NUMBER_TOLERANCE * control.value:
        return Verdict(
            "clear",
            f"All clear for this attack: no more than {max(gain.upper, 0):.4g} of the distance can be gained "
            f"with {100 * confidence:.3g} % confidence, {of}.",
        )
    return Verdict("open", f"Not shown either way: {told}, {of}.")


def describe(finding: Finding) -> str:
    """Say a figure beside its control in words.

    >>> hits = Finding("share of hits", "yes", Interval(0.388, 0.312, 0.468), 0.11, 500)
    >>> describe(hits)
    "38.8 % of the 500 people most suspected of 'yes' have it, against 11.0 % of all (3.5 times as many)"
    """
    value, control = finding.figure.value, finding.control
    about = "" if finding.value is None else f" for {finding.value!r}"
    if finding.kind == "share of hits":
        who = f"the {finding.suspected} people most suspected of {finding.value!r}"
        times = f"{finding.lift.value:.1f} times as many"
        return f"{_percent(value)} of {who} have it, against {_percent(control)} of all ({times})"
    if finding.kind == "accuracy":
        return (
            f"{_percent(value)} of the guesses are right, against {_percent(control)} of the best one for all"
        )
    return f"the {finding.kind}{about} is {value:.3f}, against {control:.3f} without the release"


def _telling(worst: Finding, measures: Measures, target: str, *, is_clear: bool) -> str:
    """Say what the release tells, by the most damning figure; and that accuracy hides it where it does."""
    figure = worst.figure
    is_reversed = figure.upper < worst.control
    side, end = ("most", figure.upper) if is_reversed else ("least", figure.lower)
    text = (
        f"The release tells something about {target}: {describe(worst)}, at {side} {_figure(worst, end)} "
        f"{_confidence(measures)}."
    )
    if is_reversed:
        text += " The order of suspicion is upside down: the belief is wrong, not the release safe."
    accuracy = measures.find("accuracy")
    if accuracy is not None and not accuracy.is_above:
        gain = accuracy.figure.value - accuracy.control
        text += f" Accuracy alone does not show it (a gain of {gain:.4f})."
    return text + (" It is little: every upper limit is within the tolerance." if is_clear else "")


def _clearing(bounded: Sequence[Finding], measures: Measures, target: str) -> str:
    """Say the largest upper limit of each kind."""
    limits = []
    for kind in TOLERANCES:
        of_kind = [item for item in bounded if item.kind == kind]
        if of_kind:
            worst = max(of_kind, key=_at_most)
            figure = _figure(worst, worst.figure.upper)
            limits.append(f"{worst.name} at most {figure} against {_figure(worst, worst.control)}")
    return (
        f"All clear for this attack on {target}: no more can be gained than {'; '.join(limits)}, "
        f"{_confidence(measures)}."
    )


def _undecided(loosest: Finding, measures: Measures, target: str) -> str:
    """Say which upper limit is too high for an all-clear."""
    upper, control = _figure(loosest, loosest.figure.upper), _figure(loosest, loosest.control)
    return (
        f"Not shown either way for {target}: nothing lies above its control beyond chance, but the "
        f"{loosest.name} may be as high as {upper} against {control}, {_confidence(measures)}."
    )


def _at_least(finding: Finding) -> float:
    """Return the least odds over those of the control; of an AUC in the order that is right more often."""
    least = finding.odds_factor(finding.figure.lower)
    return max(least, 1 / finding.odds_factor(finding.figure.upper)) if finding.kind == "AUC" else least


def _at_most(finding: Finding) -> float:
    """Return the largest odds over those of the control; of an AUC in either order."""
    most, least = finding.odds_factor(finding.figure.upper), finding.odds_factor(finding.figure.lower)
    if finding.kind != "AUC":
        return most
    return max(most, 1 / least if least > 0 else math.inf)


def _beyond(finding: Finding) -> float:
    """Return the largest odds over those that are tolerated."""
    return _at_most(finding) / TOLERANCES[finding.kind]


def _figure(finding: Finding, figure: float) -> str:
    return f"{figure:.3f}" if finding.kind in ("AUC", "average precision") else _percent(figure)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _confidence(measures: Measures) -> str:
    return f"with {100 * measures.confidence:.3g} % confidence over all {measures.looks} figures"
