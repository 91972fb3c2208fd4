"""Paths, memos and reports drawn given a secret in one round, and how likely each value makes the reports.

Given the memos of all values, which do not depend on the data, reports are fresh, and the values are a hidden
Markov chain: two passes along it give the likelihood of all reports. Summed over every table of memos it is
Pr(reports | value in the round), exactly. Where values share a bucket of a public hash they share a memo, and
the tables are those of the buckets; the seed is public and says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.progress import track
from sidelight.leakage.over_time.chain import Chain
from sidelight.leakage.totals.certificate import Draws
from sidelight.leakage.totals.draws import DrawnBlock
from sidelight.mechanisms.longitudinal import bucket_steps, has_own_memos, memory_steps
from sidelight.plan import Release

_MOST_TABLES = 1 << 12
_MOST_WORK = 1 << 35
"""So many products are summed: a minute or so."""
_CELLS = 1 << 22
_ROUNDING = 2.0**-52
_LEAST = 1e-280
"""Likelihoods below it, beside one of about 1, may have lost digits."""


@dataclass(frozen=True, eq=False)
class _Reporter:
    """How an attribute is reported, round after round.

    Attributes:
        values: (states,) its value in each state.
        times: in how many rounds it is reported.
        permanent: (subjects, memos) how a memo is made of what it is of.
        fresh: (memos, reports) how a report is made of its memo.
        buckets: of every value under so many public seeds, (seeds, values); None where a value has its memo.
        kept: whether memos are kept between rounds.
    """

    values: Positions
    times: int
    permanent: Array
    fresh: Array
    buckets: NDArray[Any] | None
    kept: bool

    @classmethod
    def of(
        cls, release: Release, values: Positions, draws: int, coins: np.random.Generator
    ) -> _Reporter | None:
        """Return how a release is reported; None where its memos cannot be listed."""
        mechanism, kept = release.randomiser(), release.keeps and release.times > 1
        if kept and not has_own_memos(mechanism):
            hashed = bucket_steps(mechanism, coins.integers(1 << 63, size=draws, dtype=np.uint64))
            return None if hashed is None else cls(values, release.times, *hashed, kept=True)
        steps = memory_steps(mechanism, kept=kept)
        return None if steps is None else cls(values, release.times, *steps, None, kept)

    @cached_property
    def tables(self) -> tuple[NDArray[Any], Array]:
        """The memo of every subject, (tables, subjects), and how likely each table is."""
        subjects, memos = self.permanent.shape
        if not self.kept:  # what stays is the value itself
            return np.arange(subjects)[None], np.ones(1)
        listed = np.array(list(product(range(memos), repeat=subjects)))
        return listed, self.permanent[np.arange(subjects), listed].prod(axis=1)

    @property
    def count(self) -> int:
        """How many tables there are."""
        return self.permanent.shape[1] ** self.permanent.shape[0] if self.kept else 1

    def subjects(self, part: slice) -> NDArray[Any]:
        """Return what the memo of each state is of, (draws or 1, states)."""
        return self.values[None] if self.buckets is None else self.buckets[part][:, self.values]

    def drawn(self, paths: NDArray[Any], part: slice, coins: np.random.Generator) -> NDArray[Any]:
        """Return the reports of each path, (draws, times)."""
        draws, subjects = len(paths), len(self.permanent)
        memos = np.broadcast_to(np.arange(subjects), (draws, subjects))
        if self.kept:
            columns = [_chosen(self.permanent, np.full(draws, subject), coins) for subject in range(subjects)]
            memos = np.stack(columns, axis=1)
        of_state = np.broadcast_to(self.subjects(part), (draws, len(self.values)))
        rows = np.arange(draws)
        rounds = (memos[rows, of_state[rows, paths[:, t]]] for t in range(self.times))
        return np.stack([_chosen(self.fresh, memo, coins) for memo in rounds], axis=1)


@dataclass(frozen=True, eq=False)
class PathSampler:
    """Draws what people report in all rounds, given a secret in one of them.

    Attributes:
        chain: how values change.
        reporters: how each attribute is reported.
        secret: (states,) the secret's value in each state.
        time: the round of the secret.
        coins: where all noise comes from.
    """

    chain: Chain
    reporters: tuple[_Reporter, ...]
    secret: Positions
    time: int
    coins: np.random.Generator

    @classmethod
    def of(
        cls,
        chain: Chain,
        releases: Mapping[str, Release],
        secret: str,
        time: int,
        draws: int,
        seed: int | None,
    ) -> PathSampler | None:
        """Prepare so many draws for each value; None where memos are too many to list."""
        coins = np.random.default_rng(seed)
        found = [
            _Reporter.of(item, chain.values_of(chain.schema.index(name)), draws, coins)
            for name, item in releases.items()
        ]
        reporters = tuple(item for item in found if item is not None)
        if len(reporters) < len(found) or math.prod(item.count for item in reporters) > _MOST_TABLES:
            return None
        sampler = cls(chain, reporters, chain.values_of(chain.schema.index(secret)), time, coins)
        work = draws * len(sampler.possible) * sampler.rounds * sampler.tables[1].size * chain.states**2
        return sampler if work <= _MOST_WORK else None

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return max(item.times for item in self.reporters)

    @cached_property
    def marginals(self) -> list[Array]:
        """How likely each state is in each round."""
        return self.chain.marginals(self.rounds)

    @cached_property
    def shares(self) -> Array:
        """How likely each value of the secret is in its round."""
        return np.asarray(np.bincount(self.secret, self.marginals[self.time - 1]), dtype=np.float64)

    @property
    def possible(self) -> Positions:
        """The values of the secret that can occur in its round."""
        return np.flatnonzero(self.shares > 0)

    @cached_property
    def tables(self) -> tuple[list[NDArray[Any]], Array]:
        """The memos of each reporter in every joint table, (tables, subjects), and how likely they are."""
        places = np.indices([item.count for item in self.reporters]).reshape(len(self.reporters), -1)
        listed = [item.tables[0][place] for item, place in zip(self.reporters, places, strict=True)]
        weights = [item.tables[1][place] for item, place in zip(self.reporters, places, strict=True)]
        return listed, np.prod(weights, axis=0)

    def block(self, start: int, count: int, floor: float) -> DrawnBlock:
        """Draw so many releases given each value, from number `start` on; see `DrawnRatios` for the floor."""
        return DrawnBlock.of((self._logs(int(value), start, count) for value in self.possible), floor)

    def _logs(self, value: int, start: int, count: int) -> Array:
        """Return ln Pr(reports | value) up to a number, (draws, possible values), of draws given a value.

        The drawn value's own logarithm is rounded up: no ratio to it is too small.
        """
        size = max(1, _CELLS // (self.tables[1].size * self.chain.states))
        own = int(np.searchsorted(self.possible, value))
        steps = self.rounds * (self.chain.states + 4 * len(self.reporters)) + self.tables[1].size
        parts = []
        for first in range(start, start + count, size):
            part = slice(first, min(first + size, start + count))
            logs = self._weighed(self._reports(value, part), part)
            logs[:, own] += 2 * steps * _ROUNDING
            parts.append(logs)
        return np.concatenate(parts)

    def _reports(self, value: int, part: slice) -> list[NDArray[Any]]:
        """Return the reports of paths that have a value in the secret's round."""
        here = np.where(self.secret == value, self.marginals[self.time - 1], 0.0)
        count = part.stop - part.start
        states = [_chosen(here[None] / here.sum(), np.zeros(count, dtype=np.intp), self.coins)]
        for t in range(self.time - 1, 0, -1):
            joint = self.marginals[t - 1][:, None] * self.chain.transition
            mass = joint.sum(axis=0)[:, None]
            states.insert(0, _chosen(joint.T / np.where(mass > 0, mass, 1), states[0], self.coins))
        for _ in range(self.time, self.rounds):
            states.append(_chosen(self.chain.transition, states[-1], self.coins))
        paths = np.stack(states, axis=1)
        return [item.drawn(paths, part, self.coins) for item in self.reporters]

    def _weighed(self, reports: list[NDArray[Any]], part: slice) -> Array:
        """Return ln Pr(reports | value), (draws, possible values), by two passes for every table of memos."""
        memos = [
            listed[:, item.subjects(part)].swapaxes(0, 1)  # (draws or 1, tables, states)
            for item, listed in zip(self.reporters, self.tables[0], strict=True)
        ]

        def emitted(t: int) -> Array:
            """Return Pr(reports of a round | table, state), (draws, tables, states)."""
            found: Array = np.ones((1, 1, 1))
            for item, memo, sent in zip(self.reporters, memos, reports, strict=True):
                if t < item.times:
                    found = found * item.fresh[memo, sent[:, t][:, None, None]]
            return found

        before = self.chain.start * emitted(0)
        for t in range(1, self.time):
            before = _scaled(before) @ self.chain.transition * emitted(t)
        after: Array = np.ones((1, 1, self.chain.states))
        for t in range(self.rounds - 1, self.time - 1, -1):
            after = _scaled(emitted(t) * after) @ self.chain.transition.T
        joint = np.einsum("dts,t->ds", np.broadcast_to(before * after, before.shape), self.tables[1])
        told = (joint @ np.eye(len(self.shares))[self.secret])[:, self.possible]
        # A likelihood that fell out of a double's range is not known: ratios with it count as infinite.
        return np.asarray(np.log(np.where(told < _LEAST, np.nan, told)) - np.log(self.shares[self.possible]))


def certified_paths(sampler: PathSampler, draws: int, delta: float, beta: float) -> tuple[float, int]:
    """Return a figure that is below the leakage at delta with probability beta at most, and the draws made.

    Draws come in blocks, of which each settles the stakes on the next (`leakage.totals.certificate`).
    """
    if len(sampler.possible) < 2:  # nothing to be told from
        return 0.0, 0
    reach = [max(1, draws // share) for share in (16, 8, 4, 2, 1)]
    drawn = Draws((sampler.block(0, reach[0], 0.0).ratios,), draws, 0.0)
    for start, count in track(list(zip(reach, np.diff(reach).tolist(), strict=False)), "paths"):
        drawn = drawn.and_more(sampler.block(start, count, 0.0).ratios)
    return drawn.certified(delta, beta), drawn.count


def _scaled(parts: Array) -> Array:
    """Return likelihoods over the largest of each draw, the same factor for all values."""
    return np.asarray(parts / parts.max(axis=(1, 2), keepdims=True))


def _chosen(rows: Array, places: NDArray[Any], coins: np.random.Generator) -> NDArray[Any]:
    """Return one column for each place, drawn by its row."""
    steps = np.cumsum(rows, axis=1)
    steps /= np.where(steps[:, -1:] > 0, steps[:, -1:], 1.0)  # of what cannot occur, nothing is drawn
    words = coins.random(len(places))
    return np.asarray((steps[places, :-1] <= words[:, None]).sum(axis=1))
