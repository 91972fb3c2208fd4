"""What is said about budgets that were chosen: at delta, beside one budget for all, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidelight.calibration.unequal import Certificate
from sidelight.foundation.html import listed
from sidelight.leakage.totals import DeltaLeakage
from sidelight.plan import Release

_GAIN = 1.005  # a smaller gain would be written as a factor of 1
_BALANCED = 0.02  # limits have kinks, so a little stays unbalanced at an optimum too


def delta_words(delta: float, leakages: Mapping[str, DeltaLeakage]) -> list[str]:
    """Say what a delta allows, and how sure the figures are."""
    words = [
        f"Delta averages over people: {delta:g} lets {_one_in(delta)} be exposed beyond a limit, and some "
        "are more exposed than others. Look at the figures at smaller deltas too."
    ]
    beta = max(item.beta for item in leakages.values())
    if any(item.upper.kind != "exact" and item.draws for item in leakages.values()):
        words.append(
            f"The figures at delta were certified with fresh draws; one is too low with a probability of "
            f"{beta:.1g} at most, over the draws' own coin flips."
        )
    return words


def _one_in(delta: float) -> str:
    """Write a small probability as people say it.

    >>> _one_in(0.01), _one_in(0.003)
    ('1 person in 100', '1 person in 333')
    """
    return f"1 person in {1 / delta:.0f}"


def gain_words(known: Certificate, *, is_drawn: bool) -> str:
    """Say what unequal budgets at delta gain; where releases are drawn, one budget for all is estimated."""
    gain = f"The weighted error is smaller by a factor of {known.gain:.3g} than with one budget for all"
    if known.gain <= _GAIN:
        gain = "The weighted error is that of one budget for all"
    estimated = ", which is estimated and not certified here" if is_drawn else ""
    return f"{gain}{estimated}; better budgets may exist, since the search ends near a local optimum."


def kept_words(release: Release) -> str:
    """Say how an attribute is released whose budget was not to be chosen."""
    if release.epsilon is None:
        return f"{release.name} (no noise)"
    return f"{release.name} ({release.mechanism}, budget {release.epsilon:g})"


def close_words(count: int) -> str:
    """Say that little was gained, and what could help; with one attribute there is nothing to split."""
    if count == 1:
        return "With one budget to choose there is nothing to split: it is close to what the limit leaves."
    return (
        "The largest budget for all that can be certified is close to the even split of the limit. What "
        "helps: release fewer attributes, coarser bins, limits for the secrets that matter alone, or an "
        "explicit model of the adversary (the constraint 'tree')."
    )


def certificate_words(known: Certificate, raisable: Sequence[str], *, is_any_capped: bool) -> str:
    """Say what is known about unequal budgets, and no more."""
    subject = "Of the other budgets none" if is_any_capped else "No single budget"
    if raisable:
        subject = f"No single budget but those of {listed(raisable, 8)}"
    gain = "that of one budget for all"
    end = "the search ended short of a local optimum, so better budgets may exist"
    if known.gain > _GAIN:
        gain = f"smaller by a factor of {known.gain:.3g} than with one budget for all"
    if known.stationarity < _BALANCED:
        end = "a local optimum to first order, not proven to be the best of all"
    return (
        f"{subject} can be raised by 1 % without breaking a limit, and the weighted error is {gain}; {end}."
    )
