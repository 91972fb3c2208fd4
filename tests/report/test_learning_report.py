"""The page of a learnt model: what it says, what it survives, and how a browser shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from selenium.webdriver import Chrome
from test_report import HOSTILE, Document

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from sidelight.labels.collection import LabelSettings
from sidelight.learning.learnt import Learnt, learn
from sidelight.learning.tree_rounds import TreeSettings
from sidelight.report.page import page_of, render
from sidelight.sources import Table

__all__ = ["browser_fixture"]

KINDS = ("tree", "bayes")


def table() -> Table:
    """Names and values that try to leave their place, and a label that follows the first attribute."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 4000)
    first = np.where(rng.random(4000) < 0.9, labels, rng.integers(0, 3, 4000))
    columns = {
        HOSTILE: pa.array(np.array(["<b>x</b>", "&amp;", "y" * 90])[first]),
        "@ink": pa.array(np.array(["%{x}", "{{ 7 * 7 }}"])[rng.integers(0, 2, 4000)]),
        "<i>label</i>": pa.array(np.array(["<u>no</u>", "yes"])[labels]),
    }
    return sl.read(pa.table(columns))


def learnt(kind: str, protocol: str = "khr", scheme: str = "leaves") -> Learnt:
    settings = LabelSettings(4.0, protocol, "known")  # type: ignore[arg-type]
    tree = TreeSettings(4.0, 3, scheme)  # type: ignore[arg-type]
    return learn(table(), "<i>label</i>", kind, settings, tree, compare=True, seed=1)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=KINDS)
def found(request) -> Learnt:
    return learnt(request.param)


def test_the_page_says_what_the_model_reaches_and_leaks(found: Learnt) -> None:
    text = Document(render(page_of(found))).text
    assert f"{100 * found.accuracy:.1f}" in text
    assert found.statement.sentence() in text
    assert "within the budget of 4" in text
    assert "Unprotected: handle this report like the data." in text
    for name, value in found.references.items():
        assert f"{name} {value:.4f}" in text
    assert set(found.references) == {"LabelDP at the same budget", "without protection"}
    for part in found.spent:
        assert part.asked in text
    assert len(found.spent) == (3 if found.kind == "tree" else 2)
    assert found.spent[-1].leakage <= 4.0 + 1e-9


def test_each_round_has_its_budget_and_the_ledger_only_grows() -> None:
    found = learnt("tree")
    leakages = [part.leakage for part in found.spent]
    assert leakages == sorted(leakages)
    assert leakages[0] == pytest.approx(found.spent[0].budgets[1], rel=1e-6)
    assert all(part.people == found.trained for part in found.spent), "everyone answers in every round"
    turns = learnt("tree", scheme="turns")
    assert sum(part.people for part in turns.spent) <= turns.trained
    assert turns.spent[0].budgets == (4.0, 4.0)


def test_hostile_names_stay_text(found: Learnt) -> None:
    html = render(page_of(found))
    page = Document(html)
    assert HOSTILE not in html
    assert [tag for tag, _ in page.tags].count("script") == 4
    assert not [tag for tag, _ in page.tags if tag in ("i", "u", "img")]
    assert "<b>x</b>" not in html
    assert page.drawings()["accuracy"]["data"]


def test_labeldp_is_shown_as_what_it_is() -> None:
    text = Document(render(page_of(learnt("bayes", "labeldp")))).text
    assert "above the budget" in text
    assert "LabelDP promises nothing" in text


@pytest.mark.browser
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_shows_the_page(browser: Chrome, found: Learnt, tmp_path: Path, size, theme) -> None:
    path = sl.write_report(found, tmp_path / "model.html")
    show(browser, path, size, theme)
    assert complaints(browser) == []
    assert [address for address in requests(browser) if not address.startswith(("file:", "data:"))] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    drawn = browser.execute_script("return document.querySelectorAll('.plot .main-svg').length")
    assert drawn >= len(page_of(found).figures)
    if found.kind == "tree":
        root = "return document.querySelector('.tree rect').getBoundingClientRect().left"
        assert 0 <= browser.execute_script(root) < size[0], "the root is in sight before anyone scrolls"
        boxes = browser.execute_script("return document.querySelectorAll('.tree rect').length")
        assert boxes == len(found.model.nodes)
