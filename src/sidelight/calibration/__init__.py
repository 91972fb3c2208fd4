"""Belief and limits in, a plan out: the largest budgets whose certified leakage stays under every limit."""

from sidelight.calibration.calibration import calibrate as calibrate
from sidelight.calibration.optimal_channel import OptimalChannel as OptimalChannel
from sidelight.calibration.optimal_channel import optimal_channel as optimal_channel
from sidelight.calibration.result import Alternative as Alternative, Calibration as Calibration
from sidelight.calibration.result import FrontierPoint as FrontierPoint, Setting as Setting
from sidelight.calibration.unequal import Certificate as Certificate
