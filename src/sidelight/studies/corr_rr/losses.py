"""The cells of Corr-RR's figures that our estimator loses, and why: a benchmark of ours."""

from __future__ import annotations

from dataclasses import dataclass

from sidelight.studies.corr_rr.figures import WORK, ErrorStudy
from sidelight.studies.corr_rr.simulation import BASELINES, FURTHER, Cell
from sidelight.studies.study import OURS, Study, StudyResult, Verdict


@dataclass(frozen=True)
class Loss:
    """A cell in which ours loses to a method."""

    figure: str
    panel: str
    place: float
    method: str
    ratio: float
    lower: float
    upper: float
    is_baseline: bool
    explanation: str


def losses_of(study: ErrorStudy) -> list[Loss]:
    """Return the cells in which ours loses to a method."""
    losses = []
    for figure in study.figures:
        for (panel, place), setting in figure.places.items():
            cell = study.cells[setting]
            for method in cell.lost((*BASELINES, *FURTHER)):
                reason = (method in BASELINES, explain(cell, method))
                losses.append(Loss(figure.number, panel, place, method, *cell.ratio(method), *reason))
    return losses


def explain(cell: Cell, method: str) -> str:
    """Say why ours loses a cell."""
    if method == "smp + simplex":
        return (
            "marginals near a point mass: the projection alone already removes the noise, and what the data "
            "say about the better estimator is itself noisy"
        )
    if method == "product":
        return "the protocol was chosen for uniform frequencies; these are not, and both are close"
    if method == "corr-rr":
        return "its bias happens to point at the truth here: all columns copy nearly the same value"
    return f"with {cell.chosen} the shrinkage costs more than it gains for marginals this different"


def _read_losses(study: ErrorStudy) -> StudyResult:
    """List where ours loses (the whole 95 % interval of the error ratio is above 1.02), and say why."""
    paired = len(study.cells)
    losses = losses_of(study)
    baselines = sum(loss.is_baseline for loss in losses)
    reason = (
        f"ours loses {baselines} of {paired * len(BASELINES)} comparisons with {', '.join(BASELINES)}, and "
        f"{len(losses) - baselines} of {paired * len(FURTHER)} with {', '.join(FURTHER)} "
        f"({study.trials} paired trials a cell)"
    )
    columns = ("figure", "panel", "place", "method", "ratio", "lower", "upper", "explanation")
    rows = tuple(tuple(getattr(loss, column) for column in columns) for loss in losses)
    return StudyResult(Verdict("measured", reason), {}, columns, rows)


LOSSES = Study(
    "collection-losses", OURS, "Cells of Figs. 4 to 14 that our estimator loses", WORK, _read_losses
)
