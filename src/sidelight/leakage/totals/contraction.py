"""Exact totals of several secrets at once, where every report can be listed.

The joint table is contracted with the channels, axis by axis. The tables of two secrets differ in one axis
each, so the axes are halved again and again, and every half is contracted once for all secrets of the other
half: n log n contractions instead of n^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound
from sidelight.leakage.pair import own_pairs
from sidelight.leakage.totals.base import Channels, Totals, composition, joint_claim
from sidelight.mechanisms import Channel

LARGEST_EXACT = 1 << 26
"""The exact total of a table with more cells is refused."""
LARGE = 1 << 15
"""Tables with so many cells are contracted by compiled loops where an axis has two values."""
_LARGEST_SIDE = 16
"""Axes are contracted together, or with those behind them, up to so many values and reports."""
_FEW_BEHIND = 8
"""So few values behind an axis are contracted with it."""
Answer = tuple[int, Array, Callable[[tuple[int, int]], dict[int, int]]]
"""A secret's axis, the log-ratios of its values, and what finds the reports behind one of them."""


@dataclass(frozen=True, eq=False)
class ListedTotals(Totals):
    """Exact totals of several secrets: their joint, a name for each axis, contracted with every channel."""

    names: tuple[str, ...]
    cells: Array
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, belief: Belief, names: Sequence[str], secrets: Sequence[str]) -> ListedTotals:
        """Take the joint of the named attributes."""
        size = math.prod(float(belief.schema[name].size) for name in names)
        if size > LARGEST_EXACT:
            raise TooLargeError(
                f"the exact total needs {size:.3g} cells, more than {LARGEST_EXACT}; release fewer "
                "attributes, use coarser bins, or method='auto'."
            )
        return cls(tuple(names), belief.joint(list(names)), tuple(secrets))

    @cached_property
    def priors(self) -> tuple[Array, ...]:
        """The probabilities of each attribute's values."""
        even = [np.ones((1, size)) for size in self.cells.shape]
        return tuple(sums[0] for sums in _all_but_one(self.cells[None], even))

    def values(self, channels: Channels) -> dict[str, float]:
        """Return the total of each secret."""
        most = composition(channels).value
        columns = self._columns(channels)
        return {
            self.names[axis]: min(float(pairs.max()), most) for axis, pairs, _ in self._all(columns, channels)
        }

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total of each secret with what it claims."""
        claim = joint_claim(channels)
        return {name: Bound(value, claim, "exact joint") for name, value in self.values(channels).items()}

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return by how much each total grows at least with each of the moved channels alone.

        The reports and the two values that reach a total now are still there after a move, and one pass over
        the table serves all moves. To first order they remain the worst ones.
        """
        columns, others = self._columns(channels), self._columns({**channels, **moved})
        most = composition(channels).value
        steps = np.array([moved[name].epsilon - channels[name].epsilon for name in moved])
        places = [self.names.index(name) for name in moved]
        worst = []
        for axis, pairs, reported in self._all(columns, channels):  # no table is kept beside the next one
            pair = divmod(int(pairs.argmax()), len(pairs))
            lines = _Lines(axis, self._possible(axis)[list(pair)], reported(pair))
            worst.append((lines, pair, float(pairs[pair])))
        growths = self._growths([lines for lines, _, _ in worst], columns, others)
        changes = {}
        for (lines, pair, value), grown in zip(worst, growths, strict=True):
            axis = lines.axis
            with np.errstate(invalid="ignore"):  # infinity stays infinity, whatever moves
                grown[axis] = (self._own(axis, {**channels, **moved}) - self._own(axis, channels))[pair]
                changes[self.names[axis]] = np.minimum(value + grown[places], most + steps) - min(value, most)
        return changes

    def among(self, secrets: Collection[str]) -> ListedTotals | None:
        """Return the totals of these secrets alone, of the same tables."""
        if not set(secrets) & set(self.secrets):
            return None
        fewer = replace(self, secrets=tuple(name for name in self.secrets if name in secrets))
        kept = {name: value for name, value in vars(self).items() if name in ("priors", "_sides")}
        vars(fewer).update(kept)
        return fewer

    @cached_property
    def _sides(self) -> tuple[Array, Array]:
        """The table with the first half of the axes in its rows, and with the second half."""
        table = self.cells.reshape(1 << self.cells.ndim // 2, -1)
        return table, np.ascontiguousarray(table.T)

    @cached_property
    def _last(self) -> dict[bytes, list[tuple[Array, Positions]]]:
        """The last question's ratios: a search asks for totals and then, at the same budgets, for slopes."""
        return {}

    def _growths(self, worst: Sequence[_Lines], columns: Sequence[Array], others: Sequence[Array]) -> Array:
        """Return how the log-ratio of each secret's lines changes if an axis has its other report, by axis.

        Products of matrices serve many secrets at once, unless they take more room than the table.
        """
        half = self.cells.ndim // 2
        longest = max(math.prod(self.cells.shape[:half]), math.prod(self.cells.shape[half:]))
        if 1 < len(worst) <= self.cells.size // (2 * longest):
            sides = ([lines.likelihoods(side) for lines in worst] for side in (columns, others))
            now, then = ([np.concatenate(axis) for axis in zip(*side, strict=True)] for side in sides)
            return ratio_growths(self.cells[None], now, then)
        alone = [
            ratio_growths(
                lines.taken(self.cells), *(lines.likelihoods_of_taken(side) for side in (columns, others))
            )
            for lines in worst
        ]
        return np.concatenate(alone)

    def _columns(self, channels: Channels) -> list[Array]:
        axes = zip(self.names, self.cells.shape, strict=True)
        return [_listed(channels.get(name), size) for name, size in axes]

    def _all(self, columns: Sequence[Array], channels: Channels) -> Iterator[Answer]:
        """Yield each secret's axis, the log-ratios of its values, and what finds the reports of one."""
        if self.cells.size >= LARGE and all(column.shape == (2, 2) for column in columns):
            yield from self._extremes(np.stack(columns), channels)
            return
        for axis, cells in self._contractions(columns):
            yield axis, self._pairs(cells, axis, channels), partial(self._worst_reports, cells, axis)

    def _extremes(self, columns: Array, channels: Channels) -> Iterator[Answer]:
        """Yield what `_all` does of a large table of two values on every axis."""
        asked = columns.tobytes()
        ratios = self._last.get(asked)  # looked up once: another thread may ask something else
        if ratios is None:
            ratios = self._ratios(columns)
            self._last.clear()
            self._last[asked] = ratios
        for (own, rest), (found, where) in zip(self._halves, ratios, strict=True):
            for place, axis in enumerate(own):
                if self.names[axis] not in self.secrets:
                    continue
                pairs = self._own(axis, channels)
                if len(pairs) == 2:
                    pairs = np.add(pairs, _two_values(found[place], self.priors[axis]))
                places = np.array(np.unravel_index(where[place], self.cells.shape))
                yield axis, pairs, partial(_numbered, [*own, *rest], places, axis)

    def _ratios(self, columns: Array) -> list[tuple[Array, Positions]]:
        """Return the extreme ratios on the axes of each half, and their cells; see `lone_ratios`."""
        return [
            lone_ratios(
                table, columns[own], columns[rest],
                [place for place, axis in enumerate(own) if self.names[axis] in self.secrets],
            )
            for table, (own, rest) in zip(self._sides, self._halves, strict=True)
        ]  # fmt: skip

    @property
    def _halves(self) -> tuple[tuple[range, range], tuple[range, range]]:
        """The axes of the rows and of the columns of each of the `_sides`."""
        half, axes = self.cells.ndim // 2, range(self.cells.ndim)
        return (axes[:half], axes[half:]), (axes[half:], axes[:half])

    def _contractions(self, columns: Sequence[Array]) -> Iterator[tuple[int, Array]]:
        """Yield each secret's axis with the table in which this axis alone still has values."""
        wanted = [axis for axis, name in enumerate(self.names) if name in self.secrets]
        rest = [axis for axis in range(self.cells.ndim) if axis not in wanted]
        waiting = [(wanted, _contracted(self.cells, columns, rest))]
        while waiting:
            axes, cells = waiting.pop()
            if len(axes) == 1:
                yield axes[0], cells
                continue
            first, second = axes[: len(axes) // 2], axes[len(axes) // 2 :]
            waiting.append((first, _contracted(cells, columns, second)))
            waiting.append((second, _contracted(cells, columns, first)))

    def _possible(self, axis: int) -> Positions:
        return np.flatnonzero(self.priors[axis] > 0)

    def _own(self, axis: int, channels: Channels) -> Array:
        return own_pairs(channels.get(self.names[axis]), self._possible(axis))

    def _pairs(self, cells: Array, axis: int, channels: Channels) -> Array:
        """Return the largest log-ratio of every two possible values on the axis, with their own report."""
        possible = self._possible(axis)
        priors = self.priors[axis][possible]
        lines = np.moveaxis(cells, axis, 0)
        pairs = np.zeros((len(possible), len(possible)))
        rows = lines.reshape(len(lines), -1)[possible]
        with np.errstate(divide="ignore", invalid="ignore"):
            for i, row in enumerate(rows[:-1]):
                ratios = row / rows[i + 1 :]  # not a number for reports that neither value sends
                scales = priors[i + 1 :] / priors[i]
                pairs[i, i + 1 :] = np.log(np.fmax.reduce(ratios, axis=1) * scales)
                pairs[i + 1 :, i] = -np.log(np.fmin.reduce(ratios, axis=1) * scales)
        return np.maximum(pairs, 0.0) + self._own(axis, channels)

    def _worst_reports(self, cells: Array, axis: int, pair: tuple[int, int]) -> dict[int, int]:
        """Return the number of the report on every other axis that tells the two values apart best."""
        likelier, unlikelier = np.moveaxis(cells, axis, 0)[self._possible(axis)[list(pair)]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.asarray(likelier / unlikelier)  # not a number where both are 0
        numbers = np.unravel_index(int(np.nanargmax(ratios)), ratios.shape)
        rest = [other for other in range(self.cells.ndim) if other != axis]
        return {other: int(number) for other, number in zip(rest, numbers, strict=True)}


class _Lines(NamedTuple):
    """The lines of two values of a secret, and the report on every other axis, that reach its total."""

    axis: int
    codes: Positions
    reports: Mapping[int, int]

    def likelihoods(self, columns: Sequence[Array]) -> list[Array]:
        """Return what the values on each axis count for the lines; on the secret's own, one value counts."""
        one = np.eye(len(columns[self.axis]))[self.codes]
        return [one if likely is None else np.array((likely, likely)) for likely in self._reported(columns)]

    def taken(self, cells: Array) -> Array:
        """Return the two lines alone, (2, *sizes); the secret's own axis has one value."""
        return np.expand_dims(
            np.moveaxis(cells.take(self.codes, axis=self.axis), self.axis, 0), self.axis + 1
        )

    def likelihoods_of_taken(self, columns: Sequence[Array]) -> list[Array]:
        """Return what the values on each axis count for both lines that were taken."""
        return [np.ones((1, 1)) if likely is None else likely[None] for likely in self._reported(columns)]

    def _reported(self, columns: Sequence[Array]) -> Iterator[Array | None]:
        """Yield the likelihoods of each axis's report; None for the secret's own axis."""
        for axis, column in enumerate(columns):
            yield None if axis == self.axis else column[:, self.reports[axis]]


def ratio_growths(cells: Array, now: Sequence[Array], then: Sequence[Array]) -> Array:
    """Return how the log-ratios of pairs of lines change if each axis in turn has its other report.

    Args:
        cells: (lines, *sizes), the likelier and the unlikelier line of each pair; (1, *sizes) if all lines
            have the same cells.
        now: each axis's likelihoods, (lines, size), or (1, size) if all lines have the same.
        then: each axis's likelihoods after its move.
    """
    grown = np.zeros((max([len(cells), *map(len, now)]) // 2, len(now)))
    for axis, left in enumerate(_all_but_one(cells, now)):
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log((left * then[axis]).sum(axis=1) / (left * now[axis]).sum(axis=1))
            grown[:, axis] = logs[::2] - logs[1::2]
    return np.nan_to_num(grown, nan=0.0)


def _all_but_one(cells: Array, vectors: Sequence[Array]) -> list[Array]:
    """Return, for each axis and line, the sums over all other axes weighted by their vectors."""
    if len(vectors) < 2:
        return [cells] * len(vectors)
    half = len(vectors) // 2
    first, second = (reduce(_outer, part) for part in (vectors[:half], vectors[half:]))
    flat = cells.reshape(len(cells), first.shape[1], second.shape[1])
    if len(flat) == 1:  # as below, but one product of matrices for all lines
        left, right = second @ flat[0].T, first @ flat[0]
    else:
        left, right = np.matmul(flat, second[:, :, None])[..., 0], np.matmul(first[:, None], flat)[:, 0]
    sizes = cells.shape[1:]
    return [
        *_all_but_one(left.reshape(-1, *sizes[:half]), vectors[:half]),
        *_all_but_one(right.reshape(-1, *sizes[half:]), vectors[half:]),
    ]


def _outer(first: Array, second: Array) -> Array:
    """Return every product of two numbers of a line, for each line."""
    return (first[:, :, None] * second[:, None]).reshape(len(first), -1)


def _listed(channel: Channel | None, size: int) -> Array:
    """Return each report's likelihood given each value; of an attribute that is not released, one report."""
    columns = np.ones((size, 1)) if channel is None else channel.columns()
    if columns is None:
        raise InputError("the exact total needs channels whose reports can be listed; use method='auto'.")
    return columns


def _contracted(cells: Array, columns: Sequence[Array], axes: Sequence[int]) -> Array:
    """Replace the values on each of the axes by the reports of its channel.

    Small neighbours go together, and so do small axes behind them: few passes of larger products are faster.
    """
    for group in _groups(columns, axes):
        matrix = reduce(_product, [columns[axis] for axis in group])
        before, after = cells.shape[: group[0]], cells.shape[group[-1] + 1 :]
        reports = [columns[axis].shape[1] for axis in group]
        behind = math.prod(after)
        if behind <= _FEW_BEHIND and max(matrix.shape) <= _LARGEST_SIDE:
            flat = cells.reshape(-1, len(matrix) * behind) @ _product(matrix, np.eye(behind))
        else:
            flat = np.matmul(matrix.T, cells.reshape(math.prod(before), len(matrix), behind))
        cells = flat.reshape(*before, *reports, *after)
    return cells


def lone_ratios(table: Array, first: Array, second: Array, wanted: Sequence[int]) -> tuple[Array, Positions]:
    """Return the extreme ratios of the two values on each wanted axis of the rows, and their cells.

    See `kernels.lone_extremes`. The wanted axes, in rising order, are halved again and again, as in
    `ListedTotals`.
    """
    from sidelight.leakage.totals.kernels import lone_extremes

    found, where = np.empty((len(first), 2)), np.zeros((len(first), 2), dtype=np.intp)
    if not wanted:
        return found, where
    steps = np.array([*_halvings(wanted, range(len(first)), 0)], dtype=np.intp)
    lone_extremes(table.copy(), first, second, steps, found, where)
    return found, where


def _halvings(wanted: Sequence[int], left: Sequence[int], level: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield how the axes left are mixed, a table for each halving, until two wanted ones are left or one."""
    rest = [axis for axis in left if axis not in wanted]
    for axis in rest:
        yield level if axis == rest[0] else level + 1, level + 1, axis, -1
    level += bool(rest)
    if len(wanted) <= 2:
        yield -1, level, wanted[0], wanted[1] if len(wanted) == 2 else -1
        return
    half = len(wanted) // 2
    for part in (wanted[:half], wanted[half:]):
        yield from _halvings(part, wanted, level)


def _two_values(ratios: Array, prior: Array) -> Array:
    """Return the log-ratios of two values, (2, 2), from the extreme ratios of their cells."""
    with np.errstate(divide="ignore"):
        up, down = np.log(ratios * float(prior[1] / prior[0])).tolist()
    return np.maximum([[0.0, up], [-down, 0.0]], 0.0)


def _numbered(axes: Sequence[int], places: Positions, axis: int, pair: tuple[int, int]) -> dict[int, int]:
    """Return the number of the report on every other axis, of the larger ratio or of the smaller one."""
    at = dict(zip(axes, places[:, pair[0]].tolist(), strict=True))
    return {other: at[other] for other in sorted(at) if other != axis}


def _product(first: Array, second: Array) -> Array:
    """Return the matrix of two channels side by side (Kronecker)."""
    return np.asarray(np.kron(first, second), dtype=np.float64)


def _groups(columns: Sequence[Array], axes: Sequence[int]) -> list[list[int]]:
    """Return runs of neighbouring axes whose values and reports together are few."""
    groups: list[list[int]] = []
    sides = 0
    for axis in axes:
        side = max(columns[axis].shape)
        if groups and groups[-1][-1] == axis - 1 and sides * side <= _LARGEST_SIDE:
            groups[-1].append(axis)
            sides *= side
        else:
            groups.append([axis])
            sides = side
    return groups
