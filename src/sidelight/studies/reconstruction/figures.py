"""Paper Reconstruction, Figs. 2 to 5: drawn and judged.

The paper states no budget. Its shares of removed noise count as reproduced where one budget brings out all
those of a figure together, for one network (in Fig. 2 the CNN, whose shares are printed), on the paper's
table of vehicles and the one that stands for its companies: each within 0.05 of the printed share, or with
the printed share in the 95 % interval of ours. Where it prints none for a table, the attack must not be
further from the truth than the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sidelight.studies.figures import canvas, finish
from sidelight.studies.reconstruction.attacks import WORK, AttackStudy, Row
from sidelight.studies.register import CATALOGUE
from sidelight.studies.study import Drawing, Reading, StudyResult, Value, Verdict, plain_table

JUDGED = {"vehicular": "GeoLife", "finance": "NYSE"}
"""By kind, the table that is judged: the paper's own, and one in the place of one that is not public."""
NETWORKS = {"2": ("cnn",), "4": ("mlp", "cnn"), "5": ("mlp", "cnn")}
"""Whose shares the text prints."""
NEAR = 0.05
"""How far a share of removed noise may be from the printed one."""
_BINS = 60
_STRICTER = "Fig. 2, stricter secret"
_CONTROL = "settings in which the published attack beats the guess without a release"
_NEARER = "settings in which the published attack is nearer to the truth than the release"


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


def distances_figure(figure: str, study: AttackStudy) -> Figure:
    """Draw density and cumulative share of the distances, a row for each table."""
    tables = study.distances[figure]
    drawing, many = canvas(9, 3.2 * len(tables), 2, len(tables))
    panels = zip(many[::2], many[1::2], strict=True)
    for (density, cumulative), (table, lines) in zip(panels, tables.items(), strict=True):
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
    return drawing


def epochs_figure(study: AttackStudy) -> Figure:
    """Draw how the published attackers learn: their mean distance on clean rows after each epoch."""
    drawing, many = canvas(4.2 * len(study.epochs), 3.4, len(study.epochs))
    for axes, (table, models) in zip(many, study.epochs.items(), strict=True):
        for model, history in models.items():
            axes.semilogy(range(1, len(history) + 1), history, label=model)
        finish(axes, "epoch", "mean distance, clean rows", title=table, legend=8)
    return drawing


def _judge_figure(number: str, study: AttackStudy) -> StudyResult:
    rows = rows_of(study.rows, f"Fig. {number}")
    stricter = rows_of(study.rows, _STRICTER) if number == "2" else []
    drawings = []
    if stricter:
        title = "mean distance where the secret has half of the others' budget"
        draw = partial(levels_figure, _STRICTER, study)
        drawings.append(Drawing("reconstruction-fig2-stricter", title, draw))
    if number == "2" and study.epochs:
        drawings.append(
            Drawing("reconstruction-fig2-epochs", "how the networks learn", partial(epochs_figure, study))
        )
    if f"Fig. {number}" in study.distances:
        title, draw = "density and share of distances", partial(distances_figure, f"Fig. {number}", study)
        drawings.append(Drawing(f"reconstruction-fig{number}-distances", title, draw))
    table = plain_table((*rows, *stricter), "removed")
    return StudyResult(_verdict(number, study.rows), _ours(number, rows), *table, tuple(drawings))


def _verdict(number: str, rows: Sequence[Row]) -> Verdict:
    """Return the figure's verdict over all tables, with every table's reason.

    Fig. 3 prints no share: its attack must be nearer to the truth than the release in every setting, unless
    by chance. Elsewhere one level and one network must bring out every printed share.
    """
    figure = f"Fig. {number}"
    reasons = [f"{place}: {_table_reason(chosen)}" for place, chosen in _by_table(rows, figure).items()]
    published = [row for row in rows_of(rows, figure) if row.attacker == "published"]
    if number == "3":
        worse = sum(row.is_further for row in published)
        words = (
            f"further from the truth than the release, beyond chance, in {worse} of {len(published)} settings"
        )
        return Verdict("differs" if worse else "reproduced", "; ".join([words, *reasons]))
    printed = _printed(number)
    judged = [row for row in published if row.table == JUDGED[row.kind] and row.model in NETWORKS[number]]
    there = [kind for kind in printed if any(row.kind == kind for row in judged)]
    if not there:
        return Verdict("not possible", "; ".join(["no share is published for these tables", *reasons]))
    shares = " and ".join(f"{printed[kind]:.1%} for {kind} (here {JUDGED[kind]})" for kind in there)
    found = _together(judged, printed)
    words = f"the text has {shares}; {found or 'at no level does one network meet the rule'}"
    return Verdict("reproduced" if found else "differs", "; ".join([words, *reasons]))


def _printed(number: str) -> dict[str, float]:
    """Return the printed shares of removed noise by kind of table."""
    shares = CATALOGUE[f"reconstruction-fig{number}"].published.items()
    return {
        name.partition(": ")[0]: float(str(value).rstrip("%")) / 100
        for name, value in shares
        if name.endswith("share of the noise removed")
    }


def _together(rows: Sequence[Row], printed: Mapping[str, float]) -> str:
    """Say at which level one network does what is printed on every table; "" at none."""
    for level, model in dict.fromkeys((row.level, row.model) for row in rows):
        chosen = [row for row in rows if (row.level, row.model) == (level, model)]
        if all(_is_near(row, printed.get(row.kind)) for row in chosen):
            where = ", ".join(f"{row.removed:.1%} on {row.table}" for row in chosen)
            return f"at {level:g} the {model.upper()} removes {where}"
    return ""


def _is_near(row: Row, share: float | None) -> bool:
    """Whether the printed share is met; where none is printed, whether the attack does not add noise."""
    if share is None:
        return not row.is_further
    is_within = row.removed_lower <= share <= row.removed_upper  # never with an unknown interval
    return is_within or abs(row.removed - share) <= NEAR


def _by_table(rows: Sequence[Row], figure: str) -> dict[str, list[Row]]:
    """Return a figure's rows by table, those of its stricter secret apart."""
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        if row.figure.partition(", ")[0] == figure:
            place = f"{row.figure}, {row.table}".removeprefix(f"{figure}, ")
            by_table.setdefault(place, []).append(row)
    return by_table


def _table_reason(rows: Sequence[Row]) -> str:
    """Say what a figure shows on one table, beside the control."""
    published = [row for row in rows if row.attacker == "published"]
    aware = [row for row in rows if row.attacker == "noise-aware"]
    removed = [row.removed for row in published if row.model in ("mlp", "cnn")]
    better = sum(b.score <= a.score for a, b in zip(published, aware, strict=True))
    return (
        f"the published MLP and CNN remove {min(removed):.0%} to {max(removed):.0%} of the noise and beat "
        f"the control in {_wins(published)} of {len(published)} settings; the noise-aware attacker is at "
        f"least as good in {better} of {len(published)}, and beats the control in {_wins(aware)}"
    )


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
    f"reconstruction-fig{n}": Reading(WORK, partial(_judge_figure, n), partial(levels_figure, f"Fig. {n}"))
    for n in "2345"
}
