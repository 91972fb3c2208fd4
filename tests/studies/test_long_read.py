"""The long read about the papers says what the studies found, and nothing that was typed by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sidelight.foundation.errors import InputError
from sidelight.studies import long_read as module
from sidelight.studies.long_read import RESULTS, long_read
from sidelight.studies.register import CATALOGUE
from sidelight.studies.rendering import escaped, sentence

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reproduction"
TEMPLATE = Path(module.__file__).parent / "templates" / "five-papers.md.j2"


@pytest.fixture(name="told")
def told_fixture() -> dict:
    return json.loads((FOLDER / RESULTS).read_text("utf-8"))


def test_the_committed_page_is_that_of_the_committed_results(told) -> None:
    assert (FOLDER / "five-papers.md").read_text("utf-8") == long_read(told)


def test_results_are_those_that_the_pages_of_the_papers_show(told) -> None:
    assert told.keys() == CATALOGUE.keys()
    for name, study in told.items():
        page = (FOLDER / f"{CATALOGUE[name].paper.lower()}.md").read_text("utf-8")
        assert sentence(study["reason"]) in page, name
        assert all(escaped(key) in page for key in study["ours"]), name


def test_another_result_is_another_page(told) -> None:
    before = long_read(told)
    told["cpl-table3"]["ours"]["epsilon 1, secret to other"] = 0.7777
    assert "0.7777" not in before
    assert "0.7777" in long_read(told)
    told["cpl-eq6"]["verdict"] = "reproduced"
    assert "| [CPL](cpl.md) | 8 | 3 | 4 | 1 |" in long_read(told)


def test_no_number_is_typed_into_the_template() -> None:
    prose = re.sub(r"\{[{%].*?[%}]\}", "", TEMPLATE.read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(r"\d+[.,]\d+|\d+ ?%", prose) == []


def test_a_result_that_is_missing_is_named(told) -> None:
    del told["cpl-table3"]["ours"]["epsilon 1, secret to other"]
    with pytest.raises(InputError, match="epsilon 1, secret to other"):
        long_read(told)
    del told["pdp-theorem2"]
    with pytest.raises(InputError, match="pdp-theorem2"):
        long_read(told)


def test_what_the_page_calls_so_or_not_so_is_what_the_verdicts_say(told) -> None:
    """Its words are fixed: where a verdict turns, they must be written anew."""
    kinds = {name: study["verdict"] for name, study in told.items()}
    for part in re.split(r"\n\n(?=\*\*|#)", TEMPLATE.read_text("utf-8")):
        named = {
            kinds[name] for name in re.findall(r'"((?:cpl|pdp|corr-rr|clldp|reconstruction)-\w+)"', part)
        }
        if part.startswith("**So it is"):
            assert "reproduced" in named, part
            assert "refuted" not in named, part
        if part.startswith("**Not so"):
            assert named & {"refuted", "differs"}, part
        assert {kinds[name] for name in re.findall(r'example\("([\w-]+)"\)', part)} <= {"refuted"}, part
    assert {kinds[name] for name, listing in CATALOGUE.items() if listing.paper == "ours"} == {"measured"}
