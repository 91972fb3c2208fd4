"""Collecting pairs and larger sets: everyone reports one set of attributes as one value, with all the budget.

Which set is drawn at random and disclosed, so a record's budget is that of one report. Tables of two
attributes then come with noise of their own, and every set that holds an attribute says something about it
(Zhang et al. 2018, CALM, where all sets are drawn alike and everyone reports one).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.errors import InputError, check_number
from sidelight.foundation.randomness import derive_seed
from sidelight.foundation.strict import Strict, validated
from sidelight.protocols.direct import Sample
from sidelight.protocols.groups import BEST, make_group
from sidelight.protocols.protocol import check_budget
from sidelight.protocols.records import RecordReports
from sidelight.schema import Schema

_WHOLE = 1 << 20
"""What shares of people are counted in."""
MOST_PAIRS = 20_000
"""All pairs are collected or estimated only where there are no more than this: those of 200 attributes."""
_ORIGIN = re.compile(r"first phase ([0-9a-f]{24}),")


class _OriginFile(Strict):
    origin: str = ""


@dataclass(frozen=True)
class SetSample(Sample):
    """One of several sets of attributes, drawn and disclosed, reported as one value with the whole budget.

    `origin` names the first phase that the shares were learnt from; it is empty where there is none.
    """

    kind: ClassVar[str] = "sets"
    short_names: ClassVar[tuple[str, str]] = ("pairs", "pairs")
    origin: str = ""

    @property
    def first_phase(self) -> str | None:
        """The fingerprint of the first phase that the shares were learnt from."""
        if not self.origin:
            return None
        named = _ORIGIN.match(self.origin)
        return named[1] if named else self.origin

    def randomise(self, records: AnyCodes, *, seed: int | None = None, offset: int = 0) -> RecordReports:
        """Return one report for each record, see `Protocol.randomise`.

        A second phase has noise of its own: with the first one's seed it would repeat what that drew, and
        reports of both would err together.
        """
        own = derive_seed(seed, "second phase") if self.origin else seed
        return super().randomise(records, seed=own, offset=offset)

    def to_file(self) -> dict[str, Any]:
        """Return the protocol as plain data."""
        return {**super().to_file(), **({"origin": self.origin} if self.origin else {})}

    @classmethod
    def from_file(cls, data: Mapping[str, Any], schema: Schema) -> Self:
        """Return the protocol that `to_file` described."""
        stated = {key: value for key, value in data.items() if key == "origin"}
        origin = validated(_OriginFile, stated, "the protocol").origin
        rest = {key: value for key, value in data.items() if key != "origin"}
        made = super().from_file(rest, schema)
        return cls(schema, made.groups, made.shares, origin)


def pairs(
    schema: Schema, epsilon: float, groups: Sequence[Sequence[str]] | None = None, mechanism: str = BEST,
    singles: float = 0.0,
) -> SetSample:  # fmt: skip
    """Return the collection of all pairs, or of chosen sets of attributes, all as likely as each other.

    Args:
        schema: of a record.
        epsilon: of a whole record, as a person reports one set.
        groups: the sets; all pairs by default. An attribute that none names is a set of one.
        mechanism: of a set, "grr", "ss", "oue" or "sue"; by default the one with the least variance.
        singles: the share of people who report one attribute instead, by itself.
    """
    budget = check_budget(epsilon)
    alone = check_number("singles", singles, at_least=0, below=1)
    chosen = [tuple(group) for group in groups] if groups is not None else all_pairs(schema)
    named = {name for group in chosen for name in group}
    chosen += [(name,) for name in schema.names if name not in named]
    shares = {group: (1 - alone) / len(chosen) for group in chosen}
    if alone:
        for name in schema.names:
            shares[name,] = shares.get((name,), 0.0) + alone / len(schema)
    return sampled_sets(schema, budget, shares, mechanism)


def all_pairs(schema: Schema) -> list[tuple[str, ...]]:
    """Return every pair of a schema's attributes; raise where there is none, or far too many."""
    if len(schema) < 2:
        raise InputError(f"a pair needs two attributes, got {len(schema)}; take the protocol 'smp'.")
    if (count := math.comb(len(schema), 2)) > MOST_PAIRS:
        raise InputError(
            f"{len(schema)} attributes have {count} pairs, more than {MOST_PAIRS}: hardly anybody would "
            "report each. Leave attributes out, or name the sets that matter."
        )
    return list(combinations(schema.names, 2))


def sampled_sets(
    schema: Schema, epsilon: float, shares: Mapping[tuple[str, ...], float], mechanism: str = BEST,
    origin: str = "",
) -> SetSample:  # fmt: skip
    """Return the collection of sets of attributes, each drawn by its share of people."""
    if not shares:
        raise InputError("a collection of sets needs at least one set, got none.")
    made = tuple(make_group(schema, names, mechanism, epsilon) for names in shares)
    whole = sum(check_number("shares", share, above=0) for share in shares.values())
    counted = [max(1, round(_WHOLE * share / whole)) for share in shares.values()]
    if max(counted) - min(counted) <= 1:  # alike but for rounding
        counted = [1] * len(counted)
    return SetSample(schema, made, tuple(counted), origin)
