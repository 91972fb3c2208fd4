"""What forged reports can do, against trying every one of them."""

from __future__ import annotations

import numpy as np
import pytest

import sidelight as sl
from sidelight.estimation.influence import influence
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.estimation.unbiased import unbiased
from sidelight.mechanisms import Reports
from sidelight.protocols import TwoPhase, make_protocol
from sidelight.protocols.records import RecordReports, joined
from sidelight.transport.wire import Wire

SCHEMA = sl.Schema((sl.categorical("a", "xy"), sl.categorical("b", "uvw")))
PEOPLE = 2000


def _records(number: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.column_stack([rng.integers(0, 2, number), rng.integers(0, 3, number)]).astype(np.uint8)


def _every_report(protocol) -> list[RecordReports]:
    """All reports that the wire form of a small protocol lets in."""
    wire = Wire(protocol)
    codes = range(1 << (8 * (wire.length - 1)))
    tried = wire.unpack([bytes([1, *code.to_bytes(wire.length - 1, "little")]) for code in codes])
    return [tried.reports[i : i + 1] for i in range(len(tried.reports))]


def _figures(parts) -> np.ndarray:
    return np.concatenate([item.estimate for item in unbiased(parts).values()])


@pytest.mark.parametrize("name", ["spl", "smp", "product", "rs+fd"])
def test_no_forged_report_moves_a_figure_further_and_some_moves_it_so_far(name: str) -> None:
    protocol = make_protocol(name, SCHEMA, 1.5)
    honest = protocol.randomise(_records(PEOPLE), seed=4).aggregate()
    start, stated = _figures([honest]), np.concatenate(list(influence([honest]).values()))
    forged = 20
    shifts = []
    for report in _every_report(protocol):
        many = joined([_again(report) for _ in range(forged)])
        shifts.append(_figures([honest + many.aggregate()]) - start)
    share = forged / (PEOPLE + forged)
    reached = np.abs(shifts).max(axis=0) / share
    assert np.all(reached <= stated * 1.02)
    # A forger who only adds reports gets half of the way at least: the other half is who was replaced.
    assert np.all(reached >= stated * 0.45)


def _again(report: RecordReports) -> RecordReports:
    """The same report of somebody else."""
    parts = tuple(Reports(part.values.copy(), part.seeds) for part in report.parts)
    return RecordReports(report.protocol, parts, report.senders, report.people)


def test_a_larger_budget_leaves_a_forger_less() -> None:
    reach = [
        influence([make_protocol("spl", SCHEMA, epsilon).randomise(_records(500), seed=1).aggregate()])["a"][
            0
        ]
        for epsilon in (0.5, 1.0, 4.0)
    ]
    assert reach == sorted(reach, reverse=True)
    # One attribute of two values with budget 0.25: 1 / (p - q) = 1 / tanh(0.125).
    assert reach[0] == pytest.approx(1 / np.tanh(0.125), rel=1e-6)


def test_both_phases_of_a_two_phase_design_are_looked_at() -> None:
    design = TwoPhase(SCHEMA, 2.0, share=0.3)
    first = design.first.randomise(_records(600), seed=1)
    second = learn_second_phase(design, first).second.randomise(_records(1400), seed=2)
    reach = influence([first.aggregate(), second.aggregate()])
    assert all(np.all(np.isfinite(item)) and np.all(item >= 1) for item in reach.values())
