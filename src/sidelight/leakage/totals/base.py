"""What every kind of total shares: the contract of prepared totals, composition, and what is claimed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.leakage.bounds import Bound, Claim
from sidelight.leakage.pair import is_idealised
from sidelight.mechanisms import Channel

Channels = Mapping[str, Channel]
"""The channel of every released attribute."""
LARGEST_FIGURE = 1e6
"""Stands for infinity where figures are subtracted."""
ONE_VALUE = Bound(0.0, "exact", "only one value is possible")


class Totals(ABC):
    """Totals of some secrets, prepared once for a belief and then asked for at many budgets."""

    @abstractmethod
    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total of each secret with what it claims."""

    def values(self, channels: Channels) -> dict[str, float]:
        """Return the total of each secret."""
        return {secret: bound.value for secret, bound in self.bounds(channels).items()}

    def among(self, secrets: Collection[str]) -> Totals | None:  # noqa: ARG002 - others leave some out
        """Return the totals of these secrets, or of more where that costs no more; None if it has none."""
        return self

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return by how much each total grows at least with each of the moved channels alone.

        For small moves that is how much it grows, to first order. Here every move is a new question; kinds
        of totals that know what reaches them answer all moves at once.
        """
        base = self.values(channels)
        after = [self.values({**channels, name: channel}) for name, channel in moved.items()]
        finite = {
            secret: np.minimum([each[secret] for each in [base, *after]], LARGEST_FIGURE) for secret in base
        }
        return {secret: values[1:] - values[0] for secret, values in finite.items()}


def composition(channels: Channels) -> Bound:
    """Return the sum of all realised budgets: sound for every belief, unless a paper idealises a channel."""
    value = math.fsum(channel.epsilon for channel in channels.values())
    return Bound(value, "published" if is_idealised(channels.values()) else "certified", "composition")


def joint_claim(channels: Channels) -> Claim:
    """Return what the exact total through these channels claims: exact if every channel's figure is."""
    return "exact" if all(channel.claim == "exact" for channel in channels.values()) else "certified"


def check_order(lower: float, upper: float) -> float:
    """Return the lower end, or raise where it exceeds the upper one by more than rounding: one is wrong."""
    if lower - upper > 1e-9 * max(1.0, upper):
        raise ArithmeticError(f"a lower figure of {lower} exceeds the upper figure of {upper}")
    return lower
