"""What the studio's page and its server say to each other.

The models are closed and strict: they are the one schema of which `studio/src/messages.ts` is made
(`sidelight.studio.typescript`). An infinite figure is the string "infinity", since JSON has no number for it.
"""

from __future__ import annotations

from sidelight.studio.messages.base import (
    Budget as Budget,
    ColumnKind as ColumnKind,
    Limit as Limit,
    Message as Message,
    Name as Name,
    PlanId as PlanId,
    Real as Real,
    Share as Share,
    Status as Status,
    WorkKind as WorkKind,
)
from sidelight.studio.messages.plans import (
    Adversary as Adversary,
    Banner as Banner,
    Column as Column,
    Group as Group,
    Mechanism as Mechanism,
    Plan as Plan,
    Release as Release,
    Secret as Secret,
    TableInfo as TableInfo,
    ValueCount as ValueCount,
)
from sidelight.studio.messages.figures import (
    ErrorFigure as ErrorFigure,
    Figure as Figure,
    Odds as Odds,
    PairDetail as PairDetail,
    Pairs as Pairs,
    PlanFigures as PlanFigures,
    SecretFigures as SecretFigures,
)
from sidelight.studio.messages.changes import (
    AddPlan as AddPlan,
    Adopt as Adopt,
    Change as Change,
    Changes as Changes,
    Coarsen as Coarsen,
    Redo as Redo,
    RemovePlan as RemovePlan,
    RenamePlan as RenamePlan,
    SelectPlan as SelectPlan,
    SetAdversary as SetAdversary,
    SetBudget as SetBudget,
    SetColumn as SetColumn,
    SetExpectations as SetExpectations,
    SetGroups as SetGroups,
    SetMechanism as SetMechanism,
    SetSecrets as SetSecrets,
    Undo as Undo,
    Withhold as Withhold,
)
from sidelight.studio.messages.work import (
    Attacked as Attacked,
    Calibrate as Calibrate,
    Calibrated as Calibrated,
    Collected as Collected,
    EstimateRow as EstimateRow,
    FindRemedies as FindRemedies,
    NewBudget as NewBudget,
    Remedied as Remedied,
    RemedyOffer as RemedyOffer,
    SimulateAttack as SimulateAttack,
    SimulateCollection as SimulateCollection,
    WorkOrder as WorkOrder,
    WorkResult as WorkResult,
)
from sidelight.studio.messages.state import (
    History as History,
    Settings as Settings,
    State as State,
    Update as Update,
    WorkState as WorkState,
)
from sidelight.studio.messages.events import (
    ChangedEvent as ChangedEvent,
    Everything as Everything,
    FiguresEvent as FiguresEvent,
    HelloEvent as HelloEvent,
    Problem as Problem,
    ResultEvent as ResultEvent,
    SavedEvent as SavedEvent,
    StudioEvent as StudioEvent,
    WorkEvent as WorkEvent,
)
