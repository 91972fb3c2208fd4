"""The labelled records of paper CLLDP, section 7.1: four synthetic sets, adult, smart grid.

Healthcare is not available.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import check_choice
from sidelight.labels.collection import LabelledRows
from sidelight.learning.learnt import labelled_rows
from sidelight.schema import Attribute
from sidelight.sources import read
from sidelight.studies.study import existing_table

VALUES, LABELS = 50, 5
SYNTHETIC = ("U(1,50)", "N(25,1)", "N(25,0.3)", "D(25)")
FEVER = np.array([[0.01, 0.22, 0.77], [0.68, 0.16, 0.16]])
"""Table 1: the level of white blood cells (low, normal, high) given flu and HIV."""


def synthetic_conditionals(name: str) -> Array:
    """Return Pr(value | label) of a synthetic set, (5, 50): four labels uniform, the fifth as named."""
    check_choice("name", name, SYNTHETIC)
    rows = np.full((LABELS, VALUES), 1 / VALUES)
    points = np.arange(1, VALUES + 1)
    if name == "D(25)":
        rows[-1] = points == 25
    elif name.startswith("N"):
        deviation = 1.0 if name == "N(25,1)" else math.sqrt(0.3)
        rows[-1] = _rounded_normal(points, 25.0, deviation)
    return rows


def _rounded_normal(points: NDArray[Any], mean: float, deviation: float) -> Array:
    """Return the distribution of a rounded normal variable, its tails added to the first and last point."""
    edges = (np.concatenate([points - 0.5, [points[-1] + 0.5]]) - mean) / deviation
    cumulative = np.array([0.5 * (1 + math.erf(edge / math.sqrt(2))) for edge in edges])
    cumulative[0], cumulative[-1] = 0.0, 1.0
    return np.diff(cumulative)


def synthetic_rows(name: str, people: int, rng: np.random.Generator) -> LabelledRows:
    """Draw records of a synthetic set: labels uniform, values by their label."""
    cumulative = np.cumsum(synthetic_conditionals(name), axis=1)
    labels = rng.integers(0, LABELS, people)
    # the inverse of the distribution function: as many values as lie wholly below a uniform number
    values = (rng.random((people, 1)) > cumulative[labels]).sum(axis=1)
    codes = np.minimum(values, VALUES - 1).astype(np.uint16)[:, None]
    return LabelledRows(codes, labels.astype(np.uint16), (VALUES,), LABELS)


@dataclass(frozen=True, eq=False)
class RealSet:
    """Real records, split into training and testing."""

    name: str  # what to call it
    train: LabelledRows  # 70 % of the records, or of the groups of records that belong together
    test: LabelledRows  # the rest
    attributes: tuple[Attribute, ...]  # the attributes

    @property
    def control(self) -> float:
        """The share of the commonest training label among the test records."""
        common = np.bincount(self.train.labels.astype(np.int64)).argmax()
        return float(np.mean(self.test.labels == common))


def adult(seed: int) -> RealSet:
    """Return the 32,561 training records of adult, split at random."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(existing_table("adult"))
    chosen = table.filter(pc.equal(table["split"], "train")).drop_columns(["split"])
    rows, attributes, _ = labelled_rows(read(chosen, label="adult"), "income")
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = round(0.7 * len(rows))
    return RealSet("adult", rows[order[:cut]], rows[order[cut:]], attributes)


def smart_grid(seed: int, *, with_stab: bool) -> RealSet:
    """Return the 60,000 records of the smart grid, split so that the six rows of one `stab` stay together.

    `stab` determines the label, so the set is used with and without it.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(existing_table("smart_grid_augmented"))
    stab = np.asarray(table["stab"].to_numpy())
    rest = table if with_stab else table.drop_columns(["stab"])
    rows, attributes, _ = labelled_rows(read(rest, label="smart grid"), "stabf")
    train, test = split_by_group(stab, 0.7, seed)
    name = "smart grid with stab" if with_stab else "smart grid"
    return RealSet(name, rows[train], rows[test], attributes)


def split_by_group(
    groups: Sequence[Any] | NDArray[Any], share: float, seed: int
) -> tuple[Positions, Positions]:
    """Return the rows of a share of the groups, and the others; no group is on both sides."""
    distinct, number = np.unique(np.asarray(groups), return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    chosen = np.zeros(len(distinct), dtype=np.bool_)
    chosen[order[: round(share * len(distinct))]] = True
    return np.flatnonzero(chosen[number]), np.flatnonzero(~chosen[number])
