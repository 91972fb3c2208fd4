"""The interval mechanism: cut numbers into intervals, report one that is likelier the nearer it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.foundation.arrays import Whole
from sidelight.foundation.errors import InputError, invalid
from sidelight.mechanisms.checks import check_array, check_list, check_numbers
from sidelight.mechanisms.exact import store
from sidelight.mechanisms.exponential import LawMechanism
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.reports import Reports
from sidelight.mechanisms.weights import DistanceLaw


@dataclass(frozen=True)
class Interval(LawMechanism):
    """Intervals in order; each step away from the true one is e^(eps / (size - 1)) times less likely.

    The first and the last interval are `size - 1` steps apart, so that the whole budget is spent.

    Attributes:
        size: the number of intervals.
        edges: the inner edges, size - 1 of them, if numbers are to be cut here; a number gets the count of
            edges at or below it, as in a schema. With them the values are always numbers, without them codes.
    """

    name: ClassVar[str] = "interval"
    parameters: ClassVar[tuple[str, ...]] = ("edges",)
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, edges=check_list("edges", self.edges))
        if self.edges and len(self.edges) != self.size - 1:
            raise invalid("edges", f"{self.size - 1} inner edges for {self.size} intervals", len(self.edges))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise invalid("edges", "strictly increasing", self.edges)

    @classmethod
    def examples(cls, size: int) -> Iterable[Mapping[str, Any]]:
        """Return the mechanism over codes and, for few intervals, over numbers."""
        return ({}, {"edges": list(range(1, size))}) if size <= 16 else ({},)

    @cached_property
    def law(self) -> DistanceLaw:
        """The law of a report."""
        return DistanceLaw.within(self.size, self.nominal_budget)

    @property
    def takes(self) -> Literal["codes", "numbers"]:
        """Numbers where there are edges to cut them at, else codes."""
        return "numbers" if self.edges else "codes"

    def inputs(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes or, with edges, a number within each interval: its lower edge."""
        if not self.edges:
            return codes
        lowest = np.nextafter(self.edges[0], -np.inf)
        return np.asarray(np.array([lowest, *self.edges])[codes])

    def over_codes(self) -> Mechanism:
        """Return the same mechanism without edges."""
        return replace(self, edges=())

    def cut(self, numbers: ArrayLike) -> Whole:
        """Return the interval of each number."""
        if not self.edges:
            raise InputError("this interval mechanism has no `edges` to cut numbers at; give codes or edges.")
        return np.asarray(np.searchsorted(self.edges, check_numbers(numbers), side="right"))

    def randomise(self, values: ArrayLike, *, seed: int | None = None, offset: int = 0) -> Reports:
        """Return one interval for each number, or for each code without edges; see `Mechanism.randomise`."""
        array = check_array("values", values)
        are_numbers = self.edges or (array.dtype.kind == "f" and array.size)
        codes = self.cut(array) if are_numbers else array
        return super().randomise(codes, seed=seed, offset=offset)
