"""Leakage as an experiment measures it: replicate the records, perturb them, count, take the largest ratio.

CPL, section III. Every record is reported `replicates` times; the probabilities of what the adversary sees
given the secret are estimated from counts. Reports are independent given the values, so the counts of what is
seen are drawn directly: the reports of n equal values are one multinomial draw, which has the same law as
perturbing them one by one. Significance is judged against surrogates in which what is seen is permuted:
tables with the same margins.

Cells that are never seen make ratios infinite. They are counted and reported, never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.leakage.bounds import Bound

Array = NDArray[np.float64]
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True)
class StatisticalLeakage:
    """What an experiment shows.

    Attributes:
        secret: the attribute it is about.
        through: the attributes whose reports were seen.
        value: the estimate; infinite if a cell that another secret value fills was never seen.
        finite: the largest ratio over the columns that all secret values fill.
        infinite_columns: how many things were seen under some secret values and never under others.
        empty_columns: how many were never seen at all.
        replicates: how often each record was reported.
        p_value: the share of surrogates that reach the estimate (None without surrogates).
        surrogate: the 95 % quantile of the surrogates' estimates (None without surrogates).
    """

    secret: str
    through: tuple[str, ...]
    value: float
    finite: float
    infinite_columns: int
    empty_columns: int
    replicates: int
    p_value: float | None = None
    surrogate: float | None = None

    @property
    def bound(self) -> Bound:
        """The figure as a Bound of kind "estimate"."""
        return Bound(self.value, "estimate", f"{self.replicates} replicates")


def statistical_leakage(
    belief: Belief,
    views: Mapping[str, ArrayLike],
    secret: str,
    *,
    replicates: int = 50,
    surrogates: int = 0,
    seed: int | None = None,
) -> StatisticalLeakage:
    """Estimate the leakage of the secret through what is seen of some attributes, by simulation.

    Args:
        belief: a belief from data; its records are what is replicated.
        views: for each attribute that is seen, Pr(seen | value), shape (values, things seen): a channel's
            matrix for the whole report, a mechanism's guess matrix for an adversary who keeps one guess.
        secret: the attribute in question.
        replicates: how often each record is reported.
        surrogates: how many permuted tables to compare with.
        seed: for a simulation that can be repeated.
    """
    check_belief("belief", belief)
    check_whole("replicates", replicates, at_least=1)
    check_whole("surrogates", surrogates, at_least=0)
    if secret in views:
        raise InputError(
            f"the secret {secret!r} must not be among what is seen; its own report is its budget."
        )
    if belief.sample_size is None:
        raise InputError("a statistical estimate replicates records; the belief was given by hand.")
    rng = np.random.default_rng(seed)
    names = list(views)
    seen = _observe(
        belief, secret, {name: _checked(belief, name, views[name]) for name in names}, replicates, rng
    )
    possible = seen[seen.sum(axis=1) > 0]
    value, finite, infinite, empty = _largest(possible[None])
    result = StatisticalLeakage(
        secret, tuple(names), float(value[0]), float(finite[0]), int(infinite[0]), int(empty[0]), replicates
    )
    return _with_surrogates(result, possible, surrogates, rng) if surrogates else result


def _checked(belief: Belief, name: str, view: ArrayLike) -> Array:
    cells = np.asarray(view, dtype=np.float64)
    size = belief.schema[name].size
    if cells.ndim != 2 or len(cells) != size:
        raise invalid(f"view of {name}", f"a matrix with {size} rows", cells.shape)
    if not cells.size or not np.isfinite(cells).all() or cells.min() < 0:
        raise InputError(f"the view of {name!r} must have rows of probabilities.")
    if np.abs(cells.sum(axis=1) - 1).max() > 1e-9:
        raise InputError(f"the view of {name!r} must have rows that sum to 1.")
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))


def _observe(
    belief: Belief, secret: str, views: Mapping[str, Array], replicates: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return how often each combination was seen under each secret value, shape (m, combinations)."""
    names = list(views)
    inputs = math.prod(len(view) for view in views.values()) * belief.schema[secret].size
    outputs = math.prod(view.shape[1] for view in views.values()) * belief.schema[secret].size
    if max(inputs, outputs) > _LARGEST_TABLE:
        raise TooLargeError(
            f"the table of {len(names)} attributes has more than {_LARGEST_TABLE} cells; "
            "look at fewer attributes."
        )
    shares = belief.joint([secret, *names])
    counts = np.rint(shares * belief.weight).astype(np.int64) * replicates
    for axis, name in enumerate(names, start=1):
        moved = np.moveaxis(counts, axis, -1)
        drawn = rng.multinomial(moved, views[name]).sum(axis=-2)
        counts = np.moveaxis(drawn, -1, axis)
    return counts.reshape(len(counts), -1)


def _largest(tables: NDArray[np.int64]) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.intp]]:
    """Return the largest log-ratio of stacked tables (n, m, seen), with and without infinite columns.

    Also return how many columns are infinite and how many empty.
    """
    rows = tables / tables.sum(axis=2, keepdims=True)
    high, low = rows.max(axis=1), rows.min(axis=1)
    empty, infinite = high == 0, (low == 0) & (high > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(empty, 0.0, np.log(high) - np.log(low))
    finite = np.where(infinite, 0.0, logs).max(axis=1, initial=0.0)
    return logs.max(axis=1, initial=0.0), finite, infinite.sum(axis=1), empty.sum(axis=1)


def _with_surrogates(
    result: StatisticalLeakage, seen: NDArray[np.int64], surrogates: int, rng: np.random.Generator
) -> StatisticalLeakage:
    """Compare with tables in which what is seen is permuted against the secret: both margins stay."""
    from scipy.stats import random_table

    used = seen[:, seen.sum(axis=0) > 0]
    law = random_table(used.sum(axis=1), used.sum(axis=0), seed=rng)
    values = []
    batch = max(1, _LARGEST_TABLE // used.size)
    for start in range(0, surrogates, batch):
        tables = law.rvs(size=min(batch, surrogates - start), method="patefield")
        values.append(_largest(np.rint(tables).astype(np.int64))[0])
    reached = np.concatenate(values)
    p_value = (1 + int(np.count_nonzero(reached >= result.value))) / (1 + surrogates)
    fields = vars(result) | {
        "p_value": p_value,
        "surrogate": float(np.quantile(reached, 0.95, method="higher")),
    }
    return StatisticalLeakage(**fields)
