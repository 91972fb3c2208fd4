"""Tables whose values were dealt out anew among the people: nothing goes together in them but by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sidelight.belief.belief import Belief
from sidelight.belief.population import MOST_ROWS
from sidelight.foundation.arrays import Array, Positions
from sidelight.sources import Records

_MOST_PEOPLE = 1 << 24


def shuffled(belief: Belief, name: str, seed: int = 0) -> Belief | None:
    """Return the table with the values of one attribute dealt out anew.

    None where there are no people to deal them to, or so many that chance connects nothing.
    """
    people = _people(belief)
    if people is None or belief.records is None:
        return None
    records = _dealt(belief.records, people, name, np.random.default_rng(seed))
    return replace(belief, records=records, blocks=_dealt_blocks(belief, records, name))


def all_shuffled(belief: Belief, seed: int = 0) -> Belief | None:
    """Return a table in which every attribute was shuffled by itself, of no more people than a model needs.

    None where there are no people.
    """
    people = _people(belief)
    if people is None or belief.records is None:
        return None
    rng = np.random.default_rng(seed)
    codes = rng.permuted(belief.records.codes[rng.permutation(people)[:MOST_ROWS]], axis=0)
    return Belief.from_records(Records(belief.schema, codes, np.ones(len(codes))), source="shuffled columns")


def counts_people(belief: Belief) -> bool:
    """Whether the belief is a table of people who were counted."""
    records = belief.records
    if records is None or belief.sample_size is None:
        return False
    return np.array_equal(np.rint(records.weights), records.weights)


def _people(belief: Belief) -> Positions | None:
    """Return the record of every person, where they are not too many."""
    records = belief.records
    if records is None or not counts_people(belief) or records.total > _MOST_PEOPLE:
        return None
    return np.repeat(np.arange(len(records.weights)), records.weights.astype(np.int64))


def _dealt(records: Records, people: Positions, name: str, rng: np.random.Generator) -> Records:
    """Deal the values out; people of one record who get the same value stay together."""
    place, size = records.schema.index(name), records.schema[name].size
    values = rng.permutation(records.codes[people, place]).astype(np.int64)
    counts = np.bincount(people * size + values, minlength=len(records.weights) * size)
    kept = np.flatnonzero(counts)
    codes = records.codes[kept // size]
    codes[:, place] = kept % size
    return Records(records.schema, codes, counts[kept].astype(np.float64))


def _dealt_blocks(belief: Belief, records: Records, name: str) -> Array:
    """Return the pair tables after the deal; counting only those that changed keeps a null cheap."""
    place, size, at = belief.schema.index(name), belief.schema[name].size, belief.offsets
    blocks = belief.blocks.copy()
    own = records.codes[:, place].astype(np.int64)
    for other, width in enumerate(belief.schema.sizes):
        if other != place:
            both = own * width + records.codes[:, other]
            table = np.bincount(both, records.weights, minlength=size * width).reshape(size, width)
            blocks[at[place] : at[place + 1], at[other] : at[other + 1]] = table
            blocks[at[other] : at[other + 1], at[place] : at[place + 1]] = table.T
    return blocks
