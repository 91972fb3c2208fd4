"""Who says what: the protocols of whole records, from a person's values to a report."""

from sidelight.protocols.budgets import RecordBudget, record_budget
from sidelight.protocols.direct import Sample, Split, planned, product, smp, spl
from sidelight.protocols.fake_data import FakeDataProtocol, rs_fd, rs_rfd
from sidelight.protocols.files import read_protocol, write_protocol
from sidelight.protocols.protocol import Protocol, RecordReports, RecordSums
from sidelight.protocols.two_phase import SecondPhase, TwoPhase, phase_rows

__all__ = [
    "FakeDataProtocol",
    "Protocol",
    "RecordBudget",
    "RecordReports",
    "RecordSums",
    "Sample",
    "SecondPhase",
    "Split",
    "TwoPhase",
    "phase_rows",
    "planned",
    "product",
    "read_protocol",
    "record_budget",
    "rs_fd",
    "rs_rfd",
    "smp",
    "spl",
    "write_protocol",
]
