"""What all released attributes reveal about a secret together: one module for each kind of total."""

from sidelight.leakage.totals.at_delta import DELTAS as DELTAS, estimates_at as estimates_at
from sidelight.leakage.totals.at_delta import leakage_at as leakage_at, usual_draws as usual_draws
from sidelight.leakage.totals.base import LARGEST_FIGURE as LARGEST_FIGURE, Channels as Channels
from sidelight.leakage.totals.base import Totals as Totals, check_order as check_order
from sidelight.leakage.totals.base import composition as composition
from sidelight.leakage.totals.contraction import ListedTotals as ListedTotals
from sidelight.leakage.totals.delta_leakage import DeltaLeakage as DeltaLeakage
from sidelight.leakage.totals.delta_leakage import DeltaPoint as DeltaPoint
from sidelight.leakage.totals.exact import ExactTotal as ExactTotal, exact_totals as exact_totals
from sidelight.leakage.totals.exposure import Exposure as Exposure, exposure as exposure
from sidelight.leakage.totals.joint import JointTotal as JointTotal, own_leakage as own_leakage
from sidelight.leakage.totals.lower import lower_total as lower_total
from sidelight.leakage.totals.total import TotalMethod as TotalMethod, prepare_totals as prepare_totals
from sidelight.leakage.totals.total import set_leakage as set_leakage, total_leakage as total_leakage
from sidelight.leakage.totals.tree import TreeTotals as TreeTotals, tree_total as tree_total
from sidelight.leakage.totals.tree import tree_totals as tree_totals
