"""The study of the PDP paper: what can be reproduced, and what cannot."""

from __future__ import annotations

import pytest

from sidelight.studies.pdp import figures, joints
from sidelight.studies.register import find_study


def test_the_examples_are_those_of_the_paper() -> None:
    study = find_study("pdp-examples")
    result = study.run(quick=True)
    assert result.verdict.kind == "reproduced"
    for name, printed in study.published.items():
        assert result.ours[name] == pytest.approx(printed, abs=0.0055), name


def test_the_figures_reproduce_what_can_be_and_say_what_cannot() -> None:
    by_key = {panel.key: panel for panel in figures.run(quick=True)}
    kinds = {key: panel.verdict.kind for key, panel in by_key.items()}
    assert kinds["fig4b"] == kinds["fig4c"] == "reproduced"
    assert kinds["fig4d"] == "not possible"
    assert [curve.name for curve in by_key["fig4d"].curves] == [
        "correlation -0.02", "correlation -0.04", "correlation -0.06",
    ]  # fmt: skip
    assert all("never below" in by_key[f"fig5{letter}"].verdict.reason for letter in "abc")
    assert [kinds[f"fig5{letter}"] for letter in "abc"] == ["reproduced", "differs", "differs"]


def test_certified_curves_are_never_below_exact_ones_and_the_graph_is() -> None:
    panels = [joints.joint_curves(name, 5) for name in joints.FAMILIES]
    for panel in panels:
        exact, certified, _ = panel.curves
        assert all(c >= e - 1e-9 for e, c in zip(exact.y, certified.y, strict=True))
    assert panels[-1].verdict.kind == "refuted", "random joints"
    drawn = panels[-1].drawing.build()
    assert drawn.axes[0].get_title() == "5 bits, random, strength 0.6 (refuted)"
