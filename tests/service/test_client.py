"""A device: it checks what it is asked, spends by its ledger, sends one noise and the same bytes again."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import sidelight as sl
from service_cases import people, task, two_phases
from sidelight.ledger import Ledger, Limit, OverspentError
from sidelight.protocols import Panel, TwoPhase
from sidelight.service.answering import takes_first
from sidelight.service.panels import PanelDesign
from sidelight.service.rounds import Round, first_round
from sidelight.service.task import Task
from sidelight.transport.wire import Wire

RECORD = {"smokes": "yes", "meal": "rice"}


class Server(httpx.BaseTransport):
    """A service that says what the test tells it to, and keeps what it got."""

    def __init__(self, made: Task, states: tuple[str, ...] = ("open",)) -> None:
        self.task, self.states = made, states
        self.document, self.round = made.document, first_round(made, 1).document
        self.uploads: list[bytes] = []
        self.requests: list[httpx.Request] = []
        self.answers: list[object] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.method == "POST":
            self.uploads.append(request.read())
            answer = self.answers.pop(0) if self.answers else "accepted"
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, int):
                return httpx.Response(answer, json={"status": answer, "detail": "because"})
            if isinstance(answer, httpx.Response):
                return answer
            name = json.loads(self.uploads[-1])["reports"][0]["id"]
            return httpx.Response(200, json={"answers": [{"id": name, "status": answer}]})
        if request.url.path.endswith("/state"):
            rounds = [
                {"round": number, "state": state, "digest": None, "sums": None, "published": None,
                 "is_retired": False}
                for number, state in enumerate(self.states, start=1)
            ]  # fmt: skip
            return httpx.Response(200, json={"task": self.task.id, "rounds": rounds})
        content = self.round if "rounds" in request.url.path else self.document
        return httpx.Response(200, content=content, headers={"Set-Cookie": "who=you; Path=/"})


@pytest.fixture(name="ledger")
def ledger_fixture(tmp_path: Path):
    with Ledger.create(tmp_path / "ledger", "a device", [Limit.of(3.0)], now=1) as ledger:
        yield ledger


def client_of(server: Server, ledger: Ledger) -> sl.Client:
    return sl.Client("http://service", ledger, transport=server)


def test_a_device_sends_one_report_and_nothing_about_itself(ledger: Ledger) -> None:
    server = Server(task())
    with client_of(server, ledger) as client:
        offer = client.offer(server.task.id)
        assert offer.task.purpose == "To plan the canteen."
        assert ledger.answers == ()
        assert client.answer(server.task.id, RECORD) == "accepted"
        assert client.answer(server.task.id, RECORD) == "accepted"
    (upload,) = server.uploads
    data = json.loads(upload)
    assert data["round"] == first_round(server.task, 1).digest
    ((report),) = data["reports"]
    assert set(report) == {"id", "report"}
    assert len(b64decode(report["id"])) == 16
    assert not Wire(server.task.design.first).unpack([b64decode(report["report"])]).refused
    told = {name for request in server.requests for name in request.headers}
    assert told <= {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length",
                    "content-type"}  # fmt: skip
    assert {request.headers["user-agent"] for request in server.requests} == {"sidelight"}
    assert [answer.state for answer in ledger.answers] == ["acknowledged"]


PORTALS = [
    httpx.Response(302, headers={"Location": "http://portal/"}),
    httpx.Response(403, text="<html>Not from this network.</html>"),
    httpx.Response(404, text="<html>Nothing here.</html>"),
    httpx.Response(200, text="<html>Please log in.</html>"),
    httpx.Response(200, json={"answers": [{"id": "another", "status": "accepted"}]}),
    httpx.Response(200, json={"answers": []}),
]
"""What something on the way may answer instead of the service."""


@pytest.mark.parametrize(
    "away", [httpx.ConnectError("gone"), httpx.ReadTimeout("slow"), 503, 429, 403, *PORTALS]
)
def test_a_retry_sends_the_same_bytes(ledger: Ledger, tmp_path: Path, away: object) -> None:
    server = Server(task())
    server.answers = [away, away, "repeated"]
    client = client_of(server, ledger)
    with pytest.raises(OSError, match="service"):
        client.answer(server.task.id, RECORD)
    ledger.close()
    with Ledger.open(tmp_path / "ledger", "a device") as again:
        other = client_of(server, again)
        with pytest.raises(OSError, match="service"):
            other.resume()
        other.resume()
        other.resume()
        assert len(server.uploads) == 3
        assert len(set(server.uploads)) == 1
        assert [answer.state for answer in again.answers] == ["acknowledged"]
        # Another answer to the same question would be a second noise.
        assert other.answer(server.task.id, {"smokes": "no", "meal": "fish"}) == "repeated"
        assert len(server.uploads) == 3


def test_a_refusal_of_the_whole_upload_is_final(ledger: Ledger) -> None:
    server = Server(task())
    server.answers = [409]
    with client_of(server, ledger) as client:
        assert client.answer(server.task.id, RECORD) == "refused"
        client.resume()
    assert len(server.uploads) == 1


@pytest.mark.parametrize("word", ["closed", "over quota", "malformed", "bad token"])
def test_a_refusal_is_final(ledger: Ledger, word: str) -> None:
    server = Server(task())
    server.answers = [word]
    with client_of(server, ledger) as client:
        assert client.answer(server.task.id, RECORD, token="t") == word
        client.resume()
    assert len(server.uploads) == 1
    assert json.loads(server.uploads[0])["reports"][0]["token"] == "t"


def test_a_ledger_that_is_short_sends_nothing(ledger: Ledger) -> None:
    first, second = Server(task()), Server(replace(task(), purpose="To ask again."))
    client_of(first, ledger).answer(first.task.id, RECORD)
    with pytest.raises(OverspentError):
        client_of(second, ledger).answer(second.task.id, RECORD)
    assert second.uploads == []


def test_a_task_or_round_that_is_not_what_it_says_is_not_answered(ledger: Ledger) -> None:
    server = Server(task())
    server.document = task(2).document
    client = client_of(server, ledger)
    with pytest.raises(sl.InputError, match="not the document that its digest"):
        client.answer(server.task.id, RECORD)
    server.document = server.task.document
    dearer = sl.protocols.make_protocol("spl", server.task.design.schema, 2.9)
    server.round = Round(server.task.id, 1, dearer).document
    with pytest.raises(sl.InputError, match="two protocols"):
        client.answer(server.task.id, RECORD)
    assert server.uploads == []
    assert ledger.answers == ()


def test_a_record_must_fit(ledger: Ledger) -> None:
    server = Server(task())
    client = client_of(server, ledger)
    for record, said in (
        ({"smokes": "yes"}, "must have a value for smokes, meal"),
        ({"smokes": "maybe", "meal": "rice"}, "maybe"),
        ({"smokes": 2, "meal": "rice"}, "a code from 0 to 1"),
        ({"smokes": True, "meal": "rice"}, "a label, or a code"),
    ):
        with pytest.raises(sl.InputError, match=said):
            client.answer(server.task.id, record)
    assert server.uploads == []
    assert client.answer(server.task.id, {"smokes": 1, "meal": 2}) == "accepted"


def test_a_device_answers_one_of_two_phases(tmp_path: Path) -> None:
    made = replace(two_phases(), design=TwoPhase(two_phases().design.schema, 2.0, share=0.5))
    server = Server(made, ("open", "draft"))
    answered = []
    for name in range(20):
        with Ledger.create(tmp_path / f"{name}", f"device {name}", [Limit.of(3.0)], now=1) as ledger:
            answered.append(client_of(server, ledger).answer(made.id, RECORD))
            assert (answered[-1] == "accepted") == takes_first(f"device {name}", made.id, 0.5)
    assert {"accepted", None} == set(answered)


def test_the_share_of_devices_in_the_first_phase_is_the_one_asked_for() -> None:
    # 20,000 devices at 0.1: six standard deviations are 0.0127, which chance exceeds once in 10^9 runs.
    share = sum(takes_first(f"d{i}", "0" * 64, 0.1) for i in range(20_000)) / 20_000
    assert abs(share - 0.1) < 0.0127


def test_a_device_in_a_panel_sends_its_kept_response_again_and_pays_once(tmp_path: Path) -> None:
    smokes = sl.categorical("smokes", ("no", "yes"))
    panel = Panel(sl.Plan((sl.Release(smokes, "grr", 1.0, 3, memory="kept"),)))
    made = Task(PanelDesign(panel), "To see who stops.", "clinic@example.org", 3)
    server, sent = Server(made, ("open", "draft", "draft")), []
    with Ledger.create(tmp_path / "ledger", "me", [Limit.of(1.5)], now=1) as ledger:
        for number in (1, 2, 3):
            server.states = tuple("open" if n == number else "closed" for n in (1, 2, 3))
            server.round = made.course.made(made.id, number, ()).document
            word = client_of(server, ledger).answer(made.id, {"smokes": "no" if number == 1 else "yes"})
            assert word == "accepted"
            sent.append(json.loads(server.uploads[-1])["reports"][0])
        # The value is frozen, so that a change within the epoch is not told, and costs nothing.
        assert len({item["report"] for item in sent}) == 1
        assert len({item["id"] for item in sent}) == 3
        assert ledger.remaining()[0].left / 1e9 == pytest.approx(0.5)


def test_bad_addresses_are_refused(ledger: Ledger) -> None:
    with pytest.raises(sl.InputError, match="`url` must be the address"):
        sl.Client("service", ledger)
    with client_of(Server(task()), ledger) as client, pytest.raises(sl.InputError, match="64 hexadecimal"):
        client.task("x")


def test_people_are_as_the_cases_say() -> None:
    assert people(10).shape == (10, 2)
