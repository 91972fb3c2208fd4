"""Whether estimates that were made beat guessing, as far as their own noise lets that be told.

The truth is not known then. With an unbiased estimate f of variance v, (f - g)^2 - v is unbiased for the
squared error of a guess g. For normal noise the variance of its sum over k values is at most
(2 sum v^2 + 4 sum v (f-g)^2) k/(k-1); the factor is for estimates that add up to 1, whose errors correlate.
Much noise leaves that error open. So it is weighed, by precision, with its mean over all frequencies there
are, each equally likely (a flat Dirichlet distribution), which is not held for sure: with many values nearly
all frequencies there are lie close together, and those of real tables do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sidelight.estimation.simulated import draws_for
from sidelight.estimation.usefulness import EXACT
from sidelight.foundation.arrays import Array
from sidelight.foundation.numbers import at_least, hundredths, of_people, points, whole

Verdict = Literal["better than guessing", "worse than guessing", "not told from guessing"]
OPEN = (
    "How far a guess is off is estimated too; where noise leaves it open, all frequencies are equally likely."
)
_SEED = 20_250_104
_TINY = 1e-300  # keeps divisors above 0
_DEVIATIONS = 1.645
"""A verdict on either side is wrong with a probability of 5 % where the guess is as good as the estimates."""


@dataclass(frozen=True)
class Guessed:
    """The error of estimates and of a guess, root-mean-square over the values of one attribute or of all.

    The error of the estimates is the one to expect; that of the guess is estimated, and lies between the two
    ends with a probability of 90 %.
    """

    error: float
    guess_error: float
    guess_lowest: float
    guess_highest: float

    @property
    def verdict(self) -> Verdict:
        """Whether the estimates beat the guess, beyond what noise explains; exact ones always do."""
        if self.error < max(self.guess_lowest, EXACT):
            return "better than guessing"
        return "worse than guessing" if self.error >= self.guess_highest else "not told from guessing"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**vars(self), "verdict": self.verdict}


@dataclass(frozen=True)
class Guessing:
    """Estimates beside the closer of two guesses: that all values are equally common, or a public prior.

    Attributes:
        guess: what is guessed, in words.
        attributes: by name.
        people: how many reported.
        within: a precision, and `people_within` how many people every attribute needs for it.
    """

    guess: str
    attributes: Mapping[str, Guessed]
    together: Guessed
    people: int
    within: float
    people_within: int

    @property
    def verdict(self) -> Verdict:
        """Whether the estimates as a whole beat the guess."""
        return self.together.verdict

    def summary(self) -> str:
        """Say in few words whether the estimates are worse than guessing, else how right they are."""
        words: dict[Verdict, str] = {
            "worse than guessing": "These estimates are worse than guessing",
            "not told from guessing": "These estimates cannot be told from guessing",
        }
        return words.get(self.verdict, f"Frequencies right to about {points(self.together.error)}")

    def headline(self) -> str:
        """Say the same in a sentence, with the figures."""
        low, high = hundredths(self.together.guess_lowest), points(self.together.guess_highest)
        if self.verdict == "better than guessing":
            people = f"with {of_people(whole(self.people))}"
            return f"{self.summary()} {people}; {self.guess} is off by {low} to {high}."
        own = f"they are off by about {points(self.together.error)}"
        return f"{self.summary()}: {own}, {self.guess} by {low} to {high}."

    def notes(self) -> list[str]:
        """Say how good the estimates are, the worst first, and how many people a precision needs."""
        doubtful = [name for name, item in self.attributes.items() if item.verdict != "better than guessing"]
        notes = [self.headline()]
        if doubtful and self.verdict == "better than guessing":
            names = ", ".join(doubtful[:6]) + (" and more" if len(doubtful) > 6 else "")
            notes.append(f"Not shown to be better than guessing, attribute by attribute: {names}.")
        needed = f"about {of_people(at_least(self.people_within))} must report"
        return [*notes, f"To be right to {points(self.within)} for every attribute, {needed}.", OPEN]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self.together.to_dict(), "headline": self.headline(), "guess": self.guess,
            "within": self.within, "people_within": self.people_within,
            "attributes": {name: item.to_dict() for name, item in self.attributes.items()},
        }  # fmt: skip


def beside_guess(
    unbiased: Mapping[str, Array], variances: Mapping[str, Array], errors: Mapping[str, float],
    guess: Mapping[str, Array],
) -> tuple[dict[str, Guessed], Guessed]:  # fmt: skip
    """Compare estimates with a guess, attribute by attribute and as a whole.

    Args:
        unbiased: the unbiased estimates.
        variances: their variances.
        errors: the mean squared error to expect of the estimates that are stated.
        guess: by attribute; one that it lacks is guessed evenly.
    """
    rng = np.random.default_rng(_SEED)
    squares = {}
    for name, estimate in unbiased.items():
        size = len(estimate)
        even = np.full(size, 1 / size)
        squares[name] = _guess_square(estimate, variances[name], guess.get(name, even), rng)
    each = {name: _guessed([errors[name]], [square]) for name, square in squares.items()}
    return each, _guessed([errors[name] for name in squares], list(squares.values()))


def _guess_square(
    estimate: Array, spread: Array, guess: Array, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean squared error of a guess over one attribute's values, and the variance of that."""
    size = len(estimate)
    away = (estimate - guess) ** 2
    noise = float((2 * spread**2 + 4 * spread * away).sum()) * size / max(size - 1, 1) / size**2
    likely = ((rng.dirichlet(np.ones(size), draws_for(size)) - guess) ** 2).mean(axis=-1)
    most = (1 - 2 * float(guess.min()) + float((guess**2).sum())) / size  # everybody has the rarest value
    beforehand = max(float(likely.var()), (most / 4) ** 2)  # so that four deviations span all there could be
    before, after = 1 / max(beforehand, _TINY), 1 / max(noise, _TINY)
    middle = (before * float(likely.mean()) + after * float((away - spread).mean())) / (before + after)
    return middle, 1 / (before + after)


def _guessed(errors: Sequence[float], squares: Sequence[tuple[float, float]]) -> Guessed:
    """Return the errors over some attributes, from mean squares and those of the guess with variances."""
    count = len(errors)
    middle = sum(square for square, _ in squares) / count
    reach = _DEVIATIONS * math.sqrt(sum(spread for _, spread in squares)) / count
    ends = (math.sqrt(max(end, 0.0)) for end in (middle, middle - reach, middle + reach))
    return Guessed(math.sqrt(sum(errors) / count), *ends)
