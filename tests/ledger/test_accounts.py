"""What a ledger admits, against a brute-force accountant and exact composition of adaptive questions."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger_stores import MemoryStore, ask, opened
from sidelight.foundation.errors import InputError
from sidelight.ledger import EVER, YEAR, Charge, Limit, OverspentError, Question, Window
from sidelight.ledger.limits import composed, filter_squares
from sidelight.ledger.units import UNITS
from sidelight.ledger.windows import DAY

NEW_YEAR = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
OPENED = NEW_YEAR - 5 * DAY
WINDOWS = (EVER, YEAR, Window.sliding(days=3), Window.sliding(days=4, of_days=2), Window.epoch(days=4))
Event = tuple[int, tuple[str, str, str] | None, Fraction]


def windows_with(window: Window, now: int) -> list[tuple[int, int]]:
    """Return every window of time that a limit is about and that has `now` in it, by its definition."""
    if window.kind == "ever":
        return [(0, 1 << 40)]
    if window.kind == "year":
        year = datetime.fromtimestamp(now, UTC).year
        ends = [int(datetime(when, 1, 1, tzinfo=UTC).timestamp()) for when in (year, year + 1)]
        return [(ends[0], ends[1])]
    if window.kind == "epoch":
        first = OPENED + (now - OPENED) // window.unit * window.unit
        return [(first, first + window.unit)]
    unit = now // window.unit
    return [
        ((unit - back) * window.unit, (unit - back + window.units) * window.unit)
        for back in range(window.units)
    ]


def spends(events: list[Event], window: Window, now: int) -> list[list[Fraction]]:
    """Return what counts in each window with `now` in it: every fresh report, every memo once."""
    out = []
    for first, end in windows_with(window, now):
        inside = [event for event in events if first <= event[0] < end]
        memos = {memo: units for _, memo, units in inside if memo is not None}
        out.append([units for _, memo, units in inside if memo is None] + list(memos.values()))
    return out


def keeps(limit: Limit, spent: list[Fraction]) -> bool:
    """Whether a limit holds, by its formula."""
    if sum(spent) <= Fraction(limit.units, UNITS):
        return True
    squares = float(sum(units * units for units in spent))
    return (
        limit.delta > 0
        and math.sqrt(-2 * math.log(limit.delta) * squares) + squares / 2 <= limit.units / UNITS
    )


charges = st.one_of(
    st.builds(lambda units: Charge("a", "fresh", units), st.sampled_from([1, 3, 4, 9])),
    st.builds(
        lambda attribute, channel, epoch: Charge(attribute, channel, {"c": 5, "d": 7}[channel], epoch),
        st.sampled_from("ab"), st.sampled_from("cd"), st.sampled_from("01"),
    ),
)  # fmt: skip
steps = st.tuples(
    st.integers(0, 2 * DAY), st.lists(charges, min_size=1, max_size=3, unique=True), st.booleans()
)
limits = st.builds(
    lambda units, window, delta: Limit(units * UNITS // 10, window, delta),
    st.integers(5, 40), st.sampled_from(WINDOWS), st.sampled_from([0.0, 0.0, 0.3]),
)  # fmt: skip


def check_sequence(limits: list[Limit], asked: list[tuple[int, list[Charge], bool]]) -> None:
    ledger, events, now = opened(MemoryStore(), limits, now=OPENED), [], OPENED
    for number, (wait, wanted, drop) in enumerate(asked):
        now += wait
        scaled = [Charge(one.attribute, one.channel, one.units * UNITS // 10, one.epoch) for one in wanted]
        question = Question(str(number), 0, tuple(scaled))
        new = [(now, charge.memo, Fraction(charge.units, UNITS)) for charge in scaled]
        fits = all(
            keeps(limit, spent) for limit in limits for spent in spends(events + new, limit.window, now)
        )
        if not fits:
            with pytest.raises(OverspentError) as caught:
                ask(ledger, question, now=now)
            check_return(caught.value, question, events, now)
            continue
        ledger.reserve(question, lambda _: b"report", now=now)
        if drop:
            ledger.withdraw(question)
        else:
            ask(ledger, question, now=now)
            events += new


def check_return(error: OverspentError, question: Question, events: list[Event], now: int) -> None:
    """The time that a refusal gives is the first at which the question fits the limit that was short."""
    limit, returns = error.remaining.limit, error.remaining.returns

    def fits(then: int) -> bool:
        new = [(then, charge.memo, Fraction(charge.units, UNITS)) for charge in question.charges]
        return all(keeps(limit, spent) for spent in spends(events + new, limit.window, then))

    assert not fits(now)
    if returns is None:
        assert not fits(now + 800 * DAY)
    else:
        assert fits(returns)
        assert not fits(returns - 1)
        assert str(datetime.fromtimestamp(returns, UTC).replace(tzinfo=None)) in str(error)


@given(st.lists(limits, min_size=1, max_size=3), st.lists(steps, max_size=14))
@settings(max_examples=150)
def test_any_sequence_is_admitted_as_a_brute_force_accountant_admits_it(limits, asked):
    check_sequence(limits, asked)


@pytest.mark.deep
@given(st.lists(limits, min_size=1, max_size=3), st.lists(steps, max_size=40))
@settings(max_examples=5_000)
def test_many_sequences_are_admitted_as_a_brute_force_accountant_admits_them(limits, asked):
    check_sequence(limits, asked)


def test_ten_tenths_are_one():
    ledger = opened(MemoryStore(), [Limit.of(1.0)])
    for number in range(10):
        ask(ledger, Question("t", number, (Charge.of("a", "grr", 0.1),)))
    with pytest.raises(OverspentError, match="spends 0.1, and 0 is left of 1 in all time; it will never fit"):
        ask(ledger, Question("t", 10, (Charge.of("a", "grr", 0.1),)))


def test_a_memo_is_paid_once_for_all_who_ask_and_again_in_another_epoch_or_channel():
    ledger = opened(MemoryStore(), [Limit.of(3.0)])
    memo = Charge.of("a", "grr 4 7", 1.0, "0")
    for asker in "xyz":
        for number in range(3):
            ask(ledger, Question(asker, number, (memo,)))
    assert ledger.remaining(now=9)[0].left == 2 * UNITS
    ask(ledger, Question("x", 3, (Charge.of("a", "grr 4 7", 1.0, "1"),)))
    ask(ledger, Question("w", 0, (Charge.of("b", "grr 4 7", 1.0, "0"),)))
    with pytest.raises(OverspentError, match="spends 1, and 0 is left"):
        ask(ledger, Question("v", 0, (Charge.of("a", "grr 4 8", 1.0, "0"),)))
    ask(ledger, Question("u", 0, (memo,)))  # what was paid for goes on


def test_a_channel_has_one_budget():
    ledger = opened(MemoryStore(), [Limit.of(3.0)])
    ask(ledger, Question("x", 0, (Charge.of("a", "c", 1.0, "0"),)))
    with pytest.raises(InputError, match="the same memo was charged 1 before; a channel has one budget"):
        ask(ledger, Question("y", 0, (Charge.of("a", "c", 0.5, "0"),)))


def composed_so_far(limit: float, delta: float, used: tuple[float, ...]) -> bool:
    """The refuted rule: what was used so far, composed as if it had been fixed beforehand."""
    return composed([round(one * UNITS) for one in used], delta) <= limit


def divergence(limit: float, losses: list[tuple[float, float]]) -> float:
    return math.fsum(mass * max(0.0, -math.expm1(limit - loss)) for mass, loss in losses)


def asked_all(budgets: list[float], start: tuple[float, float]) -> list[tuple[float, float]]:
    """Return probability and loss of every outcome of binary responses after a start."""
    laws = [start]
    for one in budgets:
        keep = 1 / (1 + math.exp(-one))
        laws = [
            (mass * share, loss + move)
            for mass, loss in laws
            for share, move in ((keep, one), (1 - keep, -one))
        ]
        merged: dict[float, float] = {}
        for mass, loss in laws:
            merged[round(loss, 9)] = merged.get(round(loss, 9), 0.0) + mass
        laws = [(mass, loss) for loss, mass in merged.items()]
    return laws


def test_composing_the_budgets_used_so_far_breaks_the_limit_and_the_filter_refuses_it():
    """0.2, then 0.8264 after one answer and 20 times 0.111 after the other: delta 0.0109, not 0.01."""
    first, one, many = 0.2, [0.8264], [0.111] * 20
    assert composed_so_far(1.0, 0.01, (first, *one))
    assert composed_so_far(1.0, 0.01, (first, *many))
    keep = 1 / (1 + math.exp(-first))
    high, low = (keep, first), (1 - keep, -first)
    broken = max(
        divergence(1.0, asked_all(after[0], high) + asked_all(after[1], low))
        for after in ((one, many), (many, one))
    )
    assert round(broken, 4) == 0.0109
    for rest in (one, many):
        ledger = opened(MemoryStore(), [Limit.of(1.0, delta=0.01)])
        ask(ledger, Question("first", 0, (Charge.of("a", "c", first),)))
        refused = 0
        for number, budget in enumerate(rest):
            try:
                ask(ledger, Question("then", number, (Charge.of("a", "c", budget),)))
            except OverspentError:
                refused += 1
        assert refused


@pytest.mark.parametrize(("limit", "delta"), [(1.0, 0.01), (0.5, 0.1), (2.0, 0.05)])
def test_no_adaptive_choice_of_budgets_breaks_the_filter(limit: float, delta: float):
    """Search all strategies over a few budgets: the largest divergence at the limit stays below delta."""
    allowed, unit = Limit.of(limit, delta=delta), limit / 20  # sums of few units meet
    sizes = (1, 3, 7)

    @cache
    def worst(counts: tuple[int, ...], loss: int) -> float:
        options = [max(0.0, -math.expm1(limit - loss * unit))]
        for place, size in enumerate(sizes):
            used = tuple(count + (other == place) for other, count in enumerate(counts))
            spent = [
                round(one * unit * UNITS)
                for one, count in zip(sizes, used, strict=True)
                for _ in range(count)
            ]
            if allowed.admits(spent):
                keep = 1 / (1 + math.exp(-size * unit))
                options.append(keep * worst(used, loss + size) + (1 - keep) * worst(used, loss - size))
        return max(options)

    assert 0 < worst((0, 0, 0), 0) <= delta


@pytest.mark.parametrize("units", [UNITS // 2, UNITS, 7 * UNITS])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6, 1e-12])
def test_the_filter_is_its_formula_turned_round(units: int, delta: float):
    squares = filter_squares(units, delta)
    for sign, most in ((1, squares), (-1, round(squares * (1 + 1e-9)))):
        total = most / UNITS**2
        assert sign * (units / UNITS - math.sqrt(-2 * math.log(delta) * total) - total / 2) >= -1e-12


def test_a_year_of_tenths_through_the_filter_needs_the_published_figure():
    ledger = opened(MemoryStore(), [Limit.of(11.87, delta=1e-6)])
    for number in range(365):
        ledger.check(Question("t", number, (Charge.of("a", "c", 0.1),)))
        ask(ledger, Question("t", number, (Charge.of("a", "c", 0.1),)))
    assert not Limit.of(11.86, delta=1e-6).admits([UNITS // 10] * 365)


@pytest.mark.parametrize(
    ("delta", "times", "figure"),
    [
        (1e-2, 10, 0.499),
        (1e-6, 10, 0.999),
        (1e-2, 100, 2.311),
        (1e-6, 100, 4.775),
        (1e-2, 365, 5.612),
        (1e-6, 365, 10.31),
    ],
)
def test_budgets_fixed_beforehand_compose_to_the_published_figures(delta: float, times: int, figure: float):
    assert composed([UNITS // 10] * times, delta) == pytest.approx(
        figure, abs=0.0051 if figure > 10 else 6e-4
    )


def test_budgets_fixed_beforehand_are_kept_in_their_order():
    limit = Limit.of(1.0, delta=1e-2, budgets=[0.2, 0.1, 0.3])
    ledger = opened(MemoryStore(), [limit])
    ask(ledger, Question("x", 0, (Charge.of("a", "c", 0.2),)))
    with pytest.raises(OverspentError, match="spends 0.2, and 0.1 is left of 1 at delta = 0.01 in all time"):
        ask(ledger, Question("y", 0, (Charge.of("a", "c", 0.2),)))
    ask(ledger, Question("z", 0, (Charge.of("a", "c", 0.05),)))
    ask(ledger, Question("x", 1, (Charge.of("a", "c", 0.2),)))
    with pytest.raises(OverspentError, match="and 0 is left"):
        ask(ledger, Question("x", 2, (Charge.of("a", "c", 0.2),)))
    with pytest.raises(InputError, match="compose to 4.775 at delta = 1e-06, more than the limit of 4.7"):
        Limit.of(4.7, delta=1e-6, budgets=[0.1] * 100)


def test_charges_do_not_depend_on_values():
    """The sequence of admissions is the same for every value, also where values change."""
    seen = set()
    for values in product("rg", repeat=4):
        ledger, admitted = opened(MemoryStore(), [Limit.of(2.0)]), []
        for number, value in enumerate(values):
            memo = Charge.of("a", "c", 1.0, str(number // 2))
            question = Question("t", number, (memo,))
            epoch = str(number // 2)
            report = ledger.reserve(
                question, lambda memory, e=epoch, v=value: memory.held("a", e, v).encode(), now=9
            )
            admitted.append(ledger.remaining(now=9)[0].left)
            assert report == values[number // 2 * 2].encode()  # frozen in its epoch
        seen.add(tuple(admitted))
    assert seen == {(UNITS, UNITS, 0, 0)}
