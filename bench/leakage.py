"""Leakage and counting against the loops that papers and packages use."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa

import sidelight as sl
from bench.timing import DATA, Row, best_of, fastest, show
from sidelight.leakage.pair import pair_matrix
from sidelight.mechanisms.channel.generic import generic_worst
from sidelight.studies.ours import cost


def main() -> None:
    """Print the ratios of the counting and leakage kernels."""
    rows = [_generic(), _pairs()]
    if (DATA / "celeba_attr.parquet").exists():
        belief = sl.Belief.from_data(sl.read(DATA / "celeba_attr.parquet"))
        rows += [_matrix(belief, "grr"), _matrix(belief, "any"), _trees(belief)]
    else:
        print(f"celeba_attr: no such table at {DATA}; set SIDELIGHT_DATA")
    rows += [_exact_total(), _surrogates()]
    show("counting and leakage", rows)


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
            order = np.argsort(-g / np.maximum(h, 1e-300))
            ratios = (1 + lam * np.cumsum(g[order])) / (1 + lam * np.cumsum(h[order]))
            best = max(best, float(ratios.max()))
    return best


def _sorted_rows(some: np.ndarray, rows: np.ndarray, epsilon: float) -> float:
    """The same with one sort for all pairs of a row."""
    lam = math.expm1(epsilon)
    best = 1.0
    for g in some:
        order = np.argsort(-g / np.maximum(rows, 1e-300), axis=1)
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

    title = "all 780 pairs, 200,000 x 40 binary, from Arrow"
    return Row(title, best_of(grouped, 1), best_of(plain, 1), best_of(table.pair_counts))


def _matrix(belief: sl.Belief, mechanism: str) -> Row:
    """All figures; what reaches each is worked out when it is read, and the papers' algorithms name none."""
    channels = sl.Plan.uniform(belief.schema, mechanism).channels()
    names = belief.schema.names
    rows = {(a, b): belief.conditional(a, given=b) for a in names for b in names if a != b}
    lists = [pair.tolist() for pair in rows.values()]
    algorithm = _algorithm_1 if mechanism == "grr" else _algorithm_2
    stacked = np.stack(list(rows.values()))
    best = fastest(
        {
            "peer": lambda: [algorithm(pair, 1.0) for pair in lists],
            "plain": lambda: _stacked(stacked, 1.0),
            "ours": lambda: pair_matrix(belief, channels, names).values,
        }
    )
    return Row(f"all 1,560 ordered pairs of CelebA, {mechanism}", best["peer"], best["plain"], best["ours"])


def _algorithm_1(rows: list[list[float]], epsilon: float) -> float:
    """CPL, Algorithm 1 as published, for GRR: every report, every two secret values, in plain Python.

    Lists of a few numbers are where plain Python is at its best: arrays would make it slower.
    """
    keep = math.exp(epsilon)
    total = keep + len(rows[0]) - 1
    best = 1.0
    for report in range(len(rows[0])):
        likely = []
        for row in rows:
            mass = 0.0
            for value, share in enumerate(row):
                mass += share * (keep if value == report else 1.0) / total
            likely.append(mass)
        for first in likely:
            for second in likely:
                if first > best * second:
                    best = first / second
    return math.log(best)


def _algorithm_2(rows: list[list[float]], epsilon: float) -> float:
    """CPL, Algorithm 2 as published: order the values by ratio, try every prefix, for every two rows."""
    lam = math.expm1(epsilon)
    best = 1.0
    for g in rows:
        for h in rows:
            if g is h:
                continue
            order = lambda pair: pair[0] / max(pair[1], 1e-300)  # noqa: E731
            pairs = sorted(zip(g, h, strict=True), key=order, reverse=True)
            top = bottom = 1.0
            for one, other in pairs:
                top += lam * one
                bottom += lam * other
                if top > best * bottom:
                    best = top / bottom
    return math.log(best)


def _stacked(rows: np.ndarray, epsilon: float) -> np.ndarray:
    """All pairs of two values at once in numpy: the better of the two sets of one value."""
    lam = math.expm1(epsilon)
    likely = 1 + lam * rows
    return np.log((likely.max(axis=1) / likely.min(axis=1)).max(axis=1))


def _trees(belief: sl.Belief) -> Row:
    tree = sl.Belief.tree_of(belief)
    channels = sl.Plan.uniform(belief.schema).channels()
    return Row(
        "tree totals of CelebA, 40 secrets",
        None,
        None,
        best_of(lambda: sl.leakage.tree_totals(tree, channels)),
    )


def _exact_total() -> Row:
    work = cost.exact_total(2**22)
    return Row("exact total over 2^22 cells", None, None, best_of(work, 1))


def _surrogates() -> Row:
    work = cost.surrogates(10_000)
    return Row("10,000 surrogates of a pair of 2 x 15 values", None, None, best_of(work, 1))


if __name__ == "__main__":
    main()
