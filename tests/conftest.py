from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from sidelight import cli

settings.register_profile(
    "sidelight", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("sidelight")

# Typer makes every command anew for each call, which takes longer than most calls; a process needs them once.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real tables; what needs it is skipped where it is not there."""
    folder = Path(os.environ.get("SIDELIGHT_DATA", _ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real tables at {folder}; set SIDELIGHT_DATA to their folder")
    return folder


AT_MOST = 600
"""No test waits for so many seconds unless something is broken; none lives by the clock."""


def usual_signals() -> None:
    """Let a child die of what it is sent: one of a background job inherits that it ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Shown(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys) -> Callable[..., Shown]:
    """The command line, run in this process."""

    def call(*arguments: object) -> Shown:
        monkeypatch.setattr(sys, "argv", ["sidelight", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        shown = capsys.readouterr()
        return Shown(caught.value.code, shown.out, shown.err)

    return call


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
