"""Reports on their way: collecting from a table, report files, batches, checkpoints, running sums."""

from sidelight.transport.aggregator import Aggregator
from sidelight.transport.checkpoint import read_checkpoint, write_checkpoint
from sidelight.transport.collection import (
    PROTOCOLS,
    collect,
    collect_phase,
    digest_of,
    make_protocol,
    true_frequencies,
)
from sidelight.transport.folder import Follower, Pace, write_batches
from sidelight.transport.report_files import batch_to_arrow, read_reports, write_reports

__all__ = [
    "PROTOCOLS",
    "Aggregator",
    "Follower",
    "Pace",
    "batch_to_arrow",
    "collect",
    "collect_phase",
    "digest_of",
    "make_protocol",
    "read_checkpoint",
    "read_reports",
    "true_frequencies",
    "write_batches",
    "write_checkpoint",
    "write_reports",
]
