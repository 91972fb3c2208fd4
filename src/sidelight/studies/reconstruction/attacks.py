"""Figs. 2 to 5 of the reconstruction paper: what its attack finds, and what it finds without the release.

Fig. 2 compares five networks under Laplace noise, Fig. 3 Laplace and Gaussian noise, Fig. 4 intervals,
Fig. 5 swaps within an entity; Figs. 3 to 5 use MLP and CNN. The paper states no budget and no scale, so its
shares of removed noise are context and not a threshold. Each figure here also shows the noise-aware
attacker, and the control: the attacker without any release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sidelight.attacks.attack import attack
from sidelight.attacks.floating import FloatingPointAttacker, naive_laplace, naive_test
from sidelight.attacks.networks import MODELS
from sidelight.attacks.owner import Family, Noise, NoisyNumbers, protect
from sidelight.attacks.reconstruction import Reconstructor, fit_aware, fit_published
from sidelight.attacks.result import AttackResult
from sidelight.attacks.training import Schedule
from sidelight.foundation.progress import track
from sidelight.studies.reconstruction.records import StudyTable, study_tables

Array = NDArray[np.float64]

BUDGETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SHARES = (0.25, 0.5, 1.0)
SHOWN = 5.0
"""The budget whose distances are drawn."""

_BINS = 60


@dataclass(frozen=True)
class Setting:
    """One figure: a family of noise, its levels and its models."""

    figure: str
    family: Family
    levels: tuple[float, ...]
    models: tuple[str, ...]
    leniency: float = 1.0


SETTINGS = (
    Setting("Fig. 2", "laplace", BUDGETS, MODELS),
    Setting("Fig. 2, stricter secret", "laplace", BUDGETS, ("mlp", "cnn"), leniency=2.0),
    Setting("Fig. 3", "gaussian", BUDGETS, ("mlp", "cnn")),
    Setting("Fig. 4", "interval", BUDGETS, ("mlp", "cnn")),
    Setting("Fig. 5", "swap", SHARES, ("mlp", "cnn")),
)
"""Fig. 3 also shows the Laplace rows of Fig. 2. The paper's secret has the strictest budget, by how much is
not said: once all budgets are equal, once the others' are twice the secret's."""


@dataclass(frozen=True)
class Row:
    """One attack in one setting; distances are in shares of the secret's range."""

    figure: str
    table: str
    kind: str
    family: str
    level: float
    model: str
    attacker: str
    release: float
    control: float
    score: float
    gain: float
    gain_lower: float
    gain_upper: float

    @property
    def removed(self) -> float:
        """The share of the release's noise that is removed."""
        return 1 - self.score / self.release if self.release else 0.0

    @property
    def beats_control(self) -> bool:
        """Whether the gain over the control is above 0 beyond its interval."""
        return self.gain_lower > 0


@dataclass(frozen=True, eq=False)
class AttackStudy:
    """All rows, and the distributions of distances that are drawn."""

    rows: tuple[Row, ...]  # every attack in every setting
    # (bins,) by table and line, over `edges`: the distances of the MLP at one budget
    densities: dict[tuple[str, str], Array] = field(default_factory=dict)
    edges: dict[str, Array] = field(default_factory=dict)  # (bins + 1,) by table


def run(quick: bool = False) -> AttackStudy:
    """Run the four figures on every table that is there."""
    settings = [_shortened(setting) for setting in SETTINGS] if quick else list(SETTINGS)
    rows: list[Row] = []
    densities: dict[tuple[str, str], Array] = {}
    edges: dict[str, Array] = {}
    for table in study_tables(quick=quick):
        attacked, drawn = _run_table(table, settings, quick)
        rows += attacked
        places, heights = _densities(drawn)
        edges[table.name] = places
        densities |= {(table.name, line): height for line, height in heights.items()}
    return AttackStudy(tuple(rows), densities, edges)


def _shortened(setting: Setting) -> Setting:
    return replace(setting, levels=setting.levels[1:4:2], models=setting.models[:2])


def _run_table(
    table: StudyTable, settings: Sequence[Setting], quick: bool
) -> tuple[list[Row], dict[str, AttackResult]]:
    """Return the rows of a table, and the results whose distances are drawn."""
    own, target = table.numbers.halves(seed=1)
    short = Schedule(epochs=3) if quick else None
    models = settings[0].models
    published = {model: fit_published(own, table.secrets, model, schedule=short) for model in models}
    baseline = {"imputation": fit_published(own, table.secrets, "imputation")}
    rows: list[Row] = []
    drawn: dict[str, AttackResult] = {}
    for setting in track(settings, f"studies on {table.name}"):
        noise = Noise(setting.family, setting.leniency)
        aware = {
            model: fit_aware(own, table.secrets, noise, setting.levels, model, schedule=short)
            for model in setting.models
        }
        for level in setting.levels:
            released = protect(target, noise, level, table.secrets, seed=2)
            kinds: dict[str, dict[str, Reconstructor]] = {
                "published": {model: published[model] for model in setting.models},
                "noise-aware": aware,
            }
            if setting.figure == "Fig. 2":
                kinds["baseline"] = baseline
            for kind, attackers in kinds.items():
                for model, attacker in attackers.items():
                    result = attack(released, attacker, secret=attacker.target, truth=target)
                    rows.append(_row(setting, table, released, model, kind, result))
                    if setting.figure == "Fig. 2" and level == SHOWN and model == "mlp":
                        drawn[kind] = result
            if setting.figure == "Fig. 2" and len(table.secrets) == 1:
                rows.append(_floating_row(setting, table, target.columns(table.secrets)[:, 0], level))
    return rows, drawn


def _row(
    setting: Setting, table: StudyTable, released: NoisyNumbers, model: str, kind: str, result: AttackResult
) -> Row:
    release = result.baseline.value if result.baseline else 0.0
    named = (setting.figure, table.name, table.kind, setting.family, released.level, model, kind)
    return Row(*named, release, result.control.value, result.score.value, *astuple(result.gain))


def _floating_row(setting: Setting, table: StudyTable, true: Array, level: float) -> Row:
    """Return the floating-point attack on the naive sampler, the candidates being all values that occur.

    Its control is the nearest candidate, what the report says without the trick; the other rows' is not.
    """
    candidates = np.unique(table.numbers.columns(table.secrets)[:, 0])
    reports = naive_laplace(true, 1 / level, seed=3)
    attacker = FloatingPointAttacker(tuple(candidates.tolist()), naive_test(1 / level), "naive")
    guess = attacker.guess(reports, table.secrets[0], 0.95)
    losses = np.abs(candidates[guess.guesses] - true)
    before = np.abs(candidates[guess.control] - true)
    result = AttackResult(
        table.secrets[0], "floating-point", "naive", "mean distance", guess.guesses, losses, before
    )
    named = (setting.figure, table.name, table.kind, setting.family, level, "floating-point", "baseline")
    release = float(np.abs(reports - true).mean())
    return Row(*named, release, result.control.value, result.score.value, *astuple(result.gain))


def _densities(drawn: dict[str, AttackResult]) -> tuple[Array, dict[str, Array]]:
    if not drawn:
        return np.zeros(1), {}
    first = next(iter(drawn.values()))
    lines = {kind: result.losses for kind, result in drawn.items()}
    lines["without a release"] = first.control_losses
    if first.baseline_losses is not None:
        lines["release itself"] = first.baseline_losses
    end = max(float(np.quantile(losses, 0.98)) for losses in lines.values())
    edges = np.linspace(0, end, _BINS + 1)
    width = edges[1] - edges[0]
    return edges, {
        line: np.histogram(losses, edges)[0] / (len(losses) * width) for line, losses in lines.items()
    }
