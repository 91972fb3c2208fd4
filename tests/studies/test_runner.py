"""Running studies: the cache, several processes, interruptions, the commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sidelight as sl
from conftest import AT_MOST, usual_signals
from sidelight.cli import app
from sidelight.foundation.fingerprint import library_versions
from sidelight.studies.cache import (
    USED,
    Cleaned,
    clean,
    clean_after_run,
    default_store,
    finished,
    key_of,
    last_used,
)
from sidelight.studies.register import find_study
from sidelight.studies.runner import Settings, run_studies

QUICK = ("pdp-fig2", "pdp-theorem2")
"""Two studies with works of their own, a second each."""


def run(store: Path, *names: str, **options: object) -> list[tuple[str, str]]:
    settings = Settings(store, quick=True, **options)  # type: ignore[arg-type]
    outcomes = run_studies([find_study(name) for name in names], settings)
    return [(outcome.study.name, outcome.state) for outcome in outcomes]


def folder_of(store: Path, name: str) -> Path:
    work = find_study(name).work
    return store / key_of(work, True)


@pytest.fixture(scope="module", name="computed")
def computed_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds both."""
    store = tmp_path_factory.mktemp("computed")
    assert sorted(run(store, *QUICK, workers=2)) == [(name, "computed") for name in QUICK]
    return store


@pytest.fixture
def holding_one(computed: Path, tmp_path: Path) -> Path:
    """A cache of the test's own that holds the first."""
    shutil.copytree(folder_of(computed, QUICK[0]), folder_of(tmp_path, QUICK[0]))
    return tmp_path


def test_a_second_run_takes_what_is_finished(computed: Path, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    shutil.copytree(computed, store)
    stamp = folder_of(store, "pdp-fig2").stat().st_mtime_ns
    assert run(store, *QUICK, out=tmp_path / "other") == [(name, "cached") for name in QUICK]
    assert (tmp_path / "other" / "pdp-theorem2" / "table.csv").is_file()
    assert folder_of(store, "pdp-fig2").stat().st_mtime_ns == stamp
    assert run(store, "pdp-fig2", fresh=True, out=out) == [("pdp-fig2", "computed")]
    assert (out / "pdp-fig2" / "pdp-fig2.svg").is_file()
    assert folder_of(store, "pdp-fig2").stat().st_mtime_ns > stamp


@pytest.mark.parametrize("option", ["store", "out"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("in the way")
    bad = str(tmp_path / "file" / "below")
    folders = {"store": str(tmp_path / "store")} | {option: bad}
    words = [word for name, folder in folders.items() for word in (f"--{name}", folder)]
    shown = CliRunner().invoke(app, ["study", "run", "pdp-fig2", "--quick", *words])
    assert isinstance(shown.exception, sl.InputError)
    assert f"`{option}` must be a folder that can be written, got '{bad}'." in str(shown.exception)
    assert not list(tmp_path.glob("store/pdp-*"))


def test_a_torn_or_strange_folder_is_computed_again(holding_one: Path) -> None:
    result = folder_of(holding_one, "pdp-fig2") / "pdp-fig2" / "result.json"
    result.write_text(result.read_text()[:40])
    assert run(holding_one, "pdp-fig2") == [("pdp-fig2", "computed")]
    assert json.loads(result.read_text())["verdict"] == "reproduced"
    whole = json.loads(result.read_text())
    for strange in ([], whole | {"verdict": "proved"}, whole | {"figures": 3}, {"study": "pdp-fig2"}):
        result.write_text(json.dumps(strange))
        assert not _is_finished(holding_one, "pdp-fig2"), strange
    result.write_text(json.dumps(whole))
    assert _is_finished(holding_one, "pdp-fig2")
    (result.parent / "pdp-fig2.png").unlink()
    assert not _is_finished(holding_one, "pdp-fig2"), "a figure is missing"


def _is_finished(store: Path, name: str) -> bool:
    work = find_study(name).work
    return finished(store, work, True) is not None


def test_a_folder_of_the_users_is_never_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "out" / "pdp-fig2"
    mine.mkdir(parents=True)
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(sl.InputError, match="no study left it"):
        run(tmp_path / "store", "pdp-fig2", out=tmp_path / "out")
    assert (mine / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "store").exists(), "it is said before anything is computed"


def test_the_key_holds_all_that_a_result_depends_on(tmp_path: Path, monkeypatch, request) -> None:
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    work = find_study("cpl-fig4a").work
    keys = {key_of(work, quick) for quick in (True, False)}
    (tmp_path / "adult.parquet").write_bytes(b"one")
    keys.add(key_of(work, True))
    (tmp_path / "adult.parquet").write_bytes(b"other")
    keys.add(key_of(work, True))
    monkeypatch.setattr("sidelight.studies.cache.code_version", lambda: "another")
    keys.add(key_of(work, True))
    monkeypatch.setattr("sidelight.foundation.fingerprint.version", lambda _library: "0.0")
    library_versions.cache_clear()
    request.addfinalizer(library_versions.cache_clear)
    keys.add(key_of(work, True))
    assert len(keys) == 6


def test_the_cache_follows_the_users_setting(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_store() == tmp_path / "sidelight" / "studies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store() == tmp_path / ".cache" / "sidelight" / "studies"


def test_a_counter_example_has_a_line_of_its_own(tmp_path: Path) -> None:
    command = ["study", "run", "reconstruction-theorem2", "--quick", "--store", str(tmp_path / "store")]
    shown = CliRunner().invoke(app, command).output.splitlines()
    assert [line.strip().partition(":")[0] for line in shown] == [
        "reconstruction-theorem2",
        "counter-example",
    ]


def test_a_study_that_fails_takes_no_other_with_it(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "cardio.parquet").write_bytes(b"no table")
    monkeypatch.setenv("SIDELIGHT_DATA", str(tmp_path))
    found = run(tmp_path / "store", "cpl-fig4c", "pdp-fig2")  # short ones, which share a process at first
    assert sorted(found) == [("cpl-fig4c", "failed"), ("pdp-fig2", "computed")]
    shown = CliRunner().invoke(
        app, ["study", "run", "cpl-fig4c", "--quick", "--store", str(tmp_path / "store")]
    )
    assert shown.exit_code == 2
    assert "cpl-fig4c: failed: " in shown.output


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interruption_keeps_what_is_finished(tmp_path: Path, how: signal.Signals) -> None:
    script = (
        "import sys; from pathlib import Path; from sidelight.studies.register import find_study\n"
        "from sidelight.studies.runner import Settings, run_studies\n"
        "studies = [find_study(name) for name in ('pdp-fig2', 'corr-rr-fig4')]\n"
        "for outcome in run_studies(studies, Settings(Path(sys.argv[1]), quick=True, workers=2)):\n"
        "    print(outcome.study.name, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        preexec_fn=usual_signals,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "pdp-fig2"
            os.killpg(process.pid, how)
            assert process.wait(AT_MOST) != 0
        finally:
            process.kill()
    assert _are_gone(str(tmp_path)), "a process was left behind"
    small, large = (find_study(name) for name in ("pdp-fig2", "corr-rr-fig4"))
    assert finished(tmp_path, small.work, True)
    assert not folder_of(tmp_path, large.name).exists()
    assert run(tmp_path, "pdp-fig2") == [("pdp-fig2", "cached")]


def _are_gone(word: str) -> bool:
    """Wait until no process whose command line holds a word is left; return whether that came about."""
    for _ in range(10 * AT_MOST):
        if not any(word in _command(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
            return True
        time.sleep(0.1)
    return False


def _command(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


# what is removed from the cache


def pretend(store: Path, digit: str, days: float, *, quick: str = "quick") -> Path:
    """Put a copy of a finished work under another key, used so many days ago."""
    folder = store / f"pdp-examples-{quick}-{digit * 16}"
    shutil.copytree(folder_of(store, "pdp-fig2"), folder)
    age(folder, days)
    return folder


def age(folder: Path, days: float) -> None:
    then = time.time() - 86_400 * days
    os.utime(folder / USED, (then, then))


def test_a_run_that_computes_removes_what_nobody_has_used_for_a_month(holding_one: Path) -> None:
    recent = pretend(holding_one, "b", 29)
    renamed = pretend(holding_one, "a", 31).rename(holding_one / f"gone-full-{'c' * 16}")
    age(folder_of(holding_one, "pdp-fig2"), 400)
    (holding_one / ".work-killed").mkdir()
    os.utime(holding_one / ".work-killed", (0, 0))
    (holding_one / ".work-running").mkdir()
    assert run(holding_one, "pdp-theorem2") == [("pdp-theorem2", "computed")]
    assert not renamed.exists(), "of a study that exists no longer, unused for 31 days"
    assert recent.is_dir(), "another checkout may take it"
    assert folder_of(holding_one, "pdp-fig2").is_dir(), "this version takes it, however old it is"
    assert [path.name for path in holding_one.glob(".work-*")] == [".work-running"]


def test_taking_a_finished_work_is_a_use_and_removes_nothing(holding_one: Path) -> None:
    old = pretend(holding_one, "a", 31)
    age(folder_of(holding_one, "pdp-fig2"), 31)
    assert run(holding_one, "pdp-fig2") == [("pdp-fig2", "cached")]
    assert time.time() - last_used(folder_of(holding_one, "pdp-fig2")) < 3600
    assert old.is_dir()
    (old / USED).unlink()
    os.utime(old, (1_000_000, 1_000_000))
    assert last_used(old) == 1_000_000, "a cache of a version that wrote no such mark"


def test_nothing_is_removed_while_a_run_holds_the_cache(computed: Path, tmp_path: Path) -> None:
    shutil.copytree(computed, tmp_path, dirs_exist_ok=True)
    old = pretend(tmp_path, "a", 31)
    freed = size(old)
    running = run_studies([find_study(name) for name in QUICK], Settings(tmp_path, quick=True))
    next(running)
    with pytest.raises(sl.InputError, match="in use by a run of studies; clean it when that has ended"):
        clean(tmp_path)
    assert run(tmp_path, "pdp-fig2", fresh=True) == [("pdp-fig2", "computed")], "two runs may hold it"
    assert old.is_dir(), "the second run removes nothing while the first one holds it"
    assert [outcome.state for outcome in running] == ["cached"]
    assert clean(tmp_path) == Cleaned(1, freed, 2)
    assert not old.exists()


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_cache_that_cannot_be_written_is_still_taken(holding_one: Path, monkeypatch) -> None:
    whole = Path.open

    def refuse(path: Path, *arguments: object, **further: object) -> object:
        if path.parent == holding_one or path.name == USED:
            raise PermissionError(13, "read only")
        return whole(path, *arguments, **further)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "touch", refuse)
    assert run(holding_one, "pdp-fig2") == [("pdp-fig2", "cached")]
    with pytest.raises(sl.InputError, match="cannot be cleaned: read only"):
        clean(holding_one)
    assert clean_after_run(holding_one) == Cleaned()


def test_the_command_says_what_it_removed_and_spares_what_is_not_ours(holding_one: Path) -> None:
    runner = CliRunner()
    for digit, days in (("a", 2), ("b", 31)):
        pretend(holding_one, digit, days, quick="full")
    mine = holding_one / f"pdp-examples-full-{'d' * 16}"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    command = ["study", "clean", "--store", str(holding_one)]
    bytes_of_one = size(folder_of(holding_one, "pdp-fig2"))
    told = json.loads(runner.invoke(app, [*command, "--days", "30", "--json"]).output)
    assert told == {"store": str(holding_one), "removed": 1, "freed": bytes_of_one, "kept": 2}
    shown = runner.invoke(app, command).output
    assert shown == f"1 finished works removed, {bytes_of_one:,} bytes; 1 kept in {holding_one}.\n"
    assert "0 finished works removed, 0 bytes; 1 kept" in runner.invoke(app, command).output
    assert "1 finished works removed" in runner.invoke(app, [*command, "--all"]).output
    assert (mine / "notes.txt").read_text() == "mine"
    nowhere = ["study", "clean", "--store", str(holding_one / "nowhere")]
    assert "0 finished works removed" in runner.invoke(app, nowhere).output
    assert not (holding_one / "nowhere").exists()


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
        (["study", "clean", "--store", __file__], "`store` must be a folder"),
        (["study", "clean", "--days", "-1"], "`days` must be a finite number of at least 0"),
    ]:
        error = runner.invoke(app, arguments).exception
        assert isinstance(error, sl.InputError)
        assert words in str(error)
