"""Protocols that hide their choice: one attribute of a group is randomised, the others are made up from it.

RS+FD, RS+RFD, Corr-RR and Cond-RR differ only in the law of the made-up values: uniform, a prior, a copy of
the reported value, a conditional distribution. A fake depends on nothing but the report, so it is free.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, chain, pairwise, permutations, product
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Positions, Whole, Words
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.randomness import below, derive_seed, randomness
from sidelight.foundation.strict import Strict, validated
from sidelight.mechanisms import Reports
from sidelight.mechanisms.arrays import respond
from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.mechanisms.mechanism import code_type, impossible
from sidelight.mechanisms.reports import ReportForm
from sidelight.protocols import protocol
from sidelight.protocols.factors import Choice, Factor
from sidelight.protocols.records import RecordReports, RecordSums
from sidelight.schema import Schema

Weights = Mapping[tuple[str, str], Whole]

WHOLE = 1 << 32
"""The law of a fake is in whole numbers that add up to this."""
ANY = ""
"""Stands for every chosen attribute, where a fake does not depend on the report."""
SECOND_PHASES = ("corr-rr", "cond-rr")
"""The protocols whose fakes are learnt from a first phase, which their origin names."""
_ORIGIN = re.compile(r"first phase ([0-9a-f]{24}),")
_HALF = np.uint64(32)  # the laws of fakes have 32 bits, so half of a word draws one exactly


class _FakeFile(Strict):
    given: str
    of: str
    weights: list[list[int]]


class _FakesFile(Strict):
    protocol: str
    name: str
    origin: str
    epsilon: float
    groups: list[list[str]]
    fake: list[_FakeFile]


class FakeTables(NamedTuple):
    """What the reports and fakes of one group are drawn with, in arrays for a compiled loop.

    By member: how many words keep the true value and how many report a particular other one, where its fakes'
    running weights start in `ends`, which holds all of them, flat, the row of its first value among those of
    chosen members (`base`), its number of values, and whether its fakes have one row whatever is reported
    (`common`).
    """

    truth: Words
    other: Words
    ends: Whole
    starts: Whole
    base: Whole
    sizes: Whole
    common: Mask


@dataclass(frozen=True, eq=False)
class FakeDataProtocol(protocol.Protocol):
    """In every group one attribute, drawn uniformly, is reported; the others are fakes.

    Attributes:
        partition: the attributes in groups; each group spends an even share of the budget.
        fakes: for (chosen, other) the law of the other's fake given the chosen one's report, shape
            (values of chosen, values of other) in whole numbers; one row, under ("", other), where the
            report does not matter.
        called: what people call it.
        origin: where the laws came from: "uniform", a named prior, or the fingerprint of parameters.
    """

    kind: ClassVar[str] = "hidden"
    is_linear: ClassVar[bool] = True
    determines_joint: ClassVar[bool] = False
    """Never: a report is about one attribute, so any joint with the same marginals explains it."""
    schema: Schema
    partition: tuple[tuple[str, ...], ...]
    nominal_budget: float
    fakes: Weights
    called: str
    origin: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "nominal_budget", protocol.check_budget(self.nominal_budget))
        members = [name for group in self.partition for name in group]
        if sorted(members) != sorted(self.schema.names):
            raise invalid("groups", "a partition of the attributes", self.partition)
        object.__setattr__(self, "fakes", MappingProxyType(dict(self.fakes)))
        sizes = {attribute.name: attribute.size for attribute in self.schema}
        for name, size in sizes.items():
            if size < 2:
                raise InputError(f"the attribute {name!r} has one value, which says nothing; leave it out.")
        for chosen, other in chain.from_iterable(permutations(group, 2) for group in self.partition):
            law = self.law(chosen, other)
            if law.shape not in ((1, sizes[other]), (sizes[chosen], sizes[other])):
                raise InputError(f"{_fakes_of(chosen, other)} have the wrong shape, {law.shape}.")
        for pair, law in self.fakes.items():
            if law.min() < 0 or law.max() > WHOLE or (law.sum(axis=1) != WHOLE).any():
                raise InputError(f"{_fakes_of(*pair)} must add up to {WHOLE} in each row.")

    def law(self, chosen: str, other: str) -> Whole:
        """Return the whole-number law of a fake."""
        law = self.fakes.get((chosen, other), self.fakes.get((ANY, other)))
        if law is None:
            raise InputError(f"there is no law for {_fakes_of(chosen, other)}.")
        return law

    @property
    def name(self) -> str:
        """What people call it."""
        return self.called

    @property
    def labels(self) -> tuple[str, ...]:
        """The attributes."""
        return self.schema.names

    @cached_property
    def forms(self) -> tuple[ReportForm, ...]:
        """One code of each attribute."""
        return tuple(ReportForm.codes(size) for size in self.schema.sizes)

    @property
    def first_phase(self) -> str | None:
        """The first phase that the laws of the fakes were learnt from, as Corr-RR and Cond-RR do."""
        if self.called not in SECOND_PHASES:
            return None
        named = _ORIGIN.match(self.origin)
        return named[1] if named else self.origin

    @property
    def widest_factor(self) -> int:
        """The largest number of values of an attribute."""
        return max(self.schema.sizes)

    @property
    def epsilon(self) -> float:
        """The sum over groups of the largest realised budget of a member."""
        return math.fsum(max(self.responses[name].epsilon for name in group) for group in self.partition)

    @property
    def proof(self) -> str:
        """The argument for the budget, in one sentence."""
        return (
            "a report is post-processing of one randomised response in each group, whose choice depends on "
            "no value; hiding the choice is not counted as protection"
        )

    @cached_property
    def responses(self) -> Mapping[str, RandomisedResponse]:
        """Each attribute's randomised response, with its group's share of the budget."""
        part = protocol.even_part(self.nominal_budget, len(self.partition))
        return {attribute.name: _response(attribute.size, part) for attribute in self.schema}

    def randomise(self, records: AnyCodes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`."""
        checked = protocol.check_records(records, self.schema)
        columns: dict[str, AnyCodes] = {}
        for number, group in enumerate(self.partition):
            columns |= self._fill(group, checked, derive_seed(seed, f"group {number}"), offset)
        parts = tuple(Reports(columns[name], is_simulation=seed is not None) for name in self.labels)
        return RecordReports(self, parts, (None,) * len(parts), len(checked), seed is not None)

    def _fill(
        self, group: tuple[str, ...], records: AnyCodes, seed: int | None, offset: int
    ) -> dict[str, AnyCodes]:
        """Return the columns of one group."""
        people = len(records)
        large = use_loop("protocols.fill", people, len(group) + 2)
        choice = randomness(seed, "hidden/choice", compiled=large)
        chosen = below(choice, offset, people, np.array([len(group)], dtype=np.uint64))[:, 0]
        words = randomness(seed, "hidden/report", compiled=large).words(offset, people)
        fakes = np.empty((len(group), people), dtype=np.uint64)
        for number in range(len(group)):
            randomness(seed, f"hidden/fake {number}", compiled=large).words(offset, people, fakes[number])
        index = [self.schema.index(name) for name in group]
        codes = records if index == list(range(records.shape[1])) else records[:, index]
        out = np.empty((len(group), people), dtype=np.uint16)
        if large:
            from sidelight.protocols.kernels import fill

            fill(codes, chosen, words, fakes, self._tables[group], out)
        else:
            _fill_plainly(codes, chosen.astype(np.intp), words, fakes, self._tables[group], out)
        columns = zip(group, out, strict=True)
        return {name: column.astype(code_type(self.schema[name].size)) for name, column in columns}

    def drawn(self, record: AnyCodes, draws: Draws) -> RecordReports:
        """Return one person's report, see `Protocol.drawn`.

        Of every group: the member that is reported, a word for its response, and a word for every member's
        fake, whether it is needed or not.
        """
        checked = protocol.check_records(np.asarray(record)[None], self.schema)
        columns: dict[str, AnyCodes] = {}
        for group in self.partition:
            chosen = np.array([draws.below(len(group))])
            words, fakes = draws.words(1), draws.words(len(group))[:, None]
            codes = checked[:, [self.schema.index(name) for name in group]]
            out = np.empty((len(group), 1), dtype=np.uint16)
            _fill_plainly(codes, chosen, words, fakes, self._tables[group], out)
            columns |= dict(zip(group, out, strict=True))
        parts = tuple(
            Reports(columns[name].astype(code_type(self.schema[name].size))) for name in self.labels
        )
        return RecordReports(self, parts, (None,) * len(parts), 1)

    @cached_property
    def _tables(self) -> dict[tuple[str, ...], FakeTables]:
        """By group, what its reports and fakes are drawn with."""
        return {group: self._table(group) for group in self.partition}

    def _table(self, group: tuple[str, ...]) -> FakeTables:
        responses = [self.responses[name] for name in group]
        sizes = [response.size for response in responses]
        rows = [self._rows(name, group) for name in group]
        lines = [np.cumsum(weights, axis=1).reshape(-1) for weights in rows]
        return FakeTables(
            np.array([response.truth for response in responses], dtype=np.uint64),
            np.array([response.other for response in responses], dtype=np.uint64),
            np.concatenate(lines),
            np.cumsum([0, *(len(line) for line in lines[:-1])], dtype=np.int64),
            np.cumsum([0, *sizes[:-1]], dtype=np.int64),
            np.array(sizes, dtype=np.int64),
            np.array([len(weights) == 1 for weights in rows]),
        )

    def _rows(self, name: str, group: tuple[str, ...]) -> Whole:
        """Return the weights of a member's fakes, a row for each report of the group, or one for all."""
        laws = {chosen: self.law(chosen, name) for chosen in group if chosen != name}
        size = self.schema[name].size
        one, *others = laws.values() or [np.array([[WHOLE] + [0] * (size - 1)])]
        if len(one) == 1 and all(law is one for law in others):
            return one
        sizes = [self.schema[chosen].size for chosen in group]
        rows = np.zeros((sum(sizes), size), dtype=np.int64)  # where it is chosen it has no fake
        for chosen, (first, end) in zip(group, pairwise([0, *accumulate(sizes)]), strict=True):
            rows[first:end] = laws.get(chosen, 0)
        return rows

    def aggregate(self, collected: RecordReports) -> RecordSums:
        """Count how often each value was reported."""
        sums = super().aggregate(collected)
        columns = self.checked_parts(collected)
        for group in self.partition:
            if (strange := self._strange({name: columns[name] for name in group})).any():
                wanted = f"values of {', '.join(group)} that one of them and its fakes can have together"
                raise impossible(wanted, strange)
        return sums

    def strange(self, collected: RecordReports) -> Mask:
        """Return in whose reports no choice leads to what a group's columns say together."""
        columns = self.checked_parts(collected)
        each = [self._strange({name: columns[name] for name in group}) for group in self.partition]
        return np.asarray(np.logical_or.reduce(each))

    def _strange(self, columns: Mapping[str, AnyCodes]) -> Mask:
        """Return where no choice leads to what the columns say together: fakes may rule values out."""
        people = len(next(iter(columns.values())))
        if all(self.law(*pair).all() for pair in permutations(columns, 2)):
            return np.zeros(people, dtype=np.bool_)
        possible = np.zeros(people, dtype=np.bool_)
        for chosen, said in columns.items():
            fakes = [self.transfer(chosen, other)[said, shown] > 0 for other, shown in columns.items()]
            possible |= np.all(fakes, axis=0)
        return ~possible

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
        records = protocol.domain_size(self.schema.sizes)
        protocol.check_channel_size(records, records)
        grid = protocol.every_record(self.schema)
        total = np.ones((records, records))
        for group in self.partition:
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

    def expected_counts(self) -> Array:
        """Return the matrix that turns all frequencies, stacked, into the expected shares of all columns."""
        offsets = self._offsets
        total = sum(self.schema.sizes)
        design = np.zeros((total, total))
        for group in self.partition:
            for chosen in group:
                law = self.response(chosen) / len(group)
                for other in group:
                    block = offsets[other], offsets[chosen]
                    if other == chosen:
                        design[block] = law.T
                    elif len(fake := self.law(chosen, other)) == 1:  # whatever was reported
                        design[block] = fake.T / (WHOLE * len(group))
                    else:
                        design[block] = (law @ self.transfer(chosen, other)).T
        return design

    def report_covariance(self, frequencies: Array) -> Array:
        """Return the covariance of one report's indicators, were these the stacked frequencies.

        Groups are taken as independent: their noise is, and the records' own correlation is small beside it.
        """
        offsets = self._offsets
        seconds = np.zeros((len(frequencies), len(frequencies)))
        mean = self.expected_counts() @ frequencies
        within = np.zeros_like(seconds, dtype=bool)
        for group in self.partition:
            for chosen in group:
                said = frequencies[offsets[chosen]] @ self.response(chosen) / len(group)
                laws = {other: self.transfer(chosen, other) for other in group}
                for first, second in product(group, group):
                    block = offsets[first], offsets[second]
                    within[block] = True
                    if first == second:
                        seconds[block] += np.diag(said @ laws[first])
                    else:
                        seconds[block] += (laws[first] * said[:, None]).T @ laws[second]
        return np.asarray(np.where(within, seconds - np.outer(mean, mean), 0.0))

    @cached_property
    def _offsets(self) -> dict[str, slice]:
        """Where each attribute's frequencies lie among all, stacked."""
        ends = np.cumsum([0, *self.schema.sizes]).tolist()
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(self.schema.names)}

    def factors(self, collected: RecordReports) -> list[Factor]:
        """Return one factor for each group: any of its attributes may be the one that was reported."""
        said = {name: codes.astype(np.intp) for name, codes in self.checked_parts(collected).items()}
        return [self._factor(group, said) for group in self.partition]

    def _factor(self, group: tuple[str, ...], said: Mapping[str, Positions]) -> Choice:
        """Weigh each attribute as the one that was reported, the others being fakes that follow from it."""
        logs: dict[str, Array] = {}
        with np.errstate(divide="ignore"):
            for chosen in group:
                fakes = [self.transfer(chosen, other)[said[chosen], said[other]] for other in group]
                logs[chosen] = np.log(fakes).sum(axis=0)
        # Products over many attributes fall below the least double, so the largest is taken out of them.
        most = np.max(list(logs.values()), axis=0)
        shift = np.where(np.isfinite(most), most, 0.0)
        return Choice(
            {name: self.response(name)[:, said[name]] * np.exp(logs[name] - shift) for name in group}
        )

    def face_value(self, collected: RecordReports, secret: str) -> NDArray[np.intp] | None:
        """Return the secret's column, which may be a fake."""
        if secret not in self.schema:
            return None
        return collected.parts[self.schema.index(secret)].values.astype(np.intp)

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        laws = sorted(self.fakes.items())
        fakes = [{"given": given, "of": of, "weights": law.tolist()} for (given, of), law in laws]
        head = {"protocol": self.kind, "name": self.name, "origin": self.origin}
        groups = [list(group) for group in self.partition]
        return {**head, "epsilon": self.nominal_budget, "groups": groups, "fake": fakes}

    @classmethod
    def from_file(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        """Return the protocol that `to_file` described."""
        parsed = validated(_FakesFile, data, "the protocol")
        fakes: dict[tuple[str, str], Whole] = {}
        for fake in parsed.fake:
            what = _fakes_of(fake.given, fake.of)
            if len({len(row) for row in fake.weights}) != 1:
                raise InputError(f"{what} must be rows of one length.")
            if (fake.given, fake.of) in fakes:
                raise InputError(f"{what} are listed twice.")
            if any(abs(weight) > WHOLE for row in fake.weights for weight in row):
                raise InputError(f"{what} must be weights up to {WHOLE}.")
            fakes[fake.given, fake.of] = np.array(fake.weights, dtype=np.int64)
        partition = tuple(tuple(group) for group in parsed.groups)
        return cls(schema, partition, parsed.epsilon, fakes, parsed.name, parsed.origin)


def _fakes_of(chosen: str, other: str) -> str:
    return f"the fakes of {other!r} given {chosen!r}"


def uniform(schema: Schema) -> dict[str, Array]:
    """Return uniform frequencies: what is assumed where nothing is known."""
    return {attribute.name: np.full(attribute.size, 1 / attribute.size) for attribute in schema}


def rs_fd(schema: Schema, epsilon: float) -> FakeDataProtocol:
    """Return RS+FD: uniform fakes (Arcolezi et al. 2021)."""
    return _independent(schema, epsilon, uniform(schema), "rs+fd", "uniform")


def rs_rfd(
    schema: Schema, epsilon: float, priors: Mapping[str, ArrayLike] | None = None, origin: str = ""
) -> FakeDataProtocol:
    """Return RS+RFD: fakes from priors that are named by `origin` (Arcolezi et al. 2023)."""
    if priors is None:
        raise InputError(
            "RS+RFD needs `priors` to draw its fakes from, got none; give those of a public table."
        )
    if not origin:
        raise InputError("say where the priors of RS+RFD came from, in `origin`; they shape its error.")
    given = {name: np.asarray(priors[name], dtype=np.float64) for name in schema.names}
    return _independent(schema, epsilon, given, "rs+rfd", origin)


def _independent(
    schema: Schema, epsilon: float, priors: Mapping[str, Array], name: str, origin: str
) -> FakeDataProtocol:
    fakes = {(ANY, other): whole_law(priors[other][None, :]) for other in schema.names}
    return FakeDataProtocol(schema, (schema.names,), epsilon, fakes, name, origin)


@cache
def _response(size: int, epsilon: float) -> RandomisedResponse:
    """Return a randomised response; its exact thresholds take longer than a round of reports."""
    return RandomisedResponse(size, epsilon)


def _fill_plainly(
    codes: AnyCodes, chosen: Positions, words: Words, fakes: Words, tables: FakeTables,
    out: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Write the columns of one group, see `kernels.fill`."""
    true = codes[np.arange(len(codes)), chosen].astype(np.uint16)
    said = np.empty_like(true)
    respond(words, true, tables.truth[chosen], tables.other[chosen], said)  # type: ignore[arg-type]
    row = tables.base[chosen] + said
    for number, size in enumerate(tables.sizes):
        first, count = tables.starts[number], 1 if tables.common[number] else int(tables.sizes.sum())
        rows = tables.ends[first : first + count * size].reshape(-1, size)
        drawn = (fakes[number] >> _HALF).astype(np.int64)
        own = np.zeros_like(row) if tables.common[number] else row
        out[number] = np.where(chosen == number, said, _place(rows, drawn, own))


def _place(rows: Whole, drawn: Whole, row: Positions) -> Whole:
    """Return the first value whose running weight exceeds what was drawn, each in its own row."""
    size = rows.shape[1]
    # One rising line of all rows is searched once: row r starts at r 2^32, where the row before it ends.
    line = (rows + np.arange(len(rows), dtype=np.int64)[:, None] * WHOLE).reshape(-1)
    return np.asarray(np.searchsorted(line, drawn + row * WHOLE, side="right") - row * size)


def whole_law(rows: ArrayLike) -> Whole:
    """Return probabilities as whole numbers that add up to 2^32 in each row.

    >>> whole_law([[0.5, 0.25, 0.25]]).tolist()
    [[2147483648, 1073741824, 1073741824]]
    """
    given = np.asarray(rows, dtype=np.float64)
    total = given.sum(axis=1, keepdims=True)
    if np.any(given < 0) or not np.all(np.abs(total - 1) < 1e-6):
        raise invalid("fakes", "probabilities that add up to 1 in each row", given.tolist())
    exact = given / total * WHOLE
    law: Whole = np.floor(exact).astype(np.int64)
    order = np.argsort(law - exact, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(law + (rank < WHOLE - law.sum(axis=1, keepdims=True)))
