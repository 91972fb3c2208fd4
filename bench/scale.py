"""Counting at scale: pairs of many attributes, a hundred million rows, and how the cost grows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sidelight as sl
from bench.timing import Row, best_of, show
from sidelight.sources.codebook import Codebook
from sidelight.sources.counter import Counter, plan_counting
from sidelight.sources.counts import block_counts

ADULT = (10, 9, 16, 16, 7, 15, 6, 5, 2, 10, 11, 12, 42, 2)
"""The alphabets of adult's 14 attributes as an audit codes them, the sampling weight left out."""
WIDE = (2, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""The alphabets of the table of a hundred million rows."""
PIECES, PIECE = 100, 1_000_000
LEAST = {"40 binary attributes": 50.0, "14 attributes as adult's": 4.0}


def main() -> None:
    """Print the ratios against DuckDB and numpy, what each step costs, and how the cost grows with rows."""
    rows = [_pairs("40 binary attributes", (2,) * 40), _pairs("14 attributes as adult's", ADULT)]
    show(
        "all pairs of 2,000,000 rows (peer: DuckDB's GROUP BY for each pair)",
        [r for pair in rows for r in pair],
    )
    for streamed, _ in rows:
        name = streamed.step.split(":")[0]
        ratio = (streamed.peer or 0) / streamed.ours
        print(f"{name}: {ratio:.1f} x DuckDB, at least {LEAST[name]:g} wanted: {_kept(ratio >= LEAST[name])}")
    _shapes()
    _coding()
    print("a hundred million rows, which take several minutes: python -m bench.scale rows")


def hundred_million() -> None:
    """Print what a hundred million rows cost, and how the cost grows up to a thousand million."""
    with tempfile.TemporaryDirectory() as folder:
        _generate(Path(folder))
        _hundred_million(Path(folder))


def _kept(fine: bool) -> str:
    return "kept" if fine else "MISSED"


def _codes(sizes: tuple[int, ...], rows: int, seed: int) -> np.ndarray:
    """Return skewed codes that depend on each other, shape (attributes, rows)."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows, dtype=np.float32)
    codes = np.empty((len(sizes), rows), dtype=np.uint8)
    for out, size in zip(codes, sizes, strict=True):
        mixed = (common + rng.random(rows, dtype=np.float32)) * np.float32(0.5)
        np.minimum(mixed * mixed * np.float32(size * 1.2), size - 1, out=mixed)
        out[:] = mixed
    return codes


def _arrow(codes: np.ndarray) -> pa.Table:
    return pa.table({f"a{i}": pa.array(column) for i, column in enumerate(codes)})


def _pairs(name: str, sizes: tuple[int, ...]) -> tuple[Row, Row]:
    """Time all pair tables of 8-bit columns in memory: read, coded and counted, and counted alone.

    DuckDB groups the same values, in a table of its own, each pair as fast as it ever was.
    """
    codes = _codes(sizes, 2_000_000, 1)
    arrow = _arrow(codes)
    connection = duckdb.connect()
    connection.register("rows", arrow)
    connection.execute("CREATE TABLE people AS SELECT * FROM rows")
    pairs = list(combinations(range(len(sizes)), 2))

    def grouped(i: int, j: int) -> None:
        connection.execute(f"SELECT a{i}, a{j}, count(*) FROM people GROUP BY ALL").fetchall()

    used = _processor(lambda: [grouped(i, j) for i, j in pairs])
    peer = sum(best_of(lambda i=i, j=j: grouped(i, j)) for i, j in pairs)
    table = sl.read(arrow, few=max(sizes))  # every value its own, as DuckDB groups them
    plan = plan_counting(sizes, pairs)
    table.pair_counts()
    share = used / min(_processor(table.pair_counts) for _ in range(3))
    print(f"{name}: {share:.1f} x DuckDB by processor time")

    def from_memory() -> None:
        counter = Counter(plan, compiled=True)
        for start in range(0, codes.shape[1], 1 << 17):
            counter.add(codes[:, start : start + (1 << 17)])
        counter.results()

    plain = best_of(lambda: block_counts(codes.T.astype(np.uint16), sizes), 1)
    streamed = Row(f"{name}: read, coded and counted", peer, plain, best_of(table.pair_counts, 5))
    return streamed, Row(f"{name}: counted, one thread", peer, plain, best_of(from_memory, 5))


def _processor(function: Callable[[], object]) -> float:
    """Return the processor seconds of all threads, which other work on the machine hardly changes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _shapes() -> None:
    """Print the nanoseconds that a record takes, by attributes and alphabet, beside the cost model's."""
    print("\nall pairs, nanoseconds a record, one thread (the model's figure)")
    alphabets = (2, 4, 10, 50)
    print(f"{'attributes':<12}" + "".join(f"{f'{size} values':>20}" for size in alphabets))
    for attributes in (5, 10, 20, 40):
        cells = []
        for size in alphabets:
            codes = _codes((size,) * attributes, 1 << 18, 2)
            plan = plan_counting((size,) * attributes, list(combinations(range(attributes), 2)))
            seconds = best_of(lambda plan=plan, codes=codes: Counter(plan, compiled=True).add(codes), 5)
            cells.append(f"{seconds / (1 << 18) * 1e9:.1f} ({plan.cost:.1f})")
        print(f"{attributes:<12}" + "".join(f"{cell:>20}" for cell in cells))


def _coding() -> None:
    """Print the processor nanoseconds that a value takes from its column to its code."""
    codes = _codes((10,), 2_000_000, 3)[0]
    labels = pa.array([f"value {chr(97 + value)}" for value in range(10)])
    text = pa.DictionaryArray.from_arrays(pa.array(codes), labels)
    numbers = np.random.default_rng(4).normal(size=len(codes))
    print("\ncoding, nanoseconds a value")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"a": text}), Path(folder) / "text.parquet")
        for name, source in (
            ("8-bit numbers that are codes", pa.table({"a": codes})),
            ("8-bit numbers that are none", pa.table({"a": codes * 2 + 3})),
            ("text from Parquet, with a dictionary", Path(folder) / "text.parquet"),
            ("text without one", pa.table({"a": text.cast(pa.string())})),
            ("numbers between 9 edges", pa.table({"a": numbers})),
        ):
            table = sl.read(source)
            book = table.source.codebook(table.schema, compiled=True)
            used = [_processor(lambda t=table, b=book: _coded(t, b)) for _ in range(4)]
            print(f"{name:<40}{min(used) / len(codes) * 1e9:>8.2f}")


def _coded(table: sl.Table, book: Codebook) -> None:
    for batch in table.source.asked(book, 1 << 17):
        book.codes(batch)


def _generate(folder: Path) -> None:
    """Write a hundred Parquet files of a million rows each; half of the columns are text."""
    for piece in range(PIECES):
        columns = {}
        for i, column in enumerate(_codes(WIDE, PIECE, 100 + piece)):
            labels = pa.array([f"value {chr(97 + value)}" for value in range(WIDE[i])])
            text = pa.DictionaryArray.from_arrays(pa.array(column), labels)
            columns[f"a{i}"] = text if i % 2 else pa.array(column)
        pq.write_table(pa.table(columns), folder / f"{piece:03d}.parquet", row_group_size=1 << 18)
    os.sync()  # so that nothing is still being written while reading is timed


def _hundred_million(folder: Path) -> None:
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
    print(f"\n{len(WIDE)} attributes from Parquet ({size:.2f} GB for {PIECES * PIECE:,} rows), all 45 pairs")
    print(f"{'rows':>12}{'schema s':>10}{'count s':>10}{'cpu s':>10}{'peak MB':>10}")
    points, peaks = [], []
    whole = 0.0
    for pieces in (10, 30, 100, 300, 1000):
        with _part(folder, pieces) as part:
            schema, counting, processor, peak = _measured(part)
        whole = schema + counting if pieces == PIECES else whole
        points.append((pieces * PIECE, counting, processor))
        peaks.append(peak)
        print(f"{pieces * PIECE:>12,}{schema:>10.2f}{counting:>10.2f}{processor:>10.2f}{peak:>10.0f}")
    logs = np.log(np.array(points))
    for name, column in (("wall", 1), ("processor", 2)):
        exponent = np.polyfit(logs[:, 0], logs[:, column], 1)[0]
        fine = 0.95 <= exponent <= 1.05
        print(f"growth in rows by {name} time: exponent {exponent:.3f}, 0.95 to 1.05 wanted: {_kept(fine)}")
    print(f"hundred million rows: {whole:.1f} s, below 60 wanted: {_kept(whole < 60)}")
    print(f"peak memory {max(peaks):.0f} MB, below 2000 wanted: {_kept(max(peaks) < 2000)}")
    for cores in range(1, len(os.sched_getaffinity(0)) + 1):
        with _part(folder, PIECES) as part:
            print(f"hundred million rows counted on {cores} cores: {_measured(part, cores)[1]:.2f} s")


@contextmanager
def _part(folder: Path, pieces: int) -> Iterator[Path]:
    """Give a folder of so many files: the first ones, or all of them several times."""
    files = sorted(folder.iterdir())
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        for piece in range(pieces):
            (Path(part) / f"{piece:04d}.parquet").symlink_to(files[piece % PIECES])
        yield Path(part)


def _measured(folder: Path, cores: int = 1 << 16) -> tuple[float, float, float, float]:
    """Count a folder in a process of its own; return its seconds and its peak memory in MB."""
    program = [sys.executable, "-m", "bench.scale", str(folder), str(cores)]
    shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    schema, counting, processor, peak = map(float, shown.split())
    return schema, counting, processor, peak


def _count(folder: Path, cores: int) -> None:
    """Find a folder's schema and count its pairs on so many cores; the compiled loops are loaded before.

    Every size is counted equally often and its best time kept: more tries for the small sizes alone would
    make the cost seem to grow faster. Beyond a hundred million rows, which repeat, the schema is that of the
    first file.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    first = sl.read(folder / "0000.parquet")
    first.pair_counts()
    repeats = len(list(folder.iterdir())) > PIECES
    start = time.perf_counter()
    table = sl.read(folder, schema=first.schema) if repeats else sl.read(folder)
    read = time.perf_counter() - start
    runs = [_timed(table) for _ in range(3)]
    print(read, min(wall for wall, _ in runs), min(used for _, used in runs), _peak())


def _timed(table: sl.Table) -> tuple[float, float]:
    """Return the wall and processor seconds of all pairs."""
    start, used = time.perf_counter(), time.process_time()
    table.pair_counts()
    return time.perf_counter() - start, time.process_time() - used


def _peak() -> float:
    """Return the most memory this process ever had, in MB; `getrusage` would count its parent's as well."""
    status = Path("/proc/self/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _count(Path(sys.argv[1]), int(sys.argv[2]))
    elif sys.argv[1:] == ["rows"]:
        hundred_million()
    else:
        main()
