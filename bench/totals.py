"""Leakage at delta from drawn releases, beside one matrix product and an exponential for each record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sidelight as sl
from bench.timing import DATA, Row, best_of, show

_SAMPLE = 512
"""So many releases the matrix product is timed on; its time grows with their number."""


def main() -> None:
    """Print the times of leakage at delta of two real tables."""
    cases = (("adult", "income", 1e-3, 100_000), ("celeba_attr", "Male", 1e-2, 20_000))
    rows = [_drawn(*case) for case in cases if (DATA / f"{case[0]}.parquet").exists()]
    if not rows:
        print(f"adult, celeba_attr: no such tables at {DATA}; set SIDELIGHT_DATA")
    show("leakage at delta", rows)


def _drawn(name: str, secret: str, delta: float, draws: int) -> Row:
    belief = sl.Belief.from_data(sl.read(DATA / f"{name}.parquet"), "joint")
    plan = sl.Plan.uniform(belief, "grr", 1.0)
    ours = best_of(lambda: sl.leakage_at(belief, plan, secret, delta, draws=draws, seed=1), 1)
    releases = draws * belief.schema[secret].size
    plain = best_of(_matrix_product(belief, plan, secret), 1) * releases / _SAMPLE
    title = f"{name}, {secret}, delta {delta:g}, {draws:,} draws a value (numpy extrapolated)"
    return Row(title, None, plain, ours)


def _matrix_product(belief: sl.Belief, plan: sl.Plan, secret: str) -> Callable[[], None]:
    """Return work that finds ln Pr(release | value) of a sample of releases by one product and exp."""
    records = belief.records
    names = [name for name in belief.schema.names if name != secret]
    columns = records.codes[:, [belief.schema.index(name) for name in names]]
    sizes = [belief.schema[name].size for name in names]
    one_hot = np.concatenate(
        [np.eye(size, dtype=np.float32)[column] for size, column in zip(sizes, columns.T, strict=True)],
        axis=1,
    )
    values = records.codes[:, belief.schema.index(secret)]
    weights = (np.eye(belief.schema[secret].size)[values] * records.weights[:, None]).astype(np.float32)
    people = np.random.default_rng(1).integers(len(columns), size=_SAMPLE)
    logs = []
    for name, column in zip(names, columns.T, strict=True):
        mechanism = plan[name].randomiser()
        logs.append(np.log(mechanism.likelihoods(mechanism.randomise(column[people], seed=1))))
    likelihoods = np.concatenate(logs, axis=1).astype(np.float32)

    def work() -> None:
        for start in range(0, _SAMPLE, 64):
            np.log(np.exp(likelihoods[start : start + 64] @ one_hot.T) @ weights)

    return work


if __name__ == "__main__":
    main()
