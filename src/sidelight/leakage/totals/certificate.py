"""Leakage at delta from drawn releases: a figure that is certainly not too low, by betting.

For two values s and s' of a secret, let llr = ln P(y | s) / P(y | s') of a release y. The hockey-stick
divergence at L is the mean of z_L = max(0, 1 - e^(L - llr)) over releases drawn given s, and the leakage at
delta is the smallest L at which no ordered pair of values has a mean above delta.

Bet against "the mean of z_L is at least delta": a capital of 1 is multiplied by 1 + b (delta - z_L) at each
draw, with a stake b in [0, 1] that may depend on earlier draws but not on L. The certified figure is the
least L at which every pair's capital reaches 1 / beta.

1. z_L falls in L, so the capital rises in L, and bisection finds the least L that reaches 1 / beta.
2. Let L* > 0 be the leakage of the pair that has most. At L* the mean of z is delta, so the capital there is
   a non-negative martingale that starts at 1. It ever reaches 1 / beta with probability at most beta (Ville
   1939), however many draws are made, so it is allowed to look and to draw on.
3. The figure is below L* only if that very pair's capital reaches 1 / beta below L*, hence at L*. So beta is
   not divided by the number of pairs.

Stakes follow Waudby-Smith and Ramdas (2024): those that would have grown the capital fastest so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[int, int]
_STEPS = 50
_STAKE_STEPS = 30
FIRST_STAKE = 0.5


def hockey_stick(log_ratios: Array, limit: float) -> Array:
    """Return max(0, 1 - e^(limit - llr)) of each log-ratio; 1 where it is infinite."""
    return np.asarray(-np.expm1(np.minimum(limit - log_ratios, 0.0)))


def divergence(log_ratios: Array, weights: Array, limit: float) -> float:
    """Return the hockey-stick divergence of releases with these log-ratios and probabilities."""
    over = log_ratios > limit
    return float(weights[over] @ hockey_stick(log_ratios[over], limit))


def leakage_of(log_ratios: Array, weights: Array, delta: float) -> float:
    """Return the smallest limit at which the hockey-stick divergence is at most delta.

    Between two neighbouring log-ratios the divergence is A - e^L B with fixed sums A and B, so the crossing
    is found exactly.
    """
    over = np.flatnonzero(log_ratios > 0)
    order = over[np.argsort(-log_ratios[over])]
    ratios, mass = log_ratios[order], weights[order]
    # the mass of the likelier value, and of the other one, in the releases that move the odds most
    above = np.cumsum(mass)
    below = np.cumsum(mass * np.exp(-ratios))
    # at L equal to the next smaller log-ratio the divergence is largest within each step
    steps = np.exp(np.append(ratios[1:], 0.0))
    at_steps = np.where(below > 0, steps, 0.0) * below
    reached = np.flatnonzero(above - at_steps > delta)
    if not len(reached):
        return 0.0
    place = int(reached[0])
    if below[place] == 0:
        return math.inf
    return max(0.0, math.log((above[place] - delta) / below[place]))


@dataclass
class Certificate:
    """Bets on the draws so far, block by block.

    Attributes:
        delta: the probability that the leakage may be exceeded with.
        beta: the probability that the figure is too low, over the draws.
        planned: how many draws are meant for each value of the secret; stakes are chosen for them.
        blocks: the sorted log-ratios of each ordered pair of values, a block each time draws were added.
        stakes: the stake on each block.
    """

    delta: float
    beta: float
    planned: int
    blocks: dict[Pair, list[Array]] = field(default_factory=dict)
    stakes: dict[Pair, list[float]] = field(default_factory=dict)

    def add(self, log_ratios: Mapping[Pair, Array], most: float) -> None:
        """Bet on further draws of every pair; the stakes are settled by the draws before them.

        Args:
            log_ratios: of each ordered pair of values, rounded up, of releases drawn given the first value.
            most: what the leakage never exceeds.
        """
        chosen = self._next_stakes(most)
        for pair, ratios in log_ratios.items():
            self.blocks.setdefault(pair, []).append(np.sort(ratios))
            self.stakes.setdefault(pair, []).append(chosen.get(pair, FIRST_STAKE))

    def limit(self, most: float) -> float:
        """Return the certified leakage; `most` where the draws certify nothing below it."""
        wanted = -math.log(self.beta)

        def is_certain(pair: Pair, limit: float) -> bool:
            bets = zip(self.blocks[pair], self.stakes[pair], strict=True)
            return sum(_growth(block, limit, self.delta, stake) for block, stake in bets) >= wanted

        return least_limit(self.blocks, is_certain, most)

    def estimate(self) -> float:
        """Return the plain estimate, which is too low as often as too high."""
        return max((leakage_of(*_even(blocks), self.delta) for blocks in self.blocks.values()), default=0.0)

    def _next_stakes(self, most: float) -> dict[Pair, float]:
        """Return the stakes that would have done best at the least limit that such draws could certify.

        All pairs look at one limit: the figure is their maximum, so what a pair could certify below it is
        of no use.
        """
        if not self.blocks:
            return {}
        earlier = {pair: np.sort(np.concatenate(blocks)) for pair, blocks in self.blocks.items()}
        wanted = -math.log(self.beta) / self.planned

        def could_be(pair: Pair, limit: float) -> bool:
            ratios = earlier[pair]
            stake = best_stake(ratios, limit, self.delta)
            return _growth(ratios, limit, self.delta, stake) >= wanted * len(ratios)

        target = least_limit(earlier, could_be, most)
        return {pair: best_stake(ratios, target, self.delta) for pair, ratios in earlier.items()}


def least_limit(pairs: Iterable[Pair], holds: Callable[[Pair, float], bool], most: float) -> float:
    """Return the least limit, rounded up, from which on a rising condition holds for every pair."""
    low, high = 0.0, most
    open_pairs = [pair for pair in pairs if not holds(pair, 0.0)]
    for _ in range(_STEPS):
        if not open_pairs:
            return low
        middle = (low + high) / 2
        failing = [pair for pair in open_pairs if not holds(pair, middle)]
        # a pair that holds here holds above, and the answer lies above as long as another one fails
        low, high, open_pairs = (middle, high, failing) if failing else (low, middle, open_pairs)
    return high


def best_stake(ratios: Array, limit: float, delta: float) -> float:
    """Return the stake in [0, 1] that grows the capital of these sorted draws most (a concave problem)."""
    gains = delta - _tail(ratios, limit)
    rest = len(ratios) - len(gains)

    def slope(stake: float) -> float:
        return float((gains / (1 + stake * gains)).sum()) + rest * delta / (1 + stake * delta)

    if slope(1.0) >= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STAKE_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low


def _growth(ratios: Array, limit: float, delta: float, stake: float) -> float:
    """Return the logarithm of what the capital is multiplied by over sorted draws."""
    shares = _tail(ratios, limit)
    rest = len(ratios) - len(shares)
    return float(np.log1p(stake * (delta - shares)).sum()) + rest * math.log1p(stake * delta)


def _tail(ratios: Array, limit: float) -> Array:
    """Return z of the sorted draws above the limit; that of all others is 0."""
    return hockey_stick(ratios[np.searchsorted(ratios, limit, side="right") :], limit)


def _even(blocks: Sequence[Array]) -> tuple[Array, Array]:
    ratios = np.concatenate(blocks)
    return ratios, np.full(len(ratios), 1 / len(ratios))
