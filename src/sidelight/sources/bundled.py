"""`example`: every bundled table by its name, the drawn one among them."""

from __future__ import annotations

from sidelight.foundation.errors import check_choice
from sidelight.sources import examples
from sidelight.sources.table import Table

NAMES = ("survey", "titanic", "admissions")
_PEOPLE = 20_000
_SEED = 1


def example(name: str) -> Table:
    """Return a bundled example as a table of records: "survey" (drawn), "titanic" or "admissions".

    The survey is that of `sidelight example survey`; `survey` draws other people, or more of them.

    >>> example("survey")
    Table('the example survey', 20000 rows, 7 attributes)
    """
    check_choice("name", name, NAMES)
    return examples.survey(_PEOPLE, _SEED) if name == "survey" else examples.example(name)
