"""Memory: the same memo for ever, from a table or from a secret, and nothing else in it."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import stat
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.kbkdf import KBKDFHMAC, CounterLocation, Mode

import sidelight as sl
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import create
from sidelight.mechanisms.longitudinal.device import Device, meaning, recalled, recalled_of_all
from sidelight.mechanisms.longitudinal.memory import KeyedMemory, Memory, StoredMemory, Topic, keyed_words

VECTORS = json.loads((Path(__file__).parent / "memory_vectors.json").read_text("utf-8"))
COLOUR = sl.categorical("colour", ["red", "green", "blue", "grün"])
KEPT = ("grr", "sue", "oue", "olh", "blh", "dbitflip")
LONGITUDINAL = ("rappor", "l-grr", "l-sue", "l-oue", "l-osue", "loloha")
SIGMAS = 6.0  # two-sided 2e-9 each; fewer than 50 such comparisons are made


def secrets(count: int) -> list[KeyedMemory]:
    """Return the memories of many devices, the same in every run."""
    return [KeyedMemory(hashlib.sha256(str(number).encode()).digest()) for number in range(count)]


@pytest.mark.parametrize("vector", VECTORS["words"], ids=lambda vector: "/".join(vector["topic"]))
def test_words_are_those_of_the_published_vectors(vector: dict):
    topic = Topic(*vector["topic"])
    assert topic.encoded().hex() == vector["encoded"]
    words = keyed_words(bytes.fromhex(vector["secret"]), topic, len(vector["words"]))
    assert [str(word) for word in words] == vector["words"]


@pytest.mark.parametrize(
    "vector", VECTORS["memos"], ids=lambda vector: f"{vector['mechanism']} {vector['value']}"
)
def test_memos_are_those_of_the_published_vectors(vector: dict):
    attribute = sl.categorical(vector["attribute"], vector["values"])
    mechanism = create(vector["mechanism"], attribute.size, vector["epsilon"])
    assert mechanism.identity == vector["channel"]
    memory = KeyedMemory(bytes.fromhex(vector["secret"]))
    memo = recalled(mechanism, attribute, memory, vector["epoch"], attribute.code(vector["value"]))
    assert memo.values.reshape(-1).tolist() == vector["memo"]
    assert (None if memo.seeds is None else str(memo.seeds[0])) == vector["seed"]


def drawn_anew(vector: dict) -> tuple[list[int], str | None]:
    """Return a memo as docs/repeated.md words the rules, in whole numbers and without the package."""
    kind, *numbers = vector["channel"].split()
    size, *rest = map(int, numbers)
    code = vector["values"].index(vector["value"])

    def encoded(texts: list[str]) -> bytes:
        return b"".join(len(text.encode()).to_bytes(4, "big") + text.encode() for text in texts)

    def words(purpose: str, subject: str, count: int) -> list[int]:
        means = hashlib.sha256(encoded([str(size), *vector["values"], "0"])).hexdigest()
        channel = f"{vector['channel']} {means}"
        fields = ["sidelight memory 1", purpose, channel, vector["attribute"], vector["epoch"], subject]
        topic = encoded(fields)
        secret = bytes.fromhex(vector["secret"])
        blocks = [
            hmac.digest(secret, i.to_bytes(4, "big") + topic, "sha256") for i in range(1, count // 4 + 2)
        ]
        stream = b"".join(blocks)
        return [int.from_bytes(stream[8 * j : 8 * j + 8], "little") for j in range(count)]

    def respond(word: int, true: int, cells: int, other: int) -> int:
        lie = (word - (2**64 - (cells - 1) * other)) // other
        return true if lie < 0 else lie + (lie >= true)

    if kind == "grr":
        return [respond(words("response", vector["value"], 1)[0], code, size, rest[0])], None
    if kind == "bits":
        drawn = words("response", vector["value"], size)
        bits = [word < (rest[0] if v == code else rest[1]) for v, word in enumerate(drawn)]
        width = next(width for width in (1, 2, 4, 8) if size <= 8 * width)
        return list(sum(bit << v for v, bit in enumerate(bits)).to_bytes(width, "little")), None
    if kind == "hash":
        seed, (cells, other) = words("shared", "", 1)[0], rest
        bucket = ((((seed >> 32) * code + seed) & 0xFFFFFFFF) >> 15) * cells >> 17
        return [respond(words("response", str(bucket), 1)[0], bucket, cells, other)], str(seed)
    asked: list[int] = []
    for j, word in enumerate(words("shared", "", rest[0])):
        drawn_value = word * (size - rest[0] + j + 1) >> 64
        asked.append(size - rest[0] + j if drawn_value in asked else drawn_value)
    flips = [word < rest[1] for word in words("response", vector["value"], rest[0])]
    return [2 * v + ((v == code) ^ flip) for v, flip in zip(sorted(asked), flips, strict=True)], None


@pytest.mark.parametrize("vector", VECTORS["memos"], ids=lambda vector: vector["mechanism"])
def test_memos_follow_the_rules_as_they_are_worded(vector: dict):
    assert drawn_anew(vector) == (vector["memo"], vector["seed"])


@pytest.mark.parametrize("count", [1, 4, 5, 31])
def test_words_are_a_standard_key_derivation_in_counter_mode(count: int):
    secret, topic = bytes(range(32)), Topic("response", "grr 4 99", "colour", "7", "grün")
    derived = KBKDFHMAC(
        algorithm=hashes.SHA256(), mode=Mode.CounterMode, length=8 * count, rlen=4, llen=None,
        location=CounterLocation.BeforeFixed, label=None, context=None, fixed=topic.encoded(),
    ).derive(secret)  # fmt: skip
    assert keyed_words(secret, topic, count).tobytes() == derived


def test_no_two_topics_have_one_encoding():
    texts = ("", "a", "ab", "b", "a\x00", "\x00\x00\x00\x01a")
    topics = {Topic("response", *parts) for parts in product(texts, repeat=4)}
    assert len({topic.encoded() for topic in topics}) == len(topics)


@pytest.mark.parametrize("name", [*KEPT, *LONGITUDINAL])
@pytest.mark.parametrize("stored", [False, True])
def test_a_memo_is_the_same_for_ever(name: str, stored: bool, tmp_path: Path):
    mechanism = create(name, 4, 1.0)
    memory: Memory = StoredMemory() if stored else KeyedMemory.new()
    device = Device(mechanism, COLOUR, memory, follow_changes=True)
    first = [device.memo(value) for value in COLOUR.values]
    memory.write(tmp_path / "memory.json")
    assert stat.S_IMODE((tmp_path / "memory.json").stat().st_mode) == 0o600
    later = Device(mechanism, COLOUR, Memory.read(tmp_path / "memory.json"), follow_changes=True)
    for code, memo in enumerate(first):
        np.testing.assert_array_equal(later.memo(code).values, memo.values)
        sent = [later.report(code, number) for number in range(40)]
        assert not sent[0].is_simulation
        if name in KEPT:
            assert all(np.array_equal(report.values, memo.values) for report in sent)
        else:
            assert len({report.values.tobytes() for report in sent}) > 1


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "olh", "dbitflip"])
def test_memos_of_many_devices_have_the_stated_law(name: str):
    """Of 4,000 devices, each with its own secret; the estimate is within 6 standard errors of the truth."""
    mechanism = create(name, 4, 1.0)
    codes = np.random.default_rng(2).choice(4, 4_000, p=[0.6, 0.3, 0.1, 0.0])
    memos = recalled_of_all(mechanism, COLOUR, secrets(4_000), "0", codes)
    shares = np.bincount(codes, minlength=4) / 4_000
    error = np.abs(mechanism.estimate(mechanism.aggregate(memos)) - shares)
    assert (error <= SIGMAS * np.sqrt(mechanism.variance(4_000, shares))).all()


def answers(mechanism_budget: float, attribute: str, epoch: str, codes: np.ndarray) -> np.ndarray:
    stored = create("grr", 2, mechanism_budget)
    yes = sl.categorical(attribute, ["no", "yes"])
    return recalled_of_all(stored, yes, secrets(len(codes)), epoch, codes).values


def test_channel_attribute_and_epoch_each_make_a_memo_of_their_own():
    """Independent answers to equal values differ with probability p1 q2 + q1 p2, of 4,000 devices.

    Were the channel left out of the key, the two budgets' answers would differ in .109 of the devices, and
    then give the value away.
    """
    codes = np.arange(4_000) % 2
    base = answers(1.0, "a", "0", codes)
    p, half = (math.exp(eps) / (1 + math.exp(eps)) for eps in (1.0, 0.5))
    for other, expected in (
        (answers(0.5, "a", "0", codes), p * (1 - half) + (1 - p) * half),
        (answers(1.0, "b", "0", codes), 2 * p * (1 - p)),
        (answers(1.0, "a", "1", codes), 2 * p * (1 - p)),
    ):
        differ = base != other
        assert abs(differ.mean() - expected) <= SIGMAS * math.sqrt(0.25 / 4_000)
        given = (base[differ] == codes[differ]).mean()  # a difference leaves both answers possible
        assert 0.2 < given < 0.8
    np.testing.assert_array_equal(base, answers(1.0, "a", "0", codes))


@pytest.mark.parametrize("name", ["grr", "sue", "dbitflip"])
def test_askers_who_list_values_in_another_order_learn_no_more_than_their_two_budgets(name: str):
    """Every pair of answers that occurs for one value in 1/40 of 2,000 devices occurs for every other one.

    At a budget of 1/2 each, both together have 1; a pair of likelihood 1/40 for one value has 1/109 for
    another, so that 2,000 devices miss it with probability 1e-8. From the same words, two different lies
    would leave only one value.
    """
    orders = [["no", "yes", "perhaps"], ["perhaps", "yes", "no"]]
    asked = [sl.categorical("said", order) for order in orders]
    stored, memories, seen = create(name, 3, 0.5), secrets(2_000), []
    for value in orders[0]:
        told = [recalled_of_all(stored, a, memories, "0", [a.code(value)] * 2_000).values for a in asked]
        both = np.column_stack([part.reshape(2_000, -1) for part in told])
        kinds, counts = np.unique(both, axis=0, return_counts=True)
        seen.append({tuple(kind): int(count) for kind, count in zip(kinds.tolist(), counts, strict=True)})
    for laws in product(seen, repeat=2):
        assert all(pair in laws[1] for pair, count in laws[0].items() if count >= 50)


def test_a_memo_depends_on_what_codes_mean():
    same = [sl.categorical("a", ["x", "y"]), sl.categorical("a", ["x", "y"], ordinal=True)]
    assert len(set(map(meaning, same))) == 1
    number = sl.Attribute("a", "numeric", ("low", "high"), (-0.0,))
    other = [
        same[0],
        sl.categorical("a", ["y", "x"]),
        sl.categorical("a", ["x", "y", "0"]),
        replace(same[0], merged=(("x", ("u",)),)),
        replace(same[0], merged=(("x", ("u", "v")),)),
        number,
        replace(number, edges=(1.0,)),
    ]
    assert len(set(map(meaning, other))) == len(other)
    assert meaning(number) == meaning(replace(number, edges=(0.0,)))


def test_all_who_ask_through_one_channel_get_one_memo():
    memory = KeyedMemory.new()
    weak, strong = (create("l-grr", 4, 2.0, first=first) for first in (0.5, 1.5))
    one, other = (Device(oracle, COLOUR, memory).memo("red") for oracle in (weak, strong))
    np.testing.assert_array_equal(one.values, other.values)
    assert create("l-sue", 4, 2.0).stored.identity == create("sue", 4, 2.0).identity
    assert create("l-sue", 4, 2.0).stored.identity != create("sue", 4, 1.9).identity


@pytest.mark.parametrize("name", ["l-grr", "loloha"])
def test_a_value_is_frozen_for_an_epoch(name: str):
    device = Device(create(name, 4, 50.0), COLOUR, KeyedMemory.new(), epoch_rounds=3)
    oracle = device.mechanism
    marked = [
        oracle.marked(device.report(value, number))[0].nonzero()[0].tolist()
        for number, value in enumerate(["red", "blue", "blue", "blue", "red", "green"])
    ]
    assert all(0 in favoured for favoured in marked[:3])
    assert all(2 in favoured for favoured in marked[3:])
    assert device.memory.frozen == {("colour", "0"): "red", ("colour", "1"): "blue"}
    assert [device.epoch_of(number) for number in (0, 2, 3)] == ["0", "0", "1"]


def test_another_series_freezes_values_of_its_own():
    memory = KeyedMemory.new()
    devices = [Device(create("grr", 4, 50.0), COLOUR, memory, 2, series=name) for name in ("", "a", "b")]
    # Each keeps the value that it was given first, whatever another one froze.
    first = [int(one.report(code).values[0]) for code, one in enumerate(devices)]
    assert [int(one.report(3, 1).values[0]) for one in devices] == first == [0, 1, 2]
    assert set(memory.frozen) == {("colour", "0"), ("colour", "a 0"), ("colour", "b 0")}
    weak = Device(create("grr", 200, 0.1), sl.categorical("page", map(str, range(200))), memory)
    memos = [int(replace(weak, series=name).memo(0).values[0]) for name in "abcdef"]
    assert len(set(memos)) > 1  # all alike with probability 200 to the power of -5


def test_a_value_that_another_asker_does_not_list_is_frozen_for_each():
    memory = KeyedMemory.new()
    lists = [sl.categorical("said", values) for values in (["no", "yes"], ["yes", "other"])]
    one, other = (Device(create("grr", 2, 50.0), item, memory, 2, series="a") for item in lists)
    assert int(one.report("no").values[0]) == 0
    # "no" is none of the other's: its first value holds for it, until its own epoch is over.
    told = [int(other.report(value, n).values[0]) for n, value in enumerate(["other", "yes", "yes"])]
    assert told == [1, 1, 0]
    assert memory.frozen == {
        ("said", "a 0"): "no", ("said", f"a 0 {meaning(lists[1])}"): "other", ("said", "a 1"): "yes",
    }  # fmt: skip


def test_hashed_values_that_share_a_bucket_share_the_memo():
    """Otherwise two memos would be told of one bucket."""
    many = sl.categorical("page", [str(number) for number in range(60)])
    stored = create("loloha", 60, 2.0, g=3).stored
    memory = KeyedMemory(bytes(32))
    memos = [recalled(stored, many, memory, "0", code) for code in range(60)]
    assert len({int(memo.seeds[0]) for memo in memos}) == 1
    buckets = stored.hashed(np.arange(60), np.repeat(memos[0].seeds, 60))
    for bucket in range(3):
        assert len({int(memos[code].values[0]) for code in np.flatnonzero(buckets == bucket)}) == 1


def test_a_memory_is_not_written_over_another(tmp_path: Path):
    path = tmp_path / "memory.json"
    memory = StoredMemory()
    Device(create("grr", 4, 1.0), COLOUR, memory).memo("red")
    memory.write(path)
    Device(create("grr", 4, 1.0), COLOUR, memory, epoch_rounds=1).memo("red", 5)
    memory.write(path)  # it remembers more, and nothing else
    for other in (KeyedMemory.new(), StoredMemory()):
        with pytest.raises(InputError, match="is the memory of another device, or remembers what this one"):
            other.write(path)
    assert Memory.read(path).frozen == memory.frozen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "cannot be parsed"),
        ("{}", "is no memory: it must have `version = 1`"),
        ('{"version": 2}', "Upgrade Sidelight"),
        ('{"version": 1, "secrets": ""}', "there is no key 'secrets'; did you mean 'secret'"),
        ('{"version": 1, "secret": "?"}', "is damaged: its words are not base 64"),
        ('{"version": 1, "secret": "AAAA"}', "`secret` must be 32 bytes, got '3 bytes'"),
        ('{"version": 1, "secret": "AAAA", "words": {"00": "AAAA"}}', "has both a secret and stored words"),
        ('{"version": 1, "frozen": [{"attribute": "a", "epoch": 1, "value": "b"}]}', "frozen.0.epoch"),
        (
            '{"version": 1, "frozen": [{"attribute": "a", "epoch": "1", "value": "b"}, '
            '{"attribute": "a", "epoch": "1", "value": "c"}]}',
            "is damaged: two values of 'a' hold in the epoch '1'",
        ),
    ],
)
def test_a_damaged_memory_is_refused_in_one_line(text: str, message: str, tmp_path: Path):
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        Memory.read(path)
    assert "\n" not in str(caught.value)


def test_bad_devices_are_refused():
    memory = KeyedMemory.new()
    with pytest.raises(InputError, match="'ss' has no response that can be made again; take 'grr'"):
        Device(create("ss", 4, 1.0), COLOUR, memory)
    with pytest.raises(InputError, match="`attribute` must be one of 5 values"):
        Device(create("grr", 5, 1.0), COLOUR, memory)
    with pytest.raises(InputError, match="`epoch_rounds` must be"):
        Device(create("grr", 4, 1.0), COLOUR, memory, epoch_rounds=0)
    for series in ("a 0", "a\n", 7, None):
        with pytest.raises(InputError, match="`series` must be"):
            Device(create("grr", 4, 1.0), COLOUR, memory, series=series)
    device = Device(create("grr", 4, 1.0), COLOUR, memory)
    for value in (4, -1, 1.5, "violet"):
        with pytest.raises(InputError, match="value"):
            device.report(value)
    with pytest.raises(InputError, match="`number` must be"):
        device.report(0, -1)
    for secret in (b"short", "text", None):
        with pytest.raises(InputError, match="`secret` must be"):
            KeyedMemory(secret)
    with pytest.raises(InputError, match="`codes` must be one for each of 2 memories"):
        recalled_of_all(create("grr", 4, 1.0), COLOUR, secrets(2), "0", [1])
    channel = f"{create('grr', 4, 1.0).identity} {meaning(COLOUR)}"
    damaged = StoredMemory({Topic("response", channel, "colour", "0", "red").encoded().hex(): b""})
    with pytest.raises(InputError, match="it is damaged"):
        Device(create("grr", 4, 1.0), COLOUR, damaged).memo("red")
