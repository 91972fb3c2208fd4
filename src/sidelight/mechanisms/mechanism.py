"""The contract of a mechanism, and the register of those that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.errors import InputError, check_choice, invalid
from sidelight.mechanisms.channel import Channel


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a server keeps of reports: sums that can be merged in any order.

    Attributes:
        reports: how many reports were added up.
        sums: (values,), the mechanism's sufficient sums.
    """

    reports: int
    sums: NDArray[np.int64]

    def __add__(self, other: Aggregate) -> Aggregate:
        if self.sums.shape != other.sums.shape:
            raise InputError("only aggregates of the same mechanism can be merged.")
        return Aggregate(self.reports + other.reports, self.sums + other.sums)


class Mechanism(Protocol):
    """One attribute's randomiser.

    A probability is an integer threshold on 64 random bits. What is stated (`epsilon`, `channel`) is
    computed from the thresholds in use, and the realised budget never exceeds the nominal one.
    """

    name: ClassVar[str]

    @property
    def size(self) -> int:
        """The number of values."""

    @property
    def epsilon(self) -> float:
        """The realised budget."""

    @property
    def delta(self) -> float:
        """The realised probability that the budget does not hold."""

    @property
    def channel(self) -> Channel:
        """The exact law of a report."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> NDArray[Any]:
        """Return one report for each code; secure without a seed, a simulation with one."""

    def aggregate(self, reports: NDArray[Any]) -> Aggregate:
        """Add reports up."""

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate of the values' frequencies."""

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the estimate of each value's frequency, sampling of people included."""

    @classmethod
    def from_plan(cls, size: int, epsilon: float, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""


MECHANISMS: dict[str, str] = {
    "grr": "sidelight.mechanisms.grr:RandomisedResponse",
    "any": "sidelight.mechanisms.unspecified:Unspecified",
}
"""Every mechanism's name and where its class is; a class is loaded when it is asked for."""


def create(name: str, size: int, epsilon: float, **parameters: Any) -> Mechanism:
    """Return the mechanism called `name` for `size` values at budget `epsilon`.

    >>> round(create("grr", 4, 1.0).epsilon, 9)
    1.0
    """
    check_choice("mechanism", name, MECHANISMS)
    module, _, attribute = MECHANISMS[name].partition(":")
    maker: Callable[..., Mechanism] = getattr(import_module(module), attribute).from_plan
    return maker(size, epsilon, parameters)


def check_codes(values: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return the codes as integers after checking that each is in 0..size-1."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "ui"):
        raise invalid("values", "a one-dimensional array of integer codes", f"{array.ndim}-d {array.dtype}")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= size):
        outside = int(np.count_nonzero((array < 0) | (array >= size)))
        raise InputError(f"`values` must be codes from 0 to {size - 1}; {outside} of {array.size} are not.")
    return array.astype(np.int64)


def refuse_parameters(name: str, parameters: Mapping[str, Any], known: tuple[str, ...] = ()) -> None:
    """Raise if a plan gives the mechanism a parameter it does not have."""
    for parameter in parameters:
        if parameter not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the mechanism {name!r} has no parameter {parameter!r}; {takes}.")
