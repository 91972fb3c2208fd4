"""What one round asks: in which cell of a partition is your record, and what is its label?

A cell is made of a class of each asked attribute and, in the scheme by leaves, of the open node that the
record has come to. From the estimated joint of cell and label the collector reads, for a node of the tree,
the joint of an attribute and the label among the records that come there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Mask, Whole
from sidelight.learning.decision_tree import DecisionTree, Step

LARGEST_QUESTION = 1 << 13


@dataclass(frozen=True)
class Question:
    """A partition of the records by some attributes.

    Attributes:
        classes: for each attribute the class of every code; 0, 1, 2, ... if it is asked in full.
        nodes: the open nodes that a cell also names; one more class stands for all other nodes.
    """

    attributes: tuple[int, ...]
    classes: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...] = ()

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes' classes, if any, and of each attribute's."""
        places = (len(self.nodes) + 1,) if self.nodes else ()
        return (*places, *(max(part) + 1 for part in self.classes))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    @cached_property
    def full(self) -> tuple[int, ...]:
        """The attributes that are asked in full."""
        parts = zip(self.attributes, self.classes, strict=True)
        return tuple(attribute for attribute, part in parts if max(part) + 1 == len(part))

    def code(self, codes: NDArray[Any], tree: DecisionTree) -> Whole:
        """Return the cell of each record."""
        asked = zip(self.attributes, self.classes, strict=True)
        parts = [np.asarray(part)[codes[:, attribute]] for attribute, part in asked]
        if self.nodes:
            place = np.full(len(tree.nodes), len(self.nodes))
            place[list(self.nodes)] = np.arange(len(self.nodes))
            parts.insert(0, place[tree.route(codes)])
        return np.asarray(np.ravel_multi_index(tuple(parts), self.shape)).astype(np.int64)

    def fits(self, sizes: Sequence[int], nodes: int) -> bool:
        """Whether the question is about attributes of these sizes and a tree with this number of nodes."""
        parts = zip(self.attributes, self.classes, strict=True)
        known = all(attribute < len(sizes) and len(part) == sizes[attribute] for attribute, part in parts)
        return known and all(node < nodes for node in self.nodes)

    def covers(self, path: Sequence[Step], node: int, attribute: int) -> bool:
        """Whether the joint of the attribute and the label at the node can be read from the answers."""
        if attribute not in self.full:
            return False
        if self.nodes:
            return node in self.nodes
        parts = dict(zip(self.attributes, self.classes, strict=True))
        return all(
            step.attribute in parts
            and parts[step.attribute].count(parts[step.attribute][step.value]) == 1  # a class of its own
            for step in path
        )

    def table(self, joint: Array, path: Sequence[Step], node: int, attribute: int) -> tuple[Array, int]:
        """Return the joint of the attribute and the label at a node, and how many cells each entry adds up.

        The estimated joint is (cells, labels); the path leads to the node; the question must cover it.
        """
        cells = joint.reshape(*self.shape, -1)
        if self.nodes:
            return np.asarray(cells[self.nodes.index(node)]), 1
        added = 1
        axis = self.attributes.index(attribute)
        for i, (name, part) in enumerate(zip(self.attributes, self.classes, strict=True)):
            keep = possible_classes(path, name, part)
            cells = np.where(keep.reshape([-1 if j == i else 1 for j in range(cells.ndim)]), cells, 0.0)
            added *= 1 if i == axis else int(keep.sum())
        others = tuple(i for i in range(len(self.attributes)) if i != axis)
        return np.asarray(cells.sum(axis=others)), max(added, 1)


def possible_classes(path: Sequence[Step], attribute: int, classes: Sequence[int]) -> Mask:
    """Return which classes of an attribute's values records at the end of the path can be in."""
    possible = np.ones(max(classes) + 1, dtype=np.bool_)
    for step in path:
        if step.attribute == attribute:
            is_class = np.arange(len(possible)) == classes[step.value]
            possible &= is_class if step.holds else ~is_class
    return possible


def product_question(
    sizes: Sequence[int], attributes: Sequence[int], tree: DecisionTree, free: int, labels: int
) -> Question:
    """Return the published question: all combinations of the attributes' values (CLLDP, section 6.1).

    Where they are too many, attributes other than `free` are asked more coarsely, the largest first: only for
    the values that the tree so far asks for, each of the others being one class.
    """
    chosen = tuple(sorted(set(attributes)))
    classes = {attribute: tuple(range(sizes[attribute])) for attribute in chosen}
    order = sorted((a for a in chosen if a != free), key=lambda a: (-sizes[a], a))
    for attribute in order:
        if prod(max(part) + 1 for part in classes.values()) * labels <= LARGEST_QUESTION:
            break
        asked = {node.value for node in tree.nodes if node.attribute == attribute and node.value is not None}
        classes[attribute] = _coarse(sizes[attribute], sorted(asked))
    return Question(chosen, tuple(classes[attribute] for attribute in chosen))


def _coarse(size: int, values: Sequence[int]) -> tuple[int, ...]:
    """Return a class for each of the values and one for all others."""
    numbers = {value: i for i, value in enumerate(values)}
    rest = len(numbers) if len(numbers) < size else 0
    return tuple(numbers.get(code, rest) for code in range(size))
