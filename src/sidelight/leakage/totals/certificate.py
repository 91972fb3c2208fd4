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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.leakage.divergence import hockey_stick, loss_epsilon

Pair = tuple[int, int]
_FIRST_STAKE = 0.5
_STAKE_TOLERANCE = 1e-4
"""Near the best stake the growth is flat: an error of 1e-4 costs less than 1e-8 of it."""
_PRECISION = 1e-6
"""Figures are rounded up by at most this share."""


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

    def joined(self, other: DrawnRatios) -> DrawnRatios:
        """Return these draws and others as one block."""
        # A stable sort merges two sorted runs instead of sorting anew.
        tail = np.sort(np.concatenate([self.tail, other.tail]), kind="stable")
        return DrawnRatios(tail, self.count + other.count)

    @property
    def highest(self) -> float:
        """The highest finite ratio: above it, z no longer falls. Minus infinity if there is none."""
        finite = int(np.searchsorted(self.tail, math.inf))
        return float(self.tail[finite - 1]) if finite else -math.inf

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

        def slopes(stake: float) -> tuple[float, float]:
            """Return the first derivative of the growth, and the second one, which is negative."""
            each, rest = gains / (1 + stake * gains), delta / (1 + stake * delta)
            return float(each.sum()) + quiet * rest, -float(each @ each) - quiet * rest**2

        if slopes(1.0)[0] >= 0:  # so it is for every pair that is far from leaking most
            return 1.0
        low, high, stake = 0.0, 1.0, 0.0
        while high - low > _STAKE_TOLERANCE:
            slope, bend = slopes(stake)
            low, high = (stake, high) if slope > 0 else (low, stake)
            step = slope / bend
            if abs(step) <= _STAKE_TOLERANCE:
                break
            # Newton's step, or the middle where it leaves what is known to hold the best stake.
            stake = stake - step if low < stake - step < high else (low + high) / 2
        return stake

    def estimate(self, delta: float) -> float:
        """Return the leakage at delta of the draws themselves, too low as often as too high."""
        return loss_epsilon(self.tail, np.full(len(self.tail), 1 / self.count), delta)


Block = Mapping[Pair, DrawnRatios]
"""By ordered pair of values: its draws."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws in blocks, of which each settles the stakes on the next.

    Attributes:
        blocks: one after the other.
        planned: how many draws of each pair are meant to be made; stakes are chosen for them.
        floor: what the draws' tails begin at; no figure is below it.
    """

    blocks: tuple[Block, ...]
    planned: int
    floor: float

    @cached_property
    def so_far(self) -> tuple[Block, ...]:
        """The first block, the first two as one, and so on."""
        joined = [self.blocks[0]]
        for block in self.blocks[1:]:
            joined.append({pair: draws.joined(block[pair]) for pair, draws in joined[-1].items()})
        return tuple(joined)

    @property
    def count(self) -> int:
        """How many releases were drawn of each pair; of the one with fewest, where they differ."""
        return min(draws.count for draws in self.so_far[-1].values())

    def and_more(self, block: Block) -> Draws:
        """Return these draws and one more block."""
        return replace(self, blocks=(*self.blocks, block))

    def certified(self, delta: float, beta: float) -> float:
        """Return a figure that is below the leakage at delta with probability beta at most.

        Infinity where the draws certify nothing.

        Args:
            delta: the probability with which the leakage may be exceeded.
            beta: the probability, over the draws, that the figure is too low.
        """
        wanted = -math.log(beta)
        if self.count * math.log1p(delta) < wanted:  # not even draws that say nothing would do
            return math.inf
        stakes = [
            dict.fromkeys(self.blocks[0], _FIRST_STAKE),
            *(self._stakes(number, delta, wanted) for number in range(1, len(self.blocks))),
        ]

        def is_certain(pair: Pair, limit: float) -> bool:
            bets = zip(self.blocks, stakes, strict=True)
            return sum(block[pair].growth(limit, delta, stake[pair]) for block, stake in bets) >= wanted

        return _least_limit(self.so_far[-1], is_certain, self.floor)

    def estimated(self, delta: float) -> tuple[float, Pair]:
        """Return the plain estimate, and the ordered pair of values that has most."""
        together = self.so_far[-1]
        level, worst = 0.0, next(iter(together))
        for pair, draws in together.items():
            if draws.exceeding(level).sum() > delta * draws.count:
                level, worst = draws.estimate(delta), pair
        return level, worst

    def _stakes(self, number: int, delta: float, wanted: float) -> dict[Pair, float]:
        """Return every pair's stake on a block, settled by the blocks before it.

        All pairs look at one limit, the least at which draws like these would reach the capital that is
        wanted: the figure is the maximum, so what a pair could certify below it is of no use.
        """
        earlier = self.so_far[number - 1]
        # What this block holds must not matter here, only how long it is: else it would be no bet.
        reached = max(draws.count + self.blocks[number][pair].count for pair, draws in earlier.items())
        needed = wanted / max(self.planned, reached)

        def could_be(pair: Pair, limit: float) -> bool:
            draws = earlier[pair]
            return draws.growth(limit, delta, draws.best_stake(limit, delta)) >= needed * draws.count

        target = min(_least_limit(earlier, could_be, self.floor), _highest(earlier.values(), self.floor))
        return {pair: draws.best_stake(target, delta) for pair, draws in earlier.items()}


def _highest(draws: Iterable[DrawnRatios], floor: float) -> float:
    return max(floor, *(part.highest for part in draws))


def _least_limit(block: Block, holds: Callable[[Pair, float], bool], floor: float) -> float:
    """Return the least limit, rounded up, from which on a rising condition holds for every pair."""
    low, top = floor, _highest(block.values(), floor)
    for pair in block:
        # Most pairs hold at the limit that the pairs before them need, and ask for no search.
        if holds(pair, low):
            continue
        if not holds(pair, top):
            return math.inf
        high = top
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            low, high = (low, middle) if holds(pair, middle) else (middle, high)
        low = high
    return low
