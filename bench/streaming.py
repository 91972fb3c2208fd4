"""Streaming collection: reports a second from a followed folder, small files, and what a checkpoint costs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.timing import Row, best_of, show
from sidelight.protocols import smp, spl
from sidelight.protocols.records import RecordReports, fingerprint
from sidelight.studies.corr_rr.records import schema_of
from sidelight.transport import Aggregator, Follower, write_batches, write_checkpoint
from sidelight.transport.aggregator import Batch

ATTRIBUTES, VALUES = 10, 10
LARGE, SMALL = (20, 100_000), (500, 100)
"""Files, and reports in each."""
BATCHES = 100_000


def main() -> None:
    """Print what a folder of large and of small files costs, and a checkpoint of many batches."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (files, reports) in (("large", LARGE), ("small", SMALL)):
            for protocol in (spl, smp):
                people = files * reports
                path = Path(folder) / f"{name}-{protocol.__name__}"
                collected = protocol(schema_of(ATTRIBUTES, VALUES), 5.0).randomise(_records(people), seed=1)
                write_batches(collected, path, files)
                rows.append(_followed(f"{protocol.__name__} grr, {files} files of {reports} reports", path))
                print(f"{rows[-1].step}: {people / rows[-1].ours:.3g} reports/s")
        show("streaming (numpy: the same files read and counted, nothing checked or kept)", rows)
        _checkpoint(collected, Path(folder) / "checkpoint.json")


def _records(people: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, VALUES, (people, ATTRIBUTES), dtype=np.uint8)


def _followed(step: str, folder: Path) -> Row:
    def ours() -> None:
        (folder / "checkpoint.json").unlink(missing_ok=True)
        with Follower(folder) as follower:
            follower.scan()

    return Row(step, None, best_of(lambda: _counted(folder), 2), best_of(ours, 2))


def _counted(folder: Path) -> np.ndarray:
    """The counts of every column in plain numpy."""
    counts = np.zeros((ATTRIBUTES, VALUES), dtype=np.int64)
    for path in folder.glob("*.parquet"):
        for number, column in enumerate(pq.read_table(path).columns):
            counts[number] += np.bincount(column.drop_null().to_numpy(), minlength=VALUES)
    return counts


def _checkpoint(collected: RecordReports, path: Path) -> None:
    """Print what one checkpoint costs whose collection had many batches."""
    sums, made_by = collected.aggregate(), fingerprint(collected.protocol)
    batches = {f"{number:032x}": Batch("0" * 32, 0, made_by) for number in range(1, BATCHES)}
    batches["0" * 32] = Batch("0" * 32, sums.people, made_by)
    aggregator = Aggregator.from_parts([sums], batches, is_simulation=True)
    start = time.perf_counter()
    write_checkpoint(aggregator, path)
    seconds = time.perf_counter() - start
    print(f"a checkpoint of {BATCHES} batches: {seconds:.3g} s, {path.stat().st_size / 1e6:.3g} MB")


if __name__ == "__main__":
    main()
