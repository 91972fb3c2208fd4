"""The reports of the gallery: `python docs/gallery.py docs/images` takes a picture of each.

They are of bundled and simulated tables only. `make docs` writes the reports themselves beside the page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

import sidelight as sl
from sidelight.labels import LabelSettings
from sidelight.protocols import Panel, PanelMemory

SIZE, WIDTH, COLOURS = (1280, 960), 640, 96


def audited() -> Any:
    """An audit at delta, with the ways back under its limit."""
    audit = sl.audit(*_titanic(1.0), ["survived"], delta=0.01, sampling=sl.auditing.Sampling(seed=1))
    return sl.remedies(audit, people=20_000, seed=1)


def compared() -> Any:
    """Two plans side by side."""
    belief, plan = _titanic(1.5)
    return sl.comparison.compare(
        belief, {"as planned": plan, "without age": plan.withholding(["age"])}, ["survived"]
    )


def calibrated() -> Any:
    """The largest budgets that keep a limit."""
    return sl.calibrate(_titanic(1.0)[0], 1.0, secrets=["survived"], frontier=(0.5, 1.0, 2.0))


def estimated() -> Any:
    """Frequencies estimated from reports, beside the truth."""
    people = sl.sources.survey(4_000, seed=1)
    reports = sl.collect(people, sl.Plan.uniform(people.schema, "grr", 1.0), seed=1)
    return sl.estimate(reports).against(sl.transport.true_frequencies(people, people.schema))


def asked_again() -> Any:
    """Levels and changes over four rounds of a panel."""
    mood = sl.Schema((sl.categorical("mood", ["good", "fair", "bad"]),))
    people = sl.simulate_panel(
        4_000, 4, [0.6, 0.3, 0.1], mood, seed=1, changes=sl.sources.drifting([0.1, 0.3, 0.6], 0.3)
    )
    panel = Panel(sl.Plan((sl.Release(mood["mood"], "l-grr", 2.0, times=4),)), epoch=1)
    memory = PanelMemory.new(panel, seed=1)
    rounds = [
        sl.collect(
            people.table(number),
            panel,
            seed=1,
            round=number,
            memory=memory,
            people=people.identifiers(number),
        )
        for number in range(1, 5)
    ]
    return sl.estimate_rounds(rounds)


def attacked() -> Any:
    """An attack on simulated reports, with its control."""
    people = sl.example("titanic")
    reports = sl.collect(people, sl.Plan.uniform(people.schema, "grr", 2.0), seed=1)
    return sl.attacks.rehearse(reports, people, "survived")


def learnt() -> Any:
    """A model learnt from one report of each person."""
    return sl.learn(sl.example("titanic"), "survived", "bayes", LabelSettings(4.0), seed=1)


REPORTS: dict[str, Callable[[], Any]] = {
    "audit": audited, "plans": compared, "calibration": calibrated, "estimates": estimated,
    "rounds": asked_again, "attack": attacked, "model": learnt,
}  # fmt: skip


def _titanic(limit: float) -> tuple[sl.Belief, sl.Plan]:
    belief = sl.Belief.from_data(sl.example("titanic"))
    return belief, sl.Plan.uniform(belief.schema, "grr", 1.0, limits={"survived": limit, "sex": limit})


def write_gallery(folder: Path) -> list[Path]:
    """Write every report to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return [sl.write_report(make(), folder / f"{name}.html") for name, make in REPORTS.items()]


def draw(folder: Path) -> None:
    """Take a picture of each report's first screen, and of the audit as the pages show it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.wait import WebDriverWait

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from browser import DRAWN, FLAGS

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--window-size={SIZE[0]},{SIZE[1]}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    try:
        with tempfile.TemporaryDirectory() as name:
            for page in write_gallery(Path(name)):
                browser.get(page.as_uri())
                WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(DRAWN))
                browser.save_screenshot(str(page.with_suffix(".png")))
                picture = Image.open(page.with_suffix(".png")).convert("RGB")
                if page.stem == "audit":
                    picture.quantize(COLOURS).save(folder / "report.png", optimize=True)
                small = picture.resize(
                    (WIDTH, WIDTH * picture.height // picture.width), Image.Resampling.LANCZOS
                )
                small.quantize(COLOURS).save(folder / f"gallery-{page.stem}.png", optimize=True)
    finally:
        browser.quit()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
