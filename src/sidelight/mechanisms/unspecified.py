"""Any mechanism with a given budget: for plans that do not yet say which one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.mechanisms.channel import AnyChannel
from sidelight.mechanisms.exact import check_budget, check_size, store
from sidelight.mechanisms.form import ReportForm
from sidelight.mechanisms.mechanism import Aggregate, Mechanism
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True)
class Unspecified(Mechanism):
    """Whatever satisfies epsilon-LDP; its figures are those of the worst such mechanism.

    Attributes:
        size: the number of values.
        nominal_budget: the budget, all of which may be spent.
    """

    name: ClassVar[str] = "any"
    makes_reports: ClassVar[bool] = False
    estimates: ClassVar[Literal["nothing"]] = "nothing"
    nominal_budget: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), nominal_budget=check_budget(self.nominal_budget))

    @property
    def epsilon(self) -> float:
        """The nominal budget, as it may be spent in full."""
        return self.nominal_budget

    @property
    def channel(self) -> AnyChannel:
        """Only its budget is known."""
        return AnyChannel(self.size, self.epsilon)

    @property
    def form(self) -> ReportForm:
        """Refused: there are no reports."""
        raise _unchosen()

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Refuse: there is nothing to run."""
        raise _unchosen(values, seed, offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Refuse: there are no reports."""
        raise _unchosen(reports)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Refuse: there are no reports."""
        raise _unchosen(aggregate)

    def variance(self, reports: int, frequencies: ArrayLike) -> Array:
        """Refuse: it depends on the mechanism."""
        raise _unchosen(reports, frequencies)


def _unchosen(*_: object) -> InputError:
    return InputError(
        "the mechanism 'any' stands for one still to be chosen; name one, for example 'grr'. Of 'any' only "
        "the budget is known."
    )
