"""Budgets of several rounds about the same record, so that together they keep one promise about the label.

Of the rounds so far only two numbers count: PL, the leakage they reach at most, and the product of their
factors theta (see `labels.leakage.rounds_bound`). The next round with belief omega may then use

* eq. (15) as printed: eps_1 = eps / depth, then min(eps / (depth - r + 1), g) with
  g = ln(omega e^(eps - ln PL) + 1 - omega). The first term was probably meant to divide what is left of eps,
  not eps; as printed it never binds in the last round, and may leave nothing for it. The minimum with g
  keeps it safe either way.
* the closed form: as printed before the last round, and there e^eps_r = 1 + (e^eps - PL) / product, the
  largest budget that eq. (13) allows. It is never below g, since omega product never exceeds PL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, invalid
from sidelight.labels.leakage import check_label_budget, check_omega, next_leakage

BudgetRule = Literal["closed", "published"]
RULES = ("closed", "published")
_MARGIN = 1e-12
"""Budgets are this much smaller than the formula says, so that rounding never breaks the promise."""
_ROUNDING = 1e-9
"""How far a leakage that is computed may exceed the promise by rounding alone."""


@dataclass(frozen=True)
class LabelLedger:
    """What one person's rounds have spent.

    Attributes:
        epsilon: the promise for all rounds together, of which there are at most `rounds`.
        leakage: PL, what the rounds so far reach at most, as a likelihood ratio.
        product: of the factors so far.
        done: how many rounds are over, silent ones included.
        spent: the nominal budget of each round in which something was reported.
    """

    epsilon: float
    rounds: int
    leakage: float = 1.0
    product: float = 1.0
    done: int = 0
    spent: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_label_budget(self.epsilon)
        check_whole("rounds", self.rounds, at_least=1)
        check_whole("done", self.done, at_least=0, at_most=self.rounds)
        check_number("product", self.product, at_least=1)
        if not 1 <= self.leakage <= math.exp(self.epsilon) * (1 + _ROUNDING):  # a file may claim anything
            raise invalid("leakage", f"from 1 to e^{self.epsilon:g}, the promise", self.leakage)

    @property
    def label_epsilon(self) -> float:
        """What all reports so far say about the label at most."""
        return math.log(self.leakage)

    def budget(self, omega: float, rule: BudgetRule = "closed") -> float:
        """Return the budget of the next round, whose question has belief `omega`; 0 if nothing is left."""
        check_choice("budgets", rule, RULES)
        weight, left = check_omega(omega), self.rounds - self.done
        if left < 1:
            raise InputError(f"all {self.rounds} rounds are over; there is no budget for another.")
        printed = self.epsilon / self.rounds
        if self.done:
            rest = math.exp(self.epsilon) / self.leakage
            most = math.log1p(weight * (rest - 1)) if rest > 1 else 0.0  # log1p keeps small budgets exact
            printed = min(self.epsilon / left, most * (1 - _MARGIN))
        if rule == "published" or left > 1:
            return printed
        rest = max(math.exp(self.epsilon) - self.leakage, 0.0)  # spent whole: eq. (13) reaches the promise
        return max(printed, math.log1p(rest / self.product) * (1 - _MARGIN))

    def after(self, factor: float, omega: float, budget: float) -> LabelLedger:
        """Return the ledger after a round with these figures; refused where the promise would be broken."""
        leakage = next_leakage(self.leakage, self.product, factor, check_omega(omega))
        if self.done >= self.rounds:
            raise InputError(f"all {self.rounds} rounds are over; there is no budget for another.")
        if leakage > math.exp(self.epsilon) * (1 + _ROUNDING):
            raise InputError(
                f"a round with the factor {factor:.6g} and omega {omega:.4g} would leak up to "
                f"{math.log(leakage):.6g} about the label, above the promised {self.epsilon:g}; refuse it."
            )
        product, spent = self.product * factor, (*self.spent, budget)
        return replace(self, leakage=leakage, product=product, done=self.done + 1, spent=spent)

    def silent(self) -> LabelLedger:
        """Return the ledger after a round without a report, which spends nothing."""
        return replace(self, done=self.done + 1)
