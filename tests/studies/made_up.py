"""What the work behind each study might find: once as its rule asks, and once changed so that it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sidelight.studies.benchmarks import AnalyserBenchmark, AnalyserPoint, MechanismBenchmark, MechanismPoint
from sidelight.studies.clldp.joints import Point
from sidelight.studies.clldp.theorems import WidthRow
from sidelight.studies.corr_rr.figures import ErrorStudy, all_figures
from sidelight.studies.corr_rr.formulas import TABLE_1, TableRow, copy_curves
from sidelight.studies.corr_rr.simulation import BASELINES, FURTHER, OURS, Cell
from sidelight.studies.corr_rr.theorems import PhaseError, RecordRow
from sidelight.studies.cpl.calibration import ChannelRow, FewerRow, LimitRow, UnequalRow
from sidelight.studies.cpl.pairs import COMPARED, SEVEN, FaceRow, GenderRow, Pairs
from sidelight.studies.cpl.tables import ARTEFACT, COUNTED, EXACT, ErrorRow
from sidelight.studies.ours.daily import CHANGE, STAY, DailyRow
from sidelight.studies.ours.delta import DeltaRow
from sidelight.studies.ours.floating_point import (
    CANDIDATES,
    DOUBLES,
    GRID,
    NAIVE,
    REFERENCE,
    SECURE,
    SIMULATED,
    FloatingPointRow,
    FloatingPointStudy,
)
from sidelight.studies.ours.limits import LimitRow as WayRow
from sidelight.studies.ours.limits import LimitStudy
from sidelight.studies.ours.population import PopulationRow
from sidelight.studies.ours.variance import variances
from sidelight.studies.pdp.figures import Curve, Panel, gaussian_layers
from sidelight.studies.reconstruction.attacks import AttackStudy
from sidelight.studies.reconstruction.attacks import Row as AttackRow
from sidelight.studies.register import CATALOGUE

Found = Callable[[bool], Any]
"""Returns what a work found; False for what does not meet the rule."""


def _tables(name: str) -> Found:
    def found(is_met: bool) -> list[ErrorRow]:
        rows = []
        for key, printed in CATALOGUE["cpl-table2"].published.items():
            data, epsilon, mechanism = key.split(", ")
            error = float(printed) if is_met or data != "Cardio" else 0.9
            place = (float(epsilon.removeprefix("epsilon ")), mechanism)
            apart = 1e-4 if is_met or name == "cpl-table2" else 0.1
            rows += [
                ErrorRow(data, "coded", way, *place, error, apart, 0) for way in (COUNTED, ARTEFACT, EXACT)
            ]
        return rows

    return found


def _table_3(is_met: bool) -> list[tuple[float, ...]]:
    values = [float(value) for value in CATALOGUE["cpl-table3"].published.values()]
    off = 0.0 if is_met else 0.1
    return [
        (epsilon, values[2 * row] + off, values[2 * row + 1], *values[6 + 2 * row : 8 + 2 * row])
        for row, epsilon in enumerate((0.5, 1.0, 2.0))
    ]


def _genders(is_met: bool) -> list[GenderRow]:
    leak = {"occupation": 0.5, "education": 0.1, "income": 0.2}
    lead = "GRR" if is_met else "OUE"
    return [
        GenderRow(name, way, 0.1, 0.01, 0.01, share + 0.1 * (way == lead), share)
        for name, share in leak.items()
        for way in COMPARED
    ]


def _faces(is_met: bool) -> Any:
    limits = {"Smiling": 0.3, "Wearing_Necklace": 2.4, "No_Beard": 5.8 if is_met else 1.0}
    return [FaceRow(1.0, dict.fromkeys(limits, 0.35), 1.05, 1.0, 1.0)], limits


def _pairs(leakage: np.ndarray, names: tuple[str, ...] = SEVEN) -> Pairs:
    even = np.full(leakage.shape, 0.15)
    return Pairs(names, leakage, even, even / 2)


def _cardio(is_met: bool) -> dict[str, Pairs]:
    leakage = np.zeros((7, 7))
    leakage[SEVEN.index("cardio"), SEVEN.index("cholesterol")] = 0.3381 if is_met else 0.5
    leakage[SEVEN.index("cholesterol"), SEVEN.index("cardio")] = 0.1769
    return {"Cardio": _pairs(leakage)}


def _histograms(is_met: bool) -> Any:
    tables = {name: _pairs(np.full((7, 7), 0.1 if is_met else 0.5)) for name in ("CelebA", "Adult", "Cardio")}
    return {"two bins": tables, "ten bins": tables}


def _metrics(is_met: bool) -> dict[str, Pairs]:
    return {"Adult": _pairs(np.arange(49.0).reshape(7, 7) / (49 if is_met else 490))}


def _analysed(*points: tuple[str, str]) -> AnalyserBenchmark:
    return AnalyserBenchmark("worst", tuple(AnalyserPoint(name, 1.0, 0.0, 0.0, at) for name, at in points))


def _figure_6b(is_met: bool) -> Any:
    regions = {str(name): str(at) for name, at in CATALOGUE["cpl-fig6b"].published.items()}
    regions |= {} if is_met else {"ITS": "R3"}
    return {"CelebA": _analysed(*regions.items())}


def _figure_6c(is_met: bool) -> Any:
    return dict.fromkeys(("Adult", "Cardio"), _analysed(("ITS", "R1" if is_met else "R2")))


def _figure_6d(is_met: bool) -> Any:
    return dict.fromkeys(("CelebA", "Adult"), _analysed(("ITS", "P1"), ("CBP", "R1" if is_met else "R2")))


def _figure_6e(is_met: bool) -> Any:
    over, under = _analysed(("ITS", "R2")), _analysed(("ITS", "R2" if is_met else "R1"))
    return {"Adult, guess": over, "Adult, report": under}


def _figure_7(is_met: bool) -> Any:
    low, high = (0.6, 0.9) if is_met else (0.6, 1.1)
    points = (
        MechanismPoint("OLH", 1.0, high, low, 0.002, 0.5),
        MechanismPoint("SS", 1.0, 1.0, 1.0, 0.002, 0.5),
    )
    return {"Adult": MechanismBenchmark(100, points)}


def _figure_8(is_met: bool) -> Any:
    return (LimitRow(1.0, 0.1, 0.5, 0.5, 0.25, 0.5, 0.1, 0.9 if is_met else 1.1),), (4.0,)


def _posteriors(is_met: bool) -> Any:
    names = ("perfectly positive", "positive", "independent", "negative", "perfectly negative")
    found = dict.fromkeys(names, (0.73, 0.73, 0.5))
    weak = 0.88 if is_met else 0.6
    return found | {"perfectly positive": (weak, 1.0, 1.0), "perfectly negative": (0.5, 0.0, 0.0)}


def _layers(key: str) -> Found:
    def found(is_met: bool) -> list[Panel]:
        rises = (key == "fig4a") == is_met
        runs = ((1.0, 2.0, 3.0), (1.1, 2.1, 3.1)) if rises else ((3.0, 2.0, 1.0), (3.1, 2.1, 1.1))
        return [Panel(key, "", ("x", "y"), (Curve("line", (1.0, 2.0, 3.0), runs),))]

    return found


def _gaussians(key: str) -> Found:
    falling = (0.4, 0.2)
    met = (0.2, 0.4) if key == "fig4c" else (-0.2, -0.4, -0.6)
    return lambda is_met: [gaussian_layers(4, met if is_met else falling, key)]


def _searches(key: str) -> Found:
    def found(is_met: bool) -> list[Panel]:
        full = ((1.0, 2.0), (1.1, 2.1))
        fast = ((1.0, 2.1), (1.1, 2.2)) if is_met else ((0.5, 1.0), (0.6, 1.1))
        curves = (Curve("full space", (1.0, 2.0), full), Curve("fast", (1.0, 2.0), fast))
        return [Panel(key, "", ("x", "y"), curves)]

    return found


def _times(key: str, least: float, most: float) -> Found:
    def found(is_met: bool) -> list[Panel]:
        first, second = (least, most) if is_met else (most, least)
        curves = (Curve("a", (1.0, 2.0), ((1.0, second),)), Curve("b", (1.0, 2.0), ((1.0, first),)))
        return [Panel(key, "", ("x", "y"), curves)]

    return found


def _joints(is_met: bool) -> list[Panel]:
    curve = Curve("exact", (1.0,), ((1.0,),))
    return [Panel("joint-random", "", ("x", "y"), (curve,), beside=0.0 if is_met else 0.2)]


def _form(is_met: bool) -> list[TableRow]:
    return [
        TableRow(
            name,
            row[0],
            (row[1],) * row[0],
            100,
            row[2],
            row[3] + (0 if is_met else 0.1),
            row,
            np.eye(row[0]),
        )
        for name, row in TABLE_1.items()
    ]


def _copied(is_met: bool) -> Any:
    curves = copy_curves()
    return curves if is_met else {second: curve * [1.0, 0.5] for second, curve in curves.items()}


def _cells(is_met: bool) -> ErrorStudy:
    """Cells in which Corr-RR is better by what is printed and falls with the correlation, or the worst."""
    figures = tuple(all_figures())
    noise = np.random.default_rng(3).gamma(50.0, size=40) / 50
    cells = {}
    for figure in figures:
        for marginals in figure.readings:
            for setting in figure.places(marginals).values():
                own = noise * np.interp(setting.correlation, (0.1, 0.5, 0.9), (1.0, 0.83, 0.5))
                two_bits = (setting.attributes, setting.values, setting.correlation) == (2, 2, 0.9)
                times = {
                    "spl": 2.5 if two_bits else 5.4,
                    "rs+fd": 5.0,
                    "rs+rfd": 2.5 if setting.values else 3.0,
                }
                errors = {name: times.get(name, 2.0) * own for name in (*BASELINES, *FURTHER)}
                errors |= {OURS: own / 9 if is_met else 9 * own}
                copied = (0.9 + setting.share) * own if is_met else (9 - setting.share) * noise
                cells[setting] = Cell(setting, errors | {"corr-rr": copied}, "")
    return ErrorStudy(40, figures, cells)


def _losing(is_met: bool) -> ErrorStudy:
    study = _cells(True)
    worse = {
        at: replace(cell, errors=cell.errors | {OURS: 9 * cell.errors["spl"]})
        for at, cell in study.cells.items()
    }
    return study if is_met else replace(study, cells=worse)


def _widths(is_met: bool) -> list[WidthRow]:
    return [WidthRow("U(1,50)", k, 0.1 * k, k if is_met else 1 / k) for k in (1, 2, 3)]


def _label_points(is_met: bool) -> list[Point]:
    """Points of Tables 1 and 4 and Figs. 3 and 6."""
    points = [
        Point(f"table {number}", name, name, 1, float(value) if is_met else 0.5)
        for number in (1, 4)
        for name, value in CATALOGUE[f"clldp-table{number}"].published.items()
    ]
    lines = {"basic": 3.0, "kHR, k = 1": 1.0, "kHR, k = floor": 2.0, "kHR, k by search": 1.0,
             "kHR, k by eq. (8)": 1.0 if is_met else 2.5}  # fmt: skip
    seen = [Point("figure 3", "U(1,50)", line, 1.0, value, 0.01, 5) for line, value in lines.items()]
    points += seen + [replace(point, line=f"{point.line}, stated", error=0.0, runs=0) for point in seen]
    courses = {"U(1,50)": (1, 2, 3), "N(25,1)": (1, 2, 1, 2), "N(25,0.3)": (1, 2, 1, 2), "D(25)": (2, 1, 2)}
    return points + [
        Point("figure 6", name, line, float(x), float(value if is_met else 5 - x), 0.01, 5)
        for name, values in courses.items()
        for line in ("simulated", "stated")
        for x, value in enumerate(values)
    ]


def _classifier_points(is_met: bool) -> list[Point]:
    """Points of Figs. 4 and 5."""
    lines = {
        "figure 4 bayes": {"LabelDP": 0.9, "kHR, omega known": 0.8, "basic": 0.7 if is_met else 0.9,
                           "leakage, kHR, omega learnt, point estimate": 1.5},
        "figure 4 tree": {"LabelDP": 0.9, "Algorithm 4, eq. (15)": 0.8, "basic, eq. (15)": 0.7, "turns": 0.85,
                          "Algorithm 4, closed form": 0.8, "Algorithm 4 as printed": 0.6,
                          "commonest label": 0.6, "leaves, closed form": 0.8, "leaves, eq. (15)": 0.8},
        "figure 5": {"commonest label": 0.6, "published, LabelDP": 0.97, "optimal, kHR": 0.7,
                     "published, kHR": 0.55 if is_met else 0.8},
    }  # fmt: skip
    return [
        Point(figure, data, line, 0.5, value, 0.01, 3)
        for figure, values in lines.items()
        for data in ("adult", "smart grid with stab")
        for line, value in values.items()
    ]


def _attacks(is_met: bool) -> AttackStudy:
    """Attacks that remove the printed shares at one budget, or add noise."""
    shares = {
        "Fig. 2": (0.4684, 0.505),
        "Fig. 3": (0.5, 0.5),
        "Fig. 4": (0.3858, 0.1871),
        "Fig. 5": (0.3328, 0.2),
    }
    rows = [
        AttackRow(figure, table, kind, "laplace", 1.0, model, attacker, 1.0, 0.1,
                  1 - share if is_met else 1.5, -0.4, -0.5, -0.3)
        for figure, both in shares.items()
        for (table, kind), share in zip((("GeoLife", "vehicular"), ("NYSE", "finance")), both, strict=True)
        for attacker in ("published", "noise-aware")
        for model in ("mlp", "cnn")
    ]  # fmt: skip
    return AttackStudy(tuple(rows))


def _floating(is_met: bool) -> FloatingPointStudy:
    rows = []
    for name, (_, low, high) in REFERENCE.items():
        size, share = len(CANDIDATES[name]), (low + high) / 2 if is_met else 0.5
        nothing = (0.0, 0.0, 0.0, 0.0, float(size), 0.0, -0.01, 0.01)
        naive = (share, share, share, 0.0, size / 2, 0.1, 0.05, 0.15)
        rows.append(FloatingPointRow(name, size, 1.0, NAIVE, DOUBLES, 100, *naive))
        for release, test in ((SIMULATED, DOUBLES), (SIMULATED, GRID), (SECURE, GRID)):
            rows.append(FloatingPointRow(name, size, 1.0, release, test, 100, *nothing))
    return FloatingPointStudy(tuple(rows))


def _daily(is_met: bool) -> tuple[DailyRow, ...]:
    kept = 0.001 if is_met else 0.05
    ways = (
        ("response kept, sent again", kept, 1.0), ("people divided", 0.01, 1.0),
        ("budget divided", 0.1, 1.0), ("fresh noise, a tenth a day", 0.03, 36.5),
    )  # fmt: skip
    return tuple(
        DailyRow(values, way, "grr", 1.0, 365, 1000, error, error, error, leaked, leaked, 0.8)
        for values in (STAY, CHANGE)
        for way, error, leaked in ways
    )


def _variances(is_met: bool) -> Any:
    found = variances()
    return found if is_met else {**found, "values": dict.fromkeys(found["values"], found["values"]["grr"])}


def _bound(met: Any, changed: Any) -> Found:
    return lambda is_met: met if is_met else changed


FOUND: dict[str, Found] = {
    "cpl-table1": _tables("cpl-table1"),
    "cpl-table2": _tables("cpl-table2"),
    "cpl-table3": _table_3,
    "cpl-eq6": _bound([(2.0, 1.0), (1.0, 1.0)], [(1.0, 1.4), (1.0, 1.0)]),
    "cpl-fig4a": _genders,
    "cpl-fig4b": _faces,
    "cpl-fig4c": _cardio,
    "cpl-fig4d": _histograms,
    "cpl-fig5": _metrics,
    "cpl-fig6b": _figure_6b,
    "cpl-fig6c": _figure_6c,
    "cpl-fig6d": _figure_6d,
    "cpl-fig6e": _figure_6e,
    "cpl-fig7a": _figure_7,
    "cpl-fig7b": _figure_7,
    "cpl-fig8": _figure_8,
    "calibration-fewer": lambda is_met: [FewerRow(4, 3.0, 2.0, 1.5 if is_met else 0.9)],
    "calibration-unequal": lambda is_met: [UnequalRow("adult", "table", 5, 3.0, 2.0, 1.0 if is_met else 2.5)],
    "calibration-channel": lambda is_met: [ChannelRow(0.1, 1.0, 0.5, 0.6, 0.7 if is_met else 0.5, 0.4, 0.5)],
    "pdp-examples": lambda is_met: {
        name: float(value) + (0.0 if is_met else 0.1)
        for name, value in CATALOGUE["pdp-examples"].published.items()
    },
    "pdp-fig2": _posteriors,
    "pdp-theorem2": _bound((1.2, 1.1), (1.0, 1.1)),
    "pdp-fig4a": _layers("fig4a"),
    "pdp-fig4b": _layers("fig4b"),
    "pdp-fig4c": _gaussians("fig4c"),
    "pdp-fig4d": _gaussians("fig4d"),
    "pdp-fig5a": _searches("fig5a"),
    "pdp-fig5b": _searches("fig5b"),
    "pdp-fig5c": _searches("fig5c"),
    "pdp-fig5d": _times("fig5d", 1.0, 9.0),
    "pdp-joints": _joints,
    "pdp-cost": lambda is_met: _times("cost", 1.0, 2.0 if is_met else 99.0)(True),
    "corr-rr-table1": _form,
    "corr-rr-fig2": _copied,
    "corr-rr-fig3": _form,
    **{f"corr-rr-fig{number}": _cells for number in range(4, 15)},
    "corr-rr-amplification": _bound((1.0, 1.0), (1.0, 1.5)),
    "corr-rr-theorem4": lambda is_met: [PhaseError(10, 0.2, 0.002 if is_met else 0.1, 0.002, 0.002, 1e-4)],
    "corr-rr-theorem5": lambda is_met: [RecordRow(2, 2, 1.0, 1.0, 1.0 if is_met else 1.2)],
    "collection-losses": _losing,
    **{f"clldp-{name}": _label_points for name in ("table1", "table4", "fig3", "fig6")},
    "clldp-theorem3": _widths,
    "clldp-fig4": _classifier_points,
    "clldp-fig5": _classifier_points,
    **{f"reconstruction-fig{number}": _attacks for number in "2345"},
    **{
        f"reconstruction-theorem{number}": _bound(*({f"theorem {number}": (1.0, at)} for at in (1.0, 2.0)))
        for number in (1, 2)
    },
    "mechanism-variance": _variances,
    "leakage-cost": lambda is_met: [("step", "cells", 10, 1.0 if is_met else 100.0)],
    "attack-limit": lambda is_met: LimitStudy(
        (WayRow("t", "grr", 1.0, "trees", 9, 0.6, 0.2, 0.3, 0.97 if is_met else 0.5, 0.4, 0.99, -0.02, 0.01),)
    ),
    "floating-point": _floating,
    "asked-daily": _daily,
    "leakage-at-delta": lambda is_met: [DeltaRow(3, 2.0, 1.5, 1.0, 1.2, 0.01 if is_met else 0.02, 0.001)],
    "population-belief": lambda is_met: [
        PopulationRow(200, 5, 2.0, 2.4, 1.9, 0.4, 0.1, 0.2 if is_met else -0.1, 0.4),
        PopulationRow(500, 5, 2.0, 2.1, 1.9, 0.1, 0.1, -0.1, 0.1),
    ],
}
"""What each study's work might find."""
