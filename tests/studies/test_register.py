"""The studies under their one noun: the register's contract, cheap studies, the pages."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sidelight as sl
from sidelight.studies import register
from sidelight.studies import study as study_module
from sidelight.studies.cpl.pairs import belief_of
from sidelight.studies.outputs import load, save, table_csv
from sidelight.studies.pages import write_pages
from sidelight.studies.register import CATALOGUE, PAPERS, all_studies, find_study, sharing
from sidelight.studies.study import OURS, StudyResult

EXPECTED = {
    "CPL": [*(f"table{n}" for n in (1, 2, 3)), *(f"fig{n}" for n in ("4a", "4b", "4c", "4d", "5")),
            *(f"fig{n}" for n in ("6b", "6c", "6d", "6e", "7a", "7b", "8"))],
    "PDP": ["examples", "fig2", *(f"fig{n}" for n in ("4a", "4b", "4c", "4d", "5a", "5b", "5c", "5d"))],
    "Corr-RR": ["table1", "theorem4", "theorem5", *(f"fig{n}" for n in range(2, 15))],
    "CLLDP": ["table1", "table4", "theorem3", *(f"fig{n}" for n in (3, 4, 5, 6))],
    "Reconstruction": [*(f"fig{n}" for n in (2, 3, 4, 5)), "theorem1", "theorem2"],
}  # fmt: skip
"""Every table and figure that a study must exist for."""
CHEAP = {
    "cpl-table3": "reproduced",
    "cpl-eq6": "refuted",
    "pdp-fig2": "reproduced",
    "pdp-theorem2": "refuted",
    "corr-rr-fig2": "reproduced",
    "corr-rr-amplification": "refuted",
    "corr-rr-theorem4": "refuted",
    "corr-rr-theorem5": "reproduced",
    "clldp-theorem3": "refuted",
    "reconstruction-theorem1": "refuted",
    "reconstruction-theorem2": "refuted",
    "mechanism-variance": "measured",
    "attack-limit": "measured",
    "floating-point": "measured",
    "asked-daily": "measured",
}
"""Studies of seconds, and what must become of them."""


@pytest.fixture(scope="module")
def results() -> dict[str, StudyResult]:
    return {name: find_study(name).run(quick=True) for name in CHEAP}


def test_every_table_and_figure_has_a_study() -> None:
    names = {study.name for study in all_studies()}
    missing = [
        f"{paper.lower()}-{part}"
        for paper, parts in EXPECTED.items()
        for part in parts
        if f"{paper.lower()}-{part}" not in names
    ]
    assert missing == []


def test_every_study_says_what_is_published_or_that_it_is_ours() -> None:
    names = [study.name for study in all_studies()]
    assert len(set(names)) == len(names)
    for study in all_studies():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", study.name)
        assert study.paper in PAPERS
        assert bool(study.published) == (study.paper != OURS), study.name
        assert study.title
        assert study in sharing(study.work)
    works = {study.work for study in all_studies()}
    assert len({work.name for work in works}) == len(works), "two works share a name"


def test_only_the_runner_runs_by_itself() -> None:
    room = Path(register.__file__).parent
    assert [path.name for path in room.rglob("*.py") if "__main__" in path.read_text()] == ["runner.py"]


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_studies_end_as_they_must(results, name: str) -> None:
    study, result = find_study(name), results[name]
    assert result.verdict.kind == CHEAP[name]
    assert result.verdict.reason
    assert set(result.ours) == set(study.published), (
        "a published value without ours beside it, or the reverse"
    )
    assert bool(result.verdict.counter_example) == (result.verdict.kind == "refuted")
    assert all(len(row) == len(result.columns) for row in result.rows)


def test_values_are_those_that_were_computed_elsewhere(results) -> None:
    table = results["cpl-table3"].ours
    assert table["epsilon 1, secret to other"] == pytest.approx(0.62011, abs=5e-6)
    assert table["epsilon 2, secret to other"] == pytest.approx(1.43378, abs=5e-6)
    assert results["cpl-eq6"].rows[0][1:] == pytest.approx((1.0, 1.43378), abs=5e-6)
    assert results["pdp-theorem2"].rows[1][1] == pytest.approx(1.1586, abs=5e-5)
    assert results["corr-rr-amplification"].ours["budget of a record, two bits"] == pytest.approx(
        1.4899, abs=5e-5
    )
    case = next(
        row for row in rows_of(results["corr-rr-theorem4"]) if (row["values"], row["copy"]) == (10, 0.2)
    )
    assert case["printed"] == pytest.approx(0.107, abs=5e-4)
    assert case["simulated"] == pytest.approx(0.0023, abs=3e-4)
    assert "omega rises from 0.639 to 0.816" in results["clldp-theorem3"].verdict.counter_example
    assert "falls from 0.312 to 0.297" in results["clldp-theorem3"].verdict.counter_example
    assert results["reconstruction-theorem1"].ours["budget spent on C"] == pytest.approx(3.0, abs=1e-9)
    failure = results["reconstruction-theorem2"].ours["probability that budget 1 fails"]
    assert failure == pytest.approx(0.0288, abs=5e-5)


def test_attacks_of_ours_end_where_they_must(results) -> None:
    """The rows behind two verdicts; noise is seeded, or that of a real release, which excludes nothing."""
    found = rows_of(results["floating-point"])
    assert len({row["release"] for row in found}) == (3 if find_spec("opendp") else 2)
    for row in found:
        assert (row["recovered"] > 0) == (row["test"] == "doubles") or row["candidates"] != "0 or 1"
        assert (row["left"] == row["values"]) == (row["test"] == "its grid")
        assert (row["misled"] == 0) or row["release"] != "naive sampler", "the true value is always feasible"
    for row in rows_of(results["attack-limit"]):
        assert row["limit"] <= row["expected"] < row["control"], "nobody is expected to lose less"
        way = (row["control"] - row["expected"]) / (row["control"] - row["limit"])
        assert row["share"] == pytest.approx(way)
        assert row["share_lower"] <= row["share"] <= row["share_upper"]
    assert "a quick run trains none" in results["attack-limit"].verdict.reason


def rows_of(result: StudyResult) -> list[dict[str, Any]]:
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


def test_the_leakage_papers_tables_on_real_data(data: Path, monkeypatch) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(data))
    faces = find_study("cpl-fig4b").run(quick=True)
    assert faces.ours["L(Wearing_Necklace -> Male), limit"] == pytest.approx(2.407, abs=5e-4)
    at_2 = next(row for row in faces.rows if row[0] == 2.0)
    assert at_2[1:4] == pytest.approx((1.251, 0.710, 0.225), abs=5e-4)
    assert all(row[-3] >= row[-2] for row in faces.rows), "the sum holds for these three"
    found = sl.studies.benchmark_analysers(belief_of("CelebA"), budgets=[1.0])
    assert {point.analyser: point.region for point in found.points} == find_study("cpl-fig6b").published


def test_a_missing_table_is_named_and_nothing_raises(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    for name in ("cpl-fig4a", "cpl-fig8", "clldp-fig4", "reconstruction-fig2", "cpl-table2"):
        result = find_study(name).run(quick=True)
        assert result.verdict.kind == "not possible"
        assert find_study(name).tables[0] + ".parquet" in result.verdict.reason
        assert str(tmp_path) in result.verdict.reason


def test_an_unknown_study_is_refused_with_the_nearest() -> None:
    with pytest.raises(sl.InputError, match="did you mean 'cpl-table3'"):
        find_study("cpl-tabel3")


def test_what_is_saved_can_be_read(results, tmp_path: Path) -> None:
    study, result = find_study("pdp-fig2"), results["pdp-fig2"]
    saved = save(study, result, tmp_path / "here", quick=True, seconds=1.5)
    assert load(tmp_path / "here") == saved
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        "result.json", "table.csv", "pdp-fig2.svg", "pdp-fig2.png",
    }  # fmt: skip
    assert table_csv(result).splitlines()[0].startswith("correlation,weak")
    first = (tmp_path / "here" / "pdp-fig2.svg").read_bytes()
    save(study, result, tmp_path / "again", quick=True, seconds=2.0)
    assert (tmp_path / "again" / "pdp-fig2.svg").read_bytes() == first


def test_pages_show_every_published_value_beside_ours(results, tmp_path: Path) -> None:
    for name, result in results.items():
        save(find_study(name), result, tmp_path / "results" / name, quick=True, seconds=1.0)
    pages = write_pages(tmp_path / "results", tmp_path / "pages")
    assert {page.name for page in pages} == {
        "index.md", "cpl.md", "pdp.md", "corr-rr.md", "clldp.md", "reconstruction.md", "ours.md",
    }  # fmt: skip
    text = (tmp_path / "pages" / "cpl.md").read_text()
    assert "| epsilon 1, secret to other | 0.6203 | 0.6201 |" in text
    assert "**Refuted.**" in text
    assert "Counter-example: X = A xor B" in text
    assert "`sidelight study run cpl-table3 --quick`" in text
    assert (tmp_path / "pages" / "images" / "pdp-fig2.png").stat().st_size > 1000
    assert "| [PDP](pdp.md) | 1 | 0 | 1 | 0 |" in (tmp_path / "pages" / "index.md").read_text()
    with pytest.raises(sl.InputError, match="has no outputs of studies"):
        write_pages(tmp_path / "nowhere", tmp_path / "pages")


def test_the_committed_pages_show_every_study_and_no_value_without_ours() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "reproduction"
    for study in all_studies():
        text = (folder / f"{study.paper.lower()}.md").read_text()
        assert f"## {study.title}\n" in text, study.name
        assert f"`sidelight study run {study.name}" in text
    for page in folder.glob("*.md"):
        text = page.read_text()
        assert "| not computed |" not in text
        for image in re.findall(r"\(images/([^)]+)\)", text):
            assert (folder / "images" / image).is_file()
    assert sum(path.stat().st_size for path in (folder / "images").iterdir()) < 2_000_000


def test_the_page_about_running_lists_every_table() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reproduction" / "running.md").read_text("utf-8")
    studies = [find_study(name) for name in CATALOGUE]
    used = {name for study in studies for name in (*study.tables, *study.work.uses)}
    assert set(re.findall(r"^\| `(\w+)\.parquet` \|", page, re.M)) == used


def test_an_installed_package_looks_for_tables_where_the_reader_is(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("SIDELIGHT_DATA", raising=False)
    assert study_module.data_folder() == Path(study_module.__file__).resolve().parents[4] / "shared" / "data"
    installed = tmp_path / "lib" / "site-packages" / "sidelight" / "studies" / "study.py"
    monkeypatch.setattr(study_module, "__file__", str(installed))
    monkeypatch.chdir(tmp_path)
    assert study_module.data_folder() == tmp_path / "shared" / "data"
