"""Speed of the attacks: a million records inferred and a network trained.

`python -m bench.attacks` prints the promised times; `python -m bench.attacks --device` trains networks on the
CPU and, where there is one, on a GPU, and prints both times and their ratio (see `devices`).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from bench import devices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sidelight.attacks import Numbers
    from sidelight.belief import Belief

RECORDS = 1_000_000
PEOPLE = 50_000
ROWS = 50_000
LEVELS = (0.5, 1.0, 2.0, 5.0, 10.0)


def main(arguments: list[str] | None = None) -> None:
    """Print the times of the Bayes attack and of the MLP attack, or compare devices."""
    if "--device" in (arguments or []):
        devices.main()
        return
    print("\nattacks")
    print(f"{'step':<64}{'seconds':>10}{'promised':>10}")
    for mechanism in ("grr", "oue"):
        name = f"Bayes, {RECORDS:,} records, 10 attributes of 10 values, tree, {mechanism}"
        print(f"{name:<64}{_bayes(mechanism):>10.2f}{10:>10}")
    name = f"Bayes, {PEOPLE:,} records, 10 attributes of 10 values, their own joint, grr"
    print(f"{name:<64}{_bayes_joint():>10.2f}{10:>10}")
    name = f"noise-aware MLP, {ROWS:,} rows, 40 epochs, cpu"
    print(f"{name:<64}{_train():>10.2f}{60:>10}")


def _tree() -> Belief:
    import sidelight as sl

    rng = np.random.default_rng(1)
    rows = {(f"a{(i - 1) // 2}", f"a{i}"): rng.dirichlet(np.ones(10), size=10) for i in range(1, 10)}
    return sl.Belief.from_tree(sl.belief.Tree.from_conditionals("a0", rng.dirichlet(np.ones(10)), rows))


def _bayes(mechanism: str) -> float:
    codes = np.random.default_rng(2).integers(0, 10, size=(RECORDS, 10)).astype(np.uint16)
    return _inferred(_tree(), codes, mechanism)


def _bayes_joint() -> float:
    """Return the seconds where the belief is the joint of the very records, hardly two of which are alike."""
    import sidelight as sl
    from sidelight.sources.counts import distinct_records

    schema = _tree().schema
    codes = np.minimum(np.random.default_rng(3).geometric(0.25, size=(PEOPLE, 10)) - 1, 9).astype(np.uint16)
    records = distinct_records(schema, codes, np.ones(PEOPLE))
    return _inferred(sl.Belief.from_records(records), codes, "grr")


def _inferred(belief: Belief, codes: NDArray[np.uint16], mechanism: str) -> float:
    import sidelight as sl
    from sidelight.attacks import BayesAttacker, release

    reports = release(codes, belief.schema, sl.Plan.uniform(belief.schema, mechanism, 1.0), seed=1)
    start = time.perf_counter()
    BayesAttacker(belief).posterior(reports, "a0").mode()
    return time.perf_counter() - start


def _records(rows: int) -> Numbers:
    from sidelight.attacks import Numbers

    rng = np.random.default_rng(2)
    parts = rng.lognormal(10, 1, size=(rows, 5))
    columns = {f"part {i}": parts[:, i] for i in range(5)} | {"total": parts.sum(axis=1)}
    return Numbers.of(columns, logarithmic=list(columns))


def _train() -> float:
    from sidelight.attacks import Noise, fit_aware
    from sidelight.attacks.learners import Schedule

    own, schedule = _records(ROWS), Schedule(epochs=40, device="cpu")
    start = time.perf_counter()
    fit_aware(own, ["total"], Noise(), LEVELS, "mlp", schedule=schedule)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(sys.argv[1:])
