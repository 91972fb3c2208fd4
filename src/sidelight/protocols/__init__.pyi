"""The names of this room; the loader reads this file too."""

from sidelight.protocols.direct import (
    Sample as Sample,
    Split as Split,
    planned as planned,
    product as product,
    smp as smp,
    spl as spl,
)
from sidelight.protocols.fake_data import (
    FakeDataProtocol as FakeDataProtocol,
    rs_fd as rs_fd,
    rs_rfd as rs_rfd,
)
from sidelight.protocols.files import read_protocol as read_protocol, write_protocol as write_protocol
from sidelight.protocols.panel import Panel as Panel
from sidelight.protocols.panel_memory import PanelMemory as PanelMemory
from sidelight.protocols.protocol import (
    Design as Design,
    Protocol as Protocol,
    RecordBudget as RecordBudget,
    record_budget as record_budget,
)
from sidelight.protocols.records import RecordReports as RecordReports, RecordSums as RecordSums
from sidelight.protocols.register import PROTOCOLS as PROTOCOLS, make_protocol as make_protocol
from sidelight.protocols.sets import SetSample as SetSample, pairs as pairs, sampled_sets as sampled_sets
from sidelight.protocols.two_phase import (
    SecondPhase as SecondPhase,
    TwoPhase as TwoPhase,
    phase_rows as phase_rows,
)
