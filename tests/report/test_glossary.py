"""The words of the reports: found where they are used, explained once a section, reachable by keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from test_report import Document

import sidelight as sl
from browser import browser_fixture, complaints, show
from conftest import AT_MOST
from sidelight.report.glossary import GLOSSARY, explained, glossary_markdown
from sidelight.report.page import page_of, render

__all__ = ["browser_fixture"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = sl.example("titanic")
    audit = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema))
    return sl.write_report(audit, tmp_path_factory.mktemp("words") / "audit.html")


def test_the_glossary_is_sorted_and_no_two_words_share_a_name() -> None:
    names = [term.name.lower() for term in GLOSSARY]
    assert names == sorted(names)
    words = [word.lower() for term in GLOSSARY for word in term.words]
    assert len(set(words)) == len(words)
    codes = [code for term in GLOSSARY for code in term.codes]
    assert len(set(codes)) == len(codes)
    for term in GLOSSARY:
        assert term.meaning.endswith(".")
        assert f"* **{term.name}**: {term.meaning}" in glossary_markdown()


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("<p>The odds, and odds again.</p>", ["odds"]),
        ("<section><p>Odds.</p></section><section><p>odds</p></section>", ["Odds", "odds"]),
        ("<p>A <bdi>budget</bdi> of the data, <a href='#x'>budgets</a>, <em>nats</em>.</p>", ["nats"]),
        ("<h2>Budget</h2><pre>budget</pre><div>budget</div><p class=\"eyebrow\">budget</p>", []),
        ("<p>In the worst case, the worst neighbour.</p>", ["worst case", "worst neighbour"]),
        ("<p>GRR and grr, oddsmaker, worst-case</p>", ["GRR"]),
        ("<p>a</p> budget <p>limit</p>", ["limit"]),
    ],
)  # fmt: skip
def test_words_are_explained_in_running_text_once_a_section(body: str, marked: list[str]) -> None:
    text, used = explained(body)
    assert re.findall(r'<a class="term"[^>]*>([^<]*)</a>', text) == marked
    assert re.sub(r'<a class="term"[^>]*>([^<]*)</a>', r"\1", text) == body
    assert len(used) == len({word.lower() for word in marked})


def test_heads_kinds_and_mechanisms_carry_their_word() -> None:
    body = (
        '<table><tr><th scope="col" class="number">Support</th><th scope="row">Support</th>'
        '<td>grr</td><td>grr and more</td><td><span class="kind">lower</span></td></tr></table>'
    )
    text, used = explained(body)
    assert [term.key for term in used] == ["grr", "lower", "support"]
    assert text.count("data-term") == 3
    assert '<th scope="col" class="number" data-term="support">' in text
    assert '<td data-term="grr">grr</td>' in text


def test_a_page_lists_the_words_it_uses_and_no_others() -> None:
    table = sl.example("titanic")
    page = Document(
        render(page_of(sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema), ["sex"])))
    )
    linked = {(attributes["href"] or "")[1:] for tag, attributes in page.tags if attributes.get("data-term")
              and tag == "a"}  # fmt: skip
    carried = {f"term-{attributes['data-term']}" for _, attributes in page.tags if "data-term" in attributes}
    listed = {
        attributes["id"] for _, attributes in page.tags if (attributes.get("id") or "").startswith("term-")
    }
    assert linked <= carried == listed
    assert {"term-budget", "term-grr", "term-nats", "term-exact", "term-odds"} <= listed
    assert "term-auc" not in listed


@pytest.mark.browser
def test_a_word_says_what_it_means_to_mouse_and_keyboard(browser: Chrome, page: Path) -> None:
    show(browser, page)
    word = browser.find_element(By.CSS_SELECTOR, '#words a[data-term="nats"]')
    tip = browser.find_element(By.CSS_SELECTOR, ".tip")
    assert not tip.is_displayed()
    ActionChains(browser).move_to_element(word).perform()
    assert tip.is_displayed()
    assert tip.text.startswith("nats\nThe unit of leakage")
    ActionChains(browser).move_to_element(tip).perform()  # one may read on the text itself
    assert tip.is_displayed()
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()
    ActionChains(browser).move_to_element(word).perform()
    ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h2")).perform()
    WebDriverWait(browser, AT_MOST).until(lambda _: not tip.is_displayed())
    browser.execute_script("document.querySelector('#words a[data-term]').focus()")
    ActionChains(browser).send_keys(Keys.TAB).perform()
    focused = browser.switch_to.active_element
    assert focused.get_attribute("data-term")
    assert tip.is_displayed()
    described = browser.find_element(By.ID, focused.get_attribute("aria-describedby"))
    assert described.get_attribute("textContent") in tip.text
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()
    assert complaints(browser) == []


@pytest.mark.browser
def test_the_head_of_a_column_explains_itself_and_still_sorts(browser: Chrome, page: Path) -> None:
    show(browser, page)
    head = browser.find_element(By.CSS_SELECTOR, '#table th button[data-term="support"]')
    ActionChains(browser).move_to_element(head).perform()
    assert browser.find_element(By.CSS_SELECTOR, ".tip").text.startswith("support")
    head.click()
    assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
    assert browser.find_element(By.CSS_SELECTOR, "#table th:nth-child(7)").get_attribute("data-term") is None
