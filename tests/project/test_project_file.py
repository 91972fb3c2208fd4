"""The project file: what it says, and one line for each thing that is wrong with it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.project import Project

GOOD = """
version = 1
purpose = "to plan clinics"
output = "report"
seed = 3
[data]
path = "people.csv"
schema = "people.schema.toml"
drop = ["notes"]
[secret.income]
limit = 0.5
reason = "tax"
[secret."a = b"]
[protect]
limit = 2
delta = 0.01
decide_by = "table"
[release]
mechanism = "oue"
budgets = { income = 0.5 }
[wanted]
people = 500
precision = 0.02
"""


def test_a_project_says_what_its_file_says() -> None:
    project = Project.from_toml(GOOD, "folder/sidelight.toml")
    assert project.source == str(Path("folder/people.csv"))
    assert project.schema_file == Path("folder/people.schema.toml")
    assert project.output_folder == Path("folder/report")
    assert project.limits == {"income": 0.5, "a = b": 2.0}
    assert project.secrets["income"].reason == "tax"
    assert project.judges
    assert (project.protect.delta, project.wanted.people, project.seed) == (0.01, 500, 3)
    assert project.reading["drop"] == ["notes"]


def test_least_of_all_a_project_names_its_table() -> None:
    project = Project.from_toml('version = 1\n[data]\npath = "a.csv"')
    assert not project.judges
    assert (project.limits, project.release.budgets) == ({}, "calibrate")
    assert Project.from_toml('version = 1\n[data]\npath = "a.csv"\n[protect]\nlimit = 1').judges
    endless = 'version = 1\n[data]\npath = "a.csv"\n[secret.a]\nlimit = "infinity"'
    assert Project.from_toml(endless).limits == {"a": math.inf}
    assert not Project.from_toml(endless).judges


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("version = 1", ""), "is no project: it must start with `version = 1`; `sidelight init` drafts one"),
        (("version = 1", "version = 2"), "version 2; this Sidelight reads up to version 1"),
        (("purpose", "purpos"), "no key 'purpos'; did you mean 'purpose'?"),
        (("schema =", "scheme ="), "data: there is no key 'scheme'; did you mean 'schema'?"),
        (("limit = 0.5", "limit = -1"), "`secret.income.limit` must be a number of at least 0, got -1.0"),
        (("limit = 0.5", 'limit = "low"'), "secret.income.limit"),
        (("limit = 2", "limit = nan"), "`protect.limit` must be a number of at least 0, got nan"),
        (("delta = 0.01", "delta = 1"), "`protect.delta` must be a finite number above 0 and below 1"),
        (("people = 500", "people = 0"), "`wanted.people` must be a whole number of at least 1"),
        (("people = 500", "people = 1.5"), "wanted.people"),
        (("precision = 0.02", "precision = 2"), "`wanted.precision`"),
        (("seed = 3", "seed = -1"), "`seed` must be a whole number of at least 0"),
        (("budgets = { income = 0.5 }", "budgets = { income = 0 }"), "`release.budgets.income`"),
        (("delta = 0.01", "draws = 100"), "`protect.draws` is for figures at delta"),
        (("delta = 0.01", "delta = 0.01\ndraws = 3"), "`protect.draws`"),
        (("budgets = { income = 0.5 }", 'budgets = 2\nplan = "plan.toml"'), "stands beside `release.plan`"),
        (("budgets = { income = 0.5 }", 'budgets = "all"'), "`release.budgets` must be 'calibrate' or"),
        (('path = "people.csv"', 'path = ""'), "`data.path` must name a file"),
        (('path = "people.csv"', 'path = "-"'), "`data.path` must name a file that can be read again"),
        (('reason = "tax"', "reason = 3"), "secret.income.reason"),
        (("[data]", "[data"), "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_key(change: tuple[str, str], words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        Project.from_toml(GOOD.replace(*change, 1), "mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_are_no_attributes_are_refused() -> None:
    project = Project.from_toml(GOOD)
    project.check_columns(("income", "a = b"))
    with pytest.raises(
        sl.InputError, match=r"secret: there is no attribute 'income'; did you mean 'incomes'"
    ):
        project.check_columns(("incomes", "a = b"))
