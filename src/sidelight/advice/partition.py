"""Which attributes to report together: groups are merged while that lowers the error to expect."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.protocols.groups import ReportedGroup, best_mechanism
from sidelight.protocols.protocol import domain_size
from sidelight.schema import Schema

LARGEST_GROUP = 4096
"""A group has at most so many combinations of values."""

Kind = tuple[tuple[int, float], ...]
"""What the cost of a group depends on: of each member its size and the mean square of its frequencies."""


def even_groups(schema: Schema) -> list[list[tuple[str, ...]]]:
    """Return the groupings into runs of equal length."""
    groupings = []
    names, sizes = schema.names, schema.sizes
    for length in range(2, min(len(schema), LARGEST_GROUP.bit_length()) + 1):  # of two values or more each
        starts = range(0, len(schema), length)
        if all(domain_size(sizes[i : i + length]) <= LARGEST_GROUP for i in starts):
            groupings.append([names[i : i + length] for i in starts])
    return groupings


def merged_groups(schema: Schema, epsilon: float, frequencies: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """Merge the two groups whose merging lowers the sum of the roots of their errors most, until none does.

    Groups of one kind are interchangeable, so that pairs of kinds are compared, not pairs of groups.
    """
    search = _Search(epsilon)
    for attribute in schema:
        square = float(np.mean(np.square(frequencies[attribute.name])))
        search.add((attribute.name,), ((attribute.size, square),))
    while (pair := search.best()) is not None:
        first, second = (search.groups[kind].popleft() for kind in pair)
        search.add(first + second, tuple(sorted(pair[0] + pair[1])))
    return [group for groups in search.groups.values() for group in groups]


@dataclass(eq=False)
class _Search:
    """The groups so far by kind, and the pairs of kinds whose merging helps, the most helpful first.

    Attributes:
        epsilon: the budget of a report.
        groups: those of every kind, the oldest first.
        gains: what merging a pair saves, negative, how old its kinds are, and the pair.
        ages: which number each kind had when it was first seen.
    """

    epsilon: float
    groups: defaultdict[Kind, deque[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(deque))
    gains: list[tuple[float, int, int, Kind, Kind]] = field(default_factory=list)
    ages: dict[Kind, int] = field(default_factory=dict)

    def add(self, group: tuple[str, ...], kind: Kind) -> None:
        """Add a group, and what merging it with those of every kind would save."""
        alone = len(self.groups[kind])
        self.groups[kind].append(group)
        age = self.ages.setdefault(kind, len(self.ages))
        if alone > 1:
            return  # nothing is new: two of the kind are there already
        for other in [kind] if alone else [known for known, members in self.groups.items() if members]:
            combinations = domain_size([size for size, _ in kind + other])
            if (other == kind) != bool(alone) or combinations > LARGEST_GROUP:
                continue
            saved = _cost(kind, self.epsilon) + _cost(other, self.epsilon)
            saved -= _cost(tuple(sorted(kind + other)), self.epsilon)
            if saved > 0:
                older, newer = sorted([(age, kind), (self.ages[other], other)])
                heapq.heappush(self.gains, (-saved, older[0], newer[0], older[1], newer[1]))

    def best(self) -> tuple[Kind, Kind] | None:
        """Return the pair of kinds whose merging saves most, or None where no merging does."""
        while self.gains:
            first, second = self.gains[0][3:]
            if len(self.groups[first]) > (first == second) and self.groups[second]:
                return first, second
            heapq.heappop(self.gains)  # it comes back once there are such groups again
        return None


@lru_cache(maxsize=1 << 16)
def _cost(kind: Kind, epsilon: float) -> float:
    """Return the root of the summed mean variance of one report's estimates, see `group_error`."""
    moments = _moments(tuple(size for size, _ in kind), epsilon)
    parts = zip(moments, kind, strict=True)
    return math.sqrt(sum(none + (full - none) / size - square for (none, full), (size, square) in parts))


@lru_cache(maxsize=1 << 12)
def _moments(sizes: tuple[int, ...], epsilon: float) -> tuple[tuple[float, float], ...]:
    """Return the mean squares of a group of such sizes, see `ReportedGroup.moments`."""
    names = tuple(map(str, range(len(sizes))))
    chosen, settings = best_mechanism(sizes, epsilon)
    group = ReportedGroup(names, sizes, chosen, epsilon, settings)
    moments = [group.moments(name) for name in names]
    return tuple(pair for pair in moments if pair is not None)  # the best mechanisms have them all
