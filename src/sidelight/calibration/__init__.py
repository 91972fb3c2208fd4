"""Belief and limits in, a plan out: the largest budgets whose certified leakage stays under every limit."""

from sidelight.calibration.calibration import calibrate
from sidelight.calibration.optimal_channel import OptimalChannel, optimal_channel
from sidelight.calibration.result import Alternative, Calibration, FrontierPoint, Setting
from sidelight.calibration.unequal import Certificate

__all__ = [
    "Alternative",
    "Calibration",
    "Certificate",
    "FrontierPoint",
    "OptimalChannel",
    "Setting",
    "calibrate",
    "optimal_channel",
]
