"""What the reports of one collection say about tables of attributes, before and after shrinking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sidelight.estimation.pair_shrinkage import (
    Shrunken,
    shrunken_marginals,
    shrunken_pairs,
    shrunken_sets,
)
from sidelight.estimation.set_tables import Names, SetTable, set_tables
from sidelight.estimation.unbiased import About, Every, unbiased
from sidelight.foundation.arrays import Array
from sidelight.protocols.records import RecordSums


@dataclass(frozen=True, eq=False)
class Evidence:
    """What reports say: unbiased marginals, their posterior means, unbiased tables, and those by evidence."""

    marginals: Every
    shares: Mapping[str, Array]
    tables: Mapping[Names, SetTable]
    shrunken: Mapping[Names, Shrunken]


def table_evidence(
    parts: Sequence[RecordSums], sets: Sequence[Names], about: About = "collected"
) -> Evidence:
    """Return what the sums of one collection say about tables; pairs of larger sets are found on the way."""
    schema = parts[0].protocol.schema
    wanted = list(dict.fromkeys([*sets, *(pair for names in sets for pair in combinations(names, 2))]))
    marginals = unbiased(parts, about)
    tables = set_tables(parts, wanted, about)
    shares = shrunken_marginals(schema, marginals)
    pairs = shrunken_pairs(
        schema, {n: table for n, table in tables.items() if len(n) == 2}, marginals, shares
    )
    larger = {names: table for names, table in tables.items() if len(names) > 2}
    return Evidence(marginals, shares, tables, shrunken_sets(larger, pairs, shares))
