"""The lean route: uploads of reports, read as columns straight from bytes, answered report by report.

Whatever comes, the answer is a refusal in words: 400 for what is no upload, 413 for too much, 415 for another
type, 429 for too often. Nothing about a sender is kept or logged.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sidelight.service.arrow_uploads import from_arrow
from sidelight.service.batches import ID_BYTES, Batch
from sidelight.service.bodies import read_body
from sidelight.service.collector import Collector
from sidelight.service.committing import Answer
from sidelight.service.json_uploads import from_json
from sidelight.service.metrics import Metrics
from sidelight.service.problems import ProblemError
from sidelight.service.rates import Limits, Rates

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
_DIGITS = 7
_FEW = 16
"""So many answers are written one by one in less time."""
_NO_ID = b2a_base64(bytes(ID_BYTES), newline=False)


class AnswerOut(msgspec.Struct, omit_defaults=True, gc=False):
    """What became of one report."""

    id: bytes
    status: str
    reason: str = ""


class UploadOut(msgspec.Struct):
    """The answer to an upload: how many reports got which answer, and each of them in its order."""

    counts: dict[str, int]
    answers: list[AnswerOut] | msgspec.Raw


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
        digest, batch = self._parsed(request, body)
        task, number = request.path_params["task"], request.path_params["number"]
        if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
            raise ProblemError(404, "A round has a number.")
        answers = await self.collector.upload(task, int(number), digest, batch)
        self.metrics.seconds.observe(perf_counter() - start)
        is_one = bool(answers) and answers.count(answers[0]) == len(answers)
        counts = {answers[0].status: len(answers)} if is_one else Counter(item.status for item in answers)
        for status, count in counts.items():
            self.metrics.reports.labels(status).inc(count)
        is_quick = is_one and len(answers) > _FEW
        each = _same(batch.ids, answers[0]) if is_quick else _each(batch, answers)
        return Response(_encoder.encode(UploadOut(dict(counts), each)), media_type=JSON)

    def _parsed(self, request: Request, body: bytes) -> tuple[str, Batch]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == JSON:
            digest, batch = from_json(body)
        elif kind == ARROW:
            digest, batch = from_arrow(body, self.limits.reports)
        else:
            raise ProblemError(415, f"An upload is {JSON} or {ARROW}.")
        if len(batch) > self.limits.reports:
            raise ProblemError(
                413, f"An upload has at most {self.limits.reports} reports; send fewer at once."
            )
        return digest, batch


def _each(batch: Batch, answers: Sequence[Answer]) -> list[AnswerOut]:
    return [
        AnswerOut(name, answer.status, answer.reason)
        for name, answer in zip(batch.names, answers, strict=True)
    ]


def _same(ids: bytes, answer: Answer) -> msgspec.Raw:
    """Return what `_each` is encoded to if all answers are this one, as nearly always."""
    head, tail = _encoder.encode(AnswerOut(bytes(ID_BYTES), answer.status, answer.reason)).split(_NO_ID, 1)
    tail += b","
    count, signs, whole = len(ids) // ID_BYTES, len(_NO_ID), len(head + _NO_ID + tail)
    # Two bytes more make each id a whole number of signs; padding stands in the place of their last two.
    padded = np.zeros((count, 3 * signs // 4), dtype=np.uint8)
    padded[:, :ID_BYTES] = np.frombuffer(ids, dtype=np.uint8).reshape(count, ID_BYTES)
    rows = np.frombuffer((head + _NO_ID + tail) * count, dtype=np.uint8).reshape(count, whole).copy()
    rows[:, len(head) : len(head) + signs - 2] = np.frombuffer(
        b2a_base64(padded.tobytes(), newline=False), dtype=np.uint8
    ).reshape(count, signs)[:, :-2]
    return msgspec.Raw(b"[" + rows.tobytes()[:-1] + b"]")
