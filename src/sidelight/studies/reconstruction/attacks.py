"""Figs. 2 to 5 of the reconstruction paper: what its attack finds, and what it finds without the release.

Fig. 2 compares five networks under Laplace noise, Fig. 3 Laplace and Gaussian noise, Fig. 4 intervals,
Fig. 5 swaps within an entity; Figs. 3 to 5 use MLP and CNN. Reports are cut to the public range of the
numbers, without which the published attack on finance comes nowhere near its share. Each figure also shows
the noise-aware attacker, and the control: the attacker without any release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from sidelight.attacks.attack import attack
from sidelight.attacks.floating_point import FloatingPointAttacker, naive_laplace, naive_test
from sidelight.attacks.learners import MODELS, Schedule
from sidelight.attacks.numbers import Numbers
from sidelight.attacks.owner import Family, Noise, protect
from sidelight.attacks.reconstruction import Reconstructor, fit_aware, fit_published
from sidelight.attacks.result import AttackResult
from sidelight.foundation.arrays import Array
from sidelight.foundation.progress import track
from sidelight.studies.ours.limits import ratio_interval
from sidelight.studies.reconstruction.records import StudyTable, study_tables
from sidelight.studies.study import Work

BUDGETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SHARES = (0.25, 0.5, 1.0)
SHOWN = {"Fig. 2": 5.0, "Fig. 4": 5.0, "Fig. 5": 0.5}
"""The figures whose distances are drawn, each at one budget, or one share of swaps."""


@dataclass(frozen=True)
class Setting:
    """One figure: a family of noise, its levels and its models."""

    figure: str
    family: Family
    levels: tuple[float, ...]
    models: tuple[str, ...]
    leniency: float = 1.0

    @property
    def noise(self) -> Noise:
        """The noise; reports are cut to the public range of the numbers."""
        return Noise(self.family, self.leniency, clips=True)


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
    removed_lower: float = math.nan  # the 95 % interval of the share of the release's noise that is removed
    removed_upper: float = math.nan

    @property
    def removed(self) -> float:
        """The share of the release's noise that is removed."""
        return 1 - self.score / self.release if self.release else 0.0

    @property
    def is_further(self) -> bool:
        """Whether it is further from the truth than the release, beyond its interval where that is known."""
        if math.isnan(self.removed_upper):
            return self.score >= self.release
        return self.removed_upper < 0

    @property
    def beats_control(self) -> bool:
        """Whether the gain over the control is above 0 beyond its interval."""
        return self.gain_lower > 0


@dataclass(frozen=True, eq=False)
class AttackStudy:
    """All rows, the distances whose distributions are drawn, and how training went."""

    rows: tuple[Row, ...]  # every attack in every setting
    # by figure, table and line, (records,): the distances of the MLP at one budget
    distances: dict[str, dict[str, dict[str, Array]]] = field(default_factory=dict)
    # by table and model: the published attacker's mean distance after each epoch
    epochs: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)


def run(quick: bool = False) -> AttackStudy:
    """Run the four figures on every table that is there."""
    settings = list(SETTINGS)
    if quick:
        settings = [replace(each, levels=each.levels[1:4:2], models=each.models[:2]) for each in SETTINGS]
    return merged([run_table(table, settings, quick) for table in study_tables(quick=quick)])


def merged(parts: Sequence[AttackStudy]) -> AttackStudy:
    """Return the studies of several tables, or of several settings, as one."""
    distances: dict[str, dict[str, dict[str, Array]]] = {}
    epochs: dict[str, dict[str, tuple[float, ...]]] = {}
    for part in parts:
        for figure, tables in part.distances.items():
            distances.setdefault(figure, {}).update(tables)
        epochs |= part.epochs
    return AttackStudy(tuple(row for part in parts for row in part.rows), distances, epochs)


def run_table(table: StudyTable, settings: Sequence[Setting], quick: bool) -> AttackStudy:
    """Attack a table in several settings."""
    own, target = table.numbers.halves(seed=1)  # he learns from one half and attacks the other
    short = Schedule(epochs=2) if quick else None
    models = list(dict.fromkeys(model for setting in settings for model in setting.models))
    published = {model: fit_published(own, table.secrets, model, schedule=short) for model in models}
    rows: list[Row] = []
    distances: dict[str, dict[str, dict[str, Array]]] = {}
    for setting in track(settings, f"studies on {table.name}"):
        fit = partial(fit_aware, own, table.secrets, setting.noise, setting.levels, schedule=short)
        attackers = {"published": published, "noise-aware": {model: fit(model) for model in setting.models}}
        if setting.figure == "Fig. 2":
            attackers["baseline"] = {"imputation": fit_published(own, table.secrets, "imputation")}
        for level in setting.levels:
            found, lines = _attacked(setting, table, target, level, attackers)
            rows += found
            if SHOWN.get(setting.figure) == level:
                distances[setting.figure] = {table.name: lines}
    history = {model: attacker.history for model, attacker in published.items()}
    return AttackStudy(tuple(rows), distances, {table.name: history} if len(models) > 2 else {})


def _attacked(
    setting: Setting,
    table: StudyTable,
    target: Numbers,
    level: float,
    attackers: Mapping[str, Mapping[str, Reconstructor]],
) -> tuple[list[Row], dict[str, Array]]:
    """Return the rows of one level, and the distances of the MLP by line."""
    released = protect(target, setting.noise, level, table.secrets, seed=2)
    rows, drawn = [], {}
    for kind, by_model in attackers.items():
        for model, attacker in by_model.items():
            if kind == "published" and model not in setting.models:
                continue
            result = attack(released, attacker, secret=attacker.target, truth=target)
            rows.append(_row(setting, table, (level, model, kind), result))
            if model == "mlp":
                drawn[kind] = result
    if setting.figure == "Fig. 2" and len(table.secrets) == 1:
        rows.append(_floating_row(setting, table, target.columns(table.secrets)[:, 0], level))
    lines = {kind: result.losses for kind, result in drawn.items()}
    for first in list(drawn.values())[:1]:  # whose control and release are those of all
        lines["without a release"] = first.control_losses
        if first.baseline_losses is not None:
            lines["release itself"] = first.baseline_losses
    return rows, lines


def _row(
    setting: Setting,
    table: StudyTable,
    named: tuple[float, str, str],
    result: AttackResult,
    reports: Array | None = None,
) -> Row:
    """Return the row of an attack, named by its level, its model and its attacker.

    `reports` are the distances of the release from the truth, by default the result's own.
    """
    place = (setting.figure, table.name, table.kind, setting.family)
    before = result.baseline_losses if reports is None else reports
    release = float(before.mean()) if before is not None else 0.0
    removed = (math.nan, math.nan)
    if before is not None and release > 0:
        kept = ratio_interval(result.losses, before, 0.95)
        removed = (1 - kept.upper, 1 - kept.lower)
    gain = result.gain
    figures = (release, result.control.value, result.score.value, gain.value, gain.lower, gain.upper)
    return Row(*place, *named, *figures, *removed)


def _floating_row(setting: Setting, table: StudyTable, true: Array, level: float) -> Row:
    """Return the floating-point attack on the naive sampler, the candidates being all values that occur.

    Its control is the nearest candidate, what the report says without the trick; the other rows' is not.
    """
    candidates = np.unique(table.numbers.columns(table.secrets)[:, 0])
    # values lie in a range of 1, which is the sensitivity, so the scale is 1 / epsilon
    reports = naive_laplace(true, 1 / level, seed=3)
    attacker = FloatingPointAttacker(tuple(candidates.tolist()), naive_test(1 / level), "naive")
    guess = attacker.guess(reports, table.secrets[0], 0.95)
    losses = np.abs(candidates[guess.guesses] - true)
    before = np.abs(candidates[guess.control] - true)
    found = (guess.guesses, losses, before)
    result = AttackResult(table.secrets[0], "floating-point", "naive", "mean distance", *found)
    return _row(setting, table, (level, "floating-point", "baseline"), result, np.abs(reports - true))


WORK = Work("attacks", run, uses=("geolife_sample", "sf_cabs_sample"), minutes=6)
