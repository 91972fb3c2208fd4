"""Running studies: the cache, several processes, interruptions, the commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sidelight as sl
from sidelight.cli import app
from sidelight.studies.register import find_study, sharing
from sidelight.studies.running import Settings, run_studies
from sidelight.studies.store import default_store, finished, key_of

QUICK = ("pdp-fig2", "pdp-theorem2")
"""Two studies with works of their own, a second each."""


def run(store: Path, *names: str, **options: object) -> list[tuple[str, str]]:
    settings = Settings(store, quick=True, **options)  # type: ignore[arg-type]
    outcomes = run_studies([find_study(name) for name in names], settings)
    return [(outcome.study.name, outcome.state) for outcome in outcomes]


def folder_of(store: Path, name: str) -> Path:
    work = find_study(name).work
    return store / key_of(work, sharing(work), True)


def test_a_second_run_takes_what_is_finished(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    assert sorted(run(store, *QUICK, out=out, workers=2)) == [(name, "computed") for name in QUICK]
    assert (out / "pdp-fig2" / "pdp-fig2.svg").is_file()
    stamp = folder_of(store, "pdp-fig2").stat().st_mtime_ns
    assert run(store, *QUICK, out=tmp_path / "other") == [(name, "cached") for name in QUICK]
    assert (tmp_path / "other" / "pdp-theorem2" / "table.csv").is_file()
    assert folder_of(store, "pdp-fig2").stat().st_mtime_ns == stamp
    assert run(store, "pdp-fig2", fresh=True) == [("pdp-fig2", "computed")]
    assert folder_of(store, "pdp-fig2").stat().st_mtime_ns > stamp


def test_a_torn_or_strange_folder_is_computed_again(tmp_path: Path) -> None:
    run(tmp_path, "pdp-fig2")
    result = folder_of(tmp_path, "pdp-fig2") / "pdp-fig2" / "result.json"
    result.write_text(result.read_text()[:40])
    assert run(tmp_path, "pdp-fig2") == [("pdp-fig2", "computed")]
    assert json.loads(result.read_text())["verdict"] == "reproduced"
    whole = json.loads(result.read_text())
    for strange in ([], whole | {"verdict": "proved"}, whole | {"figures": 3}, {"study": "pdp-fig2"}):
        result.write_text(json.dumps(strange))
        assert not _is_finished(tmp_path, "pdp-fig2"), strange
    result.write_text(json.dumps(whole))
    assert _is_finished(tmp_path, "pdp-fig2")
    (result.parent / "pdp-fig2.png").unlink()
    assert not _is_finished(tmp_path, "pdp-fig2"), "a figure is missing"


def _is_finished(store: Path, name: str) -> bool:
    work = find_study(name).work
    return finished(store, key_of(work, sharing(work), True), sharing(work)) is not None


def test_a_folder_of_the_users_is_never_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "out" / "pdp-fig2"
    mine.mkdir(parents=True)
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(sl.InputError, match="no study left it"):
        run(tmp_path / "store", "pdp-fig2", out=tmp_path / "out")
    assert (mine / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "store").exists(), "it is said before anything is computed"


def test_the_key_holds_all_that_a_result_depends_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    work = find_study("cpl-fig4a").work
    studies = sharing(work)
    keys = {key_of(work, studies, quick) for quick in (True, False)}
    (tmp_path / "adult.parquet").write_bytes(b"one")
    keys.add(key_of(work, studies, True))
    (tmp_path / "adult.parquet").write_bytes(b"other")
    keys.add(key_of(work, studies, True))
    monkeypatch.setattr("sidelight.studies.store.code_version", lambda: "another")
    keys.add(key_of(work, studies, True))
    monkeypatch.setattr("sidelight.studies.store.version", lambda _library: "0.0")
    keys.add(key_of(work, studies, True))
    assert len(keys) == 6


def test_the_cache_follows_the_users_setting(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_store() == tmp_path / "sidelight" / "studies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store() == tmp_path / ".cache" / "sidelight" / "studies"


def test_a_study_that_fails_takes_no_other_with_it(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "cardio.parquet").write_bytes(b"no table")
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    found = run(tmp_path / "store", "cpl-fig4c", "pdp-fig2", workers=2)
    assert sorted(found) == [("cpl-fig4c", "failed"), ("pdp-fig2", "computed")]
    shown = CliRunner().invoke(
        app, ["study", "run", "cpl-fig4c", "--quick", "--store", str(tmp_path / "store")]
    )
    assert shown.exit_code == 3
    assert "cpl-fig4c: failed: " in shown.output


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interruption_keeps_what_is_finished(tmp_path: Path, how: signal.Signals) -> None:
    script = (
        "import sys; from pathlib import Path; from sidelight.studies.register import find_study\n"
        "from sidelight.studies.running import Settings, run_studies\n"
        "studies = [find_study(name) for name in ('pdp-fig2', 'corr-rr-fig4')]\n"
        "for outcome in run_studies(studies, Settings(Path(sys.argv[1]), quick=True, workers=2)):\n"
        "    print(outcome.study.name, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "pdp-fig2"
    os.killpg(process.pid, how)
    assert process.wait(timeout=60) != 0
    process.stdout.close()
    assert _are_gone(str(tmp_path)), "a process was left behind"
    small, large = (find_study(name) for name in ("pdp-fig2", "corr-rr-fig4"))
    assert finished(tmp_path, folder_of(tmp_path, small.name).name, sharing(small.work))
    assert not folder_of(tmp_path, large.name).exists()
    assert run(tmp_path, "pdp-fig2") == [("pdp-fig2", "cached")]


def _are_gone(word: str) -> bool:
    """Whether no process whose command line holds a word is left within ten seconds."""
    for _ in range(100):
        if not any(word in _command(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
            return True
        time.sleep(0.1)
    return False


def _command(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_commands_list_show_and_run(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["study", "list"])
    assert listed.exit_code == 0
    assert "corr-rr-fig14" in listed.output
    assert len(json.loads(runner.invoke(app, ["study", "list", "--json"]).output)) > 50
    shown = runner.invoke(app, ["study", "show", "cpl-table3"])
    assert "0.6203" in shown.output
    assert "no paper publishes it" in runner.invoke(app, ["study", "show", "leakage-cost"]).output
    arguments = ["study", "run", "pdp-fig2", "--quick", "--store", str(tmp_path / "store")]
    first = runner.invoke(app, arguments)
    assert first.exit_code == 0
    assert first.output.startswith("pdp-fig2: reproduced: ")
    assert "finished before" in runner.invoke(app, arguments).output
    told = json.loads(runner.invoke(app, [*arguments, "--json", "--out", str(tmp_path / "out")]).output)
    assert told[0]["state"] == "cached"
    assert told[0]["published"].keys() == told[0]["ours"].keys()
    assert (tmp_path / "out" / "pdp-fig2" / "pdp-fig2.png").is_file()


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments, words in [
        (["study", "run", "cpl-fig99"], "there is no study 'cpl-fig99'"),
        (["study", "show", "all"], "there is no study 'all'"),
        (["study", "run", "pdp-fig2", "--workers", "0"], "`workers` must be a whole number of at least 1"),
        (["study", "run", "pdp-fig2", "--pages", str(tmp_path)], "run all --out"),
        (["study", "run", "pdp-fig2", "--out", __file__], "`out` must be a folder"),
        (["study", "run", "pdp-fig2", "--store", __file__], "`store` must be a folder"),
    ]:
        error = runner.invoke(app, arguments).exception
        assert isinstance(error, sl.InputError)
        assert words in str(error)
