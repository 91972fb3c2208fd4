"""A calibration: budgets, leakage and errors before and after, and the frontier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from rich.table import Table as Grid

from sidelight.calibration import Calibration, FrontierPoint, Setting
from sidelight.calibration.result import table_words
from sidelight.calibration.unequal import FEW
from sidelight.report.console import open_console, print_notes, table_of
from sidelight.report.page import Figure, Page, drawn
from sidelight.report.style import LEGEND, Trace, axis, finite, from_zero, layout, log_ticks, places, scatter
from sidelight.report.wording import budget, decimals, error, labels, nats, paragraph, weak_budgets
from sidelight.sources import Table

COLOURS = {"even split": "neutral", "one for all": "series-5", "chosen": "series-1", "limit": "ink"}
_WIDE_TICKS, _NARROW_TICKS = 9, 4
_COMMON = {"margin": {"l": 8, "r": 16, "t": 36, "b": 8}, "showlegend": True, "legend": LEGEND}


def settings_of(result: Calibration) -> dict[str, Setting]:
    """Return what is compared, by the name it has in figures and tables."""
    settings = {} if result.even is None else {"even split": result.even}
    settings["one for all"] = result.uniform
    if result.certificate is not None:
        settings["chosen"] = result.chosen
    return settings


def budgets_figure(result: Calibration) -> Figure:
    """Draw the budget of every attribute before and after."""
    names = list(result.budgets)
    return _dots(
        names,
        {title: setting.budgets for title, setting in settings_of(result).items()},
        ("budget ε of one report (logarithmic)", "budget ε (logarithmic)"),
        budget,
        "The budget of every attribute: the even split, one for all, and the chosen one.",
    )


def errors_figure(result: Calibration) -> Figure | None:
    """Draw the expected error of every attribute before and after; None where none is stated."""
    names = [name for name, error in result.chosen.errors.items() if error > 0]
    if not names:
        return None
    what = "squared error" if result.utility == "variance" else "share of wrong guesses"
    return _dots(
        names,
        {title: setting.errors for title, setting in settings_of(result).items()},
        (f"expected {what} (logarithmic)", f"{what} (logarithmic)"),
        error,
        "The expected error of every attribute: with the even split, one budget for all, and the chosen one.",
    )


def _dots(
    names: Sequence[str],
    series: Mapping[str, Mapping[str, float]],
    titles: tuple[str, str],
    words: Callable[[float], str],
    description: str,
) -> Figure:
    """Draw one row for each name with a dot for each series; the second title is for a narrow screen."""
    data = [_series(key, names, [values[name] for name in names], words) for key, values in series.items()]
    shown = [values[name] for values in series.values() for name in names]
    return Figure(
        data,
        _rows_layout(names, titles[0], 24, log_ticks(shown, _WIDE_TICKS)),
        description,
        narrow=_rows_layout(names, titles[1], 14, log_ticks(shown, _NARROW_TICKS)),
    )


def _series(key: str, names: Sequence[str], values: Sequence[float], words: Callable[[float], str]) -> Trace:
    """Return the dots of one series, a row for each name."""
    hovers = [paragraph(name, f"{key}: {words(value)}") for name, value in zip(names, values, strict=True)]
    x, y = [finite(value) for value in values], list(range(len(names)))
    return scatter("markers", x, y, name=key, marker=_marker(key, 10), hovertext=hovers, hoverinfo="text")


def _marker(key: str, size: int) -> Trace:
    symbol = {"even split": "circle-open", "one for all": "diamond-open"}.get(key, "circle")
    return {"color": f"@{COLOURS[key]}", "size": size, "symbol": symbol}


def _rows_layout(names: Sequence[str], title: str, width: int, scale: Trace) -> Trace:
    down = axis("", range=[len(names) - 0.5, -0.5], **places(labels(names, width)))
    return layout(height=110 + 30 * len(names), **_COMMON, xaxis=axis(title, **scale), yaxis=down)


def leakage_figure(result: Calibration) -> Figure:
    """Draw every secret's figure before and after against its limit."""
    names = list(result.limits)
    data = [
        _series(key, names, [setting.bounds[name].value for name in names], nats)
        for key, setting in settings_of(result).items()
    ]
    bounds = [bound.value for setting in settings_of(result).values() for bound in setting.bounds.values()]
    scale = {"range": from_zero([*bounds, *result.limits.values()])}
    mark = {"size": 16, "symbol": "line-ns-open", "line": {"width": 3, "color": "@ink"}, "color": "@ink"}
    data.append(_series("limit", names, list(result.limits.values()), nats) | {"marker": mark})
    return Figure(
        data,
        _rows_layout(names, "leakage under the constraint in use, in nats", 24, scale),
        "The leakage of every secret with the even split, one budget for all and the chosen budgets, and its "
        "limit.",
        narrow=_rows_layout(names, "leakage in nats", 14, scale),
    )


def frontier_figure(result: Calibration) -> Figure | None:
    """Draw the weighted error against limits some times as large; None where it was not computed."""
    points = [point for point in result.frontier if point.uniform > 0]
    if len(points) < 2:
        return None
    lines = {
        "even split": [point.even for point in points],
        "one for all": [point.uniform for point in points],
        "chosen": [point.unequal for point in points],
    }
    known = {key: values for key, values in lines.items() if not all(map(math.isnan, values))}
    data = [_frontier_line(key, points, values) for key, values in known.items()]
    errors = [value for values in lines.values() for value in values]
    return Figure(
        data,
        layout(
            height=380,
            **_COMMON,
            xaxis=axis("all limits times (logarithmic)", type="log", tickvals=[p.factor for p in points]),
            yaxis=axis("weighted error (logarithmic)", **log_ticks(errors, _WIDE_TICKS)),
        ),
        "The weighted error against the limits. The same figures are in the table below.",
    )


def _frontier_line(key: str, points: Sequence[FrontierPoint], values: Sequence[float]) -> Trace:
    hovers = [
        paragraph(f"limits times {point.factor:g}", f"{key}: {error(value)}")
        for point, value in zip(points, values, strict=True)
    ]
    x, y = [point.factor for point in points], [finite(value) for value in values]
    line, text = {"color": f"@{COLOURS[key]}", "width": 2}, {"hovertext": hovers, "hoverinfo": "text"}
    return scatter("lines+markers", x, y, name=key, line=line, marker=_marker(key, 9), **text)


def calibration_page(result: Calibration) -> Page:
    """Return the page of a calibration."""
    figures = drawn(
        budgets=budgets_figure(result), leakage=leakage_figure(result), errors=errors_figure(result),
        frontier=frontier_figure(result),
    )  # fmt: skip
    context = {
        "result": result,
        "settings": settings_of(result),
        "series": COLOURS,
        "headline": headline(result),
        "plan_text": result.plan.to_toml(),
        "error": error,
        "few": FEW,
        "has_unequal": not all(math.isnan(point.unequal) for point in result.frontier),
    }
    source = result.audit.belief.source
    return Page(f"Sidelight calibration of {source}", "calibration.html.j2", context, figures)


def headline(result: Calibration) -> str:
    """Say in one sentence what was found."""
    count = len(result.limits)
    kept = "Every secret" if count > 1 else "The secret"
    if result.constraint == "published":
        return "These budgets keep a published formula under the limits, which is no promise."
    if not result.is_sound:
        known = f"For an adversary who knows the table itself, {table_words(result.strictest)}"
        return f"{kept} stays within its limit, for a model. {known}"
    if result.even is None or math.isnan(result.chosen.weighted_error):
        return f"{kept} is certified to stay within its limit."
    ratio = result.even.weighted_error / result.chosen.weighted_error
    gain = f", and the even split would have {ratio:.3g} times the error" if ratio > 1.005 else ""
    return f"{kept} is certified to stay within its limit{gain}."


def print_calibration(result: Calibration, table: Table) -> None:
    """Print the budgets and errors before and after, the leakage against the limits, and what to know."""
    console = open_console()
    console.print(_budgets(result))
    console.print(_leakage(result))
    statement = "Computed from raw data: the budgets are themselves a statement about them."
    weak = weak_budgets({name: channel.epsilon for name, channel in result.plan.channels().items()})
    print_notes(console, [*result.notes(), *weak, *table.notes(), statement])


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
