"""Checkpoints of streaming collection: strict, exact, and whole after a crash or a kill at any moment."""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.transport import Aggregator, Follower, Pace, read_checkpoint, write_checkpoint
from streamed import files, folder_fixture, reports_fixture, same_sums

__all__ = ["folder_fixture", "reports_fixture"]


def changed_state(path: Path, change) -> None:
    """Change a checkpoint's state and give it the right checksum again."""
    from sidelight.transport.checkpoint import checksum_of, state_text

    data = json.loads(path.read_text())
    change(data["state"])
    path.write_text(json.dumps(data | {"checksum": checksum_of(state_text(data["state"]))}))


def first_sums(state: dict) -> dict:
    return next(iter(state["sums"].values()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(extra=1), "extra"),
        (lambda s: s["batches"].popitem(), "their batches 800"),
        (lambda s: s["batches"].update({"a b": next(iter(s["batches"].values()))}), "`batch` must be"),
        (lambda s: next(iter(s["batches"].values())).update(people=-1), "greater than or equal to 0"),
        (lambda s: next(iter(s["batches"].values())).update(people=True), "valid integer"),
        (lambda s: next(iter(s["batches"].values())).update(protocol="0" * 24), "a protocol without sums"),
        (
            lambda s: next(iter(s["files"].values())).update(batch="x"),
            "the batch 'x', which is not",
        ),
        (lambda s: first_sums(s)["parts"][0].update(sums=[1, 2]), "do not have the protocol's shape"),
        (lambda s: first_sums(s)["parts"][0].update(sums=[1, 2, 2**63]), "do not fit into 64 bits"),
        (lambda s: first_sums(s)["parts"][0].update(sums=[1, 2, 0.5]), "valid integer"),
        (lambda s: first_sums(s)["parts"][0].update(sums=[-500, 2, 9]), "are not counts of"),
        (lambda s: first_sums(s)["parts"][0].update(sums=[901, 2, 9]), "are not counts of"),
        (lambda s: first_sums(s).update(people=2**63), "less than 9223372036854775808"),
        (lambda s: first_sums(s)["parts"][0].update(reports=3), "are not those of 900 people"),
        (lambda s: first_sums(s)["parts"].pop(), "do not have the protocol's shape"),
        (lambda s: first_sums(s)["protocol"]["unit"][0].update(epsilon=9.0), "was changed after"),
        (lambda s: first_sums(s)["protocol"].update(protocol="magic"), "protocol"),
    ],
)
def test_checkpoints_that_contradict_themselves_are_refused(change, words: str, folder: Path) -> None:
    with Follower(folder) as follower:
        follower.scan()
    changed_state(follower.path, change)
    with pytest.raises(sl.InputError) as caught:
        read_checkpoint(follower.path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(follower.path))


def test_damaged_checkpoints_get_a_clear_error(folder: Path, tmp_path: Path) -> None:
    with Follower(folder) as follower:
        follower.scan()
    text = follower.path.read_text()
    for length in (0, 1, 40, len(text) // 2, len(text) - 2):
        follower.path.write_text(text[:length])
        with pytest.raises(sl.InputError, match="checkpoint.json.* is damaged; take an older one"):
            Follower(folder)
    for damaged, words in (
        (text.replace('"people": 100', '"people": 101', 1), "its checksum is wrong"),
        (text.replace('"people": 100', '"people": 1e999', 1), "its checksum is wrong"),
        (text.replace('"version": 1', '"version": 2', 1), "checkpoint of version 2"),
        (text.replace('"version": 1', '"version": 1, "version": 1', 1), "given twice"),
        ("[]", "must hold a table"),
        ("{}", "is no checkpoint"),
    ):
        follower.path.write_text(damaged)
        with pytest.raises(sl.InputError, match=words):
            Follower(folder)
    follower.path.write_bytes(b"\xff\xfe")
    with pytest.raises(sl.InputError, match="not UTF-8"):
        Follower(folder)
    with pytest.raises(sl.InputError, match="must end in .json"):
        write_checkpoint(Aggregator(), tmp_path / "state.pickle")
    with pytest.raises(sl.InputError, match="cannot be read"):
        read_checkpoint(tmp_path / "none.json")
    follower.path.write_text(text)
    with Follower(folder) as again:
        assert again.aggregator.people == 900


def test_one_process_at_a_time_keeps_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    with Follower(folder), pytest.raises(sl.InputError, match="in use by another process"):
        Follower(folder)
    with Follower(folder), Follower(folder, tmp_path / "other.json") as other:
        assert len(other.scan().taken) == 9
    with pytest.raises(sl.InputError, match="there is no folder"):
        Follower(tmp_path / "none")
    with pytest.raises(sl.InputError, match="cannot be written: No such file"):
        Follower(folder, tmp_path / "none" / "state.json")


def test_a_checkpoint_behind_a_link_is_the_one_that_is_kept(folder: Path, tmp_path: Path) -> None:
    link, real = tmp_path / "link.json", tmp_path / "state" / "real.json"
    real.parent.mkdir()
    link.symlink_to(real)
    with Follower(folder, link) as follower, pytest.raises(sl.InputError, match="in use by another process"):
        Follower(folder, real)
    with Follower(folder, link) as follower:
        follower.scan()
    assert link.is_symlink()
    assert read_checkpoint(real)[0].people == 900


def test_leftovers_are_removed_and_never_in_the_way(folder: Path) -> None:
    (folder / ".checkpoint.json.abcd_123").write_text("half")
    (folder / ".checkpoint.json.abcdefgh.json").write_text("not one of ours")
    with Follower(folder):
        pass
    assert sorted(path.name for path in folder.glob(".*")) == [
        ".checkpoint.json.abcdefgh.json", ".checkpoint.json.lock",
    ]  # fmt: skip
    (folder / ".checkpoint.json.abcdefgh").mkdir()
    with Follower(folder) as follower:
        assert len(follower.scan().taken) == 9


@pytest.mark.parametrize(
    ("number", "is_fine"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)]
)
def test_a_file_system_may_have_no_durable_folders(
    folder: Path, monkeypatch, number: int, is_fine: bool
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    expected = nullcontext() if is_fine else pytest.raises(sl.InputError, match="cannot be written: Input")
    with expected, Follower(folder) as follower:
        follower.scan()
    assert read_checkpoint(folder / "checkpoint.json")[0].people == 900


def test_what_cannot_be_locked_is_not_said_to_be_in_use(folder: Path, monkeypatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(sl.InputError, match="cannot be locked: No locks available; keep it where"):
        Follower(folder)


def test_checkpoints_keep_their_pace(folder: Path, monkeypatch) -> None:
    written = []
    from sidelight.transport import folder as following

    def write(aggregator, path, files):
        written.append(len(aggregator.batches))
        return write_checkpoint(aggregator, path, files)

    monkeypatch.setattr(following, "write_checkpoint", write)
    with Follower(folder, pace=Pace(batches=4, seconds=1e9, share=1.0)) as follower:
        follower.scan()
    assert written == [4, 8, 9]
    follower.path.unlink()
    written.clear()
    with Follower(folder, pace=Pace(batches=1, seconds=1e9, share=1e-9)) as follower:
        follower.scan()
        assert written == [1]
    assert written == [1, 9]
    with Follower(folder) as follower:
        follower.scan()
    assert written == [1, 9]


def test_a_full_disk_leaves_the_last_checkpoint(folder: Path, monkeypatch) -> None:
    with Follower(folder) as follower:
        follower.scan()
    kept = follower.path.read_bytes()
    files(folder)[0].unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(sl.InputError, match="cannot be written: No space left"), Follower(folder) as follower:
        follower.scan()
    assert follower.path.read_bytes() == kept
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == {".checkpoint.json.lock"}


class Crash(BaseException):
    """The process dies here."""


def crash_at(line: int):
    """Return a trace that raises at the so-many-th line executed in the streaming modules."""
    names = ("streaming.py", "checkpoint.py", "following.py", "files.py", "batches.py")
    count = [0]

    def local(_frame, event, _argument):
        if event == "line":
            count[0] += 1
            if count[0] == line:
                raise Crash
        return local

    def trace(frame, _event, _argument):
        path = frame.f_code.co_filename
        return local if "sidelight" in path and path.endswith(names) else None

    return trace, count


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what a crash leaves open
def test_a_crash_at_any_line_loses_nothing_and_counts_nothing_twice(folder: Path, reports, tmp_path) -> None:
    for path in files(folder)[4:]:
        path.unlink()
    kept = reports[:400]

    def run(line: int, checkpoint: Path) -> int:
        with Follower(folder, checkpoint, pace=Pace(batches=2, seconds=1e9, share=1.0)) as follower:
            trace, count = crash_at(line)
            former = sys.gettrace()
            sys.settrace(trace)
            try:
                follower.scan()
                follower.write()
            finally:
                sys.settrace(former)
        return count[0]

    lines = run(-1, tmp_path / "whole.json")
    assert lines > 300
    rng = random.Random(5)
    for line in rng.sample(range(1, lines + 1), 80):
        checkpoint = tmp_path / "state.json"
        checkpoint.unlink(missing_ok=True)
        try:
            run(line, checkpoint)
        except Crash:
            pass
        else:
            pytest.fail(f"no crash at line {line}")
        run(-1, checkpoint)
        read, _ = read_checkpoint(checkpoint)
        assert same_sums(read, kept), f"after a crash at line {line}"
        assert len(read.batches) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="followers are forked, which this system cannot do")
def test_killed_fifty_times_the_counts_are_exact(folder: Path, tmp_path: Path) -> None:
    expected = {}
    for path in files(folder):
        aggregator = Aggregator()
        aggregator.take(path)
        expected[next(iter(aggregator.batches))] = [part.sums.tolist() for part in aggregator.sums[0].parts]
    (folder / "expected.json").write_text(json.dumps(expected))
    state = tmp_path / "state"
    state.mkdir()
    script = Path(__file__).with_name("killed.py")
    shown = subprocess.run(
        [sys.executable, str(script), str(folder), str(state), "50", "11"],
        capture_output=True, text=True, check=True, timeout=900,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    found = json.loads(shown.stdout)
    assert found["kills"] == 50
    assert found["finished"] >= 13
    assert found["at lines"] >= found["finished"], "the first of a row dies at its line, whatever the load"
    assert found["wrong"] == []
    assert found["left"] == []
    assert len(found["seen"]) >= 4, "the kills must hit at different moments"


def test_an_interrupted_take_is_not_written(folder: Path, tmp_path: Path) -> None:
    aggregator = Aggregator()
    aggregator.take(files(folder)[0])
    aggregator._sums = {key: part + part for key, part in aggregator._sums.items()}
    with pytest.raises(sl.InputError, match="hold 200 people, their batches 100"):
        write_checkpoint(aggregator, tmp_path / "state.json")
    assert not (tmp_path / "state.json").exists()
