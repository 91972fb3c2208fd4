"""The lean route: uploads of reports, parsed by msgspec straight from bytes, answered report by report.

Whatever comes, the answer is a refusal in words: 400 for what is no upload, 413 for too much, 415 for another
type, 429 for too often. Nothing about a sender is kept or logged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sidelight.service.arrow_uploads import from_arrow
from sidelight.service.bodies import read_body
from sidelight.service.collector import Collector, hash_token
from sidelight.service.committing import Answer
from sidelight.service.metrics import Metrics
from sidelight.service.problems import ProblemError
from sidelight.service.rates import Limits, Rates
from sidelight.service.store import ID_BYTES, Submission

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
_DIGITS = 7
_Id = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
_Token = Annotated[str, msgspec.Meta(max_length=100)]


class ReportIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A report as JSON has it; bytes are in base 64."""

    id: _Id
    payload: bytes = msgspec.field(name="report")
    token: _Token | None = None


class UploadIn(msgspec.Struct, forbid_unknown_fields=True):
    """An upload: the digest of the round that the reports were made for, and the reports."""

    round: str
    reports: list[ReportIn]


class AnswerOut(msgspec.Struct, omit_defaults=True, gc=False):
    """What became of one report."""

    id: bytes
    status: str
    reason: str = ""


class UploadOut(msgspec.Struct):
    """The answer to an upload: how many reports got which answer, and each of them in its order."""

    counts: dict[str, int]
    answers: list[AnswerOut] | msgspec.Raw


_decoder = msgspec.json.Decoder(UploadIn)
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, eq=False)
class Uploads:
    """What the route needs."""

    collector: Collector
    limits: Limits
    rates: Rates
    metrics: Metrics

    async def answer(self, request: Request) -> Response:
        """Answer one upload."""
        # An address is looked at to count how often it asks, and forgotten.
        address = request.client.host if request.client else ""
        if wait := self.rates.wait(address):
            raise ProblemError(429, "Too many requests from one address; come back later.", wait)
        body = await read_body(request, self.limits.body)
        start = perf_counter()
        digest, submissions = self._parsed(request, body)
        task, number = request.path_params["task"], request.path_params["number"]
        if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
            raise ProblemError(404, "A round has a number.")
        answers = await self.collector.upload(task, int(number), digest, submissions)
        self.metrics.seconds.observe(perf_counter() - start)
        is_one = bool(answers) and answers.count(answers[0]) == len(answers)
        counts = {answers[0].status: len(answers)} if is_one else Counter(item.status for item in answers)
        for status, count in counts.items():
            self.metrics.reports.labels(status).inc(count)
        each = _same(submissions, answers[0]) if is_one else _each(submissions, answers)
        return Response(_encoder.encode(UploadOut(dict(counts), each)), media_type=JSON)

    def _parsed(self, request: Request, body: bytes) -> tuple[str, list[Submission]]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == JSON:
            digest, submissions = _from_json(body)
        elif kind == ARROW:
            digest, submissions = from_arrow(body, self.limits.reports)
        else:
            raise ProblemError(415, f"An upload is {JSON} or {ARROW}.")
        if len(submissions) > self.limits.reports:
            raise ProblemError(
                413, f"An upload has at most {self.limits.reports} reports; send fewer at once."
            )
        return digest, submissions


def _from_json(body: bytes) -> tuple[str, list[Submission]]:
    try:
        upload = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, f"The upload cannot be read: {error}.") from None
    # Without its name, in whatever spelling, there is no token: the same fields, and no need of copies.
    if b'"token"' not in body and b"\\" not in body:
        return upload.round, cast("list[Submission]", upload.reports)
    return upload.round, [
        Submission(item.id, item.payload, None if item.token is None else hash_token(item.token))
        for item in upload.reports
    ]


def _each(submissions: Sequence[Submission], answers: Sequence[Answer]) -> list[AnswerOut]:
    return [
        AnswerOut(item.id, answer.status, answer.reason)
        for item, answer in zip(submissions, answers, strict=True)
    ]


def _same(submissions: Sequence[Submission], answer: Answer) -> msgspec.Raw:
    """Return what `_each` is encoded to if all answers are this one, as nearly always."""
    head, tail = _encoder.encode(AnswerOut(b"", answer.status, answer.reason)).split(b'""', 1)
    ids = _encoder.encode([item.id for item in submissions])[1:-1]
    # Base 64 has neither quotes nor commas, so this is what stands between two ids and nothing else.
    return msgspec.Raw(b"[" + head + ids.replace(b'","', b'"' + tail + b"," + head + b'"') + tail + b"]")
