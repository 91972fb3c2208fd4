"""Paper Corr-RR: Table 1 and Figs. 2 to 14, plain SMP and ours beside them, and the amplified budget."""

from sidelight.studies.corr_rr import figures, formulas, losses, tables

STUDIES = (
    tables.TABLE_1,
    formulas.FIGURE_2,
    tables.FIGURE_3,
    *figures.FIGURES,
    formulas.AMPLIFICATION,
    losses.LOSSES,
)
