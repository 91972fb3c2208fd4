"""How often one address may ask: a bucket for each, under a name that nobody can turn back into it."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from time import monotonic

from sidelight.foundation.errors import check_number, check_whole

_MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class Limits:
    """What one request, and one address, may ask for.

    Attributes:
        body: the most bytes of a request.
        reports: the most reports of an upload.
        rate: requests a second of one address, in the long run; 0 without limit.
        burst: how many may come at once.
    """

    body: int = 8 << 20
    reports: int = 10_000
    rate: float = 100.0
    burst: int = 1000

    def __post_init__(self) -> None:
        check_whole("body", self.body, at_least=1)
        check_whole("reports", self.reports, at_least=1)
        check_number("rate", self.rate, at_least=0)
        check_whole("burst", self.burst, at_least=1)


class Rates:
    """Buckets that fill at a rate; a request takes one drop."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        """Take the limits, and a clock that only goes forward."""
        self._limits, self._clock = limits, clock
        self._secret = os.urandom(16)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Return 0 if a request of an address may pass, else after how many seconds it may."""
        if not self._limits.rate:
            return 0
        name = hashlib.blake2b(_who(address).encode(), key=self._secret, digest_size=16).digest()
        now = self._clock()
        drops, then = self._buckets.pop(name, (float(self._limits.burst), now))
        drops = min(self._limits.burst, drops + (now - then) * self._limits.rate)
        passes = drops >= 1
        self._buckets[name] = (drops - passes, now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return 0 if passes else int((1 - drops) / self._limits.rate) + 1


def _who(address: str) -> str:
    """Return whom an address stands for: of IPv6 the network of 64 bits, since one host has all of it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv4Address) or found.ipv4_mapped is not None:
        return address
    return found.packed[:8].hex()
