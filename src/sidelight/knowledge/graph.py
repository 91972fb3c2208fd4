"""The weighted hierarchical graph: a node for each adversary, an edge for each attribute he may forget.

An edge leads from the adversary (i, K' + j) to (i, K'). Its published weight IC is a log-ratio of
sum over x_j of Pr(x_j | x_i, x_K') e^(-x_j / lambda) between two values of x_i (PDP, eq. (9)): what an answer
far below all sums shows. Its sound weight is the generic bound on what x_j tells about x_i.

Figures of the published graph have the kind "published": answers far below all sums are not the only ones,
so they are no bounds. For Pr(x_2 = 1 | x_1 = 0) = 0 and Pr(x_2 = 1 | x_1 = 1) = 0.1 with scale 1 the chain
rule says 1.0653; the truth is 1.1586.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Mask
from sidelight.foundation.errors import InputError, TooLargeError, invalid, unknown
from sidelight.knowledge.adversary import Adversary, Values, adversary_of
from sidelight.knowledge.cells import cells_of, claim_of
from sidelight.knowledge.query import Query
from sidelight.leakage.bounds import Bound
from sidelight.mechanisms.channel.generic import climb

Case = Literal["group", "weakest", "strongest", "none"]
MOST_FROM_JOINT = 12
MOST_GIVEN = 18
LARGEST_WORK = float(1 << 33)
_UPWARDS = 2.0**-43
"""What adding a few doubles may cost, relative to the sum: sound figures are rounded up by it."""
GROUP_UPWARDS = 1 + 2.0**-46
"""The same as a factor for a plain sum of sensitivities."""


def group_values(reach: Array) -> Array:
    """Return the group bound for every set of known attributes, (2^n,), rounded up (PDP, eq. (16)).

    Bit j of a column's number stands for attribute j; the target is among the attributes not known.
    """
    count = len(reach)
    is_free = (np.arange(1 << count) >> np.arange(count)[:, None] & 1) == 0
    return np.asarray(reach @ is_free * GROUP_UPWARDS)


def certified_bound(values: Values, belief: Belief, adversary: Adversary) -> Bound:
    """Return one adversary's figure among the certified ones."""
    return Bound(values.of(adversary), claim_of(belief, "certified"), "sound edges, least path")


def certified_values(belief: Belief, query: Query) -> Values:
    """Return a sound bound for every adversary.

    l(i, K) <= l(i, K + j) + max over x_K of generic(P(x_j | x_i, x_K), l(j, K + i)): given x_i and x_K the
    answer is an l(j, K + i)-private report of x_j. The smallest over all orders of removal is kept, or the
    group bound where that is smaller; all is rounded up. Given what cannot occur all values of x_j count as
    equally likely, so that every conditional is defined and one belief is behind all steps.
    """
    joint, reach, _ = _joint(belief, query)
    count = joint.ndim
    everything = (1 << count) - 1
    values = np.full((count, 1 << count), np.nan)
    group = group_values(reach)
    for i in range(count):
        values[i, everything & ~(1 << i)] = group[everything & ~(1 << i)]
    for mask, cells in sorted(marginals(joint), key=lambda item: -item[0].bit_count()):
        for i, j, table in _ordered_pairs(cells, mask):
            bit_i, bit_j = 1 << i, 1 << j
            added = _generic(table, float(values[j, mask & ~bit_j]))
            node = mask & ~bit_i & ~bit_j
            bound = min((values[i, mask & ~bit_i] + added) * (1 + _UPWARDS), group[node])
            values[i, node] = np.fmin(values[i, node], bound)  # fmin: the first bound meets a NaN
    return Values(query.schema.names, values)


def _joint(belief: Belief, query: Query) -> tuple[Array, Array, Sequence[Mask]]:
    """Return the dense joint without impossible values, the sensitivities, and which values are possible."""
    cells = cells_of(belief, query)
    count = len(cells.schema)
    reach = query.reaches(cells.possible)
    joint = cells.dense()[np.ix_(*cells.possible)]
    work = float(joint.size) * max(joint.shape) * count**2 * 2.0**count
    if count > MOST_FROM_JOINT or work > LARGEST_WORK:
        raise TooLargeError(
            f"the graph of {count} attributes with a joint table of {joint.size} cells is too large; take at "
            f"most {MOST_FROM_JOINT} attributes and coarser bins, or the exact figure of single adversaries."
        )
    return joint, reach, cells.possible


def marginals(joint: Array) -> Iterator[tuple[int, Array]]:
    """Yield the joint of every set of at least two attributes, with the set as bits."""
    waiting = [((1 << joint.ndim) - 1, joint, joint.ndim)]
    while waiting:
        mask, cells, below = waiting.pop()
        yield mask, cells
        for j in range(below):
            if cells.ndim > 2 and mask >> j & 1:
                axis = (mask & ((1 << j) - 1)).bit_count()
                waiting.append((mask & ~(1 << j), cells.sum(axis=axis), j))


def _ordered_pairs(cells: Array, mask: int) -> Iterator[tuple[int, int, Array]]:
    """Yield each ordered pair (i, j) of a set with its cells as (known values, values of i, values of j)."""
    members = [j for j in range(mask.bit_length()) if mask >> j & 1]
    for (a, i), (b, j) in permutations(enumerate(members), 2):
        moved = np.moveaxis(cells, (a, b), (-2, -1))
        yield i, j, moved.reshape(-1, *moved.shape[-2:])


def _log_ratios(table: Array, own: Array, other: Array) -> tuple[float, float]:
    """Return the least and greatest IC over pairs of target values (in increasing order) and known values."""
    ordered = table[:, np.argsort(own, kind="stable")]
    with np.errstate(divide="ignore", invalid="ignore"):
        masses = np.log(ordered)
        # A shift cancels in the ratio, and avoids overflow.
        seen = np.logaddexp.reduce(masses - (other - other.min()), axis=2)
        seen = seen - np.logaddexp.reduce(masses, axis=2)
        ratios = seen[:, :, None] - seen[:, None, :]
    first, second = np.triu_indices(len(own), 1)
    increments = ratios[:, first, second]
    # Known values that rule a target value out compare nothing.
    increments = increments[np.isfinite(increments)]
    return (float(increments.min()), float(increments.max())) if len(increments) else (0.0, 0.0)


def _generic(table: Array, epsilon: float) -> float:
    """Return the generic bound over all known values: how much an epsilon-private report of x_j says of x_i.

    It is never above epsilon itself, whose e^-epsilon may be 0 in a double; what adding doubles can cost is
    put on top.
    """
    mass = table.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore"):
        rows = np.where(mass > 0, table / mass, 1 / table.shape[2])
    bound = float(climb(rows[:, :, None], rows[:, None, :], np.exp(-epsilon)).max())
    return min(epsilon, bound + _UPWARDS)


@dataclass(frozen=True)
class GraphEdge:
    """One edge: what forgetting `removed` changes for an adversary who still knows it.

    Attributes:
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
        left = tuple(name for name in self.adversary.known if name != self.removed)
        return Adversary(self.adversary.target, left)


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """The published weight of every edge, and the value of every node by full-space search (Algorithm 1).

    Attributes:
        names: the attributes.
        sensitivities: (n,) how far each attribute moves the answer, in units of the noise's scale: LS/lambda.
        low: (n, n, 2^n) the least log-ratio for target i, removed attribute j and the set K' that stays
            known, over all pairs of target values and known values; 0 where there is no such edge.
        high: the greatest one; for given edges the same array.
    """

    names: tuple[str, ...]
    sensitivities: Array
    low: Array
    high: Array

    @classmethod
    def given(
        cls, weights: ArrayLike, sensitivities: ArrayLike, names: tuple[str, ...] = ()
    ) -> WeightedGraph:
        """Take the weights as they are, with no joint distribution behind them (PDP, section VII).

        Weights are (n, n, 2^n), see `low`; the attributes' names x1, x2 and so on by default.
        """
        reach = np.asarray(sensitivities, dtype=np.float64)
        if reach.ndim != 1 or not len(reach):
            raise invalid("sensitivities", "a list of numbers, one for each attribute", reach.shape)
        count = len(reach)
        if names and (len(names) != count or len(set(names)) != count):
            raise invalid("names", f"{count} different attributes", list(names))
        if count > MOST_GIVEN:
            raise TooLargeError(f"a graph of {count} attributes is too large; take at most {MOST_GIVEN}.")
        table = np.asarray(weights, dtype=np.float64)
        if table.shape != (count, count, 1 << count):
            raise invalid("weights", f"of the shape {(count, count, 1 << count)}", table.shape)
        if not np.all(np.isfinite(table)) or not np.all(np.isfinite(reach)) or (reach < 0).any():
            raise InputError("`weights` must be finite, and `sensitivities` finite and at least 0.")
        return cls(names or tuple(f"x{j + 1}" for j in range(count)), reach, table, table)

    @classmethod
    def from_belief(cls, belief: Belief, query: Query) -> WeightedGraph:
        """Compute every edge's weight from the joint distribution (PDP, eqs. (9) and (10))."""
        if query.width != 1:
            raise InputError(
                f"the published graph needs one number as an answer, got {query.width}; use the exact figure."
            )
        joint, reach, possible = _joint(belief, query)
        count = joint.ndim
        low, high = np.zeros((2, count, count, 1 << count))
        parts = [
            part[mask, 0] / query.scale for part, mask in zip(query.additive_parts(), possible, strict=True)
        ]
        for mask, cells in marginals(joint):
            for i, j, table in _ordered_pairs(cells, mask):
                known = mask & ~(1 << i) & ~(1 << j)
                low[i, j, known], high[i, j, known] = _log_ratios(table, parts[i], parts[j])
        return cls(query.schema.names, reach, low, high)

    @cached_property
    def values(self) -> Values:
        """The published leakage to every adversary, by full-space search from the strongest ones."""
        return Values(self.names, full_search(self))

    def bound(self, adversary: Adversary) -> Bound:
        """Return the published figure of one adversary."""
        return Bound(self.values.of(adversary), "published", "weighted hierarchical graph (PDP, Theorem 5)")

    def along(self, target: str, removed: list[str]) -> float:
        """Return the chain rule's value when attributes are forgotten in this order (PDP, eq. (14))."""
        everyone = Adversary.strongest(target, self.names)
        i, mask = everyone.place(self.names)
        value = float(self.sensitivities[i])
        for name in removed:
            if name not in everyone.known or not mask >> self.names.index(name) & 1:
                raise InputError(f"{name!r} cannot be forgotten: it is the target, unknown or forgotten.")
            j = self.names.index(name)
            mask &= ~(1 << j)
            value = float(_step(value, self.low[i, j, mask], self.high[i, j, mask]))
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
        low, high = float(self.low[i, j, rest]), float(self.high[i, j, rest])
        increment = high if abs(before + high) >= abs(before + low) else low
        reach = float(self.sensitivities[j])
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
        count = len(self.names)
        free = (np.arange(1 << count) >> np.arange(count)[:, None] & 1) == 0
        # Only where target, removed attribute and known set are apart there is an edge.
        real = free[:, None, :] & free[None, :, :] & ~np.eye(count, dtype=np.bool_)[:, :, None]
        low, high = self.low[real], self.high[real]
        reach = np.broadcast_to(self.sensitivities[None, :, None], self.low.shape)[real]
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
            adversary_of(names, i, mask).to_dict() | {"published": float(table[i, mask])}
            for i in range(len(names))
            for mask in range(table.shape[1])
            if not mask >> i & 1
        ]
        edges = [
            {"target": edge.adversary.target, "from_known": list(edge.adversary.known)}
            | {"removed": edge.removed, "ic": edge.increment}
            | {"ir": edge.ratio, "ls_over_scale": edge.sensitivity}
            for edge in self.all_edges()
        ]
        return {"nodes": nodes, "edges": edges}

    def to_dot(self, target: str) -> str:
        """Return the part of the graph that belongs to a target in Graphviz's language."""
        lines = ["digraph knowledge {", "  rankdir=BT;", "  node [shape=box];"]
        edges = list(self.all_edges(target))
        seen = dict.fromkeys(end for edge in edges for end in (edge.adversary, edge.weaker))
        for adversary in seen or [Adversary(target)]:
            text = _quoted(f"{_known(adversary)}\n{self.values.of(adversary):.4f}")
            lines.append(f"  {_quoted(_known(adversary))} [label={text}];")
        for edge in edges:
            ends = f"{_quoted(_known(edge.adversary))} -> {_quoted(_known(edge.weaker))}"
            lines.append(f'  {ends} [label="{edge.increment:.4f}"];')
        return "\n".join([*lines, "}"])


def full_search(graph: WeightedGraph) -> Array:
    """Return every node's value: the least over the edges that lead to it (PDP, Algorithm 1).

    With edges of both signs this is not the least over whole paths (Theorem 5): the absolute value is not
    monotone, so a larger value can become the smaller one further on.
    """
    count = len(graph.names)
    masks = np.arange(1 << count)
    sizes = np.bitwise_count(masks)
    values = np.full((count, 1 << count), np.nan)
    for i in range(count):
        values[i, masks[-1] & ~(1 << i)] = graph.sensitivities[i]
    for known in range(count - 2, -1, -1):
        layer = masks[sizes == known]
        for i in range(count):
            mine = layer[layer >> i & 1 == 0]
            best = np.full(len(mine), np.inf)
            for j in range(count):
                open_to = (mine >> j & 1 == 0) & (j != i)
                chosen = mine[open_to]
                before = values[i, chosen | 1 << j]
                after = _step(before, graph.low[i, j, chosen], graph.high[i, j, chosen])
                best[open_to] = np.minimum(best[open_to], after)
            values[i, mine] = best
    return values


def fast_search(graph: WeightedGraph) -> list[float]:
    """Return the largest value of each layer, keeping only the n largest nodes of a layer (Algorithm 2).

    The first entry is the layer of the strongest adversaries, the last that of the weakest.
    """
    count = len(graph.names)
    everything = (1 << count) - 1
    nodes = {(i, everything & ~(1 << i)): float(graph.sensitivities[i]) for i in range(count)}
    largest = [max(nodes.values())]
    for _ in range(count - 1):
        below: dict[tuple[int, int], float] = {}
        for (i, mask), value in nodes.items():
            for j in range(count):
                if mask >> j & 1:
                    rest = mask & ~(1 << j)
                    after = float(_step(value, graph.low[i, j, rest], graph.high[i, j, rest]))
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
