"""All reports of a person together: the mechanism whose one report is T reports through one kept response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Array, Positions
from sidelight.foundation.errors import InputError, check_is, check_whole
from sidelight.foundation.randomness import derive_seed
from sidelight.mechanisms.channel import Channel
from sidelight.mechanisms.checks import check_shares
from sidelight.mechanisms.exact import store
from sidelight.mechanisms.longitudinal.oracle import Longitudinal, check_rounds
from sidelight.mechanisms.longitudinal.tallies import LEAST_ROUNDS
from sidelight.mechanisms.mechanism import Aggregate, Mechanism, check_estimable
from sidelight.mechanisms.reports import ReportForm, Reports

_MOST_DRAWN = 256
"""More rounds than so many are not drawn one by one where others would do."""


@dataclass(frozen=True, init=False)
class Rounds(Mechanism):
    """`times` reports of one value through one kept response, as one report: how often each mark was sent.

    Its budget is eps_T, its channel that of all reports together, and its estimate the mean over the rounds.

    Attributes:
        oracle: the longitudinal oracle.
        times: how many reports each person sends.
    """

    name: ClassVar[str] = "rounds"
    oracle: Longitudinal
    times: int

    def __init__(self, oracle: Longitudinal, times: int) -> None:
        check_is("oracle", oracle, Longitudinal, "It keeps a response, as 'l-grr' does.")
        count = check_rounds(times)
        store(self, oracle=oracle, times=count, size=oracle.size)

    @property
    def makes_reports(self) -> bool:  # type: ignore[override]
        """Whether so few rounds can be drawn one by one."""
        return self.times <= _MOST_DRAWN

    @property
    def epsilon(self) -> float:
        """What all reports together really spend."""
        return self.oracle.budget_of(self.times)

    @property
    def channel(self) -> Channel:
        """The channel of all reports together."""
        return self.oracle.channel if self.times == 1 else self.oracle.kept_channel(self.times)

    def at(self, nominal_budget: float) -> Rounds:
        """Return as many rounds at another nominal budget."""
        return Rounds(self.oracle.at(nominal_budget), self.times)

    @property
    def form(self) -> ReportForm:
        """A count for each mark, at most `times`, with a public seed where there is one."""
        return ReportForm.counts(self.times, self.oracle.tally_width, seeded=self.oracle.form.seeded)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return the counts of `times` reports of each code, see `Mechanism.randomise`."""
        memos = self.oracle.permanent(values, seed=seed, offset=offset)
        if seed is not None and self.times >= LEAST_ROUNDS:
            drawn = self.oracle.tallies(memos, self.times, seed=derive_seed(seed, "rounds"), offset=offset)
            return Reports(drawn.astype(self.form.dtype), memos.seeds, is_simulation=True)
        counts = np.zeros((len(memos), self.oracle.tally_width), dtype=self.form.dtype)
        for number in range(self.times):
            fresh = derive_seed(seed, f"round/{number}")
            counts += self.oracle.tallied(self.oracle.report(memos, seed=fresh, offset=offset))
        return Reports(counts, memos.seeds, seed is not None)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Count how often each value was marked, by everybody in all rounds."""
        counts = self.check(reports)
        marks = self.oracle.tally_marks(counts, reports.seeds)
        return Aggregate(len(counts), marks.sum(axis=0, dtype=np.int64), self.name)

    def check(self, reports: Reports) -> NDArray[Any]:
        """Return the counts, or raise if no `times` reports can have them."""
        counts = super().check(reports)
        self.oracle.check_tally(counts, self.times)
        return counts

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the values' frequencies from the mean over the rounds."""
        check_estimable(aggregate, self.size, self.name)
        p, q = self.oracle.mark_rates
        share = aggregate.sums / (aggregate.reports * self.times)
        return np.asarray((share - float(q)) / float(p - q))

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Return the variance of each estimate, sampling of people included, were these the frequencies.

        The memo marks a value with probability a = f p1 + (1-f) q1. Its own spread stays whatever T is; that
        of the reports given the memo falls with T:

            n Var = a(1-a) / (p1-q1)^2 + [a p2(1-p2) + (1-a) q2(1-q2)] / (T (p1-q1)^2 (p2-q2)^2).
        """
        count = check_whole("reports", reports, at_least=1)
        (p, q), (kept, made) = self.oracle.permanent_rates, self.oracle.instant_rates
        memo_gap, gap = float(p - q), float(kept - made)
        marked = float(q) + memo_gap * check_shares(frequencies, self.size, single=True)
        fresh = marked * float(kept * (1 - kept)) + (1 - marked) * float(made * (1 - made))
        spread = marked * (1 - marked) + fresh / (self.times * gap**2)
        return np.asarray(spread / (count * memo_gap**2))

    @property
    def adds_up(self) -> bool:
        """As one report of the oracle does."""
        return self.oracle.adds_up

    def likelihoods(self, reports: Reports) -> Array:
        """Return Pr(counts | value), up to a factor for each person, see `Mechanism.likelihoods`."""
        logs = self.oracle.tally_logs(self.check(reports), reports.seeds, self.times)
        return np.asfortranarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def report_law(self, most: int) -> Array | None:
        """Return Pr(counts | value) of all counts, see `Mechanism.report_law`."""
        return self.oracle.tally_law(self.times, most)

    def tabulated(self, reports: Reports) -> tuple[Array, Positions]:
        """Return the likelihoods of the distinct counts, see `Mechanism.tabulated`."""
        distinct, rows = np.unique(self.likelihoods(reports), axis=0, return_inverse=True)
        return distinct, rows.reshape(-1)

    @property
    def guess_rate(self) -> float | None:
        """How often the likeliest value is the true one, where that is known."""
        return self.oracle.kept_guess(self.times)

    def _likeliest(self) -> NoReturn:
        raise InputError(
            f"no guess is defined for {self.times} reports of {self.oracle.name!r}; look at all of them."
        )
