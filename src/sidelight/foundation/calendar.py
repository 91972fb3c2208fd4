"""Dates and times as numbers: seconds since 1970, or since midnight, and how people write them.

A moment with a time zone is meant in UTC. Numbers are whole microseconds, so that text and number say the
same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal, get_args

from sidelight.foundation.errors import invalid

Unit = Literal["year", "quarter", "month", "day", "hour", "minute", "second"]
UNITS: tuple[Unit, ...] = get_args(Unit)
"""From the longest to the shortest."""

_START = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_LENGTHS = {
    "year": timedelta(days=366), "quarter": timedelta(days=92), "month": timedelta(days=31),
    "day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}  # fmt: skip
_CLOCK_PARTS = {"second": "seconds", "microsecond": "microseconds"}
_CLOCK = re.compile(r"(\d\d?):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?")
_DAY_SECONDS = 86_400.0


def moment_of(seconds: float) -> datetime | None:
    """Return the moment this many seconds after 1970, to the microsecond; None outside years 1 to 9999."""
    try:
        return _START + timedelta(microseconds=round(seconds * 1e6))
    except (OverflowError, ValueError):
        return None


def seconds_of(moment: datetime) -> float:
    """Return the seconds from 1970 to a moment; one with a zone is taken in UTC."""
    plain = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return (plain - _START) // _MICROSECOND / 1e6  # of a whole number: rounded once


def is_writable(seconds: float, *, clock: bool = False) -> bool:
    """Whether a number can be written as a moment, or as a time of day, and read back as the same number."""
    if not math.isfinite(seconds) or (clock and not 0 <= seconds <= _DAY_SECONDS):
        return False
    moment = moment_of(seconds)
    return moment is not None and seconds_of(moment) == seconds


def length(unit: Unit) -> float:
    """Return the most seconds that a unit has."""
    return _LENGTHS[unit].total_seconds()


def floor_to(moment: datetime, unit: Unit) -> datetime:
    """Return the start of the year, quarter, ... that a moment is in.

    >>> floor_to(datetime(2020, 6, 7, 12), "quarter")
    datetime.datetime(2020, 4, 1, 0, 0)
    """
    if unit in _MONTHS:
        first = (moment.month - 1) // _MONTHS[unit] * _MONTHS[unit] + 1
        return datetime(moment.year, first, 1)
    since = moment - datetime(moment.year, moment.month, moment.day)
    return moment - since % _LENGTHS[unit]


def next_start(moment: datetime, unit: Unit) -> datetime:
    """Return the start of the year, quarter, ... after the one that a moment is in."""
    start = floor_to(moment, unit)
    try:
        if unit not in _MONTHS:
            return start + _LENGTHS[unit]
        months = start.year * 12 + start.month - 1 + _MONTHS[unit]
        return start.replace(year=months // 12, month=months % 12 + 1)
    except (OverflowError, ValueError):
        return datetime.max


def starts_between(low: float, high: float, unit: Unit, most: int) -> list[float] | None:
    """Return the starts of units after `low`, up to `high`; None where there are more than `most`."""
    first, last = moment_of(low), moment_of(high)
    if first is None or last is None:
        return None
    starts: list[float] = []
    start = next_start(first, unit)
    while start <= last:
        starts.append(seconds_of(start))
        if len(starts) > most:
            return None
        start = next_start(start, unit)
    return starts


def parse_moment(text: object) -> float:
    """Return a date or moment in ISO form, or one of Python's, as seconds since 1970.

    >>> parse_moment("1970-01-02"), parse_moment("1970-01-01 00:01"), parse_moment("1970-01-01T01:00+01:00")
    (86400.0, 60.0, 0.0)
    """
    if isinstance(text, date):
        return seconds_of(text if isinstance(text, datetime) else datetime(text.year, text.month, text.day))
    written = str(text)
    if re.fullmatch(r"\d{4}(-\d{2})?", written):  # a year or a month means the date it begins with
        written += "-01" if len(written) == 7 else "-01-01"
    try:
        return seconds_of(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        raise invalid("date", "written as 2020, 2020-06, 2020-06-07 or 2020-06-07 12:30:00", text) from None


def parse_clock(text: object) -> float:
    """Return a time of day as seconds since midnight.

    >>> parse_clock("06:30"), parse_clock("24:00")
    (23400.0, 86400.0)
    """
    match = _CLOCK.fullmatch(text.isoformat() if isinstance(text, time) else str(text))
    hours, minutes, seconds = (float(part or 0) for part in match.groups()) if match else (25.0, 0.0, 0.0)
    whole = round((hours * 3600 + minutes * 60 + seconds) * 1e6) / 1e6
    if whole > _DAY_SECONDS:
        raise invalid("time", "written as 06:30 or 06:30:15", text)
    return whole


def moment_text(seconds: float) -> str:
    """Return a moment as a file has it: a date where it is midnight.

    >>> moment_text(86400), moment_text(0.5)
    ('1970-01-02', '1970-01-01 00:00:00.500000')
    """
    moment = _moment(seconds)
    unit = _precision([moment])
    return _written(moment, "day" if unit in _MONTHS else unit)


def clock_text(seconds: float) -> str:
    """Return a time of day as a file has it.

    >>> clock_text(23400), clock_text(86400)
    ('06:30', '24:00')
    """
    if seconds == _DAY_SECONDS:
        return "24:00"
    moment = _moment(seconds)
    return moment.time().isoformat(_CLOCK_PARTS.get(_precision([moment]), "minutes"))


def labels(edges: Sequence[float], *, clock: bool = False) -> tuple[str, ...]:
    """Return a label for every bin of dates, or of times of day, between inner edges.

    >>> labels([parse_moment(text) for text in ("2018", "2019", "2021")])
    ('before 2018', '2018', '2019 to before 2021', '2021 or later')
    >>> labels([parse_clock("06:00"), parse_clock("12:30")], clock=True)
    ('before 06:00', '06:00 to before 12:30', '12:30 or later')
    """
    if clock:
        texts = [clock_text(edge) for edge in edges]
        middle = [f"{low} to before {high}" for low, high in pairwise(texts)]
    else:
        moments = [_moment(edge) for edge in edges]
        unit = _precision(moments)
        texts = [_written(moment, unit) for moment in moments]
        middle = [_between(low, high, unit) for low, high in pairwise(moments)]
    return (f"before {texts[0]}", *middle, f"{texts[-1]} or later")


def _between(low: datetime, high: datetime, unit: str) -> str:
    """Return the label of a bin: that of the one year, month or day it is, else its two ends."""
    for whole in UNITS[: UNITS.index("day") + 1]:
        is_apt = whole != "quarter" or unit == "quarter"
        if is_apt and floor_to(low, whole) == low and next_start(low, whole) == high:
            return _written(low, whole)
    end = _written(high, unit)
    if unit not in ("year", "quarter", "month", "day") and low.date() == high.date():
        end = end.split(" ")[1]
    return f"{_written(low, unit)} to before {end}"


def _written(moment: datetime, unit: str) -> str:
    """Return a moment with no more parts than a unit has."""
    if unit == "quarter":
        return f"{moment.year:04}-Q{(moment.month + 2) // 3}"
    if unit in ("year", "month", "day"):
        return moment.date().isoformat()[: {"year": 4, "month": 7}.get(unit)]
    return moment.isoformat(" ", _CLOCK_PARTS.get(unit, "minutes"))


def _precision(moments: Sequence[datetime]) -> str:
    """Return the longest unit that starts at every one of the moments."""
    fitting = (unit for unit in UNITS if all(floor_to(moment, unit) == moment for moment in moments))
    return next(fitting, "microsecond")


def _moment(seconds: float) -> datetime:
    moment = moment_of(seconds)
    if moment is None:
        raise invalid("date", "in the years 1 to 9999", seconds)
    return moment
