"""Longitudinal oracles: what a mechanism that keeps its first response states about many reports.

Two budgets describe one. Its nominal budget bounds *unlimited* reports of a value through one kept response
(eps_inf); `first` bounds the first report alone (eps_1). Both are kept by whole thresholds: the permanent
response is that of a one-shot mechanism at eps_inf, and the words of the instantaneous step are rounded so
that the first report never exceeds eps_1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Words
from sidelight.foundation.errors import InputError, check_number, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms.channel import Channel
from sidelight.mechanisms.checks import check_codes, need_budget
from sidelight.mechanisms.exact import WORDS, check_factor, exp_below, log_factor, store
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.longitudinal.budgets import Rates
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.oracle import FrequencyOracle
from sidelight.mechanisms.reports import Reports

LARGEST_ROUNDS = 1_000_000
_USUAL_SHARE = 0.5


class Remembers(Mechanism):
    """A mechanism that states what reports through one kept response, the *memo*, spend."""

    @abstractmethod
    def budget_of(self, times: int) -> float:
        """Return what `times` reports of one value through one memo really spend, exactly."""

    @property
    @abstractmethod
    def epsilon_instant(self) -> float:
        """What one report says about the *memo*: the most that a report of a changed value can cost."""

    @property
    @abstractmethod
    def change_seen(self) -> float:
        """The probability that the memos of two different values differ, which shows the change."""


class Longitudinal(FrequencyOracle, Remembers):
    """An oracle that keeps a permanent response and sends fresh reports of it.

    Abstract besides an oracle's members: `stored`, `instant_rates`, `report`, `budget_of`, `epsilon_instant`,
    `change_seen`, and what T reports of one value say together: `tallied`, `tallies`, `tally_width`,
    `tally_logs`, `order_logs`, `tally_law`, `tally_marks`, `kept_channel`, `kept_guess` and `pair_law`.
    `longitudinal.rounds.Rounds` is the mechanism of all T reports.
    """

    keeps: ClassVar[bool] = True

    @property
    @abstractmethod
    def stored(self) -> Kept:
        """The mechanism of the permanent response."""

    @property
    def permanent_rates(self) -> Rates:
        """How likely the memo marks the true value, and how likely another one."""
        p, q = self.stored.mark_rates or (Fraction(1), Fraction(0))
        return p, q

    @property
    @abstractmethod
    def instant_rates(self) -> Rates:
        """How likely a report marks a value that the memo marks, and how likely one that it does not."""

    @property
    def mark_rates(self) -> Rates:
        """The probabilities that the first report marks the true value, and another."""
        (p, q), (kept, made) = self.permanent_rates, self.instant_rates
        return p * kept + (1 - p) * made, q * kept + (1 - q) * made

    def permanent(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the permanent response of each code: drawn once, kept by the device, never sent."""
        return self.stored.randomise(values, seed=derive_seed(seed, f"{self.name}/permanent"), offset=offset)

    def memos(self, values: ArrayLike, *, seed: int) -> Reports:
        """Return the memo of each device's code where every distinct value has one, for simulation.

        Row i is one device: the same seed and the same code give it the same memo in every round.
        """
        codes = check_codes(values, self.size)
        out = np.zeros((len(codes), *self.form.empty().values.shape[1:]), dtype=self.form.dtype)
        for code in np.unique(codes):
            # All rows are drawn, so that a device's words do not depend on who else has the value.
            drawn = self.permanent(np.full_like(codes, code), seed=derive_seed(seed, f"value/{code}"))
            out[codes == code] = drawn.values[codes == code]
        return Reports(out, is_simulation=True)

    @abstractmethod
    def report(self, permanent: Reports, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return a fresh report of each permanent response."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the first report of a new memory for each code, see `Mechanism.randomise`."""
        return self.report(self.permanent(values, seed=seed, offset=offset), seed=seed, offset=offset)

    @property
    def epsilon_unlimited(self) -> float:
        """What unlimited reports of one value through one memo really spend: the memo's own budget."""
        return self.stored.epsilon

    # What T reports of one value say together: counts suffice.

    @property
    @abstractmethod
    def tally_width(self) -> int:
        """How many counters T reports of a person fill."""

    @abstractmethod
    def tallied(self, reports: Reports) -> NDArray[Any]:
        """Return by how much each report raises each counter, 0 or 1, shape (reports, tally_width)."""

    @abstractmethod
    def tallies(self, permanent: Reports, times: int, *, seed: int, offset: int = 0) -> NDArray[Any]:
        """Return the counters of `times` reports of each permanent response, drawn at once for simulation."""

    def check_tally(self, counts: NDArray[Any], times: int) -> None:
        """Raise if no `times` reports have such counts, each of which is at most `times`."""
        del counts, times

    @abstractmethod
    def tally_marks(self, counts: NDArray[Any], seeds: Words | None) -> NDArray[Any]:
        """Return how many of a person's reports mark each value, shape (people, size)."""

    @abstractmethod
    def tally_logs(self, counts: NDArray[Any], seeds: Words | None, times: int) -> Array:
        """Return ln Pr(counts | value) up to a number for each person, shape (people, size)."""

    @abstractmethod
    def order_logs(self, counts: NDArray[Any], times: int) -> Array:
        """Return ln Pr(reports in their order | what the memo is of), shape (people, tally_width).

        Up to a number that depends on the number of reports alone, so that logarithms of several memos'
        reports can be added and compared.
        """

    @abstractmethod
    def tally_law(self, times: int, most: int) -> Array | None:
        """Return Pr(counts | value) of all counts, shape (size, counts); None if more than `most`."""

    @abstractmethod
    def kept_channel(self, times: int) -> Channel:
        """Return the channel of `times` reports of one value through one memo."""

    @abstractmethod
    def kept_guess(self, times: int) -> float | None:
        """Return how often the likeliest value after `times` reports is the true one; None if not known."""

    @abstractmethod
    def pair_law(self, times: int) -> Array | None:
        """Return the law, given either, of all that tells two values apart in `times` reports.

        Shape (2, outcomes), the same for any two values; None where it cannot be listed.
        """

    def together(self, times: int, *, kept: bool | None = None) -> tuple[Mechanism, int]:
        """Return the mechanism of all reports where the memo is kept, see `Mechanism.together`."""
        count = check_rounds(times)
        if count == 1 or not (self.keeps if kept is None else kept):
            return self, count
        from sidelight.mechanisms.longitudinal.rounds import Rounds

        return Rounds(self, count), 1


def check_rounds(times: object) -> int:
    """Return how many reports a person sends, at most a million."""
    return check_whole("times", times, at_least=1, at_most=LARGEST_ROUNDS)


@dataclass(frozen=True)
class TwoBudgets(Longitudinal):
    """A longitudinal oracle that is set by two budgets.

    Attributes:
        nominal_budget: what unlimited reports of one value may spend, eps_inf.
        first: what the first report may spend, eps_1, below it.
        share: the same as a share of the nominal budget, so that it follows where budgets are searched;
            without either it is a half.
    """

    parameters: ClassVar[tuple[str, ...]] = ("first", "share")
    first: float | None = None
    share: float | None = None

    @classmethod
    def relative(cls, given: Mapping[str, Any], epsilon: float | None) -> Mapping[str, Any]:
        """Return the first report's budget as a share, see `Mechanism.relative`."""
        if "first" not in given:
            return given
        others = {name: value for name, value in given.items() if name != "first"}
        return {**others, "share": given["first"] / need_budget(cls.name, epsilon)}

    @property
    def first_budget(self) -> float:
        """What the first report may spend."""
        if self.first is not None:
            return self.first
        return self.nominal_budget * (_USUAL_SHARE if self.share is None else self.share)

    def settle(self) -> None:
        """Check the first report's budget against that of unlimited reports, then the thresholds."""
        if self.first is not None and self.share is not None:
            raise InputError("`first` and `share` both say what the first report spends; leave one out.")
        if self.share is not None:
            store(self, share=check_number("share", self.share, above=0, below=1))
        if self.first is not None:
            store(self, first=check_number("first", self.first, above=0))
        if self.first_budget >= self.nominal_budget:
            raise InputError(
                "`first`, the budget of the first report, must be below the `epsilon` of unlimited reports, "
                f"{self.nominal_budget!r}; got {self.first!r}. Give a `share` instead where budgets are "
                "searched; to send a response again as it is, keep that of a one-shot mechanism."
            )
        self.settle_steps()
        check_factor(self.factor, self.first_budget)

    def settle_steps(self) -> None:
        """Check further parameters."""

    def at(self, nominal_budget: float) -> Self:
        """Return the oracle at another budget, the first report's in proportion."""
        share = self.share if self.first is None else self.first / self.nominal_budget
        return replace(self, nominal_budget=nominal_budget, first=None, share=share)


def least_words(factor: Callable[[int], Fraction], budget: float) -> int:
    """Return the least number of words, at most 2^63, at which a factor that falls with them keeps a budget.

    At 2^63 words a step says nothing and its factor is 1, so that there is one.
    """
    limit, low, high = exp_below(budget), 0, WORDS // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if factor(middle) <= limit else (middle, high)
    return high


def keep_words(size: int, rate: Fraction, budget: float) -> int:
    """Return the least words for each other value that keep the first report of a response in its budget.

    Rates p - q of chained responses multiply, and a response of rate l = p - q has the factor
    (1 + (k-1) l) / (1 - l): so l of the instantaneous step is that of the budget over that of the memo.
    """
    factor = exp_below(budget)
    wanted = (factor - 1) / (factor + size - 1) / rate
    words = (1 - wanted) * WORDS / size
    return max(1, -(-words.numerator // words.denominator))


def log_rate(rates: Rates) -> float:
    """Return ln p/q, exactly rounded."""
    return log_factor(rates[0] / rates[1])


def seen_difference(rates: Rates, size: int) -> Fraction:
    """Return how likely two memos of randomised response to different values differ: 1 - 2pq - (k-2) q^2."""
    p, q = rates
    return 1 - 2 * p * q - (size - 2) * q * q
