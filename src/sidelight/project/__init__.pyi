"""The names of this room; the loader reads this file too."""

from sidelight.project.cache import Cache as Cache
from sidelight.project.draft import Draft as Draft, draft_project as draft_project
from sidelight.project.file import Project as Project
from sidelight.project.run import Outcome as Outcome, run_project as run_project
