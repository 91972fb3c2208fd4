"""What the leakage figures cost against the size of the problem, in seconds of the machine it runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

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
from sidelight.studies.study import Reading, StudyResult, Verdict, Work, seconds_of

Ready = Callable[[], object]
"""A step that is ready to be measured."""


@dataclass(frozen=True)
class Cost:
    """The seconds of one step at growing sizes, after one run that compiles and warms up."""

    step: str  # what is computed
    unit: str  # what the sizes count
    sizes: tuple[int, ...]  # the sizes
    seconds: tuple[float, ...]  # the least of three wall times at each size


def run(quick: bool = False) -> list[Cost]:
    """Measure every step; with `quick` at the smaller sizes only."""
    most = 3 if quick else 9
    counts = (5, 10, 20, 40, 80)[:most]
    return [
        _measure("generic bound", "values of secret and neighbour", (30, 100, 300, 1000)[:most], _generic),
        _measure("all pairs, exact", "binary attributes", counts, partial(_pairs, "grr")),
        _measure("all pairs, generic", "binary attributes", counts, partial(_pairs, "any")),
        _measure("exact total", "cells of the joint", (2**10, 2**14, 2**18, 2**22)[:most], exact_total),
        _measure("tree totals, every secret", "binary attributes", counts, _trees),
        _measure("surrogates of a pair", "surrogates", (100, 1000, 10_000)[:most], surrogates),
    ]


def cost_figure(costs: Sequence[Cost]) -> Figure:
    """Return the six costs as small panels of seconds against size, both on logarithmic scales."""
    figure, panels = canvas(10, 5.5, 3, 2)
    for panel, cost in zip(panels, costs, strict=True):
        panel.loglog(cost.sizes, cost.seconds, marker="o")
        panel.set(title=cost.step, xlabel=cost.unit, ylabel="seconds")
        panel.grid(visible=True, which="both", alpha=0.3)
    return figure


def _measure(step: str, unit: str, sizes: Sequence[int], prepare: Callable[[int], Ready]) -> Cost:
    seconds = []
    for size in sizes:
        work = prepare(size)
        work()  # compiles and warms up, which is not what is measured
        seconds.append(min(seconds_of(work) for _ in range(3)))
    return Cost(step, unit, tuple(sizes), tuple(seconds))


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


def _judge_cost(costs: list[Cost]) -> StudyResult:
    rows = [(c.step, c.unit, *point) for c in costs for point in zip(c.sizes, c.seconds, strict=True)]
    slowest = max(costs, key=lambda cost: cost.seconds[-1])
    size = f"{slowest.sizes[-1]} {slowest.unit}"
    reason = f"the slowest, {slowest.step}, takes {slowest.seconds[-1]:.2g} s for {size}"
    return StudyResult(Verdict("measured", reason), {}, ("step", "unit", "size", "seconds"), tuple(rows))


STUDIES = {"leakage-cost": Reading(Work("leakage-cost", run, minutes=1), _judge_cost, cost_figure)}
