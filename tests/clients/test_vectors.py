"""The checked-in vectors, by the Python package; `test_typescript` runs the same files elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from client_vectors import FOLDER, MECHANISMS, report_vectors, small_set, written
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import parsed_table
from sidelight.mechanisms import create
from sidelight.plan import Plan
from sidelight.protocols import planned
from sidelight.protocols.files import protocol_from
from sidelight.protocols.two_phase import SecondPhase
from sidelight.transport import REFUSALS, Wire, pack

FILES = ["reports.json", "bad_reports.json", "bad_documents.json", "thresholds.json"]


def loaded(name: str) -> list:
    return json.loads((FOLDER / name).read_text("utf-8"))


def read(kind: str, text: str, tmp_path):
    """Return the protocol of a document, as a device would read it."""
    if kind == "plan":
        return planned(Plan.from_json(text))
    if kind == "protocol":
        return protocol_from(parsed_table(text, "the protocol"))
    path = tmp_path / "parameters.json"
    path.write_text(text, "utf-8")
    return SecondPhase.read(path).second


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_those_that_the_generator_makes(name: str) -> None:
    """The rules are fixed for ever: who changes them must see it here."""
    assert (FOLDER / name).read_text("utf-8") == written(small_set()[name])


def test_reports_come_out_as_published(tmp_path) -> None:
    for vector in loaded("reports.json"):
        protocol = read(vector["kind"], vector["document"], tmp_path)
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
            read(vector["kind"], vector["text"], tmp_path)
        said = str(caught.value)
        assert vector["names"] in said, vector["text"][:300]
        assert "\n" not in said


def test_thresholds_are_those_published() -> None:
    for vector in loaded("thresholds.json"):
        if vector["other"] is None:
            with pytest.raises(InputError, match="64 random bits"):
                create("grr", vector["size"], vector["epsilon"])
            continue
        mechanism = create("grr", vector["size"], vector["epsilon"])
        assert (str(mechanism.other), mechanism.epsilon) == (vector["other"], vector["realised"])


def test_every_family_is_among_the_vectors() -> None:
    families = {vector["family"] for vector in loaded("reports.json")}
    assert families == {*MECHANISMS, "spl", "smp", "rs+fd", "plan", "two phases"}
    assert {vector["family"] for vector in report_vectors(9, 1)} == families
