"""Errors of `best` beside those of other estimators, on a grid of tables, budgets and people.

`python -m bench.estimates development` shows the cells that settings were chosen on: the first columns of all
tables, round exponents and sizes. `fresh` (the default) has others: a random half of every table's rows, its
later columns or, where there are few, pairs of neighbours as one, numbers in 7 bins; other stars, exponents,
sizes and seeds. Reports are simulated from counts: everybody reports one attribute (SMP), by randomised
response or by unary encoding, whichever has less noise. A cell is lost if the error is more than 1.02 times
that of another estimator, by a paired interval that is corrected for the number of cells.

    python -m bench.estimates [HALF [CSV [all|tables|few|many [PROCESSES [SEED]]]]]

Another seed draws other reports; the rows of tables stay those of their half.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from bench.frequency_peers import PEERS, Given
from bench.timing import DATA
from sidelight.estimation.averaging import improved
from sidelight.estimation.shrinkage import least_risk
from sidelight.estimation.unbiased import Unbiased
from sidelight.foundation.arrays import Array, Whole, to_simplex

TABLES = (
    "adult", "nursery", "clave", "nyc_taxi_sample", "geolife_sample", "cardio", "mushroom", "celeba_attr",
    "smart_grid_augmented", "sf_cabs_sample", "lfw_attr_sample", "nyse_fundamentals", "simfin_us_balance",
)  # fmt: skip
STARS = {
    "development": ((4, 4, 0.5), (4, 4, 0.9), (4, 10, 0.9), (4, 10, 0.1)),
    "fresh": ((5, 5, 0.4), (3, 9, 0.7), (9, 4, 0.6)),
}
SEEDS = {"development": 20_260_101, "fresh": 20_261_117}
POWERS = {"development": (0.0, 0.5, 1.0, 1.5, 2.0), "fresh": (0.0, 0.4, 0.8, 1.1, 1.6, 2.0)}
EVEN = {"development": (2, 3, 5, 20), "fresh": (2, 6, 12, 25)}
EXTREME = {"development": (2, 3, 5, 10, 20, 100, 1_000), "fresh": (2, 6, 12, 25, 60, 300)}
BINS = {"development": 10, "fresh": 7}
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
PEOPLE = (1_000, 10_000)
TRIALS = 60
WORSE = 1.02
_NO_ERROR = 1e-12
_COLUMNS, _VALUES, _FEWEST, _MANY = 12, 50, 4, 100


@dataclass(frozen=True, eq=False)
class Cell:
    """Attributes with these frequencies, those with the same domain sharing their values."""

    name: str
    truths: tuple[Array, ...]
    domains: tuple[tuple[int, ...], ...]
    people: int
    epsilon: float


def grid(half: str, part: str = "all") -> list[Cell]:
    """Return the cells of one half, or of its "tables", of its "few" and "many" values that are synthetic."""
    tables = [*_tables(half)] if part in ("all", "tables") else []
    made = [] if part == "tables" else [*_stars(half), *_shapes(half)]
    if part in ("few", "many"):
        made = [one for one in made if (len(one[1][0]) > _MANY) == (part == "many")]
    sets = [*tables, *made]
    return [
        Cell(name, truths, domains, people, epsilon)
        for name, truths, domains in sets
        for people in PEOPLE
        for epsilon in EPSILONS
    ]


Set = tuple[str, tuple[Array, ...], tuple[tuple[int, ...], ...]]


def _tables(half: str) -> Iterator[Set]:
    import pyarrow.parquet as pq

    for name in TABLES:
        if not (DATA / f"{name}.parquet").exists():
            print(f"{name} is left out: no such table in {DATA}")
            continue
        table = pq.read_table(DATA / f"{name}.parquet")
        columns = [_coded(table[column], BINS[half]) for column in table.column_names]
        kept = [column for column in columns if 1 < len(column[0]) <= _VALUES]
        first, later = kept[:_COLUMNS], kept[_COLUMNS : 2 * _COLUMNS]
        if half == "fresh":
            first = later if len(later) >= _FEWEST else _pairs(kept)
            rows = np.random.default_rng([SEEDS[half], len(name)]).permutation(table.num_rows)
            first = [(values, codes[rows[: table.num_rows // 2]]) for values, codes in first]
        domains: dict[tuple[str, ...], list[int]] = {}
        truths = []
        for place, (values, codes) in enumerate(first):
            counts = np.bincount(codes[codes >= 0], minlength=len(values))
            domains.setdefault(values, []).append(place)
            truths.append(counts / counts.sum())
        yield name, tuple(truths), tuple(tuple(places) for places in domains.values())


Column = tuple[tuple[str, ...], np.ndarray]


def _coded(column: Any, bins: int) -> Column:
    """Return values and codes, -1 for none; many numbers lie in bins, equally wide but for the tails."""
    known = ~np.asarray(column.is_null())
    given = column.drop_null().to_numpy(zero_copy_only=False)
    codes = np.full(len(known), -1)
    if np.issubdtype(given.dtype, np.number) and len(np.unique(given)) > bins:
        low, high = np.quantile(given, [0.01, 0.99])
        places = ((given - low) / max(high - low, 1e-300) * bins).astype(np.int64)
        codes[known] = np.clip(places, 0, bins - 1)
        return tuple(f"{low + i * (high - low) / bins:.6g}" for i in range(bins)), codes
    values, codes[known] = np.unique(given.astype(str), return_inverse=True)
    return tuple(values.tolist()), codes


def _pairs(columns: list[Column]) -> list[Column]:
    """Return neighbouring columns as one, where that has few values."""
    pairs = []
    for (one, first), (two, second) in pairwise(columns):
        if len(one) * len(two) <= _VALUES and len(pairs) < _COLUMNS:
            codes = np.where((first < 0) | (second < 0), -1, first * len(two) + second)
            pairs.append((tuple(f"{a}, {b}" for a in one for b in two), codes))
    return pairs


def _stars(half: str) -> Iterator[Set]:
    """Return the marginals of Corr-RR's star model: the first is uneven, the others lean on it."""
    for attributes, values, correlation in STARS[half]:
        first = 1 / np.arange(1, values + 1)
        first /= first.sum()
        other = correlation * first + (1 - correlation) / values
        truths = (first, *[other] * (attributes - 1))
        yield f"star{attributes}x{values} r{correlation:g}", truths, (tuple(range(attributes)),)


def _shapes(half: str) -> Iterator[Set]:
    for size in (10, 100, 1_000):
        for power in POWERS[half]:
            share = 1 / np.arange(1, size + 1) ** power
            yield f"Zipf {power:g} k={size}", (share / share.sum(),), ((0,),)
    for size in EVEN[half]:
        yield f"uniform k={size}", (np.full(size, 1 / size),), ((0,),)
    for size in EXTREME[half]:
        rest = np.full(size - 1, 1 / (size - 1))
        yield f"point k={size}", (np.concatenate([[1.0], 0 * rest]),), ((0,),)
        yield f"99-1 k={size}", (np.concatenate([[0.99], 0.01 * rest]),), ((0,),)


def probabilities(size: int, epsilon: float) -> tuple[float, float, bool]:
    """Return how likely a value's own report is, and another's, and whether it is randomised response."""
    e = math.exp(epsilon)
    if size < 3 * e + 2:
        return e / (e + size - 1), 1 / (e + size - 1), True
    return 0.5, 1 / (e + 1), False


def law_of(counts: Whole, asked: int, people: int, epsilon: float) -> tuple[Given, Unbiased]:
    """Return what estimators are given of the reports of some people, and its law."""
    size = len(counts)
    keep, lie, is_response = probabilities(size, epsilon)
    gap = keep - lie
    none, full = lie * (1 - lie) / gap**2, (keep * (1 - 2 * lie) + lie**2) / gap**2
    flat = np.ones(size)
    law = Unbiased(
        (counts / asked - lie) / gap, none / asked * flat, ((full - none) / asked - 1 / people) * flat,
        (1 / people - 1 / asked) * flat, asked, is_response,
    )  # fmt: skip
    variances = np.maximum(law.variance(to_simplex(law.estimate)), 1e-14)
    return Given(law.estimate, variances, counts, asked, keep, lie, is_response), law


def reported(share: Array, people: int, asked: int, epsilon: float, rng: np.random.Generator) -> tuple:
    """Return the frequencies of drawn people, what estimators are given of some's reports, and its law."""
    population = rng.multinomial(people, share)
    holders = rng.multivariate_hypergeometric(population, asked, method="marginals")
    keep, lie, is_response = probabilities(len(share), epsilon)
    if is_response:
        honest = rng.binomial(holders, keep - lie)
        counts = honest + rng.multinomial(asked - honest.sum(), np.full(len(share), 1 / len(share)))
    else:
        counts = rng.binomial(holders, keep) + rng.binomial(asked - holders, lie)
    return population / people, *law_of(counts, asked, people, epsilon)


def trial(cell: Cell, rng: np.random.Generator) -> dict[str, float]:
    """Return each estimator's mean squared error over attributes and values in one collection."""
    count = len(cell.truths)
    asked = np.maximum(rng.multinomial(cell.people, np.full(count, 1 / count)), 1)
    drawn = [
        reported(share, cell.people, int(some), cell.epsilon, rng)
        for share, some in zip(cell.truths, asked, strict=True)
    ]
    truths, given, laws = (list(column) for column in zip(*drawn, strict=True))
    results = {name: [peer(item) for item in given] for name, peer in PEERS.items()}
    results["best of 0.1"] = [np.empty(0)] * count
    for places in cell.domains:
        raw = np.stack([given[place].estimate for place in places])
        spread = np.array([given[place].variances.sum() for place in places])
        for place, one in zip(places, least_risk(raw, spread), strict=True):
            results["best of 0.1"][place] = one
    results["ours"] = [found.mean for found in improved(laws, cell.domains)]
    return {
        name: float(np.mean([((one - truth) ** 2).mean() for one, truth in zip(found, truths, strict=True)]))
        for name, found in results.items()
    }


def measured(task: tuple[Cell, int, int]) -> dict[str, Array]:
    """Return the errors of every trial of a cell, by estimator."""
    cell, seed, place = task
    rng = np.random.default_rng([seed, place])
    trials = [trial(cell, rng) for _ in range(TRIALS)]
    return {name: np.array([one[name] for one in trials]) for name in trials[0]}


def lost(ours: Array, other: Array, cells: int) -> tuple[float, bool]:
    """Return the ratio of mean errors, and whether it is above 1.02 by the corrected paired interval."""
    z = NormalDist().inv_cdf(1 - 0.05 / cells)
    excess = ours - WORSE * other
    low = excess.mean() - z * excess.std(ddof=1) / math.sqrt(len(excess))
    return float(ours.mean() / max(other.mean(), _NO_ERROR)), bool(low > _NO_ERROR)


def family(cell: Cell) -> str:
    """Return the kind of frequencies that a cell has."""
    if cell.name in TABLES:
        return "tables"
    if cell.name.startswith("star"):
        return "stars"
    kind, _, rest = cell.name.partition(" ")
    return f"Zipf k={rest.partition('=')[2]}" if kind == "Zipf" else kind


def interval(ours: Array, other: Array, cells: int) -> tuple[float, float, float]:
    """Return the ratio of mean errors with its corrected paired interval (delta method)."""
    ratio = float(ours.mean() / max(other.mean(), _NO_ERROR))
    z = NormalDist().inv_cdf(1 - 0.05 / cells)
    reach = z * (ours - ratio * other).std(ddof=1) / math.sqrt(len(ours)) / max(other.mean(), _NO_ERROR)
    return ratio, ratio - reach, ratio + reach


def by_family(cells: list[Cell], found: dict[int, dict[str, Array]]) -> Iterator[str]:
    """Yield a line for every family and rival: the median ratio, the largest with its interval, losses."""
    yield "| family, cells | other estimator | median ratio | largest, with its interval | cells lost |"
    yield "| --- | --- | --- | --- | --- |"
    for kind in dict.fromkeys(map(family, cells)):
        places = [place for place, cell in enumerate(cells) if family(cell) == kind]
        for name in (name for name in found[places[0]] if name != "ours"):
            pairs = [(found[place]["ours"], found[place][name]) for place in places]
            each = [interval(*pair, len(cells)) for pair in pairs]
            ratio, low, high = max(each)
            count = sum(lost(*pair, len(cells))[1] for pair in pairs)
            middle = float(np.median([one[0] for one in each]))
            largest = f"{ratio:.2f} ({max(low, 0):.2f} to {high:.2f})"
            yield f"| {kind}, {len(places)} | {name} | {middle:.2f} | {largest} | {count} |"


def main(
    half: str = "fresh", output: str | None = None, part: str = "all", processes: str = "", seed: str = ""
) -> None:
    """Print which ratios of errors are typical and which cells are lost; write all ratios to a CSV file."""
    cells = grid(half, part)
    trial(cells[0], np.random.default_rng(0))  # compiles
    tasks = [(cell, int(seed or SEEDS[half]), place) for place, cell in enumerate(cells)]
    order = sorted(range(len(tasks)), key=lambda place: -sum(map(len, cells[place].truths)))
    with ProcessPoolExecutor(int(processes or os.cpu_count() or 1)) as pool:
        found = dict(zip(order, pool.map(measured, [tasks[place] for place in order]), strict=True))
    names = [name for name in found[0] if name != "ours"]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    losses: dict[str, list[str]] = {name: [] for name in names}
    lines = ["cell,people,epsilon,error," + ",".join(names)]
    for place, cell in enumerate(cells):
        for name in names:
            ratio, is_lost = lost(found[place]["ours"], found[place][name], len(cells))
            ratios[name].append(ratio)
            if is_lost:
                losses[name].append(f"{cell.name} n={cell.people} eps={cell.epsilon:g}: {ratio:.2f}")
        own = f"{cell.name},{cell.people},{cell.epsilon:g},{found[place]['ours'].mean():.3g}"
        lines.append(",".join([own, *(f"{ratios[name][-1]:.3f}" for name in names)]))
    if output is not None:
        Path(output).write_text("\n".join(lines) + "\n")
    print(f"{half}: {len(cells)} cells, {TRIALS} trials")
    for name in names:
        middle = math.exp(float(np.mean(np.log(np.maximum(ratios[name], 1e-6)))))
        most, count = max(ratios[name]), len(losses[name])
        print(f"{name}: geometric mean {middle:.2f}, largest {most:.2f}, lost {count}")
        for line in losses[name]:
            print(f"    {line}")
    print("\n".join(by_family(cells, found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
