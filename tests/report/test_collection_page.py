"""The pages of estimates and of advice, as a reader and as a browser see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, requests, show
from sidelight.protocols import smp
from sidelight.report.collection import errors_figure, print_advice
from sidelight.report.page import page_of, render
from sidelight.transport import true_frequencies

__all__ = ["browser_fixture"]


@pytest.fixture(scope="module")
def advice() -> sl.advice.Advice:
    table = sl.example("titanic")
    return sl.advise(table.schema, 2.0, table.rows)


@pytest.fixture(scope="module")
def compared(advice: sl.advice.Advice) -> object:
    table = sl.example("titanic")
    found = sl.estimate(sl.collect(table, advice.choice, seed=1))
    return found.against(true_frequencies(table, table.schema))


def test_the_headline_names_what_is_saved(advice: sl.advice.Advice) -> None:
    page = render(page_of(advice))
    assert f"Use <bdi>{advice.choice.name}</bdi>" in page
    assert "equally likely" in page


def test_only_an_estimator_that_is_predicted_is_drawn(advice: sl.advice.Advice) -> None:
    unbiased, best = errors_figure(advice).data
    place = [option.name for option in advice.options].index("corr-rr as published")
    assert unbiased["x"][place] == advice.options[place].unbiased_error
    assert best["x"][place] is None


def test_many_values_leave_hidden_choices_out_and_say_so(capsys) -> None:
    schema = sl.Schema(tuple(sl.categorical(f"x{j}", [str(v) for v in range(300)]) for j in range(2)))
    many = sl.advise(schema, 1.0, 1000)
    assert all(option.name.split()[0] in ("ours", "smp", "spl") for option in many.options)
    print_advice(many)
    assert "compared up to 500 values" in capsys.readouterr().out
    assert "compared up to 500 values" in render(page_of(many))


@pytest.mark.parametrize("estimator", ["best", "simplex", "shrinkage", "inversion"])
def test_the_error_to_expect_is_that_of_the_stated_estimator(estimator: str) -> None:
    """Means over 60 collections: within 30 %, over 4 standard errors of the measured mean."""
    schema = sl.Schema(tuple(sl.categorical(f"x{j}", "abcde") for j in range(3)))
    rng = np.random.default_rng(3)
    records = rng.choice(5, size=(4000, 3), p=[0.4, 0.3, 0.2, 0.1, 0.0]).astype(np.uint8)
    truth = {f"x{j}": np.bincount(records[:, j], minlength=5) / 4000 for j in range(3)}
    expected, measured = [], []
    for trial in range(60):
        found = sl.estimate(smp(schema, 1.0).randomise(records, seed=trial), estimator=estimator)
        expected.append(found.expected_error)
        measured.append(found.against(truth).error)
        assert (found.expected_error == found.unbiased_error) == (estimator == "inversion")
    assert np.mean(expected) == pytest.approx(np.mean(measured), rel=0.3)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize(("name", "plot"), [("compared", "frequencies"), ("advice", "errors")])
def test_pages_are_drawn_fit_and_ask_for_nothing(
    browser: Chrome, name: str, plot: str, size, theme: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    page = sl.write_report(request.getfixturevalue(name), tmp_path / "page.html")
    show(browser, page, size, theme)
    assert requests(browser) == [page.as_uri()]
    assert complaints(browser) == []
    width, inner = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    points, right, box = browser.execute_script(
        "const plot = document.getElementById(arguments[0]);"
        "const marks = [...plot.querySelectorAll('.scatterlayer .point')];"
        "return [marks.length, Math.max(...marks.map(mark => mark.getBoundingClientRect().right)),"
        " plot.parentElement.getBoundingClientRect().right]",
        f"plot-{plot}",
    )
    assert points >= 17
    assert right <= box
