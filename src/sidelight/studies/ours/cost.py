"""What the leakage figures cost against the size of the problem, in seconds of the machine it runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np
from matplotlib.figure import Figure

from sidelight.belief import Belief
from sidelight.foundation.arrays import Whole
from sidelight.leakage import pair_matrix, statistical_leakage, total_leakage, tree_totals
from sidelight.mechanisms.channel.generic import generic_worst
from sidelight.plan import Plan
from sidelight.schema import Schema, categorical
from sidelight.sources import Counts
from sidelight.sources.counts import distinct_records
from sidelight.studies.figures import canvas
from sidelight.studies.study import Reading, StudyResult, Work, measured, seconds_of

LONGEST = 60.0
"""Seconds within which every step must come at the sizes that are shown."""
Ready = Callable[[], object]
"""A step that is ready to be measured."""


Row = tuple[str, str, int, float]
"""A step, what its sizes count, one of them, and the least of three wall times there in seconds."""


def run(quick: bool = False) -> list[Row]:
    """Measure every step; with `quick` at the smaller sizes only."""
    counts = (5, 10, 20, 40, 80)
    steps: list[tuple[str, str, tuple[int, ...], Callable[[int], Ready]]] = [
        ("generic bound", "values of secret and neighbour", (30, 100, 300, 1000), _generic),
        ("all pairs, exact", "binary attributes", counts, partial(_pairs, "grr")),
        ("all pairs, generic", "binary attributes", counts, partial(_pairs, "any")),
        ("exact total", "cells of the joint", (2**10, 2**14, 2**18, 2**22), exact_total),
        ("tree totals, every secret", "binary attributes", counts, _trees),
        ("surrogates of a pair", "surrogates", (100, 1000, 10_000), surrogates),
    ]
    rows = []
    for step, unit, sizes, prepare in steps:
        for size in sizes[: 3 if quick else None]:
            work = prepare(size)
            work()  # compiles and warms up, which is not what is measured
            # the least of three: what else the machine does only ever adds time
            rows.append((step, unit, size, min(seconds_of(work) for _ in range(3))))
    return rows


def cost_figure(rows: Sequence[Row]) -> Figure:
    """Return the six costs as small panels of seconds against size, both on logarithmic scales."""
    figure, panels = canvas(10, 5.5, 3, 2)
    for panel, ((step, unit), points) in zip(panels, groupby(rows, lambda row: row[:2]), strict=True):
        panel.loglog(*zip(*(point[2:] for point in points), strict=True), marker="o")
        panel.set(title=step, xlabel=unit, ylabel="seconds")
        panel.grid(visible=True, which="both", alpha=0.3)
    return figure


def _generic(size: int) -> Callable[[], object]:
    rows = np.random.default_rng(1).dirichlet(np.ones(size), size=size)
    return lambda: generic_worst(rows, math.exp(-1))


def _belief(attributes: int, rows: int = 4000) -> Belief:
    """Return a chain of coins, each equal to the one before with probability 0.8."""
    rng = np.random.default_rng(2)
    codes = np.empty((rows, attributes), dtype=np.uint16)
    codes[:, 0] = rng.integers(0, 2, size=rows)
    for column in range(1, attributes):
        codes[:, column] = codes[:, column - 1] ^ (rng.random(rows) < 0.2)  # flips one in five
    schema = Schema(tuple(categorical(f"x{i}", ["no", "yes"]) for i in range(attributes)))
    return Belief.from_records(distinct_records(schema, codes, np.ones(rows)), source="a chain of coins")


def _pairs(mechanism: str, attributes: int) -> Ready:
    belief = _belief(attributes)
    channels = Plan.uniform(belief.schema, mechanism).channels()
    return lambda: pair_matrix(belief, channels, belief.schema.names)


def exact_total(cells: int) -> Callable[[], object]:
    """Return the computation of an exact total over a joint of so many cells."""
    belief = _belief(round(math.log2(cells)))
    channels = Plan.uniform(belief.schema).channels()
    return lambda: total_leakage(belief, channels, "x0", "exact")


def _trees(attributes: int) -> Callable[[], object]:
    belief = Belief.tree_of(_belief(attributes))
    channels = Plan.uniform(belief.schema).channels()
    return lambda: tree_totals(belief, channels)


def surrogates(count: int) -> Callable[[], object]:
    """Return the estimate of a pair with so many surrogates."""
    cells: Whole = np.random.default_rng(3).integers(50, 500, size=(2, 15))
    schema = Schema((categorical("x", ["a", "b"]), categorical("u", [str(i) for i in range(15)])))
    belief = Belief.from_counts(Counts(schema, cells))
    view = Plan.uniform(schema).channels()["u"].matrix()
    return lambda: statistical_leakage(belief, {"u": view}, "x", surrogates=count, seed=1)


def _judge_cost(rows: Sequence[Row]) -> StudyResult:
    largest = {row[0]: row for row in rows}  # the last of each step
    step, unit, size, seconds = max(largest.values(), key=lambda row: row[-1])
    reason = f"the slowest, {step}, takes {seconds:.2g} s for {size} {unit}"
    verdict = measured(seconds <= LONGEST, reason)
    return StudyResult(verdict, {}, ("step", "unit", "size", "seconds"), tuple(rows))


STUDIES = {"leakage-cost": Reading(Work("leakage-cost", run, minutes=1), _judge_cost, cost_figure)}
