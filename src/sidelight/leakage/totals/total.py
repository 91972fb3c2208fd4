"""Leakage of a secret through all released attributes together, its own report included.

The reports of different attributes are not independent given the secret, so pairwise figures do not add up
to a bound (see `published.pairwise_sum`). What is sound, given the belief, has a module for each kind:

* `exact`: the joint distribution contracted with every channel (`contraction`: many secrets at once);
* `joint`: the other reports together as one channel with the sum of their budgets on the joint variable of
  the other attributes (joint generic), or the sum of all budgets (composition);
* `tree`: messages along a belief that is a tree;
* `lower`: a figure that is reached.

This module chooses among them: for one question, with a witness, and for the many questions of a search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import check_choice, unknown
from sidelight.leakage.bounds import Bound, Leakage
from sidelight.leakage.pair import checked_channels, is_idealised
from sidelight.leakage.totals.base import ONE_VALUE, Channels, Totals, check_order, composition
from sidelight.leakage.totals.exact import exact_total, exact_totals, is_exact_cheap
from sidelight.leakage.totals.joint import JointTotal, is_joint_worth
from sidelight.leakage.totals.lower import lower_total
from sidelight.leakage.totals.tree import TreeTotals, tree_total

LARGEST_QUESTION = 1 << 27
"""Exact totals are asked for again and again if a question takes at most so many operations, about a tenth of
a second, or no more than the next best method takes."""
TotalMethod = Literal["auto", "exact", "tree", "joint generic", "composition"]


def total_leakage(belief: Belief, channels: Channels, secret: str, method: TotalMethod = "auto") -> Leakage:
    """Return the leakage of the secret, released or not, through every release, as an interval.

    Of the methods for the upper end "auto" takes the smallest sound figure that is cheap enough. The figures
    of a belief that is a model of the table are of kind "model".
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
    belief: Belief, channels: Channels, secret: str, through: Iterable[str], method: TotalMethod = "auto"
) -> Leakage:
    """Return `total_leakage` through some of the releases, the secret's own report among them or not."""
    check_belief("belief", belief)
    channels = checked_channels(belief, channels)
    seen = [through] if isinstance(through, str) else list(through)
    for name in seen:
        if name not in channels:
            raise unknown("released attribute", name, channels)
    return total_leakage(belief, {name: channels[name] for name in seen}, secret, method)


def prepare_totals(
    belief: Belief, channels: Channels, secrets: Sequence[str], method: TotalMethod = "auto"
) -> tuple[Totals, ...]:
    """Return the secrets' totals, prepared to be asked for at many budgets.

    The method is chosen once for each secret: it depends on the channels' families, not on their budgets.
    "auto" takes messages for every tree, cheap as an exact total may be: they are kept between questions.
    """
    if _takes_tree(belief, method):
        return (TreeTotals(belief, tuple(secrets)),)
    exact = [name for name in secrets if _takes_exact(belief, channels, name, method)]
    if method == "auto" and exact:
        sizes = {name: belief.schema[name].size for name in dict.fromkeys([*channels, *exact])}
        records = math.inf if belief.records is None else len(belief.records.weights)
        if exact_operations(sizes) > max(LARGEST_QUESTION, joint_operations(sizes, exact, records)):
            exact = []
    rest = [JointTotal.of(belief, list(channels), name, method) for name in secrets if name not in exact]
    return *exact_totals(belief, channels, exact), *(total.for_many_budgets() for total in rest)


def exact_operations(sizes: Mapping[str, int]) -> float:
    """Return about how many operations one question about the exact totals of all attributes takes.

    Every axis is contracted at the price of its size for each cell; how often depends little on how many
    secrets there are.
    """
    return math.prod(map(float, sizes.values())) * sum(sizes.values())


def joint_operations(sizes: Mapping[str, int], secrets: Sequence[str], records: float) -> float:
    """Return about how many operations the joint generic bounds take: every two values, every column."""
    cells = math.prod(map(float, sizes.values()))
    return math.fsum(sizes[name] ** 2 * min(records, cells / sizes[name]) for name in secrets)


def _takes_tree(belief: Belief, method: TotalMethod) -> bool:
    return method == "tree" or (method == "auto" and belief.tree is not None)


def _takes_exact(belief: Belief, channels: Channels, secret: str, method: TotalMethod) -> bool:
    return method == "exact" or (method == "auto" and is_exact_cheap(belief, channels, secret))


def _upper(belief: Belief, channels: Channels, secret: str, method: TotalMethod) -> Bound:
    """Return the upper end by the given method, or the smallest that is cheap enough."""
    if _takes_exact(belief, channels, secret, method):
        return exact_total(belief, channels, secret)
    if _takes_tree(belief, method):
        return tree_total(belief, channels, secret)
    if method == "auto" and not is_joint_worth(belief, channels, secret):
        return composition(channels)
    return JointTotal.of(belief, list(channels), secret, method).bounds(channels)[secret]


def _marked(belief: Belief, channels: Channels, leakage: Leakage) -> Leakage:
    """Mark figures as those of a model of the table, or of channels as a paper idealises them."""
    if belief.is_model:
        lower, upper = (replace(bound, kind="model") for bound in (leakage.lower, leakage.upper))
        leakage = replace(leakage, lower=lower, upper=upper)
    if is_idealised(channels.values()):
        leakage = replace(leakage, upper=replace(leakage.upper, kind="published"))
    return leakage
