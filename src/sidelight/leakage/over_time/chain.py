"""Values that change by a Markov chain: what an adversary knows about how people move between states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike

from sidelight.belief import Belief, Tree
from sidelight.foundation.arrays import Array, Codes, Positions
from sidelight.foundation.errors import InputError, TooLargeError, check_number, check_whole, invalid
from sidelight.schema import Schema, as_schema, categorical, plain_schema
from sidelight.sources import Table

_TOLERANCE = 1e-9
_MOST_STATES = 1 << 10
_MOST_VALUES = 1 << 12
"""So many values of all attributes at all times are put into one belief."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A Markov chain over the combinations of some attributes' values, one step from round to round.

    Attributes:
        schema: the attributes. A state is one value of each; the last attribute's changes fastest.
        start: (states,) how likely each state is in the first round.
        transition: (states, states) Pr(state in the next round | state), one row for each state.
        source: where it comes from, in words.
        is_model: whether it was learnt from a panel, of which it is a model: figures say so.
    """

    schema: Schema
    start: Array
    transition: Array
    source: str = "by hand"
    is_model: bool = False

    def __post_init__(self) -> None:
        states = math.prod(self.schema.sizes)
        if states > _MOST_STATES:
            raise TooLargeError(f"{states} states are too many for a chain, at most {_MOST_STATES}.")
        start = _distributions("start", self.start, (states,))
        transition = _distributions("transition", self.transition, (states, states))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "transition", transition)

    @classmethod
    def stated(
        cls, transition: ArrayLike, start: ArrayLike | None = None, schema: Schema | None = None
    ) -> Chain:
        """Take transition probabilities; without a start, the chain has run for long.

        >>> Chain.stated([[0.9, 0.1], [0.3, 0.7]]).start.round(3).tolist()
        [0.75, 0.25]
        """
        rows = np.asarray(transition, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not rows.size:
            raise invalid("transition", "a square table, a row for each state", rows.shape)
        known = plain_schema([("value", len(rows))]) if schema is None else as_schema(schema)
        rows = _distributions("transition", rows, (math.prod(known.sizes),) * 2)
        return cls(known, _stationary(rows) if start is None else np.asarray(start, dtype=np.float64), rows)

    @classmethod
    def from_panel(cls, rounds: Sequence[Table], *, smoothing: float = 0.0) -> Chain:
        """Count how the people of a panel move: tables of the same people in the same order, in turn.

        It is a model of the panel: it forgets all but the last round. A state that nobody was seen to leave
        is taken to last, under which repeated reports say most.

        Args:
            rounds: two or more tables of one schema.
            smoothing: how many evenly spread moves to add to every state's.
        """
        tables = list(rounds)
        if len(tables) < 2:
            raise invalid("rounds", "two tables or more, one of each round", f"{len(tables)} of them")
        schema, people = tables[0].schema, len(tables[0])
        for number, table in enumerate(tables[1:], 2):
            if table.schema != schema:
                raise InputError(f"round {number} has other attributes or values than the first one; "
                                 "read it with schema=first.schema.")  # fmt: skip
            if len(table) != people:
                raise InputError(f"round {number} has {len(table)} people and the first one {people}; a "
                                 "chain is counted from the same people in the same order.")  # fmt: skip
        return cls._counted(schema, [table.codes() for table in tables], smoothing)

    @classmethod
    def _counted(cls, schema: Schema, codes: Sequence[Codes], smoothing: float) -> Chain:
        spread = check_number("smoothing", smoothing, at_least=0)
        states = math.prod(schema.sizes)
        if states > _MOST_STATES:
            raise TooLargeError(f"{states} states are too many for a chain, at most {_MOST_STATES}.")
        seen = [np.ravel_multi_index(tuple(part.T.astype(np.intp)), schema.sizes) for part in codes]
        moves = np.zeros((states, states))
        for before, after in pairwise(seen):
            np.add.at(moves, (before, after), 1.0)
        moves += spread / states
        quiet = moves.sum(axis=1) == 0
        moves[quiet, quiet.nonzero()[0]] = 1.0
        start = np.bincount(seen[0], minlength=states) + spread / states
        rows = moves / moves.sum(axis=1, keepdims=True)
        return cls(schema, start / start.sum(), rows, f"a panel of {len(seen[0])} people", is_model=True)

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.start)

    def marginals(self, times: int) -> list[Array]:
        """Return how likely each state is in each of so many rounds."""
        parts = [self.start]
        for _ in range(check_whole("times", times, at_least=1) - 1):
            parts.append(parts[-1] @ self.transition)
        return parts

    @property
    def is_steady(self) -> bool:
        """Whether every round is like the first one: also, that no state is possible in later ones alone."""
        then = self.start @ self.transition
        return bool(((then > 0) == (self.start > 0)).all() and np.abs(then - self.start).max() <= _TOLERANCE)

    def unrolled(self, times: int) -> Belief:
        """Return the belief about every attribute in every round, called "name at 1", "name at 2", and so on.

        It is a tree: states follow each other, and the attributes are parts of their state.
        """
        count = check_whole("times", times, at_least=1)
        parts = list(self.schema) if len(self.schema) > 1 else []
        if count * (self.states + sum(part.size for part in parts)) > _MOST_VALUES:
            raise TooLargeError(f"{count} rounds of {self.states} states are too many for one belief; take "
                                "fewer rounds, or `chain_recursion`.")  # fmt: skip
        labels = [", ".join(values) for values in product(*(part.values for part in self.schema))]
        whole = " and ".join(self.schema.names)
        nodes = [categorical(at_round(whole, t), labels) for t in range(1, count + 1)]
        if not parts:
            nodes = [replace(self.schema.attributes[0], name=node.name) for node in nodes]
        edges = {(a.name, b.name): self.transition for a, b in pairwise(nodes)}
        leaves = []
        for t, node in enumerate(nodes, 1):
            for position, part in enumerate(parts):
                leaves.append(replace(part, name=at_round(part.name, t)))
                edges[node.name, leaves[-1].name] = np.eye(part.size)[self.values_of(position)]
        tree = Tree.from_conditionals(nodes[0].name, self.start, edges, Schema((*nodes, *leaves)))
        return replace(Belief.from_tree(tree, source=f"a chain: {self.source}"), is_model=self.is_model)

    def values_of(self, position: int) -> Positions:
        """Return the code of the attribute at this position in every state."""
        return np.asarray(np.indices(self.schema.sizes).reshape(len(self.schema), -1)[position])


def at_round(name: str, time: int) -> str:
    """Return what an attribute is called in a round of an unrolled chain.

    >>> at_round("colour", 2)
    'colour at 2'
    """
    return f"{name} at {time}"


def _distributions(name: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return probabilities whose last axis sums to 1, or raise."""
    array = np.array(given, dtype=np.float64)
    if array.shape != shape:
        raise invalid(name, f"probabilities of shape {shape}, by the states", array.shape)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise invalid(name, "probabilities", float(array.min()))
    sums = np.atleast_1d(array.sum(axis=-1))
    if (gaps := np.abs(sums - 1)).max() > _TOLERANCE:
        raise invalid(name, "probabilities that sum to 1 in each row", float(sums[gaps.argmax()]))
    array /= array.sum(axis=-1, keepdims=True)
    array.flags.writeable = False
    return array


def _stationary(rows: Array) -> Array:
    """Return the distribution that a step leaves as it is, or raise where there are several.

    States are taken away one after the other without any difference (Grassmann, Taksar, Heyman 1985), so that
    rare states keep their share to all digits, and none is taken for impossible.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, classes = connected_components(csr_array(rows > 0), directed=True, connection="strong")
    leaves = (rows > 0) & (classes[:, None] != classes[None])
    lasting = [each for each in range(count) if not leaves[classes == each].any()]
    if len(lasting) > 1:
        raise InputError("the chain has several distributions that last; say with `start` which one holds.")
    kept = np.flatnonzero(classes == lasting[0])
    left = rows[np.ix_(kept, kept)]
    for last in range(len(kept) - 1, 0, -1):
        left[:last, last] /= left[last, :last].sum()
        left[:last, :last] += np.outer(left[:last, last], left[last, :last])
    shares = np.ones(len(kept))
    for state in range(1, len(kept)):
        shares[state] = shares[:state] @ left[:state, state]
    found = np.zeros(len(rows))
    found[kept] = shares / shares.sum()
    return found
