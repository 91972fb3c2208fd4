"""Sums and kept reports as files: for `sidelight estimate`, for Spark, for whoever checks the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from sidelight.protocols.records import RecordSums, fingerprint, joined
from sidelight.service.collector import Asked, Collector
from sidelight.service.errors import NotFoundError
from sidelight.service.figures import check_crowd
from sidelight.transport.aggregator import Aggregator, Batch
from sidelight.transport.checkpoint import write_checkpoint
from sidelight.transport.report_files import batch_to_arrow

PARQUET = "application/vnd.apache.parquet"
EXPORTS = ("sums", "checkpoint", "reports")
"""Sums as a Parquet table; sums as a checkpoint of `sidelight estimate`; the reports, where they are kept."""


@dataclass(frozen=True)
class Exported:
    """A file: its name, its type and its content."""

    name: str
    kind: str
    content: bytes


async def export(collector: Collector, task: str, number: int, form: str) -> Exported:
    """Return a round's sums, with those it builds on, or its reports; refused below the smallest crowd."""
    asked = await collector.asked(task, number)
    together = asked.task.read_together(number)
    parts = [await collector.sums(task, earlier) for earlier in together]
    check_crowd(asked.task, parts)
    name = f"{task[:12]}-{number}"
    if form == "checkpoint":
        digests = [(await collector.asked(task, earlier)).round.digest for earlier in together]
        return Exported(f"{name}.json", "application/json", checkpoint_of(parts, digests))
    if form == "sums":
        return Exported(f"{name}-sums.parquet", PARQUET, _parquet(_table(parts, together)))
    return Exported(f"{name}.parquet", PARQUET, await _reports(collector, asked))


def checkpoint_of(parts: Sequence[RecordSums], digests: Sequence[str]) -> bytes:
    """Return sums as a checkpoint: each round is one batch under its digest."""
    batches = {
        digest: Batch(digest[:32], part.people, fingerprint(part.protocol))
        for part, digest in zip(parts, digests, strict=True)
    }
    aggregator = Aggregator.from_parts(parts, batches, is_simulation=False)
    return _written(lambda path: write_checkpoint(aggregator, path), "sums.json")


def _table(parts: Sequence[RecordSums], rounds: Sequence[int]) -> pa.Table:
    rows = [
        {"round": number, "people": part.people, "part": label, "reports": sums.reports, "cell": cell,
         "sum": int(value)}
        for number, part in zip(rounds, parts, strict=True)
        for label, sums in zip(_labels(part), part.parts, strict=True)
        for cell, value in enumerate(sums.sums.reshape(-1))
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def _labels(part: RecordSums) -> Sequence[str]:
    labels = part.protocol.labels
    return labels if len(labels) == len(part.parts) else [" x ".join(labels)]


async def _reports(collector: Collector, asked: Asked) -> bytes:
    if not asked.task.terms.keeps_reports:
        raise NotFoundError("the task does not keep reports; export the sums.")
    chunks = [asked.wire.unpack(chunk).reports async for chunk in collector.store.reports(asked.key)] or [
        asked.round.protocol.nobody()
    ]
    phased = asked.task.design.two_phase
    phase = phased.phase if phased is not None and asked.round.number == 1 else None
    # They come in the order of their random ids, which is nobody's.
    whole = replace(joined(chunks), phase=phase, is_shuffled=True)
    return _parquet(batch_to_arrow(whole, asked.round.digest))


def _parquet(table: pa.Table) -> bytes:
    return _written(lambda path: pq.write_table(table, path), "table.parquet")


def _written(write: Callable[[Path], object], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()
