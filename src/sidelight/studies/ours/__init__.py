"""Benchmarks of ours that no paper has."""

from sidelight.studies.ours import cost, floating_point, limits, variance

STUDIES = (variance.STUDY, cost.STUDY, limits.STUDY, floating_point.STUDY)
