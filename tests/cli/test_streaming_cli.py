"""`collect --batches` and `estimate --follow`, as a user runs them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from conftest import AT_MOST, usual_signals
from sidelight.cli.follow import stopping
from sidelight.transport import Follower, read_checkpoint, write_batches

PROGRAM = [sys.executable, "-c", "from sidelight.cli import main; main()"]


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    sex = rng.integers(0, 2, 1200)
    columns = {"sex": np.array(["f", "m"])[sex], "job": np.array(list("abcd"))[rng.integers(0, 2 + 2 * sex)]}
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


@pytest.fixture
def folder(run, people: Path, tmp_path: Path) -> Path:
    assert run("collect", people, "-o", "in", "--batches", 6, "--seed", 1)[0] == 0
    return tmp_path / "in"


def test_batches_are_collected_and_followed(run, folder: Path, people: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 6
    ids = {json.loads(pq.read_schema(folder / name).metadata[b"sidelight.batch"])["id"] for name in names}
    assert len(ids) == 6
    code, out, err = run("estimate", "--follow", "in", "--once", "--truth", people, "--report", "r.html")
    assert code == 0
    assert "6 batches, 1200 reports, 0 files refused" in out
    assert "Measured against the truth" in out
    assert "protects nobody" in out
    assert "in/checkpoint.json holds 6 batches, 1200 reports" in err
    assert Path("r.html").stat().st_size > 1000
    code, out, err = run("estimate", *(folder / name for name in names), "--json")
    at_once = json.loads(out)
    followed = json.loads(run("estimate", "--follow", "in", "--once", "--json")[1])
    assert followed["found"] == at_once
    del followed["found"]
    assert followed == {"batches": 6, "people": 1200, "refused": [], "left": 0}
    assert json.loads(run("estimate", "in/checkpoint.json", "--json")[1]) == at_once
    run("collect", people, "-o", "in", "--batches", 2, "--seed", 2, "--append")
    assert json.loads(run("estimate", "--follow", "in", "--once", "--json")[1])["people"] == 2400


def test_a_second_run_mixes_nobody_s_reports_unless_told_to(run, folder: Path, people: Path) -> None:
    before = sorted(folder.iterdir())
    code, _, err = run("collect", people, "-o", "in", "--batches", 2)
    assert code == 2
    assert "spend their budget twice" in err
    assert "(--append)" in err
    assert sorted(folder.iterdir()) == before
    with pytest.raises(sl.InputError, match="holds 6 report files already"):
        write_batches(sl.read_reports(before[0]), folder, 1)
    (folder.parent / "notes").mkdir()
    (folder.parent / "notes" / "read.txt").write_text("other files do not matter")
    assert run("collect", people, "-o", "notes", "--batches", 2)[0] == 0
    assert run("collect", people, "-o", "in", "--batches", 2, "--append")[0] == 0
    assert len(list(folder.iterdir())) == 8


def test_refused_files_are_told_by_name_each_time(run, folder: Path) -> None:
    whole = sorted(folder.iterdir())[0]
    shutil.copy(whole, folder / "copy.parquet")
    (folder / "cut.parquet").write_bytes(whole.read_bytes()[:500])
    (folder / "\x1b[31mred.parquet").write_bytes(b"")
    code, out, err = run("estimate", "--follow", "in", "--once")
    assert code == 0
    assert "6 batches, 1200 reports, 2 files refused" in out
    assert "refused: cut.parquet is not a Parquet file" in err
    assert "copy.parquet holds a batch that is counted already" in err
    assert "\x1b" not in err
    code, out, err = run("estimate", "--follow", "in", "--once", "--json")
    assert "refused: cut.parquet" in err
    assert {item["file"] for item in json.loads(out)["refused"]} == {"cut.parquet", "\x1b[31mred.parquet"}


def test_an_empty_folder_and_a_missing_phase_are_waited_for(run, people: Path) -> None:
    Path("in").mkdir()
    code, out, _ = run("estimate", "--follow", "in", "--idle", 0, "--every", 0.01)
    assert (code, out.splitlines()[0]) == (0, "No estimates yet: there are no reports to estimate from.")
    options = ["--epsilon", 3, "--share", 0.3, "--seed", 2]
    run("collect", people, "-o", "first", "--batches", 2, "--protocol", "corr-rr", *options)
    run("estimate", *Path("first").iterdir(), "--learn", "parameters.toml")
    run("collect", people, "-o", "in", "--batches", 2, "--parameters", "parameters.toml", "--seed", 3)
    follow = ["estimate", "--follow", "in", "--once", "--expect", "parameters.toml"]
    assert "No estimates yet: these are reports of the second phase" in run(*follow)[1]
    for path in Path("first").iterdir():
        shutil.copy(path, "in")
    found = json.loads(run(*follow, "--json")[1])
    assert (found["people"], found["found"]["protocol"]) == (1200, "corr-rr")
    assert found["found"] == json.loads(run("estimate", *Path("in").glob("*.parquet"), "--json")[1])


def test_checkpoints_are_merged_unless_they_overlap(run, folder: Path) -> None:
    Path("other").mkdir()
    for path in sorted(folder.glob("*.parquet"))[:2]:
        shutil.move(path, "other")
    run("estimate", "--follow", "in", "--once", "--checkpoint", "a.json")
    run("estimate", "--follow", "other", "--once", "--checkpoint", "b.json")
    code, out, _ = run("estimate", "a.json", "b.json", "--checkpoint", "both.json", "--json")
    assert (code, json.loads(out)["people"]) == (0, 1200)
    assert len(read_checkpoint("both.json")[0].batches) == 6
    code, _, err = run("estimate", "a.json", "both.json")
    assert code == 2
    assert "both aggregators took the batches" in err
    code, _, err = run("estimate", "a.json", "--checkpoint", "b.json")
    assert (code, "b.json holds 2 batches that are not in the files named" in err) == (2, True)
    assert len(read_checkpoint("b.json")[0].batches) == 2
    files = read_checkpoint("b.json")[1]
    assert run("estimate", "a.json", "b.json", "--checkpoint", "b.json")[0] == 0
    aggregator, kept = read_checkpoint("b.json")
    assert (len(aggregator.batches), kept) == (6, files)
    with Follower("in", "a.json"):
        code, _, err = run("estimate", "b.json", "--checkpoint", "a.json")
    assert (code, "in use by another process" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["estimate"], "name report files, or a folder with --follow"),
        (["estimate", "x.parquet", "--follow", "in"], "exclude each other"),
        (["estimate", "x.parquet", "c.json"], "name one kind"),
        (["estimate", "x.parquet", "--once"], "--once goes with --follow"),
        (["estimate", "x.parquet", "--checkpoint", "c.json"], "--checkpoint goes with --follow"),
        (["estimate", "--follow", "in", "--learn", "p.toml"], "--learn needs the reports themselves"),
        (["estimate", "--follow", "none"], "there is no folder none"),
        (["estimate", "--follow", "people.parquet"], "people.parquet is a file, not a folder"),
        (["estimate", "in"], "in is a folder; name it with --follow"),
        (["estimate", "in/x.parquet", "--every", "3"], "--every goes with --follow"),
        (["estimate", "--follow", "in", "--every", "0"], "`every` must be"),
        (["estimate", "--follow", "in", "--checkpoint", "c.txt"], "must end in .json"),
        (["estimate", "--follow", "in", "--once", "--estimator", "em"], "'em' needs the reports themselves"),
        (["estimate", "--follow", "in", "--expect", "none.toml"], "none.toml cannot be read"),
        (["collect", "people.parquet", "-o", "in", "--batches", "0"], "`batches` must be"),
        (["collect", "people.parquet", "-o", "in", "--batches", "2"], "in holds 6 report files already"),
        (["collect", "people.parquet", "-o", "r.parquet", "--append"], "--append goes with --batches"),
        (["collect", "people.parquet", "-o", "people.parquet", "--batches", "2"], "is never written over"),
        (["collect", "people.parquet", "-o", "none/in", "--batches", "2"], "cannot be made"),
    ],
)
def test_bad_requests_get_one_line(run, folder: Path, arguments: list[str], words: str) -> None:
    assert folder.is_dir()
    code, _, err = run(*arguments)
    assert (code, words in err) == (2, True), err
    assert len([line for line in err.splitlines() if line.startswith("error:")]) == 1


def test_a_truncated_checkpoint_stops_the_command(run, folder: Path) -> None:
    run("estimate", "--follow", "in", "--once")
    path = folder / "checkpoint.json"
    path.write_text(path.read_text()[:-50])
    code, _, err = run("estimate", "--follow", "in", "--once")
    assert code == 2
    assert "checkpoint.json" in err
    assert "damaged" in err


def test_only_an_expected_plan_is_taken(run, folder: Path, people: Path) -> None:
    sl.Plan.uniform(sl.read(str(people)).schema, "oue", 0.5).write("plan.toml")
    planned = ("--plan", "plan.toml", "--save-protocol", "p.json")
    run("collect", people, "-o", "in", "--batches", 1, "--append", *planned)
    for name in ("plan.toml", "p.json"):
        shutil.rmtree("state", ignore_errors=True)
        Path("state").mkdir()
        code, out, err = run(
            "estimate", "--follow", "in", "--once", "--expect", name, "--checkpoint", "state/c.json"
        )
        assert code == 0
        assert "1 batches, 1200 reports, 6 files refused" in out
        assert err.count("refused: ") == 6
    assert folder.is_dir()


def test_an_infinite_budget_is_written_in_words(run, people: Path) -> None:
    code, out, _ = run(
        "collect",
        people,
        "-o",
        "in",
        "--batches",
        2,
        "--protocol",
        "smp",
        "--mechanism",
        "identity",
        "--json",
    )
    assert (code, json.loads(out)["epsilon"]) == (0, "infinity")
    code, out, _ = run("estimate", "--follow", "in", "--once", "--truth", people, "--json")
    assert (code, json.loads(out)["found"]["epsilon"]) == (0, "infinity")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_interruption_asks_and_a_second_one_ends_it(number: int) -> None:
    former = signal.getsignal(number)
    at_once = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    with stopping() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        assert {other: signal.getsignal(other) for other in at_once} == at_once
    assert signal.getsignal(number) == former


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_a_valid_checkpoint(folder: Path, tmp_path: Path, number: int) -> None:
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    for path in sorted(folder.glob("*.parquet"))[3:]:
        shutil.move(path, waiting)
    command = [*PROGRAM, "estimate", "--follow", str(folder), "--json", "--every", "0.05"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=usual_signals
    ) as process:
        assert json.loads(process.stdout.readline())["batches"] == 3
        for path in sorted(waiting.iterdir()):
            partial = folder / f"{path.name}.part"
            shutil.copy(path, partial)
            time.sleep(0.15)
            partial.rename(folder / path.name)
        batches = 0
        while batches < 6:
            batches = json.loads(process.stdout.readline())["batches"]
        process.send_signal(number)
        _, err = process.communicate(timeout=AT_MOST)
        assert process.returncode == 0
    assert "holds 6 batches, 1200 reports" in err
    aggregator, seen = read_checkpoint(folder / "checkpoint.json")
    assert (aggregator.people, len(seen)) == (1200, 6)
    left = {path.name for path in folder.iterdir() if path.suffix != ".parquet"}
    assert left == {"checkpoint.json", ".checkpoint.json.lock"}
