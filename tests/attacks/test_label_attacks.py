"""Attacks on labels: the optimal one reaches what the reports allow, each beside its control."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from sidelight.attacks import AttackResult, attack_labels
from sidelight.attacks.labels import published_scores
from sidelight.foundation.errors import InputError
from sidelight.labels.collection import AttributeReports, LabelledRows, LabelSettings
from sidelight.learning.bayes import BayesFit, private_bayes
from sidelight.report.page import page_of


def people(count: int, *, seed: int = 1, second: bool = True) -> LabelledRows:
    """Labels two to one; the first attribute follows the label, the second one the first."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(count) < 1 / 3).astype(np.uint16)
    first = np.where(rng.random(count) < 0.85, labels, rng.integers(0, 3, count))
    columns = [first, rng.integers(0, 2, count)] if second else [first]
    codes = np.stack(columns, axis=1).astype(np.uint16)
    return LabelledRows(codes, labels, (3, 2)[: len(columns)], 2)


def fitted(rows: LabelledRows, protocol: str, epsilon: float, **options: object) -> BayesFit:
    settings = LabelSettings(epsilon, protocol, "known", **options)  # type: ignore[arg-type]
    return private_bayes(rows, settings, seed=1)


def test_the_optimal_attack_reaches_what_the_reports_allow() -> None:
    """30,000 reports: the share of right guesses within 4 standard errors of the sum over all reports (a
    false alarm below 1e-4)."""
    rows = people(30_000, second=False)
    fit = fitted(rows, "khr", 2.0, k=1)
    found = attack_labels(fit, "optimal", label="diagnosis")
    response, conditionals = fit.reports[0].response, rows.conditionals(0)
    prior = np.bincount(rows.labels) / len(rows)
    p = float(response.mechanism.mark_if_true)
    chance = 0.0
    for value, label in product(range(3), range(2)):
        likelihood = [
            sum(conditionals[mark, v] * (p if (v, mark) == (value, label) else (1 - p) / 5) for v in range(3))
            for mark in range(2)
        ]
        chance += max(prior[mark] * likelihood[mark] for mark in range(2))
    assert isinstance(found, AttackResult)
    assert found.target == "diagnosis"
    assert 1 - found.score.value == pytest.approx(chance, abs=4 * math.sqrt(0.25 / len(rows)))
    assert found.limit is not None
    assert 1 - found.limit.value == pytest.approx(chance, abs=0.005)
    assert found.baseline is not None
    assert attack_labels(fit, "published").score.upper >= found.score.value
    assert found.beats_control
    assert page_of(found).title


@pytest.mark.parametrize("protocol", ["khr", "basic"])
def test_the_likelihood_of_a_report_is_that_of_its_channel(protocol) -> None:
    rows = people(400, second=False)
    part = fitted(rows, protocol, 1.0).reports[0]
    known = rows.conditionals(0)
    found = part.response.likelihood(part.reports, known)
    law = part.response.mechanism
    for report, scores in zip(part.reports.values[:50], found[:50], strict=True):
        if protocol == "khr":
            favoured = set(report.tolist())
        else:
            favoured = set(np.flatnonzero(np.unpackbits(report, bitorder="little")[:6]).tolist())
        weights = [
            sum(known[mark, v] * (float(law.factor) if v * 2 + mark in favoured else 1.0) for v in range(3))
            for mark in range(2)
        ]
        assert scores == pytest.approx(weights)


def test_labeldp_reports_the_value_and_favours_a_set_of_labels() -> None:
    rows = people(200, second=False)
    part = fitted(rows, "labeldp", 1.0).reports[0]
    known, theta = rows.conditionals(0), float(part.response.factor)
    for report, scores in zip(
        part.reports.values, part.response.likelihood(part.reports, known), strict=True
    ):
        value, held = report[0], set(report[1:].tolist())
        assert scores == pytest.approx([known[m, value] * (theta if m in held else 1.0) for m in range(2)])
    assert part.response.shown_values(part.reports)[:, 0].tolist() == rows.codes[:, 0].tolist()


def test_labeldp_is_attacked_through_its_attributes() -> None:
    fit = fitted(people(20_000), "labeldp", 0.5)
    published, optimal = attack_labels(fit, "published"), attack_labels(fit, "optimal")
    assert published.beats_control
    assert published.gain.value > 0.15
    assert optimal.score.value <= published.score.value + 0.01
    assert optimal.baseline is not None
    assert optimal.score.value < optimal.baseline.value - 0.1, "the reported label alone says far less"


def test_who_sent_a_report_must_be_known_and_reports_must_fit() -> None:
    rows = people(300)
    heads, basic = fitted(rows, "khr", 1.0), fitted(rows, "basic", 1.0)
    part = heads.reports[0]
    unknown = replace(heads, reports=(AttributeReports(0, part.response, part.reports),))
    with pytest.raises(InputError, match="simulation only"):
        attack_labels(unknown)
    with pytest.raises(InputError, match="`attack` must be one of"):
        attack_labels(heads, "best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="kHR reports"):
        published_scores(basic.model, basic.reports[0])
