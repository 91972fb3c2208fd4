"""Paper CLLDP: Tables 1 and 4, and the estimated joint of Figs. 3 and 6, with our own lines beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sidelight.foundation.progress import track
from sidelight.labels import BasicResponse, HeadsResponse, LabelResponse, Omega, best_width, published_width
from sidelight.labels.leakage import adversarial_belief, correlation_excess
from sidelight.studies.clldp.records import (
    FEVER,
    LABELS,
    SYNTHETIC,
    VALUES,
    synthetic_conditionals,
    synthetic_rows,
)
from sidelight.studies.figures import STYLES, canvas, finish, legend_beside
from sidelight.studies.register import CATALOGUE, beside
from sidelight.studies.study import (
    Drawing,
    Reading,
    StudyResult,
    Value,
    Verdict,
    Work,
    gaps,
    judged,
    plain_table,
)

COMPARED = ("basic", "kHR, k = 1", "kHR, k = floor")
"""What Fig. 3 holds the published choice of k against."""
WIDTHS = ("kHR, k = floor", "kHR, k by search")
_TURN = 4.0
"""How many standard errors a line must leave an extreme by to have turned."""
BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0)
_PAIRS = VALUES * LABELS


@dataclass(frozen=True)
class Point:
    """One point of a figure or table."""

    figure: str  # which one
    data: str  # the set of records
    line: str  # the method
    x: float  # the budget, k, or the number of a table's column
    value: float  # the figure
    error: float = 0.0  # its standard error; 0 for an exact one
    runs: int = 0  # of how many runs it is the mean; 0 for an exact one


def mean_point(figure: str, data: str, line: str, x: float, values: Sequence[float]) -> Point:
    """Return the mean of several runs as a point, with its standard error."""
    spread = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Point(figure, data, line, x, float(np.mean(values)), spread, len(values))


def line_of(points: Sequence[Point], figure: str, line: str) -> dict[tuple[str, float], float]:
    """Return one line of a figure: its values by set of records and x."""
    chosen = [point for point in points if (point.figure, point.line) == (figure, line)]
    return {(point.data, point.x): point.value for point in chosen}


def result_of(
    points: Sequence[Point], figure: str, verdict: Verdict, ours: Mapping[str, Value], *drawings: Drawing
) -> StudyResult:
    """Return the result of a study with the table of its own points."""
    columns, rows = plain_table([point for point in points if point.figure.startswith(figure)])
    return StudyResult(verdict, ours, (*columns[:-2], "standard error", "runs"), rows, drawings)


def points_figure(figure: str, points: Sequence[Point]) -> Figure:
    """Draw one figure, a panel for each set of records."""
    chosen = [point for point in points if point.figure == figure]
    names = list(dict.fromkeys(point.data for point in chosen))
    drawing, panels = canvas(3.6 * len(names) + 1.6, 3.6, len(names))
    is_error = figure in ("figure 3", "figure 6")
    measure = "l2 error of the joint" if is_error else "share of right labels"
    for axes, name in zip(panels, names, strict=True):
        here = [point for point in chosen if point.data == name and not point.line.startswith("leakage")]
        for number, line in enumerate(dict.fromkeys(point.line for point in here)):
            places = ((point.x, point.value, point.error) for point in here if point.line == line)
            x, y, error = zip(*places, strict=True)
            axes.errorbar(x, y, error, linestyle=STYLES[number % 4], label=line, linewidth=1.2)
        axes.set_yscale("log" if is_error else "linear")
        finish(axes, "k" if figure == "figure 6" else "epsilon", measure, title=name, size=9)
    legend_beside(panels[-1])
    return drawing


def budgets(quick: bool) -> tuple[float, ...]:
    """Return the budgets of Figs. 3 to 5."""
    return (1.0, 4.0) if quick else BUDGETS


def joint_points(quick: bool) -> list[Point]:
    """Return the points of the tables and of Figs. 3 and 6, which need no table of real records."""
    people, repeats = (20_000, 2) if quick else (100_000, 5)
    third = figure_3(budgets(quick), people, repeats)
    return [*tables(), *third, *figure_6(people, repeats, step=12 if quick else 3)]


def tables() -> Iterator[Point]:
    """Yield Table 1's omega and excess, and Table 4."""
    for width in (1, 2):
        yield Point("table 1", "fever", f"omega({width})", width, adversarial_belief(FEVER, width))
    yield Point("table 1", "fever", "LabelDP's excess", 3, correlation_excess(FEVER))
    for name in SYNTHETIC:
        yield Point("table 4", name, "omega(1)", 1, adversarial_belief(synthetic_conditionals(name), 1))


def responses_of(name: str, epsilon: float) -> dict[str, LabelResponse]:
    """Return the protocols that Fig. 3 compares, and k by search."""
    omega = Omega.known(synthetic_conditionals(name))
    widths = {
        "kHR, k = 1": 1,
        "kHR, k = floor": max(1, math.floor(_PAIRS / (math.exp(epsilon) + 1))),
        "kHR, k by eq. (8)": published_width(_PAIRS, epsilon, omega.curve),
        "kHR, k by search": best_width(_PAIRS, epsilon, omega.curve),
    }
    responses: dict[str, LabelResponse] = {"basic": BasicResponse(VALUES, LABELS, epsilon)}
    for line, width in widths.items():
        responses[line] = HeadsResponse(VALUES, LABELS, epsilon, width, omega.at(width))
    return responses


def figure_3(epsilons: Sequence[float], people: int, repeats: int) -> Iterator[Point]:
    """Yield the l2 error of the estimated joint against the budget, on the four synthetic sets."""
    for name in SYNTHETIC:
        for epsilon in track(list(epsilons), f"Fig. 3, {name}"):
            for line, response in responses_of(name, epsilon).items():
                errors = [_joint_error(name, response, people, seed) for seed in range(repeats)]
                yield mean_point("figure 3", name, line, epsilon, errors)
                exact = math.sqrt(response.total_variance(people))
                yield Point("figure 3", name, f"{line}, stated", epsilon, exact)


def figure_6(people: int, repeats: int, *, step: int) -> Iterator[Point]:
    """Yield the l2 error against k at epsilon 3."""
    for name in SYNTHETIC:
        omega = Omega.known(synthetic_conditionals(name))
        for width in track(range(1, 101, step), f"Fig. 6, {name}"):
            response = HeadsResponse(VALUES, LABELS, 3.0, width, omega.at(width))
            errors = [_joint_error(name, response, people, seed) for seed in range(repeats)]
            yield mean_point("figure 6", name, "simulated", width, errors)
            yield Point("figure 6", name, "stated", width, math.sqrt(response.total_variance(people)))


def _joint_error(name: str, response: LabelResponse, people: int, seed: int) -> float:
    rows = synthetic_rows(name, people, np.random.default_rng(seed))
    reports = response.randomise(rows.codes[:, 0], rows.labels, seed=seed)
    joint = response.joint(response.aggregate(reports))
    return float(np.sqrt(((joint - rows.table(0).T / people) ** 2).sum()))


WORK = Work("labels-joint", joint_points, minutes=4)


def _values(points: Sequence[Point], figure: str) -> list[float]:
    return [point.value for point in points if point.figure == figure]


def _judge_table_1(points: Sequence[Point]) -> StudyResult:
    ours = beside("clldp-table1", *_values(points, "table 1"))
    close = max(gaps(ours, CATALOGUE["clldp-table1"].published).values()) < 5e-3
    return result_of(points, "table 1", judged(close, "exact, from the table's six probabilities"), ours)


def _judge_table_4(points: Sequence[Point]) -> StudyResult:
    ours = beside("clldp-table4", *_values(points, "table 4"))
    gap = max(gaps(ours, CATALOGUE["clldp-table4"].published).values())
    reason = f"to {gap:.1g}; N(25,0.3) is {float(ours['N(25,0.3)']):.4f}, where the paper prints 0.638"
    return result_of(points, "table 4", judged(gap < 1e-3, reason), ours)


def _judge_figure_3(points: Sequence[Point]) -> StudyResult:
    """Judge k by eq. (8) by what was simulated: none of those compared may be lower beyond chance."""
    at = points_of(points, "figure 3")
    rule = [key for key in at if key[1] == "kHR, k by eq. (8)"]
    beaten = _beaten(at, rule, COMPARED)
    narrow = [key for key in at if key[:2] == ("U(1,50)", "kHR, k = 1")]
    better = _beaten(at, narrow, WIDTHS)
    ours = beside(
        "clldp-fig3",
        f"in {len(rule) - len(beaten)} of {len(rule)} settings no other is lower beyond chance",
        f"1 in {len(narrow) - len(better)} of {len(narrow)} budgets",
    )
    spared = max(
        1 - at[data, "kHR, k by search, stated", x].value / at[data, f"{line}, stated", x].value
        for data, line, x in rule
    )
    reason = (
        "by the simulated error, each comparison with its interval (5 % over all of them): eq. (8) is beaten "
        f"at {'; '.join(beaten) or 'none'}; with U(1,50) another k is better at "
        f"{'; '.join(better) or 'none'}. By the stated error the best of all k is at most "
        f"{100 * spared:.2g} % below that of eq. (8)"
    )
    return result_of(points, "figure 3", judged(not beaten and not better, reason), ours)


Places = Mapping[tuple[str, str, float], Point]
"""Points by set of records, line and x."""


def _beaten(at: Places, keys: Sequence[tuple[str, str, float]], lines: Sequence[str]) -> list[str]:
    """Return the settings in which some other line is below a line's points beyond chance."""
    count = len(keys) * len(lines)
    return [
        f"{data}, {x:g}"
        for data, own, x in keys
        if any(is_below(at[data, line, x], at[data, own, x], count) for line in lines)
    ]


def points_of(points: Sequence[Point], figure: str) -> Places:
    """Return the points of a figure by set of records, line and x."""
    return {(point.data, point.line, point.x): point for point in points if point.figure == figure}


def is_below(one: Point, other: Point, comparisons: int) -> bool:
    """Whether a mean lies below another beyond chance: Student's test, 5 % over so many comparisons.

    Of a single run nothing is known.
    """
    from scipy.special import stdtrit

    if min(one.runs, other.runs) < 2:
        return False
    quantile = float(stdtrit(one.runs + other.runs - 2, 1 - 0.025 / comparisons))
    return other.value - one.value > quantile * math.hypot(one.error, other.error) + 1e-12


def _judge_figure_6(points: Sequence[Point]) -> StudyResult:
    """Judge the course of the simulated error along k, turns within its noise left out."""
    at = points_of(points, "figure 6")
    seen = {name: [at[key] for key in at if key[:2] == (name, "simulated")] for name in SYNTHETIC}
    stated = {(data, x): point.value for (data, line, x), point in at.items() if line == "stated"}
    gap = max(abs(p.value / stated[p.data, p.x] - 1) for line in seen.values() for p in line)
    ours = beside("clldp-fig6", *(course(line) for line in seen.values()))
    printed = CATALOGUE["clldp-fig6"].published
    unlike = [name.partition(": ")[0] for name, shape in ours.items() if shape != printed[name]]
    widths = seen[SYNTHETIC[0]]
    reason = (
        f"by the simulated error at {len(widths)} values of k from 1 to {widths[-1].x:g}, turns of less than "
        f"{_TURN:g} standard errors left out; it is within {gap:.1%} of the stated one"
    )
    if unlike:
        reason += f"; {', '.join(unlike)} has another course than printed (see clldp-theorem3)"
    return result_of(points, "figure 6", judged(not unlike, reason), ours)


def course(points: Sequence[Point]) -> str:
    """Describe how a line goes along x: rises and falls, in order, turns within the noise left out.

    >>> course([Point("", "", "", x, y, 0.1) for x, y in enumerate((1.0, 3.0, 2.9, 4.0, 2.0))])
    'rises, falls'
    """
    steps: list[str] = []
    low = high = points[0]
    for point in points[1:]:
        margin = _TURN * max(point.error, low.error, high.error)
        low, high = min(low, point, key=_height), max(high, point, key=_height)
        # a turn counts once the line has left its last extreme by more than the noise
        if point.value > low.value + margin and steps[-1:] != ["rises"]:
            steps.append("rises")
            high = point
        elif point.value < high.value - margin and steps[-1:] != ["falls"]:
            steps.append("falls")
            low = point
        if steps[-1:] == ["rises"] and point is high:
            low = point
        if steps[-1:] == ["falls"] and point is low:
            high = point
    return ", ".join(steps)


def _height(point: Point) -> float:
    return point.value


STUDIES = {
    "clldp-table1": Reading(WORK, _judge_table_1),
    "clldp-table4": Reading(WORK, _judge_table_4),
    "clldp-fig3": Reading(WORK, _judge_figure_3, partial(points_figure, "figure 3")),
    "clldp-fig6": Reading(WORK, _judge_figure_6, partial(points_figure, "figure 6")),
}
