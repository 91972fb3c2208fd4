"""How audits and calibrations grow with attributes and rows, and which sizes are dearer than larger ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

import sidelight as sl

ATTRIBUTES = (5, 10, 20, 40, 80, 160)
ROWS = (10_000, 100_000, 1_000_000, 3_000_000, 10_000_000)
WIDE = (10, 9, 16, 16, 7, 15, 6, 5, 2, 10, 11, 12, 42, 2)
"""Alphabets of which nearly every record is distinct, so that at 10,000,000 rows only pairs can be known."""
CALIBRATED = (5, 10, 16, 18, 20, 21, 22, 40, 80, 160)
"""Up to 20 totals are exact; beyond, bounds take their place, which cost less and leave far less budget."""
HUMP = 1.5
"""A size that takes so many times what a larger one takes is a hump."""


def main() -> None:
    """Print processor seconds of whole audits and calibrations by size."""
    for sizes in ((2,) * 20, WIDE):  # loads the compiled loops
        _audited(300_000, *sizes)
    _calibrated(16)
    grown("audit, 10,000 rows, by binary attributes", ATTRIBUTES, lambda n: _audited(10_000, *(2,) * n))
    grown("audit, 8 attributes of 4 values, by rows", ROWS, lambda rows: _audited(rows, *(4,) * 8))
    grown("audit, 14 attributes as adult's, by rows", ROWS, lambda rows: _audited(rows, *WIDE))
    grown("calibration, by binary attributes", CALIBRATED, _calibrated)


def grown(title: str, sizes: Sequence[int], work: Callable[[int], object]) -> None:
    """Print the seconds of each size, what came out of each if it is a number, and the humps."""
    seconds, results = [], []
    print(f"\n{title}\n" + "".join(f"{size:>12,}" for size in sizes))
    for size in sizes:
        start = time.process_time()
        results.append(work(size))
        seconds.append(time.process_time() - start)
        print(f"{seconds[-1]:>11.2f}s", end="", flush=True)
    print()
    if isinstance(results[0], float):
        print("".join(f"{result:>12.2f}" for result in results) + "  budgets together")
    humps = [
        f"{size:,} ({taken:.2f} s; later {min(seconds[place + 1 :]):.2f} s)"
        for place, (size, taken) in enumerate(zip(sizes[:-1], seconds[:-1], strict=True))
        if taken > HUMP * min(seconds[place + 1 :])
    ]
    print(f"humps: {', '.join(humps) or 'none'}")


def _belief(rows: int, sizes: Sequence[int]) -> sl.Belief:
    rng = np.random.default_rng(len(sizes))
    common = rng.random(rows, dtype=np.float32)
    columns = {}
    for number, size in enumerate(sizes):
        mixed = (common + rng.random(rows, dtype=np.float32)) * np.float32(size / 2)
        columns[f"a{number}"] = np.minimum(mixed, size - 1).astype(np.uint8)
    return sl.Belief.from_data(sl.read(pa.table(columns), few=max(sizes)))


def _audited(rows: int, *sizes: int) -> sl.Audit:
    belief = _belief(rows, sizes)
    return sl.audit(belief, sl.Plan.uniform(belief.schema, "grr", 1.0))


def _calibrated(attributes: int) -> float:
    """Return the budgets that a limit of 1 leaves, together."""
    plan = sl.calibrate(_belief(20_000, (2,) * attributes), 1.0).plan
    return math.fsum(release.epsilon or 0.0 for release in plan.releases)


if __name__ == "__main__":
    main()
