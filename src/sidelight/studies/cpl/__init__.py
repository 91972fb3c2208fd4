"""Paper CPL: Tables I to III, Figs. 4 to 8, eq. (6), and benchmarks of ours on calibration."""

from sidelight.studies.cpl import calibration, channel, figure_4, figures_6_7, formulas, pairs

STUDIES = (
    pairs.TABLE_1,
    pairs.TABLE_2,
    formulas.TABLE_3,
    formulas.EQUATION_6,
    figure_4.FIGURE_4A,
    figure_4.FIGURE_4B,
    pairs.FIGURE_4C,
    pairs.FIGURE_4D,
    pairs.FIGURE_5,
    *figures_6_7.STUDIES,
    *calibration.STUDIES,
    channel.STUDY,
)
