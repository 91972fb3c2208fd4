"""Belief and channels in, leakage out."""

from sidelight.leakage.bounds import Bound, Leakage, Witness
from sidelight.leakage.credal import robust_pair, robust_total
from sidelight.leakage.pair import direct_leakage, pair_leakage, pair_matrix, saturation
from sidelight.leakage.published import pairwise_sum
from sidelight.leakage.total import total_leakage
from sidelight.leakage.tree import tree_total, tree_totals

__all__ = [
    "Bound",
    "Leakage",
    "Witness",
    "direct_leakage",
    "pair_leakage",
    "pair_matrix",
    "pairwise_sum",
    "robust_pair",
    "robust_total",
    "saturation",
    "total_leakage",
    "tree_total",
    "tree_totals",
]
