"""The adversary who throws a report away and keeps one guessed value (CPL, Appendix B).

Of a single value it keeps that value; of a set of bits one of those that are set, or any value where none is;
of a hashed bucket one of the values in it, or any value where it is empty; of a subset one of its values; of
a noisy histogram the largest entry; of any other report a value under which it is likeliest. The first five
treat the other values alike, so the chance of guessing right says everything: the guess is a channel that
favours one value. Published comparisons look at this channel; a real adversary keeps the whole report, which
says more.

The guess from a hashed bucket is that of the family of all functions, as published, in which the hashes of
any number of values are independent. Those of the family in use are independent in pairs only, so that three
values or more are guessed right somewhat more or less often, and not all equally often; the channel says that
it is a model of the one in use.
"""

from __future__ import annotations

import math

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.mechanisms.channel import FavouringChannel


def likeliest(cells: Array) -> Array:
    """Return how likely each value is guessed from each report: the likeliest, evenly where several are."""
    is_best = cells >= cells.max(axis=0) * (1 - 1e-12)
    return np.asarray(is_best / is_best.sum(axis=0))


def even_guess(size: int, accuracy: float, *, is_model: bool = False) -> FavouringChannel:
    """Return the channel of a guess that is right with a given probability and else treats values alike.

    No guess is worse than a blind one; where it is hardly better, rounding must not say that it is.
    """
    ratio = (1 - accuracy) / max(size - 1, 1) / accuracy
    return FavouringChannel(size, "singletons", min(ratio, 1.0), is_model=is_model)


def marked_accuracy(size: int, if_true: float, if_other: float) -> float:
    """Return how often a guess among independently marked values is right, or among all where none is.

    With B other values marked, B binomial, E[1 / (1 + B)] = (1 - (1-q)^k) / (k q).
    """
    share = -math.expm1(size * math.log1p(-if_other)) / (size * if_other)
    return if_true * share + (1 - if_true) * (1 - if_other) ** (size - 1) / size


def largest_is_true(size: int, scale: float) -> float:
    """Return the probability that the true entry of a noisy histogram is the largest.

    It is the integral of f(x - 1) F(x)^(size - 1), with f and F of Laplace noise.
    """
    from scipy.integrate import quad

    def below(x: float) -> float:
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    def density(x: float) -> float:
        return math.exp(-abs(x - 1) / scale) / (2 * scale) * below(x) ** (size - 1)

    reach = scale * (40 + math.log(size))
    return float(quad(density, -reach, 1 + reach, points=[0.0, 1.0], limit=400, epsabs=1e-12)[0])
