"""Protocols: their laws against plain loops, their budgets, and how reports merge."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

import sidelight as sl
from sidelight.estimation.second_phase import (
    conditional_law,
    copy_laws,
    copy_probabilities,
    published_copy,
)
from sidelight.foundation import compiled
from sidelight.mechanisms import Reports
from sidelight.protocols import (
    FakeDataProtocol,
    Sample,
    Split,
    TwoPhase,
    planned,
    record_budget,
    rs_fd,
    rs_rfd,
    smp,
    spl,
)
from sidelight.protocols import product as product_domain
from sidelight.protocols.fake_data import WHOLE, whole_law
from sidelight.protocols.groups import best_mechanism, make_group
from sidelight.protocols.records import RecordReports

UNEQUAL = sl.Schema((sl.categorical("a", "xyz"), sl.categorical("b", "uv"), sl.categorical("c", "pq")))
EQUAL = sl.Schema(tuple(sl.categorical(name, "xyz") for name in "abc"))
SKEWED = {"a": [0.7, 0.2, 0.1], "b": [0.9, 0.1], "c": [0.35, 0.65]}


def response(size: int, epsilon: float) -> np.ndarray:
    odds = math.exp(epsilon)
    return np.where(np.eye(size, dtype=bool), odds, 1.0) / (odds + size - 1)


def copying(
    schema: sl.Schema, groups: tuple[tuple[str, ...], ...], rng: np.random.Generator
) -> FakeDataProtocol:
    """Any law of fakes, one zero among them."""
    fakes = {}
    for group in groups:
        for chosen, other in product(group, group):
            if chosen != other:
                law = rng.dirichlet(np.ones(schema[other].size), size=schema[chosen].size)
                law[0] = np.eye(schema[other].size)[0]
                fakes[chosen, other] = whole_law(law)
    return FakeDataProtocol(schema, groups, 1.3, fakes, "corr-rr", "by hand")


def fake_law(protocol: FakeDataProtocol, chosen: str, other: str, said: int, value: int) -> float:
    law = protocol.fakes.get((chosen, other), protocol.fakes.get(("", other)))
    return float(law[said if len(law) > 1 else 0][value]) / WHOLE


def hidden_truth(protocol: FakeDataProtocol, record: tuple[int, ...], report: tuple[int, ...]) -> float:
    """The probability of a report, member by member, in plain loops."""
    names = protocol.schema.names
    total = 1.0
    for group in protocol.partition:
        part = 0.0
        for chosen in group:
            i = names.index(chosen)
            size = protocol.schema[chosen].size
            chance = response(size, protocol.nominal_budget / len(protocol.partition))[record[i], report[i]]
            for other in group:
                if other != chosen:
                    chance *= fake_law(protocol, chosen, other, report[i], report[names.index(other)])
            part += chance / len(group)
        total *= part
    return total


@pytest.mark.parametrize("kind", ["rs+fd", "rs+rfd", "any law", "groups"])
def test_the_law_of_a_hidden_choice_is_the_enumerated_one(kind: str, rng: np.random.Generator) -> None:
    protocol = {
        "rs+fd": lambda: rs_fd(UNEQUAL, 1.3),
        "rs+rfd": lambda: rs_rfd(UNEQUAL, 1.3, SKEWED, "made up"),
        "any law": lambda: copying(UNEQUAL, (("a", "b", "c"),), rng),
        "groups": lambda: copying(UNEQUAL, (("a", "c"), ("b",)), rng),
    }[kind]()
    everything = list(product(*(range(size) for size in UNEQUAL.sizes)))
    truth = [[hidden_truth(protocol, record, report) for report in everything] for record in everything]
    np.testing.assert_allclose(protocol.matrix(), truth, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(protocol.matrix().sum(axis=1), 1, rtol=1e-12)


def independent(laws: list[np.ndarray], record: tuple[int, ...], report: tuple[int, ...]) -> float:
    return math.prod(float(law[x, y]) for law, x, y in zip(laws, record, report, strict=True))


def test_the_law_of_spl_smp_and_product_is_the_enumerated_one() -> None:
    everything = list(product(*(range(size) for size in UNEQUAL.sizes)))
    part = [response(size, 1.2 / 3) for size in UNEQUAL.sizes]
    whole = [response(size, 1.2) for size in UNEQUAL.sizes]
    split = [[independent(part, record, report) for report in everything] for record in everything]
    np.testing.assert_allclose(spl(UNEQUAL, 1.2).matrix(), split, rtol=1e-12)
    places = [(i, value) for i in range(3) for value in range(UNEQUAL.sizes[i])]
    sample = [[whole[i][record[i], value] / 3 for i, value in places] for record in everything]
    np.testing.assert_allclose(smp(UNEQUAL, 1.2).matrix(), sample, rtol=1e-12)
    np.testing.assert_allclose(product_domain(UNEQUAL, 1.2).matrix(), response(12, 1.2), rtol=1e-12)


PROTOCOLS = {
    "spl": lambda: spl(UNEQUAL, 1.3),
    "smp": lambda: smp(UNEQUAL, 1.3),
    "shares": lambda: smp(UNEQUAL, 1.3, shares=(5, 2, 1)),
    "product": lambda: product_domain(UNEQUAL, 1.3),
    "groups": lambda: product_domain(UNEQUAL, 1.3, [["a", "b"], ["c"]]),
    "rs+fd": lambda: rs_fd(UNEQUAL, 1.3),
    "rs+rfd": lambda: rs_rfd(UNEQUAL, 1.3, SKEWED, "made up"),
    "copies": lambda: copying(UNEQUAL, (("a", "b", "c"),), np.random.default_rng(5)),
    "grouped copies": lambda: copying(UNEQUAL, (("a", "c"), ("b",)), np.random.default_rng(5)),
}


ZEROS = {"a": [1.0, 0.0, 0.0], "b": [0.9, 0.1], "c": [0.0, 1.0]}


@pytest.mark.parametrize("name", [*PROTOCOLS, "zeros"])
def test_reports_are_taken_exactly_where_the_law_allows_them(name: str) -> None:
    """Every report in the domain, as the only one: taken if some record makes it, refused if none does."""
    protocol = rs_rfd(UNEQUAL, 1.3, ZEROS, "made up") if name == "zeros" else PROTOCOLS[name]()
    if isinstance(protocol, Sample):
        sizes = [unit.size for unit in protocol.groups]
        every = [(i, value) for i, size in enumerate(sizes) for value in range(size + 1)]
        possible = [value < sizes[i] for i, value in every]
    else:
        sizes = [unit.size for unit in protocol.groups] or list(protocol.schema.sizes)
        every = list(product(*(range(size + 1) for size in sizes)))
        likely = protocol.matrix().max(axis=0)
        inside = [all(value < size for value, size in zip(row, sizes, strict=True)) for row in every]
        possible = [
            ok and likely[np.ravel_multi_index(row, sizes)] > 0 for row, ok in zip(every, inside, strict=True)
        ]
    for report, is_possible in zip(every, possible, strict=True):
        collected = one_report(protocol, report)
        if is_possible:
            assert collected.aggregate().people == 1
        else:
            with pytest.raises(sl.InputError, match=r"1 of 1 are not \(row 0"):
                collected.aggregate()
    assert (
        name != "zeros" or sum(possible) == 8
    )  # of 12: not both of a fake that is no 0 and one that is no 1


def one_report(protocol, report: tuple[int, ...]) -> RecordReports:
    if isinstance(protocol, Sample):
        chosen, value = report
        parts = tuple(
            Reports(np.array([value][: i == chosen], dtype=np.uint8)) for i in range(len(protocol.groups))
        )
        return RecordReports(protocol, parts, tuple(np.arange(len(part)) for part in parts), 1)
    parts = tuple(Reports(np.array([value], dtype=np.uint8)) for value in report)
    return RecordReports(protocol, parts, (None,) * len(parts), 1)


@pytest.mark.parametrize("name", ["spl", "smp", "rs+fd"])
def test_parts_of_another_length_are_refused(name: str) -> None:
    found = PROTOCOLS[name]().randomise(np.zeros((20, 3), dtype=np.uint8), seed=1)
    short = replace(found, parts=(found.parts[0][:2], *found.parts[1:]))
    with pytest.raises(sl.InputError, match="reports of 'a', one a person, got 2"):
        short.aggregate()


def report_codes(collected) -> np.ndarray:
    """The number of each person's report in the order of `matrix`."""
    protocol = collected.protocol
    if isinstance(protocol, Sample):
        codes = np.zeros(collected.people, dtype=np.int64)
        start = 0
        for unit, part, senders in zip(protocol.groups, collected.parts, collected.senders, strict=True):
            codes[senders] = start + part.values.astype(np.int64)
            start += unit.size
        return codes
    sizes = [unit.size for unit in protocol.groups] if isinstance(protocol, Split) else protocol.schema.sizes
    return np.ravel_multi_index(tuple(part.values.astype(np.intp) for part in collected.parts), sizes)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_reports_follow_the_stated_law(name: str) -> None:
    """Chi-squared of 20,000 reports of one record; each fails by chance less than once in 10^6 runs."""
    from scipy.stats import chi2

    protocol = PROTOCOLS[name]()
    record = (2, 0, 1)
    people = 20_000
    collected = protocol.randomise(np.tile(np.array(record, dtype=np.uint8), (people, 1)), seed=11)
    expected = protocol.matrix()[np.ravel_multi_index(record, UNEQUAL.sizes)] * people
    seen = np.bincount(report_codes(collected), minlength=len(expected))
    assert not seen[expected == 0].any()
    kept = expected > 0
    statistic = float(((seen - expected)[kept] ** 2 / expected[kept]).sum())
    assert statistic < chi2.isf(1e-6, int(kept.sum()) - 1)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_stated_budget_is_never_exceeded_and_is_exact_where_it_is_a_proof(name: str) -> None:
    protocol = PROTOCOLS[name]()
    found = record_budget(protocol)
    assert found.epsilon <= protocol.epsilon + 1e-9
    assert protocol.epsilon <= 1.3 + 1e-12
    assert found.neighbours == "any two records"
    if name not in ("copies", "grouped copies"):
        assert found.epsilon == pytest.approx(protocol.epsilon, abs=1e-9)


def amplified(epsilon: float, attributes: int) -> float:
    return math.log(attributes * math.expm1(epsilon) + 1)


@pytest.mark.parametrize(
    ("sizes", "prior", "between"),
    [
        ((3, 3), None, (1.0, 1.0)),
        ((12, 2), None, (1.203, 1.205)),
        ((3, 3), [0.9, 0.05, 0.05], (1.3, 1.4899)),
    ],
)
def test_the_published_amplification_fails_but_for_even_domains(sizes, prior, between) -> None:
    """At ln(d (e - 1) + 1) the record leaks that; one attribute leaks 1 for RS+FD with equal domains only."""
    schema = sl.Schema(
        tuple(sl.categorical(f"x{i}", [str(v) for v in range(k)]) for i, k in enumerate(sizes))
    )
    budget = amplified(1.0, 2)
    protocol = rs_fd(schema, budget)
    if prior is not None:
        protocol = rs_rfd(schema, budget, dict.fromkeys(schema.names, prior), "made up")
    assert record_budget(protocol).epsilon == pytest.approx(1.4899, abs=1e-4)
    one = record_budget(protocol, "records that differ in one attribute")
    assert between[0] - 1e-9 <= one.epsilon <= between[1] + 1e-9
    assert one.neighbours == "records that differ in one attribute"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_chunks_give_the_same_reports_and_aggregates_merge_in_any_order(name: str, rng) -> None:
    protocol = PROTOCOLS[name]()
    records = np.stack([rng.integers(0, size, 500) for size in UNEQUAL.sizes], axis=1).astype(np.uint8)
    whole = protocol.randomise(records, seed=3)
    first, rest = (
        protocol.randomise(records[:200], seed=3),
        protocol.randomise(records[200:], seed=3, offset=200),
    )
    for joined in (first + rest, whole[:200] + whole[200:]):
        assert all(np.array_equal(a.values, b.values) for a, b in zip(joined.parts, whole.parts, strict=True))
        assert joined.people == 500
    for total in (first.aggregate() + rest.aggregate(), rest.aggregate() + first.aggregate()):
        assert total.people == whole.aggregate().people
        pairs = zip(total.parts, whole.aggregate().parts, strict=True)
        assert all(np.array_equal(a.sums, b.sums) and a.reports == b.reports for a, b in pairs)


def one_row_each(rng: np.random.Generator) -> FakeDataProtocol:
    """Fakes that depend on which attribute is reported, but not on its report."""
    rows = {
        (chosen, other): whole_law(rng.dirichlet(np.ones(UNEQUAL[other].size), size=1))
        for chosen, other in permutations(UNEQUAL.names, 2)
    }
    return FakeDataProtocol(UNEQUAL, (UNEQUAL.names,), 1.3, rows, "corr-rr", "by hand")


@pytest.mark.parametrize("name", ["rs+fd", "rs+rfd", "zeros", "one row each", "copies", "grouped copies"])
def test_the_compiled_loop_gives_the_same_bits(name: str, rng, monkeypatch) -> None:
    others = {
        "zeros": lambda: rs_rfd(UNEQUAL, 1.3, ZEROS, "made up"), "one row each": lambda: one_row_each(rng)
    }  # fmt: skip
    protocol = (PROTOCOLS | others)[name]()
    records = np.stack([rng.integers(0, size, 2_500) for size in UNEQUAL.sizes], axis=1).astype(np.uint8)
    monkeypatch.setattr(compiled, "_least", 1 << 60)
    plain = protocol.randomise(records, seed=3)
    monkeypatch.setattr(compiled, "_least", 0)
    again = protocol.randomise(records, seed=3)
    for a, b in zip(plain.parts, again.parts, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def test_without_a_seed_the_noise_is_fresh_and_is_no_simulation() -> None:
    records = np.zeros((400, 3), dtype=np.uint8)
    for protocol in (smp(UNEQUAL, 1.0), rs_fd(UNEQUAL, 1.0)):
        first, second = protocol.randomise(records), protocol.randomise(records)
        assert not first.is_simulation
        assert any(
            a.values.tobytes() != b.values.tobytes() for a, b in zip(first.parts, second.parts, strict=True)
        )


def test_a_large_domain_draws_fakes_by_the_same_law() -> None:
    """More values than the short way takes; 30,000 fakes, false alarms below 10^-6."""
    from scipy.stats import chi2

    schema = sl.Schema(tuple(sl.categorical(name, [str(v) for v in range(40)]) for name in "ab"))
    law = np.random.default_rng(1).dirichlet(np.ones(40), size=40)
    fakes = {("a", "b"): whole_law(law), ("b", "a"): whole_law(np.roll(law, 1, axis=1))}
    protocol = FakeDataProtocol(schema, (("a", "b"),), 3.0, fakes, "cond-rr", "by hand")
    records = np.full((15_000, 2), 7, dtype=np.uint8)
    collected = protocol.randomise(records, seed=2)
    seen = np.bincount(collected.parts[1].values, minlength=40)
    given = response(40, 3.0)[7]
    expected = 15_000 * (given / 2 + given @ law / 2)
    assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 39)


def test_product_moments_are_those_of_every_report() -> None:
    """The mean square of a marginal's estimate, by listing every set of cells."""
    for mechanism, width in (("grr", 1), ("ss", 2), ("ss", 3)):
        unit = make_group(UNEQUAL, ["a", "b"], mechanism, 0.9, {"width": width} if mechanism == "ss" else {})
        keep, other = float(unit.randomiser.mark_if_true), float(unit.randomiser.mark_if_other)
        sets = list(combinations(range(6), width))
        inside = math.comb(5, width - 1)
        for axis, name in enumerate(unit.names):
            cells = [c for c in range(6) if np.unravel_index(c, (3, 2))[axis] == 0]
            moments = []
            for truth in (next(c for c in range(6) if c not in cells), cells[0]):
                chances = [keep / inside if truth in s else (1 - keep) / (len(sets) - inside) for s in sets]
                estimates = [(len(set(s) & set(cells)) - len(cells) * other) / (keep - other) for s in sets]
                moments.append(sum(p * z * z for p, z in zip(chances, estimates, strict=True)))
                mean = sum(p * z for p, z in zip(chances, estimates, strict=True))
                assert mean == pytest.approx(float(truth in cells), abs=1e-9)
            assert unit.moments[name] == pytest.approx(tuple(moments), rel=1e-9)


def test_the_best_mechanism_has_the_least_variance_of_those_considered() -> None:
    for size, epsilon in product((2, 5, 10, 60), (0.5, 1.0, 3.0)):
        name, settings = best_mechanism([size], epsilon)
        own = sl.create(name, size, epsilon, **settings).variance(1, 0.0)
        for other in ("grr", "ss", "oue", "olh"):
            assert own <= sl.create(other, size, epsilon).variance(1, 0.0) * (1 + 1e-9)


def test_published_copies_follow_the_figure() -> None:
    assert published_copy([0.8, 0.2], [0.8, 0.2], 1.0, 9000) == pytest.approx(1, abs=1e-3)
    assert published_copy([0.2, 0.8], [0.8, 0.2], 1.0, 9000) == pytest.approx(0, abs=1e-3)
    assert published_copy([0.5, 0.5], [0.5, 0.5], 1.0, 9000) == 0.5


@pytest.mark.parametrize("further", [0, 2])
def test_corrected_copies_minimise_the_true_error(further: int) -> None:
    """No other point of a grid has a smaller error, by the expectation that enumeration confirms."""
    given = [np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])]
    people, epsilon = 5000, 1.0

    def error(copies: np.ndarray, target: int) -> float:
        others = [j for j in range(3) if j != target]
        gap = response(3, epsilon)[0, 0] - response(3, epsilon)[0, 1]
        total = 0.0
        for v in range(3):
            mean = (1 + further) * given[target][v] + sum(
                copies[j] * given[j][v] + (1 - copies[j]) * (1 - given[j][v]) / 2 for j in others
            )
            seen = response(3, epsilon)[0, 1] + gap * mean / (3 + further)
            total += (mean / (3 + further) - given[target][v]) ** 2 + seen * (1 - seen) / (people * gap**2)
        return total

    found = copy_probabilities(given, epsilon, people, "corrected", further)
    for target in range(3):
        own = error(found[:, target], target)
        for a, b in product(np.linspace(0, 1, 21), repeat=2):
            other = np.ones(3)
            other[[j for j in range(3) if j != target]] = a, b
            assert own <= error(other, target) + 1e-12


def test_conditionals_and_copies_are_laws() -> None:
    np.testing.assert_allclose(copy_laws([0.4, 1.0], 4).sum(axis=2), 1)
    np.testing.assert_allclose(copy_laws([0.4], 4)[0], np.where(np.eye(4), 0.4, 0.2))
    law = conditional_law(np.array([[0.2, 0.2], [0.0, 0.0]]))
    np.testing.assert_allclose(law, 0.5)


def test_a_plan_becomes_a_protocol_as_it_says() -> None:
    plan = sl.Plan(
        (
            sl.Release(UNEQUAL["a"], "oue", 0.5),
            sl.Release(UNEQUAL["b"], "grr", 0.7),
            sl.Release(UNEQUAL["c"], "withheld"),
        )
    )
    protocol = planned(plan)
    assert protocol.labels == ("a", "b")
    assert protocol.epsilon == pytest.approx(1.2, abs=1e-9)
    with pytest.raises(sl.InputError, match="asks for 3 reports of 'a'.*fresh noise each report spends"):
        planned(sl.Plan((sl.Release(UNEQUAL["a"], "grr", 0.5, times=3),)))
    with pytest.raises(sl.InputError, match="withholds every attribute"):
        planned(sl.Plan((sl.Release(UNEQUAL["a"], "withheld"),)))


CONSTANT = sl.Schema((sl.categorical("a", "x"), sl.categorical("b", "uv")))
ALIKE = sl.Schema(tuple(sl.categorical(name, "uv") for name in ("a", "b", "a x b")))
OVERLAPPING = (make_group(UNEQUAL, ["a", "b"], "grr", 1), make_group(UNEQUAL, ["b", "c"], "grr", 1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: spl(UNEQUAL, -1), "`epsilon` must be"),
        (lambda: smp(UNEQUAL, 1, "any"), "reports no codes whose frequency"),
        (lambda: smp(UNEQUAL, 1, "laplace"), "needs the parameter 'lower'"),
        (lambda: product_domain(UNEQUAL, 1, [["a", "a"], ["b", "c"]]), "names an attribute twice"),
        (lambda: product_domain(UNEQUAL, 1, [["a", "b", "c"], []]), "at least one attribute"),
        (lambda: product_domain(CONSTANT, 1, mechanism="best"), "an attribute of one value"),
        (lambda: product_domain(CONSTANT, 1), "an attribute of one value, 'a'"),
        (lambda: rs_fd(CONSTANT, 1), "the attribute 'a' has one value"),
        (lambda: product_domain(ALIKE, 1, [["a", "b"], ["a x b"]]), "two groups have one label"),
        (lambda: smp(UNEQUAL, 1, shares=(1, 2)), "one number for each of 3 groups"),
        (lambda: smp(UNEQUAL, 1, shares=(1, 2, 0)), "`shares` must be a whole number"),
        (
            lambda: product_domain(UNEQUAL, 1, mechanism="olh"),
            "must be reported through one of grr, ss, oue, sue",
        ),
        (
            lambda: Split(UNEQUAL, (make_group(UNEQUAL, ["a", "b"], "grr", 1),)),
            "no group reports the attribute 'c'",
        ),
        (lambda: Split(UNEQUAL, OVERLAPPING), "is in two groups"),
        (lambda: rs_rfd(UNEQUAL, 1, SKEWED, ""), "say where the priors"),
        (lambda: rs_rfd(UNEQUAL, 1, {**SKEWED, "b": [0.9, 0.3]}, "x"), "add up to 1"),
        (lambda: TwoPhase(EQUAL, 1.0, "magic"), "`method` must be one of"),
        (lambda: TwoPhase(EQUAL, 1.0, share=1.5), "`share` must be"),
        (lambda: TwoPhase(EQUAL, 1.0, groups=4), "`groups` must be"),
        (lambda: copy_probabilities([np.ones(2) / 2] * 2, 1.0, 10, "magic"), "`copying` must be one of"),
        (lambda: spl(UNEQUAL, 1).randomise(np.full((2, 3), 2, dtype=np.uint8)), "codes from 0 to 1"),
        (lambda: spl(UNEQUAL, 1).randomise(np.zeros((2, 2), dtype=np.uint8)), "shape (people, 3)"),
        (lambda: FakeDataProtocol(UNEQUAL, (("a",),), 1.0, {}, "x", "y"), "a partition of the attributes"),
        (lambda: FakeDataProtocol(UNEQUAL, (("a", "b", "c"),), 1.0, {}, "x", "y"), "there is no law"),
        (lambda: record_budget(spl(UNEQUAL, 1), "friends"), "`neighbours` must be one of"),
    ],
)
def test_bad_protocols_are_refused(make, words: str) -> None:
    with pytest.raises(sl.InputError) as caught:
        make()
    assert words in str(caught.value)
