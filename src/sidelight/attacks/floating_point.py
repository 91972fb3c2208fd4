"""The floating-point attack: which candidates could have produced this very double?

A sampler that turns a random double into Laplace noise by the inverse of the distribution function reaches
only some of the doubles, and which ones depends on the value they are added to (Mironov 2012; Jin,
McMurtry, Rubinstein, Ohrimenko 2022). `naive_laplace` is such a sampler, kept here as the attacked example:
it must never protect anyone. A real release moves the value and the noise to one grid of whole steps, on
which every report is possible under every value (`mechanisms.numeric`), so there is nothing to exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sidelight.attacks.attack import Guess, attack
from sidelight.attacks.result import AttackResult
from sidelight.foundation.arrays import Array, Mask, Positions, Whole
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.mechanisms.numeric import Laplace

Test = Callable[[Array, Array], Mask]
"""From reports and candidates to whether each could have made each, shape (reports, candidates)."""

_WORDS = 2.0**53
_NEAR = 4
"""How many of the 2^53 uniform numbers to either side are tried: rounding in exp and log moves the place."""
_TARGET = "value"


def naive_laplace(values: ArrayLike, scale: float, seed: int) -> Array:
    """Add Laplace noise by the inverse of its distribution function on doubles: the attacked example."""
    check_number("scale", scale, above=0)
    array = np.asarray(values, dtype=np.float64)
    return array + _inverse(np.random.default_rng(seed).random(len(array)), scale)


def _inverse(uniform: Array, scale: float) -> Array:
    """Return the noise of a uniform number: sign(u - 1/2) |ln(1 - 2|u - 1/2|)| scale."""
    centred = uniform - 0.5
    with np.errstate(divide="ignore"):  # u = 0 gives infinite noise, in the attacked sampler too
        return np.asarray(scale * np.copysign(np.log(1 - 2 * np.abs(centred)), centred))


def naive_test(scale: float) -> Test:
    """Return the test against `naive_laplace`: is there a uniform double that leads to this report?

    The distribution function gives the place of the uniform number to within a few of the 2^53; each of
    these is put through the sampler again. Where many lead to the report, the middle one does.
    """

    def feasible(reports: Array, candidates: Array) -> Mask:
        possible = np.zeros((len(reports), len(candidates)), dtype=np.bool_)
        for column, candidate in enumerate(candidates):
            noise = reports - candidate
            tail = 0.5 * np.exp(-np.abs(noise) / scale)
            place = np.rint(np.where(noise < 0, tail, 1 - tail) * _WORDS)
            for shift in range(-_NEAR, _NEAR + 1):
                uniform = np.clip(place + shift, 0, _WORDS - 1) / _WORDS
                possible[:, column] |= candidate + _inverse(uniform, scale) == reports
        return possible

    return feasible


def grid_test(mechanism: Laplace) -> Test:
    """Return the test against our release: is the report a whole number of steps from the candidate's?

    The discrete noise takes every whole number of steps with a probability above 0, so that is all there
    is to test; and it holds for every candidate, since all of them are moved to the same grid.
    """

    def feasible(reports: Array, candidates: Array) -> Mask:
        steps = (reports - mechanism.lower) / mechanism.step
        lower, upper = mechanism.lower, mechanism.upper
        share = (np.clip(candidates, lower, upper) - lower) / (upper - lower)
        difference = steps[:, None] - np.rint(share * mechanism.range_steps)
        exact = mechanism.lower + np.rint(steps) * mechanism.step == reports
        return np.asarray((np.abs(difference - np.rint(difference)) < 1e-3) & exact[:, None])

    return feasible


@dataclass(frozen=True, eq=False)
class FloatingPointAttacker:
    """Excludes candidates that could not have produced the report, then takes the nearest that is left.

    The control is the same without the exclusion: what the noise itself gives away is no fault of doubles.
    The candidates are the values a person can have, in order; the test is `naive_test` or `grid_test`.
    """

    candidates: tuple[float, ...]
    test: Test
    release: str

    def __post_init__(self) -> None:
        if np.any(np.diff(self.candidates) <= 0):
            raise invalid("candidates", "different numbers in ascending order", self.candidates[:10])

    def guess(self, reports: Array, secret: str, confidence: float) -> Guess:  # noqa: ARG002
        """Return the nearest candidate that could have produced each report."""
        points = np.asarray(self.candidates)
        distance = np.abs(reports[:, None] - points)
        nearest = distance.argmin(axis=1)
        feasible = self.test(reports, points)
        left = np.where(feasible, distance, np.inf)
        # A report that nothing explains is taken at face value.
        guesses = np.where(feasible.any(axis=1), left.argmin(axis=1), nearest)
        return Guess("floating-point", self.release, "error rate", guesses, nearest)

    def truth(self, table: ArrayLike, secret: str) -> Positions:  # noqa: ARG002 - there is one column
        """Return the position of each true value among the candidates."""
        true = np.asarray(table, dtype=np.float64)
        place = np.minimum(np.searchsorted(self.candidates, true), len(self.candidates) - 1)
        if not np.array_equal(np.asarray(self.candidates)[place], true):
            raise InputError("every true value must be one of the candidates; some are not.")
        return place


@dataclass(frozen=True, eq=False)
class FloatingPointResult:
    """What the floating-point attack found: guesses, control and gain, as for every attack.

    Beside them which candidates each report is possible under, (reports, candidates), and the true place.
    """

    attack: AttackResult
    feasible: Mask
    truth: Positions

    @cached_property
    def sizes(self) -> Whole:
        """How many candidates could have produced each report."""
        return np.asarray(self.feasible.sum(axis=1))

    @property
    def mean_size(self) -> float:
        """The mean size of the feasible set; the number of candidates where nothing is excluded."""
        return float(self.sizes.mean())

    @property
    def recovered(self) -> float:
        """The share of values that are the only ones that could have produced their report."""
        own = self.feasible[np.arange(len(self.truth)), self.truth]
        return float((own & (self.sizes == 1)).mean())


def attack_naive(candidates: Sequence[float], epsilon: float, count: int, seed: int) -> FloatingPointResult:
    """Attack `naive_laplace` on values drawn evenly from the candidates.

    >>> round(attack_naive([0, 1], 1.0, 4000, seed=1).recovered, 1)
    0.8
    """
    points, true = _draw(candidates, count, seed)
    scale = float(points[-1] - points[0]) / check_number("epsilon", epsilon, above=0)
    reports = naive_laplace(points[true], scale, seed + 1)
    words = f"naive Laplace noise on doubles, budget {epsilon:g}"
    return _measure(points, true, reports, naive_test(scale), words)


def attack_release(
    candidates: Sequence[float],
    epsilon: float,
    count: int,
    seed: int,
    *,
    secure: bool = True,
    test: str = "grid",
) -> FloatingPointResult:
    """Attack our own release of the same values: by its own "grid", or by the test for the "naive" sampler.

    Secure noise is that of a real release (extra `numeric`); otherwise the seed simulates it.
    """
    check_choice("test", test, ("grid", "naive"))
    points, true = _draw(candidates, count, seed)
    mechanism = Laplace(2, check_number("epsilon", epsilon, above=0), float(points[0]), float(points[-1]))
    reports = mechanism.randomise(points[true], seed=None if secure else seed + 1).values
    chosen = grid_test(mechanism) if test == "grid" else naive_test(mechanism.scale * mechanism.step)
    return _measure(points, true, reports, chosen, f"Laplace noise on a grid, budget {epsilon:g}")


def _draw(candidates: Sequence[float], count: int, seed: int) -> tuple[Array, Positions]:
    points = np.unique(np.asarray(candidates, dtype=np.float64))
    if len(points) < 2:
        raise invalid("candidates", "at least two different numbers", list(candidates))
    check_whole("count", count, at_least=1)
    return points, np.random.default_rng(seed).integers(0, len(points), count)


def _measure(points: Array, true: Positions, reports: Array, test: Test, words: str) -> FloatingPointResult:
    feasible = test(reports, points)
    attacker = FloatingPointAttacker(tuple(points.tolist()), lambda *_: feasible, words)
    result = attack(reports, attacker, secret=_TARGET, truth=points[true])
    return FloatingPointResult(result, feasible, true)
