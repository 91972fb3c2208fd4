"""Models of a population: latent classes, mixtures of trees, and a kernel around the records of a table.

Each says how likely whole records are, draws people given one attribute's value, and sums a release's
likelihoods over everyone it deems possible. A table is a kernel that changes nothing, and a tree is a
mixture of one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np

from sidelight.belief.likelihoods import DOUBLE_REACH, HALF_UNIT, Centred, centre, centre_lined
from sidelight.belief.record_sums import RecordSums
from sidelight.belief.tree import Tree, choose, is_single, log_mixed_sums
from sidelight.foundation.arrays import Array, Codes, Positions, offsets
from sidelight.schema import Schema
from sidelight.sources import Records

_FURTHER_STEPS = 32
_SINGLE_UNIT = 2.0**-24
"""The largest relative error of one operation in single precision."""


@dataclass(frozen=True, eq=False)
class Component(ABC):
    """One model of the population; attributes are named by their positions."""

    @abstractmethod
    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""

    @abstractmethod
    def pair_tables(self) -> Array:
        """Return the probabilities of all pairs as blocks of one matrix, see `Belief.blocks`."""

    @abstractmethod
    def joint(self, places: Sequence[int]) -> Array:
        """Return the joint probabilities of some attributes, one axis for each; small enough for memory."""

    @abstractmethod
    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value, shape (count, attributes)."""

    @abstractmethod
    def log_joint(self, likelihoods: Centred, place: int) -> Array:
        """Return, by value of the attribute, ln of the sum over records of Pr(record) times likelihoods.

        Args:
            likelihoods: of other attributes than this one.
            place: the attribute, with m values; the result has shape (n, m).
        """

    @abstractmethod
    def rounding(self, likelihoods: Centred, place: int) -> float:
        """Return how far each logarithm of `log_joint` may be from the truth, at most."""

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of whole records, shape (n,): they are a release without noise."""
        sizes = [len(self.marginal(place)) for place in range(codes.shape[1])]
        seen = {place: np.eye(size)[codes[:, place]] for place, size in enumerate(sizes) if place}
        logs = np.broadcast_to(self.log_joint(centre(seen), 0), (len(codes), sizes[0]))
        return np.asarray(logs[np.arange(len(codes)), codes[:, 0]])


@dataclass(frozen=True, eq=False)
class LatentClasses(Component):
    """Attributes that are independent given a class that nobody sees (Lazarsfeld 1950).

    Attributes:
        shares: (classes,) how many people are in each; with one class, all attributes are independent.
        chances: by attribute (classes, values), positive.
    """

    shares: Array
    chances: tuple[Array, ...]

    @classmethod
    def even(cls, schema: Schema) -> LatentClasses:
        """Return the distribution in which all combinations of values are equally likely."""
        return cls(np.ones(1), tuple(np.full((1, size), 1 / size) for size in schema.sizes))

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        return np.asarray(self.shares @ self.chances[place])

    def pair_tables(self) -> Array:
        """Return the probabilities of all pairs."""
        lined = np.concatenate(self.chances, axis=1)
        at = offsets([part.shape[1] for part in self.chances])
        return with_diagonal((lined.T * self.shares) @ lined, at, self.shares @ lined)

    def joint(self, places: Sequence[int]) -> Array:
        """Return the joint probabilities of some attributes, class by class."""
        shape = [self.chances[place].shape[1] for place in places]
        cells = np.zeros(shape)
        for number, share in enumerate(self.shares):
            cells += share * reduce(np.multiply.outer, [self.chances[place][number] for place in places])
        return cells

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        odds = self.shares * self.chances[place][:, value]
        classes = rng.choice(len(odds), size=count, p=odds / odds.sum())
        drawn = np.stack([choose(chances[classes], rng) for chances in self.chances], axis=1)
        drawn[:, place] = value
        return drawn

    def log_joint(self, likelihoods: Centred, place: int) -> Array:
        """Return ln of the summed likelihoods for each value of the attribute."""
        means = (self.chances[other] @ table for other, table in likelihoods.tables.items())
        least = -math.log(self.shares.min()) - math.log(self.chances[place].min())
        with np.errstate(divide="ignore"):
            # Without zeros a class's likelihood is within `reach`: no product of it loses a digit in doubles.
            if not likelihoods.has_zeros and likelihoods.reach + least <= DOUBLE_REACH:
                products = reduce(np.multiply, means, self.shares[:, None])
                return np.asarray(np.log(self.chances[place].T @ products).T + likelihoods.shift)
            logs = reduce(np.add, map(np.log, means), np.log(self.shares)[:, None])
            top = logs.max(axis=0)
            top[np.isneginf(top)] = 0.0  # a release that no class allows
            # all chances are positive, so the likeliest class counts for every value, with all its digits
            sums = self.chances[place].T @ np.exp(logs - top)
            return np.asarray((np.log(sums) + top).T + likelihoods.shift)

    def rounding(self, likelihoods: Centred, place: int) -> float:
        """Return a bound: a number enters sums over values, one over classes, and logarithms."""
        used = [self.chances[other] for other in (*likelihoods.tables, place)]
        steps = sum(chances.shape[1] + 4 for chances in used) + len(self.shares) + 8
        least = sum(-math.log(chances.min()) for chances in used) - math.log(self.shares.min())
        return _double_rounding(steps, likelihoods.magnitude + least)


@dataclass(frozen=True, eq=False)
class TreeMixture(Component):
    """Classes that nobody sees, each with a tree of its own (Meila and Jordan 2000).

    Attributes:
        shares: (classes,) how many people are in each.
        trees: the dependence within each class.
    """

    shares: Array
    trees: tuple[Tree, ...]

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        return np.asarray(self.shares @ np.stack([tree.marginals[place] for tree in self.trees]))

    def pair_tables(self) -> Array:
        """Return the probabilities of all pairs."""
        return np.asarray(sum(share * tree.blocks() for share, tree in self._parts))

    def joint(self, places: Sequence[int]) -> Array:
        """Return the joint probabilities of some attributes, tree by tree."""
        names = [self.trees[0].schema.names[place] for place in places]
        return np.asarray(sum(share * tree.joint(names) for share, tree in self._parts))

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        odds = self.shares * [tree.marginals[place][value] for tree in self.trees]
        parts = zip(self._rooted(place), rng.multinomial(count, odds / odds.sum()), strict=True)
        return rng.permutation(np.concatenate([tree.draw(value, part, rng) for tree, part in parts]))

    def log_joint(self, likelihoods: Centred, place: int) -> Array:
        """Return ln of the summed likelihoods for each value of the attribute."""
        trees = self._rooted(place)
        if is_single(likelihoods):
            return log_mixed_sums(trees, self.shares, likelihoods)
        return log_mixture([tree.log_sums(likelihoods) for tree in trees], self.shares)

    def rounding(self, likelihoods: Centred, place: int) -> float:  # noqa: ARG002 - alike for all
        """Return a bound: a number enters a sum over the values of each attribute, and logarithms.

        Turning edges towards the attribute takes as many steps again.
        """
        rows = [rows for tree in self.trees for rows in tree.conditionals]
        steps = 2 * sum(size + 4 for size in self.trees[0].schema.sizes) + len(self.trees) + 8
        least = len(self.trees[0].parents) * max(-math.log(part[part > 0].min()) for part in rows)
        doubles = _double_rounding(steps, likelihoods.magnitude + least - math.log(self.shares.min()))
        return doubles + (self._single_rounding if is_single(likelihoods) else 0.0)

    @property
    def _single_rounding(self) -> float:
        """The bound of what messages in single precision lose.

        Of an attribute with s values a likelihood and a chance are rounded and multiplied; `_carry` adds the
        product to three others, then to s // 4 sums of four and at most three values that are left; the sum
        is multiplied into what is said of the parent: s // 4 + 9 roundings. What underflows is less than two
        more, see `is_single`. All terms are positive, so that k roundings of u change a sum of products
        of sums by at most k u / (1 - k u) of it (Higham 2002, lemma 3.1).
        """
        lost = sum(size // 4 + 11 for size in self.trees[0].schema.sizes) * _SINGLE_UNIT
        return lost / (1 - lost) if lost < 1 else math.inf

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of whole records."""
        return np.asarray(np.logaddexp.reduce(self.log_classes(codes), axis=1))

    def log_classes(self, codes: Codes) -> Array:
        """Return ln Pr(class, record), shape (n, classes)."""
        return np.stack([math.log(share) + tree.log_records(codes) for share, tree in self._parts], axis=1)

    @property
    def _parts(self) -> zip[tuple[float, Tree]]:
        return zip(self.shares, self.trees, strict=True)

    def _rooted(self, place: int) -> tuple[Tree, ...]:
        """Return the trees with this attribute as root; kept, since every batch of releases asks again."""
        known = self._turned
        if place not in known:
            name = self.trees[0].schema.names[place]
            known[place] = tuple(tree.rooted_at(name) for tree in self.trees)
        return known[place]

    @cached_property
    def _turned(self) -> dict[int, tuple[Tree, ...]]:
        return {}


@dataclass(frozen=True, eq=False)
class RecordKernel(Component):
    """A record of a table, each attribute kept or drawn anew (Aitchison and Aitken 1976).

    Attributes:
        records: the table; someone who draws nothing anew knows it.
        rates: (attributes,) how often each is drawn anew.
        marginals: what they are then drawn from.
    """

    records: Records
    rates: Array
    marginals: tuple[Array, ...]

    @classmethod
    def table(cls, records: Records) -> RecordKernel:
        """Return the table's own distribution, of which nothing is drawn anew."""
        sizes = records.schema.sizes
        return cls(records, np.zeros(len(sizes)), tuple(np.full(size, 1 / size) for size in sizes))

    @cached_property
    def _shares(self) -> Array:
        """The probability of each record."""
        return np.asarray(self.records.weights / self.records.total)

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        size = self.records.schema.sizes[place]
        counts = np.bincount(self.records.codes[:, place], self._shares, minlength=size)
        return np.asarray((1 - self.rates[place]) * counts + self.rates[place] * self.marginals[place])

    def pair_tables(self) -> Array:
        """Return the probabilities of all pairs: kept both, else independent."""
        sizes = self.records.schema.sizes
        kept, anew = np.repeat(1 - self.rates, sizes), np.repeat(self.rates, sizes)
        counts = self.records.pair_tables() / self.records.total
        single = kept * np.diagonal(counts)
        marginal = single + anew * np.concatenate(self.marginals)
        pairs = np.outer(kept, kept) * counts + np.outer(marginal, marginal) - np.outer(single, single)
        return with_diagonal(pairs, offsets(sizes), marginal)

    def joint(self, places: Sequence[int]) -> Array:
        """Return the joint probabilities of some attributes: the table's, with each axis mixed in turn."""
        schema = self.records.schema
        cells = self.records.cells([schema.names[place] for place in places]) / self.records.total
        for axis, place in enumerate(places):
            shape = [-1 if other == axis else 1 for other in range(len(places))]
            anew = self.rates[place] * self.marginals[place].reshape(shape)
            cells = (1 - self.rates[place]) * cells + anew * cells.sum(axis=axis, keepdims=True)
        return cells

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        kept = (1 - self.rates[place]) * (self.records.codes[:, place] == value)
        reach = np.cumsum(self._shares * (kept + self.rates[place] * self.marginals[place][value]))
        points = np.minimum(rng.random(count) * reach[-1], np.nextafter(reach[-1], 0))
        drawn: Codes = self.records.codes[np.searchsorted(reach, points, side="right")].astype(np.uint16)
        for other in np.flatnonzero(self.rates):
            anew = np.flatnonzero(rng.random(count) < self.rates[other])
            drawn[anew, other] = rng.choice(len(self.marginals[other]), len(anew), p=self.marginals[other])
        drawn[:, place] = value
        return drawn

    def log_joint(self, likelihoods: Centred, place: int) -> Array:
        """Return ln of the summed likelihoods: those of the table, each report seen through the kernel."""
        logs = self._sums(place).logs(self._seen(likelihoods))
        rate = self.rates[place]
        if rate == 0:
            return logs
        with np.errstate(divide="ignore"):
            anew = np.logaddexp.reduce(logs, axis=1, keepdims=True) + np.log(rate * self.marginals[place])
            return np.asarray(np.logaddexp(logs + np.log1p(-rate), anew))

    def rounding(self, likelihoods: Centred, place: int) -> float:
        """Return the bound of the sums over the records, and of what is done before and after them."""
        seen = self._seen(likelihoods)
        steps = sum(len(table) + 4 for table in seen.tables.values()) + len(self.marginals[place]) + 8
        rate = self.rates[place]
        least = -math.log(rate * self.marginals[place].min()) if rate else 0.0
        after = _double_rounding(steps, seen.magnitude + least)
        return self._sums(place).rounding(seen) + after

    def _seen(self, likelihoods: Centred) -> Centred:
        """Return the likelihoods of reports about the values that the records had before the kernel."""
        if not self.rates.any():
            return likelihoods
        asked, known = self._last.get("seen", (None, likelihoods))
        if asked is likelihoods:  # the sums and their rounding are asked for one after the other
            return known
        lined, marginal = np.empty_like(likelihoods.lined), self.marginals
        parts = zip(likelihoods.tables.items(), pairwise(likelihoods.at), strict=True)
        for (place, table), (start, stop) in parts:
            rate = self.rates[place]
            lined[start:stop] = (1 - rate) * table + rate * (marginal[place] @ table)
        seen = centre_lined(lined, likelihoods.places, likelihoods.at)
        seen = replace(seen, shift=seen.shift + likelihoods.shift)
        self._last["seen"] = likelihoods, seen
        return seen

    @cached_property
    def _last(self) -> dict[str, tuple[Centred, Centred]]:
        """What was seen last, and through what."""
        return {}

    def _sums(self, place: int) -> RecordSums:
        """Return the records by value of this attribute; kept, since every batch of releases asks again."""
        known = self._by_place
        if place not in known:
            codes, sizes = self.records.codes, self.records.schema.sizes
            known[place] = RecordSums(sizes, codes, self._shares, place)
        return known[place]

    @cached_property
    def _by_place(self) -> dict[int, RecordSums]:
        return {}


def log_mixture(logs: Sequence[Array], shares: Array) -> Array:
    """Return ln of the weighted sum of e^logs."""
    parts = (log + math.log(share) for log, share in zip(logs, shares, strict=True))
    return np.asarray(reduce(np.logaddexp, parts))


def with_diagonal(pairs: Array, at: Positions, marginals: Array) -> Array:
    """Put the marginals of all values onto the diagonal blocks: every attribute equals itself."""
    for start, stop in pairwise(at):
        pairs[start:stop, start:stop] = np.diag(marginals[start:stop])
    return pairs


def _double_rounding(steps: int, magnitude: float) -> float:
    """Return a bound of the error of a logarithm after so many steps in doubles.

    A step on numbers, all positive, adds a unit to their relative error; a step on logarithms adds a unit
    of their size, which is at most `magnitude`. Twice the sum covers the products of errors. There is room
    for the steps of mixing the component with others.
    """
    return 2 * (steps + _FURTHER_STEPS) * HALF_UNIT * (1 + magnitude)
