"""A calibration: budgets, leakage and errors before and after, and the frontier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from rich.table import Table as Grid

from sidelight.calibration import Alternative, Calibration, Setting
from sidelight.calibration.result import table_words
from sidelight.calibration.unequal import FEW
from sidelight.report.console import print_parts, table_of
from sidelight.report.page import Figure, Page, drawn, plotted
from sidelight.report.style import LEGEND, Trace, axis, finite, from_zero, layout, log_ticks, places, scatter
from sidelight.report.wording import budget, decimals, error, labels, nats, paragraph, weak_budgets
from sidelight.sources import Table

COLOURS = {"even split": "neutral", "one for all": "series-5", "chosen": "series-1", "limit": "ink"}
_WIDE_TICKS, _NARROW_TICKS = 9, 4
_COMMON: Trace = {"margin": {"l": 8, "r": 16, "t": 36, "b": 8}, "showlegend": True, "legend": LEGEND}


def settings_of(result: Calibration) -> dict[str, Setting]:
    """Return what is compared, by the name it has in figures and tables."""
    settings = {} if result.even is None else {"even split": result.even}
    settings["one for all"] = result.uniform
    if result.certificate is not None:
        settings["chosen"] = result.chosen
    return settings


def budgets_figure(result: Calibration) -> Figure:
    """Draw the budget of every attribute before and after."""
    series = {title: setting.budgets for title, setting in settings_of(result).items()}
    titles = ("budget ε of one report (logarithmic)", "budget ε (logarithmic)")
    said = "The budget of every attribute: the even split, one for all, and the chosen one."
    return _dots([*result.budgets], series, titles, budget, said)


def errors_figure(result: Calibration) -> Figure | None:
    """Draw the expected error of every attribute before and after; None where none is stated."""
    names = [name for name, error in result.chosen.errors.items() if error > 0]
    if not names:
        return None
    what = "squared error" if result.utility == "variance" else "share of wrong guesses"
    series = {title: setting.errors for title, setting in settings_of(result).items()}
    titles = (f"expected {what} (logarithmic)", f"{what} (logarithmic)")
    said = "with the even split, one budget for all, and the chosen one"
    return _dots(names, series, titles, error, f"The expected error of every attribute: {said}.")


def leakage_figure(result: Calibration) -> Figure:
    """Draw every secret's figure before and after against its limit."""
    bounds = {title: setting.bounds for title, setting in settings_of(result).items()}
    series = {title: {name: each[name].value for name in result.limits} for title, each in bounds.items()}
    series["limit"] = dict(result.limits)
    titles = ("leakage under the constraint in use, in nats", "leakage in nats")
    said = "with the even split, one budget for all and the chosen budgets, and its limit"
    return _dots([*result.limits], series, titles, nats, f"The leakage of every secret {said}.", is_log=False)


def _dots(
    names: list[str], series: Mapping[str, Mapping[str, float]], titles: tuple[str, str],
    words: Callable[[float], str], said: str, *, is_log: bool = True,
) -> Figure:  # fmt: skip
    """Draw one row for each name with a dot for each series; the second title is for a narrow screen."""
    data = [_series(key, names, [values[name] for name in names], words) for key, values in series.items()]
    shown = [values[name] for values in series.values() for name in names]
    wide, narrow = (
        _rows_layout(names, title, width, log_ticks(shown, ticks) if is_log else {"range": from_zero(shown)})
        for title, width, ticks in zip(titles, (24, 14), (_WIDE_TICKS, _NARROW_TICKS), strict=True)
    )
    return Figure(data, wide, said, narrow=narrow)


def _series(key: str, names: Sequence[str], values: Sequence[float], words: Callable[[float], str]) -> Trace:
    """Return the dots of one series, a row for each name."""
    hovers = [paragraph(name, f"{key}: {words(value)}") for name, value in zip(names, values, strict=True)]
    x, y = [finite(value) for value in values], list(range(len(names)))
    return scatter("markers", x, y, name=key, marker=_marker(key, 10), hovers=hovers)


def _marker(key: str, size: int) -> Trace:
    if key == "limit":
        return {"size": 16, "symbol": "line-ns-open", "line": {"width": 3, "color": "@ink"}, "color": "@ink"}
    symbol = {"even split": "circle-open", "one for all": "diamond-open"}.get(key, "circle")
    return {"color": f"@{COLOURS[key]}", "size": size, "symbol": symbol}


def _rows_layout(names: Sequence[str], title: str, width: int, scale: Trace) -> Trace:
    down = axis("", range=[len(names) - 0.5, -0.5], **places(labels(names, width)))
    return layout(height=110 + 30 * len(names), **_COMMON, xaxis=axis(title, **scale), yaxis=down)


def frontier_figure(result: Calibration) -> Figure | None:
    """Draw the weighted error against limits some times as large; None where it was not computed."""
    points = [point for point in result.frontier if point.uniform > 0]
    if len(points) < 2:
        return None
    factors, *errors = zip(*((it.factor, it.even, it.uniform, it.unequal) for it in points), strict=True)
    data = []
    for key, values in zip(("even split", "one for all", "chosen"), errors, strict=True):
        if not all(map(math.isnan, values)):
            points_of = zip(factors, values, strict=True)
            hovers = [paragraph(f"limits times {at:g}", f"{key}: {error(value)}") for at, value in points_of]
            look = {"line": {"color": f"@{COLOURS[key]}", "width": 2}, "marker": _marker(key, 9)}
            heights = [finite(value) for value in values]
            data.append(scatter("lines+markers", factors, heights, name=key, **look, hovers=hovers))
    across = axis("all limits times (logarithmic)", type="log", tickvals=factors)
    up = axis("weighted error (logarithmic)", **log_ticks(list(chain(*errors)), _WIDE_TICKS))
    said = "The weighted error against the limits. The same figures are in the table below."
    return plotted(data, said, 380, across, up, **_COMMON)


def calibration_page(result: Calibration) -> Page:
    """Return the page of a calibration."""
    figures = drawn(
        budgets=budgets_figure(result), leakage=leakage_figure(result), errors=errors_figure(result),
        frontier=frontier_figure(result),
    )  # fmt: skip
    has_unequal = not all(math.isnan(point.unequal) for point in result.frontier)
    words = {
        "headline": headline(result),
        "error": error,
        "few": FEW,
        "has_unequal": has_unequal,
        "constraint_name": constraint_name,
        "use": result.usefulness,
    }
    context = {"result": result, "settings": settings_of(result), **words}
    title = f"Sidelight calibration of {result.audit.belief.source}"
    return Page(title, "calibration.html.j2", context, figures)


def headline(result: Calibration) -> str:
    """Say what was found, and before that if it is of little use."""
    limited = "" if _is_useful(result) or result.usefulness is None else f"{result.usefulness.summary()}. "
    return limited + _kept_limits(result)


def _is_useful(result: Calibration) -> bool:
    use = result.usefulness
    return use is None or (use.verdict == "useful" and not use.worse)


def _kept_limits(result: Calibration) -> str:
    count = len(result.limits)
    kept = "Every secret" if count > 1 else "The secret"
    if result.delta is not None:
        return f"{kept} is certified to stay within its limit at delta {result.delta:g}{_gained(result)}."
    if result.constraint == "published":
        return "These budgets keep a published formula under the limits, which is no promise."
    if not result.is_sound:
        known = f"For an adversary who knows the table itself, {table_words(result.strictest)}"
        return f"{kept} stays within its limit, for a model. {known}"
    return f"{kept} is certified to stay within its limit{_gained(result)}."


def _gained(result: Calibration) -> str:
    """Say how much worse the even split would be, where it is, and the chosen budgets are of use."""
    if result.even is None or math.isnan(result.chosen.weighted_error) or not _is_useful(result):
        return ""
    ratio = result.even.weighted_error / result.chosen.weighted_error
    return f", and the even split would have {ratio:.3g} times the error" if ratio > 1.005 else ""


def print_calibration(result: Calibration, table: Table) -> None:
    """Print the use of it, budgets and errors before and after, the leakage, and what to know."""
    statement = "Computed from raw data: the budgets are themselves a statement about them."
    weak = weak_budgets({name: channel.epsilon for name, channel in result.plan.channels().items()})
    first, *others = result.notes()
    said = [*others, *weak, *table.notes(), statement]
    grids = [_budgets(result), _leakage(result), *([_at_deltas(result)] if result.leakages else [])]
    print_parts([first, *grids, *([_alternatives(result)] if result.alternatives else [])], said)


def _budgets(result: Calibration) -> Grid:
    compared = (result.even, result.uniform, result.chosen)
    columns = ("attribute", "mechanism", "even split", "error", "one for all", "error", "chosen", "error")
    grid = table_of("Budgets, and the error each buys", columns, left=columns[:2])
    for name in result.budgets:
        pairs = [
            ("none", "") if setting is None else (budget(setting.budgets[name]), error(setting.errors[name]))
            for setting in compared
        ]
        grid.add_row(name, result.plan[name].mechanism, *(cell for pair in pairs for cell in pair))
    weighted = ["" if setting is None else error(setting.weighted_error) for setting in compared]
    grid.add_section()
    grid.add_row("weighted", "", *(cell for value in weighted for cell in ("", value)))
    return grid


def _leakage(result: Calibration) -> Grid:
    columns = ("secret", "limit", "even split", "chosen", "figure")
    grid = table_of("Leakage against the limits (nats)", columns, left=("secret", "figure"))
    for name, limit in result.limits.items():
        bound = result.chosen.bounds[name]
        before = "none" if result.even is None else decimals(result.even.bounds[name].value)
        grid.add_row(name, decimals(limit), before, decimals(bound.value), f"{bound.kind} ({bound.method})")
    return grid


def _at_deltas(result: Calibration) -> Grid:
    """Show the chosen budgets at the usual deltas: one figure alone hides who is exposed beyond it."""
    deltas = [point.delta for point in next(iter(result.leakages.values())).points]
    columns = ("secret", *(f"delta {delta:g}" for delta in deltas))
    grid = table_of("Leakage of the chosen budgets at delta (nats)", columns, left=("secret",))
    for name, leakage in result.leakages.items():
        grid.add_row(name, *(decimals(leakage.at(delta).upper.value) for delta in deltas))
    return grid


def _alternatives(result: Calibration) -> Grid:
    columns = ("constraint", "one for all", "over the even split")
    grid = table_of("One budget for all, by what must keep the limits", columns, left=("constraint",))
    for item in result.alternatives:
        ratio = "" if math.isnan(item.ratio) else f"{item.ratio:.3g} times"
        grid.add_row(
            constraint_name(item, result), "none" if item.budget is None else budget(item.budget), ratio
        )
    return grid


def constraint_name(item: Alternative, result: Calibration) -> str:
    """Name a constraint; where some are at delta, whether it is at delta or in the worst case."""
    if item.delta is not None:
        return f"{item.constraint} at delta {item.delta:g}"
    return item.constraint if result.delta is None else f"{item.constraint} in the worst case"
