"""Figs. 2 to 5 of the reconstruction paper: what its attack finds, and what it finds without the release.

Fig. 2 compares five networks under Laplace noise, Fig. 3 Laplace and Gaussian noise, Fig. 4 intervals,
Fig. 5 swaps within an entity; Figs. 3 to 5 use MLP and CNN. The paper states no budget and no scale, so its
shares of removed noise are context and not a threshold. Each figure here also shows the noise-aware
attacker, and the control: the attacker without any release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sidelight.attacks.attack import attack
from sidelight.attacks.floating_point import FloatingPointAttacker, naive_laplace, naive_test
from sidelight.attacks.learners import MODELS, Schedule
from sidelight.attacks.owner import Family, Noise, protect
from sidelight.attacks.reconstruction import Reconstructor, fit_aware, fit_published
from sidelight.attacks.result import AttackResult
from sidelight.foundation.arrays import Array
from sidelight.foundation.progress import track
from sidelight.studies.figures import canvas, finish
from sidelight.studies.reconstruction.records import StudyTable, study_tables
from sidelight.studies.register import CATALOGUE
from sidelight.studies.study import Drawing, Kind, Reading, StudyResult, Value, Verdict, Work, plain_table

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
    """All rows, and the distances whose distributions are drawn."""

    rows: tuple[Row, ...]  # every attack in every setting
    # by table and line, (records,): the distances of the MLP at one budget
    distances: dict[str, dict[str, Array]] = field(default_factory=dict)


def run(quick: bool = False) -> AttackStudy:
    """Run the four figures on every table that is there."""
    settings = list(SETTINGS)
    if quick:
        settings = [replace(each, levels=each.levels[1:4:2], models=each.models[:2]) for each in SETTINGS]
    rows: list[Row] = []
    distances: dict[str, dict[str, Array]] = {}
    for table in study_tables(quick=quick):
        attacked, distances[table.name] = _run_table(table, settings, quick)
        rows += attacked
    return AttackStudy(tuple(rows), {name: lines for name, lines in distances.items() if lines})


def _run_table(
    table: StudyTable, settings: Sequence[Setting], quick: bool
) -> tuple[list[Row], dict[str, Array]]:
    """Return the rows of a table, and the distances that are drawn, by line."""
    own, target = table.numbers.halves(seed=1)  # he learns from one half and attacks the other
    short = Schedule(epochs=3) if quick else None
    models = settings[0].models
    published = {model: fit_published(own, table.secrets, model, schedule=short) for model in models}
    baseline = {"imputation": fit_published(own, table.secrets, "imputation")}
    rows: list[Row] = []
    drawn: dict[str, AttackResult] = {}
    for setting in track(settings, f"studies on {table.name}"):
        noise = Noise(setting.family, setting.leniency)
        fit = partial(fit_aware, own, table.secrets, noise, setting.levels, schedule=short)
        aware = {model: fit(model) for model in setting.models}
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
                    release = result.baseline.value if result.baseline else 0.0
                    rows.append(_row(setting, table, (level, model, kind), release, result))
                    if setting.figure == "Fig. 2" and level == SHOWN and model == "mlp":
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
    setting: Setting, table: StudyTable, named: tuple[float, str, str], release: float, result: AttackResult
) -> Row:
    """Return the row of an attack, named by its level, its model and its attacker."""
    place = (setting.figure, table.name, table.kind, setting.family)
    return Row(*place, *named, release, result.control.value, result.score.value, *astuple(result.gain))


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
    release = float(np.abs(reports - true).mean())
    return _row(setting, table, (level, "floating-point", "baseline"), release, result)


_STRICTER = "Fig. 2, stricter secret"
_STRONGEST: tuple[Kind, ...] = ("differs", "reproduced", "not possible")
_CONTROL = "settings in which the published attack beats the guess without a release"
_NEARER = "settings in which the published attack is nearer to the truth than the release"
_WORK = Work("attacks", run, uses=("geolife_sample", "sf_cabs_sample"), minutes=15)


def rows_of(rows: Sequence[Row], figure: str) -> list[Row]:
    """Return the rows that a drawing shows: its own, and in Fig. 3 the Laplace noise, which is Fig. 2's."""
    beside = ("mlp", "cnn") if figure == "Fig. 3" else ()
    return [row for row in rows if row.figure == figure or (row.figure == "Fig. 2" and row.model in beside)]


def levels_figure(title: str, study: AttackStudy) -> Figure:
    """Draw the mean distance against the level, a panel for each table and family."""
    rows = rows_of(study.rows, title)
    panels = list(dict.fromkeys((row.table, row.family) for row in rows))
    figure, many = canvas(4.2 * len(panels), 3.8, len(panels))
    for axes, (table, family) in zip(many, panels, strict=True):
        chosen = [row for row in rows if (row.table, row.family) == (table, family)]
        _levels_panel(axes, chosen, f"{title}, {table}, {family}")
    many[0].set_ylabel("mean distance to the truth")
    fullest = max(many, key=lambda axes: len(axes.lines))
    figure.legend(handles=fullest.lines, frameon=False, fontsize=7, loc="outside right upper")
    return figure


def _levels_panel(axes: Axes, rows: Sequence[Row], title: str) -> None:
    levels = sorted({row.level for row in rows})
    at = [[row for row in rows if row.level == level and row.attacker != "baseline"] for level in levels]
    releases = [np.mean([row.release for row in same]) for same in at]
    controls = [np.mean([row.control for row in same]) for same in at]
    axes.plot(levels, releases, "k--", label="release itself")
    axes.plot(levels, controls, "k:", label="no release")
    for attacker, style in (("published", "-"), ("noise-aware", "-."), ("baseline", ":")):
        for model in dict.fromkeys(row.model for row in rows if row.attacker == attacker):
            line = {row.level: row.score for row in rows if (row.attacker, row.model) == (attacker, model)}
            scores = [line[level] for level in levels]
            axes.plot(levels, scores, style, marker=".", label=f"{model}, {attacker}")
    swaps = rows[0].family == "swap"
    axes.set(yscale="log", xscale="linear" if swaps else "log")
    finish(axes, "share swapped (no budget)" if swaps else "budget of the secret", title=title)


def distances_figure(study: AttackStudy) -> Figure:
    """Draw density and cumulative share of the distances, a row for each table."""
    figure, many = canvas(9, 3.2 * len(study.distances), 2, len(study.distances))
    panels = zip(many[::2], many[1::2], strict=True)
    for (density, cumulative), (table, lines) in zip(panels, study.distances.items(), strict=True):
        # the last fiftieth of the distances would squeeze all others into the first bins
        end = max(float(np.quantile(losses, 0.98)) for losses in lines.values())
        edges = np.linspace(0, end, _BINS + 1)
        width = edges[1] - edges[0]
        for line, losses in lines.items():
            heights = np.histogram(losses, edges)[0] / (len(losses) * width)
            density.plot((edges[1:] + edges[:-1]) / 2, heights, label=line)
            cumulative.plot(edges[1:], np.cumsum(heights) * width, label=line)
        finish(density, "distance to the truth", f"{table}: density")
        finish(cumulative, "distance to the truth", "share of records within", legend=8)
    return figure


def _judge_figure(number: str, study: AttackStudy) -> StudyResult:
    rows = rows_of(study.rows, f"Fig. {number}")
    stricter = rows_of(study.rows, _STRICTER) if number == "2" else []
    drawings = []
    if stricter:
        title = "mean distance where the secret has half of the others' budget"
        draw = partial(levels_figure, _STRICTER, study)
        drawings.append(Drawing("reconstruction-fig2-stricter", title, draw))
    if number == "2" and study.distances:
        title, draw = "density and share of distances", partial(distances_figure, study)
        drawings.append(Drawing("reconstruction-fig2-distances", title, draw))
    table = plain_table((*rows, *stricter), "removed")
    return StudyResult(_verdict(number, study.rows), _ours(number, rows), *table, tuple(drawings))


def _verdict(number: str, rows: Sequence[Row]) -> Verdict:
    """Return the figure's verdict over all tables: the strongest of theirs, with every reason."""
    figure = f"Fig. {number}"
    parts = {place: _table_verdict(chosen) for place, chosen in _by_table(rows, figure).items()}
    kind = min((part.kind for part in parts.values()), key=_STRONGEST.index)
    if number == "3":
        published = [row for row in rows_of(rows, figure) if row.attacker == "published"]
        kind = "reproduced" if all(row.score < row.release for row in published) else "differs"
    reasons = [f"{place}: {part.reason}" for place, part in parts.items()]
    if kind == "not possible":
        reasons.insert(0, "no share is published for the tables of this run")
    return Verdict(kind, "; ".join(reasons))


def _by_table(rows: Sequence[Row], figure: str) -> dict[str, list[Row]]:
    """Return a figure's rows by table, those of its stricter secret apart."""
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        if row.figure.partition(", ")[0] == figure:
            place = f"{row.figure}, {row.table}".removeprefix(f"{figure}, ")
            by_table.setdefault(place, []).append(row)
    return by_table


def _table_verdict(rows: Sequence[Row]) -> Verdict:
    """Judge a figure on one table: against the paper's share, and against the control."""
    published = [row for row in rows if row.attacker == "published"]
    aware = [row for row in rows if row.attacker == "noise-aware"]
    removed = [row.removed for row in published if row.model in ("mlp", "cnn")]
    study = CATALOGUE[f"reconstruction-fig{rows[0].figure.partition(',')[0][-1]}"]
    printed = study.published.get(f"{rows[0].kind}: share of the noise removed")
    kind: Kind = "not possible"
    words, beside = "", "the paper states no share"
    if printed is not None:
        paper = float(str(printed).rstrip("%")) / 100
        within = min(removed) <= paper <= max(removed)  # its budget is unstated: any of ours may be it
        kind = "reproduced" if within else "differs"
        words = "reproduced at some budget, which is weak: " if within else "differs: "
        beside = f"the paper states {paper:.1%} at an unstated budget"
    better = sum(b.score <= a.score for a, b in zip(published, aware, strict=True))
    reason = (
        f"{words}the published MLP and CNN remove {min(removed):.0%} to {max(removed):.0%} of the noise "
        f"({beside}) and beat the control in {_wins(published)} of {len(published)} settings; the "
        f"noise-aware attacker is at least as good in {better} of {len(published)}, and beats the control "
        f"in {_wins(aware)}"
    )
    return Verdict(kind, reason)


def _wins(rows: Sequence[Row]) -> int:
    return sum(row.beats_control for row in rows)


def _ours(number: str, rows: Sequence[Row]) -> dict[str, Value]:
    published = [row for row in rows if row.attacker == "published"]
    found = {
        **{
            kind: _removed([row for row in published if row.kind == kind])
            for kind in ("vehicular", "finance")
        },
        _NEARER: f"{sum(row.score < row.release for row in published)} of {len(published)}",
        _CONTROL: f"{_wins(published)} of {len(published)}",
    }
    names = CATALOGUE[f"reconstruction-fig{number}"].published
    return {name: found[name.partition(": ")[0]] for name in names}


def _removed(rows: Sequence[Row]) -> Value:
    shares = [row.removed for row in rows if row.model in ("mlp", "cnn")]
    if not shares:
        return "not computed: quick, or its tables are missing"
    return f"{min(shares):.1%} to {max(shares):.1%}, by budget and model"


STUDIES = {
    f"reconstruction-fig{n}": Reading(_WORK, partial(_judge_figure, n), partial(levels_figure, f"Fig. {n}"))
    for n in "2345"
}
