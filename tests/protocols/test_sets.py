"""Collecting sets of attributes: budgets, shares, files, phases, and the errors of every table of a set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sidelight as sl
from sidelight.advice import advise_pairs
from sidelight.estimation.second_phase import learn_second_phase
from sidelight.protocols import (
    SecondPhase,
    SetSample,
    TwoPhase,
    make_protocol,
    pairs,
    record_budget,
    sampled_sets,
)
from sidelight.protocols.files import protocol_data, protocol_from
from sidelight.protocols.groups import make_group, table_moments

SCHEMA = sl.Schema((
    sl.categorical("a", ["0", "1"]), sl.categorical("b", ["x", "y", "z"]), sl.categorical("c", ["0", "1"]),
))  # fmt: skip

WIDE = sl.Schema(tuple(sl.categorical(f"x{place}", ["0", "1"]) for place in range(2_000)))


def people(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=count)
    return np.column_stack([first, rng.integers(3, size=count), first]).astype(np.uint16)


@pytest.mark.parametrize("mechanism", ["grr", "ss", "oue", "sue"])
def test_a_record_spends_the_budget_of_one_set(mechanism: str) -> None:
    """Of every record and every report of every set: no ratio of probabilities exceeds e^epsilon."""
    made = pairs(SCHEMA, 1.0, mechanism=mechanism, singles=0.0 if mechanism == "ss" else 0.2)
    records = np.indices(SCHEMA.sizes).reshape(3, -1).T.astype(np.uint16)
    largest = 0.0
    for group in made.groups:
        law = _law(group)[group.codes(records, SCHEMA)]
        assert law.sum(axis=1) == pytest.approx(1.0)
        largest = max(largest, float(np.log(law.max(axis=0) / law.min(axis=0)).max()))
    assert largest == pytest.approx(made.epsilon, abs=1e-9)
    assert made.epsilon <= 1.0


@pytest.mark.parametrize("mechanism", ["grr", "ss", "oue", "sue", "best"])
def test_the_budget_is_found_by_enumeration(mechanism: str) -> None:
    """All reports of all sets side by side are one channel: its rows add up to 1, its ratios to e^epsilon."""
    made = pairs(SCHEMA, 1.0, mechanism=mechanism, singles=0.0 if mechanism == "ss" else 0.2)
    assert made.matrix().sum(axis=1) == pytest.approx(1.0)
    assert record_budget(made).epsilon == pytest.approx(made.epsilon, abs=1e-9)
    assert record_budget(made, "records that differ in one attribute").epsilon <= made.epsilon + 1e-9


def _law(group) -> np.ndarray:
    law = group.randomiser.report_law(1 << 14)
    return group.randomiser.channel.matrix() if law is None else law


@pytest.mark.parametrize("mechanism", ["grr", "ss", "oue", "sue"])
def test_the_errors_of_every_table_of_a_set_are_those_of_all_its_reports(mechanism: str) -> None:
    group = make_group(SCHEMA, ["a", "b", "c"], mechanism, 1.3)
    law = _law(group)
    keep, other = map(float, group.randomiser.mark_rates)
    ratio = law / law.max(axis=0)
    marks = ratio > (1 + ratio.min()) / 2 if mechanism in ("grr", "ss") else _bits(law)
    cell = (marks - other) / (keep - other)  # one report's estimate of every cell
    for names in (("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "b", "c")):
        sizes = [SCHEMA[name].size for name in group.names]
        axes = tuple(i for i, name in enumerate(group.names) if name not in names)
        table = cell.reshape(*sizes, -1).sum(axis=axes).reshape(-1, cell.shape[1])
        of = np.arange(12).reshape(sizes)
        inside = np.zeros((12, len(table)), dtype=bool)
        for number, place in enumerate(np.ndindex(*[SCHEMA[name].size for name in names])):
            index = [slice(None)] * 3
            for name, code in zip(names, place, strict=True):
                index[group.names.index(name)] = code
            inside[of[tuple(index)].reshape(-1), number] = True
        squares = law @ (table.T**2)
        none, full = table_moments(group, names)
        assert squares[~inside] == pytest.approx(none)
        assert squares[inside] == pytest.approx(full)


def _bits(law: np.ndarray) -> np.ndarray:
    """Which cells each report of bits marks: those under which it is likelier than under the least likely."""
    marks = law > law.min(axis=0) * (1 + 1e-9)
    marks[:, np.flatnonzero(~marks.any(axis=0))] = False
    bits = np.isclose(law, law.max(axis=0)) & marks
    everything = np.flatnonzero(np.ptp(law, axis=0) < 1e-12)
    for column in everything:  # no bit or all of them: the first report is of none
        bits[:, column] = law[0, column] != law[0, everything].max() if len(everything) > 1 else False
    return bits


def test_shares_say_how_many_report_each_set() -> None:
    made = sampled_sets(SCHEMA, 1.0, {("a", "b"): 0.5, ("b", "c"): 0.3, ("c",): 0.2})
    reports = made.randomise(people(40_000), seed=1)
    got = [len(part) / 40_000 for part in reports.parts]
    assert got == pytest.approx([0.5, 0.3, 0.2], abs=0.012)  # five standard errors


def test_a_file_says_all_about_sets() -> None:
    made = pairs(SCHEMA, 1.0, [["a", "b"], ["b", "c"]], singles=0.1)
    assert protocol_from(protocol_data(made)) == made
    phased = TwoPhase(SCHEMA, 1.0, "pairs", share=0.25)
    second = learn_second_phase(phased, phased.first.randomise(people(400), seed=2)).second
    again = protocol_from(protocol_data(second))
    assert again == second
    assert again.first_phase is not None
    assert made.first_phase is None


def test_the_second_phase_asks_for_what_depends() -> None:
    """On average over eight collections; in single ones pairs apart may seem to depend, and are asked too."""
    shares = np.zeros(3)
    for seed in range(8):
        design = make_protocol("adaptive-pairs", SCHEMA, 3.0)
        records = people(20_000, seed)
        reports = design.first.randomise(records[design.in_first(len(records))], seed=seed + 1)
        second = learn_second_phase(design, reports, people=15_000).second
        of = dict(zip((group.names for group in second.groups), second.shares, strict=True))
        drawn = np.array([of.get(pair, 0) for pair in [("a", "c"), ("a", "b"), ("b", "c")]])
        shares += drawn / sum(second.shares)
    assert shares[0] > 1.25 * shares[1:].max()


def test_the_file_of_a_second_phase_is_checked(tmp_path) -> None:
    design = make_protocol("adaptive-pairs", SCHEMA, 3.0)
    phase = learn_second_phase(design, design.first.randomise(people(4_000), seed=1), people=15_000)
    assert isinstance(phase.second, SetSample)
    again = SecondPhase.read(phase.write(tmp_path / "second.toml"))
    assert again.second == phase.second
    for old, new in (
        ("epsilon = 3.0", "epsilon = 2.0"),
        ('"sets"', '"sample"'),
        ("groups = 1", "groups = 2"),
    ):
        text = (tmp_path / "second.toml").read_text()
        assert old in text
        (tmp_path / "changed.toml").write_text(text.replace(old, new, 1))
        with pytest.raises(sl.InputError):
            SecondPhase.read(tmp_path / "changed.toml")


def test_all_phases_of_a_table_are_collected_and_estimated() -> None:
    records = people(3_000)
    columns = {name: [SCHEMA[name].values[code] for code in records[:, i]] for i, name in enumerate("abc")}
    table = sl.read(__import__("pyarrow").table(columns), schema=SCHEMA)
    reports = sl.collect(table, TwoPhase(SCHEMA, 2.0, "pairs", share=0.25), seed=3)
    assert sum(map(len, reports)) == 3_000
    assert len(sl.estimate_pairs(reports).tables) == 3
    assert set(sl.estimate(reports).frequencies) == set("abc")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pairs(SCHEMA.select(["a"]), 1.0), "a pair needs two attributes, got 1"),
        (lambda: pairs(WIDE, 1.0), "2000 attributes have 1999000 pairs"),
        (lambda: advise_pairs(WIDE, 1.0, 1_000), "2000 attributes have 1999000 pairs"),
        (lambda: pairs(SCHEMA, 1.0, singles=1.0), "`singles` must be a finite number"),
        (lambda: pairs(SCHEMA, 1.0, [["a", "a"]]), "names an attribute twice"),
        (lambda: pairs(SCHEMA, 1.0, mechanism="olh"), "must be reported through one of grr, ss, oue, sue"),
        (lambda: pairs(SCHEMA, -1.0), "`epsilon`"),
        (lambda: sampled_sets(SCHEMA, 1.0, {}), "at least one set"),
        (lambda: TwoPhase(SCHEMA.select(["a"]), 1.0, "pairs"), "a pair needs two attributes"),
        (lambda: make_protocol("pairs", SCHEMA, 1.0, share=0.2), "`share` says nothing about the protocol"),
    ],
)
def test_bad_sets_are_refused(make, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        make()
    assert words in str(caught.value)


def test_every_pair_is_there_by_default() -> None:
    assert [group.names for group in pairs(SCHEMA, 1.0).groups] == list(combinations("abc", 2))


def test_a_second_phase_has_noise_of_its_own() -> None:
    """With one seed for both phases, the same people would send the same reports twice."""
    schema = sl.Schema(tuple(sl.categorical(name, [f"{name}0", f"{name}1"]) for name in "abc"))
    first = sl.protocols.pairs(schema, 1.0)
    second = SetSample(schema, first.groups, first.shares, "first phase " + "0" * 24 + ", learnt")
    codes = np.zeros((200, 3), dtype=np.uint16)
    sums = [part.randomise(codes, seed=5).aggregate() for part in (first, second)]
    each = [
        [group.estimate(part).tolist() for group, part in zip(first.groups, item.parts, strict=True)]
        for item in sums
    ]
    assert each[0] != each[1]
