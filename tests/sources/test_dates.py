"""Dates are dates: in bins, labels and files, whatever type or text they come as."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sidelight as sl
from sidelight.foundation.calendar import UNITS, floor_to, moment_of, next_start, parse_moment, seconds_of
from sidelight.protocols import read_protocol, write_protocol
from sidelight.schema import bin_labels, written_edges

Day = datetime.date
Moment = datetime.datetime
MOMENTS = st.datetimes(Moment(1, 1, 1), Moment(9999, 12, 31))


def days(first: str, count: int, step: int = 1) -> list[Day]:
    start = Day.fromisoformat(first)
    return [start + datetime.timedelta(days=step * i) for i in range(count)]


def read_days(values: list[Any], kind: pa.DataType | None = None, **rules: Any) -> sl.Attribute:
    rows = pa.table({"day": pa.array(values, kind), "x": [i % 2 for i in range(len(values))]})
    return sl.read(rows, **rules).schema["day"]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (days("2014-01-05", 2400), ("before 2015", "2015", "2016", "2017", "2018", "2019", "2020 or later")),
        (days("2018-02-03", 800), ("before 2018-Q2", "2018-Q2", "2018-Q3", "2018-Q4", "2019-Q1")),
        (days("2020-01-01", 366), ("before 2020-02", "2020-02", "2020-03", "2020-04")),
        (days("2020-02-26", 8), ("before 2020-02-27", "2020-02-27", "2020-02-28", "2020-02-29")),
        (days("1930-01-01", 800, 31), ("before 1936", "1936 to before 1943", "1943 to before 1950")),
        (days("2020-03-01", 45), ("before 2020-03-05", "2020-03-05 to before 2020-03-09")),
    ],
    ids=["years", "quarters", "months", "days", "quantiles by year", "quantiles by day"],
)
def test_dates_are_binned_by_what_fits_their_span(values: list[Day], labels: tuple[str, ...]) -> None:
    found = read_days(values * 3)
    assert found.kind == "date"
    assert found.values[: len(labels)] == labels


def test_a_few_dates_far_off_do_not_hide_the_calendar() -> None:
    values = [*days("2013-01-05", 1800), Day(1899, 12, 31), Day(9999, 12, 31)]
    assert read_days(values).values == (
        "before 2013", "2013", "2014", "2015", "2016", "2017", "2018 or later",
    )  # fmt: skip


def test_a_day_that_many_records_share_is_a_bin_of_its_own() -> None:
    values = [Day(1900, 1, 1)] * 300 + [Day(1985, 3, 3)] * 200 + days("1970-01-01", 500, 40)
    found = read_days(values)
    assert found.values[0] == "before 1900-01-02"
    assert "1985-03-03" in found.values


def test_no_label_shows_seconds_and_edges_say_when_a_day_begins() -> None:
    found = read_days([Moment(2020, 6, 7, 8, 30) + datetime.timedelta(minutes=7 * i) for i in range(300)])
    assert all("2020-06-0" in label for label in found.values)
    assert "2020-06-07 11:00 to before 15:00" in found.values
    assert all(edge % 3600 == 0 for edge in found.edges)


def test_times_of_day_are_times() -> None:
    found = read_days([datetime.time(i % 24, 15) for i in range(240)], pa.time64("us"))
    assert (found.kind, found.missing) == ("time", "absent")
    assert found.values[0] == "before 02:00"
    assert found.values[-1].endswith(":00 or later")


def test_dates_in_text_and_seconds_since_1970_are_guessed_to_be_dates() -> None:
    stamps = [1_577_836_800 + 86_400 * i for i in range(366)]
    rows = pa.table(
        {
            "ending": [str(day) for day in days("2020-01-01", 366)],
            "unix_time": stamps,
            "size": stamps,
        }
    )
    table = sl.read(rows)
    kinds = {item.name: item.kind for item in table.schema}
    assert kinds == {"ending": "date", "unix_time": "date"}  # each size occurs once
    assert table.schema["ending"].edges == table.schema["unix_time"].edges
    said = [note for note in table.notes() if "a guess" in note]
    assert [note.split("'")[1] for note in said] == ["unix_time"]
    assert "--kind unix_time=numeric" in said[0]
    assert sl.read(rows, kinds={"unix_time": "numeric"}).schema["unix_time"].kind == "numeric"
    assert sl.read(rows, kinds={"size": "date"}).schema["size"].values == table.schema["ending"].values
    with pytest.raises(sl.InputError, match="'almost'.* texts that are no dates"):
        sl.read(
            pa.table({"almost": ["2020-02-30", *("2020-02-03", "2020-03-03") * 9]}), kinds={"almost": "date"}
        )


def test_dates_of_every_type_get_the_same_codes() -> None:
    values = days("2020-01-01", 300) * 2
    midnights = [Moment(day.year, day.month, day.day) for day in values]
    columns = {
        "date": pa.array(values),
        "text": pa.array([str(day) for day in values]),
        "moment": pa.array(midnights, pa.timestamp("us")),
        "nano": pa.array(midnights, pa.timestamp("ns")),
        "zoned": pa.array(midnights, pa.timestamp("us", tz="UTC")),
    }
    table = sl.read(pa.table(columns))
    codes = table.codes()
    assert {item.values for item in table.schema} == {table.schema["date"].values}
    assert (codes == codes[:, :1]).all()
    assert np.bincount(codes[:, 0]).tolist() == [62, 58, 62, 60, 62, 60, 62, 62, 60, 52]


def test_a_moment_with_a_zone_is_meant_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    values = [Moment(2020, 1, 1, 22, tzinfo=zone)] * 5 + [Moment(2020, 1, 2, 12, tzinfo=zone)] * 5
    found = sl.binned("day", "date", ["2020-01-02"])
    assert sl.read(pa.table({"day": values}), schema=sl.Schema((found,))).counts(["day"])[
        0
    ].cells.tolist() == [0, 10]


def test_edges_of_dates_may_be_written_as_dates() -> None:
    found = read_days(days("2020-01-01", 40), edges={"day": ["2020-01-15", Day(2020, 2, 1)]})
    assert found.values == ("before 2020-01-15", "2020-01-15 to before 2020-02-01", "2020-02-01 or later")
    with pytest.raises(sl.InputError, match="edges of 'day'.*2020-06-07.*got 'yesterday'"):
        read_days(days("2020-01-01", 40), edges={"day": ["yesterday"]})
    with pytest.raises(sl.InputError, match="in the years 1 to 9999"):
        sl.binned("day", "date", [1e15])


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_dates_in_plans_and_protocols_survive_a_round_trip(suffix: str, tmp_path: Path) -> None:
    table = sl.read(pa.table({"day": days("2020-01-01", 150) * 2, "x": ["a", "b"] * 150}))
    plan = sl.Plan.uniform(table.schema)
    path = plan.write(tmp_path / f"plan{suffix}")
    assert sl.Plan.read(path) == plan
    assert '"2020-02-01"' in path.read_text()
    assert str(int(table.schema["day"].edges[0])) not in path.read_text()
    protocol = sl.collect(table, plan, seed=1).protocol
    again = read_protocol(write_protocol(protocol, tmp_path / f"protocol{suffix}"))
    assert again.schema == table.schema


def test_plans_without_dates_are_written_as_before_and_old_plans_of_dates_are_read() -> None:
    plain = sl.Plan.uniform(sl.Schema((sl.numeric("x", [1.0]),)), limit=1.0)
    assert "version = 1" in plain.to_toml()
    old = sl.Plan.uniform(sl.Schema((sl.numeric("day", [1_591_488_000.0]),)))
    rows = pa.table({"day": days("2020-05-20", 40)})
    again = sl.read(rows, schema=sl.Plan.from_toml(old.to_toml()).schema)
    assert again.counts(["day"])[0].cells.tolist() == [18, 22]
    dated = sl.Plan.uniform(sl.Schema((sl.binned("day", "date", ["2020"]),)), limit=1.0)
    assert "version = 2" in dated.to_toml()


@given(moment=MOMENTS, unit=st.sampled_from(UNITS))
def test_a_unit_starts_at_or_before_its_moments_and_ends_after_them(moment: Moment, unit: str) -> None:
    start, end = floor_to(moment, unit), next_start(moment, unit)
    assert start <= moment < end or end == Moment.max
    assert floor_to(start, unit) == start
    assert floor_to(end - datetime.timedelta(microseconds=1), unit) == start or end == Moment.max


@given(st.lists(MOMENTS, min_size=1, max_size=6, unique=True))
def test_edges_are_the_same_after_being_written_and_labels_differ(moments: list[Moment]) -> None:
    edges = sorted({seconds_of(moment) for moment in moments})
    assert [parse_moment(text) for text in written_edges("date", edges)] == edges
    assert all(seconds_of(moment_of(edge)) == edge for edge in edges)
    labels = bin_labels(edges, "date")
    assert len(set(labels)) == len(edges) + 1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(MOMENTS, min_size=2, max_size=60, unique=True),
    st.integers(2, 12),
    st.sampled_from(["quantile", "width"]),
)
def test_any_dates_get_bins_of_which_two_are_occupied(moments: list[Moment], bins: int, binning: Any) -> None:
    found = sl.read(
        pa.table({"day": pa.array(moments, pa.timestamp("us"))}),
        bins=bins, binning=binning, require=["day"],
    )  # fmt: skip
    assert (found.counts(["day"])[0].cells > 0).sum() >= 2


def test_many_dates_lose_no_bin_by_rounding(tmp_path: Path) -> None:
    draw = random.Random(3)
    values = [Moment(1990, 1, 1) + datetime.timedelta(seconds=draw.randrange(10**9)) for _ in range(5000)]
    path = tmp_path / "dates.parquet"
    pq.write_table(pa.table({"day": values}), path)
    cells = sl.read(path).counts(["day"])[0].cells
    assert len(cells) == 10
    assert cells.min() > 250
