"""The published vectors, by the package and by a second client written from docs/ledger.md alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from math import isqrt
from pathlib import Path

import pytest

from ledger_stores import SECRET, MemoryStore, nowhere
from sidelight.foundation.errors import InputError
from sidelight.ledger import Charge, Ledger, OverspentError, Question
from sidelight.ledger.lines import line_of

VECTORS = json.loads(Path(__file__).with_name("ledger_vectors.json").read_text("utf-8"))
KEYS = {
    "open": {"kind", "version", "person", "opened", "secret", "level", "limits"},
    "reserve": {"kind", "time", "task", "round", "charges", "frozen", "report"},
    "send": {"kind", "task", "round"},
}
KEYS["acknowledge"] = KEYS["withdraw"] = KEYS["send"]
NEXT = {
    ("reserved", "send"): "sent",
    ("sent", "acknowledge"): "acknowledged",
    ("reserved", "withdraw"): "withdrawn",
}


class RefusedError(Exception):
    """The second client refuses."""


def need(holds: bool) -> None:
    if not holds:
        raise RefusedError


def entries(content: bytes) -> tuple[list[dict], str]:
    """Return what the whole lines hold, and the last digest."""
    found, before = [], bytes(32)
    while content:
        line, feed, rest = content.partition(b"\n")
        if not feed:
            head = re.fullmatch(rb"[0-9a-f]{64} ([0-9]{8}) (.*)", line, re.DOTALL)
            begins = re.fullmatch(rb"[0-9a-f]{0,64}|[0-9a-f]{64} [0-9]{0,8}", line)
            need(bool(begins) or (head is not None and len(head[2]) <= int(head[1])))
            break
        head = re.fullmatch(rb"([0-9a-f]{64}) ([0-9]{8}) (.*)", line)
        need(head is not None and len(head[3]) == int(head[2]))
        before = hashlib.sha256(before + head[3]).digest()
        need(before.hex().encode() == head[1])
        found.append(json.loads(head[3]))
        content = rest
    need(bool(found))
    return found, before.hex()


def replay(found: list[dict], person: str) -> dict[tuple[str, int], dict]:
    """Return the answers, or refuse."""
    first, *rest = found
    need(first.get("kind") == "open" and first["version"] == 1 and set(first) == KEYS["open"])
    need(first["person"] == person)
    answers: dict[tuple[str, int], dict] = {}
    latest: dict[str, dict] = {}
    frozen: set[tuple[str, str]] = set()
    last = first["opened"]
    for entry in rest:
        need(set(entry) == KEYS.get(entry["kind"], set()))
        key = entry["task"], entry["round"]
        if entry["kind"] != "reserve":
            need(key in answers and (answers[key]["state"], entry["kind"]) in NEXT)
            answers[key]["state"] = NEXT[answers[key]["state"], entry["kind"]]
            continue
        before = latest.get(entry["task"])
        holds = {(item["attribute"], item["epoch"]) for item in entry["frozen"]}
        need(key not in answers and entry["time"] >= last and not holds & frozen)
        need(all(isinstance(charge["units"], int) for charge in entry["charges"]))
        need(before is None or (entry["round"] > before["round"] and terms(entry) == terms(before)))
        answers[key], latest[entry["task"]], last = {**entry, "state": "reserved"}, entry, entry["time"]
        frozen |= holds
    return answers


def terms(entry: dict) -> list[tuple]:
    return sorted(
        (item["attribute"], item["channel"], item["units"], item["epoch"] is None)
        for item in entry["charges"]
    )


def leaves(limit: dict, then: int, opened: int) -> float:
    """Return when what was spent counts no more."""
    unit, units = limit["unit"], limit["window_units"]
    return {
        "ever": lambda: float("inf"),
        "sliding": lambda: (then // unit + units) * unit,
        "year": lambda: datetime(datetime.fromtimestamp(then, UTC).year + 1, 1, 1, tzinfo=UTC).timestamp(),
        "epoch": lambda: opened + ((then - opened) // unit + 1) * unit,
    }[limit["window"]]()


def counted(uses: list[tuple[int, dict]], limit: dict, opened: int, now: int) -> list[int]:
    seen, spent = set(), []
    for time, charge in uses:
        memo = (charge["channel"], charge["attribute"], charge["epoch"])
        if leaves(limit, time, opened) > now and (charge["epoch"] is None or memo not in seen):
            spent.append(charge["units"])
            seen.add(memo)
    return spent


def admits(limit: dict, spent: list[int]) -> bool:
    if limit["budgets"]:
        within = all(one <= most for one, most in zip(spent, limit["budgets"], strict=False))
        return len(spent) <= len(limit["budgets"]) and within
    filtered = limit["most_squares"] is not None and sum(one * one for one in spent) <= int(
        limit["most_squares"]
    )
    return filtered or sum(spent) <= limit["units"]


def left(limit: dict, spent: list[int]) -> int:
    if limit["budgets"]:
        return ([*limit["budgets"], 0])[min(len(spent), len(limit["budgets"]))]
    squares = int(limit["most_squares"] or 0) - sum(one * one for one in spent)
    return max(isqrt(max(squares, 0)) if limit["most_squares"] else 0, limit["units"] - sum(spent), 0)


@pytest.mark.parametrize("vector", VECTORS["files"], ids=range(len(VECTORS["files"])))
def test_files_read_as_published(vector: dict):
    ledger = Ledger(MemoryStore(vector["content"].encode()), vector["person"])
    assert (ledger.head.lines, ledger.head.digest) == (vector["lines"], vector["digest"])
    assert [
        {
            "task": answer.question.task, "round": answer.question.round, "state": answer.state,
            "report": None if answer.report is None else answer.report.hex(),
        }
        for answer in ledger.answers
    ] == vector["answers"]  # fmt: skip
    assert [one.left for one in ledger.remaining(now=vector["now"])] == vector["left"]


@pytest.mark.parametrize("vector", VECTORS["files"], ids=range(len(VECTORS["files"])))
def test_a_second_client_reads_the_same(vector: dict):
    found, digest = entries(vector["content"].encode())
    assert (len(found), digest) == (vector["lines"], vector["digest"])
    answers = replay(found, vector["person"])
    for answer, said in zip(answers.values(), vector["answers"], strict=True):
        assert (answer["task"], answer["round"], answer["state"]) == (
            said["task"],
            said["round"],
            said["state"],
        )
        if said["report"] is not None:
            assert base64.b64decode(answer["report"]).hex() == said["report"]
    uses = [
        (answer["time"], charge)
        for answer in answers.values()
        if answer["state"] != "withdrawn"
        for charge in answer["charges"]
    ]
    opened = found[0]["opened"]
    assert vector["left"] == [
        left(limit, counted(uses, limit, opened, vector["now"])) for limit in found[0]["limits"]
    ]


@pytest.mark.parametrize("vector", VECTORS["bad"], ids=lambda vector: vector["why"])
def test_bad_files_are_refused_by_both(vector: dict):
    with pytest.raises(InputError) as caught:
        Ledger(MemoryStore(vector["content"].encode()), vector["person"])
    assert str(caught.value) == vector["said"]
    with pytest.raises(RefusedError):
        replay(entries(vector["content"].encode())[0], vector["person"])


def charges_of(step: dict) -> tuple[Charge, ...]:
    return tuple(Charge(**charge) for charge in step["charges"])


@pytest.mark.parametrize("vector", VECTORS["admissions"], ids=range(len(VECTORS["admissions"])))
def test_questions_are_admitted_as_published(vector: dict):
    first = {
        "kind": "open", "version": 1, "person": "ann", "opened": vector["opened"], "level": None,
        "secret": base64.b64encode(SECRET).decode(), "limits": vector["limits"],
    }  # fmt: skip
    ledger = Ledger(MemoryStore(line_of(None, first)[0]), "ann")
    for number, step in enumerate(vector["steps"]):
        question = Question(str(number), 0, charges_of(step))
        if step["admitted"]:
            ledger.answer(question, lambda _: b"", nowhere, now=step["time"])
            continue
        with pytest.raises(OverspentError) as caught:
            ledger.answer(question, lambda _: b"", nowhere, now=step["time"])
        short = caught.value.remaining
        assert (short.left, short.returns) == (step["left"], step["returns"])


@pytest.mark.parametrize("vector", VECTORS["admissions"], ids=range(len(VECTORS["admissions"])))
def test_a_second_client_admits_the_same(vector: dict):
    uses: list[tuple[int, dict]] = []
    opened = vector["opened"]

    def short(limit: dict, asked: list[dict], now: int) -> bool:
        new = [(now, charge) for charge in asked]
        return not admits(limit, counted(uses + new, limit, opened, now))

    for step in vector["steps"]:
        now, asked = step["time"], step["charges"]
        missing = [limit for limit in vector["limits"] if short(limit, asked, now)]
        assert step["admitted"] == (not missing)
        if not missing:
            uses += [(now, charge) for charge in asked]
            continue
        limit = missing[0]
        assert vector["limits"].index(limit) == step["limit"]
        assert left(limit, counted(uses, limit, opened, now)) == step["left"]
        times = sorted({leaves(limit, time, opened) for time, _ in uses} - {float("inf")})
        fitting = [time for time in times if time > now and not short(limit, asked, time)]
        assert (fitting[0] if fitting else None) == step["returns"]
