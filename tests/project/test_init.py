"""`sidelight init`: a draft from any table, guesses marked, nobody's file lost."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.project import Project
from sidelight.project.sensitive import rare_value, topic_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, **columns: list[object]) -> str:
    pq.write_table(pa.table(columns), name)
    return name


ROWS = 60
PLAIN = {"sex": ["f", "m"] * 30, "colour": ["red", "blue", "green"] * 20}


def test_a_draft_guesses_marks_and_can_be_read(run) -> None:
    data = write(
        "people.parquet", id=[f"p{n}" for n in range(ROWS)], same=["x"] * ROWS, split=["train", "test"] * 30,
        **PLAIN, income=["low", "high"] * 30, rare=["yes"] * 5 + ["no"] * 55,
    )  # fmt: skip
    shown = run("init", data)
    assert shown.code == 0, shown.err
    text = Path("sidelight.toml").read_text()
    project = Project.read("sidelight.toml")
    assert set(project.secrets) == {"income", "rare"}
    assert project.data.drop == ["split"]
    for line in ("# guessed: its name is about money", "# guessed: 8.3 % have 'yes'",
                 "set aside: id, which identifies",
                 "set aside: same, which is constant", 'drop = ["split"]   # guessed:'):  # fmt: skip
        assert line in text
    assert sl.sources.Dictionary.read("people.schema.toml").columns["id"].kind == "identifier"
    assert "Guessed to be secret: income" in shown.out
    table = sl.read(project.source, **project.reading)
    project.check_columns(table.schema.names)


def test_hostile_names_and_values_are_only_text(run) -> None:
    names = ['a"]\n[secret.x]', "a = b # c", "naïve 收入 income", "\x1b[31m", "[data]", "'''"]
    values = ["<b>\n", '"; DROP'] * 30
    write("odd.parquet", **dict.fromkeys(names, values))
    assert run("init", "odd.parquet").code == 0
    data = tomllib.loads(Path("sidelight.toml").read_text())
    assert set(data["secret"]) == {"naïve 收入 income"}
    assert set(data) <= {
        "version",
        "purpose",
        "output",
        "seed",
        "data",
        "secret",
        "protect",
        "release",
        "wanted",
    }
    assert "\x1b" not in run("init", "odd.parquet", "--force").out


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": []}, "has 0 rows"),
        ({"id": [f"p{n}" for n in range(ROWS)]}, "has no usable column"),
        ({"same": ["x"] * ROWS}, "has no usable column"),
    ],
)
def test_tables_of_which_nothing_can_be_drafted_are_refused(
    run, columns: dict[str, list[str]], words: str
) -> None:
    write("odd.parquet", **{name: pa.array(part, pa.string()) for name, part in columns.items()})
    shown = run("init", "odd.parquet")
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert words in shown.err
    assert not Path("sidelight.toml").exists()


def test_one_column_is_enough_and_everything_is_secret_where_nothing_looks_so(run) -> None:
    write("one.parquet", colour=["red", "blue", "green"] * 20)
    shown = run("init", "one.parquet")
    assert shown.code == 0
    assert "every attribute is taken as a secret" in shown.out
    project = Project.read("sidelight.toml")
    assert not project.secrets
    assert project.judges


def test_a_table_of_nothing_but_a_split_is_kept(run) -> None:
    write("one.parquet", part=["train", "test"] * 30)
    assert run("init", "one.parquet").code == 0
    assert Project.read("sidelight.toml").data.drop == []


@pytest.mark.parametrize("name", ["sidelight.toml", "people.schema.toml"])
def test_nobodys_file_is_overwritten_without_force(run, name: str) -> None:
    data = write("people.parquet", **PLAIN)
    Path(name).write_text("version = 1\nmine = 2\n")
    shown = run("init", data)
    assert shown.code == 2
    assert f"{name} is there already" in shown.err
    assert Path(name).read_text() == "version = 1\nmine = 2\n"
    assert not {"sidelight.toml", "people.schema.toml"} - {name} & {path.name for path in Path().iterdir()}
    assert run("init", data, "--force").code == 0


def test_a_project_elsewhere_finds_its_table(run) -> None:
    Path("sub").mkdir()
    Path("data").mkdir()
    write("data/people.parquet", **PLAIN)
    shown = run("init", "data/people.parquet", "-o", "sub/mine.toml", "--json")
    assert json.loads(shown.out)["project"] == "sub/mine.toml"
    project = Project.read("sub/mine.toml")
    assert Path(project.source).samefile("data/people.parquet")
    assert project.schema_file == Path("sub/people.schema.toml")
    assert run("init", "-").code == 2


def test_options_of_reading_are_kept(run) -> None:
    Path("people.csv").write_text("a;b;c\n".replace(";", ",") + "x,1,-9\ny,2,5\n" * 30)
    assert run("init", "people.csv", "--na", "-9", "--drop", "a", "--missing", "drop").code == 0
    project = Project.read("sidelight.toml")
    assert (project.data.na, project.data.drop, project.data.missing) == (["-9"], ["a"], "drop")


@pytest.mark.parametrize(
    "name", ["trace", "flat", "age", "height", "homework", "parties", "colour", "id", ""]
)
def test_plain_names_are_not_taken_for_secrets(name: str) -> None:
    assert topic_of(name) is None


def test_a_value_is_rare_only_among_two() -> None:
    two = sl.categorical("x", ["no", "yes"])
    assert rare_value(two, [0.9, 0.1]) == ("yes", 0.1)
    assert rare_value(two, [0.7, 0.3]) is None
    assert rare_value(two, [1.0, 0.0]) is None, "nobody has it"
    assert rare_value(sl.categorical("x", ["a", "b", "c"]), [0.9, 0.05, 0.05]) is None
