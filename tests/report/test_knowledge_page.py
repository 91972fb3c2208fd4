"""The page of prior knowledge: what it says, and how a browser shows it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from sidelight.report.knowledge import drawn_lines
from sidelight.report.page import page_of, render
from sidelight.report.style import DARK, LIGHT

__all__ = ["browser_fixture"]

HOSTILE = "</script><script>alert(1)</script>"


def titanic(**rules: object) -> sl.knowledge.KnowledgeAudit:
    belief = sl.Belief.from_data(sl.example("titanic"))
    return sl.knowledge_audit(belief, sl.Query.sum(belief.schema), limit=1.0, **rules)


def numbers() -> sl.knowledge.KnowledgeAudit:
    return sl.knowledge.gaussian_audit(sl.belief.Gaussian.equicorrelated(5, 0.3), limit=1.0)


def hostile() -> sl.knowledge.KnowledgeAudit:
    rng = np.random.default_rng(0)
    belief = sl.Belief.from_joint(rng.dirichlet(np.ones(8)).reshape(2, 2, 2), [HOSTILE, "@ink", "x" * 90])
    return sl.knowledge_audit(belief, sl.Query.sum(belief.schema), limit=1.0)


PAGES = {"titanic": titanic, "few": lambda: titanic(min_support=100), "numbers": numbers, "hostile": hostile}


def text_of(audit: sl.knowledge.KnowledgeAudit) -> str:
    page = re.sub(r"<(script|style).*?</\1>", "", render(page_of(audit)), flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_every_edge_has_its_weights() -> None:
    audit = titanic()
    text = text_of(audit)
    edges = list(audit.graph.all_edges(audit.worst.adversary.target))
    assert f"The {len(edges)} edges with their weights" in text
    for edge in edges:
        ratio = f"{edge.ratio:+.3f}".replace("-", "−")
        increment = f"{edge.increment:+.3f}".replace("-", "−")
        assert f"{edge.removed} {increment} {ratio} {edge.sensitivity:.3f}" in text


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    small = sl.Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"])
    counts = sl.knowledge_audit(small, sl.Query.histogram(small.schema))
    assert set(drawn_lines(counts)) == {"exact", "least", "certified", "group"}
    assert "published graph" not in text_of(counts)
    assert set(drawn_lines(numbers())) == {"exact", "least"}
    assert len(page_of(numbers()).figures["curve"].data) == 2
    model = sl.Belief.from_data(sl.example("titanic"), "tree")
    learnt = sl.knowledge_audit(model, sl.Query.sum(model.schema))
    assert "model: who learns most" in text_of(learnt)
    assert "exact" not in text_of(learnt), "nothing is exact for a model of the table"


def test_how_much_less_noise_is_said_in_words() -> None:
    audit = titanic()
    assert f"group privacy would take 6, {audit.noise.saving:.2f} times as much" in text_of(audit)


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (PHONE, "dark")])
def test_the_page_is_drawn_without_requests_or_complaints(
    browser: Chrome, name: str, size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    audit = PAGES[name]()
    page = sl.write_report(audit, tmp_path / "knowledge.html")
    show(browser, page, size, theme)
    for figure, made in page_of(audit).figures.items():
        drawn = browser.execute_script(
            "const plot = document.getElementById(arguments[0]);"
            "return [plot.querySelectorAll('.scatterlayer .trace').length, plot._fullLayout.font.color]",
            f"plot-{figure}",
        )
        assert drawn == [len(made.data), (LIGHT if theme == "light" else DARK)["ink"]]
    width, inner = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    asked = requests(browser)
    assert page.as_uri() in asked
    assert [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []
    assert complaints(browser) == []


@pytest.mark.browser
def test_the_table_of_edges_opens(browser: Chrome, tmp_path: Path) -> None:
    show(browser, sl.write_report(titanic(), tmp_path / "knowledge.html"))
    seen = (
        "return [...document.querySelectorAll('details.after tr')].filter((r) => r.checkVisibility()).length"
    )
    assert browser.execute_script(seen) == 0
    browser.execute_script("document.querySelector('details.after summary').click()")
    assert browser.execute_script(seen) == 1 + 12
