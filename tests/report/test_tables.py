"""Tables of a report in a browser: sorting, searching, saving, by mouse and by keyboard."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import sidelight as sl
from browser import PHONE, browser_fixture, complaints, requests, show
from conftest import AT_MOST
from sidelight.report.page import Section, page_of, render, sections_page

__all__ = ["browser_fixture"]

HOSTILE = [
    '=HYPERLINK("http://x.example","y")', "+1", "-2", "@SUM(A1)", "a,b", 'say "no"', "two\nlines",
    "plain", "<b>bold</b>", "＝1+1", "a; b", "it's",
]  # fmt: skip
VALUES = [10.0, 9.0, 100.0, float("inf"), 0.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def rows_of(browser: Chrome, column: int = 1, *, shown: bool = True) -> list[str]:
    script = """
        return [...document.querySelector('main table').tBodies[0].rows]
            .filter((row) => !arguments[1] || !row.hidden)
            .map((row) => row.cells[arguments[0]].textContent.trim());
    """
    return list(browser.execute_script(script, column, shown))


def head(browser: Chrome, place: int) -> tuple[str, str | None]:
    cell = browser.find_elements(By.CSS_SELECTOR, "main thead th")[place]
    return cell.text, cell.get_attribute("aria-sort")


def press(browser: Chrome, place: int) -> None:
    browser.find_elements(By.CSS_SELECTOR, "main thead th .sort")[place].click()


def saved(browser: Chrome, folder: Path) -> tuple[str, str]:
    """Press the button that saves the first table, and return the file's name and text."""
    settings = {"behavior": "allow", "downloadPath": str(folder)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", settings)
    browser.find_element(By.CSS_SELECTOR, ".tools button").click()
    WebDriverWait(browser, AT_MOST).until(lambda _: list(folder.glob("*.csv")))
    path = next(folder.glob("*.csv"))
    return path.name, path.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pairs = enumerate(zip(HOSTILE, VALUES, strict=True))
    rows = [[name, value, f"note {place}"] for place, (name, value) in pairs]
    part = Section("Figures", "Odds and budget.", columns=("Name", "Value", "Note"), rows=rows)
    path = tmp_path_factory.mktemp("tables") / "page.html"
    path.write_text(render(sections_page("Sidelight page", "A table", {"part": part})), encoding="utf-8")
    return path


@pytest.mark.browser
def test_a_head_sorts_up_then_down_then_as_it_was(browser: Chrome, page: Path) -> None:
    show(browser, page)
    before = rows_of(browser)
    assert head(browser, 1) == ("Value", None)
    press(browser, 1)
    upwards = rows_of(browser)
    assert [float(text.replace("∞", "inf")) for text in upwards] == sorted(VALUES)
    assert head(browser, 1)[1] == "ascending"
    press(browser, 1)
    assert rows_of(browser) == upwards[::-1]
    assert head(browser, 1)[1] == "descending"
    press(browser, 0)
    assert [head(browser, place)[1] for place in (0, 1)] == ["ascending", None]
    names = rows_of(browser, 0)
    assert sorted(names, key=HOSTILE.index) == HOSTILE
    press(browser, 0)
    press(browser, 0)
    assert rows_of(browser) == before
    assert head(browser, 0)[1] is None


@pytest.mark.browser
def test_the_keyboard_does_all_that_the_mouse_does(browser: Chrome, page: Path) -> None:
    show(browser, page)
    button = browser.find_elements(By.CSS_SELECTOR, "thead .sort")[1]
    browser.execute_script("document.querySelector('.tools input').focus()")
    browser.switch_to.active_element.send_keys("note 11")
    assert len(rows_of(browser)) == 1
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert len(rows_of(browser)) == len(HOSTILE)
    browser.switch_to.active_element.send_keys(Keys.TAB)  # the button that saves
    assert browser.switch_to.active_element.get_attribute("aria-label") == "Download CSV: Figures"
    for _ in range(10):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element == button:
            break
    assert browser.switch_to.active_element == button
    for key, way in ((Keys.ENTER, "ascending"), (Keys.SPACE, "descending")):
        browser.switch_to.active_element.send_keys(key)
        assert head(browser, 1)[1] == way
        assert browser.switch_to.active_element == button  # sorting does not lose the reader's place
    assert complaints(browser) == []


@pytest.mark.browser
def test_a_search_keeps_rows_with_every_word(browser: Chrome, page: Path) -> None:
    show(browser, page)
    box = browser.find_element(By.CSS_SELECTOR, ".tools input")
    box.send_keys("LINES Two")
    assert rows_of(browser, 2) == ["note 6"]
    count = browser.find_element(By.CSS_SELECTOR, ".tools output")
    assert count.text == f"1 of {len(HOSTILE)} rows"
    box.send_keys("zzz")
    assert rows_of(browser) == []
    box.clear()
    box.send_keys("<b>")
    assert rows_of(browser, 0) == ["<b>bold</b>"]


@pytest.mark.browser
def test_a_saved_table_is_what_is_shown_and_no_cell_is_a_formula(
    browser: Chrome, page: Path, tmp_path: Path
) -> None:
    show(browser, page)
    press(browser, 1)
    browser.find_element(By.CSS_SELECTOR, ".tools input").send_keys("note")
    name, text = saved(browser, tmp_path)
    assert name == "sidelight-page-figures.csv"
    assert text.startswith("\ufeffName,Value,Note\r\n")
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert [row[1] for row in rows[1:]] == [
        "infinity" if value == float("inf") else f"{value:g}" for value in sorted(VALUES)
    ]
    shown = {row[1]: row[0] for row in rows[1:]}
    for name, value in zip(HOSTILE, VALUES, strict=True):
        cell = shown["infinity" if value == float("inf") else f"{value:g}"]
        flat = " ".join(name.split())
        assert cell == (f"'{flat}" if name[0] in "=+-@＝" else flat)
    assert not [cell for row in rows for cell in row if cell[:1] in "=+-@" and cell]
    asked = [url for url in requests(browser) if not url.startswith(("file:", "data:", "blob:"))]
    assert asked == []


@pytest.mark.browser
def test_two_thousand_rows_sort_and_search(browser: Chrome, tmp_path: Path) -> None:
    coins = random.Random(5)
    rows = [[f"value {coins.randrange(10**6)}", coins.random()] for _ in range(2000)]
    part = Section("Many", columns=("Name", "Value"), rows=rows)
    path = tmp_path / "many.html"
    path.write_text(render(sections_page("Sidelight many", "Many rows", {"part": part})), encoding="utf-8")
    show(browser, path)
    press(browser, 1)
    assert [float(text) for text in rows_of(browser)] == sorted(float(f"{value:.4g}") for _, value in rows)
    press(browser, 0)
    numbers = [int(text.split()[1]) for text in rows_of(browser, 0)]
    assert numbers == sorted(numbers)
    browser.find_element(By.CSS_SELECTOR, ".tools input").send_keys("77")
    wanted = [name for name, value in rows if "77" in f"{name} {value:.4g}"]
    assert len(rows_of(browser)) == len(wanted) > 10


@pytest.mark.browser
def test_numbers_sort_by_what_they_mean(browser: Chrome, tmp_path: Path) -> None:
    """As the pages write them: separators, powers of ten, percent, bounds, infinity, and dashes last."""
    written = ["2,201", "4.85 × 10⁸", "–", "below 0.001", "33.3 %", "∞", "−2.5", "1.5e-05", "0.001"]
    rows = "".join(f'<tr><td>x</td><td class="number">{text}</td></tr>' for text in written)
    part = Section("Mixed", columns=("Name", "Value"), rows=[["x", 1.0], ["y", 2.0]])
    html = render(sections_page("Sidelight mixed", "Mixed", {"part": part}))
    start, end = html.index("<tbody>"), html.index("</tbody>")
    path = tmp_path / "mixed.html"
    path.write_text(f"{html[:start]}<tbody>{rows}{html[end:]}", encoding="utf-8")
    show(browser, path)
    press(browser, 1)
    upwards = ["−2.5", "1.5e-05", "below 0.001", "0.001", "33.3 %", "2,201", "4.85 × 10⁸", "∞", "–"]
    assert rows_of(browser) == upwards
    press(browser, 1)
    assert rows_of(browser) == [*upwards[-2::-1], "–"]
    _, text = saved(browser, tmp_path)
    column = [row[1] for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert column == ["infinity", "4.85e8", "2201", "0.333", "0.001", "below 0.001", "1.5e-05", "-2.5", ""]


@pytest.mark.browser
@pytest.mark.parametrize("size", [PHONE, (1200, 900)])
def test_every_table_of_an_audit_has_its_tools_and_the_contents_need_no_scrolling(
    browser: Chrome, tmp_path: Path, size: tuple[int, int]
) -> None:
    table = sl.example("titanic")
    audit = sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema), ["sex"], delta=1e-2)
    show(browser, sl.write_report(audit, tmp_path / "audit.html"), size)
    tables, tools, unsorted = browser.execute_script("""
        const tables = [...document.querySelectorAll('main table:not(.plain)')];
        const heads = tables.filter((table) => table.tBodies[0].rows.length > 1)
            .flatMap((table) => [...table.tHead.querySelectorAll('th')]);
        return [tables.length, document.querySelectorAll('.tools button').length,
                heads.filter((head) => !head.querySelector('.sort')).length];
    """)
    assert tables == tools > 3
    assert unsorted == 0
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= size[0]
    if size != PHONE:
        bar = "const list = document.querySelector('nav ul'); return list.scrollWidth > list.clientWidth"
        assert not browser.execute_script(bar)
    assert complaints(browser) == []


def test_every_row_of_a_table_says_what_it_is_about() -> None:
    """A row that is sorted away from the one above it, or saved, must still name its attribute."""
    table = sl.example("titanic")
    found = sl.estimate(sl.collect(table, sl.Plan.uniform(table.schema), seed=1))
    html = render(page_of(found))
    assert '<th scope="row"></th>' not in html
    assert html.count('class="again"') == sum(attribute.size - 1 for attribute in table.schema)
