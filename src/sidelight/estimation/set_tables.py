"""Unbiased tables of two or more attributes from reports of sets, and how they are made to agree.

Every set that was reported says something about each table of its attributes; what several say is averaged by
precision. A report's noise is alike in all cells but for their frequencies, so weighted least squares has a
closed form: marginals are averaged by precision, and the tables moved evenly to the averages (Qardaji, Yang,
Li 2014, where weights are those of least squares too).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sidelight.estimation.unbiased import About, Every, Unbiased
from sidelight.foundation.arrays import Array, to_simplex
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Aggregate
from sidelight.protocols.groups import ReportedGroup, marginal, table_moments
from sidelight.protocols.protocol import domain_size
from sidelight.protocols.records import RecordSums
from sidelight.protocols.sets import all_pairs
from sidelight.schema import Schema

Names = tuple[str, ...]
Margins = Mapping[tuple[int, ...], Array]
"""What a table must have, by axes."""
_STALLED, _PATIENCE = 0.999, 5
"""Fitting ends once so many rounds in a row bring margins no nearer than this, times what they were."""
LARGEST_SET = 4096
"""A table has at most so many cells."""


@dataclass(frozen=True, eq=False)
class SetTable:
    """The unbiased estimate of one table, its cells in C order, with the law of its error.

    Attributes:
        names: of the attributes, in the schema's order.
        sizes: how many values each has.
        cells: the estimate; None where nobody reported these attributes together.
        adds_up: whether the estimate adds up to 1 by itself.
    """

    names: Names
    sizes: tuple[int, ...]
    cells: Unbiased | None
    adds_up: bool = True

    @property
    def reports(self) -> int:
        """How many reports it rests on."""
        return 0 if self.cells is None else self.cells.reports


def check_sets(schema: Schema, sets: Sequence[Sequence[str]] | None) -> list[Names]:
    """Return sets of attributes in the schema's order, all pairs by default, after checking them."""
    if sets is None:
        sets = all_pairs(schema) if len(schema) > 1 else []
    checked: dict[Names, None] = {}
    for given in sets:
        if isinstance(given, str):
            raise InputError(f"a set must be a list of attributes, got {given!r}; write [{given!r}, ...].")
        if len(set(given)) < max(len(given), 2):
            raise InputError(f"a set must name two or more different attributes, got {list(given)}.")
        ordered = tuple(sorted(given, key=schema.index))
        cells = domain_size([schema[name].size for name in ordered])
        if cells > LARGEST_SET:
            raise InputError(f"the table of {', '.join(ordered)} has {cells} cells, more than {LARGEST_SET}.")
        checked[ordered] = None
    if not checked:
        raise InputError(f"tables need two attributes, and the schema has {len(schema)}.")
    return list(checked)


def set_tables(parts: Sequence[RecordSums], sets: Sequence[Names], about: About) -> dict[Names, SetTable]:
    """Return the unbiased estimate of each table from all reports of sets that hold its attributes."""
    schema = parts[0].protocol.schema
    people = sum(part.people for part in parts)
    found: dict[Names, list[Unbiased]] = {names: [] for names in sets}
    not_adding: set[Names] = set()
    counts = sorted({len(names) for names in sets})
    for part in parts:
        for group, sums in zip(part.protocol.groups, part.parts, strict=True):
            ordered = sorted(group.names, key=schema.index) if sums.reports else []
            inside = (names for count in counts for names in combinations(ordered, count))
            for names in (each for each in inside if each in found):
                found[names].append(_one(group, sums, names))
                if not group.randomiser.adds_up:
                    not_adding.add(names)
    tables = {}
    for names, several in found.items():
        cells = averaged(several) if several else None
        if cells is not None and about == "collected":
            cells = replace(cells, slope=cells.slope - 1 / people, curve=cells.curve + 1 / people)
        sizes = tuple(schema[name].size for name in names)
        tables[names] = SetTable(names, sizes, cells, names not in not_adding)
    return tables


def _one(group: ReportedGroup, sums: Aggregate, names: Names) -> Unbiased:
    """Return what the reports of one group say about the cells of some of its attributes."""
    joint = group.estimate(sums)
    kept = [group.names.index(name) for name in names]
    summed = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in kept))
    estimate = np.asarray(summed.transpose(np.argsort(np.argsort(kept))).reshape(-1))
    none, full = (np.full_like(estimate, square) for square in table_moments(group, names))
    square = np.full_like(estimate, -1 / sums.reports)
    return Unbiased(estimate, none / sums.reports, (full - none) / sums.reports, square, sums.reports)


def averaged(items: Sequence[Unbiased]) -> Unbiased:
    """Return unbiased estimates of the same cells averaged by 1/variance, that of evenly likely cells."""
    even = np.full_like(items[0].estimate, 1 / len(items[0].estimate))
    # One weight for all cells of an estimate, and none that depends on it: else the average would be biased.
    precision = [1 / max(float(item.variance(even).sum()), 1e-300) for item in items]
    weights = [each / sum(precision) for each in precision]

    def sums(power: int, columns: Sequence[Array]) -> Array:
        return np.asarray(sum(w**power * column for w, column in zip(weights, columns, strict=True)))

    return Unbiased(
        sums(1, [item.estimate for item in items]), sums(2, [item.constant for item in items]),
        sums(2, [item.slope for item in items]), sums(2, [item.curve for item in items]),
        sum(item.reports for item in items),
    )  # fmt: skip


def outer(marginals: Sequence[Array]) -> Array:
    """Return the product of marginals, flat, in C order."""
    cells = np.ones(1)
    for share in marginals:
        cells = (cells[:, None] * share).reshape(-1)
    return cells


def consistent(table: SetTable, marginals: Every) -> tuple[Array, Array]:
    """Return the table that agrees with unbiased marginals, flat, and the variances of its cells.

    Of a table whose noise is alike in all cells, the marginals and the rest are independent. The rest stays;
    the marginals are replaced by the given ones, which are better, each spread evenly over its cells. The
    variances hold for noise that differs between cells too.
    """
    shares = [marginals[name] for name in table.names]
    near = [to_simplex(share.estimate) for share in shares]
    spread = [share.variance(share_near) for share, share_near in zip(shares, near, strict=True)]
    whole = domain_size(table.sizes)
    if table.cells is None:
        return outer(near), _product_variance(near, spread)
    cells = to_simplex(table.cells.estimate)
    joint = table.cells.estimate.reshape(table.sizes)
    joint = joint + (1 - joint.sum()) / whole
    kept, added = [], np.zeros(table.sizes)
    for axis, (share, noise, size) in enumerate(zip(shares, spread, table.sizes, strict=True)):
        shape = [size if i == axis else 1 for i in range(joint.ndim)]
        wanted = share.estimate + (1 - share.estimate.sum()) / size
        joint = joint + (wanted - marginal(joint, axis)).reshape(shape) * size / whole
        # Its own marginal is one of those that were averaged, by its precision.
        own = _own_marginal(table, cells, axis)
        part = min(float(noise.sum() / max(own.sum(), 1e-300)), 1.0)
        added = added + np.maximum(noise - part**2 * own, 0.0).reshape(shape) * (size / whole) ** 2
        kept.append(part)
    return joint.reshape(-1), (left_variance(table, cells, kept) + added).reshape(-1)


def left_variance(table: SetTable, near: Array, kept: Sequence[float]) -> Array:
    """Return the variances of a table's cells where its marginals keep such shares of their own noise.

    What is left of the noise is K noise, K = I - J + sum over axes of (kept - 1) (mean over the others - J),
    J the mean over all cells. Its covariance is diag(d) + c near near' but for what K takes out.
    """
    if table.cells is None:
        return np.zeros(table.sizes)
    alone, shares = _alone(table, near).reshape(table.sizes), near.reshape(table.sizes)
    axes = range(alone.ndim)
    gains = [(part - 1) * size / alone.size for part, size in zip(kept, table.sizes, strict=True)]
    rest = -(1 + sum(kept) - len(kept)) / alone.size
    squares = rest**2 * alone.sum() + (1 + 2 * sum(gains) + 2 * rest) * alone
    moved = shares + rest
    for a in axes:
        moved = moved + gains[a] * _summed(shares, (a,))
        squares = squares + (gains[a] ** 2 + 2 * rest * gains[a]) * _summed(alone, (a,))
        for b in range(a):
            squares = squares + 2 * gains[a] * gains[b] * _summed(alone, (a, b))
    curve = table.cells.curve.reshape(table.sizes)
    return np.asarray(np.maximum(squares + curve * moved**2, 0.0))


def _summed(cells: Array, kept: tuple[int, ...]) -> Array:
    others = tuple(axis for axis in range(cells.ndim) if axis not in kept)
    return np.asarray(cells.sum(axis=others, keepdims=True))


def _own_marginal(table: SetTable, near: Array, axis: int) -> Array:
    """Return the variances of a table's own marginal of one axis, once the table adds up to 1."""
    alone = marginal(_alone(table, near).reshape(table.sizes), axis)
    share = marginal(near.reshape(table.sizes), axis)
    part = 1 / share.size
    curve = float(table.cells.curve[0]) if table.cells is not None else 0.0
    spread = alone * (1 - 2 * part) + part**2 * alone.sum() + curve * (share - part) ** 2
    return np.asarray(np.maximum(spread, 0.0))


def _alone(table: SetTable, near: Array) -> Array:
    """Return each cell's noise that it shares with no other.

    Of estimates that add up by themselves, as those of sets do, the noise of two cells has a covariance
    u + (v - u)(f + g), of cells with frequencies f and g; each row of the covariance adds up to 0.
    """
    if table.cells is None:
        return np.zeros_like(near)
    none, slope, curve = table.cells.constant, table.cells.slope, table.cells.curve
    if not table.adds_up or near.size < 3:
        return np.asarray(none + slope * near)
    beside = (-curve - none - slope) / (near.size - 1)
    apart = -(none + beside) / (near.size - 2)
    return np.asarray(none - apart + (slope - 2 * (beside - apart)) * near)


def _product_variance(near: Sequence[Array], spread: Sequence[Array]) -> Array:
    """Return the variance of a product of independent estimates, to the first order."""
    total = np.zeros(math.prod(len(share) for share in near))
    for place, noise in enumerate(spread):
        total += outer([noise if i == place else share**2 for i, share in enumerate(near)])
    return total


def fitted(table: Array, margins: Margins, rounds: int = 200, near: float = 1e-9) -> Array:
    """Return the table scaled until it has the given margins, by axes (iterative proportional fitting).

    Of all with these margins it is the nearest in relative entropy (Csiszar 1975); where none has them all,
    as near as so many rounds come, or as it comes before it moves no more.
    """
    joint = np.maximum(table, 1e-15).reshape(-1)
    joint = joint / joint.sum()
    merged = [(*_merged(table.shape, axes), wanted) for axes, wanted in margins.items()]
    nearest, stalled = math.inf, 0
    for _ in range(rounds):
        away = 0.0
        for shape, others, wanted in merged:
            cells = joint.reshape(shape)
            have = cells.sum(axis=others, keepdims=True)
            want = wanted.reshape(have.shape)
            away = max(away, float(np.abs(have - want).max()))
            joint = (cells * (want / np.maximum(have, 1e-300))).reshape(-1)
        stalled = stalled + 1 if away > nearest * _STALLED else 0
        if away < near or stalled == _PATIENCE:
            break
        nearest = min(nearest, away)
    return np.asarray(joint / joint.sum()).reshape(table.shape)


def _merged(sizes: Sequence[int], kept: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape in which neighbouring axes that are summed over are one, and those axes.

    A sum over one long axis is many times faster than one over ten short ones.
    """
    shape: list[int] = []
    others: list[int] = []
    for axis, size in enumerate(sizes):
        if axis not in kept and others and others[-1] == len(shape) - 1:
            shape[-1] *= size
            continue
        if axis not in kept:
            others.append(len(shape))
        shape.append(size)
    return tuple(shape), tuple(others)


def raked(tables: Array, first: Array, second: Array, rounds: int = 200, near: float = 1e-9) -> Array:
    """Return several tables of one pair, (tables, rows, columns), each scaled to these marginals."""
    cells = np.maximum(tables, 1e-15)
    for _ in range(rounds):
        have = cells.sum(axis=2, keepdims=True)
        away = float(np.abs(have[:, :, 0] - first).max())
        cells = cells * (first[:, None] / np.maximum(have, 1e-300))
        cells = cells * (second / np.maximum(cells.sum(axis=1, keepdims=True), 1e-300))
        if away < near:
            break
    return np.asarray(cells / cells.sum(axis=(1, 2), keepdims=True))
