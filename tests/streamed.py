"""What the tests of streaming collection share: a schema, records, batches in a folder, exact comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from sidelight.protocols import smp
from sidelight.transport import Aggregator, write_batches

SCHEMA = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "xyz"), sl.categorical("c", "pq")))


def records(people: int, seed: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, people)
    return np.stack([first, np.where(rng.random(people) < 0.8, first, 0), first % 2], axis=1).astype(np.uint8)


@pytest.fixture(name="reports")
def reports_fixture():
    return smp(SCHEMA, 1.0).randomise(records(900), seed=2)


@pytest.fixture(name="folder")
def folder_fixture(reports, tmp_path: Path) -> Path:
    write_batches(reports, tmp_path / "in", 9)
    return tmp_path / "in"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[0-9]*.parquet"))


def same_sums(aggregator: Aggregator, *collected) -> bool:
    """Whether the aggregator holds exactly these reports' sums."""
    kept = {part.protocol.name: part for part in aggregator.sums}
    wanted = {item.protocol.name: item.aggregate() for item in collected}
    return kept.keys() == wanted.keys() and all(
        kept[name].people == part.people
        and [p.reports for p in kept[name].parts] == [p.reports for p in part.parts]
        and all(np.array_equal(a.sums, b.sums) for a, b in zip(kept[name].parts, part.parts, strict=True))
        for name, part in wanted.items()
    )
