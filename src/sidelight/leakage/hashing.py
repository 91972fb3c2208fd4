"""Leakage through local hashing, from the sets of values that its hash functions really put together.

A report favours the values of one bucket of one hash function. The generic bound assumes that every set is
such a bucket, which holds for the family of all functions; a concrete family realises fewer sets. Whatever
sets the drawn seeds realise are witnesses: they give a lower end, and where it meets the generic bound the
figure is exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Mask
from sidelight.foundation.errors import check_is, check_whole
from sidelight.foundation.randomness import randomness
from sidelight.leakage.bounds import Bound, Claim, Leakage
from sidelight.leakage.pair import conditional_rows, pair_leakage
from sidelight.leakage.witnesses import witnessed
from sidelight.mechanisms.hashing import Hashing

_CELLS = 1 << 22


def hashing_leakage(
    belief: Belief, mechanism: Hashing, secret: str, neighbour: str, *, seeds: int = 1 << 14
) -> Leakage:
    """Return the leakage through a hashed report: certified above, and reached below by buckets that exist.

    `seeds` says how many hash functions to look at.
    """
    check_belief("belief", belief)
    check_is("mechanism", mechanism, Hashing, "create('olh', size, epsilon) makes one.")
    count = check_whole("seeds", seeds, at_least=1)
    upper = pair_leakage(belief, mechanism.channel, secret, neighbour).upper
    rows, possible = conditional_rows(belief, secret, neighbour)
    baseline = float(1 / mechanism.factor)
    best = Bound(0.0, "lower", f"buckets of {count} hash functions")
    for masks in bucket_sets(mechanism, count):
        columns = baseline + (1 - baseline) * (rows @ masks.T)
        spans = np.log(columns.max(axis=0)) - np.log(columns.min(axis=0))
        report = int(spans.argmax())
        if spans[report] > best.value:
            pair = int(possible[columns[:, report].argmax()]), int(possible[columns[:, report].argmin()])
            favoured = np.flatnonzero(masks[report])
            reached = replace(best, value=float(spans[report]))
            channels = {neighbour: mechanism.channel}
            best = witnessed(reached, belief, channels, secret, pair, {neighbour: favoured})
    if best.value >= upper.value - 1e-12:
        kind: Claim = "model" if belief.is_model else "exact"
        return Leakage.exactly(secret, (neighbour,), replace(best, value=upper.value, kind=kind))
    return Leakage(secret, (neighbour,), best, upper)


def bucket_sets(mechanism: Hashing, count: int) -> list[Mask]:
    """Return the sets of values that share a bucket under `count` seeds, in batches of shape (sets, size)."""
    drawn = randomness(0, "buckets").words(0, count)
    some = max(1, _CELLS // (mechanism.size * mechanism.buckets))
    batches = []
    for start in range(0, count, some):
        seeds = drawn[start : start + some]
        codes = np.tile(np.arange(mechanism.size), len(seeds))
        hashed = mechanism.hashed(codes, np.repeat(seeds, mechanism.size)).reshape(len(seeds), mechanism.size)
        masks = hashed[:, None, :] == np.arange(mechanism.buckets)[:, None]
        packed = np.packbits(masks.reshape(-1, mechanism.size), axis=1)
        _, first = np.unique(packed, axis=0, return_index=True)
        batches.append(masks.reshape(-1, mechanism.size)[first])
    return batches
