"""Synthetic records from private marginals, so that any model can be trained (CLLDP, future work).

Everyone reports one pair of attributes and the label by kHR, or one attribute and the label. From the
estimated joints a tree is learnt that is rooted at the label: each attribute has the label and at most one
other attribute as parents (tree-augmented Naive Bayes: Friedman, Geiger, Goldszmidt 1997). Records drawn from
it are post-processing, so they leak no more about anyone's label than the reports did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.labels.devices import (
    LabelledRows,
    LabelSettings,
    deal,
    gather,
    make_response,
    settle_omegas,
)
from sidelight.labels.omega import Omega, joint_confidence
from sidelight.labels.responses import LabelResponse
from sidelight.learning.bayes import BayesModel, bayes_from_reports
from sidelight.learning.simplex import project
from sidelight.learning.statement import Statement, single_report_statement

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SyntheticModel:
    """A distribution of whole records: Naive Bayes with one more parent for some attributes.

    Attributes:
        bayes: the labels and each attribute given the label.
        parents: for each attribute its other parent, or None; a parent comes before its children in `order`.
        tables: for each attribute with a parent Pr(value | label, parent's value), (labels, parent, values).
        order: the order in which attributes are drawn.
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
            codes[:, attribute] = np.minimum(drawn, rows.shape[1] - 1)
        return LabelledRows(codes, labels.astype(np.uint16), self.bayes.sizes, len(self.bayes.prior))


@dataclass(frozen=True, eq=False)
class SyntheticFit:
    """A model of whole records, and what the reports behind it say about the label."""

    model: SyntheticModel
    statement: Statement


def private_synthetic(
    rows: LabelledRows, settings: LabelSettings, *, pairs: bool = True, seed: int | None = None
) -> SyntheticFit:
    """Simulate the collection and learn a model of whole records.

    Args:
        rows: the people's records.
        settings: the protocol; "khr" or "basic".
        pairs: whether half of the people report a pair of attributes with the label; without them the
            attributes are independent given the label.
        seed: for simulation; without one the noise is secure.
    """
    if settings.protocol == "labeldp":
        raise InputError("with LabelDP the attributes are known as they are; train on them instead.")
    omegas, left = settle_omegas(rows, settings, seed=derive_seed(seed, "omega"))
    kept = rows[np.flatnonzero(left)]
    halves = deal(len(kept), 2 if pairs and len(rows.sizes) > 1 else 1, seed=seed, stream="halves")
    singles = [
        make_response(settings, size, rows.classes, omega)
        for size, omega in zip(rows.sizes, omegas, strict=True)
    ]
    alone = gather(kept[np.flatnonzero(halves == 0)], singles, seed=derive_seed(seed, "singles"))
    bayes = bayes_from_reports(alone)
    joints = _pair_joints(kept[np.flatnonzero(halves == 1)], settings, omegas, derive_seed(seed, "pairs"))
    alone_figure = single_report_statement(rows, settings, omegas, singles)
    pairwise = _pair_figures(rows, settings, omegas, joints)
    worst = max([alone_figure.leakage, *(leakage for leakage, _ in pairwise)])
    promise = max([alone_figure.promise, *(promised for _, promised in pairwise)])
    return SyntheticFit(tree_model(bayes, joints), replace(alone_figure, leakage=worst, promise=promise))


def _pair_figures(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], pairs: Iterable[tuple[int, int]]
) -> list[tuple[float, float]]:
    """Return what a report about each pair says about the label: exactly for the records, and as promised."""
    found = []
    for i, j in pairs:
        sizes = (rows.sizes[i], rows.sizes[j])
        cells = rows.codes[:, i].astype(np.int64) * sizes[1] + rows.codes[:, j]
        whole = LabelledRows(
            cells[:, None].astype(np.uint16), rows.labels, (sizes[0] * sizes[1],), rows.classes
        )
        response = pair_response(settings, sizes, rows.classes, omegas[i], omegas[j])
        found.append((response.leakage(whole.conditionals(0)).value, response.label_epsilon))
    return found


def _pair_joints(
    rows: LabelledRows, settings: LabelSettings, omegas: Sequence[Omega], seed: int | None
) -> dict[tuple[int, int], tuple[Array, float]]:
    """Return the estimated joint of every pair with the label, (first, second, labels), and its variance."""
    everything = list(combinations(range(len(rows.sizes)), 2))
    if not len(rows):
        return {}
    groups = deal(len(rows), len(everything), seed=seed, stream="pairs")
    found = {}
    for number, (i, j) in enumerate(everything):
        part = rows[np.flatnonzero(groups == number)]
        if not len(part):
            continue
        response = pair_response(settings, (rows.sizes[i], rows.sizes[j]), rows.classes, omegas[i], omegas[j])
        cells = part.codes[:, i].astype(np.int64) * rows.sizes[j] + part.codes[:, j]
        reports = response.randomise(cells, part.labels, seed=derive_seed(seed, f"{i}/{j}"))
        joint = response.joint(response.aggregate(reports)).reshape(
            rows.sizes[i], rows.sizes[j], rows.classes
        )
        found[i, j] = (joint, response.total_variance(len(part)) / joint.size)
    return found


def pair_response(
    settings: LabelSettings, sizes: tuple[int, int], classes: int, first: Omega, second: Omega
) -> LabelResponse:
    """Return the protocol of a pair of attributes; k of its cells weigh no more than k values of either."""
    cells = sizes[0] * sizes[1]
    curve = np.minimum(_extended(first, cells), _extended(second, cells))
    return make_response(settings, cells, classes, Omega(curve, *joint_confidence([first, second])))


def _extended(omega: Omega, cells: int) -> Array:
    curve = np.ones(cells)
    curve[: len(omega.curve)] = omega.curve
    return curve


def tree_model(bayes: BayesModel, joints: Mapping[tuple[int, int], tuple[Array, float]]) -> SyntheticModel:
    """Return the model with the strongest clear dependences between attributes given the label.

    A pair counts by its squared distance from independence given the label, less what noise alone would
    give; pairs that noise explains are left out (a spanning forest of the rest: Chow and Liu 1968).
    """
    scored = []
    for (i, j), (joint, variance) in joints.items():
        expected = _independent(bayes, i, j)
        excess = float(((joint - expected) ** 2).sum()) - 2 * variance * joint.size
        if excess > 0:
            scored.append((excess, i, j))
    neighbours: dict[int, list[int]] = {i: [] for i in range(len(bayes.sizes))}
    root = list(range(len(bayes.sizes)))
    for _, i, j in sorted(scored, reverse=True):
        if _find(root, i) != _find(root, j):
            root[_find(root, i)] = _find(root, j)
            neighbours[i].append(j)
            neighbours[j].append(i)
    parents, order = _directed(neighbours)
    tables = {
        child: _child_table(bayes, joints, parent, child)
        for child, parent in enumerate(parents)
        if parent is not None
    }
    return SyntheticModel(bayes, parents, tables, order)


def _independent(bayes: BayesModel, i: int, j: int) -> Array:
    """Return the joint of two attributes and the label if they were independent given it."""
    first, second = bayes.conditionals[i], bayes.conditionals[j]
    return np.asarray(np.einsum("l,la,lb->abl", bayes.prior, first, second))


def _find(root: list[int], i: int) -> int:
    while root[i] != i:
        i = root[i]
    return i


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


def _child_table(
    bayes: BayesModel, joints: Mapping[tuple[int, int], tuple[Array, float]], parent: int, child: int
) -> Array:
    """Return Pr(child | label, parent): the estimate drawn towards independence by what noise explains."""
    key = (min(parent, child), max(parent, child))
    joint, variance = joints[key]
    expected = _independent(bayes, *key)
    distance = float(((joint - expected) ** 2).sum())
    kept = max(0.0, 1 - variance * joint.size / distance)
    mixed = project(expected + kept * (joint - expected))
    cells = mixed.transpose(2, 0, 1) if parent == key[0] else mixed.transpose(2, 1, 0)
    raised = cells + 1e-6 * bayes.conditionals[child][:, None, :]
    return np.asarray(raised / raised.sum(axis=2, keepdims=True))
