"""Channels whose reports can be listed one by one: what average-case figures and profiles need.

A favoured-set family says enough for a worst case, but not how *often* each report is sent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError
from sidelight.leakage.families import baseline_of
from sidelight.leakage.pair import check_fit, conditional_rows
from sidelight.mechanisms import Channel

Array = NDArray[np.float64]


def report_matrix(name: str, channel: Channel) -> Array:
    """Return Pr(report | value) of the release of attribute `name`, shape (values, reports)."""
    if channel.family == "any":
        raise InputError(
            f"of the release of {name!r} only the budget is known, so its reports cannot be listed; "
            "name a mechanism, for example 'grr'."
        )
    try:
        return channel.matrix()
    except InputError as error:
        raise InputError(
            f"the reports of {name!r} ({channel.size} values) cannot be listed; use a mechanism that "
            "reports single values, for example 'grr', or coarser bins."
        ) from error


def report_rows(rows: Array, name: str, channel: Channel) -> Array:
    """Return Pr(report | row) from Pr(value | row), shape (m, reports).

    A channel that reports single values needs no matrix, so its alphabet may be of any size.
    """
    if channel.family == "singletons":
        baseline = baseline_of(channel)
        mass = rows.sum(axis=1, keepdims=True)
        return np.asarray((baseline * mass + (1 - baseline) * rows) / (1 + (channel.size - 1) * baseline))
    return np.asarray(rows @ report_matrix(name, channel))


def secret_rows(
    belief: Belief, channel: Channel, secret: str, neighbour: str
) -> tuple[Array, NDArray[np.intp]]:
    """Return Pr(neighbour's report | secret) for the secret values that can occur, and which those are.

    The neighbour may be the secret itself: its own report.
    """
    check_fit(belief.schema[neighbour], channel)
    if secret == neighbour:
        possible = np.flatnonzero(belief.prior(secret) > 0)
        values = np.eye(belief.schema[secret].size)[possible]
    else:
        values, possible = conditional_rows(belief, secret, neighbour)
    return report_rows(values, neighbour, channel), possible
