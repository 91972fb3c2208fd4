"""Audit a randomiser that is only a callable: a lower confidence bound on its true budget.

Reports of two values are drawn; simple events are tried on one half of them and the one that tells the values
apart best is tested on the other half, which it has not seen. If the event has probability p under the first
value and q under the second, the true budget is at least ln(p/q); Clopper-Pearson limits of both
probabilities make that a bound that holds with the stated confidence, for any randomiser whose reports are
independent: one that remembers its noise must be made anew for every report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.foundation.errors import InputError, check_number, check_whole
from sidelight.foundation.progress import track
from sidelight.mechanisms import Reports

_CAUTION = 0.1
_CUTS = 16
_MOST_WHOLE = 1 << 12
_PLAIN = (int, float, str, np.generic)


@dataclass(frozen=True)
class RandomiserAudit:
    """What the reports of a randomiser show about its budget.

    Attributes:
        epsilon: the budget it claims.
        lower: with the stated confidence its true budget is at least this.
        confidence: of the bound.
        event: the event that shows it, in words.
        likelier: the value under which the event is likelier.
        unlikelier: the value it was compared with.
        frequencies: how often the event happened under either, on the half that tests it.
        reports: how many reports each value gave in all.
    """

    epsilon: float
    lower: float
    confidence: float
    event: str
    likelier: Any
    unlikelier: Any
    frequencies: tuple[float, float]
    reports: int

    @property
    def verdict(self) -> Literal["violated", "not refuted"]:
        """Return "violated" if the claim is refuted; a randomiser can never be proved safe from outside."""
        return "violated" if self.lower > self.epsilon else "not refuted"


def audit_randomiser(
    randomiser: Callable[[Any], Any],
    domain: Sequence[Any],
    epsilon: float,
    *,
    reports: int = 20_000,
    confidence: float = 0.99,
    batch: bool = False,
) -> RandomiserAudit:
    """Try to refute that a randomiser spends at most `epsilon`.

    Args:
        randomiser: takes one value and returns its report (a number, a string, a sequence, an array); with
            `batch` it takes an array of values and returns one report for each.
        domain: the values to try; of a long one the first and the last few are tried.
        epsilon: the budget it claims.
        reports: how many reports to draw for each value.
        confidence: of the lower bound.
        batch: whether the randomiser is vectorised.
    """
    claim = check_number("epsilon", epsilon, at_least=0)
    count = check_whole("reports", reports, at_least=100)
    check_number("confidence", confidence, above=0, below=1)
    values = list(domain)
    if len(values) < 2:
        raise InputError(f"`domain` must have at least two values, got {len(values)}.")
    tried = values if len(values) <= 4 else [*values[:2], *values[-2:]]
    raw = [_draw(randomiser, value, count, batch) for value in track(tried, "drawing reports")]
    half = count // 2
    event, happened, i, j = _best_event(_rows(raw), half)
    hits = [int(happened[value][half:].sum()) for value in (i, j)]
    lower = float(lower_epsilon(hits[0], hits[1], count - half, 1 - confidence))
    shares = (hits[0] / (count - half), hits[1] / (count - half))
    return RandomiserAudit(claim, lower, confidence, event, tried[i], tried[j], shares, count)


@dataclass(frozen=True)
class _Feature:
    """One component of the reports, or the whole of each: its levels, and which of them each report has."""

    words: str
    levels: NDArray[Any]
    codes: Sequence[Positions]

    def best_event(self, likelier: int, unlikelier: int, half: int) -> tuple[float, str, list[Mask]]:
        """Choose on the first half of the reports the event that tells two values apart best.

        The score is a cautious log-ratio, so that an event is not chosen for its luck. Also return the event
        in words, and for each value tried which of its reports it happens to.
        """
        first, second = (self.codes[value][:half] for value in (likelier, unlikelier))
        counts = [np.bincount(codes, minlength=len(self.levels)) for codes in (first, second)]
        scores = lower_epsilon(counts[0], counts[1], half, _CAUTION)
        level = int(np.argmax(scores))
        choices = [(float(scores[level]), f"is {self.levels[level]}", np.arange(len(self.levels)) == level)]
        for cut_words, chosen in self._sets(*counts):
            hits = [int(count[chosen].sum()) for count in counts]
            choices.append((float(lower_epsilon(hits[0], hits[1], half, _CAUTION)), cut_words, chosen))
        score, words, chosen = max(choices, key=lambda choice: choice[0])
        return score, f"{self.words} {words}", [chosen[codes] for codes in self.codes]

    def _sets(self, first: Positions, second: Positions) -> Iterator[tuple[str, Mask]]:
        """Offer sets of levels: those likelier under the first value, and both sides of some cuts."""
        likelier = first > second
        if 20 * np.count_nonzero(first + second) <= first.sum():  # with fewer a level it would be luck
            yield f"is one of {int(likelier.sum())} levels", likelier
        if self.levels.dtype.kind not in "fiu" or len(self.levels) <= 2:
            return
        reached = np.cumsum(first + second)
        places = np.searchsorted(reached, np.linspace(0.02, 0.98, _CUTS) * reached[-1])
        for place in np.unique(places):
            below = np.arange(len(self.levels)) <= place
            yield f"is at most {self.levels[place]:.6g}", below
            yield f"is above {self.levels[place]:.6g}", ~below


def _best_event(drawn: Sequence[NDArray[Any]], half: int) -> tuple[str, list[Mask], int, int]:
    """Choose an event and the two values that it tells apart best, on the first half of the reports."""
    scored = (
        (*feature.best_event(i, j, half), i, j)
        for feature in _features(drawn)
        for i, j in permutations(range(len(drawn)), 2)
    )
    best = max(scored, key=lambda choice: choice[0], default=None)
    if best is None:
        raise InputError("the randomiser's reports have no component to look at.")
    return best[1:]


def _features(drawn: Sequence[NDArray[Any]]) -> Iterator[_Feature]:
    """Offer every component of the reports, and the whole reports if few different ones occur."""
    stacked = np.concatenate(drawn)
    ends = np.cumsum([len(part) for part in drawn])[:-1]
    whole = np.zeros(len(stacked), dtype=np.intp)
    for column in range(stacked.shape[1]):
        levels, codes = np.unique(stacked[:, column], return_inverse=True)
        yield _Feature(f"component {column}", levels, np.split(codes, ends))
        _, whole = np.unique(whole * len(levels) + codes, return_inverse=True)
    if stacked.shape[1] > 1 and whole.max(initial=0) < _MOST_WHOLE:
        yield _Feature("the whole report", np.arange(whole.max() + 1).astype(str), np.split(whole, ends))


def _draw(randomiser: Callable[[Any], Any], value: Any, count: int, batch: bool) -> list[list[Any]]:
    """Return the components of each report of a value."""
    raw = randomiser(np.array([value] * count)) if batch else [randomiser(value) for _ in range(count)]
    reports = raw.values if isinstance(raw, Reports) else raw
    if len(reports) != count:
        raise InputError(
            f"the randomiser gave {len(reports)} reports for {count} values; one for each is needed."
        )
    return [_flat(report) for report in reports]


def _rows(drawn: Sequence[list[list[Any]]]) -> list[NDArray[Any]]:
    """Return the reports of each value as a two-dimensional array; as text where their forms differ."""
    reports = [report for part in drawn for report in part]
    kinds = {type(component) for report in reports for component in report}
    if len({len(report) for report in reports}) == 1 and all(issubclass(kind, _PLAIN) for kind in kinds):
        return [np.array(part) for part in drawn]
    return [np.array([[repr(report)] for report in part]) for part in drawn]


def _flat(report: Any) -> list[Any]:
    """Return a report's components in the order in which it states them."""
    if isinstance(report, np.void):
        return [part for item in report.item() for part in _flat(item)]
    if isinstance(report, np.ndarray):
        return list(report.ravel().tolist())
    if isinstance(report, (list, tuple)):
        return [part for item in report for part in _flat(item)]
    if isinstance(report, (set, frozenset)):
        return sorted(report)
    return [report]


def lower_epsilon(hits: ArrayLike, others: ArrayLike, trials: int, alpha: float) -> Array:
    """Return ln of one probability's lower limit over the other's upper limit, each at alpha / 2, at least 0.

    Clopper and Pearson (1934); `hits` and `others` are how often the event happened in `trials` reports each.
    """
    from scipy.stats import beta

    p, q = np.asarray(hits), np.asarray(others)
    low = np.where(p > 0, beta.ppf(alpha / 2, np.maximum(p, 1), trials - p + 1), 0.0)
    high = np.where(q < trials, beta.ppf(1 - alpha / 2, q + 1, np.maximum(trials - q, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(0.0, np.log(low) - np.log(high)))
