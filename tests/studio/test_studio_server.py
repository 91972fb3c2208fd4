"""The studio as people use it: opened, changed, worked with, killed, and opened again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sidelight.studio.history import read_state
from studio_cases import titanic
from studio_process import Studio, events


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    running = Studio(titanic(folder), folder / "people.studio.json")
    yield running
    if running.process.poll() is None:
        running.kill()


@pytest.fixture(scope="module")
def client(studio: Studio) -> Iterator[httpx.Client]:
    with studio.browser() as client:
        yield client


def ended(listening: Iterator[dict[str, Any]], work: str) -> tuple[dict[str, Any], Any]:
    """Return how work ended, and its result."""
    result = None
    for event in listening:
        if event["event"] == "result" and event["result"]["work"] == work:
            result = event["result"]
        if event["event"] == "work" and event["work"]["id"] == work and event["work"]["status"] != "running":
            return event["work"], result
    raise AssertionError("the stream ended")


def changed(client: httpx.Client, *changes: dict[str, Any], **more: Any) -> httpx.Response:
    return client.post("/api/changes", json={"changes": list(changes), **more})


def budget(epsilon: float) -> dict[str, Any]:
    return {"change": "budget", "plan": "plan-1", "attributes": ["sex"], "epsilon": epsilon}


def test_the_page_and_its_state(client: httpx.Client) -> None:
    page = client.get("/")
    assert '<div id="studio"></div>' in page.text
    assert "<title>Sidelight studio: people.csv</title>" in page.text
    state = client.get("/api/state").json()
    assert (state["table"]["name"], state["table"]["rows"]) == ("people.csv", 2201)
    assert state["banner"]["is_raw"]
    assert "table itself" in state["banner"]["text"]
    assert [column["name"] for column in state["columns"]] == ["class", "sex", "age", "survived"]


def test_a_change_is_answered_at_once_refined_over_the_stream_and_saved(client: httpx.Client) -> None:
    with events(client) as listening:
        update = changed(client, budget(0.5), window="mine").json()
        assert update["figures"][0]["secrets"][0]["total"]["kind"] in ("exact", "certified")
        seen, saved, settled = [], False, False
        for event in listening:
            seen.append(event["event"])
            saved |= event["event"] == "saved" and event["revision"] >= update["revision"]
            settled |= event["event"] == "figures" and event["figures"]["pending"] == []
            assert event.get("window", "mine") == "mine"
            if saved and settled:
                break
    assert "changed" in seen


def test_work_is_ordered_told_of_and_adopted(client: httpx.Client) -> None:
    changed(client, {"change": "secrets", "secrets": [{"name": "survived", "limit": 0.5}], "limit": None})
    results: dict[str, Any] = {}
    with events(client) as listening:
        for order in (
            {"work": "calibrate", "plan": "plan-1"}, {"work": "remedies", "plan": "plan-1"},
            {"work": "collect", "plan": "plan-1", "seed": 1},
            {"work": "attack", "plan": "plan-1", "secret": "survived", "seed": 1},
        ):  # fmt: skip
            state, results[order["work"]] = ended(
                listening, client.post("/api/work", json=order).json()["id"]
            )
            assert state["status"] == "done", state
    assert results["collect"]["people"] == 2201
    assert 0 <= results["attack"]["lower"] <= results["attack"]["success"] <= results["attack"]["upper"] <= 1
    assert all(offer["outcome"] == "within" for offer in results["remedies"]["offers"])
    place = next(at for at, offer in enumerate(results["remedies"]["offers"]) if offer["is_adoptable"])
    for work, choice in ((results["calibrate"]["work"], 0), (results["remedies"]["work"], place)):
        update = changed(client, {"change": "adopt", "plan": "plan-1", "work": work, "choice": choice}).json()
        assert update["figures"][0]["outcome"] == "within"
        changed(client, {"change": "undo"})


def test_work_that_cannot_be_says_why_and_work_can_be_cancelled(client: httpx.Client) -> None:
    changed(client, {"change": "secrets", "secrets": [], "limit": None})
    with events(client) as listening:
        order = {"work": "calibrate", "plan": "plan-1"}
        state, _ = ended(listening, client.post("/api/work", json=order).json()["id"])
        assert (state["status"], "set a limit" in state["text"]) == ("failed", True)
    work = client.post("/api/work", json={"work": "collect", "plan": "plan-1"}).json()["id"]
    assert client.delete(f"/api/work/{work}").status_code == 204
    states = {item["id"]: item["status"] for item in client.get("/api/state").json()["work"]}
    assert states[work] in ("cancelled", "done")
    assert client.delete("/api/work/nothing").status_code == 400


@pytest.mark.parametrize("kind", ["plan", "project", "report", "notebook", "commands", "schema", "state"])
def test_everything_is_exported(client: httpx.Client, kind: str) -> None:
    found = client.get(f"/api/export/{kind}?plan=plan-1")
    assert found.status_code == 200
    assert found.headers["content-disposition"].startswith('attachment; filename="people.')
    assert len(found.content) > 100


def test_a_shared_state_is_imported(client: httpx.Client) -> None:
    text = client.get("/api/export/state").text
    changed(client, budget(3.5))
    found = client.post("/api/import", content=text, headers={"Content-Type": "application/json"})
    assert found.status_code == 200
    assert found.json()["history"]["undo"] == "imported state"
    bad = client.post("/api/import", content="{}", headers={"Content-Type": "application/json"})
    assert (bad.status_code, "no studio state" in bad.json()["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/api/changes", "{", "application/json", 400),
        ("/api/changes", '{"changes": [{"change": "budget"}]}', "application/json", 400),
        ("/api/changes", '{"changes": [{"change": "undo"}], "x": 1}', "application/json", 400),
        ("/api/changes", "{}", "text/plain", 415),
        ("/api/changes", " " * (3 << 20), "application/json", 413),
        ("/api/work", '{"work": "mine"}', "application/json", 400),
        ("/api/work", '{"work": "collect", "plan": "nobody"}', "application/json", 400),
    ],
    ids=["broken", "partial", "surplus", "text", "large", "unknown work", "unknown plan"],
)
def test_bad_bodies_are_refused_in_words(
    client: httpx.Client, path: str, body: str, kind: str, status: int
) -> None:
    found = client.post(path, content=body, headers={"Content-Type": kind})
    assert found.status_code == status
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json()["detail"].endswith(".")


@pytest.mark.parametrize(
    "path", ["/api/export/nothing", "/assets/../messages.py", "/assets/nothing.js", "/other"]
)
def test_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_killed_and_opened_again_it_goes_on_where_it_was_saved(
    studio: Studio, client: httpx.Client, run
) -> None:
    state = studio.state
    with events(client) as listening:
        revision = changed(client, budget(0.125)).json()["revision"]
        while not ((event := next(listening))["event"] == "saved" and event["revision"] >= revision):
            pass
    before = client.get("/api/state").json()
    studio.kill()
    _, file = read_state(state.read_text("utf-8"), "the file")
    assert file.revision == revision
    again = Studio(state.with_name("people.csv"), state, "--port", studio.url.split(":")[-1])
    try:
        with again.browser(client.cookies) as page:  # the open page's cookie still holds
            after = page.get("/api/state").json()
        for part in ("settings", "plans", "active", "columns", "history", "revision"):
            assert after[part] == before[part]
        beside = run("studio", "--no-browser", "--state", str(state), str(state.with_name("people.csv")))
        assert (beside.code, "in use by another process" in beside.err) == (2, True)
    finally:
        code, words = again.interrupt()
    assert (code, "Stopped; what was decided is in" in words) == (0, True)


def test_ctrl_c_right_after_the_start_is_quiet(tmp_path) -> None:
    """The process beside the server still loads what it needs, and must not complain."""
    code, words = Studio(titanic(tmp_path), tmp_path / "state.json").interrupt()
    assert code == 0
    assert [line.split(";")[0] for line in words.strip().splitlines()[-1:]] == ["Stopped"]
    assert "Traceback" not in words
