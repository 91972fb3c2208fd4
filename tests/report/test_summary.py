"""The four answers, the sheet of paper and the assessment: what they say, and that no name breaks them."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from test_report import HOSTILE, Document

import sidelight as sl
from browser import browser_fixture, complaints, show
from sidelight.report import assessment_of, write_assessment
from sidelight.report.assessment import escaped
from sidelight.report.page import page_of, render
from sidelight.report.provenance import data_digest
from sidelight.report.summary import expected_use, summary_of
from sidelight.report.wording import factor, unmarked

__all__ = ["browser_fixture"]

PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}
SECTIONS = ["collected", "purpose", "adversaries", "risks", "measures", "remains", "figures", "versions"]


def said(audit: sl.Audit, remedies: sl.remedying.Remedies | None = None) -> str:
    """All four answers as one text."""
    answers = summary_of(audit, remedies).answers
    return unmarked(" ".join(text for item in answers for text in (item.question, item.short, *item.details)))


def chained(attributes: int, people: int = 400, name: str = "attribute_{}", **settings: object) -> sl.Audit:
    """Binary attributes, each a noisy copy of the one before it."""
    rng = np.random.default_rng(attributes)
    codes = np.zeros((people, attributes), dtype=np.uint16)
    codes[:, 0] = rng.random(people) < 0.5
    for column in range(1, attributes):
        codes[:, column] = codes[:, column - 1] ^ (rng.random(people) < 0.15)
    schema = sl.Schema(
        tuple(sl.categorical(name.format(number), ["no", "yes"]) for number in range(attributes))
    )
    belief = sl.Belief.from_records(sl.sources.Records(schema, codes, np.ones(people)))
    plan = replace(sl.Plan.uniform(schema), **settings)
    return sl.audit(belief, plan, method="composition")


@pytest.fixture(scope="module")
def survey() -> sl.Audit:
    table = sl.sources.survey(4000, seed=1)
    belief = sl.Belief.from_data(table)
    return sl.audit(belief, sl.Plan.uniform(table.schema, limit=1.5), ["diabetes", "smokes"], delta=1e-2)


@pytest.fixture(scope="module")
def remedies(survey: sl.Audit) -> sl.remedying.Remedies:
    return sl.remedies(survey, seed=1)


def test_the_answers_say_how_much_for_whom_and_at_what_price(survey: sl.Audit) -> None:
    text = said(survey)
    item = survey["diabetes"]
    value = item.deciding.leakage.value
    assert "The worst of 2 secrets is diabetes." in text
    assert f"diabetes is yes rather than no by up to {factor(value)}." in text
    assert f"The limit is a factor of {factor(1.5)}; it is exceeded." in text
    have = round(float(survey.belief.prior("diabetes")[1]) * 4000)
    assert f"People whose diabetes is yes: {have:,} of the 4,000 in the table" in text
    assert "half of the people by at most" in text
    assert "Do not collect as planned." in text
    assert f"its own report (× {factor(item.direct.value)})" in text
    use = expected_use(survey)
    assert use is not None
    assert f"with 4,000 people, a guess to {100 * use.guess_error:.2g} percentage points" in text


def test_remedies_are_what_to_do_and_what_it_costs(survey: sl.Audit, remedies: sl.remedying.Remedies) -> None:
    text = said(survey, remedies)
    best = remedies[1]
    assert f"The cheapest way back under every limit: {best.says[:100]}" in text
    assert f"in every attribute that is still collected: {best.people_needed:,} people are needed." in text
    assert "That way: frequencies right to" in text
    page = Document(render(page_of(remedies)))
    assert f"The cheapest way back under every limit: {best.says[:100]}" in page.text


def test_without_a_limit_nothing_is_judged(survey: sl.Audit) -> None:
    plan = replace(survey.plan, limit=None, limits={})
    audit = sl.audit(survey.belief, plan, ["diabetes"])
    text = said(audit)
    assert "No limit was set, so nothing is judged." in text
    assert "Decide how much each secret may leak" in text
    assert "exceeded" not in text
    shown = Document(render(page_of(audit))).text
    assert "exceeded" not in shown.partition("In plain words The")[0].partition("Unprotected:")[0]


def test_within_the_limits_the_answer_is_to_collect(survey: sl.Audit) -> None:
    plan = replace(survey.plan, limit=5.0)
    assert "Collect as planned: every limit is kept." in said(sl.audit(survey.belief, plan, ["diabetes"]))


def test_nothing_leaks_and_nothing_is_claimed() -> None:
    belief = sl.Belief.from_joint(np.full((2, 2), 0.25), ["a", "b"])
    plan = sl.Plan((sl.Release(belief.schema["b"], "grr", 1.0),))
    text = said(sl.audit(belief, plan, ["a"]))
    assert "None: the reports do not move the odds about a." in text
    assert "The error of the estimates is not predicted for this plan." in text


def test_suppressed_values_are_not_counted_on_the_sheet() -> None:
    cells = np.array([[400, 100], [300, 300], [1, 4]])
    schema = sl.Schema((sl.categorical("x", ["a", "b", "rare"]), sl.categorical("u", ["0", "1"])))
    belief = sl.Belief.from_counts(sl.Counts(schema, cells))
    audit = sl.audit(belief, sl.Plan.uniform(schema), ["x"], min_support=10)
    assert "rare:" not in said(audit)
    assert "5 of the 1,105" not in said(audit)
    assert "5 of the 1,105" not in assessment_of(audit).to_markdown()


def test_infinite_leakage_is_said() -> None:
    belief = sl.Belief.from_joint([[0.5, 0.0], [0.0, 0.5]], ["a", "b"])
    plan = sl.Plan((sl.Release(belief.schema["a"], "identity", None),), limit=1.0)
    audit = sl.audit(belief, plan, ["b"])
    assert math.isinf(audit["b"].total.value)
    assert "by up to ∞. A fifty-fifty guess becomes 100 % certain." in said(audit)
    assert json.loads(assessment_of(audit).to_json())["figures"]["secrets"]["b"]["total"]["upper"]


def test_the_assessment_has_every_section_twice(
    survey: sl.Audit, remedies: sl.remedying.Remedies, tmp_path: Path
) -> None:
    releases = tuple(replace(item, reason=f"for {item.name}") for item in survey.plan.releases)
    plan = replace(
        survey.plan, releases=releases, purpose="Plan clinics.", reasons={"diabetes": "It is health."}
    )
    audit = replace(survey, plan=plan)
    text = write_assessment(audit, tmp_path / "a.md", remedies).read_text("utf-8")
    data = json.loads(write_assessment(audit, tmp_path / "a.json", remedies).read_text("utf-8"))
    assert [part["key"] for part in data["sections"]] == SECTIONS
    for number, part in enumerate(data["sections"], 1):
        assert f"## {number}. {part['title']}\n" in text
        for sentence in part["text"]:
            assert escaped(sentence)[:40] in text.replace("**", "")
        for row in part["rows"]:
            assert all(escaped(cell) in text for cell in row.values() if isinstance(cell, str))
    parts = {part["key"]: part for part in data["sections"]}
    assert parts["purpose"]["text"] == ["Plan clinics."]
    assert parts["purpose"]["rows"] == [
        {"secret": "diabetes", "limit": 1.5, "why this limit": "It is health."}
    ]
    assert {row["reason"] for row in parts["collected"]["rows"]} == {f"for {name}" for name in plan.names}
    risks = {row["secret"]: row for row in parts["risks"]["rows"]}
    assert risks["diabetes"]["nats"] == audit["diabetes"].deciding.leakage.value
    assert [row["what is done"] for row in parts["measures"]["rows"]] == [item.says for item in remedies]
    assert data["figures"] == audit.to_dict()
    assert data["summary"][0]["question"] == "What is the worst risk?"
    write_assessment(audit, tmp_path / "a.md")  # one of ours may be replaced
    write_assessment(audit, tmp_path / "a.json")


def test_an_assessment_never_replaces_what_is_not_one(survey: sl.Audit, tmp_path: Path) -> None:
    for name, content in (("notes.md", "# Notes"), ("data.json", '{"rows": []}')):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(sl.InputError, match="would be lost"):
            write_assessment(survey, path)
        assert path.read_text() == content
    with pytest.raises(sl.InputError, match=r"must end in \.md or \.json\."):
        write_assessment(survey, tmp_path / "x.txt")


def test_hostile_names_stay_text_in_markdown() -> None:
    names = [
        HOSTILE,
        "a|b",
        "[x](http://evil.example)",
        "# z",
        "`code`",
        "**bold**",
        "www.evil.example",
        "two\nlines",
    ]
    schema = sl.Schema(tuple(sl.categorical(name, ["<b>", "_y_"]) for name in names))
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (300, len(names))).astype(np.uint16)
    codes[:, 1] = codes[:, 0]
    belief = sl.Belief.from_records(sl.sources.Records(schema, codes, np.ones(300)), source="<img src=x>")
    plan = replace(sl.Plan.uniform(schema, limit=1.0), purpose="<script>alert(1)</script> | x")
    text = assessment_of(sl.audit(belief, plan)).to_markdown()
    for bad in ("<script", "<img", "<b>", "](http", "http://", "www.evil"):
        assert not re.search(rf"(?<!\\){re.escape(bad)}", text)
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert widths <= {4, 9, 15, 3}
    assert not [line for line in text.splitlines() if line.startswith("#") and line.strip("# ") == "z"]


def test_the_digest_is_of_the_records_and_not_of_their_order() -> None:
    table = sl.example("titanic")
    frame = table.records(10**6)
    assert frame is not None
    turned = sl.sources.Records(frame.schema, frame.codes[::-1], frame.weights[::-1])
    same = data_digest(sl.Belief.from_records(turned))
    assert same == data_digest(sl.Belief.from_data(table))
    fewer = sl.sources.Records(frame.schema, frame.codes[1:], frame.weights[1:])
    assert same != data_digest(sl.Belief.from_records(fewer))


def pages_of(browser: Chrome, paper: tuple[float, float]) -> int:
    sheet = {"paperWidth": paper[0], "paperHeight": paper[1], "printBackground": True}
    made = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sheet)["data"])
    return len(re.findall(rb"/Type\s*/Page\b", made))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("attributes", "settings"),
    [
        (14, {"limit": 1.0}),
        (40, {"limit": 1.0}),
        (40, {"purpose": "To know. " * 80, "name": "an endless name of an attribute, number {0}, " * 4}),
    ],
)
def test_the_summary_prints_on_one_sheet(
    browser: Chrome, tmp_path: Path, attributes: int, settings: dict[str, object]
) -> None:
    page = sl.write_report(chained(attributes, **settings), tmp_path / "page.html")
    show(browser, f"{page.as_uri()}?summary")
    for paper in PAPERS.values():
        assert pages_of(browser, paper) == 1
    assert complaints(browser) == []


@pytest.mark.browser
def test_with_remedies_the_summary_still_prints_on_one_sheet(
    browser: Chrome, remedies: sl.remedying.Remedies, tmp_path: Path
) -> None:
    page = sl.write_report(remedies, tmp_path / "page.html")
    show(browser, f"{page.as_uri()}?summary")
    assert [pages_of(browser, paper) for paper in PAPERS.values()] == [1, 1]
    show(browser, page)
    assert pages_of(browser, PAPERS["A4"]) > 3


@pytest.mark.browser
def test_a_button_prints_the_summary_and_brings_the_report_back(
    browser: Chrome, survey: sl.Audit, tmp_path: Path
) -> None:
    show(browser, sl.write_report(survey, tmp_path / "page.html"))
    browser.execute_script("window.print = () => { window.printed = document.documentElement.dataset.only; }")
    button, other = browser.find_elements(By.CSS_SELECTOR, ".actions button")
    assert (button.text, other.text) == ("Print summary", "Show the summary alone")
    section = browser.find_element(By.ID, "table")
    button.send_keys(Keys.ENTER)
    assert browser.execute_script("return window.printed") == "summary"
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert section.is_displayed()
    other.send_keys(Keys.SPACE)
    assert not section.is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, ".paper").is_displayed()
    other.send_keys(Keys.SPACE)
    assert section.is_displayed()
