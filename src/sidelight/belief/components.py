"""Models of a population: latent classes, mixtures of trees, and a kernel around the records of a sample.

Each says how likely complete records are, draws people given one attribute's value, and sums a release's
likelihoods over everyone it deems possible. Releases come as in `views`, scaled alike for every model, so
that the results of several can be mixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sidelight.belief.views import Likelihoods, TableView
from sidelight.schema import Schema

Array = NDArray[np.float64]
Codes = NDArray[np.integer]


class Component(ABC):
    """One model of the population."""

    @abstractmethod
    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of complete records, shape (n,)."""

    @abstractmethod
    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""

    @abstractmethod
    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value, shape (count, attributes)."""

    @abstractmethod
    def log_joint(self, likelihoods: Mapping[int, Array], place: int) -> Array:
        """Return, by value of the attribute, ln of the sum over records of Pr(record) times likelihoods.

        Args:
            likelihoods: by the place of the attribute, (n, values); the attribute itself is not among them.
            place: the attribute that is secret, with m values; the result has shape (n, m).
        """


@dataclass(frozen=True, eq=False)
class LatentClasses(Component):
    """Attributes that are independent given a class that nobody sees; one class: independence.

    Attributes:
        shares: (classes,) how many people are in each.
        chances: by attribute (classes, values).
    """

    shares: Array
    chances: tuple[Array, ...]

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of complete records."""
        return np.asarray(logsumexp(self.log_classes(codes), axis=1))

    def log_classes(self, codes: Codes) -> Array:
        """Return ln Pr(class, record), shape (n, classes)."""
        logs = np.log(self.shares)[None, :]
        for column, chances in zip(codes.T, self.chances, strict=True):
            logs = logs + np.log(chances.T)[column]
        return np.asarray(logs)

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        return np.asarray(self.shares @ self.chances[place])

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        odds = self.shares * self.chances[place][:, value]
        classes = rng.choice(len(odds), size=count, p=odds / odds.sum())
        drawn = np.stack([_choose(chances[classes], rng) for chances in self.chances], axis=1)
        drawn[:, place] = value
        return drawn

    def log_joint(self, likelihoods: Mapping[int, Array], place: int) -> Array:
        """Return ln of the summed likelihoods for each value of the attribute."""
        logs = np.log(self.shares)[None, :]
        with np.errstate(divide="ignore"):
            for other, table in likelihoods.items():
                logs = logs + np.log(table @ self.chances[other].T)
            return np.asarray(_log_matmul(logs, self.chances[place]))


@dataclass(frozen=True, eq=False)
class Forest:
    """Attributes each of which depends on one neighbour at most.

    Attributes:
        marginals: of each attribute.
        edges: the pairs of places that depend on each other; no cycle among them.
        joints: Pr(first, second) of each edge.
    """

    marginals: tuple[Array, ...]
    edges: tuple[tuple[int, int], ...]
    joints: tuple[Array, ...]

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record): marginals, times how far each edge is from independence."""
        logs = sum(np.log(chances)[column] for chances, column in zip(self.marginals, codes.T, strict=True))
        for (a, b), joint in zip(self.edges, self.joints, strict=True):
            apart = np.outer(self.marginals[a], self.marginals[b])
            logs = logs + (np.log(joint) - np.log(apart))[codes[:, a], codes[:, b]]
        return np.asarray(logs)

    @cached_property
    def _neighbours(self) -> list[list[tuple[int, Array]]]:
        """By place: its neighbours, with Pr(neighbour | value of this place)."""
        around: list[list[tuple[int, Array]]] = [[] for _ in self.marginals]
        for (a, b), joint in zip(self.edges, self.joints, strict=True):
            around[a].append((b, joint / self.marginals[a][:, None]))
            around[b].append((a, joint.T / self.marginals[b][:, None]))
        return around

    def downwards(self, root: int) -> list[tuple[int, int, Array]]:
        """Return (child, parent, Pr(child | parent)) from the root on; a parent of -1 begins another tree."""
        steps: list[tuple[int, int, Array]] = []
        seen: set[int] = set()
        for start in (root, *range(len(self.marginals))):
            if start in seen:
                continue
            seen.add(start)
            steps.append((start, -1, self.marginals[start][None, :]))
            reached = [start]
            for parent in reached:
                for child, chances in self._neighbours[parent]:
                    if child not in seen:
                        seen.add(child)
                        reached.append(child)
                        steps.append((child, parent, chances))
        return steps

    def log_joint(self, likelihoods: Mapping[int, Array], place: int) -> Array:
        """Return ln of the summed likelihoods for each value of the root: one pass from the leaves up.

        Messages are divided by their largest entry on the way, so that none leaves the range of doubles.
        """
        releases = len(next(iter(likelihoods.values()))) if likelihoods else 1
        messages = dict(likelihoods)
        scale = np.zeros((releases, 1))
        for child, parent, chances in reversed(self.downwards(place)[1:]):
            if child not in messages:
                continue
            passed = messages[child] @ chances.T
            top = passed.max(axis=1, keepdims=True)
            top[top == 0] = 1.0
            scale += np.log(top)
            if parent < 0:
                scale = np.where(passed == 0, -np.inf, scale)
            else:
                messages[parent] = messages.get(parent, 1.0) * (passed / top)
        with np.errstate(divide="ignore"):
            own = np.log(messages.get(place, np.ones((releases, 1)))) + np.log(self.marginals[place])
        return np.asarray(own + scale)

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records with this value, from the root down."""
        drawn = np.empty((count, len(self.marginals)), dtype=np.uint16)
        for child, parent, chances in self.downwards(place):
            rows = chances[drawn[:, parent] if parent >= 0 else np.zeros(count, dtype=np.intp)]
            drawn[:, child] = value if child == place else _choose(rows, rng)
        return drawn


@dataclass(frozen=True, eq=False)
class TreeMixture(Component):
    """Classes that nobody sees, each with a forest of its own.

    Attributes:
        shares: (classes,) how many people are in each.
        forests: the dependence within each class.
    """

    shares: Array
    forests: tuple[Forest, ...]

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record) of complete records."""
        return np.asarray(logsumexp(self.log_classes(codes), axis=1))

    def log_classes(self, codes: Codes) -> Array:
        """Return ln Pr(class, record), shape (n, classes)."""
        return np.stack([forest.log_records(codes) for forest in self.forests], axis=1) + np.log(self.shares)

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        return np.asarray(self.shares @ np.stack([forest.marginals[place] for forest in self.forests]))

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        odds = self.shares * [forest.marginals[place][value] for forest in self.forests]
        parts = zip(self.forests, rng.multinomial(count, odds / odds.sum()), strict=True)
        drawn = np.concatenate([forest.draw(place, value, part, rng) for forest, part in parts])
        return drawn[rng.permutation(count)]

    def log_joint(self, likelihoods: Mapping[int, Array], place: int) -> Array:
        """Return ln of the summed likelihoods for each value of the attribute."""
        pairs = zip(self.forests, np.log(self.shares), strict=True)
        return np.asarray(
            np.logaddexp.reduce([f.log_joint(likelihoods, place) + share for f, share in pairs])
        )


@dataclass(frozen=True, eq=False)
class RecordKernel(Component):
    """A sampled record, each attribute kept or drawn anew (Aitchison, Aitken 1976).

    Attributes:
        schema: the attributes.
        codes: (records, attributes) the sample.
        rates: (attributes,) how often each is drawn anew.
        marginals: what they are then drawn from.
    """

    schema: Schema
    codes: NDArray[np.uint16]
    rates: Array
    marginals: tuple[Array, ...]

    def log_records(self, codes: Codes) -> Array:
        """Return ln Pr(record): the release of the record itself, without noise."""
        places = range(len(self.schema) - 1)
        seen = {place: np.eye(self.schema.sizes[place])[codes[:, place]] for place in places}
        last = codes[:, -1:].astype(np.intp)
        return np.asarray(np.take_along_axis(self.log_joint(seen, len(self.schema) - 1), last, 1)[:, 0])

    def marginal(self, place: int) -> Array:
        """Return the probabilities of one attribute's values."""
        counts = np.bincount(self.codes[:, place], minlength=self.schema.sizes[place]) / len(self.codes)
        return np.asarray((1 - self.rates[place]) * counts + self.rates[place] * self.marginals[place])

    def draw(self, place: int, value: int, count: int, rng: np.random.Generator) -> Codes:
        """Return records in which the attribute at this place has this value."""
        kept = (1 - self.rates[place]) * (self.codes[:, place] == value)
        odds = kept + self.rates[place] * self.marginals[place][value]
        drawn = self.codes[rng.choice(len(odds), size=count, p=odds / odds.sum())].astype(np.uint16)
        for other, chances in enumerate(self.marginals):
            anew = rng.random(count) < self.rates[other]
            drawn[anew, other] = rng.choice(len(chances), size=int(anew.sum()), p=chances)
        drawn[:, place] = value
        return drawn

    def log_joint(self, likelihoods: Mapping[int, Array], place: int) -> Array:
        """Return ln of the summed likelihoods: those of the table, each report seen through the kernel."""
        names = self.schema.names
        seen: Likelihoods = {
            names[other]: (1 - rate) * table + rate * (table @ self.marginals[other])[:, None]
            for other, table in likelihoods.items()
            for rate in [self.rates[other]]
        }
        by_value = self._view(names[place]).log_sums(seen)
        rate, chances = self.rates[place], self.marginals[place]
        with np.errstate(divide="ignore"):
            anew = np.logaddexp.reduce(by_value, axis=1, keepdims=True) + np.log(rate * chances)
            return np.asarray(np.logaddexp(by_value + np.log1p(-rate), anew))

    def _view(self, name: str) -> TableView:
        if name not in self._views:
            weights = np.full(len(self.codes), 1 / len(self.codes))
            self._views[name] = TableView(self.schema, name, self.codes, weights)
        return self._views[name]

    @cached_property
    def _views(self) -> dict[str, TableView]:
        return {}


def _choose(chances: Array, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Return one value for each row of probabilities."""
    reach = np.cumsum(chances, axis=1)
    points = rng.random(len(chances))[:, None] * reach[:, -1:]
    return np.minimum((points >= reach).sum(axis=1), chances.shape[1] - 1).astype(np.uint16)


def _log_matmul(logs: Array, weights: Array) -> Array:
    """Return ln(e^logs @ weights) without leaving the range of doubles."""
    top = logs.max(axis=1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top) @ weights) + top)
