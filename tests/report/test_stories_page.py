"""The page and the terminal of an audit at delta: what the first screen says, the curve, the table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from test_report import HOSTILE, Document, document

import sidelight as sl
from browser import PHONE, browser_fixture, complaints, show
from sidelight.auditing import Sampling
from sidelight.report.audit import print_audit
from sidelight.report.audit_figures import worst_first
from sidelight.report.stories import columns_of, delta_figure, headline
from sidelight.report.wording import factor

__all__ = ["browser_fixture"]


@pytest.fixture(scope="module")
def told() -> sl.Audit:
    table = sl.example("titanic")
    plan = sl.Plan.uniform(table.schema, limits={"survived": 1.75, "sex": 1.75})
    return sl.audit(sl.Belief.from_data(table), plan, ["survived", "sex"], delta=1e-2)


@pytest.fixture(scope="module")
def hostile() -> sl.Audit:
    """Names and values that try to leave their place; one value is released as it is, so odds have no end."""
    first = sl.categorical(HOSTILE, ["<b>x</b>", "&amp;", "<a href='javascript:alert(1)'>q</a>"])
    second = sl.categorical("@ink", ["%{x}", "{{ 7 * 7 }}"])
    cells = np.random.default_rng(7).dirichlet(np.ones(6)).reshape(3, 2)
    belief = sl.Belief.from_joint(cells, sl.Schema((first, second)), source="<img src=x onerror=alert(1)>")
    plan = sl.Plan((sl.Release(first, "identity", None), sl.Release(second, "grr", 1.0)))
    return sl.audit(belief, plan, delta=1e-2)


def first_screen(page: Document) -> str:
    return page.text.partition("Unprotected:")[0]


def test_the_first_screen_says_how_much_for_whom_and_who_decides(told: sl.Audit) -> None:
    item = told["sex"]
    said = first_screen(document(told))
    leakage = item.deciding.leakage
    witness = leakage.upper.witness
    assert "Of 2 secrets, 1 exceeds its limit and 1 stays within its limit" in said
    assert "The worst of 2 secrets is sex." in said
    assert (
        f"sex is {witness.likelier} rather than {witness.unlikelier} by up to {factor(leakage.value)}" in said
    )
    assert (
        f"The limit is a factor of {factor(1.75)}; it is exceeded. "
        "This allows 1 in 100 people to be exposed beyond it." in said
    )
    for title in ("Someone who knows the population", "Someone who knows this very table", "The worst case"):
        assert title in said
    for share in (0.5, 0.9, 0.99, 0.999):
        assert f"by at most {factor(leakage.moved(share))} times" in said
    for line in (line for column in columns_of(item) for line in column.lines):
        assert f"{line.odds} {line.exposed or 'nobody'} {line.null}" in said
    assert said.count("decides") == 1
    assert "a delta of 0.01 lets one person in a hundred be exposed without limit" in said


def test_every_story_of_every_secret_is_in_the_table(told: sl.Audit) -> None:
    text = document(told).text
    for item in told.secrets.values():
        for story in item.stories:
            for point in story.leakage.points:
                assert f"{factor(point.upper.value)} 1 in {round(1 / point.delta):,} people" in text
    assert f"The population predicts a person's record {told.population.population.gain:.2f} nats" in text
    assert "The limits are to be kept for someone who knows this very table, at delta 0.01." in text
    assert "as whoever ran the audit asked" not in text


def test_the_curve_ends_at_the_worst_case(told: sl.Audit) -> None:
    item = told["sex"]
    traces = {trace["name"]: trace for trace in delta_figure(item).data}
    table = traces["Someone who knows this very table"]
    assert table["x"] == [1e-2, 1e-3, 1e-4]
    assert table["y"] == [point.upper.value for point in item.stories[1].leakage.points]
    assert traces["without any connection"]["y"] == [item.stories[1].nulls[delta] for delta in table["x"]]
    assert traces["worst case"]["y"] == [item.worst_case.lower.value, item.worst_case.upper.value]
    assert max(traces["worst case"]["x"]) < min(table["x"])
    moved = traces["so many people are moved further"]
    assert moved["y"] == sorted(moved["y"])
    assert traces["limit"]["y"] == [1.75, 1.75]


def test_noise_is_shown_as_noise(told: sl.Audit, capsys: pytest.CaptureFixture[str]) -> None:
    item = told["survived"]
    table = item.stories[1]
    point = table.leakage.at(1e-2)
    drowned = replace(table, nulls={1e-2: point.upper.value})
    noisy = replace(told, secrets={"survived": replace(item, stories=(item.stories[0], drowned))})
    assert "no more than a table without any connection shows" in document(noisy).text
    assert "no more than a table without any connection shows" not in document(told).text
    print_audit(noisy, sl.example("titanic"))
    shown = capsys.readouterr().out
    assert f"~{point.upper.value:.3f} ({point.upper.value:.3f})" in shown
    print_audit(told, sl.example("titanic"))
    assert "~1" not in capsys.readouterr().out


def test_what_the_draws_show_stands_beside_a_loose_bound(told: sl.Audit) -> None:
    item = told["sex"]
    story = item.stories[1]
    loose = replace(story.leakage.at(1e-4), upper=sl.Bound(3.5, "certified", "records coupled"), estimate=2.0)
    leakage = replace(story.leakage, points=(*story.leakage.points[:2], loose))
    changed = replace(item, stories=(item.stories[0], replace(story, leakage=leakage)))
    text = document(replace(told, secrets={"sex": changed})).text
    assert f"{factor(3.5)} about {factor(2.0)}, from draws 1 in 10,000" in text
    assert "3.500, certified: records coupled; the draws show about 2.000" in text


def test_the_worst_case_can_decide(told: sl.Audit) -> None:
    audit = sl.audit(told.belief, told.plan, ["sex"], delta=1e-2, decide_by="report")
    page = document(audit)
    assert "In the worst case, whoever knows this table and sees a person’s 4 noisy reports" in first_screen(
        page
    )
    assert "in the worst case." in page.text
    assert headline(audit["sex"]).startswith(
        "In the worst case the reports multiply the odds about sex by 8.00."
    )


def test_the_terminal_says_the_same_in_short(told: sl.Audit, capsys: pytest.CaptureFixture[str]) -> None:
    print_audit(told, sl.example("titanic"))
    shown = " ".join(capsys.readouterr().out.split())
    value = told["sex"].deciding.leakage.value
    assert (
        f"Someone who knows this very table can multiply the odds about sex by up to {factor(value)}" in shown
    )
    assert "exceeded, decides" in shown
    assert "A delta averages over people: 0.01 lets 1 in 100 people be exposed without limit" in shown
    assert [item.secret for item in worst_first(told)] == ["sex", "survived"]


def test_suppressed_stories_name_no_rare_value() -> None:
    cells = np.array([[400, 100], [300, 300], [1, 4]])
    schema = sl.Schema((sl.categorical("x", ["a", "b", "rare"]), sl.categorical("u", ["0", "1"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    audit = sl.audit(belief, sl.Plan.uniform(schema), ["x"], delta=0.05, min_support=10)
    text = document(audit).text
    assert "rare " not in text
    assert "budget alone; the figure rests on too few records to show" in text


def test_hostile_names_and_infinite_figures_stay_text(hostile: sl.Audit) -> None:
    page = document(hostile)
    assert math.isinf(hostile[HOSTILE].deciding.leakage.value)
    assert HOSTILE in page.text
    assert "by up to ∞" in page.text
    assert "delta" in page.drawings()


@pytest.mark.browser
def test_a_browser_draws_the_curve_and_a_phone_keeps_its_width(
    browser: Chrome, told: sl.Audit, hostile: sl.Audit, tmp_path: Path
) -> None:
    for number, audit in enumerate((told, hostile)):
        page = sl.write_report(audit, tmp_path / f"{number}.html")
        show(browser, page)
        script = "return document.querySelectorAll('#plot-delta .scatterlayer .trace').length"
        assert browser.execute_script(script) == len(document(audit).drawings()["delta"]["data"])
        show(browser, page, PHONE)
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width == PHONE[0]
        assert complaints(browser) == []


def test_sampled_figures_say_how_many_draws_and_how_sure() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, size=(800, 16)).astype(np.uint16)
    codes[:, 1] = codes[:, 0]
    schema = sl.Schema(tuple(sl.categorical(f"x{i}", list("abc")) for i in range(16)))
    belief = sl.Belief.from_records(sl.sources.Records(schema, codes, np.ones(800)))
    audit = sl.audit(belief, sl.Plan.uniform(schema), ["x0"], delta=1e-2, sampling=Sampling(2000, seed=1))
    assert audit["x0"].stories[1].leakage.draws == 2000
    text = document(audit).text
    assert (
        "Sampled figures come from 2,000 drawn releases for each value, or more; each is too low with a"
        in text
    )
