"""From rows to coded tables and counts."""

from sidelight.sources.counts import Counts, Records
from sidelight.sources.dictionary import Dictionary
from sidelight.sources.engine import Engine, LocalEngine
from sidelight.sources.examples import admissions, example, survey, survey_joint, titanic
from sidelight.sources.reading import column_names, read, read_sql
from sidelight.sources.table import Table

__all__ = [
    "Counts",
    "Dictionary",
    "Engine",
    "LocalEngine",
    "Records",
    "Table",
    "admissions",
    "column_names",
    "example",
    "read",
    "read_sql",
    "survey",
    "survey_joint",
    "titanic",
]
