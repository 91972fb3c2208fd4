"""Query: a question about all attributes of a record, answered with Laplace noise.

An additive query is a sum of one function of each attribute: weights make sums and means, indicators make
counts, indicators of several cells make a histogram, which is one vector-valued answer. Any other query is a
table of answers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sidelight.foundation.arrays import Array, Mask, Whole
from sidelight.foundation.errors import InputError, check_number, invalid
from sidelight.knowledge.adversary import check_names
from sidelight.schema import Schema, as_schema
from sidelight.sources.counts import check_dense

KINDS = ("sum", "mean", "count", "histogram")
WIDEST = 2.0**40
"""How many scales of noise the answers may span: beyond it the rounding of a double decides."""
_FINEST = 1000  # finer steps are hardly ever meant
_MOST_TICKS = 2.0**52  # so that sums of ticks are whole numbers in a double
_ROUNDING = 2.0**-50  # a few units in the last place of the largest value
QUERY_FIX = "Query.sum(belief.schema) makes one."


@dataclass(frozen=True, eq=False)
class Lattice:
    """Answers as whole numbers of a common step, so that equal sums are equal without rounding.

    Attributes:
        step: the step, in the query's own unit.
        offsets: each attribute's least contribution, (n, d); ticks count from there.
        ticks: each attribute's contributions in steps, (values, d); 0 for attributes left out.
    """

    step: float
    offsets: Array
    ticks: tuple[Whole, ...]


@dataclass(frozen=True, eq=False)
class Query:
    """A question about some attributes, and the scale of its Laplace noise, lambda.

    Attributes:
        scale: each cell of a vector gets noise of its own.
        parts: for an additive query what each value of each attribute adds, (values, d).
        answers: for any other query the answer to each combination of values, (*sizes, d).
    """

    name: str
    schema: Schema
    scale: float
    parts: tuple[Array, ...] | None
    answers: Array | None = None
    _lattices: dict[tuple[int, ...], Lattice] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        scale = check_number("scale", self.scale, above=0)
        if not self.span <= WIDEST * scale:
            raise invalid(
                "scale",
                f"at least {self.span / WIDEST:.3g}: the answers span {self.span:.3g}, and beside less noise "
                "than a 2^40th of that rounding decides",
                self.scale,
                "Add more noise, or make the query's parts smaller.",
            )

    @classmethod
    def sum(cls, schema: Schema, scale: float = 1.0, weights: Mapping[str, float] | None = None) -> Query:
        """Ask for the sum of the coded values, each times its attribute's weight (1 by default)."""
        schema = as_schema(schema)
        given = checked_weights(schema.names, weights)
        parts = {a.name: given[a.name] * np.arange(a.size) for a in schema}
        return cls.additive(schema, parts, scale, name="sum")

    @classmethod
    def mean(cls, schema: Schema, scale: float = 1.0) -> Query:
        """Ask for the mean of the coded values."""
        names = as_schema(schema).names
        return replace(cls.sum(schema, scale, dict.fromkeys(names, 1 / len(names))), name="mean")

    @classmethod
    def count(cls, schema: Schema, of: Mapping[str, Sequence[str]], scale: float = 1.0) -> Query:
        """Ask how many attributes have one of the values listed for them."""
        schema = as_schema(schema)
        for name, labels in of.items():
            for label in labels:
                schema[name].code(label)
        parts = {a.name: [float(value in of.get(a.name, ())) for value in a.values] for a in schema}
        return cls.additive(schema, parts, scale, name="count")

    @classmethod
    def histogram(cls, schema: Schema, scale: float = 1.0) -> Query:
        """Ask for every value how many attributes have it: one answer with a cell for each value."""
        schema = as_schema(schema)
        cells = list(dict.fromkeys(value for attribute in schema for value in attribute.values))
        parts = {a.name: [[float(value == cell) for cell in cells] for value in a.values] for a in schema}
        return cls.additive(schema, parts, scale, name="histogram")

    @classmethod
    def additive(
        cls, schema: Schema, parts: Mapping[str, ArrayLike], scale: float = 1.0, *, name: str = "additive"
    ) -> Query:
        """Ask for the sum of what each attribute's value adds, a number or a vector; 0 for one not named."""
        schema = as_schema(schema)
        for given in parts:
            schema.index(given)
        arrays = {key: _numbers(f"parts of {key}", value) for key, value in parts.items()}
        shaped = {key: x if x.ndim > 1 else np.atleast_1d(x)[:, None] for key, x in arrays.items()}
        widths = {array.shape[-1] for array in shaped.values()} or {1}
        if len(widths) > 1:
            raise invalid("parts", "numbers, or vectors of one length", sorted(widths))
        width = widths.pop()
        if width == 0:
            raise invalid("parts", "numbers, or vectors of at least one number", "empty vectors")
        rows = tuple(shaped.get(a.name, np.zeros((a.size, width))) for a in schema)
        for attribute, row in zip(schema, rows, strict=True):
            if row.shape != (attribute.size, width) or not np.all(np.isfinite(row)):
                wanted = f"{attribute.size} finite numbers or vectors"
                raise invalid(f"parts of {attribute.name}", wanted, row.shape)
        return cls(name, schema, scale, rows)

    @classmethod
    def any(
        cls, schema: Schema, function: Callable[..., float | Sequence[float]], scale: float = 1.0, *,
        name: str = "any query",
    ) -> Query:  # fmt: skip
        """Ask for any function of the codes of all attributes, one argument for each."""
        schema = as_schema(schema)
        check_dense(schema.sizes)
        try:
            inspect.signature(function).bind(*schema.sizes)
        except TypeError as error:
            wanted = f"a function of {len(schema)} codes"
            raise invalid("function", wanted, function, f"It says: {error}.") from None
        combinations = product(*(range(size) for size in schema.sizes))
        table = [_numbers("answer of the function", function(*codes)) for codes in combinations]
        shapes = {np.atleast_1d(answer).shape for answer in table}
        if len(shapes) > 1 or any(len(shape) > 1 or shape[0] == 0 for shape in shapes):
            raise invalid("function", "answered by numbers, or by vectors of one length", sorted(shapes))
        answers = np.array(table).reshape(*schema.sizes, -1)
        if not np.all(np.isfinite(answers)):
            raise InputError("`function` must answer finite numbers for every combination of values.")
        return cls(name, schema, scale, None, answers)

    @property
    def is_additive(self) -> bool:
        """Whether each attribute adds its own part."""
        return self.parts is not None

    @property
    def width(self) -> int:
        """How many numbers an answer has."""
        table = self.parts[0] if self.parts is not None else self.answers
        return 1 if table is None else int(table.shape[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data, without its parts."""
        return {"name": self.name, "scale": self.scale, "width": self.width}

    def with_scale(self, scale: float) -> Query:
        """Return the same question with other noise; what was computed about the parts is kept."""
        other = replace(self, scale=scale)
        object.__setattr__(other, "_lattices", self._lattices)
        return other

    @cached_property
    def span(self) -> float:
        """How far apart two answers can be at most, in the L1 norm."""
        tables = self.parts if self.parts is not None else (self.answers,)
        with np.errstate(over="ignore"):  # an infinite span is refused by name
            widths = [0.0 if t is None else np.ptp(t.reshape(-1, t.shape[-1]), axis=0).sum() for t in tables]
            return float(np.sum(widths))

    @property
    def lattice(self) -> Lattice:
        """The contributions of all attributes as whole numbers of a common step."""
        return self.lattice_of(range(len(self.schema)))

    def lattice_of(self, columns: Iterable[int]) -> Lattice:
        """Return the contributions of some attributes as whole numbers of a common step.

        A known attribute only shifts the answer: leaving it out keeps the step fine where it is large.
        """
        chosen = tuple(columns)
        if chosen not in self._lattices:
            self._lattices[chosen] = self._lattice(set(chosen))
        return self._lattices[chosen]

    def _lattice(self, chosen: set[int]) -> Lattice:
        parts = self.additive_parts()
        offsets = np.array([part.min(axis=0) for part in parts])
        above = [
            part - offset if column in chosen else np.zeros_like(part)
            for column, (part, offset) in enumerate(zip(parts, offsets, strict=True))
        ]
        total = math.fsum(float(part.max()) for part in above)
        step = common_step(np.concatenate([part.ravel() for part in above]), total)
        return Lattice(step, offsets, tuple(np.rint(part / step).astype(np.int64) for part in above))

    def additive_parts(self) -> tuple[Array, ...]:
        """Return each attribute's contributions, or raise for a query that is not additive."""
        if self.parts is None:
            raise InputError(
                f"the query {self.name!r} is not additive; only the exact figure of a joint belief works "
                "for any query."
            )
        return self.parts

    def sensitivities(self, possible: Sequence[Mask]) -> Array:
        """Return how far each attribute alone can move the answer (PDP, LS_i): in the L1 norm, shape (n,)."""
        parts = [part[mask] for part, mask in zip(self.additive_parts(), possible, strict=True)]
        return np.array([np.abs(part[:, None] - part[None]).sum(axis=-1).max() for part in parts])

    def reaches(self, possible: Sequence[Mask]) -> Array:
        """Return the sensitivities in units of the noise's scale: LS / lambda, (n,)."""
        return self.sensitivities(possible) / self.scale


def common_step(values: Array, total: float | None = None) -> float:
    """Return the largest simple step of which all values are multiples; else one as fine as a double.

    A multiple is one up to the rounding of doubles as large as the largest value, whatever that is in steps;
    values that are nothing but such rounding count as 0. The step is never so fine that a sum is no longer
    a whole number in a double; `total` is the largest one, the largest value by default.

    >>> common_step(np.array([0.0, 0.5, 0.75])), common_step(np.array([1 / 3, 2 / 3, 0.0]))
    (0.25, 0.3333333333333333)
    """
    sizes = np.unique(np.abs(values))
    largest = float(sizes[-1])
    above = sizes[sizes > _ROUNDING * largest]
    if not len(above):
        return 1.0
    widest = largest if total is None else total
    for parts in range(1, _FINEST + 1):
        step = float(above[0]) / parts
        if widest > _MOST_TICKS * step:
            break
        if np.all(np.abs(above - np.rint(above / step) * step) <= _ROUNDING * largest):
            return step
    return max(math.ldexp(widest, -52), math.ulp(0.0))


def _numbers(name: str, value: object) -> Array:
    """Return numbers, or vectors of them, as an array; a text that looks like a number is none."""
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise invalid(name, "numbers, or vectors of one length", value) from None
    if numbers.dtype.kind not in "biuf":
        raise invalid(name, "numbers", value)
    return numbers.astype(np.float64)


def checked_weights(names: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weight of every attribute in a sum, in order; 1 where none is given."""
    given = weights or {}
    check_names(given, names)
    return {name: check_number(f"weight of {name}", given.get(name, 1.0)) for name in names}


@dataclass(frozen=True)
class NumberSum:
    """A weighted sum of numbers that are not binned, and the scale of its Laplace noise, lambda.

    `reaches` says how far apart two values of each attribute may be, M.
    """

    scale: float
    weights: Mapping[str, float]
    reaches: Mapping[str, float]
    name: str = "sum"

    @property
    def width(self) -> int:
        """How many numbers an answer has."""
        return 1

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data."""
        shape = {"name": self.name, "scale": self.scale, "width": self.width}
        return shape | {"weights": dict(self.weights), "reaches": dict(self.reaches)}
