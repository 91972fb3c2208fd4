"""The questionnaire and the operator's page in a real browser; what is sent is looked at."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from browser import PHONE, WIDE, browser_fixture, complaints, show
from conftest import AT_MOST
from service_cases import SCHEMA, people, sent, task
from service_http import body, path
from service_labels import ill_people, label_task, packed, panel_task
from service_process import Process
from sidelight.protocols import make_protocol
from sidelight.service.task import Pace
from sidelight.transport.wire import Wire

__all__ = ["browser_fixture"]
pytestmark = pytest.mark.browser
MADE = task()


@pytest.fixture(scope="module", name="service")
def service_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    service = Process(tmp_path_factory.mktemp("service"))
    with service.client() as client:
        client.post("/v1/tasks", content=MADE.document)
        client.post(f"{path(MADE)}/open")
    yield service
    service.stop()


def until(browser: webdriver.Chrome, said: str) -> None:
    """Wait until the page says something in its status line."""
    WebDriverWait(browser, AT_MOST).until(
        lambda driver: said in driver.find_element(By.ID, "status").text, f"never said {said!r}"
    )


def exchanged(browser: webdriver.Chrome) -> list[dict]:
    """Return every request since the page was opened: address, method and body."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        message["params"]["request"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def test_a_questionnaire_sends_one_report_and_never_the_truth(
    service: Process, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    show(browser, f"{service.url}/t/{MADE.id}", PHONE)
    assert browser.find_element(By.ID, "purpose").text == "To plan the canteen."
    assert "at most 89 % sure" in browser.find_element(By.ID, "promises").text
    for code in ("q0-1", "q1-2"):
        browser.find_element(By.CSS_SELECTOR, f"label[for={code}]").click()
    browser.find_element(By.CSS_SELECTOR, "#form button").click()
    until(browser, "Nothing has been sent yet")
    told = browser.find_element(By.ID, "bytes").text
    seen = exchanged(browser)
    assert [item for item in seen if item["method"] != "GET"] == []
    browser.save_screenshot(str(tmp_path / "questionnaire.png"))
    browser.find_element(By.ID, "send").click()
    until(browser, "your report is counted")
    (upload,) = [item for item in exchanged(browser) if item["method"] != "GET"]
    assert json.loads(upload["postData"]) == json.loads(told)
    assert set(json.loads(told)) == {"round", "reports"}
    ((report),) = json.loads(told)["reports"]
    assert set(report) == {"id", "report"}
    assert not Wire(MADE.design.first).unpack([b64decode(report["report"])]).refused
    for word in ("yes", "rice", "smokes", "meal"):
        assert word not in upload["postData"]
    assert {name.lower() for name, value in upload["headers"].items() if value} <= {
        "content-type", "user-agent", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform",
    }  # fmt: skip
    assert all(item["url"].startswith(service.url) for item in seen)
    assert complaints(browser) == []
    show(browser, f"{service.url}/t/{MADE.id}")
    until(browser, "You have answered this question")
    with service.client() as client:
        assert client.get(f"{path(MADE)}/arrivals").json() == {"people": 1}


def test_what_was_made_and_not_sent_waits_for_the_person(service: Process, browser: webdriver.Chrome) -> None:
    other = task(2)
    with service.client() as client:
        client.post("/v1/tasks", content=other.document)
        client.post(f"{path(other)}/open")
        show(browser, f"{service.url}/t/{other.id}")
        for code in ("q0-0", "q1-0"):
            browser.find_element(By.CSS_SELECTOR, f"label[for={code}]").click()
        browser.find_element(By.CSS_SELECTOR, "#form button").click()
        until(browser, "Nothing has been sent yet")
        told = browser.find_element(By.ID, "bytes").text
        show(browser, f"{service.url}/t/{other.id}")
        until(browser, "Nothing has been sent yet")
        assert browser.find_element(By.ID, "bytes").text == told
        browser.find_element(By.ID, "withdraw").click()
        until(browser, "nothing was spent")
        assert client.get(f"{path(other)}/arrivals").json() == {"people": 0}


def test_an_operator_sees_figures_and_closes_a_round(
    service: Process, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    made = task(3)
    with service.client() as client:
        client.post("/v1/tasks", content=made.document)
        digest = client.post(f"{path(made)}/open").json()["digest"]
        client.post(f"{path(made)}/reports", json=body(digest, sent(made.design.first, people(300))))
        show(browser, f"{service.url}/operate", WIDE, drawn="return document.readyState === 'complete'")
        key = browser.find_element(By.ID, "key")
        key.send_keys("slk_wrong")
        key.submit()
        until(browser, "operator's key")
        key.clear()
        key.send_keys(service.key)
        key.submit()
        WebDriverWait(browser, AT_MOST).until(lambda driver: driver.find_elements(By.TAG_NAME, "table"))
        shown = browser.find_element(By.ID, "tasks").text
        assert "Round 1: open, 300 reports" in shown
        assert "at most" in shown
        browser.save_screenshot(str(tmp_path / "operate.png"))
        browser.execute_script("window.confirm = () => true")
        buttons = browser.find_elements(By.XPATH, "//article[last()]//button[text()='Close round 1']")
        buttons[0].click()
        WebDriverWait(browser, AT_MOST).until(
            lambda driver: "Round 1: closed, 300 reports" in driver.find_element(By.ID, "tasks").text
        )
        state = client.get(f"/v1/tasks/{made.id}/state").json()
        assert state["rounds"][0]["state"] == "closed"
    severe = [line for line in complaints(browser) if "401" not in line]
    assert severe == []


def operating(service: Process, browser: webdriver.Chrome) -> None:
    """Open the operator's page with the key, and wait until it is drawn."""
    show(browser, f"{service.url}/operate", WIDE, drawn="return document.readyState === 'complete'")
    key = browser.find_element(By.ID, "key")
    key.send_keys(service.key)
    key.submit()
    WebDriverWait(browser, AT_MOST).until(lambda driver: driver.find_elements(By.TAG_NAME, "article"))


def test_an_operator_follows_a_tree_and_a_panel(
    service: Process, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    tree, over = label_task("tree", Pace(reports=300)), panel_task()
    rows = ill_people(300)
    with service.client() as client:
        for made in (tree, over):
            client.post("/v1/tasks", content=made.document)
            client.post(f"{path(made)}/open")
        digest = client.get(f"/v1/tasks/{tree.id}/state").json()["rounds"][0]["digest"]
        reports = tree.course.first.randomise(np.column_stack([rows.codes, rows.labels]), seed=1)
        client.post(f"{path(tree)}/reports", json=body(digest, packed(reports, 1)[:299]))
        for number in (1, 2):
            digest = client.post(f"{path(over, number)}/open").json()["digest"]
            items = sent(over.course.first, people(400, number)[:, :1], number)
            client.post(f"{path(over, number)}/reports", json=body(digest, items))
            client.post(f"{path(over, number)}/close")
        operating(service, browser)
        shown = browser.find_element(By.ID, "tasks").text
        assert "After this round the tree has" in shown
        assert "Over time" in shown
        assert shown.count("sidelight.Client answers it, no browser can") == 2
        assert "1 more round is a draft" in shown  # of the tree: its second is the next one
        browser.save_screenshot(str(tmp_path / "courses.png"))
        # The last report closes the first round, and the service opens the second by itself.
        digest = client.get(f"/v1/tasks/{tree.id}/state").json()["rounds"][0]["digest"]
        client.post(f"{path(tree)}/reports", json=body(digest, packed(reports, 1)[299:]))
        WebDriverWait(browser, AT_MOST).until(
            lambda driver: "Round 1: closed, 300 reports" in driver.find_element(By.ID, "tasks").text
        )
    asked = [item["url"] for item in exchanged(browser)]
    assert sum(f"{over.id}/rounds/1/estimates" in url for url in asked) == 1  # closed figures stay
    assert sum(url.endswith(f"/v1/tasks/{over.id}/estimates") for url in asked) == 1
    assert complaints(browser) == []


def test_a_large_budget_is_not_rounded_to_certainty_nor_below_the_truth(
    service: Process, browser: webdriver.Chrome
) -> None:
    with service.client() as client:
        for budget, said in ((6.2, "at most 99.8 % sure"), (9.5, "at most 99.993 % sure")):
            made = replace(MADE, design=make_protocol("spl", SCHEMA, budget))
            client.post("/v1/tasks", content=made.document)
            client.post(f"{path(made)}/open")
            show(browser, f"{service.url}/t/{made.id}", PHONE)
            assert said in browser.find_element(By.ID, "promises").text


@pytest.mark.parametrize("kind", ["labels", "public", "panel"])
def test_a_questionnaire_says_plainly_what_it_cannot_answer(
    service: Process, browser: webdriver.Chrome, tmp_path: Path, kind: str
) -> None:
    kinds = {
        "labels": label_task("tree", depth=2),
        "public": label_task(secret="label"),
        "panel": panel_task(2),
    }
    made = kinds[kind]
    with service.client() as client:
        client.post("/v1/tasks", content=made.document)
        client.post(f"{path(made)}/open")
        show(browser, f"{service.url}/t/{made.id}", PHONE)
        until(browser, "Nothing was sent")
        shown = browser.find_element(By.TAG_NAME, "main").text
        for attribute in made.course.schema:
            assert attribute.name in shown
            assert attribute.values[0] in shown
        assert ("Sent as they are, without noise: work, region, age." in shown) == (kind == "public")
        browser.save_screenshot(str(tmp_path / f"{kind}.png"))
        assert [item for item in exchanged(browser) if item["method"] != "GET"] == []
        assert client.get(f"{path(made)}/arrivals").json() == {"people": 0}
    assert complaints(browser) == []


def test_pages_let_nothing_else_in(service: Process) -> None:
    with service.client() as client:
        for page in (f"/t/{MADE.id}", "/operate", "/assets/client.js"):
            headers = client.get(page).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
        assert client.get(f"/t/{'0' * 64}").status_code == 404
        assert client.get("/assets/..%2fapp.py").status_code == 404
