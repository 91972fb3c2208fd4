"""Total leakage for an adversary whose belief is a tree.

Rooted at the secret, the reports of different branches are independent given the attribute where they meet.
So what each branch says travels towards the secret as a bound on the log-ratios of its likelihood, and the
bounds of branches that meet add up:

* plain: one number a branch, its budget passed through the generic bound of each edge (on a chain the
  recursion of temporal privacy leakage);
* weighted: a number for each ordered pair of values, and the report of each attribute taken together with
  the worst message from below it;
* linear programs: the same over all messages that keep every pair's bound; boxes are the quick form of it
  for attributes of many values (see `messages`).

The last is the exact total where every attribute between the secret and a released one has two values: such
a message is one number, its extremes are reached, and branches reach theirs independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from sidelight.belief import Belief, Tree, check_belief
from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_choice
from sidelight.leakage.bounds import Bound, Claim
from sidelight.leakage.pair import check_fit, checked_channels, is_idealised, own_pairs
from sidelight.leakage.totals import messages as cone
from sidelight.leakage.totals.base import Channels, Totals
from sidelight.leakage.witnesses import best_pair, records_along, witnessed
from sidelight.mechanisms import Channel
from sidelight.mechanisms.channel.generic import baseline_at, generic_worst

TreeMethod = Literal["auto", "plain", "weighted", "linear programs"]
LARGEST_REPORTS = 256
"""A channel with more reports is bounded by its budget alone."""
LARGEST_BOXES = 1 << 29
"""Boxes that would take more steps give way to one range a message."""
LARGEST_KNOWN = 1 << 12
"""How many messages are kept for the next question."""
Messages = dict[tuple[int, int], "_Message"]
Reports = dict[str, Positions]
"""What names each attribute's report; see `Witness`."""


@dataclass(frozen=True, eq=False)
class _Message:
    """What all reports of a branch say about the attribute above it.

    Attributes:
        pairs: bounds on the log-ratios of every ordered pair of the values that can occur, shape (m, m).
        budget: the sum of the branch's realised budgets.
        methods: how the bounds were computed.
        is_exact: whether each bound is reached, whatever the reports of other branches.
        chosen: where it is exact, which report and which message from below reach each bound.
    """

    pairs: Array
    budget: float
    methods: frozenset[str] = frozenset()
    is_exact: bool = False
    chosen: Positions | None = None


def tree_total(belief: Belief, channels: Channels, secret: str, method: TreeMethod = "auto") -> Bound:
    """Return a bound on the leakage of the secret, released or not, through every release, for a tree belief.

    "auto" takes linear programs where an attribute has few values, boxes where it has many, weighted where it
    has very many. The kind is "model" if the tree is a model of the table; else "exact" or "certified".
    """
    return tree_totals(belief, channels, [secret], method)[secret]


def tree_totals(
    belief: Belief,
    channels: Channels,
    secrets: Iterable[str] | None = None,
    method: TreeMethod = "auto",
    *,
    witnesses: bool = True,
) -> dict[str, Bound]:
    """Return `tree_total` of each secret (of all attributes by default); what they share is computed once.

    Without `witnesses` the figures are the same and take a fraction of the time.
    """
    check_belief("belief", belief)
    channels = checked_channels(belief, channels)
    names = belief.schema.names if secrets is None else [secrets] if isinstance(secrets, str) else secrets
    return TreeTotals(belief, tuple(names), method).bounds(channels, witnesses=witnesses)


@dataclass(frozen=True, eq=False)
class TreeTotals(Totals):
    """Totals of several secrets by messages along a tree.

    A search moves one budget at a time, and a message changes only with the channels of its own branch. So a
    message is kept for as long as the channels of its branch are the very same objects.
    """

    belief: Belief
    secrets: tuple[str, ...]
    method: TreeMethod = "auto"
    _known: dict[tuple[int, ...], tuple[_Message, Channel | None, list[_Message]]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        check_choice("method", self.method, get_args(TreeMethod))

    @cached_property
    def trees(self) -> dict[str, Tree]:
        """The tree rooted at each secret."""
        tree = self.belief.tree
        if tree is None:
            raise InputError(
                f"tree propagation needs a tree belief, got a {self.belief.kind} one; use "
                "Belief.tree_of(belief), which is a model of it."
            )
        return {secret: tree.rooted_at(secret) for secret in self.secrets}

    @cached_property
    def steps(self) -> list[tuple[Tree, int]]:
        """Which message to pass when: each towards a root once, after those that it gathers."""
        passed: dict[tuple[int, int], Tree] = {}
        for tree in self.trees.values():
            for node in reversed(tree.order[1:]):
                passed.setdefault((node, tree.parents[node]), tree)
        return [(tree, node) for (node, _), tree in passed.items()]

    def values(self, channels: Channels) -> dict[str, float]:
        """Return the total of each secret."""
        return {name: bound.value for name, bound in self.bounds(channels, witnesses=False).items()}

    def bounds(self, channels: Channels, *, witnesses: bool = True) -> dict[str, Bound]:
        """Return the total of each secret with what it claims; see `tree_totals`."""
        for name, channel in channels.items():
            check_fit(self.belief.schema[name], channel)
        if len(self._known) > LARGEST_KNOWN:
            self._known.clear()
        messages: Messages = {}
        for tree, node in self.steps:
            messages[node, tree.parents[node]] = self._passed(tree, node, channels, messages)
        return {
            secret: _total(self.belief, tree, channels, messages, witnesses)
            for secret, tree in self.trees.items()
        }

    def _passed(self, tree: Tree, node: int, channels: Channels, messages: Messages) -> _Message:
        """Return what the branch of `node` says, from what is known if nothing in it has changed."""
        channel = channels.get(tree.schema.names[node])
        parts = [messages[child, node] for child in tree.children[node]]
        key = (node, tree.parents[node], id(channel), *map(id, parts))
        if key not in self._known:  # channel and parts are kept with it, so that no id is given twice
            self._known[key] = _message(tree, node, channel, self.method, parts), channel, parts
        return self._known[key][0]


def _total(belief: Belief, tree: Tree, channels: Channels, messages: Messages, witnesses: bool) -> Bound:
    """Add up what all branches say about the root, which is the secret, and its own report."""
    root = tree.order[0]
    secret = tree.schema.names[root]
    possible = np.flatnonzero(tree.marginals[root] > 0)
    own = channels.get(secret)
    parts = [messages[child, root] for child in tree.children[root]]
    pairs = np.sum([own_pairs(own, possible), *(part.pairs for part in parts)], axis=0)
    used = frozenset[str]().union(*(part.methods for part in parts))
    name = f"tree propagation ({', '.join(sorted(used))})" if used else "tree propagation"
    is_exact = (own is None or own.claim == "exact") and all(part.is_exact for part in parts)
    kind: Claim = "model" if belief.is_model else "exact" if is_exact else "certified"
    kind = "published" if is_idealised(channels.values()) else kind
    bound = Bound(float(pairs.max()), kind, name)
    if bound.value <= 0 or not witnesses:
        return bound
    pair = best_pair(pairs, tree.marginals[root][possible])
    said = _reported(tree, channels, messages, pair) if is_exact else None
    if said is None:
        return replace(bound, support=records_along(belief, secret, tree.edges))
    codes = int(possible[pair[0]]), int(possible[pair[1]])
    return witnessed(bound, belief, channels, secret, codes, said)


def _message(
    tree: Tree, node: int, channel: Channel | None, method: TreeMethod, parts: Sequence[_Message]
) -> _Message:
    """Return what the branch of `node` says about the values of its parent that can occur."""
    above, possible = tree.marginals[tree.parents[node]] > 0, tree.marginals[node] > 0
    rows = tree.conditionals[node][above][:, possible]
    size = rows.shape[1]
    own = channel.epsilon if channel else 0.0
    budget = math.fsum([own, *(part.budget for part in parts)])
    spreads = np.sum([np.zeros((size, size)), *(part.pairs for part in parts)], axis=0)
    if method == "plain":
        worst = generic_worst(rows, baseline_at(own + float(spreads.max())))
        return _Message(_even(worst.value, len(rows)), budget, frozenset({method}))
    is_leaf = not spreads.any()
    columns = _listed(channel)
    reports = np.ones((size, 1)) if columns is None else columns[possible]
    if columns is None:
        spreads = spreads + _even(own, size)  # any message times any report of this budget, nothing else
    pairs, chosen, used = _pairs(rows, reports, spreads, method)
    is_exact = is_leaf or (size <= 2 and used == "linear programs")
    return _Message(
        np.minimum(pairs, budget),
        budget,
        frozenset({used} if not is_leaf else ()).union(*(part.methods for part in parts)),
        is_exact and _is_known(channel) and all(part.is_exact for part in parts),
        chosen,
    )


def _listed(channel: Channel | None) -> Array | None:
    """Return each report's likelihood given each value; None to use the budget alone.

    For a channel that can favour every set of values the budget says it all.
    """
    return None if channel is None or channel.favours_every_set else channel.columns(LARGEST_REPORTS)


def _is_known(channel: Channel | None) -> bool:
    """Whether the bounds use all that a channel's reports can say, and nothing more."""
    if channel is None:
        return True
    return channel.claim == "exact" and (channel.favours_every_set or _listed(channel) is not None)


def _even(value: float, size: int) -> Array:
    """Return the same bound for every ordered pair of different values."""
    return np.where(np.eye(size, dtype=np.bool_), 0.0, value)


def _pairs(
    rows: Array, reports: Array, spreads: Array, method: TreeMethod
) -> tuple[Array, Positions | None, str]:
    """Return the bounds over all reports and messages from below, what reaches them, and the method."""
    spreads = cone.closed(spreads)
    size = len(spreads)
    spread = float(spreads.max(initial=0.0))
    if spread == 0:
        return *cone.column_pairs(rows @ reports), "linear programs"
    if method == "weighted":
        return cone.range_pairs(rows, reports, spread), None, "weighted"
    if size <= cone.LARGEST_LISTED:
        return *cone.column_pairs(cone.ray_columns(rows, reports, spreads)), "linear programs"
    if np.array_equal(spreads, _even(spread, size)):
        return cone.range_pairs(rows, reports, spread), None, "linear programs"  # the two agree here
    if method == "linear programs":
        return cone.programme_pairs(rows, reports, spreads), None, "linear programs"
    if rows.size * len(rows) * size * reports.shape[1] <= LARGEST_BOXES:
        return cone.box_pairs(rows, reports, spreads), None, "boxes"
    return cone.range_pairs(rows, reports, spread), None, "weighted"


def _reported(tree: Tree, channels: Channels, messages: Messages, pair: tuple[int, int]) -> Reports | None:
    """Follow what reaches an exact figure outwards from the secret; None if some report is not listed."""
    schema, root = tree.schema, tree.order[0]
    said: Reports = {}
    waiting = [(child, pair) for child in tree.children[root]]
    for node, asked in waiting:
        name, chosen = schema.names[node], messages[node, tree.parents[node]].chosen
        channel = channels.get(name)
        if chosen is None or (channel is not None and _listed(channel) is None):
            return None
        is_inner = any(messages[child, node].pairs.any() for child in tree.children[node])
        report, ray = divmod(int(chosen[asked]), 2 if is_inner else 1)
        if channel is not None:
            said[name] = channel.named(report)
        if is_inner:
            below = ((0, 1), (1, 0))[ray]  # the order of a binary cone's two rays
            waiting += [(child, below) for child in tree.children[node]]
    return {name: said[name] for name in channels if name in said}
