"""Synthetic people: records whose tables are those that were estimated, drawn from a model of them.

The model is the distribution of largest entropy with the estimated pairs, over cliques of attributes that
form a junction tree: each attribute is drawn given some of one earlier clique's, those that it depends on
most, as far as a clique's cells allow (a single clique where all attributes fit). Cliques are found by
iterative proportional fitting (Csiszar 1975). Records are made from estimates alone, so they spend no budget
and say nothing about anybody beyond the reports (post-processing; Dwork, Roth 2014, Proposition 2.1).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from sidelight.estimation.dependence import mutual_information
from sidelight.estimation.pairs import PairEstimates
from sidelight.estimation.set_tables import Names, fitted, outer
from sidelight.foundation.arrays import AnyCodes, Array, Positions
from sidelight.foundation.errors import InputError, check_whole
from sidelight.foundation.files import SAY_OVERWRITE, check_overwrite
from sidelight.foundation.html import html_table
from sidelight.foundation.progress import track
from sidelight.foundation.randomness import randomness
from sidelight.protocols.protocol import domain_size
from sidelight.schema import Schema
from sidelight.sources.table import write_rows

LARGEST_CLIQUE = 1 << 16
"""A clique has at most so many cells."""
ALL_CELLS = 1 << 19
"""All cliques together have at most about so many: with 60 attributes, 8,192 each."""
_NEAR = 1e-6
"""Cliques are fitted this closely: drawing a million people moves shares more."""
_WORDS = 2.0**64


@dataclass(frozen=True, eq=False)
class Step:
    """One step of drawing a record: some attributes, given others that are drawn already.

    `law` has a row for each combination of the given attributes' values, and a column for each of the new
    ones', both in C order.
    """

    given: Names
    drawn: Names
    law: Array


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic people, and how near their tables are to the estimated ones.

    Attributes:
        codes: the records, (people, attributes).
        errors: by pair, the total variation between the drawn table and the estimated one.
        cliques: the attributes that were modelled together.
        chance: by pair, the total variation that drawing so many people one by one would lead to, on
            average, at most; they are drawn more evenly.
        is_simulation: whether the reports, or the draws, came from a seed.
    """

    schema: Schema
    codes: AnyCodes
    errors: Mapping[Names, float]
    chance: Mapping[Names, float]
    cliques: tuple[Names, ...]
    epsilon: float
    is_simulation: bool

    @property
    def people(self) -> int:
        """How many records there are."""
        return len(self.codes)

    def to_arrow(self) -> pa.Table:
        """Return the records with their values' labels, one column for each attribute."""
        columns = {}
        for attribute, codes in zip(self.schema, self.codes.T, strict=True):
            labels = pa.array(attribute.values)
            columns[attribute.name] = pa.DictionaryArray.from_arrays(pa.array(codes), labels).cast(
                pa.string()
            )
        return pa.table(columns)

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the records to a .csv or .parquet file, whole or not at all."""
        check_overwrite(path, force=overwrite, fix=SAY_OVERWRITE)
        return write_rows(self.to_arrow(), path)

    def rows(self) -> list[dict[str, object]]:
        """Return the error of every pair, the largest first."""
        items = sorted(self.errors.items(), key=lambda item: -item[1])
        return [
            {"attributes": list(names), "error": error, "by_chance": self.chance[names]}
            for names, error in items
        ]

    def to_json(self) -> str:
        """Return what is known about the records, without them, as JSON."""
        head = {"people": self.people, "epsilon": self.epsilon, "is_simulation": self.is_simulation}
        data = {**head, "cliques": [list(names) for names in self.cliques], "errors": self.rows()}
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        worst = max(self.errors.values(), default=0.0)
        return (
            f"Synthetic({self.people} people, {len(self.schema)} attributes; worst table off by {worst:.3f})"
        )

    def _repr_html_(self) -> str:
        rows = [(" x ".join(names), error, self.chance[names]) for names, error in self.errors.items()]
        return html_table(repr(self), ("pair", "total variation", "by chance"), rows)


def synthetic_people(
    estimates: PairEstimates, people: int | None = None, *, seed: int | None = None
) -> Synthetic:
    """Draw synthetic people whose tables are the estimated ones, as many as reported by default.

    Without a seed the draws come from the operating system.
    """
    count = check_whole("people", estimates.people if people is None else people, at_least=1)
    items = estimates.tables.items()
    tables: dict[Names, Array] = {names: item.frequencies for names, item in items if len(names) == 2}
    missing = [names for names in combinations(estimates.schema.names, 2) if names not in tables]
    if missing:
        raise InputError(
            f"synthetic people need the tables of all pairs, and that of {' and '.join(missing[0])} is "
            "missing; estimate without `sets`."
        )
    steps = list(model_steps(estimates.schema, tables, estimates.marginals))
    codes = draw(estimates.schema, steps, count, seed)
    errors = {names: _variation(codes, estimates.schema, names, table) for names, table in tables.items()}
    chance = {names: _by_chance(table, count) for names, table in tables.items()}
    cliques = tuple((*step.given, *step.drawn) for step in steps)
    is_simulation = estimates.is_simulation or seed is not None
    return Synthetic(
        estimates.schema, codes, errors, chance, cliques, estimates.epsilon, is_simulation
    )  # fmt: skip


def model_steps(
    schema: Schema, tables: Mapping[Names, Array], marginals: Mapping[str, Array], most: int | None = None
) -> Iterator[Step]:
    """Return the steps that draw a record, the attributes that tell most about each other together.

    A clique has at most `most` cells, by default as many as `ALL_CELLS` allow; one for all attributes has at
    most `LARGEST_CLIQUE`.
    """
    told = {frozenset(names): mutual_information(table) for names, table in tables.items()}
    cliques: list[tuple[Names, Array]] = []
    for given, drawn in track(_order(schema, told, most or _most_cells(schema)), "cliques"):
        names = (*given, *drawn)
        sizes = [schema[name].size for name in names]
        margins: dict[tuple[int, ...], Array] = {
            (a, b): _oriented(tables, names[a], names[b])
            for a, b in combinations(range(len(names)), 2)
            if names[a] not in given or names[b] not in given
        }
        if len(names) == 1:
            margins = {(0,): marginals[names[0]]}
        if given:  # what the earlier clique says about them stays
            margins = {tuple(range(len(given))): _part(cliques, given), **margins}
        joint = fitted(outer([marginals[name] for name in names]).reshape(sizes), margins, near=_NEAR)
        cliques.append((names, joint))
        rows = joint.reshape(domain_size(sizes[: len(given)]), -1)
        mass = rows.sum(axis=1, keepdims=True)
        yield Step(given, drawn, np.where(mass > 0, rows / np.where(mass > 0, mass, 1), 1 / rows.shape[1]))


def _most_cells(schema: Schema) -> int:
    """Return how many cells a clique may have."""
    if domain_size(schema.sizes) <= LARGEST_CLIQUE:
        return LARGEST_CLIQUE
    return min(LARGEST_CLIQUE, ALL_CELLS // len(schema))


def _order(schema: Schema, told: Mapping[frozenset[str], float], most: int) -> list[tuple[Names, Names]]:
    """Return what is drawn given what: all at once where the cells allow it, else one by one.

    The next attribute is the one that earlier ones tell most about, given those of one clique that fit.
    """
    names = list(schema.names)
    if domain_size(schema.sizes) <= most:
        return [((), tuple(names))]
    first = max(
        names, key=lambda name: sum(told[frozenset((name, other))] for other in names if other != name)
    )
    names.remove(first)
    order: list[tuple[Names, Names]] = [((), (first,))]
    cliques: list[Names] = [(first,)]
    while names:
        options = [(name, _parents(schema, told, name, clique, most)) for name in names for clique in cliques]

        def worth(option: tuple[str, Names]) -> float:
            return sum(told[frozenset((option[0], parent))] for parent in option[1])

        name, parents = max(options, key=worth)
        order.append((parents, (name,)))
        cliques.append((*parents, name))
        names.remove(name)
    return order


def _parents(
    schema: Schema, told: Mapping[frozenset[str], float], name: str, clique: Sequence[str], most: int
) -> Names:
    """Return the attributes of a clique that tell most about one, as far as the cells allow."""
    cells, chosen = schema[name].size, set[str]()
    for parent in sorted(clique, key=lambda other: -told[frozenset((name, other))]):
        if cells * schema[parent].size <= most:
            cells *= schema[parent].size
            chosen.add(parent)
    return tuple(parent for parent in clique if parent in chosen)


def _part(cliques: Sequence[tuple[Names, Array]], names: Names) -> Array:
    """Return the joint of some attributes from the clique that holds them all."""
    held, joint = next(item for item in cliques if set(names) <= set(item[0]))
    others = tuple(axis for axis, name in enumerate(held) if name not in names)
    kept = [name for name in held if name in names]
    return np.asarray(joint.sum(axis=others).transpose([kept.index(name) for name in names]))


def _oriented(tables: Mapping[Names, Array], first: str, second: str) -> Array:
    return tables[first, second] if (first, second) in tables else tables[second, first].T


def draw(schema: Schema, steps: Sequence[Step], people: int, seed: int | None = None) -> AnyCodes:
    """Return records drawn step by step, those with the same given values at even distances in their law.

    So every cell of a step has the number of people that its law says, but for one (systematic sampling;
    Madow, Madow 1944); who gets which is drawn.
    """
    codes = np.zeros((people, len(schema)), dtype=np.uint16)
    for step in steps:
        rows = np.zeros(people, dtype=np.intp)
        for name in step.given:
            rows = rows * schema[name].size + codes[:, schema.index(name)]
        share = _even_shares(rows, len(step.law), seed, f"synthetic/{','.join(step.drawn)}")
        ends = np.cumsum(step.law, axis=1) + np.arange(len(step.law))[:, None]
        # Row r's ends lie between r and r + 1, so that one search finds everybody's cell.
        cells = np.searchsorted(ends.reshape(-1), rows + share, side="right") - rows * step.law.shape[1]
        cells = np.clip(cells, 0, step.law.shape[1] - 1)
        sizes = [schema[name].size for name in step.drawn]
        for name, drawn in zip(step.drawn, np.unravel_index(cells, sizes), strict=True):
            codes[:, schema.index(name)] = drawn
    return codes


def _even_shares(rows: Positions, laws: int, seed: int | None, label: str) -> Array:
    """Return a number from 0 to 1 for everyone; those of one row are evenly spaced, in random order."""
    people = len(rows)
    order = np.lexsort((randomness(seed, label).words(0, people), rows))
    counts = np.bincount(rows, minlength=laws)
    ranks = np.empty(people)
    ranks[order] = np.arange(people) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = randomness(seed, f"{label}/offsets").words(0, laws) / _WORDS
    return np.asarray((ranks + offsets[rows]) / counts[rows])


def _variation(codes: AnyCodes, schema: Schema, names: Names, table: Array) -> float:
    first, second = (codes[:, schema.index(name)].astype(np.intp) for name in names)
    counts = np.bincount(first * table.shape[1] + second, minlength=table.size)
    return float(np.abs(counts / len(codes) - table.reshape(-1)).sum() / 2)


def _by_chance(table: Array, people: int) -> float:
    """Return what drawing one by one would add on average: half the sum of the cells' deviations."""
    return float(np.sqrt(table * (1 - table) / people).sum() / 2 * math.sqrt(2 / math.pi))
