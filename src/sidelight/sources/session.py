"""Starting Spark: what it needs, how a session is opened, and how a file becomes a DataFrame."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sidelight.foundation.errors import InputError, MissingExtraError
from sidelight.foundation.modules import require
from sidelight.foundation.terminal import diverted_errors
from sidelight.sources.files import format_of, locate, refuse_reports

PURPOSE = "the Spark engine"
OLDEST_JAVA = 17
_REMOTE = "sc://"


def java_version() -> str:
    """Return the version of the Java that Spark would start, or "" where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program or not Path(program).exists():
        return ""
    shown = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    match = re.search(r'version "([^"]+)"', shown)
    return match.group(1) if match else ""


def need_java() -> None:
    """Raise unless there is a Java that Spark can run on."""
    version = java_version()
    if not version or int(re.split(r"\D", version, maxsplit=1)[0] or 0) < OLDEST_JAVA:
        present = f"Java {version}" if version else "none"
        raise MissingExtraError(
            f"{PURPOSE} needs Java {OLDEST_JAVA} or newer, got {present}: install it (on Debian: apt-get "
            f"install openjdk-{OLDEST_JAVA}-jre-headless), set JAVA_HOME, or name a Spark Connect server "
            f"({_REMOTE}host) as the master."
        )


def is_spark(rows: object) -> bool:
    """Whether an object is a DataFrame of Spark, classic or Connect."""
    return type(rows).__module__.startswith("pyspark.sql") and hasattr(rows, "mapInArrow")


def need_spark() -> None:
    """Raise unless PySpark and what it hands Arrow batches over with are installed."""
    for module in ("pyspark", "pandas"):
        require(module, "spark", PURPOSE)


def open_session(master: str | None) -> Any:
    """Return a Spark session on `master`; on the configured one, or this machine, by default.

    A master that begins with sc:// is a Spark Connect server, which needs no Java here. What Spark logs goes
    to a file.
    """
    need_spark()
    if not (master or "").startswith(_REMOTE):
        need_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("sidelight")
    if master and master.startswith(_REMOTE):
        builder = builder.remote(master)
    else:
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.master(master) if master else builder
    try:
        with diverted_errors("spark"), _environment_of_workers():
            return builder.getOrCreate()
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"Spark does not start on {master or 'its configured master'}: {reason}; check the master."
        ) from error


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Set what Spark hands on to its Python workers, while it starts alone: this process goes on as it was.

    Without PYTHONSAFEPATH a worker takes modules from the folder we work in.
    """
    ours = {"PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"}
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def open_frame(path: str, master: str | None, encoding: str = "utf-8") -> Any:
    """Return a file, a glob or a folder as a Spark DataFrame; text files have a header."""
    pattern, suffix = _located(path)
    reader = open_session(master).read
    try:
        if suffix == "parquet":
            return reader.parquet(pattern)
        options = {"sep": "\t" if suffix == "tsv" else ",", "escape": '"', "encoding": encoding}
        return reader.csv(pattern, header=True, inferSchema=True, **options)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read by Spark: {reason}") from error


def _located(path: str) -> tuple[str, str]:
    """Return what Spark reads; the address of a file elsewhere is taken as it is."""
    if "://" not in path:
        pattern, suffix = locate(path)
        if suffix == "parquet":
            refuse_reports(pattern, path)
        return (path if Path(path).is_dir() else pattern), suffix
    return path, format_of(path) or "parquet"
