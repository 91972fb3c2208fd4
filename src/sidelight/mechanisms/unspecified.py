"""Any mechanism with a given budget: for plans that do not yet say which one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import InputError
from sidelight.mechanisms.channel import AnyChannel
from sidelight.mechanisms.exact import check_budget, check_size, store
from sidelight.mechanisms.mechanism import Aggregate, check_times, need_budget, refuse_parameters
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True)
class Unspecified:
    """Whatever satisfies epsilon-LDP; its figures are those of the worst such mechanism."""

    name: ClassVar[str] = "any"
    size: int
    epsilon: float

    def __post_init__(self) -> None:
        store(self, size=check_size(self.size), epsilon=check_budget(self.epsilon))

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters)
        return cls(size, need_budget(cls.name, epsilon))

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0

    @property
    def channel(self) -> AnyChannel:
        """Only its budget is known."""
        return AnyChannel(self.size, self.epsilon)

    def repeated(self, times: int) -> AnyChannel:
        """Return the channel of `times` reports of the same value: their budgets add up."""
        return AnyChannel(self.size, check_times(times) * self.epsilon)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Refuse: there is nothing to run."""
        _refuse(values, seed, offset)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Refuse: there are no reports."""
        _refuse(reports)

    def estimate(self, aggregate: Aggregate) -> NDArray[Any]:
        """Refuse: there are no reports."""
        _refuse(aggregate)

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[Any]:
        """Refuse: it depends on the mechanism."""
        _refuse(reports, frequencies)


def _refuse(*_: object) -> NoReturn:
    raise InputError("the mechanism 'any' stands for one still to be chosen; name one, for example 'grr'.")
