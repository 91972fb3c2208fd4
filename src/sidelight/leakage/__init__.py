"""Belief and channels in, leakage out."""

from sidelight.leakage.analysers import ANALYSERS as ANALYSERS, Analyser as Analyser
from sidelight.leakage.analysers import leakage_error as leakage_error
from sidelight.leakage.analysers import normalised_overshoot as normalised_overshoot
from sidelight.leakage.analysers import normalised_undershoot as normalised_undershoot, region as region
from sidelight.leakage.average import AverageLeakage as AverageLeakage, average_leakage as average_leakage
from sidelight.leakage.average import correlation_matrix as correlation_matrix
from sidelight.leakage.average import mutual_information as mutual_information
from sidelight.leakage.average import mutual_information_matrix as mutual_information_matrix
from sidelight.leakage.average import normalised_mutual_information as normalised_mutual_information
from sidelight.leakage.average import pearson_correlation as pearson_correlation
from sidelight.leakage.black_box import RandomiserAudit as RandomiserAudit
from sidelight.leakage.black_box import audit_randomiser as audit_randomiser
from sidelight.leakage.bounds import Bound as Bound, Leakage as Leakage, Witness as Witness
from sidelight.leakage.credal import robust_pair as robust_pair, robust_total as robust_total
from sidelight.leakage.hashing import hashing_leakage as hashing_leakage
from sidelight.leakage.over_time import Chain as Chain, OverTime as OverTime
from sidelight.leakage.over_time import leakage_over_time as leakage_over_time
from sidelight.leakage.over_time import leakage_over_time_at as leakage_over_time_at
from sidelight.leakage.over_time import linking as linking, repetitions as repetitions
from sidelight.leakage.pair import direct_leakage as direct_leakage, pair_leakage as pair_leakage
from sidelight.leakage.pair import pair_matrix as pair_matrix, saturation as saturation
from sidelight.leakage.profile import ProfilePoint as ProfilePoint, approximate_pair as approximate_pair
from sidelight.leakage.profile import privacy_profile as privacy_profile, profile_epsilon as profile_epsilon
from sidelight.leakage.profile import published_approximate_pair as published_approximate_pair
from sidelight.leakage.published import budget_sum as budget_sum, graph_budget_sum as graph_budget_sum
from sidelight.leakage.published import pairwise_sum as pairwise_sum
from sidelight.leakage.published import reconstruction_advanced as reconstruction_advanced
from sidelight.leakage.published import reconstruction_sum as reconstruction_sum
from sidelight.leakage.published import sampling_amplification as sampling_amplification
from sidelight.leakage.statistical import StatisticalLeakage as StatisticalLeakage
from sidelight.leakage.statistical import statistical_leakage as statistical_leakage
from sidelight.leakage.synergy import Synergy as Synergy, synergy_scan as synergy_scan
from sidelight.leakage.totals import DeltaLeakage as DeltaLeakage, DeltaPoint as DeltaPoint
from sidelight.leakage.totals import Exposure as Exposure, exposure as exposure
from sidelight.leakage.totals import leakage_at as leakage_at, set_leakage as set_leakage
from sidelight.leakage.totals import total_leakage as total_leakage
from sidelight.leakage.totals import tree_total as tree_total, tree_totals as tree_totals
