"""Tree: a distribution in which every attribute depends on one other attribute alone, its parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.belief.likelihoods import DOUBLE_REACH, Centred
from sidelight.foundation.arrays import Array, Codes, Positions, Whole, offsets
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.threads import in_ranges
from sidelight.schema import Schema, plain_schema
from sidelight.sources.counts import check_dense

Edge = tuple[str, str]
_Join = Callable[[Array, Array], Array]
_TOLERANCE = 1e-9
_SINGLE_REACH = 30.0


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of attributes with the conditional distribution of each given its parent.

    Attributes:
        schema: the attributes.
        parents: the position of each attribute's parent; -1 for the root.
        conditionals: Pr(attribute | parent) of each attribute, one row for each value of its parent; a row
            of zeros for a value that cannot occur. The root's has its prior as the only row.
    """

    schema: Schema
    parents: tuple[int, ...]
    conditionals: tuple[Array, ...]

    @classmethod
    def from_conditionals(
        cls, root: str, prior: ArrayLike, conditionals: Mapping[Edge, ArrayLike], schema: Schema | None = None
    ) -> Tree:
        """Take the root's prior and, for each edge (parent, child), the rows Pr(child | parent).

        >>> tree = Tree.from_conditionals("a", [0.5, 0.5], {("a", "b"): [[0.6, 0.4], [0.4, 0.6]]})
        >>> tree.joint(["a", "b"])
        array([[0.3, 0.2],
               [0.2, 0.3]])
        """
        first = np.asarray(prior, dtype=np.float64)[None, :]
        tables = {root: first}
        tables |= {child: np.asarray(rows, dtype=np.float64) for (_, child), rows in conditionals.items()}
        schema = schema or plain_schema((name, table.shape[-1]) for name, table in tables.items())
        parents = _parents(schema, list(conditionals), schema.index(root))
        for parent, child in conditionals:
            if parents[schema.index(child)] != schema.index(parent):
                raise invalid("conditionals", f"edges that point away from {root!r}", (parent, child))
        return cls(schema, parents, _checked(schema, parents, tuple(tables[name] for name in schema.names)))

    @classmethod
    def from_pairs(cls, pairs: Mapping[Edge, ArrayLike], schema: Schema | None = None) -> Tree:
        """Take the joint probabilities of the two attributes of each edge.

        >>> Tree.from_pairs({("a", "b"): [[0.3, 0.2], [0.2, 0.3]]}).parents
        (-1, 0)
        """
        tables = {edge: np.asarray(table, dtype=np.float64) for edge, table in pairs.items()}
        if not tables:
            raise invalid("pairs", "at least one edge with its table", {})
        sizes = chain.from_iterable(zip(edge, table.shape, strict=False) for edge, table in tables.items())
        schema = schema or plain_schema(dict(sizes).items())
        parents = _parents(schema, list(tables), 0)
        either = tables | {(b, a): table.T for (a, b), table in tables.items()}
        _check_pairs(schema, either)
        names = schema.names
        prior = next(table for edge, table in either.items() if edge[0] == names[0]).sum(axis=1)
        return cls(schema, parents, _factors(parents, prior, lambda p, c: either[names[p], names[c]]))

    @classmethod
    def learn(cls, schema: Schema, blocks: Array) -> Tree:
        """Return the tree closest to all pair tables (Chow and Liu 1968).

        It is the spanning tree with the largest sum of mutual informations. The probabilities of all pairs
        are (values, values) `blocks`, as those of `Belief.blocks`.
        """
        at = offsets(schema.sizes)
        parents = _widest_spanning_tree(_mutual_information(blocks, at))
        spans = [slice(a, b) for a, b in pairwise(at)]
        prior = np.diagonal(blocks[spans[0], spans[0]]).copy()  # a view would keep all of `blocks` in memory
        return cls(schema, parents, _factors(parents, prior, lambda p, c: blocks[spans[p], spans[c]]))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The attributes' positions, each after its parent."""
        order = [self.parents.index(-1)]
        for position in order:  # which grows meanwhile
            order.extend(self.children[position])
        return tuple(order)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The positions of each attribute's children."""
        children: list[list[int]] = [[] for _ in self.parents]
        for position, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(position)
        return tuple(map(tuple, children))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The (parent, child) names of all edges."""
        names = self.schema.names
        return tuple((names[self.parents[c]], names[c]) for c in self.order[1:])

    @cached_property
    def marginals(self) -> tuple[Array, ...]:
        """The probabilities of each attribute's values."""
        marginals: dict[int, Array] = {-1: np.ones(1)}
        for position in self.order:
            marginals[position] = marginals[self.parents[position]] @ self.conditionals[position]
        return tuple(marginals[position] for position in range(len(self.parents)))

    def rooted_at(self, name: str) -> Tree:
        """Return the same distribution with another root: the edges on the way to it are turned round."""
        parents, conditionals = list(self.parents), list(self.conditionals)
        above, position = -1, (root := self.schema.index(name))
        while position >= 0:
            below = parents[position]
            if below >= 0:  # Bayes' rule turns the edge round
                table = self.marginals[below][:, None] * self.conditionals[position]
                conditionals[below] = _rows(table.T)
            parents[position], above, position = above, position, below
        conditionals[root] = self.marginals[root][None, :]
        return Tree(self.schema, tuple(parents), tuple(conditionals))

    def blocks(self) -> Array:
        """Return the probabilities of all pairs as blocks of one matrix, see `Belief.blocks`.

        Given its parent an attribute is independent of every attribute placed before it, so its tables are
        its parent's times its conditional.
        """
        at = offsets(self.schema.sizes)
        spans = [slice(a, b) for a, b in pairwise(at)]
        blocks = np.zeros((at[-1], at[-1]))
        for position in self.order:
            own, parent = spans[position], self.parents[position]
            if parent >= 0:
                tables = blocks[:, spans[parent]] @ self.conditionals[position]
                blocks[:, own], blocks[own, :] = tables, tables.T
            blocks[own, own] = np.diag(self.marginals[position])
        return blocks

    def joint(self, names: Sequence[str]) -> Array:
        """Return the joint probabilities of the named attributes, one axis for each.

        Factors move from the leaves to the root; attributes that are not named are summed out on the way.
        """
        check_dense([self.schema[name].size for name in names], "use tree propagation")
        wanted = [self.schema.index(name) for name in names]
        rooted = self.rooted_at(names[0])
        factors: dict[int, tuple[Array, list[int]]] = {}
        for position in reversed(rooted.order):
            cells, axes = np.ones((self.schema.sizes[position], 1)), list[int]()
            for child in rooted.children[position]:
                if child in factors:
                    part, below = factors.pop(child)
                    cells = (cells[:, :, None] * part[:, None, :]).reshape(len(cells), -1)
                    axes = axes + below
            above = rooted.conditionals[position]
            if position in wanted:
                joined = (above[:, :, None] * cells[None]).reshape(len(above), -1)
                factors[position] = (joined, [position, *axes])
            elif axes:
                factors[position] = (above @ cells, axes)
        cells, axes = factors[rooted.order[0]]
        shaped = cells.reshape([self.schema.sizes[position] for position in axes])
        return np.ascontiguousarray(shaped.transpose([axes.index(position) for position in wanted]))

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of whole records, shape (records,)."""
        logs, columns = np.zeros(len(codes)), codes.T.astype(np.intp)
        with np.errstate(divide="ignore"):
            for own, parent, rows in zip(columns, self.parents, self.conditionals, strict=True):
                at = own if parent < 0 else columns[parent] * rows.shape[1] + own
                logs += np.log(rows).take(at)
        return logs

    def draw(self, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the root has this value, shape (count, attributes)."""
        drawn = np.full((count, len(self.parents)), value, dtype=np.uint16)
        for position in self.order[1:]:
            rows = self.conditionals[position][drawn[:, self.parents[position]]]
            drawn[:, position] = choose(rows, rng)
        return drawn

    def log_sums(self, likelihoods: Centred) -> Array:
        """Return ln of the sum of Pr(record) times likelihoods for each value of the root, shape (n, m)."""
        prior = self.conditionals[self.order[0]].T
        with np.errstate(divide="ignore"):
            # Without zeros a message is an average of products within `reach`: no digit is lost in doubles.
            if not likelihoods.has_zeros and likelihoods.reach <= DOUBLE_REACH:
                logs = np.log(
                    self._gathered(dict(likelihoods.tables), np.ones((1, 1)), np.multiply, np.matmul)
                )
            else:
                tables = {position: np.log(table) for position, table in likelihoods.tables.items()}
                logs = self._gathered(tables, np.zeros((1, 1)), np.add, _log_matmul)
            # as logarithms: a rare value's share would take the product out of the range of doubles
            return np.asarray((logs + np.log(prior)).T + likelihoods.shift)

    def edges_told(self, released: tuple[int, ...]) -> tuple[Whole, NDArray[np.float32]]:
        """Return the edges along which reports say anything, as `pass_messages` takes them; kept."""
        known = self._laid  # once: of two threads that ask first, one has its own replaced
        if released not in known:
            # What is said of values has a row each: first of what is released, as its likelihoods lie.
            places = [*released, *(place for place in self.order if place not in released)]
            at = dict(zip(places, offsets([self.schema.sizes[place] for place in places]), strict=False))
            told, edges, chances, begin = set(released), list[list[int]](), [np.zeros(0)], 0
            for position in reversed(self.order[1:]):
                if position in told:
                    parent, rows = self.parents[position], self.conditionals[position]
                    edge = [at[position], rows.shape[1], at[parent], len(rows), begin, parent in told]
                    edges.append([int(part) for part in edge])
                    chances.append(rows.ravel())
                    told.add(parent)
                    begin += rows.size
            laid = np.array(edges, dtype=np.int64).reshape(-1, 6)
            known[released] = laid, np.concatenate(chances, dtype=np.float32)
        return known[released]

    @cached_property
    def _laid(self) -> dict[tuple[int, ...], tuple[Whole, NDArray[np.float32]]]:
        return {}

    def _gathered(self, said: dict[int, Array], nothing: Array, join: _Join, carry: _Join) -> Array:
        """Pass what attributes say, (values, n) each, from the leaves to the root (Pearl 1988)."""
        for position in reversed(self.order[1:]):
            if position in said:
                message, parent = carry(self.conditionals[position], said[position]), self.parents[position]
                said[parent] = join(said[parent], message) if parent in said else message
        return said.get(self.order[0], nothing)


def log_mixed_sums(trees: Sequence[Tree], shares: Array, likelihoods: Centred) -> Array:
    """Return `Tree.log_sums` of a mixture of trees with one root, compiled; for what `is_single` allows."""
    from sidelight.belief.kernels import LANES
    from sidelight.belief.tree_kernels import pass_messages

    count, told = len(likelihoods.shift), [tree.edges_told(tuple(likelihoods.tables)) for tree in trees]
    priors = np.stack([tree.conditionals[tree.order[0]][0] for tree in trees])
    outs = np.ones((*priors.shape, count), dtype=np.float32)
    if likelihoods.tables:
        singles = likelihoods.singles

        def work(first: int, last: int) -> None:
            for (edges, chances), out in zip(told, outs, strict=True):
                pass_messages(singles, edges, chances, out, first, last)

        in_ranges(work, count, LANES)
    with np.errstate(divide="ignore"):
        logs = np.log(priors) + np.log(shares)[:, None]
        # Messages are within e^-30 and e^30, so that they can be mixed as they are; but a rare value's share
        # would take the product out of the range of doubles, so the largest share of each value is 1.
        top = logs.max(axis=0)
        top[np.isneginf(top)] = 0.0  # a value that no tree allows
        mixed = np.zeros(outs.shape[1:])
        for part, out in zip(np.exp(logs - top), outs, strict=True):
            mixed += part[:, None] * out
        return np.asarray(np.log(mixed).T + (top + likelihoods.shift))


def is_single(likelihoods: Centred) -> bool:
    """Whether messages keep the digits of single precision.

    A message is an average of products within `reach`, so at least e^-30. A chance below 1e-38, which singles
    lose, adds at most 1e-38 e^30 to it: less than 1e-11 of it.
    """
    return not likelihoods.has_zeros and likelihoods.reach <= _SINGLE_REACH


def _log_matmul(rows: Array, logs: Array) -> Array:
    """Return ln(rows @ e^logs), term by term, so that none is lost however far apart they are."""
    terms = (row[:, None] + log for row, log in zip(np.log(rows).T, logs, strict=True))
    return reduce(np.logaddexp, terms)


def choose(chances: Array, rng: np.random.Generator) -> Codes:
    """Return one value for each row of probabilities."""
    reach = np.cumsum(chances, axis=1)
    points = rng.random(len(chances))[:, None] * reach[:, -1:]
    points = np.minimum(points, np.nextafter(reach[:, -1:], 0))  # a last value may have chance 0
    return np.asarray((points >= reach).sum(axis=1).astype(np.uint16))


def _factors(parents: Sequence[int], prior: Array, pair: Callable[[int, int], Array]) -> tuple[Array, ...]:
    """Return the root's prior and every other attribute's conditional, from its table with its parent."""
    edges = enumerate(parents)
    return tuple(prior[None, :] if parent < 0 else _rows(pair(parent, child)) for child, parent in edges)


def _rows(table: Array) -> Array:
    """Divide each row by its sum; a row that is all 0 stays so."""
    mass = table.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(table, mass, out=np.zeros_like(table), where=mass > 0))


def _parents(schema: Schema, edges: Sequence[Edge], root: int) -> tuple[int, ...]:
    """Walk from the root along the edges; raise unless they form one tree over all attributes."""
    near: list[list[int]] = [[] for _ in schema]
    for a, b in edges:
        near[schema.index(a)].append(schema.index(b))
        near[schema.index(b)].append(schema.index(a))
    parents = {root: -1}
    waiting = [root]
    for position in waiting:
        fresh = [other for other in near[position] if other not in parents]
        parents.update(dict.fromkeys(fresh, position))
        waiting.extend(dict.fromkeys(fresh))
    if len(parents) < len(schema) or len(edges) != len(schema) - 1:
        raise InputError(
            f"{len(edges)} edges over {len(schema)} attributes do not form one tree; give exactly "
            f"{len(schema) - 1} that connect all of them (an independent attribute has equal rows)."
        )
    return tuple(parents[position] for position in range(len(schema)))


def _checked(schema: Schema, parents: Sequence[int], tables: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the conditionals after checking them, with zeros for values of a parent that cannot occur."""
    for own, parent, table in zip(schema, parents, tables, strict=True):
        expected = (schema.sizes[parent] if parent >= 0 else 1, own.size)
        if table.shape != expected:
            raise invalid(f"conditional of {own.name}", f"a table of the shape {expected}", table.shape)
    tree = Tree(schema, tuple(parents), tables)
    cleaned: list[Array] = []
    for own, parent, table in zip(schema, parents, tables, strict=True):
        possible = tree.marginals[parent] > 0 if parent >= 0 else np.ones(1, dtype=np.bool_)
        used = table[possible]
        if not np.all(used >= 0) or np.abs(used.sum(axis=1) - 1).max(initial=0) > _TOLERANCE:
            raise InputError(
                f"the conditional of {own.name!r} must have rows of probabilities that sum to 1."
            )
        cleaned.append(_rows(np.where(possible[:, None], table, 0.0)))
    return tuple(cleaned)


def _check_pairs(schema: Schema, tables: Mapping[Edge, Array]) -> None:
    known: dict[str, Array] = {}
    for (a, b), table in tables.items():
        expected = (schema[a].size, schema[b].size)
        if table.shape != expected:
            raise invalid(f"table of {a} and {b}", f"of the shape {expected}", table.shape)
        if not np.all(table >= 0) or abs(table.sum() - 1) > _TOLERANCE:
            raise InputError(f"the table of {a} and {b} must hold probabilities that sum to 1.")
        own = known.setdefault(a, table.sum(axis=1))
        if np.abs(own - table.sum(axis=1)).max() > _TOLERANCE:
            raise InputError(f"the tables of {a!r} with its neighbours disagree about its own probabilities.")


def _mutual_information(blocks: Array, at: Positions) -> Array:
    """Return the mutual information of every pair of attributes, shape (attributes, attributes)."""
    marginal = np.diagonal(blocks)
    rows = []
    for start, stop in pairwise(at):  # one attribute at a time, as wide tables leave no room for more copies
        cells = blocks[start:stop]
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0 is 0, and is chosen by `where`
            terms = np.where(cells > 0, cells * np.log(cells / np.outer(marginal[start:stop], marginal)), 0.0)
        rows.append(np.add.reduceat(terms.sum(axis=0), at[:-1]))
    return np.stack(rows)


def _widest_spanning_tree(weights: Array) -> tuple[int, ...]:
    """Return the parents of the spanning tree of the largest total weight, rooted at 0 (Prim 1957)."""
    best, parents = weights[0].copy(), np.zeros(len(weights), dtype=np.intp)
    parents[0] = -1
    outside = np.arange(len(weights)) > 0
    for _ in range(len(weights) - 1):
        nearest = int(np.argmax(np.where(outside, best, -np.inf)))
        outside[nearest] = False
        closer = outside & (weights[nearest] > best)
        best[closer], parents[closer] = weights[nearest][closer], nearest
    return tuple(int(parent) for parent in parents)
