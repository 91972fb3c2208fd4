"""One attribute's randomiser: samples reports, states its exact channel, inverts it."""

from sidelight.mechanisms.channel import AnyChannel, Channel, DenseChannel, FavouringChannel
from sidelight.mechanisms.mechanism import MECHANISMS, Aggregate, Mechanism, create

__all__ = [
    "MECHANISMS",
    "Aggregate",
    "AnyChannel",
    "Channel",
    "DenseChannel",
    "FavouringChannel",
    "Mechanism",
    "create",
]
