"""Protocols that randomise true values: all groups with a split budget (SPL), or one with all of it (SMP)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sidelight.foundation.arrays import AnyCodes, Array, Mask, Positions
from sidelight.foundation.compiled import use_loop
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.randomness import below, below_each, derive_seed, randomness
from sidelight.foundation.strict import Strict, validated
from sidelight.mechanisms import Reports
from sidelight.mechanisms.checks import check_offset
from sidelight.mechanisms.reports import ReportForm
from sidelight.plan import Plan
from sidelight.protocols import protocol
from sidelight.protocols.factors import Factor
from sidelight.protocols.groups import Parameters, ReportedGroup, check_groups, make_group
from sidelight.protocols.records import RecordReports, RecordSums, check_people, check_same
from sidelight.schema import Schema

BLOCK = 1 << 16
"""Blocks of so many rows have noise of their own in simulations where a person reports one group."""
_MOST_LISTED = 1 << 14
"""Reports that are sets are listed one by one up to so many."""


class _GroupFile(Strict):
    attributes: list[str]
    mechanism: str
    epsilon: float | None = None
    parameters: dict[str, int | float | str | list[int | float | str] | list[list[int | float]]] = Field(
        default_factory=dict
    )


class _GroupsFile(Strict):
    protocol: str
    unit: list[_GroupFile]
    shares: list[int] = Field(default_factory=list)


class GroupProtocol(protocol.Protocol):
    """What protocols share whose every part is the report of one group through a mechanism of its own."""

    short_names: ClassVar[tuple[str, str]]
    """What people call it: where every attribute is a group by itself, and where several are one."""
    shares: tuple[int, ...] = ()
    """How likely a person reports each group, in whole numbers, where one is drawn."""

    @property
    def name(self) -> str:
        """Its short name."""
        return self.short_names[any(len(group.names) > 1 for group in self.groups)]

    @property
    def part_shares(self) -> tuple[int, ...]:
        """How likely a person sends each part, see `Protocol`."""
        return self.shares or super().part_shares

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups' labels."""
        return tuple(group.label for group in self.groups)

    @property
    def forms(self) -> tuple[ReportForm, ...]:
        """The forms of the mechanisms' reports."""
        return tuple(group.randomiser.form for group in self.groups)

    @property
    def has_numbers(self) -> bool:
        """Whether some group reports a noisy number."""
        return any(group.randomiser.numbers is not None for group in self.groups)

    @property
    def is_pure(self) -> bool:
        """Whether the budget holds without a delta: no group's mechanism has one."""
        return not any(group.randomiser.delta for group in self.groups)

    @property
    def widest_factor(self) -> int:
        """The size of the largest group."""
        return max(group.size for group in self.groups)

    def aggregate(self, collected: RecordReports) -> RecordSums:
        """Add reports up, group by group."""
        check_same(self, collected.protocol)
        check_people(collected)
        sums = tuple(group.aggregate(part) for group, part in zip(self.groups, collected.parts, strict=True))
        return RecordSums(self, collected.people, sums, collected.is_simulation)

    def strange(self, collected: RecordReports) -> Mask:
        """Return that nobody's is: groups have noise of their own, so what each can say they can together."""
        return np.zeros(collected.people, dtype=np.bool_)

    def factors(self, collected: RecordReports) -> list[Factor]:
        """Return one factor for each group."""
        return [group.factor(part) for group, part in zip(self.groups, collected.parts, strict=True)]

    def evidence(self, collected: RecordReports, step: int) -> Iterator[tuple[protocol.Rows, list[Factor]]]:
        """Return what people's reports say, group by group where a person sends one of them."""
        if not self.sends_one_part:
            yield from super().evidence(collected, step)
            return
        for group, part, senders in zip(self.groups, collected.parts, collected.senders, strict=True):
            rows = np.arange(collected.people) if senders is None else senders
            for start in range(0, len(rows), step):
                span = slice(start, start + step)
                yield rows[span], [group.factor(part[span])]

    def face_value(self, collected: RecordReports, secret: str) -> Positions | None:
        """Return the secret's part of its group's report, where that is one value of the group."""
        if self.sends_one_part:
            return None
        for group, part in zip(self.groups, collected.parts, strict=True):
            if secret in group.names and (cells := group.randomiser.face_value(part)) is not None:
                return np.asarray(np.unravel_index(cells, group.sizes)[group.names.index(secret)])
        return None

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        shares = {"shares": list(self.shares)} if self.shares else {}
        return {"protocol": self.kind, **shares, "unit": [group.to_file() for group in self.groups]}

    @classmethod
    def from_file(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        """Return the protocol that `to_file` described."""
        parsed = validated(_GroupsFile, data, "the protocol")
        if not parsed.unit:
            raise InputError("a protocol needs at least one `unit`.")
        groups = tuple(
            make_group(schema, item.attributes, item.mechanism, item.epsilon, item.parameters)
            for item in parsed.unit
        )
        made: Callable[..., Self] = cls
        return made(schema, groups, *([tuple(parsed.shares)] if cls.sends_one_part else []))

    def _randomised(
        self, group: ReportedGroup, records: AnyCodes, seed: int | None = None, offset: int = 0
    ) -> Reports:
        codes = group.codes(records, self.schema)
        return group.randomiser.randomise(codes, seed=derive_seed(seed, group.label), offset=offset)

    def _laws(self) -> list[Array]:
        """Return Pr(report of each group | record) for every record of the schema's domain."""
        laws = []
        for group in self.groups:
            if group.randomiser.numbers is not None:
                raise InputError(
                    f"the reports of {group.label!r} are numbers, too many to enumerate; take the protocol's "
                    "`epsilon` and `delta`, which hold by proof."
                )
            law = group.randomiser.report_law(_MOST_LISTED)
            if law is None:
                law = group.randomiser.channel.matrix()
            protocol.check_channel_size(protocol.domain_size(self.schema.sizes), law.shape[1])
            records = protocol.every_record(self.schema).T.astype(np.uint16)
            laws.append(law[group.codes(records, self.schema)])
        return laws


@dataclass(frozen=True)
class Split(GroupProtocol):
    """SPL: everyone reports every group; the budgets add up (with a group of all: the product domain).

    Each attribute of the schema is in exactly one of the groups.
    """

    kind: ClassVar[str] = "split"
    short_names: ClassVar[tuple[str, str]] = ("spl", "product")
    schema: Schema
    groups: tuple[ReportedGroup, ...]

    def __post_init__(self) -> None:
        check_groups(self.schema, self.groups, disjoint=True)

    @property
    def epsilon(self) -> float:
        """The sum of the groups' realised budgets."""
        return math.fsum(group.randomiser.epsilon for group in self.groups)

    @property
    def delta(self) -> float:
        """The sum of the groups' deltas, an upper end (Dwork, Roth 2014, Theorem 3.16)."""
        return min(sum(group.randomiser.delta for group in self.groups), 1.0)

    @property
    def proof(self) -> str:
        """The argument for the budget, in one sentence."""
        if not self.is_pure:
            return "groups have noise of their own: their budgets add up, and their deltas do at most"
        argument = "groups have noise of their own, so their likelihood ratios multiply: the budgets add up, "
        return argument + ("reached where points lie at both bounds" if self.has_numbers else "exactly")

    def randomise(self, records: AnyCodes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`."""
        checked = protocol.check_records(records, self.schema)
        parts = tuple(self._randomised(group, checked, seed, offset) for group in self.groups)
        return RecordReports(self, parts, (None,) * len(parts), len(checked), seed is not None)

    def drawn(self, record: AnyCodes, draws: Draws) -> RecordReports:
        """Return one person's report, group by group, see `Protocol.drawn`."""
        checked = protocol.check_records(np.asarray(record)[None], self.schema)
        codes = [int(group.codes(checked, self.schema)[0]) for group in self.groups]
        parts = tuple(
            group.randomiser.drawn(code, draws) for group, code in zip(self.groups, codes, strict=True)
        )
        return RecordReports(self, parts, (None,) * len(parts), 1)

    def matrix(self) -> Array:
        """Return Pr(report | record), see `Protocol.matrix`."""
        first, *others = self._laws()
        protocol.check_channel_size(len(first), math.prod(law.shape[1] for law in (first, *others)))
        for law in others:  # of two independent reports given the record
            first = (first[:, :, None] * law[:, None, :]).reshape(len(law), -1)
        return first


@dataclass(frozen=True)
class Sample(GroupProtocol):
    """SMP: everyone reports one group, drawn at random and disclosed, with the whole budget.

    Every attribute is in at least one group. `shares` say how likely each group is drawn, in whole numbers;
    all equal by default.
    """

    kind: ClassVar[str] = "sample"
    short_names: ClassVar[tuple[str, str]] = ("smp", "smp on groups")
    sends_one_part: ClassVar[bool] = True
    schema: Schema
    groups: tuple[ReportedGroup, ...]
    shares: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_groups(self.schema, self.groups, disjoint=False)
        count = len(self.groups)
        shares = self.shares or (1,) * count
        if len(shares) != count:
            raise InputError(f"`shares` must have one number for each of {count} groups, got {shares}.")
        # Their sum must fit a word.
        checked = tuple(check_whole("shares", share, at_least=1, at_most=1 << 40) for share in shares)
        object.__setattr__(self, "shares", checked)

    @property
    def epsilon(self) -> float:
        """The largest realised budget of a group."""
        return max(group.randomiser.epsilon for group in self.groups)

    @property
    def delta(self) -> float:
        """The mean of the groups' deltas: a report is of one group, known which, at its share."""
        whole = sum(self.shares)
        each = zip(self.groups, self.shares, strict=True)
        return sum(group.randomiser.delta * share / whole for group, share in each)

    @property
    def proof(self) -> str:
        """The argument for the budget, in one sentence."""
        argument = "the choice depends on no value, and a report is of one group: the largest budget, "
        if not self.is_pure:
            return argument + "and the mean of the deltas at most"
        argument += "reached by records that differ in it"
        return f"{argument} from bound to bound" if self.has_numbers else argument

    def randomise(self, records: AnyCodes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`.

        Noise is drawn for the chosen group alone. A simulation stays the same in chunks: in each block of
        rows, whose bounds are fixed, a group's noise is numbered by those of its rows that come before.
        """
        checked = protocol.check_records(records, self.schema)
        end = check_offset(offset) + len(checked)
        first = offset - offset % BLOCK
        chosen = self._chosen(seed, first, end - first)
        seeds = [derive_seed(seed, group.label) for group in self.groups]
        parts: list[list[Reports]] = [[group.randomiser.form.empty()] for group in self.groups]
        senders: list[list[Positions]] = [[] for _ in self.groups]
        for start in range(first, end, BLOCK):
            rows = _by_group(chosen[start - first : start - first + BLOCK], len(self.groups))
            for number, (group, own) in enumerate(zip(self.groups, rows, strict=True)):
                skipped = int(np.searchsorted(own, offset - start))
                sent = own[skipped:] + (start - offset)
                codes = group.codes(checked, self.schema, sent)
                made = group.randomiser.randomise(codes, seed=seeds[number], offset=start + skipped)
                parts[number].append(made)
                senders[number].append(sent)
        reports = tuple(part[-1] if len(part) <= 2 else Reports.joined(part[1:]) for part in parts)
        places = tuple(
            sent[0] if len(sent) == 1 else np.concatenate([np.arange(0), *sent]) for sent in senders
        )
        return RecordReports(self, reports, places, len(checked), seed is not None)

    def _chosen(self, seed: int | None, first: int, people: int) -> AnyCodes:
        """Return the number of the group that each person reports."""
        total = sum(self.shares)
        source = randomness(seed, "collection/choice", compiled=use_loop("foundation.fill_words", people))
        drawn: NDArray[np.integer]
        if total < 1 << 32:
            drawn = below(source, first, people, np.array([total], dtype=np.uint64))[:, 0]
        else:
            drawn = below_each(source, first, np.full(people, total, dtype=np.uint64)).astype(np.int64)
        if total > len(self.groups):  # else all shares are 1, and the draw is the choice
            drawn = np.searchsorted(np.cumsum(self.shares), drawn, side="right")
        return drawn.astype(np.uint16 if len(self.groups) <= 1 << 16 else np.uint32)

    def drawn(self, record: AnyCodes, draws: Draws) -> RecordReports:
        """Return one person's report: the group is drawn first, see `Protocol.drawn`."""
        ends = np.cumsum(self.shares)
        chosen = int(np.searchsorted(ends, draws.below(int(ends[-1])), side="right"))
        parts = [group.randomiser.form.empty() for group in self.groups]
        checked, group = protocol.check_records(np.asarray(record)[None], self.schema), self.groups[chosen]
        parts[chosen] = group.randomiser.drawn(int(group.codes(checked, self.schema)[0]), draws)
        senders = tuple(np.arange(len(part)) for part in parts)
        return RecordReports(self, tuple(parts), senders, 1)

    def matrix(self) -> Array:
        """Return Pr(report | record), the groups' reports side by side, see `Protocol.matrix`."""
        laws = self._laws()
        protocol.check_channel_size(len(laws[0]), sum(law.shape[1] for law in laws))
        whole = sum(self.shares)
        return np.hstack([law * (share / whole) for law, share in zip(laws, self.shares, strict=True)])


def _by_group(chosen: AnyCodes, groups: int) -> list[Positions]:
    """Return the places of each group's people in a block, in rising order."""
    order = np.argsort(chosen, kind="stable")  # a radix sort, as codes have 16 bits
    return np.split(order, np.cumsum(np.bincount(chosen, minlength=groups))[:-1])


def spl(schema: Schema, epsilon: float, mechanism: str = "grr", parameters: Parameters = None) -> Split:
    """Return SPL: each of d attributes through the mechanism at epsilon / d, rounded down."""
    part = protocol.even_part(protocol.check_budget(epsilon), len(schema))
    groups = tuple(make_group(schema, [name], mechanism, part, parameters) for name in schema.names)
    return Split(schema, groups)


def smp(
    schema: Schema, epsilon: float, mechanism: str = "grr", shares: Sequence[int] = (),
    parameters: Parameters = None,
) -> Sample:  # fmt: skip
    """Return SMP: one of d attributes, disclosed, through the mechanism at epsilon."""
    groups = tuple(make_group(schema, [name], mechanism, epsilon, parameters) for name in schema.names)
    return Sample(schema, groups, tuple(shares))


def product(
    schema: Schema, epsilon: float, groups: Sequence[Sequence[str]] | None = None, mechanism: str = "grr"
) -> Split | Sample:
    """Return the product domain of all attributes, or one group, drawn and disclosed, at epsilon.

    An attribute that no group names is a group of one.
    """
    parts = [list(group) for group in groups] if groups is not None else [list(schema.names)]
    named = {name for part in parts for name in part}
    parts += [[name] for name in schema.names if name not in named]
    made = tuple(make_group(schema, part, mechanism, epsilon) for part in parts)
    return Split(schema, made) if len(made) == 1 else Sample(schema, made)


def planned(plan: Plan) -> Split:
    """Return the collection that a plan describes: every released attribute, as it says."""
    groups = []
    for release in plan.releases:
        if release.times != 1:
            raise InputError(
                f"the plan asks for {release.times} reports of {release.name!r}, and this is one collection: "
                "say which `round` it is (--round), or set `times` to 1. With fresh noise each report spends "
                "its budget again; a panel's memory keeps responses between the rounds."
            )
        if release.mechanism != "withheld":
            names, parameters = [release.name], release.parameters
            groups.append(make_group(plan.schema, names, release.mechanism, release.epsilon, parameters))
    if not groups:
        raise InputError("the plan withholds every attribute; there is nothing to collect.")
    kept = plan.schema.select([group.names[0] for group in groups])
    return Split(kept, tuple(groups))
