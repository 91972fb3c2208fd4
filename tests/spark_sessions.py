"""Spark sessions of every kind for the engine suite; without Java or PySpark tests skip with the reason."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from sidelight.sources.session import need_java

MASTERS = {"spark": "local[2,2]", "cluster": "local-cluster[2,1,1024]", "connect": "local[2,2]"}
"""Where each runs: two threads, and what fails is tried once more."""
_ROOT = Path(__file__).resolve().parents[1]
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.executorEnv.PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT / 'tests'}",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}
# A session of a quick run lives for a minute and asks everything once: to compile its queries takes longer.
_BRIEF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def need_spark() -> None:
    for module in ("pyspark", "pandas", "grpc"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the package {module} is not installed; pip install 'sidelight[spark]'")
    try:
        need_java()
    except ImportError as error:
        pytest.skip(str(error))


def start(kind: str) -> Any:
    """Return a session of a kind; the caller stops it."""
    need_spark()
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("sidelight tests")
    builder = builder.remote(MASTERS[kind]) if kind == "connect" else builder.master(MASTERS[kind])
    kept = ("spark.sql.",) if kind == "connect" else ("spark.",)  # Connect sets no others once it runs
    for name, value in (_SETTINGS | ({} if kind == "cluster" else _BRIEF)).items():
        builder = builder.config(name, value) if name.startswith(kept) else builder
    environment = {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYTHONPATH": _SETTINGS["spark.executorEnv.PYTHONPATH"],
    }
    with pytest.MonkeyPatch.context() as patch:  # Java inherits it; tests that follow in this process do not
        for name, value in environment.items():
            patch.setenv(name, value)
        return builder.getOrCreate()
