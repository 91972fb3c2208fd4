"""Certified totals, prepared so that they can be asked for at many budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound, Claim, Witness
from sidelight.leakage.pair import own_pairs
from sidelight.leakage.totals.joint import record_rows
from sidelight.leakage.totals.total import LARGEST_EXACT, TotalMethod, exact_total, is_all_listed
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.generic import Worst, baseline_at, generic_worst

Array = NDArray[np.float64]
Channels = Mapping[str, Channel]
_LEAST_CELL = 1e-100
"""Tables with smaller probabilities are contracted in logarithms, one secret at a time."""
_LARGEST_SIDE = 16
"""Axes are contracted together, or with those behind them, up to so many values and reports."""
_FEW_BEHIND = 8
"""So few values behind an axis are contracted with it."""


def exact_totals(
    belief: Belief, channels: Channels, secrets: Sequence[str]
) -> list[ExactTotals | ExactTotal]:
    """Return what computes the exact totals of the secrets; where all reports are listed, together."""
    released = list(channels)
    listed = [name for name in secrets if is_all_listed(belief, channels, name)]
    together = [name for name in listed if name in channels]
    found = [ExactTotals.of(belief, released, together)] if together else []
    found += [ExactTotals.of(belief, [name, *released], [name]) for name in listed if name not in channels]
    kept = [part for part in found if part.cells[part.cells > 0].min() > _LEAST_CELL]
    done = {name for part in kept for name in part.secrets}
    return [*kept, *(ExactTotal(belief, name) for name in secrets if name not in done)]


def own_report(prior: Array, channel: Channel | None) -> float:
    """Return what the secret's own report says about it; 0 if it is not released."""
    return float(own_pairs(channel, np.flatnonzero(prior > 0)).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class ExactTotals:
    """Exact totals of several secrets at once, by contracting the joint with every other channel.

    The tables of two secrets differ in one axis each, so the axes are halved again and again, and every
    half is contracted once for all secrets of the other half: n log n contractions instead of n^2.

    Attributes:
        names: one for each axis.
        cells: the joint probabilities.
        secrets: whose totals are wanted.
    """

    names: tuple[str, ...]
    cells: Array
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, belief: Belief, names: Sequence[str], secrets: Sequence[str]) -> ExactTotals:
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
        axes = range(self.cells.ndim)
        return tuple(self.cells.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes)

    def __call__(self, channels: Channels) -> dict[str, float]:
        """Return the total of each secret."""
        most = math.fsum(channel.epsilon for channel in channels.values())
        return {
            self.names[axis]: min(float(self._pairs(cells, axis, channels).max()), most)
            for axis, cells in self._contractions(self._reports(channels))
        }

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return how much each secret's total grows at least with each of the moved channels alone.

        The reports and the two values that reach a total now are still there after a move, and one pass over
        the table serves all moves. To first order they remain the worst ones.
        """
        columns, others = self._reports(channels), self._reports({**channels, **moved})
        most = math.fsum(channel.epsilon for channel in channels.values())
        steps = np.array([moved[name].epsilon - channels[name].epsilon for name in moved])
        places = [self.names.index(name) for name in moved]
        found = {}
        for axis, cells in self._contractions(columns):
            pairs = self._pairs(cells, axis, channels)
            value, pair = float(pairs.max()), divmod(int(pairs.argmax()), len(pairs))
            grown = self._grown(cells, axis, pair, columns, others)
            with np.errstate(invalid="ignore"):  # infinity stays infinity, whatever moves
                grown[axis] = (self._own(axis, {**channels, **moved}) - self._own(axis, channels))[pair]
                found[self.names[axis]] = np.minimum(value + grown[places], most + steps) - min(value, most)
        return found

    def _reports(self, channels: Channels) -> list[Array]:
        shape = self.cells.shape
        return [_columns(channels.get(name), size) for name, size in zip(self.names, shape, strict=True)]

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
            half = len(axes) // 2
            waiting.append((axes[:half], _contracted(cells, columns, axes[half:])))
            waiting.append((axes[half:], _contracted(cells, columns, axes[:half])))

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the totals with what they claim."""
        known = all(channel.claim == "exact" for channel in channels.values())
        kind: Claim = "exact" if known else "certified"
        return {name: Bound(value, kind, "exact joint") for name, value in self(channels).items()}

    def _possible(self, axis: int) -> NDArray[np.intp]:
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

    def _grown(
        self,
        cells: Array,
        axis: int,
        pair: tuple[int, int],
        columns: Sequence[Array],
        others: Sequence[Array],
    ) -> Array:
        """Return how the worst report's log-ratio changes if each axis in turn has its other columns."""
        codes = self._possible(axis)[list(pair)]
        lines = np.moveaxis(cells, axis, 0)
        ratios = _ratios(lines[codes[0]], lines[codes[1]])
        reports = np.unravel_index(int(np.nanargmax(ratios)), lines.shape[1:])
        rest = [other for other in range(self.cells.ndim) if other != axis]
        now, then = (
            [chosen[other][:, report] for other, report in zip(rest, reports, strict=True)]
            for chosen in (columns, others)
        )
        grown = np.zeros(self.cells.ndim)
        grown[rest] = _growths([self.cells.take(code, axis=axis) for code in codes], now, then)
        return grown


def _growths(pair: Iterable[Array], now: Sequence[Array], then: Sequence[Array]) -> Array:
    """Return how the log-ratio of a pair's reports changes if each axis in turn has its other report.

    Args:
        pair: the cells of the likelier and the unlikelier value.
        now: for each axis the likelihoods of its report.
        then: those of the report that replaces it.
    """
    grown = np.zeros(len(now))
    for cells, sign in zip(pair, (1, -1), strict=True):
        for axis, left in enumerate(_all_but_one(cells, now)):
            with np.errstate(divide="ignore", invalid="ignore"):
                grown[axis] += sign * np.log((left @ then[axis]) / (left @ now[axis]))
    return np.nan_to_num(grown, nan=0.0)


def _ratios(top: Array, bottom: Array) -> Array:
    """Return the ratios in one line; not a number where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top / bottom).ravel()


def _outer(first: Array, second: Array) -> Array:
    return np.multiply.outer(first, second).ravel()


def _all_but_one(cells: Array, vectors: Sequence[Array]) -> list[Array]:
    """Return, for each axis, the sums over all other axes weighted by their vectors."""
    if cells.ndim < 2:
        return [cells] * cells.ndim
    half = cells.ndim // 2
    first, second = (reduce(_outer, part) for part in (vectors[:half], vectors[half:]))
    flat = cells.reshape(len(first), len(second))
    return [
        *_all_but_one((flat @ second).reshape(cells.shape[:half]), vectors[:half]),
        *_all_but_one((first @ flat).reshape(cells.shape[half:]), vectors[half:]),
    ]


def _columns(channel: Channel | None, size: int) -> Array:
    """Return each report's likelihood given each value; of an attribute that is not released, one report."""
    listed = np.ones((size, 1)) if channel is None else channel.columns()
    if listed is None:
        raise InputError("the exact total needs channels whose reports can be listed; use method='auto'.")
    return listed


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


@dataclass(frozen=True, eq=False)
class ExactTotal:
    """The exact total of one secret where not all reports can be listed; see `exact_total`.

    Attributes:
        belief: what the adversary knows.
        secret: whose total is wanted.
    """

    belief: Belief
    secret: str

    def __call__(self, channels: Channels) -> dict[str, float]:
        """Return the total of the secret."""
        return {self.secret: self.bounds(channels)[self.secret].value}

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return how much the total grows at least with each of the moved channels alone.

        The reports and the two values that reach it now are still there after a move, if the channel favours
        as many values as before; to first order they remain the worst ones.
        """
        bound = self.bounds(channels)[self.secret]
        most = math.fsum(channel.epsilon for channel in channels.values())
        grown = dict.fromkeys(moved, 0.0)
        if bound.witness is not None:
            grown |= _grown_witness(self.belief, self.secret, bound.witness, channels, moved)
        limits = [most + moved[name].epsilon - channels[name].epsilon for name in moved]
        with np.errstate(invalid="ignore"):  # infinity stays infinity, whatever moves
            found = np.minimum(bound.value + np.array(list(grown.values())), limits) - bound.value
        return {self.secret: found}

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total with what it claims."""
        return {self.secret: exact_total(self.belief, channels, self.secret)}


def _grown_witness(
    belief: Belief, secret: str, witness: Witness, channels: Channels, moved: Channels
) -> dict[str, float]:
    """Return how the witness's log-ratio changes with each of the moved channels whose reports it uses."""
    labels = list(belief.schema[secret].values)
    pair = [labels.index(witness.likelier), labels.index(witness.unlikelier)]
    named = {name: np.array(codes) for name, codes in witness.reports.items()}
    others = [name for name in named if name != secret]
    now, then = (
        [np.exp(chosen[name].named_logs(named[name])) for name in others]
        for chosen in (channels, {**channels, **moved})
    )
    cells = belief.joint([secret, *others])
    grown = dict(zip(others, _growths(cells[pair], now, then).tolist(), strict=True))
    if secret in moved:
        before, after = (own_pairs(c[secret], np.array(pair))[0, 1] for c in (channels, moved))
        grown[secret] = float(after - before)
    return {name: value for name, value in grown.items() if name in moved}


@dataclass(frozen=True, eq=False)
class JointTotal:
    """The total of one secret by the joint generic bound, by composition, or by the smaller of the two.

    Attributes:
        prior: the probabilities of the secret's values.
        secret: whose total is wanted.
        rows: Pr(all other released attributes | secret), one column for each distinct record; None for
            composition alone.
        method: "auto", "joint generic" or "composition".
    """

    prior: Array
    secret: str
    rows: Array | None
    method: TotalMethod

    @classmethod
    def of(cls, belief: Belief, released: Sequence[str], secret: str, method: TotalMethod) -> JointTotal:
        """Prepare the rows where they are known and not too large."""
        others = [name for name in released if name != secret]
        rows = None
        if others and method != "composition" and (belief.records is not None or method == "joint generic"):
            try:
                rows = record_rows(belief, secret, others)
            except TooLargeError:
                if method == "joint generic":
                    raise
        if rows is not None and method == "auto" and generic_worst(rows, math.exp(-1)).value >= 1 - 1e-12:
            rows = None  # two rows share no record, so the bound is composition at every budget
        return cls(belief.prior(secret), secret, rows, method)

    def __call__(self, channels: Channels) -> dict[str, float]:
        """Return the total of the secret."""
        return {name: bound.value for name, bound in self.bounds(channels).items()}

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return how much the total grows at least with each of the moved channels alone.

        The two rows and the favoured set that reach it now are still there after a move; to first order they
        remain the worst ones.
        """
        kept = None if self.rows is None else generic_worst(self.rows, self._baseline(channels))
        base = self._bound(channels).value
        grown = [self._bound({**channels, name: moved[name]}, kept).value - base for name in moved]
        return {self.secret: np.array(grown)}

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total with what it claims."""
        return {self.secret: self._bound(channels)}

    def _bound(self, channels: Channels, kept: Worst | None = None) -> Bound:
        """Return the total; of the joint generic bound only the part that `kept` reaches, if it is given."""
        if np.count_nonzero(self.prior) < 2:
            return Bound(0.0, "exact", "only one value is possible")
        total = Bound(math.fsum(c.epsilon for c in channels.values()), "certified", "composition")
        if self.method == "composition":
            return total
        own = own_report(self.prior, channels.get(self.secret))
        if set(channels) <= {self.secret}:
            return Bound(own, "certified", "own report alone")
        if self.rows is None:
            return total
        baseline = self._baseline(channels)
        if kept is None:
            reached = generic_worst(self.rows, baseline).value
        else:
            reached = _reached(self.rows, kept, baseline)
        joint = Bound(own + min(reached, self._rest(channels)), "certified", "joint generic")
        return joint if self.method != "auto" or joint.value < total.value else total

    def _rest(self, channels: Channels) -> float:
        return math.fsum(channel.epsilon for name, channel in channels.items() if name != self.secret)

    def _baseline(self, channels: Channels) -> float:
        """Return e^-budget of all other reports together."""
        return baseline_at(self._rest(channels))


def _reached(rows: Array, kept: Worst, baseline: float) -> float:
    """Return ln of the ratio of two rows for a report that favours this set by 1 / baseline."""
    pair = rows[[kept.likelier, kept.unlikelier]]
    top, bottom = baseline + (1 - baseline) * pair[:, kept.report].sum(axis=1)
    return math.log(top / bottom) if bottom > 0 else math.inf
