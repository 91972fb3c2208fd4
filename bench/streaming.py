"""Streaming collection: reports a second from a followed folder, small files, and what a checkpoint costs."""

from __future__ import annotations

import hashlib
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.timing import Row, fastest, show
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
                step = f"{protocol.__name__} grr, {files} files of {reports} reports"
                rows.append(_followed(step, path, people))
        show("streaming (numpy: the same files read, digested as ours are, and counted)", rows)
        _checkpoint(collected, Path(folder) / "checkpoint.json")


def _records(people: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, VALUES, (people, ATTRIBUTES), dtype=np.uint8)


def _followed(step: str, folder: Path, people: int) -> Row:
    def ours() -> None:
        (folder / "checkpoint.json").unlink(missing_ok=True)
        with Follower(folder) as follower:
            follower.scan()

    bare = partial(_counted, folder, checked=False)
    taken = fastest({"numpy": partial(_counted, folder), "bare": bare, "ours": ours})
    print(
        f"{step}: {people / taken['ours']:.3g} reports/s, "
        f"{taken['bare'] / taken['ours']:.2f} x numpy that digests nothing"
    )
    return Row(step, None, taken["numpy"], taken["ours"])


def _counted(folder: Path, *, checked: bool = True) -> tuple[np.ndarray, list[str]]:
    """The counts of every column in plain numpy, and a digest of each file's values."""
    counts, digests = np.zeros((ATTRIBUTES, VALUES), dtype=np.int64), []
    for path in folder.glob("*.parquet"):
        digest = hashlib.blake2b(digest_size=16)
        for number, column in enumerate(pq.read_table(path).columns):
            codes = column.drop_null().to_numpy()
            counts[number] += np.bincount(codes, minlength=VALUES)
            if checked:
                digest.update(codes)
                if column.null_count:
                    digest.update(np.flatnonzero(column.is_valid()))
        digests.append(digest.hexdigest())
    return counts, digests


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
