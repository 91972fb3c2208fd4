"""A ledger that is used wrongly, read from hostile files, or compacted: sound and in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from itertools import count
from pathlib import Path

import pytest

from conftest import AT_MOST
from ledger_stores import SECRET, Crash, MemoryStore, ask, into, opened
from sidelight.foundation.errors import InputError
from sidelight.ledger import (
    EVER,
    YEAR,
    Charge,
    Head,
    Ledger,
    Limit,
    OverspentError,
    Question,
    Window,
    read_statement,
)
from sidelight.ledger.units import UNITS
from sidelight.ledger.windows import DAY

PERSON = "ann"


def fresh(task: str, number: int = 0, epsilon: float = 0.6) -> Question:
    return Question(task, number, (Charge.of("a", "grr", epsilon),))


def new(path: Path, *limits: Limit) -> Ledger:
    return Ledger.create(path, PERSON, limits or [Limit.of(1.0)], secret=SECRET, now=0)


# Used by two at once.


def test_what_makes_a_report_cannot_spend_meanwhile(tmp_path: Path):
    with new(tmp_path / "x") as ledger:

        def greedy(_: object) -> bytes:
            ledger.reserve(fresh("inner"), lambda _: b"inner", now=9)
            return b"outer"

        with pytest.raises(InputError, match="in use: a report is being made or sent"):
            ledger.reserve(fresh("outer"), greedy, now=9)
        assert ledger.answers == ()
        assert ledger.remaining(now=9)[0].left == UNITS


def test_two_threads_neither_overspend_nor_damage_the_file(tmp_path: Path):
    path, said = tmp_path / "x", []
    both = threading.Barrier(2, timeout=AT_MOST)
    ledger = new(path)

    def slow(_: object) -> bytes:
        both.wait()  # the other one comes while the report is made
        both.wait()
        return b"report"

    def second() -> None:
        both.wait()
        try:
            ledger.reserve(fresh("second"), lambda _: b"other", now=9)
        except InputError as error:
            said.append(str(error))
        finally:
            both.wait()

    thread = threading.Thread(target=second)
    thread.start()
    ledger.reserve(fresh("first"), slow, now=9)
    thread.join()
    ledger.close()
    assert ["in use" in text for text in said] == [True]
    with Ledger.open(path, PERSON) as again:
        assert [answer.question.task for answer in again.answers] == ["first"]


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_cannot_write_into_the_ledger(tmp_path: Path):
    path = tmp_path / "x"
    ledger = new(path)
    child = os.fork()
    if not child:
        code = 1
        try:
            ledger.reserve(fresh("child"), lambda _: b"child", now=9)
        except InputError as error:
            code = 7 if "opened by another process" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.reserve(fresh("parent"), lambda _: b"parent", now=9)
    ledger.close()
    with Ledger.open(path, PERSON) as again:
        assert [answer.question.task for answer in again.answers] == ["parent"]


# Read from what is no ledger.


def forged(path: Path, *bodies: bytes) -> Path:
    """Write lines whose digests are right, whatever they say."""
    digest, lines = bytes(32), b""
    for body in bodies:
        digest = hashlib.sha256(digest + body).digest()
        lines += b"%s %08d %s\n" % (digest.hex().encode(), len(body), body)
    path.write_bytes(lines)
    return path


def first_body(tmp_path: Path) -> bytes:
    new(tmp_path / "good").close()
    return (tmp_path / "good").read_bytes()[74:-1]


def reserved(**changes: object) -> bytes:
    charge = {"attribute": "a", "channel": "c", "units": 5, "epoch": None}
    line = {"kind": "reserve", "time": 9, "task": "t", "round": 0, "charges": [charge], "frozen": []}
    return json.dumps({**line, "report": "", **changes}).encode()


HELD = {"attribute": "a", "epoch": "0", "value": "x"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 100_000, "cannot be parsed"),
        (b'{"a":' * 50_000, "cannot be parsed"),
        (b'{"kind":"send","kind":"reserve"}', "a key is given twice"),
        (b'{"kind":"send","task":"t","round":NaN}', "NaN is not a number JSON knows"),
        (b'{"kind":"send","task":"\\ud800","round":1}', "half a character"),
        (b'{"kind":["x"]}', "is no entry"),
        (b"null", "must hold a table"),
        (b"\xff", "is not UTF-8 text"),
        (reserved(frozen=[HELD, {**HELD, "value": "y"}]), "freezes a value twice"),
        (reserved(charges=[]), "charges nothing"),
        (reserved(time=1.0), "is no entry"),
        (reserved(report="é"), "not base 64"),
        (b'{"kind":"compacted","heads":"xyz","frozen":[]}', "is no entry"),
        (b'{"kind":"settled","time":9,"task":"t","round":0,"charges":[],"state":"sent"}', "is no entry"),
    ],
)
def test_a_hostile_line_is_refused_in_one_sentence(tmp_path: Path, body: bytes, said: str):
    path = forged(tmp_path / "x", first_body(tmp_path), body)
    with pytest.raises(InputError) as caught:
        Ledger.open(path, PERSON)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_fixed_budgets_that_break_their_limit_are_refused_wherever_they_come_from(tmp_path: Path):
    with pytest.raises(InputError, match="compose to 17.12 at delta = 0.01, more than the limit of 1;"):
        Limit(UNITS, EVER, 0.01, (UNITS,) * 20)
    opening = json.loads(first_body(tmp_path))
    opening["limits"][0] |= {"delta": "0.01", "budgets": [UNITS] * 20}
    path = forged(tmp_path / "x", json.dumps(opening).encode())
    with pytest.raises(InputError, match="more than the limit of 1"):
        Ledger.open(path, PERSON)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="has no devices as files")
def test_a_device_is_no_ledger():
    for path in ("/dev/null", "/dev/zero"):
        with pytest.raises(InputError, match="is a device or a pipe, not a file"):
            Ledger.open(path, PERSON)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fresh("\ud800"),
        lambda: Charge.of("\ud800", "c", 1.0),
        lambda: Ledger.create("nowhere/x", "\ud800", [Limit.of(1.0)]),
        lambda: Ledger.create("nowhere/x", "ann", [Limit.of(1.0)], level="\ud800"),
    ],
)
def test_half_a_character_is_refused_before_anything_is_written(make):
    with pytest.raises(InputError, match="must be a text of whole characters"):
        make()


def test_kinds_of_arguments_are_checked():
    with pytest.raises(InputError, match="`charges` must be a `Charge`"):
        Question("t", 0, ("a",))
    with pytest.raises(InputError, match="`limits` must be at least one limit"):
        Ledger.create("nowhere/x", "ann", Limit.of(1.0))
    with pytest.raises(InputError, match="`level` must be a `str`"):
        Ledger.create("nowhere/x", "ann", [Limit.of(1.0)], level=5)


def test_a_window_that_ends_after_all_calendars_is_refused_in_words():
    ledger = opened(MemoryStore(), [Limit.of(1.0, Window.sliding(days=10**7))])
    ask(ledger, fresh("x"))
    with pytest.raises(OverspentError, match="it fits from a time after the year 6325 on"):
        ask(ledger, fresh("y"))


def test_nothing_is_left_of_fixed_budgets_that_a_withdrawal_put_out_of_order():
    ledger = opened(MemoryStore(), [Limit.of(1.0, delta=0.01, budgets=[0.1, 0.5])])
    for task, epsilon in (("x", 0.1), ("y", 0.5)):
        ledger.reserve(fresh(task, epsilon=epsilon), lambda _: b"", now=9)
    ledger.withdraw(fresh("x", epsilon=0.1))
    assert ledger.remaining(now=9)[0].left == 0
    with pytest.raises(OverspentError, match="and 0 is left of 1 at delta = 0.01"):
        ledger.reserve(fresh("z", epsilon=0.1), lambda _: b"", now=9)


def test_a_disk_that_cannot_be_read_or_cut_says_so():
    class Broken(MemoryStore):
        def read(self) -> bytes:
            raise OSError(5, "Input/output error")

    class Locked(MemoryStore):
        def cut(self, _: int) -> None:
            raise OSError(30, "Read-only file system")

    content = MemoryStore()
    opened(content, [Limit.of(1.0)])
    with pytest.raises(InputError, match="cannot be read: Input/output error"):
        Ledger(Broken(content.durable), PERSON)
    with pytest.raises(InputError, match="cannot be written: Read-only file system"):
        Ledger(Locked(content.durable + b"0123"), PERSON)


# Compacted.


def worked(path: Path, *limits: Limit) -> Ledger:
    """Return a ledger with answers in every state, and a memo whose value is frozen."""
    ledger = new(path, *limits)
    for day in range(5):
        ask(ledger, fresh("daily", day, 0.1), report=b"long" * 50, now=day * DAY)
    memo = Question("memo", 0, (Charge.of("b", "c", 0.2, "0"),))
    ledger.answer(memo, lambda m: m.held("b", "0", "red").encode(), into([]), now=5 * DAY)
    ledger.reserve(fresh("gone", epsilon=0.05), lambda _: b"gone", now=6 * DAY)
    ledger.withdraw(fresh("gone", epsilon=0.05))
    ledger.reserve(fresh("kept", epsilon=0.05), lambda _: b"kept", now=6 * DAY)
    with pytest.raises(ConnectionError):
        ledger.answer(fresh("away", epsilon=0.05), lambda _: b"away", away, now=7 * DAY)
    return ledger


def away(*_: object) -> None:
    raise ConnectionError


def told(ledger: Ledger) -> object:
    """Return all that decides on what may follow."""
    left = [[item.left for item in ledger.remaining(now=day * DAY)] for day in range(7, 60)]
    return left, ledger.pending, dict(ledger._book.frozen), ledger._book.last


@pytest.mark.parametrize(
    "limits",
    [
        (Limit.of(1.0),),
        (Limit.of(1.0, Window.sliding(days=3)),),
        (Limit.of(1.0, Window.sliding(days=3)), Limit.of(2.0, YEAR)),
        (Limit.of(1.0, Window.epoch(days=2), delta=1e-3),),
    ],
)
def test_a_compacted_ledger_says_the_same_in_fewer_bytes(tmp_path: Path, limits: tuple[Limit, ...]):
    path = tmp_path / "x"
    ledger = worked(path, *limits)
    before, size, head = told(ledger), path.stat().st_size, ledger.head
    after = ledger.compact()
    assert told(ledger) == before
    assert path.stat().st_size < 0.6 * size
    assert after.lines > head.lines
    assert after == ledger.head
    ask(ledger, fresh("more", epsilon=0.01), now=8 * DAY)
    ledger.close()
    for known in (None, head, after):
        with Ledger.open(path, PERSON, known=known) as again:
            assert again.pending == ledger.pending
    for strange in (Head(head.lines, "0" * 64), Head(after.lines + 99, after.digest), Head(0, "")):
        with pytest.raises(InputError, match="or an older copy of it"):
            Ledger.open(path, PERSON, known=strange)
    assert not list(tmp_path.glob(".x*"))


def test_an_older_copy_is_told_from_its_compacted_successor(tmp_path: Path):
    path = tmp_path / "x"
    with worked(path) as ledger:
        old = path.read_bytes()
        head = ledger.compact()
    path.write_bytes(old)
    with pytest.raises(InputError, match="or an older copy of it"):
        Ledger.open(path, PERSON, known=head)


def test_what_counts_no_more_is_forgotten_but_for_the_latest_round(tmp_path: Path):
    with worked(tmp_path / "x", Limit.of(1.0, Window.sliding(days=3))) as ledger:
        ledger.compact()
        kept = [answer.question.key for answer in ledger.answers]
        assert kept == [("daily", 4), ("memo", 0), ("gone", 0), ("kept", 0), ("away", 0)]
        with pytest.raises(InputError, match="round 2 of the task 'daily' comes after round 4"):
            ask(ledger, fresh("daily", 2, 0.1), now=9 * DAY)
        ask(ledger, fresh("daily", 4, 0.1), now=9 * DAY)  # answered, as it was before
        with pytest.raises(InputError, match="is withdrawn"):
            ask(ledger, fresh("gone", epsilon=0.05), now=9 * DAY)
        memo = Question("later", 0, (Charge.of("b", "c", 0.2, "0"),))
        assert ledger.reserve(memo, lambda m: m.held("b", "0", "blue").encode(), now=9 * DAY) == b"red"


def test_a_memo_keeps_its_budget_however_long_ago_it_was_charged(tmp_path: Path):
    with new(tmp_path / "x", Limit.of(1.0, Window.sliding(days=3))) as ledger:
        for day in range(9):
            charge = Charge.of("b", "c", 0.2, str(day // 3))
            ask(ledger, Question("memo", day, (charge,)), now=day * DAY)
        ledger.compact()
        assert [answer.question.round for answer in ledger.answers] == [2, 5, 6, 7, 8]
        cheaper = Question("other", 0, (Charge.of("b", "c", 0.01, "0"),))
        with pytest.raises(InputError, match=r"the same memo was charged 0\.2 before"):
            ask(ledger, cheaper, now=9 * DAY)


def test_a_ledger_that_was_moved_is_not_compacted_into_two(tmp_path: Path):
    for beside in (False, True):
        path, moved = tmp_path / f"x{beside}", tmp_path / f"moved{beside}"
        with worked(path) as ledger:
            path.rename(moved)
            if beside:
                path.write_text("another file")
            with pytest.raises(InputError, match="was moved while it was open"):
                ledger.compact()
        assert (path.read_text() == "another file") if beside else not path.exists()
        Ledger.open(moved, PERSON).close()


def test_a_ledger_may_be_compacted_again_and_again(tmp_path: Path):
    heads = []
    with worked(tmp_path / "x") as ledger:
        before = told(ledger)
        for _ in range(3):
            heads += [ledger.head, ledger.compact()]
        assert told(ledger) == before
    for head in heads:
        Ledger.open(tmp_path / "x", PERSON, known=head).close()


def test_a_crash_while_compacting_leaves_the_old_ledger_or_the_new_one():
    start = MemoryStore()
    ledger = opened(start, [Limit.of(1.0)])
    ask(ledger, fresh("x", epsilon=0.3))
    ledger.reserve(fresh("y", epsilon=0.3), lambda _: b"kept", now=9)
    for crash_at in count():
        store = MemoryStore(start.durable, crash_at)
        try:
            Ledger(store, PERSON).compact()
        except Crash:
            again = Ledger(MemoryStore(store.durable), PERSON)
            assert [answer.report for answer in again.pending] == [b"kept"]
            assert again.remaining(now=9)[0].left == round(0.4 * UNITS)
            continue
        break
    assert crash_at == 3  # reading, and before and after the file is replaced


def test_another_process_that_waited_does_not_get_the_replaced_file(tmp_path: Path):
    path = tmp_path / "x"
    with worked(path) as ledger:
        ledger.compact()
        with pytest.raises(InputError, match="in use by another process"):
            Ledger.open(path, PERSON)
        ask(ledger, fresh("more", epsilon=0.01), now=8 * DAY)
    with Ledger.open(path, PERSON) as again:
        assert ("more", 0) in [answer.question.key for answer in again.answers]


def test_a_link_leads_to_the_file_that_is_compacted(tmp_path: Path):
    path, link = tmp_path / "x", tmp_path / "link"
    worked(path).close()
    link.symlink_to(path)
    with Ledger.open(link, PERSON) as ledger:
        ledger.compact()
    assert link.is_symlink()
    Ledger.open(path, PERSON, known=ledger.head).close()
    os.link(path, tmp_path / "second")
    with Ledger.open(path, PERSON) as ledger, pytest.raises(InputError, match="has a second name"):
        ledger.compact()


# Shown.


def test_a_statement_says_what_is_left_and_when_it_returns(tmp_path: Path):
    ledger = worked(tmp_path / "x", Limit.of(1.0, Window.sliding(days=3)), Limit.of(2.0))
    before = (tmp_path / "x").read_bytes()
    for _ in range(2):  # in use, then compacted and closed
        statement = read_statement(tmp_path / "x", now=7 * DAY)
        assert [line.left for line in statement.limits] == [
            item.left for item in ledger.remaining(now=7 * DAY)
        ]
        sliding, ever = statement.limits
        assert (sliding.spent, sliding.returns) == (3 * UNITS // 10, 8 * DAY)
        assert sliding.then == UNITS - UNITS // 10
        assert (ever.spent, ever.returns, ever.then) == (8 * UNITS // 10, None, None)
        ledger.compact()
    daily = statement.tasks[0]
    assert (daily.task, daily.rounds, daily.latest, daily.states) == ("daily", 5, 4, {"acknowledged": 5})
    assert statement.tasks[1].charges == ("0.2 for b, once an epoch",)
    ledger.close()
    assert "secret" not in json.dumps(statement.to_dict())
    assert b"red" in before  # and the frozen value is not in it either
    assert "red" not in json.dumps(statement.to_dict()).replace("acknowledged", "").replace("reserved", "")


def test_the_command_shows_a_ledger_or_says_why_not(tmp_path: Path, run):
    worked(tmp_path / "x").close()
    shown = run("ledger", "show", str(tmp_path / "x"))
    assert shown.code == 0
    for said in (
        "The ledger of 'ann'",
        "1 in all time",
        "0.8",
        "0.2",
        "5 acknowledged",
        "0.2 for b, once an",
    ):
        assert said in shown.out
    assert json.loads(run("ledger", "show", str(tmp_path / "x"), "--json").out)["person"] == "ann"
    (tmp_path / "bad").write_text("hello")
    for name, said in (("none", "there is no ledger"), ("bad", "is damaged: line 1")):
        refused = run("ledger", "show", str(tmp_path / name))
        assert refused.code == 2
        assert said in refused.err
        assert refused.err.count("\n") == 1
