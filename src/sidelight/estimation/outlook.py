"""A design and what is known about its frequencies, prepared to be asked for several numbers of people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sidelight.estimation.expected_error import check_frequencies, number_errors, predicted_variances
from sidelight.estimation.simulated import Frequencies, best_errors, draws_for, loose_sums
from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.protocols.protocol import Design
from sidelight.schema import Schema

_SEED = 20_250_103
_MOST_PEOPLE = 1e15
_CLOSE = 1.01  # numbers of people are found within 1 %
_SCALE = 1_000_000


@dataclass(frozen=True, eq=False)
class Outlook:
    """What errors to expect of a design, for any number of people.

    Attributes:
        truths: the frequencies, (values,), or draws of all there are, (draws, values).
        guesses: by attribute the errors of the uniform guess and of the prior.
        spread: the variances of unbiased estimates for `_SCALE` people; None for two phases, whose
            variances are not in proportion to 1/n.
    """

    design: Design
    known: Mapping[str, Array]
    truths: Mapping[str, Array]
    guesses: Mapping[str, tuple[float, float | None]]
    spread: Mapping[str, Array] | None

    @classmethod
    def of(cls, design: Design, frequencies: Frequencies | None, prior: Frequencies | None) -> Outlook:
        """Return the outlook of a design; what is not known is drawn, a flat Dirichlet distribution."""
        schema = design.schema
        given, public = known_frequencies(schema, frequencies), known_frequencies(schema, prior)
        rng = np.random.default_rng(_SEED)
        drawn = {
            item.name: rng.dirichlet(np.ones(item.size), draws_for(item.size))
            for item in schema
            if item.name not in given
        }
        guesses = {}
        for item in schema:
            truth, even = given.get(item.name), np.full(item.size, 1 / item.size)
            guess = public.get(item.name)
            guesses[item.name] = _off(even, truth), None if guess is None else _off(guess, truth)
        taken = {item.name: given.get(item.name, np.full(item.size, 1 / item.size)) for item in schema}
        spread = predicted_variances(design, _SCALE, taken) if design.two_phase is None else None
        return cls(design, given, {**drawn, **given}, guesses, spread)

    def variances(self, people: int) -> Mapping[str, Array]:
        """Return the variances of unbiased estimates with so many people."""
        if self.spread is not None:
            return {name: spread * (_SCALE / people) for name, spread in self.spread.items()}
        even = {item.name: np.full(item.size, 1 / item.size) for item in self.design.schema}
        return predicted_variances(self.design, people, even | dict(self.known))

    def errors(self, people: int, variances: Mapping[str, Array]) -> dict[str, Array]:
        """Return simulated errors of "best", (draws, values), of the attributes that reports determine."""
        schema = self.design.schema
        able = [name for name in schema.names if np.all(np.isfinite(variances[name]))]
        if not able:
            return {}
        numbers = number_errors(self.design, people, self.truths)
        loose = loose_sums([self.design.first])
        return best_errors(schema.select(able), self.truths, variances, numbers, loose)

    def least_people(self, excess: Callable[[int], float], target: float) -> int | None:
        """Return the least number of people, within 1 %, at which an error is down to its target.

        The excess is the logarithm of the error over the target, nearly linear in that of people: where it
        would be 0 by that, and 1 % around it, is where the search looks. It begins where the unbiased
        estimates have the target for their error.
        """
        at_scale = max(float(spread.mean()) for spread in self.variances(_SCALE).values())
        if not math.isfinite(at_scale):
            return None
        high = max(_SCALE * at_scale / target**2, 1.0)
        if high > _MOST_PEOPLE:
            return None
        above = excess(math.ceil(high))
        while above > 0:
            high *= 4
            if high > _MOST_PEOPLE:
                return None
            above = excess(math.ceil(high))
        low, below = high, above
        while below <= 0:
            if low == 1:
                return 1
            high, above, low = low, below, max(low / 4, 1.0)
            below = excess(math.ceil(low))
        while high / low > _CLOSE and math.ceil(high) > math.ceil(low):
            share = below / (below - above) if math.isfinite(above) else 0.5
            root = low * (high / low) ** min(max(share, 0.05), 0.95)  # a kink must not hold the search up
            for people in (root * math.sqrt(_CLOSE), root / math.sqrt(_CLOSE)):
                if low < people < high:
                    found = excess(math.ceil(people))
                    low, below, high, above = (
                        (people, found, high, above) if found > 0 else (low, below, people, found)
                    )
        return math.ceil(high)


def known_frequencies(schema: Schema, frequencies: Frequencies | None) -> dict[str, Array]:
    """Return the frequencies that are given of the schema's attributes, after checking them."""
    if frequencies is not None and not isinstance(frequencies, Mapping):
        raise InputError(
            f"frequencies must be given by attribute, as a dict of arrays; got {frequencies!r:.40}."
        )
    given = frequencies or {}
    kept = {name: _numbers(name, given[name]) for name in schema.names if name in given}
    if kept:
        check_frequencies(schema.select(list(kept)), kept)
    return kept


def _numbers(name: str, given: object) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"frequencies of {name!r} must be numbers, in the order of its values.") from None


def _off(guess: Array, truth: Array | None) -> float:
    """Return the error of a guess; where the truth is unknown, its root mean square over all there are.

    Under a flat Dirichlet distribution every frequency has mean 1/k and variance (k-1) / (k^2 (k+1)).
    """
    size = len(guess)
    if truth is not None:
        return math.sqrt(float(((guess - truth) ** 2).mean()))
    return math.sqrt((size - 1) / (size**2 * (size + 1)) + float(((guess - 1 / size) ** 2).mean()))
