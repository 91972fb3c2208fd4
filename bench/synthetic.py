"""Synthetic people: ours beside mbi's (McKenna et al. 2019), errors of marginals and seconds.

Everyone reports one pair of attributes, and both routes start from the same reports: ours from
`estimate_pairs`, mbi from the unbiased tables with their noise, by mirror descent as its authors recommend.
The error is that of the synthetic people's tables against those who reported: the mean over all pairs (or all
threes) of the total variation. mbi brings jax and is none of our dependencies: SIDELIGHT_MBI names the Python
of an environment that has it.

    SIDELIGHT_MBI=/path/to/python python -m bench.synthetic [TRIALS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

import sidelight as sl
from bench.pairs import Real
from sidelight.estimation.set_tables import check_sets, set_tables
from sidelight.estimation.synthetic import synthetic_people

TABLES = {
    "nursery": Real("nursery", ("parents", "has_nurs", "form", "housing", "social", "health", "class")),
    "adult": Real("adult", ("age", "education", "marital-status", "relationship", "sex", "income")),
    "celeba": Real(
        "celeba_attr",
        ("Male", "Smiling", "Young", "Heavy_Makeup", "Wearing_Lipstick", "Attractive", "Bangs", "Bald"),
    ),
}
PEOPLE, BUDGETS = 10_000, (1.0, 4.0)
_PEER = """
import sys, time
import numpy as np
import jax
jax.config.update("jax_enable_x64", True)
from mbi import Domain, LinearMeasurement
from mbi.estimation import MirrorDescent
given = np.load(sys.argv[1])
names = [f"x{i}" for i in range(len(given["sizes"]))]
domain = Domain(names, given["sizes"].tolist())
people = int(given["people"])
measured = []
for k, (a, b) in enumerate(given["pairs"]):
    cells, noise = given[f"table{k}"] * people, float(given[f"noise{k}"]) * people
    measured.append(LinearMeasurement(cells, (names[a], names[b]), stddev=noise))
seconds = []
for _ in range(2):  # the second time everything is compiled
    start = time.perf_counter()
    model = MirrorDescent().estimate(domain, measured, known_total=people)
    made = model.synthetic_data(people)
    seconds.append(time.perf_counter() - start)
columns = np.column_stack([np.asarray(made.data[name]) for name in names])
np.savez(sys.argv[2], codes=columns, seconds=seconds)
"""


def error(schema: sl.Schema, codes: np.ndarray, records: np.ndarray, order: int) -> float:
    """Return the mean total variation of the tables of all sets of so many attributes."""
    found = []
    for columns in combinations(range(len(schema)), order):
        sizes = [schema.sizes[i] for i in columns]
        shares = [
            np.bincount(
                np.ravel_multi_index(rows[:, columns].T.astype(np.intp), sizes), minlength=np.prod(sizes)
            )
            / len(rows)
            for rows in (codes, records)
        ]
        found.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return float(np.mean(found))


def ours(reports: sl.protocols.RecordReports) -> tuple[np.ndarray, float]:
    """Return our synthetic people, and the seconds from reports to records."""
    start = time.perf_counter()
    made = synthetic_people(sl.estimate_pairs(reports))
    return made.codes, time.perf_counter() - start


def peer(reports: sl.protocols.RecordReports, python: str) -> tuple[np.ndarray, float, float]:
    """Return mbi's synthetic people, and its seconds at first and once it is compiled."""
    schema = reports.protocol.schema
    tables = set_tables([reports.aggregate()], check_sets(schema, None), "collected")
    given: dict[str, object] = {"sizes": schema.sizes, "people": len(reports)}
    given["pairs"] = [[schema.index(name) for name in names] for names in tables]
    for k, table in enumerate(tables.values()):
        assert table.cells is not None
        even = np.full(table.cells.estimate.size, 1 / table.cells.estimate.size)
        given[f"table{k}"] = table.cells.estimate
        given[f"noise{k}"] = np.sqrt(table.cells.variance(even).mean())
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = (Path(folder) / f"{name}.npz" for name in ("asked", "answer"))
        np.savez(asked, **given)  # type: ignore[arg-type]
        subprocess.run([python, "-W", "ignore", "-c", _PEER, str(asked), str(answer)], check=True)
        with np.load(answer) as found:
            return found["codes"], *(float(part) for part in found["seconds"])


def trial(source: Real, epsilon: float, seed: int, python: str | None) -> Mapping[str, float]:
    """Return errors and seconds of both on the same reports."""
    schema = source.schema()
    records = source.draw(np.random.default_rng(seed), PEOPLE)
    reports = sl.protocols.pairs(schema, epsilon).randomise(records, seed=seed)
    codes, seconds = ours(reports)
    row = {
        "pairs": error(schema, codes, records, 2),
        "threes": error(schema, codes, records, 3),
        "s": seconds,
    }
    if python:
        theirs, first, then = peer(reports, python)
        row |= {
            "mbi pairs": error(schema, theirs, records, 2),
            "mbi threes": error(schema, theirs, records, 3),
        }
        row |= {"mbi s, first": first, "mbi s, compiled": then}
    return row


def main(trials: int = 3) -> None:
    """Print a row for each table and budget: means over the trials."""
    python = os.environ.get("SIDELIGHT_MBI")
    if not python:
        print("SIDELIGHT_MBI names no Python with mbi: ours alone")
    for name, source in TABLES.items():
        trial(source, 1.0, 0, None)  # compiles ours
        for epsilon in BUDGETS:
            rows = [trial(source, epsilon, 1 + seed, python) for seed in range(trials)]
            shown = "  ".join(f"{part} {np.mean([row[part] for row in rows]):.4f}" for part in rows[0])
            print(f"{name:8} eps {epsilon:g}: {shown}", flush=True)


if __name__ == "__main__":
    main(*[int(part) for part in sys.argv[1:2]])
