"""A hand that uses the studio's page in a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from browser import WIDE, show
from conftest import AT_MOST
from studio_process import Studio

STEPS = ("columns", "secrets", "adversary", "budgets", "compare", "try", "export")
READY = "return document.querySelector('.rail') !== null"


class Hand:
    """Finds controls by the names that a screen reader says, and uses them."""

    def __init__(self, browser: webdriver.Chrome, studio: Studio, size: tuple[int, int] = WIDE) -> None:
        self.browser = show(browser, studio.opening, size=size, drawn=READY)
        self.browser.set_script_timeout(AT_MOST)

    def wait(self, is_so: Callable[[], Any]) -> Any:
        """Wait until something is so, and return it; a part that was just drawn anew is looked for again."""
        waiting = WebDriverWait(
            self.browser, AT_MOST, poll_frequency=0.1, ignored_exceptions=[StaleElementReferenceException]
        )
        return waiting.until(lambda _: is_so())

    def go(self, step: str) -> None:
        """Go to a step by its link."""
        self.browser.find_element(By.CSS_SELECTOR, f"nav a[href$='#{step}']").click()
        self.wait(lambda: self.all(f"nav a[href$='#{step}'][aria-current]"))

    def all(self, css: str) -> list[WebElement]:
        """Return everything that a selector finds."""
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def named(self, name: str) -> WebElement:
        """Return the control of a name, once it is there."""
        quoted = f'"{name}"'
        path = f"//*[@aria-label={quoted}] | //button[normalize-space()={quoted}] | //label[b={quoted}]/input"
        return self.wait(lambda: next(iter(self.browser.find_elements(By.XPATH, path)), None))

    def press(self, name: str) -> None:
        """Press a button or tick a box, once it can be."""
        self.wait(lambda: self.named(name).is_enabled())
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.named(name))
        self.named(name).click()

    def type(self, name: str, text: str) -> None:
        """Put a text into a box, in place of what is there."""
        self.named(name).send_keys(Keys.CONTROL, "a")
        self.named(name).send_keys(text, Keys.ENTER)

    def state(self) -> dict[str, Any]:
        """Return the server's state, once the page has sent all that it had to."""
        asked = "fetch('/api/state').then(a => a.json()).then(arguments[0])"
        return self.wait(lambda: self.browser.execute_async_script(asked))

    def settled(self) -> dict[str, Any]:
        """Return the state once the figures of the active plan are final and nothing is on its way."""

        def final() -> dict[str, Any] | None:
            state = self.state()
            shown = next((item for item in state["figures"] if item["plan"] == state["active"]), None)
            return state if shown is not None and not shown["pending"] else None

        return self.wait(final)

    def verdict(self) -> str:
        """Return how the plan stands, in the words of the page."""
        return self.wait(lambda: self.all(".figures .verdict strong"))[0].text

    def revision(self) -> int:
        """Return the revision of the figures that are on screen."""
        return int(
            self.wait(lambda: self.all("#figures[data-revision]"))[0].get_attribute("data-revision") or 0
        )

    def after(self, action: Callable[[], None]) -> None:
        """Do something, and wait until figures of a later revision are on screen."""
        before = self.revision()
        action()
        self.wait(lambda: self.revision() > before)

    def findings(self, axe: Path) -> list[str]:
        """Return what axe finds fault with on the page as it is."""
        run = "axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations.map("
        words = "item => `${item.id}: ${item.nodes[0].html.slice(0, 200)} ${item.nodes[0].failureSummary}`)))"
        is_there = self.browser.execute_script("return typeof axe === 'object'")
        if not is_there:
            self.browser.execute_script(axe.read_text("utf-8"))
        return self.browser.execute_async_script(f"const done = arguments[0]; {run}{words}")


LATENCY = """
const [many, done] = given, times = [];
const figures = document.getElementById("figures");
const sliders = [...document.querySelectorAll(".release .slider")];
const painted = async () => {
  await new Promise(requestAnimationFrame);
  const {port1, port2} = new MessageChannel();
  await new Promise((resolve) => { port1.onmessage = resolve; port2.postMessage(0); });
};
for (let turn = 0; turn < many; turn += 1) {
  const slider = sliders[turn % sliders.length], before = figures.dataset.revision, start = performance.now();
  slider.value = (slider.valueAsNumber + 137 + 31 * turn) % 1000;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  await new Promise((resolve) => {
    const watch = new MutationObserver(() => { watch.disconnect(); resolve(); });
    watch.observe(figures, {attributeFilter: ["data-revision"]});
  });
  await painted();
  times.push(performance.now() - start);
  slider.dispatchEvent(new Event("pointerup", {bubbles: true}));
  await new Promise((resolve) => setTimeout(resolve, 60));
}
done(times);
"""
"""Moves sliders one after the other; the milliseconds from each input event to the frame with its figures."""


def latencies(hand: Hand, many: int) -> list[float]:
    """Return how long figures took to be on screen after each of many moves of a slider, in milliseconds."""
    return sorted(
        hand.browser.execute_async_script(f"(async (...given) => {{{LATENCY}}})(...arguments)", many)
    )


def rested(hand: Hand, seconds: float = 0.5) -> None:
    """Let the page come to rest before a picture is taken of it."""
    time.sleep(seconds)
    hand.browser.execute_script("return 0")
