"""ReportedGroup: one attribute, or several as one with the product domain, and its mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from sidelight.foundation.arrays import AnyCodes, Array, Positions
from sidelight.foundation.errors import InputError, check_choice
from sidelight.mechanisms import MECHANISMS, Aggregate, Mechanism, Reports, create, make, mechanism_class
from sidelight.mechanisms.exact import LARGEST_SIZE
from sidelight.protocols.factors import Cells, Choice, Factor, Whole
from sidelight.protocols.protocol import check_budget, domain_size
from sidelight.schema import Schema

Parameters = Mapping[str, Any] | None
UNUSABLE = ("any", "withheld")
"""Mechanisms that do not report a code's frequency."""
PRODUCT = ("grr", "ss", "oue", "sue")
"""The mechanisms of groups: what their marginals' errors are is known in closed form."""
BEST = "best"
"""Stands for the mechanism with the least variance."""


@dataclass(frozen=True)
class ReportedGroup:
    """What is reported as one value, through a mechanism by its name, nominal budget if any, and parameters.

    Several attributes, of so many values each, are one value of the product domain, the last varying fastest.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    mechanism: str
    epsilon: float | None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_budget(self.epsilon))
        check_choice("mechanism", self.mechanism, MECHANISMS)
        if self.mechanism in UNUSABLE:
            raise InputError(
                f"the mechanism {self.mechanism!r} of {self.label!r} reports no codes whose frequency could "
                f"be estimated; take one of {', '.join(sorted(set(MECHANISMS) - set(UNUSABLE)))}."
            )
        group, size, known = f"the group {self.label!r}", self.size, ", ".join(PRODUCT)
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{group} names an attribute twice; name each once.")
        if min(self.sizes, default=0) < 2:
            single = next(name for name, size in zip(self.names, self.sizes, strict=True) if size < 2)
            raise InputError(
                f"{group} has an attribute of one value, {single!r}, which says nothing; leave it out."
            )
        if len(self.names) > 1 and self.mechanism not in PRODUCT:
            raise InputError(f"{group} must be reported through one of {known}, got {self.mechanism!r}.")
        if size > LARGEST_SIZE:
            raise InputError(
                f"{group} has {size} combinations of values, more than {LARGEST_SIZE}; make it smaller."
            )
        _ = self.randomiser

    @property
    def label(self) -> str:
        """The name of the group's column: its attributes."""
        return " x ".join(self.names)

    @property
    def size(self) -> int:
        """The number of values of the product domain."""
        return domain_size(self.sizes)

    @cached_property
    def randomiser(self) -> Mechanism:
        """The mechanism; one of numbers reports the point of each value, made noisy."""
        made = make(self.mechanism, self.size, self.epsilon, self.parameters)
        try:
            return made.over_codes()
        except InputError as error:
            raise type(error)(f"no frequencies of {self.label!r} could be estimated: {error}") from None

    def codes(self, records: AnyCodes, schema: Schema, rows: Positions | None = None) -> AnyCodes:
        """Return the values that records of a schema, all or those of some rows, have of this group."""
        every = (records[:, schema.index(name)] for name in self.names)
        columns = [column if rows is None else column[rows] for column in every]
        if len(columns) == 1:
            return np.ascontiguousarray(columns[0])
        parts = tuple(column.astype(np.intp) for column in columns)
        return np.ravel_multi_index(parts, self.sizes).astype(np.uint16)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Add reports up; an error says of which group."""
        try:
            return self.randomiser.aggregate(reports)
        except InputError as error:
            raise InputError(f"the column {self.label!r}: {error}") from None

    def factor(self, reports: Reports) -> Factor:
        """Return what reports say about the group's attributes."""
        mechanism = self.randomiser
        if len(self.names) == 1:
            return Choice({self.label: mechanism.likelihoods(reports).T})
        if mechanism.set_size is None:
            return Whole(self.names, self.sizes, mechanism.likelihoods(reports).T)
        cells = mechanism.check(reports).astype(np.intp).reshape(len(reports), -1)
        # A report is as likely under every cell that it does not name, whichever it names.
        baseline = float(mechanism.likelihoods(reports[:1]).min(initial=1.0))
        return Cells(self.names, self.sizes, cells.T, baseline)

    def estimate(self, aggregate: Aggregate) -> Array:
        """Return the unbiased estimate of the group's joint frequencies, in the shape of `sizes`."""
        return self.randomiser.estimate(aggregate).reshape(self.sizes)

    @cached_property
    def moments(self) -> dict[str, tuple[float, float] | None]:
        """By attribute, the mean square of one report's estimate of a value: if not the truth, and if it is.

        None for a mechanism whose variance is no function of the value's own frequency alone.
        """
        mechanism = self.randomiser
        if len(self.names) > 1:
            each = zip(self.names, self.sizes, strict=True)
            return {name: _product_moments(mechanism, self.size // size) for name, size in each}
        if mechanism.mark_rates is None:
            return {self.label: None}
        at_none, at_all = (float(mechanism.variance(1, share)) for share in (0.0, 1.0))
        return {self.label: (at_none, at_all + 1.0)}

    def to_file(self) -> dict[str, Any]:
        """Return the group as plain data."""
        return {
            "attributes": list(self.names),
            "mechanism": self.mechanism,
            **({} if self.epsilon is None else {"epsilon": self.epsilon}),
            **({"parameters": dict(self.parameters)} if self.parameters else {}),
        }


def _product_moments(mechanism: Mechanism, cells: int) -> tuple[float, float]:
    """Return the mean squares for a value that is `cells` cells of a product domain.

    A report marks cells: a set of w of them (w = 1 for randomised response), then how many lie among the
    value's cells is hypergeometric once it is known whether the true cell is marked; or each on its own.
    """
    rates = mechanism.mark_rates
    if rates is None:
        raise InputError(
            f"the mechanism {mechanism.name!r} marks no cells; take one of {', '.join(PRODUCT)}."
        )
    keep, other = map(float, rates)
    squares = []
    for inside in (0, 1):
        total = 0.0
        for included, share in ((1, keep), (0, 1 - keep)):
            mean, variance = _other_marks(mechanism, cells - inside, included)
            away = mean + included * inside - cells * other
            total += share * (away**2 + variance)
        squares.append(total / (keep - other) ** 2)
    return squares[0], squares[1]


def _other_marks(mechanism: Mechanism, cells: int, included: int) -> tuple[float, float]:
    """Return mean and variance of how many of some untrue cells are marked, given whether the true one is."""
    if mechanism.set_size is not None:
        return _hypergeometric(mechanism.size - 1, cells, mechanism.set_size - included)
    other = float((mechanism.mark_rates or (1, 0))[1])
    return cells * other, cells * other * (1 - other)


def table_moments(group: ReportedGroup, names: Sequence[str]) -> tuple[float, float]:
    """Return the mean squares of one report's estimate of a cell of some of the group's attributes.

    As `ReportedGroup.moments`: for records that are not in the cell, and for those that are.
    """
    of = dict(zip(group.names, group.sizes, strict=True))
    return _product_moments(group.randomiser, group.size // domain_size([of[name] for name in names]))


def _hypergeometric(population: int, special: int, draws: int) -> tuple[float, float]:
    """Return mean and variance of how many of `special` among `population` are drawn."""
    share = special / population
    return draws * share, draws * share * (1 - share) * (population - draws) / max(population - 1, 1)


def make_group(
    schema: Schema, names: Sequence[str], mechanism: str, epsilon: float | None, parameters: Parameters = None
) -> ReportedGroup:
    """Return the group of some attributes; the mechanism "best" is the one with the least variance."""
    if not names:
        raise InputError("a group needs at least one attribute, got none.")
    sizes = tuple(schema[name].size for name in names)
    if mechanism != BEST:
        budget = epsilon if mechanism_class(mechanism).has_budget else None
        return ReportedGroup(tuple(names), sizes, mechanism, budget, parameters or {})
    if epsilon is None:
        raise InputError("the mechanism 'best' needs an `epsilon`, got none.")
    chosen, settings = best_mechanism(sizes, epsilon) if min(sizes) > 1 else ("grr", {})
    return ReportedGroup(tuple(names), sizes, chosen, epsilon, settings)


def best_mechanism(sizes: Sequence[int], epsilon: float) -> tuple[str, dict[str, int]]:
    """Return the mechanism whose marginals vary least for values that are rare, and its parameters.

    >>> best_mechanism([2], 1.0), best_mechanism([30], 1.0)
    (('grr', {}), ('ss', {'width': 8}))
    """
    width = _best_width(tuple(sizes), epsilon)
    return ("grr", {}) if width == 1 else ("ss", {"width": width})


@lru_cache(maxsize=1 << 12)
def _best_width(sizes: tuple[int, ...], epsilon: float) -> int:
    size = domain_size(sizes)
    widths: dict[float, int] = {}
    usual = size / (np.exp(min(epsilon, 50.0)) + 1)  # its width is 1 by then, and e^710 overflows
    near = {1, int(usual), int(usual) + 1, round(usual), size // 2} if size > 2 else {1}
    for width in sorted(width for width in near if 1 <= width < size):
        mechanism = create("grr", size, epsilon) if width == 1 else create("ss", size, epsilon, width=width)
        spread = [
            part * _product_moments(mechanism, size // part)[0] if len(sizes) > 1 else
            part * float(mechanism.variance(1, 0.0))
            for part in sizes
        ]  # fmt: skip
        widths.setdefault(sum(spread), width)
    return widths[min(widths)]


def inverted_covariance(group: ReportedGroup, frequencies: Array) -> Array:
    """Return the covariance of one report's estimates by inversion, were these the frequencies."""
    law = group.randomiser.channel.matrix()
    inverse = np.linalg.inv(law)
    said = frequencies @ law
    return np.asarray(inverse.T @ (np.diag(said) - np.outer(said, said)) @ inverse)


def check_groups(schema: Schema, groups: Sequence[ReportedGroup], *, disjoint: bool) -> None:
    """Raise unless every attribute is in a group, in one only where groups must be disjoint."""
    for group in groups:
        sizes = tuple(schema[name].size for name in group.names)
        if sizes != group.sizes:
            raise InputError(f"the group {group.label!r} has sizes {group.sizes}, the schema has {sizes}.")
    if len({group.label for group in groups}) < len(groups):
        raise InputError(f"two groups have one label: {', '.join(group.label for group in groups)}.")
    holders: dict[str, ReportedGroup] = {}
    for group in groups:
        for name in group.names:
            holder = holders.setdefault(name, group)
            if disjoint and holder is not group:
                pair = f"{holder.label!r} and {group.label!r}"
                raise InputError(f"the attribute {name!r} is in two groups, {pair}.")
    if missing := [name for name in schema.names if name not in holders]:
        fix = "add it or leave it out of the schema"
        raise InputError(f"no group reports the attribute {missing[0]!r}; {fix}.")


def marginal(joint: Array, axis: int) -> Array:
    """Return the marginal along one axis of a joint."""
    return np.asarray(joint.sum(axis=tuple(i for i in range(joint.ndim) if i != axis)))
