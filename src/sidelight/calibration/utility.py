"""What a budget buys: the expected error of one attribute's estimate, or of a guess from one report."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sidelight.foundation.errors import InputError
from sidelight.mechanisms import FavouringChannel, Mechanism
from sidelight.mechanisms.counting import Counting
from sidelight.mechanisms.unary import Unary

Array = NDArray[np.float64]
Utility = Literal["variance", "accuracy"]
UTILITIES: tuple[Utility, ...] = ("variance", "accuracy")


def expected_error(mechanism: Mechanism, prior: Array, reports: int, utility: Utility) -> float:
    """Return the error to keep small.

    Args:
        mechanism: of one attribute.
        prior: (k,) the frequencies of its values.
        reports: how many people send one.
        utility: "variance": the expected squared distance between the estimated and the true frequencies,
            the sum of the stated variances; "accuracy": the probability that a guess from a report is wrong.
    """
    if utility == "variance":
        return float(np.sum(mechanism.variance(reports, prior)))
    return 1.0 - guess_accuracy(mechanism, prior)


def guess_accuracy(mechanism: Mechanism, prior: Array) -> float:
    """Return Pr(guess = value) of the guess that a report itself suggests (CPL, Appendix B).

    The guess is drawn evenly from the values that the report makes likeliest; where they are none, from all.

    >>> from sidelight.mechanisms import create
    >>> round(guess_accuracy(create("grr", 2, 1.0), np.array([0.5, 0.5])), 4)
    0.7311
    """
    if isinstance(mechanism, Unary):
        return _unary_accuracy(mechanism)
    channel = mechanism.channel
    if isinstance(mechanism, Counting) and isinstance(channel, FavouringChannel) and channel.family != "all":
        return float(mechanism.support_if_true) / channel.width
    if (
        isinstance(channel, FavouringChannel) and channel.family == "singletons"
    ):  # the true value itself, or nothing
        likely = channel.likelihood(0)
        return float(likely.max() / likely.sum())
    if channel.is_listable:
        return _matrix_accuracy(channel.matrix(), prior)
    raise InputError(
        f"the accuracy of a guess from {mechanism.name!r} is not known in closed form; "
        "use utility='variance', or one of grr, ss, sue, oue, exp, hadamard, interval."
    )


def _unary_accuracy(mechanism: Unary) -> float:
    """Return the accuracy of a guess among the set bits, or among all values where none is set.

    With B other bits set, B binomial, E[1 / (1 + B)] = (1 - (1-q)^k) / (k q).
    """
    size, p, q = mechanism.size, float(mechanism.support_if_true), float(mechanism.support_if_other)
    none = (1 - q) ** (size - 1)
    return p * (1 - none * (1 - q)) / (size * q) + (1 - p) * none / size


def _matrix_accuracy(cells: Array, prior: Array) -> float:
    likeliest = cells >= cells.max(axis=0) * (1 - 1e-12)
    return float(prior @ (cells * likeliest / likeliest.sum(axis=0)).sum(axis=1))
