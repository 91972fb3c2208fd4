"""The study of CPL, Fig. 8 against what was computed independently for the 38 shared attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

import sidelight as sl
from sidelight.studies import calibration
from sidelight.studies.calibration_drawing import draw, write_tables


@pytest.fixture(scope="module")
def study(data: Path) -> calibration.CalibrationStudy:
    assert data.is_dir()
    return calibration.run(quick=True)


def test_published_calibration_on_the_38_shared_attributes(study) -> None:
    row = study.limits[0]
    assert study.ratio == pytest.approx(4.44, abs=0.005)
    assert row.public / row.even == pytest.approx(2.75, abs=0.005)
    assert all(3.2 < ratio < 5.5 for ratio in study.subsets)
    assert row.published < row.stepped <= row.published + 2 * calibration.STEP + 1e-9


def test_what_holds_and_what_does_not(study) -> None:
    row = study.limits[0]
    assert 1 < row.certified / row.even < 1.1
    assert row.tree > row.published
    assert row.reached > row.limit, "a combination of reports breaks the limit at the published budget"
    assert study.verdict.startswith("reproduced, and refuted as a promise")


def test_unequal_budgets_and_optimal_channels_win(study) -> None:
    assert all(row.unequal < 0.9 * row.uniform < row.even for row in study.unequal)
    assert all(row.optimal > row.guess >= row.response for row in study.channels)
    assert all(row.balanced_optimal > row.balanced_response for row in study.channels)


def test_tables_and_figures(study, tmp_path: Path) -> None:
    text = write_tables(study, tmp_path / "calibration.md").read_text()
    assert "| limit | even | published |" in text
    assert study.verdict in text
    first = [path.read_bytes() for path in draw(study, tmp_path)]
    assert first == [path.read_bytes() for path in draw(study, tmp_path)], "the same study, the same files"


def test_tables_that_are_not_there_are_named(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    with pytest.raises(sl.InputError, match="there is no cardio.parquet in"):
        calibration.table_path("cardio")
    with pytest.raises(sl.InputError, match="name one folder"):
        calibration.main([])


def test_unequal_beats_uniform_on_adult(data: Path) -> None:
    belief = sl.Belief.from_data(sl.read(str(data / "adult.parquet"), drop=["split"]))
    result = sl.calibrate(belief, 1.0)
    assert result.is_within
    assert result.chosen.weighted_error < 0.6 * result.uniform.weighted_error
