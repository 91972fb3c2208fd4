"""What the functions of this room are handed, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping

from sidelight.belief import Credal
from sidelight.foundation.errors import check_is, invalid


def check_channel(channel: object) -> None:
    """Raise unless this is a channel, which need not be one of ours."""
    if not hasattr(channel, "family") or not hasattr(channel, "epsilon"):
        raise invalid("channel", "a `Channel`", type(channel).__name__, "A plan's are in plan.channels().")


def check_channels(channels: object) -> None:
    """Raise unless these are channels by attribute."""
    if not isinstance(channels, Mapping):
        kind = type(channels).__name__
        raise invalid("channels", "a mapping from attributes to channels", kind, "plan.channels() makes one.")
    for channel in channels.values():
        check_channel(channel)


def check_credal(credal: object) -> None:
    """Raise unless this is a credal set."""
    check_is("credal", credal, Credal, "belief.credal() makes one.")
