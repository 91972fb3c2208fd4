"""Label collections over HTTP: rounds run by themselves to the model of the file path, to the last bit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl
from conftest import AT_MOST
from service_cases import cluster_fixture, people, place_fixture, sent, task, with_collector
from service_http import OPERATOR, body, opened, path, step, with_service
from service_labels import ill_people, label_task, of_parts, packed, turn_reports
from sidelight.foundation.randomness import derive_seed
from sidelight.labels.collection import gather, make_responses, settle_omegas
from sidelight.learning import private_bayes, private_tree, read_model
from sidelight.learning.tree_rounds import TreeRounds
from sidelight.mechanisms import Reports
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import RecordReports
from sidelight.service.advancing import Advancer
from sidelight.service.batches import Batch
from sidelight.service.label_design import LabelDesign
from sidelight.service.results import model
from sidelight.service.rounds import Round, read_round
from sidelight.service.task import Pace, Task, read_task

__all__ = ["cluster_fixture", "place_fixture"]
SIZES = pytest.mark.parametrize("size", [1000, pytest.param(10_000, marks=pytest.mark.deep)])


@pytest.fixture(name="file")
def file_fixture(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


async def _sent(client, made: Task, number: int, reports: RecordReports) -> None:
    """Send reports as gateways do, 500 at a time."""
    digest = json.loads((await client.get(f"/v1/tasks/{made.id}/state")).content)["rounds"][number - 1][
        "digest"
    ]
    items = packed(reports, number)
    for start in range(0, len(items), 500):
        part = items[start : start + 500]
        answer = await client.post(f"{path(made, number)}/reports", json=body(digest, part))
        assert answer.json()["counts"] == {"accepted": len(part)}


async def _round(client, made: Task, number: int) -> Round:
    document = (await client.get(path(made, number))).content
    return read_round(made, number, document)


async def _state(client, made: Task) -> list[str]:
    return [item["state"] for item in (await client.get(f"/v1/tasks/{made.id}/state")).json()["rounds"]]


async def _until(client, made: Task, number: int, state: str) -> None:
    """Wait until the service has taken its steps."""
    for _ in range(50 * AT_MOST):
        if (await _state(client, made))[number - 1] == state:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(await _state(client, made))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidelight.service.advancing.SECONDS", 0.01)


@SIZES
@pytest.mark.parametrize("protocol", ["khr", "basic"])
def test_a_tree_runs_by_itself_to_the_tree_of_the_file_path(
    place: str, tmp_path: Path, size: int, protocol: str
) -> None:
    rows, seed = ill_people(size), 7
    made = label_task("tree", Pace(reports=1, seconds=1), protocol=protocol)
    design: LabelDesign = made.design
    wanted = private_tree(rows, design.settings, design.tree, seed=seed)

    async def work(client) -> None:
        await opened(client, made)
        state = TreeRounds.start(design.tree, rows.sizes, 2, design._given().omegas)
        groups = np.zeros(size, dtype=np.int64)
        for number in range(1, 4):
            await _until(client, made, number, "open")
            found = await _round(client, made, number)
            asked = state.ask()
            parts, groups = turn_reports(asked, rows, groups, derive_seed(seed, f"round/{number}"))
            # In one piece, so that the round is not closed before it is there.
            reports = of_parts(found.protocol, parts)
            await _sent_whole(client, made, number, reports, found.digest)
            state = state.receive(asked, dict(zip(_keys(asked), reports.aggregate().parts, strict=True)))
            await _until(client, made, number, "closed")
        answer = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
        assert answer.status_code == 200, answer.text
        kept = tmp_path / "model.json"
        kept.write_bytes(answer.content)
        assert read_model(kept) == wanted.tree
        assert answer.json()["trained"] == size
        trail = (await client.get(f"/v1/tasks/{made.id}/trail", headers=OPERATOR)).json()["trail"]
        steps = [(entry["kind"], entry.get("round"), entry.get("by", "")) for entry in trail[1:]]
        assert steps == [("opened", 1, "tester")] + [
            (kind, n, "") for n in (1, 2, 3) for kind in ("opened", "closed") if (kind, n) != ("opened", 1)
        ]

    with_service(place, work)


def _keys(asked) -> list[tuple[int, int]]:
    return [
        (group, place)
        for group, options in enumerate(asked.choices)
        for place, choice in enumerate(options)
        if choice.response is not None
    ]


async def _sent_whole(client, made: Task, number: int, reports: RecordReports, digest: str) -> None:
    answer = await client.post(f"{path(made, number)}/reports", json=body(digest, packed(reports, number)))
    assert answer.json()["counts"] == {"accepted": reports.people}, answer.text


@SIZES
@pytest.mark.parametrize(
    "settings",
    [{}, {"protocol": "basic"}, {"omega": 0.6}, {"protocol": "labeldp"}, {"secret": "label"}],
    ids=["khr", "basic", "omega", "labeldp", "label"],
)
def test_naive_bayes_is_that_of_the_file_path(file: str, size: int, settings: dict) -> None:
    rows, seed = ill_people(size), 5
    made = label_task(**settings)
    wanted = private_bayes(rows, made.design.settings, seed=seed)

    async def work(client) -> None:
        await opened(client, made)
        protocol = (await _round(client, made, 1)).protocol
        reports = _gathered(protocol, [part.reports for part in wanted.reports])
        await _sent(client, made, 1, reports)
        live = await client.get(f"{path(made)}/estimates", headers=OPERATOR)
        assert live.json()["learnt"]["model"] == wanted.model.to_dict()
        for table, part in zip(live.json()["tables"], wanted.reports, strict=True):
            assert np.array_equal(table["shares"], part.joint())
        early = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
        assert early.status_code == 409
        await step(client, made, "close")
        await step(client, made, "publish")
        answer = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
        assert answer.json()["model"] == wanted.model.to_dict()
        place = Path(file).with_suffix(".json")
        place.write_bytes(answer.content)
        codes = rows.codes[:20]
        assert np.array_equal(read_model(place).probabilities(codes), wanted.model.probabilities(codes))

    with_service(file, work)


def _gathered(protocol: Protocol, parts: list[Reports]) -> RecordReports:
    if protocol.sends_one_part:
        return of_parts(protocol, parts)
    values = [Reports(part.values[:, 0].astype(form.dtype))
              for part, form in zip(parts, protocol.forms, strict=False)]  # fmt: skip
    sets = Reports(parts[0].values[:, 1:])
    return RecordReports(protocol, (*values, sets), (None,) * (len(parts) + 1), len(sets))


@pytest.mark.parametrize("kind", ["bayes", "tree"])
def test_omega_is_learnt_from_the_sums_of_its_round(file: str, kind: str) -> None:
    rows, seed = ill_people(4000), 3
    made = label_task(kind, omega="learnt", share=0.3, depth=1)
    design: LabelDesign = made.design
    given = derive_seed(seed, "omega")
    settled = settle_omegas(rows, design.settings, seed=given)
    wanted = private_bayes(rows, design.settings, seed=seed)

    async def work(client) -> None:
        await opened(client, made)
        protocol = (await _round(client, made, 1)).protocol
        pairs = [part.reports for part in settled.samples]
        alone = _label_reports(rows, design, given)
        await _sent(client, made, 1, of_parts(protocol, [*pairs, alone]))
        await step(client, made, "close")
        await _until(client, made, 2, "open")
        found = await _round(client, made, 2)
        curves = [omega.curve.tolist() for omega in found.basis.omegas]
        assert curves == [omega.curve.tolist() for omega in settled.omegas]
        assert any(curve[0] < 1 for curve in curves)
        assert found.learnt.reports == 1200
        if kind == "bayes":
            reports = gather(
                settled.rows, make_responses(design.settings, rows, settled.omegas),
                seed=derive_seed(seed, "reports"),
            )  # fmt: skip
            await _sent(client, made, 2, of_parts(found.protocol, [part.reports for part in reports]))
            await step(client, made, "close", 2)
            answer = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
            assert answer.json()["model"] == wanted.model.to_dict()
            assert answer.json()["statement"]["confidence"] == 0.95

    with_service(file, work)


def _label_reports(rows, design: LabelDesign, seed: int) -> Reports:
    """What `labels.collection` asks of a fifth of the sample: the label alone."""
    from sidelight.foundation.randomness import randomness
    from sidelight.mechanisms.subset import SubsetSelection

    order = np.argsort(randomness(seed, "omega/who").words(0, len(rows)))
    about = order[: round(0.2 * round(design.settings.share * len(rows)))]
    selection = SubsetSelection(2, design.settings.epsilon)
    return selection.randomise(rows.labels[about], seed=derive_seed(seed, "omega/label"))


@pytest.mark.parametrize(
    "made", [label_task(), label_task("tree"), label_task(omega="learnt"), label_task("tree", Pace(500), 5),
             label_task(protocol="labeldp")], ids=["bayes", "tree", "learnt", "pace", "labeldp"]
)  # fmt: skip
def test_a_label_task_is_its_document(made: Task) -> None:
    again = read_task(made.document, made.id)
    assert again.document == made.document
    assert again.pace == made.pace
    assert again.course.first.to_file() == made.course.first.to_file()


def test_a_round_that_was_closed_too_early_is_the_last(file: str) -> None:
    made = label_task("tree", Pace(reports=300), crowd=300)
    rows = ill_people(20)

    async def work(collector) -> None:
        advancer = Advancer(collector, lambda *_, **__: None)
        await collector.make(made)
        assert await advancer.look() == 0  # an operator opens the first round
        await collector.open(made.id, 1)
        found = (await collector.asked(made.id, 1)).round
        items = packed(found.protocol.randomise(np.column_stack([rows.codes, rows.labels]), seed=1), 1)
        await collector.upload(made.id, 1, found.digest, Batch.of(items))
        assert await advancer.look() == 0
        await collector.close(made.id, 1)
        for _ in range(2):
            assert await advancer.look() == 0
        with pytest.raises(sl.InputError, match="fewer than 300 people"):
            await collector.open(made.id, 2)
        with pytest.raises(sl.InputError, match="fewer than 300 people"):
            await model(collector, made.id)

    with_collector(file, work)


def test_what_has_no_model_or_no_rounds_says_so(file: str) -> None:
    async def work(client) -> None:
        made = task(2)
        for number in (1, 2):
            digest = await opened(client, made, number)
            await client.post(
                f"{path(made, number)}/reports", json=body(digest, sent(made.course.first, people(9), number))
            )
        early = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
        assert (early.status_code, "round 1 of 2 is open" in early.json()["detail"]) == (409, True)
        for number in (1, 2):
            await step(client, made, "close", number)
        none = await client.get(f"/v1/tasks/{made.id}/model", headers=OPERATOR)
        assert (none.status_code, "learns no model" in none.json()["detail"]) == (404, True)
        over = await client.get(f"/v1/tasks/{made.id}/estimates", headers=OPERATOR)
        assert (over.status_code, "is no panel" in over.json()["detail"]) == (404, True)
        assert (await client.get(f"/v1/tasks/{made.id}/model")).status_code == 401

    with_service(file, work)
