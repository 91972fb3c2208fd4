"""Plans as people discuss them: what changes from one to another, what each leaks and is worth."""

from sidelight.comparison.changes import Change as Change, changes as changes
from sidelight.comparison.fitness import Finding as Finding, PlanCheck as PlanCheck, check as check
from sidelight.comparison.weighed import Comparison as Comparison, Side as Side, compare as compare
