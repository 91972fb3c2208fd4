"""The adversary who throws a report away and keeps one guessed value (CPL, Appendix B).

Of a single value it keeps that value; of a set of bits one of those that are set, or any value where none is;
of a hashed bucket one of the values in it, or any value where it is empty; of a subset one of its values; of
a noisy histogram the largest entry. All these treat the other values alike, so the chance of guessing right
says everything: the guess is a channel that favours one value. Published comparisons look at this channel; a
real adversary keeps the whole report, which says more.

The guess from a hashed bucket is that of the family of all functions, as published, in which the hashes of
any number of values are independent. Those of the family in use are independent in pairs only, so that three
values or more are guessed right somewhat more or less often, and not all equally often; the channel says that
it is a model of the one in use.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError, TooLargeError
from sidelight.mechanisms.channel import Channel, DenseChannel, FavouringChannel, ImplicitChannel
from sidelight.mechanisms.hashing import Hashing
from sidelight.mechanisms.histogram import SummedHistogram
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.rappor import Rappor
from sidelight.mechanisms.subset import SubsetSelection
from sidelight.mechanisms.unary import Unary

Array = NDArray[np.float64]


def guess_channel(mechanism: Mechanism) -> Channel:
    """Return the channel from the value to the value that is guessed from its report."""
    channel = mechanism.channel
    if isinstance(channel, FavouringChannel) and channel.family == "singletons":
        return channel
    if isinstance(channel, DenseChannel):
        return DenseChannel(_likeliest(channel.matrix()))
    if isinstance(channel, ImplicitChannel):
        raise TooLargeError(
            f"the guess from {mechanism.name!r} needs its matrix, not built for {channel.size} values; "
            "group the values, or look at the whole report instead."
        )
    return _favouring(channel.size, guess_accuracy(mechanism), isinstance(mechanism, Hashing))


def guess_accuracy(mechanism: Mechanism) -> float:
    """Return the probability that the guess from a report is the true value.

    For local hashing it is that of the family of all functions, the published one.
    """
    size = mechanism.size
    if isinstance(mechanism, Unary | Rappor):
        p, q = float(mechanism.support_if_true), float(mechanism.support_if_other)
        return p * _mean_share(size, q) + (1 - p) * (1 - q) ** (size - 1) / size
    if isinstance(mechanism, Hashing):
        p, share = float(mechanism.support_if_true), 1 / mechanism.buckets
        return p * _mean_share(size, share) + (1 - p) * (1 - share) ** (size - 1) / size
    if isinstance(mechanism, SubsetSelection):
        return float(mechanism.support_if_true) / mechanism.channel.width
    if isinstance(mechanism, SummedHistogram):
        return _largest_is_true(size, 2 / mechanism.epsilon)
    raise InputError(
        f"no guess is defined for the mechanism {mechanism.name!r}; look at its whole report instead."
    )


def _favouring(size: int, accuracy: float, is_model: bool) -> FavouringChannel:
    """Return the channel that keeps a value with the given probability and treats the others alike.

    No guess is worse than a blind one; where it is hardly better, rounding must not say that it is.
    """
    ratio = (1 - accuracy) / (size - 1) / accuracy
    return FavouringChannel(size, "singletons", min(ratio, 1.0), is_model=is_model)


def _mean_share(size: int, probability: float) -> float:
    """Return the mean of 1/(1+B), B the number of the other values also marked, each independently."""
    return -math.expm1(size * math.log1p(-probability)) / (size * probability)


def _largest_is_true(size: int, scale: float) -> float:
    """Return the probability that the true entry is the largest: the integral of f(x - 1) F(x)^(size - 1)."""
    from scipy.integrate import quad

    def below(x: float) -> float:
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    def density(x: float) -> float:
        return math.exp(-abs(x - 1) / scale) / (2 * scale) * below(x) ** (size - 1)

    reach = scale * (40 + math.log(size))
    return float(quad(density, -reach, 1 + reach, points=[0.0, 1.0], limit=400, epsabs=1e-12)[0])


def _likeliest(matrix: Array) -> Array:
    """Return the law of the value under which a report is likeliest, at random where several are."""
    is_best = matrix >= matrix.max(axis=0) * (1 - 1e-12)
    return np.asarray(matrix @ (is_best / is_best.sum(axis=0)).T)
