"""One suite for every engine: schema, codes, counts, records and reports are identical to the last count."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
import spark_sessions
from sidelight.cli import main
from sidelight.protocols import smp, spl
from sidelight.schema import Attribute
from sidelight.sources.session import open_frame
from sidelight.transport.spark import collect_into, open_reports

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"
)

ROWS = 1000
CLUSTER = pytest.param("cluster", marks=pytest.mark.deep)  # it differs from "spark" only where tasks run
CHOSEN = os.environ.get("SIDELIGHT_ENGINES", "").split()
ENGINES = CHOSEN or ["local", "spark", CLUSTER]
Reader = Callable[..., sl.Table]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request) -> Iterator[Reader]:
    """How an engine reads an Arrow table."""
    if request.param == "local":
        yield sl.read
        return
    session = spark_sessions.start(request.param)

    def read(rows: pa.Table, **rules: object) -> sl.Table:
        return sl.read(session.createDataFrame(rows), **rules)

    read.session, read.kind = session, request.param
    yield read
    session.stop()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(17)
    whole = rng.integers(-3, 9, size=ROWS)
    missing = rng.random(ROWS) < 0.1
    numbers = rng.normal(size=ROWS)
    numbers[::50] = np.nan
    gains = np.where(rng.random(ROWS) < 0.8, 0.0, rng.integers(0, 9, size=ROWS) * 1000.0)
    moments = [
        datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(i)) for i in whole * 9999 + 50_000
    ]
    return pa.table(
        {
            "byte": pa.array(whole, pa.int8()),
            "big": pa.array(whole * 10**15, pa.int64(), mask=missing),
            "wide": pa.array(rng.integers(0, 500, size=ROWS), pa.int32()),
            "flag": pa.array(whole > 0, mask=missing),
            "text": pa.array([f"it's {value}" for value in whole], mask=missing),
            "number": pa.array(numbers, mask=missing),
            "signed zeros": pa.array(np.where(whole > 0, 0.0, -0.0) + (whole > 5)),
            "short": pa.array((whole / 10).astype(np.float32)),
            "gain": pa.array(gains),
            "price": pa.array([Decimal(int(value)) / 4 for value in whole], pa.decimal128(9, 2)),
            "day": pa.array([moment.date() for moment in moments], pa.date32()),
            "moment": pa.array(moments, pa.timestamp("us")),
            "zoned": pa.array(moments, pa.timestamp("us", tz="UTC")),
            "date in text": pa.array([str(moment.date()) for moment in moments], mask=missing),
            "area_code": pa.array(rng.integers(100, 160, size=ROWS), pa.int32()),
            "dotted.name `odd`": pa.array(whole % 3, pa.int16()),
            "id": pa.array([f"p{i}" for i in range(ROWS)]),
            "same": pa.array(["x"] * ROWS),
            "nested": pa.array([[1, 2]] * ROWS),
        }
    )


@pytest.fixture(scope="module")
def tables(engine: Reader, rows: pa.Table) -> tuple[sl.Table, sl.Table]:
    """The same rows read by the engine and by the local one.

    Finding a schema takes Spark many small jobs, so on a cluster and on Connect it is found for a few columns
    only, by `test_rules_are_kept`.
    """
    local = sl.read(rows)
    return (engine(rows, schema=local.schema) if is_given(engine) else engine(rows)), local


def is_given(engine: Reader) -> bool:
    return getattr(engine, "kind", "local") in ("cluster", "connect")


def test_the_schema_is_the_same(engine: Reader, tables) -> None:
    found, expected = tables
    assert found.schema == expected.schema
    assert (found.rows, found.dropped) == (expected.rows, expected.dropped)
    assert found.set_aside == (() if is_given(engine) else expected.set_aside)
    assert {item.column for item in expected.set_aside} == {"id", "same", "nested"}


def test_codes_come_in_order(tables) -> None:
    found, expected = tables
    assert np.array_equal(found.codes(), expected.codes())


def test_pairs_and_triples_are_counted_alike(tables) -> None:
    found, expected = tables
    names = expected.schema.names
    sets = [*combinations(names, 2), *combinations(names[:5], 3), ("text",), ("wide", "byte", "gain", "day")]
    for mine, theirs in zip(found.counts(*sets), expected.counts(*sets), strict=True):
        assert mine.schema == theirs.schema
        assert mine.cells.dtype == theirs.cells.dtype
        assert np.array_equal(mine.cells, theirs.cells)
    assert found.counts() == []


def test_distinct_records_are_the_same(tables) -> None:
    found, expected = tables
    mine, theirs = found.records(), expected.records()
    assert mine.total == theirs.total == ROWS
    weights = [
        {row.tobytes(): weight for row, weight in zip(np.ascontiguousarray(r.codes), r.weights, strict=True)}
        for r in (mine, theirs)
    ]
    assert weights[0] == weights[1]
    assert found.records(largest=10) is None


def test_missing_values_drop_their_records(engine: Reader, rows: pa.Table) -> None:
    chosen = ["big", "number", "flag"]
    found, expected = (read(rows, columns=chosen, missing="drop") for read in (engine, sl.read))
    assert (found.rows, found.dropped) == (expected.rows, expected.dropped)
    assert found.dropped > 100
    assert np.array_equal(found.codes(), expected.codes())


def test_rules_are_kept(engine: Reader, rows: pa.Table) -> None:
    rules = {
        "columns": ["number", "wide", "text", "day"], "bins": 7, "max_values": 5,
        "kinds": {"wide": "categorical"}, "edges": {"number": [-1.0, 0.0]},
    }  # fmt: skip
    found, expected = (read(rows, **rules) for read in (engine, sl.read))
    assert found.schema == expected.schema
    assert np.array_equal(found.pair_counts()[0].cells, expected.pair_counts()[0].cells)


def test_an_audit_says_the_same(tables) -> None:
    audits = []
    for table in tables:
        belief = sl.Belief.from_data(table)
        audits.append(sl.audit(belief, sl.Plan.uniform(table.schema), secrets=["flag"]))
    assert audits[0]["flag"].total.value == pytest.approx(audits[1]["flag"].total.value, rel=1e-12)


def test_bad_values_are_named(engine: Reader) -> None:
    schema = sl.Schema((Attribute("x", "categorical", ("0", "1")),))
    table = engine(pa.table({"x": pa.array([0, 1, 1, 2], pa.int8())}), schema=schema)
    with pytest.raises(sl.InputError, match=r"^column 'x' of the .* has values outside the 2 values"):
        table.counts(["x"])


@pytest.mark.parametrize("make", [spl, smp])
def test_reports_are_made_where_the_rows_are(engine: Reader, make) -> None:
    rng = np.random.default_rng(3)
    rows = pa.table({name: rng.integers(0, size, 400) for name, size in (("a", 3), ("b", 5))})
    table = engine(rows, schema=sl.read(rows).schema)
    protocol = make(table.schema, 2.0)
    first, second = (sl.collect(table, protocol, seed=5) for _ in range(2))
    assert first.is_simulation
    assert first.people == 400
    for mine, theirs in zip(first.parts, second.parts, strict=True):
        assert np.array_equal(mine.values, theirs.values)
    real = sl.collect(table, protocol)
    assert not real.is_simulation
    pairs = zip(real.parts, first.parts, strict=True)
    assert any(not np.array_equal(mine.values, theirs.values) for mine, theirs in pairs)
    assert set(sl.estimate(real).frequencies) == {"a", "b"}


def test_no_two_rows_share_their_noise(engine: Reader) -> None:
    schema = sl.Schema((sl.categorical("a", "01"),))
    table = engine(pa.table({"a": [i % 2 for i in range(400)]}), schema=schema)
    reports = sl.collect(table, spl(table.schema, 0.1), seed=5).parts[0].values
    assert not np.array_equal(reports[:200], reports[200:])


class TestSpark:
    """What Spark alone does."""

    @pytest.fixture(autouse=True)
    def _spark_only(self, engine: Reader) -> None:
        if engine is sl.read:
            pytest.skip("the local engine has neither partitions nor workers")

    def test_reports_lie_in_files_and_are_added_up_there(self, engine: Reader, tmp_path: Path) -> None:
        schema = sl.Schema((sl.categorical("a", "012"), sl.categorical("b", "01")))
        people = pa.table({"a": [i % 3 for i in range(500)], "b": [i % 2 for i in range(500)]})
        table = engine(people, schema=schema)
        protocol = smp(table.schema, 1.0)
        path = str(tmp_path / "reports")
        written = collect_into(table, protocol, path, seed=9)
        with pytest.raises(sl.InputError, match="reports cannot be written to .* name a new folder"):
            collect_into(table, protocol, path, seed=10)
        found = open_reports(engine.session.read.parquet(path)).aggregate()
        expected = sl.collect(table, protocol, seed=9).aggregate()
        assert found.people == written.aggregate().people == 500
        for mine, theirs in zip(found.parts, expected.parts, strict=True):
            assert (mine.reports, mine.mechanism) == (theirs.reports, theirs.mechanism)
            assert np.array_equal(mine.sums, theirs.sums)
        assert sl.estimate(found).people == 500

    @pytest.mark.parametrize("seed", [None, 3])
    def test_a_seeded_collection_is_marked_as_a_simulation_there(
        self, engine: Reader, tmp_path: Path, seed: int | None
    ) -> None:
        schema = sl.Schema((sl.categorical("a", "01"),))
        table = engine(pa.table({"a": [0, 1, 1, 0] * 9}), schema=schema)
        path = str(tmp_path / "reports")
        written = collect_into(table, spl(table.schema, 1.0), path, seed=seed).aggregate()
        read = open_reports(engine.session.read.parquet(path)).aggregate()
        assert written.is_simulation is read.is_simulation is (seed is not None)
        assert sl.estimate(read).is_simulation is (seed is not None)

    def test_noisy_numbers_are_added_up_there_too(self, engine: Reader, tmp_path: Path) -> None:
        schema = sl.Schema((sl.categorical("a", "012"),))
        table = engine(pa.table({"a": [i % 3 for i in range(500)]}), schema=schema)
        protocol = spl(table.schema, 2.0, "laplace", {"lower": -1, "upper": 1})
        found = collect_into(table, protocol, str(tmp_path / "reports"), seed=9).aggregate()
        expected = sl.collect(table, protocol, seed=9).aggregate()
        assert found.parts[0].sums.tolist() == expected.parts[0].sums.tolist()
        assert sl.estimate(found).means == sl.estimate(expected).means

    def test_foreign_reports_are_refused(self, engine: Reader, tmp_path: Path) -> None:
        schema = sl.Schema((sl.categorical("a", "01"), sl.categorical("b", "01")))
        table = engine(pa.table({"a": [0, 1, 1, 0] * 9, "b": [0, 1] * 18}), schema=schema)
        first, second = str(tmp_path / "first"), str(tmp_path / "second")
        collect_into(table, spl(table.schema, 1.0), first, seed=1)
        mixed = collect_into(table, spl(table.schema, 2.0), second, seed=1)
        both = type(mixed)(mixed.protocol, engine.session.read.parquet(first, second))
        with pytest.raises(sl.InputError, match="reports of two protocols are mixed"):
            both.aggregate()
        with pytest.raises(sl.InputError, match="a Spark DataFrame with a column 'reports'"):
            open_reports(table.source.frame)
        with pytest.raises(sl.InputError, match="two phases need rows that keep their numbers"):
            sl.collect(table, sl.protocols.TwoPhase(table.schema, 1.0))
        with pytest.raises(sl.InputError, match="two phases need rows that keep their numbers"):
            collect_into(table, sl.protocols.TwoPhase(table.schema, 1.0), str(tmp_path / "third"))

    def test_empty_partitions_count_nothing(self, engine: Reader) -> None:
        frame = engine.session.createDataFrame(pa.table({"a": [0, 1, 1], "b": [1, 1, 0]})).repartition(7)
        schema = sl.Schema((sl.categorical("a", "01"), sl.categorical("b", "01")))
        assert sl.read(frame, schema=schema).counts(["a", "b"])[0].cells.tolist() == [[0, 1], [1, 1]]

    def test_the_command_line_says_the_same(
        self, engine: Reader, tmp_path: Path, monkeypatch, capsys
    ) -> None:
        if engine.kind != "spark":
            pytest.skip("a command opens a session of its own; once is enough")
        path = tmp_path / "people.parquet"
        pq.write_table(pa.table({"a": ["x", "y", "y"] * 9, "b": [1, 2, 3] * 9}), path)
        shown = []
        for options in ([], ["--engine", "spark", "--master", "local[2]"]):
            monkeypatch.setattr(sys, "argv", ["sidelight", "audit", str(path), "--json", *options])
            with pytest.raises(SystemExit):
                main()
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1]
        assert '"secrets"' in shown[0]

    def test_quotes_in_a_text_file_are_read_as_everywhere(self, engine: Reader, tmp_path: Path) -> None:
        if engine.kind != "spark":
            pytest.skip("the session that is open is taken; once is enough")
        path = tmp_path / "people.csv"
        path.write_text('a,b\n"say ""no"", then go",1\n"back\\",2\n"say ""no"", then go",2\n')
        before = dict(os.environ)
        table = sl.read(open_frame(str(path), master=None))
        assert os.environ == before, "what Spark's workers are to inherit stays in this process"
        assert table.schema == sl.read(path).schema
        assert table.schema["a"].values == ("back\\", 'say "no", then go')

    def test_a_killed_worker_changes_nothing(self, engine: Reader, rows: pa.Table, tmp_path: Path) -> None:
        marker = tmp_path / "killed"
        marker.touch()
        local = sl.read(rows, columns=["byte", "text", "gain"])
        expected = [counts.cells for counts in local.pair_counts()]
        frame = engine.session.createDataFrame(rows.select(local.schema.names))
        table = sl.read(frame.mapInArrow(killing(str(marker)), frame.schema), schema=local.schema)
        marker.unlink()
        found = [counts.cells for counts in table.pair_counts()]
        assert marker.read_text() == ("executor" if engine.kind == "cluster" else "worker")
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(found, expected, strict=True))


def killing(marker: str):
    """Return a stage that kills its executor, or its worker where there is none, once, after some rows."""

    def stage(batches):
        for batch in batches:
            yield batch
            try:
                descriptor = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                continue
            process = executor()
            os.write(descriptor, b"worker" if process == os.getpid() else b"executor")
            os.close(descriptor)
            os.kill(process, signal.SIGKILL)

    def executor() -> int:
        process = os.getpid()
        while process > 1:
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rpartition(")")[2].split()[1])
        return os.getpid()

    return stage


SOME = "rules_are_kept or bad_values or reports_lie or empty_partitions"
"""What finds a schema, counts, collects and fails: the ways in which Connect is asked."""


@pytest.mark.skipif(bool(CHOSEN), reason="this is the run of the suite that it would start")
@pytest.mark.parametrize("which", [SOME, pytest.param("not suite_passes", marks=pytest.mark.deep)])
def test_the_suite_passes_on_spark_connect(which: str) -> None:
    spark_sessions.need_spark()
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-k", which]
    command = [sys.executable, "-m", "pytest", *options, __file__]
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run(
        command, env={**os.environ, "SIDELIGHT_ENGINES": "connect"}, cwd=root, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stdout[-4000:]
    assert "passed" in shown.stdout
