"""The names of this room; the loader reads this file too."""

from sidelight.report.assessment import (
    Assessment as Assessment,
    assessment_of as assessment_of,
    write_assessment as write_assessment,
)
from sidelight.report.attack import print_attack as print_attack
from sidelight.report.audit import print_audit as print_audit, print_lesson as print_lesson
from sidelight.report.calibration import print_calibration as print_calibration
from sidelight.report.collection import (
    collected_notes as collected_notes,
    print_advice as print_advice,
    print_estimates as print_estimates,
)
from sidelight.report.console import print_schema as print_schema
from sidelight.report.glossary import GLOSSARY as GLOSSARY
from sidelight.report.knowledge import print_adversary as print_adversary, print_knowledge as print_knowledge
from sidelight.report.learning import print_learnt as print_learnt
from sidelight.report.ledger import print_statement as print_statement
from sidelight.report.remedies import print_remedies as print_remedies
from sidelight.report.over_time import print_round_estimates as print_round_estimates
from sidelight.report.page import write_report as write_report
from sidelight.report.rounds_advice import print_rounds_advice as print_rounds_advice
from sidelight.report.pairs import (
    print_pair_advice as print_pair_advice,
    print_pairs as print_pairs,
    synthetic_notes as synthetic_notes,
)
from sidelight.report.plans import (
    changes_section as changes_section,
    check_lines as check_lines,
    comparison_markdown as comparison_markdown,
    markdown as markdown,
    plan_sections as plan_sections,
    print_comparison as print_comparison,
    print_sections as print_sections,
)
from sidelight.report.studies import (
    lines_of as lines_of,
    print_analysers as print_analysers,
    print_mechanisms as print_mechanisms,
    print_studies as print_studies,
    print_study as print_study,
    print_tally as print_tally,
)
from sidelight.report.wording import publishing_notes as publishing_notes
