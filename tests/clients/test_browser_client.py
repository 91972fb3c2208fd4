"""The TypeScript client in a real browser: its samplers have the law that Python states, its ledger lasts.

A browser's randomness has no seed. Each sampler's chi-squared test has a false-alarm rate of 10^-9, so that
one run of this file in more than 10^7 fails without a cause.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from math import comb, prod
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.stats import chi2
from selenium import webdriver

from browser import browser_fixture, complaints, requests, show
from client_vectors import SCHEMA, of_mechanism, second_of
from ledger_stores import MemoryStore
from sidelight.ledger import Ledger
from sidelight.mechanisms.exact import WORDS
from sidelight.protocols import smp, spl
from sidelight.protocols.files import protocol_data
from sidelight.protocols.protocol import Protocol
from sidelight.transport import Wire
from typescript import BUNDLE

__all__ = ["browser_fixture"]

pytestmark = pytest.mark.browser
FALSE_ALARM = 1e-9
PEOPLE = 20_000
PAGE = """<!doctype html><meta charset="utf-8"><title>client</title><link rel="icon" href="data:,">
<script type="module">import * as sl from "./client.js"; window.sl = sl;</script>"""
LOADED = "return window.sl !== undefined"


@pytest.fixture(scope="module", name="address")
def address_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("page")
    (folder / "client.js").write_bytes(BUNDLE.read_bytes())
    (folder / "index.html").write_text(PAGE)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


def drawn(browser: webdriver.Chrome, protocol: Protocol, record: list[int], people: int) -> list[bytes]:
    """Return reports of one record that the browser made with its own randomness."""
    script = """
        const protocol = sl.protocolFrom(arguments[0]);
        return Array.from({ length: arguments[2] }, () => sl.toHex(protocol.report(arguments[1]))).join(" ");
    """
    document = json.dumps(protocol_data(protocol))
    return [bytes.fromhex(text) for text in browser.execute_script(script, document, record, people).split()]


def law_of_one(protocol: Protocol, code: int) -> dict[bytes, float]:
    """Return the law of the report of one attribute by its bytes, written out from the mechanism's rates."""
    (mechanism,) = protocol.responses.values()
    size, law = mechanism.size, {}
    if mechanism.name == "ss":
        include = float(mechanism.mark_if_true)
        for chosen in combinations(range(size), mechanism.width):
            inside = comb(size - 1, mechanism.width - 1), comb(size - 1, mechanism.width)
            law[chosen] = include / inside[0] if code in chosen else (1 - include) / inside[1]
    elif mechanism.name == "hadamard":
        rest = mechanism.other / WORDS
        for column in range(mechanism.columns):
            odd = ((code + 1) & column).bit_count() % 2
            law[column,] = (rest if odd else 1 - rest) / (mechanism.columns // 2)
    elif mechanism.name == "grr":
        p, q = map(float, mechanism.mark_rates)
        law = {(value,): p if value == code else q for value in range(size)}
    else:
        p, q = map(float, mechanism.mark_rates)
        for bits in range(1 << size):
            rates = [p if value == code else q for value in range(size)]
            law[bits] = prod(rate if bits >> v & 1 else 1 - rate for v, rate in enumerate(rates))
    return law


def said(protocol: Protocol, payloads: list[bytes]) -> Counter:
    """Return how often each report was made, in the terms of the law."""
    came = Wire(protocol).unpack(payloads)
    assert not came.refused
    (part,) = came.reports.parts
    rows = part.values.reshape(len(payloads), -1).tolist()
    if protocol.forms[0].encoding == "bits":
        return Counter(int.from_bytes(bytes(row), "little") for row in rows)
    return Counter(map(tuple, rows))


def surprise(seen: Counter, law: dict) -> float:
    """Return the chi-squared statistic over what its false-alarm rate allows: above 1 there is a cause."""
    assert seen.keys() <= law.keys()
    total = seen.total()
    assert min(law.values()) * total > 5
    statistic = sum((seen[key] - total * share) ** 2 / (total * share) for key, share in law.items())
    return statistic / chi2.isf(FALSE_ALARM, len(law) - 1)


@pytest.mark.parametrize(
    ("name", "size"),
    [("grr", 5), ("grr", 2), ("sue", 4), ("oue", 4), ("ss", 8), ("ss", 3), ("hadamard", 5)],
)
def test_reports_of_a_mechanism_have_its_law(browser, address: str, name: str, size: int) -> None:
    show(browser, address, drawn=LOADED)
    protocol = of_mechanism(name, size, 1.0, {})
    seen = said(protocol, drawn(browser, protocol, [1], PEOPLE))
    assert surprise(seen, law_of_one(protocol, 1)) < 1
    assert surprise(seen, law_of_one(protocol, 0)) > 3  # the test can fail
    assert not complaints(browser)


@pytest.mark.parametrize("parameters", [{}, {"g": 5}])
def test_hashed_reports_have_uniform_seeds_and_responses_of_known_law(browser, address, parameters) -> None:
    show(browser, address, drawn=LOADED)
    protocol = of_mechanism("olh", 9, 1.0, parameters)
    mechanism = protocol.groups[0].randomiser
    (part,) = Wire(protocol).unpack(drawn(browser, protocol, [7], PEOPLE)).reports.parts
    for shift in (0, 8, 24, 32, 56):
        bytes_of = Counter(((part.seeds >> np.uint64(shift)) & np.uint64(63)).tolist())
        assert surprise(bytes_of, dict.fromkeys(range(64), 1 / 64)) < 1
    true = mechanism.hashed(np.full(PEOPLE, 7), part.seeds).astype(int)
    away = Counter(((part.values.astype(int) - true) % mechanism.buckets).tolist())
    p, q = map(float, mechanism.response.mark_rates)
    assert surprise(away, {step: p if step == 0 else q for step in range(mechanism.buckets)}) < 1


@pytest.mark.parametrize("name", ["spl", "smp", "second phase"])
def test_reports_of_a_protocol_have_its_law(browser, address: str, name: str) -> None:
    show(browser, address, drawn=LOADED)
    three = SCHEMA.select(["colour", "smoker"])
    protocols = {"spl": spl(three, 1.5), "smp": smp(three, 1.0, shares=(1, 3)), "second phase": None}
    protocol = protocols[name] or second_of("corr-rr", 1)
    record = [2, 1, 4, 3][: len(protocol.schema)]
    came = Wire(protocol).unpack(drawn(browser, protocol, record, PEOPLE)).reports
    if name == "second phase":  # too many reports to list: every column has a law of its own
        shares = protocol.expected_counts() @ np.concatenate(
            [np.arange(size) == code for size, code in zip(protocol.schema.sizes, record, strict=True)]
        ).astype(float)
        starts = np.cumsum([0, *protocol.schema.sizes])
        for part, start, size in zip(came.parts, starts, protocol.schema.sizes, strict=False):
            law = dict(enumerate(shares[start : start + size].tolist()))
            assert surprise(Counter(part.values.tolist()), law) < 1
        return
    law = protocol.matrix()[np.ravel_multi_index(record, protocol.schema.sizes)]
    assert surprise(Counter(protocol.columns_of(came).tolist()), dict(enumerate(law.tolist()))) < 1


def test_words_of_the_browser_are_uniform(browser, address: str) -> None:
    show(browser, address, drawn=LOADED)
    script = """
        const draws = new sl.Draws();
        return Array.from({ length: 20000 }, () => [String(draws.word()), Number(draws.below(7n))]);
    """
    words, small = zip(*browser.execute_script(script), strict=True)
    tops = Counter(int(word) * 64 // WORDS for word in words)
    assert surprise(tops, dict.fromkeys(range(64), 1 / 64)) < 1
    assert surprise(Counter(small), dict.fromkeys(range(7), 1 / 7)) < 1
    assert len(set(words)) == len(words)


OPEN = """
    const done = arguments[arguments.length - 1];
    const limits = [sl.limitOf(1, { days: 30 }), sl.limitOf(3, {}, 1e-6)];
    const charges = [{ attribute: "grün", channel: "grr", units: 400000000, epoch: null }];
    const question = { task: "t", round: 0, charges };
    sl.IndexedStore.open("test").then(async (store) => {
      const ledger = await sl.Ledger.open(store, "ann", limits);
      %s
    }).catch((error) => done({ error: error.message }));
"""


def test_a_ledger_in_the_browser_lasts_and_is_the_same_file(browser, address: str) -> None:
    show(browser, address, drawn=LOADED)
    made = browser.execute_async_script(
        OPEN
        % """
        const report = await ledger.reserve(question, () => sl.randomBytes(9));
        done({ report: sl.toHex(report), left: ledger.remaining().map(({ left }) => left) });
    """
    )
    assert made["left"][0] == 600_000_000
    refused = browser.execute_async_script(OPEN % "done({});")  # the page still has it
    assert "is in use by another page" in refused["error"]
    show(browser, address, drawn=LOADED)
    again = browser.execute_async_script(
        OPEN
        % """
        const report = await ledger.reserve(question, () => sl.randomBytes(9));
        await ledger.reserve({ ...question, round: 1 }, () => report);
        const asked = ledger.reserve({ ...question, round: 2 }, () => report);
        const over = await asked.catch((error) => error.message);
        await ledger.send([question], async () => {});
        done({ report: sl.toHex(report), over, file: sl.toBase64(await store.read()), head: ledger.head });
    """
    )
    assert again["report"] == made["report"]
    assert "spends 0.4, and 0.2 is left of 1 in any 30 days; it fits from" in again["over"]
    ledger = Ledger(MemoryStore(base64.b64decode(again["file"])), "ann")
    assert (ledger.head.lines, ledger.head.digest) == (again["head"]["lines"], again["head"]["digest"])
    assert [answer.state for answer in ledger.answers] == ["acknowledged", "reserved"]
    assert [answer.question.charges[0].attribute for answer in ledger.answers] == ["grün", "grün"]
    assert all(address.startswith(request.rsplit("/", 1)[0]) for request in requests(browser))


def test_published_vectors_come_out_in_the_browser_too(browser, address: str) -> None:
    show(browser, address, drawn=LOADED)
    vectors = (Path(__file__).resolve().parents[2] / "vectors" / "reports.json").read_text("utf-8")
    wrong = browser.execute_script(
        """
        const read = { protocol: sl.protocolFrom, plan: sl.planFrom, parameters: sl.parametersFrom };
        return JSON.parse(arguments[0]).flatMap((vector) => {
          const [protocol, random] = [read[vector.kind](vector.document), sl.fromHex(vector.random)];
          return vector.reports.filter((wanted, i) => {
            const given = random.subarray(i ? vector.ends[i - 1] : 0, vector.ends[i]);
            return sl.toHex(protocol.report(vector.records[i], new sl.Draws(given))) !== wanted;
          });
        });
    """,
        vectors,
    )
    assert wrong == []
