"""The data dictionary: what is stated about columns is kept, the rest is inferred, and guesses are said."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sidelight as sl
from sidelight.cli import app
from sidelight.sources.names import looks_like_a_code

ROWS = 400


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    start = datetime.date(2020, 1, 1)
    rows = pa.table(
        {
            "customer_nbr": rng.permutation(ROWS) + 10_000,
            "zip": rng.choice(np.arange(10_115, 10_999, 13), ROWS),
            "age": rng.integers(18, 90, ROWS),
            "size": rng.choice(["S", "M", "L"], ROWS),
            "joined": [start + datetime.timedelta(days=int(day)) for day in rng.integers(0, 366, ROWS)],
            "same": ["x"] * ROWS,
        }
    )
    path = tmp_path / "people.parquet"
    pq.write_table(rows, path)
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    error = result.exception if isinstance(result.exception, sl.SidelightError) else None
    return (2, str(error)) if error else (result.exit_code, result.output)


def dictionary(text: str) -> sl.sources.Dictionary:
    return sl.sources.Dictionary.from_toml("version = 1\n" + text, "people.schema.toml")


@pytest.mark.parametrize(
    "name",
    [
        "customer_nbr", "disposition_id", "discharge_disposition_id", "patient_nbr", "PULocationID", "zip",
        "ZIP Code", "zipcode", "postcode", "SimFinId", "userid", "account_number", "AccountNo",
        "country_code", "NAICS", "phone", "product key", "id_client", "tract_fips", "order_no",
    ],
)  # fmt: skip
def test_names_of_codes_are_known(name: str) -> None:
    assert looks_like_a_code(name, 1000)


@pytest.mark.parametrize(
    "name",
    [
        "age", "hours-per-week", "capital-gain", "fnlwgt", "education-num", "number_of_children",
        "num_procedures", "paid", "amount_paid", "covid", "humid", "acid", "id_count", "Total Assets",
        "Fiscal Year", "year", "price", "code_length", "number_inpatient", "income", "height",
        "Shares (Basic)", "minute", "day", "grid", "",
    ],
)  # fmt: skip
def test_names_of_amounts_are_not_taken_for_codes(name: str) -> None:
    assert not looks_like_a_code(name, 0)


def test_integers_that_look_like_codes_are_said_to_be_guesses(people: Path) -> None:
    table = sl.read(people)
    kinds = {item.name: item.kind for item in table.schema}
    assert kinds == {"zip": "categorical", "age": "numeric", "size": "categorical", "joined": "date"}
    assert {item.column: item.kind for item in table.set_aside} == {
        "customer_nbr": "identifier",
        "same": "ignored",
    }
    notes = "\n".join(table.notes())
    assert "'zip' looks like a code by its name, so its numbers are taken as categories: a guess" in notes
    assert "--kind zip=numeric" in notes
    assert "--kind customer_nbr=numeric" in notes
    assert sl.read(people, kinds={"zip": "numeric"}).schema["zip"].kind == "numeric"
    assert not sl.read(people, kinds={"zip": "numeric", "customer_nbr": "numeric"}).guesses


def test_an_identifier_that_occurs_twice_here_and_there_is_set_aside_by_its_name() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(10**6, 10**6 + 4000, 1000)
    rows = pa.table({"customer_id": values, "income": values, "x": [0, 1] * 500})
    table = sl.read(rows)
    assert table.schema.names == ("income", "x")
    assert "seems to identify its records" in table.set_aside[0].reason
    with pytest.raises(sl.InputError, match="customer_id.*leave it out; if that is wrong, state its kind"):
        sl.read(rows, require=["customer_id"])
    assert sl.read(rows, kinds={"customer_id": "categorical"}).schema["customer_id"].has_other


def test_a_kind_may_leave_a_column_out(people: Path) -> None:
    table = sl.read(people, kinds={"size": "ignored", "zip": "identifier"})
    assert table.schema.names == ("age", "joined")
    with pytest.raises(sl.InputError, match="'size'.*stated to be ignored"):
        sl.read(people, kinds={"size": "ignored"}, require=["size"])


def test_a_draft_states_what_was_inferred_and_marks_guesses(people: Path) -> None:
    table = sl.read(people)
    text = sl.sources.Dictionary.draft(table).to_toml()
    assert text.startswith(
        "# The data dictionary of people.parquet.\n# It names values that occur in the table"
    )
    assert str(people.parent) not in text
    assert "[column.zip]\n# A guess: it looks like a code" in text
    assert (
        '[column.customer_nbr]\n# It identifies its records (every value occurs once).\nkind = "identifier"'
        in text
    )
    assert '[column.size]\nkind = "categorical"\nvalues = ["L", "M", "S"]\nmissing = "absent"' in text
    assert '"2020-02-01"' in text
    assert sl.read(people, schema=sl.sources.Dictionary.from_toml(text)).schema == table.schema


def test_a_fully_stated_column_is_coded_as_said_without_looking(people: Path) -> None:
    stated = dictionary(
        """
        [column.size]
        kind = "ordinal"
        values = ["S", "M", "L", "XL"]
        missing = "absent"
        [column.age]
        kind = "numeric"
        edges = [30, 65.5]
        missing = "value"
        [column.joined]
        kind = "date"
        edges = [2020-04-01, "2020-07"]
        missing = "absent"
        """
    )
    schema = sl.read(people, schema=stated).schema
    assert (schema["size"].kind, schema["size"].values) == ("ordinal", ("S", "M", "L", "XL"))
    assert schema["age"].values == ("below 30", "30 to below 65.5", "65.5 or more", "(missing)")
    assert schema["joined"].values == ("before 2020-Q2", "2020-Q2", "2020-Q3 or later")


def test_what_is_not_stated_is_inferred(people: Path) -> None:
    stated = dictionary(
        """
        [column.zip]
        kind = "numeric"
        bins = 4
        [column.joined]
        by = "quarter"
        [column.size]
        values = ["S", "M"]
        [column.age]
        description = "in years"
        [column.customer_nbr]
        kind = "ignored"
        """
    )
    table = sl.read(people, schema=stated)
    assert len(table.schema["zip"].values) == 4
    assert table.schema["joined"].values == ("before 2020-Q2", "2020-Q2", "2020-Q3", "2020-Q4 or later")
    assert table.schema["size"].values == ("S", "M", "(other)")
    assert table.schema["age"] == sl.read(people).schema["age"]
    assert "Not described in people.schema.toml, so coded by rule: same." in table.notes()


def test_kinds_come_before_the_dictionary_and_a_plan_before_both(people: Path) -> None:
    stated = dictionary('[column.age]\nkind = "numeric"\nedges = [40]\nmissing = "absent"\n')
    assert sl.read(people, schema=stated, kinds={"age": "categorical"}).schema["age"].kind == "categorical"
    assert sl.read(people, schema=stated, edges={"age": [50]}).schema["age"].edges == (50.0,)
    plan = sl.Schema((sl.numeric("age", [60]),))
    table = sl.read(
        people, schema=plan, rest=dictionary('[column.age]\nbins = 3\n[column.zip]\nkind = "ignored"\n')
    )
    assert table.schema["age"].edges == (60.0,)
    assert "zip" not in table.schema


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[column.age]\nkindd = 'numeric'", "column 'age': there is no key 'kindd'; did you mean 'kind'?"),
        ("[column.age]\nkind = 'numerical'", "there is no kind 'numerical'; did you mean 'numeric'?"),
        ("[column.joined]\nby = 'months'", "there is no by 'months'; did you mean 'month'?"),
        ("[columns.age]\nkind = 'numeric'", "there is no key 'columns'"),
        ("[column.age]\nbins = '7'", "column 'age': bins: Input should be a valid integer"),
        ("[column.age]\nbins = 1", "`bins` must be a whole number of at least 2"),
        ("[column.age]\nbins = 4\nedges = [3]", "edges and bins exclude each other"),
        ("[column.age]\nkind = 'numeric'\nvalues = ['a']", "it is numeric, so it has no values"),
        ("[column.age]\nkind = 'numeric'\nedges = [3, 2]\nmissing = 'absent'", "strictly increasing"),
        ("[column.size]\nvalues = ['(other)', 'S']", "must be the last"),
        ("[column.size]\nvalues = ['S', '(missing)']", "missing = \"value\" instead"),
        ("column = 3", "there is no key 'column'"),
        ("[column]\nage = 3", "column 'age' must be a table, as [column.age]"),
        ("[column.agee]\nkind = 'numeric'", "describes 'agee', but in"),
        ("= 3", "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_dictionary_is_read_strictly_and_names_what_is_wrong(people: Path, text: str, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        sl.read(people, schema=dictionary(text))
    assert words in str(caught.value)
    assert str(caught.value).startswith("people.schema.toml")


@pytest.mark.parametrize(
    ("version", "words"), [("", "must have `version = 1`"), ("version = 9", "Upgrade Sidelight")]
)
def test_a_dictionary_has_a_version(version: str, words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        sl.sources.Dictionary.from_toml(version)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS.filter(lambda word: word not in ("(other)", "(missing)")),
    "whole": st.integers(-(10**6), 10**6),
    "real": st.floats(-1e9, 1e9),
    "flag": st.booleans(),
    "date": st.dates(),
    "moment": st.datetimes(),
    "time": st.times(),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(2, 40))
    names = draw(st.lists(WORDS, min_size=1, max_size=4, unique_by=str.lower))
    columns = {}
    for name in names:
        values = st.none() | COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))]
        columns[name] = draw(st.lists(values, min_size=rows, max_size=rows))
    return pa.table(columns)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=tables(), few=st.sampled_from([0, 20]), most=st.sampled_from([3, 50]), drop=st.booleans())
def test_a_draft_reads_back_as_the_same_schema(rows: pa.Table, few: int, most: int, drop: bool) -> None:
    try:
        table = sl.read(rows, few=few, max_values=most, missing="drop" if drop else "value")
    except sl.InputError:
        return
    text = sl.sources.Dictionary.draft(table).to_toml()
    again = sl.read(rows, schema=sl.sources.Dictionary.from_toml(text))
    assert again.schema == table.schema
    assert np.array_equal(again.codes(), table.codes())


def test_the_command_shows_the_columns_and_drafts_a_dictionary(people: Path, tmp_path: Path) -> None:
    code, said = run("schema", people)
    assert code == 0
    assert "categorical (a guess)" in said
    assert "identifier (a guess)" in said
    path = tmp_path / "people.schema.toml"
    assert run("schema", people, "-o", path)[0] == 0
    assert run("schema", people, "-o", path) == (
        2, f"{path} is there already, and it would be lost; name another file, or say --force.",
    )  # fmt: skip
    assert run("schema", people, "-o", path, "--force", "--kind", "zip=ignored")[0] == 0
    code, said = run("schema", people, "--schema", path, "--json")
    plain = json.loads(said)
    assert [item["name"] for item in plain["attributes"]] == ["age", "size", "joined"]
    assert plain["attributes"][2]["edges"][0] == "2020-02-01"
    assert {item["name"] for item in plain["set_aside"]} == {"customer_nbr", "zip", "same"}


def test_every_command_that_reads_a_table_takes_kinds_and_a_dictionary(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.schema.toml"
    path.write_text(
        'version = 1\n[column.zip]\nkind = "ignored"\n[column.age]\nkind = "numeric"\nedges = [40]\n'
        '[column.joined]\nby = "quarter"\n'
    )
    stated = ("--schema", path, "--kind", "size=ordinal", "--json")
    reports = tmp_path / "reports.parquet"
    for arguments in (
        ("audit", people, "--save-plan", tmp_path / "plan.toml"),
        ("calibrate", people, "-o", tmp_path / "plan.json"),
        ("advise", people),
        ("collect", people, "-o", reports, "--seed", 1, "--no-shuffle"),
        ("knowledge", people, "--query", "count", "--attributes", "size", "--count", "size=S", "--scale", 1),
        ("learn", people, "--label", "size", "--model", "bayes", "--seed", 1),
    ):
        code, said = run(*arguments, *stated)
        assert code in (0, 1), said
        json.loads(said)
    schema = sl.Plan.read(tmp_path / "plan.toml").schema
    assert schema["size"].kind == "ordinal"
    assert schema["age"].values == ("below 40", "40 or more")
    assert schema["joined"].values[1] == "2020-Q2"
    assert sl.Plan.read(tmp_path / "plan.json").schema == schema
    code, said = run("attack", reports, "--truth", people, "--secret", "age", *stated)
    assert code == 0, said
    code, said = run("audit", people, "--plan", tmp_path / "plan.toml", "--kind", "age=categorical")
    assert (code, "--kind cannot" in said) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kind", "age"], "--kind must be column=kind, got 'age'"),
        (["--kind", "age=number"], "'number'"),
        (["--kind", "agee=numeric"], "did you mean 'age'?"),
        (["--kind", "age=numeric", "--kind", "age=ordinal"], "'age' is given two kinds"),
        (["--kind", "size=date"], "'size'"),
        (["--schema", "missing.toml"], "missing.toml cannot be read"),
        (["--schema", "people.parquet"], "must end in .toml"),
    ],
)
def test_wrong_statements_are_explained(people: Path, options: list[str], words: str) -> None:
    code, said = run("audit", people, *options)
    assert code == 2
    assert words in said


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ('kind = "ordinal"\nvalues = [1.0, 2.0, "(other)"]', "(other)"),
        ('kind = "numeric"\nedges = [5000]', "below 5000"),
    ],
)
def test_a_statement_that_makes_one_value_of_all_records_is_noted(stated: str, value: str) -> None:
    rows = {"x": [1, 2, 3] * 40, "y": list("ab") * 60}
    text = f'version = 1\n[column.x]\n{stated}\nmissing = "absent"\n[column.y]\n'
    table = sl.read(rows, schema=sl.sources.Dictionary.from_toml(text))
    assert f"Column 'x': all records are '{value}'; check what the data dictionary states." in table.notes()


def test_a_draft_by_an_earlier_dictionary_keeps_what_people_wrote(people: Path, tmp_path: Path) -> None:
    text = 'version = 1\nna = ["refused"]\n[column.age]\ndescription = "in years"\n'
    (tmp_path / "a.toml").write_text(text)
    assert run("schema", people, "--schema", tmp_path / "a.toml", "-o", tmp_path / "b.toml")[0] == 0
    again = sl.sources.Dictionary.read(tmp_path / "b.toml")
    assert (again.na, again.columns["age"].description) == (("refused",), "in years")
    assert again.columns["age"].edges
