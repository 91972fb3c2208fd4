"""Leakage as an experiment measures it: replicate the records, perturb them, count, take the largest ratio.

CPL, section III. Every record is reported `replicates` times; the probabilities of what the adversary sees
given the secret are estimated from counts. Reports are independent given the values, so the counts of what is
seen are drawn directly: the reports of n equal values are one multinomial draw, which has the same law as
perturbing them one by one.

Significance is judged against surrogates, and there are two questions. About the *table*: could reports that
say nothing of its records' secrets look like that? What is seen is permuted (CPL's surrogates). With many
replicates even a chance correlation of the records is significant, since the table does have it. About the
*population*: could records drawn from a population without any correlation look like that? The secret is
permuted among the records before they are reported, so that p is uniform where the population has none.

Cells that are never seen make ratios infinite. They are counted and reported, never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief import Belief, check_belief
from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.errors import InputError, TooLargeError, check_whole, invalid
from sidelight.leakage.bounds import Bound
from sidelight.mechanisms.channel.logs import log_ratios

_LARGEST_TABLE = 1 << 22
_LARGEST_BATCH = 1 << 18
"""So many cells of surrogates are drawn at a time; what a report may be multiplies them on the way."""


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
        table_p_value: the share of tables that reach the estimate when what is seen is permuted: whether
            these records leak (None without surrogates).
        table_surrogate: the 95 % quantile of those tables' estimates.
        population_p_value: the share of tables that reach the estimate when the secret is permuted among the
            records: whether the population that they were drawn from leaks.
        population_surrogate: the 95 % quantile of those tables' estimates.
    """

    secret: str
    through: tuple[str, ...]
    value: float
    finite: float
    infinite_columns: int
    empty_columns: int
    replicates: int
    table_p_value: float | None = None
    table_surrogate: float | None = None
    population_p_value: float | None = None
    population_surrogate: float | None = None

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
        surrogates: how many permuted tables to compare with, for each of the two p-values.
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
    laws = {name: _checked(belief, name, view) for name, view in views.items()}
    records = _records(belief, secret, laws)

    def observed(tables: Whole) -> Whole:
        return _observed(tables * replicates, laws, rng)

    seen = observed(records[None])
    value, finite, infinite, empty = (part[0].item() for part in _largest(seen))
    result = StatisticalLeakage(secret, tuple(laws), value, finite, infinite, empty, replicates)
    if not surrogates:
        return result
    p, quantile = _judge(value, _surrogates(seen[0], lambda tables: tables, surrogates, rng))
    result = replace(result, table_p_value=p, table_surrogate=quantile)
    p, quantile = _judge(value, _surrogates(records, observed, surrogates, rng))
    return replace(result, population_p_value=p, population_surrogate=quantile)


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


def _records(belief: Belief, secret: str, views: Mapping[str, Array]) -> Whole:
    """Return how many records have each combination, shape (secret values that occur, values, values ...)."""
    size = belief.schema[secret].size
    inputs = math.prod(len(view) for view in views.values()) * size
    outputs = math.prod(view.shape[1] for view in views.values()) * size
    if max(inputs, outputs) > _LARGEST_TABLE:
        many = f"the table of {len(views)} attributes has more than {_LARGEST_TABLE} cells"
        raise TooLargeError(f"{many}; look at fewer attributes.")
    counts = np.rint(belief.joint([secret, *views]) * belief.weight).astype(np.int64)
    return np.asarray(counts[counts.reshape(size, -1).sum(axis=1) > 0])


def _observed(tables: Whole, views: Mapping[str, Array], rng: np.random.Generator) -> Whole:
    """Return how often each combination is seen under each secret value, shape (tables, m, combinations)."""
    for axis, view in enumerate(views.values(), start=2):
        moved = np.moveaxis(tables, axis, -1)
        drawn = rng.multinomial(moved, view).sum(axis=-2)
        tables = np.moveaxis(drawn, -1, axis)
    return tables.reshape(*tables.shape[:2], -1)


def _largest(tables: Whole) -> tuple[Array, Array, Positions, Positions]:
    """Return the largest log-ratio of stacked tables (n, m, seen), with and without infinite columns.

    Also return how many columns are infinite and how many empty.
    """
    rows = tables / tables.sum(axis=2, keepdims=True)
    high, low = rows.max(axis=1), rows.min(axis=1)
    empty, infinite = high == 0, (low == 0) & (high > 0)
    logs = log_ratios(high, low)
    finite = np.where(infinite, 0.0, logs).max(axis=1, initial=0.0)
    return logs.max(axis=1, initial=0.0), finite, infinite.sum(axis=1), empty.sum(axis=1)


def _surrogates(
    table: Whole, observed: Callable[[Whole], Whole], count: int, rng: np.random.Generator
) -> Array:
    """Return the estimates from tables with the secret permuted against the rest: both margins stay."""
    from scipy.stats import random_table

    flat = table.reshape(len(table), -1)
    used = flat.sum(axis=0) > 0
    law = random_table(flat.sum(axis=1), flat[:, used].sum(axis=0), seed=rng)
    values = []
    batch = max(1, _LARGEST_BATCH // flat.size)
    for start in range(0, count, batch):
        tables = np.zeros((min(batch, count - start), *flat.shape), dtype=np.int64)
        tables[:, :, used] = np.rint(law.rvs(size=len(tables), method="patefield"))
        values.append(_largest(observed(tables.reshape(-1, *table.shape)))[0])
    return np.concatenate(values)


def _judge(value: float, surrogates: Array) -> tuple[float, float]:
    """Return the p-value of an estimate, and the 95 % quantile of its surrogates.

    The real table counts among those that reach its estimate, so that p is never 0.
    """
    p_value = (1 + int(np.count_nonzero(surrogates >= value))) / (1 + len(surrogates))
    return p_value, float(np.quantile(surrogates, 0.95, method="higher"))
