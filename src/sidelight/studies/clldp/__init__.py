"""Paper CLLDP: Tables 1 and 4, Figs. 3 to 6, with controls and our own lines beside the published ones."""

from sidelight.studies.clldp import joints, learning

STUDIES = (
    joints.TABLE_1,
    joints.TABLE_4,
    joints.FIGURE_3,
    learning.FIGURE_4,
    learning.FIGURE_5,
    joints.FIGURE_6,
)
