"""One attribute's randomiser: samples reports, inverts them, and states everything about itself."""

from sidelight.mechanisms.channel import AnyChannel as AnyChannel, Channel as Channel
from sidelight.mechanisms.channel import ContinuousChannel as ContinuousChannel, DenseChannel as DenseChannel
from sidelight.mechanisms.channel import FavouringChannel as FavouringChannel, as_channel as as_channel
from sidelight.mechanisms.channel import GaussianChannel as GaussianChannel
from sidelight.mechanisms.channel import ImplicitChannel as ImplicitChannel, LaplaceChannel as LaplaceChannel
from sidelight.mechanisms.reports import Grid as Grid, ReportForm as ReportForm
from sidelight.mechanisms.mechanism import Aggregate as Aggregate, Mechanism as Mechanism
from sidelight.mechanisms.oracle import FrequencyOracle as FrequencyOracle
from sidelight.mechanisms.register import MECHANISMS as MECHANISMS, create as create, make as make
from sidelight.mechanisms.register import mechanism_class as mechanism_class
from sidelight.mechanisms.reports import Reports as Reports, reports_from_arrow as reports_from_arrow
from sidelight.mechanisms.reports import reports_to_arrow as reports_to_arrow
