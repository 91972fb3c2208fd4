"""From rows to coded tables and counts."""

from sidelight.sources.counts import Counts as Counts
from sidelight.sources.counts import Records as Records
from sidelight.sources.dictionary import Dictionary as Dictionary
from sidelight.sources.engine import Engine as Engine
from sidelight.sources.engine import LocalEngine as LocalEngine
from sidelight.sources.reader import ReadOptions as ReadOptions
from sidelight.sources.reader import column_names as column_names
from sidelight.sources.reader import read as read
from sidelight.sources.reader import read_sql as read_sql
from sidelight.sources.table import Table as Table
