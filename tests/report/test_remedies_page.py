"""The page of remedies: first, with all figures and a plan to save, and unbroken by hostile names."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from test_report import HOSTILE

import sidelight as sl
from browser import PHONE, browser_fixture, complaints, show
from sidelight.remedying import Remedies
from sidelight.report.page import page_of, render
from sidelight.report.remedies import front_figure, print_remedies

__all__ = ["browser_fixture"]


@pytest.fixture(scope="module", name="found")
def found_fixture() -> Remedies:
    table = sl.example("titanic")
    plan = sl.Plan.uniform(table.schema, limits={"survived": 1.0})
    return sl.remedies(sl.audit(sl.Belief.from_data(table), plan, ["survived"]), seed=1)


@pytest.fixture(scope="module", name="page")
def page_fixture(found: Remedies, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sl.write_report(found, tmp_path_factory.mktemp("page") / "remedies.html")


def test_every_plan_is_in_the_page(found: Remedies, page: Path) -> None:
    links = re.findall(
        r'download="remedy-(\d+).toml" href="data:application/toml;base64,([^"]+)"', page.read_text("utf-8")
    )
    assert [int(number) for number, _ in links] == list(range(1, len(found) + 1))
    for number, text in links:
        assert base64.b64decode(text).decode() == found[int(number)].to_toml()


def test_the_figure_has_a_mark_for_every_remedy(found: Remedies) -> None:
    figure = front_figure(found)
    assert figure is not None
    texts = [text for trace in figure.data for text in trace.get("text", ())]
    assert sorted(texts) == sorted(["now", *(str(number) for number in range(1, len(found) + 1))])


def test_nothing_to_remedy_is_said() -> None:
    table = sl.example("titanic")
    plan = sl.Plan.uniform(table.schema, limits={"survived": 50.0})
    found = sl.remedies(sl.audit(sl.Belief.from_data(table), plan, ["survived"]))
    assert front_figure(found) is None
    assert "nothing needs a remedy" in render(page_of(found))


def test_the_terminal_shows_every_remedy(found: Remedies, capsys: pytest.CaptureFixture[str]) -> None:
    print_remedies(found)
    shown = capsys.readouterr().out
    assert "now" in shown
    assert all(item.title.split()[0] in shown for item in found)


def test_hostile_names_stay_text() -> None:
    first = sl.categorical(HOSTILE, ["<b>x</b>", "&amp;", "<a href='javascript:alert(1)'>q</a>"])
    second = sl.categorical("@ink", ["%{x}", "{{ 7 * 7 }}"])
    cells = np.random.default_rng(7).dirichlet(np.ones(6)).reshape(3, 2)
    belief = sl.Belief.from_joint(cells, sl.Schema((first, second)))
    audit = sl.audit(belief, sl.Plan.uniform(belief.schema, limit=0.8))
    text = render(page_of(sl.remedies(audit, seed=1)))
    section = text[text.index('id="remedies"') : text.index('id="words"')]
    assert "<b>x</b>" not in section
    assert "<script" not in section


def test_a_browser_draws_it_without_complaint(browser: Chrome, page: Path) -> None:
    for size, theme in (((1400, 900), "light"), (PHONE, "dark")):
        show(browser, page, size, theme)
        assert complaints(browser) == []
        script = "return [document.documentElement.scrollWidth, window.innerWidth]"
        wide, inner = browser.execute_script(script)
        assert wide <= inner
        assert browser.execute_script("return document.querySelector('#plot-remedies svg') !== null")
