"""Reports on their way: from a table, in bytes, in files and batches; checkpoints, running sums."""

from sidelight.transport.aggregator import Aggregator as Aggregator
from sidelight.transport.checkpoint import (
    read_checkpoint as read_checkpoint,
    write_checkpoint as write_checkpoint,
)
from sidelight.transport.collection import (
    collect as collect,
    collect_phase as collect_phase,
    digest_of as digest_of,
    true_frequencies as true_frequencies,
)
from sidelight.transport.folder import Follower as Follower, Pace as Pace, write_batches as write_batches
from sidelight.transport.layout import Refusal as Refusal
from sidelight.transport.report_files import (
    batch_to_arrow as batch_to_arrow,
    read_reports as read_reports,
    write_reports as write_reports,
)
from sidelight.transport.wire import (
    REFUSALS as REFUSALS,
    Unpacked as Unpacked,
    Wire as Wire,
    pack as pack,
    unpack as unpack,
)
