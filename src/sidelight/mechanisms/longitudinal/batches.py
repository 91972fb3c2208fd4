"""A person's reports in two steps: what stays the same between them, and what is drawn anew for each.

With a memory the memo stays; where nothing is added, the report itself; with fresh noise the value alone.
"""

from __future__ import annotations

import math

import numpy as np

from sidelight.foundation.arrays import Array, Positions, Words
from sidelight.foundation.errors import TooLargeError
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.longitudinal.oracle import Longitudinal, Remembers
from sidelight.mechanisms.longitudinal.response import LongitudinalHashing, LongitudinalResponse
from sidelight.mechanisms.longitudinal.sequences import listed_steps
from sidelight.mechanisms.mechanism import Mechanism

_MOST_LISTED = 1 << 10
_MOST_COMPARED = 1 << 16


def instant_budget(mechanism: Mechanism, *, kept: bool) -> float:
    """Return what one report says about what stays: of a memo that is sent as it is, everything."""
    if not kept:
        return mechanism.epsilon
    return mechanism.epsilon_instant if isinstance(mechanism, Remembers) else math.inf


def unlimited_budget(mechanism: Mechanism, *, kept: bool) -> float:
    """Return what unlimited reports of one value spend."""
    if not kept:
        return math.inf if mechanism.epsilon else 0.0
    return mechanism.epsilon_unlimited if isinstance(mechanism, Remembers) else mechanism.epsilon


def seen_changes(mechanism: Mechanism, *, kept: bool) -> float | None:
    """Return how likely a change of the value shows in the memory: at most, between any two values.

    None where nothing is kept, or where responses cannot be listed.
    """
    if not kept:
        return None
    if isinstance(mechanism, Remembers):
        return mechanism.change_seen
    same = same_memos(mechanism, kept=True)
    return float(1 - same.min()) if same.any() else None


def memory_steps(mechanism: Mechanism, *, kept: bool) -> tuple[Array, Array] | None:
    """Return Pr(what stays | value), (size, memos), and Pr(report | what stays), (memos, reports).

    None where they are too many to list, as public seeds are.
    """
    if kept and isinstance(mechanism, Longitudinal):
        try:
            return None if isinstance(mechanism, LongitudinalHashing) else listed_steps(mechanism)
        except TooLargeError:
            return None
    law = mechanism.report_law(_MOST_LISTED) if mechanism.makes_reports else None
    if law is None:
        return None
    return (law, np.eye(law.shape[1])) if kept else (np.eye(len(law)), law)


def bucket_steps(mechanism: Mechanism, seeds: Words) -> tuple[Array, Array, Positions] | None:
    """Return the steps from a bucket to its memo and to a report, and every value's bucket under each seed.

    None where memos are not of a bucket of a public hash, to which noise is added.
    """
    if not isinstance(mechanism, LongitudinalHashing):
        return None
    same = np.eye(mechanism.cells, dtype=np.bool_)
    rates = (mechanism.cell_response.mark_rates, mechanism.instant_rates)
    permanent, fresh = (np.where(same, float(kept), float(made)) for kept, made in rates)
    return permanent, fresh, mechanism.buckets_of_all(seeds)


def has_own_memos(mechanism: Mechanism) -> bool:
    """Whether the memos of a device's values have nothing in common, as public seeds or positions are."""
    kept_as = mechanism.stored if isinstance(mechanism, Longitudinal) else mechanism
    return not (isinstance(kept_as, Kept) and kept_as.shared_words)


def same_memos(mechanism: Mechanism, *, kept: bool) -> Array:
    """Return how likely two people's memos are the same, by their values, (size, size); 0 if not known."""
    size = mechanism.size
    if not kept:
        return np.eye(size)
    if isinstance(mechanism, LongitudinalHashing):  # each device has a seed of its own
        return np.zeros((size, size))
    if isinstance(mechanism, Longitudinal) and not isinstance(mechanism, LongitudinalResponse):
        p, q = map(float, mechanism.permanent_rates)
        true, mixed, other = (a * b + (1 - a) * (1 - b) for a, b in ((p, p), (p, q), (q, q)))
        apart = mixed**2 * other ** (size - 2)
        return np.where(np.eye(size, dtype=np.bool_), true * other ** (size - 1), apart)
    kept_as = mechanism.stored if isinstance(mechanism, Longitudinal) else mechanism
    law = kept_as.report_law(_MOST_COMPARED) if kept_as.makes_reports else None
    return np.zeros((size, size)) if law is None else law @ law.T


def kept_oracle(mechanism: Mechanism, *, kept: bool) -> Longitudinal | None:
    """Return the oracle if it adds noise to a memo whose batches can be drawn and weighed, else None."""
    if not kept or isinstance(mechanism, LongitudinalHashing):
        return None
    return mechanism if isinstance(mechanism, Longitudinal) else None
