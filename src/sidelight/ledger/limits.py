"""Limits, and whether a charge still fits: decided before anything is sent, and never from a value.

Three rules, each sound when whoever asks chooses what to ask from what was answered before:

- *pure*: the budgets add up to at most the limit, also where they are chosen adaptively (Rogers et al. 2016);
- *filter* at delta: with S the sum of the squared budgets, sqrt(2 ln(1/delta) S) + S/2 is at most the limit.
  A budget eps is (eps^2 / 2)-zCDP (Bun, Steinke 2016), and zCDP has a filter for budgets chosen adaptively
  (Feldman, Zrnic 2021; Whitehouse et al. 2023). What keeps the pure rule is admitted too: answers of which
  it holds lose at most the limit, and add nothing to delta;
- *fixed* at delta: budgets stated beforehand, charge i at most budget i, whose optimal composition is at most
  the limit (Kairouz, Oh, Viswanath 2015). The questions may adapt, the budgets may not.

Composing the budgets used so far is no rule: what is asked next may depend on the answers, and a limit of
(1, 0.01) is then broken by 0.2 followed by either 0.8264 or 20 times 0.111.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import cached_property
from math import isqrt

from sidelight.foundation.errors import InputError, check_number, check_whole, invalid
from sidelight.foundation.numbers import significant
from sidelight.ledger.question import Charge, Question
from sidelight.ledger.units import MOST_UNITS, UNITS, allowed, shown
from sidelight.ledger.windows import EVER, Window, written

_DIGITS = 60
MOST_BUDGETS = 1 << 14


class OverspentError(InputError):
    """A question would spend more than is left.

    Attributes:
        remaining: what is left of the limit that is short, and when the question fits again.
    """

    def __init__(self, message: str, remaining: Remaining) -> None:
        """Take the sentence, and the figures in it."""
        super().__init__(message)
        self.remaining = remaining


@dataclass(frozen=True)
class Limit:
    """What may be spent in every window of time.

    Attributes:
        units: the limit, in billionths of a nat.
        window: which spending counts.
        delta: the probability with which more may leak; 0 for a pure limit.
        budgets: at delta, the budgets that were fixed beforehand, in units; empty for the filter.
    """

    units: int
    window: Window = EVER
    delta: float = 0.0
    budgets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_whole("units", self.units, at_least=1, at_most=MOST_UNITS)
        check_number("delta", self.delta, at_least=0, below=1)
        for budget in self.budgets:
            check_whole("budgets", budget, at_least=0, at_most=MOST_UNITS)
        if self.budgets and not self.delta:
            raise InputError("budgets are fixed beforehand for a limit at delta; give it a `delta`.")
        if self.budgets and self.window.kind == "sliding":
            raise InputError("budgets fixed beforehand have an order, which a sliding window has not.")
        if self.budgets and (total := composed(self.budgets, self.delta)) * UNITS > self.units:
            raise InputError(
                f"{len(self.budgets)} budgets fixed beforehand compose to {significant(total)} at delta = "
                f"{self.delta:g}, more than the limit of {shown(self.units)}; fix smaller ones, or fewer."
            )

    @classmethod
    def of(
        cls,
        epsilon: float,
        window: Window = EVER,
        *,
        delta: float = 0.0,
        budgets: Iterable[float] = (),
    ) -> Limit:
        """Return a limit in nats: a pure one, the filter at delta, or budgets fixed beforehand.

        >>> Limit.of(1.0, Window.sliding(days=30)).units
        1000000000
        """
        fixed = tuple(allowed("budgets", budget) for budget in budgets)
        return cls(allowed("epsilon", epsilon), window, delta, fixed)

    @cached_property
    def most_squares(self) -> int:
        """The largest sum of squared units that the filter admits."""
        return filter_squares(self.units, self.delta)

    def admits(self, spent: Sequence[int]) -> bool:
        """Whether spending so much, in this order, keeps the limit."""
        if self.budgets:
            return len(spent) <= len(self.budgets) and all(map(int.__le__, spent, self.budgets))
        if self.delta:
            return sum(spent) <= self.units or _squares(spent) <= self.most_squares
        return sum(spent) <= self.units

    def left(self, spent: Sequence[int]) -> int:
        """Return the largest charge that is still admitted, in units."""
        if self.budgets:  # what was withdrawn moves later charges up, perhaps to a budget below them
            is_left = self.admits(spent) and len(spent) < len(self.budgets)
            return self.budgets[len(spent)] if is_left else 0
        filtered = isqrt(max(0, self.most_squares - _squares(spent))) if self.delta else 0
        return max(filtered, self.units - sum(spent), 0)

    def __str__(self) -> str:
        at = f" at delta = {self.delta:g}" if self.delta else ""
        return f"{shown(self.units)}{at} in {self.window}"


@dataclass(frozen=True)
class Use:
    """A charge, and when it was made."""

    time: int
    charge: Charge


@dataclass(frozen=True)
class Remaining:
    """What a limit leaves.

    Attributes:
        limit: which.
        left: the largest charge that still fits, in units.
        returns: the second from which a charge fits again; None if it never does, or fits already.
    """

    limit: Limit
    left: int
    returns: int | None = None


def spent_in(uses: Iterable[Use], window: Window, opened: int, now: int) -> list[int]:
    """Return what counts in the window at a time, in its order: a memo once, if it was used in it at all.

    A memo that was first used before the window says as much in it as a new one.
    """
    memos, spent = set(), []
    for use in uses:
        leaves = window.leaves(use.time, opened)
        if leaves is not None and leaves <= now:
            continue
        memo = use.charge.memo
        if memo is None or memo not in memos:
            spent.append(use.charge.units)
        memos.add(memo)
    return spent


def check_fits(
    question: Question, limits: Iterable[Limit], uses: Sequence[Use], opened: int, now: int
) -> None:
    """Raise unless a question keeps every limit: with what is left, and when it fits again."""
    for limit in limits:
        if _fits(question, limit, uses, opened, now):
            continue
        spent = spent_in(uses, limit.window, opened, now)
        left, more = limit.left(spent), sum(_spent_with(question, limit, uses, opened, now)) - sum(spent)
        returns = _returns(question, limit, uses, opened, now)
        when = "it will never fit" if returns is None else f"it fits from {written(returns)} on"
        raise OverspentError(
            f"{question} spends {shown(more)}, and {shown(left)} is left of {limit}; {when}.",
            Remaining(limit, left, returns),
        )


def _fits(question: Question, limit: Limit, uses: Sequence[Use], opened: int, now: int) -> bool:
    return limit.admits(_spent_with(question, limit, uses, opened, now))


def _spent_with(question: Question, limit: Limit, uses: Sequence[Use], opened: int, now: int) -> list[int]:
    """Return what counts in a limit's window once a question is answered."""
    asked = [Use(now, charge) for charge in question.charges]
    return spent_in([*uses, *asked], limit.window, opened, now)


def _returns(question: Question, limit: Limit, uses: Sequence[Use], opened: int, now: int) -> int | None:
    """Return when a question that does not fit will, if nothing else is asked."""
    leave = {limit.window.leaves(use.time, opened) for use in uses}
    times = sorted(time for time in leave if time is not None and time > now)
    # Less and less counts, so that from the first time at which it fits it always does.
    place = bisect_left(times, True, key=lambda time: _fits(question, limit, uses, opened, time))
    return times[place] if place < len(times) else None


def _squares(spent: Iterable[int]) -> int:
    return sum(units * units for units in spent)


def filter_squares(units: int, delta: float) -> int:
    """Return the largest S, in squared units, with sqrt(2 L S) + S/2 at most the limit, L = ln(1/delta).

    That is (sqrt(2B + 2L) - sqrt(2L))^2, rounded down.
    """
    if not 0 < delta < 1:
        raise invalid("delta", "between 0 and 1", delta)
    with localcontext() as context:
        context.prec = _DIGITS
        twice = -2 * Decimal(repr(delta)).ln()
        root = (2 * Decimal(units) / UNITS + twice).sqrt() - twice.sqrt()
        squares = root * root * UNITS * UNITS
        # Roundings are below 1e-40 of it: one unit less is safely below the truth.
        return max(0, int(squares.to_integral_value(ROUND_FLOOR)) - 1)


def composed(budgets: Sequence[int], delta: float) -> float:
    """Return what reports of these budgets, in units, leak together at delta, whatever they are of."""
    import numpy as np

    from sidelight.leakage.totals.composition import Losses, LossLaw

    if len(budgets) > MOST_BUDGETS:
        raise invalid("budgets", f"at most {MOST_BUDGETS}", f"{len(budgets)} of them")
    counts = Counter(budgets)
    laws = [LossLaw.of_any(units / UNITS) for units in counts]
    sets = np.array([list(counts.values())], dtype=np.int64)
    everything = (np.zeros(1, dtype=np.intp), np.ones(1))
    return Losses.of(laws, sets, [everything], 1 << 13).leakage(delta)
