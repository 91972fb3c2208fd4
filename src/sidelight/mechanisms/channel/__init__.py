"""Channels: the law of a report given the value, and everything that leakage may ask of it."""

from sidelight.mechanisms.channel.channel import LARGEST_LIST as LARGEST_LIST
from sidelight.mechanisms.channel.channel import LARGEST_MATRIX as LARGEST_MATRIX, Channel as Channel
from sidelight.mechanisms.channel.channel import ChannelClaim as ChannelClaim, Worst as Worst
from sidelight.mechanisms.channel.continuous import ContinuousChannel as ContinuousChannel
from sidelight.mechanisms.channel.continuous import GaussianChannel as GaussianChannel
from sidelight.mechanisms.channel.continuous import LaplaceChannel as LaplaceChannel
from sidelight.mechanisms.channel.degraded import DegradedChannel as DegradedChannel
from sidelight.mechanisms.channel.dense import CountedChannel as CountedChannel
from sidelight.mechanisms.channel.dense import DenseChannel as DenseChannel, as_channel as as_channel
from sidelight.mechanisms.channel.dense import as_channels as as_channels
from sidelight.mechanisms.channel.dense import channel_of_columns as channel_of_columns
from sidelight.mechanisms.channel.sets import AnyChannel as AnyChannel, FavouringChannel as FavouringChannel
from sidelight.mechanisms.channel.sets import ImplicitChannel as ImplicitChannel
