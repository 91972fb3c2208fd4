"""The exact leakage to one adversary, from the list of all possible records.

The answer's density, in logarithms so that no tail is lost, is a mixture of Laplace densities, one at each
possible sum. Between two neighbouring sums the ratio of two such mixtures is (a z + b) / (c z + d) with
z = e^(2r/lambda), which is monotone, and beyond the outermost sums it is constant: the largest ratio is
reached at one of the sums. The same holds for each coordinate of a vector, so there the grid of all
coordinates' values is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sidelight.foundation.arrays import Array, Positions, Whole
from sidelight.foundation.errors import TooLargeError
from sidelight.knowledge.adversary import Adversary
from sidelight.knowledge.cells import Cells
from sidelight.knowledge.query import Query, common_step
from sidelight.leakage.bounds import Bound, Witness
from sidelight.sources.counts import distinct_rows

LARGEST_LAWS = 1 << 24
_CHUNK = 1 << 21  # 16 MiB of doubles
_WHOLE = 1e-6
METHOD = "exact at the breakpoints"


@dataclass(frozen=True)
class Spread:
    """The largest log-ratio within a group of laws, its two rows, and the place on the (flattened) grid."""

    value: float
    likelier: int
    unlikelier: int
    point: int


def smooth(masses: Array, places: Array, axis: int = -1) -> Array:
    """Return the log-densities at the places of the masses, up to a common constant.

    Masses are ln of the probabilities of each place along `axis`; places increase, in units of the scale.
    """
    rows = np.moveaxis(masses, axis, -1)
    # What lies before a place decays towards it from the left, what lies after it from the right; a mass at
    # the place itself is counted once, with what lies before.
    before = np.logaddexp.accumulate(rows + places, axis=-1) - places
    after = np.full_like(before, -np.inf)
    reached = np.logaddexp.accumulate((rows - places)[..., ::-1], axis=-1)[..., ::-1]
    after[..., :-1] = reached[..., 1:] + places[:-1]
    return np.moveaxis(np.logaddexp(before, after), -1, axis)


def normalised(masses: Array) -> Array:
    """Return each row of log-masses as a law, rows without mass unchanged; the first axis counts rows."""
    flat = masses.reshape(len(masses), -1)
    total = np.logaddexp.reduce(flat, axis=1)
    usable = np.where(np.isfinite(total), total, 0.0)  # -inf - -inf would be no number
    return np.asarray((flat - usable[:, None]).reshape(masses.shape))


def widest(densities: Array, starts: Positions) -> Spread:
    """Return the largest log-ratio between two rows of one group, from log-densities (rows, points).

    Groups are contiguous, `starts` is the first row of each.
    """
    gaps = np.maximum.reduceat(densities, starts) - np.minimum.reduceat(densities, starts)
    group, point = divmod(int(gaps.argmax()), gaps.shape[1])
    stop = starts[group + 1] if group + 1 < len(starts) else len(densities)
    first, value = int(starts[group]), float(gaps[group, point])
    column = densities[first:stop, point]
    if math.isnan(value):
        raise ArithmeticError("the laws of the answer have no ratio at some point")
    return Spread(max(0.0, value), first + int(column.argmax()), first + int(column.argmin()), point)


@dataclass(frozen=True, eq=False)
class _Laws:
    """What each record answers, and which records the adversary cannot tell apart.

    Attributes:
        answers: (records, d), in whole steps (each so many scales of noise), without what is known.
        rows: each record's number among the distinct (known values, target value).
        starts: the first row of each group of equal known values; rows are sorted by group.
        first: a record of each row.
    """

    answers: Whole
    step: float
    rows: Positions
    starts: Positions
    first: Positions
    weights: Array


def exact_leakage(cells: Cells, query: Query, adversary: Adversary) -> Bound:
    """Return the exact leakage to an adversary: the largest over answers and known values (PDP, eq. (2))."""
    laws = _laws(cells, query, adversary)
    if not len(laws.starts):
        return Bound(0.0, cells.claim, "what is known leaves only one value possible")
    best, ticks = _search(laws)
    if best.value <= 0:
        return Bound(0.0, cells.claim, METHOD)
    sides = best.likelier, best.unlikelier
    high, low = (cells.codes[laws.first[row]] for row in sides)
    witness = _witness(cells, query, adversary, (high, low), ticks)
    support = None
    if cells.records is not None:
        total = float(cells.records.sum())
        # A ratio is as shaky as its rarer side.
        support = min(_weighing(laws, row, ticks, total) for row in sides)
    return Bound(best.value, cells.claim, METHOD, witness, support)


def _laws(cells: Cells, query: Query, adversary: Adversary) -> _Laws:
    schema = cells.schema
    target = schema.index(adversary.target)
    known = [schema.index(name) for name in adversary.known]
    answers, step = answers_in_steps(cells, query, known)
    groups, _ = distinct_rows(cells.codes[:, known].astype(np.uint16))
    key = groups * schema.sizes[target] + cells.codes[:, target]
    values, first, rows = np.unique(key, return_index=True, return_inverse=True)
    group_of_row = values // schema.sizes[target]
    counts = np.bincount(group_of_row)
    # Known values that leave one target value possible have nothing to tell apart: they are dropped here.
    kept = counts[group_of_row] > 1
    place = np.cumsum(kept) - 1
    inside = kept[rows]
    starts = np.flatnonzero(np.diff(group_of_row[kept], prepend=-1))
    picked = np.flatnonzero(inside)
    return _Laws(answers[picked], step, place[rows[picked]], starts, first[kept], cells.weights[picked])


def answers_in_steps(cells: Cells, query: Query, known: list[int]) -> tuple[Whole, float]:
    """Return each record's answer in whole steps, and the step in units of the scale."""
    if query.answers is not None:
        answers = query.answers[tuple(cells.codes.T)]
        least, step = _table_steps(answers)
        return np.rint((answers - least) / step).astype(np.int64), step / query.scale
    lattice = query.lattice_of(_free(query, known))
    total = np.zeros((len(cells.codes), query.width), dtype=np.int64)
    for column, ticks in enumerate(lattice.ticks):
        if column not in known:
            total += ticks[cells.codes[:, column]]
    return total, lattice.step / query.scale


def _free(query: Query, known: list[int]) -> list[int]:
    """Return the attributes whose sum the adversary does not know: the target and the unknown ones."""
    return [column for column in range(len(query.schema)) if column not in known]


def _search(laws: _Laws) -> tuple[Spread, Whole]:
    """Return the widest spread over all groups and the answer (in steps) that reaches it.

    Groups are taken some at a time; each batch needs only the grid of its own answers.
    """
    best: Spread | None = None
    answer = np.zeros(laws.answers.shape[1], dtype=np.int64)
    order = np.argsort(laws.rows, kind="stable")
    ends = np.append(laws.starts, len(laws.first))
    row_stops = np.searchsorted(laws.rows[order], np.arange(len(laws.first) + 1))
    for start, stop in _batches(laws):
        rows = slice(int(ends[start]), int(ends[stop]))
        chosen = order[row_stops[rows.start] : row_stops[rows.stop]]
        spread, axes = _spread(laws, chosen, rows, laws.starts[start:stop] - rows.start)
        if best is None or spread.value > best.value:
            best = Spread(spread.value, spread.likelier + rows.start, spread.unlikelier + rows.start, 0)
            places = np.unravel_index(spread.point, [len(axis) for axis in axes])
            answer = np.array([axis[int(place)] for axis, place in zip(axes, places, strict=True)])
    if best is None:
        raise ArithmeticError("there is no group of laws to compare")
    return best, answer


def _batches(laws: _Laws) -> list[tuple[int, int]]:
    """Cut the groups into batches whose records stay few enough for one dense grid of answers."""
    grid = float(np.prod([float(len(np.unique(axis))) for axis in laws.answers.T]))
    most = max(1, int(_CHUNK / grid))
    sizes = np.diff(laws.starts, append=len(laws.first))
    cuts, filled = [0], 0
    for group, size in enumerate(sizes):
        if filled and filled + size > most:
            cuts.append(group)
            filled = 0
        filled += int(size)
    return list(pairwise([*cuts, len(sizes)]))


def _spread(laws: _Laws, chosen: Positions, rows: slice, starts: Positions) -> tuple[Spread, list[Whole]]:
    """Return the widest spread of a batch on the grid of its answers."""
    axes, places = [], []
    for column in laws.answers[chosen].T:
        axis, place = np.unique(column, return_inverse=True)
        axes.append(axis)
        places.append(place)
    shape = (rows.stop - rows.start, *(len(axis) for axis in axes))
    size = float(np.prod([float(length) for length in shape]))
    if size > LARGEST_LAWS:
        raise TooLargeError(
            f"the laws of the answer need {size:.3g} cells, more than {LARGEST_LAWS}; take fewer "
            "attributes, coarser values, or a query with fewer cells."
        )
    flat = np.ravel_multi_index((laws.rows[chosen] - rows.start, *places), shape)
    masses = np.bincount(flat, weights=laws.weights[chosen], minlength=int(size)).reshape(shape)
    with np.errstate(divide="ignore"):
        densities = normalised(np.log(masses))
    for number, axis in enumerate(axes):
        densities = smooth(densities, axis * laws.step, number + 1)
    return widest(densities.reshape(shape[0], -1), starts), axes


def _witness(
    cells: Cells, query: Query, adversary: Adversary, sides: tuple[Positions, Positions], ticks: Whole
) -> Witness:
    """Say in words which answer, and which known values, tell two records apart."""
    schema = cells.schema
    high, low = sides
    knowing = [f"{name} = {schema[name].values[high[schema.index(name)]]}" for name in adversary.known]
    numbers = [f"{value:.6g}" for value in _answer(cells, query, adversary, high, ticks) + 0.0]
    answer = numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
    report = f"an answer of {answer}"
    report += f", knowing {', '.join(knowing)}" if knowing else ""
    target = schema.index(adversary.target)
    labels = schema.attributes[target].values
    return Witness(report, labels[high[target]], labels[low[target]])


def _answer(cells: Cells, query: Query, adversary: Adversary, record: Positions, ticks: Whole) -> Array:
    """Return an answer in the query's own unit, with what the known attributes add."""
    if query.answers is not None:
        least, step = _table_steps(query.answers[tuple(cells.codes.T)])
        return np.asarray(least + ticks * step)
    known = [cells.schema.index(name) for name in adversary.known]
    lattice = query.lattice_of(_free(query, known))
    total = ticks * lattice.step
    for column, part in enumerate(query.additive_parts()):
        total = total + (part[record[column]] if column in known else lattice.offsets[column])
    return np.asarray(total)


def _table_steps(answers: Array) -> tuple[float, float]:
    """Return the least of any query's answers, and the step of which all others are whole numbers away."""
    least = float(answers.min())
    return least, common_step(np.abs(answers - least).ravel())


def _weighing(laws: _Laws, row: int, ticks: Whole, total: float) -> int:
    """Return how many records decide how likely an answer is for one target value and the known values.

    Each counts by how likely it makes the answer beside the record that makes it likeliest: a thousand that
    are far from the answer do not hide that one near it decides.
    """
    mine = laws.rows == row
    distances = np.abs(laws.answers[mine] - ticks).sum(axis=1) * laws.step
    shares = np.exp(distances.min() - distances)
    # A whole count may come out a rounding error below itself; `_WHOLE` keeps it whole.
    return int(total * float(laws.weights[mine] @ shares) + _WHOLE)
