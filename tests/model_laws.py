"""Random small beliefs of every kind, and the probability of each record as their parameters state it.

The law is written out record by record from the parameters; nothing of how the package sums it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

import enumeration
import sidelight as sl
from sidelight.belief import Population, Tree
from sidelight.belief.components import Component, LatentClasses, RecordKernel, TreeMixture
from sidelight.schema import Schema, plain_schema
from sidelight.sources import Records

KINDS = ("table", "tree", "population")
_MOST_VALUES = 4


def random_belief(rng: np.random.Generator, kind: str, *, has_set: bool = False) -> sl.Belief:
    """A belief of two to four attributes: learnt from a few people, or made up, with zeros where it may be.

    In one of four samples, or in all of them, the last attribute is the combination of the first two: a set
    of attributes is a secret like any other.
    """
    is_learnt = has_set or rng.random() < (0.3 if kind == "population" else 0.5)
    if not is_learnt:
        return {"table": _made_up_table, "tree": _made_up_tree, "population": _made_up_population}[kind](rng)
    columns = _sample(rng, has_set)
    smoothing = float(rng.choice([0.0, 0.0, 2.5]))
    if rng.random() < 0.1:
        return sl.Belief.from_data(columns, "joint" if kind == "table" else kind, smoothing=smoothing)
    labels, codes = zip(*(np.unique(column, return_inverse=True) for column in columns.values()), strict=True)
    cells = np.zeros([len(part) for part in labels], dtype=np.int64)
    np.add.at(cells, codes, 1)
    table = sl.Belief.from_counts(cells, list(columns), smoothing=smoothing)
    if kind == "table":
        return table
    if kind == "tree":
        return sl.Belief.tree_of(table)
    return sl.Belief.population_of(table, seed=int(rng.integers(1 << 30)))


def law(belief: sl.Belief) -> np.ndarray:
    """Pr(record), one axis for each attribute."""
    cells = np.zeros(belief.schema.sizes)
    for record in np.ndindex(cells.shape):
        if belief.tree is not None:
            cells[record] = _in_tree(belief.tree, record)
        elif belief.population is not None:
            parts = zip(belief.population.shares, belief.population.components, strict=True)
            cells[record] = sum(share * _in_component(component, record) for share, component in parts)
        else:
            cells[record] = belief.smoothing / cells.size
    if belief.records is not None:
        for code, weight in zip(belief.records.codes, belief.records.weights, strict=True):
            cells[tuple(code)] += weight
    return cells / cells.sum()


def _in_tree(tree: Tree, record: Sequence[int]) -> float:
    parents = (record[parent] if parent >= 0 else 0 for parent in tree.parents)
    return prod(
        float(rows[above, value])
        for rows, above, value in zip(tree.conditionals, parents, record, strict=True)
    )


def _in_component(component: Component, record: Sequence[int]) -> float:
    if isinstance(component, TreeMixture):
        parts = zip(component.shares, component.trees, strict=True)
        return sum(share * _in_tree(tree, record) for share, tree in parts)
    if isinstance(component, LatentClasses):
        return sum(
            share * prod(rows[number, value] for rows, value in zip(component.chances, record, strict=True))
            for number, share in enumerate(component.shares)
        )
    assert isinstance(component, RecordKernel)
    total = 0.0
    for code, weight in zip(component.records.codes, component.records.weights, strict=True):
        total += weight * prod(
            (1 - rate) * (was == value) + rate * anew[value]
            for was, value, rate, anew in zip(code, record, component.rates, component.marginals, strict=True)
        )
    return total / component.records.total


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    sizes = rng.integers(2, _MOST_VALUES, size=int(rng.integers(2, 5)))
    return tuple(int(size) for size in sizes)


def _schema(sizes: Sequence[int]) -> Schema:
    return plain_schema((f"x{place}", size) for place, size in enumerate(sizes))


def _sample(rng: np.random.Generator, has_set: bool) -> dict[str, np.ndarray]:
    """Columns of a few dozen people, whose values go together."""
    cells = enumeration.random_joint(rng, _shape(rng)[:3])
    rows = rng.choice(cells.size, size=int(rng.integers(20, 80)), p=cells.ravel())
    codes = np.stack(np.unravel_index(rows, cells.shape), axis=1)
    codes[: _MOST_VALUES - 1] = np.arange(_MOST_VALUES - 1)[:, None] % cells.shape  # every value is there
    columns = {f"x{place}": column.astype(str) for place, column in enumerate(codes.T)}
    if has_set or rng.random() < 0.25:
        columns["both"] = np.char.add(columns["x0"], columns["x1"])
    return columns


def _made_up_table(rng: np.random.Generator) -> sl.Belief:
    cells = enumeration.random_joint(rng, _shape(rng))
    return sl.Belief.from_joint(cells, _schema(cells.shape))


def _rows(rng: np.random.Generator, rows: int, size: int, zeros: float = 0.0) -> np.ndarray:
    cells = rng.gamma(0.6, size=(rows, size)) + 1e-3
    cells[rng.random(cells.shape) < zeros] = 0
    cells[np.arange(rows), rng.integers(size, size=rows)] += 0.2
    return cells / cells.sum(axis=1, keepdims=True)


def _tree(rng: np.random.Generator, schema: Schema, zeros: float) -> Tree:
    names, sizes = schema.names, schema.sizes
    edges = {}
    for child in range(1, len(sizes)):
        parent = int(rng.integers(child))
        edges[names[parent], names[child]] = _rows(rng, sizes[parent], sizes[child], zeros)
    return Tree.from_conditionals(names[0], _rows(rng, 1, sizes[0], zeros)[0], edges, schema)


def _made_up_tree(rng: np.random.Generator) -> sl.Belief:
    return sl.Belief.from_tree(_tree(rng, _schema(_shape(rng)), float(rng.choice([0.0, 0.3, 0.6]))))


def _made_up_population(rng: np.random.Generator) -> sl.Belief:
    schema = _schema(_shape(rng))
    components = [_component(rng, schema) for _ in range(int(rng.integers(1, 4)))]
    shares = rng.dirichlet(np.ones(len(components)))
    population = Population(schema, tuple(components), shares, 0.0)
    return sl.Belief(
        schema, "population", population.pair_tables(), None, None, 0.0, "made up",
        is_model=True, population=population,
    )  # fmt: skip


def _component(rng: np.random.Generator, schema: Schema) -> Component:
    kind, parts = int(rng.integers(3)), int(rng.integers(1, 4))
    shares = rng.dirichlet(np.ones(parts))
    if kind == 0:
        return LatentClasses(shares, tuple(_rows(rng, parts, size) for size in schema.sizes))
    if kind == 1:
        zeros = float(rng.choice([0.0, 0.3]))
        return TreeMixture(shares, tuple(_tree(rng, schema, zeros) for _ in range(parts)))
    people = list(product(*map(range, schema.sizes)))
    chosen = rng.choice(len(people), size=min(5, len(people)), replace=False)
    codes = np.array([people[number] for number in chosen], dtype=np.uint16)
    rates = rng.choice([1e-4, 0.1, 0.7], size=len(schema))
    marginals = tuple(_rows(rng, 1, size)[0] for size in schema.sizes)
    return RecordKernel(
        Records(schema, codes, rng.integers(1, 9, len(codes)).astype(float)), rates, marginals
    )
