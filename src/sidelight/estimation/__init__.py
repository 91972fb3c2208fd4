"""From sums to frequencies, joints and means with their errors."""

from sidelight.estimation.joint import estimate_joint as estimate_joint
from sidelight.estimation.estimates import (
    ESTIMATORS as ESTIMATORS,
    Estimate as Estimate,
    Estimates as Estimates,
    estimate as estimate,
)
from sidelight.estimation.expected_error import (
    predicted_error as predicted_error,
    predicted_variances as predicted_variances,
)
from sidelight.estimation.means import Mean as Mean
