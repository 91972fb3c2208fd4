"""What is installed, what is missing, and whether the machine can do what Sidelight asks of it."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from sidelight.foundation.errors import MissingExtraError
from sidelight.foundation.modules import require
from sidelight.report.console import print_plain


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    subject: str  # what was looked at
    is_fine: bool  # whether it is as it should be
    detail: str  # what was found, and the fix if it is not
    is_required: bool = True  # whether Sidelight cannot work without it


def diagnose(service: str | None = None) -> list[Finding]:
    """Check Python, the dependencies, the extras, secure randomness and the compiled kernels.

    Args:
        service: the folder of a service's store, or its postgresql:// URL, to look at it too.
    """
    python = f"{platform.python_version()} on {platform.machine()}"
    return [
        Finding("python", sys.version_info >= (3, 11), python),
        Finding("sidelight", True, version("sidelight")),
        *_packages(),
        _spark(),
        _check("secure randomness", _randomness),
        _check("compiled kernels", _kernels),
        _check("DuckDB", _duckdb),
        *(_service(service) if service is not None else ()),
    ]


def print_diagnosis(findings: list[Finding]) -> None:
    """Print one line for each finding."""
    marks = {True: "MISSING", False: "absent"}
    print_plain(
        ("", "checked", "found"),
        (("ok" if item.is_fine else marks[item.is_required], item.subject, item.detail) for item in findings),
    )


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _packages() -> list[Finding]:
    """Say which declared dependencies are installed: those of the core one by one, the others by extra."""
    extras = metadata("sidelight").get_all("Provides-Extra") or []
    needs: dict[str, list[str]] = {"": [], **{extra: [] for extra in extras}}
    for line in requires("sidelight") or []:
        extra = re.search(r"extra == ['\"]([^'\"]+)['\"]", line)
        needs[extra.group(1) if extra else ""].append(re.split(r"[ <>=!~;\[(]", line, maxsplit=1)[0])
    findings = [
        Finding(name, bool(found := _installed(name)), found or "not installed: pip install sidelight")
        for name in sorted(needs.pop(""))
    ]
    for name, members in needs.items():
        absent = [member for member in members if member != "sidelight" and not _installed(member)]
        detail = "installed" if not absent else f'lacks {", ".join(absent)}: pip install "sidelight[{name}]"'
        findings.append(Finding(f"extra {name}", not absent, detail, is_required=False))
    return findings


def _spark() -> Finding:
    """Say whether the Spark engine has its PySpark and its Java."""
    from sidelight.sources.session import java_version, need_java, need_spark

    problems = []
    for need in (need_spark, need_java):
        try:
            need()
        except MissingExtraError as error:
            problems.append(str(error))
    found = f"PySpark {_installed('pyspark')} on Java {java_version()}"
    return Finding("Spark engine", not problems, "; ".join(problems) or found, is_required=False)


def _service(place: str) -> list[Finding]:
    """Say whether a service's store answers, is up to date, waits for the disk and has room."""
    for module in ("asyncpg", "fastapi", "uvicorn"):
        require(module, "service", "the service")
    from sidelight.service.checks import check_store

    return [Finding(*check) for check in check_store(place)]


def _check(subject: str, probe: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, probe())
    except Exception as error:  # noqa: BLE001 - a diagnosis reports whatever goes wrong
        return Finding(subject, False, f"{type(error).__name__}: {error}")


def _randomness() -> str:
    from sidelight.foundation.randomness import Secure

    first, second = Secure().words(0, 4), Secure().words(0, 4)
    if (first == second).all():
        raise RuntimeError("the operating system gave the same key twice")
    return "operating system's generator, stretched by ChaCha20"


def _kernels() -> str:
    import numpy as np

    from sidelight.mechanisms.channel.kernels import search_rows

    ratio, _, _ = search_rows(np.array([[0.75, 0.25], [0.25, 0.75]]), 0.5)
    if abs(ratio - 1.4) > 1e-12:
        raise RuntimeError(f"a kernel gave {ratio} instead of 1.4")
    return "compiled and right"


def _duckdb() -> str:
    import duckdb

    duckdb.connect().execute("SELECT 1").fetchall()
    return f"{duckdb.__version__} answers"
