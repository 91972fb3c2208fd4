"""The service over HTTP: documents with their digests, uploads answered one by one, refusals in words."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from base64 import b64encode
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from service_cases import cluster_fixture, people, place_fixture, sent, task, two_phases
from service_http import KEY, OPERATOR, body, opened, path, served, step, with_service
from service_labels import SCHEMA as LABELS
from service_labels import ill_people, packed
from sidelight.service.app import _retire_hourly
from sidelight.service.collector import Collector
from sidelight.service.errors import StoreError
from sidelight.service.rates import Limits, Rates
from sidelight.service.sqlite import SqliteStore
from sidelight.service.task import Task, Terms
from sidelight.transport import read_checkpoint

__all__ = ["cluster_fixture", "place_fixture"]
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(name="file")
def file_fixture(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def is_problem(answer, status: int, said: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) == {"type", "title", "status", "detail"}
    assert said in answer.json()["detail"]


def test_a_collection_from_task_to_publication(place: str) -> None:
    made = task()
    records = people(500)

    async def work(client) -> None:
        digest = await opened(client, made)
        document = await client.get(f"/v1/tasks/{made.id}")
        assert document.content == made.document
        assert document.headers["etag"] == f'"{made.id}"'
        known = await client.get(path(made), headers={"If-None-Match": f'"other", "{digest}"'})
        assert (known.status_code, known.content) == (304, b"")
        reports = sent(made.design.first, records)
        answer = await client.post(f"{path(made)}/reports", json=body(digest, reports))
        assert answer.json()["counts"] == {"accepted": 500}
        assert answer.json()["answers"] == [
            {"id": b64encode(item.id).decode(), "status": "accepted"} for item in reports
        ]
        live = await client.get(f"{path(made)}/estimates?estimator=inversion", headers=OPERATOR)
        wanted = sl.estimate(made.design.first.randomise(records, seed=2), estimator="inversion")
        assert [row["frequency"] for row in live.json()["estimates"]] == [row.frequency for row in wanted]
        assert all(row["forged"] > 0.01 for row in live.json()["estimates"])
        is_problem(await client.get(f"{path(made)}/published"), 403, "not published")
        await step(client, made, "close")
        await step(client, made, "publish")
        published = await client.get(f"{path(made)}/published")
        rows = published.json()["estimates"]
        best = sl.estimate(made.design.first.randomise(records, seed=2))
        assert [(row["lower"], row["upper"]) for row in rows] == [(row.lower, row.upper) for row in best]
        late = await client.post(f"{path(made)}/reports", json=body(digest, reports[:1]))
        assert late.json()["answers"][0]["status"] == "repeated"
        kinds = [(entry["kind"], entry["by"]) for entry in (await _trail(client, made))]
        assert kinds == [(kind, "tester") for kind in ("made", "opened", "closed", "published")]

    with_service(place, work)


async def _trail(client, made) -> list[dict]:
    return (await client.get(f"/v1/tasks/{made.id}/trail", headers=OPERATOR)).json()["trail"]


async def _uploaded(client, made, digest: str, reports, number: int = 1) -> None:
    """Send reports as gateways do, 500 at a time."""
    for start in range(0, len(reports), 500):
        part = reports[start : start + 500]
        answer = await client.post(f"{path(made, number)}/reports", json=body(digest, part))
        assert answer.json()["counts"] == {"accepted": len(part)}


SIZES = pytest.mark.parametrize("size", [1000, pytest.param(10_000, marks=pytest.mark.deep)])


@SIZES
def test_two_phases_give_the_estimates_of_the_file_path(file: str, size: int) -> None:
    made = two_phases()
    table, share = people(size), int(0.4 * size)
    first = made.design.first.randomise(table[:share], seed=1)

    async def work(client) -> None:
        digest = await opened(client, made)
        await _uploaded(client, made, digest, sent(made.design.first, table[:share], 1))
        is_problem(await client.post(f"{path(made, 2)}/open", headers=OPERATOR), 409, "close that")
        await step(client, made, "close")
        digest = await step(client, made, "open", 2)
        parameters = sl.estimation.second_phase.learn_second_phase(made.design, first)
        document = json.loads((await client.get(path(made, 2))).content)
        assert document["learnt"]["reports"] == share
        second = parameters.second.randomise(table[share:], seed=2)
        await _uploaded(client, made, digest, sent(parameters.second, table[share:], 2), 2)
        said = (await client.get(f"{path(made, 2)}/estimates", headers=OPERATOR)).json()["estimates"]
        assert [row["frequency"] for row in said] == [row.frequency for row in sl.estimate([first, second])]

    with_service(file, work)


def test_pairs_in_two_phases_give_the_estimates_of_the_file_path(file: str) -> None:
    design = sl.protocols.TwoPhase(LABELS, 2.0, "pairs", share=0.3)
    made = Task(design, "To plan.", "canteen@example.org", 2, Terms(1))
    rows = ill_people(1500)
    table = np.column_stack([rows.codes, rows.labels])
    first = design.first.randomise(table[:500], seed=1)

    async def work(client) -> None:
        digest = await opened(client, made)
        await _uploaded(client, made, digest, packed(first, 1))
        await step(client, made, "close")
        digest = await step(client, made, "open", 2)
        learnt = sl.estimation.second_phase.learn_second_phase(design, first).second
        second = learnt.randomise(table[500:], seed=2)
        await _uploaded(client, made, digest, packed(second, 2), 2)
        said = (await client.get(f"{path(made, 2)}/estimates", headers=OPERATOR)).json()["estimates"]
        assert [row["frequency"] for row in said] == [row.frequency for row in sl.estimate([first, second])]

    with_service(file, work)


@SIZES
def test_five_rounds_give_the_estimates_of_the_file_path(file: str, size: int) -> None:
    made = task(5)

    async def work(client) -> None:
        for number in range(1, 6):
            digest = await opened(client, made, number)
            records = people(size, seed=number)
            await _uploaded(client, made, digest, sent(made.design.first, records, number), number)
            await step(client, made, "close", number)
            await step(client, made, "publish", number)
            said = (await client.get(f"{path(made, number)}/published")).json()["estimates"]
            wanted = sl.estimate(made.design.first.randomise(records, seed=number))
            assert [row["frequency"] for row in said] == [row.frequency for row in wanted]

    with_service(file, work)


def test_an_arrow_stream_is_an_upload_too(file: str) -> None:
    made = task(needs_token=True)

    async def work(client) -> None:
        digest = await opened(client, made)
        tokens = (await client.post(f"{path(made)}/tokens?count=3", headers=OPERATOR)).json()["tokens"]
        reports = sent(made.design.first, people(4))
        columns = {
            "id": pa.array([item.id for item in reports], pa.binary(16)),
            "report": pa.array([item.payload for item in reports]),
            "token": pa.array([*tokens, None]),
        }
        table = pa.table(columns).replace_schema_metadata({"round": digest})
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        whole = stream.getvalue()
        answer = await client.post(f"{path(made)}/reports", content=whole, headers=ARROW)
        assert answer.json()["counts"] == {"accepted": 3, "bad token": 1}
        for end in range(0, len(whole), 37):
            cut = await client.post(f"{path(made)}/reports", content=whole[:end], headers=ARROW)
            assert cut.status_code in (200, 400, 409), cut.text

    with_service(file, work)


def test_a_token_is_read_however_its_name_is_spelt(file: str) -> None:
    made = task(needs_token=True)

    async def work(client) -> None:
        digest = await opened(client, made)
        tokens = (await client.post(f"{path(made)}/tokens?count=2", headers=OPERATOR)).json()["tokens"]
        upload = body(digest, sent(made.design.first, people(2)))
        answer = await client.post(f"{path(made)}/reports", json=upload)
        assert answer.json()["counts"] == {"bad token": 2}
        for item, token in zip(upload["reports"], tokens, strict=True):
            item["token"] = token
        spelt = json.dumps(upload).replace('"token"', r'"\u0074oken"')
        kind = {"Content-Type": "application/json"}
        answer = await client.post(f"{path(made)}/reports", content=spelt, headers=kind)
        assert answer.json()["counts"] == {"accepted": 2}

    with_service(file, work)


def _stream(table: pa.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_an_arrow_stream_of_a_few_bytes_cannot_ask_for_much_memory(file: str) -> None:
    made, many = task(), 1_000_000
    zeros = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), many, [None, pa.py_buffer(bytes(16 * many))])
    few = pa.array([bytes(16)] * 3, pa.binary(16))
    hostile = [
        _stream(pa.table({"id": zeros, "report": pa.nulls(many)}), compression="zstd"),
        _stream(pa.table({"id": few, "report": pa.nulls(3)})),
        _stream(pa.table({"id": few, "report": pa.array([b"x"] * 3)}), compression="lz4"),
        _stream(pa.table({"id": few, "report": pa.array([b"x"] * 3).dictionary_encode()})),
        _stream(pa.table({"id": few.cast(pa.binary()), "report": few, "other": few})),
    ]
    larger = pa.table({"id": zeros[:11], "report": pa.array([b"x"] * 11)})

    async def work(client) -> None:
        await opened(client, made)
        before = pa.total_allocated_bytes()
        for content in hostile:
            answer = await client.post(f"{path(made)}/reports", content=content, headers=ARROW)
            assert answer.status_code == 400, answer.text
        answer = await client.post(f"{path(made)}/reports", content=_stream(larger), headers=ARROW)
        assert (answer.status_code, "at most 10 reports" in answer.text) == (413, True)
        assert pa.total_allocated_bytes() <= before

    with_service(file, work, Limits(rate=0, reports=10))


def test_only_operators_operate(file: str) -> None:
    made = task()

    async def work(client) -> None:
        await opened(client, made)
        for key in (None, "", "slk_wrong", KEY + "x", KEY[:-1]):
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            for call in ("close", "publish", "tokens?count=1"):
                answer = await client.post(f"{path(made)}/{call}", headers=headers)
                is_problem(answer, 401, "operator's key")
            for call in ("estimates", "export", "arrivals"):
                is_problem(await client.get(f"{path(made)}/{call}", headers=headers), 401)
            is_problem(await client.post("/v1/tasks", content=made.document, headers=headers), 401)
            is_problem(await client.get("/v1/tasks", headers=headers), 401)
        assert (await client.get(f"/v1/tasks/{made.id}/state")).json()["rounds"][0]["state"] == "open"

    with_service(file, work)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"round": "0" * 64}, 409, "Fetch it again"),
        ({"round": "x"}, 400, "64 hexadecimal digits"),
        ({"round": None}, 400, "cannot be read"),
        ({"extra": 1}, 400, "unknown field"),
        ({"reports": [{"id": "AAAA", "report": ""}]}, 400, "length >= 16"),
        ({"reports": [{"id": "!" * 22 + "==", "report": ""}]}, 400, "base64"),
        ({"reports": [{}]}, 400, "missing required field"),
        ({"reports": "no"}, 400, "Expected `array`"),
    ],
)
def test_what_is_no_upload_is_refused(file: str, change: dict, status: int, said: str) -> None:
    made = task()

    async def work(client) -> None:
        digest = await opened(client, made)
        upload = body(digest, sent(made.design.first, people(2))) | change
        is_problem(await client.post(f"{path(made)}/reports", json=upload), status, said)
        arrivals = await client.get(f"{path(made)}/arrivals", headers=OPERATOR)
        assert arrivals.json() == {"people": 0}

    with_service(file, work)


def test_too_much_and_too_often_are_refused(file: str) -> None:
    made = task()

    async def work(client) -> None:
        digest = await opened(client, made)
        reports = sent(made.design.first, people(12))
        upload = f"{path(made)}/reports"
        is_problem(await client.post(upload, json=body(digest, reports[:11])), 413, "at most 10 reports")
        large = b"x" * 2001
        is_problem(await client.post(upload, content=large), 413, "at most 2000 bytes")

        async def stream():
            for _ in range(3):
                yield large[:900]

        is_problem(await client.post(upload, content=stream()), 413, "at most 2000 bytes")
        is_problem(await client.post(upload, content=b"{}"), 415, "application/json")
        late = await client.post(upload, json=body(digest, reports[:1]))
        is_problem(late, 429)
        assert int(late.headers["retry-after"]) >= 1

    with_service(file, work, Limits(body=2000, reports=10, rate=1e-6, burst=4))


def test_a_bucket_fills_with_time_and_not_with_others() -> None:
    now = [0.0]
    rates = Rates(Limits(rate=2.0, burst=3), lambda: now[0])
    assert [rates.wait("a") for _ in range(4)] == [0, 0, 0, 1]
    assert rates.wait("b") == 0
    now[0] = 0.5
    assert [rates.wait("a") for _ in range(2)] == [0, 1]
    now[0] = 100.0
    assert [rates.wait("a") for _ in range(4)] == [0, 0, 0, 1]


def test_an_ipv6_network_is_one_sender_and_ipv4_addresses_are_many() -> None:
    rates = Rates(Limits(rate=1e-6, burst=1), lambda: 0.0)
    assert [rates.wait(f"2001:db8:0:7::{i}") == 0 for i in (1, 2)] == [True, False]
    assert rates.wait("2001:db8:0:8::1") == 0
    others = ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "192.0.2.3")
    assert [rates.wait(address) for address in others] == [0, 0, 0]


@pytest.mark.parametrize("name", ["%00", "%ED%A0%80", "x" * 5000, "A" * 64])
def test_a_name_that_no_task_has_is_not_found(place: str, name: str) -> None:
    async def work(client) -> None:
        upload = await client.post(f"/v1/tasks/{name}/rounds/1/reports", json={"round": "", "reports": []})
        for answer in (upload, await client.get(f"/t/{name}")):
            is_problem(answer, 404, "there is no task")
            assert len(answer.content) < 500

    with_service(place, work)


def test_sums_of_a_round_are_told_by_no_digest_before_they_are_published(file: str) -> None:
    made = task(smallest_crowd=5)

    async def sums(client) -> object:
        return (await client.get(f"/v1/tasks/{made.id}/state")).json()["rounds"][0]["sums"]

    async def work(client) -> None:
        digest = await opened(client, made)
        await _uploaded(client, made, digest, sent(made.design.first, people(5)))
        await step(client, made, "close")
        assert await sums(client) is None
        await step(client, made, "publish")
        assert len(str(await sums(client))) == 64

    with_service(file, work)


def test_retiring_goes_on_after_the_store_was_away(file: str, monkeypatch) -> None:
    tries = []

    class Failing(SqliteStore):
        async def tasks(self) -> list[str]:
            tries.append(len(tries))
            raise StoreError("the disk is full")

    class EnoughError(Exception):
        """The loop has gone round often enough."""

    async def pause(_seconds: float) -> None:
        if len(tries) == 3:
            raise EnoughError

    monkeypatch.setattr("sidelight.service.app.pause", pause)
    with pytest.raises(EnoughError):
        asyncio.run(_retire_hourly(Collector(Failing(file))))


def test_nothing_about_a_sender_is_logged(file: str, caplog: pytest.LogCaptureFixture) -> None:
    made = task()
    caplog.set_level(logging.DEBUG)

    async def work(client) -> None:
        digest = await opened(client, made)
        reports = sent(made.design.first, people(5))
        headers = {"User-Agent": "a-phone", "X-Forwarded-For": "203.0.113.9"}
        await client.post(f"{path(made)}/reports", json=body(digest, reports), headers=headers)
        await client.post(f"{path(made)}/reports", content=b"{bad", headers=headers)
        said = " ".join(record.getMessage() + str(record.__dict__.get("said")) for record in caplog.records
                        if record.name.startswith(("sidelight", "uvicorn")))  # fmt: skip
        assert "round open" in said
        for word in ("203.0.113.9", "a-phone", "127.0.0.1", b64encode(reports[0].id).decode(), "reports"):
            assert word not in said

    with_service(file, work)


def test_exports_are_what_estimate_reads(file: str, tmp_path: Path, run) -> None:
    made = task(keeps_reports=True)
    records = people(200)
    files = {}

    async def work(client) -> None:
        digest = await opened(client, made)
        reports = sent(made.design.first, records)
        await client.post(f"{path(made)}/reports", json=body(digest, reports))
        for form in ("sums", "checkpoint", "reports"):
            answer = await client.get(f"{path(made)}/export?form={form}", headers=OPERATOR)
            assert answer.status_code == 200, answer.text
            suffix = "json" if form == "checkpoint" else "parquet"
            files[form] = tmp_path / f"{form}.{suffix}"
            files[form].write_bytes(answer.content)
        is_problem(await client.get(f"{path(made)}/export?form=x", headers=OPERATOR), 400)

    with_service(file, work)
    wanted = made.design.first.randomise(records, seed=2)
    aggregator, _ = read_checkpoint(files["checkpoint"])
    assert np.array_equal(aggregator.sums[0].parts[1].sums, wanted.aggregate().parts[1].sums)
    assert sl.read_reports(files["reports"]).people == 200
    shown = [run("estimate", files[form], "--json") for form in ("checkpoint", "reports")]
    assert [item.code for item in shown] == [0, 0], shown
    figures = [json.loads(item.out)["estimates"] for item in shown]
    assert figures[0] == figures[1] == [vars(row) for row in sl.estimate(wanted)]
    table = pa.parquet.read_table(files["sums"]).to_pylist()
    assert sum(row["sum"] for row in table if row["part"] == "smokes") == 200


def test_a_store_that_is_away_is_a_503_and_nothing_is_lost(file: str) -> None:
    made = task()

    class Failing(SqliteStore):
        is_away = False

        def session(self):
            if self.is_away:
                raise StoreError("the disk is full, at /secret/place")
            return super().session()

    async def work() -> None:
        store = Failing(file)
        async with served(store) as client:
            digest = await opened(client, made)
            upload = body(digest, sent(made.design.first, people(3)))
            store.is_away = True
            answer = await client.post(f"{path(made)}/reports", json=upload)
            is_problem(answer, 503, "come back later")
            assert answer.headers["retry-after"] == "1"
            is_problem(await client.get("/ready"), 503)
            assert (await client.get("/health")).status_code == 200
            store.is_away = False
            again = await client.post(f"{path(made)}/reports", json=upload)
            assert again.json()["counts"] == {"accepted": 3}
            metrics = (await client.get("/metrics")).text
            assert "sidelight_store_failures_total 2.0" in metrics
            assert 'sidelight_uploads_total{status="503"} 1.0' in metrics
            assert 'sidelight_reports_total{answer="accepted"} 3.0' in metrics
            assert "created" not in metrics

    asyncio.run(work())


def test_bad_requests_of_operators_are_one_sentence(file: str) -> None:
    async def work(client) -> None:
        await opened(client, task())
        for content in (b"", b"[]", b'{"version": 1, "version": 1}', b"\xff", b"NaN", b"[" * 100_000):
            answer = await client.post("/v1/tasks", content=content, headers=OPERATOR)
            is_problem(answer, 400)
        is_problem(await client.get(f"/v1/tasks/{'0' * 64}"), 404, "no task")
        is_problem(await client.get(f"/v1/tasks/{task().id}/rounds/9"), 404, "no round 9")
        nothing = body("0" * 64, [])
        is_problem(await client.post(f"/v1/tasks/{task().id}/rounds/{'9' * 5000}/reports", json=nothing), 404)
        is_problem(await client.get("/nowhere"), 404)
        is_problem(await client.delete("/v1/tasks"), 405)
        wrong = await client.get(f"{path(task())}/estimates?estimator=em", headers=OPERATOR)
        is_problem(wrong, 400, "estimator")

    with_service(file, work)
