from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "sidelight", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("sidelight")

_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real tables; what needs it is skipped where it is not there."""
    folder = Path(os.environ.get("SIDELIGHT_DATA", _ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real tables at {folder}; set SIDELIGHT_DATA to their folder")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)
