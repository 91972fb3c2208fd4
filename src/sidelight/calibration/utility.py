"""What a budget buys: the expected error of one attribute's estimate, or of a guess from one report."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import Mechanism

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
    if mechanism.guess_is_model:
        raise InputError(
            f"the accuracy of a guess from {mechanism.name!r} is not known in closed form; use "
            "utility='variance', or another mechanism."
        )
    return 1.0 - mechanism.guess_accuracy(prior)
