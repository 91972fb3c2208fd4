"""The exact total: contract the joint distribution with every channel, and take the largest ratio.

The secret's own report adds its log-ratio for two values. Of the other attributes one whose reports favour
too many sets to list is left for last and *answered*: given the reports of the rest and two secret values,
its best report is the problem of one pair.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.leakage.bounds import Bound, Witness
from sidelight.leakage.pair import conditional_rows, own_pairs
from sidelight.leakage.totals.base import ONE_VALUE, Channels, Totals, composition, joint_claim
from sidelight.leakage.totals.contraction import (
    LARGE,
    LARGEST_EXACT,
    ListedTotals,
    ratio_growths,
)
from sidelight.leakage.witnesses import TIE, best_pair, commonest_pair, witnessed
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel import LARGEST_LIST
from sidelight.mechanisms.channel.logs import contract_logs, fits_doubles, log_pairs, log_spans, logs_of
from sidelight.mechanisms.channel.sets import LARGEST_STACK

LARGEST_AUTOMATIC = 1 << 20
"""Up to so many cells the exact total is cheap enough to be chosen unasked."""
LARGEST_LISTED = 1 << 14
"""Of an attribute that is not answered, at most so many favoured sets are listed."""
_PASSES = 8
"""How often the search for the best report looks at a number that a list looks at once."""
_LEAST_CELL = 1e-100
"""Tables with smaller probabilities are contracted in logarithms, one secret at a time."""


def exact_totals(belief: Belief, channels: Channels, secrets: Sequence[str]) -> list[Totals]:
    """Prepare the exact totals of the secrets; where all reports are listed, several together."""
    released = list(channels)
    listed = [name for name in secrets if _is_all_listed(belief, channels, name)]
    together = [name for name in listed if name in channels]
    parts = [ListedTotals.of(belief, released, together)] if together else []
    parts += [ListedTotals.of(belief, [name, *released], [name]) for name in listed if name not in channels]
    kept = [part for part in parts if part.cells[part.cells > 0].min() > _LEAST_CELL]
    done = {name for part in kept for name in part.secrets}
    return [*kept, *(ExactTotal(belief, name) for name in secrets if name not in done)]


@dataclass(frozen=True, eq=False)
class ExactTotal(Totals):
    """The exact total of one secret, with what reaches it; not all reports need to be listed."""

    belief: Belief
    secret: str

    def bounds(self, channels: Channels) -> dict[str, Bound]:
        """Return the total with what it claims."""
        return {self.secret: exact_total(self.belief, channels, self.secret)}

    def among(self, secrets: Collection[str]) -> ExactTotal | None:
        """Return it if its secret is one of these."""
        return self if self.secret in secrets else None

    def changes(self, channels: Channels, moved: Channels) -> dict[str, Array]:
        """Return by how much the total grows at least with each of the moved channels alone.

        The reports and the two values that reach it now are still there after a move, if the channel favours
        as many values as before; to first order they remain the worst ones.
        """
        bound = exact_total(self.belief, channels, self.secret)
        most = composition(channels).value
        grown = dict.fromkeys(moved, 0.0)
        if bound.witness is not None:
            grown |= self._witness_growths(bound.witness, channels, moved)
        limits = [most + moved[name].epsilon - channels[name].epsilon for name in moved]
        with np.errstate(invalid="ignore"):  # infinity stays infinity, whatever moves
            changes = np.minimum(bound.value + np.array(list(grown.values())), limits) - bound.value
        return {self.secret: changes}

    def _witness_growths(self, witness: Witness, channels: Channels, moved: Channels) -> dict[str, float]:
        """Return how the witness's log-ratio changes with each moved channel whose report it uses."""
        labels = list(self.belief.schema[self.secret].values)
        pair = [labels.index(witness.likelier), labels.index(witness.unlikelier)]
        named = {name: np.array(codes) for name, codes in witness.reports.items()}
        others = [name for name in named if name != self.secret]
        now, then = (
            [np.exp(chosen[name].named_logs(named[name]))[None] for name in others]
            for chosen in (channels, {**channels, **moved})
        )
        cells = self.belief.joint([self.secret, *others])
        grown = dict(zip(others, ratio_growths(cells[pair], now, then)[0].tolist(), strict=True))
        if self.secret in moved:
            before, after = (own_pairs(c[self.secret], np.array(pair))[0, 1] for c in (channels, moved))
            grown[self.secret] = float(after - before)
        return {name: value for name, value in grown.items() if name in moved}


@dataclass(frozen=True, eq=False)
class OwnReport:
    """What the secret's own report says about every two of its values that can occur.

    `possible` holds their codes, `weights` how common each is, `pairs` (m, m) the log-ratio of every ordered
    pair; 0 if it is not released.
    """

    secret: str
    possible: Positions
    weights: Array
    pairs: Array

    @classmethod
    def of(cls, belief: Belief, channels: Channels, secret: str) -> OwnReport:
        """Look at the secret's prior and its channel, if it is released."""
        prior = belief.prior(secret)
        possible = np.flatnonzero(prior > 0)
        return cls(secret, possible, prior[possible], own_pairs(channels.get(secret), possible))

    @cached_property
    def constant(self) -> float | None:
        """The log-ratio if it is the same for every two values, as for most mechanisms."""
        different = self.pairs[np.eye(len(self.pairs)) == 0]
        return float(different[0]) if len(different) and (different == different[0]).all() else None


@dataclass(frozen=True)
class Reached:
    """A log-ratio, the two rows of possible values that reach it, and the reports' names (see `Witness`)."""

    value: float
    pair: tuple[int, int]
    reports: dict[str, Positions]

    def witnessed(self, bound: Bound, belief: Belief, channels: Channels, own: OwnReport) -> Bound:
        """Return the bound with what reaches it."""
        codes = int(own.possible[self.pair[0]]), int(own.possible[self.pair[1]])
        return witnessed(bound, belief, channels, own.secret, codes, self.reports)


def exact_total(belief: Belief, channels: Channels, secret: str) -> Bound:
    """Return the exact total leakage of one secret.

    The reports of the other attributes are listed, except for the one that can favour the most sets. That
    one is answered: its best report is computed for every two secret values and every combination of the
    others' reports.
    """
    others = [name for name in channels if name != secret]
    _check_exact(belief, channels, secret)
    own = OwnReport.of(belief, channels, secret)
    if len(own.possible) < 2:
        return ONE_VALUE
    if not others:
        pair = best_pair(own.pairs, own.weights)
        reached = Reached(float(own.pairs[pair]), pair, {})
    elif len(others) == 1:
        is_small = len(own.possible) ** 2 * channels[others[0]].size <= LARGEST_AUTOMATIC
        reached = with_neighbour(belief, channels[others[0]], others[0], own, all_pairs=is_small)
    else:
        reached = _with_all(belief, channels, own)
    value = min(reached.value, composition(channels).value)
    return reached.witnessed(Bound(value, joint_claim(channels), "exact joint"), belief, channels, own)


def _check_exact(belief: Belief, channels: Channels, secret: str) -> None:
    """Raise where the exact total is not known or too large, and say what to do instead."""
    unlisted = _unlisted(belief, channels, secret)
    if unlisted is not None:
        raise InputError(
            f"the exact total needs channels whose reports can be listed; that of {unlisted!r} cannot. "
            "Use method='joint generic' or 'composition'."
        )
    if not belief.knows_joints and len(set(channels) - {secret}) > 1:
        raise InputError("the exact total needs a joint belief; use kind='joint' or method='composition'.")
    size = _exact_cells(belief, channels, secret)
    if size > LARGEST_EXACT:
        raise TooLargeError(
            f"the exact total of {secret!r} needs {size:.3g} cells, more than {LARGEST_EXACT}; "
            "use method='joint generic' or 'composition'."
        )


def is_exact_cheap(belief: Belief, channels: Channels, secret: str) -> bool:
    """Whether "auto" takes the exact total of this secret."""
    known = belief.knows_joints or len(set(channels) - {secret}) <= 1
    is_listed = known and _unlisted(belief, channels, secret) is None
    return is_listed and _exact_cells(belief, channels, secret) <= LARGEST_AUTOMATIC


def _is_all_listed(belief: Belief, channels: Channels, secret: str) -> bool:
    """Whether the exact total of this secret lists all reports, and its own can be listed as well."""
    counts = [channel.count_reports() for channel in channels.values()]
    if len(counts) < 3 and math.prod(counts) * belief.schema[secret].size > LARGEST_AUTOMATIC:
        return False
    return _answered(belief, channels, secret) is None and max(counts, default=0.0) <= LARGEST_LIST


def _answered(belief: Belief, channels: Channels, secret: str) -> str | None:
    """Return which other attribute is answered rather than listed: the one for which it saves most work."""
    work = _PASSES * belief.schema[secret].size
    savings = {
        name: channel.count_reports() / (work * channel.size)
        for name, channel in channels.items()
        if name != secret and channel.favours_sets and channel.floor > 0
    }
    best = max(savings, key=lambda name: savings[name], default=None)
    if best is None or savings[best] > 1:
        return best
    lists = (channel.count_reports() for name, channel in channels.items() if name != secret)
    is_long = belief.schema[secret].size * math.prod(lists) > LARGEST_AUTOMATIC
    return best if is_long and savings[best] * _PASSES > 1 else None


def _unlisted(belief: Belief, channels: Channels, secret: str) -> str | None:
    """Return an attribute whose reports can be neither listed nor answered, if there is one."""
    others = [name for name in channels if name != secret]
    answered = _answered(belief, channels, secret)
    for name, channel in channels.items():
        has_list = not channel.favours_sets or channel.count_reports() <= LARGEST_LISTED
        is_free = name in (secret, answered) or len(others) == 1
        if channel.delta > 0 or not (has_list or is_free):
            return name
    return None


def _exact_cells(belief: Belief, channels: Channels, secret: str) -> float:
    """Return how many numbers the exact total looks at; 0 for one pair, whose own figure is as much work."""
    others = [name for name in channels if name != secret]
    if len(others) < 2:
        return 0.0
    sizes = {name: float(belief.schema[name].size) for name in [secret, *others]}
    answered = _answered(belief, channels, secret)
    outputs = sizes[secret] * math.prod(channels[name].count_reports() for name in others if name != answered)
    if answered is not None:
        outputs *= sizes[secret] * sizes[answered]
    return max(math.prod(sizes.values()), outputs)


def with_neighbour(
    belief: Belief, channel: Channel, neighbour: str, own: OwnReport, *, all_pairs: bool = False
) -> Reached:
    """Return the leakage through the own report and one neighbour, and what reaches it.

    With `all_pairs` it takes longer and names, of several pairs of values that reach it, the commonest.
    """
    rows, _ = conditional_rows(belief, own.secret, neighbour)
    value = None
    if own.constant is not None:
        worst = channel.worst_ratio(rows)
        value = own.constant + worst.value
        if worst.value <= TIE:
            return Reached(value, commonest_pair(own.weights), {})
        if not all_pairs:
            return Reached(value, (worst.likelier, worst.unlikelier), {neighbour: worst.report})
    together = own.pairs + channel.ratio_pairs(rows)
    pair = best_pair(together, own.weights)
    worst = channel.worst_of_pair(rows, pair)
    reports = {neighbour: worst.report} if worst.value > TIE else {}
    return Reached(float(together[pair]) if value is None else value, pair, reports)


@dataclass(frozen=True)
class _Largest:
    """A log-ratio, its two rows, the number of the listed reports, and what the answered one favours."""

    value: float
    pair: tuple[int, int]
    cell: int = 0
    favoured: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def _with_all(belief: Belief, channels: Channels, own: OwnReport) -> Reached:
    """Return the leakage through the own report and all others, and what reaches it."""
    answered = _answered(belief, channels, own.secret)
    listed = [name for name in channels if name not in (own.secret, answered)]
    axes = [*listed, answered] if answered is not None else listed
    tensor = _conditional_tensor(belief, own.secret, axes)
    if len(own.possible) < len(tensor):
        tensor = tensor[own.possible]
    logs = _contracted_logs(tensor, [channels[name] for name in listed])
    if answered is None:
        largest = _largest_ratio(logs.reshape(len(logs), -1), own)
    else:
        largest = _answer(logs.reshape(len(logs), -1, logs.shape[-1]), channels[answered], own)
    if largest.value <= own.pairs[largest.pair] + TIE:
        return Reached(largest.value, largest.pair, {})
    numbers = np.unravel_index(largest.cell, logs.shape[1 : len(listed) + 1])
    reports = {name: channels[name].named(int(y)) for name, y in zip(listed, numbers, strict=True)}
    if answered is not None:
        reports[answered] = largest.favoured
    return Reached(largest.value, largest.pair, {name: reports[name] for name in channels if name in reports})


def _conditional_tensor(belief: Belief, secret: str, others: Sequence[str]) -> Array:
    """Return Pr(others | secret), the secret on the first axis; rows of impossible values are 0."""
    joint = belief.joint([secret, *others])
    mass = joint.reshape(len(joint), -1).sum(axis=1).reshape(-1, *[1] * len(others))
    return np.divide(joint, np.where(mass > 0, mass, 1.0), out=joint)


def _contracted_logs(tensor: Array, channels: Sequence[Channel]) -> Array:
    """Return ln of Pr(reports | secret): the values on the axes after the first replaced by reports.

    Axes beyond the channels stay as they are. Sums that doubles could lose are taken in logarithms. The
    tensor may be overwritten.
    """
    columns = [channel.all_logs() for channel in channels]
    least = float(tensor.min()) or float(tensor[tensor > 0].min())  # its logarithm decides for all
    if fits_doubles(np.log([least]), *columns):
        listed = [channel.all_columns() for channel in channels]
        is_binary = all(part.shape == (2, 2) for part in listed) and tensor.ndim == len(listed) + 1
        if is_binary and tensor.size >= LARGE:
            from sidelight.leakage.totals.kernels import mix_axes

            cells = np.ascontiguousarray(tensor)
            mix_axes(cells.reshape(-1), np.stack(listed))
            return logs_of(cells, out=cells)
        for axis, channel in enumerate(channels, start=1):
            tensor = channel.contract(tensor, axis)
        return logs_of(tensor)
    logs = logs_of(tensor)
    for axis, column in enumerate(columns, start=1):
        logs = contract_logs(logs, column, axis)
    return logs


def _largest_ratio(logs: Array, own: OwnReport) -> _Largest:
    """Return the largest log-ratio between two rows with their own part added, and what reaches it."""
    if own.constant is None:
        values, cells = log_pairs(logs)
        pair = best_pair(values + own.pairs, own.weights)
        return _Largest(float(values[pair] + own.pairs[pair]), pair, int(cells[pair]))
    spans = log_spans(logs)
    most = float(spans.max())
    if most <= TIE or own.constant == math.inf:
        return _Largest(most + own.constant, commonest_pair(own.weights))
    tied = np.flatnonzero(spans >= most - TIE)
    pair, place = _commonest_in(logs[:, tied], most, own.weights)
    return _Largest(most + own.constant, pair, int(tied[place]))


def _commonest_in(logs: Array, span: float, weights: Array) -> tuple[tuple[int, int], int]:
    """Return two rows that reach the span, and the column: of several, those whose rarer one is commonest."""
    if span == math.inf:
        high, low = ~np.isneginf(logs), np.isneginf(logs)
    else:
        high, low = logs >= logs.max(axis=0) - TIE, logs <= logs.min(axis=0) + TIE
    high, low = (np.where(rows, weights[:, None], -1.0) for rows in (high, low))
    column = int(np.minimum(high.max(axis=0), low.max(axis=0)).argmax())
    return (int(high[:, column].argmax()), int(low[:, column].argmax())), column


def _answer(logs: Array, channel: Channel, own: OwnReport) -> _Largest:
    """Return the largest log-ratio where one attribute answers the listed reports of the rest by its best.

    `logs` (m, cells, t) is ln of Pr(listed reports, value of the answering attribute | secret).
    """
    masses = np.logaddexp.reduce(logs, axis=-1)
    rows = np.exp(logs - np.where(np.isneginf(masses), 0.0, masses)[..., None])
    values, cells = np.zeros(own.pairs.shape), np.zeros(own.pairs.shape, dtype=np.intp)
    for i, mass in enumerate(masses):
        seen = np.flatnonzero(~np.isneginf(mass))
        answers = _climbed(rows[i, seen], rows[:, seen], channel)
        ratios = answers + mass[seen] - masses[:, seen]
        best = ratios.argmax(axis=1)
        values[i], cells[i] = np.maximum(ratios[np.arange(len(ratios)), best], 0.0), seen[best]
    pair = best_pair(values + own.pairs, own.weights)
    cell = int(cells[pair])
    favoured = channel.worst_of_pair(rows[:, cell], pair).report
    return _Largest(float(values[pair] + own.pairs[pair]), pair, cell, favoured)


def _climbed(row: Array, rows: Array, channel: Channel) -> Array:
    """Return the largest log-ratio of a row to every other, cell by cell, some cells at a time."""
    some = max(1, LARGEST_STACK // rows[:, 0].size)
    parts = [channel.answers(row[at : at + some], rows[:, at : at + some]) for at in range(0, len(row), some)]
    return np.concatenate(parts, axis=1)
