"""The front door: every room, and the names that everyday work needs. The loader reads this file too."""

from sidelight import (
    advice as advice, attacks as attacks, auditing as auditing, belief as belief, calibration as calibration,
    comparison as comparison,
    estimation as estimation, foundation as foundation, knowledge as knowledge, labels as labels,
    leakage as leakage, learning as learning, ledger as ledger, mechanisms as mechanisms, plan as plan,
    project as project, protocols as protocols, remedying as remedying, report as report, schema as schema,
    service as service, sources as sources, studies as studies, studio as studio, transport as transport,
)  # fmt: skip
from sidelight.advice import advise as advise
from sidelight.attacks import AttackResult as AttackResult, BayesAttacker as BayesAttacker, attack as attack
from sidelight.auditing import Audit as Audit, audit as audit
from sidelight.belief import Belief as Belief
from sidelight.calibration import Calibration as Calibration, calibrate as calibrate
from sidelight.estimation import (
    Estimates as Estimates, estimate as estimate, estimate_joint as estimate_joint,
    estimate_pairs as estimate_pairs, estimate_rounds as estimate_rounds,
)  # fmt: skip
from sidelight.foundation.errors import (
    InputError as InputError, MissingExtraError as MissingExtraError, SidelightError as SidelightError,
    TooLargeError as TooLargeError,
)  # fmt: skip
from sidelight.knowledge import Adversary as Adversary, Query as Query, knowledge_audit as knowledge_audit
from sidelight.leakage import (
    Bound as Bound, Leakage as Leakage, leakage_at as leakage_at, pair_leakage as pair_leakage,
    total_leakage as total_leakage,
)  # fmt: skip
from sidelight.learning import learn as learn
from sidelight.mechanisms import Channel as Channel, Mechanism as Mechanism, create as create
from sidelight.plan import Plan as Plan, Release as Release
from sidelight.protocols import RecordReports as RecordReports
from sidelight.remedying import remedies as remedies
from sidelight.report import write_report as write_report
from sidelight.schema import (
    Attribute as Attribute, Schema as Schema, binned as binned, categorical as categorical,
    numeric as numeric,
)  # fmt: skip
from sidelight.service import Client as Client
from sidelight.sources import (
    Counts as Counts, Table as Table, example as example, read as read, read_sql as read_sql,
    simulate_panel as simulate_panel,
)  # fmt: skip
from sidelight.transport import (
    collect as collect, read_reports as read_reports, write_reports as write_reports,
)  # fmt: skip

__version__: str
