"""Vectors that every client must agree on: random bytes in, report bytes out; documents; bad ones of both.

`python tests/client_vectors.py` writes the small set in `vectors/`; tests make large ones with another seed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sidelight as sl
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import create
from sidelight.protocols import planned, product, rs_fd, rs_rfd, smp, spl
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.fake_data import FakeDataProtocol
from sidelight.protocols.files import protocol_data
from sidelight.protocols.groups import make_group
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import joined
from sidelight.protocols.two_phase import PARAMETERS_VERSION, TwoPhase
from sidelight.transport import Wire

FOLDER = Path(__file__).resolve().parents[1] / "vectors"
MECHANISMS = ("grr", "sue", "oue", "blh", "olh", "ss", "identity")
SMALL = 3
COLOUR = sl.categorical("colour", ["red", "green", "blue", "grün"])
SMOKER = sl.categorical("smoker", ["no", "yes"])
REGION = sl.categorical("region", [f"R{i}" for i in range(9)])
HOURS = sl.numeric("hours", [4.5, 6.0, 7.5, 9.0])
SCHEMA = sl.Schema((COLOUR, SMOKER, REGION, HOURS))
SHAPES = {
    "grr": [(2, 0.3, {}), (4, 1.0, {}), (100, 2.7, {}), (700, 5.0, {}), (3, 1e-15, {}), (7, 60.0, {})],
    "sue": [(2, 0.3, {}), (9, 1.0, {}), (40, 4.0, {})],
    "oue": [(2, 0.3, {}), (9, 1.0, {}), (40, 4.0, {})],
    "blh": [(2, 0.3, {}), (9, 1.0, {}), (1000, 4.0, {})],
    "olh": [(2, 0.3, {}), (9, 1.0, {}), (1000, 3.3, {}), (20, 1.0, {"g": 5}), (300, 11.2, {})],
    "ss": [(2, 0.3, {}), (9, 1.0, {}), (60, 0.7, {}), (300, 3.0, {}), (30, 1.0, {"width": 29})],
    "identity": [(2, None, {}), (300, None, {})],
}


def attribute(size: int) -> sl.Attribute:
    return sl.categorical("value", [str(code) for code in range(size)])


def of_mechanism(name: str, size: int, epsilon: float | None, parameters: dict[str, Any]) -> Split:
    schema = sl.Schema((attribute(size),))
    return Split(schema, (make_group(schema, ["value"], name, epsilon, parameters),))


def second_of(method: str, groups: int) -> Protocol:
    design = TwoPhase(SCHEMA, 2.0, method, share=0.3, groups=groups)
    drawn = np.random.default_rng(3)
    people = np.stack([drawn.integers(0, size, 500) for size in SCHEMA.sizes], axis=1)
    return learn_second_phase(design, design.first.randomise(people.astype(np.uint16), seed=3)).second


def a_plan() -> sl.Plan:
    return sl.Plan(
        (
            sl.Release(COLOUR, "oue", 0.5), sl.Release(SMOKER, "grr", 1.0, reason="asked for by the clinic"),
            sl.Release(REGION, "ss", 0.7, parameters={"width": 2}), sl.Release(HOURS, "olh", 1.2),
            sl.Release(sl.categorical("name", ["a", "b"]), "withheld"),
        ),
        limit=math.inf, limits={"smoker": 2.0}, purpose="vectors", delta=0.001,
    )  # fmt: skip


def parameters_data(second: FakeDataProtocol, groups: int) -> dict[str, Any]:
    design = {
        "epsilon": second.nominal_budget, "method": second.name, "copying": "published", "share": 0.3,
        "groups": groups,
    }  # fmt: skip
    head = {"version": PARAMETERS_VERSION, "round": 1, "reports": 500}
    return {**head, "design": design, "second": protocol_data(second)}


def families() -> dict[str, list[tuple[str, Any, Protocol]]]:
    """By what a client must have: the kind of each document, the document and the protocol in it."""

    def documents(*protocols: Protocol) -> list[tuple[str, Any, Protocol]]:
        return [("protocol", protocol_data(protocol), protocol) for protocol in protocols]

    made = {name: documents(*(of_mechanism(name, *shape) for shape in SHAPES[name])) for name in MECHANISMS}
    mixed = ("oue", "grr", "ss", "olh")
    groups = tuple(make_group(SCHEMA, [n], m, 1.0) for n, m in zip(SCHEMA.names, mixed, strict=True))
    priors = {item.name: np.arange(1, item.size + 1) / math.comb(item.size + 1, 2) for item in SCHEMA}
    made |= {
        "spl": documents(spl(SCHEMA, 3.0), Split(SCHEMA, groups), product(SCHEMA, 1.0)),
        "smp": documents(
            smp(SCHEMA, 1.0), Sample(SCHEMA, groups, (3, 1, 1 << 40, 7)),
            product(SCHEMA, 1.0, [["colour", "smoker"], ["region", "hours"]], "ss"),
        ),
        "rs+fd": documents(rs_fd(SCHEMA, 1.0), rs_rfd(SCHEMA, 1.0, priors, "made up")),
        "plan": [("plan", json.loads(a_plan().to_json()), planned(a_plan()))],
        "two phases": documents(TwoPhase(SCHEMA, 2.0).first),
    }  # fmt: skip
    for method, count in (("corr-rr", 1), ("cond-rr", 2)):
        second = second_of(method, count)
        made["two phases"].append(("parameters", parameters_data(second, count), second))
    return made


def report_vectors(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield documents with `count` reports for each family, those of a document from one stream of bytes."""
    for family, documents in families().items():
        each = -(-count // len(documents))
        for number, (kind, document, protocol) in enumerate(documents):
            yield {
                "family": family, "kind": kind, "document": json.dumps(document, ensure_ascii=False),
                "epsilon": None if math.isinf(protocol.epsilon) else protocol.epsilon,
                **drawn_vectors(protocol, f"{seed}/{family}/{number}", each),
            }  # fmt: skip


def drawn_vectors(protocol: Protocol, stream: str, count: int) -> dict[str, Any]:
    """Return records, the bytes that each report takes of a stream, and the reports."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little"))
    records = np.stack([rng.integers(0, size, count) for size in protocol.schema.sizes], axis=1)
    given = hashlib.shake_128(stream.encode()).digest(count * 8 * (3 + 2 * _most_words(protocol)))
    draws, made, ends = Draws(given), [], []
    for record in records:
        made.append(protocol.drawn(record.astype(np.uint16), draws))
        ends.append(draws.used)
    wire = Wire(protocol)
    reports = [payload.hex() for payload in wire.pack(joined(made))]
    return {
        "length": wire.length, "random": given[: ends[-1]].hex(), "ends": ends,
        "records": records.tolist(), "reports": reports,
    }  # fmt: skip


def _most_words(protocol: Protocol) -> int:
    words = {"codes": lambda _: 2, "sets": lambda form: form.width, "bits": lambda form: form.count}
    return sum(words[form.encoding](form) for form in protocol.forms)


def bad_reports(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield changed reports of some protocols with the refusal that each gets; None where it is still one."""
    copying = {("a", "b"): np.eye(3, dtype=np.int64) << 32, ("b", "a"): np.eye(3, dtype=np.int64) << 32}
    schema = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uvw")))
    copies = FakeDataProtocol(schema, (("a", "b"),), 1.0, copying, "corr-rr", "made up")
    found = families()
    chosen = [
        *(protocol for name in ("spl", "smp", "rs+fd") for _, _, protocol in found[name]), copies,
        smp(SCHEMA.select(["colour", "smoker", "hours"]), 1.0),
        *(found[name][1][2] for name in ("oue", "olh", "identity")), *(item[2] for item in found["ss"][1:4]),
    ]  # fmt: skip
    for number, protocol in enumerate(chosen):
        rng = np.random.default_rng([seed, number])
        people = np.stack([rng.integers(0, size, count) for size in protocol.schema.sizes], axis=1)
        wire = Wire(protocol)
        sent = wire.pack(protocol.randomise(people.astype(np.uint16), seed=seed))
        changed = [changed_report(rng, payload) for payload in sent]
        refused = wire.unpack(changed).refused
        yield {
            "document": json.dumps(protocol_data(protocol), ensure_ascii=False),
            "reports": [
                {"report": payload.hex(), "refusal": refused.get(i)} for i, payload in enumerate(changed)
            ],
        }


def changed_report(rng: np.random.Generator, payload: bytes) -> bytes:
    kind, at = rng.integers(6), int(rng.integers(8, 8 * len(payload)))
    if kind == 0:
        return payload[: at // 8] if rng.integers(2) else payload + rng.bytes(1)
    if kind == 1:
        return bytes([int(rng.integers(256))]) + payload[1:]
    if kind in (2, 3):
        return payload[:1] + rng.bytes(len(payload) - 1)
    flipped = bytearray(payload)
    flipped[at // 8] ^= 1 << at % 8
    return bytes(flipped)


def bad_documents() -> Iterator[dict[str, str]]:
    """Yield documents that must be refused, and a word that the refusal must name."""
    plain, hidden = protocol_data(spl(SCHEMA, 2.0)), protocol_data(rs_fd(SCHEMA, 1.0))
    plan, sampled = json.loads(a_plan().to_json()), protocol_data(smp(SCHEMA, 1.0))
    second = parameters_data(second_of("corr-rr", 1), 1)

    def change(document: dict[str, Any], path: list[str | int], value: Any) -> str:
        copy = json.loads(json.dumps(document))
        place = copy
        for step in path[:-1]:
            place = place[step]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return json.dumps(copy, ensure_ascii=False)

    protocols = [
        (change(plain, ["version"], 9), "version"), (change(plain, ["version"], None), "version"),
        (change(plain, ["version"], 1.0), "version"), (change(plain, ["protocol"], "join"), "join"),
        (change(plain, ["unit", 0, "epsilon"], -1.0), "epsilon"),
        (change(plain, ["unit", 0, "epsilon"], 1e-30), "epsilon"),
        (change(plain, ["unit", 0, "epsilon"], 800.0), "epsilon"),
        (change(plain, ["unit", 0, "epsilon"], None), "epsilon"),
        (change(plain, ["unit", 0, "epsilon"], "1"), "epsilon"),
        (change(plain, ["unit", 0, "epsillon"], 1.0), "epsillon"),
        (change(plain, ["unit", 0, "mechanism"], "telepathy"), "telepathy"),
        (change(plain, ["unit", 0, "mechanism"], "any"), "any"),
        (change(plain, ["unit", 0, "parameters"], {"width": 2}), "width"),
        (change(plain, ["unit", 1, "attributes"], ["colour"]), "colour"),
        (change(plain, ["unit", 0, "attributes"], ["color"]), "color"),
        (change(plain, ["unit", 0, "attributes"], []), "group"), (change(plain, ["unit"], []), "unit"),
        (change(plain, ["attribute", 0, "values"], ["red", "red", "blue", "grün"]), "red"),
        (change(plain, ["attribute", 0, "values"], []), "colour"),
        (change(plain, ["attribute", 0, "kind"], "colourful"), "kind"),
        (change(plain, ["attribute", 3, "edges"], [1.0, 2.0, 2.0, 3.0]), "hours"),
        (change(plain, ["attribute", 3, "edges"], [1.0]), "hours"),
        (change(plain, ["attribute", 0, "missing"], "value"), "colour"),
        (change(plain, ["attribute", 1, "name"], "colour"), "colour"), (change(plain, ["extra"], 1), "extra"),
        (change(sampled, ["shares"], [1, 2]), "shares"),
        (change(sampled, ["shares"], [1, 1, 0, 1]), "shares"),
        (change(sampled, ["shares", 0], 1.5), "shares"), (change(sampled, ["shares", 0], 1 << 41), "shares"),
        (change(hidden, ["fake", 0, "weights", 0, 0], 5), "add up"),
        (change(hidden, ["fake", 0, "weights", 0, 0], -1), "add up"),
        (change(hidden, ["fake", 0, "weights"], [[1 << 32]]), "shape"),
        (change(hidden, ["fake", 1], hidden["fake"][0]), "twice"), (change(hidden, ["fake"], []), "law"),
        (change(hidden, ["groups"], [["colour"]]), "groups"), (change(hidden, ["epsilon"], 0.0), "epsilon"),
        ('{"version": 1, "version": 1}', "twice"), ("[1, 2]", "protocol"), ("{", "parsed"),
        ('{"version": NaN}', "parsed"), ('{"version": 1, "protocol": "split", "attribute": 7}', "attribute"),
        ('{"version": 1, "protocol": "\\ud800"}', "half a character"),
    ]  # fmt: skip
    plans = [
        (change(plan, ["version"], 4), "version"), (change(plan, ["release", 0, "times"], 3), "times"),
        (change(plan, ["release"], []), "release"), (change(plan, ["release", 0, "epsilon"], 0), "epsilon"),
        (change(plan, ["release", 4, "epsilon"], 1.0), "withheld"), (change(plan, ["limit"], -1.0), "limit"),
        (change(plan, ["release", 2, "parameters", "width"], 9), "width"),
        (change(plan, ["delta"], 1.5), "delta"), (change(plan, ["release", 0, "memory"], "lost"), "memory"),
        (json.dumps(plain), "protocol"),
    ]  # fmt: skip
    published = [
        (change(second, ["design", "epsilon"], 5.0), "epsilon"), (change(second, ["reports"], 0), "reports"),
        (change(second, ["design", "method"], "cond-rr"), "name"), (change(second, ["round"], 0), "round"),
        (change(second, ["design", "groups"], 2), "groups"),
        (change(second, ["design", "share"], 1.0), "share"), (change(second, ["second"], plain), "hide"),
        (change(second, ["second", "origin"], "me"), "first phase"),
    ]  # fmt: skip
    for kind, cases in (("protocol", protocols), ("plan", plans), ("parameters", published)):
        yield from ({"kind": kind, "text": text, "names": word} for text, word in cases)


def thresholds() -> list[dict[str, Any]]:
    """Return whole-number thresholds and realised budgets of randomised response over many budgets."""
    rng = np.random.default_rng(5)
    budgets = [*np.exp(rng.uniform(-40, 4.6, 60)).tolist(), 100.0, 699.0, 1.0, math.log(2), math.log(3)]
    made = []
    for budget in budgets:
        for size in (2, 3, 1000, 65536):
            try:
                mechanism = create("grr", size, budget)
            except InputError:  # 64 bits do not tell it from 0
                other, realised = None, None
            else:
                other, realised = str(mechanism.other), mechanism.epsilon
            made.append({"size": size, "epsilon": budget, "other": other, "realised": realised})
    return made


def small_set() -> dict[str, Any]:
    """Return the files of the small set."""
    return {
        "reports.json": list(report_vectors(1, SMALL)), "bad_reports.json": list(bad_reports(1, 12)),
        "bad_documents.json": list(bad_documents()), "thresholds.json": thresholds(),
    }  # fmt: skip


def written(vectors: list[Any]) -> str:
    """Return vectors as text, one to a line."""
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in vectors) + "\n]\n"


if __name__ == "__main__":
    for name, vectors in small_set().items():
        (FOLDER / name).write_text(written(vectors), "utf-8")
