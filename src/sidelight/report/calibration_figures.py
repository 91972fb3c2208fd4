"""The figures of a calibration: budgets, errors and leakage before and after, and the frontier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from sidelight.calibration import Calibration, FrontierPoint, Setting
from sidelight.report.page import Figure
from sidelight.report.style import Trace, axis, finite, from_zero, layout, log_ticks
from sidelight.report.wording import budget, error, labels, nats, paragraph

COLOURS = {"even split": "neutral", "one for all": "series-5", "chosen": "series-1", "limit": "ink"}
_ROW = 30
_WIDE_TICKS, _NARROW_TICKS = 9, 4


def settings_of(result: Calibration) -> dict[str, Setting]:
    """Return what is compared, by the name it has in figures and tables."""
    found = {} if result.even is None else {"even split": result.even}
    found["one for all"] = result.uniform
    if result.certificate is not None:
        found["chosen"] = result.chosen
    return found


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
    return {
        "type": "scatter",
        "mode": "markers",
        "name": key,
        "x": [finite(value) for value in values],
        "y": list(range(len(names))),
        "marker": {"color": f"@{COLOURS[key]}", "size": 10, "symbol": _symbol(key)},
        "hovertext": [
            paragraph(name, f"{key}: {words(value)}") for name, value in zip(names, values, strict=True)
        ],
        "hoverinfo": "text",
    }


def _symbol(key: str) -> str:
    return {"even split": "circle-open", "one for all": "diamond-open"}.get(key, "circle")


def _rows_layout(names: Sequence[str], title: str, width: int, scale: Trace) -> Trace:
    ticks = {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": labels(names, width),
    }
    return layout(
        height=110 + _ROW * len(names),
        margin={"l": 8, "r": 16, "t": 36, "b": 8},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        xaxis=axis(title, **scale),
        yaxis=axis("", range=[len(names) - 0.5, -0.5], **ticks),
    )


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


def _errors(points: Sequence[FrontierPoint]) -> list[float]:
    return [value for point in points for value in (point.even, point.uniform, point.unequal)]


def frontier_figure(result: Calibration) -> Figure | None:
    """Draw the weighted error against limits some times as large; None where it was not computed."""
    points = [point for point in result.frontier if point.uniform > 0]
    if len(points) < 2:
        return None
    data: list[Trace] = []
    for key, field in (("even split", "even"), ("one for all", "uniform"), ("chosen", "unequal")):
        values = [getattr(point, field) for point in points]
        if all(math.isnan(value) for value in values):
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": key,
                "x": [point.factor for point in points],
                "y": [finite(value) for value in values],
                "line": {"color": f"@{COLOURS[key]}", "width": 2},
                "marker": {"color": f"@{COLOURS[key]}", "size": 9, "symbol": _symbol(key)},
                "hovertext": [
                    paragraph(f"limits times {point.factor:g}", f"{key}: {error(value)}")
                    for point, value in zip(points, values, strict=True)
                ],
                "hoverinfo": "text",
            }
        )
    return Figure(
        data,
        layout(
            height=380,
            margin={"l": 8, "r": 16, "t": 36, "b": 8},
            showlegend=True,
            legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
            xaxis=axis("all limits times (logarithmic)", type="log", tickvals=[p.factor for p in points]),
            yaxis=axis("weighted error (logarithmic)", **log_ticks(_errors(points), _WIDE_TICKS)),
        ),
        "The weighted error against the limits. The same figures are in the table below.",
    )
