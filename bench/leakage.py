"""Leakage and counting against the loops that papers and packages use."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa

import sidelight as sl
from bench.timing import Row, best_of, show
from sidelight.leakage.generic import generic_worst


def main() -> None:
    """Print the ratios of the counting and leakage kernels."""
    show("counting and leakage", [_generic(), _pairs()])


def _generic() -> Row:
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(1000), size=1000)
    sample = 40
    peer = best_of(lambda: _sorted_loop(rows[:sample], 1.0), 1) * (1000 / sample) ** 2
    plain = best_of(lambda: _sorted_rows(rows[:sample], rows, 1.0), 1) * 1000 / sample
    ours = best_of(lambda: generic_worst(rows, math.exp(-1)))
    return Row("generic leakage, m = t = 1000 (others extrapolated)", peer, plain, ours)


def _sorted_loop(rows: np.ndarray, epsilon: float) -> float:
    """Algorithm 2 as published: sort by ratio, try every prefix, for every ordered pair."""
    lam = math.expm1(epsilon)
    best = 1.0
    for g in rows:
        for h in rows:
            order = np.argsort(-g / h)
            ratios = (1 + lam * np.cumsum(g[order])) / (1 + lam * np.cumsum(h[order]))
            best = max(best, float(ratios.max()))
    return best


def _sorted_rows(some: np.ndarray, rows: np.ndarray, epsilon: float) -> float:
    """The same with one sort for all pairs of a row."""
    lam = math.expm1(epsilon)
    best = 1.0
    for g in some:
        order = np.argsort(-g / rows, axis=1)
        top = 1 + lam * np.cumsum(g[order], axis=1)
        bottom = 1 + lam * np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        best = max(best, float((top / bottom).max()))
    return best


def _pairs() -> Row:
    rng = np.random.default_rng(2)
    columns = pa.table({f"x{i}": rng.integers(0, 2, size=200_000, dtype=np.int8) for i in range(40)})
    connection = duckdb.connect()
    connection.register("people", columns)
    names = columns.column_names
    table = sl.read(columns)

    def grouped() -> None:
        for i, first in enumerate(names):
            for second in names[:i]:
                connection.execute(f"SELECT {first}, {second}, count(*) FROM people GROUP BY ALL").fetchall()

    def plain() -> None:
        codes = table.codes()
        for i in range(40):
            for j in range(i):
                np.bincount(2 * codes[:, i] + codes[:, j], minlength=4)

    return Row(
        "all 780 pairs, 200,000 x 40 binary, from Arrow",
        best_of(grouped, 1),
        best_of(plain, 1),
        best_of(table.pair_counts),
    )
