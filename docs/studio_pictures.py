"""Take the pictures of the studio's page: `python docs/studio_pictures.py docs/images`.

They are of a bundled survey, opened by the command and used by hand in a headless Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import sidelight as sl
from browser import FLAGS
from sidelight.sources.table import write_table
from studio_browser import Hand, rested
from studio_process import Studio

SIZE = (1280, 860)
SHOWN = ("secrets", "budgets", "compare", "try")
COLOURS = 160


def use(hand: Hand, folder: Path) -> dict[str, Image.Image]:
    """Walk the flow, and return a picture of each step."""
    hand.go("secrets")
    hand.press("diabetes")
    hand.wait(lambda: hand.state()["settings"]["secrets"])
    hand.type("Limit for all secrets", "1.5")
    hand.wait(lambda: hand.state()["settings"]["limit"] == 1.5)
    hand.go("budgets")
    hand.press("Copy as a new plan")
    hand.wait(lambda: len(hand.state()["plans"]) == 2)
    hand.press("Calibrate for me")
    hand.after(lambda: hand.press("Use these budgets"))
    hand.settled()
    hand.go("try")
    hand.press("Attack")
    hand.wait(lambda: hand.all(".guesses"))
    hand.press("Collect")
    hand.wait(lambda: hand.all(".estimates"))
    pictures = {}
    for step in SHOWN:
        hand.go(step)
        rested(hand)
        hand.browser.execute_script("scrollTo(0, 0)")
        hand.browser.save_screenshot(str(folder / "picture.png"))
        pictures[step] = Image.open(folder / "picture.png").convert("RGB")
    return pictures


def strip(pictures: dict[str, Image.Image]) -> Image.Image:
    """Return the pictures side by side, small."""
    width, height, gap = 480, 322, 8
    whole = Image.new("RGB", (2 * width + gap, 2 * height + gap), "#dce1e7")
    for place, picture in enumerate(pictures.values()):
        small = picture.resize((width, height), Image.Resampling.LANCZOS)
        whole.paste(small, ((place % 2) * (width + gap), (place // 2) * (height + gap)))
    return whole


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_table(sl.sources.survey(20_000, seed=1), scratch / "survey.parquet")
        studio = Studio(scratch / "survey.parquet", scratch / "state.json")
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
        try:
            pictures = use(Hand(browser, studio, SIZE), scratch)
        finally:
            browser.quit()
            studio.interrupt()
    for title, picture in (("strip", strip(pictures)), ("budgets", pictures["budgets"])):
        picture.quantize(COLOURS).save(folder / f"studio-{title}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
