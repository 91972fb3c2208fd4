"""One attribute's randomiser: samples reports, states its exact channel, inverts it."""

from sidelight.mechanisms.channel import AnyChannel as AnyChannel, Channel as Channel
from sidelight.mechanisms.channel import ContinuousChannel as ContinuousChannel, DenseChannel as DenseChannel
from sidelight.mechanisms.channel import FavouringChannel as FavouringChannel
from sidelight.mechanisms.channel import GaussianChannel as GaussianChannel
from sidelight.mechanisms.channel import ImplicitChannel as ImplicitChannel, LaplaceChannel as LaplaceChannel
from sidelight.mechanisms.channel import as_channel as as_channel
from sidelight.mechanisms.mechanism import MECHANISMS as MECHANISMS, WITHOUT_BUDGET as WITHOUT_BUDGET
from sidelight.mechanisms.mechanism import Aggregate as Aggregate, Mechanism as Mechanism, create as create
from sidelight.mechanisms.mechanism import make as make
from sidelight.mechanisms.reports import Reports as Reports, reports_from_arrow as reports_from_arrow
from sidelight.mechanisms.reports import reports_to_arrow as reports_to_arrow
