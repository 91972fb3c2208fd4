"""The study of the labels paper: its tables exactly, its figures on a few points, drawn to files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from sidelight.foundation.errors import InputError
from sidelight.studies.clldp import joints, records
from sidelight.studies.register import find_study


def test_the_tables_are_those_of_the_paper() -> None:
    rows = {(row.data, row.line): row.value for row in joints.tables()}
    assert rows["fever", "LabelDP's excess"] == pytest.approx(math.log(68))
    for name, printed in find_study("clldp-table4").published.items():
        assert rows[name, "omega(1)"] == pytest.approx(printed, abs=8e-4)


def test_figure_3_follows_what_is_stated_and_search_is_best() -> None:
    """10,000 people, 2 seeds: the mean error within 25 % of the stated one (about 250 cells each)."""
    rows = list(joints.figure_3([3.0], 10_000, 2))
    for name in records.SYNTHETIC:
        lines = {row.line: row.value for row in rows if row.data == name}
        for line in ("basic", "kHR, k = 1", "kHR, k by search"):
            assert lines[line] == pytest.approx(lines[f"{line}, stated"], rel=0.25)
        stated = {line: value for line, value in lines.items() if line.endswith("stated")}
        assert stated["kHR, k by search, stated"] <= min(stated.values()) * (1 + 1e-9)


def test_figure_6_is_tabulated_and_drawn() -> None:
    points = [*joints.tables(), *joints.figure_6(3000, 1, step=33)]
    result = find_study("clldp-fig6").read(points)
    assert len(result.rows) == len(points) - 7, "the points of both tables are not its own"
    assert [len(axes.lines) > 0 for axes in result.drawings[0].build().axes] == [True] * 4


def test_groups_stay_together() -> None:
    groups = np.repeat(np.arange(50), 6)
    train, test = records.split_by_group(groups, 0.7, seed=1)
    assert len(train) + len(test) == 300
    assert not set(groups[train]) & set(groups[test])


def test_smart_grid_is_learnt_without_what_determines_the_label(data: Path, monkeypatch) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(data))
    real = records.smart_grid(1, with_stab=False)
    assert len(real.train) + len(real.test) == 60_000
    assert "stab" not in [attribute.name for attribute in real.attributes]
    assert real.control == pytest.approx(0.638, abs=0.02)
    adult = records.adult(1)
    assert len(adult.train) + len(adult.test) == 32_561
    monkeypatch.setenv("SIDELIGHT_DATA", str(data / "absent"))
    with pytest.raises(InputError, match="set SIDELIGHT_DATA"):
        records.adult(1)
