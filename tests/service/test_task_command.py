"""`sidelight service task`: panels, label collections and their pace, and one line where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import sidelight as sl
from service_cases import SCHEMA
from sidelight.protocols import spl, write_protocol
from sidelight.service.task import Pace, read_task

WORDS = ("--purpose", "To plan the canteen.", "--contact", "canteen@example.org")
LABEL = ("--label", "meal", "--epsilon", 2)


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    write_protocol(spl(SCHEMA, 2.0), tmp_path / "protocol.toml")
    sl.Plan(tuple(sl.Release(item, "l-grr", 1.0, 4) for item in SCHEMA)).write(tmp_path / "panel.toml")
    return tmp_path


@pytest.mark.parametrize(
    ("design", "options", "said"),
    [
        ("protocol", ("--label", "nobody", "--epsilon", 2), "there is no attribute 'nobody'"),
        ("protocol", ("--label", "meal"), "--phases or --label and --epsilon go together"),
        ("protocol", (*LABEL, "--phases", "pairs"), "two designs; leave one out"),
        ("protocol", (*LABEL, "--omega", "big"), "a number or 'learnt'"),
        ("protocol", (*LABEL, "--secret", "attributes"), "label is public"),
        ("protocol", (*LABEL, "--model", "forest"), "one of 'bayes', 'tree'"),
        ("protocol", (*LABEL, "--model", "tree", "--protocol", "labeldp"), "learn 'bayes' by LabelDP"),
        ("protocol", (*LABEL, "--rounds", 7), "`rounds` must be 1, the rounds of its label design, got 7"),
        ("protocol", ("--epoch", 2), "are of a panel: a plan with `times` above 1"),
        ("protocol", ("--close-at", 3), "at least the smallest crowd, 100"),
        ("panel", ("--division", "people"), "divide nothing"),
        ("panel", ("--close-after", 0), "seconds"),
    ],
)
def test_what_cannot_be_is_one_line(run, folder: Path, design: str, options, said: str) -> None:
    shown = run("service", "task", folder / f"{design}.toml", *WORDS, *options, "-o", folder / "t.json")
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert said in shown.err
    assert not (folder / "t.json").exists()


def test_a_panel_and_a_label_collection_are_written(run, folder: Path) -> None:
    words = (*WORDS, "--smallest-crowd", 1)
    label = ("--label", "smokes", "--epsilon", 2, "--model", "tree", "--depth", 2, "--close-at", 9)
    shown = run("service", "task", folder / "protocol.toml", *words, *label, "-o", folder / "label.json")
    assert "it has 2 rounds, and each person spends at most 2." in shown.out, shown.err
    made = read_task((folder / "label.json").read_bytes())
    assert (made.course.schema.names, made.pace) == (("meal", "smokes"), Pace(reports=9))
    panel = ("--epoch", 2, "--close-after", 60, "-o", folder / "panel.json")
    shown = run("service", "task", folder / "panel.toml", *words, *panel)
    assert "it has 4 rounds, and each person spends at most 4." in shown.out, shown.err
    assert read_task((folder / "panel.json").read_bytes()).pace == Pace(seconds=60)
    # A plan of several rounds names the attributes of a label collection too.
    again = run("service", "task", folder / "panel.toml", *words, *LABEL, "-o", folder / "other.json")
    assert "it has 1 round, and" in again.out, again.err
