"""The wire form: every mechanism and protocol there and back, and every change of a byte seen or harmless."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sidelight as sl
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import MECHANISMS, ReportForm, Reports, mechanism_class
from sidelight.mechanisms.reports import Grid
from sidelight.protocols import product, rs_fd, rs_rfd, smp, spl
from sidelight.protocols.direct import Sample, Split
from sidelight.protocols.fake_data import FakeDataProtocol
from sidelight.protocols.groups import UNUSABLE, make_group
from sidelight.protocols.records import FirstPhase, RecordReports
from sidelight.protocols.two_phase import corr_rr
from sidelight.transport.layout import Layout, PartLayout
from sidelight.transport.wire import REFUSALS, WIRE_VERSION, Wire, pack, unpack

SIZES = (2, 5, 9, 70)
SCHEMA = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv"), sl.categorical("c", "pqrst")))
USABLE = sorted(set(MECHANISMS) - set(UNUSABLE))


def of_mechanism(name: str, size: int, parameters=None):
    schema = sl.Schema((sl.categorical("v", [str(i) for i in range(size)]),))
    return Split(schema, (make_group(schema, ["v"], name, 1.1, parameters),))


def mechanisms() -> list:
    made = []
    for name in USABLE:
        for size in SIZES:
            for parameters in mechanism_class(name).examples(size):
                try:
                    made.append(of_mechanism(name, size, parameters))
                except InputError:  # too few values for the parameters, or no frequencies of so many
                    continue
    return made


def impossible_fakes() -> FakeDataProtocol:
    """Fakes of b that copy a's report where they can: some values never stand together."""
    schema = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uvw")))
    copying = np.eye(3, dtype=np.int64) << 32
    laws = {("a", "b"): copying, ("b", "a"): copying}
    return FakeDataProtocol(schema, (("a", "b"),), 1.0, laws, "corr-rr", "made up")


def protocols() -> dict:
    priors = {"a": [0.7, 0.2, 0.1], "b": [0.9, 0.1], "c": [0.2] * 5}
    design = corr_rr(SCHEMA, 1.3, 0.4)
    second = learn_second_phase(design, design.first.randomise(records(SCHEMA, 400), seed=3)).second
    mixed = ("oue", "olh", "ss")
    groups = tuple(make_group(SCHEMA, [n], m, 1.0) for n, m in zip(SCHEMA.names, mixed, strict=True))
    return {
        "spl": spl(SCHEMA, 2.0), "smp": smp(SCHEMA, 1.0), "smp of bits": smp(SCHEMA, 1.0, "oue"),
        "mixed": Split(SCHEMA, groups), "one of a mixture": Sample(SCHEMA, groups, (3, 1, 2)),
        "product": product(SCHEMA, 1.0), "pairs": product(SCHEMA, 1.0, [["a", "b"]]),
        "rs+fd": rs_fd(SCHEMA, 1.0), "rs+rfd": rs_rfd(SCHEMA, 1.0, priors, "made up"),
        "second phase": second, "copies": impossible_fakes(),
        "sets": smp(SCHEMA, 1.0, "ss"), "numbers": of_mechanism("laplace", 5, {"lower": -1.0, "upper": 4.0}),
    }  # fmt: skip


def records(schema: sl.Schema, count: int) -> np.ndarray:
    drawn = np.random.default_rng(5)
    return np.stack([drawn.integers(0, size, count) for size in schema.sizes], axis=1).astype(np.uint16)


PROTOCOLS = protocols()
each = pytest.mark.parametrize("name", PROTOCOLS)


def assert_same(one: RecordReports, other: RecordReports) -> None:
    assert one.people == other.people
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        assert mine.values.dtype == theirs.values.dtype
        assert mine.values.tobytes() == theirs.values.tobytes()
        assert (mine.seeds is None) == (theirs.seeds is None)
        assert mine.seeds is None or mine.seeds.tobytes() == theirs.seeds.tobytes()
    for mine, theirs in zip(one.senders, other.senders, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)


def assert_goes_there_and_back(protocol, people: int = 60) -> None:
    made = protocol.randomise(records(protocol.schema, people), seed=11)
    sent = pack(made)
    assert {len(payload) for payload in sent} == {Wire(protocol).length}
    came = unpack(protocol, sent)
    assert not came.refused
    assert came.kept.tolist() == list(range(people))
    assert_same(came.reports, made)
    assert pack(came.reports) == sent
    for mine, theirs in zip(came.reports.aggregate().parts, made.aggregate().parts, strict=True):
        assert np.array_equal(mine.sums, theirs.sums)


def test_reports_of_every_mechanism_go_there_and_back() -> None:
    made = mechanisms()
    assert {group.mechanism for protocol in made for group in protocol.groups} == set(USABLE)
    for protocol in made:
        assert_goes_there_and_back(protocol)


@each
def test_reports_of_every_protocol_go_there_and_back(name: str) -> None:
    assert_goes_there_and_back(PROTOCOLS[name])


@each
def test_nobody_sends_nothing(name: str) -> None:
    protocol = PROTOCOLS[name]
    assert pack(protocol.nobody()) == []
    assert_same(unpack(protocol, []).reports, protocol.nobody())


@each
def test_every_change_of_bytes_is_refused_or_another_legal_report(name: str) -> None:
    """What is taken from changed bytes gives these bytes again, and adds up: there is no second encoding."""
    protocol = PROTOCOLS[name]
    drawn = np.random.default_rng(12)
    sent = pack(protocol.randomise(records(protocol.schema, 2000), seed=11))
    changed = [change(drawn, payload) for payload in sent]
    came = unpack(protocol, changed)
    assert sorted([*came.kept, *came.refused]) == list(range(2000))
    assert set(came.refused.values()) <= set(REFUSALS)
    assert pack(came.reports) == [changed[i] for i in came.kept]
    came.reports.aggregate()


def change(drawn: np.random.Generator, payload: bytes) -> bytes:
    """Flip a bit, draw the whole body anew, or cut or lengthen it."""
    kind, at = drawn.integers(4), int(drawn.integers(8 * len(payload)))
    if kind == 0:
        return bytes(byte ^ (1 << at % 8 if i == at // 8 else 0) for i, byte in enumerate(payload))
    if kind == 1:
        return bytes([WIRE_VERSION]) + drawn.bytes(len(payload) - 1)
    return payload[: at // 8] if kind == 2 else payload + drawn.bytes(1 + at % 3)


@pytest.mark.parametrize("name", ["spl", "one of a mixture", "copies", "second phase", "sets"])
def test_what_is_taken_is_what_a_randomiser_can_make(name: str) -> None:
    """All bodies of two bytes: those that are taken are those that 30,000 reports of all records show."""
    protocol = {
        "spl": spl(SCHEMA, 2.0), "copies": PROTOCOLS["copies"], "second phase": PROTOCOLS["second phase"],
        "one of a mixture": smp(SCHEMA, 1.0, "oue"), "sets": smp(SCHEMA, 1.0, "ss"),
    }[name]  # fmt: skip
    width = Wire(protocol).length - 1
    assert width <= 2
    every = [bytes([WIRE_VERSION]) + number.to_bytes(width, "little") for number in range(256**width)]
    taken = {every[i] for i in unpack(protocol, every).kept}
    assert taken == set(pack(protocol.randomise(records(protocol.schema, 30_000), seed=2)))


def test_each_refusal_has_its_reason() -> None:
    bits, sets = PROTOCOLS["mixed"], of_mechanism("ss", 70, {"width": 2})
    cases = [
        (spl(SCHEMA, 2.0), [3, 0], "range"), (spl(SCHEMA, 2.0), [0b1000000], "padding"),
        (smp(SCHEMA, 1.0), [3, 0], "part"), (PROTOCOLS["copies"], [0b0100], "impossible"),
        (sets, [3, 1], "set"), (sets, [0x85, 0x02], "set"), (sets, [0x7F, 0x3F], "range"),
        (bits, [], "length"), (of_mechanism("dbitflip", 5, {"d": 2}), [0x10], "impossible"),
    ]  # fmt: skip
    for protocol, start, reason in cases:
        length = Wire(protocol).length if start else 1
        payload = bytes([WIRE_VERSION, *start]).ljust(length, b"\0")[:length]
        assert unpack(protocol, [payload]).refused == {0: reason}, (protocol.name, reason)
    first = pack(bits.randomise(records(SCHEMA, 1), seed=1))[0]
    assert unpack(bits, [b"\0" + first[1:], first, b"\2" + first[1:]]).refused == {0: "version", 2: "version"}


def test_the_first_of_several_reasons_is_given() -> None:
    protocol = spl(SCHEMA, 2.0)
    payloads = [b"\2\xff", b"\1\xff", b"\1\xc0", b"\1\xff\xff", b""]
    assert unpack(protocol, payloads).refused == {
        0: "version", 1: "range", 2: "padding", 3: "length", 4: "length",
    }  # fmt: skip


def test_good_reports_keep_their_order_among_bad_ones() -> None:
    protocol = PROTOCOLS["one of a mixture"]
    made = protocol.randomise(records(SCHEMA, 300), seed=4)
    sent = pack(made)
    bad = range(0, 300, 7)
    mixture = [b"\1" if i in bad else payload for i, payload in enumerate(sent)]
    came = unpack(protocol, mixture)
    assert list(came.refused) == list(bad)
    assert [sent[i] for i in came.kept] == pack(came.reports)


def test_phase_and_simulation_are_what_the_receiver_says() -> None:
    design = corr_rr(SCHEMA, 1.0)
    sent = pack(design.first.randomise(records(SCHEMA, 5), seed=1))
    phase = FirstPhase(method="corr-rr", epsilon=1.0, share=0.1)
    came = Wire(design.first).unpack(sent, is_simulation=True, phase=phase).reports
    assert came.phase == phase
    assert came.is_simulation
    assert all(part.is_simulation for part in came.parts)
    assert not unpack(design.first, sent).reports.is_simulation


def test_reports_that_nobody_can_have_made_are_not_packed() -> None:
    protocol = PROTOCOLS["smp"]
    made = protocol.randomise(records(SCHEMA, 20), seed=1)
    with pytest.raises(InputError, match="exactly one of a, b, c"):
        pack(replace(made, people=21))
    with pytest.raises(InputError, match="codes from 0 to 2"):
        pack(replace(made, parts=(Reports(made.parts[0].values + 3), *made.parts[1:])))
    with pytest.raises(InputError, match="`payloads` must be bytes"):
        unpack(protocol, ["no bytes"])


def test_a_number_too_far_out_for_doubles_has_no_wire_form() -> None:
    protocol = of_mechanism("laplace", 5, {"lower": -1.0, "upper": 4.0})
    made = protocol.randomise(records(protocol.schema, 3), seed=1)
    off = Reports(made.parts[0].values + 1e-9)
    with pytest.raises(InputError):
        pack(replace(made, parts=(off,)))
    wide = ReportForm.numbers(Grid(0.0, 1.0, 1 << 24, 2.0**53))
    with pytest.raises(InputError, match=r"further than 2\^53 steps"):
        _ = PartLayout(wide).length


def test_noisy_numbers_go_there_and_back_as_far_as_noise_reaches() -> None:
    layout = PartLayout(ReportForm.numbers(Grid(-1.0, 0.5, 10, 2.5)))
    steps = np.arange(-3, 14)
    body = np.zeros((len(steps), 2), dtype=np.uint8)
    layout.put(Reports(-1.0 + 0.5 * steps), body, 3)
    taken, faults = layout.take(body, 3)
    assert not faults["range"].any()
    assert taken.values.tolist() == (-1.0 + 0.5 * steps).tolist()
    assert layout.length == 5


def test_a_set_is_a_bit_for_each_code_where_that_is_no_longer() -> None:
    layout = PartLayout(of_mechanism("ss", 16, {"width": 4}).forms[0])
    body = np.zeros((1, 3), dtype=np.uint8)
    layout.put(Reports(np.array([[0, 1, 2, 15]], dtype=np.uint16)), body, 0)
    assert body.tolist() == [[0b111, 0x80, 0]]


def test_fields_are_as_narrow_as_they_can_be() -> None:
    lengths = {
        ("grr", 2): 1, ("grr", 65): 7, ("oue", 65): 65, ("sue", 9): 9, ("identity", 3): 2,
    }  # fmt: skip
    for (name, size), bits in lengths.items():
        (form,) = of_mechanism(name, size).forms
        assert PartLayout(form).length == bits
    (hashed,) = of_mechanism("olh", 70, {"g": 4}).forms
    assert PartLayout(hashed).length == 66
    few, many = (of_mechanism("ss", 70, {"width": width}).forms[0] for width in (2, 20))
    assert PartLayout(few).length == 14
    assert PartLayout(many).length == 70
    assert Layout((few, many), sends_one_part=True).length == 9
