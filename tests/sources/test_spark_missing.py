"""What is said where Spark cannot start: which package or Java to install, and what the doctor shows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

import sidelight as sl
from sidelight.doctor import diagnose
from sidelight.sources import session


@pytest.fixture
def table(tmp_path) -> str:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n0,1\n1,0\n1,1\n")
    return str(path)


def without_java(monkeypatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(session.shutil, "which", lambda _: None)


def spark_finding():
    return next(finding for finding in diagnose() if finding.subject == "Spark engine")


def test_without_java_the_message_says_what_to_install(monkeypatch, run, table) -> None:
    pytest.importorskip("pyspark", reason="the package pyspark is not installed")
    without_java(monkeypatch)
    code, _, error = run("audit", table, "--engine", "spark")
    assert code == 2
    assert error.count("\n") == 1
    assert "needs Java 17 or newer, got none" in error
    assert "openjdk-17-jre-headless" in error
    finding = spark_finding()
    assert not finding.is_fine
    assert not finding.is_required
    assert "needs Java 17" in finding.detail


def test_without_pyspark_the_message_names_the_extra(monkeypatch, run, table) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    without_java(monkeypatch)
    code, _, error = run("audit", table, "--engine", "spark", "--master", "local[2]")
    assert code == 2
    assert 'the Spark engine needs the package pyspark: pip install "sidelight[spark]"' in error
    detail = spark_finding().detail
    assert "needs the package pyspark" in detail
    assert "needs Java 17" in detail


@pytest.mark.parametrize(
    ("version", "fine"), [("17.0.15", True), ("21", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_an_old_java_is_refused_by_its_version(monkeypatch, version: str, fine: bool) -> None:
    monkeypatch.setattr(session, "java_version", lambda: version)
    if fine:
        assert session.need_java() is None
    else:
        with pytest.raises(sl.MissingExtraError, match=f"got Java {version}"):
            session.need_java()


def test_wrong_engines_and_masters_are_named(run, table) -> None:
    code, _, error = run("audit", table, "--engine", "flink")
    assert (code, "`engine` must be one of 'local', 'spark', got 'flink'" in error) == (2, True)
    code, _, error = run("audit", table, "--master", "local[2]")
    assert code == 2
    assert "--master local[2] is for --engine spark" in error


class Unreachable:
    """A builder of sessions that finds no master."""

    def appName(self, _: str) -> Unreachable:  # noqa: N802 - Spark's name
        return self

    def config(self, *_: str) -> Unreachable:
        return self

    master = remote = appName

    def getOrCreate(self) -> None:  # noqa: N802 - Spark's name
        raise RuntimeError("no such host\n\tat a.long.trace")


@pytest.mark.parametrize("master", ["spark://nowhere:7077", "sc://nowhere"])
def test_a_master_that_does_not_answer_is_named(monkeypatch, run, table, master: str) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="the package pyspark is not installed")
    monkeypatch.setattr(session, "java_version", lambda: "17")
    monkeypatch.setattr(sql.SparkSession, "builder", Unreachable())
    code, _, error = run("audit", table, "--engine", "spark", "--master", master)
    assert code == 2
    assert error == f"error: Spark does not start on {master}: no such host; check the master.\n"


SAY = "import sys; print('WARN NativeCodeLoader: chatter', file=sys.stderr)"


class Chatty(Unreachable):
    """A builder of sessions whose Java writes to standard error before it gives up."""

    def getOrCreate(self) -> None:  # noqa: N802 - Spark's name
        subprocess.run([sys.executable, "-c", SAY], check=True)
        raise RuntimeError("no such host")


def test_what_spark_logs_goes_to_a_file_that_an_error_names(monkeypatch, run, table, tmp_path) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="the package pyspark is not installed")
    monkeypatch.setattr(session, "java_version", lambda: "17")
    monkeypatch.setattr(sql.SparkSession, "builder", Chatty())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, _, error = run("audit", table, "--engine", "spark", "--master", "local[2]")
    (log,) = tmp_path.glob("sidelight-spark-*.log")
    assert code == 2
    assert error.endswith(f"check the master. What Spark says itself is in {log}.\n")
    assert "chatter" in log.read_text()
    assert "chatter" not in error


def test_where_nothing_fails_the_log_is_removed_and_nothing_is_said(tmp_path) -> None:
    script = (
        "import subprocess, sys; from sidelight.foundation.terminal import diverted_errors\n"
        f"with diverted_errors('spark'):\n    child = subprocess.Popen([sys.executable, '-c', {SAY!r}])\n"
        "child.wait(); print('after', file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (shown.stdout, shown.stderr) == ("", "after\n")
    assert not list(tmp_path.iterdir())
