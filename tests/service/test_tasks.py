"""Tasks, rounds, sums and trails: documents named by their digest, states that never go back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import sidelight as sl
from service_cases import SCHEMA, people, task, two_phases
from sidelight.estimation.second_phase import FirstSums, learn_second_phase
from sidelight.protocols import TwoPhase, make_protocol
from sidelight.protocols.files import protocol_data
from sidelight.service.canonical import canonical
from sidelight.service.course import Earlier
from sidelight.service.rounds import STATES, Round, check_step, first_round, read_round
from sidelight.service.tally import Tally, add_rows, row_bytes, row_from
from sidelight.service.task import Terms, read_task, task_from
from sidelight.service.trail import Change, Entry, RoundState, check_trail, next_entry, replay


@pytest.mark.parametrize("made", [task(), task(3, most_reports=5, needs_token=True), two_phases()])
def test_a_task_is_its_document(made) -> None:
    assert made.id == hashlib.sha256(made.document).hexdigest()
    again = read_task(made.document, made.id)
    assert again.document == made.document
    assert again.terms == made.terms
    assert canonical(json.loads(made.document)) == made.document


def test_a_change_of_anything_is_another_task() -> None:
    made = task()
    others = [
        replace(made, purpose="Another."), replace(made, rounds=2), replace(made, terms=Terms(5)),
        replace(made, design=make_protocol("spl", SCHEMA, 2.5)), replace(made, contact="x@example.org"),
    ]  # fmt: skip
    assert len({made.id, *(other.id for other in others)}) == 6


def test_what_is_left_out_gets_its_default() -> None:
    made = task_from(
        {"version": 1, "purpose": "p", "contact": "c", "protocol": protocol_data(task().design.first)}
    )
    assert (made.rounds, made.terms) == (1, Terms())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "Upgrade Sidelight"),
        ({"purpose": " "}, "`purpose` must be a text"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 3}, "2, the phases of a two-phase design"),
        ({"colour": 1}, "there is no key 'colour'"),
        ({"terms": {"smallest_crowd": 0}}, "`smallest_crowd` must be a whole number of at least 1"),
        ({"phases": None}, "exactly one of `protocol`, `phases`, `panel`, `labels`; it has none"),
    ],
)
def test_a_bad_task_is_refused_in_words(change: dict[str, object], said: str) -> None:
    data = json.loads(two_phases().document) | change
    with pytest.raises(sl.InputError, match=said):
        task_from(data)


def test_a_document_that_was_changed_is_refused() -> None:
    made = task()
    with pytest.raises(sl.InputError, match="not the document that its digest"):
        read_task(made.document.replace(b"canteen@", b"cantina@"), made.id)
    with pytest.raises(sl.InputError, match="not written as it must be"):
        read_task(json.dumps(json.loads(made.document)).encode())


def test_rounds_go_forward_only() -> None:
    for i, before in enumerate(STATES):
        for j, after in enumerate(STATES):
            if j in (i, i + 1):
                assert check_step(before, after, "it") == (j == i + 1)
            else:
                with pytest.raises(sl.InputError, match="never back"):
                    check_step(before, after, "it")


@pytest.mark.parametrize("method", ["corr-rr", "cond-rr"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3, 4)])
def test_a_second_phase_from_sums_is_the_one_from_reports(method: str, sizes: tuple[int, ...], rng) -> None:
    schema = sl.Schema(
        tuple(sl.categorical(f"a{i}", [str(v) for v in range(k)]) for i, k in enumerate(sizes))
    )
    made = replace(two_phases(), design=TwoPhase(schema, 2.0, method))
    records = np.column_stack([rng.integers(0, k, 500) for k in sizes]).astype(np.uint8)
    reports = made.design.first.randomise(records, seed=3)
    tally = Tally.of(made, first_round(made, 1))
    row = add_rows(tally.row(reports[:200]), tally.row(reports[200:]))
    assert len(row) == tally.size
    wanted = learn_second_phase(made.design, reports)
    given = made.course.made(made.id, 2, [Earlier(tally.first(row_from(row_bytes(row))), "0" * 64)])
    assert protocol_data(given.protocol) == protocol_data(wanted.second)
    direct = FirstSums.of(made.design, reports)
    assert all(np.array_equal(direct.pairs[key], tally.first(row).pairs[key]) for key in direct.pairs)
    assert read_round(made, 2, given.document, given.digest).digest == given.digest


def test_a_round_that_spends_more_than_the_task_says_is_refused() -> None:
    made, other = task(), make_protocol("spl", SCHEMA, 3.0)
    forged = Round(made.id, 1, other)
    with pytest.raises(sl.InputError, match="reports of two protocols"):
        read_round(made, 1, forged.document, forged.digest)
    phased = two_phases()
    forged = Round(phased.id, 2, make_protocol("rs+fd", SCHEMA, 3.0))
    with pytest.raises(sl.InputError, match="second phase"):
        read_round(phased, 2, forged.document, forged.digest)
    with pytest.raises(sl.InputError, match="another task or round"):
        read_round(task(2), 2, first_round(task(2), 1).document)


@pytest.mark.parametrize("name", ["spl", "smp", "rs+fd"])
def test_rows_hold_the_sums_exactly(name: str) -> None:
    protocol = make_protocol(name, SCHEMA, 2.0)
    reports = protocol.randomise(people(300), seed=1)
    sums = Tally(protocol).sums(Tally(protocol).row(reports))
    wanted = reports.aggregate()
    assert sums.people == wanted.people
    for mine, theirs in zip(sums.parts, wanted.parts, strict=True):
        assert mine.reports == theirs.reports
        assert np.array_equal(mine.sums, theirs.sums)


def test_sums_beyond_64_bits_are_refused() -> None:
    with pytest.raises(sl.InputError, match="64 bits"):
        add_rows(np.array([(1 << 63) - 1]), np.array([1]))


def _trail() -> list[Entry]:
    changes = [
        Change("made"), Change("opened", {"round": 1, "digest": "d"}),
        Change("closed", {"round": 1, "sums": "s"}), Change("published", {"round": 1, "published": "p"}),
    ]  # fmt: skip
    entries: list[Entry] = []
    for time, change in zip((5, 9, 7, 10), changes, strict=True):
        entries.append(next_entry(entries[-1] if entries else None, time, change))
    return entries


def test_a_trail_replays_to_the_state_and_its_time_never_goes_back() -> None:
    entries = _trail()
    assert replay(entries, 2) == {1: RoundState("published", "d", "s", "p"), 2: RoundState()}
    assert [entry.data["time"] for entry in entries] == [5, 9, 9, 10]
    check_trail(entries, replay(entries, 2))
    with pytest.raises(sl.InputError, match="changed by hand"):
        check_trail(entries, {1: RoundState("closed", "d", "s"), 2: RoundState()})


@pytest.mark.parametrize("place", range(3))
def test_a_trail_that_was_edited_is_seen(place: int) -> None:
    entries = _trail()
    without = entries[:place] + entries[place + 1 :]
    with pytest.raises(sl.InputError, match="the trail was changed"):
        replay(without, 1)
    edited = replace(entries[place], body=entries[place].body.replace(b'"time"', b'"tims"'))
    with pytest.raises(sl.InputError, match="the trail was changed"):
        replay([*entries[:place], edited, *entries[place + 1 :]], 1)
