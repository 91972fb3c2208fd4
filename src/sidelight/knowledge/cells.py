"""The belief as a list of the records it holds possible, which every exact figure starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sidelight.belief import Belief, Gaussian
from sidelight.foundation.arrays import Array, Mask, Positions
from sidelight.foundation.errors import InputError, TooLargeError, check_is, unknown
from sidelight.knowledge.query import Query
from sidelight.leakage.bounds import Claim
from sidelight.schema import Schema
from sidelight.sources.counts import distinct_records

LARGEST_LISTED = 1 << 22


@dataclass(frozen=True, eq=False)
class Cells:
    """Every record that can occur, (cells, n), with its probability.

    Attributes:
        records: how many records each cell stands for; None for a belief given by hand or smoothed.
        claim: of an exact figure: "exact", or "model" where the belief is a model of the table.
    """

    schema: Schema
    codes: Positions
    weights: Array
    records: Array | None
    claim: Claim

    @cached_property
    def possible(self) -> tuple[Mask, ...]:
        """For each attribute which of its values can occur."""
        columns = zip(self.codes.T, self.schema.sizes, strict=True)
        return tuple(np.bincount(column, minlength=size) > 0 for column, size in columns)

    def dense(self) -> Array:
        """Return the joint probabilities with one axis for each attribute."""
        check_listed(self.schema)
        joint = np.zeros(self.schema.sizes)
        joint[tuple(self.codes.T)] = self.weights
        return joint


def claim_of(belief: Belief | Gaussian, otherwise: Claim = "exact") -> Claim:
    """Return what a figure claims: it holds for a model only where the belief is one."""
    return "model" if belief.is_model else otherwise


def check_listed(schema: Schema) -> None:
    """Raise if the joint table has too many cells to be listed."""
    size = float(np.prod([float(size) for size in schema.sizes]))
    if size > LARGEST_LISTED:
        raise TooLargeError(
            f"the joint table of {len(schema)} attributes has {size:.3g} cells, more than {LARGEST_LISTED}; "
            "take fewer attributes or coarser bins, or a tree belief and one adversary at a time."
        )


def check_one_belief(belief: object) -> None:
    """Raise for a set of beliefs, which only the figure of one adversary takes, and for a Gaussian."""
    fix = (
        "Only prior_leakage takes several: call this for each. A Gaussian has no records to list: use "
        "gaussian_leakage, or gaussian_audit for everyone."
    )
    check_is("belief", belief, Belief, fix)


def check_query(belief: Belief, query: Query) -> None:
    """Raise unless the query asks about attributes of the belief, coded alike."""
    for attribute in query.schema:
        if attribute.name not in belief.schema:
            raise unknown("attribute of the belief", attribute.name, belief.schema.names)
        if belief.schema[attribute.name].size != attribute.size:
            raise InputError(
                f"the query codes {attribute.name!r} with {attribute.size} values, the belief with "
                f"{belief.schema[attribute.name].size}; make it from the belief's schema."
            )


def cells_of(belief: Belief, query: Query) -> Cells:
    """List the records of the query's attributes that the belief holds possible."""
    check_one_belief(belief)
    check_query(belief, query)
    schema, claim = query.schema, claim_of(belief)
    if not belief.knows_joints and len(schema) > 2:
        raise InputError(
            "a pairwise belief knows no joint of the query's attributes; use a joint belief, or a tree."
        )
    if belief.records is not None and not belief.smoothing:  # smoothing makes every combination possible
        columns = [belief.schema.index(name) for name in schema.names]
        merged = distinct_records(schema, belief.records.codes[:, columns], belief.records.weights)
        counted = None if belief.sample_size is None else merged.weights
        return Cells(schema, merged.codes.astype(np.intp), merged.weights / merged.total, counted, claim)
    check_listed(schema)
    joint = belief.joint(schema.names)
    codes = np.argwhere(joint > 0)
    return Cells(schema, codes, joint[tuple(codes.T)], None, claim)
