"""The real tables of paper CPL.

The paper bins numbers in an unpublished way; here numbers have ten bins of equal weight, point masses apart.
"""

from __future__ import annotations

from functools import cache

from sidelight.belief import Belief
from sidelight.sources import read
from sidelight.studies.tables import missing_tables, table_file

FILES = {"CelebA": "celeba_attr", "Adult": "adult", "Cardio": "cardio"}
THREE = tuple(FILES.values())
DSS = "DSS is not available"
"""What becomes of the paper's fourth table."""
_LEFT_OUT = {"CelebA": [], "Adult": ["split"], "Cardio": ["id"]}


@cache
def belief_of(name: str) -> Belief:
    """Return the belief from one of the paper's tables."""
    return Belief.from_data(read(str(table_file(FILES[name])), drop=_LEFT_OUT[name]))


def available() -> list[str]:
    """Return the paper's tables that are there."""
    return [name for name, file in FILES.items() if not missing_tables((file,))]
