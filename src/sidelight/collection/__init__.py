"""Whole records in, frequencies out: protocols, phases, report files, estimators, advice."""

from sidelight.collection.advising import Advice, Option, advise, choose_protocol
from sidelight.collection.budgets import RecordBudget, record_budget
from sidelight.collection.checkpoint import read_checkpoint, write_checkpoint
from sidelight.collection.collecting import (
    PROTOCOLS,
    collect,
    collect_phase,
    digest_of,
    make_protocol,
    true_frequencies,
)
from sidelight.collection.describing import read_protocol, write_protocol
from sidelight.collection.direct import Sample, Split, planned, product, smp, spl
from sidelight.collection.em import estimate_joint
from sidelight.collection.estimating import ESTIMATORS, Estimate, Estimates, estimate
from sidelight.collection.following import Follower, Pace, write_batches
from sidelight.collection.hidden import HiddenChoice, rs_fd, rs_rfd
from sidelight.collection.means import Mean
from sidelight.collection.phases import Parameters, TwoPhase, phase_rows
from sidelight.collection.predicting import predicted_error, predicted_variances
from sidelight.collection.protocol import Aggregated, Collected, Protocol
from sidelight.collection.report_files import batch_to_arrow, read_reports, write_reports
from sidelight.collection.streaming import Aggregator

__all__ = [
    "ESTIMATORS",
    "PROTOCOLS",
    "Advice",
    "Aggregated",
    "Aggregator",
    "Collected",
    "Estimate",
    "Estimates",
    "Follower",
    "HiddenChoice",
    "Mean",
    "Option",
    "Pace",
    "Parameters",
    "Protocol",
    "RecordBudget",
    "Sample",
    "Split",
    "TwoPhase",
    "advise",
    "batch_to_arrow",
    "choose_protocol",
    "collect",
    "collect_phase",
    "digest_of",
    "estimate",
    "estimate_joint",
    "make_protocol",
    "phase_rows",
    "planned",
    "predicted_error",
    "predicted_variances",
    "product",
    "read_checkpoint",
    "read_protocol",
    "read_reports",
    "record_budget",
    "rs_fd",
    "rs_rfd",
    "smp",
    "spl",
    "true_frequencies",
    "write_batches",
    "write_checkpoint",
    "write_protocol",
    "write_reports",
]
"""Collecting whole records: protocols for the client and the server."""
