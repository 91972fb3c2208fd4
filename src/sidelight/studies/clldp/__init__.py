"""Paper CLLDP: Tables 1 and 4, Figs. 3 to 6, with controls and our own lines beside the published ones."""

from sidelight.studies.clldp import classifiers, joints

STUDIES = (
    joints.TABLE_1,
    joints.TABLE_4,
    joints.FIGURE_3,
    classifiers.FIGURE_4,
    classifiers.FIGURE_5,
    joints.FIGURE_6,
)
