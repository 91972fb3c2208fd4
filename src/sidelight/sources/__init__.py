"""From rows to coded tables and counts."""

from sidelight.sources.counts import Counts as Counts, Records as Records
from sidelight.sources.dictionary import Dictionary as Dictionary
from sidelight.sources.table import Engine as Engine, LocalEngine as LocalEngine
from sidelight.sources.examples import admissions as admissions, clinic as clinic, example as example
from sidelight.sources.examples import survey as survey
from sidelight.sources.examples import survey_joint as survey_joint, titanic as titanic
from sidelight.sources.identifiers import identifiers as identifiers
from sidelight.sources.panels import Attendance as Attendance, SimulatedPanel as SimulatedPanel
from sidelight.sources.panels import drifting as drifting
from sidelight.sources.panels import simulate_panel as simulate_panel
from sidelight.sources.reader import ReadOptions as ReadOptions, column_names as column_names
from sidelight.sources.reader import read as read, read_sql as read_sql
from sidelight.sources.table import Table as Table
