"""What a release says about a secret at several deltas, and how far it moves the odds of real people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import check_number, invalid, unknown
from sidelight.leakage.bounds import Bound

_SHARES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class DeltaPoint:
    """The leakage at one delta.

    Attributes:
        delta: the probability, averaged over people with a value, with which a release may say more.
        upper: the figure to act on: the smallest sound one.
        estimate: what the drawn releases themselves show, too low as often as too high; None without draws.
        composed: what holds for every belief.
        coupled: what holds for the table without draws; None for a model, or a secret of too many values.
    """

    delta: float
    upper: Bound
    estimate: float | None
    composed: Bound
    coupled: Bound | None = None


@dataclass(frozen=True, eq=False)
class DeltaLeakage:
    """What a release says about a secret to someone with a belief, at several deltas.

    Attributes:
        secret: the attribute it is about.
        through: the releases that are seen.
        delta: the one that was asked for.
        points: the figures, the largest delta first.
        draws: how many releases were drawn for each value of the secret; 0 where all were listed.
        beta: the probability, over our own coin flips, with which a sampled figure may be too low.
        moves: (n,) by how much releases move the odds of two values of the secret at most, sorted.
        shares: (n,) the share of people whose release moves them at most as much.
    """

    secret: str
    through: tuple[str, ...]
    delta: float
    points: tuple[DeltaPoint, ...]
    draws: int
    beta: float
    moves: Array
    shares: Array

    def at(self, delta: float) -> DeltaPoint:
        """Return the figures at one of the deltas."""
        for point in self.points:
            if math.isclose(point.delta, delta, rel_tol=1e-12):
                return point
        raise unknown("delta", f"{delta:g}", [f"{point.delta:g}" for point in self.points])

    @property
    def upper(self) -> Bound:
        """The figure at the delta that was asked for."""
        return self.at(self.delta).upper

    @property
    def value(self) -> float:
        """The figure at the delta that was asked for, in nats."""
        return self.upper.value

    def moved(self, share: float) -> float:
        """Return by how much the release moves the odds, in nats, of this share of people at most."""
        if check_number("share", share, above=0) > 1:
            raise invalid("share", "a share of people, at most 1", share)
        if share == 1:  # however rare the last of them are
            return float(self.moves[-1])
        place = int(np.searchsorted(self.shares, share * (1 - 1e-12)))
        return float(self.moves[min(place, len(self.moves) - 1)])

    def __repr__(self) -> str:
        figures = ", ".join(f"{point.upper.value:.4g} at {point.delta:g}" for point in self.points)
        return f"DeltaLeakage({self.secret}: {figures})"

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        return {
            "through": list(self.through),
            "delta": self.delta,
            "draws": self.draws,
            "beta": self.beta,
            "points": [_point_to_dict(point) for point in self.points],
            "moved": [{"share": share, "nats": self.moved(share)} for share in _SHARES],
        }


def _point_to_dict(point: DeltaPoint) -> dict[str, Any]:
    coupled = None if point.coupled is None else point.coupled.to_dict()
    return vars(point) | {
        "upper": point.upper.to_dict(), "composed": point.composed.to_dict(), "coupled": coupled
    }  # fmt: skip
