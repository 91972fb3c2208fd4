"""A headless Chromium for the tests that look at a page; installed where that is allowed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

from conftest import AT_MOST

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, PHONE = (1400, 900), (390, 844)


@pytest.fixture(scope="session", name="browser")
def browser_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """The browser of all tests; every module that imports the fixture gets the one that the first started."""
    if _SHARED:
        _clear(_SHARED[0])
        yield _SHARED[0]
        return
    browser = new_browser(tmp_path_factory.mktemp("browser"))
    _SHARED.append(browser)
    yield browser
    _SHARED.clear()
    browser.quit()


def new_browser(folder: Path) -> webdriver.Chrome:
    """Return a browser that downloads nothing and keeps a log of what pages request and complain about."""
    program, driver = _find_or_install()
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver, log_output=subprocess.DEVNULL))


_SHARED: list[webdriver.Chrome] = []


def _clear(browser: webdriver.Chrome) -> None:
    """Take back what other tests have set."""
    first, *others = browser.window_handles
    for window in others:
        browser.switch_to.window(window)
        browser.close()
    browser.switch_to.window(first)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    _blank(browser)


def _blank(browser: webdriver.Chrome) -> None:
    """Leave the page, and forget what it requested and complained about."""
    browser.get("about:blank")
    for log in ("performance", "browser"):
        browser.get_log(log)


DRAWN = "return document.documentElement.dataset.drawn === 'yes'"


def show(
    browser: webdriver.Chrome,
    page: Path | str,
    size: tuple[int, int] = WIDE,
    theme: str = "light",
    drawn: str = DRAWN,
) -> webdriver.Chrome:
    """Open a report, or a web page, at a size and in a theme, and wait until it is drawn."""
    _blank(browser)  # the browser's own start page makes requests too
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    set_theme(browser, theme)
    browser.get(page if isinstance(page, str) else page.as_uri())
    WebDriverWait(browser, AT_MOST, poll_frequency=0.05).until(lambda driver: driver.execute_script(drawn))
    return browser


def set_theme(browser: webdriver.Chrome, theme: str) -> None:
    """Make the page believe the reader prefers a light or a dark theme."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def point_at(browser: webdriver.Chrome, x: float, y: float) -> None:
    """Move the mouse to a place in the window."""
    actions = ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
    actions.perform()


def requests(browser: webdriver.Chrome) -> list[str]:
    """Return every address that was requested since the page was opened, but for the browser's own pages."""
    messages: list[dict[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
    ]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
        and not message["params"]["documentURL"].startswith("chrome://")
    ]


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Return every error and warning on the page's console since it was opened."""
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ]


def _find_or_install() -> tuple[str, str]:
    found = _find()
    if found is None and _may_install():
        _install()
        found = _find()
    if found is None:
        pytest.skip("no chromium and chromedriver here, and they are installed only as root on Debian")
    return found


def _find() -> tuple[str, str] | None:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (program, driver) if program and driver else None


def _may_install() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def _install() -> None:
    """Install the browser; one of several test processes does, the others wait."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "sidelight-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _find() is not None:
            return
        for command in ("update", "install --yes --no-install-recommends chromium chromium-driver"):
            done = subprocess.run(
                ["apt-get", "--quiet", *command.split()], env=environment, capture_output=True, text=True
            )
            if done.returncode:
                pytest.skip(f"chromium could not be installed: {done.stderr.strip()[-300:]}")
