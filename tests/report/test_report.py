"""The HTML report: what it says, what it survives, and how a browser shows it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

import sidelight as sl
from browser import PHONE, WIDE, browser_fixture, complaints, point_at, requests, set_theme, show
from conftest import AT_MOST
from sidelight.report.audit import audit_page, is_understated, print_audit
from sidelight.report.audit_figures import heat_figure, totals_figure, worst_first
from sidelight.report.calibration import leakage_figure
from sidelight.report.page import page_of, render
from sidelight.report.pair_figures import LEAST_SHARE, MOST_ARROWS, PER_SECRET, arrows_of, worst_curves
from sidelight.report.style import DARK, LIGHT, from_zero, log_ticks
from sidelight.report.wording import labels, nats

__all__ = ["browser_fixture"]

HOSTILE = "</script><script>alert(1)</script>"
FIGURES = ("totals", "heat", "curves", "network")


class Document(HTMLParser):
    """The tags of a page, its visible text and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.text += "" if tag in ("a", "b", "bdi", "em", "sup") else " "
        self._inside = tag if tag in ("script", "style") else self._inside
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self._inside:
            self.text += data

    def drawings(self) -> dict[str, Any]:
        """The figures as the page's script reads them; strict JSON."""
        found = next(text for attributes, text in self.scripts if attributes.get("id") == "drawings")
        return dict(json.loads(found, parse_constant=refuse))


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def document(audit: sl.Audit) -> Document:
    return Document(render(page_of(audit)))


@pytest.fixture(scope="module")
def titanic() -> sl.Audit:
    table = sl.example("titanic")
    return sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema, limit=1.9))


@pytest.fixture(scope="module")
def hostile() -> sl.Audit:
    """Names and values that try to leave their place, one of which is an endless word."""
    schema = sl.Schema(
        (
            sl.categorical(HOSTILE, ["<b>x</b>", "&amp;", "<a href='javascript:alert(1)'>q</a>"]),
            sl.categorical("@ink", ["%{x}", "{{ 7 * 7 }}"]),
            sl.categorical("x" * 120, ["'\"", "\\"]),
        )
    )
    cells = np.random.default_rng(7).dirichlet(np.ones(12)).reshape(3, 2, 2)
    belief = sl.Belief.from_joint(cells, schema, source="<img src=x onerror=alert(1)>")
    return sl.audit(belief, sl.Plan.uniform(schema))


@pytest.fixture(scope="module")
def forty() -> sl.Audit:
    """Forty binary attributes, each a noisy copy of the one before it."""
    rng = np.random.default_rng(40)
    columns = [rng.random(400) < 0.5]
    for _ in range(39):
        columns.append(columns[-1] ^ (rng.random(400) < 0.15))
    named = {
        f"a_longish_name_{number}": pa.array(column.astype(str)) for number, column in enumerate(columns)
    }
    table = sl.read(pa.table(named))
    return sl.audit(sl.Belief.from_data(table), sl.Plan.uniform(table.schema), method="composition")


def infinite(audit: sl.Audit) -> sl.Audit:
    """The same audit with an infinite total, pair, direct leakage, published sum and limit."""
    name, item = next(iter(audit.secrets.items()))
    endless = sl.Bound(math.inf, "certified", "by hand")
    worst = replace(item.neighbours[0], upper=endless)
    item = replace(
        item,
        limit=math.inf,
        neighbours=(worst, *item.neighbours[1:]),
        direct=replace(item.direct, upper=endless),
        total=replace(item.total, upper=endless),
        published=replace(item.published, value=math.inf),
    )
    return replace(audit, secrets={**audit.secrets, name: item})


def test_it_says_the_verdict_the_data_and_every_figure(titanic: sl.Audit) -> None:
    text = document(titanic).text
    assert {item.verdict for item in titanic.secrets.values()} == {"exceeded", "within"}
    assert "Of 4 secrets, 3 exceed their limits and 1 stays within its limit." in text
    assert f"Data {titanic.belief.source} Records 2,201" in text
    for item in titanic.secrets.values():
        witness = item.total.lower.witness
        assert witness is not None
        for expected in (
            nats(item.total.value),
            nats(item.neighbours[0].value),
            nats(item.published.value),
            witness.report,
            f"{item.total.lower.support:,}",
        ):
            assert expected in text
    assert "for an adversary who holds this belief" in text
    assert "is itself an unprotected statement about them" in text
    assert titanic.plan.to_toml().splitlines()[-1] in text


def test_the_page_names_a_weaker_adversary_and_shows_the_whole_report() -> None:
    cells = np.zeros((2, 2, 2))
    cells[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]] = 0.25
    belief = sl.Belief.from_joint(cells, ["a", "b", "c"])
    plan = sl.Plan.uniform(belief.schema, "oue", limit=0.7)
    text = document(sl.audit(belief, plan, adversary="guess")).text
    assert "All 3 secrets exceed their limits." in text
    for words in (
        "✕ exceeded, for the whole report; within, for a guess",
        "whole report: 1.434",
        "That is for a guess",
    ):
        assert words in text
    asked = document(sl.audit(belief, plan, adversary="guess", decide_by="guess")).text
    assert "All 3 secrets stay within their limits, for a guess." in asked
    assert "✓ within, for a guess; exceeded, for the whole report" in asked
    assert "It is no promise against an adversary who keeps whole reports" in asked
    model = document(sl.audit(sl.Belief.tree_of(belief), sl.Plan.uniform(belief.schema, limit=1.2))).text
    assert "All 3 secrets are not certified to keep their limits." in model
    assert "not certified, for the whole report; within, for a model" in model


def test_cards_separate_the_prior_from_what_the_release_adds(titanic: sl.Audit) -> None:
    text = document(titanic).text
    worst = worst_first(titanic)[0]
    assert worst.secret == "sex"
    assert f"The best guess is male, right for {100 * worst.commonest[1]:.1f} % of the records." in text
    assert f"by up to {math.exp(worst.total.value):.2f} ({nats(worst.total.value)} nats, exact)" in text


def test_a_published_sum_below_the_truth_is_marked_and_no_other(titanic: sl.Audit) -> None:
    understated = [item.secret for item in titanic.secrets.values() if is_understated(item)]
    assert understated == ["survived"]
    marked = re.findall(r'<div class="below">', render(page_of(titanic)))
    assert len(marked) == len(understated)


def test_secrets_come_worst_first(titanic: sl.Audit) -> None:
    ranks = ["exceeded", "not certified", "within"]
    keys = [(ranks.index(item.verdict), -item.total.lower.value) for item in worst_first(titanic)]
    assert keys == sorted(keys)
    text = render(page_of(titanic))
    rows = re.findall(r'<th scope="row"><bdi>(\w+)</bdi><div>', text)
    assert rows == [item.secret for item in worst_first(titanic)]


def test_the_same_audit_gives_the_same_bytes(titanic: sl.Audit, tmp_path: Path) -> None:
    first = sl.write_report(titanic, tmp_path / "a.html")
    second = sl.write_report(titanic, tmp_path / "b.html")
    assert first == tmp_path / "a.html"
    assert first.read_bytes() == second.read_bytes()


def test_hostile_names_stay_text(hostile: sl.Audit) -> None:
    html = render(page_of(hostile))
    page = Document(html)
    assert "<script>alert" not in html
    assert HOSTILE in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json"] * 2 + [None] * 2
    assert {"img", "iframe", "object", "embed"}.isdisjoint(tag for tag, _ in page.tags)
    assert not [
        attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)
    ]
    drawn = json.dumps(page.drawings())
    assert "&lt;/script&gt;" in drawn
    assert "<script" not in drawn
    assert "<a " not in drawn


def test_only_its_own_scripts_may_run_and_nothing_is_fetched(titanic: sl.Audit) -> None:
    page = document(titanic)
    policy = next(
        attributes["content"] or ""
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    for attributes, text in page.scripts:
        if "type" not in attributes:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
    links = [
        attributes.get(name) for _, attributes in page.tags for name in ("src", "href") if name in attributes
    ]
    assert all(link and link.startswith(("#", "data:")) for link in links)


def test_infinity_is_shown_and_never_breaks_the_figures(titanic: sl.Audit) -> None:
    audit = infinite(titanic)
    page = document(audit)
    assert "at most ∞" in page.text
    totals = page.drawings()["totals"]
    edge = totals["layout"]["xaxis"]["range"][1]
    assert "2.022 to ∞" in totals["layout"]["yaxis2"]["ticktext"]
    assert all(value <= edge for trace in totals["data"] for value in trace["x"])
    assert totals["data"][-1]["marker"]["symbol"] == "triangle-right"
    assert "∞" in json.dumps(page.drawings()["heat"]["data"], ensure_ascii=False)


def test_infinite_saturation_is_named_and_not_drawn(titanic: sl.Audit) -> None:
    curves = {curve.secret: curve for curve in worst_curves(titanic, worst_first(titanic))}
    assert math.isinf(curves["age"].saturation)
    page = document(titanic)
    assert "does not saturate (∞)" in page.text
    dotted = [
        trace for trace in page.drawings()["curves"]["data"] if trace.get("line", {}).get("dash") == "dot"
    ]
    finite = sorted(curve.saturation for curve in curves.values() if curve.is_bounded)
    assert sorted(trace["y"][0] for trace in dotted) == finite


def test_an_infinite_limit_stands_in_the_plan(titanic: sl.Audit) -> None:
    plan = replace(titanic.plan, limits={"age": math.inf})
    text = document(sl.audit(titanic.belief, plan)).text
    assert 'age = "infinity"' in text


def test_the_heat_map_is_the_audit_transposed_nowhere(titanic: sl.Audit) -> None:
    others, own = heat_figure(titanic).data
    diagonal = np.eye(4, dtype=bool)
    shown = np.array(others["z"], dtype=float)
    assert np.allclose(shown[~diagonal], titanic.pairs[~diagonal], rtol=0, atol=5e-5)
    assert not np.allclose(shown[~diagonal], shown.T[~diagonal])
    assert np.all(np.isnan(shown[diagonal]))
    assert np.array_equal(np.array(own["text"])[diagonal], ["1.000"] * 4)
    assert others["text"][0][1] == nats(titanic["sex"].neighbours[0].value)


def test_bars_span_the_interval_and_far_ends_are_cut_with_their_number(titanic: sl.Audit) -> None:
    worst, *others = worst_first(titanic)
    far = replace(worst, total=replace(worst.total, upper=sl.Bound(50.0, "certified", "by hand")))
    figure = totals_figure([far, *others])
    reached, hatched = figure.data[:2]
    assert reached["x"] == hatched["base"]
    assert reached["x"][0] == worst.total.lower.value
    assert hatched["x"][1:] == [0.0, 0.0]
    edge = hatched["base"][0] + hatched["x"][0]
    assert worst.total.lower.value < edge < 4
    assert figure.layout["yaxis2"]["ticktext"][0] == f"{nats(worst.total.lower.value)} to 50.00"
    near = replace(worst, total=replace(worst.total, upper=sl.Bound(6.0, "certified", "by hand")))
    hatched = totals_figure([near, *others]).data[1]
    assert hatched["base"][0] + hatched["x"][0] == pytest.approx(6.0)


def test_curves_pass_through_the_audits_figure_at_the_plans_budget(forty: sl.Audit) -> None:
    curves = worst_curves(forty, worst_first(forty))
    assert len(curves) == 8
    for curve in curves:
        worst = forty[curve.secret].neighbours[0]
        assert worst.through == (curve.neighbour,)
        assert curve.at_plan == pytest.approx(worst.value, abs=1e-12)
        assert list(curve.values) == sorted(curve.values)
        assert curve.values[-1] <= curve.saturation


def test_arrows_are_the_strongest_pairs_of_each_secret(forty: sl.Audit) -> None:
    arrows = arrows_of(forty)
    assert 0 < len(arrows) <= MOST_ARROWS
    largest = max(item.neighbours[0].value for item in forty.secrets.values())
    for arrow in arrows:
        strongest = forty[arrow.leakage.secret].neighbours[:PER_SECRET]
        assert arrow.leakage in strongest
        assert arrow.leakage.through == (arrow.origin,)
        assert arrow.leakage.value >= LEAST_SHARE * largest


def test_suppressed_figures_stay_suppressed(titanic: sl.Audit) -> None:
    audit = sl.audit(titanic.belief, titanic.plan, min_support=120)
    page = document(audit)
    assert (
        "Figures that rest on fewer than 120 records are replaced by what the budgets alone say." in page.text
    )
    assert "not drawn, the figure rests on too few records to show." in page.text
    assert "109" not in page.text
    assert "109 records" not in json.dumps(page.drawings())
    assert "Nothing is suppressed" not in page.text
    assert "Nothing is suppressed" in document(titanic).text


def test_a_belief_by_hand_is_stamped_as_such(hostile: sl.Audit) -> None:
    text = document(hostile).text
    assert "This audit was computed from a belief given by hand." in text
    assert "computed from raw data" not in text


def test_a_single_release_has_a_report_without_empty_figures() -> None:
    belief = sl.Belief.from_joint([0.25, 0.75], ["coin"])
    page = audit_page(sl.audit(belief, sl.Plan.uniform(belief.schema, limit=1.0)))
    assert list(page.figures) == ["totals"]
    text = Document(render(page)).text
    assert "The secret stays within its limit." in text
    assert "Leakage against budget" not in text


def test_attributes_that_are_no_secret_or_not_released_are_shown_as_such() -> None:
    table = sl.sources.survey(2000, seed=3)
    plan = sl.Plan(
        (sl.Release(table.schema["age"], "grr", 1.0), sl.Release(table.schema["region"], "grr", 2.0))
    )
    page = document(sl.audit(sl.Belief.from_data(table), plan, secrets=["diabetes", "age"]))
    assert "It is not released itself." in page.text
    assert "not a secret not released" in page.text
    nodes = page.drawings()["network"]["data"][-1]
    assert nodes["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    assert nodes["marker"]["color"][0] == "@neutral"


def test_what_has_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sl.InputError, match=r"one of the kinds Audit.*, got a dict\."):
        sl.write_report({}, tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_report(
    titanic: sl.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.html"
    sl.write_report(titanic, path)
    old = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("interrupted")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(sl.InputError, match="interrupted"):
        sl.write_report(titanic, path)
    assert [item.name for item in tmp_path.iterdir()] == ["audit.html"]
    assert path.read_bytes() == old


def test_a_page_is_small_and_needs_no_drawing_library_but_its_own(forty: sl.Audit) -> None:
    html = render(page_of(forty))
    assert len(html.encode()) < 1_500_000
    assert "plotly.js v" in html
    assert "Copyright 2012-2026, Plotly, Inc." in html
    dependencies = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert not [name for name in dependencies["dependencies"] if name.startswith("plotly")]


def test_a_page_without_figures_carries_no_drawing_library(titanic: sl.Audit) -> None:
    page = page_of(titanic)
    plain = render(replace(page, figures={}, template="base.html.j2"))
    assert "plotly.js v" not in plain
    assert "The figures need JavaScript" not in plain
    assert len(plain) < 50_000


@pytest.mark.browser
def test_every_figure_is_drawn_without_requests_or_complaints(
    browser: Chrome, titanic: sl.Audit, tmp_path: Path
) -> None:
    page = sl.write_report(titanic, tmp_path / "titanic.html")
    show(browser, page)
    for name, drawing in document(titanic).drawings().items():
        drawn = browser.execute_script(
            "const plot = document.getElementById(arguments[0]);"
            "return [plot.data.length, plot.querySelectorAll('svg.main-svg').length > 0,"
            " plot.querySelectorAll('.scatterlayer .trace, .barlayer .trace, .heatmaplayer .hm').length]",
            f"plot-{name}",
        )
        assert drawn == [len(drawing["data"]), True, len(drawing["data"])]
    asked = requests(browser)
    assert page.as_uri() in asked
    assert [url for url in asked if not url.startswith(("file://", "data:", "blob:"))] == []
    assert complaints(browser) == []


@pytest.mark.browser
def test_pointing_at_a_cell_shows_its_figure(browser: Chrome, titanic: sl.Audit, tmp_path: Path) -> None:
    show(browser, sl.write_report(titanic, tmp_path / "titanic.html"))
    row, column = titanic.plan.names.index("sex"), list(titanic.secrets).index("class")
    x, y = browser.execute_script(
        "const plot = document.getElementById('plot-heat');"
        "document.documentElement.style.scrollBehavior = 'auto';"
        "plot.scrollIntoView({ block: 'center' });"
        "const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();"
        "return [box.x + xaxis._offset + xaxis.l2p(arguments[0]),"
        " box.y + yaxis._offset + yaxis.l2p(arguments[1])]",
        column,
        row,
    )
    point_at(browser, x, y)
    leakage = next(item for item in titanic["class"].neighbours if item.through == ("sex",))
    shown = hover_text(browser, "plot-heat")
    assert "report of sex about class" in shown
    assert f"{leakage.value:.3f} nats" in shown
    assert "sex = female" in shown
    assert "rests on 23 records" in shown


def hover_text(browser: Chrome, plot: str) -> str:
    script = "return document.querySelector(`#${arguments[0]} .hoverlayer .hovertext`)?.textContent"
    return str(WebDriverWait(browser, AT_MOST).until(lambda driver: driver.execute_script(script, plot)))


@pytest.mark.browser
@pytest.mark.parametrize("name", ["titanic", "hostile", "forty"])
def test_a_phone_never_scrolls_sideways(
    browser: Chrome, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    audit: sl.Audit = request.getfixturevalue(name)
    show(browser, sl.write_report(audit, tmp_path / f"{name}.html"), PHONE)
    width, inner = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert (width, inner) == (PHONE[0], PHONE[0])
    assert complaints(browser) == []


@pytest.mark.browser
def test_hostile_names_run_nothing_in_a_browser(browser: Chrome, hostile: sl.Audit, tmp_path: Path) -> None:
    show(browser, sl.write_report(hostile, tmp_path / "hostile.html"))
    assert complaints(browser) == []
    shown, links = browser.execute_script(
        "const ticks = document.querySelectorAll('#plot-heat .ytick text');"
        "const links = document.querySelectorAll('.plot a[href*=alert]');"
        "return [[...ticks].map((tick) => tick.textContent), links.length]"
    )
    assert shown == ["</script><sc…1)</script>", "@ink", "x" * 12 + "…" + "x" * 11]
    assert links == 0


@pytest.mark.browser
def test_figures_follow_the_readers_theme(browser: Chrome, titanic: sl.Audit, tmp_path: Path) -> None:
    show(browser, sl.write_report(titanic, tmp_path / "titanic.html"), theme="dark")
    colours = "return [...document.querySelectorAll('.plot')].map((plot) => plot._fullLayout.font.color)"
    assert browser.execute_script(colours) == [DARK["ink"]] * len(FIGURES)
    set_theme(browser, "light")
    light = [LIGHT["ink"]] * len(FIGURES)
    WebDriverWait(browser, AT_MOST).until(lambda driver: driver.execute_script(colours) == light)
    assert complaints(browser) == []


LONG = "household_income_before_taxes_and_transfers_" * 68
RECORDS = np.random.default_rng(5).integers(0, 4, (600, 2))


@pytest.fixture(scope="module")
def lengthy() -> sl.Table:
    """Two names of 3,000 characters that differ in the last, and values that differ in the last, too."""
    columns = {
        LONG[:2999] + "x": pa.array([f"band number {code}" for code in RECORDS[:, 0]]),
        LONG[:2999] + "y": pa.array(["v" * 300 + str(code) for code in RECORDS[:, 1]]),
    }
    return sl.read(pa.table(columns))


def test_labels_keep_the_value_so_that_no_two_read_alike(lengthy: sl.Table) -> None:
    found = sl.estimate(sl.collect(lengthy, sl.Plan.uniform(lengthy.schema), seed=1))
    shown = page_of(found).figures["frequencies"].layout["yaxis"]["ticktext"]
    assert len(set(shown)) == len(shown) == 8
    assert [text.endswith(f"band number {code}") for code, text in enumerate(shown[:4])] == [True] * 4
    assert [text[-1] for text in shown[4:]] == ["0", "1", "2", "3"]
    assert max(map(len, shown)) <= 32


def test_names_that_differ_only_in_their_middle_are_numbered() -> None:
    alike = ["a" * 40 + digit + "b" * 40 for digit in "123"]
    assert labels([*alike, "c"], 9) == ["aaaa…bbbb", "aaaa…bbbb (2)", "aaaa…bbbb (3)", "c"]


def test_every_label_of_an_audit_differs(lengthy: sl.Table) -> None:
    audit = sl.audit(sl.Belief.from_data(lengthy), sl.Plan.uniform(lengthy.schema))
    figures = page_of(audit).figures
    ticks = [figures["totals"].layout["yaxis"]["ticktext"], figures["heat"].layout["xaxis"]["ticktext"]]
    ticks.append([note["text"] for note in figures["network"].layout["annotations"]])
    assert [len(set(texts)) for texts in ticks] == [2, 2, 2]


def test_a_name_of_3000_characters_does_not_swell_the_page(
    lengthy: sl.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = sl.audit(sl.Belief.from_data(lengthy), sl.Plan.uniform(lengthy.schema, limit=1.0))
    page = document(audit)
    cells = [attributes for tag, attributes in page.tags if tag == "bdi" and "title" in attributes]
    assert LONG[:2999] + "x" in {attributes["title"] for attributes in cells}
    assert all(len(line) <= 160 for drawing in page.drawings().values() for line in drawing["lines"])
    print_audit(audit, lengthy)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "exceeded" in line or "within" in line]
    assert len(lines) < 20


def test_figures_that_differ_by_a_rounding_error_look_alike(titanic: sl.Audit) -> None:
    scale = log_ticks([0.9999999992, 1.0], 9)
    assert scale["range"][1] - scale["range"][0] > 0.5
    assert from_zero([0.9999999992, 1.0]) == [0.0, 1.05]
    assert from_zero([1e-12, 3e-12])[1] > 0.01
    limits = leakage_figure(sl.calibrate(titanic.belief)).layout["xaxis"]
    assert limits["range"][0] == 0


@pytest.mark.parametrize("values", [[0.15], [1.0], [3e-9, 4e7], [0.0, math.inf], [7.7, 7.8], [1e-300, 1e300]])
def test_a_logarithmic_axis_holds_its_values_between_round_numbers(values: list[float]) -> None:
    for most in (4, 6, 9):
        scale = log_ticks(values, most)
        low, high = scale["range"]
        assert all(low <= math.log10(value) <= high for value in values if 0 < value < math.inf)
        assert 2 <= len(scale["ticktext"]) <= most
        assert all(low - 1e-9 <= math.log10(tick) <= high + 1e-9 for tick in scale["tickvals"])
        assert len(set(scale["ticktext"])) == len(scale["ticktext"])


@pytest.mark.browser
@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_a_name_of_3000_characters_does_not_break_the_page(
    browser: Chrome, lengthy: sl.Table, tmp_path: Path, size: tuple[int, int]
) -> None:
    audit = sl.audit(sl.Belief.from_data(lengthy), sl.Plan.uniform(lengthy.schema))
    show(browser, sl.write_report(audit, tmp_path / "long.html"), size)
    width, height = browser.execute_script(
        "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight]"
    )
    assert width <= size[0]
    assert height < 16_000
    assert complaints(browser) == []
