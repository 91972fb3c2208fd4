"""The Corr-RR paper's figures 2 to 14 and its Table 1, with SMP and ours as further lines.

`python -m sidelight.studies.collection [--quick] FOLDER` runs and draws all of them.
"""

from sidelight.studies.collection.drawing import write_study
from sidelight.studies.collection.study import CollectionStudy, Loss, run

__all__ = ["CollectionStudy", "Loss", "run", "write_study"]
