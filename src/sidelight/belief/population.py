"""The population as well as a sample lets someone know it: a stacked mixture of models.

The table's own distribution takes every chance pattern of the sample for a fact. Here several models are
fitted to nine tenths of the records: independence, a tree (Chow and Liu 1968), latent classes (Lazarsfeld
1950), mixtures of trees (Meila and Jordan 2000) and a kernel around the records (Aitchison and Aitken 1976).
They are mixed by how well they predict the tenth that was held out (stacking; Wolpert 1992, Smyth and Wolpert
1999), so that the mixture is hardly ever worse than the best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.belief.components import (
    Component,
    LatentClasses,
    RecordKernel,
    TreeMixture,
    log_mixture,
    with_diagonal,
)
from sidelight.belief.record_sums import grouped
from sidelight.belief.tree import Tree
from sidelight.foundation.arrays import Array, Codes, offsets
from sidelight.foundation.threads import one_thread, processors
from sidelight.schema import Schema
from sidelight.sources import Records, Table
from sidelight.sources.counts import check_dense
from sidelight.sources.table import Place

MOST_ROWS = 20_000
"""A sample of so many records is fitted: held-out likelihood hardly rises with more."""
_MOST_COUNTS = 6e10
"""Fewer rows are fitted of a wide table: rows times pairs of values stay below this, and above 2,000 rows."""
_FEWEST_ROWS = 20
"""Fewer cannot be divided into records to fit and records to judge by."""
_HELD_OUT = 10
_CLASSES = (16, 64)
_TREES = (4, 12, 30)
_CLASS_STEPS = 60
_TREE_STEPS = 6
_MOST_PAIRS = 2e7
"""Trees of wide tables are fitted in fewer steps: steps times pairs of values stay below this."""
_CLASS_RECORDS = 2.0
"""A class's chances are those of its people and of so many further ones like everybody."""
_TREE_RECORDS = 20.0
"""The same for the pairs of a tree."""
_KERNEL_STEPS = 12
_KERNEL_QUERIES = 800
_QUERIES = 64
"""So many of them are asked at a time."""
_LEAST_RATE = 1e-4
_LEAST_PART = 1e-4
"""People who belong to a class with a smaller probability are left out of its tree's counts."""
_STACK_STEPS = 200
_SPARSE = 6
"""With so many values an attribute, pairs are counted one by one sooner than by a product of matrices."""

Shown = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Population:
    """A mixture of models of the population.

    Attributes:
        schema: the attributes.
        components: the models.
        shares: (components,) of the mixture.
        gain: by how many nats a record it predicts held-out records better than independence does; their
            halves are judged by shares that were fitted to the other half.
    """

    schema: Schema
    components: tuple[Component, ...]
    shares: Array
    gain: float

    @classmethod
    def fit(cls, schema: Schema, codes: Codes, seed: int = 0) -> Population:
        """Fit the mixture to records, shape (n, attributes).

        The same records and seed give the same mixture. It is a model, not a private release. It takes about
        5 seconds of one core for 16 attributes with 175 values in all; many more values are fitted to fewer
        rows in fewer steps.
        """
        rng = _coins(seed, 0)
        most = min(MOST_ROWS, max(2000, int(_MOST_COUNTS / sum(schema.sizes) ** 2)))
        rows = codes[rng.permutation(len(codes))[:most]]
        held = len(rows) // _HELD_OUT if len(rows) >= _FEWEST_ROWS else 0
        sample = _Sample(schema, rows[held:])
        components = _fitted(sample, rng) if held else [_independence(sample)]
        logs = np.stack([component.log_records(rows[:held]) for component in components], axis=1)
        shares = _stacked(logs)
        kept = np.flatnonzero(shares)
        return cls(schema, tuple(components[number] for number in kept), shares[kept], _gain(logs))

    def pair_tables(self) -> Array:
        """Return the probabilities of all pairs as blocks of one matrix, see `Belief.blocks`."""
        return self._mixed(component.pair_tables() for component in self.components)

    def joint(self, names: Sequence[str]) -> Array:
        """Return the joint probabilities of the named attributes, one axis for each."""
        check_dense([self.schema[name].size for name in names], "take the view of a secret")
        places = [self.schema.index(name) for name in names]
        return self._mixed(component.joint(places) for component in self.components)

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of whole records, shape (n,)."""
        return log_mixture([component.log_records(codes) for component in self.components], self.shares)

    def smoothed(self, share: float) -> Population:
        """Return the mixture with this share of people spread evenly over all combinations of values.

        Its gain remains that of the mixture as it was fitted.
        """
        shares = np.append((1 - share) * self.shares, share)
        return replace(self, components=(*self.components, LatentClasses.even(self.schema)), shares=shares)

    def _mixed(self, tables: Iterable[Array]) -> Array:
        """Add up the components' tables, of which one at a time is in memory."""
        return np.asarray(sum(share * table for share, table in zip(self.shares, tables, strict=True)))


def sampled_rows(table: Table, seed: int) -> Codes:
    """Return random rows of a table, at least as many as are fitted to if it has them, in one pass."""
    share = min(1.0, 1.2 * MOST_ROWS / max(table.rows, 1))

    def pick(codes: Codes, place: Place) -> Codes:
        rng = _coins(seed, 1, place.part, place.start)
        return codes[rng.random(len(codes)) < share]

    return np.concatenate(list(table.engine.map_batches(table, pick)))


def drawn_rows(records: Records, seed: int) -> Codes:
    """Return rows drawn without replacement from distinct records, whose weights are whole numbers."""
    reach = np.cumsum(records.weights.astype(np.int64))
    rng = _coins(seed, 1)
    rows = rng.choice(reach[-1], min(int(reach[-1]), MOST_ROWS), replace=False)
    return records.codes[np.searchsorted(reach, rows, side="right")]


def _coins(seed: int, *use: int) -> np.random.Generator:
    """Return coins for one use of a seed, other than those of `default_rng(seed)`.

    Someone may draw releases with the same seed, and a certificate asks for coins that the belief has not
    seen. A list of numbers would not do as a seed: zeros at its end change nothing.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=use))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Records to fit to, and what every model asks of them."""

    schema: Schema
    codes: Codes

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        return offsets(self.schema.sizes)

    @cached_property
    def shown(self) -> Shown:
        """The records, shape (records, values): 1 where a record has a value, else 0."""
        shown = np.zeros((len(self.codes), self.offsets[-1]), dtype=np.float32)
        shown[np.arange(len(self.codes))[:, None], self.codes + self.offsets[:-1]] = 1
        return shown

    @cached_property
    def lookups(self) -> _Lookups:
        """The records laid out so that what is said of their values is looked up."""
        steps, columns = grouped(self.schema.sizes, self.codes, range(len(self.schema)))
        return _Lookups(steps, np.stack(columns, axis=1).astype(np.uint32), int(self.offsets[-1]))

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The records with values numbered through all attributes, shape (records, attributes)."""
        return np.asarray(self.codes + self.offsets[:-1], dtype=np.int64)

    @cached_property
    def marginals(self) -> Array:
        """The chances of all values in one line; half a record, spread evenly, leaves none impossible."""
        share = np.repeat(1 / np.asarray(self.schema.sizes), self.schema.sizes)
        return np.asarray((self.shown.sum(axis=0, dtype=np.float64) + share / 2) / (len(self.codes) + 0.5))

    @cached_property
    def pairs(self) -> Array:
        """The chances of all pairs; two records as if attributes were independent leave none impossible."""
        counts = (self.shown.T @ self.shown).astype(np.float64)
        apart = np.outer(self.marginals, self.marginals)
        apart = with_diagonal(apart, self.offsets, self.marginals)
        return np.asarray((counts + 2 * apart) / (len(self.codes) + 2))

    def split(self, line: Array) -> tuple[Array, ...]:
        """Return by attribute what stands in one line for all values."""
        return tuple(line[..., a:b] for a, b in pairwise(self.offsets))


@dataclass(frozen=True, eq=False)
class _Lookups:
    """Records as `fit_kernels` take them: groups of attributes with few combinations of values.

    Attributes:
        steps: (rows, 2), how combinations are made, as `record_sums.grouped` says it.
        codes: (records, groups), the combination that each record has in each group.
        values: how many values all attributes have.
    """

    steps: NDArray[np.uint32]
    codes: NDArray[np.uint32]
    values: int

    def sums(self, said: Array) -> Shown:
        """Return the sums, (records, classes), of what is said of each record's values, (values, classes)."""
        from sidelight.belief.fit_kernels import add_values

        out = np.zeros((len(self.codes), said.shape[1]), dtype=np.float32)
        add_values(self.steps, self.codes, np.ascontiguousarray(said, dtype=np.float32), out)
        return out

    def counts(self, parts: Shown) -> Array:
        """Return how many records have each value, (values, classes), by their parts, (records, classes)."""
        from sidelight.belief.fit_kernels import count_values

        counts = np.zeros((self.values, parts.shape[1]))
        count_values(self.steps, self.codes, parts, counts)
        return counts


def _fitted(sample: _Sample, rng: np.random.Generator) -> list[Component]:
    """Return all models; the first is independence.

    One thread fits one model: the products of matrices are too small to be divided among threads.
    """
    tree = Tree.learn(sample.schema, sample.pairs)
    tasks: list[Callable[[np.random.Generator], Component]] = [
        partial(_record_kernel, sample),
        *(partial(_tree_mixture, sample, classes) for classes in reversed(_TREES)),
        *(lambda rng, classes=classes: _latent_classes(sample, classes, rng)[0] for classes in _CLASSES),
    ]
    with one_thread(), ThreadPoolExecutor(processors()) as pool:
        fitted = pool.map(lambda task, own: task(own), tasks, rng.spawn(len(tasks)))
        return [_independence(sample), TreeMixture(np.ones(1), (tree,)), *fitted]


def _independence(sample: _Sample) -> LatentClasses:
    """Return the one class in which all attributes are independent."""
    return LatentClasses(np.ones(1), sample.split(sample.marginals[None, :]))


def _stacked(logs: Array) -> Array:
    """Return the shares under which held-out records, shape (records, models), are likeliest, by EM."""
    shares = np.full(logs.shape[1], 1 / logs.shape[1])
    if logs.shape[1] == 1:
        return shares
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    for _ in range(_STACK_STEPS):
        parts = chances * shares
        shares = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    shares[shares < 1 / len(logs) / 10] = 0.0  # less than a tenth of one held-out record
    return np.asarray(shares / shares.sum())


def _gain(logs: Array) -> float:
    """Return the mean gain over the first model, each half being judged by shares of the other half."""
    if logs.shape[1] == 1:
        return 0.0
    with np.errstate(divide="ignore"):
        halves = [(logs[half::2], np.log(_stacked(logs[1 - half :: 2]))) for half in (0, 1)]
    gains = [np.logaddexp.reduce(part + shares, axis=1) - part[:, 0] for part, shares in halves]
    return float(np.concatenate(gains).mean())


def _latent_classes(sample: _Sample, classes: int, rng: np.random.Generator) -> tuple[LatentClasses, Shown]:
    """Fit latent classes by EM, and return also who belongs to which, shape (records, classes)."""
    shown, people = sample.shown, len(sample.shown)
    chances = 0.5 * shown[rng.choice(people, classes, replace=people < classes)] + 0.5 * sample.marginals
    shares = np.full(classes, 1 / classes)
    best = -np.inf
    for _ in range(_CLASS_STEPS):
        parts = sample.lookups.sums(np.log(chances).T)
        parts += np.log(shares).astype(np.float32)
        fit = _divide(parts)
        sizes = parts.sum(axis=0, dtype=np.float64)
        counts = sample.lookups.counts(parts).T + _CLASS_RECORDS * sample.marginals
        chances, shares = counts / (sizes + _CLASS_RECORDS)[:, None], _class_shares(sizes)
        if fit - best < 1e-4:
            break
        best = fit
    rows = tuple(part / part.sum(axis=1, keepdims=True) for part in sample.split(chances))
    return LatentClasses(shares, rows), parts


def _divide(logs: NDArray[np.floating[Any]]) -> float:
    """Make logarithms, (records, classes), the parts of records in classes; return their mean logarithm."""
    top = logs.max(axis=1, keepdims=True)
    logs -= top
    np.exp(logs, out=logs)
    total = logs.sum(axis=1, keepdims=True)
    logs /= total
    return float((np.log(total) + top).mean())


def _class_shares(sizes: Array) -> Array:
    """Return the shares of classes of these sizes; one that loses everybody keeps a little."""
    return np.asarray((sizes + 0.1) / (sizes + 0.1).sum())


def _tree_mixture(sample: _Sample, classes: int, rng: np.random.Generator) -> TreeMixture:
    """Fit a mixture of trees by EM from latent classes; each leans on the pairs of the whole table."""
    parts = _latent_classes(sample, classes, rng)[1]
    mixture = _mixture_of(sample, parts)
    steps = min(_TREE_STEPS, max(1, int(_MOST_PAIRS / sample.offsets[-1] ** 2)))
    for _ in range(steps - 1):
        logs = mixture.log_classes(sample.codes)
        _divide(logs)
        mixture = _mixture_of(sample, logs.astype(np.float32))
    return mixture


def _mixture_of(sample: _Sample, parts: Shown) -> TreeMixture:
    """Return the trees of classes to which records belong by these parts, shape (records, classes)."""
    trees = tuple(_class_tree(sample, part) for part in parts.T)
    return TreeMixture(_class_shares(parts.sum(axis=0, dtype=np.float64)), trees)


def _class_tree(sample: _Sample, part: Shown) -> Tree:
    """Return the tree of people who belong to a class by these parts, shape (records,)."""
    counts = _pair_counts(sample, part)
    first = slice(0, sample.offsets[1])
    people = counts[first, first].trace()  # as these counts have it: chances must sum to 1
    counts += _TREE_RECORDS * sample.pairs  # in place: every thread has such a table
    counts /= people + _TREE_RECORDS
    return Tree.learn(sample.schema, counts)


def _pair_counts(sample: _Sample, part: Shown) -> Array:
    """Return how many people of a class have each pair of values, shape (values, values)."""
    values = sample.offsets[-1]
    if values < _SPARSE * sample.codes.shape[1]:
        members = part > _LEAST_PART
        shown = sample.shown[members]
        return np.asarray(((shown * part[members, None]).T @ shown).astype(np.float64))
    from sidelight.belief.fit_kernels import count_pairs

    counts = np.zeros((values, values))
    count_pairs(sample.numbers, np.ascontiguousarray(part), _LEAST_PART, counts)
    return counts


def _record_kernel(sample: _Sample, rng: np.random.Generator) -> RecordKernel:
    """Fit the rates of the kernel by EM to the chance of each record given all others."""
    sizes = sample.schema.sizes
    rates = np.full(len(sizes), 0.3)
    asked = rng.choice(len(sample.shown), min(_KERNEL_QUERIES, len(sample.shown)), replace=False)
    queries = sample.shown[asked]
    for _ in range(_KERNEL_STEPS):
        anew = np.repeat(rates, sizes) * sample.marginals
        kept = np.repeat(1 - rates, sizes)
        said = np.log1p(kept / anew)
        matching = np.zeros(len(said))
        for first in range(0, len(asked), _QUERIES):
            some = queries[first : first + _QUERIES].T
            near = sample.lookups.sums(said[:, None] * some)
            near[asked[first : first + _QUERIES], np.arange(some.shape[1])] = -np.inf
            near -= near.max(axis=0)
            np.exp(near, out=near)
            near /= near.sum(axis=0)
            matching += (sample.lookups.counts(near) * some).sum(axis=1)
        copied = matching * (kept / (kept + anew)) / len(asked)
        rates = np.clip(1 - np.add.reduceat(copied, sample.offsets[:-1]), _LEAST_RATE, 1 - _LEAST_RATE)
    records = Records(sample.schema, sample.codes, np.ones(len(sample.codes)))
    return RecordKernel(records, rates, sample.split(sample.marginals))
