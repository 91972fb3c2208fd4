"""Leakage of a secret through all released attributes together, its own report included.

The reports of different attributes are not independent given the secret, so pairwise figures do not add up
to a bound (see `published.pairwise_sum`). What is sound, given the belief:

* exact: contract the joint distribution with every channel, axis by axis, and take the largest ratio;
* joint generic: the other reports together are one channel with the sum of their budgets on the joint
  variable of the other attributes;
* composition: the sum of all budgets;
* for a belief that is a tree, messages along it (see `tree`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError, TooLargeError, check_choice, unknown
from sidelight.leakage.bounds import Bound, Figure, Leakage, Witness
from sidelight.leakage.entry import check_channels
from sidelight.leakage.families import (
    LARGEST_LIST,
    baseline_of,
    count_reports,
    delta_of,
    describe_favoured,
    describe_report,
    figure_of,
    own_pairs,
    ratio_pairs,
    report_columns,
    report_values,
    single_of,
    worst_of_pair,
    worst_ratio,
)
from sidelight.leakage.joint import joint_generic
from sidelight.leakage.pair import check_fit, conditional_rows, direct_leakage, pair_witness
from sidelight.leakage.search import search_total
from sidelight.leakage.support import support_of
from sidelight.leakage.tree import tree_total
from sidelight.mechanisms import Channel

Array = NDArray[np.float64]
TotalMethod = Literal["auto", "exact", "tree", "joint generic", "composition"]
LARGEST_EXACT = 1 << 26
LARGEST_AUTOMATIC = 1 << 20
LARGEST_EXPONENT = 600


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
    check_channels(channels)
    check_choice("method", method, get_args(TotalMethod))
    for name, channel in channels.items():
        check_fit(belief.schema[name], channel)
    through = tuple(channels)
    if np.count_nonzero(belief.prior(secret)) < 2:
        return Leakage.exactly(secret, through, Bound(0.0, "exact", "only one value is possible"))
    upper = _upper(belief, channels, secret, method)
    if upper.kind == "exact":
        return _marked(belief, channels, Leakage.exactly(secret, through, upper))
    delta = math.fsum(delta_of(channel) for channel in channels.values())
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
    check_channels(channels)
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
    if any(figure_of(channel) == "published" for channel in channels.values()):
        leakage = replace(leakage, upper=replace(leakage.upper, kind="published"))
    if not belief.is_model:
        return leakage
    lower, upper = (replace(bound, kind="model") for bound in (leakage.lower, leakage.upper))
    return replace(leakage, lower=lower, upper=upper)


def check_order(lower: float, upper: float) -> float:
    """Return the lower end, or raise where it exceeds the upper one by more than rounding: one is wrong."""
    if lower - upper > 1e-9 * max(1.0, upper):
        raise ArithmeticError(f"a lower figure of {lower} exceeds the upper figure of {upper}")
    return lower


def composition(channels: Mapping[str, Channel]) -> Bound:
    """Return the sum of all budgets: sound for every belief."""
    value = math.fsum(channel.epsilon for channel in channels.values())
    return Bound(value, "certified", "composition")


def exact_total(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the exact total leakage by contracting the joint distribution with every channel."""
    others = [name for name in channels if name != secret]
    unlisted = [name for name, channel in channels.items() if not _lists_reports(channel)]
    if unlisted:
        raise InputError(
            f"the exact total needs channels whose reports can be listed; that of {unlisted[0]!r} cannot. "
            "Use method='joint generic' or 'composition'."
        )
    if not belief.knows_joints and len(others) > 1:
        raise InputError("the exact total needs a joint belief; use kind='joint' or method='composition'.")
    if not _fits_doubles(channels):
        raise InputError(
            f"the budgets add up to more than {LARGEST_EXPONENT}, too much for the exact total in doubles; "
            "use method='composition'."
        )
    size = _exact_cells(belief, channels, secret)
    if size > LARGEST_EXACT:
        raise TooLargeError(
            f"the exact total of {secret!r} needs {size:.3g} cells, more than {LARGEST_EXACT}; "
            "use method='joint generic' or 'composition'."
        )
    own, possible = _own_pairs(belief, channels.get(secret), secret)
    tensor = _conditional_tensor(belief, secret, others)[possible]
    for axis, name in enumerate(others, start=1):
        tensor = _contract(tensor, channels[name], axis)
    value, i, j, cell = _largest_ratio(tensor.reshape(len(possible), -1), own)
    report = np.unravel_index(cell, tensor.shape[1:]) if others else ()
    value = min(value, composition(channels).value)
    return _bound(belief, channels, secret, others, value, (int(possible[i]), int(possible[j])), report)


def lower_total(belief: Belief, channels: Mapping[str, Channel], secret: str) -> Bound:
    """Return the best witness at hand: the own report with its worst neighbour, or a search over all reports.

    Fewer reports never say more, and any combination of reports is a witness.
    """
    channels = {name: single_of(channel) for name, channel in channels.items()}
    own, possible = _own_pairs(belief, channels.get(secret), secret)
    best = direct_leakage(belief, channels.get(secret), secret).lower
    best = Bound(best.value, "lower", "own report", best.witness, best.support)
    for name, channel in channels.items():
        if name == secret:
            continue
        value, pair = _with_neighbour(belief, channel, secret, name, own)
        if value > best.value:
            witness, support = pair_witness(belief, channel, secret, name, pair)
            if secret in channels:
                own_report = _own_report(belief, channels[secret], secret, pair, possible)
                witness = replace(witness, report=f"{own_report}, {witness.report}")
            method = f"own report with {name}" if secret in channels else f"report of {name}"
            best = Bound(value, "lower", method, witness, support)
    found = search_total(belief, channels, secret, own)
    return found if found is not None and found.value > best.value else best


def _with_neighbour(
    belief: Belief, channel: Channel, secret: str, neighbour: str, own: Array
) -> tuple[float, tuple[int, int]]:
    """Return the leakage through the own report and one neighbour, and the pair of values that reaches it."""
    rows, _ = conditional_rows(belief, secret, neighbour)
    constant = _constant_part(own)
    if constant is not None:
        worst = worst_ratio(rows, channel)
        return constant + worst.value, (worst.likelier, worst.unlikelier)
    together = own + ratio_pairs(rows, channel)
    likelier, unlikelier = divmod(int(together.argmax()), len(own))
    return float(together.max()), (likelier, unlikelier)


def _constant_part(own: Array) -> float | None:
    """Return the own report's log-ratio if it is the same for every two values, as for most mechanisms."""
    different = own[np.eye(len(own)) == 0]
    return float(different[0]) if len(different) and (different == different[0]).all() else None


def _own_report(
    belief: Belief, channel: Channel, secret: str, pair: tuple[int, int], possible: NDArray[np.intp]
) -> str:
    """Say in words which own report tells two secret values apart best."""
    worst = worst_of_pair(np.eye(channel.size)[possible], channel, pair)
    return describe_favoured(belief.schema[secret], channel, worst.favoured)


def _own_pairs(belief: Belief, channel: Channel | None, secret: str) -> tuple[Array, NDArray[np.intp]]:
    """Return the own report's log-ratios for every pair of possible values, and those values."""
    possible = np.flatnonzero(belief.prior(secret) > 0)
    return own_pairs(channel, possible), possible


def _exact_cells(belief: Belief, channels: Mapping[str, Channel], secret: str) -> float:
    others = [name for name in channels if name != secret]
    inputs = math.prod(float(belief.schema[name].size) for name in [secret, *others])
    outputs = math.prod(count_reports(channels[name]) for name in others) * belief.schema[secret].size
    return max(inputs, outputs)


def is_exact_cheap(belief: Belief, channels: Mapping[str, Channel], secret: str) -> bool:
    """Whether "auto" takes the exact total of this secret."""
    listed = all(_lists_reports(channel) for channel in channels.values())
    known = belief.knows_joints or len(set(channels) - {secret}) <= 1
    listed = listed and _fits_doubles(channels)
    return listed and known and _exact_cells(belief, channels, secret) <= LARGEST_AUTOMATIC


def _fits_doubles(channels: Mapping[str, Channel]) -> bool:
    """Whether the product of all least likelihoods is far from the smallest double."""
    finite = [channel.epsilon for channel in channels.values() if math.isfinite(channel.epsilon)]
    return math.fsum(finite) <= LARGEST_EXPONENT


def _lists_reports(channel: Channel) -> bool:
    return delta_of(channel) == 0 and count_reports(channel) <= max(LARGEST_LIST, channel.size + 2)


def _conditional_tensor(belief: Belief, secret: str, others: Sequence[str]) -> Array:
    """Return Pr(others | secret), the secret on the first axis; rows of impossible values are 0."""
    joint = belief.joint([secret, *others])
    mass = joint.reshape(len(joint), -1).sum(axis=1).reshape(-1, *[1] * len(others))
    return np.asarray(np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0))


def _contract(tensor: Array, channel: Channel, axis: int) -> Array:
    """Replace the values on `axis` by the reports of the channel."""
    if channel.family == "singletons":
        baseline = baseline_of(channel)
        return np.asarray(baseline * tensor.sum(axis=axis, keepdims=True) + (1 - baseline) * tensor)
    columns = report_columns(channel)
    if columns is None:
        raise TooLargeError("this channel has too many reports to list; use another method.")
    return np.moveaxis(np.tensordot(tensor, columns, axes=(axis, 0)), -1, axis)


def _largest_ratio(columns: Array, own: Array) -> tuple[float, int, int, int]:
    """Return the largest log-ratio between two rows with their own part added, the rows and the column."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(columns)
        constant = _constant_part(own)
        if constant is not None:
            spans = np.where(columns.max(axis=0) > 0, logs.max(axis=0) - logs.min(axis=0), 0.0)
            cell = int(spans.argmax())
            pair = int(logs[:, cell].argmax()), int(logs[:, cell].argmin())
            return float(spans[cell]) + constant, *pair, cell
    best = (0.0, 0, 0, 0)
    for i, row in enumerate(logs):
        seen = np.flatnonzero(~np.isneginf(row))
        for j in range(len(logs)):
            if i == j or not len(seen):
                continue
            ratios = row[seen] - logs[j, seen]
            cell = int(ratios.argmax())
            value = float(ratios[cell] + own[i, j])
            if value > best[0]:
                best = (value, i, j, int(seen[cell]))
    return best


def _bound(
    belief: Belief,
    channels: Mapping[str, Channel],
    secret: str,
    others: Sequence[str],
    value: float,
    pair: tuple[int, int],
    report: Sequence[np.intp],
) -> Bound:
    labels = belief.schema[secret].values
    parts, favoured = [], {}
    if secret in channels:
        everything = np.arange(belief.schema[secret].size)
        parts.append(_own_report(belief, channels[secret], secret, pair, everything))
    for name, code in zip(others, report, strict=True):
        parts.append(describe_report(belief.schema[name], channels[name], int(code)))
        favoured[name] = report_values(channels[name], int(code))
    known = all(figure_of(channel) == "exact" for channel in channels.values())
    kind: Figure = "exact" if known else "certified"
    if value <= 0:
        return Bound(value, kind, "exact joint")
    witness = Witness(", ".join(parts), labels[pair[0]], labels[pair[1]])
    return Bound(value, kind, "exact joint", witness, support_of(belief, secret, pair, favoured))
