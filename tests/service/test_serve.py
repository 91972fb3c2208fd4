"""The service as operators run it: a command on an empty folder, keys, backups, an orderly stop."""

from __future__ import annotations

import json
import socket
import sys
import zlib
from pathlib import Path

import pytest
import uvicorn

import sidelight as sl
from postgres import Cluster
from service_cases import cluster_fixture, people, place_fixture, sent, task, with_store
from service_http import body, path
from service_process import Process
from sidelight.ledger import Ledger, Limit
from sidelight.protocols import write_protocol
from sidelight.service import migrating
from sidelight.service.app import Settings
from sidelight.service.backups import read_backup, write_backup
from sidelight.service.keys import make_key, operator_of
from sidelight.service.rates import Limits
from sidelight.service.server import Listening, first_key, offer, serve, store_in
from sidelight.service.store import Store
from sidelight.service.task import read_task

__all__ = ["cluster_fixture", "place_fixture"]


def test_an_empty_folder_is_enough(tmp_path: Path) -> None:
    made = task()
    service = Process(tmp_path, "--workers", "2")
    with service.client() as client:
        assert client.get("/ready").json() == {"status": "ready"}
        assert client.post("/v1/tasks", content=made.document).status_code == 201
        digest = client.post(f"{path(made)}/open").json()["digest"]
        reports = sent(made.design.first, people(50))
        answer = client.post(f"{path(made)}/reports", json=body(digest, reports))
        assert answer.json()["counts"] == {"accepted": 50}
        with (
            Ledger.create(tmp_path / "ledger", "me", [Limit.of(2.5)]) as ledger,
            sl.Client(service.url, ledger) as device,
        ):
            assert device.answer(made.id, {"smokes": "no", "meal": "fish"}) == "accepted"
        assert "sidelight_reports_total" in client.get("/metrics").text
    assert service.stop() == 0
    (tmp_path / "task.json").write_bytes(made.document)
    again = Process(tmp_path, "--task", str(tmp_path / "task.json"))
    assert again.key == ""
    again.key = service.key
    with again.client() as client:
        assert client.get(f"/t/{made.id}").status_code == 200
        assert len(client.get(f"/v1/tasks/{made.id}/trail").json()["trail"]) == 2  # nothing was done again
        assert client.get(f"{path(made)}/arrivals").json() == {"people": 51}
    assert again.stop() == 0
    assert (tmp_path / "sidelight-service.db").exists()


def test_a_port_that_is_taken_is_one_line(run, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        shown = run("serve", tmp_path, "--port", taken.getsockname()[1])
    assert shown.code == 2
    assert "choose another address or port" in shown.err
    assert "slk_" not in shown.out  # the key is shown when it can be used


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "nowhere"), "does not exist; create it"),
        (("serve", ".", "--certificate", "c.pem"), "go together"),
        (
            ("serve", ".", "--certificate", "c.pem", "--key", "k.pem"),
            "c.pem with the key k.pem cannot be used",
        ),
        (("serve", ".", "--rate", "-1"), "`rate` must be"),
        (("serve", ".", "--database", "mysql://x"), "give a postgresql:// URL"),
        (("serve", ".", "--database", "postgresql:///x?host=/nowhere"), "PostgreSQL does not answer"),
        (("serve", ".", "--task", "none.json"), "none.json"),
        (("service", "key", "ada"), "there is no service in"),
        (("service", "restore", "nothing.backup"), "cannot be read"),
        (("service", "task", "p.toml", "-o", "t.json"), "a task needs --purpose and --contact"),
    ],
)
def test_bad_options_are_one_line(run, tmp_path: Path, monkeypatch, words, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(*words, *(("--port", "0") if words[0] == "serve" else ()))
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert said in shown.err


def test_a_task_is_written_from_a_protocol(run, tmp_path: Path) -> None:
    write_protocol(task().design.first, tmp_path / "protocol.toml")
    words = ("--purpose", "To plan the canteen.", "--contact", "canteen@example.org", "--smallest-crowd", 1)
    shown = run("service", "task", tmp_path / "protocol.toml", *words, "-o", tmp_path / "task.json")
    assert shown.code == 0, shown.err
    assert read_task((tmp_path / "task.json").read_bytes()).id == task().id
    phases = ("--phases", "corr-rr", "--epsilon", 2, "-o", tmp_path / "phases.json")
    assert run("service", "task", tmp_path / "protocol.toml", *words, *phases).code == 0
    assert json.loads((tmp_path / "phases.json").read_bytes())["rounds"] == 2


def test_a_task_is_offered_from_the_start_and_only_once(tmp_path: Path) -> None:
    made = task(rounds=2)
    for _ in range(2):
        assert offer(store_in(tmp_path), made.document) == made.id

    async def look(store: Store) -> None:
        assert [item.state for item in await store.rounds(made.id)] == ["open", "draft"]
        assert [entry.data["kind"] for entry in await store.trail(made.id)] == ["made", "opened"]

    with_store(store_in(tmp_path), look)


def test_answers_leave_without_delay() -> None:
    with Listening(port=0).bind() as bound:
        assert bound.proto == socket.IPPROTO_TCP  # by which asyncio knows that it may say TCP_NODELAY


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_tables_of_a_new_store_are_those_that_alembic_makes(dialect) -> None:
    kept = Path(migrating.__file__).parent / "migrations" / f"{dialect}.sql"
    assert kept.read_text("utf-8") == migrating.written(dialect, migrating.BASE)


def checked(run, place: object) -> dict[str, tuple[bool, str]]:
    shown = run("doctor", "--json", "--service", place)
    found = {item["subject"]: (item["is_fine"], item["detail"]) for item in json.loads(shown.out)}
    assert shown.code == (0 if all(fine for name, (fine, _) in found.items() if "service " in name) else 3)
    return found


def test_the_doctor_looks_at_an_embedded_store(run, tmp_path: Path) -> None:
    is_fine, said = checked(run, tmp_path)["service store"]
    assert not is_fine
    assert "`sidelight serve" in said
    assert not (tmp_path / "sidelight-service.db").exists()
    first_key(store_in(tmp_path))
    found = checked(run, tmp_path)
    assert found["service store"][1].endswith("is sound")
    assert found["service tables"] == (True, migrating.NEWEST)
    assert "million reports" in found["service disk"][1]
    Path(store_in(tmp_path)).write_bytes(b"no database at all" * 500)
    assert "restore a backup" in checked(run, tmp_path)["service store"][1]


def test_the_doctor_looks_at_postgresql(run, cluster: Cluster) -> None:
    place = cluster.database()
    assert checked(run, place)["service tables"] == (True, "none yet: the start makes them")
    first_key(place)
    found = checked(run, place)
    assert found["service tables"] == (True, migrating.NEWEST)
    assert found["service store"][1].startswith("PostgreSQL ")
    assert found["service commits"] == (True, "wait for the disk")
    assert "does not answer" in checked(run, "postgresql:///x?host=/nowhere")["service store"][1]


def test_keys_are_made_and_replaced(run, tmp_path: Path) -> None:
    assert first_key(store_in(tmp_path)) is not None
    assert first_key(store_in(tmp_path)) is None
    keys = [run("service", "key", "ada", "--folder", tmp_path).out.strip() for _ in range(2)]

    async def look(store: Store) -> None:
        kept = await store.keys()
        assert set(kept) == {"first", "ada"}
        assert [operator_of(key, kept) for key in (*keys, make_key(), "\ud800")] == [None, "ada", None, None]

    with_store(store_in(tmp_path), look)


def test_a_key_needs_a_name(run, tmp_path: Path) -> None:
    first_key(store_in(tmp_path))
    for name in ("", "  ", "x" * 201):
        shown = run("service", "key", name, "--folder", tmp_path)
        assert shown.code == 2
        assert "`name` must be a text of 1 to 200 characters" in shown.err


def test_a_store_of_a_newer_version_is_left_alone(place: str) -> None:
    async def change(store: Store) -> None:
        async with store.session() as session:
            await session.fetch("UPDATE alembic_version SET version_num = $1", "0009")

    with_store(place, change)
    with pytest.raises(sl.InputError, match="the store has version 0009"):
        first_key(place)


def test_a_backup_of_a_running_service_is_restored_elsewhere(run, tmp_path: Path) -> None:
    made, (here, there) = task(), (tmp_path / "here", tmp_path / "there")
    here.mkdir()
    there.mkdir()
    (tmp_path / "secret").write_text("correct horse battery\n")
    service = Process(here)
    reports = sent(made.design.first, people(40))
    with service.client() as client:
        client.post("/v1/tasks", content=made.document)
        digest = client.post(f"{path(made)}/open").json()["digest"]
        client.post(f"{path(made)}/reports", json=body(digest, reports[:30]))
        words = (tmp_path / "b", "--passphrase", tmp_path / "secret")
        assert run("service", "backup", *words, "--folder", here).code == 0
        client.post(f"{path(made)}/reports", json=body(digest, reports[30:]))
    service.stop()
    assert made.document not in (tmp_path / "b").read_bytes()
    assert run("service", "backup", *words, "--folder", here).code == 2  # it would be lost
    shown = run("service", "restore", *words, "--folder", there)
    assert "those sent again are counted" in shown.out
    assert run("service", "restore", *words, "--folder", there).code == 2
    restored = Process(there)
    restored.key = service.key
    with restored.client() as client:
        assert client.get(f"{path(made)}/arrivals").json() == {"people": 30}
        again = client.post(f"{path(made)}/reports", json=body(digest, reports))
        assert again.json()["counts"] == {"repeated": 30, "accepted": 10}
    restored.stop()


def test_a_damaged_backup_restores_nothing(place: str, tmp_path: Path) -> None:
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"

    async def save(store: Store) -> None:
        await store.add_task(task().id, task().document, 1, 5)
        await write_backup(store, plain)
        await write_backup(store, sealed, "correct horse battery")

    async def refuse(store: Store) -> None:
        content = plain.read_bytes()
        for end in (0, 5, 60, len(content) - 30, len(content) - 1):
            (tmp_path / "cut").write_bytes(content[:end])
            with pytest.raises(sl.InputError):
                await read_backup(store, tmp_path / "cut", None, 9)
        for secret, said in ((None, "give the passphrase"), ("wrong horse battery", "passphrase is wrong")):
            with pytest.raises(sl.InputError, match=said):
                await read_backup(store, sealed, secret, 9)
        flipped = bytearray(sealed.read_bytes())
        flipped[-5] ^= 1
        (tmp_path / "cut").write_bytes(flipped)
        with pytest.raises(sl.InputError, match="was changed"):
            await read_backup(store, tmp_path / "cut", "correct horse battery", 9)
        assert await store.tasks() == []
        await read_backup(store, sealed, "correct horse battery", 9)
        assert await store.tasks() == [task().id]

    with_store(place, save)
    with_store(str(tmp_path / "other.db"), refuse)


@pytest.mark.parametrize(
    ("salt", "frame", "said"),
    [
        ('"zz"', b"", "its salt is no hexadecimal number"),
        ("null", zlib.compress(bytes(1 << 20)), "too large, or not whole"),
        ("null", zlib.compress(b"\x92\xa1x\x90")[:-1], "too large, or not whole"),
        ("null", zlib.compress(b"\x92\xa5tasks\x91\x90") + b"x", "too large, or not whole"),
        ("null", zlib.compress(b"\x92\xa5tasks\x91\x90"), "is broken"),
        ("null", zlib.compress(b"\x92\xa5other\x91\x90"), "a table 'other'"),
    ],
)
def test_a_hostile_backup_is_one_line(run, tmp_path: Path, monkeypatch, salt, frame, said: str) -> None:
    monkeypatch.setattr("sidelight.service.backups._LARGEST_FRAME", 1 << 16)
    head = f'{{"backup":"sidelight","version":1,"salt":{salt}}}\n'.encode()
    (tmp_path / "b").write_bytes(head + len(frame).to_bytes(4, "little") + frame)
    (tmp_path / "secret").write_text("correct horse battery\n")
    secret = ("--passphrase", tmp_path / "secret") if salt != "null" else ()
    shown = run("service", "restore", tmp_path / "b", "--folder", tmp_path, *secret)
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert said in shown.err


def test_a_backup_of_large_rows_has_several_frames(place: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sidelight.service.backups._LARGE_FRAME", 1000)
    monkeypatch.setattr("sidelight.service.backups._LARGEST_FRAME", 4000)

    async def save(store: Store) -> None:
        await store.add_task(task(30).id, task(30).document, 30, 5)
        await write_backup(store, tmp_path / "b")

    async def restore(store: Store) -> None:
        await read_backup(store, tmp_path / "b", None, 9)
        assert len(await store.rounds(task(30).id)) == 30

    with_store(place, save)
    with_store(str(tmp_path / "other.db"), restore)


def test_limits_are_checked_and_headers_of_proxies_are_not_believed(tmp_path: Path, monkeypatch) -> None:
    made = []

    class Server:
        def __init__(self, config: uvicorn.Config) -> None:
            made.append(config)

        def run(self, sockets: object) -> None:
            assert sockets

    monkeypatch.setattr(uvicorn, "Server", Server)
    serve(Settings(store_in(tmp_path)), Listening(port=0), lambda _url: None)
    assert (made[0].proxy_headers, made[0].access_log) == (False, False)
    for wrong in ({"rate": -1.0}, {"rate": float("nan")}, {"burst": 0}, {"body": 0}):
        with pytest.raises(sl.InputError, match=f"`{next(iter(wrong))}` must be"):
            Limits(**wrong)


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "asyncpg"])
def test_without_the_extra_the_error_names_it(run, tmp_path: Path, monkeypatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    shown = run("serve", tmp_path)
    assert shown.code == 2
    assert 'pip install "sidelight[service]"' in shown.err
