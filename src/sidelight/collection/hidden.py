"""Protocols that hide their choice: one attribute of a group is randomised, the others are made up from it.

RS+FD, RS+RFD, Corr-RR and Cond-RR differ only in the law of the made-up values: uniform, a prior, a copy of
the reported value, a conditional distribution. A fake depends on nothing but the report, so it is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.collection.protocol import (
    Aggregated,
    Array,
    Codes,
    Collected,
    check_channel_size,
    check_parts,
    check_records,
    domain_size,
)
from sidelight.foundation.bits import code_counts
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.foundation.randomness import Randomness, below, derive_seed, randomness
from sidelight.mechanisms import Aggregate, Reports
from sidelight.mechanisms.arrays import respond
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.mechanism import check_codes, code_type
from sidelight.schema import Schema

Whole = NDArray[np.int64]
Weights = Mapping[tuple[str, str], Whole]

WHOLE = 1 << 32
"""The law of a fake is in whole numbers that add up to this."""
ANY = ""
"""Stands for every chosen attribute, where a fake does not depend on the report."""
_HALF = np.uint64(32)
_FEW = 24


@dataclass(frozen=True, eq=False)
class HiddenChoice:
    """In every group one attribute, drawn uniformly, is reported; the others are fakes.

    Attributes:
        schema: the attributes of a record.
        groups: the attributes' groups; each spends an even share of the budget.
        budget: the nominal budget of a record.
        fakes: for (chosen, other) the law of the other's fake given the chosen one's report, shape
            (values of chosen, values of other) in whole numbers; one row, under ("", other), where the
            report does not matter.
        name: what people call it.
        origin: where the laws came from: "uniform", a named prior, or the fingerprint of parameters.
    """

    kind: ClassVar[str] = "hidden"
    schema: Schema
    groups: tuple[tuple[str, ...], ...]
    budget: float
    fakes: Weights
    name: str
    origin: str

    def __post_init__(self) -> None:
        check_number("epsilon", self.budget, above=0)
        members = [name for group in self.groups for name in group]
        if sorted(members) != sorted(self.schema.names):
            raise invalid("groups", "a partition of the attributes", self.groups)
        object.__setattr__(self, "fakes", MappingProxyType(dict(self.fakes)))
        for group in self.groups:
            for chosen, other in product(group, group):
                if chosen != other:
                    self._check_law(chosen, other)

    def _check_law(self, chosen: str, other: str) -> None:
        law = self.law(chosen, other)
        rows = self.schema[chosen].size
        if law.shape not in ((1, self.schema[other].size), (rows, self.schema[other].size)):
            raise InputError(f"the fakes of {other!r} given {chosen!r} have the wrong shape, {law.shape}.")
        if np.any(law < 0) or np.any(law.sum(axis=1) != WHOLE):
            raise InputError(f"the fakes of {other!r} given {chosen!r} must add up to {WHOLE} in each row.")

    def law(self, chosen: str, other: str) -> Whole:
        """Return the whole-number law of a fake."""
        found = self.fakes.get((chosen, other), self.fakes.get((ANY, other)))
        if found is None:
            raise InputError(f"there is no law for the fakes of {other!r} given {chosen!r}.")
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        """The attributes."""
        return self.schema.names

    @property
    def epsilon(self) -> float:
        """The sum over groups of the largest realised budget of a member."""
        return sum(max(self.responses[name].epsilon for name in group) for group in self.groups)

    @property
    def proof(self) -> str:
        """Why."""
        return (
            "a report is post-processing of one randomised response in each group, whose choice depends on "
            "no value; hiding the choice is not counted as protection"
        )

    @cached_property
    def responses(self) -> dict[str, RandomisedResponse]:
        """Each attribute's randomised response, with its group's share of the budget."""
        part = self.budget / len(self.groups)
        return {name: RandomisedResponse(self.schema[name].size, part) for name in self.schema.names}

    def randomise(self, records: Codes, *, seed: int | None = None, offset: int = 0) -> Collected:
        """Return one report for each record, see `Protocol.randomise`."""
        checked = check_records(records, self.schema)
        columns = [np.empty(len(checked), dtype=code_type(size)) for size in self.schema.sizes]
        for number, group in enumerate(self.groups):
            own = derive_seed(seed, f"group {number}")
            for name, values in self._fill(group, checked, own, offset).items():
                columns[self.schema.index(name)] = values
        parts = tuple(Reports(column, is_simulation=seed is not None) for column in columns)
        return Collected(self, parts, (None,) * len(parts), len(checked), seed is not None)

    def _fill(self, group: Sequence[str], records: Codes, seed: int | None, offset: int) -> dict[str, Codes]:
        """Return the columns of one group."""
        people = len(records)
        bound = np.array([len(group)], dtype=np.uint64)
        chosen = below(randomness(seed, "hidden/choice"), offset, people, bound)[:, 0].astype(np.intp)
        index = np.array([self.schema.index(name) for name in group])
        codes = records[np.arange(people), index[chosen]].astype(np.uint16)
        said = np.empty_like(codes)
        truth = np.array([self.responses[name].truth for name in group], dtype=np.uint64)
        other = np.array([self.responses[name].other for name in group], dtype=np.uint64)
        words = randomness(seed, "hidden/report").words(offset, people)
        respond(words, codes, truth[chosen], other[chosen], said)  # type: ignore[arg-type]
        columns: dict[str, Codes] = {}
        for number, name in enumerate(group):
            source = randomness(seed, f"hidden/fake {number}")
            fakes = self._draw(group, name, chosen, said, source, offset)
            values = np.where(chosen == number, said, fakes)
            columns[name] = values.astype(code_type(self.schema[name].size))
        return columns

    def _draw(
        self,
        group: Sequence[str],
        name: str,
        chosen: NDArray[np.intp],
        said: Codes,
        source: Randomness,
        offset: int,
    ) -> NDArray[np.int64]:
        """Return a fake of `name` for everyone; those who chose it discard theirs."""
        words = (source.words(offset, len(said)) >> _HALF).astype(np.int64)
        if len(group) == 1:
            return words
        if (ANY, name) in self.fakes:
            return np.searchsorted(np.cumsum(self.fakes[ANY, name][0])[:-1], words, side="right")
        ends, base = self._tables(tuple(group), name)
        row = base[chosen] + said
        if ends.shape[1] <= _FEW:
            return np.asarray(np.count_nonzero(words[:, None] >= ends[row, :-1], axis=1))
        line = (ends + np.arange(len(ends), dtype=np.int64)[:, None] * WHOLE).reshape(-1)
        return np.asarray(np.searchsorted(line, words + row * WHOLE, side="right") - row * ends.shape[1])

    def _tables(self, group: tuple[str, ...], name: str) -> tuple[Whole, NDArray[np.intp]]:
        """Return the running weights of every (chosen, report), and where each chosen attribute starts."""
        if (group, name) not in self._cache:
            size = self.schema[name].size
            blocks = []
            for chosen in group:
                rows = self.schema[chosen].size
                law = np.full((rows, size), WHOLE) if chosen == name else self.law(chosen, name)
                blocks.append(np.cumsum(np.broadcast_to(law, (rows, size)), axis=1))
            base = np.concatenate([[0], np.cumsum([self.schema[chosen].size for chosen in group])[:-1]])
            self._cache[group, name] = (np.concatenate(blocks), base.astype(np.intp))
        return self._cache[group, name]

    @cached_property
    def _cache(self) -> dict[tuple[tuple[str, ...], str], tuple[Whole, NDArray[np.intp]]]:
        return {}

    def aggregate(self, collected: Collected) -> Aggregated:
        """Count how often each value was reported."""
        check_parts(collected, self)
        sums = []
        for attribute, part in zip(self.schema, collected.parts, strict=True):
            codes = check_codes(part.values, attribute.size, f"reports of {attribute.name}")
            sums.append(Aggregate(len(codes), code_counts(codes, attribute.size)))
        return Aggregated(self, collected.people, tuple(sums))

    def transfer(self, chosen: str, other: str) -> Array:
        """Return Pr(what `other`'s column says | what `chosen`'s report says), shape (values, values)."""
        if chosen == other:
            return np.eye(self.schema[chosen].size)
        law = self.law(chosen, other) / WHOLE
        return np.broadcast_to(law, (self.schema[chosen].size, law.shape[1]))

    def response(self, name: str) -> Array:
        """Return Pr(report | value) of an attribute that was chosen."""
        return self.responses[name].channel.matrix()

    def matrix(self) -> Array:
        """Return Pr(report | record), see `Protocol.matrix`."""
        records = domain_size(self.schema.sizes)
        check_channel_size(records, records)
        grid = np.indices(self.schema.sizes).reshape(len(self.schema), -1)
        total = np.ones((records, records))
        for group in self.groups:
            mixed = np.zeros((records, records))
            for chosen in group:
                at = grid[self.schema.index(chosen)]
                part = self.response(chosen)[at[:, None], at[None, :]]
                for other in group:
                    if other != chosen:
                        seen = grid[self.schema.index(other)]
                        part = part * self.transfer(chosen, other)[at, seen][None, :]
                mixed += part / len(group)
            total *= mixed
        return total

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        laws = [
            {"given": given, "of": other, "weights": law.tolist()}
            for (given, other), law in sorted(self.fakes.items())
        ]
        return {
            "protocol": self.kind,
            "name": self.name,
            "origin": self.origin,
            "epsilon": self.budget,
            "groups": [list(group) for group in self.groups],
            "fake": laws,
        }


def rs_fd(schema: Schema, epsilon: float) -> HiddenChoice:
    """Return RS+FD: uniform fakes (Arcolezi et al. 2021)."""
    priors = {attribute.name: np.full(attribute.size, 1 / attribute.size) for attribute in schema}
    return _independent(schema, epsilon, priors, "rs+fd", "uniform")


def rs_rfd(schema: Schema, epsilon: float, priors: Mapping[str, ArrayLike], origin: str) -> HiddenChoice:
    """Return RS+RFD: fakes from priors that are named by `origin` (Arcolezi et al. 2023)."""
    if not origin:
        raise InputError("say where the priors of RS+RFD came from, in `origin`; they shape its error.")
    given = {name: np.asarray(priors[name], dtype=np.float64) for name in schema.names}
    return _independent(schema, epsilon, given, "rs+rfd", origin)


def _independent(
    schema: Schema, epsilon: float, priors: Mapping[str, Array], name: str, origin: str
) -> HiddenChoice:
    fakes = {(ANY, other): whole_law(priors[other][None, :]) for other in schema.names}
    return HiddenChoice(schema, (schema.names,), epsilon, fakes, name, origin)


def whole_law(rows: ArrayLike) -> Whole:
    """Return probabilities as whole numbers that add up to 2^32 in each row.

    >>> whole_law([[0.5, 0.25, 0.25]]).tolist()
    [[2147483648, 1073741824, 1073741824]]
    """
    given = np.asarray(rows, dtype=np.float64)
    if np.any(given < 0) or not np.all(np.abs(given.sum(axis=1) - 1) < 1e-6):
        raise invalid("fakes", "probabilities that add up to 1 in each row", given.tolist())
    exact = given / given.sum(axis=1, keepdims=True) * WHOLE
    law: Whole = np.floor(exact).astype(np.int64)
    for row, wanted in zip(law, exact, strict=True):
        short = WHOLE - int(row.sum())
        row[np.argsort(row - wanted, kind="stable")[:short]] += 1
    return law
