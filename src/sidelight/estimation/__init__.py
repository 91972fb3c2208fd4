"""From sums to frequencies, joints and means with their errors."""

from sidelight.estimation.em import estimate_joint
from sidelight.estimation.estimates import ESTIMATORS, Estimate, Estimates, estimate
from sidelight.estimation.expected_error import predicted_error, predicted_variances
from sidelight.estimation.means import Mean

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimates",
    "Mean",
    "estimate",
    "estimate_joint",
    "predicted_error",
    "predicted_variances",
]
