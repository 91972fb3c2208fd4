"""Any mechanism with a given budget: for plans that do not yet say which one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import InputError, check_number, check_whole
from sidelight.mechanisms.channel import AnyChannel
from sidelight.mechanisms.mechanism import Aggregate, refuse_parameters


@dataclass(frozen=True)
class Unspecified:
    """Whatever satisfies epsilon-LDP; its figures are those of the worst such mechanism."""

    name: ClassVar[str] = "any"
    size: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("size", self.size, at_least=2, at_most=65_536)
        check_number("epsilon", self.epsilon, above=0)

    @classmethod
    def from_plan(cls, size: int, epsilon: float, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""
        refuse_parameters(cls.name, parameters)
        return cls(size, epsilon)

    @property
    def delta(self) -> float:
        """Always 0."""
        return 0.0

    @property
    def channel(self) -> AnyChannel:
        """Only its budget is known."""
        return AnyChannel(self.size, self.epsilon)

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> NDArray[Any]:
        """Refuse: there is nothing to run."""
        _refuse(values, seed, offset)

    def aggregate(self, reports: NDArray[Any]) -> Aggregate:
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
