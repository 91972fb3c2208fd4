"""The checked-in vectors, by the Python package; `test_typescript` runs the same files elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from client_vectors import FOLDER, MECHANISMS, read_document, report_vectors, settled, small_set, written
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError
from sidelight.protocols.files import protocol_from
from sidelight.transport import REFUSALS, Wire, pack

FILES = ["reports.json", "bad_reports.json", "bad_documents.json", "thresholds.json", "tasks/labels.json"]


def loaded(name: str) -> list:
    return json.loads((FOLDER / name).read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_those_that_the_generator_makes(name: str) -> None:
    """The rules are fixed for ever: who changes them must see it here."""
    assert (FOLDER / name).read_text("utf-8") == written(small_set()[name])


def test_reports_come_out_as_published(tmp_path) -> None:
    for vector in loaded("reports.json"):
        protocol = read_document(vector["kind"], vector["document"], tmp_path)
        random = bytes.fromhex(vector["random"])
        for record, (start, end), report in zip(
            vector["records"], pairwise([0, *vector["ends"]]), vector["reports"], strict=True
        ):
            draws = Draws(random[start:end])
            assert [payload.hex() for payload in pack(protocol.drawn(record, draws))] == [report]
            assert draws.used == end - start


def test_bad_reports_are_refused_as_published() -> None:
    seen = set()
    for vector in loaded("bad_reports.json"):
        protocol = protocol_from(json.loads(vector["document"]))
        payloads = [bytes.fromhex(item["report"]) for item in vector["reports"]]
        refused = Wire(protocol).unpack(payloads).refused
        assert [refused.get(i) for i in range(len(payloads))] == [
            item["refusal"] for item in vector["reports"]
        ]
        seen |= set(refused.values())
    assert seen == set(REFUSALS)  # each of them is among the vectors


def test_bad_documents_are_refused_in_one_line(tmp_path) -> None:
    for vector in loaded("bad_documents.json"):
        with pytest.raises(InputError) as caught:
            read_document(vector["kind"], vector["text"], tmp_path)
        said = str(caught.value)
        assert vector["names"] in said, vector["text"][:300]
        assert "\n" not in said


def test_thresholds_are_those_published() -> None:
    for vector in loaded("thresholds.json"):
        assert settled(vector["mechanism"], vector["size"], vector["epsilon"]) == vector


def test_every_family_is_among_the_vectors() -> None:
    families = {vector["family"] for vector in loaded("reports.json")}
    assert families == {*MECHANISMS, "spl", "smp", "rs+fd", "plan", "two phases", "labels"}
    assert {vector["family"] for vector in report_vectors(9, 1)} == families
