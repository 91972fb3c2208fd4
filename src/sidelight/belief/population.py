"""The population as well as a sample lets someone know it: a stacked mixture of models.

The table's own distribution takes every chance pattern of the sample for a fact. Here several models are
fitted on nine tenths of the records: independence, a tree (Chow, Liu 1968), latent classes (Lazarsfeld),
mixtures of trees (Meila, Jordan 2000) and a kernel around the records (Aitchison, Aitken 1976). They are
mixed by how well they predict the tenth that was held out (stacking; Wolpert 1992), so that the mixture is
hardly ever worse than the best of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import logsumexp

from sidelight.belief.components import Component, Forest, LatentClasses, RecordKernel, TreeMixture
from sidelight.schema import Schema

Array = NDArray[np.float64]
Codes = NDArray[np.uint16]
MOST_ROWS = 20_000
"""A sample of so many records is fitted: held-out likelihood hardly rises with more."""
_HELD_OUT = 10
_CLASSES = (16, 64)
_TREES = (4, 12, 30)
_CLASS_STEPS = 60
_TREE_STEPS = 6
_CLASS_RECORDS = 2.0
"""A class's chances are those of its people and of so many further ones like everybody."""
_TREE_RECORDS = 20.0
_KERNEL_STEPS = 12
_KERNEL_QUERIES = 800
_LEAST_RATE = 1e-4
_LEAST_PART = 1e-4
"""People who belong to a class with a smaller probability are left out of its tree's counts."""
_STACK_STEPS = 200


@dataclass(frozen=True, eq=False)
class Population:
    """A mixture of models of the population.

    Attributes:
        schema: the attributes.
        components: the models.
        weights: (components,) their shares of the mixture.
        gain: by how many nats a record it predicts held-out records better than independence does.
    """

    schema: Schema
    components: tuple[Component, ...]
    weights: Array
    gain: float


@dataclass(frozen=True, eq=False)
class _Sample:
    """Records to fit on, and what every model asks of them."""

    schema: Schema
    codes: Codes
    shown: NDArray[np.float32]
    marginals: Array
    pairs: Array

    @property
    def offsets(self) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(self.schema.sizes)]).astype(np.intp)

    def split(self, line: Array) -> tuple[Array, ...]:
        """Return what stands in one line for all values by attribute."""
        return tuple(line[..., a:b] for a, b in pairwise(self.offsets))


def fit_population(schema: Schema, codes: Codes, rng: np.random.Generator) -> Population:
    """Fit the mixture to records, shape (n, attributes)."""
    rows = rng.permutation(len(codes))[:MOST_ROWS]
    held = max(1, len(rows) // _HELD_OUT)
    sample = _sample(schema, codes[rows[held:]])
    independence = LatentClasses(np.ones(1), tuple(part[None, :] for part in sample.split(sample.marginals)))
    components = [independence, TreeMixture(np.ones(1), (_tree(sample, sample.pairs),))]
    components += [_latent_classes(sample, classes, rng)[0] for classes in _CLASSES]
    components += [_tree_mixture(sample, classes, rng) for classes in _TREES]
    components.append(_record_kernel(sample, rng))
    logs = np.stack([component.log_records(codes[rows[:held]]) for component in components], axis=1)
    weights = _stacked(logs)
    kept = weights > 0
    gain = float(np.mean(logsumexp(logs[:, kept] + np.log(weights[kept]), axis=1) - logs[:, 0]))
    return Population(schema, tuple(np.array(components, dtype=object)[kept]), weights[kept], gain)


def _stacked(logs: Array) -> Array:
    """Return the weights under which held-out records, shape (records, models), are likeliest, by EM."""
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(_STACK_STEPS):
        parts = chances * weights
        weights = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    weights[weights < 1 / len(logs) / 10] = 0.0  # less than a tenth of one held-out record
    return np.asarray(weights / weights.sum())


def _sample(schema: Schema, codes: Codes) -> _Sample:
    offsets = np.concatenate([[0], np.cumsum(schema.sizes)])
    shown = np.zeros((len(codes), offsets[-1]), dtype=np.float32)
    shown[np.arange(len(codes))[:, None], codes + offsets[:-1]] = 1
    share = np.repeat(1 / np.asarray(schema.sizes), schema.sizes)
    # half a record, spread evenly, so that no value is impossible
    marginals = (shown.sum(axis=0, dtype=np.float64) + 0.5 * share) / (len(codes) + 0.5)
    counts = (shown.T @ shown).astype(np.float64)
    apart = np.outer(marginals, marginals)
    for a, b in pairwise(offsets):
        apart[a:b, a:b] = np.diag(marginals[a:b])
    # two records as if attributes were independent, so that no pair of values is impossible
    pairs = (counts + 2 * apart) / (len(codes) + 2)
    return _Sample(schema, codes, shown, marginals, pairs)


def _tree(sample: _Sample, pairs: Array) -> Forest:
    """Return the tree that keeps the strongest pairs of these pair tables (Chow, Liu 1968)."""
    starts = sample.offsets[:-1]
    single = np.diag(pairs)
    excess = pairs * np.log(pairs / np.outer(single, single), where=pairs > 0, out=np.zeros_like(pairs))
    information = np.add.reduceat(np.add.reduceat(excess, starts, axis=0), starts, axis=1)
    # weights away from 0: the solver takes tiny ones for absent edges
    cost = -(1 + np.maximum(information, 0))
    np.fill_diagonal(cost, 0)
    spanning = minimum_spanning_tree(csr_matrix(cost))
    order, parents = breadth_first_order(spanning, 0, directed=False)
    spans = [slice(a, b) for a, b in pairwise(sample.offsets)]
    edges = tuple((int(parents[child]), int(child)) for child in order[1:])
    joints = tuple(pairs[spans[a], spans[b]] for a, b in edges)
    return Forest(tuple(single[span] for span in spans), edges, joints)


def _latent_classes(
    sample: _Sample, classes: int, rng: np.random.Generator
) -> tuple[LatentClasses, NDArray[np.float32]]:
    """Fit latent classes by EM, and return also who belongs to which, shape (records, classes)."""
    shown, people = sample.shown, len(sample.shown)
    chances = 0.5 * shown[rng.choice(people, classes, replace=people < classes)] + 0.5 * sample.marginals
    shares = np.full(classes, 1 / classes)
    best = -np.inf
    for _ in range(_CLASS_STEPS):
        logs = shown @ np.log(chances).T.astype(np.float32) + np.log(shares).astype(np.float32)
        top = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - top)
        total = parts.sum(axis=1, keepdims=True)
        parts /= total
        shares, chances = _class_step(sample, parts)
        fit = float((np.log(total) + top).mean())
        if fit - best < 1e-4:
            break
        best = fit
    return LatentClasses(shares, sample.split(chances)), parts


def _class_step(sample: _Sample, parts: NDArray[np.float32]) -> tuple[Array, Array]:
    sizes = parts.sum(axis=0, dtype=np.float64)
    chances = (parts.T @ sample.shown + _CLASS_RECORDS * sample.marginals) / (sizes + _CLASS_RECORDS)[:, None]
    return (sizes + 0.1) / (sizes + 0.1).sum(), chances


def _tree_mixture(sample: _Sample, classes: int, rng: np.random.Generator) -> TreeMixture:
    """Fit a mixture of trees by EM from latent classes; each leans on the pairs of the whole table."""
    parts = _latent_classes(sample, classes, rng)[1]
    for step in range(_TREE_STEPS):
        sizes = parts.sum(axis=0, dtype=np.float64)
        forests = tuple(_class_tree(sample, part) for part in parts.T)
        mixture = TreeMixture((sizes + 0.1) / (sizes + 0.1).sum(), forests)
        if step + 1 < _TREE_STEPS:
            logs = mixture.log_classes(sample.codes)
            parts = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)).astype(np.float32)
    return mixture


def _class_tree(sample: _Sample, part: NDArray[np.float32]) -> Forest:
    members = part > _LEAST_PART
    shown = sample.shown[members]
    counts = ((shown * part[members, None]).T @ shown).astype(np.float64)
    people = counts[: sample.offsets[1], : sample.offsets[1]].trace()
    return _tree(sample, (counts + _TREE_RECORDS * sample.pairs) / (people + _TREE_RECORDS))


def _record_kernel(sample: _Sample, rng: np.random.Generator) -> RecordKernel:
    """Fit the rates of the kernel by EM on the chance of each record given all others."""
    sizes = sample.schema.sizes
    rates = np.full(len(sizes), 0.3)
    asked = rng.choice(len(sample.shown), min(_KERNEL_QUERIES, len(sample.shown)), replace=False)
    queries = sample.shown[asked]
    for _ in range(_KERNEL_STEPS):
        anew = np.repeat(rates, sizes) * sample.marginals
        kept = np.repeat(1 - rates, sizes)
        near = (queries * np.log1p(kept / anew).astype(np.float32)) @ sample.shown.T
        near[np.arange(len(asked)), asked] = -np.inf
        near = np.exp(near - near.max(axis=1, keepdims=True))
        near /= near.sum(axis=1, keepdims=True)
        matching = (near @ sample.shown) * queries
        copied = (matching * (kept / (kept + anew))).sum(axis=0, dtype=np.float64) / len(asked)
        rates = np.clip(1 - np.add.reduceat(copied, sample.offsets[:-1]), _LEAST_RATE, 1 - _LEAST_RATE)
    return RecordKernel(sample.schema, sample.codes, rates, sample.split(sample.marginals))
