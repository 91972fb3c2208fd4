"""Noise: secure words, words drawn again, streams that are not shared, and how far noise can lead.

Statistical checks use fixed seeds; each states how rare a false alarm is.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from test_mechanism_edges import FREE, NUMERIC, RUNNABLE, make
from test_mechanisms import Scripted

from sidelight.foundation import compiled
from sidelight.foundation.errors import InputError
from sidelight.foundation.randomness import Secure, below
from sidelight.mechanisms import Reports, create, noise, unary
from sidelight.mechanisms.exact import WORDS


def test_secure_words_follow_the_operating_system(monkeypatch: pytest.MonkeyPatch):
    """A fixed source fixes them, another one changes them, and each call asks for a whole key."""
    asked = []

    def source(byte: int):
        return lambda count: asked.append(count) or bytes([byte]) * count

    monkeypatch.setattr(os, "urandom", source(1))
    one, again = Secure().words(0, 100), Secure().words(7, 100)
    monkeypatch.setattr(os, "urandom", source(2))
    other = Secure().words(0, 100)
    np.testing.assert_array_equal(one, again)
    assert not (one == other).any()
    assert asked == [32, 32, 32]
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    stream = Cipher(algorithms.ChaCha20(b"\1" * 32, bytes(16)), mode=None).encryptor().update(bytes(800))
    np.testing.assert_array_equal(one, np.frombuffer(stream, dtype="<u8"))


@pytest.mark.parametrize("name", [name for name in RUNNABLE if name not in (*FREE, *NUMERIC, "she")])
def test_unseeded_reports_ask_the_operating_system(name: str, monkeypatch: pytest.MonkeyPatch):
    """With the source held fixed all is fixed; a generator seeded elsewhere would show."""
    mechanism = make(name, 12)
    monkeypatch.setattr(os, "urandom", lambda count: b"\5" * count)
    one, again = (mechanism.randomise(np.arange(12).repeat(20)) for _ in range(2))
    np.testing.assert_array_equal(one.values, again.values)
    monkeypatch.setattr(os, "urandom", lambda count: b"\6" * count)
    assert not np.array_equal(one.values, mechanism.randomise(np.arange(12).repeat(20)).values)


def row_bits(mechanism, reports: Reports) -> np.ndarray:
    return np.unpackbits(reports.values, axis=1, bitorder="little")[:, : mechanism.size].astype(float)


def check_independent_bits(name: str) -> None:
    """Bits of one row, and of neighbouring rows, are uncorrelated: 7 standard errors, 1 in 4e11 each.

    A row of 64 bits takes one word a turn, so words that both its truth and its noise use meet in one row.
    """
    mechanism, people = make(name, 64), 20_000
    seen = row_bits(mechanism, mechanism.randomise(np.zeros(people, dtype=np.uint8), seed=3))
    within = np.corrcoef(seen.T) - np.eye(64)
    across = np.corrcoef(seen[:-1].T, seen[1:].T)[:64, 64:]
    assert np.abs(within).max() < 7 / math.sqrt(people)
    assert np.abs(across).max() < 7 / math.sqrt(people)


@pytest.mark.parametrize("name", ["sue", "oue", "the", "rappor"])
@pytest.mark.parametrize("path", [0, 1 << 60])
def test_bits_of_a_report_and_of_neighbours_are_independent(
    name: str, path: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compiled, "_least", path)
    check_independent_bits(name)


def test_a_truth_drawn_from_the_words_of_the_noise_turns_the_check_red(monkeypatch: pytest.MonkeyPatch):
    drawn = unary.randomness
    shared = lambda seed, stream, **rest: drawn(seed, stream.replace("/truth", "/noise"), **rest)  # noqa: E731
    monkeypatch.setattr(unary, "randomness", shared)
    with pytest.raises(AssertionError):
        check_independent_bits("oue")


@pytest.mark.parametrize("name", ["she", *NUMERIC, "grr", "exp", "interval", "hadamard"])
def test_neighbouring_rows_do_not_share_noise(name: str):
    """Rows of the same value, one apart and half the table apart: 6 standard errors, 1 in 5e8."""
    mechanism, people = make(name), 20_000
    seen = mechanism.randomise(np.ones(people, dtype=np.uint8), seed=5).values
    if name == "she":
        off = np.corrcoef(seen.T) - np.eye(4)
        assert np.abs(off).max() < 6 / math.sqrt(people)
        seen = seen[:, 2]
    elif name == "hadamard":
        seen = np.bitwise_count(seen & 2) & 1
    numbers = seen.astype(float) if name in (*NUMERIC, "she") else (seen == 1).astype(float)
    for lag in (1, 2, people // 2):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 6 / math.sqrt(people - lag)


def test_matching_has_words_of_its_own():
    """With the words of randomised response at half the budget, both would report the same."""
    values = np.arange(4).repeat(100)
    exp, grr = create("exp", 4, 2.0), create("grr", 4, 1.0)
    assert exp.factor == grr.factor
    assert not np.array_equal(exp.randomise(values, seed=1).values, grr.randomise(values, seed=1).values)
    assert exp.aggregate(exp.randomise(values, seed=1)).mechanism == "exp"


@pytest.mark.parametrize("is_compiled", [False, True])
def test_compiled_uniform_numbers_draw_again_too(is_compiled: bool):
    """2^64 = 4 modulo 6: a word of 0 is drawn again, twice, and the third one counts; the rest stay."""
    bounds = np.array([6, 5], dtype=np.uint64)
    script = {0: 0, 1: WORDS - 1, 2: WORDS // 2 + 1, 3: WORDS // 5, (1 << 56): 0, (2 << 56): WORDS - 1}
    drawn = below(Scripted(script, compiled=is_compiled), 0, 2, bounds)
    assert drawn.tolist() == [[5, 4], [3, 0]]


def test_simulated_histograms_have_no_signed_zero():
    mechanism = create("she", 3, 600.0)
    simulated = mechanism.randomise(np.zeros(200_000, dtype=np.uint8), seed=1).values
    assert (simulated == 0).any()
    assert not np.signbit(simulated[simulated == 0]).any()


@pytest.mark.parametrize("name", NUMERIC)
def test_reports_as_far_as_noise_can_lead_are_taken_and_no_further(name: str):
    extra = {"delta": 1e-5} if name == "gaussian" else {}
    mechanism = create(name, 3, 2.0, lower=-5.0, upper=15.0, **extra)
    most = np.floor(mechanism.reach * mechanism.scale) * mechanism.step
    ends = np.array([-5.0 - most, 15.0 + most])
    assert mechanism.aggregate(Reports(ends)).reports == 2
    further = ends + np.array([-1.0, 1.0]) * 3 * mechanism.step
    with pytest.raises(InputError, match="2 of 2 are not"):
        mechanism.aggregate(Reports(further))


@pytest.mark.parametrize("name", NUMERIC)
def test_noise_beyond_reach_is_less_likely_than_one_in_2_to_the_64(name: str):
    """Noise for people by its law, in logarithms; simulated noise by the most that one word gives."""
    from scipy.stats import norm

    extra = {"delta": 1e-5} if name == "gaussian" else {}
    mechanism = create(name, 2, 1.0, lower=0.0, upper=1 << 20, **extra)
    beyond = norm.logsf(mechanism.reach) if name == "gaussian" else -mechanism.reach
    assert beyond + math.log(2) <= -64 * math.log(2) + 1e-9

    class Extreme:
        is_secure = False

        def __init__(self, word: int) -> None:
            self.word = word

        def words(self, _: int, count: int) -> np.ndarray:
            return np.full(count, self.word, dtype=np.uint64) * (np.arange(count) % 2 == 0)

    for word in (0, (1 << 64) - 1):
        drawn = np.empty(2)
        noise.draw(mechanism.kind, Extreme(word), 0, mechanism.scale, drawn)
        assert np.abs(drawn).max() < 40 * mechanism.scale
        assert np.abs(drawn).max() < mechanism.reach * mechanism.scale


@pytest.mark.parametrize(
    ("lower", "upper", "grid"),
    [
        (0.3, 1.7, 0.1),
        (1e6 + 0.1, 1e6 + 1.1, 0.1),
        (-1e-3, 1e-3, 1e-7),
        (0.0, 2.0**40, 1.0),
        (1e9, 1e9 + 1, 2**-20),
    ],
)
def test_own_reports_are_on_the_grid_and_others_are_not(lower: float, upper: float, grid: float):
    for epsilon in (0.1, 3.0, 900.0):
        mechanism = create("discrete-laplace", 2, epsilon, lower=lower, upper=upper, grid=grid)
        reports = mechanism.randomise(np.resize([lower, upper], 2000), seed=1)
        assert mechanism.aggregate(reports).reports == 2000
    reports.values[7] += 0.37 * grid
    with pytest.raises(InputError, match="on the grid.*1 of 2000 are not"):
        mechanism.aggregate(reports)
