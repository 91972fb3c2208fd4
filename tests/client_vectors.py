"""Vectors that every client must agree on: random bytes in, report bytes out; documents; bad ones of both.

`python tests/client_vectors.py` writes the small set in `vectors/`; tests make large ones with another seed.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import sidelight as sl
from service_labels import label_task, tree_round
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError
from sidelight.foundation.strict import parsed_table
from sidelight.learning.decision_tree import DecisionTree
from sidelight.mechanisms import create
from sidelight.protocols import planned, product, rs_fd, rs_rfd, smp, spl
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.fake_data import WHOLE, FakeDataProtocol
from sidelight.protocols.files import protocol_data, protocol_from
from sidelight.protocols.groups import make_group
from sidelight.protocols.protocol import Protocol
from sidelight.protocols.records import joined
from sidelight.protocols.two_phase import PARAMETERS_VERSION, SecondPhase, TwoPhase
from sidelight.service.rounds import Round, first_round
from sidelight.service.task import Task
from sidelight.transport import Wire

FOLDER = Path(__file__).resolve().parents[1] / "vectors"
MECHANISMS = ("grr", "sue", "oue", "blh", "olh", "ss", "hadamard", "identity")
SMALL = 3
_NULL_BYTES = 40
COLOUR = sl.categorical("colour", ["red", "green", "blue", "grün"])
SMOKER = sl.categorical("smoker", ["no", "yes"])
REGION = sl.categorical("region", [f"R{i}" for i in range(9)])
HOURS = sl.numeric("hours", [4.5, 6.0, 7.5, 9.0])
SCHEMA = sl.Schema((COLOUR, SMOKER, REGION, HOURS))
# Numbers and texts that languages write differently: a fingerprint is of what Python writes.
WRITTEN = sl.Schema((
    sl.numeric("π \U0001f642 \x7f\t\"", [-1e-7, 0.0, 1e-5, 1e-4, 0.1 + 0.2, 1e15, 1e16, 1.5e22]),
    sl.Attribute("fruit", "categorical", ("pome", "plum"), merged=(("pome", ("apple", "pear")),)),
    sl.categorical("\\/", ["é", "\u2028"]),
))  # fmt: skip
SHAPES = {
    "grr": [(2, 0.3, {}), (4, 1.0, {}), (100, 2.7, {}), (700, 5.0, {}), (3, 1e-15, {}), (7, 60.0, {})],
    "sue": [(2, 0.3, {}), (9, 1.0, {}), (40, 4.0, {})],
    "oue": [(2, 0.3, {}), (9, 1.0, {}), (40, 4.0, {})],
    "blh": [(2, 0.3, {}), (9, 1.0, {}), (1000, 4.0, {})],
    "olh": [(2, 0.3, {}), (9, 1.0, {}), (1000, 3.3, {}), (20, 1.0, {"g": 5}), (300, 11.2, {})],
    "ss": [
        (2, 0.3, {}),
        (9, 1.0, {}),
        (60, 0.7, {}),
        (300, 3.0, {}),
        (30, 1.0, {"width": 29}),
        (16, 1.0, {"width": 4}),
    ],
    "hadamard": [(2, 0.3, {}), (3, 1.0, {}), (4, 2.0, {}), (700, 5.0, {}), (7, 60.0, {})],
    "identity": [(2, None, {}), (300, None, {})],
}


def attribute(size: int) -> sl.Attribute:
    return sl.categorical("value", [str(code) for code in range(size)])


def of_mechanism(name: str, size: int, epsilon: float | None, parameters: dict[str, Any]) -> Split:
    schema = sl.Schema((attribute(size),))
    return Split(schema, (make_group(schema, ["value"], name, epsilon, parameters),))


def second_of(method: str, groups: int, schema: sl.Schema = SCHEMA, epsilon: float = 2.0) -> Protocol:
    design = TwoPhase(schema, epsilon, method, share=0.3, groups=groups)
    drawn = np.random.default_rng(3)
    people = np.stack([drawn.integers(0, size, 500) for size in schema.sizes], axis=1)
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
    # Clients need not report pairs by unary encoding, as the basic solution does.
    made["labels"] = documents(
        *(asked.protocol for name, (_, asked) in label_rounds().items() if name != "basic")
    )
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
    seconds = (
        (second_of("corr-rr", 1), 1),
        (second_of("cond-rr", 2), 2),
        (second_of("corr-rr", 1, WRITTEN, 1.1), 1),
    )
    for second, count in seconds:
        made["two phases"].append(("parameters", parameters_data(second, count), second))
    return made


def label_rounds() -> dict[str, tuple[Task, Round]]:
    """Rounds of label collections, of every kind, by what they are, each with its task."""
    made = {
        "khr": label_task(), "basic": label_task(protocol="basic"), "labeldp": label_task(secret="label"),
        "omega": label_task(omega="learnt"), "tree": label_task("tree"),
    }  # fmt: skip
    rounds = {name: (task, first_round(task, 1)) for name, task in made.items()}
    grown = DecisionTree.start(2).split(0, 0, 0, (np.array([0.1, 0.2]), np.array([0.6, 0.1])), last=False)
    return {**rounds, "node": (made["tree"], tree_round(made["tree"], 2, grown))}


def label_vectors(count: int = 4) -> Iterator[dict[str, Any]]:
    """Yield label tasks with their rounds: who answers which, what it is charged, and a record's cells."""
    rng = np.random.default_rng(8)
    people = [f"person {number}" for number in range(count)]
    for name, (task, found) in label_rounds().items():
        course = task.course
        records = np.stack([rng.integers(0, size, count) for size in course.schema.sizes], axis=1)
        own = [[n for n in range(1, task.rounds + 1) if course.takes_part(who, task.id, n)] for who in people]
        (charge,) = course.question(found).charges
        yield {
            "name": name, "task": task.document.decode(), "id": task.id, "round": found.document.decode(),
            "digest": found.digest, "people": people, "rounds": own, "records": records.tolist(),
            "cells": course.cells(found, records).tolist(),
            "charge": {"attribute": charge.attribute, "channel": charge.channel, "units": charge.units},
        }  # fmt: skip


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
    # Words of 0 first: they are passed over where a number below n is drawn, unless n is a power of two.
    drawn = hashlib.shake_128(stream.encode()).digest(count * 8 * (3 + 2 * _most_words(protocol)))
    given = bytes(_NULL_BYTES) + drawn
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
    found, pairs = families(), of_mechanism("ss", 70, 3.0, {"width": 2})
    three = smp(SCHEMA.select(["colour", "smoker", "hours"]), 1.0)
    chosen = [
        pairs,
        *(protocol for name in ("spl", "smp", "rs+fd") for _, _, protocol in found[name]), copies,
        three,
        *(found[name][1][2] for name in ("oue", "olh", "identity")), *(item[2] for item in found["ss"][1:4]),
    ]  # fmt: skip
    for number, protocol in enumerate(chosen):
        rng = np.random.default_rng([seed, number])
        people = np.stack([rng.integers(0, size, count) for size in protocol.schema.sizes], axis=1)
        wire = Wire(protocol)
        sent = wire.pack(protocol.randomise(people.astype(np.uint16), seed=seed))
        changed = [changed_report(rng, payload) for payload in sent]
        if protocol is pairs:  # a code may come twice
            changed += [bytes([1]) + (129 * code).to_bytes(2, "little") for code in range(0, 70, 9)]
        if protocol is three:  # a fourth part may be named
            changed += [bytes([1, 3])]
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
        (change(second, ["second", "origin"], f"first phase {'0' * 24}, round 1"), "first phase"),
        (change(second, ["second", "attribute", 0, "values", 0], "rot"), "first phase"),
    ]  # fmt: skip
    for kind, cases in (("protocol", protocols), ("plan", plans), ("parameters", published)):
        yield from ({"kind": kind, "text": text, "names": word} for text, word in cases)


STRANGE = (
    None, True, 0, 1, -1, 3, 0.5, 2.0, 1e-20, 1e300, -0.0, "", "colour", "smoker", "grr", "ss", "oue",
    "identity", "absent", "value", "drop", "numeric", "date", "(missing)", [], {}, [1], ["colour"], [[1]],
    {"width": 2},
    {"g": 3}, {"width": 2.0}, 1 << 41, 1 << 64, WHOLE, "1", "split", "sample", "withheld", "infinity", "kept",
)  # fmt: skip
STRANGE_KEYS = ("epsilon", "shares", "parameters", "missing", "edges", "merged", "memory", "times", "extra")


def changed_documents(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield documents in which something was left out, added, doubled or replaced, with their kinds."""
    drawn = random.Random(seed)
    short = [item for items in families().values() for item in items if len(json.dumps(item[1])) < 6000]
    for _ in range(count):
        kind, document, _ = drawn.choice(short)
        copy = json.loads(json.dumps(document))
        for _ in range(drawn.choice((1, 1, 2))):
            place, key = drawn.choice(list(_places(copy, 3 if drawn.random() < 0.7 else 9)))
            step = drawn.random()
            if step < 0.2:
                del place[key]
            elif step < 0.35 and isinstance(place, dict):
                place[drawn.choice(STRANGE_KEYS)] = drawn.choice(STRANGE)
            elif step < 0.45 and isinstance(place, list):
                place.append(place[key])
            else:
                place[key] = drawn.choice(STRANGE)
        yield kind, json.dumps(copy, ensure_ascii=False)


def _places(value: Any, depth: int) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a document that something stands in, down to a depth."""
    for key in (
        list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield value, key
        if depth > 1:
            yield from _places(value[key], depth - 1)


def read_document(kind: str, text: str, folder: Path) -> Protocol:
    """Return the protocol of a document, as a device would read it."""
    if kind == "plan":
        return planned(sl.Plan.from_json(text))
    if kind == "protocol":
        return protocol_from(parsed_table(text, "the protocol"))
    path = folder / "parameters.json"
    path.write_text(text, "utf-8")
    return SecondPhase.read(path).second


def judged_documents(seed: int, count: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield changed documents with what Python makes of them: a budget, or a refusal."""
    for kind, text in changed_documents(seed, count):
        try:
            epsilon = read_document(kind, text, folder).epsilon
        except InputError:
            yield {"kind": kind, "text": text, "accepted": False, "epsilon": None}
        else:
            stated = None if math.isinf(epsilon) else epsilon
            yield {"kind": kind, "text": text, "accepted": True, "epsilon": stated}


def budgets_at(factor: float) -> Iterator[float]:
    """Yield budgets whose e^budget is this factor to any good library: within a tenth of its last digit."""
    budget = math.log(factor)
    for one in (math.nextafter(budget, 0), budget, math.nextafter(budget, 99)):
        if abs(Decimal(one).exp() - Decimal(factor)) < Decimal(math.ulp(factor)) / 10:
            yield one


def settled(mechanism: str, size: int, budget: float) -> dict[str, Any]:
    """Return what a mechanism settles on at a budget: thresholds, buckets or a width; None if refused."""
    head = {"mechanism": mechanism, "size": size, "epsilon": budget}
    try:
        made = create(mechanism, size, budget)
    except InputError:  # 64 bits do not tell it from 0
        return {**head, "thresholds": None, "choice": None, "realised": None}
    stated: dict[str, Any] = {
        "grr": lambda: ([made.other], None), "sue": lambda: (made.thresholds, None),
        "oue": lambda: (made.thresholds, None), "olh": lambda: ([made.response.other], made.buckets),
        "ss": lambda: ([made.include], made.width),
    }  # fmt: skip
    numbers, choice = stated[mechanism]()
    return {**head, "thresholds": [str(n) for n in numbers], "choice": choice, "realised": made.epsilon}


def thresholds() -> list[dict[str, Any]]:
    """Return what mechanisms settle on over many budgets, also where buckets and widths change."""
    rng = np.random.default_rng(5)
    # Rounded: processors differ in the last digit of an exponential.
    drawn = [float(f"{math.exp(power):.12g}") for power in rng.uniform(-40, 4.6, 40)]
    budgets = [*drawn, 100.0, 699.0, 1.0, math.log(2), math.log(3)]
    shapes = [("grr", 2), ("grr", 1000), ("grr", 65536), ("sue", 5), ("oue", 5), ("olh", 40), ("ss", 100)]
    made = [settled(name, size, budget) for budget in budgets for name, size in shapes]
    made += [settled("olh", 9, budget) for k in range(1, 40) for budget in budgets_at(k + 0.5)]
    return made + [settled("ss", 96, budget) for w in range(2, 32) for budget in budgets_at(96 / w - 1)]


def small_set() -> dict[str, Any]:
    """Return the files of the small set."""
    return {
        "reports.json": list(report_vectors(1, SMALL)), "bad_reports.json": list(bad_reports(1, 12)),
        "bad_documents.json": list(bad_documents()), "thresholds.json": thresholds(),
        "tasks/labels.json": list(label_vectors()),
    }  # fmt: skip


def written(vectors: list[Any]) -> str:
    """Return vectors as text, one to a line."""
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in vectors) + "\n]\n"


if __name__ == "__main__":
    for name, vectors in small_set().items():
        (FOLDER / name).write_text(written(vectors), "utf-8")
