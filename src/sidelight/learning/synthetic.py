"""Synthetic records from private marginals, so that any model can be trained (CLLDP, future work).

Everyone reports one pair of attributes and the label by kHR, or one attribute and the label. From the
estimated joints a tree is learnt that is rooted at the label: each attribute has the label and at most one
other attribute as parents (tree-augmented Naive Bayes: Friedman, Geiger, Goldszmidt 1997). Records drawn from
it are post-processing, so they leak no more about anyone's label than the reports did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sidelight.foundation.arrays import Array, Whole, to_simplex
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.labels import LabelledRows, LabelResponse, LabelSettings, Omega, joint_confidence
from sidelight.labels.collection import deal, gather, make_response, make_responses, settle_omegas
from sidelight.labels.leakage import row_shares
from sidelight.learning.bayes import BayesModel, bayes_from_reports
from sidelight.learning.statement import Statement, single_report_statement

Pair = tuple[int, int]
Joints = Mapping[Pair, tuple[Array, float]]
"""The estimated joint of two attributes and the label, (first, second, labels), and a cell's variance."""


@dataclass(frozen=True, eq=False)
class SyntheticModel:
    """A distribution of whole records: Naive Bayes with one more parent for some attributes.

    Attributes:
        parents: for each attribute its other parent, or None; a parent comes before its children in `order`.
        tables: for each attribute with a parent Pr(value | label, parent's value), (labels, parent, values).
    """

    bayes: BayesModel
    parents: tuple[int | None, ...]
    tables: Mapping[int, Array]
    order: tuple[int, ...]

    def sample(self, records: int, *, seed: int) -> LabelledRows:
        """Draw records; they are as private as the reports, so an ordinary generator will do."""
        count = check_whole("records", records, at_least=1)
        rng = np.random.default_rng(seed)
        labels = rng.choice(len(self.bayes.prior), size=count, p=self.bayes.prior)
        codes = np.zeros((count, len(self.parents)), dtype=np.uint16)
        for attribute in self.order:
            parent = self.parents[attribute]
            if parent is None:
                rows = self.bayes.conditionals[attribute][labels]
            else:
                rows = self.tables[attribute][labels, codes[:, parent]]
            drawn = (rng.random((count, 1)) > np.cumsum(rows, axis=1)).sum(axis=1)
            codes[:, attribute] = np.minimum(drawn, rows.shape[1] - 1)  # rows may sum to a little less than 1
        return LabelledRows(codes, labels.astype(np.uint16), self.bayes.sizes, len(self.bayes.prior))


@dataclass(frozen=True, eq=False)
class SyntheticFit:
    """A model of whole records, and what the reports behind it say about the label."""

    model: SyntheticModel
    statement: Statement


def private_synthetic(
    rows: LabelledRows, settings: LabelSettings, *, pairs: bool = True, seed: int | None = None
) -> SyntheticFit:
    """Simulate a collection by "khr" or "basic" and learn a model of whole records.

    With `pairs` half of the people report a pair of attributes with the label; without them the attributes
    are independent given the label. Without a seed the noise is secure.
    """
    if settings.secret == "attributes":
        raise InputError("synthetic records are drawn from reports of both; use secret='both'.")
    if settings.protocol == "labeldp":
        raise InputError("with LabelDP the attributes are known as they are; train on them instead.")
    settled = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"))
    omegas, kept = settled.omegas, settled.rows
    halves = deal(len(kept), 2 if pairs and len(rows.sizes) > 1 else 1, seed=seed, stream="halves")
    singles = make_responses(settings, rows, omegas)
    alone = gather(kept[np.flatnonzero(halves == 0)], singles, seed=derive_seed(seed, "singles"))
    bayes = bayes_from_reports(alone, tables="published")
    joints = _pair_joints(kept[np.flatnonzero(halves == 1)], settings, omegas, derive_seed(seed, "pairs"))
    said = single_report_statement(rows, settings, omegas, singles)
    for pair in joints:
        response = pair_response(rows, settings, omegas, pair)
        shares = row_shares(rows.counts(_pair_cells(rows, pair), response.values))
        worst, promise = response.leakage(shares).value, response.label_epsilon
        said = replace(said, leakage=max(said.leakage, worst), promise=max(said.promise, promise))
    return SyntheticFit(tree_model(bayes, joints), said)


def _pair_cells(rows: LabelledRows, pair: Pair) -> Whole:
    """Return the number of each record's combination of two values."""
    first, second = pair
    return rows.codes[:, first].astype(np.int64) * rows.sizes[second] + rows.codes[:, second]


def _pair_joints(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], seed: int | None
) -> Joints:
    """Collect reports about pairs, each person's about one, and return what they say."""
    everything = list(combinations(range(len(rows.sizes)), 2))
    if not len(rows):
        return {}
    groups = deal(len(rows), len(everything), seed=seed, stream="pairs")
    joints = {}
    for number, pair in enumerate(everything):
        part = rows[np.flatnonzero(groups == number)]
        if not len(part):
            continue
        response = pair_response(rows, settings, omegas, pair)
        noise = derive_seed(seed, f"{pair[0]}/{pair[1]}")
        reports = response.randomise(_pair_cells(part, pair), part.labels, seed=noise)
        shape = (rows.sizes[pair[0]], rows.sizes[pair[1]], rows.classes)
        joint = response.joint(response.aggregate(reports)).reshape(shape)
        joints[pair] = (joint, response.total_variance(len(part)) / joint.size)
    return joints


def pair_response(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], pair: Pair
) -> LabelResponse:
    """Return the protocol of a pair of attributes; k of its cells weigh no more than k values of either."""
    both = [omegas[i] for i in pair]
    cells = rows.sizes[pair[0]] * rows.sizes[pair[1]]
    # Beyond an attribute's number of values its omega is 1.
    curves = [np.pad(omega.curve, (0, cells - len(omega.curve)), constant_values=1.0) for omega in both]
    curve = np.minimum(*curves)  # both are upper limits, so the smaller holds
    return make_response(settings, cells, rows.classes, Omega(curve, *joint_confidence(both)))


def tree_model(bayes: BayesModel, joints: Joints) -> SyntheticModel:
    """Return the model with the strongest clear dependences between attributes given the label.

    A pair counts by its squared distance from independence given the label, less what noise alone would
    give; pairs that noise explains are left out (a spanning forest of the rest: Chow and Liu 1968).
    """
    scored = []
    for (i, j), (joint, variance) in joints.items():
        expected = _independent(bayes, i, j)
        # Twice what noise adds on average: chance pairs are no parents.
        excess = float(((joint - expected) ** 2).sum()) - 2 * variance * joint.size
        if excess > 0:
            scored.append((excess, i, j))
    neighbours: dict[int, list[int]] = {i: [] for i in range(len(bayes.sizes))}
    part = list(range(len(bayes.sizes)))
    for _, i, j in sorted(scored, reverse=True):
        if part[i] != part[j]:
            part = [part[j] if each == part[i] else each for each in part]
            neighbours[i].append(j)
            neighbours[j].append(i)
    parents, order = _directed(neighbours)
    pairs = [(child, parent) for child, parent in enumerate(parents) if parent is not None]
    tables = {child: _child_table(bayes, joints, parent, child) for child, parent in pairs}
    return SyntheticModel(bayes, parents, tables, order)


def _independent(bayes: BayesModel, i: int, j: int) -> Array:
    """Return the joint of two attributes and the label if they were independent given it."""
    first, second = bayes.conditionals[i], bayes.conditionals[j]
    return np.asarray(np.einsum("l,la,lb->abl", bayes.prior, first, second))


def _directed(neighbours: Mapping[int, Sequence[int]]) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """Direct the forest away from the first attribute of each part."""
    parents: dict[int, int | None] = {}
    order: list[int] = []
    for start in neighbours:
        waiting: list[tuple[int, int | None]] = [(start, None)] if start not in parents else []
        while waiting:
            at, parent = waiting.pop()
            if at not in parents:
                parents[at] = parent
                order.append(at)
                waiting += [(other, at) for other in neighbours[at]]
    return tuple(parents[i] for i in sorted(parents)), tuple(order)


def _child_table(bayes: BayesModel, joints: Joints, parent: int, child: int) -> Array:
    """Return Pr(child | label, parent): the estimate drawn towards independence by what noise explains."""
    key = (min(parent, child), max(parent, child))
    joint, variance = joints[key]
    expected = _independent(bayes, *key)
    distance = float(((joint - expected) ** 2).sum())
    kept = max(0.0, 1 - variance * joint.size / distance)  # James and Stein, positive part, as for a split
    mixed = to_simplex((expected + kept * (joint - expected)).ravel(), shift=False).reshape(joint.shape)
    cells = mixed.transpose(2, 0, 1) if parent == key[0] else mixed.transpose(2, 1, 0)
    # A parent value without records follows the label alone.
    raised = cells + 1e-6 * bayes.conditionals[child][:, None, :]
    return np.asarray(raised / raised.sum(axis=2, keepdims=True))
