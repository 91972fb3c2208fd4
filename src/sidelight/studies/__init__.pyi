"""The names of this room; the loader reads this file too."""

from sidelight.studies.benchmarks import (
    AnalyserBenchmark as AnalyserBenchmark,
    MechanismBenchmark as MechanismBenchmark,
    benchmark_analysers as benchmark_analysers,
    benchmark_mechanisms as benchmark_mechanisms,
)
from sidelight.studies.register import (
    CATALOGUE as CATALOGUE,
    all_studies as all_studies,
    find_study as find_study,
)
from sidelight.studies.study import Study as Study
