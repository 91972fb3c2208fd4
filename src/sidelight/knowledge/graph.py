"""The weighted hierarchical graph as published: a node for each adversary, searched layer by layer.

Kind "published": the chain rule looks at answers far below all sums only, so it is no bound. For
Pr(x_2 = 1 | x_1 = 0) = 0 and Pr(x_2 = 1 | x_1 = 1) = 0.1 with scale 1 it says 1.0653; the truth is 1.1586.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.errors import InputError, unknown
from sidelight.knowledge.adversary import Adversary, adversary_of, mask_of
from sidelight.knowledge.edges import Edges, published_edges
from sidelight.knowledge.query import Query
from sidelight.knowledge.search import Values
from sidelight.leakage.bounds import Bound

Array = NDArray[np.float64]
Case = Literal["group", "weakest", "strongest", "none"]


@dataclass(frozen=True)
class GraphEdge:
    """One edge: what forgetting `removed` changes for an adversary.

    Attributes:
        adversary: the one who still knows `removed`.
        removed: the attribute that is forgotten.
        increment: IC, the weight that the chain rule adds.
        ratio: IR, the increment over LS / lambda; 0 where the attribute does not move the answer.
        sensitivity: LS / lambda of the removed attribute.
        value: the published leakage after forgetting it along this edge.
    """

    adversary: Adversary
    removed: str
    increment: float
    ratio: float
    sensitivity: float
    value: float

    @property
    def weaker(self) -> Adversary:
        """The adversary the edge leads to."""
        return Adversary(
            self.adversary.target, tuple(name for name in self.adversary.known if name != self.removed)
        )


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """The graph with the value of every node by full-space search (PDP, Algorithm 1)."""

    edges: Edges

    @classmethod
    def from_belief(cls, belief: Belief, query: Query) -> WeightedGraph:
        """Compute the edges from the joint distribution."""
        return cls(published_edges(belief, query))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return self.edges.names

    @cached_property
    def values(self) -> Values:
        """The published leakage to every adversary, by full-space search from the strongest ones."""
        return Values(self.names, full_search(self.edges))

    def bound(self, adversary: Adversary) -> Bound:
        """Return the published figure of one adversary."""
        return Bound(self.values.of(adversary), "published", "weighted hierarchical graph (PDP, Theorem 5)")

    def along(self, target: str, removed: list[str]) -> float:
        """Return the chain rule's value when attributes are forgotten in this order (PDP, eq. (14))."""
        everyone = Adversary.strongest(target, self.names)
        everyone.check(self.names)
        i, mask = self.names.index(target), mask_of(self.names, everyone.known)
        value = float(self.edges.sensitivities[i])
        for name in removed:
            if name not in everyone.known or not mask >> self.names.index(name) & 1:
                raise InputError(f"{name!r} cannot be forgotten: it is the target, unknown or forgotten.")
            j = self.names.index(name)
            mask &= ~(1 << j)
            value = float(_step(value, self.edges.low[i, j, mask], self.edges.high[i, j, mask]))
        return value

    def all_edges(self, target: str | None = None) -> Iterator[GraphEdge]:
        """Yield every edge, of one target or of all, from the strongest adversary upwards."""
        if target is not None and target not in self.names:
            raise unknown("attribute", target, self.names)
        count = len(self.names)
        for i in range(count) if target is None else [self.names.index(target)]:
            for mask in sorted(range(1 << count), key=lambda item: -item.bit_count()):
                if not mask >> i & 1:
                    yield from (self._edge(i, j, mask) for j in range(count) if mask >> j & 1)

    def _edge(self, i: int, j: int, mask: int) -> GraphEdge:
        before = float(self.values.table[i, mask])
        rest = mask & ~(1 << j)
        low, high = float(self.edges.low[i, j, rest]), float(self.edges.high[i, j, rest])
        increment = high if abs(before + high) >= abs(before + low) else low
        reach = float(self.edges.sensitivities[j])
        ratio = increment / reach if reach > 0 else 0.0
        adversary = adversary_of(self.names, i, mask)
        return GraphEdge(adversary, self.names[j], increment, ratio, reach, abs(before + increment))

    @cached_property
    def case(self) -> Case:
        """Which case of PDP, Corollary 1 applies: who it says is worst.

        "group": every IR is 1, so the figure is the group bound. "weakest": every increment is positive.
        "strongest": every one is negative; the corollary holds for the largest over all targets, not for
        each. "none": the signs are mixed.
        """
        real = self.edges.existing
        low, high = self.edges.low[real], self.edges.high[real]
        reach = np.broadcast_to(self.edges.sensitivities[None, :, None], self.edges.low.shape)[real]
        if not len(low):
            return "none"
        if np.allclose(low, reach) and np.allclose(high, reach):
            return "group"
        if low.min() > 0:
            return "weakest"
        return "strongest" if high.max() < 0 else "none"

    def to_dict(self) -> dict[str, Any]:
        """Return nodes and edges as plain data."""
        names, table = self.names, self.values.table
        nodes = [
            {
                "target": names[i],
                "known": list(adversary_of(names, i, mask).known),
                "published": float(table[i, mask]),
            }
            for i in range(len(names))
            for mask in range(table.shape[1])
            if not mask >> i & 1
        ]
        edges = [
            {
                "target": edge.adversary.target,
                "from_known": list(edge.adversary.known),
                "removed": edge.removed,
                "ic": edge.increment,
                "ir": edge.ratio,
                "ls_over_scale": edge.sensitivity,
            }
            for edge in self.all_edges()
        ]
        return {"nodes": nodes, "edges": edges}

    def to_dot(self, target: str) -> str:
        """Return the part of the graph that belongs to a target in Graphviz's language."""
        lines = ["digraph knowledge {", "  rankdir=BT;", "  node [shape=box];"]
        values = self.values
        seen = dict.fromkeys(
            adversary for edge in self.all_edges(target) for adversary in (edge.adversary, edge.weaker)
        )
        for adversary in seen or [Adversary(target)]:
            text = _quoted(f"{_known(adversary)}\n{values.of(adversary):.4f}")
            lines.append(f"  {_quoted(_known(adversary))} [label={text}];")
        for edge in self.all_edges(target):
            ends = f"{_quoted(_known(edge.adversary))} -> {_quoted(_known(edge.weaker))}"
            lines.append(f'  {ends} [label="{edge.increment:.4f}"];')
        return "\n".join([*lines, "}"])


def full_search(edges: Edges) -> Array:
    """Return every node's value: the least over the edges that lead to it (PDP, Algorithm 1).

    With edges of both signs this is not the least over whole paths (Theorem 5): the absolute value is not
    monotone, so a larger value can become the smaller one further on.
    """
    count = len(edges.names)
    masks = np.arange(1 << count)
    sizes = np.bitwise_count(masks)
    values = np.full((count, 1 << count), np.nan)
    for i in range(count):
        values[i, masks[-1] & ~(1 << i)] = edges.sensitivities[i]
    for known in range(count - 2, -1, -1):
        layer = masks[sizes == known]
        for i in range(count):
            mine = layer[layer >> i & 1 == 0]
            best = np.full(len(mine), np.inf)
            for j in range(count):
                open_to = (mine >> j & 1 == 0) & (j != i)
                chosen = mine[open_to]
                before = values[i, chosen | 1 << j]
                after = _step(before, edges.low[i, j, chosen], edges.high[i, j, chosen])
                best[open_to] = np.minimum(best[open_to], after)
            values[i, mine] = best
    return values


def fast_search(edges: Edges) -> list[float]:
    """Return the largest value of each layer, keeping only the n largest nodes of a layer (Algorithm 2).

    The first entry is the layer of the strongest adversaries, the last that of the weakest.
    """
    count = len(edges.names)
    everything = (1 << count) - 1
    nodes = {(i, everything & ~(1 << i)): float(edges.sensitivities[i]) for i in range(count)}
    largest = [max(nodes.values())]
    for _ in range(count - 1):
        below: dict[tuple[int, int], float] = {}
        for (i, mask), value in nodes.items():
            for j in range(count):
                if mask >> j & 1:
                    rest = mask & ~(1 << j)
                    after = float(_step(value, edges.low[i, j, rest], edges.high[i, j, rest]))
                    below[i, rest] = min(after, below.get((i, rest), math.inf))
        nodes = dict(sorted(below.items(), key=lambda item: -item[1])[:count])
        largest.append(max(nodes.values()))
    return largest


def _step(value: Any, low: Any, high: Any) -> Any:
    """Return |l + IC| for the IC that makes it largest (PDP, Theorem 2, eq. (11))."""
    return np.maximum(np.abs(value + low), np.abs(value + high))


def _known(adversary: Adversary) -> str:
    return ", ".join(adversary.known) or "nothing"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
