"""How the collector decides about an open node: the least Gini index wins (CLLDP, eqs. (11) and (12))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from sidelight.foundation.arrays import Array, Mask, to_simplex
from sidelight.learning.decision_tree import DecisionTree, Step
from sidelight.learning.questions import Question, possible_classes

_LEAST_MASS = 1e-9
"""A node with less mass is one that nobody comes to: shares of it would be nothing but noise."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """All estimates of one question's joint, added up with weights: (cells, labels), and the weights' sum.

    `squares` is the sum of weight^2 x variance of a cell.
    """

    total: Array
    weight: float
    squares: float

    def plus(self, joint: Array, variance: float, *, equal: bool) -> Evidence:
        """Return the evidence with one more estimate, weighted by its precision, or equally."""
        weight = 1.0 if equal else 1 / variance  # weights by precision give the least variance of the mean
        squares = self.squares + weight**2 * variance
        return Evidence(self.total + weight * joint, self.weight + weight, squares)

    def fits(self, cells: int, labels: int) -> bool:
        """Whether these can be estimates for this number of cells and labels."""
        is_table = self.total.dtype == np.float64 and self.total.shape == (cells, labels)
        return is_table and bool(np.isfinite(self.total).all())

    @property
    def joint(self) -> Array:
        """The averaged estimate."""
        return np.asarray(self.total / self.weight)

    @property
    def variance(self) -> float:
        """The variance of one cell of it."""
        return self.squares / self.weight**2


def node_tables(
    evidence: Mapping[Question, Evidence], tree: DecisionTree, number: int, attributes: int
) -> dict[int, Evidence]:
    """Return the table of every attribute that some question covers at the node.

    Tables from several questions are averaged, each weighted by its precision.
    """
    path = tree.nodes[number].path
    tables: dict[int, Evidence] = {}
    for attribute, (question, known) in product(range(attributes), evidence.items()):
        if known.weight > 0 and question.covers(path, number, attribute):
            cells, added = question.table(known.joint, path, number, attribute)
            before = tables.get(attribute, Evidence(np.zeros_like(cells), 0.0, 0.0))
            tables[attribute] = before.plus(cells, known.variance * added, equal=False)
    return tables


def decide(
    tree: DecisionTree,
    number: int,
    tables: Mapping[int, Evidence],
    *,
    last: bool,
    caution: float,
    defer: bool = False,
) -> DecisionTree:
    """Return the tree with the node split at the best value, or closed where no value helps.

    The tables are of the attributes that are known there; the children of the last round are leaves. With
    `caution` a value is considered only if its records' labels differ from the node's by more than this many
    standard errors, and the children's shares are drawn towards the node's by as much as noise explains; 0 is
    the published rule. With `defer` a node without a useful value stays open, so that the next round adds to
    what is known of it.
    """
    node = tree.nodes[number]
    shares, mass = _label_shares(tables, np.asarray(node.shares), node.mass)
    mass = mass if node.path else 1.0  # everyone comes to the root
    best = _best_split(tables, node.path, shares, mass, caution)
    if best is None or 1 - (shares**2).sum() <= best[0]:
        return tree.settled(number, shares, mass, is_open=defer)
    _, attribute, value, cells = best
    noise = tables[attribute].variance if caution > 0 else 0.0
    yes = _drawn_to(cells[value], shares, noise)
    no = _drawn_to(cells.sum(axis=0) - cells[value], shares, noise)
    return tree.split(number, attribute, value, (yes, no), last=last)


def _best_split(
    tables: Mapping[int, Evidence], path: Sequence[Step], shares: Array, mass: float, caution: float
) -> tuple[float, int, int, Array] | None:
    """Return the Gini index, attribute and value of the best split, with the attribute's projected table."""
    best: tuple[float, int, int, Array] | None = None
    for attribute, table in tables.items():
        joint = table.joint
        possible = possible_classes(path, attribute, range(len(joint)))  # the others are noise
        if np.count_nonzero(possible) < 2:
            continue
        cells, estimates = np.zeros_like(joint), joint[possible]
        cells[possible] = to_simplex(estimates.ravel(), mass, shift=False).reshape(estimates.shape)
        scores = _gini_after(cells)
        scores[~possible | ~_is_clear(cells, shares, caution**2 * table.variance)] = np.inf
        value = int(scores.argmin())
        if np.isfinite(scores[value]) and (best is None or scores[value] < best[0]):
            best = (float(scores[value]), attribute, value, cells)
    return best


def _label_shares(tables: Mapping[int, Evidence], shares: Array, mass: float) -> tuple[Array, float]:
    """Return the labels' shares and the mass of a node, from all its tables.

    Where the tables say that nobody comes here, what the parent's table said is kept.
    """
    total, weight = np.zeros_like(shares), 0.0
    for table in tables.values():
        precision = 1 / (table.variance * len(table.total))
        total += precision * table.joint.sum(axis=0)
        weight += precision
    reached = float(total.sum() / weight) if weight > 0 else 0.0
    if reached <= _LEAST_MASS:
        return shares, max(mass, _LEAST_MASS)
    return to_simplex(total / weight, reached, shift=False) / reached, reached


def _is_clear(cells: Array, shares: Array, noise: float) -> Mask:
    """Whether the labels of each value's records differ from the node's by more than noise."""
    weights = cells.sum(axis=1, keepdims=True)
    distance = ((cells - weights * shares) ** 2).sum(axis=1)
    rest = cells.sum() - weights[:, 0]  # a value that all records have splits nothing
    return np.asarray((weights[:, 0] > 0) & (rest > 0) & (distance > noise * cells.shape[1]))


def _drawn_to(weights: Array, shares: Array, noise: float) -> Array:
    """Draw a child's label weights towards the node's shares (James and Stein 1961, positive part)."""
    expected = weights.sum() * shares
    distance = float(((weights - expected) ** 2).sum())
    if distance <= 0:
        return np.asarray(expected)
    kept = max(0.0, 1 - noise * len(shares) / distance)  # beyond 0 the estimate would turn round
    return np.asarray(np.maximum(expected + kept * (weights - expected), 0.0))


def _gini_after(cells: Array) -> Array:
    """Return the Gini index after asking for each value."""
    total, mass = cells.sum(axis=0), cells.sum()
    yes = cells.sum(axis=1)
    no = mass - yes
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(yes > 0, yes - (cells**2).sum(axis=1) / yes, 0.0)
        outside = np.where(no > 0, no - ((total - cells) ** 2).sum(axis=1) / no, 0.0)
    return np.asarray((inside + outside) / mass)
