"""Coarser values: neighbours of ordered ones merged, rare ones of the others folded into "(other)".

A coarsened attribute is an attribute like any other: its edges, its merged values and "(other)" say on a
device what a raw value is coded as, so a plan that has it is collected without another step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Positions, offsets
from sidelight.schema import MISSING, OTHER, Attribute, Schema, binned
from sidelight.sources.counts import distinct_records

_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Coarsening:
    """How the values of an attribute become fewer.

    Attributes:
        fine: the attribute as it is.
        coarse: as it would be.
        codes: (values,) the coarse code of every fine one.
    """

    fine: Attribute
    coarse: Attribute
    codes: Positions

    @property
    def says(self) -> str:
        """What is done, in words."""
        how = "merging neighbours" if self.coarse.kind != "categorical" else "folding the rarest into one"
        return f"{self.fine.name}: {self.coarse.size} values instead of {self.fine.size}, by {how}"

    def frequencies(self, shares: Array) -> Array:
        """Return the frequencies of the coarse values."""
        return np.asarray(np.bincount(self.codes, weights=shares, minlength=self.coarse.size), np.float64)


def coarsenings(attribute: Attribute, shares: Array) -> Iterator[Coarsening]:
    """Yield coarser and coarser forms of an attribute, each with about half the values, down to two.

    Of ordered values, the two neighbours that fewest people have are merged first, and a missing value stays
    apart; of others the rarest are folded first.
    """
    size = attribute.size
    while (size := (size + 1) // 2) >= _FEWEST:
        made = coarsened_to(attribute, shares, size)
        if made is not None:
            yield made
        if size == _FEWEST:
            return


def coarsened_to(attribute: Attribute, shares: Array, size: int) -> Coarsening | None:
    """Return an attribute with so many values; None where that is not possible, or nothing would change."""
    return (_folded if attribute.kind == "categorical" else _merged)(attribute, shares, size)


def _folded(attribute: Attribute, shares: Array, size: int) -> Coarsening | None:
    """Return the attribute with its commonest values and one for all others, missing ones apart."""
    apart = attribute.missing == "value"
    listed = [code for code, label in enumerate(attribute.values) if label not in (OTHER, MISSING)]
    keep = size - 1 - apart
    if keep < 1 or len(listed) - keep < 2 - attribute.has_other:  # one value would have another name only
        return None
    common = sorted(sorted(listed, key=lambda code: -shares[code])[:keep])
    values = [attribute.values[code] for code in common] + [OTHER] + [MISSING] * apart
    codes = np.full(attribute.size, len(common))
    codes[common] = np.arange(len(common))
    if apart:
        codes[attribute.code(MISSING)] = len(common) + 1
    kept = tuple((label, parts) for label, parts in attribute.merged if label in values)
    return Coarsening(attribute, replace(attribute, values=tuple(values), merged=kept), codes)


def _merged(attribute: Attribute, shares: Array, size: int) -> Coarsening | None:
    """Return the attribute with neighbouring values merged; those that are in no order stay apart."""
    apart = [label for label in attribute.values if label in (OTHER, MISSING)]
    ordered = attribute.size - len(apart)
    wanted = size - len(apart)
    if wanted < 1 or wanted >= ordered or wanted + len(apart) < _FEWEST:
        return None
    starts = _starts(shares[:ordered], wanted)
    codes = np.searchsorted(starts, np.arange(attribute.size), side="right") - 1
    codes[ordered:] = wanted + np.arange(len(apart))
    coarse: Attribute | None
    if attribute.is_binned:
        edges = [attribute.edges[start - 1] for start in starts[1:]]
        coarse = binned(attribute.name, attribute.kind, edges, attribute.missing)
    else:
        coarse = _relabelled(attribute, starts, ordered, apart)
    return None if coarse is None else Coarsening(attribute, coarse, codes)


def _starts(shares: Array, wanted: int) -> list[int]:
    """Return where each run of neighbours starts, the two that fewest people have being merged first."""
    starts, masses = list(range(len(shares))), [float(share) for share in shares]
    while len(starts) > wanted:
        place = min(range(len(starts) - 1), key=lambda at: masses[at] + masses[at + 1])
        masses[place] += masses.pop(place + 1)
        starts.pop(place + 1)
    return starts


def _relabelled(
    attribute: Attribute, starts: Sequence[int], ordered: int, apart: Sequence[str]
) -> Attribute | None:
    """Return an ordinal attribute whose merged values are called by their first and last."""
    earlier, merged, values = dict(attribute.merged), [], []
    for start, stop in zip(starts, [*starts[1:], ordered], strict=True):
        run = attribute.values[start:stop]
        label = run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}"
        parts = tuple(raw for each in run for raw in earlier.get(each, (each,)))
        values.append(label)
        if parts != (label,):
            merged.append((label, parts))
    if len(set(values)) < len(values):  # a value is called as two merged ones would be
        return None
    return replace(attribute, values=(*values, *apart), merged=tuple(merged))


def coarse_schema(schema: Schema, coarsened: Mapping[str, Coarsening]) -> Schema:
    """Return a schema some of whose attributes are coarsened."""
    return Schema(tuple(coarsened[item.name].coarse if item.name in coarsened else item for item in schema))


def coarse_belief(belief: Belief, coarsened: Mapping[str, Coarsening]) -> Belief:
    """Return what is known of people whose values are coarsened: the same records, or pairs, merged."""
    if not coarsened:
        return belief
    schema = coarse_schema(belief.schema, coarsened)
    if belief.records is not None:
        codes = belief.records.codes.copy(order="F")
        for name, item in coarsened.items():
            place = schema.index(name)
            codes[:, place] = item.codes[codes[:, place].astype(np.intp)]
        records = distinct_records(schema, codes, belief.records.weights)
        made = Belief.from_records(records, smoothing=belief.smoothing, source=belief.source)
        return replace(made, sample_size=belief.sample_size)
    at, fine = offsets(schema.sizes), offsets(belief.schema.sizes)
    merge = np.zeros((int(fine[-1]), int(at[-1])))
    for place, attribute in enumerate(belief.schema):
        given = coarsened.get(attribute.name)
        codes_of = np.arange(attribute.size) if given is None else given.codes
        merge[np.arange(fine[place], fine[place + 1]), at[place] + codes_of] = 1.0
    return replace(belief, schema=schema, blocks=merge.T @ belief.blocks @ merge)
