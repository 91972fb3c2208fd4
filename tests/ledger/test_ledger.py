"""A ledger's file, what it refuses and in which words, and the device's memory in it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import sidelight as sl
from conftest import AT_MOST
from ledger_stores import SECRET, MemoryStore, ask, into, nowhere
from sidelight.foundation.errors import InputError
from sidelight.ledger import Charge, Head, Ledger, Levels, Limit, Question, Window, charge_for, published_cost
from sidelight.ledger.lines import line_of, next_digest, read_lines
from sidelight.ledger.units import UNITS
from sidelight.ledger.windows import DAY
from sidelight.mechanisms.longitudinal.device import Device
from sidelight.mechanisms.longitudinal.memory import KeyedMemory

COLOUR = sl.categorical("colour", ["red", "green", "blue"])
PERSON = "ann"


def fresh(task: str, number: int, epsilon: float = 0.25) -> Question:
    return Question(task, number, (Charge.of("a", "grr", epsilon),))


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    """A ledger with two answers, one of them acknowledged."""
    path = tmp_path / "ann.ledger"
    with Ledger.create(
        path, PERSON, [Limit.of(1.0, Window.sliding(days=30))], secret=SECRET, now=0
    ) as ledger:
        ask(ledger, fresh("x", 1), now=DAY)
        ledger.reserve(fresh("x", 2), lambda _: b"kept", now=2 * DAY)
    return path


def refusal(path: Path, person: str = PERSON, known: Head | None = None) -> str:
    with pytest.raises(InputError) as caught:
        Ledger.open(path, person, known=known)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_report_is_made_once_and_kept_until_it_is_acknowledged(path: Path):
    with Ledger.open(path, PERSON) as ledger:
        assert [answer.state for answer in ledger.answers] == ["acknowledged", "reserved"]
        assert [answer.report for answer in ledger.answers] == [None, b"kept"]
        assert ledger.reserve(fresh("x", 2), lambda _: b"another", now=3 * DAY) == b"kept"
        sent: list[bytes] = []
        ledger.resume(into(sent))
        assert sent == [b"kept"]
        assert ledger.pending == ()
        ledger.answer(fresh("x", 2), lambda _: b"another", into(sent), now=3 * DAY)
        assert sent == [b"kept"]
        with pytest.raises(
            InputError, match="round 2 of the task 'x' is acknowledged; it has no report any more"
        ):
            ledger.reserve(fresh("x", 2), lambda _: b"another", now=3 * DAY)


def test_every_line_is_on_the_disk_before_anything_relies_on_it(path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    write, sync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda handle, data: (done.append("write"), write(handle, data))[1])
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle))[1])
    with Ledger.open(path, PERSON) as ledger:
        assert done == ["sync"]  # what a killed process left in a cache
        done.clear()
        ledger.answer(fresh("x", 3), lambda _: b"made", lambda *_: done.append("send"), now=3 * DAY)
    assert done == ["write", "sync", "write", "sync", "send", "write", "sync"]


def test_only_its_owner_may_read_it(path: Path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "000102" not in repr(Ledger.open(path, PERSON)._book.opening)


def test_a_failed_sending_stays_to_be_sent_again(path: Path):
    def fails(*_: object) -> None:
        raise ConnectionError

    with Ledger.open(path, PERSON) as ledger:
        with pytest.raises(ConnectionError):
            ledger.resume(fails)
        assert [answer.state for answer in ledger.pending] == ["sent"]
        with pytest.raises(InputError, match="is sent; there is nothing to withdraw"):
            ledger.withdraw(fresh("x", 2))


def test_a_server_that_is_away_does_not_hold_up_others(path: Path):
    sent: list[str] = []

    def send(question: Question, _: bytes) -> None:
        if question.task == "x":
            raise ConnectionError("x is away")
        sent.append(question.task)

    with Ledger.open(path, PERSON) as ledger:
        ledger.reserve(fresh("y", 0), lambda _: b"other", now=3 * DAY)
        with pytest.raises(ConnectionError, match="x is away"):
            ledger.resume(send)
        assert sent == ["y"]
        assert [answer.question.task for answer in ledger.pending] == ["x"]


def test_what_was_never_sent_comes_back_and_gets_no_other_answer(path: Path):
    with Ledger.open(path, PERSON) as ledger:
        ledger.withdraw(fresh("x", 2))
        assert ledger.remaining(now=2 * DAY)[0].left == round(0.75 * UNITS)
        with pytest.raises(InputError, match="is withdrawn; it has no report any more"):
            ledger.answer(fresh("x", 2), lambda _: b"another", nowhere, now=3 * DAY)


def test_a_report_that_cannot_be_made_spends_nothing(path: Path):
    with Ledger.open(path, PERSON) as ledger:
        before = ledger.head
        with pytest.raises(
            InputError, match="`make` must be a function that returns the report's bytes, got 'str'"
        ):
            ledger.reserve(fresh("x", 3), lambda _: "text", now=3 * DAY)
        with pytest.raises(ZeroDivisionError):
            ledger.reserve(fresh("x", 3), lambda _: 1 // 0, now=3 * DAY)
        assert ledger.head == before


def test_the_ledger_of_another_person_is_refused(path: Path):
    assert "is the ledger of another person, 'ann', not of 'bob'" in refusal(path, "bob")


def test_one_process_at_a_time_has_it(path: Path):
    script = (
        "import sys, sidelight as sl\n"
        "try: sl.ledger.Ledger.open(sys.argv[1], 'ann')\nexcept sl.InputError as error: print(error)"
    )
    with Ledger.open(path, PERSON):
        done = subprocess.run(
            [sys.executable, "-c", script, path], capture_output=True, text=True, timeout=AT_MOST, check=True
        )
        assert done.stdout == f"the ledger {path} is in use by another process; wait for it.\n"
    Ledger.open(path, PERSON).close()


def test_every_damaged_byte_is_noticed(path: Path):
    """Each byte in turn, with a bit of it turned; a ledger is refused, or has lost nothing."""
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in (0, 5):
            store = MemoryStore(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(InputError, match="is damaged"):
                Ledger(store, PERSON)


def test_lines_that_are_missing_doubled_or_in_another_order_are_noticed(path: Path):
    lines = path.read_bytes().splitlines(keepends=True)
    for order in product(range(len(lines)), repeat=3):
        content = b"".join(lines[place] for place in order)
        if order == (0, 1, 2):
            Ledger(MemoryStore(content), PERSON)
            continue
        with pytest.raises(InputError, match="is damaged"):
            Ledger(MemoryStore(content), PERSON)


def test_an_unfinished_line_is_cut_off_and_an_older_copy_is_known_by_its_head(path: Path):
    whole = path.read_bytes()
    head = Ledger(MemoryStore(whole), PERSON).head
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(1, last + 1):
        store = MemoryStore(whole[:-cut])
        assert len(Ledger(store, PERSON).answers) == 1
        assert store.durable == whole[:-last]
        with pytest.raises(
            InputError, match="is not the ledger that had 5 lines, or an older copy of it: it has 4"
        ):
            Ledger(MemoryStore(whole[:-cut]), PERSON, known=head)
    with Ledger.open(path, PERSON, known=head) as ledger:
        ledger.resume(nowhere)
    Ledger.open(path, PERSON, known=head).close()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no ledger: it has no whole line"),
        (b"hello\n", "line 1 is no line of a ledger"),
        (line_of(None, {"kind": "open", "version": 3})[0], "is a ledger of version 3; this Sidelight reads"),
        (line_of(None, {"kind": "open"})[0], "is no ledger: it must have `version = 2`, got None"),
        (line_of(None, {"kind": "open", "version": 1, "colour": 1})[0], "there is no key 'colour'"),
        (b'{"version": 1}\n', "is no line of a ledger"),
        (line_of(None, {"version": 1})[0].replace(b":", b"\n"), "does not have the digest that it must have"),
        (b"%s %08d {\n}\n" % (next_digest(bytes(32), b"{\n}").hex().encode(), 3), "does not have the digest"),
    ],
)  # fmt: skip
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "other"
    path.write_bytes(content)
    assert said in refusal(path)
    assert path.read_bytes() == content


def appended(path: Path, *contents: dict) -> Path:
    """Add lines with right digests, as another client might write them."""
    for content in contents:
        whole = path.read_bytes()
        path.write_bytes(whole + line_of(read_lines(whole, "").digests[-1], content)[0])
    return path


RESERVE = {
    "kind": "reserve", "time": 3 * DAY, "task": "y", "round": 0, "frozen": [], "report": "AA==",
    "charges": [{"attribute": "a", "channel": "c", "units": 1, "epoch": None}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"kind": "send", "task": "z", "round": 0}, "round 0 of the task 'z' was never reserved"),
        ({"kind": "acknowledge", "task": "x", "round": 2}, "is reserved; there is nothing to acknowledge"),
        ({"kind": "refund", "task": "x", "round": 2}, "is no entry"),
        ({**RESERVE, "time": DAY}, "is reserved before what stands above it"),
        ({**RESERVE, "task": "x", "round": 1}, "is reserved twice"),
        ({**RESERVE, "task": "x", "round": 0}, "rounds go forward"),
        ({**RESERVE, "report": "?"}, "has bytes that are not base 64"),
        ({**RESERVE, "charges": []}, "charges nothing"),
        ({**RESERVE, "charges": [{**RESERVE["charges"][0], "units": 0.5}]}, "is no entry"),
        ({**RESERVE, "extra": 1}, "is no entry"),
    ],
)
def test_entries_that_cannot_follow_are_refused(path: Path, content: dict, said: str):
    assert re.search(f"line 6.*{said}", refusal(appended(path, content)))


def test_a_line_that_another_client_wrote_by_the_rules_is_taken(path: Path):
    with Ledger.open(appended(path, RESERVE), PERSON) as ledger:
        assert len(ledger.answers) == 3


def test_a_clock_that_was_set_back_is_refused_but_for_a_correction(path: Path):
    with Ledger.open(path, PERSON) as ledger:
        with pytest.raises(InputError) as caught:
            ask(ledger, fresh("y", 0), now=DAY)
        assert str(caught.value) == (
            "the clock was set back: it says 1970-01-02 00:00:00 UTC, and the ledger's last entry is of "
            "1970-01-03 00:00:00 UTC; set it right, or wait until then."
        )
        ask(ledger, fresh("y", 0), now=2 * DAY - 300)
        assert ledger.answers[-1].time == 2 * DAY


def test_rounds_go_forward_and_keep_their_budgets(path: Path):
    with Ledger.open(path, PERSON) as ledger:
        with pytest.raises(
            InputError, match="round 0 of the task 'x' comes after round 2 was answered; rounds go forward"
        ):
            ask(ledger, fresh("x", 0), now=3 * DAY)
        for number in (1, 2, 3):
            with pytest.raises(
                InputError, match=r"charges 0.2 for 'a' through 'grr', but round \d charged 0.25"
            ):
                ask(ledger, fresh("x", number, 0.2), now=3 * DAY)
        ask(ledger, fresh("x", 5), now=3 * DAY)  # a round may be missed


def test_a_refusal_says_what_is_left_and_when_it_returns(path: Path):
    with Ledger.open(path, PERSON) as ledger, pytest.raises(InputError) as caught:
        ask(ledger, fresh("y", 0, 0.6), now=3 * DAY)
    assert str(caught.value) == (
        "round 0 of the task 'y' spends 0.6, and 0.5 is left of 1 in any 30 days; it fits from 1970-02-01 "
        "00:00:00 UTC on."
    )


def test_a_file_that_is_there_stays(path: Path):
    before = path.read_bytes()
    with pytest.raises(InputError, match="is there already, and it would be lost"):
        Ledger.create(path, PERSON, [Limit.of(1.0)])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Limit.of(-1.0), "`epsilon` must be a finite number of at least 0"),
        (lambda: Limit.of(0.0), "`units` must be a whole number of at least 1"),
        (lambda: Limit.of(float("inf")), "`epsilon` must be a finite number"),
        (lambda: Limit.of(1.0, delta=1.0), "`delta` must be"),
        (lambda: Limit.of(1.0, budgets=[0.1]), "give it a `delta`"),
        (lambda: Limit.of(1.0, Window.sliding(days=3), delta=0.1, budgets=[0.1]), "have an order"),
        (lambda: Window.sliding(days=3, of_days=2), "must be a multiple of `of_days`"),
        (lambda: Window("week"), "`kind` must be one of"),
        (lambda: Window("ever", 5), "`unit` must be"),
        (lambda: Question("", 0, ()), "`task` must be the name of a task"),
        (lambda: Question("x", -1, ()), "`round` must be a whole number"),
        (lambda: Question("x", 0, ()), "charges nothing"),
        (lambda: Question("x", 0, (Charge.of("a", "c", 1, "0"),) * 2), "charges one memo twice"),
        (lambda: Charge.of("a", "c", float("inf")), "`epsilon` must be a finite number"),
        (lambda: Charge.of(3, "c", 1.0), "`attribute` must be a `str`"),
        (lambda: Charge.fresh("a", "grr"), "`mechanism` must be a `Mechanism`"),
        (lambda: Ledger.create("nowhere/x", "ann", []), "`limits` must be at least one limit"),
        (lambda: Ledger.create("nowhere/x", "", [Limit.of(1)]), "`person` must be the name"),
        (lambda: Ledger.create("nowhere/x", "ann", [1.0]), "`limits` must be a `Limit`"),
        (lambda: Ledger.create("nowhere/x", "ann", [Limit.of(1)], secret=b"x"), "`secret` must be 32 bytes"),
        (lambda: Ledger.create("nowhere/x", "ann", [Limit.of(1)]), "the folder nowhere does not exist"),
        (lambda: Ledger.open("nowhere/x", "ann"), "there is no ledger nowhere/x"),
        (lambda: Ledger.create("nowhere/x", "ann", [Limit.of(1)], now=-5), "`now` must be a whole number"),
        (lambda: Levels({}), "at least one level"),
        (lambda: Levels({"a": 1.0}).budget("b"), "there is no level 'b'"),
        (lambda: Levels({"a": 1.0}).budget(None), "no level was chosen"),
        (lambda: published_cost([[0.5, 0.6]]), "adds up to 1"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(make, said: str):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value)


def reported(device: Device, value: str, number: int) -> bytes:
    return device.report(value, number).values.tobytes()


@pytest.mark.parametrize("name", ["grr", "l-grr", "l-osue"])
def test_a_device_that_remembers_pays_once_an_epoch_and_its_value_stays_frozen_after_a_kill(
    tmp_path: Path, name: str
):
    path, mechanism = tmp_path / "ledger", sl.create(name, COLOUR.size, 1.0)

    def device(memory: KeyedMemory) -> Device:
        return Device(mechanism, COLOUR, memory, epoch_rounds=3)

    def ask_for(ledger: Ledger, value: str, number: int) -> None:
        charge = charge_for(device(KeyedMemory(SECRET)), number)
        ledger.reserve(
            Question("t", number, (charge,)), lambda memory: reported(device(memory), value, number), now=9
        )

    Ledger.create(path, PERSON, [Limit.of(2.0)], secret=SECRET, now=0).close()
    for number, value in enumerate(["red", "green", "blue", "green", "red", "red"]):
        with Ledger.open(path, PERSON) as ledger:  # never closed in order: what holds is on file
            ask_for(ledger, value, number)
            assert ledger._book.frozen == {
                ("colour", str(epoch)): ("red", "green")[epoch] for epoch in range(number // 3 + 1)
            }
    with Ledger.open(path, PERSON) as ledger:
        with pytest.raises(InputError, match="spends 1, and 0.* is left of 2"):
            ask_for(ledger, "red", 6)
        assert ledger._book.frozen.keys() == {("colour", "0"), ("colour", "1")}  # a refusal freezes nothing


def test_askers_who_list_the_values_otherwise_get_and_pay_a_memo_of_their_own():
    oracle, memory = sl.create("grr", COLOUR.size, 1.0), KeyedMemory(SECRET)
    turned = sl.categorical(COLOUR.name, list(COLOUR.values[::-1]))
    one, other = (charge_for(Device(oracle, attribute, memory), 0) for attribute in (COLOUR, turned))
    assert one.memo != other.memo
    assert one.memo == charge_for(Device(oracle, COLOUR, KeyedMemory(SECRET)), 0).memo


def test_following_changes_costs_every_report_and_is_refused_for_a_bare_memo():
    oracle = sl.create("l-grr", COLOUR.size, 1.0)
    follows = Device(oracle, COLOUR, KeyedMemory(SECRET), follow_changes=True)
    charge = charge_for(follows, 0)
    assert charge.epoch is None
    assert charge.units >= oracle.epsilon_instant * UNITS
    bare = Device(sl.create("grr", COLOUR.size, 1.0), COLOUR, KeyedMemory(SECRET), follow_changes=True)
    with pytest.raises(InputError, match="must be a finite number"):
        charge_for(bare, 0)


def test_a_mechanism_with_a_delta_is_refused():
    gaussian = sl.create("gaussian", 3, 0.5, lower=0.0, upper=1.0, delta=1e-6)
    with pytest.raises(InputError, match="a ledger counts pure budgets only"):
        Charge.fresh("a", gaussian)
    assert Charge.fresh("a", sl.create("grr", 3, 0.5)).units == UNITS // 2


def test_a_level_is_fixed_when_the_ledger_is_made(tmp_path: Path):
    levels = Levels({"careful": 0.5, "usual": 1.0, "open": 2.0})
    with Ledger.create(tmp_path / "l", PERSON, [Limit.of(3.0)], level="usual", now=0) as ledger:
        assert levels.budget(ledger.level) == 1.0
    with Ledger.open(tmp_path / "l", PERSON) as ledger:
        assert ledger.level == "usual"
        with pytest.raises(AttributeError):
            ledger.level = "open"


def test_a_published_level_adds_what_it_says_about_the_value():
    levels = Levels({"careful": 1.0, "open": 2.0})
    assert levels.leakage() == {"careful": 1.0, "open": 2.0}
    depends = levels.leakage([[0.8, 0.2], [0.95, 0.05]])
    assert depends["open"] == pytest.approx(2 + 1.3862943611)
    assert levels.leakage([[1.0, 0.0], [0.5, 0.5]])["open"] == float("inf")
    assert levels.leakage([[1.0, 0.0], [1.0, 0.0]]) == {"careful": 1.0, "open": 2.0}
