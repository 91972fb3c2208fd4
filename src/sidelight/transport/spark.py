"""Reports in Spark: made by the workers, kept as batches in files, added up where they lie.

A DataFrame is computed anew whenever it is asked. Fresh noise on the same records would be a second report
and a second budget, so reports are written to files by the one job that makes them, and only read from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sidelight.foundation.arrays import offsets
from sidelight.foundation.errors import InputError, invalid
from sidelight.mechanisms import Aggregate
from sidelight.plan import Plan
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports, RecordSums, check_same
from sidelight.sources import Table
from sidelight.sources.session import is_spark
from sidelight.sources.spark import gathered, map_frame, running
from sidelight.transport.collection import NO_ROW_NUMBERS, check_schema, design_of, reporter
from sidelight.transport.report_files import from_arrow, to_arrow

COLUMNS = "part int, start long, people long, reports binary"
"""A batch of reports: where its records lay, how many they are, and the reports as an Arrow stream."""


@dataclass(frozen=True, eq=False)
class SparkReports:
    """Reports that a protocol made and that lie in a DataFrame, batch by batch, read from files."""

    protocol: Protocol
    frame: Any

    def aggregate(self) -> RecordSums:
        """Add the reports up, each partition on its worker."""
        protocol = self.protocol

        def add(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _sums(batches, protocol)

        partial = self.frame.select("reports").mapInArrow(add, "place long, sum long")
        merged = gathered(partial.groupBy("place").sum("sum"))
        template = protocol.nobody().aggregate().parts
        at = offsets([2, *(len(part.sums) + 1 for part in template)])
        flat = np.zeros(at[-1], dtype=np.int64)
        flat[merged.column(0).to_numpy()] = merged.column(1).to_numpy()
        (people, simulated), *each = np.split(flat, at[1:-1])
        added = zip(each, template, strict=True)
        parts = tuple(Aggregate(int(sums[0]), sums[1:], part.mechanism) for sums, part in added)
        return RecordSums(protocol, int(people), parts, bool(simulated))


def collect_into(table: Table, plan: Plan | Protocol, path: str, seed: int | None = None) -> SparkReports:
    """Make one report for each record of a Spark table and write them to Parquet files.

    Args:
        table: of a Spark DataFrame.
        plan: a plan or a protocol.
        path: where Spark writes, a folder that does not exist yet; any file system that Spark knows.
        seed: for simulation; every partition derives its own. Without one the noise is secure.
    """
    from pyspark.errors import AnalysisException

    design = design_of(plan)
    if design.two_phase is not None:
        raise InputError(NO_ROW_NUMBERS)
    protocol = design.first
    check_schema(table, protocol.schema)
    report = reporter(table, protocol, seed)
    frame = map_frame(table, lambda codes, place: _packed(report(codes, place)), COLUMNS)
    try:
        with running():  # one job: another would make other reports
            frame.write.parquet(path)
    except AnalysisException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"reports cannot be written to {path}: {reason}; name a new folder.") from error
    return SparkReports(protocol, frame.sparkSession.read.parquet(path))


def open_reports(frame: Any) -> SparkReports:
    """Return the reports in a DataFrame that was read from what `collect_into` wrote."""
    if not is_spark(frame) or "reports" not in frame.columns:
        raise invalid("frame", "a Spark DataFrame with a column 'reports'", type(frame).__name__)
    first = frame.select("reports").limit(1).toArrow()
    if not first.num_rows:
        raise InputError("there are no reports in the DataFrame.")
    return SparkReports(_unpacked(first.column(0)[0].as_py()).protocol, frame)


def _packed(collected: RecordReports) -> dict[str, Any]:
    table = to_arrow(collected)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"people": collected.people, "reports": sink.getvalue().to_pybytes()}


def _unpacked(packed: bytes) -> RecordReports:
    try:
        table = pa.ipc.open_stream(packed).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"a batch of reports is damaged: {str(error).splitlines()[0]}") from None
    return from_arrow(table, "a batch of reports")


def _sums(batches: Iterable[pa.RecordBatch], protocol: Protocol) -> Iterator[pa.RecordBatch]:
    """Give a partition's sums, all in one line, as rows: the place of each and its value.

    First come how many people there are and whether their noise came from a seed; of each part, its reports.
    """
    total: RecordSums | None = None
    for batch in batches:
        for packed in batch.column(0):
            collected = _unpacked(packed.as_py())
            check_same(protocol, collected.protocol)
            sums = collected.aggregate()
            total = sums if total is None else total + sums
    if total is None:
        return
    head = [total.people, int(total.is_simulation)]
    flat = np.concatenate([head, *([part.reports, *part.sums] for part in total.parts)]).astype(np.int64)
    yield pa.record_batch({"place": np.arange(len(flat), dtype=np.int64), "sum": flat})
