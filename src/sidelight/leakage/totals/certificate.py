"""A figure from drawn releases that is certainly not too low, by betting.

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
from dataclasses import dataclass

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.leakage.divergence import hockey_stick, loss_epsilon

Pair = tuple[int, int]
_STEPS = 40
_STAKE_STEPS = 20
_FIRST_STAKE = 0.5


@dataclass(frozen=True, eq=False)
class DrawnRatios:
    """The log-ratios of one ordered pair of values, of releases that were drawn given the first.

    Attributes:
        tail: those above a floor that was fixed before they were drawn, sorted, rounded up.
        count: how many releases were drawn, those below the floor included.
    """

    tail: Array
    count: int

    @classmethod
    def of(cls, ratios: Array, floor: float) -> DrawnRatios:
        """Keep what lies above the floor: below it no figure is asked for, and z is 0."""
        return cls(np.sort(ratios[ratios > floor]), len(ratios))

    @classmethod
    def joined(cls, parts: Sequence[DrawnRatios]) -> DrawnRatios:
        """Return several blocks of draws as one."""
        return cls(np.sort(np.concatenate([part.tail for part in parts])), sum(part.count for part in parts))

    def exceeding(self, limit: float) -> Array:
        """Return z of the draws above the limit; that of all others is 0."""
        return hockey_stick(self.tail[np.searchsorted(self.tail, limit, side="right") :], limit)

    def growth(self, limit: float, delta: float, stake: float) -> float:
        """Return the logarithm of what the capital is multiplied by over these draws."""
        shares = self.exceeding(limit)
        quiet = (self.count - len(shares)) * math.log1p(stake * delta)
        return float(np.log1p(stake * (delta - shares)).sum()) + quiet

    def best_stake(self, limit: float, delta: float) -> float:
        """Return the stake in [0, 1] that grows the capital of these draws most (a concave problem)."""
        gains = delta - self.exceeding(limit)
        quiet = self.count - len(gains)

        def slope(stake: float) -> float:
            return float((gains / (1 + stake * gains)).sum()) + quiet * delta / (1 + stake * delta)

        low, high = 0.0, 1.0
        if slope(high) >= 0:
            return high
        for _ in range(_STAKE_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        return low

    def estimate(self, delta: float) -> float:
        """Return the leakage at delta of the draws themselves, too low as often as too high."""
        return loss_epsilon(self.tail, np.full(len(self.tail), 1 / self.count), delta)


Blocks = Mapping[Pair, Sequence[DrawnRatios]]
"""By ordered pair of values: its draws, one block after the other."""


def certified_leakage(blocks: Blocks, delta: float, beta: float, planned: int, floor: float) -> float:
    """Return a figure that is below the leakage at delta with probability beta at most.

    Infinity where the draws certify nothing.

    Args:
        blocks: the draws; the first ones settle the stakes on the next, and so on.
        delta: the probability with which the leakage may be exceeded.
        beta: the probability, over the draws, that the figure is too low.
        planned: how many draws of each pair were meant to be made; stakes are chosen for them.
        floor: what the draws' tails begin at; the figure is not below it.
    """
    wanted = -math.log(beta)
    stakes = _stakes(blocks, delta, beta, planned, floor)

    def is_certain(pair: Pair, limit: float) -> bool:
        bets = zip(blocks[pair], stakes[pair], strict=True)
        return sum(block.growth(limit, delta, stake) for block, stake in bets) >= wanted

    highest = _highest((part for parts in blocks.values() for part in parts), floor)
    return _least_limit(blocks, is_certain, floor, highest)


def estimated_leakage(blocks: Blocks, delta: float) -> tuple[float, Pair]:
    """Return the plain estimate, and the ordered pair of values that has most."""
    estimates = {pair: DrawnRatios.joined(parts).estimate(delta) for pair, parts in blocks.items()}
    worst = max(estimates, key=lambda pair: estimates[pair])
    return estimates[worst], worst


def _stakes(blocks: Blocks, delta: float, beta: float, planned: int, floor: float) -> dict[Pair, list[float]]:
    """Return every pair's stake on each of its blocks, settled by the blocks before it."""
    stakes: dict[Pair, list[float]] = {pair: [_FIRST_STAKE] for pair in blocks}
    for number in range(1, max(len(parts) for parts in blocks.values())):
        earlier = {pair: DrawnRatios.joined(parts[:number]) for pair, parts in blocks.items()}
        # What later blocks hold must not matter here: a stake that knew of them would be no bet.
        reached = max(sum(part.count for part in parts[: number + 1]) for parts in blocks.values())
        target = _target(earlier, delta, -math.log(beta) / max(planned, reached), floor)
        for pair, draws in earlier.items():
            stakes[pair].append(draws.best_stake(target, delta))
    return stakes


def _target(earlier: Mapping[Pair, DrawnRatios], delta: float, wanted: float, floor: float) -> float:
    """Return the least limit at which draws like these multiply the capital as wanted, each on average.

    All pairs look at one limit: the figure is their maximum, so what a pair could certify below it is of no
    use.
    """

    def could_be(pair: Pair, limit: float) -> bool:
        draws = earlier[pair]
        return draws.growth(limit, delta, draws.best_stake(limit, delta)) >= wanted * draws.count

    highest = _highest(earlier.values(), floor)
    return min(_least_limit(earlier, could_be, floor, highest), highest)


def _highest(draws: Iterable[DrawnRatios], floor: float) -> float:
    """Return the highest finite ratio: above it, z no longer falls."""
    tails = (part.tail[np.isfinite(part.tail)] for part in draws)
    return max((float(tail[-1]) for tail in tails if len(tail)), default=floor)


def _least_limit(
    pairs: Iterable[Pair], holds: Callable[[Pair, float], bool], low: float, high: float
) -> float:
    """Return the least limit, rounded up, from which on a rising condition holds for every pair."""
    if not all(holds(pair, high) for pair in pairs):
        return math.inf
    left = [pair for pair in pairs if not holds(pair, low)]
    for _ in range(_STEPS):
        if not left:
            return low
        middle = (low + high) / 2
        failing = [pair for pair in left if not holds(pair, middle)]
        # A pair that holds here holds above, and the answer lies above as long as another one fails.
        low, high, left = (middle, high, failing) if failing else (low, middle, left)
    return high
