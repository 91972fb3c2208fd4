"""The command line as a person uses it: what it prints, its exit codes, one line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from conftest import Shown


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    rows = 60
    pq.write_table(
        pa.table(
            {
                "id": [f"p{i}" for i in range(rows)],
                "sex": ["f", "m"] * 30,
                "smokes": ["no", "yes", "no", "no", "yes", "yes"] * 10,
                "same": ["x"] * rows,
                "nothing": pa.array([None] * rows, pa.string()),
            }
        ),
        path,
    )
    return path


def test_help_and_version(run) -> None:
    assert "audit" in run("--help").out
    assert run().out == run("--help").out
    assert run().code == 0
    shown = run("--version")
    assert (shown.code, shown.out) == (0, f"sidelight {sl.__version__}\n")


def test_demo_prints_the_audit_and_writes_the_report(run, tmp_path: Path) -> None:
    shown = run("demo", "--report", tmp_path / "demo.html")
    assert shown.code == 0
    assert "survived" in shown.out
    assert "1.834" in shown.out
    assert "adding the pairs says 1.00000; the truth is 1.43378" in shown.out
    assert (tmp_path / "demo.html").stat().st_size > 1_000_000


def test_audit_says_what_it_set_aside_and_exits_1_over_a_limit(run, table: Path) -> None:
    shown = run("audit", table)
    assert shown.code == 0
    assert "nothing is judged" in shown.out
    assert run("audit", table, "--limit", 1).code == 1
    assert run("audit", table, "--secret", "sex=1", "--secret", "smokes").code == 1
    for words in ("'id' identifies its records", "'same' is constant", "'nothing' has no value", "raw data"):
        assert words in shown.out
    assert run("audit", table, "--limit", 3).code == 0
    assert run("audit", table, "--secret", "sex=3").code == 0


def test_audit_as_json(run, table: Path) -> None:
    shown = run("audit", table, "--secret", "sex", "--epsilon", 0.5, "--withhold", "smokes", "--json")
    data = json.loads(shown.out)
    assert list(data["secrets"]) == ["sex"]
    assert [entry["attribute"] for entry in data["plan"]] == ["sex"]
    assert data["secrets"]["sex"]["total"]["upper"]["value"] == pytest.approx(0.5)
    assert shown.code == 0


def test_a_saved_plan_audits_to_the_same_figures(run, table: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    first = run("audit", table, "--epsilon", 0.7, "--limit", 2, "--save-plan", plan, "--json")
    second = run("audit", table, "--plan", plan, "--json")
    assert json.loads(first.out) == json.loads(second.out)


@pytest.fixture
def planned(tmp_path: Path, table: Path) -> Path:
    """A plan that releases both attributes and lets one of them leak without limit."""
    path = tmp_path / "plan.toml"
    schema = sl.read(str(table)).schema
    sl.Plan.uniform(schema, limit=0.5, limits={"sex": float("inf")}).write(path)
    return path


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ([], {"sex": "infinity", "smokes": 0.5}),
        (["--limit", 0.25], {"sex": 0.25, "smokes": 0.25}),
        (["--limit", 0.25, "--secret", "sex"], {"sex": 0.25}),
        (["--limit", 0.25, "--secret", "sex=9", "--secret", "smokes"], {"sex": 9.0, "smokes": 0.25}),
        (["--secret", "sex=9"], {"sex": 9.0}),
    ],
)
def test_a_given_limit_wins_over_the_plan(
    run, table: Path, planned: Path, options: list[object], limits: dict[str, object]
) -> None:
    shown = run("audit", table, "--plan", planned, "--json", *options)
    data = json.loads(shown.out)
    assert {name: item["limit"] for name, item in data["secrets"].items()} == limits
    assert shown.code == (0 if all(limit in ("infinity", 9.0) for limit in limits.values()) else 1)


def test_a_limit_for_one_secret_leaves_the_others_limits_in_a_saved_plan(
    run, table: Path, planned: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.toml"
    run("audit", table, "--plan", planned, "--limit", 0.25, "--secret", "sex", "--save-plan", saved)
    assert [sl.Plan.read(saved).limit_of(name) for name in ("sex", "smokes")] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bins", 10], "--bins 10 would change nothing: the plan releases every attribute"),
        (["--max-values", 2], "--max-values 2 would change nothing"),
        (["--missing", "value"], "--missing value would change nothing"),
        (["--drop", "sex"], "the plan releases 'sex', so --drop sex cannot leave it out"),
        (["--epsilon", 1], "--epsilon and --plan exclude each other"),
    ],
)
def test_what_a_plan_decides_cannot_be_given_beside_it(
    run, table: Path, planned: Path, options: list[object], words: str
) -> None:
    assert words in refused(run("audit", table, "--plan", planned, *options))


@pytest.mark.parametrize("options", [["--bins", 3], ["--max-values", 2]])
def test_every_command_that_reads_a_plan_refuses_bins_beside_it(
    run, table: Path, planned: Path, tmp_path: Path, options: list[object]
) -> None:
    collect = ("collect", table, "-o", tmp_path / "reports.parquet", "--plan", planned)
    assert "would change nothing" in refused(run(*collect, *options))
    assert run(*collect).code == 0
    assert "would change nothing" in refused(run("calibrate", table, "--plan", planned, *options))


def test_bins_beside_a_plan_are_for_what_it_does_not_release(run, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age\n" + "".join(f"{'fm'[i % 2]},{i % 50 + 0.5}\n" for i in range(200)))
    plan = tmp_path / "plan.toml"
    sl.Plan.uniform(sl.read(str(path), columns=["sex"]).schema).write(plan)
    shown = run("audit", path, "--plan", plan, "--secret", "age", "--bins", 2, "--json")
    assert shown.code == 0
    assert json.loads(shown.out)["secrets"]["age"]["commonest"]["share"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "--epsilon", -1],
        ["audit", "--limit", -1],
        ["audit", "--secret", "sex=-1"],
        ["audit", "--belief", "magic"],
        ["audit", "--method", "tree"],
        ["audit", "--confidence", 3],
        ["audit", "--synergy", -1],
        ["audit", "--smoothing", -1],
        ["calibrate", "--weight", "sex=0"],
        ["calibrate", "--confidence", 3],
        ["calibrate", "--constraint", "robust", "--confidence", 3],
        ["calibrate", "--limit", -1],
        ["calibrate", "--fix", "sex=0"],
        ["calibrate", "--utility", "magic"],
        ["calibrate", "--smoothing", -1],
        ["knowledge", "--scale", 0],
        ["knowledge", "--smoothing", -1],
    ],
    ids=str,
)
def test_plain_numbers_and_choices_are_checked_before_the_table_is_read(
    run, monkeypatch, table: Path, arguments: list[object]
) -> None:
    monkeypatch.setattr(sl, "read", lambda *_, **__: pytest.fail("the table was read"))
    command, *options = arguments
    assert refused(run(command, table, *options)).startswith("error: ")


def test_a_table_in_the_terminal_has_no_minus_zero_and_says_nothing_twice(run, table: Path) -> None:
    def shown(*options: object) -> str:
        return " ".join(run("audit", table, *options).out.split())  # however the lines are wrapped

    withheld = shown("--mechanism", "withheld")
    assert "0.000 s" in withheld
    assert "-0.0" not in withheld + shown("--mechanism", "withheld", "--json")
    assert "(60 records, 2 attributes)" in withheld
    assert "(60 records, 1 attribute)" in shown("--drop", "smokes")
    rare = shown("--min-support", 50, "--secret", "sex")
    assert rare.count("1.000 to 2.000") == 1
    assert rare.count("rests on too few records") == 1


def test_doctor(run) -> None:
    shown = run("doctor")
    assert shown.code == 0
    assert "compiled and right" in shown.out
    findings = json.loads(run("doctor", "--json").out)
    assert {"python", "numpy", "secure randomness"} <= {finding["subject"] for finding in findings}


def test_example_writes_a_table_that_audit_reads(run, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    shown = run("example", "survey", "-o", people, "--rows", 500, "--seed", 2)
    assert (shown.code, shown.out) == (0, f"500 records of 7 attributes are in {people}.\n")
    assert run("audit", people, "--limit", 9).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["surveys", "-o", "people.csv"], "'surveys'"),
        (["titanic", "-o", "people.csv", "--rows", 5], "leave --rows"),
        (["survey", "-o", "people.xlsx"], "people.xlsx must end in .csv or .parquet"),
        (["survey", "-o", "people.csv", "--rows", 1], "at least 2"),
    ],
)
def test_examples_that_are_not_there_get_one_line(run, arguments: list[object], words: str) -> None:
    assert words in refused(run("example", *arguments))


def refused(shown: Shown) -> str:
    assert shown.code == 2, shown.out + shown.err
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1, "bad input gets one line"
    assert shown.out == ""
    return shown.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--secret", "sexx"], "people.parquet: there is no column 'sexx'; did you mean 'sex'?"),
        (["--drop", "agee"], "there is no column 'agee'"),
        (["--secret", "same"], "column 'same' of"),
        (["--secret", "same"], "is constant; leave it out"),
        (["--secret", "nothing"], "has no value at all"),
        (["--secret", "id"], "identifies its records"),
        (["--epsilon", "-1"], "`epsilon` must be a finite number above 0, got -1.0"),
        (["--epsilon", "nan"], "`epsilon` must be a finite number above 0, got nan"),
        (["--epsilon", "ten"], "`--epsilon` must be a number, got 'ten'"),
        (["--bins", "2.5"], "`--bins` must be a whole number, got '2.5'"),
        (["--limit", "-1"], "`limit` must be a number of at least 0"),
        (["--secret", "sex=high"], "the limit of 'sex' must be a number, got 'high'"),
        (["--secret", "sex=-1"], "`limit of sex` must be a number of at least 0"),
        (["--save-plan", "plan.yaml"], "plan.yaml must end in .toml or .json"),
        (["--report", "audit.pdf"], "audit.pdf must end in .html or .htm"),
        (["--mechanism", "magic"], "`mechanism` must be one of"),
        (["--secret", "nope"], "there is no column 'nope'. There are"),
        (["--secret", "sex,smokes"], "there is no column 'sex,smokes'; to name several columns, repeat"),
        (["--drop", "sex,smokes"], "there is no column 'sex,smokes'; to name several columns, repeat"),
        (["--belief", "magic"], "`belief` must be one of"),
        (["--method", "tree"], "`method` must be a bound on the total, got 'tree'. --belief tree shows"),
        (["--adversary", "magic"], "`adversary` must be one of"),
        (["--confidence", "3"], "`confidence` must be a finite number above 0 and below 1"),
        (["--synergy", "-1"], "`--synergy` must be a whole number of at least 0"),
        (["--method", "magic"], "`method` must be one of"),
        (["--missing", "magic"], "`missing` must be one of"),
        (["--bins", "1"], "`bins` must be a whole number of at least 2"),
        (["--smoothing", "-1"], "`smoothing` must be a finite number of at least 0"),
        (["--min-support", "-1"], "`--min-support` must be a whole number"),
        (["--encoding", "klingon"], "`encoding` must be one of"),
        (["--report", "missing/audit.html"], "missing/audit.html cannot be written"),
        (["--plan", "none.toml"], "none.toml cannot be read: No such file"),
        (["--withhold", "sex", "--withhold", "smokes"], "a plan must release at least one attribute"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_options_get_one_line(run, table: Path, options: list[str], words: str) -> None:
    assert words in refused(run("audit", table, *options))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("exact", "needs a joint belief; use --belief joint or --method composition"),
        ("joint generic", "use --belief joint, or --method composition"),
    ],
)
def test_advice_names_options_and_not_arguments(run, tmp_path: Path, method: str, words: str) -> None:
    path = tmp_path / "three.csv"
    path.write_text("a,b,c\n" + "x,p,u\ny,q,v\nx,q,v\ny,p,u\n" * 5)
    assert words in refused(run("audit", path, "--belief", "pairwise", "--method", method))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "there is no file"),
        ("empty.csv", b"", "is empty; it needs a header and at least two rows"),
        ("header.csv", b"a,b\n", "has 0 rows; it needs at least two"),
        ("single.csv", b"a,b\n1,2\n", "has 1 row; it needs at least two"),
        ("corrupt.parquet", b"PAR1" + b"\x00" * 40, "is not a Parquet file, or it is damaged"),
        ("binary.csv", b"a,b\nx,\xff\xfe\xfa\nz,\xe9\nw,\xe9\n", "(for example --encoding latin-1)"),
        ("table.xlsx", b"PK", "is not an Excel workbook"),
    ],
)
def test_bad_files_get_one_line(run, tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    message = refused(run("audit", tmp_path / name))
    assert words in message
    assert name in message


def test_plans_that_do_not_fit_get_one_line(run, table: Path, tmp_path: Path) -> None:
    other = sl.Plan.uniform(sl.sources.admissions().schema)
    other.write(tmp_path / "other.toml")
    message = refused(run("audit", table, "--plan", tmp_path / "other.toml"))
    assert "releases 'department', which is not a column of" in message
    newer = (tmp_path / "other.toml").read_text().replace("version = 3", "version = 9")
    (tmp_path / "newer.toml").write_text(newer)
    assert "version 9; this Sidelight reads up to version 3" in refused(
        run("audit", table, "--plan", tmp_path / "newer.toml")
    )
    assert "exclude each other" in refused(
        run("audit", table, "--plan", tmp_path / "other.toml", "--epsilon", 1)
    )
    narrow = sl.Plan((sl.Release(sl.categorical("smokes", ["no", "maybe"]), "grr", 1.0),))
    narrow.write(tmp_path / "narrow.toml")
    assert "column 'smokes' of" in refused(run("audit", table, "--plan", tmp_path / "narrow.toml"))


def test_an_internal_error_exits_3_and_an_interruption_130(run, monkeypatch, table: Path) -> None:
    monkeypatch.setattr(sl, "read", lambda *_, **__: 1 / 0)
    shown = run("audit", table)
    assert shown.code == 3
    assert "internal error (ZeroDivisionError)" in shown.err
    monkeypatch.setattr(sl, "read", interrupted)
    shown = run("audit", table)
    assert shown.code == 130
    assert shown.err == "interrupted; nothing was left half written.\n"


@pytest.mark.parametrize(
    ("kind", "words"),
    [(RuntimeError, "Query interrupted"), (duckdb.InterruptException, "INTERRUPT Error: Interrupted!")],
)
def test_an_interruption_while_duckdb_works_exits_130(run, monkeypatch, table: Path, kind, words) -> None:
    """Each raises an error of its own: one kept by a mark would keep DuckDB's connection to the end."""

    def query(*_: object) -> None:
        raise kind(words)

    monkeypatch.setattr("sidelight.sources.scans.Scan._kept", query)
    assert run("audit", table).code == 130


@pytest.mark.parametrize(("group", "command"), [("study", "clean"), ("bench", "mechanisms")])
def test_a_group_of_commands_alone_prints_its_help(run, group: str, command: str) -> None:
    shown = run(group)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == run(group, "--help").out
    assert f"\n  {command} " in shown.out


def test_a_guess_or_a_model_decides_the_exit_code_only_if_asked(run, tmp_path: Path) -> None:
    data = tmp_path / "xor.csv"
    data.write_text("a,b,c\n" + "n,n,n\nn,y,y\ny,n,y\ny,y,n\n" * 50)
    audit = ("audit", data, "--mechanism", "oue", "--limit", 0.7, "--adversary", "guess")
    code, out, _ = run(*audit)
    assert code == 1
    for words in (
        "exceeded, for the whole report; within, for a guess",
        "whole report",
        "that decides",
        "keeps one guess from each",
    ):
        assert words in out
    code, out, _ = run(*audit, "--decide-by", "guess", "--json")
    item = json.loads(out)["secrets"]["a"]
    assert (code, item["verdict"], item["within_limit"]) == (0, "within, for a guess", True)
    assert item["verdicts"] == {"report": "exceeded", "guess": "within"}
    assert item["whole_report"]["lower"]["value"] > 0.7
    assert run("audit", data, "--limit", 1.2, "--belief", "tree")[0] == 1
    assert run("audit", data, "--limit", 1.2, "--belief", "tree", "--decide-by", "model")[0] == 0
    assert run("audit", data, "--decide-by", "model")[0] == 2


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_the_installed_command_runs(table: Path) -> None:
    command = Path(sys.executable).parent / "sidelight"
    shown = subprocess.run(
        [command, "audit", table, "--limit", "9"], capture_output=True, text=True, check=True
    )
    assert "within" in shown.stdout
    assert shown.stderr == ""
