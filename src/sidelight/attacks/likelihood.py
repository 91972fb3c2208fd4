"""How likely each report is under each value, for whole columns of reports at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.bits import row_bytes
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Channel, ContinuousChannel, FavouringChannel, Mechanism, Reports
from sidelight.mechanisms.channel import ImplicitChannel
from sidelight.mechanisms.hashing import Hashing
from sidelight.mechanisms.histogram import SummedHistogram
from sidelight.mechanisms.mechanism import check_codes, check_reports

Array = NDArray[np.float64]
Reader = Callable[[Reports], Array]
"""From reports to Pr(report | value) up to a factor for each report, shape (values, reports): a whole column
of reports under one value lies together, which is what sums and products over values want."""


def likelihood_reader(mechanism: Mechanism) -> Reader:
    """Return the function that reads this mechanism's reports.

    >>> from sidelight.mechanisms import create
    >>> reader = likelihood_reader(create("grr", 3, 1.0))
    >>> reader(Reports(np.array([2], dtype=np.uint8))).round(4)
    array([[0.3679],
           [0.3679],
           [1.    ]])
    """
    channel = mechanism.channel
    if isinstance(mechanism, SummedHistogram):
        return _histogram_reader(mechanism)
    if isinstance(mechanism, Hashing):
        return _hashing_reader(mechanism, channel.epsilon)
    if isinstance(channel, ContinuousChannel):
        return _density_reader(channel)
    if isinstance(channel, FavouringChannel) and channel.family == "all":
        return _bit_reader(channel)
    if isinstance(channel, FavouringChannel) and channel.family == "subsets":
        return _set_reader(channel)
    if isinstance(channel, ImplicitChannel):
        return _implicit_reader(channel)
    return _code_reader(channel)


def _code_reader(channel: Channel) -> Reader:
    try:
        columns = channel.matrix()
    except InputError:
        raise InputError(
            "the attack needs the law of every report; of this release only the budget is known. "
            "Name its mechanism in the plan."
        ) from None
    most = columns.max(axis=0, keepdims=True)
    table = np.divide(columns, most, out=np.zeros_like(columns), where=most > 0)

    def read(reports: Reports) -> Array:
        codes = check_codes(check_reports(reports, "ui"), table.shape[1], "reports")
        return np.asarray(np.take(table, codes, axis=1))

    return read


def _bit_reader(channel: FavouringChannel) -> Reader:
    def read(reports: Reports) -> Array:
        rows = check_reports(reports, "u", row_bytes(channel.size))
        bits = np.unpackbits(rows, axis=1, count=channel.size, bitorder="little")
        return np.where(bits.T == 1, 1.0, channel.baseline)

    return read


def _set_reader(channel: FavouringChannel) -> Reader:
    def read(reports: Reports) -> Array:
        sets = check_reports(reports, "ui", channel.width)
        check_codes(sets.reshape(-1), channel.size, "reports")
        likely = np.full((channel.size, len(sets)), channel.baseline)
        np.put_along_axis(likely, sets.T.astype(np.intp), 1.0, axis=0)
        return likely

    return read


def _hashing_reader(mechanism: Hashing, epsilon: float) -> Reader:
    low = float(np.exp(-epsilon))

    def read(reports: Reports) -> Array:
        values = check_reports(reports, "ui", seeds=True)
        seeds = np.asarray(reports.seeds, dtype=np.uint64)
        likely = np.empty((mechanism.size, len(values)))
        for code in range(mechanism.size):
            bucket = mechanism.hashed(np.full(len(values), code, dtype=np.uint16), seeds)
            likely[code] = np.where(bucket == values, 1.0, low)
        return likely

    return read


def _histogram_reader(mechanism: SummedHistogram) -> Reader:
    """A value's number is 1 + noise, any other's is noise: only that number's two densities differ."""
    half = mechanism.epsilon / 2

    def read(reports: Reports) -> Array:
        numbers = check_reports(reports, "f", mechanism.size).T
        logs = half * (np.abs(numbers) - np.abs(numbers - 1))
        return np.asarray(np.exp(logs - logs.max(axis=0)))

    return read


def _density_reader(channel: ContinuousChannel) -> Reader:
    def read(reports: Reports) -> Array:
        logs = channel.log_density(check_reports(reports, "f")).T
        return np.asarray(np.exp(logs - logs.max(axis=0)))

    return read


def _implicit_reader(channel: ImplicitChannel) -> Reader:
    def read(reports: Reports) -> Array:
        found, position = np.unique(check_reports(reports, "ui"), return_inverse=True)
        return np.stack([channel.likelihood(int(report)) for report in found], axis=1)[:, position]

    return read
