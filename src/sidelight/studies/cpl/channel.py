"""The optimal channel against randomised response at the same limit: a benchmark of ours on cardio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sidelight.belief import Belief
from sidelight.calibration import optimal_channel
from sidelight.sources import read
from sidelight.studies.figures import canvas, draw_lines, grid
from sidelight.studies.study import OURS, Drawing, Study, StudyResult, Verdict, Work, plain_table
from sidelight.studies.tables import existing_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class ChannelRow:
    """Accuracy at one limit on what cholesterol's report says about cardio.

    Attributes:
        limit: on the leakage about cardio.
        budget: of randomised response at that limit.
        response: its accuracy, the report taken as it is.
        guess: its accuracy, each report turned into the best guess.
        optimal: the accuracy of the optimal channel.
        balanced_response: the mean over cholesterol's values of the probability that randomised response
            reports it right.
        balanced_optimal: the same of the channel that is optimal for it.
    """

    limit: float
    budget: float
    response: float
    guess: float
    optimal: float
    balanced_response: float
    balanced_optimal: float


def run(quick: bool = False) -> list[ChannelRow]:
    """Compute the channels at every limit; `quick` at two."""
    cells = read(str(existing_table("cardio"))).counts(["cholesterol", "cardio"])[0]
    belief = Belief.from_counts(cells, source="cardio")
    return [_channel_row(belief, limit) for limit in (_LIMITS[2::4] if quick else _LIMITS)]


def _channel_row(belief: Belief, limit: float) -> ChannelRow:
    prior = belief.prior("cholesterol")
    optimal = optimal_channel(belief, "cholesterol", {"cardio": limit})
    fair = np.diag(1 / (len(prior) * prior))
    balanced = optimal_channel(belief, "cholesterol", {"cardio": limit}, utility=fair)
    return ChannelRow(
        limit,
        optimal.response_epsilon,
        optimal.response_utility,
        optimal.response_best,
        optimal.utility,
        balanced.response_utility,
        balanced.utility,
    )


def figure_channels(rows: Sequence[ChannelRow]) -> Figure:
    """Return the optimal channel against randomised response."""
    figure, (left, right) = canvas(9.8, 4.0, 2)
    accuracy = {
        "optimal": ("optimal channel", "-"),
        "guess": ("randomised response, best guess", "--"),
        "response": ("randomised response, as reported", ":"),
    }
    balanced = {
        "balanced_optimal": ("optimal channel", "-"),
        "balanced_response": ("randomised response", ":"),
    }
    draw_lines(left, rows, "limit", accuracy)
    draw_lines(right, rows, "limit", balanced)
    left.set_ylabel("accuracy")
    right.set_ylabel("accuracy, every value counting the same")
    for axes in (left, right):
        axes.set_xlabel("limit on what it says about cardio")
        grid(axes)
        axes.legend(frameon=False, fontsize=8)
    figure.suptitle("cholesterol reported, cardio secret", fontsize=10)
    return figure


def _read_channel(rows: Sequence[ChannelRow]) -> StudyResult:
    gain = max(row.optimal - row.guess for row in rows)
    reason = (
        f"the optimal channel is up to {gain:.3f} more accurate than randomised response at the same limit"
    )
    drawing = Drawing("calibration-channel", "accuracy against the limit", partial(figure_channels, rows))
    return StudyResult(Verdict("measured", reason), {}, *plain_table(rows), (drawing,))


STUDY = Study(
    "calibration-channel",
    OURS,
    "Calibration: the optimal channel",
    Work("calibration-channel", run, tables=("cardio",)),
    _read_channel,
)
