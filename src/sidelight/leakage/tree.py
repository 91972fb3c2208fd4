"""Total leakage for an adversary whose belief is a tree.

Rooted at the secret, the reports of different branches are independent given the attribute where they meet.
So what each branch says travels towards the secret as a bound on the log-ratios of its likelihood, and the
bounds of branches that meet add up:

* plain: one number a branch, its budget passed through the generic bound of each edge (on a chain the
  recursion of temporal privacy leakage);
* weighted: a number for each ordered pair of values, and the report of each attribute taken together with
  the worst message from below it;
* linear programs: the same over all messages that keep every pair's bound; boxes are the quick form of it
  for attributes of many values (see `cone`).

The last is the exact total where every attribute between the secret and a released one has two values: such
a message is one number, its extremes are reached, and branches reach theirs independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief, Tree
from sidelight.foundation.errors import InputError, check_choice
from sidelight.leakage.bounds import Bound, Figure, Witness
from sidelight.leakage.cone import (
    LARGEST_LISTED,
    box_pairs,
    column_pairs,
    programme_pairs,
    range_pairs,
    ray_columns,
)
from sidelight.leakage.generic import generic_worst
from sidelight.leakage.pair import check_fit
from sidelight.mechanisms import Channel

Array = NDArray[np.float64]
TreeMethod = Literal["auto", "plain", "weighted", "linear programs"]
METHODS: tuple[TreeMethod, ...] = ("auto", "plain", "weighted", "linear programs")
LARGEST_REPORTS = 256
LARGEST_BOXES = 1 << 26
Messages = dict[tuple[int, int], "_Message"]


@dataclass(frozen=True, eq=False)
class _Message:
    """What all reports of a branch say about the attribute above it.

    Attributes:
        pairs: bounds on the log-ratios of every ordered pair of the values that can occur, shape (m, m).
        budget: the sum of the branch's budgets.
        methods: how the bounds were found.
        is_exact: whether each bound is reached, whatever the reports of other branches.
        chosen: where it is exact, which report and which message from below reach each bound.
    """

    pairs: Array
    budget: float
    methods: frozenset[str] = frozenset()
    is_exact: bool = False
    chosen: NDArray[np.intp] | None = None


def tree_total(
    belief: Belief, channels: Mapping[str, Channel], secret: str, method: TreeMethod = "auto"
) -> Bound:
    """Return a bound on the leakage of the secret through every release, for a tree belief.

    Args:
        belief: a tree.
        channels: the channel of every released attribute.
        secret: the attribute in question; it may be released or not.
        method: "plain", "weighted", "linear programs" or "auto": linear programs where an attribute has
            few values, boxes where it has many, weighted where it has very many.

    Returns:
        A figure of kind "model" if the tree is a model of the table; else "exact" or "certified".
    """
    return tree_totals(belief, channels, [secret], method)[secret]


def tree_totals(
    belief: Belief,
    channels: Mapping[str, Channel],
    secrets: Iterable[str] | None = None,
    method: TreeMethod = "auto",
) -> dict[str, Bound]:
    """Return `tree_total` of each secret (of all attributes by default); what they share is computed once."""
    check_choice("method", method, METHODS)
    tree = belief.tree
    if tree is None:
        raise InputError(
            f"tree propagation needs a tree belief, got a {belief.kind} one; use Belief.tree_of(belief), "
            "which is a model of it."
        )
    for name, channel in channels.items():
        check_fit(belief.schema[name], channel)
    messages: Messages = {}
    return {
        secret: _total(belief, tree.rooted_at(secret), channels, method, messages)
        for secret in (belief.schema.names if secrets is None else secrets)
    }


def report_columns(channel: Channel) -> Array | None:
    """Return Pr(report | value) up to a factor for each report, shape (values, reports).

    None where the reports are unknown or more than `LARGEST_REPORTS`: then only the budget is used, which
    for a channel that can favour every set of values loses nothing.
    """
    if channel.family == "dense":
        return channel.matrix()
    width = int(getattr(channel, "width", 1))
    few = math.comb(channel.size, width) <= LARGEST_REPORTS
    if channel.family == "singletons" or (channel.family == "subsets" and few):
        sets = list(combinations(range(channel.size), width))
        columns = np.full((channel.size, len(sets)), math.exp(-channel.epsilon))
        for number, favoured in enumerate(sets):
            columns[list(favoured), number] = 1.0
        return columns
    return None


def _total(
    belief: Belief, tree: Tree, channels: Mapping[str, Channel], method: TreeMethod, messages: Messages
) -> Bound:
    """Pass messages from the leaves to the root, which is the secret."""
    root, *below = tree.order
    secret = tree.schema.names[root]
    for node in reversed(below):
        key = (node, tree.parents[node])
        if key not in messages:
            messages[key] = _message(tree, node, channels.get(tree.schema.names[node]), method, messages)
    possible = np.flatnonzero(tree.marginals[root] > 0)
    own = _own(channels.get(secret), possible)
    parts = [own, *(messages[child, root] for child in tree.children[root])]
    pairs = np.sum([part.pairs for part in parts], axis=0)
    pair = divmod(int(pairs.argmax()), len(possible))
    is_exact = all(part.is_exact for part in parts)
    kind: Figure = "exact" if is_exact else "certified"
    witness = None
    if is_exact and pairs.max() > 0:
        witness = _witness(tree, channels, own, messages, pair)
    counts = belief.support(secret)
    support = None if counts is None else int(counts[possible[list(pair)]].min())
    used = frozenset[str]().union(*(part.methods for part in parts))
    name = f"tree propagation ({', '.join(sorted(used))})" if used else "tree propagation"
    return Bound(float(pairs.max()), "model" if belief.is_model else kind, name, witness, support)


def _own(channel: Channel | None, possible: NDArray[np.intp]) -> _Message:
    """Return what the secret's own report says."""
    if channel is None:
        return _Message(np.zeros((len(possible), len(possible))), 0.0, is_exact=True)
    columns = report_columns(channel)
    if columns is None:
        return _Message(_even(channel.epsilon, len(possible)), channel.epsilon, is_exact=_is_known(channel))
    pairs, chosen = column_pairs(columns[possible])
    return _Message(pairs, channel.epsilon, is_exact=True, chosen=chosen)


def _message(
    tree: Tree, node: int, channel: Channel | None, method: TreeMethod, messages: Messages
) -> _Message:
    """Return what the branch of `node` says about the values of its parent that can occur."""
    above, possible = tree.marginals[tree.parents[node]] > 0, tree.marginals[node] > 0
    rows = tree.conditionals[node][above][:, possible]
    size = rows.shape[1]
    parts = [messages[child, node] for child in tree.children[node]]
    own = channel.epsilon if channel else 0.0
    budget = math.fsum([own, *(part.budget for part in parts)])
    spreads = np.sum([np.zeros((size, size)), *(part.pairs for part in parts)], axis=0)
    if method == "plain":
        worst = generic_worst(rows, math.exp(-own - float(spreads.max())))
        return _Message(_even(worst.value, len(rows)), budget, frozenset({method}))
    is_leaf = not spreads.any()
    reports = np.ones((size, 1))
    columns = report_columns(channel) if channel else None
    if columns is not None:
        reports = columns[possible]
    elif channel:
        spreads = spreads + _even(own, size)  # any message times any report of this budget, nothing else
    pairs, chosen, used = _pairs(rows, reports, spreads, method)
    is_exact = (is_leaf or (size <= 2 and used == "linear programs")) and _is_known(channel)
    return _Message(
        np.minimum(pairs, budget),
        budget,
        frozenset({used} if not is_leaf else ()).union(*(part.methods for part in parts)),
        is_exact and all(part.is_exact for part in parts),
        chosen,
    )


def _is_known(channel: Channel | None) -> bool:
    """Whether the bounds use all that a channel's reports can say, and nothing more."""
    return channel is None or channel.family == "all" or report_columns(channel) is not None


def _even(value: float, size: int) -> Array:
    """Return the same bound for every ordered pair of different values."""
    return np.where(np.eye(size, dtype=np.bool_), 0.0, value)


def _pairs(
    rows: Array, reports: Array, spreads: Array, method: TreeMethod
) -> tuple[Array, NDArray[np.intp] | None, str]:
    """Return the bounds over all reports and messages from below, what reaches them, and the method."""
    size = len(spreads)
    spread = float(spreads.max(initial=0.0))
    if spread == 0:
        return *column_pairs(rows @ reports), "linear programs"
    if method == "weighted":
        return range_pairs(rows, reports, spread), None, "weighted"
    if size <= LARGEST_LISTED:
        return *column_pairs(ray_columns(rows, reports, spreads)), "linear programs"
    if np.array_equal(spreads, _even(spread, size)):
        return range_pairs(rows, reports, spread), None, "linear programs"  # the two agree here
    if method == "linear programs":
        return programme_pairs(rows, reports, spreads), None, "linear programs"
    if rows.size * len(rows) * size * reports.shape[1] <= LARGEST_BOXES:
        return box_pairs(rows, reports, spreads), None, "boxes"
    return range_pairs(rows, reports, spread), None, "weighted"


def _witness(
    tree: Tree, channels: Mapping[str, Channel], own: _Message, messages: Messages, pair: tuple[int, int]
) -> Witness | None:
    """Follow what reaches an exact figure outwards from the secret; None if some report is unlisted."""
    schema, root = tree.schema, tree.order[0]
    said: dict[str, str] = {}
    waiting = [(root, own, pair)]
    for node, message, asked in waiting:
        name = schema.names[node]
        is_inner = node != root and any(messages[child, node].pairs.any() for child in tree.children[node])
        column = 0 if message.chosen is None else int(message.chosen[asked])
        report, ray = divmod(column, 2 if is_inner else 1)
        if name in channels:
            if report_columns(channels[name]) is None:
                return None
            known = channels[name].family == "singletons"
            said[name] = f"{name} = {schema[name].values[report]}" if known else f"{name}: report {report}"
        below = asked if node == root else ((0, 1), (1, 0))[ray]  # the order of a binary cone's two rays
        if is_inner or node == root:
            waiting += [(child, messages[child, node], below) for child in tree.children[node]]
    possible = np.flatnonzero(tree.marginals[root] > 0)
    likelier, unlikelier = (schema.attributes[root].values[possible[i]] for i in pair)
    return Witness(", ".join(said[name] for name in channels if name in said), likelier, unlikelier)
