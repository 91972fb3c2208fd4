"""Commands in a folder with a project file: what they take from it, what wins over it, what they remember."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.cli.from_project import _about_reports
from sidelight.sources.table import write_table

TEXT = """
version = 1
[data]
path = "people.csv"
drop = ["region", "education"]
[secret.diabetes]
[secret.income]
limit = 3
[protect]
limit = 0.5
[release]
epsilon = 0.25
[wanted]
people = 5000
precision = 0.05
"""


@pytest.fixture(scope="module", name="people")
def people_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    write_table(sl.sources.survey(600, seed=1), path)
    return path


@pytest.fixture(autouse=True)
def folder(people: Path, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_bytes(people.read_bytes())
    (tmp_path / "sidelight.toml").write_text(TEXT)
    return tmp_path


def change(*change: str) -> None:
    text = TEXT.replace(*change, 1)
    assert text != TEXT
    Path("sidelight.toml").write_text(text)


def limits(shown: object) -> dict[str, float]:
    return {name: item["limit"] for name, item in json.loads(shown.out)["secrets"].items()}  # type: ignore[attr-defined]


def test_an_audit_takes_table_secrets_limits_and_budget_from_the_project(run) -> None:
    shown = run("audit", "--json")
    assert shown.err == "From sidelight.toml: data, epsilon, mechanism, secret, drop.\n"
    assert limits(shown) == {"diabetes": 0.5, "income": 3}
    plan = json.loads(shown.out)["plan"]
    assert {item["epsilon"] for item in plan} == {0.25}
    assert "region" not in {item["attribute"] for item in plan}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--secret", "income"], {"income": 3}),
        (["--secret", "income=7"], {"income": 7}),
        (["--secret", "smokes"], {"smokes": None}),
        (["--limit", 2], {"diabetes": 2, "income": 2}),
        (["--limit", 2, "--secret", "smokes"], {"smokes": 2}),
    ],
)
def test_what_is_written_wins(run, options: list[object], expected: dict[str, float]) -> None:
    assert limits(run("audit", "--json", *options)) == expected


def test_other_tables_and_options_win_and_no_project_is_none(run) -> None:
    (Path.cwd() / "other.csv").write_bytes(Path("people.csv").read_bytes())
    shown = run("audit", "other.csv", "--epsilon", 0.5, "--json")
    data = json.loads(shown.out)
    assert data["belief"]["source"] == "other.csv"
    assert {item["epsilon"] for item in data["plan"]} == {0.5}
    shown = run("audit", "people.csv", "--no-project", "--json")
    assert (shown.err, len(limits(shown)), set(limits(shown).values())) == ("", 7, {None})
    assert run("audit", "--no-project").code == 2


def test_a_project_elsewhere_is_read_where_it_is_named(run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert "Missing argument" in run("audit").err
    shown = run("audit", "--project", "../sidelight.toml", "--json")
    assert limits(shown) == {"diabetes": 0.5, "income": 3}
    assert "cannot be read" in run("audit", "--project", "none.toml").err


def test_a_plan_that_is_named_is_the_one_that_is_audited(run) -> None:
    table = sl.read("people.csv", drop=["region", "education"])
    sl.Plan.uniform(table.schema, epsilon=0.125).write("mine.toml")
    change("[secret.diabetes]", "bins = 4\n[secret.diabetes]")
    data = json.loads(run("audit", "--plan", "mine.toml", "--json").out)
    assert {item["epsilon"] for item in data["plan"]} == {0.125}


def test_plans_alone_are_compared_on_the_table_of_the_project(run) -> None:
    schema = sl.read("people.csv", drop=["region", "education"]).schema
    for name, epsilon in (("a.toml", 0.125), ("b.toml", 0.5)):
        sl.Plan.uniform(schema, epsilon=epsilon).write(name)
    change("[secret.diabetes]", "bins = 4\n[secret.diabetes]")
    shown = run("audit", "a.toml", "b.toml", "--json")
    assert shown.code in (0, 1), shown.err
    assert "diabetes" in shown.out
    assert "smokes" not in json.loads(run("audit", "a.toml", "--json").out)["secrets"]
    assert run("plan", "diff", "a.toml", "b.toml").code in (0, 1)
    assert run("plan", "check", "a.toml").code in (0, 1)


def test_a_plan_that_the_project_names_is_read_anew_where_it_changed(run) -> None:
    schema = sl.read("people.csv", drop=["region", "education"]).schema
    change("[release]\nepsilon = 0.25", '[release]\nplan = "mine.toml"')
    for epsilon in (0.125, 0.5):
        sl.Plan.uniform(schema, epsilon=epsilon).write("mine.toml")
        data = json.loads(run("audit", "--json").out)
        assert {item["epsilon"] for item in data["plan"]} == {epsilon}


def test_an_audit_is_about_whoever_keeps_what_the_project_says(run) -> None:
    change("limit = 0.5\n", 'limit = 0.5\nadversary = "guess"\n')
    shown = run("audit", "--json")
    assert shown.err.endswith(", adversary.\n")
    written = run("audit", "--no-project", "people.csv", "--drop", "region", "--drop", "education",
                  "--epsilon", 0.25, "--adversary", "guess", "--secret", "income", "--json")  # fmt: skip
    told = [json.loads(item.out)["secrets"]["income"]["total"] for item in (shown, written)]
    assert told[0] == told[1]


def test_mechanisms_of_single_attributes_and_auto_are_audited_as_stated(run) -> None:
    release = '[release]\nmechanism = "auto"\nmechanisms = { age = "oue", smokes = "withheld" }\n#'
    change("[release]", release)
    change_budget = Path("sidelight.toml").read_text().replace("#\nepsilon", "epsilon")
    Path("sidelight.toml").write_text(change_budget)
    shown = run("audit", "--json")
    assert shown.code in (0, 1), shown.err
    plan = {item["attribute"]: item["mechanism"] for item in json.loads(shown.out)["plan"]}
    assert plan["age"] == "oue"
    assert "smokes" not in plan
    assert limits(shown) == {"diabetes": 0.5, "income": 3}


def test_calibrate_takes_people_and_precision_too(run) -> None:
    shown = run("calibrate", "--json", "--uniform")
    data = json.loads(shown.out)
    assert shown.code == 0, shown.err
    assert data["limits"] == {"diabetes": 0.5, "income": 3}
    assert data["reports"] == 5000
    assert data["plan"]["limits"]["smokes"] == "infinity"
    freed = json.loads(run("calibrate", "--json", "--uniform", "--not-secret", "diabetes").out)
    assert freed["limits"] == {"income": 3}


def test_a_worst_case_decider_needs_no_delta_to_calibrate(run) -> None:
    change("[protect]", '[protect]\ndelta = 0.01\ndecide_by = "report"')
    assert run("calibrate", "--uniform", "--json").code == 0


def test_a_real_collection_never_takes_the_seed_of_a_project(run) -> None:
    change("version = 1", "version = 1\nseed = 5")
    refused = run("collect", "-o", "reports.parquet")
    assert (refused.code, "has no plan yet" in refused.err) == (2, True)
    made = json.loads(run("collect", "--protocol", "smp", "-o", "reports.parquet", "--json").out)
    assert made["is_simulation"] is False
    assert made["people"] == 600


def test_other_commands_read_it(run) -> None:
    assert json.loads(run("schema", "--json").out)["rows"] == 600
    assert json.loads(run("advise", "--json").out)["people"] == 5000
    assert run("advise", "--attributes", 3, "--values", 4, "--people", 100).code == 0
    assert run("learn", "--label", "diabetes", "--model", "bayes").code in (0, 1)
    assert run("knowledge", "--attributes", "age,smokes").code == 0


def test_after_a_run_reports_and_plan_are_at_hand(run) -> None:
    change("[release]\nepsilon = 0.25", "[release]\nbudgets = 0.1")
    change_seed = Path("sidelight.toml").read_text().replace("version = 1", "version = 1\nseed = 1", 1)
    Path("sidelight.toml").write_text(change_seed)
    assert run("run").code == 0
    estimated = json.loads(run("estimate", "--json").out)
    assert "error" in json.dumps(estimated)
    attacked = json.loads(run("attack", "--json").out)
    assert "diabetes" in attacked["title"]
    collected = run("collect", "-o", "r.parquet", "--json")
    assert json.loads(collected.out)["is_simulation"] is False
    assert "another limit" not in collected.err
    Path("sidelight.toml").write_text(change_seed.replace("limit = 0.5", "limit = 0.25"))
    assert "made for another limit of diabetes than" in run("collect", "-o", "s.parquet").err
    Path("sidelight.toml").write_text(change_seed)
    assert run("estimate", "r.parquet").code == 0, "of real reports the truth is not known"


def test_an_unchanged_audit_is_remembered_and_loads_nothing_that_computes(run) -> None:
    first = run("audit", "--report", "a.html")
    assert first.code == 1
    page = Path("a.html").read_bytes()
    Path("a.html").unlink()
    second = run("audit", "--report", "a.html")
    assert (second.code, second.out) == (first.code, first.out)
    assert second.err.endswith("Nothing changed since this was computed.\n")
    assert Path("a.html").read_bytes() == page
    script = (
        "import sys; sys.argv = ['sidelight', 'audit']; from sidelight.cli import main\n"
        "try: main()\nexcept SystemExit as end: print(end.code)\n"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'numba', 'scipy', 'jinja2', 'rich.table')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    for _ in range(2):
        shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-2:] == ["1", "[]"]
    assert "Nothing changed" in shown.stderr


def again(run, *options: object) -> bool:
    return "Nothing changed" in run("audit", *options).err


def test_every_change_is_computed_anew(run) -> None:
    run("audit")
    assert again(run)
    assert not again(run, "--json")
    assert not again(run, "--limit", 3)
    change("limit = 0.5", "limit = 0.25")
    assert not again(run)
    Path("sidelight.toml").write_text(TEXT)
    assert again(run)
    people = Path("people.csv").read_text()
    Path("people.csv").write_text(people + people.splitlines()[-1] + "\n")
    assert not again(run)
    for entry in Path("sidelight-report/.sidelight-cache").glob("said-audit-*/entry.json"):
        entry.write_text(entry.read_text().replace("diabetes", "diabetos"))
    assert not again(run), "a damaged memory is not trusted"
    assert again(run)


def test_a_page_of_the_users_own_is_not_replaced_from_memory(run) -> None:
    run("audit", "--report", "a.html")
    Path("a.html").write_text("mine")
    shown = run("audit", "--report", "a.html")
    assert (shown.code, Path("a.html").read_text()) == (2, "mine")


def test_what_is_written_meanwhile_is_not_remembered(run, monkeypatch) -> None:
    before = Path("people.csv").read_text()

    def read(*given: object, **options: object) -> object:
        Path("people.csv").write_text(before + before.splitlines()[-1] + "\n")
        return opened(*given, **options)

    opened = sl.read
    with monkeypatch.context() as patched:
        patched.setattr(sl, "read", read)
        run("audit")
    Path("people.csv").write_text(before)
    assert not again(run)


def test_comments_of_a_plan_are_not_lost_from_memory(run) -> None:
    plan = Path("p.toml")
    run("audit", "--save-plan", plan)
    plan.write_text(plan.read_text().replace("version = ", "# agreed in May\nversion = ", 1))
    run("audit", "--save-plan", plan)
    assert "# agreed in May" in plan.read_text()
    run("audit", "--save-plan", plan)
    assert again(run, "--save-plan", plan)
    assert "# agreed in May" in plan.read_text()


def test_a_stated_plan_is_made_for_the_table_and_the_rules_that_are_written(run) -> None:
    change("[release]", '[release]\nmechanism = "auto"')
    head, *rows = Path("people.csv").read_text().splitlines()
    weighed = [f"{head},weight", *(f"{row},{40 + number % 90}" for number, row in enumerate(rows))]
    Path("others.csv").write_text("\n".join(weighed))
    shown = run("audit", "others.csv", "--drop", "medication", "--drop", "region", "--bins", 3, "--json")
    plan = {item["attribute"]: item for item in json.loads(shown.out)["plan"]}
    assert "medication" not in plan
    assert "education" in plan
    assert plan["weight"]["values"] == 3
    Path("people.csv").write_text("age\n1\n")
    assert run("audit", "others.csv", "--json").code == 1, "the project's own table is not asked"


def test_a_folder_that_cannot_be_written_only_costs_time(run) -> None:
    change("[release]", '[release]\nmechanism = "auto"')
    Path("sidelight-report").write_text("mine")
    assert run("audit").code == 1
    assert not again(run)


def test_the_reports_at_hand_are_of_the_last_run() -> None:
    made = [Path(f"sidelight-report/.sidelight-cache/collection-{name}/simulated.parquet") for name in "ba"]
    for time, path in enumerate(made):
        path.parent.mkdir(parents=True)
        path.write_text("")
        os.utime(path, (time, time))
        os.utime(path.parent, (9 - time, 9 - time))
    assert _about_reports("attack", sl.project.Project.read("sidelight.toml"))["data"] == made[0]


def test_a_bad_project_stops_every_command_with_one_line(run) -> None:
    change("limit = 3", "limit = -3")
    for command in (["audit"], ["calibrate"], ["schema"], ["advise"]):
        shown = run(*command)
        assert (shown.code, shown.err.count("\n")) == (2, 1)
        assert "sidelight.toml: `secret.income.limit` must be" in shown.err
    assert run("audit", "people.csv", "--no-project").code == 0
    assert run("audit", "-h").code == 0
