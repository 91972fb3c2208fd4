"""Tables of two attributes: the error of ours beside that of a CALM-like route, of products and of SPL + EM.

Everyone has the same people and the same budget of a record. A cell is lost where the paired interval of the
ratio of mean squared errors, corrected for the number of cells, lies above 1.02.

    python -m bench.pairs                    the judged grid, 32 cells
    python -m bench.pairs --trials 60 --tables development --processes 16 --output pairs.csv
    python -m bench.pairs --only lfw --people 1000 --seed 600000    a part of it by other seeds

Settings were chosen on the tables of "development" and, since they were looked at, of "seen"; those of
"judged" are kept apart.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow.parquet as pq

import sidelight as sl
from bench.timing import DATA
from sidelight.advice import advise_pairs
from sidelight.estimation.joint import likeliest_joint
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.arrays import to_simplex
from sidelight.protocols.direct import smp, spl
from sidelight.protocols.sets import pairs as pair_protocol

Records = np.ndarray
Tables = Mapping[tuple[str, str], np.ndarray]
BUDGETS = (0.5, 1.0, 2.0, 4.0)
PEOPLE = (1_000, 10_000)
LOST = 1.02
CALM_ROUNDS = 30


@dataclass(frozen=True)
class Star:
    """Copies of the first attribute with probability `copied`, else uniform; the first may be uneven."""

    attributes: int
    values: int
    copied: float
    uneven: bool = False

    def draw(self, rng: np.random.Generator, people: int) -> Records:
        """Return records."""
        share = np.arange(self.values, 0, -1.0) if self.uneven else np.ones(self.values)
        first = rng.choice(self.values, people, p=share / share.sum())
        others = rng.integers(self.values, size=(people, self.attributes - 1))
        keeps = rng.random(others.shape) < self.copied
        return np.column_stack([first, np.where(keeps, first[:, None], others)]).astype(np.uint16)

    def schema(self) -> sl.Schema:
        """Return attributes that share their values."""
        values = [str(value) for value in range(self.values)]
        return sl.Schema(tuple(sl.categorical(f"x{i}", values) for i in range(self.attributes)))


@dataclass(frozen=True)
class Real:
    """Five columns of a real table; numbers in quarters, at most eight values otherwise."""

    name: str
    columns: tuple[str, ...]

    def draw(self, rng: np.random.Generator, people: int) -> Records:
        """Return rows, each at most once where there are enough."""
        codes = _coded(self.name, self.columns)
        return codes[rng.choice(len(codes), people, replace=len(codes) < people)]

    def schema(self) -> sl.Schema:
        """Return attributes of their own values."""
        sizes = _coded(self.name, self.columns).max(axis=0).astype(int) + 1
        each = zip(self.columns, sizes, strict=True)
        return sl.Schema(tuple(sl.categorical(name, [f"{name} {v}" for v in range(k)]) for name, k in each))


@cache
def _coded(name: str, columns: tuple[str, ...]) -> Records:
    """Return columns as codes: numbers of many values in quarters, rare labels as one."""
    table = pq.read_table(DATA / f"{name}.parquet", columns=list(columns))
    coded = []
    for column in columns:
        values = table.column(column).to_numpy(zero_copy_only=False)
        if values.dtype.kind in "if" and len(np.unique(values)) > 8:
            values = np.searchsorted(np.nanquantile(values, [0.25, 0.5, 0.75]), values)
        _, codes, counts = np.unique(values.astype(str), return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        coded.append(np.minimum(ranks[codes], 7))
    return np.column_stack(coded).astype(np.uint16)


DEVELOPMENT: dict[str, Star | Real] = {
    "star5x3 r.9": Star(5, 3, 0.9),
    "star4x5 r.3 uneven": Star(4, 5, 0.3, uneven=True),
    "adult": Real("adult", ("workclass", "education", "marital-status", "relationship", "sex")),
    "cardio": Real("cardio", ("age", "gender", "cholesterol", "gluc", "cardio")),
    "mushroom": Real("mushroom", ("cap-shape", "odor", "gill-color", "ring-type", "population")),
    "taxi": Real("nyc_taxi_sample", ("weekday", "hour", "duration", "trip_distance", "pickup_longitude")),
    "star5x2 r.6 uneven": Star(5, 2, 0.6, uneven=True),
    "celeba, other columns": Real(
        "celeba_attr", ("Attractive", "Bangs", "Blond_Hair", "High_Cheekbones", "Bald")
    ),
}
SEEN: dict[str, Star | Real] = {
    "star4x4 r.9": Star(4, 4, 0.9),
    "nursery": Real("nursery", ("parents", "has_nurs", "form", "health", "class")),
    "smart grid": Real("smart_grid_augmented", ("tau1", "p1", "g1", "stab", "stabf")),
    "celeba": Real("celeba_attr", ("Male", "Smiling", "Young", "Heavy_Makeup", "Wearing_Lipstick")),
}
JUDGED: dict[str, Star | Real] = {
    "star6x3 r.5": Star(6, 3, 0.5),
    "lfw": Real("lfw_attr_sample", ("Male", "Smiling", "Youth", "Black_Hair", "Bangs")),
    "simfin": Real(
        "simfin_us_balance",
        ("Fiscal Year", "Inventories", "Total Assets", "Long Term Debt", "Total Equity"),
    ),
    "sf cabs": Real("sf_cabs_sample", ("cab", "lat", "lon", "occupied", "speed_mps")),
}
TABLES = {"development": DEVELOPMENT, "seen": SEEN, "judged": JUDGED}
CELLS = len(JUDGED) * len(PEOPLE) * len(BUDGETS)


def true_tables(schema: sl.Schema, records: Records) -> dict[tuple[str, str], np.ndarray]:
    """Return the table of every pair among these people."""
    tables = {}
    for a, b in combinations(range(len(schema)), 2):
        shape = schema.sizes[a], schema.sizes[b]
        codes = records[:, a].astype(np.intp) * shape[1] + records[:, b]
        counts = np.bincount(codes, minlength=shape[0] * shape[1])
        tables[schema.names[a], schema.names[b]] = counts.reshape(shape) / len(records)
    return tables


@cache
def _advised(schema: sl.Schema, epsilon: float, people: int) -> sl.protocols.Design:
    return advise_pairs(schema, epsilon, people).choice


def ours(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """The advised collection: two phases of pairs, or attributes one by one where pairs are not worth it."""
    design = _advised(schema, epsilon, len(records))
    if design.two_phase is None:
        reports = [design.first.randomise(records)]
    else:
        early = design.two_phase.in_first(len(records))
        first = design.first.randomise(records[early])
        parameters = learn_second_phase(design.two_phase, first, people=max(int((~early).sum()), 1))
        reports = [first, parameters.second.randomise(records[~early])]
    estimates = sl.estimate_pairs(reports)
    return {names: table.frequencies for names, table in estimates.tables.items()}  # type: ignore[misc]


def everybody_pairs(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """Our estimator where everyone reports a random pair."""
    estimates = sl.estimate_pairs(pair_protocol(schema, epsilon).randomise(records))
    return {names: table.frequencies for names, table in estimates.tables.items()}  # type: ignore[misc]


def one_by_one(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """Our estimator where everyone reports one attribute: products of its marginals."""
    estimates = sl.estimate_pairs(smp(schema, epsilon, "best").randomise(records))
    return {names: table.frequencies for names, table in estimates.tables.items()}  # type: ignore[misc]


def calm_like(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """All pairs sampled, averaged marginals and Norm-Sub in turns (Zhang et al. 2018, sections 4 and 5)."""
    sums = pair_protocol(schema, epsilon).randomise(records).aggregate()
    tables = {}
    for group, part in zip(sums.protocol.groups, sums.parts, strict=True):
        even = np.full(group.sizes, 1 / group.size)
        tables[group.names] = group.estimate(part) if part.reports else even
    for _ in range(CALM_ROUNDS):
        for name in schema.names:
            held = [names for names in tables if name in names]
            each = [tables[names].sum(axis=1 - names.index(name)) for names in held]
            mean = np.mean(each, axis=0)
            for names, margin in zip(held, each, strict=True):
                axis = names.index(name)
                gap = (mean - margin) / tables[names].shape[1 - axis]
                tables[names] = tables[names] + np.expand_dims(gap, 1 - axis)
        tables = {
            names: to_simplex(cells.reshape(-1)).reshape(cells.shape) for names, cells in tables.items()
        }
    return tables


def products(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """Attributes one by one, the estimator "best", and products of its marginals."""
    estimates = sl.estimate(smp(schema, epsilon, "best").randomise(records))
    return {(a, b): np.outer(estimates[a], estimates[b]) for a, b in combinations(schema.names, 2)}


def split_and_em(schema: sl.Schema, records: Records, epsilon: float) -> Tables:
    """Every attribute with an even part of the budget, and each pair's likeliest table."""
    reports = [spl(schema, epsilon).randomise(records)]
    return {(a, b): likeliest_joint(reports, [a, b]) for a, b in combinations(schema.names, 2)}


Route = Callable[[sl.Schema, Records, float], Tables]
OURS: dict[str, Route] = {"ours": ours, "everybody pairs": everybody_pairs, "one by one": one_by_one}
PEERS: dict[str, Route] = {"calm": calm_like, "product": products, "spl + em": split_and_em}


@dataclass(frozen=True)
class Trial:
    """One simulation: of which table, so many people, at which budget, by which seed."""

    table: str
    people: int
    epsilon: float
    seed: int
    tables: str = "judged"


def run(trial: Trial) -> dict[str, float]:
    """Return the error of every route on the same people: the mean over pairs of the mean over cells."""
    rng = np.random.default_rng([trial.seed, trial.people, round(10 * trial.epsilon)])
    source = TABLES[trial.tables][trial.table]
    schema = source.schema()
    records = source.draw(rng, trial.people)
    truth = true_tables(schema, records)
    errors = {}
    for name, route in (OURS | PEERS).items():
        found = route(schema, records, trial.epsilon)
        errors[name] = float(np.mean([np.mean((found[names] - truth[names]) ** 2) for names in truth]))
    return errors


def ratio(ours: Sequence[float], theirs: Sequence[float], deviations: float) -> tuple[float, float, float]:
    """Return the ratio of mean errors and its paired interval (delta method, on the log scale)."""
    a, b = np.asarray(ours), np.asarray(theirs)
    middle = a.mean() / b.mean()
    error = (a / a.mean() - b / b.mean()).std(ddof=1) / math.sqrt(len(a))
    reach = math.exp(deviations * error)
    return float(middle), float(middle / reach), float(middle * reach)


def main() -> None:
    """Run the grid and print the ratio table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--tables", choices=tuple(TABLES), default="judged")
    parser.add_argument("--only", metavar="TABLE", help="of these tables, this one alone")
    parser.add_argument("--people", type=int, choices=PEOPLE, help="collections of so many people alone")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default=None, help="write every trial's errors to this CSV file")
    given = parser.parse_args()
    chosen = TABLES[given.tables]
    if given.only is not None and given.only not in chosen:
        parser.error(f"--only must be one of {', '.join(chosen)}, got {given.only}.")
    names = list(chosen) if given.only is None else [given.only]
    numbers = PEOPLE if given.people is None else (given.people,)
    cells = [(name, people, epsilon) for name in names for people in numbers for epsilon in BUDGETS]
    trials = [
        Trial(*cell, given.seed + number, given.tables) for number in range(given.trials) for cell in cells
    ]
    with multiprocessing.Pool(given.processes) as pool:
        errors = pool.map(run, trials, chunksize=1)
    if given.output:
        with Path(given.output).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["table", "people", "epsilon", "seed", *errors[0]])
            for trial, row in zip(trials, errors, strict=True):
                writer.writerow([trial.table, trial.people, trial.epsilon, trial.seed, *row.values()])
    _print(cells, trials, errors)


def _print(
    cells: Sequence[tuple[str, int, float]], trials: Sequence[Trial], errors: Sequence[dict[str, float]]
) -> None:
    """Print a line a cell: the ratio of ours to each peer, its interval, and what is lost.

    Intervals are corrected for all cells of the judged grid, also where a part of it runs alone.
    """
    deviations = NormalDist().inv_cdf(1 - 0.05 / 2 / CELLS)
    found: dict[str, list[float]] = {name: [] for name in PEERS}
    lost = 0
    print(f"ratio of ours to each peer, intervals at z = {deviations:.2f} ({len(cells)} cells)")
    for cell in cells:
        rows = [row for trial, row in zip(trials, errors, strict=True)
                if (trial.table, trial.people, trial.epsilon) == cell]  # fmt: skip
        own = [row["ours"] for row in rows]
        shown = []
        for name in PEERS:
            middle, low, high = ratio(own, [row[name] for row in rows], deviations)
            found[name].append(middle)
            lost += low > LOST
            shown.append(f"{name} {middle:.2f} [{low:.2f}, {high:.2f}]{' LOST' if low > LOST else ''}")
        for name in list(OURS)[1:]:
            shown.append(f"{name} {ratio(own, [row[name] for row in rows], deviations)[0]:.2f}")
        print(f"{cell[0]:20} n {cell[1]:6} eps {cell[2]:g}: {'; '.join(shown)}")
    for name, middles in found.items():
        mean = math.exp(float(np.mean(np.log(middles))))
        print(f"{name}: geometric mean {mean:.3f}, largest {max(middles):.3f}")
    print(f"lost: {lost} of {len(cells) * len(PEERS)}")


if __name__ == "__main__":
    main()
