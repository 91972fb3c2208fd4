"""How well a population predicts records that it has not seen, beside a tree and a Bayesian network.

`python -m bench.population` prints the mean log-likelihood of held-out records, in nats, for every table of
the data folder: at most 18,000 rows to fit to, at most 1,000 to test on, the same for all. The Bayesian
network is pyAgrum's hill climbing (BIC, smoothing 0.5), where pyAgrum is installed.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import sidelight as sl
from bench.timing import DATA
from sidelight.belief import Population
from sidelight.foundation.arrays import Array, Codes
from sidelight.schema import Schema
from sidelight.sources.counts import distinct_records

MOST_FITTED = 18_000
MOST_TESTED = 1_000
MARGIN = 0.05
"""The network may be better by so much."""
PROMISED = {"adult": 20.0, "celeba_attr": 20.0}


def main(names: list[str] | None = None) -> int:
    """Print one row a table; return 1 if a promise is broken."""
    print(f"\nheld-out nats a record (at most {MOST_FITTED:,} rows to fit, {MOST_TESTED:,} to test)")
    heads = ("table", "attributes", "alone", "tree", "network", "population", "gain told", "seconds")
    print(f"{heads[0]:<24}" + "".join(f"{head:>12}" for head in heads[1:]))
    paths = [path for path in sorted(DATA.glob("*.parquet")) if not names or path.stem in names]
    missed = [path.stem for path in paths if not _compare(path)]
    print(f"worse than the tree, than the network by {MARGIN}, or late: {', '.join(missed) or 'none'}")
    return int(bool(missed))


def _compare(path: Path) -> bool:
    table = sl.read(path)
    codes = np.random.default_rng(0).permutation(table.codes())
    held = min(MOST_TESTED, len(codes) // 10)
    tested, fitted = codes[:held], codes[held : held + MOST_FITTED]
    start = time.perf_counter()
    population = Population.fit(table.schema, fitted)
    seconds = time.perf_counter() - start
    ours = float(population.log_records(tested).mean())
    alone = float(_marginals(table.schema, fitted, tested).mean())
    tree = float(_tree(table.schema, fitted, tested).mean())
    network = float(_network(table.schema, fitted, tested).mean()) if find_spec("pyagrum") else np.nan
    figures = (
        f"{alone:>12.3f}{tree:>12.3f}{network:>12.3f}{ours:>12.3f}{population.gain:>12.3f}{seconds:>12.1f}"
    )
    print(f"{path.stem:<24}{len(table.schema):>12}{figures}", flush=True)
    in_time = seconds <= PROMISED.get(path.stem, np.inf)
    return ours >= tree and not ours < network - MARGIN and in_time


def _marginals(schema: Schema, fitted: Codes, tested: Codes) -> Array:
    logs = np.zeros(len(tested))
    for place, size in enumerate(schema.sizes):
        counts = np.bincount(fitted[:, place], minlength=size) + 0.5 / size
        logs += np.log(counts / counts.sum())[tested[:, place]]
    return logs


def _tree(schema: Schema, fitted: Codes, tested: Codes) -> Array:
    records = distinct_records(schema, fitted, np.ones(len(fitted)))
    tree = sl.Belief.tree_of(sl.Belief.from_records(records, smoothing=1.0)).tree
    if tree is None:
        raise AssertionError("a belief that is a tree has one")
    return tree.log_records(tested)


def _network(schema: Schema, fitted: Codes, tested: Codes) -> Array:
    import pandas as pd
    import pyagrum as gum

    names = [f"a{place}" for place in range(len(schema))]
    known = gum.BayesNet()
    for name, size in zip(names, schema.sizes, strict=True):
        known.add(gum.RangeVariable(name, "", 0, size - 1))
    learner = gum.BNLearner(pd.DataFrame(fitted.astype(int), columns=names), known)
    learner.useScoreBIC()
    learner.useSmoothingPrior(0.5)
    learner.useGreedyHillClimbing()
    network = learner.learnBN()
    logs = np.zeros(len(tested))
    for name in names:
        chances = network.cpt(name)
        # pyAgrum's arrays have their axes in the reverse order of the names
        axes = [tested[:, names.index(axis)] for axis in reversed(chances.names)]
        logs += np.log(chances.toarray()[tuple(axes)])
    return logs


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
