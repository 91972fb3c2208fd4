"""A device's side: fetch a task, check it, spend by the ledger, randomise here, send until it is answered.

What leaves the device is one report a round, made once. It is reserved in the person's ledger before it is
sent, and the same bytes are sent again until the server has answered, whatever crashes in between.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sidelight.foundation.arrays import AnyCodes
from sidelight.foundation.errors import InputError, invalid
from sidelight.foundation.modules import require
from sidelight.foundation.strict import Strict, validated
from sidelight.ledger import Ledger, Question
from sidelight.protocols.records import RecordReports
from sidelight.service.answering import record_codes, record_question
from sidelight.service.canonical import canonical, check_digest, parsed_document
from sidelight.service.committing import ANSWERS
from sidelight.service.rounds import Round, read_round
from sidelight.service.task import Task, read_task
from sidelight.transport.wire import Wire

if TYPE_CHECKING:
    import httpx

_AGAIN = (408, 425, 429)
"""The refusals after which the same upload may be taken."""
_REFUSED = (400, 404, 409, 413, 415)
"""Those after which it never is."""


@dataclass(frozen=True)
class Offer:
    """What a task would ask of this person now, to be shown before anything is sent.

    Attributes:
        task: the whole task, with its purpose and whom to ask.
        round: which is open; None if there is none that this device takes part in.
        question: what the ledger would be charged.
    """

    task: Task
    round: Round | None
    question: Question | None

    @property
    def shown(self) -> tuple[str, ...]:
        """The attributes that would be sent as they are, beside what the ledger is charged."""
        return () if self.round is None else self.task.course.shown(self.round)


class _RoundData(Strict):
    round: int
    state: str
    digest: str | None
    sums: str | None
    published: str | None
    is_retired: bool


class _StateData(Strict):
    task: str
    rounds: list[_RoundData]


class Client:
    """A device that answers the tasks of one service, on one person's ledger.

    It is a context: `with Client(url, ledger) as client`. The ledger stays open; it is the caller's.
    """

    def __init__(
        self, url: str, ledger: Ledger, *, transport: httpx.BaseTransport | None = None, timeout: float = 30.0
    ) -> None:
        """Take the service's address and the person's ledger.

        Args:
            url: such as https://collect.example.org.
            ledger: which is open.
            transport: instead of the network, for tests.
            timeout: after so many seconds a server is taken to be away.
        """
        package = require("httpx", "service", "the client of a service")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise invalid("url", "the address of a service, https://...", url)
        self.ledger = ledger
        # No name of the client, and no cookies: nothing about the device.
        headers = {"User-Agent": "sidelight", "Accept": "application/json"}
        none = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http: httpx.Client = package.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport, cookies=none,
            trust_env=transport is None,
        )  # fmt: skip
        self._away: type[Exception] = package.HTTPError
        self._answers: dict[tuple[str, int], str] = {}

    def task(self, name: str) -> Task:
        """Return a task by its id, after checking that it is the one."""
        digest = check_digest("task", name)
        return read_task(self._get(f"/v1/tasks/{digest}"), digest)

    def offer(self, name: str) -> Offer:
        """Return what a task asks now; raise if the ledger would refuse it. Nothing is spent or sent."""
        task = self.task(name)
        number = self._open_round(task)
        if number is None:
            return Offer(task, None, None)
        found = read_round(task, number, self._get(f"/v1/tasks/{name}/rounds/{number}"))
        question = task.course.question(found)
        self.ledger.check(question)
        return Offer(task, found, question)

    def answer(
        self,
        name: str,
        record: Mapping[str, str | int],
        token: str | None = None,
        *,
        public: Collection[str] = (),
    ) -> str | None:
        """Answer the open round of a task with a person's record: the label or the code of each attribute.

        A task that asks for one-time tokens needs a `token`. What a task sends without noise is sent only if
        you say that it is `public`, attribute by attribute: no budget bounds it, and that it is public is
        otherwise only what the task's author says.

        Returns the server's word for the report, such as "accepted" or "closed"; None where no round is open
        in which this device takes part. A round that has been answered is not answered again. An OSError
        says that the server cannot be reached: `resume` sends the same bytes later.
        """
        offer = self.offer(name)
        if offer.round is None or offer.question is None:
            return None
        if secret := [item for item in offer.shown if item not in set(public)]:
            raise InputError(
                f"the task sends {', '.join(secret)} as they are, without noise; if they are public, say so: "
                f"answer(..., public={list(offer.shown)})."
            )
        found, course = offer.round, offer.task.course
        codes = record_codes(course.asked(found), record)
        self.ledger.answer(
            offer.question,
            lambda memory: sent_as(found, course.report(found, codes, memory), token),
            self._send,
        )
        return self._answers.get(offer.question.key, "answered before")

    def resume(self) -> None:
        """Send whatever may not have arrived."""
        self.ledger.resume(self._send)

    def _open_round(self, task: Task) -> int | None:
        """Return the open round that this device takes part in: the lowest that it has not answered."""
        label = "the state of the task"
        data = parsed_document(self._get(f"/v1/tasks/{task.id}/state"), label)
        state = validated(_StateData, data, label)
        numbers = [item.round for item in state.rounds if item.state == "open"]
        own = [n for n in numbers if task.course.takes_part(self.ledger.person, task.id, n)]
        answered = {item.question.key for item in self.ledger.answers}
        return next((n for n in own if (task.id, n) not in answered), own[-1] if own else None)

    def _get(self, path: str) -> bytes:
        try:
            answer = self._http.get(path)
        except self._away as error:
            raise ConnectionError(f"the service cannot be reached: {error}") from None
        if answer.status_code != 200:
            raise _refusal(answer)
        return answer.content

    def _send(self, question: Question, report: bytes) -> None:
        """Send a report; return once its answer is final."""
        path = f"/v1/tasks/{question.task}/rounds/{question.round}/reports"
        try:
            answer = self._http.post(path, content=report, headers={"Content-Type": "application/json"})
        except self._away as error:
            raise ConnectionError(f"the service cannot be reached: {error}") from None
        self._answers[question.key] = _word(answer, report)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def question_of(found: Round) -> Question:
    """Return what the report of a round is charged with where it is a whole record's."""
    return record_question(found.task, found.number, found.protocol)


def upload_of(found: Round, codes: AnyCodes, token: str | None = None) -> bytes:
    """Return the upload of one person's record, with secure noise and a random id, to the byte."""
    return sent_as(found, found.protocol.randomise(codes), token)


def sent_as(found: Round, reports: RecordReports, token: str | None = None) -> bytes:
    """Return the upload of one person's report, with a random id, to the byte."""
    (payload,) = Wire(found.protocol).pack(reports)
    report: dict[str, Any] = {
        "id": b64encode(os.urandom(16)).decode(), "report": b64encode(payload).decode(),
        **({} if token is None else {"token": token}),
    }  # fmt: skip
    return canonical({"round": found.digest, "reports": [report]})


def _word(answer: httpx.Response, report: bytes) -> str:
    """Return the service's word for a report; raise unless it is the service that has decided.

    Something on the way (a portal, a proxy) may answer instead of it. The report would then be lost, and its
    budget spent, if that were taken for a refusal.
    """
    try:
        said = answer.json()
        if answer.status_code == 200:
            (sent,), (one,) = json.loads(report)["reports"], said["answers"]
            if one["id"] == sent["id"] and one["status"] in ANSWERS:
                return str(one["status"])
        elif answer.status_code in _REFUSED and said["status"] == answer.status_code:
            return "refused"
    except (ValueError, KeyError, TypeError):
        pass
    raise ConnectionError(f"the service answered {answer.status_code} without a decision; try again later.")


def _refusal(answer: httpx.Response) -> Exception:
    if answer.status_code >= 500 or answer.status_code in _AGAIN:
        return ConnectionError(f"the service answered {answer.status_code}; try again later.")
    try:
        detail = str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = "it does not say why"
    return InputError(f"the service refused with {answer.status_code}: {detail}")
