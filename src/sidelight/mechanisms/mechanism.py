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
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a server keeps of reports: sums that can be merged in any order.

    Attributes:
        reports: how many reports were added up.
        sums: the mechanism's sufficient sums, whole numbers, so that merging never rounds.
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
        """The realised budget of one report."""

    @property
    def delta(self) -> float:
        """The realised probability that the budget does not hold."""

    @property
    def channel(self) -> Channel:
        """The exact law of a report."""

    def repeated(self, times: int) -> Channel:
        """Return the channel of `times` reports of the same value."""

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one report for each value; secure without a seed, a simulation with one.

        Args:
            values: codes in 0..size-1; numbers for a mechanism with bounds.
            seed: for simulation; without one the noise is secure.
            offset: the first value's position in the whole table, so that chunks of it agree.
        """

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up."""

    def estimate(self, aggregate: Aggregate) -> NDArray[np.float64]:
        """Return the unbiased estimate of the values' frequencies, or of the mean of numbers, shape (1,)."""

    def variance(self, reports: int, frequencies: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of each estimate, sampling of people included, were these the frequencies."""

    @classmethod
    def from_plan(cls, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Self:
        """Make the mechanism a plan asks for."""


MECHANISMS: dict[str, str] = {
    "grr": "sidelight.mechanisms.grr:RandomisedResponse",
    "sue": "sidelight.mechanisms.unary:SymmetricUnary",
    "oue": "sidelight.mechanisms.unary:OptimisedUnary",
    "rappor": "sidelight.mechanisms.rappor:Rappor",
    "blh": "sidelight.mechanisms.hashing:BinaryHashing",
    "olh": "sidelight.mechanisms.hashing:OptimisedHashing",
    "she": "sidelight.mechanisms.histogram:SummedHistogram",
    "the": "sidelight.mechanisms.histogram:ThresholdedHistogram",
    "ss": "sidelight.mechanisms.subset:SubsetSelection",
    "exp": "sidelight.mechanisms.exponential:Exponential",
    "hadamard": "sidelight.mechanisms.hadamard:HadamardResponse",
    "laplace": "sidelight.mechanisms.numeric:Laplace",
    "gaussian": "sidelight.mechanisms.numeric:Gaussian",
    "discrete-laplace": "sidelight.mechanisms.numeric:DiscreteLaplace",
    "interval": "sidelight.mechanisms.interval:Interval",
    "identity": "sidelight.mechanisms.plain:Identity",
    "withheld": "sidelight.mechanisms.plain:Withheld",
    "any": "sidelight.mechanisms.unspecified:Unspecified",
}
"""Every mechanism's name and where its class is; a class is loaded when it is asked for."""

WITHOUT_BUDGET = ("identity", "withheld")
"""The mechanisms that have no nominal budget: nothing, or everything, is told."""


def create(name: str, size: int, epsilon: float | None = None, **parameters: Any) -> Mechanism:
    """Return the mechanism called `name` for `size` values at budget `epsilon`.

    >>> round(create("grr", 4, 1.0).epsilon, 9)
    1.0
    >>> create("withheld", 4).epsilon
    0.0
    """
    return make(name, size, epsilon, parameters)


def make(name: str, size: int, epsilon: float | None, parameters: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism called `name`; like `create`, with the parameters as one mapping."""
    check_choice("mechanism", name, MECHANISMS)
    module, _, attribute = MECHANISMS[name].partition(":")
    maker: Callable[..., Mechanism] = getattr(import_module(module), attribute).from_plan
    return maker(size, epsilon, parameters)


def code_type(size: int) -> type[np.uint8] | type[np.uint16]:
    """Return the narrowest type that holds codes below `size`."""
    return np.uint8 if size <= 256 else np.uint16


def check_codes(values: ArrayLike, size: int, name: str = "values") -> NDArray[np.unsignedinteger[Any]]:
    """Return codes in the narrowest type after checking that each is in 0..size-1; copied only if need be."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "ui"):
        raise invalid(name, "a one-dimensional array of integer codes", f"{array.ndim}-d {array.dtype}")
    if array.size and (int(array.max()) >= size or (array.dtype.kind == "i" and int(array.min()) < 0)):
        outside = int(np.count_nonzero((array < 0) | (array >= size)))
        raise InputError(f"`{name}` must be codes from 0 to {size - 1}; {outside} of {array.size} are not.")
    return array.astype(code_type(size), copy=False)


def check_reports(
    reports: Reports, kind: str, width: int | None = None, *, seeds: bool = False
) -> NDArray[Any]:
    """Return the reports' values after checking their form.

    Args:
        reports: what was sent.
        kind: the kinds of numbers that may stand there, as numpy writes them: "u", "ui" or "f".
        width: how many numbers a report has; None where it is a single one.
        seeds: whether each report comes with a seed.
    """
    shape = (len(reports),) if width is None else (len(reports), width)
    fits = reports.values.shape == shape and (reports.values.dtype.kind in kind or not len(reports))
    if not fits or (reports.seeds is not None) != seeds:
        found = f"{reports.values.dtype} of shape {reports.values.shape}"
        wanted = f"an array of shape {shape}" + (" with seeds" if seeds else "")
        raise invalid("reports", f"{wanted}, made by the same mechanism", found)
    return reports.values


def check_estimable(aggregate: Aggregate, sums: int) -> None:
    """Raise if there is nothing to estimate from, or the sums are another mechanism's."""
    if aggregate.sums.shape != (sums,):
        raise InputError(f"the aggregate has {aggregate.sums.size} sums, this mechanism needs {sums}.")
    if aggregate.reports < 1:
        raise InputError("there are no reports to estimate from.")


def need_budget(name: str, epsilon: float | None) -> float:
    """Return the budget a plan gives, or raise if it gives none."""
    if epsilon is None:
        raise InputError(f"the mechanism {name!r} needs an `epsilon`, got none.")
    return epsilon


def refuse_parameters(name: str, parameters: Mapping[str, Any], known: tuple[str, ...] = ()) -> None:
    """Raise if a plan gives the mechanism a parameter it does not have."""
    for parameter in parameters:
        if parameter not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the mechanism {name!r} has no parameter {parameter!r}; {takes}.")
