"""A person who reports one group draws noise for it alone, and batches of rows do not change a simulation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.mechanisms.grr import RandomisedResponse
from sidelight.protocols import direct, smp
from sidelight.protocols.records import RecordReports, joined
from sidelight.studies.corr_rr.records import schema_of

SCHEMA = schema_of(3, 5)
PEOPLE = 333


def records() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 5, (PEOPLE, 3)).astype(np.uint8)


def assert_same(one: RecordReports, other: RecordReports) -> None:
    assert one.people == other.people
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)
        assert mine.values.dtype == theirs.values.dtype
        assert (mine.seeds is None) == (theirs.seeds is None)
        if mine.seeds is not None:
            np.testing.assert_array_equal(mine.seeds, theirs.seeds)
    for mine, theirs in zip(one.senders, other.senders, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@settings(max_examples=60)
@given(
    mechanism=st.sampled_from(["grr", "oue", "olh", "ss", "she"]),
    shares=st.sampled_from([(), (1, 2, 3), (1, 1, 1 << 40)]),
    block=st.sampled_from([1, 7, 64, 1 << 16]),
    offset=st.integers(0, 200),
    cuts=st.lists(st.integers(0, PEOPLE), max_size=4),
)
def test_batches_are_the_whole_wherever_they_are_cut(mechanism, shares, block, offset, cuts) -> None:
    protocol = smp(SCHEMA, 1.0, mechanism, shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "BLOCK", block)
        whole = protocol.randomise(records(), seed=4, offset=offset)
        ends = [0, *sorted(cuts), PEOPLE]
        parts = [
            protocol.randomise(records()[start:stop], seed=4, offset=offset + start)
            for start, stop in pairwise(ends)
        ]
    assert_same(whole, joined(parts))


@pytest.mark.parametrize("seed", [None, 4])
def test_noise_is_drawn_for_the_chosen_group_alone(seed: int | None, monkeypatch) -> None:
    drawn = []
    sample = RandomisedResponse.sample

    def counted(self, source, start, codes):
        drawn.append(len(codes))
        return sample(self, source, start, codes)

    monkeypatch.setattr(RandomisedResponse, "sample", counted)
    smp(SCHEMA, 1.0).randomise(records(), seed=seed, offset=65_500)
    assert sum(drawn) == PEOPLE


def test_no_two_people_share_their_noise(monkeypatch) -> None:
    places: dict[int, set[int]] = {}
    sample = RandomisedResponse.sample

    def seen(self, source, start, codes):
        own = set(range(start, start + len(codes)))
        assert not own & places.setdefault(source.key, set())
        places[source.key] |= own
        return sample(self, source, start, codes)

    monkeypatch.setattr(RandomisedResponse, "sample", seen)
    monkeypatch.setattr(direct, "BLOCK", 32)
    for start in range(0, PEOPLE, 50):
        smp(SCHEMA, 1.0).randomise(records()[start : start + 50], seed=4, offset=start)
    assert sum(map(len, places.values())) == PEOPLE
