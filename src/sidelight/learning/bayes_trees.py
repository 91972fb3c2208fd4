"""Decision trees read off Naive Bayes: one report of each person, the whole budget, no rounds.

Growing a tree in rounds divides the people among rounds, and at small budgets no split stands out. Here all
people report one attribute with the label, once. The tables that come of it are drawn to independence where
noise explains them (`learning.tables`), and a tree is grown on the distribution that they describe, the
attributes independent given the label. An attribute that says nothing has a flat table and gains nothing, so
that a tree which noise drowns is its root: the labels' shares.

Attributes are not really independent given the label, so the shares of labels in the leaves are asked for:
a part of the people, who have not reported yet, send the leaf that their record comes to with their label.
What the tables say of the leaves is the guess that these reports confirm or belie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import HeadsResponse, LabelledRows, LabelSettings, best_width
from sidelight.labels.collection import deal, settle_omegas
from sidelight.labels.leakage import row_shares
from sidelight.learning.bayes import BayesFit, BayesModel, LabelModel, private_bayes
from sidelight.learning.decision_tree import DecisionTree
from sidelight.learning.statement import Spending, Statement, labeldp_of, spending
from sidelight.learning.tables import TableEstimate, shrunken_shares, table_around
from sidelight.mechanisms.mechanism import Aggregate

_LEAST_GAIN = 1e-6  # of the Gini index, as a share of all records: less is rounding
_PEOPLE = 4  # one in so many tells a leaf
_MOST_TREES = 100
_SEED = 0  # which attributes a tree sees says nothing about anyone


@dataclass(frozen=True, eq=False)
class AveragedTrees(LabelModel):
    """Several trees; the probabilities are their mean."""

    trees: tuple[DecisionTree, ...]

    def probabilities(self, codes: NDArray[Any]) -> Array:
        """Return Pr(label | record) for each record, shape (records, labels)."""
        return np.asarray(np.mean([tree.probabilities(codes) for tree in self.trees], axis=0))

    def fits(self, sizes: Sequence[int], labels: int) -> bool:
        """Whether all trees are sound, and about attributes of these sizes and this number of labels."""
        return bool(self.trees) and all(tree.fits(sizes, labels) for tree in self.trees)

    def to_dict(self) -> dict[str, Any]:
        """Return the trees as plain data."""
        return {"trees": [tree.to_dict() for tree in self.trees]}


def tree_of_bayes(model: BayesModel, depth: int, attributes: Sequence[int] | None = None) -> DecisionTree:
    """Grow a tree of these attributes, all by default, on what the model says of everyone."""
    asked = list(range(len(model.conditionals)) if attributes is None else attributes)
    tree = DecisionTree.start(len(model.prior))
    for number in range(depth):
        for node in tree.open_nodes:
            tree = _decided(model, tree, node, asked, last=number + 1 == depth)
    return tree


@dataclass(frozen=True, eq=False)
class BayesTrees:
    """Trees read off Naive Bayes, what the reports say about the label, and what was asked."""

    model: LabelModel
    statement: Statement
    spent: tuple[Spending, ...]


def bayes_trees(
    rows: LabelledRows, settings: LabelSettings, depth: int, trees: int = 1, *, seed: int | None = None
) -> BayesTrees:
    """Simulate the collection: most people report an attribute with the label, the others a leaf with it.

    Everyone reports once, with the whole budget. With several trees, each asks its own share of the others.
    """
    if settings.secret != "both" or settings.protocol == "labeldp":
        raise InputError("trees read off Naive Bayes are for reports of both attributes and label.")
    check_whole("trees", trees, at_least=1, at_most=_MOST_TREES)
    groups = deal(len(rows), _PEOPLE * trees, seed=seed, stream="leaves")
    first = rows[np.flatnonzero(groups >= trees)]
    # The leaves' omega is not known before, so 1 is used; nor is one learnt for the attributes unasked.
    plain = replace(settings, omega=1.0) if settings.omega == "auto" else settings
    if settings.omega == "known" and settings.protocol == "khr":  # that of all records, not of the first
        plain = replace(settings, omega=tuple(settle_omegas(rows, settings, seed=seed).omegas))
    fit = private_bayes(first, plain, seed=derive_seed(seed, "tables"))
    said = _of_everyone(fit, rows)
    spent = [spending("attributes", len(first), [part.response for part in fit.reports], said.promise)]
    grown = [tree_of_bayes(fit.model, depth)] if trees == 1 else averaged(fit.model, depth, trees)
    for number, tree in enumerate(grown):
        asked = rows[np.flatnonzero(groups == number)]
        if len(tree.nodes) == 1 or not len(asked):  # a root has the labels' shares already
            continue
        question = _Leaves.of(tree, rows.classes, settings.epsilon)
        told = question.told(asked, seed=derive_seed(seed, f"leaves/{number}"))
        grown[number] = question.answered(told, fit.model.prior)
        said = question.added(said, rows)
        promise = question.response.label_epsilon
        spent.append(spending(f"leaves of tree {number + 1}", len(asked), [question.response], promise))
    model: LabelModel = grown[0] if trees == 1 else AveragedTrees(tuple(grown))
    return BayesTrees(model, said, tuple(spent))


def _of_everyone(fit: BayesFit, rows: LabelledRows) -> Statement:
    """Return the statement of the first reports for the distribution of all records, not of their senders."""
    said = fit.statement
    worst = max(part.response.leakage(rows.conditionals(part.attribute)).value for part in fit.reports)
    if said.omega_source.startswith("learnt"):  # those whom omega was learnt from spend the whole budget
        worst = max(worst, said.leakage)
    return replace(said, leakage=worst, labeldp=labeldp_of(rows, said.epsilon))


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The question which leaf of a tree a record comes to, asked together with the label."""

    tree: DecisionTree
    leaves: Positions
    response: HeadsResponse

    @classmethod
    def of(cls, tree: DecisionTree, classes: int, epsilon: float) -> _Leaves:
        """Make the question of a tree; omega is 1, so that it promises the same for leaf and label."""
        leaves = np.flatnonzero([node.children is None for node in tree.nodes])
        width = best_width(len(leaves) * classes, epsilon, np.ones(len(leaves)))
        return cls(tree, leaves, HeadsResponse(len(leaves), classes, epsilon, width, 1.0))

    def _places(self, rows: LabelledRows) -> Positions:
        return np.searchsorted(self.leaves, self.tree.route(rows.codes))

    def told(self, rows: LabelledRows, *, seed: int | None) -> Aggregate:
        """Simulate the answers of some people, and add them up."""
        places = self._places(rows).astype(np.uint16)
        return self.response.aggregate(self.response.randomise(places, rows.labels, seed=seed))

    def added(self, said: Statement, rows: LabelledRows) -> Statement:
        """Return the statement of a collection in which some answer this question too."""
        shares = row_shares(rows.counts(self._places(rows), len(self.leaves)))
        worst = max(said.leakage, self.response.leakage(shares).value)
        promise = max(said.promise, self.response.label_epsilon)
        return replace(
            said, leakage=worst, promise=promise, value=max(said.value, self.response.value_epsilon)
        )

    def answered(self, told: Aggregate, prior: Array) -> DecisionTree:
        """Return the tree whose leaves have the labels that people reported, as far as noise can tell."""
        nodes = [self.tree.nodes[number] for number in self.leaves]
        guess = np.array([np.asarray(node.shares) * node.mass for node in nodes])
        noise = self.response.cell_variance(guess.sum(axis=1) / guess.sum(), prior).sum(axis=1)
        joint = self.response.joint(told)
        marginal = shrunken_shares(joint.sum(axis=1), noise / told.reports)
        estimate = TableEstimate(joint, self.response.cell_variance(marginal, prior) / told.reports, marginal)
        table = table_around(estimate, prior, (guess / guess.sum(axis=0)).T)
        told_of = dict(zip(self.leaves.tolist(), (prior[:, None] * table).T, strict=True))
        return _summed(self.tree, told_of)


def _summed(tree: DecisionTree, leaves: dict[int, Array]) -> DecisionTree:
    """Return the tree with these label weights of its leaves, and their sums in the nodes above."""
    weights = dict(leaves)
    for number in reversed(range(len(tree.nodes))):  # children come after their node
        children = tree.nodes[number].children
        if children is not None:
            weights[number] = weights[children[0]] + weights[children[1]]
    for number, part in weights.items():
        mass = float(part.sum())
        tree = tree.settled(number, part / mass, mass, is_open=False)
    return tree


def averaged(model: BayesModel, depth: int, trees: int) -> list[DecisionTree]:
    """Grow several trees, each of half of the attributes by chance, so that no attribute is left to one."""
    rng, count = np.random.default_rng(_SEED), len(model.conditionals)
    sets = [np.sort(rng.permutation(count)[: max(1, (count + 1) // 2)]).tolist() for _ in range(trees)]
    return [tree_of_bayes(model, depth, part) for part in sets]


def _decided(
    model: BayesModel, tree: DecisionTree, number: int, attributes: Sequence[int], *, last: bool
) -> DecisionTree:
    """Return the tree with the node split at the value of the least Gini index, or closed."""
    allowed = [np.ones(table.shape[1], dtype=bool) for table in model.conditionals]
    for step in tree.nodes[number].path:
        here = np.arange(len(allowed[step.attribute])) == step.value
        allowed[step.attribute] &= here if step.holds else ~here
    inside = [(table * mask).sum(axis=1) for table, mask in zip(model.conditionals, allowed, strict=True)]
    weights = model.prior * np.prod(inside, axis=0)
    best, gain = None, _LEAST_GAIN
    for attribute in attributes:
        table = model.conditionals[attribute] * allowed[attribute]
        yes = (weights / inside[attribute])[:, None] * table  # (labels, values)
        gains = _purity(yes) + _purity(weights[:, None] - yes) - _purity(weights[:, None])
        gains[~allowed[attribute]] = 0.0
        value = int(gains.argmax())
        if gains[value] > gain:
            best, gain = (attribute, value, yes[:, value]), float(gains[value])
    if best is None:
        mass = float(weights.sum())
        return tree.settled(number, weights / mass, mass, is_open=False)
    attribute, value, held = best
    return tree.split(number, attribute, value, (held, weights - held), last=last)


def _purity(weights: Array) -> Array:
    """Return sum of squares over sum, by column: the mass less its Gini index."""
    mass = weights.sum(axis=0)
    return np.asarray(np.divide((weights**2).sum(axis=0), mass, out=np.zeros_like(mass), where=mass > 0))
