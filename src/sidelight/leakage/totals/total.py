"""Leakage of a secret through all released attributes together, its own report included.

The reports of different attributes are not independent given the secret, so pairwise figures do not add up
to a bound (see `published.pairwise_sum`). What is sound, given the belief:

* exact: contract the joint distribution with every channel, axis by axis, and take the largest ratio. One
  attribute whose reports favour too many sets to list is left for last: given the reports of the rest and
  two secret values, its best report is the problem of one pair;
* joint generic: the other reports together are one channel with the sum of their budgets on the joint
  variable of the other attributes;
* composition: the sum of all budgets;
* for a belief that is a tree, messages along it (see `tree`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError, TooLargeError, check_choice, unknown
from sidelight.leakage.bounds import Bound, Claim, Leakage
from sidelight.leakage.pair import checked_channels, conditional_rows, direct_leakage, is_idealised, own_pairs
from sidelight.leakage.totals.joint import joint_generic
from sidelight.leakage.totals.search import search_total
from sidelight.leakage.totals.tree import tree_total
from sidelight.leakage.witnesses import TIE, best_pair, commonest_pair, witnessed
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel import LARGEST_LIST, as_channels
from sidelight.mechanisms.channel.logs import contract_logs, fits_doubles, log_pairs, log_spans, logs_of
from sidelight.mechanisms.channel.sets import LARGEST_STACK

Array = NDArray[np.float64]
TotalMethod = Literal["auto", "exact", "tree", "joint generic", "composition"]
LARGEST_EXACT = 1 << 26
LARGEST_AUTOMATIC = 1 << 20
LARGEST_LISTED = 1 << 14
"""Of an attribute that is not answered so many favoured sets are listed."""
_PASSES = 8
"""So many times the search for the best report looks at a number, where a list looks once."""


ONE_VALUE = Bound(0.0, "exact", "only one value is possible")


def total_leakage(
    belief: Belief, channels: Mapping[str, Channel], secret: str, method: TotalMethod = "auto"
) -> Leakage:
    """Return the leakage of the secret through every release, as an interval.

    Args:
        belief: what the adversary knows.
        channels: the channel of every released attribute.
        secret: the attribute in question; it may be released or not.
        method: of the upper end; "auto" takes the smallest sound figure that is cheap enough. The figures of
            a belief that is a model of the table are of kind "model".
    """
    check_belief("belief", belief)
    channels = checked_channels(belief, channels)
    check_choice("method", method, get_args(TotalMethod))
    through = tuple(channels)
    if np.count_nonzero(belief.prior(secret)) < 2:
        return Leakage.exactly(secret, through, ONE_VALUE)
    upper = _upper(belief, channels, secret, method)
    if upper.kind == "exact":
        return _marked(belief, channels, Leakage.exactly(secret, through, upper))
    delta = math.fsum(channel.delta for channel in channels.values())
    lower = lower_total(belief, channels, secret)
    if lower.value > upper.value:
        upper = replace(upper, value=check_order(lower.value, upper.value))
    return _marked(belief, channels, Leakage(secret, through, lower, upper, delta))


def set_leakage(
    belief: Belief,
    channels: Mapping[str, Channel],
    secret: str,
    through: Iterable[str],
    method: TotalMethod = "auto",
) -> Leakage:
    """Return the leakage of the secret through some of the releases, its own report among them or not.

    Args:
        belief: what the adversary knows.
        channels: the channel of every released attribute.
        secret: the attribute in question.
        through: the releases that are seen.
        method: see `total_leakage`.
    """
    check_belief("belief", belief)
    channels = as_channels(channels)
    seen = [through] if isinstance(through, str) else list(through)
    for name in seen:
        if name not in channels:
            raise unknown("released attribute", name, channels)
    return total_leakage(belief, {name: channels[name] for name in seen}, secret, method)


def _upper(belief: Belief, channels: Mapping[str, Channel], secret: str, method: TotalMethod) -> Bound:
    """Return the upper end by the given method, or the smallest that is cheap enough."""
    if method == "exact" or (method == "auto" and is_exact_cheap(belief, channels, secret)):
        return exact_total(belief, channels, secret)
    if method == "tree" or (method == "auto" and belief.tree is not None):
        return tree_total(belief, channels, secret)
    if method == "composition":
        return composition(channels)
    if method == "joint generic":
        return joint_generic(belief, channels, secret)
    sums = composition(channels)
    if belief.records is None:
        return sums
    try:
        joint = joint_generic(belief, channels, secret)
    except TooLargeError:
        return sums
    return joint if joint.value < sums.value else sums


def _marked(belief: Belief, channels: Mapping[str, Channel], leakage: Leakage) -> Leakage:
    """Mark figures as those of a model of the table, or of channels as a paper idealises them."""
    if belief.is_model:
        lower, upper = (replace(bound, kind="model") for bound in (leakage.lower, leakage.upper))
        leakage = replace(leakage, lower=lower, upper=upper)
    if is_idealised(channels.values()):
        leakage = replace(leakage, upper=replace(leakage.upper, kind="published"))
    return leakage


def check_order(lower: float, upper: float) -> float:
    """Return the lower end, or raise where it exceeds the upper one by more than rounding: one is wrong."""
    if lower - upper > 1e-9 * max(1.0, upper):
        raise ArithmeticError(f"a lower figure of {lower} exceeds the upper figure of {upper}")
    return lower


def composition(channels: Mapping[str, Channel]) -> Bound:
    """Return the sum of all budgets: sound for every belief, unless a paper idealises one of the channels."""
    value = math.fsum(channel.epsilon for channel in channels.values())
    return Bound(value, "published" if is_idealised(channels.values()) else "certified", "composition")


def exact_total(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the exact total leakage by contracting the joint distribution with every channel.

    The secret's own report adds its log-ratio for two values. Of the others, all but one are listed; the one
    that can favour most sets is answered instead: its best report is found for every two secret values and
    every combination of the others' reports.
    """
    others = [name for name in channels if name != secret]
    _check_exact(belief, channels, secret)
    own, possible = _own_pairs(belief, channels.get(secret), secret)
    if len(possible) < 2:
        return ONE_VALUE
    weights = belief.prior(secret)[possible]
    if not others:
        pair = best_pair(own, weights)
        reached = _Reached(float(own[pair]), pair, {})
    elif len(others) == 1:
        is_small = len(possible) ** 2 * channels[others[0]].size <= LARGEST_AUTOMATIC
        reached = _with_neighbour(
            belief, channels[others[0]], secret, others[0], own, weights, all_pairs=is_small
        )
    else:
        reached = _with_all(belief, channels, secret, own, weights)
    known = all(channel.claim == "exact" for channel in channels.values())
    kind: Claim = "exact" if known else "certified"
    bound = Bound(min(reached.value, composition(channels).value), kind, "exact joint")
    return witnessed(bound, belief, channels, secret, reached.codes(possible), reached.reports)


@dataclass(frozen=True)
class _Reached:
    """A log-ratio, the two rows that reach it, and what names the reports (see `Witness`)."""

    value: float
    pair: tuple[int, int]
    reports: dict[str, NDArray[np.intp]]

    def codes(self, possible: NDArray[np.intp]) -> tuple[int, int]:
        """Return the secret values of the two rows."""
        return int(possible[self.pair[0]]), int(possible[self.pair[1]])


def _check_exact(belief: Belief, channels: Mapping[str, Channel], secret: str) -> None:
    """Raise where the exact total is not known or too large, and say what to do instead."""
    others = [name for name in channels if name != secret]
    unlisted = _unlisted(belief, channels, secret)
    if unlisted is not None:
        raise InputError(
            f"the exact total needs channels whose reports can be listed; that of {unlisted!r} cannot. "
            "Use method='joint generic' or 'composition'."
        )
    if not belief.knows_joints and len(others) > 1:
        raise InputError("the exact total needs a joint belief; use kind='joint' or method='composition'.")
    size = _exact_cells(belief, channels, secret)
    if size > LARGEST_EXACT:
        raise TooLargeError(
            f"the exact total of {secret!r} needs {size:.3g} cells, more than {LARGEST_EXACT}; "
            "use method='joint generic' or 'composition'."
        )


def lower_total(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the best witness at hand: the own report with its worst neighbour, or a search over all reports.

    Fewer reports never say more, and any combination of reports is a witness.
    """
    channels = {name: channel.attained for name, channel in channels.items()}
    own, possible = _own_pairs(belief, channels.get(secret), secret)
    weights = belief.prior(secret)[possible]
    best = direct_leakage(belief, channels.get(secret), secret).lower
    best = Bound(best.value, "lower", "own report", best.witness, best.support)
    for name, channel in channels.items():
        if name == secret:
            continue
        reached = _with_neighbour(belief, channel, secret, name, own, weights)
        if reached.value > best.value:
            method = f"own report with {name}" if secret in channels else f"report of {name}"
            bound = Bound(reached.value, "lower", method)
            best = witnessed(bound, belief, channels, secret, reached.codes(possible), reached.reports)
    found = search_total(belief, channels, secret, own)
    return found if found is not None and found.value > best.value else best


def _with_neighbour(
    belief: Belief,
    channel: Channel,
    secret: str,
    neighbour: str,
    own: Array,
    weights: Array,
    *,
    all_pairs: bool = False,
) -> _Reached:
    """Return the leakage through the own report and one neighbour, and what reaches it.

    To look at all pairs of values takes longer, and of several that reach it finds the commonest.
    """
    rows, _ = conditional_rows(belief, secret, neighbour)
    constant = _constant_part(own)
    value = None
    if constant is not None:
        worst = channel.worst_ratio(rows)
        value = constant + worst.value
        if worst.value <= TIE:
            return _Reached(value, commonest_pair(weights), {})
        if not all_pairs:
            return _Reached(value, (worst.likelier, worst.unlikelier), {neighbour: worst.report})
    together = own + channel.ratio_pairs(rows)
    pair = best_pair(together, weights)
    worst = channel.worst_of_pair(rows, pair)
    reports = {neighbour: worst.report} if worst.value > TIE else {}
    return _Reached(float(together[pair]) if value is None else value, pair, reports)


def _with_all(
    belief: Belief, channels: Mapping[str, Channel], secret: str, own: Array, weights: Array
) -> _Reached:
    """Return the leakage through the own report and all others, and what reaches it."""
    answered = _answered(belief, channels, secret)
    listed = [name for name in channels if name not in (secret, answered)]
    possible = np.flatnonzero(belief.prior(secret) > 0)
    axes = [*listed, answered] if answered is not None else listed
    tensor = _conditional_tensor(belief, secret, axes)[possible]
    logs = _contracted_logs(tensor, [channels[name] for name in listed])
    shape = logs.shape[1 : len(listed) + 1]
    if answered is not None:
        found = _answer(logs.reshape(len(logs), -1, logs.shape[-1]), channels[answered], own, weights)
    else:
        found = _largest_ratio(logs.reshape(len(logs), -1), own, weights)
    value, pair, cell, favoured = found
    if value <= own[pair] + TIE:
        return _Reached(value, pair, {})
    places = np.unravel_index(cell, shape)
    reports = {name: channels[name].named(int(y)) for name, y in zip(listed, places, strict=True)}
    if answered is not None:
        reports[answered] = favoured
    return _Reached(value, pair, {name: reports[name] for name in channels if name in reports})


def _constant_part(own: Array) -> float | None:
    """Return the own report's log-ratio if it is the same for every two values, as for most mechanisms."""
    different = own[np.eye(len(own)) == 0]
    return float(different[0]) if len(different) and (different == different[0]).all() else None


def _own_pairs(belief: Belief, channel: Channel | None, secret: str) -> tuple[Array, NDArray[np.intp]]:
    """Return the own report's log-ratios for every pair of possible values, and those values."""
    possible = np.flatnonzero(belief.prior(secret) > 0)
    return own_pairs(channel, possible), possible


def _answered(belief: Belief, channels: Mapping[str, Channel], secret: str) -> str | None:
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


def _unlisted(belief: Belief, channels: Mapping[str, Channel], secret: str) -> str | None:
    """Return an attribute whose reports can be neither listed nor answered, if there is one."""
    others = [name for name in channels if name != secret]
    answered = _answered(belief, channels, secret)
    for name, channel in channels.items():
        has_list = not channel.favours_sets or channel.count_reports() <= LARGEST_LISTED
        is_free = name in (secret, answered) or len(others) == 1
        if channel.delta > 0 or not (has_list or is_free):
            return name
    return None


def _exact_cells(belief: Belief, channels: Mapping[str, Channel], secret: str) -> float:
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


def is_exact_cheap(belief: Belief, channels: Mapping[str, Channel], secret: str) -> bool:
    """Whether "auto" takes the exact total of this secret."""
    known = belief.knows_joints or len(set(channels) - {secret}) <= 1
    if not known or _unlisted(belief, channels, secret) is not None:
        return False
    return _exact_cells(belief, channels, secret) <= LARGEST_AUTOMATIC


def is_all_listed(belief: Belief, channels: Mapping[str, Channel], secret: str) -> bool:
    """Whether the exact total of this secret lists all reports, and its own can be listed as well."""
    counts = [channel.count_reports() for channel in channels.values()]
    if len(counts) < 3 and math.prod(counts) * belief.schema[secret].size > LARGEST_AUTOMATIC:
        return False
    return _answered(belief, channels, secret) is None and max(counts, default=0.0) <= LARGEST_LIST


def _conditional_tensor(belief: Belief, secret: str, others: Sequence[str]) -> Array:
    """Return Pr(others | secret), the secret on the first axis; rows of impossible values are 0."""
    joint = belief.joint([secret, *others])
    mass = joint.reshape(len(joint), -1).sum(axis=1).reshape(-1, *[1] * len(others))
    return np.asarray(np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0))


def _contracted_logs(tensor: Array, channels: Sequence[Channel]) -> Array:
    """Return ln of Pr(reports | secret): the values on the axes after the first replaced by reports.

    Axes beyond the channels stay as they are. Sums that doubles could lose are taken in logarithms.
    """
    columns = [channel.all_logs() for channel in channels]
    logs = logs_of(tensor)
    if fits_doubles(logs, *columns):
        for axis, channel in enumerate(channels, start=1):
            tensor = channel.contract(tensor, axis)
        return logs_of(tensor)
    for axis, column in enumerate(columns, start=1):
        logs = contract_logs(logs, column, axis)
    return logs


_Found = tuple[float, tuple[int, int], int, NDArray[np.intp]]
"""A log-ratio, two rows, the number of the listed reports, and the values that the answered one favours."""
_NOTHING = np.zeros(0, dtype=np.intp)


def _largest_ratio(logs: Array, own: Array, weights: Array) -> _Found:
    """Return the largest log-ratio between two rows with their own part added, and what reaches it."""
    constant = _constant_part(own)
    if constant is None:
        values, cells = log_pairs(logs)
        pair = best_pair(values + own, weights)
        return float(values[pair] + own[pair]), pair, int(cells[pair]), _NOTHING
    spans = log_spans(logs)
    most = float(spans.max())
    if most <= TIE or constant == math.inf:
        return most + constant, commonest_pair(weights), 0, _NOTHING
    tied = np.flatnonzero(spans >= most - TIE)
    pair, place = _commonest_in(logs[:, tied], most, weights)
    return most + constant, pair, int(tied[place]), _NOTHING


def _commonest_in(logs: Array, span: float, weights: Array) -> tuple[tuple[int, int], int]:
    """Return two rows that reach the span, and the column: of several, those whose rarer one is commonest."""
    if span == math.inf:
        high, low = ~np.isneginf(logs), np.isneginf(logs)
    else:
        high, low = logs >= logs.max(axis=0) - TIE, logs <= logs.min(axis=0) + TIE
    high, low = (np.where(rows, weights[:, None], -1.0) for rows in (high, low))
    column = int(np.minimum(high.max(axis=0), low.max(axis=0)).argmax())
    return (int(high[:, column].argmax()), int(low[:, column].argmax())), column


def _answer(logs: Array, channel: Channel, own: Array, weights: Array) -> _Found:
    """Return the largest log-ratio where one attribute answers the listed reports of the rest by its best.

    Args:
        logs: (m, cells, t), ln of Pr(listed reports, value of the answering attribute | secret).
        channel: of the answering attribute.
        own: (m, m), the log-ratios of the secret's own report.
        weights: (m,), how common each secret value is.
    """
    masses = np.logaddexp.reduce(logs, axis=-1)
    rows = np.exp(logs - np.where(np.isneginf(masses), 0.0, masses)[..., None])
    values, cells = np.zeros(own.shape), np.zeros(own.shape, dtype=np.intp)
    for i, mass in enumerate(masses):
        seen = np.flatnonzero(~np.isneginf(mass))
        answers = _climbed(rows[i, seen], rows[:, seen], channel)
        ratios = answers + mass[seen] - masses[:, seen]
        best = ratios.argmax(axis=1)
        values[i], cells[i] = np.maximum(ratios[np.arange(len(ratios)), best], 0.0), seen[best]
    pair = best_pair(values + own, weights)
    cell = int(cells[pair])
    favoured = channel.worst_of_pair(rows[:, cell], pair).report
    return float(values[pair] + own[pair]), pair, cell, favoured


def _climbed(row: Array, rows: Array, channel: Channel) -> Array:
    """Return the largest log-ratio of a row to every other, cell by cell, some cells at a time."""
    some = max(1, LARGEST_STACK // rows[:, 0].size)
    parts = [channel.answers(row[at : at + some], rows[:, at : at + some]) for at in range(0, len(row), some)]
    return np.concatenate(parts, axis=1)
