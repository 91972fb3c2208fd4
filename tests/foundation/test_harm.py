"""What must not happen to people's files, to their reports, and to whoever looks at a terminal."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelight as sl
from sidelight.foundation.files import file_name
from sidelight.foundation.randomness import order_key, permutation
from sidelight.foundation.terminal import printable, printable_json
from sidelight.learning.learnt import learn
from sidelight.protocols import planned, smp, spl, write_protocol
from sidelight.transport import digest_of, write_batches
from sidelight.transport.manifest import MANIFEST
from streamed import SCHEMA, files, records

PROGRAM = [sys.executable, "-P", "-c", "from sidelight.cli import main; main()"]
HOSTILE = "x\x1b[31mred\r\n\x9b2J\u202e[/]"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    columns = {"sex": rng.choice(["f", "m"], 240), "job": rng.choice(["a", "b", "c"], 240)}
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), "people.parquet")
    return tmp_path / "people.parquet"


# what is there stays


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("how", ["same", "other spelling", "symbolic link", "hard link", "glob", "folder"])
def test_the_raw_table_is_never_replaced(run, people: Path, how: str, force: tuple[str, ...]) -> None:
    before = people.read_bytes()
    source, target = "people.parquet", "people.parquet"
    if how == "other spelling":
        target = f"../{people.parent.name}/./people.parquet"
    elif how == "symbolic link":
        target = "link.parquet"
        Path(target).symlink_to("people.parquet")
    elif how == "hard link":
        target = "twin.parquet"
        os.link("people.parquet", target)
    elif how == "glob":
        source, target = "p*.parquet", "people.parquet"
    elif how == "folder":
        source = "."
    shown = run("collect", source, "-o", target, *force)
    assert shown.code == 2
    assert "never written over" in shown.err
    assert people.read_bytes() == before == Path(target).read_bytes()


@pytest.mark.parametrize(
    ("source", "target"), [("data", "data/new.parquet"), ("data/*.parquet", "data/b.parquet")]
)
def test_reports_are_not_put_among_the_records_they_are_made_from(run, people: Path, source, target) -> None:
    Path("data").mkdir()
    people.rename("data/a.parquet")
    assert run("collect", source, "-o", target, "--force").code == 2
    assert [path.name for path in Path("data").iterdir()] == ["a.parquet"]
    shown = run("collect", source, "-o", "data", "--batches", 2, "--append")
    assert (shown.code, "never written over" in shown.err) == (2, True)


def test_reports_are_replaced_only_by_force(run, people: Path) -> None:
    assert run("collect", people, "-o", "r.parquet").code == 0
    before = Path("r.parquet").read_bytes()
    shown = run("collect", people, "-o", "r.parquet")
    assert (shown.code, "r.parquet is there already" in shown.err, "--force" in shown.err) == (2, True, True)
    assert Path("r.parquet").read_bytes() == before
    assert run("collect", people, "-o", "r.parquet", "--force").code == 0
    assert Path("r.parquet").read_bytes() != before
    with pytest.raises(sl.InputError, match="is there already"):
        sl.write_reports(sl.read_reports("r.parquet"), "r.parquet")
    sl.write_reports(sl.read_reports("r.parquet"), "r.parquet", overwrite=True)
    assert run("example", "titanic", "-o", "r.parquet").code == 2
    assert run("example", "titanic", "-o", "r.parquet", "--force").code == 0


def test_reports_that_another_process_wrote_meanwhile_stay(
    run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("collect", people, "-o", "theirs.parquet").code == 0
    mine, theirs = sl.read_reports("theirs.parquet"), Path("theirs.parquet").read_bytes()
    written = pq.write_table

    def late(table: pa.Table, path: Path) -> None:
        written(table, path)
        Path("r.parquet").write_bytes(theirs)

    monkeypatch.setattr(pq, "write_table", late)
    with pytest.raises(sl.InputError, match=r"r\.parquet is there already"):
        sl.write_reports(mine, "r.parquet")
    assert Path("r.parquet").read_bytes() == theirs
    assert not list(Path().glob(".r.parquet*"))


def test_estimates_replace_a_file_only_by_force_and_reports_never(run, people: Path) -> None:
    assert run("collect", people, "-o", "r.parquet").code == 0
    reports = Path("r.parquet").read_bytes()
    os.link("r.parquet", "twin.parquet")
    for name in ("r.parquet", "twin.parquet", "./r.parquet"):
        shown = run("estimate", "r.parquet", "-o", name, "--force")
        assert (shown.code, "never written over" in shown.err) == (2, True)
    assert Path("r.parquet").read_bytes() == reports
    for name in ("e.csv", "e.json", "e.parquet"):
        assert run("estimate", "r.parquet", "-o", name).code == 0
        shown = run("estimate", "r.parquet", "-o", name)
        assert (shown.code, "or say --force" in shown.err) == (2, True)
        assert run("estimate", "r.parquet", "-o", name, "--force").code == 0


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet", "mine.json", "mine.toml", "mine.html"])
def test_no_result_is_written_over_what_it_is_not(name: str) -> None:
    table = sl.read("people.parquet")
    plan = sl.Plan.uniform(table.schema)
    found = sl.estimate(sl.collect(table, plan, seed=1))
    model = learn(table, "sex", "bayes", seed=1)
    Path(name).write_text("mine")
    writers = [plan.write, found.write, model.write, sl.sources.Dictionary.draft(table).write]
    writers += [lambda path: sl.write_report(found, path), lambda path: write_protocol(planned(plan), path)]
    for write in writers:
        with pytest.raises(sl.InputError, match=r"must (end in|be)|is there already"):
            write(name)
    assert Path(name).read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "name", "content"),
    [
        (["audit", "people.parquet", "--report"], "mine.html", "<title>My page</title>"),
        (["audit", "people.parquet", "--save-plan"], "mine.json", '[{"sex": "f"}]'),
        (["calibrate", "people.parquet", "--limit", "1", "-o"], "mine.toml", "[tool]\nname = 'mine'\n"),
        (
            ["calibrate", "people.parquet", "--limit", "1", "-o"],
            "c.json",
            '{"version": 1, "checksum": "", "state": {}}',
        ),
        (["collect", "people.parquet", "-o", "r.parquet", "--save-protocol"], "mine.json", "not JSON"),
        (["knowledge", "people.parquet", "--graph"], "mine.json", '{"version": 3}'),
        (["learn", "people.parquet", "--label", "sex", "-o"], "mine.json", "{}"),
    ],
)
@pytest.mark.usefixtures("people")
def test_no_command_replaces_what_sidelight_cannot_make_again(
    run, arguments, name: str, content: str
) -> None:
    Path(name).write_text(content)
    shown = run(*arguments, name)
    assert (shown.code, f"{name} is there already" in shown.err) == (2, True), shown.err
    assert Path(name).read_text() == content


def test_what_sidelight_makes_again_is_replaced(run, people: Path) -> None:
    for _ in range(2):
        assert run("audit", people, "--report", "a.html", "--save-plan", "p.toml").code in (0, 1)
        assert run("collect", people, "-o", "r.parquet", "--force", "--save-protocol", "q.json").code == 0
        assert run("knowledge", people, "--graph", "g.json").code == 0


# an interrupted collection


def resumed(protocol, folder: Path, digest: str) -> list[Path]:
    """Collect from the same records as ever, under new noise."""
    return write_batches(protocol.randomise(records(90)), folder, 9, records=digest, order=order_key(None))


@pytest.mark.parametrize("protocol", [smp(SCHEMA, 1.0), spl(SCHEMA, 1.0)], ids=["smp", "spl"])
def test_an_interrupted_collection_is_resumed_and_nobody_reports_twice(tmp_path: Path, protocol) -> None:
    """Killed at many lines of the writing; what was written stays as it is, and everyone reports once."""
    kept = 0
    for line in range(20, 900, 97):
        folder = tmp_path / str(line)
        child = os.fork()
        if not child:
            _die_at(line)
            resumed(protocol, folder, "the records")
            os._exit(0)
        os.waitpid(child, 0)
        before = {path.name: path.read_bytes() for path in files(folder)} if folder.is_dir() else {}
        kept += len(before)
        written = (
            resumed(protocol, folder, "the records")
            if len(before) < 9 or _is_begun(folder)
            else files(folder)
        )
        assert {path.name for path in folder.iterdir()} == {path.name for path in written}
        assert all((folder / name).read_bytes() == content for name, content in before.items())
        assert [sl.read_reports(path).people for path in written] == [10] * 9
    assert kept > 9, "some were killed in the middle"


def _is_begun(folder: Path) -> bool:
    return (folder / MANIFEST).exists()


def _die_at(line: int) -> None:
    """Let this process kill itself at the so-many-th line executed where batches are written."""
    count = 0

    def local(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        if count == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return local

    names = ("following.py", "manifest.py", "files.py", "report_files.py")
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename.endswith(names) else None)


def test_resumed_people_keep_their_places_in_the_shuffled_order(tmp_path: Path) -> None:
    """With the identity the reports are the records: together the files hold every record exactly once."""
    schema = sl.Schema((sl.categorical("a", [str(i) for i in range(90)]),))
    protocol = spl(schema, 1.0, "identity")
    everyone = np.arange(90, dtype=np.uint8)[:, None]
    digest = "the records"
    folder = tmp_path / "in"
    written = write_batches(protocol.randomise(everyone), folder, 9, records=digest, order=order_key(None))
    values = np.concatenate([sl.read_reports(path).parts[0].values for path in written])
    assert sorted(values.tolist()) == list(range(90))
    assert values.tolist() != list(range(90)), "they are shuffled"
    child = os.fork()
    if not child:
        _die_at(400)
        write_batches(
            protocol.randomise(everyone), tmp_path / "again", 9, records=digest, order=order_key(None)
        )
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert 0 < len(files(tmp_path / "again")) < 9
    made = write_batches(
        protocol.randomise(everyone), tmp_path / "again", 9, records=digest, order=order_key(None)
    )
    values = np.concatenate([sl.read_reports(path).parts[0].values for path in made])
    assert sorted(values.tolist()) == list(range(90)), "nobody is lost, nobody reports twice"


def test_the_command_finishes_what_was_interrupted(run, people: Path, monkeypatch) -> None:
    from sidelight.transport import folder as following

    whole, calls = following.write_reports, []

    def third(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    command = ("collect", people, "-o", "in", "--batches", 5)
    monkeypatch.setattr(following, "write_reports", third)
    assert run(*command).code == 130
    before = {path.name: path.read_bytes() for path in files(Path("in"))}
    assert len(before) == 2
    assert Path("in", MANIFEST).stat().st_mode & 0o077 == 0  # it tells the order of the rows
    for other in (
        ["--seed", 1],
        ["--epsilon", 2],
        ["--batches", 4],
        ["--no-shuffle"],
        ["--append", "--batches", 6],
    ):
        shown = run(*command, *other)
        assert (shown.code, "holds an unfinished collection of" in shown.err) == (2, True), shown.err
    shown = run(*command, "--json")
    assert "2 of 5 batches were finished" in json.loads(shown.out)["notes"][0]
    assert not Path("in", MANIFEST).exists()
    assert all(Path("in", name).read_bytes() == content for name, content in before.items())
    assert sum(sl.read_reports(path).people for path in files(Path("in"))) == 240
    assert "holds 5 report files already" in run(*command).err


def test_the_digest_tells_tables_seeds_and_orders_apart(people: Path) -> None:
    table = sl.read(str(people))
    turned = sl.read(pq.read_table(people).take(list(range(239, -1, -1))), schema=table.schema)
    found = {
        digest_of(table, table.schema),
        digest_of(table, table.schema, 1),
        digest_of(turned, table.schema),
    }
    assert len(found) == 3
    assert digest_of(sl.read(str(people)), table.schema) in found


# the order of the rows


def test_row_i_is_not_person_i_unless_asked_for(run, people: Path) -> None:
    table = sl.read(str(people))
    truth = table.codes()
    made = ("--protocol", "spl", "--mechanism", "identity")
    run("collect", people, "-o", "shuffled.parquet", *made)
    run("collect", people, "-o", "ordered.parquet", *made, "--no-shuffle")
    shuffled, ordered = (sl.read_reports(f"{name}.parquet") for name in ("shuffled", "ordered"))
    assert (shuffled.is_shuffled, ordered.is_shuffled) == (True, False)
    assert np.array_equal(np.stack([part.values for part in ordered.parts], axis=1), truth)
    rows = np.stack([part.values for part in shuffled.parts], axis=1)
    assert not np.array_equal(rows, truth)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, truth)), "a record's parts stay together"
    shown = run("attack", "shuffled.parquet", "--secret", "sex", "--truth", people)
    assert (shown.code, "collect with --no-shuffle" in shown.err) == (2, True)
    assert run("attack", "ordered.parquet", "--secret", "sex", "--truth", people).code == 0


def test_a_seeded_order_is_stable_and_an_unseeded_one_is_not() -> None:
    reports = smp(SCHEMA, 1.0).randomise(records(300), seed=2)
    once, again = (reports.shuffled(order_key(7)) for _ in range(2))
    assert all(np.array_equal(a.values, b.values) for a, b in zip(once.parts, again.parts, strict=True))
    assert np.array_equal(np.sort(np.concatenate(once.senders)), np.arange(300))
    assert not np.array_equal(permutation(order_key(None), 300), permutation(order_key(None), 300))
    same = sl.estimate(reports), sl.estimate(once)
    assert [row.frequency for row in same[0]] == [row.frequency for row in same[1]]


def test_every_order_is_as_likely() -> None:
    """Chi-squared over the 24 orders of four rows, 4,800 keys: false alarm once in 10^6 (bound 76)."""
    orders = [tuple(permutation(order_key(seed), 4).tolist()) for seed in range(4_800)]
    counts = np.unique(np.array(orders), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert ((counts - 200) ** 2 / 200).sum() < 76


# names only


def test_no_file_that_others_read_tells_a_folder(run, people: Path) -> None:
    secret = people.parent / "eve" / "hush-hush"
    secret.mkdir(parents=True)
    table = secret / "people.parquet"
    people.rename(table)
    run(
        "collect",
        table,
        "-o",
        "r.parquet",
        "--protocol",
        "rs+rfd",
        "--prior",
        table,
        "--save-protocol",
        "q.toml",
    )
    run("audit", table, "--report", "a.html", "--save-plan", "p.toml")
    run("calibrate", table, "--limit", 1, "-o", "c.toml", "--report", "c.html")
    run("advise", table, "--public", "--report", "d.html")
    run("learn", table, "--label", "sex", "-o", "m.json", "--report", "m.html", "--seed", 1)
    run("knowledge", table, "--report", "k.html")
    run("collect", table, "-o", "s.parquet", "--protocol", "spl", "--no-shuffle", "--seed", 1)
    run("attack", "s.parquet", "--truth", table, "--secret", "sex", "--report", "t.html")
    written = [path for path in people.parent.iterdir() if path.is_file()]
    assert len(written) == 12
    for path in written:
        assert b"hush-hush" not in path.read_bytes(), path.name
        assert b"people.parquet" in path.read_bytes() or path.suffix not in (".html",), path.name
    assert file_name(str(secret)) == "hush-hush", "of a folder its name"


# budgets that protect nobody


@pytest.mark.usefixtures("people")
def test_a_budget_that_means_nothing_is_warned_of(run) -> None:
    words = "hardly protects anyone"
    assert words in run("audit", "people.parquet", "--epsilon", 699).out
    assert words not in run("audit", "people.parquet", "--epsilon", 5).out
    assert words in run("collect", "people.parquet", "-o", "r.parquet", "--epsilon", 699).out
    assert words not in run("collect", "people.parquet", "-o", "s.parquet", "--epsilon", 9).out
    assert words in run("advise", "people.parquet", "--epsilon", 200).out


# the terminal


def test_hostile_names_and_values_never_reach_the_terminal(run) -> None:
    rng = np.random.default_rng(1)
    table = {HOSTILE: rng.choice(["u[/]", HOSTILE], 300), "c[/]d": rng.choice(["a", "b"], 300)}
    pq.write_table(pa.table(table), "odd.parquet")
    made = ("--protocol", "smp", "--seed", 1, "--no-shuffle")
    commands = [
        ("collect", "odd.parquet", "-o", "r.parquet", *made),
        ("collect", "odd.parquet", "-o", "s.parquet", "--json"),
        ("estimate", "r.parquet", "--truth", "odd.parquet"),
        ("estimate", "r.parquet", "--json"),
        ("audit", "odd.parquet"),
        ("audit", "odd.parquet", "--json"),
        ("audit", "odd.parquet", "--secret", HOSTILE),
        ("audit", "odd.parquet", "--secret", f"{HOSTILE}?"),
        ("calibrate", "odd.parquet", "--limit", "0.5"),
        ("advise", "odd.parquet"),
        ("knowledge", "odd.parquet"),
        ("learn", "odd.parquet", "--label", "c[/]d"),
        ("attack", "r.parquet", "--truth", "odd.parquet", "--secret", HOSTILE),
        ("audit", HOSTILE),
    ]
    for command in commands:
        shown = run(*command)
        assert shown.code in (0, 1, 2), shown.err
        for text in (shown.out, shown.err):
            assert not [sign for sign in text if not sign.isprintable() and sign != "\n"], (command, text)
            assert "\nred" not in text


def test_text_is_shown_as_it_is_but_for_what_acts() -> None:
    for harmless in ("Zoë", "日本語", "می\u200cخواهم", "1\u00a0000", "👩\u200d🔬", "a \\n b"):
        assert printable(harmless) == harmless
    for sign in (
        "\x00",
        "\x07",
        "\x1b",
        "\x7f",
        "\x9b",
        "\u2028",
        "\u202e",
        "\u2066",
        "\ud800",
        "\U000e0001",
    ):
        assert printable(f"a{sign}b").isprintable()
        text = json.dumps({"a": f"{sign}é"}, ensure_ascii=False)
        assert json.loads(printable_json(text)) == {"a": f"{sign}é"}
        assert printable_json(text).isprintable()


# what is no fault of ours


def on_a_full_disk(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that can let no file grow beyond 2,000 bytes.

    Python must not keep what it compiles meanwhile: it would be 2,000 bytes of it, for all others to load.
    """

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*PROGRAM, *command], capture_output=True, text=True, check=False, preexec_fn=fill, env=environment
    )


@pytest.mark.parametrize(
    "command",
    [
        ["collect", "people.parquet", "-o", "new.parquet"],
        ["collect", "people.parquet", "-o", "new", "--batches", "2"],
        ["audit", "people.parquet", "--report", "new.html"],
        ["example", "titanic", "-o", "new.csv"],
        ["bench", "mechanisms", "people.parquet", "--epsilon", "1", "--figure", "new.png"],
    ],
)
@pytest.mark.usefixtures("people")
def test_a_full_disk_is_no_fault_of_ours_and_leaves_nothing_behind(command: list[str]) -> None:
    shown = on_a_full_disk(*command)
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
    assert "cannot be written" in shown.stderr
    left = {path.name for path in Path().rglob("*") if path.is_file()}
    assert left <= {"people.parquet", MANIFEST}


def test_a_full_disk_fails_a_study_and_is_no_fault_of_ours(tmp_path: Path) -> None:
    shown = on_a_full_disk("study", "run", "pdp-fig2", "--quick", "--store", str(tmp_path / "store"))
    assert shown.returncode == 2, shown.stderr
    assert "cannot be written" in shown.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_output_that_cannot_be_written_is_no_fault_of_ours(option: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*PROGRAM, "study", "list", *option]
        shown = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert shown.returncode == 2
    assert (
        shown.stderr.strip()
        == f"error: the output cannot be written: {os.strerror(errno.ENOSPC)}; make room for it."
    )


def test_a_reader_who_leaves_is_no_fault_of_anybodys() -> None:
    """As `| head`: the command ends quietly, as one that a closed pipe has stopped."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        for option in ((), ("--json",)):
            command = [*PROGRAM, "study", "list", *option]
            shown = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
            assert (shown.returncode, shown.stderr) == (141, b"")
    finally:
        os.close(writing)


@pytest.mark.usefixtures("people")
def test_half_a_character_in_a_plan_is_bad_input(run) -> None:
    run("audit", "people.parquet", "--save-plan", "plan.json")
    plan = Path("plan.json").read_text()
    for damaged in (plan.replace('"sex"', '"s\\ud800x"'), plan.replace('"f"', '"\\udfff"')):
        Path("half.json").write_text(damaged)
        for command in (["audit", "people.parquet"], ["collect", "people.parquet", "-o", "r.parquet"]):
            shown = run(*command, "--plan", "half.json")
            assert (shown.code, "half a character" in shown.err) == (2, True), shown.err
    assert not Path("r.parquet").exists()


def test_a_damaged_column_name_in_a_report_file_is_bad_input(run, people: Path) -> None:
    run("collect", people, "-o", "r.parquet", "--protocol", "spl")
    whole = Path("r.parquet").read_bytes()
    seen = 0
    for place in range(len(whole)):
        if whole[place : place + 3] == b"sex":
            Path("d.parquet").write_bytes(whole[:place] + b"s\xff" + whole[place + 2 :])
            shown = run("estimate", "d.parquet")
            assert shown.code in (0, 2), shown.err
            seen += shown.code
    assert seen, "some of the damage is seen"


# signals and modules


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_stops_on_either_signal(tmp_path: Path, number: int, code: int) -> None:
    """In the middle of its work: a module that it loads sends the signal."""
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "import sidelight.sources.examples as examples\n"
        f"examples.example = lambda name: os.kill(os.getpid(), {int(number)})\n"
        "import sidelight as sl\n"
        "sl.example = examples.example\n"
        "from sidelight.cli import main\n"
        "sys.argv = ['sidelight', 'example', 'titanic', '-o', 'x.csv']\n"
        "main()\n"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (code, "interrupted; nothing was left half written.\n")
    assert list(tmp_path.iterdir()) == []


def test_no_child_takes_modules_from_the_working_folder(tmp_path: Path) -> None:
    for name in ("html", "json", "numpy", "sidelight", "csv", "secrets"):
        Path(f"{name}.py").write_text(
            f"open({str(tmp_path / 'marker')!r}, 'w').write({name!r})\nraise SystemExit(9)\n"
        )
    command = [*PROGRAM, "study", "run", "pdp-fig2", "--quick", "--store", str(tmp_path / "store")]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not (tmp_path / "marker").exists(), (tmp_path / "marker").read_text()
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_command_whose_streams_are_closed_still_does_its_work(people: Path, closed: str) -> None:
    words = [*PROGRAM, "collect", people.name, "-o", "r.parquet"]
    shown = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, text=True, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert sl.read_reports("r.parquet").people == 240
    again = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, check=False
    )
    assert again.returncode == 2
