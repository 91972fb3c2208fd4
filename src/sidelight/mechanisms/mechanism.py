"""The contract of a mechanism, and the register of those that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.bits import code_type as code_type
from sidelight.foundation.errors import InputError, check_choice, check_number, check_whole, closest, invalid
from sidelight.mechanisms.channel import Channel
from sidelight.mechanisms.reports import Reports


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a server keeps of reports: sums that can be merged in any order.

    Attributes:
        reports: how many reports were added up.
        sums: the mechanism's sufficient sums, whole numbers, so that merging never rounds.
        mechanism: the name of the mechanism whose sums these are; empty where it is not known.
    """

    reports: int
    sums: NDArray[np.int64]
    mechanism: str = ""

    def __add__(self, other: Aggregate) -> Aggregate:
        if not isinstance(other, Aggregate):
            return NotImplemented
        names = {self.mechanism, other.mechanism} - {""}
        if self.sums.shape != other.sums.shape or len(names) > 1:
            raise InputError(
                "only aggregates of the same mechanism can be merged, got "
                f"{self.sums.size} sums of {self.mechanism!r} and {other.sums.size} of {other.mechanism!r}."
            )
        merged = self.sums + other.sums
        if np.any(((self.sums ^ merged) & (other.sums ^ merged)) < 0):  # both signs differ from the result's
            raise InputError("the aggregates add up to more than 64 bits hold; estimate from fewer reports.")
        return Aggregate(self.reports + other.reports, merged, "".join(names))


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


LARGEST_OFFSET = 1 << 40
_NAMED_ROWS = 3


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


def check_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return `values` as an array after checking that no entry is masked, which numpy would forget."""
    if isinstance(values, np.ma.MaskedArray):
        raise invalid(name, "an array without a mask", "a masked array", "Fill or drop the masked entries.")
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise invalid(name, "one array", type(values).__name__, "Its rows differ in length.") from None


def check_numbers(values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as doubles after checking that they are finite numbers, shape (n,)."""
    array = check_array("values", values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "uif"):
        raise invalid("values", "a one-dimensional array of numbers", f"{array.ndim}-d {array.dtype}")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("`values` must be finite numbers; some are not.")
    return numbers


def check_list(name: str, numbers: Any) -> tuple[float, ...]:
    """Return a list of numbers as a tuple of floats."""
    if isinstance(numbers, (str, bytes, Mapping)) or not hasattr(numbers, "__iter__"):
        raise invalid(name, "a list of numbers", numbers)
    return tuple(check_number(name, number) for number in np.atleast_1d(check_array(name, numbers)).tolist())


def check_offset(offset: object) -> int:
    """Return the position of the first row; beyond 2^40 rows the addresses of random words would run out."""
    return check_whole("offset", offset, at_least=0, at_most=LARGEST_OFFSET)


def check_times(times: object) -> int:
    """Return how many reports of the same value there are."""
    return check_whole("times", times, at_least=1)


def check_shares(frequencies: ArrayLike, size: int, *, single: bool = False) -> NDArray[np.float64]:
    """Return frequencies as doubles, one for each value.

    Args:
        frequencies: each from 0 to 1.
        size: the number of values.
        single: whether one frequency may stand alone, where a value's variance depends on its own only.
    """
    share = check_array("frequencies", frequencies)
    fits = share.shape == (size,) or (single and share.ndim == 0)
    if not fits or share.dtype.kind not in "uif":
        raise invalid("frequencies", f"{size} numbers, one for each value", f"{share.dtype} {share.shape}")
    if not ((share >= 0) & (share <= 1)).all():
        raise InputError(
            "`frequencies` must be from 0 to 1; some are not. Estimates may lie outside: clip them first."
        )
    return share.astype(np.float64)


def check_codes(values: ArrayLike, size: int, name: str = "values") -> NDArray[np.unsignedinteger[Any]]:
    """Return codes in the narrowest type after checking that each is in 0..size-1; copied only if need be."""
    array = check_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "ui"):
        raise invalid(name, "a one-dimensional array of integer codes", f"{array.ndim}-d {array.dtype}")
    if array.size and (int(array.max()) >= size or (array.dtype.kind == "i" and int(array.min()) < 0)):
        raise impossible(f"codes from 0 to {size - 1}", (array < 0) | (array >= size), name)
    return array.astype(code_type(size), copy=False)


def check_reports(
    reports: Reports, kind: str, width: int | None = None, *, seeds: bool = False, packed: bool = False
) -> NDArray[Any]:
    """Return the reports' values after checking their form.

    Args:
        reports: what was sent.
        kind: the kinds of numbers that may stand there, as numpy writes them: "u", "ui" or "f".
        width: how many numbers a report has; None where it is a single one.
        seeds: whether each report comes with a seed.
        packed: whether the numbers are packed bits, so that bytes are wanted.
    """
    if not isinstance(reports, Reports) or not _are_arrays(reports):
        found = type(reports).__name__
        raise invalid("reports", "`Reports` of plain arrays, as `randomise` returns them", found)
    shape = (len(reports),) if width is None else (len(reports), width)
    fits = reports.values.shape == shape and (reports.values.dtype.kind in kind or not len(reports))
    fits &= not packed or reports.values.dtype == np.uint8
    if not fits or not _seeds_fit(reports, seeds):
        found = f"{reports.values.dtype} of shape {reports.values.shape}"
        if reports.seeds is not None:
            found += f" with {reports.seeds.dtype} seeds of shape {reports.seeds.shape}"
        wanted = f"an array of {'bytes of ' if packed else ''}shape {shape}"
        wanted += f" with uint64 seeds of shape {shape}" if seeds else ""
        raise invalid("reports", f"{wanted}, made by the same mechanism", found)
    return reports.values


def impossible(wanted: str, strange: NDArray[np.bool_], name: str = "reports") -> InputError:
    """Return the error for what no randomiser can have made, or can be given: how many, and the first rows.

    What stands there is not shown, as it is about people.

    Args:
        wanted: what was expected, in words.
        strange: which rows are not so, shape (rows,) or (rows, numbers of a report).
        name: the argument's name.
    """
    rows = np.flatnonzero(strange.reshape(len(strange), -1).any(axis=1))
    first = ("row " if len(rows) == 1 else "rows ") + ", ".join(map(str, rows[:_NAMED_ROWS]))
    more = f" and {len(rows) - _NAMED_ROWS} more" if len(rows) > _NAMED_ROWS else ""
    fix = " Leave them out, or read them with the protocol that made them." if name != "values" else ""
    return InputError(
        f"`{name}` must be {wanted}; {len(rows)} of {len(strange)} are not ({first}{more}, counted from "
        f"0).{fix}"
    )


def _are_arrays(reports: Reports) -> bool:
    parts = [reports.values] if reports.seeds is None else [reports.values, reports.seeds]
    return all(isinstance(part, np.ndarray) and not isinstance(part, np.ma.MaskedArray) for part in parts)


def _seeds_fit(reports: Reports, wanted: bool) -> bool:
    if reports.seeds is None or not wanted:
        return (reports.seeds is not None) == wanted
    return reports.seeds.shape == (len(reports),) and reports.seeds.dtype == np.uint64


def check_estimable(aggregate: Aggregate, sums: int, name: str) -> None:
    """Raise if there is nothing to estimate from, or the sums are another mechanism's."""
    if not isinstance(aggregate, Aggregate):
        raise invalid("aggregate", "what `aggregate` returned", type(aggregate).__name__)
    if aggregate.mechanism not in ("", name):
        raise InputError(f"the aggregate is of {aggregate.mechanism!r}, this mechanism is {name!r}.")
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
            close = closest(parameter, known)
            hint = "" if close is None else f" Did you mean {close!r}?"
            raise InputError(f"the mechanism {name!r} has no parameter {parameter!r}; {takes}.{hint}")
