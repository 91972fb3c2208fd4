"""The studio in a browser: the whole flow, by hand; what goes wrong; what a screen reader and a phone get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

import sidelight as sl
from browser import PHONE, browser_fixture, complaints, requests, set_theme
from sidelight.sources.table import write_table
from studio_browser import STEPS, Hand
from studio_process import Studio
from typescript import installed, node_fixture

__all__ = ["browser_fixture", "node_fixture"]

PACKAGE = Path(__file__).resolve().parents[2] / "studio"


@pytest.fixture(name="axe", scope="module")
def axe_fixture(node: str) -> Path:
    """The checker of accessibility."""
    del node
    installed(PACKAGE, "tsc", "esbuild", "vitest")
    return PACKAGE / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(name="titanic", scope="module")
def titanic_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of four attributes whose figures are all exact."""
    path = tmp_path_factory.mktemp("titanic") / "titanic.csv"
    write_table(sl.example("titanic"), path)
    return path


@pytest.fixture(name="running", scope="module")
def running_fixture(
    titanic: Path, browser: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Studio, str]]:
    """A studio of the small table, and its state before anybody has changed anything."""
    studio = Studio(titanic, tmp_path_factory.mktemp("studio") / "state.json")
    ask = "fetch('/api/export/state').then(a => a.text()).then(arguments[0])"
    yield studio, Hand(browser, studio).browser.execute_async_script(ask)
    studio.interrupt()


@pytest.fixture(name="studio")
def studio_fixture(running: tuple[Studio, str], browser: webdriver.Chrome) -> Studio:
    """The same studio for every test that changes no more than its state."""
    studio, state = running
    ask = """
    const [body, done] = arguments, headers = {"content-type": "application/json"};
    fetch("/api/import", {method: "POST", headers, body}).then((answer) => done(answer.status))"""
    assert Hand(browser, studio).browser.execute_async_script(ask, state) == 200
    return studio


def mark(hand: Hand, secret: str, limit: float) -> None:
    """Name a secret and the limit for all."""
    hand.go("secrets")
    hand.press(secret)
    hand.wait(lambda: hand.state()["settings"]["secrets"])
    hand.type("Limit for all secrets", str(limit))
    hand.wait(lambda: hand.state()["settings"]["limit"] == limit)


def walk(
    hand: Hand, secret: str, limit: float, ways: tuple[str, ...] = ("Calibrate for me",)
) -> dict[str, Any]:
    """Walk the whole flow as a person would; return the state at its end."""
    columns = hand.all(".row.column")
    assert len(columns) == len(hand.state()["columns"])
    mark(hand, secret, limit)
    hand.go("adversary")
    hand.type("Wanted precision in percentage points", "3")
    hand.wait(lambda: hand.state()["settings"]["precision"] == 0.03)
    hand.go("budgets")
    first = next(
        item["attribute"] for item in hand.state()["plans"][0]["releases"] if item["attribute"] != secret
    )
    hand.after(lambda: hand.type(f"Budget of {first} as a number", "0.7"))
    hand.after(lambda: hand.named(f"Budget of {first}").send_keys(Keys.ARROW_RIGHT))
    for way in ways:
        hand.press(way)
        hand.wait(lambda: hand.all(".offer"))
    hand.after(lambda: hand.press("Use these budgets"))
    hand.wait(lambda: "within" in hand.verdict())
    hand.press("Copy as a new plan")
    hand.wait(lambda: len(hand.state()["plans"]) == 2)
    hand.after(lambda: hand.press(f"Withhold {first}"))
    hand.go("compare")
    hand.wait(lambda: [row.text for row in hand.all("[aria-labelledby='differences'] tbody th")] == [first])
    hand.go("try")
    hand.press("Collect")
    hand.wait(lambda: hand.all(".estimates tbody tr"))
    hand.press("Attack")
    hand.wait(lambda: hand.all(".guesses"))
    hand.go("export")
    hand.wait(lambda: "sidelight" in hand.all("pre")[0].text)
    return hand.settled()


def fetched(hand: Hand, form: str) -> str:
    """Return a file of the step "Export", fetched by the page itself."""
    address = next(
        link.get_attribute("href")
        for link in hand.all("a[download]")
        if f"/{form}?" in (link.get_attribute("href") or "")
    )
    ask = "fetch(arguments[0]).then(a => a.text()).then(arguments[1])"
    return hand.browser.execute_async_script(ask, address)


def test_the_whole_flow_ends_in_a_plan_with_the_same_figures(
    studio: Studio, titanic: Path, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    hand = Hand(browser, studio)
    state = walk(hand, "survived", 1.0)
    (tmp_path / "plan.toml").write_text(fetched(hand, "plan"), "utf-8")
    belief = sl.Belief.from_data(sl.read(titanic))
    audit = sl.audit(belief, sl.Plan.read(tmp_path / "plan.toml"), ["survived"])
    shown = next(item for item in state["figures"] if item["plan"] == state["active"])
    (secret,) = shown["secrets"]
    assert secret["total"]["value"] == audit["survived"].total.upper.value
    assert secret["own"]["value"] == audit["survived"].direct.upper.value
    assert complaints(browser) == []
    assert {address.split("/")[2] for address in requests(browser) if "//" in address} == {
        studio.url.removeprefix("http://")
    }


def test_every_step_is_free_of_findings_and_fits_a_phone(
    studio: Studio, browser: webdriver.Chrome, axe: Path
) -> None:
    hand = Hand(browser, studio)
    mark(hand, "survived", 1.0)
    hand.go("budgets")
    hand.press("Find remedies")
    hand.wait(lambda: hand.all(".offers"))
    for size, theme in (((1400, 900), "light"), (PHONE, "dark")):
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        set_theme(browser, theme)
        for step in STEPS:
            hand.go(step)
            assert hand.findings(axe) == [], (size, theme, step)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (
                size,
                step,
            )


def test_keys_are_enough(studio: Studio, browser: webdriver.Chrome) -> None:
    """Steps, sliders, the heat map, undo and what a figure rests on, without a pointer."""
    hand = Hand(browser, studio)
    ActionChains(browser).key_down(Keys.ALT).send_keys("4").key_up(Keys.ALT).perform()
    slider = hand.named("Budget of sex")
    hand.after(lambda: slider.send_keys(Keys.HOME))
    assert hand.named("Budget of sex as a number").get_attribute("value") == "0.01"
    hand.after(lambda: slider.send_keys(Keys.CONTROL, "z"))
    hand.wait(lambda: hand.named("Budget of sex as a number").get_attribute("value") == "1")
    ActionChains(browser).key_down(Keys.CONTROL).key_down(Keys.SHIFT).send_keys("z").key_up(
        Keys.SHIFT
    ).key_up(Keys.CONTROL).perform()
    hand.wait(lambda: hand.named("Budget of sex as a number").get_attribute("value") == "0.01")
    browser.execute_script("document.querySelector('.heat .map').focus()")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    hand.wait(lambda: "Witness" in hand.all("#tip")[0].text)
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    hand.wait(lambda: not hand.all("#tip")[0].is_displayed())


def test_two_windows_follow_each_other(studio: Studio, browser: webdriver.Chrome) -> None:
    hand = Hand(browser, studio)
    hand.go("budgets")
    renamed = {"change": "rename plan", "plan": hand.state()["active"], "name": "Theirs"}
    body = json.dumps({"changes": [renamed], "window": "other"})
    ask = """
    const [body, done] = arguments, headers = {"content-type": "application/json"};
    fetch("/api/changes", {method: "POST", headers, body}).then((answer) => done(answer.status))"""
    assert browser.execute_async_script(ask, body) == 200
    hand.wait(lambda: "Theirs" in hand.all(".tabs")[0].text)


def test_a_killed_server_loses_nothing_and_the_page_goes_on(
    titanic: Path, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    studio = Studio(titanic, tmp_path / "state.json")
    hand = Hand(browser, studio)
    hand.go("budgets")
    hand.after(lambda: hand.type("Budget of sex as a number", "0.4321"))
    hand.wait(lambda: hand.all(".saved")[0].text == "Saved")
    studio.kill()
    hand.wait(lambda: "does not answer" in hand.all("[role='alert']")[0].text)
    again = Studio(titanic, tmp_path / "state.json", "--port", studio.url.split(":")[-1])
    try:
        hand.wait(lambda: hand.all("[role='alert']")[0].text == "")
        assert hand.named("Budget of sex as a number").get_attribute("value") == "0.4321"
        hand.after(lambda: hand.type("Budget of sex as a number", "0.5"))
        browser.refresh()
        hand.wait(lambda: hand.named("Budget of sex as a number").get_attribute("value") == "0.5")
    finally:
        again.interrupt()


def test_hostile_names_are_text(browser: webdriver.Chrome, tmp_path: Path) -> None:
    names = ["<img src=x onerror=alert(1)>", "\"'><script>alert(2)</script>", "ünï \u202eevil", "a" * 300]
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 3, 400).astype(str) for name in names}
    csv.write_csv(pa.table(columns), tmp_path / "hostile.csv")
    studio = Studio(tmp_path / "hostile.csv", tmp_path / "state.json")
    try:
        hand = Hand(browser, studio)
        assert [row.text for row in hand.all(".row.column h2")][:2] == names[:2]
        for step in STEPS:
            hand.go(step)
            assert hand.all("#studio img, #studio script") == []
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), step
        hand.go("budgets")
        hand.after(lambda: hand.type(f"Budget of {names[3]} as a number", "2"))
        assert complaints(browser) == []
    finally:
        studio.interrupt()


def test_a_column_of_ten_thousand_values_is_usable_and_what_is_too_much_is_refused_in_words(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    rng = np.random.default_rng(6)
    shops = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, 10_000)])
    columns = {"shop": np.char.add("shop ", shops.astype(str))}
    columns |= {f"answer {place:02}": rng.integers(0, 3, len(shops)).astype(str) for place in range(14)}
    csv.write_csv(pa.table(columns), tmp_path / "shops.csv")
    studio = Studio(tmp_path / "shops.csv", tmp_path / "state.json", "--max-values", "1000")
    try:
        hand = Hand(browser, studio)
        hand.press("Show values of shop")
        assert "further values" in hand.wait(lambda: hand.all(".row.column .wide"))[0].text
        hand.press("Hide values of shop")
        heights = "return [...document.querySelectorAll('.row.column')].map(row => row.offsetHeight)"
        found = browser.execute_script(heights)[1:]
        assert max(found) - min(found) <= 3, "rows that are not drawn yet are as high as the others"
        hand.go("budgets")
        hand.after(lambda: hand.type("Budget of shop as a number", "2"))
        hand.go("columns")
        body = [{"change": "column", "name": name, "kind": "ignored"} for name in columns]
        ask = """
        const [body, done] = arguments, headers = {"content-type": "application/json"};
        const answer = fetch("/api/changes", {method: "POST", headers, body});
        answer.then((found) => found.json()).then(({detail}) => done(detail))"""
        assert "no column is left" in browser.execute_async_script(ask, json.dumps({"changes": body}))
        assert len(hand.state()["plans"][0]["releases"]) == 15, "what is refused changes nothing"
    finally:
        studio.interrupt()


@pytest.fixture(name="broad", scope="module")
def broad_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 120 columns, each of which follows one of six hidden traits."""
    rng = np.random.default_rng(120)
    traits = rng.integers(0, 3, (6, 5000))
    path = tmp_path_factory.mktemp("broad") / "broad.parquet"
    columns = {
        f"answer {place:03}": np.where(
            rng.random(5000) < 0.6, traits[place % 6], rng.integers(0, 3, 5000)
        ).astype(str)
        for place in range(120)
    }
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.deep
@pytest.mark.parametrize(
    ("table", "secret", "limit"),
    [("adult", "income", 12.0), ("celeba_attr", "Male", 30.0), ("broad", "answer 007", 60.0)],
)
def test_the_flow_on_large_tables(
    table: str, secret: str, limit: float, request: pytest.FixtureRequest, browser: webdriver.Chrome,
    axe: Path, tmp_path: Path,
) -> None:  # fmt: skip
    path = (
        request.getfixturevalue("broad")
        if table == "broad"
        else request.getfixturevalue("data") / f"{table}.parquet"
    )
    studio = Studio(path, tmp_path / "state.json")
    try:
        hand = Hand(browser, studio)
        walk(hand, secret, limit)
        for step in STEPS:
            hand.go(step)
            assert hand.findings(axe) == [], step
        assert complaints(browser) == []
    finally:
        studio.interrupt()
