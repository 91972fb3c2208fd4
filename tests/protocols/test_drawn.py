"""Reports that a device makes from given bytes: their law is that of the mechanism, word for word.

The law is computed, not sampled: every word is cut at every threshold that a protocol has, both ends of each
piece are tried, and the pieces' exact sizes are added up by the report they lead to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb, prod

import numpy as np
import pytest

import sidelight as sl
from sidelight.foundation.draws import Draws
from sidelight.foundation.errors import InputError
from sidelight.mechanisms import create
from sidelight.mechanisms.exact import WORDS
from sidelight.protocols import product, rs_fd, rs_rfd, smp, spl
from sidelight.protocols.fake_data import FakeDataProtocol
from sidelight.protocols.protocol import every_record
from sidelight.transport import pack

SCHEMA = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv")))


class NeedError(Exception):
    """One more random number is needed: below so many, or a word (None)."""


class Script(Draws):
    """Numbers that were decided on beforehand, then a need."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__(b"")
        self.numbers = list(numbers)

    def _next(self, bound: int | None) -> int:
        if not self.numbers:
            raise NeedError(bound)
        return self.numbers.pop(0)

    def word(self) -> int:
        return self._next(None)

    def words(self, count: int) -> np.ndarray:
        return np.array([self._next(None) for _ in range(count)], dtype=np.uint64)

    def below(self, bound: int) -> int:
        return self._next(bound)


def law_of(make: Callable[[Draws], bytes], cuts: list[int]) -> dict[bytes, Fraction]:
    """Return the exact law of what is made from uniform numbers, words being cut at the thresholds."""
    law: Counter[bytes] = Counter()
    ends = sorted({0, *cuts, WORDS})

    def explore(low: tuple[int, ...], high: tuple[int, ...], share: Fraction) -> None:
        try:
            made = make(Script(low))
        except NeedError as need:
            (bound,) = need.args
            for first, last, size in pieces(bound):
                explore((*low, first), (*high, last), share * size)
            return
        assert make(Script(high)) == made  # nothing changes within a piece
        law[made] += share

    def pieces(bound: int | None) -> Iterator[tuple[int, int, Fraction]]:
        if bound is not None:
            yield from ((number, number, Fraction(1, bound)) for number in range(bound))
            return
        for start, end in pairwise(ends):
            yield start, end - 1, Fraction(end - start, WORDS)

    explore((), (), Fraction(1))
    return dict(law)


def cuts_of(protocol) -> list[int]:
    cuts = set()
    for mechanism in protocol.responses.values():
        if mechanism.name == "grr":
            cuts |= {mechanism.truth + i * mechanism.other for i in range(mechanism.size - 1)}
        elif mechanism.name == "ss":
            cuts.add(mechanism.include)
        else:
            cuts |= set(mechanism.thresholds)
    if isinstance(protocol, FakeDataProtocol):
        weights = [np.cumsum(row) for law in protocol.fakes.values() for row in law]
        cuts |= {int(end) << 32 for row in weights for end in row}
    return sorted(cuts)


FAKES = {("a", "b"): np.array([[1 << 32, 0], [1 << 31, 1 << 31], [3 << 30, 1 << 30]]),
         ("b", "a"): np.array([[1 << 30, 1 << 30, 1 << 31], [0, 1 << 31, 1 << 31]])}  # fmt: skip
LISTED = {
    "spl": spl(SCHEMA, 1.7), "smp": smp(SCHEMA, 1.0, shares=(2, 5)), "product": product(SCHEMA, 1.0),
    "rs+fd": rs_fd(SCHEMA, 1.0), "rs+rfd": rs_rfd(SCHEMA, 1.0, {"a": [0.5, 0.3, 0.2], "b": [1, 0]}, "made"),
    "copies": FakeDataProtocol(SCHEMA, (("a", "b"),), 1.0, FAKES, "cond-rr", "made up"),
    "two groups": FakeDataProtocol(SCHEMA, (("a",), ("b",)), 1.0, {}, "corr-rr", "made up"),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_the_law_of_a_protocol_is_that_of_its_matrix(name: str) -> None:
    protocol = LISTED[name]
    matrix = protocol.matrix()
    for row, record in enumerate(every_record(SCHEMA).T):
        law: Counter[int] = Counter()

        def make(draws: Draws, record: np.ndarray = record) -> bytes:
            return bytes([int(protocol.columns_of(protocol.drawn(record, draws))[0])])

        for made, share in law_of(make, cuts_of(protocol)).items():
            law[made[0]] += share
        assert sum(law.values()) == 1
        np.testing.assert_allclose([float(law[i]) for i in range(matrix.shape[1])], matrix[row], rtol=1e-12)


def made_by(mechanism, code: int) -> Callable[[Draws], bytes]:
    return lambda draws: mechanism.drawn(code, draws).values.astype("<u2").tobytes()


@pytest.mark.parametrize("name", ["sue", "oue"])
def test_the_law_of_bits_is_that_of_two_rates(name: str) -> None:
    mechanism = create(name, 3, 1.2)
    p, q = mechanism.mark_rates
    law = law_of(made_by(mechanism, 1), list(mechanism.thresholds))
    assert len(law) == 8
    for row, share in law.items():
        bits = [(row[0] >> v) & 1 for v in range(3)]
        rates = [p if v == 1 else q for v in range(3)]
        assert share == prod(rate if bit else 1 - rate for bit, rate in zip(bits, rates, strict=True))


@pytest.mark.parametrize(("size", "width"), [(2, 1), (5, 1), (5, 2), (5, 4), (6, 3)])
def test_the_law_of_sets_is_uniform_given_whether_the_truth_is_in(size: int, width: int) -> None:
    mechanism = create("ss", size, 1.1, width=width)
    include = mechanism.mark_if_true
    for code in (0, size - 1):
        law = law_of(made_by(mechanism, code), [mechanism.include])
        expected = {}
        for chosen in combinations(range(size), width):
            ways = comb(size - 1, width - 1) if code in chosen else comb(size - 1, width)
            share = include if code in chosen else 1 - include
            expected[np.array(chosen, dtype="<u2").tobytes()] = share / ways
        assert law == expected


@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_the_law_of_columns_is_that_of_two_parities(size: int) -> None:
    mechanism = create("hadamard", size, 1.1)
    columns, rest = mechanism.columns, Fraction(mechanism.other, WORDS)
    cuts = [mechanism.other, *(column * WORDS // columns for column in range(columns))]
    for code in (0, 1, size - 1):
        parities = [((code + 1) & column).bit_count() % 2 for column in range(columns)]
        assert law_of(made_by(mechanism, code), cuts) == {
            np.array([column], dtype="<u2").tobytes(): (rest if odd else 1 - rest) / (columns // 2)
            for column, odd in enumerate(parities)
        }


@pytest.mark.parametrize("parameters", [{}, {"g": 5}])
def test_the_law_of_a_hash_given_its_seed_is_a_response_to_the_bucket(parameters: dict) -> None:
    """The seed is a whole word, uniform by definition; all else is a response of known law."""
    mechanism = create("olh", 7, 1.1, **parameters)
    response = mechanism.response
    cuts = [response.truth + i * response.other for i in range(mechanism.buckets - 1)]
    for seed in np.random.default_rng(3).integers(0, 2**63, 12, dtype=np.uint64) * np.uint64(2):
        bucket = int(mechanism.hashed(np.array([4]), np.array([seed]))[0])

        def make(draws: Script, seed: np.uint64 = seed) -> bytes:
            draws.numbers.insert(0, int(seed))
            drawn = mechanism.drawn(4, draws)
            assert drawn.seeds == seed
            return drawn.values.astype("<u2").tobytes()

        law = law_of(make, cuts)
        truth, other = response.mark_rates
        assert law == {
            np.array([y], dtype="<u2").tobytes(): truth if y == bucket else other
            for y in range(mechanism.buckets)
        }


def test_asked_bits_are_of_any_values_alike() -> None:
    mechanism = create("dbitflip", 4, 1.0, d=2)
    p, q = mechanism.bit_rates
    law = law_of(made_by(mechanism, 2), [mechanism.flip])
    for row, share in law.items():
        codes = np.frombuffer(row, dtype="<u2").tolist()
        each = [
            (p if code & 1 else 1 - p) if code >> 1 == 2 else (q if code & 1 else 1 - q) for code in codes
        ]
        assert share == prod(each) / comb(4, 2)
    assert len(law) == 24


def test_numbers_below_a_bound_are_uniform() -> None:
    """As many words lead to each number: the first and the last of a run are where they must be."""
    for bound in (1, 2, 3, 7, 1000, (1 << 40) + 3):
        least = WORDS % bound
        each = (WORDS - least) // bound
        for number in {0, 1 % bound, bound // 2, bound - 1}:
            first = -(-(number * WORDS + least) // bound)  # the least word with number's quotient and rest
            assert drawn_below(bound, first) == (number, 8)
            assert drawn_below(bound, first + each - 1) == (number, 8)
            if first > 0 and first + each < WORDS:
                assert drawn_below(bound, first + each) != (number, 8)
        assert (drawn_below(bound, 0) == (0, 8)) == (least == 0)  # else it is passed over


def drawn_below(bound: int, word: int) -> tuple[int, int]:
    draws = Draws(word.to_bytes(8, "little") + (0xFF).to_bytes(1, "little") * 8)
    return draws.below(bound), draws.used


def test_the_same_bytes_make_the_same_report() -> None:
    given = bytes(range(200)) * 4
    for protocol in LISTED.values():
        record = np.array([1, 1])
        assert pack(protocol.drawn(record, Draws(given))) == pack(protocol.drawn(record, Draws(given)))
        assert len(pack(protocol.drawn(record, Draws()))) == 1


def test_what_is_not_laid_down_is_refused() -> None:
    with pytest.raises(InputError, match="no rules are laid down"):
        create("exp", 5, 1.0).drawn(1, Draws())
    with pytest.raises(InputError, match="needs more than the 7 random bytes"):
        create("grr", 5, 1.0).drawn(1, Draws(bytes(7)))
    with pytest.raises(InputError, match="codes from 0 to 2"):
        spl(SCHEMA, 1.0).drawn(np.array([3, 0]), Draws())
