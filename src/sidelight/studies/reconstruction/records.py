"""The tables of the reconstruction studies: two of vehicles, one of companies.

The real tables stay where they are; of the vehicles' only aggregate figures may be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sidelight.attacks.numbers import Numbers
from sidelight.foundation.arrays import Array
from sidelight.studies.study import missing_tables, table_file

MOST_RECORDS = 20_000
_PARTS = (
    "Cash and Cash Equivalents", "Short-Term Investments", "Net Receivables", "Inventory",
    "Other Current Assets",
)  # fmt: skip
_TOTAL = "Total Current Assets"
_SPACING = 60
_LONGEST = 300  # seconds: over a longer gap the recording paused, and the way is not known
_DAY = 86_400
_FASTEST = 60.0  # metres a second: faster is an error of the position, no drive
_EARTH = 6_371_000.0


@dataclass(frozen=True, eq=False)
class StudyTable:
    """A table of the studies."""

    name: str  # what it is called in figures
    kind: str  # "vehicular" or "finance", as the paper calls its two
    numbers: Numbers  # the records
    secrets: tuple[str, ...]  # the targets


def study_tables(*, quick: bool = False) -> list[StudyTable]:
    """Return the tables that are there; in quick mode the finance table alone."""
    import pyarrow.parquet as pq

    makers: dict[str, Callable[[Any], StudyTable]] = {
        "nyse_fundamentals": _finance,
        "geolife_sample": partial(_trips, "GeoLife", "uid", "datetime", "lng"),
        "sf_cabs_sample": partial(_trips, "SF cabs", "cab", "unix_time", "lon"),
    }
    names = ["nyse_fundamentals"] if quick else list(makers)
    return [makers[name](pq.read_table(table_file(name))) for name in names if not missing_tables((name,))]


def _finance(table: Any) -> StudyTable:
    """Total current assets and their five parts, on a logarithmic scale, for records that have a total."""
    columns = {name: np.asarray(table.column(name).to_numpy(), dtype=float) for name in (*_PARTS, _TOTAL)}
    used = columns[_TOTAL] > 0
    entities = np.asarray(table.column("Ticker Symbol").to_numpy(zero_copy_only=False)).astype(str)[used]
    chosen = {name: column[used] for name, column in columns.items()}
    numbers = Numbers.of(chosen, entities=entities, logarithmic=list(chosen))
    return StudyTable("NYSE", "finance", numbers, (_TOTAL,))


def _trips(name: str, vehicle: str, time: str, longitude: str, table: Any) -> StudyTable:
    """Cut tracks into trips of about a minute: start, duration, speed, direction, end, vehicle.

    Neighbouring minutes are nearly the same record, so a vehicle's day is not divided between two owners.
    """
    raw = np.asarray(table.column(vehicle).to_numpy(zero_copy_only=False)).astype(str)
    _, codes = np.unique(raw, return_inverse=True)
    seconds = table.column(time).to_numpy().astype("datetime64[s]").astype(np.int64)  # or since 1970 already
    order = np.lexsort((seconds, codes))
    codes, seconds = codes[order], seconds[order]
    both = [np.asarray(table.column(axis).to_numpy(), float)[order] for axis in ("lat", longitude)]
    places = np.stack(both, axis=1)
    # one number for vehicle and minute: it changes where a new minute of the same or another vehicle begins
    first = np.flatnonzero(np.diff(codes * 10**10 + seconds // _SPACING, prepend=-1) != 0)
    start, end = first[:-1], first[1:]
    duration = (seconds[end] - seconds[start]).astype(float)
    used = (codes[start] == codes[end]) & (duration > 0) & (duration <= _LONGEST)
    start, end, duration = start[used], end[used], duration[used]
    distance, direction = _displacement(places[start], places[end])
    fine = np.flatnonzero(distance / duration <= _FASTEST)
    chosen = np.random.default_rng(0).permutation(fine)[:MOST_RECORDS]  # the first are the first vehicles
    columns = {
        "vehicle": codes[start],
        "start_lat": places[start, 0],
        "start_lng": places[start, 1],
        "duration": duration,
        "speed": distance / duration,
        "direction": direction,
        "end_lat": places[end, 0],
        "end_lng": places[end, 1],
    }
    kept = {key: np.asarray(column, dtype=float)[chosen] for key, column in columns.items()}
    days = (codes[start] * 10**6 + seconds[start] // _DAY)[chosen]
    numbers = Numbers.of(kept, entities=codes[start][chosen], blocks=days, logarithmic=(), trim=0.005)
    return StudyTable(name, "vehicular", numbers, ("end_lat", "end_lng"))


def _displacement(start: Array, end: Array) -> tuple[Array, Array]:
    """Return the metres and the bearing in 0..1 from one place to another; flat over so short a way."""
    north = np.radians(end[:, 0] - start[:, 0]) * _EARTH
    # a degree of longitude shrinks with the cosine of the latitude
    east = np.radians(end[:, 1] - start[:, 1]) * _EARTH * np.cos(np.radians(start[:, 0]))
    return np.hypot(north, east), np.arctan2(east, north) / (2 * np.pi) % 1.0
