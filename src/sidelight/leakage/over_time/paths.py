"""The exact law of all reports of a chain, by listing every path and every sequence of reports.

It is the truth that bounds are held against, and the figure itself where chains are short and small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.leakage.over_time.chain import Chain
from sidelight.mechanisms.longitudinal import has_own_memos, memory_steps, steps_law
from sidelight.plan import Release

_LARGEST_LISTED = 1 << 21
_MOST_PATHS = 1 << 12


def path_rows(chain: Chain, releases: Mapping[str, Release], secret: str, time: int) -> Array | None:
    """Return Pr(all reports | secret's value in a round), a row for each value that can occur.

    Each attribute is reported in the rounds 1 to its `times`; equal values share a memo where it is kept.
    None where there are too many paths or reports to list.
    """
    times = max(release.times for release in releases.values())
    if not 1 <= time <= times or chain.states**times > _MOST_PATHS:
        return None
    laws, cells = {}, float(chain.schema[secret].size)
    for name, release in releases.items():
        steps = _steps(release)
        if steps is None:
            return None
        laws[name] = steps
        sequences, reports = chain.schema[name].size ** times, steps[1].shape[1] ** release.times
        cells *= max(sequences, reports)
        if max(cells, float(sequences) * reports) > _LARGEST_LISTED:
            return None
    table = _path_table(chain, list(releases), secret, time, times)
    for name, release in releases.items():  # the first of the sequences' axes goes, its reports come last
        size = chain.schema[name].size
        table = np.tensordot(table, _sequence_laws(size, times, release, *laws[name]), axes=(1, 0))
    rows = table.reshape(len(table), -1)
    mass = rows.sum(axis=1, keepdims=True)
    return np.asarray((rows / np.where(mass > 0, mass, 1))[mass[:, 0] > 0])


def _steps(release: Release) -> tuple[Array, Array] | None:
    """Return `memory_steps`; None where memos of different values depend on each other."""
    mechanism = release.randomiser()
    if release.keeps and not has_own_memos(mechanism):
        return None
    return memory_steps(mechanism, kept=release.keeps)


def _path_table(chain: Chain, names: list[str], secret: str, time: int, times: int) -> Array:
    """Return Pr(secret's value in the round, each attribute's sequence), one axis for each."""
    paths = np.array(list(product(range(chain.states), repeat=times)))
    weights = chain.start[paths[:, 0]]
    for t in range(1, times):
        weights = weights * chain.transition[paths[:, t - 1], paths[:, t]]
    values = {name: chain.values_of(chain.schema.index(name)) for name in {*names, secret}}
    axes = [values[secret][paths[:, time - 1]]]
    for name in names:
        sizes = (chain.schema[name].size,) * times
        axes.append(np.ravel_multi_index(tuple(values[name][paths].T), sizes))
    shape = (chain.schema[secret].size, *(chain.schema[name].size ** times for name in names))
    flat = np.bincount(np.ravel_multi_index(tuple(axes), shape), weights, minlength=math.prod(shape))
    return flat.reshape(shape)


def _sequence_laws(size: int, times: int, release: Release, permanent: Array, fresh: Array) -> Array:
    """Return Pr(all reports | sequence), a row for each sequence of values."""
    rows = []
    for sequence in product(range(size), repeat=times):
        codes = np.array(sequence[: release.times])
        # With fresh noise every round has a draw of its own, as if each were of another subject.
        subjects = codes if release.keeps else np.arange(len(codes))
        rows.append(steps_law(permanent, fresh, codes, subjects).reshape(-1))
    return np.array(rows)
