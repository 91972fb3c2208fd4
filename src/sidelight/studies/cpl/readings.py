"""How paper CPL may have coded its tables, and the leakage that is counted from replicated records.

The paper does not say how it bins numbers. `CODINGS` is the search that was made for it: bins of equal weight
and of equal width, rows with "?" kept or dropped (the public artefact, `ldp-research/LDP-CPL`, drops them),
and values that few records have kept or taken together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.belief import Belief
from sidelight.foundation.arrays import Array, Whole
from sidelight.schema import Schema, categorical
from sidelight.sources.counts import distinct_records
from sidelight.studies.benchmarks import Maker
from sidelight.studies.study import existing_table

FILES = {"CelebA": "celeba_attr", "Adult": "adult", "Cardio": "cardio"}
REPLICATES = 50
_LEFT_OUT = ("split", "id")
_FEW = 12
"""A number of at most so many values is not binned."""


@dataclass(frozen=True)
class Coding:
    """One way to turn a table into codes."""

    bins: int = 0  # of each number; 0 where a table has none
    equal: str = "weight"  # what is equal about them: "weight" or "width"
    drops: bool = False  # whether rows with "?" are dropped
    rare: float = 0.0  # values that a smaller share of the records has are taken together

    @property
    def words(self) -> str:
        """It in words."""
        parts = [f"{self.bins} bins of equal {self.equal}"] if self.bins else ["as it is"]
        parts += ["rows with ? dropped"] if self.drops else []
        parts += [f"values under {self.rare:.0%} together"] if self.rare else []
        return ", ".join(parts)


QUARTILES = Coding(4)
HALVES = Coding(2, "width", drops=True)
CODINGS: dict[str, tuple[Coding, ...]] = {
    "CelebA": (Coding(),),
    "Adult": (
        Coding(4),
        Coding(4, drops=True),
        Coding(10, drops=True),
        HALVES,
        Coding(10, "width", drops=True),
        Coding(4, drops=True, rare=0.01),
        Coding(4, drops=True, rare=0.03),
    ),
    "Cardio": (QUARTILES, Coding(3), Coding(5), Coding(10), Coding(2, "width"), Coding(4, "width")),
}
"""The codings that were tried, by table."""


@cache
def coded(name: str, coding: Coding) -> Belief:
    """Return the belief from a table of the paper in one coding."""
    import pyarrow.parquet as pq

    table = pq.read_table(existing_table(FILES[name]))
    names = [key for key in table.column_names if key not in _LEFT_OUT]
    columns = {key: np.asarray(table[key].to_numpy(zero_copy_only=False)) for key in names}
    if coding.drops:
        kept = np.all([column != "?" for column in columns.values()], axis=0)
        columns = {key: column[kept] for key, column in columns.items()}
    codes = {key: _codes(values, coding) for key, values in columns.items()}
    sizes = {key: int(part.max()) + 1 for key, part in codes.items()}
    schema = Schema(tuple(categorical(key, [str(i) for i in range(size)]) for key, size in sizes.items()))
    rows = np.stack(list(codes.values()), axis=1).astype(np.uint16)
    return Belief.from_records(distinct_records(schema, rows, np.ones(len(rows))), source=name)


def _codes(values: NDArray[Any], coding: Coding) -> Whole:
    """Return the codes of a column: bins of a number of many values, the values of anything else."""
    if coding.bins and values.dtype.kind in "iuf" and len(np.unique(values)) > _FEW:
        shares = np.linspace(0, 1, coding.bins + 1)[1:-1]
        low, high = float(values.min()), float(values.max())
        edges = np.quantile(values, shares) if coding.equal == "weight" else low + (high - low) * shares
        values = np.searchsorted(np.unique(edges), values, side="left")
    found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    is_rare = counts < coding.rare * len(values)
    # all rare values share the code of the first of them
    merged = np.where(is_rare, is_rare.argmax(), np.arange(len(found)))
    return np.unique(merged[codes], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Counted:
    """Leakages of all ordered pairs, counted from guesses after 50 replicates of every record, (n, n)."""

    finite: Array  # the largest finite log-ratio
    artefact: Array  # as the public artefact has it: cells of no count are ignored, and it is cut at epsilon
    infinite: int  # pairs of which some cell was never seen


def count_leakage(belief: Belief, maker: Maker, epsilon: float, seed: int = 1) -> Counted:
    """Replicate, perturb, guess and count (CPL, section III), for every ordered pair."""
    names = belief.schema.names
    views = {part.name: maker(part.size, epsilon).guess_channel().matrix() for part in belief.schema}
    finite, artefact = np.zeros((2, len(names), len(names)))
    infinite = 0
    for (i, seen), (j, secret) in permutations(enumerate(names), 2):
        rng = np.random.default_rng((seed, i, j))
        records = np.rint(belief.joint([secret, seen]) * (belief.sample_size or 0)).astype(np.int64)
        table = rng.multinomial(records[records.sum(axis=1) > 0] * REPLICATES, views[seen]).sum(axis=1)
        high, low, least = _ends(table / table.sum(axis=1, keepdims=True))
        used = high > 0
        logs = np.log(high[used] / least[used])
        infinite += bool((low[used] == 0).any())
        finite[i, j] = logs[low[used] > 0].max(initial=0.0)
        artefact[i, j] = min(float(logs.max(initial=0.0)), epsilon)
    return Counted(finite, artefact, infinite)


def _ends(rows: Array) -> tuple[Array, Array, Array]:
    """Return the largest, the least and the least positive entry of every column."""
    positive = np.where(rows > 0, rows, math.inf).min(axis=0)
    return rows.max(axis=0), rows.min(axis=0), positive
