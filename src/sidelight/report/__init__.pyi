"""The names of this room; the loader reads this file too."""

from sidelight.report.attack_terminal import print_attack as print_attack
from sidelight.report.bench_terminal import (
    print_analysers as print_analysers,
    print_mechanisms as print_mechanisms,
)
from sidelight.report.calibration_terminal import print_calibration as print_calibration
from sidelight.report.collection_terminal import (
    collected_notes as collected_notes,
    print_advice as print_advice,
    print_estimates as print_estimates,
)
from sidelight.report.knowledge_terminal import (
    adversary_json as adversary_json,
    print_adversary as print_adversary,
    print_knowledge as print_knowledge,
)
from sidelight.report.learning_terminal import print_learnt as print_learnt
from sidelight.report.page import write_report as write_report
from sidelight.report.publishing import publishing_notes as publishing_notes
from sidelight.report.schema_terminal import print_schema as print_schema
from sidelight.report.study_terminal import (
    lines_of as lines_of,
    print_studies as print_studies,
    print_study as print_study,
    print_tally as print_tally,
)
from sidelight.report.terminal import print_audit as print_audit, print_lesson as print_lesson
