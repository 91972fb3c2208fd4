"""From sums to frequencies, joints and means with their errors."""

from sidelight.estimation.joint import estimate_joint as estimate_joint
from sidelight.estimation.estimates import ESTIMATORS as ESTIMATORS, Estimate as Estimate
from sidelight.estimation.estimates import Estimates as Estimates, estimate as estimate
from sidelight.estimation.expected_error import predicted_error as predicted_error
from sidelight.estimation.expected_error import predicted_variances as predicted_variances
from sidelight.estimation.unbiased import Mean as Mean
from sidelight.estimation.usefulness import AttributeUse as AttributeUse, Usefulness as Usefulness
from sidelight.estimation.usefulness import people_for_use as people_for_use
from sidelight.estimation.usefulness import people_needed as people_needed, usefulness as usefulness
from sidelight.estimation.affordable import Affordable as Affordable, affordable as affordable
from sidelight.estimation.prospect import Prospect as Prospect, prospect as prospect
from sidelight.estimation.levels import LevelEstimates as LevelEstimates, combine_levels as combine_levels
from sidelight.estimation.round_estimates import RoundEstimates as RoundEstimates
from sidelight.estimation.round_estimates import estimate_rounds as estimate_rounds
from sidelight.estimation.pairs import PairEstimates as PairEstimates, TableEstimate as TableEstimate
from sidelight.estimation.pairs import estimate_pairs as estimate_pairs
from sidelight.estimation.dependence import PairDependence as PairDependence
from sidelight.estimation.synthetic import Synthetic as Synthetic, synthetic_people as synthetic_people
