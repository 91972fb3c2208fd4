"""One attribute's randomiser: samples reports, states its exact channel, inverts it."""

from sidelight.mechanisms.channel import (
    AnyChannel,
    Channel,
    ContinuousChannel,
    DenseChannel,
    FavouringChannel,
    ImplicitChannel,
)
from sidelight.mechanisms.mechanism import MECHANISMS, WITHOUT_BUDGET, Aggregate, Mechanism, create, make
from sidelight.mechanisms.reports import Reports, reports_from_arrow, reports_to_arrow

__all__ = [
    "MECHANISMS",
    "WITHOUT_BUDGET",
    "Aggregate",
    "AnyChannel",
    "Channel",
    "ContinuousChannel",
    "DenseChannel",
    "FavouringChannel",
    "ImplicitChannel",
    "Mechanism",
    "Reports",
    "create",
    "make",
    "reports_from_arrow",
    "reports_to_arrow",
]
