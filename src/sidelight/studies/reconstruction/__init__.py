"""Paper Reconstruction: Figs. 2 to 5, Theorems 1 and 2."""

from sidelight.studies.reconstruction import figures, theorems

STUDIES = (*figures.STUDIES, *theorems.STUDIES)
